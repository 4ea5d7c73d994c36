# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cluster as the gate judges by it, read once a run: from manifests, through kubectl on a host, or from the API server."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import needs_workloads
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import gather
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import RunStore

Data = t.Dict[str, t.Any]

#: What kubectl is asked for, by the names that the cross-check has for them.
KUBECTL_KINDS = {"runtime_classes": "runtimeclasses.node.k8s.io", "nodes": "nodes"}
#: Only where the policy needs to know which classes are referenced.
KUBECTL_WORKLOADS = {
    "workloads": "pods,replicationcontrollers,deployments.apps,daemonsets.apps,statefulsets.apps,jobs.batch,cronjobs.batch"
}


def key_of(arguments: t.Mapping[str, t.Any]) -> str:
    """Everything on which the data depends; two plays of one run may look at two clusters. Raises RuntimeGateError
    for a policy that is none."""
    asked = {key: arguments[key] for key in ("manifests", "kubectl_host", "cluster")}
    return "cluster " + json.dumps(dict(asked, workloads=needs_workloads(arguments["policy"])), sort_keys=True)


def kubectl_key(host: str) -> str:
    """Under which gate_kubectl keeps what it read on this host."""
    return "kubectl on %s" % host


def read(store: RunStore, arguments: t.Mapping[str, t.Any]) -> Data:
    """``classes``, ``nodes`` (Node objects) and ``workloads`` (None where they were not read).

    :param arguments: those of gate_judge.
    :raises RuntimeGateError: they cannot be read, or are not what they should be.
    """
    return store.once(key_of(arguments), lambda: _read(store, arguments))


def remembered(store: RunStore, key: str) -> t.Optional[Data]:
    """What was read under this key; None where it was not, or could not be."""
    try:
        return store.once(key, lambda: None)
    except RuntimeGateError:
        return None


def _read(store: RunStore, arguments: t.Mapping[str, t.Any]) -> Data:
    params = dict(arguments["cluster"], manifests=arguments["manifests"], policy=arguments["policy"])
    if arguments["kubectl_host"]:
        params["kubectl_output"] = store.once(kubectl_key(arguments["kubectl_host"]), _never_read)
    found = gather(params)
    return {"classes": found.classes, "nodes": found.nodes, "workloads": found.workloads}


def _never_read() -> Data:
    raise RuntimeGateError("kubectl was not run on runtime_gate_kubectl_host: the task before this one was skipped")


__all__ = ("KUBECTL_KINDS", "KUBECTL_WORKLOADS", "key_of", "kubectl_key", "read", "remembered")
