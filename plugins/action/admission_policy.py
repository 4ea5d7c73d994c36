# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole of admission_policy: one call on the controller for all hosts, each cluster of theirs for itself."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import admission_objects
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_writer import writer_for
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import CLUSTER_OPTION
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.host_variables import by_cluster, plain

RIGHTS = "runtime-gate-admission-installer of examples/rbac-admission.yml"

ARGUMENTS = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "namespace": {"type": "str", "default": "kube-system"},
    "on_violation": {"type": "str", "choices": ["warn", "deny"], "default": "warn"},
    "accepted_handlers": {"type": "list", "elements": "str", "default": []},
    "cluster": CLUSTER_OPTION,
}


class ActionModule(ActionBase):
    """Works for all hosts of the play at once; nothing is sent to any of them."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        _validation, validated = self.validate_argument_spec(argument_spec=ARGUMENTS)
        arguments = plain(validated)
        result.update(changed=False, notes=[], diff=[])
        try:
            for cluster, _hosts in by_cluster(task_vars, list(task_vars["ansible_play_hosts"]), self._task.args.get("cluster") or {}):
                answer = self._change(writer_for(cluster, RIGHTS), arguments)
                result["changed"] = result["changed"] or answer["changed"]
                result["notes"] += answer["notes"]
                result["diff"] += answer["diff"]
        except RuntimeGateError as error:
            return dict(result, failed=True, msg=str(error))
        if not self._task.diff:
            del result["diff"]
        return result

    def _change(self, writer: t.Any, arguments: t.Mapping[str, t.Any]) -> t.Dict[str, t.Any]:
        check_mode = bool(self._task.check_mode)
        if arguments["state"] == "absent":
            return admission_objects.remove(writer, arguments["namespace"], check_mode)
        return admission_objects.install(
            writer, arguments["namespace"], arguments["on_violation"], arguments["accepted_handlers"], check_mode
        )
