# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""requiredDuringSchedulingIgnoredDuringExecution of a pod's node affinity. Pure.

Sources: k8s.io/component-helpers/scheduling/corev1/nodeaffinity, Requirement.Matches in k8s.io/apimachinery/pkg/labels,
https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#node-affinity
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import entries, part
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.scheduling import int64

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def affinity_matches(spec: t.Mapping[str, t.Any], labels: t.Mapping[str, str], node: str, where: str) -> bool:
    """Whether the required node affinity of this pod spec, if there is one, takes a node of this name with these labels.

    Raises RuntimeGateError where something else stands in the place of an affinity.
    """
    affinity = part(spec, "affinity", "nodeAffinity", where=where)
    if affinity.get(_REQUIRED) is None:
        return True
    terms = entries(part(affinity, _REQUIRED, where=where), "nodeSelectorTerms", where)
    # Terms are ORed; "nil or empty term selects no objects".
    return any(_term_matches(term, labels, node, where) for term in terms)


def _term_matches(term: t.Mapping[str, t.Any], labels: t.Mapping[str, str], node: str, where: str) -> bool:
    expressions, fields = entries(term, "matchExpressions", where), entries(term, "matchFields", where)
    if not expressions and not fields:
        return False
    # "The requirements are ANDed". The one field that there is, is the node's name.
    return all(_requirement_matches(entry, labels) for entry in expressions) and all(
        _requirement_matches(entry, {"metadata.name": node}) for entry in fields
    )


def _requirement_matches(requirement: t.Mapping[str, t.Any], labels: t.Mapping[str, str]) -> bool:
    operator, values = requirement.get("operator"), requirement.get("values") or ()
    value = labels.get(str(requirement.get("key")))
    if operator == "NotIn":
        return value not in values  # a node without the label is taken as well
    if operator == "DoesNotExist":
        return value is None
    if value is None:
        return False
    if operator == "In":
        return value in values
    return operator == "Exists" or _compares(operator, value, values)


def _compares(operator: t.Any, value: str, values: t.Sequence[t.Any]) -> bool:
    if operator not in ("Gt", "Lt") or len(values) != 1 or not (int64(value) and int64(str(values[0]))):
        return False
    return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
