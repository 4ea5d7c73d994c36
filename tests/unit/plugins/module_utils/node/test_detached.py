# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work in a process of its own: its result, its session, and that it outlives who waits."""

from __future__ import annotations

import os
import pathlib
import signal
import time
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import detached


def _facts() -> t.Dict[str, t.Any]:
    return {
        "pid": os.getpid(),
        "session": os.getsid(0),
        "streams": [os.readlink("/proc/self/fd/%d" % number) for number in range(3)],
        "open": len(os.listdir("/proc/self/fd")),
        "directory": os.getcwd(),
        "hang-up": signal.getsignal(signal.SIGHUP) not in (signal.SIG_IGN, signal.SIG_DFL),
    }


def test_a_session_of_its_own() -> None:
    kept = os.open("/etc", os.O_RDONLY)
    facts = detached.run(_facts)
    os.close(kept)
    assert facts is not None and facts["pid"] == facts["session"] != os.getsid(0)
    assert facts["streams"] == ["/dev/null"] * 3
    # the three, the pipe, and the one that lists them
    assert (facts["open"], facts["directory"], facts["hang-up"]) == (5, "/", True)


def test_ended_from_outside() -> None:
    assert detached.run(lambda: os.kill(os.getpid(), signal.SIGKILL) or {}) is None


def test_it_outlives_who_waits(tmp_path: pathlib.Path) -> None:
    mark = tmp_path / "mark"

    def work() -> t.Dict[str, t.Any]:
        (tmp_path / "begun").write_text("x")
        os.kill(os.getpid(), signal.SIGHUP)
        time.sleep(0.5)
        mark.write_text("x" * 200000)
        return {"long": "x" * 200000}

    pid = os.fork()
    if pid == 0:
        try:
            detached.run(work)
        finally:
            os._exit(0)
    deadline = time.monotonic() + 20
    while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert not mark.exists()
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert mark.exists()
