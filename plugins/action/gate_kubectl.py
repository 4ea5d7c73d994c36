# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the cluster with kubectl on the host that the task is delegated to, once a run."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import gate_cluster
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import run_store

ARGUMENTS = {
    "host": {"type": "str", "required": True},
    "kubectl": {"type": "str", "default": "kubectl"},
    "workloads": {"type": "bool", "default": False},
}


class ActionModule(ActionBase):
    """The first host of the run that comes here opens the connection; all others find what it read."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _validation, arguments = self.validate_argument_spec(argument_spec=ARGUMENTS)
        result["changed"] = False
        try:
            run_store().once(gate_cluster.kubectl_key(arguments["host"]), lambda: self._read(arguments))
        except RuntimeGateError as error:
            result.update(failed=True, msg=str(error))
        return result

    def _read(self, arguments: t.Mapping[str, t.Any]) -> t.Dict[str, t.Any]:
        """The printed lists, one call for each kind: the answer to a call for several does not say of which one is none."""
        kinds = dict(gate_cluster.KUBECTL_KINDS, **(gate_cluster.KUBECTL_WORKLOADS if arguments["workloads"] else {}))
        return {kind: self._get(arguments, asked) for kind, asked in kinds.items()}

    def _get(self, arguments: t.Mapping[str, t.Any], kinds: str) -> str:
        where = "kubectl on %s" % arguments["host"]
        try:
            answer = self._low_level_execute_command("%s get %s --all-namespaces -o json" % (arguments["kubectl"], kinds))
        except AnsibleError as error:
            raise RuntimeGateError("%s: the host could not be reached: %s" % (where, error)) from error
        if answer["rc"] != 0:
            said = (answer["stderr"] or answer["stdout"]).strip()
            raise RuntimeGateError("%s get %s failed (rc %s): %s" % (where, kinds, answer["rc"], said[-500:]))
        return answer["stdout"]
