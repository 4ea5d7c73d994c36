# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a cell of the report says: one word for each pair of a node and a class, the same in every format."""

from __future__ import annotations

import typing as t

Data = t.Mapping[str, t.Any]

#: A verdict's own word, or the shorter one that the formats for people use.
SHORT = {"not_targeted": "-", "excluded_by_taint": "taint", "restart_required": "restart"}


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
    """column -> word of one host of the report. A time bomb and a pending handler have words of their own."""
    cells = {column: SHORT.get(word, word) for column, word in host["cells"].items()}
    for verdict in host["verdicts"]:
        if verdict["verdict"] == "ok" and verdict["after_restart"] == "missing":
            cells[column_of(verdict)] = "lost at restart"
        elif verdict["pending"]:
            cells[column_of(verdict)] = "pending"
    return cells


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
    return " ".join(filter(None, (host.get("engine"), host.get("version")))) or "unknown"


__all__ = ("SHORT", "Told", "cells_of", "column_of", "name_of", "runtime_of", "told_of")
