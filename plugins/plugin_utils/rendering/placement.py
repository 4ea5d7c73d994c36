# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where on a node a handler's text has to lie: never in a file that a distribution renders at each start."""

from __future__ import annotations

import posixpath
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import go_glob
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import toml_key
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import NEW_RUNTIME, OLD_CRI
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import marks, ours, render
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.stage import Stage, Texts
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.toml_text import handler_path

#: Directories for it beside the root file. Where the root file and the drop-in have to change in one step, the new drop-in
#: needs a place that the present root file does not read; so there are two that only we use.
_DIRECTORIES = ("conf.d", "runtime-gate.d", "runtime-gate-2.d")


class Spot(t.NamedTuple):
    """A place for our drop-in.

    :ivar pattern: the import that the root file needs for it; "": the root file reads it already.
    """

    path: str
    pattern: str


class Merged(t.NamedTuple):
    """A file with handlers merged into it, and what was merged."""

    path: str
    text: str
    wanted: ours.Wanted
    version: int
    plugin: str


class Place:
    """A plain containerd: the root file belongs to the administrator, drop-ins lie in conf.d beside it."""

    def __init__(self, kind: str, root: str) -> None:
        self.kind = kind
        self.root = root
        self.notes: t.List[str] = []

    @property
    def merge_target(self) -> str:
        """The file into which handlers are merged where no drop-in can be used."""
        return self.root

    def is_ours_to_look_at(self, path: str) -> bool:
        """Lines of ours may stand in this file (other runtimes of the node have files of their own)."""
        return path.startswith(posixpath.dirname(self.root) + "/")

    def may_edit(self, path: str) -> bool:
        """The file is the administrator's: it may be changed, with marks."""
        return path == self.root

    def renders(self, path: str) -> bool:
        """The distribution writes this file at each start: it is only ever changed in thought."""
        return False

    def takes_drop_ins(self, base: Stage) -> bool:
        return True

    def spots(self, base: Stage, now: Stage) -> t.Iterator[Spot]:
        """Places for our drop-in, best first.

        :param base: the node without ours. :param now: the node as it is.
        """
        found = list(self._read_spots(base)) + list(self._new_spots(base))
        yield from sorted(found, key=lambda spot: not ours.is_own_drop_in(spot.path, now.text(spot.path)))

    def _read_spots(self, base: Stage) -> t.Iterator[Spot]:
        """Directories that the root file imports already, the last (which wins) first."""
        for use in reversed(base.load.imports):
            directory = posixpath.dirname(use.resolved)
            path = posixpath.join(directory, ours.DROP_IN)
            is_relative = not use.pattern.startswith("/") and base.load.rules.relative_glob_from_cwd
            if use.file == self.root and use.is_glob and "*" not in directory and not is_relative:
                if go_glob.glob(use.resolved, [path]):
                    yield Spot(path, "")

    def _new_spots(self, base: Stage) -> t.Iterator[Spot]:
        """Directories that an import of ours makes read. One with files that nothing reads today is left alone."""
        for name in _DIRECTORIES:
            directory = posixpath.join(posixpath.dirname(self.root), name)
            pattern = posixpath.join(directory, "*.toml")
            strangers = set(go_glob.glob(pattern, base.situation.files.known())) - set(base.load.paths)
            if not strangers:
                yield Spot(posixpath.join(directory, ours.DROP_IN), pattern)

    def without_ours(self, now: Stage, wants: ours.Wanted) -> Texts:
        """Rendered files that hold our handlers without a mark, without them."""
        return {}

    def carriers(self, stage: Stage, merged: Merged) -> Texts:
        """The texts that bring a merged file about: itself, or what the distribution renders it from."""
        return {merged.path: merged.text}

    def switch(self, changes: t.Mapping[str, t.Optional[str]]) -> str:
        """The file whose rename makes the change effective: the root, else the drop-in or template."""
        if self.root in changes:
            return self.root
        present = [path for path in sorted(changes) if changes[path] is not None]
        return present[-1] if present else sorted(changes)[-1]

    def say(self, wanted: ours.Wanted) -> t.Optional[str]:
        """Variables of the distribution's own tool that say the same, as YAML; None: it has none."""
        return None


class Kubespray(Place):
    """kubespray writes the root file from variables: what is merged or imported there goes with its next run."""

    def say(self, wanted: ours.Wanted) -> t.Optional[str]:
        import yaml

        self.notes.append(
            "kubespray writes %s anew at its next run, and what is changed there is lost then: give it the variables of "
            "`kubespray`, or run this collection after it" % self.root
        )
        runtimes = []
        for name, table in sorted(wanted.handlers.items()):
            entry = {"name": name, "type": table.get("runtime_type"), "engine": "", "root": "", "options": {}}
            options = table.get("options") or {}
            # Its template tells a truth value from a string by the word.
            entry["options"] = {key: str(value).lower() if isinstance(value, bool) else value for key, value in options.items()}
            runtimes.append(entry)
            unsaid = sorted(set(table) - {"runtime_type", "options"})
            if unsaid:
                self.notes.append("containerd_additional_runtimes cannot say %s of handler %s" % (", ".join(unsaid), name))
        variables: t.Dict[str, t.Any] = {"containerd_additional_runtimes": runtimes}
        if wanted.default:
            variables["containerd_default_runtime"] = wanted.default
        return str(yaml.safe_dump(variables, sort_keys=False))


