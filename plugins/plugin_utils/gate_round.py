# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One pass of a play's hosts through the gate: who belongs to it, when it is complete, and its closing.

A play can pass through the gate several times (before and after a change): a host's round is the number of records
that it already has among the hosts of this play. A batch of ``serial`` is complete when each of its hosts that is
still in the play has its record; hosts that dropped out earlier are not waited for, and the report names them.
"""

from __future__ import annotations

import hashlib
import json
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import gate_record, report_output
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import RunStore

Data = t.Dict[str, t.Any]


class GateRound:
    """The round of one host."""

    def __init__(
        self, store: RunStore, task_vars: t.Mapping[str, t.Any], number: t.Optional[int] = None, batch_id: str = ""
    ) -> None:
        """
        :param task_vars: the variables of the host's task.
        :param number: the round; None: the first in which this host has no record.
        :param batch_id: that of an earlier task of this round: while hosts fail, the batch that a task sees shrinks.
        """
        self._store = store
        self._host: str = task_vars["inventory_hostname"]
        #: every host that the play is for, dropped out or not, of all batches
        self._all: t.List[str] = list(task_vars.get("ansible_play_hosts_all") or [self._host])
        #: those still in the play, of all batches, and of the present one
        self._active: t.List[str] = list(task_vars.get("ansible_play_hosts") or [self._host])
        self._batch: t.List[str] = list(task_vars.get("ansible_play_batch") or [self._host])
        self._task_vars = task_vars
        self._scope = json.dumps(self._all)
        self.batch_id = batch_id or hashlib.sha256(json.dumps(self._batch).encode()).hexdigest()
        if number is None:
            number = 0
            while store.has_record(self._kind_of(number), self._host):
                number += 1
        self.number = number
        self._kind = self._kind_of(number)

    def _kind_of(self, number: int) -> str:
        return "gate %d %s" % (number, self._scope)

    def put(self, record: Data) -> None:
        """Keep the host's record."""
        self._store.put_record(self._kind, self._host, record)

    def claim_node(self, record: Data) -> None:
        """A Node is one host. Raises RuntimeGateError where another host has been judged as this record's Node."""
        owner = self._store.once("node of %s: %s" % (self._kind, record["node"]), lambda: self._host)
        if owner != self._host:
            raise RuntimeGateError(
                "hosts %s and %s both seem to be Node %s (%s); set runtime_gate_node_name for each of them"
                % (owner, self._host, record["node"], record["identified_by"])
            )

    def is_complete(self) -> bool:
        """Whether every host of the batch that is still in the play has its record."""
        # From the end: hosts come about in their order, so the last one tells at once that the batch is not complete.
        return all(self._store.has_record(self._kind, host) for host in reversed(self._batch))

    def may_close(self) -> bool:
        """True for exactly one host of the batch, once."""
        return self._store.claim("closing of %s: %s" % (self._kind, self.batch_id))

    def records(self) -> t.Dict[str, Data]:
        """host -> its record, of every host that has one in this round."""
        return self._store.records(self._kind)

    def close(self, cluster: t.Optional[Data], arguments: t.Mapping[str, t.Any], check_mode: bool) -> Data:
        """Print the table, write the report, and return what belongs into the statistics of the run.

        :param cluster: what gate_cluster.read gave, None where the cluster could not be read.
        :param arguments: those of report_output.REPORT_OPTIONS.
        :raises RuntimeGateError: the report cannot be written.
        """
        records = self.records()
        found = cluster or {"classes": [], "nodes": [], "workloads": None}
        report = gate_record.make_report(records, found, self._all, report_output.about(check_mode))
        # The whole table after the last batch; after the others their own lines, without what only the whole shows.
        is_last = all(host in records for host in self._active)
        report_output.show(report, only=None if is_last else self._batch)
        return report_output.keep(report, arguments, self._task_vars)


__all__ = ("GateRound",)
