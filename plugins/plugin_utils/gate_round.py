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

import datetime
import hashlib
import json
import os
import shutil
import tempfile
import typing as t

from ansible import constants as C
from ansible.utils.color import stringc
from ansible.utils.display import Display

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import gate_record, report_table
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
        self._job = next((str(task_vars[name]) for name in ("awx_job_id", "tower_job_id") if task_vars.get(name)), None)
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
        return all(self._store.has_record(self._kind, host) for host in self._batch)

    def may_close(self) -> bool:
        """True for exactly one host of the batch, once."""
        return self._store.claim("closing of %s: %s" % (self._kind, self.batch_id))

    def close(self, cluster: t.Optional[Data], report_path: str, check_mode: bool) -> Data:
        """Print the table, write the report, and return what belongs into the statistics of the run.

        :param cluster: what gate_cluster.read gave, None where the cluster could not be read.
        :param report_path: where the report goes, empty: nowhere.
        :raises RuntimeGateError: the report cannot be written.
        """
        records = self._store.records(self._kind)
        about = {
            "generated_at": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "check_mode": check_mode,
        }
        report = gate_record.make_report(records, cluster or {"classes": [], "nodes": [], "workloads": None}, self._all, about)
        self._print(report, is_last=all(host in records for host in self._active))
        path = gate_record.report_path_of(report_path, self._job)
        if path:
            _write_report(path, report)
        summary = {key: report[key] for key in ("ok", "counts", "failing_nodes", "missing", "not_judged")}
        return {"data": {"runtime_gate": dict(summary, report_path=path or None)}, "per_host": False, "aggregate": False}

    def _print(self, report: Data, is_last: bool) -> None:
        """The whole table after the last batch; after the others their own lines, without what only the whole shows."""
        width = shutil.get_terminal_size((120, 24)).columns
        lines = report_table.render(report, width=width, paint=stringc, only=None if is_last else self._batch)
        # A callback that prints JSON owns stdout.
        Display().display("\n".join(lines), stderr="json" in C.DEFAULT_STDOUT_CALLBACK)


def _write_report(path: str, report: Data) -> None:
    """All of the report or nothing."""
    path = os.path.abspath(path)
    try:
        descriptor, unfinished = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".", suffix=".json")
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump(report, stream, indent=1, sort_keys=True)
            stream.write("\n")
        os.chmod(unfinished, 0o644)
        os.replace(unfinished, path)
    except OSError as error:
        raise RuntimeGateError("runtime_gate_report_path: %s cannot be written: %s" % (path, error.strerror)) from error


__all__ = ("GateRound",)
