# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Overhead against a real API server and scheduler: the largest request that is reported fits, and one thousandth more does not."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crosscheck import crosscheck
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.quantity import parse_quantity
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_reader import read_cluster
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok import Kwok
from tests.cluster.pods import pod, runtime_class
from tests.cluster.waiting import wait_until

PODS = "/api/v1/namespaces/default/pods"
Data = t.Dict[str, t.Any]
#: Of different sizes and ways to write them; each has its own label, so that a pod has one candidate.
ALLOCATABLE = {
    "one": {"cpu": "1", "memory": "4Gi"},
    "odd": {"cpu": "3920m", "memory": "16393244Ki"},
    "busy": {"cpu": "2", "memory": "2Gi"},
    "full": {"cpu": "1", "memory": "1Gi"},
    "tiny": {"cpu": "200m", "memory": "1Gi"},
}
OVERHEADS = {"gvisor": {"cpu": "250m", "memory": "128Mi"}, "kata": {"cpu": "0.1", "memory": "160e6"}, "memory-only": {"memory": "1"}}


@pytest.fixture(scope="module", name="cluster")
def _cluster() -> t.Iterator[ControlPlane]:
    with ControlPlane(programs=("scheduler", "controller-manager")) as cluster, Kwok(cluster) as kwok:
        kwok.add_nodes([{"name": name, "labels": {"node": name}, "allocatable": room, "runtimeHandlers": ["h"]} for name, room in ALLOCATABLE.items()])
        cluster.create([runtime_class(name, "h", overhead={"podFixed": fixed}) for name, fixed in OVERHEADS.items()])
        cluster.create([runtime_class("monster", "h", overhead={"podFixed": {"cpu": "100"}})])
        there = [
            pod("there-1", requests={"cpu": "300m", "memory": "100M"}, nodeSelector={"node": "busy"}),
            pod("there-2", runtime_class="gvisor", requests={"cpu": "0.5"}, nodeSelector={"node": "busy"}),
            pod("there-3", requests={"cpu": "1"}, nodeSelector={"node": "full"}),
        ]
        cluster.create(there)
        assert wait_until(lambda: all(bound(cluster, each["metadata"]["name"]) for each in there), 60)
        yield cluster


def read(cluster: ControlPlane) -> Data:
    found = read_cluster({"kubeconfig": str(cluster.kubeconfig)}, workloads=True)
    return crosscheck(found["classes"], found["nodes"], workloads=found["workloads"], policy={})


def conditions(cluster: ControlPlane, name: str) -> str:
    """Why the scheduler does not bind a pod; empty while it has not said so."""
    status = cluster.request("GET", f"{PODS}/{name}")["status"]
    return "".join(each.get("message", "") for each in status.get("conditions", []) if each["type"] == "PodScheduled")


def bound(cluster: ControlPlane, name: str) -> bool:
    return bool(cluster.request("GET", f"{PODS}/{name}")["spec"].get("nodeName"))


def remove(cluster: ControlPlane, names: t.Iterable[str]) -> None:
    for name in names:
        cluster.request("DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")


def test_the_largest_request_fits_and_a_thousandth_more_does_not(cluster: ControlPlane, tell: t.Callable[[str], None]) -> None:
    report = {entry["runtime_class"]: entry for entry in read(cluster)["overhead"]}
    assert {entry["rests_on"] for entry in report.values()} == {"pods"}
    checked = 0
    for name in OVERHEADS:
        for node, largest in report[name]["nodes"].items():
            target = {"runtime_class": name, "nodeSelector": {"node": node}}
            if largest is None:
                cluster.create([pod("none", requests={"cpu": "0"}, **target)])
                assert wait_until(lambda: "Insufficient" in conditions(cluster, "none"), 30), (name, node)
                remove(cluster, ["none"])
                checked += 1
                continue
            more_cpu = f"{parse_quantity(largest['cpu'], 'x').milli() + 1}m"
            more_memory = str(parse_quantity(largest["memory"], "x").whole() + 1)
            cluster.create(
                [
                    pod("over-cpu", requests={"cpu": more_cpu}, **target),
                    pod("over-memory", requests={"memory": more_memory}, **target),
                ]
            )
            assert wait_until(lambda: "Insufficient cpu" in conditions(cluster, "over-cpu"), 30), (name, node, more_cpu)
            assert wait_until(lambda: "Insufficient memory" in conditions(cluster, "over-memory"), 30), (name, node, more_memory)
            remove(cluster, ["over-cpu", "over-memory"])
            cluster.create([pod("largest", requests=largest, **target)])
            assert wait_until(lambda: bound(cluster, "largest"), 30), (name, node, largest, conditions(cluster, "largest"))
            remove(cluster, ["largest"])
            checked += 1
    tell(f"overhead: {checked} pairs of class and node, the largest request fits and a thousandth more does not")
    assert checked == len(OVERHEADS) * len(ALLOCATABLE)
    assert report["gvisor"]["nodes"]["tiny"] is None and report["gvisor"]["nodes"]["full"] is None
    assert report["memory-only"]["nodes"]["full"]["cpu"] == "0"


def test_pods_that_are_pending_because_of_it(cluster: ControlPlane) -> None:
    """TESTBED's case: 900m and an overhead of 250m on a node of one cpu."""
    target = {"nodeSelector": {"node": "one"}}
    cluster.create(
        [
            pod("stuck", runtime_class="gvisor", requests={"cpu": "900m"}, **target),
            pod("too-large", runtime_class="gvisor", requests={"cpu": "1100m"}, **target),
            pod("monster", runtime_class="monster", requests={"cpu": "1m"}, **target),
        ]
    )
    try:
        assert wait_until(lambda: all("Insufficient cpu" in conditions(cluster, name) for name in ("stuck", "too-large", "monster")), 30)
        notices = {(notice["name"], notice["runtime_class"]): notice for notice in read(cluster)["notices"]}
        pending = [notice for (name, _class), notice in notices.items() if name == "pods_pending_for_overhead"]
        told = [text for notice in read(cluster)["notices"] if notice["name"] == "pods_pending_for_overhead" for text in (notice["message"],)]
        assert len(told) == 2 and pending
        assert any("default/stuck" in text and "without it one would take them" in text for text in told), told
        assert not any("too-large" in text for text in told), told
        assert ("overhead_nobody_carries", "monster") in notices and ("overhead_nobody_carries", "gvisor") not in notices
    finally:
        remove(cluster, ["stuck", "too-large", "monster"])
    assert not [notice for notice in read(cluster)["notices"] if notice["name"] == "pods_pending_for_overhead"]
