# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes out of a /proc made of files, and our own out of the real one."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import time

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import processes
from ansible_collections.kubenode.runtime_gate.tests.unit.fake_node import FakeProc


def test_only_the_nodes_own(tmp_path: pathlib.Path) -> None:
    proc = FakeProc(tmp_path)
    proc.add(7, ["/usr/bin/containerd"], exe="/usr/bin/containerd")
    proc.add(8, ["containerd"], exe="/usr/bin/containerd", pid_ns="pid:[2]")
    proc.add(9, [""])
    (tmp_path / "10").mkdir()
    (tmp_path / "version").mkdir()
    assert [process.pid for process in proc.processes()] == [7]


def test_what_is_known_of_one(tmp_path: pathlib.Path) -> None:
    proc = FakeProc(tmp_path)
    exe = tmp_path / "containerd"
    exe.write_text("x")
    proc.add(7, ["docker-containerd", "-c", "/x"], exe=str(exe), environment={"PATH": "/a:/b", "A": "b=c"}, cwd="/var")
    (process,) = proc.processes()
    assert process.names == {"containerd", "docker-containerd"}
    assert (process.exe, process.exe_deleted, process.cwd, process.root) == (str(exe), False, "/var", "")
    assert process.environment() == {"PATH": "/a:/b", "A": "b=c"}
    assert process.exe_path == str(tmp_path / "7" / "exe")
    assert not process.exe_replaced()


def test_without_permission(tmp_path: pathlib.Path) -> None:
    proc = FakeProc(tmp_path)
    proc.add(7, ["containerd"], cwd=None)
    shutil.rmtree(tmp_path / "7" / "ns")
    for name in ("stat", "cgroup"):
        (tmp_path / "7" / name).unlink()
    (process,) = proc.processes()
    assert (process.exe, process.cwd, process.root, process.names) == (None, None, "", {"containerd"})
    assert process.environment() == {}
    assert process.started() is None
    assert process.unit() is None
    assert not process.exe_replaced()


def test_an_executable_that_is_gone_or_another(tmp_path: pathlib.Path) -> None:
    proc = FakeProc(tmp_path / "proc")
    proc.add(7, ["containerd"], exe="/nowhere/containerd (deleted)")
    (process,) = proc.processes()
    assert (process.exe, process.exe_deleted, process.exe_replaced()) == ("/nowhere/containerd", True, True)


def test_an_executable_that_was_replaced(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "sleep-copy"
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
    with subprocess.Popen([str(program), "60"]) as child:
        try:
            process = processes.Process(child.pid, [str(program)])
            deadline = time.monotonic() + 5
            while process.exe != str(program) and time.monotonic() < deadline:
                process = processes.Process(child.pid, [str(program)])
            assert not process.exe_replaced()
            other = tmp_path / "other"
            shutil.copy(program, other)
            os.rename(other, program)
            process = processes.Process(child.pid, [str(program)])
            assert process.exe == str(program)
            assert process.exe_deleted and process.exe_replaced()
            assert abs((process.started() or 0) - time.time()) < 30
        finally:
            child.kill()


@pytest.mark.parametrize(
    "text, unit",
    [
        ("12:pids:/x\n1:name=systemd:/system.slice/containerd.service\n0::/\n", "containerd.service"),
        ("0::/system.slice/k3s.service", "k3s.service"),
        ("0::/system.slice/containerd.service/init", "containerd.service"),
        ("0::/user.slice/user@0.service/app.slice/k.service/x.scope", "k.service"),
        ("0::/\n", None),
        ("broken", None),
        ("3:cpu:/a.service", None),
    ],
)
def test_unit(tmp_path: pathlib.Path, text: str, unit: str) -> None:
    proc = FakeProc(tmp_path)
    proc.add(7, ["containerd"], cgroup=text)
    assert proc.processes()[0].unit() == unit


def test_another_mount_namespace(tmp_path: pathlib.Path) -> None:
    proc = FakeProc(tmp_path)
    proc.add(7, ["containerd"], mnt_ns="mnt:[9]")
    assert proc.processes()[0].root == str(tmp_path / "7" / "root")


def test_the_real_proc_has_us() -> None:
    assert os.getpid() in [process.pid for process in processes.node_processes()]
