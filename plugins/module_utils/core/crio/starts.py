# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why CRI-O would not start with these files, this command line and these programs."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.mending import drop_edits, mending
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.release_lines import CrioRules
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.situation import CrioSituation
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.catalogue import (
    ERROR,
    INFO,
    WARNING,
    Edit,
    Fault,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.load import Refusal

_Explained = t.Tuple[int, str, str, t.List[Edit]]


def start_faults(situation: CrioSituation, handlers: t.Sequence[str]) -> t.List[Fault]:
    """The fault of a next start that is refused.

    :param handlers: the handlers that this costs, or would cost.
    """
    load = situation.load
    if load is None or load.refusal is None:
        return []
    number, said, fix, edits = _explained(load.refusal)
    now = "does not start" if situation.cri_ready is not True else "runs, and will not start again"
    place = (load.refusal.file, load.refusal.table, load.refusal.line)
    return [Fault(number, ERROR, tuple(handlers), *place, "CRI-O %s: %s" % (now, said), fix + " Then start CRI-O.", tuple(edits))]


def foreseen_refusal(
    future: CrioSituation, rules: CrioRules, later: CrioRules, near: bool, handlers: t.Sequence[str]
) -> Fault:
    """Files that load on this line and stop a later one: a warning where that is the next."""
    refusal = future.load.refusal
    _number, said, fix, edits = _explained(refusal)
    message = "these files load on CRI-O %s, but CRI-O %s will not start with them: %s" % (rules.name, later.name, said)
    place = (refusal.file, refusal.table, refusal.line)
    return Fault(52, WARNING if near else INFO, tuple(handlers), *place, message, fix, tuple(edits))


def _explained(refusal: Refusal) -> _Explained:
    return _REFUSALS[refusal.kind](refusal)


def _toml(refusal: Refusal) -> _Explained:
    said = "%s is not valid TOML (%s)" % (refusal.file, refusal.message)
    return 47, said, "Repair %s at line %d." % (refusal.file, refusal.line), []


def _bom(refusal: Refusal) -> _Explained:
    said = "%s starts with a UTF-8 byte order mark, which CRI-O takes from 1.28 on" % refusal.file
    return 48, said, "Save %s without a byte order mark." % refusal.file, [Edit("drop_bom", refusal.file)]


def _wrong_type(refusal: Refusal) -> _Explained:
    said = "%s, line %d: %s" % (refusal.file, refusal.line, refusal.message)
    return 51, said, "Correct %s in %s, line %d." % (refusal.key, refusal.file, refusal.line), []


def _missing_config(refusal: Refusal) -> _Explained:
    said = "%s, which -c names, does not exist" % refusal.file
    return 23, said, "Create %s, or correct -c in the unit." % refusal.file, []


def _unreadable(refusal: Refusal) -> _Explained:
    fix = "Replace %s by the file itself, or take it out of the directory." % refusal.file
    return 63, refusal.message, fix, []


def _default(refusal: Refusal) -> _Explained:
    fix = "Write a table [crio.runtime.runtimes.%s], or name a handler that has one in default_runtime." % refusal.value
    edits = [Edit("unset", refusal.file, refusal.table, refusal.key)] if refusal.table else []
    return 60, refusal.message, fix, edits


def _handler(refusal: Refusal) -> _Explained:
    drop = refusal.value
    return 41, refusal.message, mending(drop, ("oci", "vm", "pod")) + ".", list(drop_edits(drop, refusal.file, refusal.table))


def _monitor(refusal: Refusal) -> _Explained:
    return 61, refusal.message, "Install conmon, or correct %s in %s." % (refusal.key, refusal.file), []


def _dump(refusal: Refusal) -> _Explained:
    said = "`crio config` of the installed binary fails: %s" % refusal.message
    return 56, said, "Correct what the message names in %s, or move it out of CRI-O's directory." % refusal.file, []


_REFUSALS: t.Dict[str, t.Callable[[Refusal], _Explained]] = {
    "toml": _toml,
    "bom": _bom,
    "wrong_type": _wrong_type,
    "missing_config": _missing_config,
    "directory": _unreadable,
    "missing_import": _unreadable,
    "default_missing": _default,
    "bad_handler": _handler,
    "monitor": _monitor,
    "dump": _dump,
}

__all__ = ("foreseen_refusal", "start_faults")
