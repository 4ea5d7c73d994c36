# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Loads files that are not there yet: a private mount namespace in which they lie at their real paths.

A process of its own leaves the node's mount namespace, covers each directory that a change touches with a tmpfs whose entries
are bound back to the real ones, puts the changed files into it, and runs the node's own binary. Nothing on disk changes, and
everything is gone when the process ends. Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import ctypes
import json
import os
import stat
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.tree import Change

# From linux/sched.h and sys/mount.h.
_CLONE_NEWNS = 0x00020000
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_MAX_ANSWER = 64 * 1024 * 1024
_OPTIONS = "mode=0700,size=64m"


def run_staged(changes: t.Sequence[Change], ask: t.Callable[[], t.Any]) -> t.Any:
    """What ``ask`` returns (JSON-able) where the changes have been made. It runs in another process.

    :raises RuntimeGateError: the namespace could not be made, or ``ask`` failed.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _answer(writer, changes, ask)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        data = stream.read(_MAX_ANSWER)
    os.waitpid(pid, 0)
    try:
        answer = json.loads(data.decode("utf-8"))
    except ValueError:
        raise RuntimeGateError("the process that loads the staged files ended without an answer.") from None
    if "error" in answer:
        raise RuntimeGateError("the planned files cannot be loaded beforehand: %s." % answer["error"])
    return answer["value"]


def _answer(writer: int, changes: t.Sequence[Change], ask: t.Callable[[], t.Any]) -> t.NoReturn:
    """The other process. It must never return into the caller's code."""
    try:
        try:
            _stage(changes)
            answer = {"value": ask()}
        except Exception as error:  # pylint: disable=broad-except
            answer = {"error": "%s: %s" % (type(error).__name__, error)}
        with os.fdopen(writer, "wb") as stream:
            stream.write(json.dumps(answer).encode("utf-8"))
    finally:
        os._exit(0)  # pylint: disable=protected-access


def _stage(changes: t.Sequence[Change]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS):
        raise _os_error("a private mount namespace cannot be made")
    _mount(libc, "none", "/", None, _MS_REC | _MS_PRIVATE, None)
    covers: t.Dict[str, t.List[Change]] = {}
    for change in changes:
        directory = os.path.dirname(change.real)
        while not os.path.isdir(directory):
            directory = os.path.dirname(directory)
        covers.setdefault(directory, []).append(change)
    # The outer directory first: covered later, it would hide the inner one's cover.
    for directory in sorted(covers, key=lambda path: path.count("/")):
        _cover(libc, directory, {change.real for change in covers[directory]})
    for change in changes:
        if change.new is not None:
            os.makedirs(os.path.dirname(change.real), 0o755, exist_ok=True)
            with open(change.real, "xb") as file:
                file.write(change.new)


def _cover(libc: ctypes.CDLL, directory: str, changed: t.Set[str]) -> None:
    """A tmpfs over a directory with the same entries, but for the changed files."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        names = os.listdir(descriptor)
        _mount(libc, "tmpfs", directory, "tmpfs", 0, _OPTIONS)
        for name in names:
            path = os.path.join(directory, name)
            if path not in changed:
                _bind_back(libc, "/proc/self/fd/%d/%s" % (descriptor, name), path)
    finally:
        os.close(descriptor)


def _bind_back(libc: ctypes.CDLL, original: str, path: str) -> None:
    try:
        mode = os.lstat(original).st_mode
    except FileNotFoundError:
        # It went away since the directory was read, as it may.
        return
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(original), path)
        return
    if stat.S_ISDIR(mode):
        os.mkdir(path)
    else:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    _mount(libc, original, path, None, _MS_BIND | _MS_REC, None)


def _mount(
    libc: ctypes.CDLL, source: str, target: str, kind: t.Optional[str], flags: int, options: t.Optional[str]
) -> None:
    words = [os.fsencode(word) if word is not None else None for word in (source, target, kind)]
    data = options.encode() if options is not None else None
    if libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), data):
        raise _os_error("%s cannot be mounted" % target)


def _os_error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, "%s: %s" % (what, os.strerror(number)))
