# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node as the cross-check sees it: where it is in the cluster, and what its runtime has.

One place reads each of the three ways in which a node can be handed in: with the full runtime facts, with just
a list of handlers, or as a Node object of the API. No judgement here beyond "what is known".
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import MAPPING, entries, part, shown, yaml_kind
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.scheduling import (
    Taint,
    parse_selector,
    parse_taints,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.suggest import did_you_mean
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

FACTS_SCHEMA = 1
_SHORT_KEYS = ("name", "labels", "taints", "runtime", "labels_complete", "pending", "allocatable")
# A node that no runtime stands behind. virtual-kubelet: https://virtual-kubelet.io/docs/ (label type, taint
# virtual-kubelet.io/provider); EKS Fargate: https://docs.aws.amazon.com/eks/latest/userguide/fargate-pod-configuration.html
_VIRTUAL_LABELS = (("type", "virtual-kubelet"), ("eks.amazonaws.com/compute-type", "fargate"))
_VIRTUAL_TAINTS = ("virtual-kubelet.io/provider", "eks.amazonaws.com/compute-type")


class Runtime(t.NamedTuple):
    """What is known of a node's runtime.

    handlers: name -> details. evidence: loaded, api, next, declared or none. cri_ready: true, false, or None (could not be
    asked). explicit: a dump or a list was handed in to be judged as it is. denied: handlers that the runtime itself said it has
    not, to a pod that still fails for it. gains, loses: what a restart would change; None
    where that is not known. reason: why the runtime itself did not answer, by its facts. why_unknown: a sentence, where
    nothing is known.
    """

    evidence: str = "none"
    cri_ready: bool | None = None
    explicit: bool = False
    handlers: t.Mapping[str, t.Mapping[str, t.Any]] = {}
    default_handler: str | None = None
    gains: frozenset[str] | None = None
    loses: frozenset[str] | None = None
    faults: t.Sequence[t.Mapping[str, t.Any]] = ()
    engine: str | None = None
    version: str | None = None
    collected_at: str | None = None
    reason: str = ""
    why_unknown: str | None = None
    denied: frozenset[str] = frozenset()


class JudgedNode(t.NamedTuple):
    """A node. labels_complete: a label that is not among labels is really absent (a node that has not
    registered may still get labels). kind: linux, windows or virtual. pending: handlers that this run would
    load and whose proof passed (check mode). cordoned: it takes no new pods.
    allocatable: resource -> quantity as written; empty where it is not known."""

    name: str
    labels: t.Mapping[str, str]
    labels_complete: bool
    taints: tuple[Taint, ...]
    kind: str
    runtime: Runtime
    pending: frozenset[str]
    cordoned: bool = False
    allocatable: t.Mapping[str, t.Any] = {}


def read_node(raw: t.Any, index: int) -> JudgedNode:
    """One entry of the list of nodes. Raises RuntimeGateError naming the entry and what is wrong with it."""
    where = f"nodes[{index}]"
    if not isinstance(raw, MAPPING):
        raise RuntimeGateError(f"{where} is {yaml_kind(raw)}, not a mapping with name, labels, taints and runtime")
    if "metadata" in raw or "kind" in raw:
        return _node_object(raw, where)
    name = raw.get("name")
    if not isinstance(name, str) or not name:
        raise RuntimeGateError(f"{where} has no name")
    for key in raw:
        if key not in _SHORT_KEYS:
            raise RuntimeGateError(f"node {name} has the unknown key {shown(key)}{did_you_mean(str(key), _SHORT_KEYS)}")
    labels = parse_selector(raw.get("labels"), f"node {name}: labels")
    taints = parse_taints(raw.get("taints"), f"node {name}: taints")
    return JudgedNode(
        name=name,
        labels=labels,
        labels_complete=bool(raw.get("labels_complete", raw.get("labels") is not None)),
        taints=taints,
        kind=_kind(labels, taints, None),
        runtime=read_runtime(raw.get("runtime"), name),
        pending=_names(raw, "pending", name),
        allocatable=part(raw, "allocatable", where=f"node {name}"),
    )


def read_runtime(raw: t.Any, node: str) -> Runtime:
    """Runtime facts, or just handlers and default_handler (which then count as loaded), or nothing.

    Raises RuntimeGateError for anything else."""
    if not raw:
        return Runtime(why_unknown="its runtime was not read")
    if not isinstance(raw, MAPPING) or "handlers" not in raw:
        raise RuntimeGateError(
            f"node {node}: runtime is neither the facts of containerd_runtime_facts or crio_runtime_facts nor a mapping with handlers;"
            " pass ansible_facts['containerd_runtime'] or ansible_facts['crio_runtime'] of that host"
        )
    if any(key in raw for key in ("schema", "evidence", "cri_ready", "layers")):
        return _facts(raw, node)
    default = _text(raw, "default_handler", node)
    return Runtime(
        evidence="loaded",
        cri_ready=True,
        handlers=_handlers(raw["handlers"], node),
        default_handler=default or None,
    )


def _text(raw: t.Mapping[str, t.Any], key: str, node: str) -> str | None:
    """A string of the facts, or None. Raises RuntimeGateError for another kind of value."""
    value = raw.get(key)
    if value is not None and not isinstance(value, str):
        raise RuntimeGateError(f"node {node}: {key} of its runtime facts is {yaml_kind(value)}, not a string")
    return value


def _facts(raw: t.Mapping[str, t.Any], node: str) -> Runtime:
    schema = raw.get("schema", FACTS_SCHEMA)
    if schema != FACTS_SCHEMA:
        raise RuntimeGateError(f"node {node}: its runtime facts have schema {shown(schema)}; this version reads {FACTS_SCHEMA}")
    common = {
        "faults": entries(raw, "faults", f"node {node}: runtime"),
        "engine": _text(raw, "engine", node),
        "version": _text(raw, "version", node),
        "collected_at": _text(raw, "collected_at", node),
        "reason": _text(raw, "reason", node) or "",
    }
    if raw.get("serves_kubelet") is False:
        return Runtime(why_unknown=f"the facts are of a {raw.get('engine') or 'runtime'} that its kubelet does not use", **common)
    # Facts that were cut to what a judgement needs may have lost their layers; the two lists then speak for themselves.
    following = part(raw, "layers", "next", where=f"node {node}: runtime")
    known = bool(following.get("available")) if raw.get("layers") else "restart_gains" in raw
    runtime = Runtime(
        evidence=_text(raw, "evidence", node) or "none",
        cri_ready=raw.get("cri_ready"),
        explicit=bool(raw.get("explicit")),
        handlers=_handlers(raw["handlers"], node),
        default_handler=_text(raw, "default_handler", node),
        gains=_names(raw, "restart_gains", node) if known else None,
        loses=_names(raw, "restart_loses", node) if known else None,
        **common,
    )
    if runtime.cri_ready is None and runtime.evidence == "none":
        return runtime._replace(why_unknown=_why_unasked(runtime))
    return runtime


def _why_unasked(runtime: Runtime) -> str:
    said = [fault["message"] for fault in runtime.faults if fault.get("severity") == "error" and not fault.get("handlers")]
    why = runtime.reason or (said[0] if said else "")
    return "its runtime could not be asked" + (f": {why}" if why else "")


def _handlers(raw: t.Any, node: str) -> dict[str, t.Mapping[str, t.Any]]:
    """Names to details. CRI's nameless entry (the default) is no handler."""
    if isinstance(raw, MAPPING):
        return {name: part(raw, name, where=f"node {node}: runtime.handlers") for name in raw if name}
    if isinstance(raw, (list, tuple)) and all(isinstance(name, str) for name in raw):
        return {name: {} for name in raw if name}
    raise RuntimeGateError(f"node {node}: runtime.handlers is neither a mapping nor a list of names")


def _names(raw: t.Mapping[str, t.Any], key: str, node: str) -> frozenset[str]:
    value = raw.get(key) or ()
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
        raise RuntimeGateError(f"node {node}: {key} is no list of names")
    return frozenset(value)


def _node_object(raw: t.Mapping[str, t.Any], where: str) -> JudgedNode:
    """A Node of the API. A key runtime beside its own fields holds what was read on the node and then wins."""
    if raw.get("kind", "Node") != "Node":
        raise RuntimeGateError(f"{where} is of kind {shown(raw.get('kind'))}, not Node")
    metadata = part(raw, "metadata", where=where)
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise RuntimeGateError(f"{where} is a Node without metadata.name")
    where = f"node {name}"
    info = part(raw, "status", "nodeInfo", where=where)
    labels = parse_selector(metadata.get("labels"), f"{where}: labels")
    spec = part(raw, "spec", where=where)
    taints = parse_taints(spec.get("taints"), f"{where}: taints")
    return JudgedNode(
        name=name,
        labels=labels,
        labels_complete=True,
        taints=taints,
        kind=_kind(labels, taints, info.get("operatingSystem")),
        runtime=read_runtime(raw["runtime"], name) if raw.get("runtime") else _api_runtime(raw, info, where),
        pending=_names(raw, "pending", name),
        cordoned=bool(spec.get("unschedulable")),
        allocatable=part(raw, "status", "allocatable", where=where),
    )


def _api_runtime(raw: t.Mapping[str, t.Any], info: t.Mapping[str, t.Any], where: str) -> Runtime:
    """status.runtimeHandlers: a late copy of what CRI reports. Absent or empty is no evidence of absence: containerd
    1.x reports nothing, and API servers before 1.31 strip the field."""
    engine, _colon, version = str(info.get("containerRuntimeVersion") or "").partition("://")
    reported = entries(part(raw, "status", where=where), "runtimeHandlers", where)
    if not reported:
        return Runtime(
            engine=engine or None,
            version=version or None,
            why_unknown="it was not read on the node, and its status has no runtimeHandlers"
            f" ({_why_not_reported(engine, version, str(info.get('kubeletVersion') or ''))})",
        )
    handlers = {str(entry["name"]): {"features": entry.get("features")} for entry in reported if entry.get("name")}
    return Runtime(evidence="api", cri_ready=True, handlers=handlers, engine=engine or None, version=version or None)


# Who fills status.runtimeHandlers: runtimes since these releases (containerd's release notes of 2.0, CRI-O pull request 7765), kubelets and
# API servers by default since 1.31 (KEP-3857: the feature gate RecursiveReadOnlyMounts, without which the API server strips the field).
_REPORTING_RUNTIMES = {"containerd": (2, 0), "cri-o": (1, 30)}
_REPORTING_KUBELET = (1, 31)
_TWO_NUMBERS = re.compile(r"v?([0-9]+)\.([0-9]+)")


def _why_not_reported(engine: str, version: str, kubelet: str) -> str:
    """Which part of this node is too old to report its handlers; all that could be, where none is known to be."""
    for name, found, least in ((engine, version, _REPORTING_RUNTIMES.get(engine)), ("kubelet", kubelet, _REPORTING_KUBELET)):
        match = _TWO_NUMBERS.match(found)
        if least and match and (int(match.group(1)), int(match.group(2))) < least:
            return f"{name} {found} does not report them; {least[0]}.{least[1]} and later do"
    return "containerd before 2.0 and Kubernetes before 1.31 do not fill them"


def _kind(labels: t.Mapping[str, str], taints: t.Iterable[Taint], system: str | None) -> str:
    if (system or labels.get("kubernetes.io/os")) == "windows":
        return "windows"
    if any(labels.get(key) == value for key, value in _VIRTUAL_LABELS):
        return "virtual"
    return "virtual" if any(taint.key in _VIRTUAL_TAINTS for taint in taints) else "linux"
