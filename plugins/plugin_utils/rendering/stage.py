# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node with some of its files changed in thought: what would a start of its release make of them?"""

from __future__ import annotations

import posixpath
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import go_glob
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.cri_section import Section
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.load import Load
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.situation import Situation
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

Texts = t.Dict[str, t.Optional[str]]


class Stage:
    """The node of a capture with these texts in place of its own.

    :ivar capture: the capture that a collector would make then.
    :ivar texts: path → text of every captured file.
    """

    def __init__(self, capture: t.Mapping[str, t.Any], version: str, changes: t.Mapping[str, t.Optional[str]]) -> None:
        node = dict(capture.get("node") or {}, next_version=version)
        files = dict(capture.get("files") or {})
        links = node.get("links") or {}
        changed = set()
        for path, text in changes.items():
            # One file may have been captured under several names.
            names = {name for name in files if real_path(name, links) == real_path(path, links)} | {path}
            changed |= names
            for name in names:
                if text is None:
                    files.pop(name, None)
                else:
                    files[name] = text
        gone = {path for path, text in changes.items() if text is None}
        node["absent"] = sorted((set(node.get("absent") or []) | gone) - set(files))
        for key in ("unreadable", "withheld", "not_utf8"):
            node[key] = {path: reason for path, reason in (node.get(key) or {}).items() if path not in changed}
        self.texts: t.Dict[str, str] = files
        self.version = version
        # The dump is of the present files: it says nothing about these.
        self.capture = dict(capture, node=node, files=files, dump=None)
        self.situation = Situation(self.capture)

    @property
    def root(self) -> str:
        return self.situation.root

    @property
    def load(self) -> Load:
        if self.situation.load is None:
            raise RuntimeGateError("the release of containerd is not known, so nothing is written")
        return self.situation.load

    @property
    def section(self) -> t.Optional[Section]:
        return self.situation.section

    def text(self, path: str) -> t.Optional[str]:
        return self.texts.get(path)

    def reads(self, path: str) -> bool:
        """A start reads this path, or would if it were there: an import names it or its like."""
        patterns = [use.resolved for use in self.load.imports]
        root = self.situation.files.document(self.root)
        stated = (root.tree or {}).get("imports") if root is not None else None
        # A start that is refused early has not looked at them.
        for pattern in stated if isinstance(stated, list) else ():
            patterns.append(go_glob.join(posixpath.dirname(self.root), str(pattern)) if pattern[:1] != "/" else str(pattern))
        for pattern in patterns:
            try:
                if pattern == path or ("*" in pattern and go_glob.glob(pattern, [path])):
                    return True
            except go_glob.GlobSyntaxError:
                continue
        return path in self.load.paths

    def loadable(self) -> Section:
        """The CRI part of this start.

        :raises RuntimeGateError: the start is refused, or cannot be told.
        """
        load = self.load
        if load.undetermined is not None:
            raise RuntimeGateError("what is loaded cannot be told, so nothing is written: %s" % load.undetermined)
        refusal = load.refusal
        if refusal is not None:
            where = "%s, line %d" % (refusal.file, refusal.line) if refusal.line else refusal.file
            raise RuntimeGateError("containerd %s does not start with %s: %s" % (load.rules.name, where, refusal.message))
        if self.section is None:
            raise RuntimeGateError("what CRI would serve cannot be told, so nothing is written")
        return self.section


def real_path(path: str, links: t.Mapping[str, str]) -> str:
    """The path behind symbolic links, of the file and of its directories (at most 40 hops, as the kernel)."""
    for _hop in range(40):
        link = next((name for name in sorted(links) if path == name or path.startswith(name + "/")), None)
        if link is None:
            return path
        path = go_glob.join(posixpath.dirname(link), links[link]) + path[len(link) :]
    raise RuntimeGateError("%s: a loop of symbolic links" % path)


__all__ = ("Stage", "Texts", "real_path")
