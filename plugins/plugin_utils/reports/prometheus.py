# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as metrics for the textfile collector of Prometheus' node exporter.

Text format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/): HELP and TYPE once a metric, values of labels with
backslash, double quote and line feed escaped. Only what somebody alerts on: a series for each pair that was asked for, not for those that
no class asks anything of.
"""

from __future__ import annotations

import calendar
import time
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.reports.words import Data, asked_of, name_of

_PREFIX = "runtime_gate_"


def prometheus(report: Data) -> str:
    """The text of the file. :param report: what gate_record.make_report returns."""
    counts = report["counts"]
    stamp = calendar.timegm(time.strptime(report["generated_at"], "%Y-%m-%dT%H:%M:%SZ"))
    lines: t.List[str] = []
    _metric(lines, "ok", "Whether every host was judged and none fails.", [({}, int(report["ok"]))])
    _metric(lines, "generated_timestamp_seconds", "When the report was made.", [({}, stamp)])
    _metric(lines, "hosts", "Hosts that the run was for.", [({}, counts["hosts"])])
    _metric(lines, "hosts_judged", "Hosts that could be judged.", [({}, counts["judged"])])
    _metric(lines, "cluster_nodes", "Nodes of the cluster.", [({}, counts["cluster_nodes"])])
    _metric(lines, "cluster_nodes_judged", "Nodes of the cluster that a judged host is.", [({}, counts["cluster_nodes_judged"])])
    _metric(lines, "node_fails", "Whether the node fails the gate.", [({"node": name_of(host)}, int(host["fails"])) for host in report["hosts"]])
    _metric(
        lines,
        "verdict",
        "1 for the verdict of each pair of a node and a RuntimeClass that is asked of it.",
        [
            ({"node": name_of(host), "runtime_class": column, "verdict": word, "fails": "true" if why and why.fails else "false"}, 1)
            for host in report["hosts"]
            for column, word, why in asked_of(host)
        ],
    )
    _metric(
        lines,
        "faults",
        "Faults in the runtime configuration of the node, by severity.",
        [
            ({"node": name_of(host), "severity": severity}, sum(1 for fault in host.get("faults") or () if fault["severity"] == severity))
            for host in report["hosts"]
            for severity in ("error", "warning")
        ],
    )
    return "\n".join(lines) + "\n"


def _metric(lines: t.List[str], name: str, about: str, series: t.Sequence[t.Tuple[t.Mapping[str, str], int]]) -> None:
    lines += ["# HELP %s%s %s" % (_PREFIX, name, about), "# TYPE %s%s gauge" % (_PREFIX, name)]
    for labels, value in series:
        inner = ",".join('%s="%s"' % (key, _escaped(text)) for key, text in labels.items())
        lines.append("%s%s%s %d" % (_PREFIX, name, "{%s}" % inner if inner else "", value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


__all__ = ("prometheus",)
