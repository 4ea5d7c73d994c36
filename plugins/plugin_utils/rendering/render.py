# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The texts that bring handlers about: a drop-in of ours, or edits of a file that is there."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import comparison
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import toml_key
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import NEW_IMAGES
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.fix_edits import apply_edits
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import marks
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.ours import Wanted
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.toml_text import (
    handler_path,
    handlers_text,
    table_text,
)

Table = t.Dict[str, t.Any]
Edit = t.Dict[str, t.Any]

_DROP_IN_HEADER = marks.OWN_FILE + " from the declared handlers. Changes here are overwritten.\n"
_ROOT_HEADER = marks.OWN_FILE + ", which found no configuration file here.\n"


def drop_in_text(wanted: Wanted, version: int, plugin: str) -> str:
    """Our one drop-in: everything that is wanted, in the version and under the plugin name of the root file."""
    return "%sversion = %d\n\n%s" % (_DROP_IN_HEADER, version, tables_text(wanted, plugin))


def tables_text(wanted: Wanted, plugin: str) -> str:
    """Everything that is wanted as tables with headers."""
    parts = []
    if wanted.cdi:
        parts.append(table_text(("plugins", plugin), {"enable_cdi": True}))
    if wanted.default:
        parts.append(table_text(("plugins", plugin, "containerd"), {"default_runtime_name": wanted.default}))
    if wanted.handlers:
        parts.append(handlers_text(plugin, wanted.handlers))
    if wanted.pulls:
        parts.append(_pulls_text(wanted.pulls))
    return "\n".join(parts)


def _pulls_text(pulls: t.Mapping[str, str]) -> str:
    path = ("plugins", NEW_IMAGES, "runtime_platforms")
    return "\n".join(table_text((*path, name), {"snapshotter": pulls[name]}) for name in sorted(pulls))


def created_root(text: str) -> str:
    """A root file where there was none; lines that people add to it later stay when ours goes."""
    return "%s%s\n%s%s\n" % (_ROOT_HEADER, marks.BEGIN_LINE, text, marks.END_LINE)


def merge_edits(wanted: Wanted, tree: Table, plugin: str, path: str) -> t.List[Edit]:
    """The edits that bring everything wanted into the plugin's section of a file."""
    edits: t.List[Edit] = []
    base = ("plugins", plugin)
    if wanted.cdi:
        edits.append(_set(path, base, "enable_cdi", True))
    if wanted.default:
        edits.append(_set(path, (*base, "containerd"), "default_runtime_name", wanted.default))
    fresh: t.Dict[str, Table] = {}
    for name in sorted(wanted.handlers):
        present = value_at(tree, handler_path(plugin, name))
        if isinstance(present, dict):
            edits += _table_edits(path, handler_path(plugin, name), present, wanted.handlers[name])
        else:
            fresh[name] = wanted.handlers[name]
    if fresh:
        edits.append({"op": "append", "file": path, "table": "", "key": "", "value": handlers_text(plugin, fresh)})
    if wanted.pulls:
        edits.append({"op": "append", "file": path, "table": "", "key": "", "value": _pulls_text(wanted.pulls)})
    return edits


def _table_edits(path: str, table: t.Tuple[str, ...], present: Table, body: Table) -> t.List[Edit]:
    edits = []
    for key, value in body.items():
        if key == "options":
            options = present.get("options")
            edits += _table_edits(path, (*table, "options"), options if isinstance(options, dict) else {}, value)
        elif key not in present or present[key] != value:
            edits.append(_set(path, table, key, value))
    return edits


def _set(path: str, table: t.Tuple[str, ...], key: str, value: t.Any) -> Edit:
    return {"op": "set", "file": path, "table": toml_key(table), "key": key, "value": value}


def edited(text: str, edits: t.Sequence[Edit], path: str, expected: t.Optional[Table] = None) -> str:
    """The text with the edits done, proved to mean what it should and nothing else.

    :param expected: the tree that must come out; None: what the operations set, unset, append, add and drop_table say.
    :raises RuntimeGateError: the text cannot be edited so (an inline table, tables in an unusual order).
    """
    if not edits:
        return text
    try:
        result = apply_edits({path: text}, edits)[path]
        tree = marks.tree_of(result, path)
    except RuntimeGateError as error:
        raise RuntimeGateError(
            "%s cannot be edited in place: %s. Write the tables concerned with headers of their own, or use another mode"
            % (path, error)
        ) from error
    wanted = expected if expected is not None else _applied(marks.tree_of(text, path), edits)
    if tree != wanted:
        raise RuntimeGateError(
            "%s cannot be edited in place: its tables are written in a way that this edit would change. Write them with "
            "headers of their own, or use another mode" % path
        )
    return result


