"""The command line: make walkthrough."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import typing as t

from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok import Kwok
from tests.cluster.real_node import RealNode
from tests.testbed.tools import tool
from tests.walkthrough.expected import differences

LINES = ("1.7", "2.1", "2.4")
NODE_LINE = "2.1"
PLAYBOOK = pathlib.Path(__file__).resolve().parents[2] / "playbooks" / "walkthrough.yml"


def main() -> int:
    """Two runs on one test bed; the number of differences decides the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as ctrl-c: what was started is ended
    work = pathlib.Path.cwd() / "gpurt"
    with tempfile.TemporaryDirectory(prefix="runtime-gate-lab-") as scratch:
        bed = pathlib.Path(scratch)
        with ControlPlane(bed / "cluster", programs=("scheduler", "controller-manager")) as cluster, Kwok(cluster):
            with RealNode(bed / "node", cluster, name="gpu-real", line=NODE_LINE) as node:
                node.wait_ready()
                variables = {
                    "runtime_gate_cluster": {"kubeconfig": str(cluster.kubeconfig)},
                    "runtime_gate_walkthrough_dir": str(work),
                    "runtime_gate_walkthrough_containerds": {line: str(tool(f"containerd-{line}")) for line in LINES},
                    "runtime_gate_become": False,
                }
                found = [complaint for run in (1, 2) for complaint in _run(run, variables, bed)]
    found += differences(work, LINES)
    for complaint in found:
        print(complaint)
    print(f"walkthrough: 2 runs, {len(list((work / 'out').glob('*.txt')))} files in {work}/out, {len(found)} differences")
    return 1 if found else 0


def _run(run: int, variables: dict[str, t.Any], bed: pathlib.Path) -> list[str]:
    """Runs the playbook. Complains about a failure and, from the second run on, about a change."""
    given = bed / "variables.json"
    given.write_text(json.dumps(variables))
    command = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), str(PLAYBOOK), "-e", f"@{given}"]
    environment = {**os.environ, "ANSIBLE_LOCALHOST_WARNING": "False", "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    print(done.stdout, flush=True)
    recap = re.search(r"changed=(\d+)\s.*failed=(\d+)", done.stdout)
    if done.returncode or not recap:
        return [f"run {run} ended with {done.returncode}: {done.stderr[-2000:]}"]
    return [f"run {run} changed {recap[1]} things"] if run > 1 and recap[1] != "0" else []


if __name__ == "__main__":
    sys.exit(main())
