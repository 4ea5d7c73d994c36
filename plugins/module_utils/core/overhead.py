# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Overhead: what a RuntimeClass takes for itself from a node before a pod gets anything, and who cannot be scheduled for it. Pure.

Sources: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-overhead/ (admission fills in spec.overhead, the scheduler adds it to
the requests), and those of core/admission.py and core/resources.py.
"""

from __future__ import annotations

import collections
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.admission import (
    Admitted,
    Refusal,
    Room,
    admit,
    asking,
    insufficient,
    requested,
    unfit,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import entries, part
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.judged_node import JudgedNode
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.quantity import Quantity
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.resources import (
    Amounts,
    Counts,
    amount_of,
    amounts,
    counted,
    occupies,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.runtime_class import JudgedClass, pod_spec, workload_name

Data = t.Dict[str, t.Any]
# What people request of a node; a resource that the overhead names comes on top.
_USUAL = ("cpu", "memory")
# Pods are alike by the dozen; beyond this many different ones only the first are looked at, and the result says so.
_MOST_STUCK = 200


class Stuck(t.NamedTuple):
    """A workload that finds no node with the overhead of its class and would find one without. nodes: where. new: it has not been
    created yet, and does not even fit an empty node. largest: the most that it could request there, resource -> quantity."""

    name: str
    runtime_class: str
    nodes: list[str]
    new: bool
    largest: dict[str, str]


class Refused(t.NamedTuple):
    """A workload whose pods admission would refuse. reason: in the API server's words."""

    name: str
    runtime_class: str
    reason: str


class Demands(t.NamedTuple):
    """stuck and refused workloads. unseen: how many further kinds of pods were not looked at."""

    stuck: list[Stuck]
    refused: list[Refused]
    unseen: int


def rooms_of(nodes: t.Iterable[JudgedNode], workloads: t.Sequence[t.Mapping[str, t.Any]] | None) -> dict[str, Room]:
    """Node -> what it has to give, of the nodes whose allocatable is known. workloads: None where they were not read; every node
    then counts as empty. Raises RuntimeGateError for what is no quantity."""
    there: dict[str, list[t.Mapping[str, t.Any]]] = collections.defaultdict(list)
    for index, workload in enumerate(workloads or ()):
        node = occupies(workload, f"workloads[{index}]") if workload.get("kind") == "Pod" else None
        if node:
            there[node].append(workload)
    return {
        node.name: Room(
            node.name,
            node.labels,
            node.taints,
            node.cordoned,
            counted(amounts(node.allocatable, f"node {node.name}: allocatable")),
            requested(there.get(node.name, ())),
            len(there.get(node.name, ())),
        )
        for node in nodes
        if node.allocatable
    }


def overhead_report(
    classes: t.Iterable[tuple[JudgedClass, t.Sequence[JudgedNode]]], rooms: t.Mapping[str, Room], pods_known: bool
) -> list[Data]:
    """For each class with an overhead the largest request that still fits each node that it targets.

    classes: the class and its targeted nodes. The result: runtime_class, overhead, rests_on (pods: allocatable less what the pods
    there request; allocatable: that alone), nodes (name -> resource -> quantity; null where not even the overhead fits), carried_by
    (how many nodes could carry the overhead were they empty), known (of how many that is known).
    """
    report = []
    for entry, nodes in classes:
        overhead = amounts(entry.overhead, f"RuntimeClass {entry.name}: overhead.podFixed")
        if not overhead or entry.name is None:
            continue
        cost = counted(overhead)
        known = [node for node in nodes if node.name in rooms]
        report.append(
            {
                "runtime_class": entry.name,
                "overhead": _texts(overhead),
                "rests_on": "pods" if pods_known else "allocatable",
                "known": len(known),
                "carried_by": sum(1 for node in known if _carries(rooms[node.name].has, cost)),
                "nodes": {node.name: largest_request(node, rooms[node.name], overhead) for node in known},
            }
        )
    return sorted(report, key=lambda each: each["runtime_class"])


