# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``migrate: 3``: a root file and what it imports, moved up to version 3 in the text, comments kept.

What each key's new home is, core.load.migrate_cri knows (it is what containerd does in memory); here it is done to the
lines, and the result is compared with it.
"""

from __future__ import annotations

import posixpath
import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils import toml_spans
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import toml_key
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.load import (
    IMAGE_CONTAINERD_KEYS,
    IMAGE_KEYS,
    SERVER_KEYS,
    migrate_cri,
    v1_plugin_name,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import (
    NEW_IMAGES,
    NEW_RUNTIME,
    OLD_CRI,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.secrets import PLACEHOLDER
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.fix_edits import apply_edits
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import marks
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.stage import Stage, Texts

Table = t.Dict[str, t.Any]
Path = t.Tuple[str, ...]

#: Where migrated drop-ins lie: the present root file does not read it.
_DIRECTORY = "conf-v3.d"


def needs_migration(tree: Table) -> bool:
    """The file is of an older version than 3, or has the old plugin's tables."""
    version = tree.get("version")
    plugins = tree.get("plugins")
    old = plugins.get(OLD_CRI) if isinstance(plugins, dict) else None
    is_old = isinstance(version, int) and version < 3
    return is_old or (isinstance(old, dict) and bool(set(old) - set(SERVER_KEYS)))


def migrated(text: str, path: str, is_root: bool) -> str:
    """The text in version 3: the same tables and keys in their new homes.

    :raises RuntimeGateError: it is written in a way that cannot be moved line by line.
    """
    tree = marks.tree_of(text, path)
    expected = _expected(tree, is_root)
    text = _long_names(text, tree, path)
    if is_root or "version" in tree:
        text = apply_edits({path: text}, [{"op": "set", "file": path, "table": "", "key": "version", "value": 3}])[path]
    moved = _moved(text)
    if _without_empty(marks.tree_of(moved, path)) != _without_empty(expected):
        raise RuntimeGateError(
            "%s cannot be migrated in its text: its CRI tables are written in an unusual way (inline tables, dotted keys, or "
            "old and new plugin names side by side). Give them headers of their own, or migrate it by hand" % path
        )
    return moved


def _expected(tree: Table, is_root: bool) -> Table:
    plugins = {v1_plugin_name(name): body for name, body in (tree.get("plugins") or {}).items()}
    result = dict(tree, plugins=migrate_cri(plugins))
    for key in ("disabled_plugins", "required_plugins"):
        if key in tree:
            result[key] = [v1_plugin_name(name) for name in tree[key]]
    if is_root or "version" in tree:
        result["version"] = 3
    return result


def _without_empty(value: t.Any) -> t.Any:
    """Empty tables count as absent: a header that lost all its keys says nothing."""
    if not isinstance(value, dict):
        return value
    found = {key: _without_empty(item) for key, item in value.items()}
    return {key: item for key, item in found.items() if item != {}}


def _long_names(text: str, tree: Table, path: str) -> str:
    edits: t.List[Table] = []
    for name in tree.get("plugins") or {}:
        if "." not in name:
            new = toml_key(("plugins", v1_plugin_name(name)))
            edits.append({"op": "rename_table", "file": path, "table": toml_key(("plugins", name)), "key": "", "value": new})
    for key in ("disabled_plugins", "required_plugins"):
        longer = [v1_plugin_name(name) for name in tree.get(key) or []]
        if longer != (tree.get(key) or []):
            edits.append({"op": "set", "file": path, "table": "", "key": key, "value": longer})
    return apply_edits({path: text}, edits)[path] if edits else text


# ---- moving lines


