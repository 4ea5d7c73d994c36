"""The system calls with which the transaction changes something, found by strace, and a fault at each of them.

What this proves: the list is complete by construction: a run without faults is recorded, and every call in it that changes the node
(or starts or awaits the restart) is a place for a fault.
"""
from __future__ import annotations

import re
import typing as t

from tests.faults.node import FaultNode

#: Calls that change a file, a directory or the state of the node.
CHANGING = (
    "openat,write,pwrite64,ftruncate,fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,"
    "chmod,fchmod,fchmodat,chown,fchown,fchownat,setxattr,fsetxattr,symlink,symlinkat,truncate"
)
#: Around the restart: the command is started, and awaited.
RESTARTING = "vfork,wait4"
_LOG = "/run/strace.log"
_OPENED = re.compile(r'^[^,]*, "([^"]*)"')
_VARYING = re.compile(r"^/tmp/|/backups/")
_CALL = re.compile(r"(?:\d+ +)?([a-z0-9_]+)\((.*)")


class Place(t.NamedTuple):
    """The nth call of a name; `path`: the nth of those that open this path."""

    name: str
    number: int
    arguments: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.name} #{self.number} ({self.arguments[:90]})"

    @property
    def visible(self) -> bool:
        """Whether the daemon's own files, or the daemon, are what it is about."""
        return "/etc/containerd" in self.arguments or "/etc/crio" in self.arguments or self.name in RESTARTING


def record(node: FaultNode, what: str, plan: dict[str, t.Any], options: dict[str, t.Any]) -> tuple[list[Place], t.Any]:
    """(the places of a run without faults, its result)."""
    code, result = node.call(what, plan, options, ["strace", "-q", "-y", "-o", _LOG, "-e", f"trace={CHANGING},{RESTARTING}", "-e", "signal=none"])
    assert code == 0
    counts: dict[str, int] = {}
    places = []
    for line in node.output(_LOG).read_text(errors="replace").splitlines():
        match = _CALL.match(line)
        if not match:
            continue
        name, arguments = match.groups()
        # How often a process under /proc is looked at differs from run to run, so calls of openat are counted by path. Where the
        # name itself differs from run to run they are counted all together: that is before the first look.
        opened = _OPENED.search(arguments) if name == "openat" else None
        path = opened.group(1) if opened and not _VARYING.search(opened.group(1)) else ""
        for key in {name, name + path}:
            counts[key] = counts.get(key, 0) + 1
        if _changes(name, arguments):
            places.append(Place(name, counts[name + path], arguments, path))
    # Waiting is polled: its first two looks are two moments of a restart, the others are like them.
    waits = [place for place in places if place.name == "wait4"]
    return [place for place in places if place not in waits[2:]], result


def unsynced(node: FaultNode, commit: str) -> list[str]:
    """What the last recorded run left to the mercy of the page cache when it took a step that relies on it.

    Steps that rely on everything before them: the commit, the start of the restart, the end of the journal. A file must be
    synced before it is renamed; a directory after a name in it came or went.
    """
    dirty: set[str] = set()
    found = []
    for line in node.output(_LOG).read_text(errors="replace").splitlines():
        match = _CALL.match(line)
        if not match or " = -1 " in line:
            continue
        name, arguments = match.groups()
        paths = re.findall(r'"(/[^"]*)"', arguments)
        opened = re.match(r"\d+<(/[^>]*)>", arguments)
        relies = name == "vfork" or (name == "rename" and paths[-1] == commit) or (name == "unlink" and paths[0].endswith("/transaction.json"))
        if relies:
            found += [f"{path} before {name}({arguments[:60]}" for path in sorted(dirty) if path.startswith(("/etc/", "/var/lib/runtime-gate"))]
        if name == "rename" and paths[0] in dirty:
            found.append(f"{paths[0]} before its rename")
        if name in ("write", "fchmod", "fchown", "fsetxattr") and opened:
            dirty.add(opened.group(1))
        elif name in ("chmod", "chown", "setxattr"):
            dirty.add(paths[0])
        elif name == "fsync" and opened:
            dirty.discard(opened.group(1))
        elif name in ("rename", "link", "unlink", "mkdir", "rmdir"):
            dirty |= {path.rpartition("/")[0] for path in paths}
            dirty -= set(paths[:1]) if name in ("unlink", "rmdir") else set()
    return found


def _changes(name: str, arguments: str) -> bool:
    if name == "openat":
        return "O_CREAT" in arguments
    if name == "write":
        # The result of the run on standard output, and answers in pipes, change nothing.
        return not re.match(r"\d+<(?:pipe|socket|/dev/)", arguments) and not arguments.startswith(("1<", "2<"))
    return True


def inject(place: Place, fault: str) -> list[str]:
    """The strace command that gives this place a fault: `signal=KILL` or `error=ENOSPC`."""
    path = ["-P", place.path] if place.path else []
    return ["strace", "-q", "-o", _LOG, *path, "-e", f"trace={place.name}", "-e", f"inject={place.name}:{fault}:when={place.number}", "-e", "signal=none"]


def was_injected(node: FaultNode) -> bool:
    """Whether the last error was given; a kill shows by the end of the process."""
    return "(INJECTED)" in node.output(_LOG).read_text(errors="replace")
