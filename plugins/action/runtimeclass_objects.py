# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole of runtimeclass_objects: one call on the controller for all hosts, each cluster of theirs for itself."""

from __future__ import annotations

import typing as t

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.declared_classes import read_declarations
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import runtimeclass_steps
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_writer import writer_for
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import CLUSTER_OPTION
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.host_variables import by_cluster, of_hosts

RIGHTS = "examples/rbac-runtimeclass.yml"

ARGUMENTS = {
    "handlers": {"type": "dict", "default": {}},
    "enabled": {"type": "bool", "default": True},
    "cluster": CLUSTER_OPTION,
    "hosts": {"type": "list", "elements": "str", "required": True},
    "phase": {"type": "str", "choices": list(runtimeclass_steps.PHASES), "default": "all"},
    "replace": {"type": "bool", "default": False},
    "remove_used": {"type": "bool", "default": False},
}


class ActionModule(ActionBase):
    """Works for all hosts of the play at once; nothing is sent to any of them."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _validation, arguments = self.validate_argument_spec(argument_spec=ARGUMENTS)
        try:
            answer = _change(arguments, self._task.args, task_vars or {}, bool(self._task.check_mode))
        except RuntimeGateError as error:
            return dict(result, failed=True, changed=False, msg=str(error))
        if not self._task.diff:
            del answer["diff"]
        return dict(result, **answer)


def _change(
    arguments: t.Mapping[str, t.Any], here: t.Mapping[str, t.Any], task_vars: t.Mapping[str, t.Any], check_mode: bool
) -> t.Dict[str, t.Any]:
    """One change a cluster; the hosts of a play may belong to several.

    :param here: the options as this task gives them, which are compared with those of the other hosts.
    """
    acting = list(task_vars["ansible_play_hosts"])
    hosts = sorted({*arguments["hosts"], *acting})
    declared = of_hosts(task_vars, hosts, "runtime_gate_handlers", here.get("handlers") or {}, {})
    flags = of_hosts(task_vars, hosts, "runtime_gate_runtimeclasses", here.get("enabled", True), False)
    enabled = {host for host in hosts if boolean(flags[host], strict=False)}
    consent = runtimeclass_steps.Consent(arguments["replace"], arguments["remove_used"])
    answer: t.Dict[str, t.Any] = {"changed": False, "classes": [], "notes": [], "diff": []}
    for cluster, members in by_cluster(task_vars, hosts, here.get("cluster") or {}):
        mine = [host for host in acting if host in members]
        wanted = read_declarations({host: declared[host] for host in members}, enabled, mine, arguments["phase"] == "remove")
        if not (wanted.classes or wanted.absent or wanted.kept):
            continue
        writer = writer_for(cluster, RIGHTS)
        made = runtimeclass_steps.change(writer, wanted, len(members), arguments["phase"], consent, check_mode)
        answer["changed"] = answer["changed"] or made["changed"]
        answer["notes"] += made["notes"]
        answer["diff"] += made["diff"]
        answer["classes"] += [{"name": name, "state": word, "cluster_of": mine[0]} for name, word in made["classes"].items()]
    return answer
