# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judges a whole fleet on the controller without touching a node, once a run, whichever hosts the play has.

It never fails for what it finds, as gate_judge does not: ``gate_verdict`` does afterwards.
"""

from __future__ import annotations

import json
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crosscheck import crosscheck
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import ignoring
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.pools import pool_nodes
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.publication import parse_taint
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import gate_cluster, gate_record, report_output
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.kubectl_call import KubectlAction
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.report_output import REPORT_OPTIONS
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import run_store

ARGUMENTS = {
    "source": {"type": "str", "choices": ["api", "pools"], "required": True},
    "pools": {"type": "list", "elements": "raw", "default": []},
    **gate_cluster.OPTIONS,
    "startup_taint": {"type": "str", "default": ""},
    **REPORT_OPTIONS,
}
_NOBODY = {
    "api": "the cluster has no Linux Node, so nothing was judged; look at runtime_gate_cluster and runtime_gate_manifests",
    "pools": "runtime_gate_pools is empty, so nothing was judged; describe the pools: {name: NAME, labels: {…}, handlers: […]}",
}


class ActionModule(KubectlAction):
    """On the controller, but for kubectl."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _validation, arguments = self.validate_argument_spec(argument_spec=ARGUMENTS)
        try:
            # As gate_judge does: a node that waits for the gate behind this taint is judged as if the taint were gone.
            arguments["policy"] = ignoring(arguments["policy"], (parse_taint(arguments["startup_taint"]) or {}).get("key", ""))
            key = "fleet " + json.dumps([gate_cluster.key_of(arguments), arguments["source"], arguments["pools"], arguments["policy"]])
            result.update(run_store().once(key, lambda: self._judge(arguments, task_vars or {})))
        except RuntimeGateError as error:
            result.update(fails=True, message=str(error))
        result["changed"] = False
        return result

    def _judge(self, arguments: t.Mapping[str, t.Any], task_vars: t.Mapping[str, t.Any]) -> t.Dict[str, t.Any]:
        pools = arguments["source"] == "pools"
        asked = dict(arguments, nodes=pool_nodes(arguments["pools"])) if pools else arguments
        cluster = gate_cluster.read_whole(asked, self._kubectl)
        answer = crosscheck(
            cluster["classes"],
            cluster["nodes"],
            workloads=cluster["workloads"],
            events=cluster["events"],
            policy=arguments["policy"],
            verdicts="all",
        )
        records = gate_record.fleet_records(answer, arguments["policy"])
        labels = {node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in cluster["nodes"] if "metadata" in node}
        nodes = [{"metadata": {"name": node["name"], "labels": labels.get(node["name"], {})}} for node in answer["nodes"]]
        report = gate_record.make_report(
            records, dict(cluster, nodes=nodes), sorted(records), report_output.about(self._task.check_mode), arguments["source"], answer
        )
        report_output.show(report)
        stats = report_output.keep(report, arguments, task_vars)
        return {
            "fails": not report["ok"],
            "message": "" if report["ok"] else gate_record.fleet_message(report, _NOBODY[arguments["source"]]),
            "ansible_stats": stats,
            **{key: report[key] for key in ("counts", "failing_nodes", "missing")},
        }
