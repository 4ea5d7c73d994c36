# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One configuration file as text, tree and declarations.

A *declaration* is a table that names a handler, wherever it stands and however it is spelled: what a person wrote.
Whether a daemon reads it is not decided here.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils import toml_spans
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import suggest
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import (
    NEW_IMAGES,
    NEW_RUNTIME,
    OLD_CRI,
    SHORT_CRI,
)

Tree = t.Dict[str, t.Any]
KeyPath = t.Tuple[str, ...]

BOM = "\ufeff"

#: Tables within tables, arrays included; a deeper text is not read.
MAX_DEPTH = toml_spans.MAX_DEPTH
_TOO_DEEP = "it is nested more than %d levels deep" % MAX_DEPTH

#: Plugin ids that carry (or could be taken to carry) handlers, and what this collection calls them.
PLUGIN_KINDS = {SHORT_CRI: "short", OLD_CRI: "old", NEW_RUNTIME: "new", NEW_IMAGES: "images"}

#: Keys that show a table to be a handler's even where its parent is misspelled.
_HANDLER_MARKS = ("runtime_type", "runtime_engine", "privileged_without_host_devices")
_LEGACY_TABLES = ("default_runtime", "untrusted_workload_runtime")

_HEADER = re.compile(r"^[ \t]*(\[[^\[\]\n{}]+\])[ \t]*(?:#.*)?$", re.MULTILINE)
#: Characters that TOML forbids and the readers of 1.x let pass (measured on 1.4, 1.6 and 1.7).
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_VERSION_LINE = re.compile(r"^version[ \t]*=[ \t]*(\d+)", re.MULTILINE)


class Declaration(t.NamedTuple):
    """A handler's table in one file."""

    handler: str
    file: str
    line: int
    #: the whole key path of the table
    path: KeyPath
    #: short, old, new, images, unquoted (a plugin id without quotes), unknown (another id), none (not below plugins)
    kind: str
    #: the plugin id as it was meant: ``io.containerd.grpc.v1.cri`` also for the unquoted form
    plugin: str
    #: right (``containerd.runtimes``), promoted (``runtimes`` directly below the plugin), wrong
    level: str
    body: Tree

    @property
    def table(self) -> str:
        """The TOML header of the table, without brackets."""
        return toml_key(self.path)


def toml_key(path: t.Iterable[str]) -> str:
    """A key path in TOML's spelling, with quotes where they are needed."""
    parts = []
    for part in path:
        bare = re.fullmatch(r"[A-Za-z0-9_-]+", part)
        parts.append(part if bare else '"%s"' % part.replace("\\", "\\\\").replace('"', '\\"'))
    return ".".join(parts)


