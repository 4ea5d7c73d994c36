# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a report goes: onto the terminal, into a file, into the statistics of the run."""

from __future__ import annotations

import datetime
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

Data = t.Dict[str, t.Any]


def about(check_mode: bool) -> Data:
    """What a report says of its making."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return {"generated_at": now.strftime("%Y-%m-%dT%H:%M:%SZ"), "check_mode": check_mode}


def show(report: Data, only: t.Optional[t.Container[str]] = None) -> None:
    """Print the table. only: the hosts that have a line, without what only the whole shows; None: all."""
    width = shutil.get_terminal_size((120, 24)).columns
    lines = report_table.render(report, width=width, paint=stringc, only=only)
    # A callback that prints JSON owns stdout.
    Display().display("\n".join(lines), stderr="json" in C.DEFAULT_STDOUT_CALLBACK)


def keep(report: Data, path: str, task_vars: t.Mapping[str, t.Any]) -> Data:
    """Write the report, and return what belongs into the statistics of the run.

    :param path: where the report goes, empty: nowhere. In a job of AWX the job's number is put into the name.
    :raises RuntimeGateError: the report cannot be written.
    """
    job = next((str(task_vars[name]) for name in ("awx_job_id", "tower_job_id") if task_vars.get(name)), None)
    path = gate_record.report_path_of(path, job)
    if path:
        _write(path, report)
    summary = {key: report[key] for key in ("ok", "counts", "failing_nodes", "missing", "not_judged")}
    return {"data": {"runtime_gate": dict(summary, report_path=path or None)}, "per_host": False, "aggregate": False}


def _write(path: str, report: Data) -> None:
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


__all__ = ("about", "keep", "show")
