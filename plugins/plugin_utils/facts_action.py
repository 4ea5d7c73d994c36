# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of the facts modules: collects on the node, judges here; a dump and a capture are judged without
touching the host."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.collect_options import RECORDED_EXCLUSIVE
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import engines
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.capture_directory import read_capture
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_half import NodeHalfFailed, run_node_half

Result = t.Dict[str, t.Any]


class FactsAction(ActionBase):
    """What the facts modules have in common.

    :cvar engine: judge this engine; None: the one that serves the kubelet.
    :cvar module: whose node half is run. :cvar arguments: its argument spec.
    """

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_diff = False
    _supports_async = False

    engine: t.Optional[str] = None
    module = ""
    arguments: t.Dict[str, t.Dict[str, t.Any]] = {}

    def run(self, tmp: t.Any = None, task_vars: t.Optional[Result] = None) -> Result:
        result = super().run(tmp, task_vars)
        exclusive = RECORDED_EXCLUSIVE if "dump" in self.arguments else []
        _validation, arguments = self.validate_argument_spec(argument_spec=self.arguments, mutually_exclusive=exclusive)
        try:
            engine, facts = self._facts(arguments, task_vars or {}, result)
        except RuntimeGateError as error:
            return dict(result, failed=True, msg=str(error))
        except NodeHalfFailed as error:
            return dict(result, **error.result)
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return dict(result, changed=False, ansible_facts={engines.FACTS[engine]: facts})

    def _facts(self, arguments: Result, task_vars: Result, result: Result) -> t.Tuple[str, Result]:
        dump, capture = arguments.pop("dump", None), arguments.pop("capture")
        if dump is not None and self.engine is not None:
            return self.engine, engines.interpret_dump(dump, self.engine)
        if capture is not None:
            return engines.interpret(read_capture(self._loader.path_dwim(capture)), self.engine)
        collected, rest = run_node_half(self._execute_module, arguments, task_vars, self.module)
        result.update(rest)
        return engines.interpret(collected, self.engine)
