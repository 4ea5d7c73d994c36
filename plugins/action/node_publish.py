# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes what the gate found onto the host's Node, or takes it away. On the controller; nothing is sent to the host."""

from __future__ import annotations

import typing as t

import yaml
from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.publication import checked_prefix, parse_taint
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import CLUSTER_OPTION
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.gate_record import runtime_of
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_api import open_api
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_guard import node_of
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_publisher import nothing, publish, wanted_of
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import run_store

ARGUMENTS = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "judged": {"type": "dict"},
    "runtime": {"type": "dict"},
    "cluster": CLUSTER_OPTION,
    "node_name": {"type": "str", "default": ""},
    "prefix": {"type": "str", "default": "runtime-gate.kubenode.io"},
    "startup_taint": {"type": "str", "default": ""},
}
Data = t.Dict[str, t.Any]


class ActionModule(ActionBase):
    """A host that fails here for two reasons is told both."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: t.Any = None, task_vars: t.Optional[Data] = None) -> Data:
        result = super().run(tmp, task_vars)
        _validation, arguments = self.validate_argument_spec(
            argument_spec=ARGUMENTS, required_if=[("state", "present", ["judged"]), ("state", "absent", ["runtime"])]
        )
        result["changed"] = False
        judged = arguments["judged"] or {}
        try:
            done = self._publish(arguments) if arguments["state"] == "present" else self._remove(arguments, task_vars or {})
        except RuntimeGateError as error:
            told = [judged["message"]] if judged.get("message") else []
            result.update(failed=True, msg=" | ".join([*told, "not published: %s" % error]))
            return result
        result.update({key: done[key] for key in ("changed", "msg", "node", "written", "notices")})
        if self._task.diff and done["changed"]:
            result["diff"] = _diff(done)
        if done["notices"]:
            result["warnings"] = ["Node %s: %s" % (done["node"], notice) for notice in done["notices"]]
        return result

    def _publish(self, arguments: Data) -> Data:
        prefix, taint = checked_prefix(arguments["prefix"]), parse_taint(arguments["startup_taint"])
        publication = arguments["judged"].get("publication")
        if not publication:
            raise RuntimeGateError("this host was not judged; publish by the role gate, with runtime_gate_publish: true")
        node = publication["node"]
        if not node:
            return _nothing_to_do(None, "it is not known which Node this host is, so nothing is published")
        if publication["conflict"]:
            raise RuntimeGateError("%s; set runtime_gate_node_name for this host" % publication["conflict"])
        if not publication["registered"]:
            return _nothing_to_do(node, "Node %s has not registered yet, so nothing is published" % node)
        api = open_api(arguments["cluster"], bool(self._task.check_mode))
        done = publish(api, node, wanted_of(publication, prefix, taint))
        return dict(done, node=node, msg=publication["message"])

    def _remove(self, arguments: Data, task_vars: Data) -> Data:
        prefix = checked_prefix(arguments["prefix"])
        runtime, _why = runtime_of(task_vars["inventory_hostname"], arguments["runtime"])
        node = node_of(run_store(), arguments["cluster"], runtime["identity"], arguments["node_name"])
        if node is None:
            return _nothing_to_do(None, "this host has no Node in the cluster, so nothing is to be taken away")
        done = publish(open_api(arguments["cluster"], bool(self._task.check_mode)), node, nothing(prefix))
        return dict(done, node=node, msg="nothing of ours is published on Node %s" % node)


def _nothing_to_do(node: t.Optional[str], message: str) -> Data:
    return {"changed": False, "node": node, "msg": message, "written": [], "notices": [], "before": {}, "after": {}}


def _diff(done: Data) -> Data:
    before, after = (yaml.safe_dump(done[key], sort_keys=True, default_flow_style=False) for key in ("before", "after"))
    header = "published on Node %s" % done["node"]
    return {"before": before, "after": after, "before_header": header, "after_header": header}
