# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has changed since an earlier report."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.reports.words import Data, cells_of, name_of, runtime_of


def read_report(path: str, schema: int) -> Data:
    """An earlier report. Raises RuntimeGateError when it is none, or one of another schema."""
    try:
        with open(path, encoding="utf-8") as stream:
            report = json.load(stream)
    except (OSError, ValueError, RecursionError) as error:
        raise RuntimeGateError("runtime_gate_previous_report: %s cannot be read as a report: %s" % (path, error)) from error
    if not isinstance(report, dict) or report.get("schema") != schema or not isinstance(report.get("hosts"), list):
        raise RuntimeGateError("runtime_gate_previous_report: %s is no report of schema %d" % (path, schema))
    for number, host in enumerate(report["hosts"], 1):
        if not _is_host(host):
            raise RuntimeGateError("runtime_gate_previous_report: entry %d of hosts in %s is not what a report has of a host" % (number, path))
    return report


def _is_host(host: t.Any) -> bool:
    """What drift() and the words of the cells read of a host is there, and of the right kind."""
    if not isinstance(host, dict) or not {"node", "host", "cells", "verdicts", "unreachable"} <= set(host):
        return False
    lists = (host["verdicts"], host.get("changed_at_restart") or [], host.get("handlers") or [])
    if not (isinstance(host["cells"], dict) and all(isinstance(one, (list, dict)) for one in lists)):
        return False
    words = [*host["cells"].values(), *(host.get("changed_at_restart") or ()), *(host.get("handlers") or ())]
    words += [host[key] for key in ("engine", "version", "evidence", "default_handler") if host.get(key) is not None]
    return isinstance(host["node"] or host["host"], str) and all(isinstance(word, str) for word in words) and all(map(_is_verdict, host["verdicts"]))


def _is_verdict(verdict: t.Any) -> bool:
    if not isinstance(verdict, dict) or not {"runtime_class", "handler", "verdict", "pending", "after_restart"} <= set(verdict):
        return False
    return isinstance(verdict["runtime_class"] or verdict["handler"], str)


def drift(before: Data, now: Data) -> t.Dict[str, t.Any]:
    """``since`` (when the earlier report was made) and ``changes``: node, what (verdict, handlers, default_handler, runtime, node), column,
    before, after. A node that only one of the reports has is a change of its own; it is not compared further, since a run with --limit has
    fewer nodes without anything having changed: those count as ``not_compared``."""
    old = {name_of(host): host for host in before["hosts"]}
    new = {name_of(host): host for host in now["hosts"]}
    changes: t.List[t.Dict[str, t.Any]] = []
    for name in sorted(new):
        if name not in old:
            changes.append(_change(name, "node", None, None, "judged for the first time"))
            continue
        changes += _of_host(name, old[name], new[name])
    return {"since": before.get("generated_at"), "changes": changes, "not_compared": sorted(set(old) - set(new))}


def _of_host(name: str, old: Data, new: Data) -> t.Iterator[t.Dict[str, t.Any]]:
    was, is_now = cells_of(old), cells_of(new)
    for column in sorted({*was, *is_now}):
        if was.get(column) != is_now.get(column):
            yield _change(name, "verdict", column, was.get(column), is_now.get(column))
    pairs = (
        ("runtime", runtime_of(old), runtime_of(new)),
        ("default_handler", old.get("default_handler"), new.get("default_handler")),
        ("handlers", sorted(old.get("handlers") or ()), sorted(new.get("handlers") or ())),
    )
    for what, one, other in pairs:
        if one != other:
            yield _change(name, what, None, one, other)


def _change(node: str, what: str, column: t.Optional[str], before: t.Any, after: t.Any) -> t.Dict[str, t.Any]:
    return {"node": node, "what": what, "column": column, "before": before, "after": after}


__all__ = ("drift", "read_report")
