# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One verdict: has this node what this class asks for? No sentences and no policy of failing here."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.judged_node import JudgedNode, Runtime
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import Policy
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.runtime_class import JudgedClass
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.scheduling import untolerated

VERDICTS = ("ok", "missing", "restart_required", "unusable", "not_targeted", "excluded_by_taint", "unknown")
# What a node shows that can not take a pod of the class now.
LACKING = ("missing", "restart_required", "unusable")


class State(t.NamedTuple):
    """A handler on a node, wherever its pods may go. loaded: true, false, None (unknown). after_restart: loaded,
    missing or unknown."""

    verdict: str
    loaded: bool | None
    after_restart: str


def handler_state(runtime: Runtime, handler: str, accepted: t.Container[str]) -> State:
    """DESIGN, "Layers of evidence" and "The words"."""
    if runtime.why_unknown is not None:
        return State("unknown", None, "unknown")
    present = handler in runtime.handlers
    if runtime.cri_ready is False:
        return State("missing", False, _after_restart(runtime, handler, loaded=False))
    if runtime.cri_ready is None:
        # The handlers are those that a restart would load. A dump that was handed in is judged as what it is; a live
        # node's next configuration proves nothing about the running daemon unless the policy takes it.
        after = "loaded" if present else "missing"
        if runtime.explicit:
            return State(_present(runtime, handler), present, after)
        accepts = runtime.evidence in accepted
        return State(_present(runtime, handler) if accepts else "unknown", None, after)
    after = _after_restart(runtime, handler, loaded=present)
    if present and handler in runtime.denied:
        return State("unknown", None, after)
    if present:
        verdict = _present(runtime, handler)
        return State("unknown" if verdict == "ok" and runtime.evidence not in accepted else verdict, True, after)
    return State("restart_required" if after == "loaded" else "missing", False, after)


def _present(runtime: Runtime, handler: str) -> str:
    if handler not in runtime.handlers:
        return "missing"
    return "unusable" if runtime.handlers[handler].get("usable") is False else "ok"


def _after_restart(runtime: Runtime, handler: str, loaded: bool) -> str:
    if runtime.gains is None or runtime.loses is None:
        return "unknown"
    if loaded:
        return "missing" if handler in runtime.loses else "loaded"
    return "loaded" if handler in runtime.gains else "missing"


def reach(node: JudgedNode, judged: JudgedClass, policy: Policy) -> str:
    """Whether pods of the class can land on the node: targeted, not_targeted, excluded_by_taint, or unknown
    (a label that decides it may still come)."""
    decided = True
    for key, value in judged.selector.items():
        if key in node.labels:
            if node.labels[key] != value:
                return "not_targeted"
        elif node.labels_complete:
            return "not_targeted"
        else:
            decided = False
    if not decided:
        return "unknown"
    return "excluded_by_taint" if excluding_taints(node, judged, policy) else "targeted"


def excluding_taints(node: JudgedNode, judged: JudgedClass, policy: Policy) -> list[t.Any]:
    """The taints that keep the class away, those of a passing state not counted."""
    lasting = [taint for taint in node.taints if taint.key not in policy.ignore_taints]
    return untolerated(lasting, judged.tolerations)


def verdict_of(where: str, state: State) -> str:
    """The word for the pair: the node's handler counts only where the class can land."""
    return state.verdict if where == "targeted" else where


def fails(verdict: str, state: State, judged: JudgedClass, policy: Policy) -> bool:
    """DESIGN: fails holds for missing, restart_required, unusable, for unknown and the time bomb unless the policy
    says warn."""
    if judged.mode == "warn":
        return False
    if verdict == "unknown":
        return policy.unknown == "fail"
    return verdict in LACKING or (is_time_bomb(verdict, state) and policy.restart_loss == "fail")


def is_time_bomb(verdict: str, state: State) -> bool:
    """Loaded now, lost at the next restart."""
    return verdict == "ok" and state.after_restart == "missing"


def is_pending(verdict: str, state: State, node: JudgedNode, handler: str) -> bool:
    """Whether what the node lacks, or would lose at the next restart, is what this run would bring (DESIGN, "Check mode")."""
    return handler in node.pending and (verdict in LACKING or is_time_bomb(verdict, state))
