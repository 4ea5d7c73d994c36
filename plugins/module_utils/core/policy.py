# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The policy: which classes count, for which nodes, and what fails. The one table of DESIGN's public contract."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import shown, yaml_kind
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.scheduling import (
    Toleration,
    parse_selector,
    parse_tolerations,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.suggest import did_you_mean
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

# Taints that describe a passing state of a node, not its purpose. A node in rollout is cordoned and briefly not
# ready: if these excluded it, the check after the rollout would pass for every node.
LIFECYCLE_TAINTS = (
    # https://kubernetes.io/docs/reference/labels-annotations-taints/
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
    "node.kubernetes.io/out-of-service",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node.cloudprovider.kubernetes.io/shutdown",
    # cluster-autoscaler's FAQ, "How can I tell which nodes are about to be removed"
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
    # https://karpenter.sh/docs/concepts/disruption/
    "karpenter.sh/disrupted",
    "karpenter.sh/unregistered",
    # ours, docs/publish.md: a node that waits for the gate behind it would otherwise have nothing to be judged for
    "runtime-gate.kubenode.io/not-verified",
)

_SHOWN = 20  # names in a sentence


class Policy(t.NamedTuple):
    """A complete policy, every value checked."""

    classes: tuple[str, ...] | None = None  # None: all
    node_selector: t.Mapping[str, t.Mapping[str, str]] = {}
    tolerations: tuple[Toleration, ...] = ()
    ignore_taints: frozenset[str] = frozenset(LIFECYCLE_TAINTS)
    unscoped: str = "require"
    required_handlers: tuple[str, ...] = ()
    allowed_handlers: frozenset[str] | None = None  # None: anything
    unknown: str = "fail"
    restart_loss: str = "fail"
    accept_evidence: frozenset[str] = frozenset(("loaded", "api"))


def parse_policy(raw: t.Any) -> Policy:
    """The policy that an operator wrote, completed with the defaults.

    Raises RuntimeGateError, naming the key, for an unknown key, a value of the wrong type and a word that the
    key does not know.
    """
    if raw is None:
        return Policy()
    if not isinstance(raw, t.Mapping):
        raise RuntimeGateError(f"policy is {yaml_kind(raw)}, not a mapping; its keys are {', '.join(_KEYS)}")
    values = {}
    for key, value in raw.items():
        if key not in _KEYS:
            raise RuntimeGateError(
                f"policy has the unknown key {shown(key)}{did_you_mean(str(key), _KEYS)} (known: {', '.join(_KEYS)})"
            )
        values[key] = _KEYS[key](value, f"policy: {key}")
    return Policy(**values)


def require_existing(policy: Policy, existing: t.Collection[str]) -> None:
    """Raises RuntimeGateError where classes names a RuntimeClass that does not exist: a typing error there would take the
    class that was meant out of the check, which then passes. Where there is no class at all, nothing can be taken out."""
    for name in policy.classes or () if existing else ():
        if name not in existing:
            listed = sorted(existing)
            more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
            raise RuntimeGateError(
                f"policy: classes names RuntimeClass {name}, which does not exist{did_you_mean(name, existing)}"
                f" (existing: {', '.join(listed[:_SHOWN])}{more})"
            )


def ignoring(raw: t.Any, key: str) -> t.Any:
    """The policy, which also ignores taints of this key. It is what the operator wrote, checked or not."""
    if not key or not isinstance(raw, (t.Mapping, type(None))):
        return raw
    ignored = (raw or {}).get("ignore_taints", list(LIFECYCLE_TAINTS))
    return {**(raw or {}), "ignore_taints": [*ignored, key]} if isinstance(ignored, (list, tuple)) and key not in ignored else raw


def needs_workloads(raw: t.Any) -> bool:
    """Whether this policy can only be judged with the cluster's pods and workload templates at hand."""
    return parse_policy(raw).unscoped == "referenced"


def _names(value: t.Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)):
        raise RuntimeGateError(f"{where} is {shown(value)}, not a list of names")
    for entry in value:
        if not isinstance(entry, str) or not entry:
            raise RuntimeGateError(f"{where} has the entry {shown(entry)}, which is no name")
    return tuple(dict.fromkeys(value))


def _names_or_all(value: t.Any, where: str) -> tuple[str, ...] | None:
    return None if value is None or value == "all" else _names(value, where)


def _set_of_names(value: t.Any, where: str) -> frozenset[str]:
    return frozenset(_names(value, where))


def _set_or_anything(value: t.Any, where: str) -> frozenset[str] | None:
    return None if value is None else frozenset(_names(value, where))


def _selectors(value: t.Any, where: str) -> dict[str, dict[str, str]]:
    if not isinstance(value, t.Mapping):
        raise RuntimeGateError(f"{where} is {shown(value)}, not a mapping of RuntimeClass names to labels")
    for name, labels in value.items():
        if not isinstance(labels, t.Mapping):
            raise RuntimeGateError(
                f"{where}: {name} is {shown(labels)}, not a mapping of labels; write {{CLASS: {{KEY: \"VALUE\"}}}}"
                " (an empty mapping means every node)"
            )
    return {name: parse_selector(labels, f"{where}: {name}") for name, labels in value.items()}


def _one_of(*words: str) -> t.Callable[[t.Any, str], str]:
    def check(value: t.Any, where: str) -> str:
        if value not in words:
            raise RuntimeGateError(
                f"{where} is {shown(value)}; it takes one of {', '.join(words)}{did_you_mean(str(value), words)}"
            )
        return t.cast(str, value)

    return check


def _evidence(value: t.Any, where: str) -> frozenset[str]:
    words = ("loaded", "api", "next")
    names = _names(value, where)
    if not names:
        raise RuntimeGateError(f"{where} is empty, so nothing could ever pass; it takes {', '.join(words)}")
    for name in names:
        _one_of(*words)(name, where)
    return frozenset(names)


_KEYS: dict[str, t.Callable[[t.Any, str], t.Any]] = {
    "classes": _names_or_all,
    "node_selector": _selectors,
    "tolerations": parse_tolerations,
    "ignore_taints": _set_of_names,
    "unscoped": _one_of("require", "referenced", "warn", "ignore"),
    "required_handlers": _names,
    "allowed_handlers": _set_or_anything,
    "unknown": _one_of("fail", "warn"),
    "restart_loss": _one_of("fail", "warn"),
    "accept_evidence": _evidence,
}
