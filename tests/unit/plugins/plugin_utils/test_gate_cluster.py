# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host gets of the cluster's data is enough to judge it as with all of them, and no more than that."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.node_identity import identify
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import gate_cluster
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import RunStore

CLASS = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "gpu"}, "handler": "nvidia"}


def node(name: str, boot: str = "", machine: str = "") -> dict[str, t.Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"nodeInfo": {"bootID": boot, "machineID": machine}}}


def pod(name: str, runtime_class: str | None = None, phase: str = "Running") -> dict[str, t.Any]:
    spec = {"runtimeClassName": runtime_class} if runtime_class else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec, "status": {"phase": phase}}


# w3 and w4 are clones, w5 took the name of a host that is w1 by its boot id.
NODES = [node("w1", "B-1", "m1"), node("w2", "b2", "m2"), node("w3", "b3", "same"), node("w4", "b4", "same"), node("w5", "b5", "m5"), node("w6", "", "same")]


def arguments(path: pathlib.Path, *things: dict[str, t.Any], **policy: t.Any) -> dict[str, t.Any]:
    (path / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [CLASS, *things]}))
    return {"manifests": [str(path / "all.json")], "kubectl_host": "", "kubectl": "", "cluster": {}, "policy": policy}


def refuse(command: str) -> str:
    raise AssertionError(command)


@pytest.mark.parametrize(
    ("identity", "node_name"),
    [
        ({"hostname": "W1"}, None),
        ({"hostname": "w9", "boot_id": "b1"}, None),
        ({"hostname": "w9", "machine_id": "same"}, None),
        ({"hostname": "w3", "machine_id": "same"}, None),
        ({"hostname": "w5", "boot_id": "b1"}, None),
        ({"hostname": "x", "kubelet_node_name": "w5", "boot_id": "b1", "machine_id": "m2"}, None),
        ({"hostname": "x", "kubelet_hostname_override": "w2", "kubelet_node_name": "w5"}, None),
        ({"hostname": "x", "boot_id": "b2"}, "w4"),
        ({"hostname": "x", "boot_id": "b2"}, "nobody"),
        ({"hostname": "nobody"}, None),
        ({"hostname": "nobody", "boot_id": "", "machine_id": None}, ""),
    ],
)
def test_a_host_is_the_same_node_as_among_all(tmp_path: pathlib.Path, identity: dict[str, t.Any], node_name: str | None) -> None:
    found = gate_cluster.read_for(RunStore(str(tmp_path)), arguments(tmp_path, *NODES), refuse, identity, node_name)
    assert identify(identity, found["nodes"], node_name) == identify(identity, NODES, node_name)
    assert len(found["nodes"]) < 5


def test_the_clones_of_a_machine_are_not_all_handed_out(tmp_path: pathlib.Path) -> None:
    clones = [node(f"c{number}", machine="same") for number in range(50)]
    found = gate_cluster.read_for(RunStore(str(tmp_path)), arguments(tmp_path, *clones), refuse, {"hostname": "c40", "machine_id": "same"}, None)
    assert sorted(each["metadata"]["name"] for each in found["nodes"]) == ["c0", "c1", "c40"]


def test_a_host_gets_one_workload_for_each_class_and_the_closing_step_all(tmp_path: pathlib.Path) -> None:
    pods = [pod("over", "old", "Succeeded"), pod("a", "gpu"), pod("b", "gpu"), pod("c"), pod("d", "other")]
    asked, store = arguments(tmp_path, *NODES, *pods, unscoped="referenced"), RunStore(str(tmp_path))
    assert [each["metadata"]["name"] for each in gate_cluster.read(store, asked, refuse)["workloads"]] == ["a", "d"]
    whole = gate_cluster.remembered(store, gate_cluster.key_of(asked))
    assert whole is not None and len(whole["workloads"]) == 5 and len(whole["nodes"]) == 6


def test_without_need_no_host_gets_workloads(tmp_path: pathlib.Path) -> None:
    assert gate_cluster.read(RunStore(str(tmp_path)), arguments(tmp_path, *NODES, pod("a", "gpu")), refuse)["workloads"] is None


def test_what_cannot_be_read_is_said_to_every_host(tmp_path: pathlib.Path) -> None:
    store, asked = RunStore(str(tmp_path)), dict(arguments(tmp_path), manifests=[str(tmp_path / "none")])
    for host in ("w1", "w2"):
        with pytest.raises(RuntimeGateError, match="does not exist"):
            gate_cluster.read_for(store, asked, refuse, {"hostname": host}, None)
