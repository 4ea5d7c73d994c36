# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RuntimeClasses as they are judged, and who references them."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import MAPPING, part, shown, yaml_kind
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import Policy
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.resources import OVER
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.scheduling import (
    Toleration,
    check_handler,
    parse_selector,
    parse_tolerations,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.suggest import did_you_mean
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

_SHORT_KEYS = ("name", "handler", "scheduling", "overhead")
# https://kubernetes.io/docs/reference/using-api/deprecation-guide/#runtimeclass-v125
OLD_VERSIONS = ("node.k8s.io/v1alpha1", "node.k8s.io/v1beta1")


class JudgedClass(t.NamedTuple):
    """A RuntimeClass under a policy.

    scope: where its selector comes from, policy, scheduling, or None (unscoped). mode: require (its records can
    fail), warn (they cannot) or skip (it is not judged; why says so). references: workloads that name it, None
    where none were handed in. overhead: what each of its pods is given on top, as it is written. name is None for an entry of
    required_handlers.
    """

    name: str | None
    handler: str
    selector: t.Mapping[str, str]
    tolerations: tuple[Toleration, ...]
    scope: str | None
    mode: str
    why: str
    references: int | None
    api_version: str | None
    overhead: t.Mapping[str, t.Any] = {}


class References(t.NamedTuple):
    """What pods and workload templates say. by_class: class -> count. default_pods: node -> names of the pods
    that run there with the default handler. templates: class -> the workloads other than pods that name it."""

    by_class: dict[str, int]
    default_pods: dict[str, list[str]]
    templates: dict[str, list[str]]


def read_references(workloads: t.Iterable[t.Any] | None) -> References | None:
    """Who names which RuntimeClass. None in, None out: nothing is known. Raises RuntimeGateError for an entry
    that is no mapping."""
    if workloads is None:
        return None
    if not isinstance(workloads, (list, tuple)):
        raise RuntimeGateError(f"workloads is {yaml_kind(workloads)}, not a list")
    found = References({}, {}, {})
    for index, workload in enumerate(workloads):
        if not isinstance(workload, MAPPING):
            raise RuntimeGateError(f"workloads[{index}] is {yaml_kind(workload)}, not a Kubernetes object")
        _count(workload, f"workloads[{index}]", found)
    return found


#: Kinds of the API server itself that are or make pods.
WORKLOAD_KINDS = ("Pod", "PodTemplate", "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "ReplicationController", "Job", "CronJob")


def unfolded(workloads: t.Any) -> t.Any:
    """The workloads with the items of a List in its place, and for an object of another API (a JobSet, an MPIJob, a RayCluster, a
    Tekton PipelineRun) one workload for each pod template in it that names a RuntimeClass. What is no list stays what it is."""
    if not isinstance(workloads, (list, tuple)):
        return workloads
    found: list[t.Any] = []
    for workload in workloads:
        kind = str(workload.get("kind") or "") if isinstance(workload, MAPPING) else ""
        if kind.endswith("List") and isinstance(workload.get("items"), (list, tuple)):
            typed = {} if kind == "List" else {"kind": kind[: -len("List")]}
            found += unfolded([{**typed, **item} if isinstance(item, MAPPING) else item for item in workload["items"]])
        elif kind and kind not in WORKLOAD_KINDS:
            found += custom_templates(workload) or [workload]
        else:
            found.append(workload)
    return found


def custom_templates(thing: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """The pod specs that name a RuntimeClass anywhere within an object whose API is not known, each as a workload of its kind."""
    found = []
    open_parts: list[t.Any] = [thing]
    while open_parts:
        inner = open_parts.pop()
        if isinstance(inner, MAPPING):
            if isinstance(inner.get("runtimeClassName"), str) and inner["runtimeClassName"]:
                found.append({"kind": thing.get("kind"), "metadata": thing.get("metadata"), "spec": {"template": {"spec": inner}}})
            open_parts += reversed(list(inner.values()))
        elif isinstance(inner, (list, tuple)):
            open_parts += reversed(inner)
    return found


def _count(workload: t.Mapping[str, t.Any], where: str, found: References) -> None:
    is_pod = workload.get("kind") == "Pod"
    if is_pod and part(workload, "status", where=where).get("phase") in OVER:
        return
    spec = pod_spec(workload, where)
    named, node = spec.get("runtimeClassName"), spec.get("nodeName")
    if named:
        found.by_class[str(named)] = found.by_class.get(str(named), 0) + 1
        if not is_pod:
            found.templates.setdefault(str(named), []).append(f"{workload.get('kind')} {workload_name(workload, where)}")
    elif is_pod and node:
        found.default_pods.setdefault(str(node), []).append(workload_name(workload, where))


def workload_name(workload: t.Mapping[str, t.Any], where: str) -> str:
    """NAMESPACE/NAME of a workload."""
    meta = part(workload, "metadata", where=where)
    return f"{meta.get('namespace') or 'default'}/{meta.get('name')}"


def pod_spec(workload: t.Mapping[str, t.Any], where: str) -> t.Mapping[str, t.Any]:
    """The pod spec in a Pod, a PodTemplate, a CronJob, or anything that has spec.template (Deployment, Job, …)."""
    if workload.get("kind") == "PodTemplate":
        return part(workload, "template", "spec", where=where)
    if workload.get("kind") == "CronJob":
        return part(workload, "spec", "jobTemplate", "spec", "template", "spec", where=where)
    spec = part(workload, "spec", where=where)
    return part(spec, "template", "spec", where=where) if "template" in spec else spec


def read_classes(raw: t.Any, policy: Policy, references: References | None) -> list[JudgedClass]:
    """Every RuntimeClass of the list, under the policy. Raises RuntimeGateError for an object that is none, for a
    name that stands twice, and where the policy wants references that were not handed in."""
    if not isinstance(raw, (list, tuple)):
        raise RuntimeGateError(f"runtime_classes is {yaml_kind(raw)}, not a list")
    if policy.unscoped == "referenced" and references is None:
        raise RuntimeGateError(
            "policy: unscoped is referenced, but no workloads were handed in; pass workloads (an empty list means none)"
            " or read them from the cluster"
        )
    classes = [_read_class(entry, f"runtime_classes[{index}]", policy, references) for index, entry in enumerate(raw)]
    seen: set[str | None] = set()
    for entry in classes:
        if entry.name in seen:
            raise RuntimeGateError(f"RuntimeClass {entry.name} stands twice in runtime_classes; names are unique in a cluster")
        seen.add(entry.name)
    return classes


def required_as_classes(policy: Policy) -> list[JudgedClass]:
    """required_handlers, each as a nameless class that targets every judged node whatever its taints."""
    tolerate_all = (Toleration("", "Exists", "", ""),)
    return [
        JudgedClass(None, handler, {}, tolerate_all, "policy", "require", "", None, None) for handler in policy.required_handlers
    ]


def _read_class(raw: t.Any, where: str, policy: Policy, references: References | None) -> JudgedClass:
    name, handler, scheduling = _fields(raw, where)
    where = f"RuntimeClass {name}"
    check_handler(handler, where)
    if scheduling is not None and not isinstance(scheduling, MAPPING):
        raise RuntimeGateError(f"{where}: scheduling is not a mapping with nodeSelector and tolerations")
    scheduling = scheduling or {}
    selector = parse_selector(scheduling.get("nodeSelector"), f"{where}: scheduling.nodeSelector")
    tolerations = parse_tolerations(scheduling.get("tolerations"), f"{where}: scheduling.tolerations")
    scope = "scheduling" if selector or tolerations else None
    if name in policy.node_selector:
        scope, selector = "policy", dict(policy.node_selector[name])
    references_to = None if references is None else references.by_class.get(name, 0)
    mode, why = _mode(name, scope, policy, references_to)
    overhead = part(raw if raw.get("apiVersion") != OLD_VERSIONS[0] else part(raw, "spec", where=where), "overhead", "podFixed", where=where)
    return JudgedClass(
        name, handler, selector, tolerations + policy.tolerations, scope, mode, why, references_to, raw.get("apiVersion"), overhead
    )


def _fields(raw: t.Any, where: str) -> tuple[str, t.Any, t.Any]:
    """Name, handler and scheduling of an API object of any version, or of the short form."""
    if not isinstance(raw, MAPPING):
        raise RuntimeGateError(f"{where} is {yaml_kind(raw)}, not a RuntimeClass")
    if raw.get("kind", "RuntimeClass") != "RuntimeClass":
        raise RuntimeGateError(f"{where} is of kind {shown(raw['kind'])}, not RuntimeClass")
    whole = "metadata" in raw
    name = (part(raw, "metadata", where=where) if whole else raw).get("name")
    if not isinstance(name, str) or not name:
        raise RuntimeGateError(f"{where} has no name")
    if not whole:
        for key in raw:
            if key not in _SHORT_KEYS and key not in ("kind", "apiVersion"):
                raise RuntimeGateError(f"{where} ({name}) has the unknown key {shown(key)}{did_you_mean(str(key), _SHORT_KEYS)}")
    if raw.get("apiVersion") == "node.k8s.io/v1alpha1":
        spec = part(raw, "spec", where=where)
        return name, spec.get("runtimeHandler"), spec.get("scheduling")
    return name, raw.get("handler"), raw.get("scheduling")


def _mode(name: str, scope: str | None, policy: Policy, references: int | None) -> tuple[str, str]:
    if policy.classes is not None and name not in policy.classes:
        return "skip", "policy: classes does not name it"
    if scope is not None or policy.unscoped == "require":
        return "require", ""
    if policy.unscoped == "warn":
        return "warn", "it has no scheduling; the policy says unscoped: warn"
    if policy.unscoped == "ignore":
        return "skip", "it has no scheduling; the policy says unscoped: ignore"
    if references:
        return "require", ""
    return "skip", "it has no scheduling and no workload names it; the policy says unscoped: referenced"
