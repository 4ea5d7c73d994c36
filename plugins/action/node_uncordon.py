# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gives a Node back that the rollout cordoned, when its host has passed, or says on it why not. On the controller."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.publication import checked_prefix
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import CLUSTER_OPTION
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_api import open_api
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_maintenance import NodeMaintenance

ARGUMENTS = {
    "judged": {"type": "dict", "required": True},
    "cluster": CLUSTER_OPTION,
    "prefix": {"type": "str", "default": "runtime-gate.kubenode.io"},
}
Data = t.Dict[str, t.Any]


class ActionModule(ActionBase):
    """Only a cordon that bears our mark is touched, whoever's run made it."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_diff = False

    def run(self, tmp: t.Any = None, task_vars: t.Optional[Data] = None) -> Data:
        result = super().run(tmp, task_vars)
        _validation, arguments = self.validate_argument_spec(argument_spec=ARGUMENTS)
        result.update(changed=False, msg="")
        try:
            self._settle(arguments, result)
        except RuntimeGateError as error:
            judged = arguments["judged"].get("message")
            result.update(failed=True, msg=" | ".join([*([judged] if judged else []), str(error)]))
        return result

    def _settle(self, arguments: Data, result: Data) -> None:
        judged = arguments["judged"]
        found = judged.get("publication") or {}
        prefix = checked_prefix(arguments["prefix"])
        if not found.get("registered"):
            return
        if found["conflict"]:
            raise RuntimeGateError("%s; set runtime_gate_node_name for this host" % found["conflict"])
        node = NodeMaintenance(open_api(arguments["cluster"], bool(self._task.check_mode)), found["node"], prefix)
        if judged.get("fails") is False:
            result["changed"] = node.give_back()
            result["msg"] = "Node %s takes pods again." % found["node"] if result["changed"] else ""
            return
        kept, result["changed"] = node.keep(judged.get("message") or "this host was not judged")
        result["msg"] = "Node %s stays cordoned." % found["node"] if kept else ""
