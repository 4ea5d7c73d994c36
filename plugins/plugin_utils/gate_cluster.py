# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cluster as the gate judges by it, read once a run: from manifests, through kubectl on a host, or from the API server."""

from __future__ import annotations

import hashlib
import json
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.node_identity import keys_of_host, keys_of_node
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import needs_workloads
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.runtime_class import read_references, unfolded
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import CLUSTER_OPTION, gather
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import RunStore

Data = t.Dict[str, t.Any]

#: The options by which an action says which cluster it means, what is read of it and by which policy it is judged.
OPTIONS: t.Dict[str, t.Any] = {
    "manifests": {"type": "list", "elements": "path", "default": []},
    "kubectl_host": {"type": "str", "default": ""},
    "kubectl": {"type": "str", "default": "kubectl"},
    "cluster": CLUSTER_OPTION,
    "policy": {"type": "dict", "default": {}},
    "read_workloads": {"type": "bool", "default": False},
    "failing_pods": {"type": "bool", "default": False},
}

#: What kubectl is asked for, by the names that the cross-check has for them.
_KUBECTL_KINDS = {"runtime_classes": "runtimeclasses.node.k8s.io", "nodes": "nodes"}
#: Only where somebody wants to know which classes are referenced, or what room the pods leave.
_KUBECTL_WORKLOADS = {
    "workloads": "pods,replicationcontrollers,deployments.apps,daemonsets.apps,statefulsets.apps,jobs.batch,cronjobs.batch"
}
#: Only where failing pods are asked for.
_KUBECTL_EVENTS = {"events": "events --field-selector=type=Warning"}


def key_of(arguments: t.Mapping[str, t.Any]) -> str:
    """A name for everything on which the data depends; two plays of one run may look at two clusters.

    It stands in results, which may be printed, and the options of the connection hold tokens: a digest, then.

    :raises RuntimeGateError: the policy is none.
    """
    asked = {key: arguments[key] for key in ("manifests", "kubectl_host", "kubectl", "cluster")}
    more = {key: bool(arguments.get(key)) for key in ("read_workloads", "failing_pods")}
    text = json.dumps(dict(asked, workloads=needs_workloads(arguments["policy"]), **more), sort_keys=True)
    return "cluster " + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def read(store: RunStore, arguments: t.Mapping[str, t.Any], kubectl: t.Callable[[str], str]) -> Data:
    """``classes`` and ``workloads``, of which one is enough for each class that is named; None where the policy does not need them.

    Every host asks, in a process of its own: what it gets does not grow with the cluster. ``remembered`` has all.

    :param arguments: those of gate_judge.
    :param kubectl: runs a command on the kubectl host and returns what it prints.
    :raises RuntimeGateError: they cannot be read, or are not what they should be.
    """
    key = key_of(arguments)

    def produce() -> Data:
        found = _read(arguments, kubectl)
        store.once(_whole(key), lambda: found)
        _keep_nodes(store, key, found["nodes"])
        return {"classes": found["classes"], "workloads": _naming(found["workloads"]) if needs_workloads(arguments["policy"]) else None}

    return store.once(key, produce)


def read_for(
    store: RunStore,
    arguments: t.Mapping[str, t.Any],
    kubectl: t.Callable[[str], str],
    identity: t.Optional[t.Mapping[str, t.Any]],
    node_name: t.Optional[str],
) -> Data:
    """What ``read`` gives, and ``nodes``: the Node objects that this host could be.

    :param identity: what its facts say of it. :param node_name: what the operator says.
    :raises RuntimeGateError: as read does.
    """
    found, key = read(store, arguments, kubectl), key_of(arguments)
    names: t.Dict[str, None] = {}
    for sign in keys_of_host(identity, node_name):
        names.update(dict.fromkeys(store.record(_signs_of(key), sign) or ()))
    return dict(found, nodes=[node for name in names for node in store.record(_nodes_of(key), name) or ()])


def _keep_nodes(store: RunStore, key: str, nodes: t.Sequence[Data]) -> None:
    """Each Node by its name, and its name by each sign of it."""
    named: t.Dict[str, t.List[Data]] = {}
    signs: t.Dict[str, t.List[str]] = {}
    for node in nodes:
        name, *others = keys_of_node(node)
        named.setdefault(name, []).append(node)
        for sign in (name, *others):
            # Two already tell that a sign is not that of one Node alone; cloned machines may all have the same.
            if len(signs.setdefault(sign, [])) < 2:
                signs[sign].append(name)
    for name, those in named.items():
        store.put_record(_nodes_of(key), name, those)
    for sign, names in signs.items():
        store.put_record(_signs_of(key), sign, names)


def _naming(workloads: t.Iterable[t.Any]) -> t.List[t.Any]:
    """The first workload of each class that one names: whether a class is used is all that a host's judgement asks."""
    found: t.Dict[str, t.Any] = {}
    for workload in unfolded(workloads):
        references = read_references([workload])
        for name in references.by_class if references else ():
            found.setdefault(name, workload)
    return list(found.values())


def remembered(store: RunStore, key: str) -> t.Optional[Data]:
    """All that was read under this key, ``events`` too; None where it was not, or could not be."""
    try:
        return store.once(_whole(key), lambda: None)
    except RuntimeGateError:
        return None


def read_whole(arguments: t.Mapping[str, t.Any], kubectl: t.Callable[[str], str]) -> Data:
    """All of it, for the caller alone. ``nodes`` among the arguments replaces those of the cluster.

    :raises RuntimeGateError: as read does.
    """
    return _read(arguments, kubectl)


def _whole(key: str) -> str:
    return key + " whole"


def _nodes_of(key: str) -> str:
    return key + " nodes"


def _signs_of(key: str) -> str:
    return key + " signs of nodes"


def _read(arguments: t.Mapping[str, t.Any], kubectl: t.Callable[[str], str]) -> Data:
    options = ("manifests", "policy", "nodes", "read_workloads", "failing_pods")
    params = dict(arguments["cluster"], **{key: arguments.get(key) for key in options})
    if arguments["kubectl_host"]:
        kinds = dict(_KUBECTL_KINDS)
        if needs_workloads(params["policy"]) or params["read_workloads"] or params["failing_pods"]:
            kinds.update(_KUBECTL_WORKLOADS)
        kinds.update(_KUBECTL_EVENTS if params["failing_pods"] else {})
        # One call for each: the answer to a call for several does not say of which kind there is none.
        params["kubectl_output"] = {
            kind: kubectl("%s get %s --all-namespaces -o json" % (arguments["kubectl"], asked)) for kind, asked in kinds.items()
        }
    found = gather(params)
    return {"classes": found.classes, "nodes": found.nodes, "workloads": found.workloads, "events": found.events}


__all__ = ("OPTIONS", "key_of", "read", "read_for", "read_whole", "remembered")
