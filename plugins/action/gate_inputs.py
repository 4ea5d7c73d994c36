# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tests what the gate will need before anything else is done: a gate that cannot judge is no end for a rollout.

The cluster is read into the store of the run, from which gate_judge takes it: it is asked once.
"""

from __future__ import annotations

import json
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crosscheck import crosscheck
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import ignoring
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.publication import parse_taint
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import gate_cluster, known_variables, report_output
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.kubectl_call import KubectlAction
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import RunStore, run_store

ARGUMENTS = {
    **gate_cluster.OPTIONS,
    **report_output.REPORT_OPTIONS,
    "startup_taint": {"type": "str", "default": ""},
    "report_alone": {"type": "bool", "default": False},
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
        store = run_store()
        result["changed"] = False
        result["warnings"] = [*(result.get("warnings") or []), *known_variables.warnings(task_vars, store)]
        try:
            rest = [arguments[name] for name in ("policy", "startup_taint", "report_alone", *report_output.REPORT_OPTIONS)]
            key = "inputs %s %s" % (gate_cluster.key_of(arguments), json.dumps(rest, sort_keys=True))
            store.once(key, lambda: self._check(store, arguments, task_vars))
        except RuntimeGateError as error:
            result.update(failed=True, msg="Nothing has been read or changed on any host of this batch yet. %s" % error)
        return result

    def _check(self, store: RunStore, arguments: t.Mapping[str, t.Any], task_vars: t.Mapping[str, t.Any]) -> None:
        """Where the report goes, and a judgement of no node at all.

        :raises RuntimeGateError: a report cannot be, the policy is none, or the cluster cannot be read or is not what it should be.
        """
        report_output.check_paths(arguments, task_vars)
        if arguments["report_alone"]:
            return
        policy = ignoring(arguments["policy"], (parse_taint(arguments["startup_taint"]) or {}).get("key", ""))
        cluster = gate_cluster.read(store, dict(arguments, policy=policy), self._kubectl)
        crosscheck(cluster["classes"], [], workloads=cluster["workloads"], policy=policy, fleet=False)
