# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a capture of a CRI-O node and a declaration to the one drop-in to write, proved by a simulated start before it is staged.

CRI-O reads every file of its drop-in directory in the order of their names, and the last table of a handler holds as a whole. So
everything of ours is one file, whose name comes last, with complete tables: nobody else's file is ever touched, and taking
ours away gives the first state.
"""

from __future__ import annotations

import posixpath
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import comparison
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio import handlers as handler_rules
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.documents import is_right
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.load import CrioLoad
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.release_lines import rules_for
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.situation import CrioSituation
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.secrets import Masker
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import crio_tables, machine_config, marks, ours, whereabouts
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import desired as declaration
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import writes as writing
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.changes import LoadedState, loaded_diff, summary
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.release import next_release
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.toml_text import table_text

Table = t.Dict[str, t.Any]
Plan = t.Dict[str, t.Any]

#: Our file. The second name is for a directory in which another file comes after the first.
DROP_INS = ("zz-runtime-gate.conf", "zzzz-runtime-gate.conf")
_HEADER = marks.OWN_FILE + " from the declared handlers. Changes here are overwritten.\n"
#: Modification time of a file that is not written yet: later than any start.
_NOT_YET = "9999-12-31T23:59:59Z"
#: What a diff shows beside these stands under options.
_PLAIN_KEYS = ("runtime_type", "runtime_path", "runtime_root", "privileged_without_host_devices")


class Section(t.NamedTuple):
    """What a start has: the counterpart of containerd's CRI section."""

    handlers: t.Mapping[str, Table]
    default: t.Optional[str]

    @property
    def served_handlers(self) -> t.Mapping[str, Table]:
        return self.handlers


class Wanted(t.NamedTuple):
    """What our file has to bring about. default None: not ours to set."""

    handlers: t.Dict[str, Table]
    default: t.Optional[str]


class CrioStage:
    """The node of a capture with these files in place of its own (None: not there)."""

    def __init__(self, capture: t.Mapping[str, t.Any], version: str, changes: t.Mapping[str, t.Optional[str]]) -> None:
        node = dict(capture.get("node") or {}, next_version=version)
        files = {path: text for path, text in (capture.get("files") or {}).items() if path not in changes}
        files.update({path: text for path, text in changes.items() if text is not None})
        gone = {path for path, text in changes.items() if text is None}
        node["absent"] = sorted((set(node.get("absent") or []) | gone) - set(files))
        # The running daemon has read none of these.
        node["files"] = dict(node.get("files") or {}, **dict.fromkeys(set(changes) - gone, _NOT_YET))
        self.texts: t.Dict[str, str] = files
        # `crio config` is of the present files: it says nothing about these.
        self.situation = CrioSituation(dict(capture, node=node, files=files, dump=None))

    @property
    def load(self) -> CrioLoad:
        if self.situation.load is None:
            raise RuntimeGateError("the release of CRI-O is not known, so nothing is written")
        return self.situation.load

    def loadable(self) -> CrioLoad:
        """:raises RuntimeGateError: the start is refused, or cannot be told."""
        load = self.load
        if load.undetermined is not None:
            raise RuntimeGateError("what is loaded cannot be told, so nothing is written: %s" % load.undetermined)
        if load.refusal is not None:
            where = "%s, line %d" % (load.refusal.file, load.refusal.line) if load.refusal.line else load.refusal.file
            raise RuntimeGateError("CRI-O %s does not start with %s: %s" % (load.rules.name, where, load.refusal.message))
        return load


def make_plan(capture: t.Mapping[str, t.Any], facts: t.Mapping[str, t.Any], options: t.Mapping[str, t.Any]) -> Plan:
    """What to write so that the declared handlers are loaded after the next start, and nothing else changes.

    Parameters, result and errors are those of :func:`plan.make_plan`; ``engine`` and ``config_dir`` are CRI-O's.
    """
    return _Planner(capture, facts, options).plan()


