# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's processes, from /proc (proc(5)): which run, with what arguments, in whose namespaces, since when.

A process of another PID namespace (kind, docker in docker, a pod) is not the node's and is left out.
Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import os
import time
import typing as t

PROC = "/proc"
_DELETED = " (deleted)"
#: Longest command line that is read, in bytes.
_MAX_CMDLINE = 256 * 1024


class Process:
    """One process; what could not be read is empty or None.

    :ivar argv: its command line, never empty.
    :ivar exe: path of its executable without the mark of deletion; None without permission.
    :ivar exe_deleted: the executable is no longer on disk under that path.
    :ivar cwd: its working directory.
    :ivar root: ``""``, or the path through which its mount namespace is seen when that is not ours.
    """

    def __init__(self, pid: int, argv: t.List[str], proc: str = PROC) -> None:
        self.pid = pid
        self.argv = argv
        self._dir = "%s/%d" % (proc, pid)
        exe = _link(self._dir + "/exe")
        self.exe_deleted = bool(exe and exe.endswith(_DELETED))
        self.exe = exe[: -len(_DELETED)] if exe and self.exe_deleted else exe
        self.cwd = _link(self._dir + "/cwd")
        own = _link(proc + "/self/ns/mnt")
        theirs = _link(self._dir + "/ns/mnt")
        self.root = self._dir + "/root" if own and theirs and own != theirs else ""

    @property
    def names(self) -> t.Set[str]:
        """The names that it goes by: of its executable and of its first argument (k3s makes one text of all its words)."""
        return {os.path.basename(path) for path in (self.exe, self.argv[0].split(" ")[0]) if path}

    @property
    def exe_path(self) -> str:
        """A path under which the very executable that runs can be started, also when it was replaced on disk."""
        return self._dir + "/exe"

    def exe_replaced(self) -> bool:
        """Whether its path on disk now holds another file than the one that runs."""
        if self.exe is None:
            return False
        try:
            running, on_disk = os.stat(self.exe_path), os.stat(self.root + self.exe)
        except OSError:
            return self.exe_deleted
        return (running.st_dev, running.st_ino) != (on_disk.st_dev, on_disk.st_ino)

    def started(self) -> t.Optional[float]:
        """When it was started, in seconds since the epoch."""
        try:
            # The name, in parentheses, may hold blanks; starttime is field 22, the 20th after it.
            ticks = int(_read(self._dir + "/stat").rpartition(")")[2].split()[19])
            boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
            return boot + ticks / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError, IndexError):
            return None

    def environment(self) -> t.Dict[str, str]:
        """Its environment at start; empty without permission."""
        try:
            pairs = _read(self._dir + "/environ").split("\0")
        except OSError:
            return {}
        return dict(pair.split("=", 1) for pair in pairs if "=" in pair)

    def unit(self) -> t.Optional[str]:
        """The systemd service that its control group belongs to (cgroups(7), systemd's own hierarchy or v2)."""
        try:
            lines = _read(self._dir + "/cgroup").splitlines()
        except OSError:
            return None
        for line in lines:
            parts = line.split(":", 2)
            if len(parts) == 3 and parts[1] in ("", "name=systemd"):
                services = [part for part in parts[2].split("/") if part.endswith(".service")]
                if services:
                    return services[-1]
        return None


def _link(path: str) -> t.Optional[str]:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _read(path: str) -> str:
    with open(path, "rb") as file:
        return file.read(_MAX_CMDLINE).decode("utf-8", "replace")


def node_processes(proc: str = PROC) -> t.List[Process]:
    """The processes of our own PID namespace that have a command line, by pid.

    A namespace that cannot be read (no permission) counts as ours: without root nothing is decided by it anyway.
    """
    ours = _link(proc + "/self/ns/pid")
    found = []
    for pid in sorted(int(name) for name in os.listdir(proc) if name.isdigit()):
        try:
            argv = _read("%s/%d/cmdline" % (proc, pid)).rstrip("\0").split("\0")
        except OSError:
            continue
        theirs = _link("%s/%d/ns/pid" % (proc, pid))
        if argv[0] and (theirs is None or theirs == ours):
            found.append(Process(pid, argv, proc))
    return found


def option(argv: t.Sequence[str], *names: str) -> t.Optional[str]:
    """The value of a command line option, the last one where it is given twice; None where it is not given.

    :param names: without dashes; one or two dashes, ``=`` or a blank before the value are all understood.
    """
    value = None
    for position, word in enumerate(argv[1:], 1):
        bare = word.lstrip("-")
        if bare == word:
            continue
        name, equals, inline = bare.partition("=")
        if name in names:
            value = inline if equals else argv[position + 1] if position + 1 < len(argv) else None
    return value
