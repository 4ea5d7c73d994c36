# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders and judges on the controller; collects, proves and applies on the node, one remote call a step."""

from __future__ import annotations

import json
import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.handlers_options import (
    ANSWER_KEY,
    HANDLERS_OPTIONS,
    REQUEST_KEY,
)
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import handlers_flow, option_names
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import CLUSTER_OPTION
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.host_variables import plain
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_guard import NodeGuard
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_half import NodeHalfFailed, run_module
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_maintenance import DRAIN_OPTIONS
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import run_store

MODULE = "kubenode.runtime_gate.runtime_handlers"
#: The role whose variables messages name.
ROLE = "kubenode.runtime_gate.containerd"
#: The two that the node half never sees have options of their own.
ARGUMENTS = dict(
    HANDLERS_OPTIONS,
    cluster=CLUSTER_OPTION,
    drain_options=dict(HANDLERS_OPTIONS["drain_options"], options=DRAIN_OPTIONS),
)


class ActionModule(ActionBase):
    """The controller's half."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_diff = True
    _supports_async = False

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        result = self._changed(super().run(tmp, task_vars), task_vars or {})
        role = self._task._role
        return result if role and role.get_name() == ROLE else option_names.of_the_module(result)

    def _changed(self, result: t.Dict[str, t.Any], task_vars: t.Dict[str, t.Any]) -> t.Dict[str, t.Any]:
        _validation, given = self.validate_argument_spec(argument_spec=ARGUMENTS)
        # Ansible's own kinds of text can be compared and sent, but not written as YAML or TOML.
        options = plain(given)
        warnings: t.Dict[str, t.Any] = {}

        def call(request: t.Dict[str, t.Any]) -> t.Dict[str, t.Any]:
            arguments = {REQUEST_KEY: json.dumps(request)}
            answer, rest = run_module(self._execute_module, MODULE, ANSWER_KEY, arguments, task_vars)
            warnings.update(rest)
            return answer

        alone = len(task_vars.get("ansible_play_batch") or [None]) == 1
        check = bool(self._task.check_mode)
        guard: t.Optional[NodeGuard] = None
        try:
            if options["cordon"] or options["drain"]:
                guard = NodeGuard(options, task_vars["inventory_hostname"], check, run_store())
            answer = handlers_flow.change(call, options, check, alone, guard)
            if guard:
                guard.settle(answer)
        except handlers_flow.Refused as error:
            return dict(result, failed=True, changed=False, msg=str(error), **error.details)
        except RuntimeGateError as error:
            return dict(result, failed=True, changed=False, msg=_told(str(error), guard))
        except NodeHalfFailed as error:
            return dict(result, **dict(error.result, msg=_told(str(error.result.get("msg", "")), guard)))
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        if not self._task.diff:
            del answer["diff"]
        return dict(result, **warnings, **answer)


def _told(message: str, guard: t.Optional[NodeGuard]) -> str:
    """The message, and what becomes of a Node that had been cordoned: what state its runtime is in is not known."""
    return "%s %s" % (message, guard.keep(message)) if guard and guard.taken else message
