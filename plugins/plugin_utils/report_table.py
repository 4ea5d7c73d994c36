# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as a table that a person can read: a line a node, a column a class, reasons under what fails."""

from __future__ import annotations

import collections
import textwrap
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.reports.words import (
    NOT_ASKED,
    Data,
    cells_of,
    column_of,
    name_of,
    runtime_of,
)

#: (text, colour) -> text; the colours are ansible's: green, red, yellow, cyan, dark gray.
Paint = t.Callable[[str, str], str]

_EMPTY = "-"
#: The same in the last line, where a dash would be read as a minus.
_NOT_TARGETED = "not targeted (-)"
_GAP = "  "
_INDENT = "    "
#: The fault "stale-daemon" of core.faults.catalogue: the running daemon has something else than the files would give.
_STALE = 1
_COLORS = {"ok": "green", _EMPTY: "dark gray", "taint": "dark gray"}
#: What a report's rows are, by its source.
_ROWS = {"node": "hosts", "api": "Nodes", "pools": "pools"}
_LEGEND = (
    (_EMPTY, "- the class's nodeSelector excludes the node"),
    ("taint", "taint: selected, but a taint keeps the class away"),
    ("restart", "restart: not loaded, a restart would load it"),
    ("lost at restart", "lost at restart: loaded now, the next restart loses it"),
    ("changed at restart", "changed at restart: loaded now, the next restart loads it with other settings"),
)


def plain(text: str, _color: str) -> str:
    """The paint of everything that is not a terminal."""
    return text


def render(report: Data, width: int = 120, paint: Paint = plain, only: t.Optional[t.Container[str]] = None) -> t.List[str]:
    """The lines of the table; the last one has the counts.

    :param report: what gate_record.make_report returns.
    :param width: columns of the terminal; texts are folded there, and classes that do not fit are summed up.
    :param only: the hosts that have a line, without what only the whole shows; None: all. The counts are always those of all.
    """
    rows = [_row(host) for host in report["hosts"] if only is None or host["host"] in only]
    lines = [""]
    if rows:
        columns = _columns(rows, width)
        lines += _grid(rows, columns, width, paint)
        lines += _legend(rows, columns)
    if only is None:
        lines += _not_judged(report, width)
        lines += _notices(report, width, paint)
    lines += ["", paint(_summary(report), "green" if report["ok"] else "red")]
    return lines


class Row(t.NamedTuple):
    """One node of the table. cells: column -> word. why: what stands below it."""

    name: str
    runtime: str
    cells: t.Mapping[str, str]
    fails: bool
    why: t.Sequence[str]


def _row(host: Data) -> Row:
    told: t.Dict[t.Tuple[str, t.Optional[str]], t.List[str]] = {}
    for verdict in host["verdicts"]:
        if verdict["fails"] or verdict["verdict"] not in ("ok", "not_targeted", "excluded_by_taint"):
            told.setdefault((verdict["reason"], verdict["fix"]), []).append(column_of(verdict))
    why = []
    for (reason, fix), names in told.items():
        why.append("%s: %s" % (", ".join(names), reason))
        if fix:
            why.append("fix: %s" % fix)
    why += _at_restart(host)
    if host["error"]:
        why.append(host["error"])
    return Row(name_of(host), runtime_of(host), cells_of(host), host["fails"], why)


def _at_restart(host: Data) -> t.List[str]:
    """What a restart would change, the default handler too, where no verdict has told it."""
    told = {number for verdict in host["verdicts"] for number in verdict.get("faults") or ()}
    stale = [fault for fault in host.get("faults") or () if fault.get("id") == _STALE and _STALE not in told]
    return [text for fault in stale for text in ("at the next restart: %s" % fault["message"], "fix: %s" % fault["fix"])]


def _columns(rows: t.Sequence[Row], width: int) -> t.List[str]:
    """The columns that fit, first those in which something is to be seen. Nothing is lost: each verdict that fails has its line."""
    names = sorted({column for row in rows for column in row.cells})
    telling = [name for name in names if any(row.cells.get(name, _EMPTY) != _EMPTY for row in rows)]
    for chosen in (names, telling, [name for name in telling if any(_bad(row.cells.get(name, _EMPTY)) for row in rows)]):
        if _fixed_width(rows) + sum(len(_GAP) + _column_width(name, rows) for name in chosen) <= width:
            return chosen
    return []


def _bad(word: str) -> bool:
    return word != "ok" and word not in NOT_ASKED


