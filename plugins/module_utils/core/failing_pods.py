# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that fail for their handler or their class, by what the cluster itself says: the events of kubelets and controllers. Pure.

Sources of the texts:

[kubelet]    "Failed to create pod sandbox: %v", reason FailedCreatePodSandBox (k8s.io/kubernetes/pkg/kubelet/kuberuntime); it goes on trying
             for ever, the pod stays ContainerCreating
[containerd] internal/cri/config GetSandboxRuntime: `no runtime for "x" is configured`, behind other words in each line;
             core/runtime/v2/shim_manager.go: `runtime "t" binary not installed`
[crio]       internal/oci: `failed to find runtime handler x from runtime list map[…]`
[admission]  the refusals of core/admission.py; a controller repeats them in an event FailedCreate of its object, so a Deployment applies
             without a word and its ReplicaSet has the error
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import MAPPING, entries, part, yaml_kind
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.resources import OVER
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.runtime_class import workload_name
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

SANDBOX, CREATE = "FailedCreatePodSandBox", "FailedCreate"
#: What kind of failure: the runtime has no such handler, it has it and cannot start it, the class is gone, admission refused the pod.
NOT_CONFIGURED, UNUSABLE, NO_CLASS, REJECTED = "handler_not_configured", "handler_unusable", "class_not_found", "rejected"

_NOT_CONFIGURED = (
    re.compile(r'no runtime for "(?P<handler>[^"]*)" is configured'),
    re.compile(r"failed to find runtime handler (?P<handler>\S+) from runtime list"),
)
_UNUSABLE = (
    re.compile(r'runtime "[^"]+" binary not installed'),
    re.compile(r"unable to retrieve OCI runtime error|invalid custom binary path|container\.Runtime\.Name must be set|invalid runtime name"),
)
_NO_CLASS = re.compile(r'(?:RuntimeClass|runtimeclass\.node\.k8s\.io) "(?P<name>[^"]*)" not found')
_REJECTED = re.compile(
    r"conflict: runtimeClass\.scheduling\.nodeSelector\[|Pod's Overhead doesn't match RuntimeClass|Pod Overhead set without corresponding RuntimeClass"
)
_LONGEST = 500  # characters of a message that are kept


class Failure(t.NamedTuple):
    """One object that fails. kind: Pod, or the controller's object whose pods are refused. name: NAMESPACE/NAME. node, handler,
    runtime_class: None where they are not known. said: the runtime's or the API server's words. count: how often it was said.
    last_seen: when, as it is written, or None."""

    kind: str
    name: str
    node: str | None
    handler: str | None
    runtime_class: str | None
    cause: str
    said: str
    count: int
    last_seen: str | None


def read_failures(events: t.Any, workloads: t.Iterable[t.Mapping[str, t.Any]], classes: t.Collection[str]) -> list[Failure] | None:
    """The failures that the events tell of and that last: the latest of each object.

    events: Event objects, None where they were not read (None out). workloads: those of the cluster, all its pods among them; an event
    outlives its pod, and a pod its trouble. classes: names of the RuntimeClasses that there are. Raises RuntimeGateError for an
    entry that is no mapping.
    """
    if events is None:
        return None
    if not isinstance(events, (list, tuple)):
        raise RuntimeGateError(f"events is {yaml_kind(events)}, not a list")
    pods = {workload_name(each, "a pod"): each for each in workloads if each.get("kind") == "Pod"}
    found: dict[tuple[str, str, str], Failure] = {}
    for index, event in enumerate(events):
        where = f"events[{index}]"
        if not isinstance(event, MAPPING):
            raise RuntimeGateError(f"{where} is {yaml_kind(event)}, not an Event")
        failure = _failure(event, pods, classes, where)
        if failure:
            key = (failure.kind, failure.name, failure.cause)
            if key not in found or (found[key].last_seen or "") <= (failure.last_seen or ""):
                found[key] = failure
    return sorted(found.values(), key=lambda failure: (failure.node or "", failure.name, failure.cause))


def denied_handlers(failures: t.Iterable[Failure]) -> dict[str, frozenset[str]]:
    """Node -> the handlers that its runtime said it has not, to a pod that still fails for it."""
    found: dict[str, set[str]] = {}
    for failure in failures:
        if failure.cause == NOT_CONFIGURED and failure.node and failure.handler:
            found.setdefault(failure.node, set()).add(failure.handler)
    return {node: frozenset(handlers) for node, handlers in found.items()}


def _failure(event: t.Mapping[str, t.Any], pods: t.Mapping[str, t.Any], classes: t.Collection[str], where: str) -> Failure | None:
    about = part(event, "involvedObject", where=where)
    message = " ".join(str(event.get("message") or "").split())
    if event.get("reason") == SANDBOX and about.get("kind") == "Pod":
        return _of_pod(event, about, message, pods, where)
    missing, rejected = _NO_CLASS.search(message), _REJECTED.search(message)
    if event.get("reason") != CREATE or not (missing or rejected):
        return None
    named = missing.group("name") if missing else None
    if named in classes:
        return None  # it was made meanwhile
    return _made(event, about, NO_CLASS if missing else REJECTED, message, node=None, handler=None, runtime_class=named)


def _of_pod(
    event: t.Mapping[str, t.Any], about: t.Mapping[str, t.Any], message: str, pods: t.Mapping[str, t.Any], where: str
) -> Failure | None:
    pod = pods.get(f"{about.get('namespace') or 'default'}/{about.get('name')}")
    if pod is None or not _still_fails(pod, about, where):
        return None
    cause, handler = _cause(message)
    if cause is None:
        return None
    spec = part(pod, "spec", where=where)
    node = spec.get("nodeName") or part(event, "source", where=where).get("host")
    return _made(event, about, cause, message, node=node, handler=handler, runtime_class=spec.get("runtimeClassName"))


def _cause(message: str) -> tuple[str | None, str | None]:
    """What kind of failure a sandbox's is, and the handler where the text has it; (None, None) for another trouble (CNI, …)."""
    for pattern in _NOT_CONFIGURED:
        match = pattern.search(message)
        if match:
            return NOT_CONFIGURED, match.group("handler") or None
    if _NO_CLASS.search(message):
        return NO_CLASS, None
    return (UNUSABLE if any(pattern.search(message) for pattern in _UNUSABLE) else None), None


def _still_fails(pod: t.Mapping[str, t.Any], about: t.Mapping[str, t.Any], where: str) -> bool:
    """Whether it is the same pod and neither over nor ready."""
    known, told = part(pod, "metadata", where=where).get("uid"), about.get("uid")
    if known and told and known != told:
        return False
    status = part(pod, "status", where=where)
    ready = any(entry.get("type") == "Ready" and entry.get("status") == "True" for entry in entries(status, "conditions", where))
    return status.get("phase") not in OVER and not ready


def _made(
    event: t.Mapping[str, t.Any],
    about: t.Mapping[str, t.Any],
    cause: str,
    message: str,
    node: str | None,
    handler: str | None,
    runtime_class: str | None,
) -> Failure:
    # Recorders of the two generations of the API: count and lastTimestamp, or series.
    series = part(event, "series", where="an event")
    return Failure(
        kind=str(about.get("kind")),
        name=f"{about.get('namespace') or 'default'}/{about.get('name')}",
        node=node,
        handler=handler,
        runtime_class=runtime_class,
        cause=cause,
        said=message[:_LONGEST],
        count=int(series.get("count") or event.get("count") or 1),
        last_seen=series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime"),
    )
