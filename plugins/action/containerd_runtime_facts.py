# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collects on the node, judges on the controller; a dump and a capture are judged without touching the host."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.collect_options import COLLECT_OPTIONS
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import interpret, interpret_dump
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.capture_directory import read_capture
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_half import NodeHalfFailed, run_node_half

_ARGUMENTS = dict(COLLECT_OPTIONS, dump={"type": "str", "no_log": True}, capture={"type": "path"})


class ActionModule(ActionBase):
    """The controller's half."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_diff = False
    _supports_async = False

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _validation, arguments = self.validate_argument_spec(
            argument_spec=_ARGUMENTS, mutually_exclusive=[("dump", "capture")]
        )
        dump, capture = arguments.pop("dump"), arguments.pop("capture")
        try:
            if dump is not None:
                facts = interpret_dump(dump)
            elif capture is not None:
                facts = interpret(read_capture(self._loader.path_dwim(capture)))
            else:
                collected, rest = run_node_half(self._execute_module, arguments, task_vars or {})
                result.update(rest)
                facts = interpret(collected)
        except RuntimeGateError as error:
            return dict(result, failed=True, msg=str(error))
        except NodeHalfFailed as error:
            return dict(result, **error.result)
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return dict(result, changed=False, ansible_facts={"containerd_runtime": facts})