def _fixed_width(rows: t.Sequence[Row]) -> int:
    return max(len("NODE"), *(len(row.name) for row in rows)) + len(_GAP) + max(len("RUNTIME"), *(len(row.runtime) for row in rows))


def _column_width(name: str, rows: t.Sequence[Row]) -> int:
    return max(len(name), *(len(row.cells.get(name, _EMPTY)) for row in rows))


def _grid(rows: t.Sequence[Row], columns: t.Sequence[str], width: int, paint: Paint) -> t.List[str]:
    names = max(len("NODE"), *(len(row.name) for row in rows))
    runtimes = max(len("RUNTIME"), *(len(row.runtime) for row in rows))
    widths = {name: _column_width(name, rows) for name in columns}
    head = ["NODE".ljust(names), "RUNTIME".ljust(runtimes), *(name.ljust(widths[name]) for name in columns)]
    lines = [_GAP.join(head).rstrip()]
    told: t.Dict[t.Tuple[str, ...], str] = {}
    for row in rows:
        cells = [row.cells.get(name, _EMPTY).ljust(widths[name]) for name in columns]
        painted = [paint(cell, _COLORS.get(cell.strip(), "red" if row.fails else "yellow")) for cell in cells]
        lead = paint(row.name.ljust(names), "red" if row.fails else "green")
        lines.append(_GAP.join([lead, row.runtime.ljust(runtimes), *painted]).rstrip())
        # What holds for the whole run (a manifest that is not there) is said once.
        first = told.setdefault(tuple(row.why), row.name)
        for text in row.why if not row.why or first == row.name else ["as %s" % first]:
            lines += _folded(text, width)
    return lines


def _folded(text: str, width: int) -> t.List[str]:
    return textwrap.wrap(
        " ".join(text.split()),
        max(width, 40),
        initial_indent=_INDENT,
        subsequent_indent=_INDENT * 2,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _legend(rows: t.Sequence[Row], columns: t.Sequence[str]) -> t.List[str]:
    shown = {row.cells.get(name, _EMPTY) for row in rows for name in columns}
    texts = [text for word, text in _LEGEND if word in shown]
    return ["", "; ".join(texts)] if texts else []


def _not_judged(report: Data, width: int) -> t.List[str]:
    lines = []
    others = "Nodes of the cluster that no host of this run is" if report.get("source", "node") == "node" else "Nodes that no verdict can be given for"
    for key, what in (("hosts", "hosts of this play that were not judged"), ("nodes", others)):
        names = report["not_judged"][key]
        if names:
            shown = ", ".join(names[:20]) + (" and %d more" % (len(names) - 20) if len(names) > 20 else "")
            lines += ["", *textwrap.wrap("%s: %s" % (what, shown), max(width, 40), break_long_words=False, break_on_hyphens=False)]
    return lines


def _notices(report: Data, width: int, paint: Paint) -> t.List[str]:
    lines: t.List[str] = []
    for notice in report["notices"]:
        text = "%s: %s" % (notice["severity"], notice["message"]) + (". %s" % notice["fix"] if notice["fix"] else "")
        folded = textwrap.wrap(text, max(width, 40), subsequent_indent=_INDENT, break_long_words=False, break_on_hyphens=False)
        lines += [paint(line, "yellow") for line in folded] if notice["severity"] != "info" else folded
    return ["", *lines] if lines else []


def _summary(report: Data) -> str:
    """The last line: how many fail, which, and how much of the cluster was looked at."""
    counts = report["counts"]
    words = collections.Counter(word for host in report["hosts"] for word in cells_of(host).values())
    order = sorted(words, key=lambda word: (word == _EMPTY, word != "ok", word))
    verdicts = ", ".join("%d %s" % (words[word], _NOT_TARGETED if word == _EMPTY else word) for word in order) or "no verdict"
    failing = report["failing_nodes"]
    names = ", ".join(failing[:10]) + (" and %d more" % (len(failing) - 10) if len(failing) > 10 else "")
    seen = "%d of %d %s judged" % (counts["judged"], counts["hosts"], _ROWS[report.get("source", "node")])
    if counts["cluster_nodes"] and report.get("source", "node") == "node":
        seen += " (%d of the cluster's %d Nodes)" % (counts["cluster_nodes_judged"], counts["cluster_nodes"])
    return "%s; %s; %s" % (seen, verdicts, "%d fail: %s" % (len(failing), names) if failing else "none fails")


__all__ = ("plain", "render")