class _Planner:
    def __init__(self, capture: t.Mapping[str, t.Any], facts: t.Mapping[str, t.Any], options: t.Mapping[str, t.Any]) -> None:
        self.capture, self.facts, self.options = capture, facts, options
        self.node: Table = dict(capture.get("node") or {})
        self.removing = bool(options.get("remove"))
        self.desired = declaration.parse({} if self.removing else options)
        self.version, self.rules = next_release(self.node, options.get("target_version"), rules_for, "CRI-O", "1.20")
        self.installed = bool(self.node.get("version") or self.node.get("next_version"))
        self.notes: t.List[str] = []
        self.now = CrioStage(capture, self.version, {})
        self.directory = self.now.situation.directory.rstrip("/")
        self.own = [posixpath.join(self.directory, name) for name in DROP_INS]
        self.base = CrioStage(capture, self.version, dict.fromkeys(self._present_own()))
        self.carried = self._carried()
        self.missing_programs: t.Dict[str, str] = {}

    def _present_own(self) -> t.List[str]:
        """Our files that are there. A copy under another name is somebody else's."""
        return [path for path in self.own if marks.is_own_file(self.now.texts.get(path))]

    def plan(self) -> Plan:
        self._check_options()
        declared = [handler.name for handler in self.desired.handlers]
        ours.refuse_strangers(self.carried.handlers, self.node.get("written_handlers"), declared, self._places(self.now, self._present_own()))
        wanted = Wanted({}, None) if self.removing else self._wanted()
        path, stage, changes = self._rendered(wanted)
        load = stage.loadable()
        self._check_default(load)
        return self._assembled(stage, load, self._settled(changes), wanted, path)

    @staticmethod
    def _places(stage: CrioStage, paths: t.Container[str]) -> t.Dict[str, str]:
        """handler → where a file of these declares it."""
        found = [item for document in stage.load.order for item in document.declarations if is_right(item.path) and item.file in paths]
        return {item.handler: whereabouts.words(item.file, item.line) for item in found}

    def _check_options(self) -> None:
        mode = self.options.get("mode") or "auto"
        if mode == "merge":
            raise RuntimeGateError("runtime_gate_mode: merge is for containerd: CRI-O takes a drop-in of its own, use runtime_gate_mode: auto")
        if self.options.get("migrate") is not None:
            raise RuntimeGateError("runtime_gate_migrate is for containerd: the files of CRI-O have no version")

    # ---- what is wanted

    def _carried(self) -> Wanted:
        """What our file says now: a handler of ours stays until it is declared absent."""
        handlers: t.Dict[str, Table] = {}
        default = None
        for path in self._present_own():
            tree = marks.tree_of(self.now.texts[path], path)
            runtime = (tree.get("crio") or {}).get("runtime") or {}
            handlers.update(runtime.get("runtimes") or {})
            default = runtime.get("default_runtime", default)
        return Wanted(handlers, default)

    def _wanted(self) -> Wanted:
        base = self.base.load
        circumstances = crio_tables.Circumstances(
            self.rules, self.now.situation.executables, base.raw.get(base.default) or {}, self.installed
        )
        declared: t.Dict[str, Table] = {}
        for name, found in declaration.each(self.desired.present, lambda item: crio_tables.rendered(item, circumstances)).items():
            declared[name] = crio_tables.over(base.raw.get(name), found.table)
            if found.absent:
                self.missing_programs[name] = found.absent
        absent = self.desired.absent
        carried = {name: body for name, body in self.carried.handlers.items() if name not in absent}
        default = self.desired.default or (self.carried.default if self.carried.default not in absent else None)
        if (default or base.default) in absent:
            raise RuntimeGateError(
                "runtime_gate_handlers.%s.state: absent: it is the default handler; set runtime_gate_default_handler to another one"
                % (default or base.default)
            )
        return Wanted(dict(carried, **declared), default)

    # ---- rendering

    def _rendered(self, wanted: Wanted) -> t.Tuple[str, CrioStage, t.Dict[str, t.Optional[str]]]:
        """(our file, the start with it, what changes): the first name under which a simulated start proves it right."""
        reasons: t.List[str] = []
        missing = self._missing(wanted)
        present = self._present_own()
        for path in sorted(self.own, key=lambda name: name not in present):
            changes: t.Dict[str, t.Optional[str]] = dict.fromkeys(present)
            if missing != Wanted({}, None):
                if path not in present and path in self.now.texts:
                    reasons.append("%s is not ours; move it away" % path)
                    continue
                changes[path] = _text(missing)
            stage = CrioStage(self.capture, self.version, changes)
            try:
                if not self.removing:
                    self._prove(stage, wanted)
                return path, stage, changes
            except RuntimeGateError as error:
                reasons.append(str(error))
        raise RuntimeGateError(reasons[0])

    def _missing(self, wanted: Wanted) -> Wanted:
        """What of the wanted the files do not bring about already without us."""
        load = self.base.load
        there = load.handlers if load.known else {}
        handlers = {name: body for name, body in wanted.handlers.items() if not _holds(body, there.get(name))}
        default = wanted.default if not load.known or wanted.default != load.default else None
        return Wanted(handlers, default)

    def _prove(self, stage: CrioStage, wanted: Wanted) -> None:
        load = stage.loadable()
        for name, body in wanted.handlers.items():
            actual = load.handlers.get(name)
            if actual is None and name in self._unloadable(load):
                continue
            if not _holds(body, actual):
                raise RuntimeGateError(self._unreached(stage, "handler %s" % name, name))
        if wanted.default and load.default != wanted.default:
            raise RuntimeGateError(self._unreached(stage, "runtime_gate_default_handler %s" % wanted.default, ""))
        for name in self.desired.absent:
            if name in load.raw:
                raise RuntimeGateError(self._still_there(load, name))
        for name in self._keep():
            if name not in load.handlers:
                raise RuntimeGateError(
                    "handler %s is loaded now and would be lost at the next restart: no file brings it about%s. Declare it, or name "
                    "it with state: absent" % (name, self._dropped_words(load, name))
                )

    def _unloadable(self, load: CrioLoad) -> t.Set[str]:
        """Handlers whose table is written although CRI-O will drop it: what they need is not on the node yet."""
        carried = {drop.handler for drop in load.drops if drop.handler in self.carried.handlers}
        return set(self.missing_programs) | (carried - {handler.name for handler in self.desired.present})

    @staticmethod
    def _dropped_words(load: CrioLoad, name: str) -> str:
        return next((" (%s)" % drop.reason for drop in load.drops if drop.handler == name), "")

    def _still_there(self, load: CrioLoad, name: str) -> str:
        owner = load.owners.get(name)
        if owner is None:
            return "runtime_gate_handlers.%s.state: absent: CRI-O brings it by itself" % name
        return "runtime_gate_handlers.%s.state: absent: %s declares it, and that file belongs to somebody else; remove it there" % (name, owner.path)

    def _unreached(self, stage: CrioStage, what: str, name: str) -> str:
        owner = stage.load.owners.get(name)
        if name and owner is not None and owner.path not in self.own:
            return "%s: %s, sets it otherwise and is loaded later; change it there" % (what, self._place(stage, owner.path, name))
        later = [document.path for document in stage.load.order if not name and document.default_names()]
        if later and later[-1] not in self.own:
            return "%s: %s, names another one and is loaded later; change it there" % (what, whereabouts.of_default(stage.load.order))
        if stage.situation.given_next.default_runtime and not name:
            return "%s: the command line of CRI-O names another one; change it in the unit" % what
        return "%s would not be loaded with the files of this node" % what

    @staticmethod
    def _place(stage: CrioStage, path: str, name: str) -> str:
        """The last table of a handler in a file."""
        found = [item for document in stage.load.order for item in document.declarations if item.file == path and item.handler == name]
        return whereabouts.words(path, found[-1].line if found else 0)

    def _keep(self) -> t.List[str]:
        """Handlers that sandboxes can use now, or that the next start would load where nothing runs, and must stay."""
        loaded = self.now.situation.loaded
        names: t.Iterable[str] = ()
        if loaded is not None:
            names = loaded.handlers
        elif self.installed and self.now.load.known:
            names = self.now.load.handlers
        return [] if self.removing else sorted(set(names) - set(self.desired.absent))

    def _check_default(self, load: CrioLoad) -> None:
        """A default handler that cannot run takes every pod of the node with it: no option allows that."""
        if self.desired.default is None or not self.installed:
            return
        path = str((load.handlers.get(load.default) or {}).get("runtime_path") or "")
        if path and self.now.situation.executables.runs(path) is False:
            raise RuntimeGateError("runtime_gate_default_handler %s: %s cannot be executed" % (load.default, path))

    def _settled(self, changes: t.Mapping[str, t.Optional[str]]) -> t.Dict[str, t.Optional[str]]:
        """The changes that change something."""
        kept: t.Dict[str, t.Optional[str]] = {}
        for path, text in changes.items():
            now = self.now.texts.get(path)
            if text != now and not (text is not None and now is not None and Masker().toml(text) == now):
                kept[path] = text
        return kept

    # ---- the plan

    def _assembled(
        self, stage: CrioStage, load: CrioLoad, changes: t.Mapping[str, t.Optional[str]], wanted: Wanted, path: str
    ) -> Plan:
        before, after = self._states(load)
        order = sorted(changes, key=lambda name: (changes[name] is None, name))
        writes = [writing.write(self.node, name, self.now.texts.get(name), changes[name]) for name in order]
        managed = machine_config.is_managed(self.node)
        variables = machine_config.text(path, stage.texts.get(path), bool(changes)) if managed else None
        if managed:
            self.notes.append(machine_config.NOTE)
            writes = []
        restart = not managed and self._restart_needed(bool(writes), before, after)
        default_changes, reach = writing.reach_of_default(before, after) if writes or restart else (False, "")
        is_known = self.now.situation.loaded is not None
        if default_changes and is_known and wanted.default is None and not self.removing and before.default != after.default:
            raise RuntimeGateError(whereabouts.changed_default(stage.load.order, str(before.default), str(after.default)))
        return {
            "engine": "crio",
            "endpoint": self.node.get("endpoint"),
            "environment": dict(self.node.get("next_environment") or self.node.get("environment") or {}),
            "dump_options": self._dump_options(),
            "writes": writes,
            "commit": writes[0]["path"] if writes else None,
            "config_path": self.now.situation.root,
            "config_dir": self.now.situation.directory,
            "exe": self._executable(),
            "version": self.version,
            "proof": writes,
            **self._demands(load, wanted),
            "written": sorted(self._missing(wanted).handlers),
            "remove": self.removing,
            "section": Section(load.handlers, load.default),
            "unit": self.options.get("unit") or (self.node.get("unit") or {}).get("name"),
            "restart_command": self.options.get("restart_command"),
            "changes": {
                "loaded": loaded_diff(before, after),
                "summary": summary(before, after),
                "diff": [] if managed else writing.diffs(writes, self.now.texts, self.node.get("links") or {}, before, after),
            },
            "notes": self.notes + self._program_notes(),
            "conflicts": self._conflicts(stage),
            "kubespray": None,
            "machine_config": variables,
            "restart_needed": restart,
            "default_changes": default_changes,
            "needs_blast_radius": default_changes and not self.options.get("accept_blast_radius"),
            "blast_radius": reach,
        }

    def _program_notes(self) -> t.List[str]:
        return [
            "handler %s is written and not loaded before what it needs is on the node: %s" % (name, reason)
            for name, reason in sorted(self.missing_programs.items())
        ]

    def _executable(self) -> t.Optional[str]:
        """The binary that a start would run, else the running one's."""
        found = [one.get("exe") for one in self.node.get("runtimes") or [] if one.get("engine") == "crio"]
        return next((str(exe) for exe in [self.node.get("daemon_exe"), *found] if exe), None)

    def _dump_options(self) -> t.List[str]:
        """What the command line of the next start says about handlers, for `crio config` to say it too."""
        given = self.now.situation.given_next
        default = ["--default-runtime=%s" % given.default_runtime] if given.default_runtime else []
        return default + (["--runtimes=%s" % ",".join(given.runtimes)] if given.runtimes else [])

    def _demands(self, load: CrioLoad, wanted: Wanted) -> Table:
        """What the proofs ask for: ``expect``, ``keep`` and ``absent``. A removal leaves what the files without ours bring about."""
        loaded = self.now.situation.loaded
        names = sorted(loaded.handlers) if loaded is not None else []
        if self.removing:
            return {
                "expect": {"handlers": [], "default": load.default, "tables": {}},
                "keep": [name for name in names if name in load.handlers],
                "absent": [name for name in names if name not in load.handlers],
            }
        present = [handler.name for handler in self.desired.present if handler.name in load.handlers]
        return {
            "expect": {
                "handlers": sorted(present),
                "default": self.desired.default,
                "tables": {name: wanted.handlers[name] for name in sorted(present)},
            },
            "keep": [name for name in self._keep() if name in load.handlers],
            "absent": list(self.desired.absent),
        }

    def _states(self, load: CrioLoad) -> t.Tuple[LoadedState, LoadedState]:
        """Both sides of the change as they are compared: what either leaves to the daemon does not count."""
        loaded, now = self.now.situation.loaded, self.now.load
        first: t.Mapping[str, Table] = {}
        default: t.Optional[str] = None
        if loaded is not None:
            first, default = loaded.handlers, loaded.default
        elif self.installed and now.known:
            first, default = now.handlers, now.default
        before, after = {}, {}
        for name in first:
            other = load.handlers.get(name)
            # Of a daemon that tells names alone, nothing else can be compared.
            mine = first[name] or other or {}
            before[name] = shown(mine, other if other is not None else mine)
        for name, body in load.handlers.items():
            after[name] = shown(body, first.get(name) or body)
            if name in before and load.owners.get(name) is None:
                # Built in, or from the command line: the daemon fills in the rest.
                before[name] = _plain(before[name])
                after[name] = _plain(after[name])
        return LoadedState(before, default if default is not None or not first else load.default), LoadedState(after, load.default)

    def _restart_needed(self, writes: bool, before: LoadedState, after: LoadedState) -> bool:
        situation = self.now.situation
        if situation.loaded is None:
            # CRI does not answer: what runs is not known, and a node without CRI-O has nothing to restart.
            return self.installed and (writes or situation.cri_ready is False)
        if situation.reload.claimed or situation.reload.hidden:
            # After a SIGHUP the daemon's answer is wrong until it is restarted.
            wrong = set(situation.reload.claimed) & {handler.name for handler in self.desired.present}
            if wrong:
                return True
        changed = bool(loaded_diff(before, after))
        return changed if writes else changed and self._wants_are_unloaded(before, after)

    def _wants_are_unloaded(self, before: LoadedState, after: LoadedState) -> bool:
        """An earlier restart was lost: the files are right, and what was declared is not loaded so."""
        for handler in self.desired.present:
            wanted = after.handlers.get(handler.name)
            if wanted is None:
                continue
            body = before.handlers.get(handler.name)
            if body is None or comparison.differing(body, wanted):
                return True
        gone = any(name in before.handlers for name in self.desired.absent)
        return gone or self.removing or bool(self.desired.default and before.default != self.desired.default)

    def _conflicts(self, stage: CrioStage) -> t.List[str]:
        """Files of others that declare a handler of ours too, and who wins."""
        found = []
        declarations = [item for document in stage.load.order for item in document.declarations if is_right(item.path)]
        for handler in self.desired.present:
            for item in declarations:
                if item.handler == handler.name and item.file not in self.own:
                    owner = stage.load.owners.get(handler.name)
                    mine = owner is not None and owner.path in self.own
                    wins = "ours wins" if mine else "it is used as it stands, since it says the same"
                    found.append("handler %s is also declared in %s, line %d; %s" % (handler.name, item.file, item.line, wins))
        return found


