# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The numbered catalogue of ways in which a file's content is not loaded, or loaded as something else.

Numbers are public and never change their meaning. 1 to 46 follow the measured catalogue of silent failures
(41 to 46 are CRI-O's), 47 and up are kinds that it has no number for.
"""

from __future__ import annotations

import typing as t

NAMES: t.Dict[int, str] = {
    1: "stale-daemon",
    2: "section-replaced",
    3: "default-runc-dropped",
    4: "old-version-root-ignored",
    5: "long-names-without-version",
    6: "old-names-in-newer-file",
    7: "dropin-newer-than-root",
    8: "dropin-older-than-root",
    9: "last-version-wins",
    10: "new-names-hide-old-ones",
    11: "both-names-in-one-file",
    12: "short-plugin-name",
    13: "unknown-plugin-id",
    14: "runtimes-at-wrong-level",
    15: "key-in-wrong-section",
    16: "removed-key",
    17: "default-runtime-overrides-name",
    18: "not-imported",
    19: "relative-glob-from-working-directory",
    20: "imports-inside-a-table",
    21: "confd-not-imported",
    22: "import-missing",
    23: "config-file-missing",
    24: "other-runtimes-file",
    25: "rendered-file-edited",
    26: "cri-not-served",
    27: "cri-configuration-rejected",
    28: "later-file-wins",
    29: "array-or-entry-replaced",
    30: "zero-value",
    31: "empty-runtime-type",
    32: "runtime-path-ignored",
    33: "option-not-read",
    34: "executable-missing",
    35: "cgroup-driver-differs",
    36: "snapshotter-not-used-for-pulls",
    37: "handler-cannot-be-named",
    38: "node-status-without-handlers",
    39: "handler-in-root-and-dropin",
    40: "version-copied-from-dump",
    41: "handler-dropped",
    42: "table-replaced",
    43: "stray-file-loaded",
    44: "key-not-read",
    45: "reload-not-effective",
    46: "failed-reload-in-status",
    47: "not-toml",
    48: "byte-order-mark",
    49: "version-not-supported",
    50: "new-names-on-1x",
    51: "wrong-type",
    52: "later-release-refuses",
    53: "import-pattern-malformed",
    54: "disabled-plugin-not-a-uri",
    55: "unexplained-loss",
    56: "rejected-by-the-binary",
    57: "unknown-key",
    58: "later-release-loses",
    59: "other-default-removes-runc",
    60: "default-without-handler",
    61: "monitor-missing",
    62: "command-line-wins",
    63: "drop-in-unreadable",
}

ERROR, WARNING, INFO = "error", "warning", "info"
_ORDER = {ERROR: 0, WARNING: 1, INFO: 2}


class Edit(t.NamedTuple):
    """One step of a repair that a program can do.

    :ivar op: set, unset, add (to a list), discard (from a list), rename_table, drop_table, drop_bom, prepend
        (a top-level key before everything else).
    :ivar table: the header of the table as TOML spells it, "" for the top level.
    """

    op: str
    file: str
    table: str = ""
    key: str = ""
    value: t.Any = None

    def as_dict(self) -> t.Dict[str, t.Any]:
        return {"op": self.op, "file": self.file, "table": self.table, "key": self.key, "value": self.value}


class Fault(t.NamedTuple):
    """One finding; :meth:`as_dict` is its public form."""

    id: int
    severity: str
    handlers: t.Tuple[str, ...]
    file: str
    table: str
    line: int
    message: str
    fix: str
    edits: t.Tuple[Edit, ...] = ()

    def as_dict(self) -> t.Dict[str, t.Any]:
        return {
            "id": self.id,
            "name": NAMES[self.id],
            "severity": self.severity,
            "handlers": sorted(set(self.handlers)),
            "file": self.file,
            "table": self.table,
            "line": self.line,
            "message": self.message,
            "fix": self.fix,
            "fix_edits": [edit.as_dict() for edit in self.edits],
        }


def merged(found: t.Sequence[Fault]) -> t.List[Fault]:
    """One fault for each (id, file, message kind): handlers that share a cause share the fault."""
    found_so_far: t.Dict[t.Tuple[t.Any, ...], Fault] = {}
    for fault in found:
        shared = (fault.id, fault.severity, fault.file, _without_names(fault))
        slot = found_so_far.get(shared)
        if slot is None:
            found_so_far[shared] = fault
        else:
            edits = slot.edits + tuple(edit for edit in fault.edits if edit not in slot.edits)
            handlers = slot.handlers + tuple(name for name in fault.handlers if name not in slot.handlers)
            found_so_far[shared] = slot._replace(handlers=handlers, edits=edits)
    return sorted(found_so_far.values(), key=lambda item: (_ORDER[item.severity], item.id, item.file, item.line))


def _without_names(fault: Fault) -> str:
    text = fault.message
    for name in sorted(fault.handlers, key=len, reverse=True):
        text = text.replace(name, "\0")
    return text


__all__ = ("ERROR", "Edit", "Fault", "INFO", "NAMES", "WARNING", "merged")
