# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that print, fail, hang, print too much and leave children behind."""

from __future__ import annotations

import sys
import time

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import commands

_PYTHON = [sys.executable, "-c"]


def test_output() -> None:
    output = commands.run(["sh", "-c", "echo out; echo err >&2; pwd; exit 3"], 10, cwd="/usr")
    assert output == commands.Output(b"out\n/usr\n", b"err\n", 3, False)


def test_another_executable() -> None:
    output = commands.run(["containerd", "-c", "import sys; print(sys.argv[0], end='')"], 10, executable=sys.executable)
    assert output.stdout == b"-c"


def test_a_plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "x")
    monkeypatch.delenv("PATH")
    assert b"SECRET" not in commands.run(["/usr/bin/env"], 10).stdout


@pytest.mark.parametrize("argv", [["/nowhere/containerd"], ["/etc/passwd"], ["a\0b"]])
def test_it_cannot_be_started(argv: list) -> None:
    with pytest.raises(commands.CommandFailed, match="cannot be started: "):
        commands.run(argv, 10)


def test_it_hangs() -> None:
    began = time.monotonic()
    with pytest.raises(commands.CommandFailed, match="sh did not end within 0.3 s"):
        commands.run(["sh", "-c", "echo x; sleep 60 & sleep 60"], 0.3)
    assert time.monotonic() - began < 5


def test_it_closes_its_output_and_hangs() -> None:
    with pytest.raises(commands.CommandFailed, match="did not end"):
        commands.run(["sh", "-c", "exec >&- 2>&-; sleep 60"], 0.3)


def test_a_child_that_keeps_the_pipe_does_not_hold_us() -> None:
    with pytest.raises(commands.CommandFailed, match="did not end"):
        commands.run(["sh", "-c", "sleep 60 & exit 0"], 0.5)


def test_too_much_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "MAX_OUTPUT", 1000)
    output = commands.run(_PYTHON + ["print('x' * 200000)"], 20)
    assert (len(output.stdout), output.truncated, output.rc) == (1000, True, 0)


def test_killed() -> None:
    assert commands.run(["sh", "-c", "kill -9 $$"], 10).rc == -9