def _text(wanted: Wanted) -> str:
    """Our drop-in."""
    parts = []
    if wanted.default:
        parts.append(table_text(("crio", "runtime"), {"default_runtime": wanted.default}))
    for name in sorted(wanted.handlers):
        parts.append(table_text(("crio", "runtime", "runtimes", name), wanted.handlers[name]))
    return _HEADER + "\n".join(parts)


def lacking(wanted: Table, actual: t.Optional[Table]) -> t.List[str]:
    """The keys that a table sets and an actual handler does not have so; an empty value counts as not set."""
    found = []
    for key, value in wanted.items():
        have = (actual or {}).get(key)
        if key == "runtime_type":
            have, value = have or "oci", value or "oci"
        if comparison.plain(have) != comparison.plain(value):
            found.append(key)
    return found


def _holds(wanted: Table, actual: t.Optional[Table]) -> bool:
    return actual is not None and not lacking(wanted, actual)


def shown(mine: Table, other: Table) -> Table:
    """A handler as diffs show and compare it: its own keys, and the rest under options."""
    body = handler_rules.comparable(mine, other)
    table = {key: body[key] for key in _PLAIN_KEYS if body.get(key)}
    rest = {key: value for key, value in body.items() if key not in _PLAIN_KEYS and comparison.plain(value) is not None}
    return dict(table, options=rest) if rest else table


def _plain(table: Table) -> Table:
    return {key: value for key, value in table.items() if key in _PLAIN_KEYS}


__all__ = ("CrioStage", "DROP_INS", "Section", "lacking", "make_plan", "shown")
