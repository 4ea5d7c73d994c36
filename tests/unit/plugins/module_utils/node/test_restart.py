# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way to restart: what is found, what is refused, and what is said when it fails."""

from __future__ import annotations

import os
import pathlib
import time
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import commands, discovery, restart


def _unit(monkeypatch: pytest.MonkeyPatch, kill_mode: t.Optional[str]) -> None:
    facts = None if kill_mode is None else {"name": "containerd.service", "kill_mode": kill_mode}
    monkeypatch.setattr(discovery, "unit", lambda _name, _timeout: facts)


def test_a_command_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found before the change, and so in check mode."""
    for word in ("/no/such/program", "no-such-program", "/etc/passwd", "systemctl restart containerd"):
        with pytest.raises(RuntimeGateError, match="runtime_gate_restart_command: there is no program %s on this node" % word):
            restart.find("containerd.service", [word], 5)
    assert restart.find(None, ["true"], 5).argv == ["true"]


def test_a_command_of_the_user_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    _unit(monkeypatch, "control-group")
    monkeypatch.setattr(restart.shutil, "which", lambda name, path: name)
    way = restart.find("containerd.service", ["/sbin/service", "containerd", "restart"], 5)
    assert way == restart.Restart(["/sbin/service", "containerd", "restart"], None)
    assert way.words == "`/sbin/service`"


@pytest.mark.parametrize("kill_mode", ["process", "none"])
def test_a_unit(monkeypatch: pytest.MonkeyPatch, kill_mode: str) -> None:
    _unit(monkeypatch, kill_mode)
    monkeypatch.setattr(restart.shutil, "which", lambda name, path: "/usr/bin/" + name)
    way = restart.find("k3s.service", None, 5)
    assert way == restart.Restart(["/usr/bin/systemctl", "restart", "--", "k3s.service"], "k3s.service")
    assert way.words == "`/usr/bin/systemctl restart -- k3s.service`"
    snap = restart.find("snap.microk8s.daemon-containerd.service", None, 5)
    assert snap.argv == ["/usr/bin/snap", "restart", "microk8s.daemon-containerd"]


def test_a_snap_without_its_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    _unit(monkeypatch, "process")
    monkeypatch.setattr(restart.shutil, "which", lambda name, path: None)
    way = restart.find("snap.microk8s.daemon-containerd.service", None, 5)
    assert way.argv == ["systemctl", "restart", "--", "snap.microk8s.daemon-containerd.service"]


@pytest.mark.parametrize("kill_mode", ["control-group", "mixed"])
def test_the_pods_would_end(monkeypatch: pytest.MonkeyPatch, kill_mode: str) -> None:
    _unit(monkeypatch, kill_mode)
    with pytest.raises(RuntimeGateError, match="KillMode=%s: its restart would end every running pod" % kill_mode):
        restart.find("containerd.service", None, 5)


def test_there_is_no_way(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeGateError, match="No service of the container runtime is known"):
        restart.find(None, None, 5)
    _unit(monkeypatch, None)
    with pytest.raises(RuntimeGateError, match="systemd does not run here or has no such service"):
        restart.find("x.service", None, 5)

    def fails(_name: str, _timeout: float) -> None:
        raise commands.CommandFailed("systemctl show x.service ended with 1: no bus")

    monkeypatch.setattr(discovery, "unit", fails)
    with pytest.raises(RuntimeGateError, match="x.service cannot be restarted: .* no bus"):
        restart.find("x.service", None, 5)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["true"], None),
        (["sh", "-c", "echo out; echo why >&2; exit 3"], "`sh` ended with 3: out\nwhy"),
        (["sh", "-c", "exit 3"], "`sh` ended with 3"),
        (["/nowhere/x"], "`/nowhere/x` cannot be started: No such file or directory"),
        (["a\0b"], "`a\0b` cannot be started: embedded null byte"),
        (["sleep", "60"], "`sleep` did not end within 0.2 s"),
    ],
)
def test_run(argv: t.List[str], words: t.Optional[str]) -> None:
    assert restart.run(restart.Restart(argv, None), 0.2 if argv[0] == "sleep" else 20) == words


def test_a_long_output_is_cut() -> None:
    words = restart.run(restart.Restart(["sh", "-c", "seq 5000; exit 1"], None), 20) or ""
    assert words.endswith("\n5000") and len(words) < 4100


def test_what_it_starts_stays_alive(tmp_path: pathlib.Path) -> None:
    mark = tmp_path / "mark"
    script = "(sleep 0.3; echo still here; echo x >%s) & exit 0" % mark
    assert restart.run(restart.Restart(["sh", "-c", script], None), 20) is None
    deadline = time.monotonic() + 10
    while not mark.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert mark.exists()


def test_forgive(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: t.List[t.List[str]] = []

    def run(argv: t.List[str], _timeout: float) -> None:
        ran.append(argv)
        raise commands.CommandFailed("no bus")

    monkeypatch.setattr(commands, "run", run)
    monkeypatch.setattr(restart.shutil, "which", lambda name, path: "/usr/bin/" + name)
    restart.forgive(restart.Restart(["x"], None), 5)
    restart.forgive(restart.Restart(["x"], "k3s.service"), 5)
    assert ran == [["/usr/bin/systemctl", "reset-failed", "--", "k3s.service"]]


def test_the_environment_is_plain(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setitem(os.environ, "SECRET", "x")
    output = tmp_path / "environment"
    assert restart.run(restart.Restart(["sh", "-c", "env >%s; pwd >>%s" % (output, output)], None), 20) is None
    assert "SECRET" not in output.read_text() and output.read_text().endswith("/\n")
