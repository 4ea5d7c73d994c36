"""The checks of tests/hosts can fail, and its mutations still fit the product. The hosts themselves: make molecule."""

from __future__ import annotations

import pathlib
import subprocess
import typing as t

import pytest

from tests.hosts import mutations
from tests.hosts.node import Host, HostError

NOTED = {"containerd": "MainPID=7", "/etc/containerd/config.toml": "100644 0:0 aa", **{f"/usr/{number}": "100644 0:0 bb" for number in range(3000)}}
TASKS = "TASK  PID  STATUS\nabc   42   RUNNING\n"


class FakeHost(Host):
    """A host of which only the answers count."""

    engine = "containerd"

    def __init__(self, directory: pathlib.Path) -> None:
        self.name = "node-1"
        self._directory = directory
        self.now: dict[str, str] = dict(NOTED)
        self.tasks = TASKS

    def _state(self) -> dict[str, str]:
        return self.now

    def _tasks(self) -> str:
        return self.tasks


@pytest.fixture
def host(tmp_path: pathlib.Path) -> FakeHost:
    made = FakeHost(tmp_path)
    made.note_state()
    (tmp_path / "node-1.pods").write_text(TASKS, encoding="utf-8")
    return made


def test_what_is_as_noted_passes(host: FakeHost) -> None:
    host.check_state()
    host.check_pod()


@pytest.mark.parametrize(
    "change",
    [{"containerd": "MainPID=8"}, {"/etc/containerd/config.toml": "100600 0:0 aa"}, {"/etc/new": "100644 0:0 cc"}, {"/usr/7": None}],
    ids=["another process", "another mode", "a new file", "a file less"],
)
def test_every_difference_is_told(host: FakeHost, change: dict[str, t.Any]) -> None:
    host.now = {name: value for name, value in {**NOTED, **change}.items() if value is not None}
    (name,) = change
    with pytest.raises(HostError, match=f"node-1: {name} was "):
        host.check_state()
    host.check_state(name)


def test_a_state_that_was_not_really_noted_is_no_pass(host: FakeHost) -> None:
    host.now = {"containerd": "MainPID=7"}
    host.note_state()
    with pytest.raises(HostError, match="only 1 files"):
        host.check_state()


@pytest.mark.parametrize(
    "tasks",
    [TASKS.replace("42", "43"), TASKS + "probe 50 RUNNING\n", TASKS.replace("RUNNING", "STOPPED"), "TASK  PID  STATUS\n"],
    ids=["another process", "a sandbox more", "stopped", "gone"],
)
def test_a_pod_that_does_not_live_on_is_told(host: FakeHost, tasks: str) -> None:
    host.tasks = tasks
    with pytest.raises(HostError, match="now runs"):
        host.check_pod()


@pytest.mark.parametrize("mutation", [mutations.SKIPS, mutations.INVERTED, mutations.DEAF], ids=lambda mutation: mutation.name)
def test_a_mutation_fits_the_product(mutation: mutations.Mutation) -> None:
    text = (mutations.ROOT / mutation.file).read_text(encoding="utf-8")
    assert text.count(mutation.text) == 1
    compile(text.replace(mutation.text, mutation.replacement), mutation.file, "exec")


@pytest.mark.parametrize(
    "arguments, check, required, status",
    [
        (["--slice", "default", "audit"], 1, False, 0),
        (["--slice", "default", "audit"], 1, True, 1),
        (["default", "audit"], 1, False, 1),
        (["--slice", "default", "audit"], 2, False, 2),
    ],
    ids=["a slice", "a slice that must run", "a person's own command", "a root that cannot be made"],
)
def test_a_machine_without_hosts_is_told_loudly(tmp_path: pathlib.Path, arguments: list[str], check: int, required: bool, status: int) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nprintf 'it takes root'\nexit {check}\n", encoding="utf-8")
    python.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path), **({"RUNTIME_GATE_HOSTS": "required"} if required else {})}
    command = [str(mutations.ROOT / "tests/molecule.sh"), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status
    told = "*** NOT RUN: 2 scenarios on whole hosts (default audit). This machine cannot have such hosts: it takes root ***"
    assert (told in done.stdout) == (check == 1)
