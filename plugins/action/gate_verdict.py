# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fails the host that gate_judge found failing. On the controller; nothing is sent to the host.

Where a condition kept hosts of the batch away from the gate, the set that gate_judge waits for never becomes complete.
The first host that comes here closes it then: with the linear strategy everyone who is to be judged has been by now.
"""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import gate_cluster
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.gate_round import GateRound
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import run_store

ARGUMENTS = {"judged": {"type": "dict", "required": True}, "cordon": {"type": "str", "default": ""}}


class ActionModule(ActionBase):
    """A judgement that is not there, or that does not say whether the host fails, fails it too."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _validation, arguments = self.validate_argument_spec(argument_spec=ARGUMENTS)
        judged = arguments["judged"]
        result["changed"] = False
        if judged.get("fails") is False:
            result["msg"] = "every handler that pods can ask this node for is loaded"
        else:
            result.update(failed=True, msg=judged.get("message") or judged.get("msg") or "this host was not judged")
            result["msg"] += " " + arguments["cordon"] if arguments["cordon"] else ""
        problem = judged.get("report_error") or ""
        try:
            self._close_unfinished(judged, task_vars or {}, result)
        except RuntimeGateError as error:
            problem = str(error)
        if problem:
            told = "%s | " % result["msg"] if result.get("failed") else "This host passes, and is only the one that closed the run: "
            result.update(failed=True, msg=told + problem)
        return result

    def _close_unfinished(self, judged: t.Mapping[str, t.Any], task_vars: t.Dict[str, t.Any], result: t.Dict[str, t.Any]) -> None:
        if "round" not in judged or self._task.get_play().strategy not in ("linear", "ansible.builtin.linear"):
            return
        store = run_store()
        this_round = GateRound(store, task_vars, judged["round"], judged["batch"])
        if not this_round.is_complete() and this_round.may_close():
            cluster = gate_cluster.remembered(store, judged["cluster_key"])
            result["ansible_stats"] = this_round.close(cluster, judged["report"], self._task.check_mode)
