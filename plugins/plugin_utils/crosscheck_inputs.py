# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the cross-check takes its classes, nodes and workloads from, and the call itself.

A list given wins over manifests, manifests over kubectl's output, that over the cluster; each kind of object for
itself. What is read from the cluster is read once in a call, and once in a run with cache_for_run.
"""

from __future__ import annotations

import json
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crosscheck import crosscheck
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import part, yaml_kind
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.node_identity import identify
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import needs_workloads
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_objects import ClusterObjects
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_reader import read_cluster
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.large_data import collector_paused
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.manifests import read_kubectl, read_manifests
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import once

# kubernetes.core's options by name, so that no import of it is needed where no cluster is asked.
AUTH_OPTIONS: dict[str, dict[str, t.Any]] = {
    "kubeconfig": {"type": "raw", "no_log": True},
    "context": {},
    "host": {},
    "api_key": {"no_log": True},
    "username": {},
    "password": {"no_log": True},
    "validate_certs": {"type": "bool", "aliases": ["verify_ssl"]},
    "ca_cert": {"type": "path", "aliases": ["ssl_ca_cert"]},
    "client_cert": {"type": "path", "aliases": ["cert_file"]},
    "client_key": {"type": "path", "aliases": ["key_file"]},
    "proxy": {"type": "str"},
    "no_proxy": {"type": "str"},
    "proxy_headers": {
        "type": "dict",
        "options": {
            "proxy_basic_auth": {"type": "str", "no_log": True},
            "basic_auth": {"type": "str", "no_log": True},
            "user_agent": {"type": "str"},
        },
    },
    "persist_config": {"type": "bool"},
    "impersonate_user": {},
    "impersonate_groups": {"type": "list", "elements": "str"},
}
#: The option by which the roles hand the connection on.
CLUSTER_OPTION: dict[str, t.Any] = {
    "type": "dict",
    "default": {},
    "options": {**AUTH_OPTIONS, "api_timeout": {"type": "float"}, "api_page_size": {"type": "int"}},
}


# Kind -> its objects in the singular and in the plural, and the call that writes a manifest of them.
_MANIFESTS_LACK = {
    "classes": ("RuntimeClass", "RuntimeClasses", "kubectl get runtimeclasses -o yaml"),
    "nodes": ("Node", "Nodes", "kubectl get nodes -o yaml"),
    "workloads": ("pod or workload", "pods", "kubectl get pods --all-namespaces -o yaml"),
    "events": ("event", "events", "kubectl get events --all-namespaces -o yaml"),
}


class Inputs(t.NamedTuple):
    """What is judged. workloads, events: None where nobody asked for them. repeated: sentences about manifests that stand twice."""

    classes: list[t.Any]
    nodes: list[t.Any]
    workloads: list[t.Any] | None
    repeated: list[str]
    events: list[t.Any] | None = None


def auth_of(params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The connection options that are set."""
    return {name: params[name] for name in AUTH_OPTIONS if params.get(name) is not None}


@collector_paused()
def gather(params: t.Mapping[str, t.Any]) -> Inputs:
    """Classes, nodes and workloads by the options of runtimeclass_crosscheck.

    Raises RuntimeGateError for anything that cannot be read, and for a policy that is none.
    """
    manifests = read_manifests(params["manifests"]) if params.get("manifests") else ClusterObjects()
    kubectl = _kubectl(params.get("kubectl_output"))
    said_none = bool(manifests.empty_lists) and not manifests.runtime_classes
    found: dict[str, t.Any] = {
        "classes": _first(params.get("runtime_classes"), [] if said_none else manifests.runtime_classes or None, kubectl["runtime_classes"]),
        "nodes": _first(params.get("nodes"), manifests.nodes or None, kubectl["nodes"]),
        "workloads": _first(params.get("workloads"), manifests.workloads or None, kubectl["workloads"]),
        "events": _first(params.get("events"), manifests.events or None, kubectl["events"]),
    }
    failing = bool(params.get("failing_pods"))
    # An event is about a pod, which says what it asked for and whether it still fails.
    workloads_wanted = failing or needs_workloads(params.get("policy")) or bool(params.get("read_workloads"))
    wanted = {
        "classes": found["classes"] is None,
        "nodes": found["nodes"] is None,
        "workloads": found["workloads"] is None and workloads_wanted,
        "events": found["events"] is None and failing,
    }
    if any(wanted.values()):
        asked = _cluster(params, wanted) if not params.get("manifests") else _rest_of_manifests(params, wanted)
        found.update({kind: asked[kind] for kind in wanted if wanted[kind]})
    return Inputs(found["classes"], found["nodes"], found["workloads"], manifests.repeated, found["events"] if failing else None)


