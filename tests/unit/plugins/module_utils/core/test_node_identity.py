# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Node is this? The order of DESIGN: variable, hostname override, kubeconfig, boot id, machine id, host name."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.node_identity import identify
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError


def node(name: str, boot: str = "", machine: str = "") -> dict[str, object]:
    return {"metadata": {"name": name}, "status": {"nodeInfo": {"bootID": boot, "machineID": machine}}}


NODES = [node("w1", "boot-1", "m1"), node("w2", "boot-2", "m2"), node("w3", "boot-3", "cloned"), node("w4", "boot-4", "cloned")]
EVERYTHING = {
    "hostname": "W4.Example.Com",
    "boot_id": "BOOT-2",
    "machine_id": "m2",
    "kubelet_hostname_override": "w3",
    "kubelet_node_name": "w1",
}


@pytest.mark.parametrize(
    ("drop", "given", "name", "source"),
    [
        ([], "by-hand", "by-hand", "variable"),
        ([], None, "w3", "hostname_override"),
        (["kubelet_hostname_override"], None, "w1", "kubeconfig"),
        (["kubelet_hostname_override", "kubelet_node_name"], None, "w2", "boot_id"),
        (["kubelet_hostname_override", "kubelet_node_name", "boot_id"], None, "w2", "machine_id"),
        (["kubelet_hostname_override", "kubelet_node_name", "boot_id", "machine_id"], None, "w4.example.com", "hostname"),
    ],
)
def test_the_first_sign_wins(drop: list[str], given: str | None, name: str, source: str) -> None:
    identity = {key: value for key, value in EVERYTHING.items() if key not in drop}
    found = identify(identity, NODES, given)
    assert (found["name"], found["source"]) == (name, source)
    assert found["registered"] is (name in ("w1", "w2", "w3", "w4"))
    assert ("no Node of that name" in found["reason"]) is not found["registered"]


def test_cloned_machine_ids_are_no_sign() -> None:
    found = identify({"machine_id": "cloned", "hostname": "w4"}, NODES)
    assert (found["name"], found["source"], found["registered"]) == ("w4", "hostname", True)


def test_ids_without_dashes_are_the_same() -> None:
    assert identify({"boot_id": "BOOT1", "hostname": "x"}, NODES)["name"] == "w1"


def test_a_name_that_the_boot_id_contradicts() -> None:
    found = identify({"kubelet_node_name": "w1", "boot_id": "boot-2"}, NODES)
    assert found["name"] == "w1"
    assert "Node w2 has the same boot id" in found["conflict"]
    assert identify({"kubelet_node_name": "w2", "boot_id": "boot-2"}, NODES)["conflict"] is None


@pytest.mark.parametrize("identity", [None, {}, {"hostname": " ", "machine_id": None}])
def test_nothing_to_go_by(identity: dict[str, object] | None) -> None:
    with pytest.raises(RuntimeGateError, match="runtime_gate_node_name"):
        identify(identity, NODES)


def test_nodes_without_status() -> None:
    assert identify({"boot_id": "b", "hostname": "h"}, [{"metadata": {"name": "h"}}])["source"] == "hostname"
