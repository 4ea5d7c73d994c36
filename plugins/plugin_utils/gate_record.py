# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate without Ansible: one host's record, and what the closing step makes of all records.

A record is what the report holds of one host (:func:`judge_host`). The report (:func:`make_report`) is the records,
what only the whole fleet shows, and who was not judged. Both are plain data.
"""

from __future__ import annotations

import collections
import json
import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crosscheck import crosscheck
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.engines import facts_of
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import parse_policy
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import judge
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.reports.words import column_of

Data = t.Dict[str, t.Any]

REPORT_SCHEMA = 1

#: Labels by which clouds and autoscalers name the pool of a node (their documentation).
POOL_LABELS = (
    "cloud.google.com/gke-nodepool", "eks.amazonaws.com/nodegroup", "kubernetes.azure.com/agentpool", "karpenter.sh/nodepool",
    "doks.digitalocean.com/node-pool", "machine.openshift.io/cluster-api-machineset",
)  # fmt: skip
#: How many hosts a message for all of them tells of; the table has each.
_TOLD = 5

#: The keys of a runtime's facts that a cross-check of the whole fleet looks at; the rest stays with its host.
_FLEET_KEYS = (
    "schema", "engine", "version", "serves_kubelet", "evidence", "cri_ready", "explicit", "default_handler", "handlers",
    "restart_gains", "restart_loses", "collected_at", "reason",
)
#: What the record takes over from the cross-check's summary of the node.
_SUMMARY_KEYS = ("kind", "engine", "version", "evidence", "cri_ready", "collected_at", "default_handler", "handlers")


class Options(t.NamedTuple):
    """What the inventory says about one host. pending_fails: a handler that this run would load fails the host."""

    node_name: t.Optional[str] = None
    node_labels: t.Mapping[str, t.Any] = {}
    node_taints: t.Sequence[t.Any] = ()
    policy: t.Optional[t.Mapping[str, t.Any]] = None
    pending_handlers: t.Sequence[str] = ()
    pending_fails: bool = True


def runtime_of(host: str, result: t.Mapping[str, t.Any]) -> t.Tuple[Data, t.Optional[str]]:
    """The runtime facts in the registered result of the reading task, and why there are none.

    Where the node could not be read, the facts say so: nothing is known, so nothing passes.
    """
    found = facts_of(result.get("ansible_facts"))
    if found and not result.get("unreachable"):
        identity = dict(found.get("identity") or {})
        return dict(found, identity=dict(identity, hostname=identity.get("hostname") or host)), None
    if result.get("unreachable"):
        why = "the host was unreachable"
    elif result.get("skipped"):
        why = "the task that reads it was skipped"
    else:
        why = "reading it failed"
    detail = " ".join(str(result.get("msg") or result.get("module_stderr") or "").split()).rstrip(".")
    why += ": " + detail if detail else ""
    return {
        "schema": 1,
        "evidence": "none",
        "cri_ready": None,
        "handlers": {},
        "default_handler": None,
        "identity": {"hostname": host},
        "faults": [{"severity": "error", "handlers": [], "message": why}],
    }, why


def judge_host(host: str, result: t.Mapping[str, t.Any], cluster: t.Mapping[str, t.Any], options: Options) -> Data:
    """The record of one host.

    :param result: the registered result of the reading task.
    :param cluster: ``classes``, ``nodes`` (Node objects) and ``workloads`` (None where they were not read).
    :raises RuntimeGateError: bad input: a policy, a class or a node that is not what it should be.
    """
    runtime, unread = runtime_of(host, result)
    answer = judge(
        {
            "runtime_classes": cluster["classes"],
            "nodes": cluster["nodes"],
            "workloads": cluster["workloads"],
            "node_runtime": runtime,
            "node_name": options.node_name,
            "node_labels": options.node_labels,
            "node_taints": options.node_taints,
            "node_pending": options.pending_handlers,
            "policy": options.policy,
            "verdicts": "all",
        }
    )
    for verdict in answer["verdicts"]:
        if verdict["pending"] and not options.pending_fails:
            verdict["fails"] = False
        if unread and verdict["verdict"] == "unknown":
            verdict["fix"] = _fix_of_unread(host, unread)
    identity, summary = answer["node_identity"], answer["nodes"][0]
    # A node that no class asks anything of passes, but not one that could not be read.
    fails = any(verdict["fails"] for verdict in answer["verdicts"])
    error = "%s: %s" % (identity["name"], unread) if unread and not fails and parse_policy(options.policy).unknown == "fail" else None
    registered = {} if identity["registered"] else {"labels": dict(options.node_labels), "taints": list(options.node_taints)}
    return {
        "host": host,
        "node": identity["name"],
        "registered": identity["registered"],
        "identified_by": identity["reason"],
        "conflict": identity["conflict"],
        "unreachable": bool(result.get("unreachable")),
        "judged": unread is None,
        "error": error,
        "fails": fails or error is not None,
        **{key: summary[key] for key in _SUMMARY_KEYS},
        "restart_pending": runtime.get("restart_pending"),
        "faults": [] if unread else runtime.get("faults") or [],
        "cells": {column_of(verdict): verdict["verdict"] for verdict in answer["verdicts"]},
        "changed_at_restart": _changed_at_restart(answer["verdicts"], runtime.get("restart_changes") or {}),
        "verdicts": [verdict for verdict in answer["verdicts"] if _notable(verdict)],
        "notices": answer["notices"],
        "policy": options.policy,
        "fleet": _fleet_facts(runtime),
        "place": registered,
    }


def _changed_at_restart(verdicts: t.Iterable[Data], changes: t.Container[str]) -> t.List[str]:
    """The columns of handlers that are loaded, and will be after a restart, with other settings than now."""
    return sorted(
        column_of(verdict)
        for verdict in verdicts
        if verdict["verdict"] == "ok" and verdict["after_restart"] == "loaded" and verdict["handler"] in changes
    )


def _fix_of_unread(host: str, why: str) -> str:
    if " capture /" in why:  # the reader of captures says what to do, and no host is touched
        return "Mend or record the capture and run again."
    return "Make it readable (ansible %s -b -m ping shows what is wrong) and run again." % host


def _fleet_facts(runtime: t.Mapping[str, t.Any]) -> Data:
    """The facts that the closing cross-check needs; the faults, which may be many, only where CRI is down and they say why."""
    kept = _FLEET_KEYS + (("faults",) if runtime.get("cri_ready") is False else ())
    return {key: runtime[key] for key in kept if key in runtime}


def fleet_records(answer: t.Mapping[str, t.Any], policy: t.Any) -> t.Dict[str, Data]:
    """The records of a fleet that was judged at once, node by node.

    :param answer: that of the cross-check, with all verdicts.
    """
    verdicts: t.Dict[str, t.List[Data]] = {}
    for verdict in answer["verdicts"]:
        verdicts.setdefault(verdict["node"], []).append(verdict)
    return {
        summary["name"]: {
            "host": summary["name"],
            "node": summary["name"],
            "registered": True,
            "identified_by": "it is the object that was judged",
            "conflict": None,
            "unreachable": False,
            "judged": summary["why_unknown"] is None,
            "error": None,
            "fails": summary["fails"],
            **{key: summary[key] for key in _SUMMARY_KEYS},
            "restart_pending": None,
            "faults": [],
            "cells": {column_of(verdict): verdict["verdict"] for verdict in verdicts.get(summary["name"], ())},
            "verdicts": [verdict for verdict in verdicts.get(summary["name"], ()) if _notable(verdict)],
            "notices": [],
            "policy": policy,
            "fleet": {},
            "place": {},
        }
        for summary in answer["nodes"]
        if summary["judged"]
    }


def broken_record(host: str, message: str, unreachable: bool = False) -> Data:
    """The record of a host that could not be judged because of bad input; it fails."""
    return {
        "host": host,
        "node": None,
        "unreachable": unreachable,
        "judged": False,
        "error": message,
        "fails": True,
        "cells": {},
        "verdicts": [],
    }


def _notable(verdict: t.Mapping[str, t.Any]) -> bool:
    """Everything that needs a sentence: all but not_targeted and a plain ok."""
    return verdict["verdict"] not in ("ok", "not_targeted") or bool(verdict["fix"])


def host_message(record: t.Mapping[str, t.Any]) -> str:
    """Why the host fails: each handler once, with its reason and its fix."""
    if record["error"]:
        return record["error"]
    told = []
    for verdict in record["verdicts"]:
        if verdict["fails"]:
            asked = "RuntimeClass %s asks" % verdict["runtime_class"] if verdict["runtime_class"] else "the policy asks"
            told.append(
                "%s for handler %s: %s: %s" % (asked, verdict["handler"], _word(verdict), verdict["reason"])
                + (". Fix: %s" % verdict["fix"] if verdict["fix"] else "")
            )
    return "%s: %s" % (record["node"], " | ".join(told))


def fleet_message(report: t.Mapping[str, t.Any], nobody: str) -> str:
    """Why a fleet fails that was judged at once: the first hosts that do, each with its reasons. nobody: what to say of no host at all."""
    failing = [record for record in report["hosts"] if record["fails"]]
    if not report["hosts"]:
        return nobody
    told = [host_message(record) for record in failing[:_TOLD]]
    return " || ".join(told + (["and %d more" % (len(failing) - _TOLD)] if len(failing) > _TOLD else []))


def _word(verdict: t.Mapping[str, t.Any]) -> str:
    """The verdict in the words of the table: a time bomb is an ok that does not last."""
    if verdict["verdict"] == "ok":
        return "lost at restart"
    return verdict["verdict"] + (" (pending)" if verdict["pending"] else "")


def make_report(
    records: t.Mapping[str, Data],
    cluster: t.Mapping[str, t.Any],
    hosts: t.Sequence[str],
    about: Data,
    source: str = "node",
    closing: t.Optional[Data] = None,
) -> Data:
    """The report of everything judged so far.

    :param records: host -> record.
    :param hosts: every host that the play was meant for, judged or not.
    :param about: ``generated_at``, ``collection``, ``check_mode``: copied into the report.
    :param source: what the records rest on: ``node`` (read on the hosts), ``api`` or ``pools``.
    :param closing: the cross-check of the whole fleet, where there is one already.
    """
    # Those that could not be read stand in the report and count as hosts, not as judged ones.
    entries = [records[host] for host in sorted(records)]
    judged = [record for record in entries if record["judged"]]
    named = {record["node"] for record in entries if record["node"]}
    cluster_nodes = [node["metadata"]["name"] for node in cluster["nodes"]]
    closing = _closing(entries, cluster) if closing is None else closing
    failing = [record for record in entries if record["fails"]]
    pools = {node["metadata"]["name"]: pool_of(node["metadata"].get("labels") or {}) for node in cluster["nodes"]}
    return {
        "schema": REPORT_SCHEMA,
        **about,
        "source": source,
        "ok": not failing and len(entries) == len(hosts) and bool(entries),
        "counts": {
            "hosts": len(hosts),
            "judged": len(judged),
            "failing": len(failing),
            "unreachable": sum(1 for record in entries if record["unreachable"]),
            "cluster_nodes": len(cluster_nodes),
            "cluster_nodes_judged": len({record["node"] for record in judged} & set(cluster_nodes)),
            "verdicts": dict(sorted(collections.Counter(word for record in entries for word in record["cells"].values()).items())),
            "fails": sum(1 for record in entries for verdict in record["verdicts"] if verdict["fails"]),
            "pending": sum(1 for record in entries for verdict in record["verdicts"] if verdict["pending"]),
        },
        "failing_nodes": [record["node"] or record["host"] for record in failing],
        "missing": {
            record["node"]: sorted({verdict["handler"] for verdict in record["verdicts"] if verdict["fails"]})
            for record in failing
            if record["node"]
        },
        "hosts": [
            {**{key: value for key, value in record.items() if key not in _INTERNAL}, "pool": pools.get(record["node"])} for record in entries
        ],
        "not_judged": {
            "hosts": sorted(set(hosts) - set(records)),
            "nodes": sorted(set(cluster_nodes) - named),
        },
        "classes": closing.get("classes", []),
        "notices": closing.get("notices", []),
        "blast_radius": closing.get("blast_radius", {}),
        "overhead": closing.get("overhead", []),
        "failing_pods": closing.get("failing_pods"),
    }


def pool_of(labels: t.Mapping[str, str]) -> t.Optional[str]:
    """The pool of a Node, by the labels with which clouds and autoscalers name it."""
    return next((labels[name] for name in POOL_LABELS if labels.get(name)), None)


_INTERNAL = ("policy", "fleet", "place", "notices")


def _closing(judged: t.Sequence[Data], cluster: t.Mapping[str, t.Any]) -> Data:
    """What only the fleet shows, by the policy that most hosts have. It fails nobody."""
    placed = [record for record in judged if record["node"]]
    if not placed:
        return {}
    policies = collections.Counter(json.dumps(record["policy"], sort_keys=True) for record in placed)
    policy = json.loads(sorted(policies, key=lambda text: (-policies[text], text))[0])
    runtimes = {record["node"]: record for record in placed}
    nodes = [
        dict(node, runtime=runtimes[node["metadata"]["name"]]["fleet"]) if node["metadata"]["name"] in runtimes else node
        for node in cluster["nodes"]
    ]
    nodes += [
        dict(record["place"], name=record["node"], labels_complete=False, runtime=record["fleet"])
        for record in placed
        if not record["registered"]
    ]
    answer = crosscheck(
        cluster["classes"],
        nodes,
        workloads=cluster.get("workloads"),
        policy=policy,
        judge=sorted(runtimes),
        fleet=True,
        events=cluster.get("events"),
    )
    answer["notices"] = _all_notices(answer["notices"], placed, len(policies))
    return answer


def _all_notices(fleet: t.List[Data], judged: t.Sequence[Data], policies: int) -> t.List[Data]:
    """The fleet's notices, those that only one host's own policy gives, and doubts about which Node a host is."""
    notices = list(fleet)
    if policies > 1:
        seen = {(notice["name"], notice["handler"], notice["runtime_class"]) for notice in fleet}
        for record in judged:
            for notice in record["notices"]:
                if (notice["name"], notice["handler"], notice["runtime_class"]) not in seen:
                    notices.append(notice)
    notices += [
        {
            "name": "node_identity",
            "severity": "warning",
            "message": record["conflict"],
            "fix": "Set runtime_gate_node_name for host %s." % record["host"],
            "runtime_class": None,
            "handler": None,
            "nodes": [record["node"]],
        }
        for record in judged
        if record["conflict"]
    ]
    return notices


def report_path_of(path: str, job: t.Optional[str]) -> str:
    """The path of the report, with the number of the AWX job in it: the slices of one run must not meet in one file."""
    # Only a whole number in the file's own name counts: job 7 must not lose its number to a directory called 2027.
    if not path or not job or re.search(r"(?<![0-9A-Za-z])%s(?![0-9A-Za-z])" % re.escape(job), path.rpartition("/")[2]):
        return path
    stem, dot, extension = path.rpartition(".")
    if not dot or "/" in extension:
        return "%s-%s" % (path, job)
    return "%s-%s.%s" % (stem, job, extension)


__all__ = (
    "Options",
    "REPORT_SCHEMA",
    "broken_record",
    "fleet_message",
    "fleet_records",
    "host_message",
    "judge_host",
    "make_report",
    "report_path_of",
    "runtime_of",
)
