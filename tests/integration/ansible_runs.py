"""Runs of ansible-playbook as a person starts them, for the tests of roles and playbooks."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/cluster"
PLAYBOOK = ROOT / ".venv/bin/ansible-playbook"


class Run(t.NamedTuple):
    """A run that ended. recap: host -> {ok, failed, unreachable, …}."""

    status: int
    text: str
    recap: dict[str, dict[str, int]]


def environment(**extra: str) -> dict[str, str]:
    """The person's environment without what configures ansible, python or kubectl, and without version managers' shims."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTHON", "K8S_", "KUBE"))}
    path = [part for part in kept["PATH"].split(":") if not part.endswith("/shims")]
    return {**kept, "PATH": ":".join(path), "COLUMNS": "120", **extra}


def playbook(*arguments: str | os.PathLike[str], cwd: os.PathLike[str] = ROOT, **extra: str) -> Run:
    """Run ansible-playbook with these arguments."""
    command = [str(PLAYBOOK), *(str(argument) for argument in arguments)]
    done = subprocess.run(
        command, cwd=cwd, env=environment(**extra), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False
    )
    assert "Traceback" not in done.stdout, done.stdout
    return Run(done.returncode, done.stdout, _recap(done.stdout))


def _recap(text: str) -> dict[str, dict[str, int]]:
    hosts = {}
    for line in text.rpartition("PLAY RECAP")[2].splitlines()[1:]:
        host, colon, counts = line.partition(" : ")
        if colon:
            hosts[host.strip()] = {name: int(number) for name, number in (part.split("=") for part in counts.split())}
    return hosts


def table_rows(text: str) -> list[str]:
    """The nodes of the lines of all tables, in their order."""
    rows, inside = [], False
    for line in text.splitlines():
        if line.startswith("NODE "):
            inside = True
        elif inside and not line:
            inside = False
        elif inside and not line.startswith(" "):
            rows.append(line.split()[0])
    return rows


def write_yaml(path: pathlib.Path, data: t.Any) -> pathlib.Path:
    """JSON is YAML."""
    path.write_text(json.dumps(data, indent=1))
    return path


def copy_example(to: pathlib.Path) -> pathlib.Path:
    """A copy of the example cluster that a test may change."""
    return pathlib.Path(shutil.copytree(EXAMPLE, to))
