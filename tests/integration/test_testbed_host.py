"""The test bed's node keeps what the other tests rely on.

What this proves: a node is private (files, processes, host name), several live at once, an upgrade on disk leaves the old program
running, an end without warning of the test leaves nothing behind, and the programs of the test bed are of the versions they are called by.
"""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tests.integration.loading_scenarios import OLD, text
from tests.testbed.host import CONFIG, ContainerdHost, HostError
from tests.testbed.tools import LINES, TOOLS, GoTool, tool


def test_nodes_are_private_and_several() -> None:
    """Two nodes: each sees its own file, its own daemon and its own name; this machine sees none of the files."""
    with ContainerdHost("2.1", name="one") as one, ContainerdHost("1.7", name="two") as two:
        for host, handler in ((one, "first"), (two, "second")):
            host.write(CONFIG, text(2, (OLD, f"runc {handler}")))
            assert host.start(), host.log()
        assert sorted(one.handlers()) == ["first", "runc"]
        assert sorted(two.handlers()) == ["runc", "second"]
        assert one.run(["hostname"]).stdout == "one\n"
        processes = one.run(["sh", "-c", "cat /proc/[0-9]*/comm"]).stdout.split()
        assert processes.count("containerd") == 1
        assert not pathlib.Path(CONFIG).exists() or "first" not in pathlib.Path(CONFIG).read_text()


def test_reset_leaves_nothing() -> None:
    """After a reset no file, daemon or stand-in of the test before is there."""
    with ContainerdHost("2.1") as host:
        host.write(CONFIG, text(2, (OLD, "runc foo")))
        host.write("/var/lib/kubelet/config.yaml", "x")
        host.kubelet()
        assert host.start(), host.log()
        host.reset("1.6")
        assert not host.path(CONFIG).exists() and not host.path("/var/lib/kubelet/config.yaml").exists()
        assert host.run(["sh", "-c", "cat /proc/[0-9]*/comm"]).stdout.split().count("kubelet") == 0
        assert host.start(), host.log()
        assert host.cri()["version"]["runtimeVersion"].startswith("1.6")


def test_an_upgrade_on_disk_leaves_the_old_program_running() -> None:
    """/proc/PID/exe is the deleted file, as after a package upgrade."""
    with ContainerdHost("1.7") as host:
        assert host.start(), host.log()
        host.replace_binary("2.1")
        assert os.readlink(f"/proc/{host.daemon_pid()}/exe") == "/usr/bin/containerd (deleted)"
        assert host.cri()["version"]["runtimeVersion"].startswith("1.7")
        assert host.restart(), host.log()
        assert host.cri()["version"]["runtimeVersion"].startswith("2.1")


def test_states_of_cri() -> None:
    """served, unimplemented and down are told apart; a handler that is not loaded gets the daemon's own words."""
    with ContainerdHost("2.1") as host:
        assert host.cri()["state"] == "down"
        assert host.start(), host.log()
        assert host.cri()["state"] == "served"
        assert 'no runtime for "nope" is configured' in host.sandbox("nope")["error"]
        host.stop()
        host.write(CONFIG, 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n')
        assert host.start(), host.log()
        assert host.cri()["state"] == "unimplemented"
        host.kill()
        assert host.cri()["state"] == "down"
        host.write(CONFIG, "[half written\n")
        host.stop()
        assert host.start() is False
        assert "toml" in host.log().lower()
        with pytest.raises(HostError, match="does not run"):
            host.daemon_pid()


_CRASH = """
import os, sys
from tests.testbed.host import ContainerdHost
host = ContainerdHost("2.1")
assert host.start(), host.log()
print(host.daemon_pid(), flush=True)
sys.stdin.read()
"""


def test_a_test_that_is_killed_leaves_no_process() -> None:
    """SIGKILL of the process that made the node ends the daemon in it."""
    root = pathlib.Path(__file__).resolve().parents[2]
    with subprocess.Popen([sys.executable, "-c", _CRASH], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as maker:
        assert maker.stdout
        pid = int(maker.stdout.readline())
        assert pathlib.Path(f"/proc/{pid}").exists()
        maker.send_signal(signal.SIGKILL)
        maker.wait()
        deadline = time.monotonic() + 10
        while pathlib.Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not pathlib.Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("line", LINES)
def test_programs_are_of_their_line(line: str) -> None:
    """`containerd --version` says the line that the tool is named after."""
    said = subprocess.run([str(tool(f"containerd-{line}")), "--version"], capture_output=True, text=True, check=True).stdout
    assert said.split()[2].lstrip("v").startswith(f"{line}."), said


@pytest.mark.parametrize(
    ("name", "arguments"), [("crictl", ["--version"]), ("etcd", ["--version"]), ("kube-apiserver", ["--version"]), ("kubectl", ["version", "--client"])]
)
def test_programs_from_the_proxy_are_stamped(name: str, arguments: list[str]) -> None:
    """Each says the version of its module file, not that of a development build."""
    spec = TOOLS[name]
    assert isinstance(spec, GoTool)
    said = subprocess.run([str(tool(name)), *arguments], capture_output=True, text=True, check=True).stdout
    assert spec.version().lstrip("v") in said
