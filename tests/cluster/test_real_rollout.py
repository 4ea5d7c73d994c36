# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole story on real nodes: a pod hangs for want of a handler, the rollout brings it, the pod runs, and no other was touched."""

from __future__ import annotations

import contextlib
import pathlib
import typing as t

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.pods import pod, pod_events, runtime_class
from tests.cluster.real_node import RealNode
from tests.cluster.waiting import wait_until
from tests.integration.ansible_runs import ROOT, playbook, write_yaml

DECLARED = {"fresh": {"runtime_type": "io.containerd.runc.v2"}}


@pytest.mark.full
def test_a_hanging_pod_runs_after_the_rollout_and_the_others_go_on(lines: list[str], tmp_path: pathlib.Path, tell: t.Callable[[str], None]) -> None:
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(ControlPlane(tmp_path / "plane", programs=("scheduler", "controller-manager")))
        nodes = [stack.enter_context(RealNode(tmp_path / line, cluster, name=f"real-{line.replace('.', '-')}", line=line)) for line in lines]
        cluster.apply([runtime_class("mine", "mine"), runtime_class("fresh", "fresh")])
        cluster.kubectl("apply", "-f", str(ROOT / "examples/rbac.yml"))
        cluster.kubectl("create", "clusterrolebinding", "gate", "--clusterrole=runtime-gate-reader", "--user=gate")
        for node in nodes:
            node.wait_ready()
        cluster.create([pod(f"{name}-{node.name}", name, node.name) for node in nodes for name in ("mine", "fresh")])
        for node in nodes:
            expect(cluster, f"mine-{node.name}", runs)
            expect(cluster, f"fresh-{node.name}", hangs)
        before = {node.name: node.containers() for node in nodes}

        run = site(cluster, nodes, tmp_path)
        assert run.status == 0 and [host["changed"] for host in run.recap.values()] == [1] * len(nodes), run.text
        for node in nodes:
            assert before[node.name].items() <= node.containers().items()
            # The kubelet tries again by itself; nobody deleted the pod.
            expect(cluster, f"fresh-{node.name}", runs)
        again = site(cluster, nodes, tmp_path)
        assert again.status == 0 and {host["changed"] for host in again.recap.values()} == {0}, again.text
        for node in nodes:
            assert before[node.name].items() <= node.containers().items()
    tell(f"rollout on containerd {', '.join(lines)}: {len(nodes)} hanging pods ran after it, {len(nodes)} running ones kept their processes")


def site(cluster: ControlPlane, nodes: t.Sequence[RealNode], folder: pathlib.Path) -> t.Any:
    """The rollout as a person starts it, with the rights of the example."""
    shared = {"runtime_gate_handlers": DECLARED, "runtime_gate_cluster": {"kubeconfig": str(cluster.user_kubeconfig("gate"))}}
    hosts = {node.name: node.inventory_vars() for node in nodes}
    inventory = write_yaml(folder / "hosts.yml", {"all": {"hosts": hosts, "vars": shared}})
    return playbook("kubenode.runtime_gate.site", "-i", inventory)


def expect(cluster: ControlPlane, name: str, state: t.Callable[[ControlPlane, str], bool]) -> None:
    assert wait_until(lambda: state(cluster, name), 150, 0.5), pod_events(cluster, name)


def runs(cluster: ControlPlane, name: str) -> bool:
    """Whether the kubelet has said that the pod runs."""
    return bool(cluster.request("GET", f"/api/v1/namespaces/default/pods/{name}")["status"]["phase"] == "Running")


def hangs(cluster: ControlPlane, name: str) -> bool:
    """Whether the daemon has said of this pod that it has no such handler."""
    return any(reason == "FailedCreatePodSandBox" and 'no runtime for "fresh" is configured' in text for reason, text in pod_events(cluster, name))
