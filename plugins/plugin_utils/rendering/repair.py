# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root files that a start does not read as they are meant: found, and made loadable on request."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import toml_key
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.load import SERVER_KEYS, v1_plugin_name
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import (
    NEW_IMAGES,
    NEW_RUNTIME,
    OLD_CRI,
    SHORT_CRI,
    LineRules,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import marks, render
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.stage import Stage

Table = t.Dict[str, t.Any]
Edit = t.Dict[str, t.Any]

#: A comment of ours under a repaired file: what was wrong with it. It tells removal what it does not undo.
_REPAIRED = "# Repaired by kubenode.runtime_gate: "
#: What stands in disabled_plugins where CRI is switched off.
_CRI_NAMES = (SHORT_CRI, OLD_CRI, NEW_RUNTIME, NEW_IMAGES)


class Ailment(t.NamedTuple):
    """What is wrong with a root file, in words, and the edits that mend it."""

    reason: str
    edits: t.List[Edit]


def ailments(text: str, path: str, rules: LineRules) -> t.List[Ailment]:
    """What keeps a root file's CRI part from being loaded by this line as it is meant, worst first.

    :raises RuntimeGateError: the text is not TOML.
    """
    tree = marks.tree_of(text, path)
    found = [
        _short_names(tree, path, rules),
        _no_version(tree, path, rules),
        _both_names(tree, path, rules),
        _disabled(tree, path),
    ]
    return [ailment for ailment in found if ailment is not None]


def _plugins(tree: Table) -> Table:
    plugins = tree.get("plugins")
    return plugins if isinstance(plugins, dict) else {}


def _version(tree: Table) -> int:
    version = tree.get("version")
    return version if isinstance(version, int) else 0


def _set(path: str, key: str, value: t.Any) -> Edit:
    return {"op": "set", "file": path, "table": "", "key": key, "value": value}


def _rename(path: str, old: t.Sequence[str], new: t.Sequence[str]) -> Edit:
    return {"op": "rename_table", "file": path, "table": toml_key(old), "key": "", "value": toml_key(new)}


def _short_names(tree: Table, path: str, rules: LineRules) -> t.Optional[Ailment]:
    """Names of version 1. 2.3 and later migrate them; 1.x reads them, but every tool writes long names there."""
    version = _version(tree)
    if SHORT_CRI not in _plugins(tree) or (rules.migration == "per_file" and version <= 1):
        return None
    return Ailment("it configures CRI under the short name plugins.cri", _to_version_2(tree, path))


def _to_version_2(tree: Table, path: str) -> t.List[Edit]:
    edits = [
        _rename(path, ("plugins", name), ("plugins", v1_plugin_name(name))) for name in _plugins(tree) if "." not in name
    ]
    for key in ("disabled_plugins", "required_plugins"):
        names = tree.get(key)
        longer = [v1_plugin_name(name) for name in names] if isinstance(names, list) else []
        if longer and longer != names:
            edits.append(_set(path, key, longer))
    return edits + ([_set(path, "version", 2)] if _version(tree) < 2 else [])


def _no_version(tree: Table, path: str, rules: LineRules) -> t.Optional[Ailment]:
    """Long names count in files of version 2 and later only."""
    plugins = _plugins(tree)
    if _version(tree) >= 2 or SHORT_CRI in plugins or rules.migration == "per_file":
        return None
    has_old = bool(set(plugins.get(OLD_CRI) or {}) - set(SERVER_KEYS))
    strange = not rules.modern and (plugins or any(tree.get(key) for key in ("disabled_plugins", "required_plugins")))
    if not has_old and not strange:
        return None
    return Ailment("it states no version, so its [plugins] are not read as they are meant", _to_version_2(tree, path))


def _both_names(tree: Table, path: str, rules: LineRules) -> t.Optional[Ailment]:
    """Handlers under the old and the new plugin name in one file: only one of the two is read."""
    old, new = (_handlers(tree, name) for name in (OLD_CRI, NEW_RUNTIME))
    if not old or not new:
        # 1.x passes over new names alone: they keep nothing from being loaded, and stand ready for an upgrade.
        return None
    lost, kept, source, target = (old, new, OLD_CRI, NEW_RUNTIME) if rules.modern else (new, old, NEW_RUNTIME, OLD_CRI)
    edits = []
    for name in sorted(set(lost) - set(kept)):
        edits.append(_rename(path, render.handler_path(source, name), render.handler_path(target, name)))
    edits += [
        {"op": "drop_table", "file": path, "table": toml_key(render.handler_path(source, name)), "key": ""}
        for name in sorted(set(lost) & set(kept))
    ]
    return Ailment("it has handlers under %s, which are not read because others stand under %s" % (source, target), edits)


def _handlers(tree: Table, plugin: str) -> Table:
    found = render.value_at(tree, render.handler_path(plugin))
    return found if isinstance(found, dict) else {}


def _disabled(tree: Table, path: str) -> t.Optional[Ailment]:
    names = tree.get("disabled_plugins")
    off = [name for name in names if name in _CRI_NAMES] if isinstance(names, list) else []
    if not off:
        return None
    left = [name for name in t.cast(t.List[str], names) if name not in off]
    return Ailment("CRI is switched off by disabled_plugins", [_set(path, "disabled_plugins", left)])


def repaired_root(stage: Stage, repair: bool, notes: t.List[str]) -> t.Optional[str]:
    """The root file's text made loadable; None: nothing is wrong with it.

    :raises RuntimeGateError: something is wrong, and ``repair`` was not asked for; or it cannot be mended in the text.
    """
    path = stage.root
    text = stage.text(path)
    rules = stage.load.rules
    version = _version(marks.tree_of(text, path)) if text else 0
    if not rules.modern and version > 2:
        raise RuntimeGateError(
            "%s has version %d, which containerd %s does not read as it is meant: give it version 2 and the plugin name %s, or "
            "upgrade containerd" % (path, version, rules.name, OLD_CRI)
        )
    found = ailments(text, path, rules) if text else []
    if not found:
        return None
    if not repair:
        raise RuntimeGateError(
            "%s cannot be built on: %s. runtime_gate_repair: true mends it" % (path, "; ".join(ailment.reason for ailment in found))
        )
    if text is None:
        raise RuntimeGateError("%s cannot be repaired: its text is not known" % path)
    mended: t.List[str] = []
    for _round in range(4):
        found = ailments(text, path, rules)
        if not found:
            return _signed(text, mended)
        mended.append(found[0].reason)
        notes.append("%s is repaired: %s" % (path, found[0].reason))
        text = _mended(text, path, found[0])
    raise RuntimeGateError("%s cannot be repaired in its text: %s" % (path, found[0].reason))


def _signed(text: str, reasons: t.Sequence[str]) -> str:
    """The text with a comment for each repair."""
    ending = "\r\n" if "\r\n" in text else "\n"
    text += "" if text.endswith("\n") else ending
    return text + "".join(_REPAIRED + reason + ending for reason in reasons if _REPAIRED + reason not in text)


def unsigned(text: str) -> t.Tuple[str, t.List[str]]:
    """(the text without our comments, what each of them says)."""
    lines = text.split("\n")
    reasons = [line.rstrip("\r")[len(_REPAIRED) :] for line in lines if line.startswith(_REPAIRED)]
    return "\n".join(line for line in lines if not line.startswith(_REPAIRED)), reasons


def _mended(text: str, path: str, ailment: Ailment) -> str:
    from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.fix_edits import apply_edits

    mended = apply_edits({path: text}, ailment.edits)[path]
    marks.tree_of(mended, path)
    return mended


__all__ = ("Ailment", "ailments", "repaired_root", "unsigned")
