# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a capture and a declaration to the files to write, proved by a simulated start before anything is staged."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import (
    comparison,
    cri_section,
    usability,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.cri_section import RUNC_V2, Section
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import toml_key
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import (
    NEW_RUNTIME,
    OLD_CRI,
    LineRules,
    rules_for,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.secrets import Masker
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import desired as declaration
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import (
    marks,
    migrate,
    ours,
    placement,
    render,
    repair,
    whereabouts,
)
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import writes as writing
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.changes import (
    LoadedState,
    loaded_diff,
    summary,
)
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.release import next_release
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.stage import Stage, Texts, real_path
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.toml_text import value_text

Table = t.Dict[str, t.Any]
Plan = t.Dict[str, t.Any]
NOTHING = ours.Wanted({}, None, False)


def make_plan(capture: t.Mapping[str, t.Any], facts: t.Mapping[str, t.Any], options: t.Mapping[str, t.Any]) -> Plan:
    """What to write so that the declared handlers are loaded after the next start, and nothing else changes.

    :param capture: the node as it was collected, masked.
    :param facts: what core.interpret made of it.
    :param options: those of module ``runtime_handlers``; ``remove``: take everything of ours away.
    :raises RuntimeGateError: the declaration is wrong, the release line lacks something of it, or the files cannot be
        changed without a loss. Nothing has been written then.
    """
    return _Planner(capture, facts, options).plan()


class _Planner:
    def __init__(
        self, capture: t.Mapping[str, t.Any], facts: t.Mapping[str, t.Any], options: t.Mapping[str, t.Any]
    ) -> None:
        self.capture, self.facts, self.options = capture, facts, options
        self.node: Table = dict(capture.get("node") or {})
        self.removing = bool(options.get("remove"))
        self.desired = declaration.parse({} if self.removing else options)
        self.version, self.rules = next_release(self.node, options.get("target_version"), rules_for, "containerd", "1.3")
        self.installed = bool(self.node.get("version") or self.node.get("next_version"))
        self.notes: t.List[str] = []
        self.links: t.Dict[str, str] = self.node.get("links") or {}
        self.now = Stage(capture, self.version, {})
        self.place = placement.find(self.node, self.now.root, self.now.texts)
        self.foreign: Texts = ours.foreign_texts(self.now.texts, self._is_looked_at)
        self.carried = ours.own_wants(self.now.texts, self.foreign)
        self.foreign.update(self.place.without_ours(self.now, self.carried))
        self.written: t.Optional[t.List[str]] = self.node.get("written_handlers")
        #: What there has to be for a start to be told at all: an empty file where -c names one that is missing.
        self.padding: Texts = self._padding()
        self.bare: Texts = {}
        self.mode = ""
        #: What was merged into a file; of one that its distribution renders, no mark can be seen before.
        self.merged: t.Set[str] = set()

    # ---- the way through

    def plan(self) -> Plan:
        declared = [handler.name for handler in self.desired.handlers]
        ours.refuse_strangers(self.carried.handlers, self.written, declared, self._places(self.now, self.foreign))
        base = self._base()
        self.mode = self._mode(base)
        wanted = self._wanted(base)
        stage, changes = self._rendered(base, wanted)
        section = stage.loadable()
        self._check_binary_of_default(section)
        return self._assembled(base, stage, section, changes, wanted)

    @staticmethod
    def _places(stage: Stage, paths: t.Container[str]) -> t.Dict[str, str]:
        """handler → where a file of these declares it."""
        return {item.handler: whereabouts.words(item.file, item.line) for item in stage.situation.declarations() if item.file in paths}

    def _is_looked_at(self, path: str) -> bool:
        return path in self.now.load.paths or self.place.is_ours_to_look_at(path)

    def _padding(self) -> Texts:
        refusal = Stage(self.capture, self.version, self.foreign).load.refusal
        return {self.now.root: ""} if refusal is not None and refusal.kind == "missing_config" else {}

    def _stage(self, changes: Texts) -> Stage:
        padding = {path: text for path, text in self.padding.items() if changes.get(path) is None}
        return Stage(self.capture, self.version, dict(changes, **padding))

    def _mode(self, base: Stage) -> str:
        mode = self.options.get("mode") or "auto"
        if mode not in ("auto", "dropin", "merge"):
            raise RuntimeGateError("runtime_gate_mode must be auto, dropin or merge, not %r" % mode)
        if mode == "dropin" and not self.rules.modern:
            raise RuntimeGateError(
                "runtime_gate_mode: dropin cannot be used with containerd %s: an imported file replaces the whole CRI section there. "
                "Use runtime_gate_mode: merge (or auto)" % self.rules.name
            )
        if mode == "dropin" and not self.place.takes_drop_ins(base):
            raise RuntimeGateError(
                "runtime_gate_mode: dropin cannot be used here: %s reads no drop-ins. Use runtime_gate_mode: auto" % self.place.kind
            )
        if mode != "auto":
            return str(mode)
        return "dropin" if self.rules.modern and self.place.takes_drop_ins(base) else "merge"

    def _base(self) -> Stage:
        """The node without ours, its root file made loadable. Fills ``bare``: what has to change for that alone."""
        bare: Texts = dict(self.foreign)
        stage = self._stage(bare)
        adopted = self._adopted_imports(stage)
        if adopted is not None:
            bare[stage.root] = adopted
            stage = self._stage(bare)
        mended = None if self.removing else repair.repaired_root(stage, bool(self.options.get("repair")), self.notes)
        if mended is not None:
            bare[stage.root] = mended
            stage = self._stage(bare)
        if self.removing:
            self._unsign(stage, bare)
            stage = self._stage(bare)
        if self.removing and stage.root in self.padding and bare.get(stage.root, "") is None:
            # The daemon is started with -c: without the file it would not start at all.
            bare[stage.root] = ""
        if self.options.get("migrate") is not None and not self.removing:
            moved = self._migrated(stage)
            bare.update(moved)
            stage = self._stage(bare) if moved else stage
        self.bare = bare
        return stage

    def _unsign(self, stage: Stage, bare: Texts) -> None:
        """A repair stays when our handlers go: with the first text CRI would not come up, or lose handlers. That is said."""
        text, reasons = repair.unsigned(stage.text(stage.root) or "")
        if not reasons:
            return
        bare[stage.root] = text
        self.notes.append(
            "%s stays as an earlier run has repaired it (%s), since with its first text the node would lose what it serves now; that text is in "
            "the backups under /var/lib/runtime-gate on the node, while they last" % (stage.root, "; ".join(reasons))
        )

    def _migrated(self, stage: Stage) -> Texts:
        if self.options["migrate"] != 3:
            raise RuntimeGateError("runtime_gate_migrate can only be 3 (containerd 2.x reads it on every release)")
        if not self.rules.modern:
            raise RuntimeGateError("runtime_gate_migrate: 3 needs containerd 2.0 or later, not %s" % self.rules.name)
        if self.place.renders(stage.root):
            raise RuntimeGateError("runtime_gate_migrate: 3 cannot be used here: %s renders %s itself" % (self.place.kind, stage.root))
        stage.loadable()
        moved = migrate.migrated_files(stage, self.notes)
        if moved:
            migrate.prove_equal(stage, self._stage(dict(self.foreign, **moved)))
        return moved

    def _adopted_imports(self, bare: Stage) -> t.Optional[str]:
        """The root file with an import of ours left in it, where files of others are read through that import only."""
        strangers = [path for path in self.now.load.paths if path not in bare.load.paths and path not in self.foreign]
        uses = [use for use in self.now.load.imports if use.file == self.now.root and set(use.matches) & set(strangers)]
        if not uses:
            return None
        text = bare.text(bare.root)
        for use in uses:
            text = self._with_import(bare.root, text, use.resolved, 2 if not self.rules.modern else 3)
            self.notes.append("the import of %s stays in %s: %s is read through it" % (use.resolved, bare.root, strangers[0]))
        return text

    def _wanted(self, base: Stage) -> ours.Wanted:
        if self.removing:
            return ours.Wanted({}, None, False)
        section = base.section
        circumstances = declaration.Circumstances(
            self._systemd_cgroup(section), self.node.get("binaries") or {}, self.installed
        )
        declared = declaration.each(self.desired.present, lambda item: declaration.rendered(item, self.rules, circumstances))
        absent = self.desired.absent
        carried = {name: self._spelled(body) for name, body in self.carried.handlers.items() if name not in absent}
        default = self.desired.default or self.carried.default
        present_default = default or (section.default if section is not None else None)
        if present_default in absent:
            raise RuntimeGateError(self._absent_default(base, present_default))
        cdi = self.desired.wants_cdi or self.carried.cdi
        return ours.Wanted(dict(carried, **declared), default, cdi)

    def _absent_default(self, base: Stage, name: str) -> str:
        """Why a default handler cannot be taken away, with everything that has to be done first."""
        order = [document for document in base.load.order if self.foreign.get(document.path, "") is not None]
        setter = whereabouts.of_default(order, name)
        said = "runtime_gate_handlers.%s.state: absent: it is the default handler%s; set runtime_gate_default_handler to another one" % (
            name,
            " (%s)" % setter if setter else "",
        )
        holders = [item for item in base.situation.declarations() if item.handler == name and not self.place.may_edit(item.file)]
        places = [whereabouts.words(item.file, item.line) for item in holders if item.file in base.load.paths]
        return said + (", and take the handler out of %s, which belongs to another tool" % " and ".join(places) if places else "")

    def _spelled(self, table: Table) -> Table:
        """A table of ours as this line spells it."""
        mode = "sandboxer" not in self.rules.handler_keys and "sandbox_mode" in self.rules.handler_keys
        return {("sandbox_mode" if mode and key == "sandboxer" else key): value for key, value in table.items()}

    def _systemd_cgroup(self, section: t.Optional[Section]) -> t.Optional[bool]:
        """The kubelet's driver; where the kubelet asks CRI, or says nothing, what the default handler has.

        The default handler is looked up in the files without ours: what is ours, or loaded because of us, would make the
        answer of one run the cause of another answer of the next. False is containerd's own default and need not be written.
        """
        kubelet = self.node.get("kubelet") or {}
        driver = kubelet.get("cgroup_driver")
        asks_cri = "KubeletCgroupDriverFromCRI=true" in str(kubelet.get("cmdline") or "") and self.rules.modern
        if driver in ("systemd", "cgroupfs") and not asks_cri:
            return bool(driver == "systemd")
        handler = (section.handlers.get(section.default) if section is not None else None) or {}
        is_runc = handler.get("runtime_type") in usability.RUNC_TYPES
        return True if is_runc and usability.option(handler.get("options") or {}, "SystemdCgroup") is True else None

    # ---- rendering

    def _rendered(self, base: Stage, wanted: ours.Wanted) -> t.Tuple[Stage, Texts]:
        """The first way of writing that a simulated start proves right."""
        reasons: t.List[str] = []
        for version, plugin in self._styles(base):
            notes = list(self.notes)
            try:
                texts = {} if self.removing else self._written(base, wanted, version, plugin)
                changes: Texts = dict(self.bare, **texts)
                stage = self._stage(changes)
                self._prove(base, stage, wanted)
                return stage, changes
            except RuntimeGateError as error:
                reasons.append(str(error))
                self.notes = notes
        raise RuntimeGateError(reasons[0])

    def _styles(self, base: Stage) -> t.List[t.Tuple[int, str]]:
        """(version, plugin name) to write with, best first: those of the root file, never of the dump or the binary."""
        load = base.load
        root = base.situation.files.document(base.root)
        if not self.rules.modern:
            return [(2, OLD_CRI)]
        stated = (root.stated_version if root is not None else None) or 0
        new_names = any(_has_runtime_table(document.tree, NEW_RUNTIME) for document in load.order)
        if stated >= 3:
            return [(stated, NEW_RUNTIME)]
        if stated == 2:
            return [(2, NEW_RUNTIME), (2, OLD_CRI)] if new_names else [(2, OLD_CRI), (2, NEW_RUNTIME)]
        if any((document.stated_version or 0) == 2 for document in load.order):
            return [(2, OLD_CRI), (3, NEW_RUNTIME)]
        return [(3, NEW_RUNTIME)]

    def _written(self, base: Stage, wanted: ours.Wanted, version: int, plugin: str) -> Texts:
        """The texts of one way of writing, by path, with marks."""
        removed = self._without_absent(base)
        stage = self._stage(dict(self.bare, **removed)) if removed else base
        missing = self._missing(stage, wanted)
        missing = missing._replace(pulls=self._pulls(missing, version))
        if self.mode == "dropin":
            more = self._drop_in(base, stage, missing, version, plugin)
        else:
            more = self._merged(stage, missing, version, plugin)
        return {path: self._marked(base, path, text) for path, text in dict(removed, **more).items()}

    def _missing(self, stage: Stage, wanted: ours.Wanted) -> ours.Wanted:
        """What of the wanted the files do not bring about already without us."""
        section = stage.loadable()
        handlers = {name: body for name, body in wanted.handlers.items() if not render.satisfied(body, section.handlers.get(name))}
        default = wanted.default if wanted.default not in (None, section.default) else None
        cdi = wanted.cdi and not _cdi_is_on(section, self.rules)
        return ours.Wanted(handlers, default, cdi)

    def _pulls(self, missing: ours.Wanted, version: int) -> t.Dict[str, str]:
        """2.0 to 2.2 pull a handler's images with its snapshotter only where the images plugin is told, in its own table."""
        if self.rules.snapshotter_for_pulls:
            return {}
        found = {name: str(body["snapshotter"]) for name, body in missing.handlers.items() if body.get("snapshotter")}
        if found and version < 3:
            self.notes.append(
                "containerd %s pulls images of %s with the default snapshotter while the root file is of version 2; runtime_gate_migrate: 3 "
                "would mend that" % (self.rules.name, ", ".join(sorted(found)))
            )
            return {}
        return found

    def _without_absent(self, base: Stage) -> Texts:
        """The files in which a handler is declared that must be absent, without it."""
        section = base.section
        texts: Texts = {}
        for name in self.desired.absent:
            if section is None or name not in section.handlers:
                continue
            for document in base.load.order:
                texts.update(self._dropped(base, texts, document.path, name))
        return texts

    def _dropped(self, base: Stage, texts: Texts, path: str, name: str) -> Texts:
        text = texts.get(path) or base.text(path) or ""
        tree = marks.tree_of(text, path)
        tables = [item.path for item in base.situation.declarations() if item.file == path and item.handler == name]
        tables = [table for table in tables if isinstance(render.value_at(tree, table), dict)]
        if not tables:
            return {}
        if not self.place.may_edit(path):
            raise RuntimeGateError(
                "runtime_gate_handlers.%s.state: absent: %s declares it, and that file belongs to another tool; remove it there" % (name, path)
            )
        edits = [{"op": "drop_table", "file": path, "table": toml_key(table), "key": ""} for table in tables]
        return {path: render.edited(text, edits, path)}

    def _drop_in(self, base: Stage, stage: Stage, missing: ours.Wanted, version: int, plugin: str) -> Texts:
        if missing == NOTHING:
            return {}
        content = render.drop_in_text(missing, version, plugin)
        root = stage.root
        for spot in self.place.spots(base, self.now):
            text = None if root in self.padding else stage.text(root)
            if spot.pattern:
                text = self._with_import(root, text, spot.pattern, version)
            present = self.now.text(spot.path)
            in_use = present is not None or self.now.reads(spot.path)
            if present != content and in_use and self._marked(base, root, text) != self.now.text(root):
                # Both files would change, and the present root reads this one, or it is there: there would be no one moment of change.
                continue
            return dict({spot.path: content}, **({} if text is None or text == base.text(root) else {root: text}))
        raise RuntimeGateError("%s: there is no place for a drop-in that nothing else uses; use runtime_gate_mode: merge" % root)

    def _with_import(self, root: str, text: t.Optional[str], pattern: str, version: int) -> str:
        if text is None:
            return "version = %d\nimports = [%s]\n" % (version, value_text(pattern))
        edit = {"op": "add", "file": root, "table": "", "key": "imports", "value": pattern}
        return render.edited(text, [edit], root)

    def _merged(self, stage: Stage, missing: ours.Wanted, version: int, plugin: str) -> Texts:
        section = stage.loadable()
        missing = missing._replace(handlers=dict(self._runc_written_out(section, missing), **missing.handlers))
        if missing == NOTHING:
            return {}
        self.merged |= set(missing.handlers)
        path = self._merge_target(stage, plugin)
        text = stage.text(path)
        if text is None or path in self.padding:
            return {path: "version = %d\n\n%s" % (version, render.tables_text(missing, plugin))}
        tree = marks.tree_of(text, path)
        edits = render.merge_edits(missing, tree, plugin, path)
        if path == stage.root and not tree.get("version"):
            edits.insert(0, {"op": "set", "file": path, "table": "", "key": "version", "value": version})
        merged = placement.Merged(path, render.edited(text, edits, path), missing, version, plugin)
        return self.place.carriers(stage, merged)

    def _runc_written_out(self, section: Section, missing: ours.Wanted) -> t.Dict[str, Table]:
        """1.5 to 1.7 drop the built-in runc as soon as a file has a handler of its own: then it is written out."""
        found: t.Dict[str, Table] = {}
        if self.rules.builtin_runc == "merged" or not missing.handlers:
            return found
        named = render.value_at(section.body, ("containerd", "runtimes"))
        named = named if isinstance(named, dict) else {}
        needed = "runc" in section.handlers or (missing.default or section.default) == "runc"
        if needed and "runc" not in named and "runc" not in missing.handlers and "runc" not in self.desired.absent:
            found["runc"] = {"runtime_type": RUNC_V2}
        return found

    def _merge_target(self, stage: Stage, plugin: str) -> str:
        """The file whose CRI section holds: the root, or on 1.x the imported file that replaces it."""
        if self.rules.plugin_merge == "deep":
            return self.place.merge_target
        holders = [doc.path for doc in stage.load.order if _has_plugin(doc.tree, plugin)]
        if holders and holders[-1] != stage.root:
            self.notes.append(
                "%s replaces the CRI section of %s on containerd %s, so the handlers are merged there; if another tool "
                "rewrites it, run this again" % (holders[-1], stage.root, self.rules.name)
            )
            return holders[-1]
        return self.place.merge_target

    def _marked(self, base: Stage, path: str, text: t.Optional[str]) -> t.Optional[str]:
        """Our lines carry a mark of origin where the file is somebody else's."""
        before = None if path in self.padding else base.text(path)
        if text is None or text == before or marks.is_own_file(text) or marks.has_marks(text):
            return text
        if path == self.place.merge_target and path != base.root and self.place.renders(path):
            # No comment survives its rendering.
            return text
        if before is None:
            return render.created_root(text)
        return marks.mark(before, text, path)

    def _settled(self, changes: Texts) -> Texts:
        """Only what really changes; a text that would be masked into the present one is the present one."""
        kept: Texts = {}
        for path, text in changes.items():
            now = self.now.text(path)
            if text == now or (text is not None and now is not None and Masker().toml(text) == now):
                continue
            kept[path] = text
        return kept

    # ---- proof

    def _prove(self, base: Stage, stage: Stage, wanted: ours.Wanted) -> None:
        section = stage.loadable()
        if wanted.default and wanted.default not in section.handlers:
            raise RuntimeGateError("runtime_gate_default_handler: there is no handler %s, declared or otherwise" % wanted.default)
        if section.down is not None and not self.removing:
            raise RuntimeGateError("CRI would not be served after this change: %s%s" % (section.down.message, _named_in(stage, section)))
        for name, body in wanted.handlers.items():
            if not render.satisfied(body, section.handlers.get(name)):
                raise RuntimeGateError(self._unreached(stage, "handler %s" % name, name))
        if wanted.default and section.default != wanted.default:
            raise RuntimeGateError(self._unreached_default(stage, wanted.default, section.default))
        for name, body in wanted.handlers.items():
            snapshotter = body.get("snapshotter")
            if snapshotter and not cri_section.snapshotter_exists(stage.load, snapshotter):
                raise RuntimeGateError(
                    "runtime_gate_handlers.%s.snapshotter: there is no snapshotter %s: it is neither built in nor a proxy plugin of these files"
                    % (name, snapshotter)
                )
        for name in self.desired.absent:
            if name in section.handlers:
                raise RuntimeGateError("runtime_gate_handlers.%s.state: absent: containerd brings it by itself" % name)
        self._prove_kept(base, section, wanted)

    def _prove_kept(self, base: Stage, section: Section, wanted: ours.Wanted) -> None:
        before = base.section
        for name in self._keep():
            if name not in section.handlers:
                raise RuntimeGateError(
                    "handler %s is loaded now and would be lost at the next restart: no file brings it about. Declare it, or "
                    "name it with state: absent" % name
                )
        for name, body in (before.served_handlers if before is not None else {}).items():
            if name in wanted.handlers or name in self.desired.absent:
                continue
            keys = comparison.differing(body, section.handlers.get(name) or {})
            if keys:
                raise RuntimeGateError("handler %s would change (%s), though it is not declared" % (name, ", ".join(keys)))

    def _unreached(self, stage: Stage, what: str, name: str) -> str:
        found = [item for item in stage.situation.declarations() if item.handler == name and item.file in stage.load.paths]
        others = [item for item in found if not marks.is_own_file(stage.text(item.file)) and item.file != stage.root]
        if others:
            places = sorted({whereabouts.words(item.file, item.line) for item in others})
            return "%s: %s, sets it otherwise and is loaded later; change it there" % (what, " and ".join(places))
        return "%s would not be loaded with the files of this node" % what

    @staticmethod
    def _unreached_default(stage: Stage, name: str, other: t.Optional[str]) -> str:
        place = whereabouts.of_default(stage.load.order, other)
        what = "runtime_gate_default_handler %s" % name
        if place:
            return "%s: %s, sets %s and is loaded later; change it there" % (what, place, other)
        return "%s would not be the default with the files of this node, %s would" % (what, other)

    def _keep(self) -> t.List[str]:
        """Handlers that are loaded now (where CRI tells; else those that the next start would load) and must stay."""
        loaded = self.now.situation.loaded
        section = self.now.section
        names: t.Iterable[str] = ()
        if loaded is not None:
            names = loaded.handlers
        elif section is not None and self.installed:
            names = section.served_handlers
        if self.removing:
            return []
        return sorted(set(names) - set(self.desired.absent))

    def _check_binary_of_default(self, section: Section) -> None:
        """A default handler that cannot run takes every pod of the node with it: no option allows that."""
        if self.desired.default is None and section.default not in [handler.name for handler in self.desired.present]:
            return
        verdict = usability.judge(section.handlers.get(section.default) or {}, self.rules, self.node.get("binaries") or {})
        if self.installed and verdict.usable is False:
            raise RuntimeGateError("runtime_gate_default_handler %s: %s" % (section.default, verdict.reason))

    # ---- the plan

    def _assembled(self, base: Stage, stage: Stage, section: Section, changes: Texts, wanted: ours.Wanted) -> Plan:
        before, after = self._states(section)
        settled = self._settled(changes)
        writes, commit = self._writes({path: text for path, text in settled.items() if not self.place.renders(path)})
        restart = self._restart_needed(bool(writes), before, after)
        default_changes, reach = writing.reach_of_default(before, after, self._tells_options()) if writes or restart else (False, "")
        is_known = self.now.situation.loaded is not None
        if default_changes and is_known and wanted.default is None and not self.removing and before.default != after.default:
            raise RuntimeGateError(whereabouts.changed_default(stage.load.order, str(before.default), str(after.default)))
        variables = self.place.say(wanted)
        places = self._places(base, base.load.paths)
        # Lines are told as they are in the file now.
        places.update({name: place for name, place in self._places(self.now, self.now.load.paths).items() if name in places})
        unmarked = ours.unmarked(self.carried.handlers, self.written, places)
        declared = {handler.name for handler in self.desired.handlers}
        self.notes += [sentence for name, sentence in unmarked.items() if name not in declared]
        return {
            "writes": writes,
            "commit": commit,
            "config_path": stage.root,
            "exe": self._executable(),
            "version": self.version,
            "proof": self._proof(settled, writes),
            **self._demands(section, wanted),
            "written": self._written_names(base, stage, wanted, unmarked),
            "remove": self.removing,
            "section": section,
            "unit": self.options.get("unit") or (self.node.get("unit") or {}).get("name"),
            "restart_command": self.options.get("restart_command"),
            "changes": {
                "loaded": loaded_diff(before, after, self._tells_options()),
                "summary": summary(before, after, self._tells_options()),
                "diff": writing.diffs(writes, self.now.texts, self.links, before, after),
            },
            "notes": self.notes + self.place.notes,
            "conflicts": self._conflicts(stage),
            "kubespray": variables,
            "restart_needed": restart,
            "default_changes": default_changes,
            "needs_blast_radius": default_changes and not self.options.get("accept_blast_radius"),
            "blast_radius": reach,
        }

    def _written_names(self, base: Stage, stage: Stage, wanted: ours.Wanted, unmarked: t.Iterable[str]) -> t.List[str]:
        """Handlers that stand in lines and files of ours after this change, and those of earlier runs whose marks are gone."""
        in_ours = ours.own_wants(stage.texts, ours.foreign_texts(stage.texts, self._is_looked_at)).handlers
        missing = () if self.removing else self._missing(base, wanted).handlers
        return sorted({*unmarked, *in_ours, *missing, *self.merged})

    def _executable(self) -> t.Optional[str]:
        """The binary of the running daemon, else the one that a start would run."""
        found = [one.get("exe") for one in self.node.get("runtimes") or [] if one.get("engine") == "containerd"]
        return next((str(exe) for exe in [self.node.get("daemon_exe"), *found] if exe), None)

    def _demands(self, section: Section, wanted: ours.Wanted) -> Table:
        """What the proofs ask for: ``expect``, ``keep`` and ``absent``. A removal leaves what the files without ours bring about."""
        if self.removing:
            loaded = sorted(self.now.situation.loaded.handlers) if self.now.situation.loaded is not None else []
            return {
                "expect": {"handlers": [], "default": section.default, "tables": {}},
                "keep": [name for name in loaded if name in section.handlers],
                "absent": [name for name in loaded if name not in section.handlers],
            }
        present = sorted(handler.name for handler in self.desired.present)
        tables = {name: wanted.handlers[name] for name in present}
        return {
            "expect": {"handlers": present, "default": self.desired.default, "tables": tables},
            "keep": [name for name in self._keep() if name in section.handlers],
            "absent": list(self.desired.absent),
        }

    def _proof(self, settled: Texts, writes: t.Sequence[Table]) -> t.List[Table]:
        """The files with which the binary is to prove the change: what containerd itself will read at its next start.

        A distribution renders its root file from the one that is written; and where the root file goes, the dump of 1.5 to 1.7
        fails though the start does not (LOADING.md, section 2b): an empty file says the same.
        """
        root = real_path(self.now.root, self.links)
        found = [self._write(path, text) for path, text in sorted(settled.items()) if self.place.renders(path)]
        for write in writes:
            is_dumped_empty = write["path"] == root and write["text"] is None and not self.rules.dump_hides_missing
            found.append(dict(write, text="") if is_dumped_empty else write)
        return found

    def _tells_options(self) -> bool:
        """Both sides of the change have the handlers' options (1.4 does not tell those of loaded ones)."""
        return self.rules.shows_options or self.now.situation.loaded is None

    def _states(self, section: Section) -> t.Tuple[LoadedState, LoadedState]:
        loaded, now = self.now.situation.loaded, self.now.section
        before = LoadedState({}, None)
        if loaded is not None:
            before = LoadedState(loaded.handlers, loaded.default)
        elif now is not None and now.served_handlers and self.installed:
            before = LoadedState(now.served_handlers, now.default)
        return before, LoadedState(section.served_handlers, section.default)

    def _writes(self, changes: Texts) -> t.Tuple[t.List[Table], t.Optional[str]]:
        """Ordered: what the present root does not read, the one that switches, then what is no longer read."""
        if not changes:
            return [], None
        switch = self.place.switch(changes)
        contents = [path for path in changes if changes[path] is not None and self.now.text(path) is not None]
        if len(contents) > 1:
            raise RuntimeGateError(
                "%s would have to change in one step, which cannot be done: run this once with runtime_gate_repair: true and "
                "runtime_gate_handlers: {} (what is there of ours stays), then again as now; or mend the root file by hand first, as the "
                "fault on it says" % " and ".join(sorted(contents))
            )
        order = [path for path in sorted(changes) if path != switch and changes[path] is not None]
        order += [switch] + [path for path in sorted(changes) if path != switch and changes[path] is None]
        writes = [self._write(path, changes[path]) for path in order]
        return writes, real_path(switch, self.links)

    def _write(self, path: str, text: t.Optional[str]) -> Table:
        return writing.write(self.node, path, self.now.text(path), text)

    def _restart_needed(self, writes: bool, before: LoadedState, after: LoadedState) -> bool:
        situation = self.now.situation
        if situation.loaded is not None:
            changed = bool(loaded_diff(before, after, self._tells_options()))
            return changed if writes else changed and self._wants_are_unloaded(after)
        # CRI does not answer: what runs is not known, and a node without containerd has nothing to restart.
        return self.installed and (writes or situation.cri_ready is False)

    def _wants_are_unloaded(self, after: LoadedState) -> bool:
        """An earlier restart was lost: the files are right, and what was declared is not loaded so."""
        loaded = self.now.situation.loaded
        if loaded is None:
            return False
        for handler in self.desired.present:
            body, wanted = loaded.handlers.get(handler.name), after.handlers.get(handler.name) or {}
            if body is None or comparison.differing(body, wanted, self._tells_options()):
                return True
        gone = any(name in loaded.handlers for name in self.desired.absent)
        return gone or self.removing or bool(self.desired.default and loaded.default != self.desired.default)

    @staticmethod
    def _is_our_line(stage: Stage, path: str, line: int) -> bool:
        text = stage.text(path) or ""
        return marks.is_own_file(text) or line in marks.own_lines(text)

    def _conflicts(self, stage: Stage) -> t.List[str]:
        """Files of other tools that declare a handler of ours too, and who wins."""
        found = []
        order = stage.load.paths
        for handler in self.desired.present:
            holders = [item for item in stage.situation.declarations() if item.handler == handler.name and item.file in order]
            mine = [item for item in holders if self._is_our_line(stage, item.file, item.line)]
            for item in holders:
                if item in mine or item.file == stage.root:
                    continue
                wins = "ours wins" if mine else "it is used as it stands, since it says the same"
                found.append(
                    "handler %s is also declared in %s, line %d, by another tool; %s" % (handler.name, item.file, item.line, wins)
                )
        return found


def _named_in(stage: Stage, section: Section) -> str:
    """Where CRI is kept from being served, for a sentence; a drop-in's list cannot be taken back by another file."""
    plugin = section.down.plugin if section.down is not None else ""
    if section.down is not None and section.down.kind == "default_missing":
        place = whereabouts.of_default(stage.load.order, section.down.handler)
        return " (%s)" % place if place else ""
    files = [document.path for document in stage.load.order if plugin and plugin in (document.tree or {}).get("disabled_plugins", ())]
    return " of %s; take it out there" % ", ".join(files) if files else ""


def _has_plugin(tree: t.Optional[Table], plugin: str) -> bool:
    return isinstance(render.value_at(tree, ("plugins", plugin)), dict)


def _has_runtime_table(tree: t.Optional[Table], plugin: str) -> bool:
    return isinstance(render.value_at(tree, ("plugins", plugin, "containerd", "runtimes")), dict)


def _cdi_is_on(section: Section, rules: LineRules) -> bool:
    """CDI works without a key of ours: it is on, or the line has no key for it (the binary then does it by itself)."""
    if rules.enable_cdi is None:
        return True
    value = section.body.get("enable_cdi")
    return bool(rules.enable_cdi if value is None else value)


__all__ = ("make_plan",)
