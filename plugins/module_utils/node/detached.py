# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work that goes on when the connection is cut: another process, in a session of its own, that nobody's hang-up ends.

Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import json
import os
import signal
import typing as t


def run(work: t.Callable[[], t.Dict[str, t.Any]]) -> t.Optional[t.Dict[str, t.Any]]:
    """Run ``work`` in a process of its own and wait for its result.

    Where this process ends before (its connection was cut), the work still runs to its end; it must keep its result itself.

    :param work: must not raise.
    :returns: its result (JSON-able), or None when its process was ended.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _work(writer, work)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        data = stream.read()
    os.waitpid(pid, 0)
    try:
        return json.loads(data.decode("utf-8"))
    except ValueError:
        return None


def _work(writer: int, work: t.Callable[[], t.Dict[str, t.Any]]) -> t.NoReturn:
    """The other process. It must never return into the caller's code."""
    try:
        _detach(writer)
        data = json.dumps(work()).encode("utf-8")
        try:
            with os.fdopen(writer, "wb") as stream:
                stream.write(data)
        except BrokenPipeError:
            # Nobody listens any more.
            pass
    finally:
        os._exit(0)  # pylint: disable=protected-access


def _detach(kept: int) -> None:
    os.setsid()
    for number in (signal.SIGHUP, signal.SIGINT):
        # A handler, not SIG_IGN: that one would be inherited by the daemon that a user's command starts.
        signal.signal(number, _ignore)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        # The connection ends when the last one who holds its streams has closed them.
        os.dup2(nothing, descriptor)
    for descriptor in _open_descriptors():
        if descriptor > 2 and descriptor != kept:
            try:
                os.close(descriptor)
            except OSError:
                # The one with which the list was read.
                continue
    os.chdir("/")
    os.umask(0o022)


def _open_descriptors() -> t.List[int]:
    return [int(name) for name in os.listdir("/proc/self/fd")]


def _ignore(_number: int, _frame: t.Any) -> None:
    """A hang-up means nothing here."""
