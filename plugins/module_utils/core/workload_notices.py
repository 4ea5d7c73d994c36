# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notices about workloads: who names a class that is not there, who fails, who finds no room. One function a notice, as in notices.py."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.failing_pods import (
    NO_CLASS,
    NOT_CONFIGURED,
    REJECTED,
    UNUSABLE,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.fleet import Fleet, near_name, notice, some
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.quantity import parse_quantity


def _references_nothing(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    if fleet.references is None or not fleet.classes_read:
        return
    known = [entry.name for entry in fleet.classes if entry.name]
    for name, count in sorted(fleet.references.by_class.items()):
        if name not in known:
            templates = fleet.references.templates.get(name, ())
            who = f": {some(templates)}" if templates else ""
            hidden = "; the workload applies without an error, which only its ReplicaSet, Job or other controller's object shows" if templates else ""
            yield notice(
                "workload_class_unknown",
                "warning",
                f"RuntimeClass {name} does not exist, but workloads name it ({count}{who}){near_name(name, known)}; admission rejects"
                f" their pods{hidden}",
                f"Create RuntimeClass {name}, or correct runtimeClassName.",
            )


def _failing_pods(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    """What events say, once for each trouble, with the verdict of the same node and class."""
    found: dict[tuple[str, t.Any, t.Any, t.Any], list[dict[str, t.Any]]] = {}
    for failure in fleet.failing:
        thing = failure["runtime_class"] if failure["cause"] in (NO_CLASS, REJECTED) else failure["handler"]
        found.setdefault((failure["cause"], thing, failure["runtime_class"], failure["verdict"]), []).append(failure)
    for (cause, thing, _class, verdict), failures in found.items():
        nodes = sorted({failure["node"] for failure in failures if failure["node"]})
        worst = failures[0]
        judged = f"; the verdict there is {verdict}" if verdict else ""
        yield notice(
            "failing_pods",
            "warning",
            f"{_TROUBLES[cause].format(thing=thing or 'the default handler', nodes=some(nodes))}"
            f" ({len(failures)}: {some(_object(failure) for failure in failures)}){judged}. {worst['said']}",
            worst["fix"] or _FIXES.get(cause),
            handler=worst["handler"],
            nodes=nodes,
        )


_TROUBLES = {
    NOT_CONFIGURED: "pods cannot start on {nodes}, whose runtime has no handler {thing}",
    UNUSABLE: "pods cannot start on {nodes}, whose runtime cannot start handler {thing}",
    NO_CLASS: "pods are not created, or cannot start, because RuntimeClass {thing} does not exist",
    REJECTED: "pods are not created: admission refuses them for their RuntimeClass",
}
_FIXES = {
    NOT_CONFIGURED: "Run the gate on these nodes: it names the file and line that lost the handler.",
    UNUSABLE: "Run the gate on these nodes: it names the shim or binary that is not there.",
    NO_CLASS: "Create the RuntimeClass, or correct runtimeClassName.",
    REJECTED: "Correct the pod template: its nodeSelector and overhead have to agree with the RuntimeClass.",
}


def _object(failure: t.Mapping[str, t.Any]) -> str:
    return str(failure["name"]) if failure["kind"] == "Pod" else f"{failure['kind']} {failure['name']}"


def _refused_workloads(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    found: dict[tuple[str, str], list[str]] = {}
    for refused in fleet.demands.refused if fleet.demands else ():
        found.setdefault((refused.runtime_class, refused.reason), []).append(refused.name)
    for (runtime_class, reason), names in sorted(found.items()):
        yield notice(
            "workload_refused",
            "warning",
            f"admission will refuse the pods of {some(names)} for RuntimeClass {runtime_class}: {reason}",
            _FIXES[REJECTED],
        )


def _overheads(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    """How much a class leaves of a node, and the classes that no node can carry."""
    by_name = {entry.name: entry for entry in fleet.judged}
    for report in fleet.overheads:
        if not report["known"]:
            continue
        adds = _quantities(report["overhead"])
        if not report["carried_by"]:
            yield notice(
                "overhead_nobody_carries",
                "warning",
                f"RuntimeClass {report['runtime_class']} adds {adds} to each pod, more than any of the {report['known']} nodes that it targets"
                " has allocatable: every pod of it stays Pending",
                "Lower overhead.podFixed of the class (it can be changed), or target larger nodes.",
                by_name[report["runtime_class"]],
                nodes=report["nodes"],
            )
            continue
        rooms = {name: room for name, room in report["nodes"].items() if room is not None}
        rests = "allocatable less what the pods there request" if report["rests_on"] == "pods" else "allocatable alone; the pods there are not known"
        best = max(rooms, key=lambda name: (parse_quantity(rooms[name]["cpu"], name).nano, name)) if rooms else None
        most = f"the largest request that still fits is {_quantities(rooms[best])} on {best}" if best else "no node has room for one more of its pods"
        yield notice(
            "overhead_room",
            "info",
            f"RuntimeClass {report['runtime_class']} adds {adds} to each pod; {most} (by {rests})",
            judged=by_name[report["runtime_class"]],
            nodes=sorted(rooms),
        )


def _pending_for_overhead(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    found: dict[tuple[str, bool, str], list[t.Any]] = {}
    for stuck in fleet.demands.stuck if fleet.demands else ():
        found.setdefault((stuck.runtime_class, stuck.new, _quantities(stuck.largest)), []).append(stuck)
    for (runtime_class, new, largest), pods in sorted(found.items()):
        nodes = sorted({node for stuck in pods for node in stuck.nodes})
        state = "would stay Pending, even on empty nodes," if new else "stay Pending"
        more = f" ({fleet.demands.unseen} further kinds of pods were not looked at)" if fleet.demands and fleet.demands.unseen else ""
        yield notice(
            "pods_pending_for_overhead",
            "warning",
            f"pods of RuntimeClass {runtime_class} {state} because of its overhead ({len(pods)}: {some(stuck.name for stuck in pods)}); without it"
            f" {some(nodes)} would take them{more}",
            (f"Request at most {largest}" if largest else "Make room on the nodes") + ", or lower overhead.podFixed of the class for new pods.",
            nodes=nodes,
        )


def _quantities(found: t.Mapping[str, str]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in found.items())


WORKLOADS = (_references_nothing, _failing_pods, _refused_workloads, _overheads, _pending_for_overhead)
