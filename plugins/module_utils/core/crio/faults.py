# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All faults of one CRI-O node: every lost declaration named, nothing said about what is as declared."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.comparison import plain
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio import starts, unread
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.documents import is_right
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.load import canonical, site
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.mending import drop_edits, mending
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.release_lines import later_lines
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.reload import BY_PROBE
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.situation import CrioSituation, is_stray
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import Declaration, Document, toml_key
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.facts import Outcome
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.catalogue import (
    ERROR,
    INFO,
    WARNING,
    Edit,
    Fault,
    merged,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.handlers import name_fault

RESTART = "Restart CRI-O (a reload does not load handlers)."


def find_faults(situation: CrioSituation, outcome: Outcome) -> t.List[Fault]:
    """The faults, most severe first, one for each cause and place."""
    found: t.List[Fault] = []
    found.extend(starts.start_faults(situation, sorted(set(outcome.lost) | set(outcome.loses))))
    found.extend(_reload(situation))
    found.extend(_dropped(situation, outcome))
    found.extend(unread.not_read(situation, outcome))
    found.extend(_stale(situation, outcome, found))
    found.extend(_merging(situation))
    found.extend(_command_line(situation))
    found.extend(unread.unknown_keys(situation))
    found.extend(_unusable(situation, outcome))
    found.extend(_names(situation, outcome))
    found.extend(_not_served(situation, outcome, found))
    if not any(fault.severity == ERROR for fault in found):
        found.extend(_later(situation))
    found.extend(_idle_strays(situation, outcome))
    found.extend(_unexplained(situation, outcome, found))
    return merged(found)


# --- the daemon's answer and what sandboxes can use ------------------------------------------------------------------


def _reload(situation: CrioSituation) -> t.Iterator[Fault]:
    """45 and 46: the daemon answers with what a reload read, sandboxes are made with what the start read."""
    told = situation.reload
    if told.claimed or told.hidden or told.claimed_default:
        yield _false_answer(situation)
    if told.doubtful_default:
        yield _doubtful_default(situation)
    if told.failed:
        said = "a reload of CRI-O failed (`Unable to reload configuration`): what it answers since was not checked"
        fix = "Correct the files and restart CRI-O; `crio config` says what is wrong with them."
        yield Fault(46, ERROR if told.claimed else WARNING, told.claimed, *_place(situation, told.claimed), said, fix)
    elif told.happened and not (told.claimed or told.hidden or told.claimed_default):
        said = "CRI-O was reloaded since it started; a reload does not load handlers, and none was to be loaded by it"
        yield Fault(45, INFO, (), situation.root, "", 0, said, "Nothing; restart CRI-O after a change of its handlers.")


def _false_answer(situation: CrioSituation) -> Fault:
    told = situation.reload
    parts = []
    if told.claimed:
        parts.append("names %s, which no sandbox can have" % ", ".join(told.claimed))
    if told.hidden:
        parts.append("does not name %s, which sandboxes still have" % ", ".join(told.hidden))
    if told.claimed_default:
        parts.append("calls %s the default, which is %s" % (told.claimed_default, situation.loaded.default))
    how = "a sandbox with a handler that cannot exist was answered with the real list"
    if told.evidence != BY_PROBE:
        how = "CRI-O was reloaded at %s, and the files that declare them are newer than its start" % situation.node.get("daemon_reloaded")
    said = "after a reload CRI-O's own answer is wrong: it %s (%s)" % ("; ".join(parts), how)
    names = told.claimed + told.hidden
    severity = ERROR if names else WARNING
    return Fault(45, severity, names or tuple(filter(None, [told.claimed_default])), *_place(situation, names), said, RESTART)


def _doubtful_default(situation: CrioSituation) -> Fault:
    newer = situation.later_than_daemon()
    documents = [document for document in situation.documents() if document.path in newer and document.default_names()]
    said = (
        "CRI-O calls %s the default, by %s, which is newer than its start, and the journal does not exclude a reload: after one, "
        "%s would still be the default" % (situation.loaded.default, documents[-1].path, situation.reload.doubtful_default)
    )
    _name, path = documents[-1].default_names()[-1]
    place = (documents[-1].path, toml_key(path[:-1]), documents[-1].line_of(path))
    return Fault(45, WARNING, (str(situation.loaded.default),), *place, said, RESTART)


def _place(situation: CrioSituation, names: t.Sequence[str]) -> t.Tuple[str, str, int]:
    for declaration in situation.declarations():
        if declaration.handler in names and is_right(declaration.path):
            return declaration.file, declaration.table, declaration.line
    return situation.root, "", 0


def _stale(situation: CrioSituation, outcome: Outcome, found: t.Sequence[Fault]) -> t.Iterator[Fault]:
    """1: the running daemon has something else than the files would give."""
    if not outcome.pending or situation.load is None or not situation.load.known or situation.cri_ready is False:
        return
    # A handler whose program is gone is told by 41, with what helps.
    told = {name for fault in found if fault.id in (41, 45) for name in fault.handlers}
    names = sorted((set(outcome.gains) | set(outcome.loses) | set(outcome.changes)) - told)
    other_default = None not in (outcome.next_default, outcome.default) and outcome.next_default != outcome.default
    if not names and not other_default:
        return
    said = []
    for what, changed in (("adds", outcome.gains), ("takes away", outcome.loses), ("changes", sorted(outcome.changes))):
        left = [name for name in changed if name in names]
        if left:
            said.append("%s %s" % (what, ", ".join(left)))
    if other_default:
        said.append("makes %s the default (now %s)" % (outcome.next_default, outcome.default))
    edited = situation.later_than_daemon()
    place = _place(situation, [name for name in names if name not in outcome.loses])
    if edited and place[0] not in edited:
        place = (edited[-1], "", 0)
    severity = ERROR if set(names) & (set(outcome.gains) | set(outcome.loses)) else WARNING
    fix = RESTART
    gone = [name for name in outcome.loses if name in names]
    if gone:
        fix = "Do not restart before the files have %s again; then restart CRI-O." % ", ".join(gone)
    message = "%s: a restart %s" % (_why_stale(situation, edited), "; ".join(said))
    yield Fault(1, severity, tuple(names or [outcome.next_default or ""]), *place, message, fix)


def _why_stale(situation: CrioSituation, edited: t.Sequence[str]) -> str:
    if edited:
        return "%s changed after CRI-O started" % ", ".join(edited)
    if situation.upgraded:
        return "the installed CRI-O is %s, %s is running" % (situation.node["next_version"], situation.node.get("version"))
    return "the running CRI-O does not have what its files, its unit and the programs on the node say"


# --- handlers that are taken away ------------------------------------------------------------------------------------

def _dropped(situation: CrioSituation, outcome: Outcome) -> t.Iterator[Fault]:
    """41: handlers that a start takes away with nothing but a line in the log. The built-in one is nobody's loss."""
    load = situation.load
    if load is None or not load.known:
        return
    for drop in load.drops:
        if load.owners.get(drop.handler) is None and drop.handler == load.rules.default_runtime:
            continue
        file, table, line = site(load, drop.handler, drop.key)
        if drop.handler in outcome.handlers:
            said = "handler %s is loaded, and the next start of CRI-O will ignore it: %s" % (drop.handler, drop.reason)
        else:
            said = "CRI-O ignores handler %s: %s (`crio config` shows it all the same)" % (drop.handler, drop.reason)
        fix = "%s; then restart CRI-O." % mending(drop, load.rules.runtime_types)
        yield Fault(41, ERROR, (drop.handler,), file, table, line, said, fix, drop_edits(drop, file, table))
    if load.removed_runc is not None and load.rules.default_runtime not in load.raw:
        yield _removed_runc(load.removed_runc, situation)


def _removed_runc(document: Document, situation: CrioSituation) -> Fault:
    name, path = document.default_names()[-1]
    said = (
        "default_runtime = %r in %s takes handler runc away, its own table in this file and in earlier ones included (CRI-O %s)"
        % (name, document.path, situation.load.rules.name)
    )
    declared = any(item.handler == "runc" for item in situation.declarations())
    return Fault(
        59,
        ERROR if declared else INFO,
        ("runc",) if declared else (),
        document.path,
        toml_key(path[:-1]),
        document.line_of(path),
        said,
        "Write the table [crio.runtime.runtimes.runc] into a file that sorts behind %s, and restart CRI-O." % document.path,
    )


# --- merging ---------------------------------------------------------------------------------------------------------


def _merging(situation: CrioSituation) -> t.Iterator[Fault]:
    load = situation.load
    if load is None or not load.known:
        return
    yield from _replaced_tables(situation)
    yield from _strays(situation)
    yield from _defaults(situation)


def _replaced_tables(situation: CrioSituation) -> t.Iterator[Fault]:
    """42: a later table replaces the earlier one as a whole, and what only the earlier one said is gone."""
    load = situation.load
    for name, earlier, later in load.replaced:
        if load.owners.get(name) is not later:
            continue
        before, after = _body(earlier, name, situation), _body(later, name, situation)
        gone = sorted(key for key, value in before.items() if plain(value) is not None and key not in after)
        changed = sorted(key for key, value in after.items() if key in before and before[key] != value)
        declaration = _declaration(later, name)
        if declaration is None:
            continue
        place = (declaration.file, declaration.table, declaration.line)
        if gone:
            said = "the table of handler %s in %s replaces the one in %s as a whole: %s of it %s lost" % (
                name,
                later.path,
                earlier.path,
                ", ".join(gone),
                "is" if len(gone) == 1 else "are",
            )
            fix = "Write the whole table of handler %s in %s, or take it out there; then restart CRI-O." % (name, later.path)
            edits = tuple(Edit("set", declaration.file, declaration.table, key, before[key]) for key in gone)
            yield Fault(42, WARNING, (name,), *place, said, fix, edits)
        elif changed:
            said = "%s of handler %s in %s holds, not what %s says" % (", ".join(changed), name, later.path, earlier.path)
            yield Fault(28, INFO, (name,), *place, said, "Nothing, if that is meant; else keep one of the two tables.")


def _body(document: Document, name: str, situation: CrioSituation) -> t.Dict[str, t.Any]:
    declaration = _declaration(document, name)
    return canonical(declaration.body, situation.load.rules) if declaration is not None else {}


def _declaration(document: Document, name: str) -> t.Optional[Declaration]:
    return next((item for item in document.declarations if item.handler == name and is_right(item.path)), None)


def _strays(situation: CrioSituation) -> t.Iterator[Fault]:
    """43: every file below the drop-in directory is loaded, a backup too. A warning where something of it holds."""
    load = situation.load
    for document in load.order:
        if document.path == load.root or not is_stray(document.path):
            continue
        names = sorted(name for name, owner in load.owners.items() if owner is document and _matters(name, document, situation))
        default = _default_of(document, situation)
        what = ["handler %s" % name for name in names] + (["default_runtime = %r" % default] if default else [])
        said = "%s looks like a backup and is loaded like any file below %s" % (document.path, load.directory)
        if what:
            said += ", and %s of it holds" % ", ".join(what)
        line = min((item.line for item in document.declarations if item.handler in names), default=0)
        handlers = tuple(names) or ((default,) if default else ())
        fix = "Move %s out of %s and restart CRI-O." % (document.path, load.directory)
        yield Fault(43, WARNING if what else INFO, handlers, document.path, "", line, said, fix)


def _matters(name: str, document: Document, situation: CrioSituation) -> bool:
    """The stray's table says something else than the table that it replaced, or is the only one."""
    earlier = [before for handler, before, after in situation.load.replaced if handler == name and after is document]
    return not earlier or _body(earlier[-1], name, situation) != _body(document, name, situation)


def _default_of(document: Document, situation: CrioSituation) -> t.Optional[str]:
    """The default of a stray, where it holds and is not what the files before it say."""
    load = situation.load
    named = [(item, name) for item in load.order for name, _path in item.default_names()]
    if not named or named[-1][0] is not document:
        return None
    before = [name for item, name in named if item is not document]
    return named[-1][1] if named[-1][1] != (before[-1] if before else load.rules.default_runtime) else None


def _defaults(situation: CrioSituation) -> t.Iterator[Fault]:
    """28: of several files that name a default the last one holds."""
    named = [(document, name, path) for document in situation.load.order for name, path in document.default_names()]
    if not named:
        return
    last, holds, _path = named[-1]
    for document, name, path in named[:-1]:
        if name != holds:
            said = "default_runtime = %r in %s has no effect: %s comes later and says %r" % (name, document.path, last.path, holds)
            fix = "Nothing, if %r is meant; else take default_runtime out of %s and restart CRI-O." % (holds, last.path)
            yield Fault(28, INFO, (name,), document.path, toml_key(path[:-1]), document.line_of(path), said, fix)


def _command_line(situation: CrioSituation) -> t.Iterator[Fault]:
    """62: a flag or an environment variable wins over the files, without a word."""
    load, given = situation.load, situation.given_next
    if load is None or not load.known:
        return
    named = [(document, name, path) for document in load.order for name, path in document.default_names()]
    if given.default_runtime and named and named[-1][1] != given.default_runtime:
        document, name, path = named[-1]
        said = "default_runtime = %r in %s has no effect: CRI-O is started with --default-runtime %s" % (
            name,
            document.path,
            given.default_runtime,
        )
        fix = "Take the flag out of the unit (or CONTAINER_DEFAULT_RUNTIME out of its environment), and restart CRI-O."
        yield Fault(62, WARNING, (name,), document.path, toml_key(path[:-1]), document.line_of(path), said, fix)
    flags = {value.split(":")[0]: value for value in given.runtimes}
    for declaration in situation.declarations():
        value = flags.get(declaration.handler)
        if value and is_right(declaration.path) and declaration.file in load.paths:
            said = "the table of handler %s in %s has no effect: CRI-O is started with --runtimes %s" % (
                declaration.handler,
                declaration.file,
                value,
            )
            fix = "Take the handler out of --runtimes (or CONTAINER_RUNTIMES) of the unit, and restart CRI-O."
            yield Fault(62, WARNING, (declaration.handler,), declaration.file, declaration.table, declaration.line, said, fix)


# --- loaded, and not as it should be ---------------------------------------------------------------------------------


def _unusable(situation: CrioSituation, outcome: Outcome) -> t.Iterator[Fault]:
    """34: loaded, and its program cannot run."""
    told = {drop.handler for drop in situation.load.drops} if situation.load is not None and situation.load.known else set()
    for name, verdict in sorted(outcome.verdicts.items()):
        if verdict.usable is not False or name in told:
            continue
        declared = [item for item in situation.declarations() if item.handler == name and is_right(item.path)]
        file, table, line = site(situation.load, name, "runtime_path") if situation.load is not None else (situation.root, "", 0)
        if not declared and name != outcome.default:
            continue
        said = "handler %s is loaded, but cannot run: %s" % (name, verdict.reason)
        fix = "Install what the handler needs (CRI-O takes any file that exists); or take handler %s out." % name
        yield Fault(34, ERROR, (name,), file, table, line, said, fix)


def _names(situation: CrioSituation, outcome: Outcome) -> t.Iterator[Fault]:
    """37: a name that no RuntimeClass can have."""
    for name in sorted(outcome.handlers):
        declared = [item for item in situation.declarations() if item.handler == name and is_right(item.path)]
        if declared:
            last = declared[-1]
            yield from name_fault(name, last.file, last.table, last.line, last.path, "CRI-O")


def _not_served(situation: CrioSituation, outcome: Outcome, found: t.Sequence[Fault]) -> t.Iterator[Fault]:
    """26: CRI-O is down and no file says why."""
    if situation.cri_ready is not False or situation.load is not None and situation.load.refusal is not None:
        return
    error = str(situation.node.get("cri_error") or "").strip()
    message = "CRI is not served: CRI-O is not running%s" % (" (%s)" % error if error else "")
    if situation.node.get("daemon_started") is not None:
        message = "CRI is not served although CRI-O runs%s" % (" (%s)" % error if error else "")
    yield Fault(26, ERROR, tuple(outcome.lost), situation.root, "", 0, message, "Start CRI-O and look at its log.")


def _later(situation: CrioSituation) -> t.List[Fault]:
    """52 and 58: what an upgrade would refuse or lose."""
    load, rules = situation.load, situation.rules
    if load is None or rules is None or not load.known:
        return []
    for distance, later in enumerate(later_lines(rules)):
        future = situation.at(later)
        if future.load.refusal is not None:
            return [starts.foreseen_refusal(future, rules, later, distance == 0, sorted(load.handlers))]
        gone = [name for name in sorted(set(load.handlers) - set(future.load.handlers)) if load.owners.get(name) is not None]
        if gone:
            reasons = {drop.handler: drop.reason for drop in future.load.drops}
            return [
                Fault(
                    58,
                    INFO,
                    (name,),
                    *site(load, name),
                    "CRI-O %s would not load handler %s from these files: %s" % (later.name, name, reasons.get(name, "it is gone")),
                    "Correct the table of handler %s before the upgrade." % name,
                )
                for name in gone
            ]
    return []


def _idle_strays(situation: CrioSituation, outcome: Outcome) -> t.Iterator[Fault]:
    """18: a handler that only a stray beside the configuration has."""
    for declaration in situation.stray_declarations():
        if declaration.handler not in outcome.handlers:
            said = "%s is a backup by its name and is not loaded" % declaration.file
            fix = "Nothing, unless handler %s is wanted." % declaration.handler
            yield Fault(18, INFO, (declaration.handler,), declaration.file, declaration.table, declaration.line, said, fix)


def _declaration_of(situation: CrioSituation, handler: str) -> t.Any:
    """The first declaration of a handler that has one."""
    return [item for item in situation.declarations() if item.handler == handler][0]


def _unexplained(situation: CrioSituation, outcome: Outcome, found: t.Sequence[Fault]) -> t.Iterator[Fault]:
    named = {name for fault in found for name in fault.handlers if fault.severity != INFO}
    for name in outcome.lost:
        if name in named:
            continue
        declaration = _declaration_of(situation, name)
        why = "by the rules of this release line it should be loaded"
        if situation.load is None:
            why = "the version of this CRI-O is unknown or older than 1.20 (%s), so its rules are too" % situation.node.get("version")
        elif situation.load.undetermined:
            why = "the configuration could not be read completely (%s)" % situation.load.undetermined
        said = "handler %s stands in %s and is not loaded; %s" % (name, declaration.file, why)
        fix = "Restart CRI-O and look again; if it stays so, read its log."
        yield Fault(55, ERROR, (name,), declaration.file, declaration.table, declaration.line, said, fix)


__all__ = ("find_faults",)
