# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a cell of the report says: one word for each pair of a node and a class, the same in every format."""

from __future__ import annotations

import typing as t

Data = t.Mapping[str, t.Any]

#: What a cell says, where that is not the verdict's own word.
_CELLS = {"not_targeted": "-", "excluded_by_taint": "taint", "restart_required": "restart"}
#: Words of the pairs in which nothing is asked of the node.
NOT_ASKED = ("-", "taint")


class Told(t.NamedTuple):
    """Why a cell says what it says. faults: their numbers."""

    reason: str
    fix: str
    faults: t.Sequence[int]
    fails: bool


def column_of(verdict: Data) -> str:
    """The class of a verdict, or the handler that the policy requires without one."""
    return verdict["runtime_class"] or "(%s)" % verdict["handler"]


def cells_of(host: Data) -> t.Dict[str, str]:
    """column -> word of one host of the report. Pending handlers have their own, and so have those of which a restart makes something else:
    time bombs, unless this run would defuse them, and handlers that would come back with other settings."""
    cells = {column: _CELLS.get(word, word) for column, word in host["cells"].items()}
    cells.update(dict.fromkeys(host.get("changed_at_restart") or (), "changed at restart"))
    for verdict in host["verdicts"]:
        if verdict["pending"]:
            cells[column_of(verdict)] = "pending"
        elif verdict["verdict"] == "ok" and verdict["after_restart"] == "missing":
            cells[column_of(verdict)] = "lost at restart"
    return cells


def asked_of(host: Data) -> t.List[t.Tuple[str, str, t.Optional[Told]]]:
    """(column, word, why) of each pair in which something is asked of the node, in the order of the columns. why: None where it is plain."""
    told = told_of(host)
    return [(column, word, told.get(column)) for column, word in sorted(cells_of(host).items()) if word not in NOT_ASKED]


def told_of(host: Data) -> t.Dict[str, Told]:
    """column -> why, of each verdict of the host that has something to tell."""
    return {
        column_of(verdict): Told(verdict["reason"] or "", verdict["fix"] or "", tuple(verdict["faults"] or ()), bool(verdict["fails"]))
        for verdict in host["verdicts"]
    }


def name_of(host: Data) -> str:
    """The Node's name, where it is known, else the inventory's."""
    return host["node"] or host["host"]


def runtime_of(host: Data) -> str:
    """Engine and version for a person."""
    if host["unreachable"]:
        return "unreachable"
    engine = " ".join(filter(None, (host.get("engine"), host.get("version"))))
    return engine or ("as listed" if host.get("evidence") == "declared" else "unknown")


__all__ = ("NOT_ASKED", "Told", "asked_of", "cells_of", "column_of", "name_of", "runtime_of", "told_of")
