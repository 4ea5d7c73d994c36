# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One configuration file of CRI-O: which handlers a person named in it, wherever the table stands.

Whether CRI-O reads the table is told by its ``level``: ``right`` below ``crio.runtime.runtimes``, in any letter case as
BurntSushi/toml has it; ``wrong`` anywhere else, which CRI-O drops without a word.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import suggest
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio import keys
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import (
    Declaration,
    Document,
    KeyPath,
    Tree,
    lenient_tree,
)

#: Where CRI-O reads handlers.
RUNTIMES: KeyPath = ("crio", "runtime", "runtimes")
#: Keys that show a table to be a handler's even where its place is wrong.
_HANDLER_MARKS = frozenset("runtime_path runtime_type runtime_root runtime_config_path monitor_path".split())


class CrioDocument(Document):
    """A file's text as CRI-O's configuration."""

    @property
    def declarations(self) -> t.List[Declaration]:
        """Every handler that the text names, in file order."""
        if self._declarations is None:
            tree = self.tree if self.tree is not None else lenient_tree(self._entries())
            self._declarations = sorted(_declared(tree, (), self), key=lambda item: item.line)
        return self._declarations

    def default_names(self) -> t.List[t.Tuple[str, KeyPath]]:
        """Every ``default_runtime`` that CRI-O would read, with its key path."""
        tree = self.tree if self.tree is not None else lenient_tree(self._entries())
        return [
            (value, path + (key,))
            for path, table in tables(tree, ("crio", "runtime"))
            for key, value in table.items()
            if key.lower() == "default_runtime" and isinstance(value, str)
        ]


def tables(tree: Tree, path: KeyPath) -> t.List[t.Tuple[KeyPath, Tree]]:
    """Every table at this path, in any letter case, with the path as it is written."""
    found: t.List[t.Tuple[KeyPath, Tree]] = [((), tree)]
    for part in path:
        found = [
            (here + (key,), value)
            for here, table in found
            for key, value in table.items()
            if key.lower() == part and isinstance(value, dict)
        ]
    return found


def is_right(path: t.Sequence[str]) -> bool:
    """A handler's table at this path is read."""
    return len(path) == len(RUNTIMES) + 1 and tuple(part.lower() for part in path[:-1]) == RUNTIMES


def is_own_table(path: t.Sequence[str]) -> bool:
    """A table of CRI-O's own, whose keys are settings."""
    names = tuple(part.lower() for part in path)
    if len(names) == 2 and names[0] == "crio":
        return names[1] in keys.TABLES
    return names in (("crio",), RUNTIMES, ("crio", "runtime", "workloads"))


def _declared(node: Tree, path: KeyPath, document: Document) -> t.Iterator[Declaration]:
    for key, value in node.items():
        here = path + (key,)
        if not isinstance(value, dict):
            continue
        if is_own_table(here):
            yield from _declared(value, here, document)
        elif is_right(here):
            yield _declaration(key, value, here, document)
            # A table below a handler's: an unquoted dot in its name, or a slip of the pen.
            yield from (item for item in _declared(value, here, document) if item.handler not in _OWN_TABLES)
        elif _HANDLER_MARKS & {name.lower() for name in value} or (_names_runtimes(path) and not _holds_handlers(value)):
            yield _declaration(key, value, here, document)
        else:
            yield from _declared(value, here, document)


#: Tables that a handler's table has of its own.
_OWN_TABLES = frozenset(("platform_runtime_paths", "default_annotations"))


def _names_runtimes(path: KeyPath) -> bool:
    """The path ends in ``runtimes``, or in what a person meant to be it."""
    if not path or is_own_table(path) and path[-1].lower() != "runtimes":
        return False
    return path[-1].lower() == "runtimes" or suggest.nearest(path[-1].lower(), ["runtimes"]) is not None


def _holds_handlers(node: Tree) -> bool:
    return any(isinstance(body, dict) for body in node.values())


def _declaration(name: str, body: Tree, path: KeyPath, document: Document) -> Declaration:
    level = "right" if is_right(path) else "wrong"
    return Declaration(name, document.path, document.line_of(path), path, "crio", "", level, body)


__all__ = ("CrioDocument", "RUNTIMES", "is_own_table", "is_right", "tables")
