# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as one HTML file that needs no network: nodes x classes, reasons and fixes one click away.

The data goes into the page once, packed: a word of each cell is a code of two characters in the row's text (5,000 nodes x 100 classes are
1 MB), and the page draws only the rows that are seen. page.html is the page itself.
"""

from __future__ import annotations

import collections
import json
import os
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.reports.words import Data, cells_of, name_of, runtime_of, told_of

_PAGE = os.path.join(os.path.dirname(__file__), "page.html")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def page(report: Data) -> str:
    """The text of the file. :param report: what gate_record.make_report returns, with ``drift`` where an earlier report was given."""
    with open(_PAGE, encoding="utf-8") as stream:
        frame = stream.read()
    # What ends a script element, or starts a comment in one, must not stand in its text.
    data = json.dumps(packed(report), ensure_ascii=True, separators=(",", ":")).replace("<", "\\u003c")
    return frame.replace("@REPORT@", data)


def packed(report: Data) -> t.Dict[str, t.Any]:
    """What the page knows."""
    cells = [cells_of(host) for host in report["hosts"]]
    classes = sorted({column for row in cells for column in row})
    words = ["-", *sorted({word for row in cells for word in row.values()} - {"-"})]
    code = {word: _code(index) for index, word in enumerate(words)}
    counted = collections.Counter(word for row in cells for word in row.values())
    return {
        "ok": report["ok"],
        "seen": _seen(report["counts"]),
        "about": "%s%s" % (report["generated_at"], ", check mode" if report["check_mode"] else ""),
        "classes": classes,
        "words": words,
        "counts": sorted(counted.items()),
        "faults": _fault_names(report),
        "hosts": [_host(host, row, classes, code) for host, row in zip(report["hosts"], cells)],
        "blast": _blast(report),
        "notices": [" ".join(filter(None, (notice["message"] + ".", notice["fix"]))) for notice in report["notices"]],
        "unjudged": ["host %s" % name for name in report["not_judged"]["hosts"]] + ["Node %s" % name for name in report["not_judged"]["nodes"]],
        "since": (report.get("drift") or {}).get("since"),
        "changes": [change_text(change) for change in (report.get("drift") or {}).get("changes", ())],
    }


def _code(index: int) -> str:
    return _DIGITS[index // 36] + _DIGITS[index % 36]


def _host(host: Data, cells: t.Mapping[str, str], classes: t.Sequence[str], code: t.Mapping[str, str]) -> t.Dict[str, t.Any]:
    told = told_of(host)
    return {
        "n": name_of(host),
        "h": host["host"],
        "p": host.get("pool") or "",
        "r": runtime_of(host),
        "f": bool(host["fails"]),
        "e": host["error"] or "",
        "c": "".join(code[cells.get(column, "-")] for column in classes),
        "k": sorted({fault["id"] for fault in host.get("faults") or () if fault.get("id")}),
        "d": {index: [why.reason, why.fix, list(why.faults), why.fails] for index, column in enumerate(classes) if (why := told.get(column))},
    }


def _fault_names(report: Data) -> t.Dict[int, str]:
    named = {fault["id"]: fault["name"] for host in report["hosts"] for fault in host.get("faults") or () if fault.get("id")}
    return dict(sorted(named.items()))


def _blast(report: Data) -> t.List[t.Dict[str, t.Any]]:
    """Nodes and pods by default handler, the one that reaches most nodes first."""
    found: t.Dict[t.Tuple[str, t.Any], t.Dict[str, t.Any]] = {}
    for entry in report["blast_radius"].values():
        handler = entry["default_handler"] or "unknown"
        sum_of = found.setdefault((handler, entry["reach"]), {"handler": handler, "reach": entry["reach"], "nodes": 0, "pods": None})
        sum_of["nodes"] += 1
        if entry["pods"] is not None:
            sum_of["pods"] = (sum_of["pods"] or 0) + len(entry["pods"])
    return sorted(found.values(), key=lambda entry: (-entry["nodes"], entry["handler"]))


def _seen(counts: Data) -> str:
    text = "%d of %d hosts judged" % (counts["judged"], counts["hosts"])
    if counts["cluster_nodes"]:
        text += ", %d of the cluster's %d Nodes" % (counts["cluster_nodes_judged"], counts["cluster_nodes"])
    return text + "."


def change_text(change: Data) -> str:
    """One change since an earlier report, as a sentence."""
    if change["what"] == "node":
        return "%s: %s" % (change["node"], change["after"])
    what = "class %s" % change["column"] if change["what"] == "verdict" else change["what"].replace("_", " ")
    return "%s: %s was %s, is %s" % (change["node"], what, _said(change["before"]), _said(change["after"]))


def _said(value: t.Any) -> str:
    if isinstance(value, list):
        return " ".join(value) or "nothing"
    return "not there" if value is None else str(value)


__all__ = ("change_text", "packed", "page")