class Document:
    """A file's text and what can be read from it without knowing the daemon.

    :ivar path: absolute path on the node.
    :ivar text: the text as captured (masked), a byte order mark included.
    :ivar tree: the parsed tables; None when no release reads the text as TOML.
    :ivar error: why it is not TOML by the standard (with the line), else None. Where there is a tree all the same,
        containerd 1.x reads the text (control characters, a carriage return alone, bytes that are no UTF-8).
    :ivar error_line: the line of that error, 0 where none is known.
    :ivar bom: the text starts with a UTF-8 byte order mark.
    """

    def __init__(self, path: str, text: str, not_utf8: t.Optional[str] = None) -> None:
        self.path = path
        self.text = text
        self.bom = text.startswith(BOM)
        self.tree: t.Optional[Tree] = None
        self.error: t.Optional[str] = None
        self.error_line = 0
        self._lines: t.Optional[t.Dict[KeyPath, int]] = None
        self._declarations: t.Optional[t.List[Declaration]] = None
        self._parse(not_utf8)

    def _parse(self, not_utf8: t.Optional[str]) -> None:
        text = self.text[1:] if self.bom else self.text
        self.tree, self.error = _loads(text)
        if self.tree is None:
            self.tree, _still = _loads(_CONTROL.sub(" ", re.sub("\r(?!\n)", "\n", text)))
        if not_utf8 is not None:
            self.error = not_utf8
            self.tree = None if "UTF-16" in not_utf8 else self.tree
        found = re.search(r"line (\d+)", self.error or "")
        self.error_line = int(found.group(1)) if found else 0
        if not_utf8 is not None and "\ufffd" in text:
            self.error_line = text.count("\n", 0, text.index("\ufffd")) + 1

    def renamed(self, path: str) -> Document:
        """The same text under another path (a symbolic link's)."""
        other = type(self)(path, self.text)
        other.tree, other.error, other.error_line = self.tree, self.error, self.error_line
        return other

    @property
    def stated_version(self) -> t.Optional[int]:
        """The file's own ``version``; None where it states none, or where it cannot be read."""
        if self.tree is None:
            found = _VERSION_LINE.search(self.text)
            return int(found.group(1)) if found else None
        value = self.tree.get("version")
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def line_of(self, path: t.Iterable[str]) -> int:
        """The line of a table or key.

        A table without a header of its own has the line of the first thing below it; what is not there at all has the
        line of the nearest table around it. 0: unknown.
        """
        wanted = tuple(path)
        lines = self._line_table()
        if wanted not in lines:
            below = [line for other, line in lines.items() if other[: len(wanted)] == wanted]
            if below:
                return min(below)
        while wanted:
            if wanted in lines:
                return lines[wanted]
            wanted = wanted[:-1]
        return 0

    def _line_table(self) -> t.Dict[KeyPath, int]:
        if self._lines is None:
            self._lines = {}
            for path, line in self._scanned_lines():
                self._lines.setdefault(path, line)
        return self._lines

    def _scanned_lines(self) -> t.Iterator[t.Tuple[KeyPath, int]]:
        for path, line, _value in self._entries():
            yield path, line

    def _entries(self) -> t.List[t.Tuple[KeyPath, int, t.Any]]:
        """(path, line, value) of each header and key; value is {} for a table. Also of a text that is not TOML."""
        try:
            entries = toml_spans.scan(self.text)
        except toml_spans.TomlScanError:
            return _headers_of(self.text)
        found = []
        for entry in entries:
            if entry.kind == "element" or any(isinstance(part, int) for part in entry.path):
                continue
            is_table = entry.kind != "value" or entry.form == "inline_table"
            value: t.Any = {} if is_table else (entry.string if entry.string is not None else entry.raw)
            found.append((t.cast(KeyPath, entry.path), entry.line, value))
        return found

    @property
    def declarations(self) -> t.List[Declaration]:
        """Every handler that the text names, in file order."""
        if self._declarations is None:
            tree = self.tree if self.tree is not None else lenient_tree(self._entries())
            found = list(_declared(tree, (), self))
            self._declarations = sorted(found, key=lambda item: item.line)
        return self._declarations

    def default_names(self) -> t.List[t.Tuple[str, KeyPath]]:
        """Every ``default_runtime_name`` written below a CRI plugin's ``containerd`` table, with its key path."""
        tree = self.tree if self.tree is not None else lenient_tree(self._entries())
        return list(_defaults(tree, ()))


def _loads(text: str) -> t.Tuple[t.Optional[Tree], t.Optional[str]]:
    import tomllib  # controller only: Python 3.11 and later

    if _has_endless_key(text):
        return None, _TOO_DEEP
    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        return None, str(error) or type(error).__name__
    return (None, _TOO_DEEP) if _is_too_deep(tree) else (tree, None)


def _has_endless_key(text: str) -> bool:
    """A dotted key of very many parts, for which tomllib takes the square of their number (minutes for a file of 100 kB)."""
    if all(line.count(".") < MAX_DEPTH for line in text.split("\n")):
        return False
    try:
        return any(len(entry.path) > MAX_DEPTH for entry in toml_spans.scan(text))
    except toml_spans.TomlScanError:
        return True


def _is_too_deep(tree: Tree) -> bool:
    """No configuration is nested so deeply, and what walks over a tree must not fall."""
    level: t.List[t.Any] = [tree]
    for _depth in range(MAX_DEPTH):
        level = [inner for node in level for inner in (node.values() if isinstance(node, dict) else node) if isinstance(inner, (dict, list))]
        if not level:
            return False
    return True


