# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs read-only commands on the node, with bounded time and output.

Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
import typing as t

#: Most bytes that are kept of each stream.
MAX_OUTPUT = 10 * 1024 * 1024
_CHUNK = 65536


class Output(t.NamedTuple):
    """What a command printed.

    :ivar rc: its exit code; negative: ended by that signal.
    :ivar truncated: a stream was longer than :data:`MAX_OUTPUT`.
    """

    stdout: bytes
    stderr: bytes
    rc: int
    truncated: bool


class CommandFailed(Exception):
    """The command could not be started or did not end in time. The message is the reason."""


def run(
    argv: t.Sequence[str],
    timeout: float,
    executable: t.Optional[str] = None,
    cwd: str = "/",
    variables: t.Optional[t.Mapping[str, str]] = None,
) -> Output:
    """Run a command without a shell, with nothing on its standard input.

    :param timeout: seconds.
    :param executable: the file to execute where that is not ``argv[0]``.
    :param variables: what its environment has beside the PATH and the language.
    :raises CommandFailed: it could not be started, or did not end in time (it is killed then).
    """
    environment = {"PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    environment.update(variables or {})
    try:
        process = subprocess.Popen(
            list(argv),
            executable=executable,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise CommandFailed("%s cannot be started: %s" % (argv[0], getattr(error, "strerror", None) or error)) from None
    with process:
        try:
            return _communicate(process, time.monotonic() + timeout)
        except subprocess.TimeoutExpired:
            raise CommandFailed("%s did not end within %g s" % (argv[0], timeout)) from None
        finally:
            _end(process)


def _communicate(process: subprocess.Popen[bytes], deadline: float) -> Output:
    kept: t.Dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
    truncated = False
    with selectors.DefaultSelector() as selector:
        for name in kept:
            selector.register(getattr(process, name), selectors.EVENT_READ, name)
        while selector.get_map():
            for key, _events in selector.select(_left(process, deadline)):
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                space = MAX_OUTPUT - len(kept[key.data])
                truncated = truncated or len(chunk) > space
                kept[key.data] += chunk[:space]
    return Output(bytes(kept["stdout"]), bytes(kept["stderr"]), process.wait(_left(process, deadline)), truncated)


def _left(process: subprocess.Popen[bytes], deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise subprocess.TimeoutExpired(process.args, 0)
    return left


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what is left of the command, its children too: they hold the pipes."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        # It has ended, which is what is wanted.
        pass
