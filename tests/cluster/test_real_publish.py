# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that takes no work until its handler is verified: a real kubelet that registers with the startup taint, a real scheduler, real pods.

What this proves: a pod whose RuntimeClass selects on our label waits until the rollout has loaded the handler, gated and published it;
the kubelet, which writes the Node's status all the time, leaves our condition alone; a drain moves the pod away before the next restart
and lets it back after it; removal takes label and condition away.
"""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.pods import pod, runtime_class
from tests.cluster.real_node import RealNode
from tests.cluster.waiting import wait_until
from tests.integration.ansible_runs import ROOT, Run, playbook, write_yaml

PREFIX = "runtime-gate.kubenode.io"
TAINT = f"{PREFIX}/not-verified"
LINE = "2.1"
RUNC = {"runtime_type": "io.containerd.runc.v2"}


class Unverified(RealNode):
    """Its kubelet registers with the startup taint."""

    def _kubelet_config(self) -> t.Dict[str, t.Any]:
        return {**super()._kubelet_config(), "registerWithTaints": [{"key": TAINT, "effect": "NoSchedule"}]}


@pytest.mark.full
def test_a_node_takes_work_when_its_handler_is_verified(tmp_path: pathlib.Path, tell: t.Callable[[str], None]) -> None:
    with ControlPlane(tmp_path / "plane", programs=("scheduler", "controller-manager")) as cluster, Unverified(
        tmp_path / "node", cluster, name="unverified", line=LINE
    ) as node:
        for name in ("rbac", "rbac-publish", "rbac-drain"):
            cluster.kubectl("apply", "-f", str(ROOT / f"examples/{name}.yml"))
        for role in ("reader", "publisher", "cordon", "drain"):
            cluster.kubectl("create", "clusterrolebinding", f"gate-{role}", f"--clusterrole=runtime-gate-{role}", "--user=gate")
        selecting = {"nodeSelector": {f"{PREFIX}/fresh": "loaded"}}
        cluster.apply([runtime_class("selecting", "fresh", scheduling=selecting), deployment()])
        node.wait_ready()
        assert wait_until(lambda: pods(cluster), 60)
        ((name, waiting),) = pods(cluster).items()
        assert waiting["status"]["phase"] == "Pending" and not waiting["spec"].get("nodeName") and TAINT in taints(node)

        first = roll_out("site", cluster, node, tmp_path, {"fresh": RUNC})
        assert first.status == 0, first.text
        assert wait_until(lambda: running(cluster) == {name}, 120, 0.5), pods(cluster)
        assert TAINT not in taints(node) and not node.api_object()["spec"].get("unschedulable")
        written = conditions(node)
        assert written["RuntimeHandlersReady"]["status"] == "True"
        # The kubelet goes on writing its own.
        beat = written["Ready"]["lastHeartbeatTime"]
        assert wait_until(lambda: conditions(node)["Ready"]["lastHeartbeatTime"] > beat, 60)
        assert conditions(node)["RuntimeHandlersReady"] == written["RuntimeHandlersReady"]

        second = roll_out("site", cluster, node, tmp_path, {"fresh": RUNC, "second": RUNC}, "-v")
        assert second.status == 0 and f'"evicted": ["default/{name}"]' in second.text, second.text
        assert wait_until(lambda: len(running(cluster)) == 1 and name not in running(cluster), 120, 0.5), pods(cluster)
        assert labels(node) == {f"{PREFIX}/{handler}" for handler in ("fresh", "mine", "runc", "second")}

        removed = roll_out("remove", cluster, node, tmp_path, {})
        assert removed.status == 0, removed.text
        assert labels(node) == set() and "RuntimeHandlersReady" not in conditions(node) and "Ready" in conditions(node)
        assert not node.api_object()["spec"].get("unschedulable")
    tell(f"containerd {LINE}, real kubelet: a pod waited for label and taint, ran after the gate, was drained once and came back")


def deployment() -> t.Dict[str, t.Any]:
    """One pod of the class, which somebody starts elsewhere, or again."""
    made = pod("x", "selecting", labels={"app": "web"})
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {**made["spec"], "restartPolicy": "Always"}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}, "spec": spec}


def roll_out(name: str, cluster: ControlPlane, node: RealNode, folder: pathlib.Path, handlers: t.Mapping[str, t.Any], *arguments: str) -> Run:
    shared = {
        "runtime_gate_handlers": handlers,
        "runtime_gate_drain": True,
        "runtime_gate_publish": True,
        "runtime_gate_cluster": {"kubeconfig": str(cluster.user_kubeconfig("gate"))},
    }
    inventory = write_yaml(folder / "hosts.yml", {"all": {"hosts": {node.name: node.inventory_vars()}, "vars": shared}})
    return playbook(f"kubenode.runtime_gate.{name}", "-i", inventory, *arguments)


def pods(cluster: ControlPlane) -> t.Dict[str, t.Dict[str, t.Any]]:
    """Those of the Deployment that are not to end."""
    found = cluster.request("GET", "/api/v1/namespaces/default/pods?labelSelector=app%3Dweb")["items"]
    return {one["metadata"]["name"]: one for one in found if not one["metadata"].get("deletionTimestamp")}


def running(cluster: ControlPlane) -> t.Set[str]:
    return {name for name, one in pods(cluster).items() if one["status"]["phase"] == "Running"}


def taints(node: RealNode) -> t.Set[str]:
    return {taint["key"] for taint in node.api_object()["spec"].get("taints") or ()}


def conditions(node: RealNode) -> t.Dict[str, t.Dict[str, t.Any]]:
    return {one["type"]: one for one in node.api_object()["status"]["conditions"]}


def labels(node: RealNode) -> t.Set[str]:
    return {key for key, value in node.api_object()["metadata"]["labels"].items() if key.startswith(PREFIX + "/") and value == "loaded"}