def _headers_of(text: str) -> t.List[t.Tuple[KeyPath, int, t.Any]]:
    """The table headers of a text that cannot be scanned (half-written, a template): each line on its own."""
    found: t.List[t.Tuple[KeyPath, int, t.Any]] = []
    for match in _HEADER.finditer(text):
        try:
            entries = toml_spans.scan(match.group(1) + "\n")
        except toml_spans.TomlScanError:
            continue
        line = text.count("\n", 0, match.start(1)) + 1
        found.extend((t.cast(KeyPath, entry.path), line, {}) for entry in entries if entry.kind == "table")
    return found


def lenient_tree(entries: t.List[t.Tuple[KeyPath, int, t.Any]]) -> Tree:
    """A tree of everything that is written, duplicates merged: for declarations only, never for what is loaded."""
    tree: Tree = {}
    for path, _line, value in entries:
        if len(path) > MAX_DEPTH:
            continue
        node = tree
        for part in path[:-1]:
            child = node.setdefault(part, {})
            if not isinstance(child, dict):
                break
            node = child
        else:
            if not (isinstance(value, dict) and isinstance(node.get(path[-1]), dict)):
                node[path[-1]] = value
    return tree


def _is_runtimes_table(key: str, value: Tree) -> bool:
    """``runtimes`` in any letter case, or a slip of the pen whose content shows what was meant."""
    if key.lower() == "runtimes":
        return True
    return _holds_handlers(value) and suggest.nearest(key.lower(), ["runtimes"]) is not None


def _declared(node: Tree, path: KeyPath, document: Document) -> t.Iterator[Declaration]:
    if path and path[0].lower() == "crio":
        return
    for key, value in node.items():
        here = path + (key,)
        if not isinstance(value, dict):
            continue
        if _is_runtimes_table(key, value):
            for handler, body in value.items():
                if isinstance(body, dict):
                    yield _declaration(handler, body, here + (handler,), document)
        elif key.lower() not in _LEGACY_TABLES and any(mark in value for mark in _HANDLER_MARKS):
            yield _declaration(key, value, here, document)
        else:
            yield from _declared(value, here, document)


def _holds_handlers(node: Tree) -> bool:
    return any(isinstance(body, dict) and "runtime_type" in body for body in node.values())


def dotted_children(body: Tree) -> t.List[str]:
    """Tables below a handler that an unquoted dot in a name made: ``[…runtimes.kata.qemu]`` is handler kata, key qemu."""
    return [
        key
        for key, value in body.items()
        if isinstance(value, dict) and key != "options" and any(mark in value for mark in _HANDLER_MARKS)
    ]


def _declaration(name: str, body: Tree, path: KeyPath, document: Document) -> Declaration:
    kind, plugin, rest = _plugin_of(path)
    before_runtimes = tuple(part.lower() for part in rest)
    level = "wrong"
    if before_runtimes[:2] == ("containerd", "runtimes"):
        level = "right"
    elif before_runtimes[:1] == ("runtimes",):
        level = "promoted"
    return Declaration(name, document.path, document.line_of(path), path, kind, plugin, level, body)


def _plugin_of(path: KeyPath) -> t.Tuple[str, str, KeyPath]:
    """(kind, plugin id, the rest of the path behind it) of a key path."""
    if len(path) < 2 or path[0].lower() != "plugins":
        return "none", "", path
    if path[1] == "io" and len(path) > 4:
        for size in (5, 6):
            joined = ".".join(path[1 : 1 + size])
            if joined in PLUGIN_KINDS:
                return "unquoted", joined, path[1 + size :]
        return "unquoted", ".".join(path[1:6]), path[6:]
    return PLUGIN_KINDS.get(path[1], "unknown"), path[1], path[2:]


def _defaults(node: Tree, path: KeyPath) -> t.Iterator[t.Tuple[str, KeyPath]]:
    for key, value in node.items():
        here = path + (key,)
        if isinstance(value, dict):
            yield from _defaults(value, here)
        elif key.lower() == "default_runtime_name" and isinstance(value, str) and path[:1] != ("crio",):
            yield value, here


__all__ = ("BOM", "Declaration", "Document", "KeyPath", "PLUGIN_KINDS", "Tree", "dotted_children", "lenient_tree", "toml_key")
