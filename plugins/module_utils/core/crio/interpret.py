# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a capture to the facts about one node's CRI-O, in the words and the schema of containerd's. Pure: no I/O, no Ansible."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import comparison
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio import handlers as handler_rules
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.documents import CrioDocument
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.faults import find_faults
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.keys import field
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.load import validate
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.situation import CrioSituation
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import Document
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.facts import (
    Next,
    Outcome,
    Table,
    assemble,
    change,
    declared_default,
    declared_file,
    layers,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import MAX_DUMP_BYTES
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.usability import Verdict
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

#: A default that is the built-in one stands in a comment of `crio config`.
_COMMENTED_DEFAULT = re.compile(r"^#\s*default_runtime\s*=\s*\"([^\"\n]+)\"", re.MULTILINE)


def interpret(capture: t.Mapping[str, t.Any]) -> Table:
    """The facts of a capture: ``ansible_facts.crio_runtime`` (schema 1).

    :param capture: as ``node/collect.py`` or a capture directory gives it.
    :raises RuntimeGateError: the capture is of another engine.
    """
    engine = (capture.get("node") or {}).get("engine") or "crio"
    if engine != "crio":
        raise RuntimeGateError("the capture is of engine %r; crio_runtime_facts judges CRI-O captures only" % engine)
    situation = CrioSituation(capture)
    coming = _next(situation)
    handlers, default, evidence = _current(situation, coming)
    verdicts = _verdicts(situation, handlers)
    lost = _lost(situation, coming, handlers)

    def differing(name: str, before: Table, after: Table) -> t.List[str]:
        return _differing(name, before, after, situation)

    gains, loses, changes, next_default, pending = change(situation, coming, differing)
    if situation.loaded is None and situation.cri_ready is None:
        pending = _as_started(situation, coming)
    outcome = Outcome(handlers, default, lost, verdicts, gains, loses, changes, next_default, pending)
    faults = find_faults(situation, outcome)
    files = [declared_file(document, situation, None, []) for document in situation.documents()]
    source = situation.loaded.source if situation.loaded is not None else "none"
    shown = layers(situation, coming, source, None, files, declared_default(situation))
    shown["loaded"].update(_reload_facts(situation))
    features = situation.loaded.features if situation.loaded is not None else {}
    public = {name: handler_rules.public(handlers[name], verdicts[name], features.get(name)) for name in sorted(handlers)}
    return assemble("crio", situation, outcome, coming, evidence, faults, public, shown, _imports(situation))


def _current(situation: CrioSituation, coming: Next) -> t.Tuple[t.Mapping[str, Table], t.Optional[str], str]:
    """(handlers, default, evidence): DESIGN, "Layers of evidence"."""
    if situation.loaded is not None:
        return situation.loaded.handlers, situation.loaded.default, "loaded"
    if situation.cri_ready is False:
        return {}, None, "next" if (situation.dump or {}).get("rc") == 0 else "none"
    if coming.served is not None:
        return coming.served, coming.default if coming.served else None, "next"
    return {}, None, "none"


def _next(situation: CrioSituation) -> Next:
    """The next start: from the files; from `crio config`, less what a start takes away, where they are not all there."""
    load = situation.load
    if load is not None and load.known:
        return Next(True, "files", load.handlers, load.default, {} if situation.down_with_these_files else load.handlers)
    dumped = _dumped(situation)
    if load is not None and load.refusal is not None:
        if dumped is not None:
            return Next(True, "crio config", dumped[0], dumped[1], {})
        return Next(True, "files", {}, None, {})
    if dumped is not None:
        kept = _kept(dumped[0], situation)
        return Next(True, "crio config", kept, dumped[1], kept)
    return Next(False, "none", {}, None, None)


def _dumped(situation: CrioSituation) -> t.Optional[t.Tuple[t.Dict[str, Table], t.Optional[str]]]:
    """(handlers, default) of `crio config`; None where it says nothing."""
    dump = situation.dump or {}
    if dump.get("rc") != 0 or not str(dump.get("stdout") or "").strip():
        return None
    document = CrioDocument("crio config", str(dump["stdout"]))
    if document.tree is None:
        return None
    return section_of_dump(document)


def _kept(handlers: t.Dict[str, Table], situation: CrioSituation) -> t.Dict[str, Table]:
    """What a start would not take away of the handlers that `crio config` shows."""
    rules = situation.rules
    if rules is None:
        return handlers
    return {name: body for name, body in handlers.items() if validate(name, body, rules, situation.executables) is None}


def section_of_dump(document: Document) -> t.Tuple[t.Dict[str, Table], t.Optional[str]]:
    """(handlers, default) of the output of `crio config` or `crio status config`.

    The built-in default stands in a comment of `crio config`, and its table too where no file has one.
    """
    handlers = {item.handler: dict(item.body) for item in document.declarations if item.level == "right"}
    runtime = field(field(document.tree or {}, "crio") or {}, "runtime") or {}
    commented = _COMMENTED_DEFAULT.search(document.text)
    default = field(runtime, "default_runtime") or (commented.group(1) if commented else None)
    if isinstance(default, str) and default and commented and default not in handlers:
        handlers[default] = {}
    return handlers, default if isinstance(default, str) and default else None


def _verdicts(situation: CrioSituation, handlers: t.Mapping[str, Table]) -> t.Dict[str, Verdict]:
    rules = situation.running or situation.rules
    features = situation.loaded.features if situation.loaded is not None else {}
    return {
        name: handler_rules.judge(name, handler, rules, situation.executables, bool(features.get(name)))
        for name, handler in handlers.items()
    }


def _lost(situation: CrioSituation, coming: Next, handlers: t.Mapping[str, Table]) -> t.List[str]:
    """Declared and not loaded. Of a daemon that could not be asked it is only known what it would not read; what it would read
    and then drop has its fault."""
    if situation.cri_ready is None and coming.served is None:
        return []
    lost = {item.handler for item in situation.declarations()} - set(handlers)
    if situation.cri_ready is None and situation.load is not None:
        lost -= {drop.handler for drop in situation.load.drops}
    return sorted(lost)


def _differing(name: str, before: Table, after: Table, situation: CrioSituation) -> t.List[str]:
    if not before or not after:
        return []
    load = situation.load
    if load is not None and load.known and load.owners.get(name) is None:
        # Built in, or from the command line: the daemon fills most of it in.
        after = {key: value for key, value in after.items() if key in ("runtime_type", "runtime_path", "runtime_root")}
        before = {key: before.get(key) for key in after}
    one, two = handler_rules.comparable(before, after), handler_rules.comparable(after, before)
    keys = comparison.differing(one, two, True, sorted(set(one) | set(two)))
    # A build that does not know a key does not show it either.
    return [key for key in keys if not situation.as_started or comparison.plain(before.get(key)) is not None]


def _as_started(situation: CrioSituation, coming: Next) -> t.Optional[bool]:
    """Whether a restart would change anything about a daemon that could not be asked: not where it has read these files."""
    return False if situation.as_started and coming.served else None


def _reload_facts(situation: CrioSituation) -> Table:
    """How it was settled what sandboxes can use."""
    told = situation.reload
    return {
        "reloaded": told.happened,
        "settled_by": told.evidence if situation.loaded is not None else "none",
        "claimed": list(told.claimed),
        "hidden": list(told.hidden),
    }


def _imports(situation: CrioSituation) -> t.List[Table]:
    """The drop-in directory, in the words of an import pattern."""
    load = situation.load
    if load is None:
        return []
    paths = [path for path in load.paths if path != load.root]
    return [{"pattern": load.directory, "file": load.root, "line": 0, "files": paths, "loaded": paths}]


def interpret_dump(text: str) -> Table:
    """The facts of one explicit dump: nothing but this text is judged.

    :param text: output of ``crio config`` or ``crio status config``.
    :raises RuntimeGateError: the text is empty, longer than 10 MB, no TOML, or no configuration of CRI-O.
    """
    document = _dump_document(text)
    handlers, default = section_of_dump(document)
    situation = CrioSituation({"node": {"engine": "crio"}})
    verdicts = {name: Verdict(None, "only a dump was given", "", str(body.get("runtime_path") or "")) for name, body in handlers.items()}
    outcome = Outcome(handlers, default, [], verdicts, [], [], {}, default, None)
    coming = Next(True, "crio config", handlers, default, handlers)
    shown = layers(situation, coming, "none", None, [], None)
    shown["next"]["rc"] = 0
    public = {name: handler_rules.public(handlers[name], verdicts[name], None) for name in sorted(handlers)}
    facts = assemble("crio", situation, outcome, coming, "next", [], public, shown, [])
    facts.update(explicit=True, healthy=True, reason="only a dump was given")
    return facts


def _dump_document(text: str) -> CrioDocument:
    if not isinstance(text, str) or not text.strip():
        raise RuntimeGateError("the dump is empty: pass the whole output of `crio config`")
    if len(text.encode("utf-8", "surrogateescape")) > MAX_DUMP_BYTES:
        raise RuntimeGateError("the dump is larger than 10 MB: that is not the output of `crio config`")
    document = CrioDocument("dump", text)
    if document.tree is None:
        raise RuntimeGateError("the dump is not valid TOML: %s; pass the whole output of `crio config`" % document.error)
    if not isinstance(field(document.tree, "crio"), dict):
        raise RuntimeGateError("the dump has no [crio] table: it is not the output of `crio config`")
    return document


__all__ = ("interpret", "interpret_dump", "section_of_dump")
