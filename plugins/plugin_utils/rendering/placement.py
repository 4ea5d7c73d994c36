# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where on a node a handler's text has to lie: never in a file that a distribution renders at each start."""

from __future__ import annotations

import posixpath
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import go_glob
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import marks
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.stage import Stage, Texts

#: Sorted behind other tools' drop-ins: of two files of one directory, the later wins.
DROP_IN = "zz-runtime-gate.toml"
_CONF_D, _OWN_D = "conf.d", "runtime-gate.d"


class Spot(t.NamedTuple):
    """A place for our drop-in.

    :ivar pattern: the import that the root file needs for it; "": the root file reads it already.
    """

    path: str
    pattern: str


class Place:
    """A plain containerd: the root file belongs to the administrator, drop-ins lie in conf.d beside it."""

    #: a drop-in can be used here
    drop_ins = True

    def __init__(self, kind: str, root: str) -> None:
        self.kind = kind
        self.root = root
        self.notes: t.List[str] = []

    @property
    def merge_target(self) -> str:
        return self.root

    def may_edit(self, path: str) -> bool:
        """The file is the administrator's: it may be changed, with marks."""
        return path == self.root

    def spots(self, base: Stage, now: Stage) -> t.Iterator[Spot]:
        """Places for our drop-in, best first.

        :param base: the node without ours. :param now: the node as it is.
        """
        found = list(self._read_spots(base)) + list(self._new_spots(base))
        ours = [path for path, text in now.texts.items() if marks.is_own_file(text) and not marks.has_marks(text)]
        yield from sorted(found, key=lambda spot: spot.path not in ours)

    def _read_spots(self, base: Stage) -> t.Iterator[Spot]:
        """Directories that the root file imports already, the last (which wins) first."""
        for use in reversed(base.load.imports):
            directory = posixpath.dirname(use.resolved)
            path = posixpath.join(directory, DROP_IN)
            is_relative = not use.pattern.startswith("/") and base.load.rules.relative_glob_from_cwd
            if use.file == self.root and use.is_glob and "*" not in directory and not is_relative:
                if go_glob.glob(use.resolved, [path]):
                    yield Spot(path, "")

    def _new_spots(self, base: Stage) -> t.Iterator[Spot]:
        """Directories that an import of ours makes read. One with files that nothing reads today is left alone."""
        for name in (_CONF_D, _OWN_D):
            directory = posixpath.join(posixpath.dirname(self.root), name)
            pattern = posixpath.join(directory, "*.toml")
            strangers = set(go_glob.glob(pattern, base.situation.files.known())) - set(base.load.paths)
            if not strangers:
                yield Spot(posixpath.join(directory, DROP_IN), pattern)

    def switch(self, changes: Texts, now: Stage) -> str:
        """The file whose rename makes the change effective: the root, else the drop-in."""
        if self.root in changes:
            return self.root
        present = [path for path in sorted(changes) if changes[path] is not None]
        return present[-1] if present else sorted(changes)[-1]

    def staged(self, changes: Texts) -> t.Dict[str, str]:
        """Renderings that the distribution will make of the changes: for the proof, never to be written."""
        return {}


def find(node: t.Mapping[str, t.Any], root: str, texts: t.Mapping[str, str]) -> Place:
    """The place for the texts of this node."""
    return Place(str(node.get("distribution") or "plain"), root)


__all__ = ("DROP_IN", "Place", "Spot", "find")
