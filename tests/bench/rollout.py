# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A rollout with nothing to change, on whole hosts over ssh, beside the containerd roles of others doing the same.

RUNTIME_GATE_PEERS names a directory with a playbook for each of them (kubespray.yml, geerlingguy.yml, whatever they are called) for the
hosts `nodes`, filled by hand: docs/large-fleets.md says how. Each is run until it changes nothing, then measured.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import typing as t

from tests.bench import fleet
from tests.bench.ansible_runs import ROOT, Play, environment, play
from tests.bench.rows import NotMeasured, Row, ratio_of, seconds

_HOSTS = 3
_RUNTIME = "containerd-2.1"
_GOAL, _GOAL_CALLS = 0.5, 2.0
_CONVERGING = 3  # runs after which a playbook that still changes something will always do so
_CONFIG = ROOT / "extensions/molecule/shared/files" / f"{_RUNTIME}.toml"
_HANDLERS = {"mine": {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/sbin/runc"}}}


def rollout(scale: float, runs: int) -> list[Row]:
    """One row for the remote calls, one for each peer."""
    from tests.hosts.node import HostError, Hosts, why_not
    from tests.testbed.tools import ToolError

    reason = why_not()
    if reason:
        raise NotMeasured(f"no whole hosts here: {reason}")
    names = [f"node-{number}" for number in range(1, max(1, round(_HOSTS * min(scale, 1.0))) + 1)]
    with tempfile.TemporaryDirectory() as directory:
        hosts = Hosts(pathlib.Path(directory) / "hosts")
        try:
            hosts.up(dict.fromkeys(names, _RUNTIME))
            for name in names:
                _prepare(hosts.host(name))
            return _measured(hosts, names, pathlib.Path(directory), runs)
        except (HostError, ToolError) as error:
            raise NotMeasured(f"no whole hosts here: {error}") from error
        finally:
            hosts.down()


def _prepare(host: t.Any) -> None:
    host.path("/etc/containerd").mkdir(exist_ok=True)
    shutil.copyfile(_CONFIG, host.path("/etc/containerd/config.toml"))
    done = host.run(["systemctl", "enable", "--now", "containerd"])
    if done.returncode:
        raise NotMeasured(f"containerd does not start on {host.name}: {done.stderr.strip()[-300:]}")


def _measured(hosts: t.Any, names: list[str], directory: pathlib.Path, runs: int) -> list[Row]:
    site = ["kubenode.runtime_gate.site", "-e", json.dumps({"runtime_gate_serial": "100%"})]
    run = _Runner(directory, _inventory(hosts, names, directory))
    run.settle(site)
    before = sum(hosts.host(name).calls() for name in names)
    run.once(site)
    calls = (sum(hosts.host(name).calls() for name in names) - before) / len(names)
    what = f"{len(names)} hosts over ssh, pipelining: site.yml, nothing to change"
    rows = [Row("rollout", f"{what}; remote calls a host", f"{calls:.3g}", f"{_GOAL_CALLS:g} calls", calls / _GOAL_CALLS, 1.0)]
    peers = sorted(pathlib.Path(os.environ["RUNTIME_GATE_PEERS"]).glob("*.yml")) if os.environ.get("RUNTIME_GATE_PEERS") else []
    for peer in peers:
        # One after the other: what one of them writes the other would change back.
        try:
            other = run.measured([str(peer)], runs)
            ours = run.measured(site, runs)
            rows.append(Row("rollout", what, seconds(ours), f"{seconds(other)}, {peer.stem}", ratio_of(ours, other), _GOAL))
        except NotMeasured as reason:
            rows.append(Row("rollout", what, other=f"{peer.stem}: not measured", notes=[f"{peer.stem}: not measured: {reason}"]))
    if not peers:
        ours = run.measured(site, runs)
        why = "other roles: not measured, RUNTIME_GATE_PEERS names no directory with playbooks"
        rows.append(Row("rollout", what, seconds(ours), "not measured", notes=[why]))
    return rows


class _Runner(t.NamedTuple):
    """Runs playbooks on the hosts from this machine."""

    directory: pathlib.Path
    inventory: str

    def once(self, arguments: t.Sequence[str]) -> Play:
        """A run that changes nothing. Raises NotMeasured where it does."""
        done = self._play(arguments)
        if _changed(done):
            raise NotMeasured(f"{pathlib.Path(arguments[0]).stem} still changes something")
        return done

    def measured(self, arguments: t.Sequence[str], runs: int) -> list[float]:
        """Seconds of each run that changes nothing."""
        self.settle(arguments)
        return [self.once(arguments).seconds for _run in range(runs)]

    def settle(self, arguments: t.Sequence[str]) -> None:
        """Run until nothing is changed."""
        for _run in range(_CONVERGING):
            if not _changed(self._play(arguments)):
                return
        raise NotMeasured(f"{pathlib.Path(arguments[0]).stem} changes something in each of {_CONVERGING} runs")

    def _play(self, arguments: t.Sequence[str]) -> Play:
        def run(command: t.Sequence[str], more: t.Mapping[str, str]) -> tuple[int, str]:
            done = subprocess.run(command, env={**environment(), **more}, cwd=self.directory, capture_output=True, text=True, timeout=3600, check=False)
            return done.returncode, done.stdout + done.stderr

        clock = self.directory / "clock"
        return play(run, [*arguments, "-i", self.inventory], clock, str(clock), ANSIBLE_PIPELINING="1")


def _changed(done: Play) -> int:
    return sum(int(number) for number in re.findall(r"changed=(\d+)", done.text.rpartition("PLAY RECAP")[2]))


def _inventory(hosts: t.Any, names: list[str], directory: pathlib.Path) -> str:
    nodes = fleet.nodes(len(names))
    for node, name in zip(nodes, names, strict=True):
        node["metadata"]["name"] = name
        node["spec"].pop("taints", None)
    mine = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "mine"}, "handler": "mine"}
    manifests = directory / "manifests.json"
    manifests.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [mine, *nodes]}), encoding="utf-8")
    variables = {
        "ansible_user": "ops",
        "ansible_ssh_transfer_method": "piped",
        "ansible_python_interpreter": "/usr/bin/python3",
        "runtime_gate_handlers": _HANDLERS,
        "runtime_gate_manifests": [str(manifests)],
        "runtime_gate_ready_timeout": 60,
    }
    own = {name: {"ansible_ssh_executable": str(hosts.directory / f"ssh-{name}")} for name in names}
    path = directory / "hosts.yml"
    path.write_text(json.dumps({"all": {"children": {"nodes": {"hosts": own, "vars": variables}}}}), encoding="utf-8")
    return str(path)