def _applied(tree: Table, edits: t.Sequence[Edit]) -> Table:
    """The tree after the edits, done on the data instead of the text."""
    import copy

    tree = copy.deepcopy(tree)
    for edit in edits:
        _EFFECTS.get(edit["op"], _effect_of_set)(tree, _path_of(str(edit["table"])), edit)
    gone = [_path_of(str(edit["table"])) for edit in edits if edit["op"] == "drop_table"]
    return _without_emptied(tree, gone)


def _effect_of_set(tree: Table, path: t.Tuple[str, ...], edit: Edit) -> None:
    _made(tree, path)[edit["key"]] = edit["value"]


def _effect_of_append(tree: Table, path: t.Tuple[str, ...], edit: Edit) -> None:
    _add_tables(tree, marks.tree_of(str(edit["value"]), "the new tables"))


def _effect_of_add(tree: Table, path: t.Tuple[str, ...], edit: Edit) -> None:
    values = _made(tree, path).setdefault(edit["key"], [])
    values += [] if edit["value"] in values else [edit["value"]]


def _effect_of_drop_table(tree: Table, path: t.Tuple[str, ...], edit: Edit) -> None:
    parent = value_at(tree, path[:-1])
    if isinstance(parent, dict):
        parent.pop(path[-1], None)


def _effect_of_unset(tree: Table, path: t.Tuple[str, ...], edit: Edit) -> None:
    _made(tree, path).pop(edit["key"], None)


_EFFECTS: t.Dict[str, t.Callable[[Table, t.Tuple[str, ...], Edit], None]] = {
    "append": _effect_of_append,
    "add": _effect_of_add,
    "drop_table": _effect_of_drop_table,
    "unset": _effect_of_unset,
}


def _without_emptied(tree: Table, dropped: t.Sequence[t.Tuple[str, ...]]) -> Table:
    """A table that existed only through a table below it goes with that one: text has no empty implicit tables."""
    for path in dropped:
        for size in range(len(path) - 1, 0, -1):
            parent, child = value_at(tree, path[: size - 1]), value_at(tree, path[:size])
            if child != {} or not isinstance(parent, dict):
                break
            del parent[path[size - 1]]
    return tree


def _path_of(header: str) -> t.Tuple[str, ...]:
    from ansible_collections.kubenode.runtime_gate.plugins.module_utils import toml_spans

    return tuple(str(part) for part in toml_spans.scan("[%s]\n" % header)[0].path) if header else ()


def _made(tree: Table, path: t.Tuple[str, ...]) -> Table:
    for part in path:
        tree = tree.setdefault(part, {})
    return tree


def _add_tables(tree: Table, more: Table) -> None:
    for key, value in more.items():
        if isinstance(value, dict) and isinstance(tree.get(key), dict):
            _add_tables(tree[key], value)
        else:
            tree[key] = value


def value_at(tree: t.Any, path: t.Iterable[str]) -> t.Any:
    """What stands at a key path, or None."""
    for part in path:
        if not isinstance(tree, dict) or part not in tree:
            return None
        tree = tree[part]
    return tree


def satisfied(wanted: Table, actual: t.Optional[Table]) -> bool:
    """Everything that a table sets is so in the actual handler; a false, 0 or empty value counts as not set."""
    if actual is None:
        return False
    for key, value in wanted.items():
        if key == "options":
            have = {str(name).lower(): item for name, item in (actual.get("options") or {}).items()}
            if any(comparison.plain(have.get(name.lower())) != comparison.plain(item) for name, item in value.items()):
                return False
        elif comparison.plain(_either(actual, key)) != comparison.plain(_either(wanted, key)):
            return False
    return True


def _either(table: Table, key: str) -> t.Any:
    """The value under the name of either generation."""
    if key in ("sandboxer", "sandbox_mode"):
        value = table.get("sandboxer") or table.get("sandbox_mode")
        return None if value == "podsandbox" else value
    return table.get(key)


__all__ = ("created_root", "drop_in_text", "edited", "merge_edits", "satisfied", "tables_text", "value_at")
