# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cross-check: RuntimeClasses x nodes x what their runtimes have. Pure; bad input raises RuntimeGateError.

Nodes that cannot be told apart (the same labels that any class selects on, the same taints, the same handlers) are
judged once for all classes, so a fleet of a few pools costs its pools; the records that are returned are built
node by node.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.blast_radius import blast_radius
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.explain import Hints, cannot_run, explain, typing_error
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.failing_pods import Failure, denied_handlers, read_failures
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.fleet import Fleet, loaded_handlers
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import yaml_kind
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.judged_node import JudgedNode, Runtime, read_node
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.notices import notices_of
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.overhead import demands, overhead_report, rooms_of
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import Policy, parse_policy, require_existing
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.runtime_class import (
    OLD_VERSIONS,
    JudgedClass,
    read_classes,
    read_references,
    required_as_classes,
    unfolded,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.verdict import (
    LACKING,
    VERDICTS,
    State,
    fails,
    handler_state,
    is_pending,
    is_time_bomb,
    reach,
    verdict_of,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

# How many nodes are looked at to find a label that would scope a class; it is only a suggestion.
_SAMPLE = 64


class Cell(t.NamedTuple):
    """One class on one kind of node."""

    where: str
    verdict: str
    state: State
    fails: bool


class Group(t.NamedTuple):
    """Nodes that no class can tell apart. row: one cell for each judged class, in their order."""

    nodes: list[JudgedNode]
    row: list[Cell]


def crosscheck(
    runtime_classes: t.Any,
    nodes: t.Any,
    workloads: t.Any = None,
    policy: t.Any = None,
    verdicts: str = "notable",
    classes_read: bool = True,
    judge: t.Collection[str] | None = None,
    fleet: bool = True,
    events: t.Any = None,
) -> dict[str, t.Any]:
    """Judge every class on every node. The result is that of DESIGN's public contract.

    runtime_classes: RuntimeClass objects or {name, handler, scheduling}. nodes: Node objects or {name, labels, taints,
    runtime}. workloads: pods and templates, None where they are not known. policy: what the operator wrote.
    verdicts: notable (every record but a plain ok and not_targeted) or all. classes_read: False where the query
    failed; nothing passes then. judge: names of the nodes to judge, the others only lend their labels; None: all.
    fleet: the nodes are meant to be the whole cluster, so notices about it make sense. events: Event objects of the cluster, None
    where they were not read; with them the workloads have to be all of the cluster's.
    Raises RuntimeGateError for bad input.
    """
    if verdicts not in ("notable", "all"):
        raise RuntimeGateError(f"verdicts is {verdicts!r}; it takes notable or all")
    rules = parse_policy(policy)
    workloads = unfolded(workloads)
    references = read_references(workloads)
    every_class = read_classes(runtime_classes if classes_read else [], rules, references)
    if classes_read:
        require_existing(rules, [str(entry.name) for entry in every_class])
    failures = read_failures(events, workloads or (), [str(entry.name) for entry in every_class])
    everywhere = _contradicted(_read_nodes(nodes), failures or ())
    judged_nodes = _chosen(everywhere, judge)
    classes = [entry for entry in every_class if entry.mode != "skip"] + required_as_classes(rules)
    groups = _group([node for node in judged_nodes if node.kind == "linux"], classes, rules)

    records = _records(groups, classes, rules, verdicts)
    counts = _counts(groups, classes, every_class, everywhere, judged_nodes)
    missing = _missing(groups, classes)
    # Without a node nothing was shown about any: that is no pass, unless nothing was asked of any either.
    ok = bool(classes_read) and counts["fails"] == 0 and bool(everywhere or not classes)
    rooms = rooms_of(everywhere, workloads) if fleet else {}
    overheads = overhead_report(_targeted(groups, classes), rooms, workloads is not None)
    told = _told_failures(failures, groups, classes, rules)
    view = Fleet(
        classes=every_class,
        judged=classes,
        nodes=everywhere,
        groups=groups,
        policy=rules,
        references=references,
        classes_read=bool(classes_read),
        whole=fleet,
        loaded=loaded_handlers(groups),
        overheads=overheads,
        demands=demands(workloads or (), _admitting(runtime_classes), everywhere, rooms) if fleet and classes_read else None,
        failing=told or [],
    )
    return {
        "ok": ok,
        "verdicts": records,
        "counts": counts,
        "missing": missing,
        "missing_handlers": sorted({handler for handlers in missing.values() for handler in handlers}),
        "classes": _class_summaries(every_class, classes, groups),
        "nodes": _node_summaries(everywhere, judged_nodes, groups),
        "notices": notices_of(view),
        "overhead": overheads,
        "failing_pods": told,
        "blast_radius": {node.name: blast_radius(node, references) for node in judged_nodes if node.kind == "linux"},
        "lines": ["OK"] if ok else _lines(groups, classes),
    }


def _read_nodes(raw: t.Any) -> list[JudgedNode]:
    if not isinstance(raw, (list, tuple)):
        raise RuntimeGateError(f"nodes is {yaml_kind(raw)}, not a list")
    nodes = [read_node(entry, index) for index, entry in enumerate(raw)]
    seen: set[str] = set()
    for node in nodes:
        if node.name in seen:
            raise RuntimeGateError(f"node {node.name} stands twice in nodes; names are unique in a cluster")
        seen.add(node.name)
    return nodes


def _contradicted(nodes: list[JudgedNode], failures: t.Iterable[Failure]) -> list[JudgedNode]:
    """A Node's status is a late copy, and after a reload of CRI-O a wrong one. Where the runtime itself tells a pod that it has not
    what the status lists, the status shows nothing about that handler."""
    denied = denied_handlers(failures)
    return [
        node._replace(runtime=node.runtime._replace(denied=denied[node.name])) if node.name in denied and node.runtime.evidence == "api" else node
        for node in nodes
    ]


def _admitting(runtime_classes: t.Any) -> dict[str, dict[str, t.Any]]:
    """Name -> the RuntimeClass as admission sees it. They have been read and found good."""
    found = {}
    for raw in runtime_classes:
        spec = raw if raw.get("apiVersion") != OLD_VERSIONS[0] else raw["spec"]
        name = raw["metadata"]["name"] if "metadata" in raw else raw["name"]
        found[name] = {"metadata": {"name": name}, **{key: spec[key] for key in ("overhead", "scheduling") if spec.get(key) is not None}}
    return found


def _targeted(groups: list[Group], classes: list[JudgedClass]) -> t.Iterator[tuple[JudgedClass, list[JudgedNode]]]:
    """Each class with the nodes that it lands on."""
    for index, entry in enumerate(classes):
        yield entry, [node for group in groups if group.row[index].where == "targeted" for node in group.nodes]


def _told_failures(
    failures: t.Sequence[Failure] | None, groups: list[Group], classes: list[JudgedClass], policy: Policy
) -> list[dict[str, t.Any]] | None:
    """Each failure with the verdict of its node and class, and what explains it; those keys are null where nothing was judged."""
    if failures is None:
        return None
    places = {node.name: (node, group) for group in groups for node in group.nodes} if failures else {}
    position = {entry.name: index for index, entry in enumerate(classes) if entry.name is not None}
    found = []
    for failure in failures:
        told: dict[str, t.Any] = {**failure._asdict(), "verdict": None, "reason": None, "fix": None, "faults": []}
        if failure.node in places and failure.runtime_class in position:
            node, group = places[failure.node]
            index = position[failure.runtime_class]
            record = _record(node, classes[index], policy, group.row[index], _hints(index, classes[index], groups))
            told.update({key: record[key] for key in ("verdict", "reason", "fix", "faults")}, handler=failure.handler or record["handler"])
        found.append(told)
    return found


def _chosen(nodes: list[JudgedNode], judge: t.Collection[str] | None) -> list[JudgedNode]:
    if judge is None:
        return nodes
    wanted = set(judge)
    strangers = wanted - {node.name for node in nodes}
    if strangers:
        raise RuntimeGateError(f"asked to judge {', '.join(sorted(strangers))}, which is not among the nodes")
    return [node for node in nodes if node.name in wanted]


def _group(nodes: list[JudgedNode], classes: list[JudgedClass], policy: Policy) -> list[Group]:
    """Put alike nodes together and judge each kind once. Nodes keep their order within a group."""
    keys = sorted({key for entry in classes for key in entry.selector})
    handlers = {entry.handler for entry in classes}
    found: dict[t.Any, Group] = {}
    for node in nodes:
        place = (node.labels_complete, node.taints, tuple(node.labels.get(key) for key in keys))
        alike = (place, _signature(node.runtime, handlers))
        group = found.get(alike)
        if group is None:
            group = found[alike] = Group([], _row(node, classes, policy))
        group.nodes.append(node)
    return list(found.values())


def _signature(runtime: Runtime, handlers: set[str]) -> t.Any:
    """Everything of a runtime that a verdict can depend on."""
    present = frozenset((name, runtime.handlers[name].get("usable") is False) for name in handlers if name in runtime.handlers)
    return (
        runtime.evidence,
        runtime.cri_ready,
        runtime.explicit,
        runtime.why_unknown is None,
        present,
        None if runtime.gains is None else runtime.gains & handlers,
        None if runtime.loses is None else runtime.loses & handlers,
        runtime.denied & handlers,
    )


def _row(node: JudgedNode, classes: list[JudgedClass], policy: Policy) -> list[Cell]:
    states: dict[str, State] = {}
    row = []
    for entry in classes:
        state = states.get(entry.handler)
        if state is None:
            state = states[entry.handler] = handler_state(node.runtime, entry.handler, policy.accept_evidence)
        where = reach(node, entry, policy)
        verdict = verdict_of(where, state)
        row.append(Cell(where, verdict, state, fails(verdict, state, entry, policy)))
    return row


def _records(groups: list[Group], classes: list[JudgedClass], policy: Policy, verdicts: str) -> list[dict[str, t.Any]]:
    """The records in the order of class, then node name; ordered so that two runs can be compared."""
    records = []
    for index, entry in enumerate(classes):
        hints: Hints | None = None
        for group in groups:
            cell = group.row[index]
            if verdicts == "notable" and not _notable(cell):
                continue
            if hints is None:
                hints = _hints(index, entry, groups)
            records.extend(_record(node, entry, policy, cell, hints) for node in group.nodes)
    records.sort(key=lambda record: (record["node"], record["runtime_class"] is None, record["runtime_class"] or record["handler"]))
    return records


def _notable(cell: Cell) -> bool:
    if cell.verdict == "ok":
        return is_time_bomb(cell.verdict, cell.state)
    return cell.verdict != "not_targeted"


def _record(node: JudgedNode, entry: JudgedClass, policy: Policy, cell: Cell, hints: Hints) -> dict[str, t.Any]:
    reason, fix, faults = explain(node, entry, policy, cell.where, cell.verdict, cell.state, hints)
    return {
        "node": node.name,
        "runtime_class": entry.name,
        "handler": entry.handler,
        "verdict": cell.verdict,
        "reason": reason,
        "fix": fix,
        "evidence": node.runtime.evidence,
        "handler_loaded": cell.state.loaded,
        "after_restart": cell.state.after_restart,
        "faults": faults,
        "pending": is_pending(cell.verdict, cell.state, node, entry.handler),
        "fails": cell.fails,
    }


def _hints(index: int, entry: JudgedClass, groups: list[Group]) -> Hints:
    """What the targeted nodes have, for did-you-mean and for the line that would scope the class."""
    handlers: dict[str, list[str | None]] = {}
    having: list[JudgedNode] = []
    lacking: list[JudgedNode] = []
    for group in groups:
        cell = group.row[index]
        (having if cell.state.loaded else lacking).extend(group.nodes[:_SAMPLE])
        if cell.where == "targeted":
            for node in group.nodes[:_SAMPLE]:
                for name, info in node.runtime.handlers.items():
                    handlers.setdefault(name, []).append(cannot_run(info))
    meant = None if having else typing_error(entry.handler, handlers)
    broken = handlers[meant] if meant else []
    return Hints(meant, broken[0] if broken and all(broken) else None, None if entry.scope else _common_label(having[:_SAMPLE], lacking[:_SAMPLE]))


def _common_label(having: list[JudgedNode], lacking: list[JudgedNode]) -> tuple[str, str] | None:
    """A label that all of the one have and none of the other, other than the host's own name."""
    if not having or not lacking:
        return None
    shared = set(having[0].labels.items())
    for node in having[1:]:
        shared &= set(node.labels.items())
    for node in lacking:
        shared -= set(node.labels.items())
    named = sorted(pair for pair in shared if pair[0] != "kubernetes.io/hostname")
    return named[0] if named else None


def _counts(
    groups: list[Group],
    classes: list[JudgedClass],
    every_class: list[JudgedClass],
    everywhere: list[JudgedNode],
    judged_nodes: list[JudgedNode],
) -> dict[str, int]:
    counts = dict.fromkeys(VERDICTS, 0)
    counts.update(records=0, fails=0, pending=0, restart_loss=0, failing_nodes=0)
    for group in groups:
        size = len(group.nodes)
        counts["records"] += size * len(group.row)
        counts["failing_nodes"] += size if any(cell.fails for cell in group.row) else 0
        for entry, cell in zip(classes, group.row):
            counts[cell.verdict] += size
            counts["fails"] += size if cell.fails else 0
            counts["restart_loss"] += size if is_time_bomb(cell.verdict, cell.state) else 0
            counts["pending"] += sum(is_pending(cell.verdict, cell.state, node, entry.handler) for node in group.nodes)
    judged = [node for node in judged_nodes if node.kind == "linux"]
    counts["runtime_classes"] = len(every_class)
    counts["nodes"] = len(everywhere)
    counts["judged_nodes"] = len(judged)
    counts["windows_nodes"] = sum(1 for node in everywhere if node.kind == "windows")
    counts["virtual_nodes"] = sum(1 for node in everywhere if node.kind == "virtual")
    return counts


def _missing(groups: list[Group], classes: list[JudgedClass]) -> dict[str, list[str]]:
    """Node -> the handlers that fail there because a pod could not start now."""
    found = {}
    for group in groups:
        handlers = sorted({entry.handler for entry, cell in zip(classes, group.row) if cell.fails and cell.verdict in LACKING})
        if handlers:
            found.update((node.name, handlers) for node in group.nodes)
    return dict(sorted(found.items()))


def _lines(groups: list[Group], classes: list[JudgedClass]) -> list[str]:
    """Every handler that fails anywhere, for whatever reason: a line is what a pipeline reads, and it may not pass."""
    handlers = {entry.handler for group in groups for entry, cell in zip(classes, group.row) if cell.fails}
    return [f"MISSING={handler}" for handler in sorted(handlers)]


def _class_summaries(
    every_class: list[JudgedClass], classes: list[JudgedClass], groups: list[Group]
) -> list[dict[str, t.Any]]:
    position = {entry.name: index for index, entry in enumerate(classes) if entry.name is not None}
    summaries = []
    for entry in every_class:
        counts = dict.fromkeys(VERDICTS, 0)
        targeted = 0
        if entry.name in position:
            for group in groups:
                cell = group.row[position[entry.name]]
                counts[cell.verdict] += len(group.nodes)
                targeted += len(group.nodes) if cell.where == "targeted" else 0
        summaries.append(
            {
                "name": entry.name,
                "handler": entry.handler,
                "scope": entry.scope or "unscoped",
                "node_selector": dict(entry.selector),
                "judged": entry.mode != "skip",
                "not_judged_because": entry.why if entry.mode == "skip" else None,
                "references": entry.references,
                "targeted": targeted,
                "counts": counts,
            }
        )
    return sorted(summaries, key=lambda summary: summary["name"])


def _node_summaries(
    everywhere: list[JudgedNode], judged_nodes: list[JudgedNode], groups: list[Group]
) -> list[dict[str, t.Any]]:
    rows = {node.name: group.row for group in groups for node in group.nodes}
    chosen = {node.name for node in judged_nodes}
    return [_node_summary(node, node.name in chosen, rows.get(node.name)) for node in everywhere]


def _node_summary(node: JudgedNode, chosen: bool, row: list[Cell] | None) -> dict[str, t.Any]:
    runtime = node.runtime
    known = runtime.why_unknown is None
    return {
        "name": node.name,
        "kind": node.kind,
        "judged": chosen and row is not None,
        "engine": runtime.engine,
        "version": runtime.version,
        "evidence": runtime.evidence,
        "cri_ready": runtime.cri_ready,
        "collected_at": runtime.collected_at,
        "default_handler": runtime.default_handler,
        "handlers": sorted(runtime.handlers) if known else None,
        "fails": any(cell.fails for cell in row or ()),
        "why_unknown": runtime.why_unknown,
    }
