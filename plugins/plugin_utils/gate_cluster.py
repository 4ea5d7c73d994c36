# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cluster as the gate judges by it, read once a run: from manifests, through kubectl on a host, or from the API server."""

from __future__ import annotations

import hashlib
import json
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import needs_workloads
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import gather
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import RunStore

Data = t.Dict[str, t.Any]

#: What kubectl is asked for, by the names that the cross-check has for them.
_KUBECTL_KINDS = {"runtime_classes": "runtimeclasses.node.k8s.io", "nodes": "nodes"}
#: Only where the policy needs to know which classes are referenced.
_KUBECTL_WORKLOADS = {
    "workloads": "pods,replicationcontrollers,deployments.apps,daemonsets.apps,statefulsets.apps,jobs.batch,cronjobs.batch"
}


def key_of(arguments: t.Mapping[str, t.Any]) -> str:
    """A name for everything on which the data depends; two plays of one run may look at two clusters.

    It stands in results, which may be printed, and the options of the connection hold tokens: a digest, then.

    :raises RuntimeGateError: the policy is none.
    """
    asked = {key: arguments[key] for key in ("manifests", "kubectl_host", "kubectl", "cluster")}
    text = json.dumps(dict(asked, workloads=needs_workloads(arguments["policy"])), sort_keys=True)
    return "cluster " + hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def read(store: RunStore, arguments: t.Mapping[str, t.Any], kubectl: t.Callable[[str], str]) -> Data:
    """``classes``, ``nodes`` (Node objects) and ``workloads`` (None where they were not read).

    :param arguments: those of gate_judge.
    :param kubectl: runs a command on the kubectl host and returns what it prints.
    :raises RuntimeGateError: they cannot be read, or are not what they should be.
    """
    return store.once(key_of(arguments), lambda: _read(arguments, kubectl))


def remembered(store: RunStore, key: str) -> t.Optional[Data]:
    """What was read under this key; None where it was not, or could not be."""
    try:
        return store.once(key, lambda: None)
    except RuntimeGateError:
        return None


def _read(arguments: t.Mapping[str, t.Any], kubectl: t.Callable[[str], str]) -> Data:
    params = dict(arguments["cluster"], manifests=arguments["manifests"], policy=arguments["policy"])
    if arguments["kubectl_host"]:
        kinds = dict(_KUBECTL_KINDS, **(_KUBECTL_WORKLOADS if needs_workloads(arguments["policy"]) else {}))
        # One call for each: the answer to a call for several does not say of which kind there is none.
        params["kubectl_output"] = {
            kind: kubectl("%s get %s --all-namespaces -o json" % (arguments["kubectl"], asked)) for kind, asked in kinds.items()
        }
    found = gather(params)
    return {"classes": found.classes, "nodes": found.nodes, "workloads": found.workloads}


__all__ = ("key_of", "read", "remembered")
