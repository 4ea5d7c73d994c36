# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""All faults of one node: every lost declaration named, nothing said about what is as declared."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import comparison
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import (
    PLUGIN_KINDS,
    Declaration,
    toml_key,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.facts import Outcome
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults import (
    handlers as handler_checks,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults import (
    losses,
    settings,
    start,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.catalogue import (
    ERROR,
    INFO,
    WARNING,
    Fault,
    merged,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import later_lines
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.situation import Situation, is_template


def find_faults(situation: Situation, outcome: Outcome) -> t.List[Fault]:
    """The faults, most severe first, one for each cause and place."""
    found: t.List[Fault] = []
    costs = sorted(set(outcome.lost) | set(outcome.loses))
    found.extend(start.start_faults(situation, costs))
    found.extend(_not_effective(situation, outcome))
    found.extend(_stale(situation, outcome))
    found.extend(settings.setting_faults(situation))
    found.extend(handler_checks.handler_faults(situation, outcome.handlers, outcome.verdicts, outcome.default))
    found.extend(_not_served(situation, outcome, found))
    if not any(fault.severity == ERROR for fault in found):
        later = start.later_refusals(situation)
        found.extend(later or _later_losses(situation))
    found.extend(settings.unknown_keys(situation))
    found.extend(_backups(situation, outcome, found))
    found.extend(_unexplained(situation, outcome, found))
    return merged(found)


def _not_effective(situation: Situation, outcome: Outcome) -> t.Iterator[Fault]:
    """Declarations that the next start does not read, unless what they say holds all the same."""
    load = situation.load
    if load is None or load.refusal is not None or load.undetermined is not None:
        return
    paths = set(load.paths)
    for declaration in situation.declarations():
        actual = outcome.handlers.get(declaration.handler)
        if actual is None:
            yield from losses.explain(declaration, situation)
        elif declaration.file in paths and not comparison.holds(declaration.body, actual, load.rules.shows_options):
            for fault in losses.explain(declaration, situation):
                said = "%s (handler %s is loaded, but not with these values)" % (fault.message, declaration.handler)
                yield fault._replace(message=said, severity=WARNING)
    yield from _lost_defaults(situation, outcome, paths)


def _lost_defaults(situation: Situation, outcome: Outcome, paths: t.Set[str]) -> t.Iterator[Fault]:
    """A ``default_runtime_name`` in a table that is not read."""
    for document in situation.documents():
        if document.path not in paths or outcome.default is None:
            continue
        for name, path in document.default_names():
            if name == outcome.default:
                continue
            kin = _as_declaration(name, path, document)
            for fault in losses.explain(kin, situation) if kin is not None else ():
                said = "%s (so default_runtime_name = %r is lost: the default is %s)" % (
                    fault.message,
                    name,
                    outcome.default,
                )
                yield fault._replace(message=said, severity=WARNING, edits=(), table=toml_key(path[:-1]))


def _as_declaration(name: str, path: t.Tuple[str, ...], document: t.Any) -> t.Optional[Declaration]:
    """The default as if it were a handler's table beside it, so that the same rules explain it."""
    if len(path) < 3 or path[0].lower() != "plugins":
        return None
    kind = PLUGIN_KINDS.get(path[1])
    if kind not in ("short", "old", "new"):
        return None
    below = path[:-1] + ("runtimes", name)
    level = "right" if path[2:-1] == ("containerd",) else "promoted"
    return Declaration(name, document.path, document.line_of(path), below, kind, path[1], level, {})


def _stale(situation: Situation, outcome: Outcome) -> t.Iterator[Fault]:
    """The running daemon has something else than the files would give."""
    if not outcome.pending or situation.load is None or situation.load.refusal is not None:
        return
    said = []
    for what, names in (("adds", outcome.gains), ("takes away", outcome.loses), ("changes", sorted(outcome.changes))):
        if names:
            said.append("%s %s" % (what, ", ".join(names)))
    if outcome.next_default != outcome.default:
        said.append("makes %s the default (now %s)" % (outcome.next_default, outcome.default))
    edited = situation.later_than_daemon()
    if edited:
        why = "%s changed after containerd started" % ", ".join(edited)
    elif situation.upgraded:
        why = "the installed containerd is %s, %s is running" % (
            situation.node["next_version"],
            situation.node.get("version"),
        )
    else:
        why = "the running containerd does not have what the files say"
    names = sorted(set(outcome.gains) | set(outcome.loses) | set(outcome.changes))
    fix = "Restart containerd (never SIGHUP)."
    if outcome.loses:
        fix = "Do not restart before the files have %s again; then restart containerd." % ", ".join(outcome.loses)
    place = edited[-1] if edited else situation.root
    line = 0
    for declaration in situation.declarations():
        if declaration.handler in names and declaration.file == place:
            line = declaration.line
    severity = ERROR if outcome.gains or outcome.loses else WARNING
    message = "%s: a restart %s" % (why, "; ".join(said) or "changes what is loaded")
    yield Fault(1, severity, tuple(names or [outcome.next_default or ""]), place, "", line, message, fix)
    yield from _rendered(situation, outcome, edited)


_RENDERED = (
    ("/agent/etc/containerd/config.toml", "k3s and rke2 write it anew from config-v3.toml.tmpl (or config.toml.tmpl)"),
    ("/args/containerd.toml", "microk8s writes it anew from containerd-template.toml"),
    ("/etc/k0s/containerd.toml", "k0s writes it anew unless its first line is taken away; use /etc/k0s/containerd.d"),
    ("/run/k0s/containerd-cri.toml", "k0s writes it anew; use /etc/k0s/containerd.d"),
)


def _later_losses(situation: Situation) -> t.List[Fault]:
    """Handlers that these files give now and would not give on a later release: a hint before the upgrade."""
    section, rules = situation.section, situation.rules
    if section is None or rules is None:
        return []
    for later_rules in later_lines(rules):
        future = situation.at(later_rules)
        served = future.section.served_handlers if future.section is not None else {}
        gone = sorted(set(section.served_handlers) - set(served))
        if gone:
            return [_foreseen(name, future) for name in gone]
    return []


def _foreseen(name: str, future: Situation) -> Fault:
    site = next((item for item in future.declarations() if item.handler == name), None)
    reasons = losses.explain(site, future) if site is not None else []
    down = future.section.down if future.section is not None else None
    why = reasons[0].message if reasons else (down.message if down is not None else "it is no longer built in")
    fix = reasons[0].fix if reasons else "Define handler %s before the upgrade." % name
    return Fault(
        58,
        INFO,
        (name,),
        site.file if site else future.root,
        site.table if site else "",
        site.line if site else 0,
        "containerd %s would not load handler %s from these files: %s" % (future.rules.name, name, why),
        fix,
        reasons[0].edits if reasons else (),
    )


def _rendered(situation: Situation, outcome: Outcome, edited: t.Sequence[str]) -> t.Iterator[Fault]:
    """A file that the distribution renders at each start was edited by hand."""
    for path in edited:
        for suffix, how in _RENDERED:
            if path.endswith(suffix):
                names = tuple(sorted(set(outcome.gains) | set(outcome.changes)))
                message = "%s was edited after the daemon started, and is rendered: %s" % (path, how)
                yield Fault(25, WARNING, names, path, "", 0, message, "Put the handler into the template instead.")


def _not_served(situation: Situation, outcome: Outcome, found: t.Sequence[Fault]) -> t.Iterator[Fault]:
    """CRI is down and no file says why."""
    if situation.cri_ready is not False or any(fault.id == 26 for fault in found):
        return
    if situation.load is not None and situation.load.refusal is not None:
        return
    running = situation.node.get("daemon_started") is not None
    message = "CRI is not served%s" % (" although containerd runs" if running else ": containerd is not running")
    error = str(situation.node.get("cri_error") or "").strip()
    fix = "Look at the log of containerd for `failed to load plugin`, mend what it names, and restart containerd."
    if not running:
        fix = "Start containerd and look at its log."
    yield Fault(
        26, ERROR, tuple(outcome.lost), situation.root, "", 0, message + (" (%s)" % error if error else ""), fix
    )


def _backups(situation: Situation, outcome: Outcome, found: t.Sequence[Fault]) -> t.Iterator[Fault]:
    """Backup-like files are never loaded; a handler that only they have is worth a word."""
    paths = situation.load.paths if situation.load else []
    for declaration in situation.backup_declarations():
        if declaration.handler in outcome.handlers or declaration.file in paths:
            continue
        template = is_template(declaration.file)
        what = "a template" if template else "a backup by its name"
        yield Fault(
            25 if template else 18,
            INFO,
            (declaration.handler,),
            declaration.file,
            declaration.table,
            declaration.line,
            "%s is %s and is not loaded itself" % (declaration.file, what),
            "Nothing, unless handler %s is wanted." % declaration.handler,
        )


def _unexplained(situation: Situation, outcome: Outcome, found: t.Sequence[Fault]) -> t.Iterator[Fault]:
    """No loss goes without a word: what no rule explains is said to be unexplained."""
    named = {name for fault in found for name in fault.handlers}
    sites = {item.handler: item for item in reversed(situation.declarations())}
    for name in outcome.lost:
        if name in named:
            continue
        site = sites[name]
        why = "by the rules of this release line it should be loaded"
        if situation.load is None:
            why = "the version of this containerd is unknown (%s), so its rules are too" % situation.node.get("version")
        elif situation.load.undetermined:
            why = "the configuration could not be read completely (%s)" % situation.load.undetermined
        yield Fault(
            55,
            ERROR,
            (name,),
            site.file,
            site.table,
            site.line,
            "handler %s stands in %s and is not loaded; %s" % (name, site.file, why),
            "Restart containerd and look again; if it stays so, read the log of containerd.",
        )


__all__ = ("find_faults",)
