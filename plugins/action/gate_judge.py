# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judges one host on the controller; the host that completes the set closes the round.

It never fails a host: the statistics of a run (set_stats) are taken from successful results only, and one of those
who complete a set may well be a host that fails. ``gate_verdict`` fails the hosts afterwards.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import ignoring
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.publication import parse_taint, publication_of
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import gate_cluster, gate_record, known_variables
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.gate_round import GateRound
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.kubectl_call import KubectlAction
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.report_output import REPORT_OPTIONS
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import run_store

ARGUMENTS = {
    "runtime": {"type": "dict", "required": True},
    **gate_cluster.OPTIONS,
    "node_name": {"type": "str", "default": ""},
    "node_labels": {"type": "dict", "default": {}},
    "node_taints": {"type": "list", "elements": "raw", "default": []},
    "pending": {"type": "str", "choices": ["fail", "report"], "default": "fail"},
    "pending_handlers": {"type": "list", "elements": "str", "default": []},
    **REPORT_OPTIONS,
    "startup_taint": {"type": "str", "default": ""},
}


class ActionModule(KubectlAction):
    """On the controller, but for kubectl, which the first host of a run calls on the host that the task is delegated to."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        _validation, arguments = self.validate_argument_spec(argument_spec=ARGUMENTS)
        host = task_vars["inventory_hostname"]
        store = run_store()
        this_round = GateRound(store, task_vars)
        cluster: t.Optional[t.Dict[str, t.Any]] = None
        key = ""
        try:
            # A node that waits for the gate behind this taint is to be judged as if it were gone, or the gate would see no pod to judge for.
            arguments["policy"] = ignoring(arguments["policy"], (parse_taint(arguments["startup_taint"]) or {}).get("key", ""))
            key = gate_cluster.key_of(arguments)
            runtime, _why = gate_record.runtime_of(host, arguments["runtime"])
            cluster = gate_cluster.read_for(store, arguments, self._kubectl, runtime["identity"], arguments["node_name"])
            record = gate_record.judge_host(host, arguments["runtime"], cluster, _options(arguments))
            this_round.claim_node(record)
        except RuntimeGateError as error:
            record = gate_record.broken_record(host, str(error), bool(arguments["runtime"].get("unreachable")))
        this_round.put(record)
        pending = arguments["pending_handlers"] if arguments["pending"] == "report" else []
        result.update(
            changed=False,
            fails=record["fails"],
            message=gate_record.host_message(record) if record["fails"] else "",
            verdicts=record["verdicts"],
            publication=publication_of(record, arguments["policy"], pending),
            round=this_round.number,
            batch=this_round.batch_id,
            cluster_key=key,
            report={name: arguments[name] for name in REPORT_OPTIONS},
            warnings=[*(result.get("warnings") or []), *known_variables.warnings(task_vars, store)],
        )
        if this_round.is_complete() and this_round.may_close():
            try:
                whole = gate_cluster.remembered(store, key) if cluster else None
                result["ansible_stats"] = this_round.close(whole, arguments, self._task.check_mode)
            except RuntimeGateError as error:
                # What is done on the host's Node comes first; gate_verdict fails the host then.
                result["report_error"] = str(error)
        return result


def _options(arguments: t.Mapping[str, t.Any]) -> gate_record.Options:
    return gate_record.Options(
        node_name=arguments["node_name"] or None,
        node_labels=arguments["node_labels"],
        node_taints=arguments["node_taints"],
        policy=arguments["policy"],
        pending_handlers=arguments["pending_handlers"],
        pending_fails=arguments["pending"] == "fail",
    )
