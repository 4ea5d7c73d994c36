# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node out of files: a /proc with processes of any kind, and a tree below a prefix."""

from __future__ import annotations

import os
import pathlib
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.processes import Process, node_processes


class FakeProc:
    """A /proc in a directory. Processes are in the node's own namespaces unless said otherwise."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.path = directory
        self._link("self/ns/pid", "pid:[1]")
        self._link("self/ns/mnt", "mnt:[1]")

    def add(
        self,
        pid: int,
        argv: t.Sequence[str],
        exe: t.Optional[str] = None,
        pid_ns: str = "pid:[1]",
        mnt_ns: str = "mnt:[1]",
        environment: t.Optional[t.Mapping[str, str]] = None,
        cgroup: str = "",
        cwd: t.Optional[str] = "/",
    ) -> None:
        """``exe`` and ``cwd`` None: as without permission."""
        home = self.path / str(pid)
        home.mkdir(parents=True)
        (home / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in argv))
        self._link("%d/ns/pid" % pid, pid_ns)
        self._link("%d/ns/mnt" % pid, mnt_ns)
        if exe:
            self._link("%d/exe" % pid, exe)
        if cwd:
            self._link("%d/cwd" % pid, cwd)
        if environment is not None:
            (home / "environ").write_bytes(b"".join(b"%s=%s\0" % (k.encode(), v.encode()) for k, v in environment.items()))
        (home / "cgroup").write_text(cgroup)
        (home / "stat").write_text("%d (a (b) c) S %s 100 0" % (pid, " ".join(["0"] * 18)))

    def processes(self) -> t.List[Process]:
        return node_processes(str(self.path))

    def _link(self, path: str, target: str) -> None:
        link = self.path / path
        link.parent.mkdir(parents=True, exist_ok=True)
        os.symlink(target, link)


def write_tree(directory: pathlib.Path, tree: t.Mapping[str, t.Union[str, bytes, None]]) -> None:
    """Absolute paths below a directory: text or bytes, ``-> target`` for a link, None for a directory."""
    for path, content in tree.items():
        target = directory / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            target.mkdir(exist_ok=True)
        elif isinstance(content, bytes):
            target.write_bytes(content)
        elif content.startswith("-> "):
            os.symlink(content[3:], target)
        else:
            target.write_text(content, encoding="utf-8", newline="")
