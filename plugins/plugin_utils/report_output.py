# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a report goes: onto the terminal, into files, into the statistics of the run."""

from __future__ import annotations

import datetime
import errno
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
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.reports.drift import drift, read_report
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.reports.junit import junit
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.reports.page import page
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.reports.prometheus import prometheus

Data = t.Dict[str, t.Any]

#: The options of every module that writes a report.
REPORT_OPTIONS = {"report_path": {"type": "list", "elements": "path", "default": []}, "previous_report": {"type": "path", "default": ""}}


def _json(report: Data) -> str:
    return json.dumps(report, indent=1, sort_keys=True) + "\n"


#: Ending of a file's name -> what writes it. Any other, and none, stands for JSON.
_FORMATS: t.Mapping[str, t.Callable[[Data], str]] = {".html": page, ".xml": junit, ".prom": prometheus}


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


def keep(report: Data, arguments: t.Mapping[str, t.Any], task_vars: t.Mapping[str, t.Any]) -> Data:
    """Write the report, and return what belongs into the statistics of the run.

    :param arguments: those of REPORT_OPTIONS. ``report_path``: the files, each in the format of its ending; in a job of AWX the job's number
        is put into their names. ``previous_report``: an earlier report, with which this one is compared; empty: none.
    :raises RuntimeGateError: a report cannot be written, or the earlier one not be read.
    """
    paths = _paths(arguments, task_vars)
    if arguments["previous_report"]:
        report = dict(report, drift=drift(read_report(arguments["previous_report"], gate_record.REPORT_SCHEMA), report))
    for path in paths:
        _write(path, _FORMATS.get(os.path.splitext(path)[1].lower(), _json)(report))
    summary = {key: report[key] for key in ("ok", "counts", "failing_nodes", "missing", "not_judged")}
    if "drift" in report:
        summary["changes"] = len(report["drift"]["changes"])
    return {"data": {"runtime_gate": dict(summary, report_path=paths[0] if paths else None)}, "per_host": False, "aggregate": False}


def check_paths(arguments: t.Mapping[str, t.Any], task_vars: t.Mapping[str, t.Any]) -> None:
    """What keep() will need, tried before anything else is done: a file can be made beside each report, and the earlier one is read.

    :raises RuntimeGateError: as keep does.
    """
    for path in _paths(arguments, task_vars):
        path = os.path.abspath(path)
        try:
            if os.path.isdir(path):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            descriptor, unfinished = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".")
            os.close(descriptor)
            os.unlink(unfinished)
        except OSError as error:
            raise _unwritable(path, error) from error
    if arguments["previous_report"]:
        read_report(arguments["previous_report"], gate_record.REPORT_SCHEMA)


def _paths(arguments: t.Mapping[str, t.Any], task_vars: t.Mapping[str, t.Any]) -> t.List[str]:
    job = next((str(task_vars[name]) for name in ("awx_job_id", "tower_job_id") if task_vars.get(name)), None)
    return [gate_record.report_path_of(path, job) for path in arguments["report_path"] if path]


def _unwritable(path: str, error: OSError) -> RuntimeGateError:
    return RuntimeGateError("runtime_gate_report_path: %s cannot be written: %s" % (path, error.strerror))


def _write(path: str, text: str) -> None:
    """All of the report or nothing."""
    path = os.path.abspath(path)
    try:
        descriptor, unfinished = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".", suffix=os.path.splitext(path)[1])
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text)
        os.chmod(unfinished, 0o644)
        os.replace(unfinished, path)
    except OSError as error:
        raise _unwritable(path, error) from error


__all__ = ("REPORT_OPTIONS", "about", "check_paths", "keep", "show")