def _home(path: Path) -> Path:
    """The new path of a key or table below the old plugin."""
    below = path[2:]
    if not below:
        return ("plugins", NEW_RUNTIME)
    if below[0] in SERVER_KEYS:
        return path
    if below[0] == "sandbox_image":
        return ("plugins", NEW_IMAGES, "pinned_images", "sandbox")
    if below[0] in IMAGE_KEYS:
        return ("plugins", NEW_IMAGES, *below)
    if below[0] == "containerd" and len(below) > 1 and below[1] in IMAGE_CONTAINERD_KEYS:
        return ("plugins", NEW_IMAGES, *below[1:])
    if below[:2] == ("containerd", "runtimes") and len(below) == 4 and below[3] == "sandbox_mode":
        return ("plugins", NEW_RUNTIME, *below[:3], "sandboxer")
    return ("plugins", NEW_RUNTIME, *below)


class _Block(t.NamedTuple):
    """A table with a header: the offsets of its header's line, of the header itself, of its first line and of its end."""

    path: Path
    start: int
    header: t.Tuple[int, int]
    body: int
    end: int


class _Statement(t.NamedTuple):
    """A key with its value, in whole lines, and the comments right above it."""

    path: Path
    start: int
    end: int


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def _line_end(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end + 1


def _blocks(text: str) -> t.List[_Block]:
    headers = [entry for entry in toml_spans.scan(text) if entry.kind in ("table", "array_table")]
    starts = [_line_start(text, entry.start) for entry in headers] + [len(text)]
    return [
        _Block(tuple(map(str, one.path)), start, (one.start, one.end), _line_end(text, one.end), end)
        for one, start, end in zip(headers, starts, starts[1:])
    ]


def _statements(text: str, block: _Block) -> t.List[_Statement]:
    found = []
    floor = block.body
    for entry in toml_spans.scan(text):
        inside = block.body <= entry.start < block.end
        if inside and entry.kind == "value" and tuple(entry.path[:-1]) == block.path:
            start = _line_start(text, entry.start)
            while start > floor and text[_line_start(text, start - 1) : start].lstrip().startswith("#"):
                start = _line_start(text, start - 1)
            floor = _line_end(text, entry.end)
            found.append(_Statement(tuple(map(str, entry.path)), start, floor))
    return found


def _moved(text: str) -> str:
    """Each table of the old plugin under its new header; keys that go elsewhere are put into tables behind them."""
    pieces: t.List[str] = []
    strays: t.Dict[Path, t.List[str]] = {}
    position = 0
    for block in _blocks(text):
        if block.path[:2] == ("plugins", OLD_CRI):
            pieces += [text[position : block.start], _moved_block(text, block, strays)]
            position = block.end
    moved = "".join(pieces) + text[position:]
    for table in sorted(strays):
        moved = _placed(moved, table, "".join(strays[table]))
    return moved


def _moved_block(text: str, block: _Block, strays: t.Dict[Path, t.List[str]]) -> str:
    statements = _statements(text, block)
    homes = [_home(statement.path) for statement in statements]
    tables = {home[:-1] for home in homes}
    # The old plugin keeps its server keys: a table of nothing else stays where it is.
    target = block.path if tables == {block.path} else _home(block.path)
    body = ""
    position = block.body
    for statement, home in zip(statements, homes):
        body += text[position : statement.start]
        line = _renamed(text[statement.start : statement.end], statement.path[-1], home[-1])
        if home[:-1] == target:
            body += line
        else:
            strays.setdefault(home[:-1], []).append(line if line.endswith("\n") else line + "\n")
        position = statement.end
    body += text[position : block.end]
    if tables and target not in tables:
        # All its keys went elsewhere: what is left are comments.
        return body
    return text[block.start : block.header[0]] + "[%s]" % toml_key(target) + text[block.header[1] : block.body] + body


def _renamed(statement: str, old: str, new: str) -> str:
    if old == new:
        return statement
    return re.sub(r"""(?m)^(\s*["']?)%s(["']?\s*=)""" % re.escape(old), r"\g<1>%s\g<2>" % new, statement, count=1)


def _placed(text: str, table: Path, lines: str) -> str:
    """Lines under the header of a table, which is made where it is not there."""
    block = next((block for block in _blocks(text) if block.path == table), None)
    if block is None:
        return "%s%s\n[%s]\n%s" % (text, "" if text.endswith("\n") else "\n", toml_key(table), lines)
    gap = "" if text[: block.body].endswith("\n") else "\n"
    return text[: block.body] + gap + lines + text[block.body :]


# ---- the whole tree


def migrated_files(stage: Stage, notes: t.List[str]) -> Texts:
    """The root file in version 3, its drop-ins in version 3 under new names, and the old drop-ins gone.

    The present root file does not read the new names, so that one rename of the root file switches all of them.

    :raises RuntimeGateError: a file cannot be moved, or something else would be loaded.
    """
    load = stage.load
    root = stage.root
    text = stage.text(root)
    if text is None:
        return {}
    files = [document for document in load.order if needs_migration(document.tree or {})]
    if not files:
        return {}
    texts: Texts = {root: migrated(text, root, True)}
    drop_ins = [document.path for document in files if document.path != root]
    new_root = str(texts[root])
    for number, path in enumerate(drop_ins):
        new = _new_name(stage, path, number, drop_ins)
        texts[new] = _moved_drop_in(stage, path)
        texts[path] = None
        new_root = _imported_anew(stage, new_root, path, new)
    texts[root] = new_root
    notes.append(
        "%s moves up to version 3%s" % (root, "".join(", %s with it" % path for path in drop_ins))
    )
    return texts


def _new_name(stage: Stage, path: str, number: int, all_paths: t.List[str]) -> str:
    name = posixpath.basename(path)
    if len({posixpath.dirname(other) for other in all_paths}) > 1:
        # From several directories: the number keeps the order in which they were loaded.
        name = "%02d-%s" % (number, name)
    new = posixpath.join(posixpath.dirname(stage.root), _DIRECTORY, name if name.endswith(".toml") else name + ".toml")
    if stage.situation.files.exists(new):
        raise RuntimeGateError("%s is there already; runtime_gate_migrate: 3 would write it. Remove it first" % new)
    return new


def _moved_drop_in(stage: Stage, path: str) -> str:
    text = stage.text(path) or ""
    if PLACEHOLDER.search(text):
        raise RuntimeGateError(
            "%s holds secrets, which do not leave their file, and runtime_gate_migrate: 3 would have to move it. Migrate it by hand" % path
        )
    imports = marks.tree_of(text, path).get("imports") or []
    if any(not str(pattern).startswith("/") for pattern in imports):
        raise RuntimeGateError("%s has imports relative to itself, and runtime_gate_migrate: 3 would move it. Make them absolute" % path)
    return migrated(text, path, False)


def _imported_anew(stage: Stage, root_text: str, path: str, new: str) -> str:
    """The root file with an import of the new name; a literal import of the old one goes, since that file goes."""
    root = stage.root
    edits: t.List[Table] = []
    for use in stage.load.imports:
        if path in use.matches and not use.is_glob:
            if use.file != root:
                raise RuntimeGateError("%s imports %s by name, and runtime_gate_migrate: 3 would move that file" % (use.file, path))
            edits.append({"op": "discard", "file": root, "table": "", "key": "imports", "value": use.pattern})
    pattern = posixpath.join(posixpath.dirname(new), "*.toml")
    edits.append({"op": "add", "file": root, "table": "", "key": "imports", "value": pattern})
    return apply_edits({root: root_text}, edits)[root]


def prove_equal(before: Stage, after: Stage) -> None:
    """The migration changed nothing of what is loaded.

    :raises RuntimeGateError: it would.
    """
    first, second = before.load, after.load
    same = _without_empty(first.plugins) == _without_empty(second.plugins) and sorted(first.disabled) == sorted(second.disabled)
    if second.refusal is not None or second.undetermined is not None or not same:
        raise RuntimeGateError(
            "runtime_gate_migrate: 3 would change what is loaded%s: the files mix versions or plugin names, so that some of them are not read "
            "today. Mend that first (runtime_gate_repair: true, or the facts' faults)"
            % (" (%s)" % second.refusal.message if second.refusal is not None else "")
        )


__all__ = ("migrated", "migrated_files", "needs_migration", "prove_equal")