@collector_paused()
def judge(params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The whole module: gather, place the one host where one is asked for, cross-check.

    Raises RuntimeGateError for bad input."""
    inputs = gather(params)
    one_host = bool(params.get("node_runtime") or params.get("node_name"))
    nodes, identity = _place(params, inputs.nodes) if one_host else (inputs.nodes, None)
    result = crosscheck(
        inputs.classes,
        nodes,
        workloads=inputs.workloads,
        policy=params.get("policy"),
        verdicts=params.get("verdicts") or "notable",
        fleet=not one_host,
        events=inputs.events,
    )
    for sentence in inputs.repeated:
        result["notices"].append(
            {
                "name": "object_repeated",
                "severity": "info",
                "message": sentence,
                "fix": None,
                "runtime_class": None,
                "handler": None,
                "nodes": [],
            }
        )
    if identity is not None:
        result["node_identity"] = identity
    return result


def _first(*given: t.Any) -> t.Any:
    return next((entry for entry in given if entry is not None), None)


def _kubectl(raw: t.Any) -> dict[str, t.Any]:
    """The objects of each kind that kubectl's output was given for; None where none was given."""
    found: dict[str, t.Any] = {"runtime_classes": None, "nodes": None, "workloads": None, "events": None}
    for kind in found:
        if raw and raw.get(kind) is not None:
            found[kind] = getattr(read_kubectl(raw[kind], kind), kind)
    return found


def _cluster(params: t.Mapping[str, t.Any], wanted: t.Mapping[str, bool]) -> dict[str, t.Any]:
    auth = auth_of(params)
    timeout, page_size = params.get("api_timeout") or 30.0, params.get("api_page_size") or 500

    def produce() -> dict[str, t.Any]:
        return read_cluster(auth, timeout=timeout, page_size=page_size, **wanted)

    if not params.get("cache_for_run"):
        return produce()
    key = json.dumps(["cluster", auth, dict(wanted), timeout, page_size], sort_keys=True, default=str)
    return t.cast("dict[str, t.Any]", once(key, produce))


def _rest_of_manifests(params: t.Mapping[str, t.Any], wanted: t.Mapping[str, bool]) -> dict[str, t.Any]:
    """What the manifests lack, from the cluster. Raises RuntimeGateError that says what to add to them, where that fails."""
    try:
        return _cluster(params, wanted)
    except RuntimeGateError as error:
        missing = [_MANIFESTS_LACK[kind] for kind in wanted if wanted[kind]]
        raise RuntimeGateError(
            f"the manifests hold no {' and no '.join(one for one, _many, _call in missing)}, and the API server cannot be asked: {error};"
            f" add the {' and '.join(many for _one, many, _call in missing)} to the manifests"
            f" ({', '.join(call for _one, _many, call in missing)})"
        ) from error


def _place(params: t.Mapping[str, t.Any], nodes: t.Sequence[t.Any]) -> tuple[list[t.Any], dict[str, t.Any]]:
    """The one node to judge, with what was read on it, and how it was recognised."""
    runtime = params.get("node_runtime") or {}
    if not isinstance(runtime, t.Mapping):
        raise RuntimeGateError(f"node_runtime is {yaml_kind(runtime)}, not the runtime facts of a host")
    identity = part(runtime, "identity", where="node_runtime")
    found = identify(identity, [_named(node) for node in nodes], params.get("node_name"))
    known: dict[str, t.Any] = {"pending": params.get("node_pending") or []}
    if runtime:
        known["runtime"] = runtime
    if found["registered"]:
        node = next(node for node in nodes if _named(node)["metadata"].get("name") == found["name"])
        return [{**node, **known}], found
    labels = {**_own_labels(identity), **(params.get("node_labels") or {})}
    taints = params.get("node_taints") or []
    return [{"name": found["name"], "labels": labels, "taints": taints, "labels_complete": False, **known}], found


def _own_labels(identity: t.Mapping[str, t.Any]) -> dict[str, str]:
    """What kubelet labels its Node with by itself, as far as the host shows it."""
    labels = {"kubernetes.io/os": identity.get("os"), "kubernetes.io/arch": identity.get("arch")}
    return {key: value for key, value in labels.items() if value}


def _named(node: t.Any) -> t.Any:
    """A node in the shape of a Node object, as far as its name goes."""
    if not isinstance(node, t.Mapping) or not ("metadata" in node or "name" in node):
        raise RuntimeGateError("nodes has an entry that is neither a Node object nor a mapping with a name")
    return {**node, "metadata": part(node, "metadata", where="a node")} if "metadata" in node else {"metadata": {"name": node["name"]}}