class Rancher(Place):
    """k3s and rke2 render the root file at each start: from a template if there is one, and with an import of a directory."""

    _BASE = '{{ template "base" . }}\n'

    def may_edit(self, path: str) -> bool:
        return False

    def renders(self, path: str) -> bool:
        return path == self.root

    def takes_drop_ins(self, base: Stage) -> bool:
        return bool(list(self._read_spots(base)))

    def _new_spots(self, base: Stage) -> t.Iterator[Spot]:
        return iter(())

    def without_ours(self, now: Stage, wants: ours.Wanted) -> Texts:
        """A template that holds nothing but the distribution's own was made by us."""
        found: Texts = {}
        for path, text in now.texts.items():
            if path.endswith(".tmpl") and self.is_ours_to_look_at(path) and marks.has_marks(text):
                found[path] = None if marks.unmark(text, path) == self._BASE else marks.unmark(text, path)
        return found

    def carriers(self, stage: Stage, merged: Merged) -> Texts:
        before = stage.text(merged.path) or ""
        if not before.endswith("\n") or not merged.text.startswith(before):
            raise RuntimeGateError(
                "%s is rendered by %s, and its template can only be added to: a default handler, or a handler that %s writes "
                "itself, is set in its own configuration (default-runtime in /etc/rancher/%s/config.yaml)"
                % (merged.path, self.kind, self.kind, self.kind)
            )
        name = "config-v3.toml.tmpl" if merged.version >= 3 else "config.toml.tmpl"
        template = posixpath.join(posixpath.dirname(self.root), name)
        hidden = stage.situation.files.hidden.get(template)
        if hidden:
            raise RuntimeGateError("%s cannot be added to: %s" % (template, hidden))
        base = stage.text(template) or self._BASE
        base += "" if base.endswith("\n") else "\n"
        return {merged.path: merged.text, template: marks.appended(base, merged.text[len(before) :])}


class MicroK8s(Place):
    """The snap renders containerd.toml from containerd-template.toml, which is TOML with variables in its strings."""

    @property
    def _template(self) -> str:
        return posixpath.join(posixpath.dirname(self.root), "containerd-template.toml")

    def may_edit(self, path: str) -> bool:
        return path == self._template

    def renders(self, path: str) -> bool:
        return path == self.root

    def takes_drop_ins(self, base: Stage) -> bool:
        return False

    def carriers(self, stage: Stage, merged: Merged) -> Texts:
        template = stage.text(self._template)
        if template is None:
            raise RuntimeGateError("%s is not there or could not be read: microk8s renders its configuration from it" % self._template)
        edits = render.merge_edits(merged.wanted, marks.tree_of(template, self._template), merged.plugin, self._template)
        return {merged.path: merged.text, self._template: render.edited(template, edits, self._template)}


class K0s(Place):
    """k0s merges the drop-ins of /etc/k0s/containerd.d into one file at each start, and imports that."""

    _RENDERED = "/run/k0s/containerd-cri.toml"
    _DROP_IN = posixpath.join("/etc/k0s/containerd.d", ours.DROP_IN)

    @property
    def merge_target(self) -> str:
        return self._RENDERED

    def is_ours_to_look_at(self, path: str) -> bool:
        return path == self._DROP_IN

    def may_edit(self, path: str) -> bool:
        return False

    def renders(self, path: str) -> bool:
        return path in (self.root, self._RENDERED)

    def takes_drop_ins(self, base: Stage) -> bool:
        return False

    def without_ours(self, now: Stage, wants: ours.Wanted) -> Texts:
        text = now.text(self._RENDERED)
        if text is None:
            return {}
        tree = marks.tree_of(text, self._RENDERED)
        edits = []
        for plugin in (OLD_CRI, NEW_RUNTIME):
            present = render.value_at(tree, handler_path(plugin)) or {}
            for name, table in wants.handlers.items():
                if render.satisfied(table, present.get(name)):
                    path = toml_key(handler_path(plugin, name))
                    edits.append({"op": "drop_table", "file": self._RENDERED, "table": path, "key": ""})
            own = [(("plugins", plugin, "containerd"), "default_runtime_name", wants.default)]
            own.append((("plugins", plugin), "enable_cdi", wants.cdi or None))
            for table, key, value in own:
                if value is not None and render.value_at(tree, (*table, key)) == value:
                    edits.append({"op": "unset", "file": self._RENDERED, "table": toml_key(table), "key": key})
        return {self._RENDERED: render.edited(text, edits, self._RENDERED)} if edits else {}

    def carriers(self, stage: Stage, merged: Merged) -> Texts:
        return {merged.path: merged.text, self._DROP_IN: render.drop_in_text(merged.wanted, merged.version, merged.plugin)}


def find(node: t.Mapping[str, t.Any], root: str, texts: t.Mapping[str, str]) -> Place:
    """The place for the texts of this node."""
    kind = str(node.get("distribution") or "plain")
    if kind in ("k3s", "rke2") and "/rancher/" in root:
        return Rancher(kind, root)
    if kind == "microk8s" and "/microk8s/" in root:
        return MicroK8s(kind, root)
    if kind == "k0s" and (texts.get(root) or "").startswith("# k0s_managed=true") and K0s._RENDERED in texts:
        return K0s(kind, root)
    return Kubespray(kind, root) if kind == "kubespray" else Place(kind, root)


__all__ = ("K0s", "Kubespray", "Merged", "MicroK8s", "Place", "Rancher", "Spot", "find")
