# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a capture to the facts about one node's containerd. Pure: no I/O, no Ansible."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import comparison, cri_section, usability
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import Document
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.facts import (
    SCHEMA,
    Next,
    Outcome,
    Table,
    assemble,
    change,
    declared_default,
    declared_file,
    layers,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.catalogue import ERROR, INFO, Fault
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.find import find_faults
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.load import Load
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import (
    OLD_CRI,
    SHORT_CRI,
    LineRules,
    rules_for_dump,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.situation import Situation
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

#: A larger dump is refused: no real configuration comes near it.
MAX_DUMP_BYTES = 10 * 1024 * 1024
#: Keys of a handler that weaken or widen what its pods may do: the cross-check compares them between nodes.
_FLAGS = ("privileged_without_host_devices", "privileged_without_host_devices_all_devices_allowed", "cgroup_writable")
_LISTS = ("pod_annotations", "container_annotations")


def interpret(capture: t.Mapping[str, t.Any]) -> Table:
    """The facts of a capture: ``ansible_facts.containerd_runtime`` (schema 1).

    :param capture: as ``node/collect.py`` or a capture directory gives it.
    :raises RuntimeGateError: the capture is of another engine.
    """
    engine = (capture.get("node") or {}).get("engine") or "containerd"
    if engine != "containerd":
        raise RuntimeGateError(
            "the capture is of engine %r; containerd_runtime_facts judges containerd captures only" % engine
        )
    situation = Situation(capture)
    coming = _next(situation)
    handlers, default, evidence = _current(situation, coming)
    verdicts = _verdicts(situation, handlers)
    rules = situation.running or situation.rules
    with_options = rules is not None and rules.shows_options and coming.source == "files"
    unknown = situation.cri_ready is None and coming.served is None
    lost = [] if unknown else sorted({item.handler for item in situation.declarations()} - set(handlers))

    def differing(_name: str, before: Table, after: Table) -> t.List[str]:
        return comparison.differing(before, after, with_options)

    outcome = Outcome(handlers, default, lost, verdicts, *change(situation, coming, differing))
    faults = find_faults(situation, outcome)
    return _facts(situation, outcome, coming, evidence, faults)


def _current(situation: Situation, coming: Next) -> t.Tuple[t.Mapping[str, Table], t.Optional[str], str]:
    """(handlers, default, evidence): DESIGN, "Layers of evidence"."""
    if situation.loaded is not None:
        return _with_options(situation), situation.loaded.default, "loaded"
    if situation.cri_ready is False:
        dump = situation.dump or {}
        return {}, None, "next" if dump.get("rc") == 0 else "none"
    if coming.served is not None:
        return coming.served, coming.default if coming.served else None, "next"
    return {}, None, "none"


def _with_options(situation: Situation) -> t.Mapping[str, Table]:
    """The loaded handlers; on 1.4, whose Status hides options, with those that the files give the same handler."""
    rules, section = situation.running or situation.rules, situation.section
    if rules is None or rules.shows_options or section is None:
        return situation.loaded.handlers
    found = {}
    for name, handler in situation.loaded.handlers.items():
        written = section.handlers.get(name, {})
        same = written.get("runtime_type") == handler.get("runtime_type")
        found[name] = dict(handler, options=written.get("options") or {}) if same else handler
    return found


def _next(situation: Situation) -> Next:
    """The next start: from the files; from the dump where the files are refused or not all there."""
    section, load = situation.section, situation.load
    if section is not None:
        unregistered = section.down is not None and section.down.plugin in (OLD_CRI, SHORT_CRI) and not _is_modern(load)
        handlers = {} if unregistered else section.handlers
        default = None if unregistered else section.default
        served = {} if situation.down_with_these_files else section.served_handlers
        return Next(True, "files", handlers, default, served)
    dumped = _dump_section(situation)
    if load is not None and load.refusal is not None:
        if dumped is not None:
            return Next(True, "config dump", dumped.handlers, dumped.default, {})
        return Next(True, "files", {}, None, {})
    if dumped is not None:
        return Next(True, "config dump", dumped.handlers, dumped.default, dumped.served_handlers)
    return Next(False, "none", {}, None, None)


def _is_modern(load: t.Optional[Load]) -> bool:
    """2.x keeps printing the handlers of a disabled CRI plugin, 1.x prints no CRI table at all."""
    return load is not None and load.rules.modern


def _dump_section(situation: Situation) -> t.Optional[cri_section.Section]:
    dump = situation.dump or {}
    if dump.get("rc") != 0 or not str(dump.get("stdout") or "").strip():
        return None
    document = Document("config dump", str(dump["stdout"]))
    if document.tree is None:
        return None
    return section_of_dump(document, situation.rules)


def section_of_dump(document: Document, rules: t.Optional[LineRules] = None) -> cri_section.Section:
    """The CRI part of `config dump` output. Only the registered plugin's table counts: 2.x echoes unknown tables."""
    tree = document.tree or {}
    version = document.stated_version or 0
    rules = rules or rules_for_dump(version or 1)
    load = Load(rules, document.path)
    load.order = [document]
    load.version = version or rules.default_version
    load.disabled = [item for item in tree.get("disabled_plugins") or [] if isinstance(item, str)]
    plugins = tree.get("plugins")
    load.plugins = dict(plugins) if isinstance(plugins, dict) else {}
    proxies = tree.get("proxy_plugins")
    load.proxy_plugins = proxies if isinstance(proxies, dict) else {}
    section = cri_section.resolve(load)
    if not rules.modern and cri_section.section_name(load) not in load.plugins:
        missing = cri_section.Down("disabled", "the dump has no CRI table", plugin=OLD_CRI)
        return section._replace(handlers={}, default="", down=missing)
    return section


def _verdicts(situation: Situation, handlers: t.Mapping[str, Table]) -> t.Dict[str, usability.Verdict]:
    binaries = situation.node.get("binaries") or {}
    rules = situation.running or situation.rules
    loaded, load = situation.loaded, situation.load
    # What proxy plugins are loaded stands in no answer: only files that the daemon has read as they are now can tell.
    known = load is not None and load.refusal is None and load.undetermined is None and not situation.later_than_daemon()
    proxies = load.proxy_plugins if load is not None and known else None
    found = {}
    for name, handler in handlers.items():
        introspected = None
        if loaded is not None and loaded.introspects:
            introspected = name in loaded.features or None
        found[name] = usability.judge(handler, rules, binaries, introspected, proxies)
    return found


def _facts(
    situation: Situation, outcome: Outcome, coming: Next, evidence: str, faults: t.Sequence[Fault]
) -> Table:
    load = situation.load
    version = load.version if load is not None and load.order else None
    files = [declared_file(document, situation, document.stated_version, _patterns(document)) for document in situation.documents()]
    shown = layers(situation, coming, "cri status", version, files, declared_default(situation))
    handlers = _handler_facts(outcome, situation)
    return assemble("containerd", situation, outcome, coming, evidence, faults, handlers, shown, _imports(situation))


def _handler_facts(outcome: Outcome, situation: Situation) -> Table:
    loaded = situation.loaded
    facts = {}
    for name, handler in sorted(outcome.handlers.items()):
        verdict = outcome.verdicts[name]
        facts[name] = {
            "runtime_type": str(handler.get("runtime_type") or ""),
            "binary": verdict.binary or None,
            "shim": verdict.shim or None,
            "options": handler.get("options") or {},
            "snapshotter": handler.get("snapshotter") or None,
            **{key: bool(handler.get(key)) for key in _FLAGS},
            **{key: list(handler.get(key) or []) for key in _LISTS},
            "features": loaded.features.get(name) if loaded is not None else None,
            "usable": verdict.usable,
            "reason": verdict.reason,
        }
    return facts


def _patterns(document: Document) -> t.List[str]:
    """What a file imports, as written."""
    imports = (document.tree or {}).get("imports")
    return [item for item in imports if isinstance(item, str)] if isinstance(imports, list) else []


def _imports(situation: Situation) -> t.List[Table]:
    load = situation.load
    if load is None:
        return []
    paths = set(load.paths)
    return [
        {
            "pattern": use.pattern,
            "file": use.file,
            "line": use.line,
            "files": list(use.matches),
            "loaded": [path for path in use.matches if path in paths],
        }
        for use in load.imports
    ]


def interpret_dump(text: str) -> Table:
    """The facts of one explicit dump: nothing but this text is judged.

    :param text: output of ``containerd config dump``.
    :raises RuntimeGateError: the text is empty, longer than 10 MB, no TOML, or no containerd configuration.
    """
    document = _dump_document(text)
    section = section_of_dump(document)
    if section.refusal is not None:
        raise RuntimeGateError("dump, line %d: %s" % (section.refusal.line, section.refusal.message))
    capture = {"node": {"version": None}, "dump": {"stdout": "", "stderr": "", "rc": None}}
    situation = Situation(capture)
    down = section.down
    verdicts = {}
    for name, handler in section.handlers.items():
        verdict = usability.judge(handler, None, {})
        if down is not None:
            verdict = verdict._replace(usable=False, reason="CRI would not be served: %s" % down.message)
        verdicts[name] = verdict
    default = section.default or None
    outcome = Outcome(section.handlers, default, [], verdicts, [], [], {}, default, None)
    coming = Next(True, "config dump", section.handlers, default, section.served_handlers)
    facts = _facts(situation, outcome, coming, "next", _dump_faults(document, section, outcome))
    facts["explicit"] = True
    facts["healthy"] = all(fault["severity"] == INFO for fault in facts["faults"])
    facts["reason"] = "only a dump was given"
    facts["layers"]["next"].update(version=document.stated_version, rc=0)
    facts["release_line"] = None
    return facts


def _dump_document(text: str) -> Document:
    if not isinstance(text, str) or not text.strip():
        raise RuntimeGateError("the dump is empty: pass the whole output of `containerd config dump`")
    if len(text.encode("utf-8", "surrogatepass")) > MAX_DUMP_BYTES:
        raise RuntimeGateError("the dump is larger than 10 MB: that is not the output of `containerd config dump`")
    document = Document("dump", text)
    if document.tree is None:
        raise RuntimeGateError(
            "the dump is not valid TOML: %s; pass the whole output of `containerd config dump`" % document.error
        )
    if not isinstance(document.tree.get("plugins"), dict):
        raise RuntimeGateError("the dump has no [plugins] table: it is not the output of `containerd config dump`")
    return document


def _dump_faults(document: Document, section: cri_section.Section, outcome: Outcome) -> t.List[Fault]:
    faults = []
    if section.down is not None:
        message = "CRI would not be served with this configuration: %s" % section.down.message
        fix = "Mend the configuration that gave this dump, and restart containerd."
        faults.append(Fault(26, ERROR, tuple(sorted(section.handlers)), "dump", "", 0, message, fix))
    for name, verdict in sorted(outcome.verdicts.items()):
        if verdict.kind in ("empty_type", "bad_type"):
            number = 31 if verdict.kind == "empty_type" else 34
            line = document.line_of(("plugins", section.name, "containerd", "runtimes", name))
            faults.append(
                Fault(number, ERROR, (name,), "dump", "", line, "handler %s: %s" % (name, verdict.reason), "Set runtime_type.")
            )
    return faults


__all__ = ("MAX_DUMP_BYTES", "SCHEMA", "interpret", "interpret_dump", "section_of_dump")
