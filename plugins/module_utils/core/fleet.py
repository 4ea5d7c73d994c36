# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The view that notices are made from, and how one is written."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.judged_node import JudgedNode
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.overhead import Demands
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import Policy
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.runtime_class import JudgedClass, References
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.suggest import nearest

SHOWN = 5  # names in a sentence; the key nodes has them all


class Fleet(t.NamedTuple):
    """Everything the notices look at. classes: all RuntimeClasses; judged: those that have a cell in each group's row;
    loaded: handler -> the judged nodes that have it. overheads: as overhead_report gives them. demands: None where they were not
    looked at. failing: failures with their verdicts."""

    classes: list[JudgedClass]
    judged: list[JudgedClass]
    nodes: list[JudgedNode]
    groups: list[t.Any]
    policy: Policy
    references: References | None
    classes_read: bool
    whole: bool
    loaded: dict[str, list[str]]
    overheads: t.Sequence[dict[str, t.Any]] = ()
    demands: Demands | None = None
    failing: t.Sequence[dict[str, t.Any]] = ()

    def judged_nodes(self) -> t.Iterator[JudgedNode]:
        """The nodes that were judged, windows and virtual ones not among them."""
        for group in self.groups:
            yield from group.nodes


def loaded_handlers(groups: t.Iterable[t.Any]) -> dict[str, list[str]]:
    """Handler -> the nodes of these groups that have it, by handler name."""
    found: dict[str, list[str]] = {}
    for group in groups:
        for node in group.nodes:
            for handler in node.runtime.handlers:
                found.setdefault(handler, []).append(node.name)
    return dict(sorted(found.items()))


def notice(
    name: str,
    severity: str,
    message: str,
    fix: str | None = None,
    judged: JudgedClass | None = None,
    handler: str | None = None,
    nodes: t.Iterable[str] = (),
) -> dict[str, t.Any]:
    return {
        "name": name,
        "severity": severity,
        "message": message,
        "fix": fix,
        "runtime_class": judged.name if judged else None,
        "handler": judged.handler if judged else handler,
        "nodes": sorted(nodes),
    }


def some(names: t.Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    listed = sorted(names)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return ", ".join(listed[:SHOWN]) + more


def near_name(name: str, known: t.Iterable[str]) -> str:
    """In parentheses, so that a sentence can go on or end behind it."""
    near = nearest(name, known)
    return f' (did you mean "{near}"?)' if near else ""
