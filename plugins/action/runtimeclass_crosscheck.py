# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole of runtimeclass_crosscheck: it runs on the controller and calls nothing on a host."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import yaml_kind
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import AUTH_OPTIONS, judge

# The large ones are checked by the core, entry by entry; ansible's validator would copy a whole fleet first.
LARGE = {"runtime_classes": list, "nodes": list, "workloads": list, "events": list, "node_runtime": dict, "kubectl_output": dict}
ARGUMENTS: dict[str, dict[str, t.Any]] = {
    "manifests": {"type": "list", "elements": "path"},
    "read_workloads": {"type": "bool", "default": False},
    "failing_pods": {"type": "bool", "default": False},
    "policy": {"type": "dict"},
    "verdicts": {"type": "str", "choices": ["notable", "all"], "default": "notable"},
    "node_name": {"type": "str"},
    "node_labels": {"type": "dict"},
    "node_taints": {"type": "list", "elements": "raw"},
    "node_pending": {"type": "list", "elements": "str"},
    "cache_for_run": {"type": "bool", "default": False},
    "api_timeout": {"type": "float", "default": 30.0},
    "api_page_size": {"type": "int", "default": 500},
    **AUTH_OPTIONS,
}


class ActionModule(ActionBase):
    """Validates, calls the pure core, returns. It reports and never fails on a bad verdict."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_diff = False

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        try:
            result.update(judge(_parameters(dict(self._task.args))), changed=False)
        except RuntimeGateError as error:
            result.update(failed=True, msg=str(error))
        return result


def _parameters(arguments: t.Dict[str, t.Any]) -> t.Dict[str, t.Any]:
    large = {name: arguments.pop(name) for name in LARGE if name in arguments}
    for name, value in large.items():
        if value is not None and not isinstance(value, LARGE[name]):
            raise RuntimeGateError(f"{name} is {yaml_kind(value)}, not {yaml_kind(LARGE[name]())}")
    unknown = sorted(set(arguments) - set(ARGUMENTS) - {alias for spec in ARGUMENTS.values() for alias in spec.get("aliases", ())})
    if unknown:
        known = ", ".join([*LARGE, *ARGUMENTS])
        raise RuntimeGateError(f"runtimeclass_crosscheck has no option {', '.join(unknown)}; it has {known}")
    validation = ArgumentSpecValidator(ARGUMENTS).validate(arguments)
    if validation.error_messages:
        raise AnsibleActionFail("; ".join(validation.error_messages))
    parameters = {**validation.validated_parameters, **large}
    for name in ("api_timeout", "api_page_size"):
        if parameters[name] <= 0:
            raise RuntimeGateError(f"{name} is {parameters[name]}; it must be more than 0")
    return parameters