def largest_request(node: JudgedNode, room: Room, overhead: Amounts) -> dict[str, str] | None:
    """Resource -> the most that one more pod with this overhead can request here; None where it fits with no request at all."""
    cost = counted(overhead)
    if room.pods + 1 > room.has.get("pods", 0):
        return None
    left = {name: room.has.get(name, 0) - room.taken.get(name, 0) - cost.get(name, 0) for name in {*_USUAL, *cost}}
    if any(left[name] < 0 and cost[name] > 0 for name in cost):
        return None
    written = amounts({name: node.allocatable[name] for name in left if name in node.allocatable}, f"node {node.name}: allocatable")
    style = {name: amount.style for name, amount in written.items()}
    return {name: str(amount_of(name, max(0, left[name]), style.get(name, "decimal"))) for name in sorted(left)}


def demands(
    workloads: t.Sequence[t.Mapping[str, t.Any]], classes: t.Mapping[str, t.Mapping[str, t.Any]], nodes: t.Sequence[JudgedNode], rooms: t.Mapping[str, Room]
) -> Demands:
    """Who cannot be scheduled because of an overhead, and whom admission would refuse.

    workloads: pods and templates. classes: name -> RuntimeClass object. A pod of the cluster counts where the scheduler has said that it
    is unschedulable; a template, and a pod that is not created yet, by what an empty node could carry.
    """
    by_name = {node.name: node for node in nodes}
    found = Demands([], [], 0)
    seen: dict[t.Any, Stuck | None] = {}
    unseen = 0
    for index, workload in enumerate(workloads):
        where = f"workloads[{index}]"
        runtime_class = classes.get(str(pod_spec(workload, where).get("runtimeClassName")))
        if runtime_class is None:
            continue
        new = workload.get("kind") != "Pod" or not part(workload, "status", where=where).get("phase")
        if not new and not _unschedulable(workload, where):
            continue
        pod = {"metadata": workload.get("metadata"), "spec": pod_spec(workload, where)}
        name = workload_name(workload, where) if workload.get("kind") == "Pod" else f"{workload.get('kind')} {workload_name(workload, where)}"
        admitted = admit(pod, runtime_class) if new else Admitted(pod)
        if isinstance(admitted, Refusal):
            found.refused.append(Refused(name, str(pod["spec"]["runtimeClassName"]), admitted.reason))
            continue
        if not admitted.pod["spec"].get("overhead"):
            continue
        key = (new, repr(admitted.pod["spec"]))
        if key not in seen:
            if len(seen) >= _MOST_STUCK:
                unseen += 1
                continue
            seen[key] = _stuck(admitted.pod, new, rooms, by_name)
        if seen[key]:
            found.stuck.append(seen[key]._replace(name=name))
    return found._replace(unseen=unseen)


def _stuck(pod: t.Mapping[str, t.Any], new: bool, rooms: t.Mapping[str, Room], nodes: t.Mapping[str, JudgedNode]) -> Stuck | None:
    """None where a node takes it all the same, or none would without the overhead either."""
    whole, bare = asking(pod), asking(pod, overhead=False)
    without = []
    for room in rooms.values():
        offered = room._replace(taken={}, pods=0) if new else room
        if unfit(bare, offered) is None:
            # An overhead only adds to requests: nothing but a lack of them can keep the whole away now.
            if not insufficient(whole.wanted, offered.has, offered.taken, offered.pods):
                return None
            without.append(offered)
    if not without:
        return None
    overhead = amounts(part(pod, "spec", "overhead", where="a pod"), "a pod: spec.overhead")
    best = max(without, key=lambda room: (room.has.get("cpu", 0) - room.taken.get("cpu", 0), room.name))
    most = largest_request(nodes[best.name], best, overhead) or {}
    return Stuck("", str(pod["spec"]["runtimeClassName"]), sorted(room.name for room in without), new, most)


def _unschedulable(pod: t.Mapping[str, t.Any], where: str) -> bool:
    """[PodScheduled] The scheduler has tried, and says that no node takes the pod."""
    conditions = entries(part(pod, "status", where=where), "conditions", where)
    return any(each.get("type") == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)


def _carries(has: Counts, cost: Counts) -> bool:
    return all(has.get(name, 0) >= count for name, count in cost.items())


def _texts(found: t.Mapping[str, Quantity]) -> dict[str, str]:
    return {name: str(found[name]) for name in sorted(found)}
