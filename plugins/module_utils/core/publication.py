# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a node on its Node object: a label for each loaded handler, and one condition. Pure.

A label is a promise on which pods are scheduled, so it rests on the running daemon's own answer (or its copy in the Node's
status) and on nothing less: what the files would load is not loaded, and what is not known is not promised.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import shown
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import parse_policy
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.verdict import LACKING
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

CONDITION = "RuntimeHandlersReady"
LOADED = "loaded"
# https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(r"%s(\.%s)*\Z" % (_DNS_LABEL, _DNS_LABEL))
# "The kubernetes.io/ and k8s.io/ prefixes are reserved for Kubernetes core components" (same page).
_RESERVED = re.compile(r"(\A|\.)(kubernetes|k8s)\.io\Z")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# A condition is read in one line of `kubectl describe node`.
_LONGEST_MESSAGE = 1024

Record = t.Mapping[str, t.Any]


def publication_of(record: Record, policy: t.Any = None, pending: t.Collection[str] = ()) -> dict[str, t.Any]:
    """What is to be published of one host.

    record: what gate_record.judge_host gave. policy: the operator's, for the evidence that it accepts. pending: handlers that this
    run would load (check mode): they count as loaded, because what would be published then is what is asked.
    Returns node (name or None), registered, conflict, handlers (names), status (True, False, Unknown), reason (one word),
    message, and passed (the node may take work).
    """
    status, reason, message = _condition(record, policy)
    known = _handlers(record, policy)
    return {
        "node": record.get("node"),
        "registered": bool(record.get("registered")),
        "conflict": record.get("conflict"),
        "handlers": sorted({*known, *pending}) if known is not None else [],
        "status": status,
        "reason": reason,
        "message": message[:_LONGEST_MESSAGE],
        "passed": status == "True" and not record["fails"],
    }


def labels_of(handlers: t.Iterable[str], prefix: str) -> tuple[dict[str, str], list[str]]:
    """(labels, names that no label can have). Such a name cannot stand in a RuntimeClass either, whose handler is a DNS label."""
    names = sorted(handlers)
    fitting = [name for name in names if _LABEL_NAME.match(name)]
    return {f"{prefix}/{name}": LOADED for name in fitting}, [name for name in names if name not in fitting]


def checked_prefix(prefix: str) -> str:
    """The prefix of labels and annotations. Raises RuntimeGateError where it cannot be one."""
    if len(prefix) > 253 or not _SUBDOMAIN.match(prefix):
        raise RuntimeGateError(f"runtime_gate_prefix is {shown(prefix)}; it must be a DNS subdomain, such as runtime-gate.kubenode.io")
    if _RESERVED.search(prefix):
        raise RuntimeGateError(f"runtime_gate_prefix is {shown(prefix)}; kubernetes.io and k8s.io are reserved for Kubernetes itself")
    return prefix


def parse_taint(text: str) -> dict[str, str] | None:
    """The startup taint as kubelet's --register-with-taints writes it, KEY[=VALUE]:EFFECT; None for an empty text.

    Raises RuntimeGateError for anything else."""
    if not text:
        return None
    thing, _colon, effect = text.rpartition(":")
    key, _equals, value = thing.partition("=")
    name = key.rpartition("/")[2]
    if effect not in _EFFECTS or not _LABEL_NAME.match(name) or (value and not _LABEL_NAME.match(value)):
        raise RuntimeGateError(
            f"runtime_gate_startup_taint is {shown(text)}; it must be KEY:EFFECT or KEY=VALUE:EFFECT with an effect of {', '.join(_EFFECTS)}"
        )
    return {"key": key, "value": value, "effect": effect}


def _proved(record: Record, policy: t.Any) -> bool:
    """Whether the daemon itself has answered (cri_ready is null where only the files are known), and the policy takes its answer."""
    return record["cri_ready"] is True and record["evidence"] in parse_policy(policy).accept_evidence


def _handlers(record: Record, policy: t.Any) -> list[str] | None:
    """The handlers that are known to be loaded and can run; None where nothing is known."""
    if not record["judged"] or record.get("handlers") is None:
        return None
    if record["cri_ready"] is False:
        return []
    if not _proved(record, policy):
        return None
    details = record["fleet"]["handlers"]
    usable = details if not isinstance(details, t.Mapping) else [name for name in details if (details[name] or {}).get("usable") is not False]
    return [name for name in usable if name]


def _condition(record: Record, policy: t.Any) -> tuple[str, str, str]:
    """(status, reason, message) of the condition."""
    unknown = [verdict["reason"] for verdict in record["verdicts"] if verdict["verdict"] == "unknown"]
    if not record["judged"] or record.get("handlers") is None:
        return "Unknown", "NotRead", str(record.get("error") or "; ".join(dict.fromkeys(unknown)) or "the container runtime could not be read")
    lacking = [verdict for verdict in record["verdicts"] if verdict["verdict"] in LACKING and verdict["fails"]]
    if lacking:
        return "False", "HandlersMissing", _named(lacking)
    if record["cri_ready"] is False:
        return "False", "RuntimeDown", "the container runtime serves no CRI"
    if not _proved(record, policy):
        return "Unknown", "NotLoadedEvidence", f"what is loaded is only known from {record['evidence']}, which does not prove it"
    if unknown:
        return "Unknown", "HandlersUnknown", "; ".join(dict.fromkeys(unknown))
    lost = [verdict for verdict in record["verdicts"] if verdict["verdict"] == "ok" and verdict["fails"]]
    if lost:
        return "False", "LostAtRestart", "the next restart would lose " + _named(lost)
    if record["fails"]:
        return "Unknown", "NotJudged", str(record.get("error") or "the node was not judged")
    return "True", "HandlersLoaded", "every handler that pods can ask this node for is loaded"


def _named(verdicts: t.Sequence[Record]) -> str:
    """Each handler once, the word for it, and the first reason."""
    told: dict[str, str] = {}
    for verdict in verdicts:
        word = "lost" if verdict["verdict"] == "ok" else verdict["verdict"]
        told.setdefault(verdict["handler"], f"{verdict['handler']} ({word}: {verdict['reason']})")
    return ", ".join(told[handler] for handler in sorted(told))
