# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What CRI-O does not read: tables and keys that it does not know, and files that lie where it does not look."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import suggest
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio import keys
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.documents import RUNTIMES, is_right
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.load import known_tables
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.situation import CrioSituation
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import Declaration, Document, KeyPath, toml_key
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.facts import Outcome
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.catalogue import (
    ERROR,
    INFO,
    WARNING,
    Edit,
    Fault,
)

_AGAIN = ", and restart CRI-O."


def not_read(situation: CrioSituation, outcome: Outcome) -> t.Iterator[Fault]:
    """18 and 44: declarations of handlers in a file, or in a table, that CRI-O does not read."""
    load = situation.load
    if load is None or load.refusal is not None:
        return
    effective = set(outcome.handlers)
    for declaration in situation.declarations():
        if not situation.is_read(declaration.file):
            if declaration.handler not in effective:
                yield _elsewhere(declaration, situation)
        elif not is_right(declaration.path):
            yield _misplaced(declaration, effective)


def _elsewhere(declaration: Declaration, situation: CrioSituation) -> Fault:
    said = "%s is not read: CRI-O reads %s and every file below %s" % (
        declaration.file,
        situation.root or "no root file",
        situation.directory,
    )
    fix = "Move the table of handler %s into a file below %s%s" % (declaration.handler, situation.directory, _AGAIN)
    return Fault(18, ERROR, (declaration.handler,), declaration.file, declaration.table, declaration.line, said, fix)


def _misplaced(declaration: Declaration, effective: t.Collection[str]) -> Fault:
    right = toml_key(RUNTIMES + (_meant(declaration),))
    said = "CRI-O knows no table [%s] and drops it without a word; handlers stand in [crio.runtime.runtimes.NAME]" % declaration.table
    severity = ERROR
    if declaration.handler in effective:
        said += " (handler %s is loaded, but not with these values)" % declaration.handler
        severity = WARNING
    fix = "Name the table [%s] in %s%s" % (right, declaration.file, _AGAIN)
    edits = (Edit("rename_table", declaration.file, declaration.table, value=right),)
    return Fault(44, severity, (declaration.handler,), declaration.file, declaration.table, declaration.line, said, fix, edits)


def _meant(declaration: Declaration) -> str:
    """The handler's name; an unquoted dot in one made a table below another handler's."""
    path = declaration.path
    if len(path) > len(RUNTIMES) + 1 and is_right(path[: len(RUNTIMES) + 1]):
        return "-".join(path[len(RUNTIMES) :])
    return declaration.handler


def unknown_keys(situation: CrioSituation) -> t.Iterator[Fault]:
    """44: keys of CRI-O's own tables that this release does not know."""
    load = situation.load
    if load is None or load.refusal is not None:
        return
    for document in load.order:
        for place, path, table in known_tables(document.tree or {}, load.rules):
            for key, value in table.items():
                if not load.rules.knows(place, key) and not _is_table_of(place, key, situation):
                    yield from _unknown(document, place, path, key, value, situation)
        yield from _unknown_tables(document, situation)


def _is_table_of(place: str, key: str, situation: CrioSituation) -> bool:
    return place == "crio" and key.lower() in situation.load.rules.tables()


def _unknown(
    document: Document, place: str, path: KeyPath, key: str, value: t.Any, situation: CrioSituation
) -> t.Iterator[Fault]:
    if isinstance(value, dict) and _holds_declaration(document, path + (key,)):
        # Told with the handler.
        return
    handler = (path[-1],) if place == keys.HANDLER else ()
    line, table, rules = document.line_of(path + (key,)), toml_key(path), situation.load.rules
    other = keys.KEYS.get(place, {}).get(key.lower())
    edits: t.Tuple[Edit, ...] = (Edit("unset", document.path, table, key),)
    if other is not None:
        # Distributions keep settings of older lines in their files; a newer line's does nothing yet.
        since = "from 1.%d on" % other.first if other.first > rules.minor else "up to 1.%d" % other.last
        said = "%s in [%s] is known to CRI-O %s only: %s ignores it" % (key, table, since, rules.name)
        severity = WARNING if handler and value not in (None, "", False, 0, [], {}) else INFO
        yield Fault(44, severity, handler, document.path, table, line, said, "Take %s out%s" % (key, _AGAIN), edits)
        return
    home = _home(key, rules)
    near = suggest.nearest(key.lower(), rules.kinds(place))
    said = "CRI-O knows no key %s in [%s] and drops it without a word" % (key, table)
    fix = "Take %s out" % key
    if home:
        said += "; it belongs into [%s]" % home
        fix = "Move %s into [%s]" % (key, home)
    elif near:
        said += '; did you mean "%s"?' % near
        fix = "Write %s" % near
        edits += (Edit("set", document.path, table, near, value),)
    severity = WARNING if home or near or handler else INFO
    yield Fault(44, severity, handler, document.path, table, line, said, fix + _AGAIN, edits)


def _home(key: str, rules: t.Any) -> str:
    """The table of CRI-O's own that knows the key."""
    homes = [place for place in keys.KEYS if "*" not in place and rules.knows(place, key)]
    return homes[0] if len(homes) == 1 else ""


def _holds_declaration(document: Document, path: KeyPath) -> bool:
    return any(item.path[: len(path)] == path for item in document.declarations)


def _unknown_tables(document: Document, situation: CrioSituation) -> t.Iterator[Fault]:
    """Tables beside and below ``crio`` that hold no handler."""
    tree = document.tree or {}
    rules = situation.load.rules
    for key, value in tree.items():
        if key.lower() != "crio" and not (isinstance(value, dict) and _holds_declaration(document, (key,))):
            yield _unknown_table(document, (key,), value, ["crio"], rules)


def _unknown_table(document: Document, path: KeyPath, value: t.Any, known: t.Sequence[str], rules: t.Any) -> Fault:
    home = "" if isinstance(value, dict) else _home(path[-1], rules)
    near = suggest.nearest(path[-1].lower(), known)
    said = "CRI-O knows no %s %s at the top of its files and drops it without a word" % (
        "table" if isinstance(value, dict) else "key",
        toml_key(path),
    )
    fix = "Take it out"
    if home:
        fix = "Move %s into [%s]" % (path[-1], home)
    elif near:
        said += '; did you mean "%s"?' % near
        fix = "Write %s" % near
    severity = WARNING if home or near else INFO
    return Fault(44, severity, (), document.path, toml_key(path), document.line_of(path), said, fix + _AGAIN)


__all__ = ("not_read", "unknown_keys")
