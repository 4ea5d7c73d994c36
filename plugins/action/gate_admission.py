# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps the admission policies' list of loaded handlers current, for the host that closed the round. On the controller."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import admission_list, gate_cluster
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_writer import writer_for
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import CLUSTER_OPTION
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.gate_round import GateRound
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.host_variables import plain
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import run_store

RIGHTS = "runtime-gate-admission of examples/rbac-admission.yml"

ARGUMENTS = {
    "judged": {"type": "dict", "required": True},
    "cluster": CLUSTER_OPTION,
    "namespace": {"type": "str", "default": "kube-system"},
    "partial": {"type": "bool", "default": False},
}


class ActionModule(ActionBase):
    """Fails where the list cannot be written: what was asked for did not happen."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: t.Any = None, task_vars: t.Optional[t.Dict[str, t.Any]] = None) -> t.Dict[str, t.Any]:
        result = super().run(tmp, task_vars)
        _validation, arguments = self.validate_argument_spec(argument_spec=ARGUMENTS)
        judged = arguments["judged"]
        store = run_store()
        cluster = gate_cluster.remembered(store, judged["cluster_key"])
        if cluster is None:
            return dict(result, changed=False, msg="the cluster could not be read, so that its list of handlers stays as it is")
        records = GateRound(store, task_vars or {}, judged["round"], judged["batch"]).records()
        try:
            view = admission_list.view_from(records, cluster)
            view = view._replace(whole=view.whole and not arguments["partial"])
            # The same connection as the other tasks of the gate have, told as it was given.
            writer = writer_for(self._task.args.get("cluster") or {}, RIGHTS)
            answer = admission_list.update(writer, plain(arguments["namespace"]), view, bool(self._task.check_mode))
        except RuntimeGateError as error:
            return dict(result, failed=True, changed=False, msg="runtime_gate_admission: %s" % error)
        if not self._task.diff:
            del answer["diff"]
        return dict(result, whole=view.whole, **answer)
