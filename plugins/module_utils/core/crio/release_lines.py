# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one table of what differs between CRI-O release lines.

Every rule that depends on the line is a column here (the keys of the configuration: ``keys.py``); nothing else about CRI-O
compares version numbers. Read from the last tag of each line: ``pkg/config/config.go``, ``pkg/config/reload.go``,
``server/runtime_status.go``, ``internal/criocli/criocli.go``.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio import keys
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import row_for, rows_after


class CrioRules(t.NamedTuple):
    """How one CRI-O release decides what of its files becomes effective."""

    name: str
    #: 36 for 1.36: what keys.py counts by
    minor: int
    #: the built-in handler, which is also the default where no file names one (``DefaultRuntime``)
    default_runtime: str
    #: a handler that does not pass validation is dropped with a warning; before, it stops the daemon (1.21, f04cdc51d)
    drops_bad_handlers: bool
    #: a file that names another default takes the built-in runc away, its own table of runc included (until 1.25.0, 481683497c)
    other_default_removes_runc: bool
    #: values of ``runtime_type``
    runtime_types: t.Tuple[str, ...]
    #: a ``vm`` handler's program must be named containerd-shim-NAME-v2 (1.21)
    checks_vm_name: bool
    #: each handler of type oci has its own monitor, and one that cannot run stops the daemon (1.24)
    monitor_per_handler: bool
    #: ``inherit_default_runtime`` (1.31)
    inherits: bool
    #: SIGHUP reads the handlers again, into a copy that no sandbox uses (1.25.1, #6270; cri-o#10202)
    reloads_runtimes: bool
    #: CRI Status lists the handlers' names (1.30, #7765)
    status_lists_handlers: bool
    #: CRI Status has the whole ``crio.runtime`` configuration (1.33, dd38a1805)
    status_has_config: bool
    #: a UTF-8 byte order mark is accepted (BurntSushi/toml 1.3: 1.28)
    accepts_bom: bool
    #: how many parts a value of ``--runtimes`` may have
    runtimes_parts: int

    def knows(self, table: str, name: str) -> bool:
        """Whether the line has this key in this table (any letter case)."""
        key = keys.KEYS.get(table, {}).get(name.lower())
        return key is not None and key.known_on(self.minor)

    def kinds(self, table: str) -> t.Dict[str, str]:
        """The keys of a table → the kind of their values."""
        return {key.name: key.kind for key in keys.KEYS.get(table, {}).values() if key.known_on(self.minor)}

    def tables(self) -> t.Tuple[str, ...]:
        """The tables below ``crio``."""
        return tuple(name for name, first in keys.TABLES.items() if first <= self.minor)

    def annotations(self) -> t.FrozenSet[str]:
        """What ``allowed_annotations`` may name; empty: anything (1.20)."""
        return frozenset(name for name, first in keys.ANNOTATIONS.items() if first <= self.minor)


_LINE_1_20 = CrioRules(
    name="1.20",
    minor=20,
    default_runtime="runc",
    drops_bad_handlers=False,
    other_default_removes_runc=True,
    runtime_types=("oci", "vm"),
    checks_vm_name=False,
    monitor_per_handler=False,
    inherits=False,
    reloads_runtimes=False,
    status_lists_handlers=False,
    status_has_config=False,
    accepts_bom=False,
    runtimes_parts=4,
)
_LINE_1_21 = _LINE_1_20._replace(name="1.21", minor=21, drops_bad_handlers=True, checks_vm_name=True)
_LINE_1_22 = _LINE_1_21._replace(name="1.22", minor=22, runtimes_parts=6)
_LINE_1_23 = _LINE_1_22._replace(name="1.23", minor=23)
_LINE_1_24 = _LINE_1_23._replace(
    name="1.24", minor=24, runtime_types=("oci", "vm", "pod"), monitor_per_handler=True
)
_LINE_1_25 = _LINE_1_24._replace(name="1.25", minor=25, other_default_removes_runc=False, reloads_runtimes=True)
_LINE_1_26 = _LINE_1_25._replace(name="1.26", minor=26)
_LINE_1_27 = _LINE_1_26._replace(name="1.27", minor=27)
_LINE_1_28 = _LINE_1_27._replace(name="1.28", minor=28, accepts_bom=True)
_LINE_1_29 = _LINE_1_28._replace(name="1.29", minor=29, runtimes_parts=7)
_LINE_1_30 = _LINE_1_29._replace(name="1.30", minor=30, status_lists_handlers=True)
_LINE_1_31 = _LINE_1_30._replace(name="1.31", minor=31, default_runtime="crun", inherits=True)
_LINE_1_32 = _LINE_1_31._replace(name="1.32", minor=32)
_LINE_1_33 = _LINE_1_32._replace(name="1.33", minor=33, status_has_config=True)
_LINE_1_34 = _LINE_1_33._replace(name="1.34", minor=34)
_LINE_1_35 = _LINE_1_34._replace(name="1.35", minor=35)
_LINE_1_36 = _LINE_1_35._replace(name="1.36", minor=36)

#: (first version tuple of the rule, rules), oldest first: the last entry not above a version is the one that holds.
_TABLE: t.Tuple[t.Tuple[t.Tuple[int, int, int], CrioRules], ...] = (
    ((1, 20, 0), _LINE_1_20),
    ((1, 21, 0), _LINE_1_21),
    ((1, 22, 0), _LINE_1_22),
    ((1, 23, 0), _LINE_1_23),
    ((1, 24, 0), _LINE_1_24),
    ((1, 25, 0), _LINE_1_25._replace(other_default_removes_runc=True, reloads_runtimes=False)),
    ((1, 25, 1), _LINE_1_25),
    ((1, 26, 0), _LINE_1_26),
    ((1, 27, 0), _LINE_1_27),
    ((1, 28, 0), _LINE_1_28),
    ((1, 29, 0), _LINE_1_29),
    ((1, 30, 0), _LINE_1_30),
    ((1, 31, 0), _LINE_1_31),
    ((1, 32, 0), _LINE_1_32),
    ((1, 33, 0), _LINE_1_33),
    ((1, 34, 0), _LINE_1_34),
    ((1, 35, 0), _LINE_1_35),
    ((1, 36, 0), _LINE_1_36),
)


def rules_for(version: t.Optional[str]) -> t.Optional[CrioRules]:
    """The rules of the release with this version string; None where it is unknown or older than 1.20.

    A release newer than the table has the rules of its last line.
    """
    return row_for(_TABLE, version)


def later_lines(rules: CrioRules) -> t.List[CrioRules]:
    """The rules of every line after this one, nearest first."""
    return rows_after(_TABLE, rules.name)


__all__ = ("CrioRules", "later_lines", "rules_for")
