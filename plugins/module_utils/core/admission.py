# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of a pod that names a RuntimeClass: what admission makes of it, and whether the scheduler finds a node for it.

Pure restatement. Sources, named at each rule:

[admit] k8s.io/kubernetes/plugin/pkg/admission/runtimeclass/admission.go, whose words the reasons are;
        https://kubernetes.io/docs/concepts/containers/runtime-class/#scheduling
[merge] MergeTolerations in k8s.io/kubernetes/pkg/util/tolerations/tolerations.go
[filter] the filters of k8s.io/kubernetes/pkg/scheduler/framework/plugins, in the order of its default_plugins.go: nodeunschedulable,
        nodename, tainttoleration, nodeaffinity, noderesources. The others (ports, volumes, topology, affinity between pods, DRA)
        have nothing to do with a RuntimeClass and are not restated.

No other admission plugin is restated either: DefaultTolerationSeconds, LimitRanger and webhooks come on top.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import entries, part, shown
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.node_affinity import affinity_matches
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.resources import (
    Amounts,
    Counts,
    allocatable,
    amounts,
    counted,
    occupies,
    pod_requests,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.scheduling import (
    Taint,
    Toleration,
    parse_selector,
    parse_taints,
    parse_tolerations,
    selector_matches,
    tolerates,
    untolerated,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

# [filter] The words of the scheduler for a node that a filter refuses.
UNSCHEDULABLE = "node(s) were unschedulable"
OTHER_NODE = "node(s) didn't match the requested node name"
UNTOLERATED = "node(s) had untolerated taint(s)"
NOT_SELECTED = "node(s) didn't match Pod's node affinity/selector"
TOO_MANY_PODS = "Too many pods"
_CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


class Admitted(t.NamedTuple):
    """pod: the pod as it is stored, with what the class adds: nodeSelector, tolerations, overhead."""

    pod: dict[str, t.Any]


class Refusal(t.NamedTuple):
    """reason: the API server's own words, which it puts behind `pods "NAME" is forbidden: ` (but for an empty name)."""

    reason: str


class Unfit(t.NamedTuple):
    """reasons: the scheduler's own words for why it passes the node over; several only where resources lack."""

    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return ", ".join(self.reasons)


def admit(pod: t.Mapping[str, t.Any], runtime_class: t.Mapping[str, t.Any] | None) -> Admitted | Refusal:
    """[admit] What the admission plugin RuntimeClass does with a new pod.

    pod: a Pod object. runtime_class: the RuntimeClass (node.k8s.io/v1) that it names; None where there is none of that name,
    or the pod names none. Raises RuntimeGateError for another class than the one that the pod names, and for objects that the
    API server would not decode.
    """
    where = _name(pod, "pod")
    spec = part(pod, "spec", where=where)
    named = spec.get("runtimeClassName")
    if named is None:
        runtime_class = None
    elif named == "":
        return Refusal("resource name may not be empty")
    elif runtime_class is None:
        return Refusal(f'pod rejected: RuntimeClass "{named}" not found')
    elif part(runtime_class, "metadata", where="runtime_class").get("name") != named:
        raise RuntimeGateError(f"{where} names RuntimeClass {shown(named)}, but another one was handed in")
    found = _with_overhead(spec, runtime_class or {}, where)
    if not isinstance(found, Refusal):
        found = _with_scheduling(found, runtime_class or {}, where)
    if isinstance(found, Refusal):
        return found
    lonely = _overhead_without_class(found, runtime_class or {})
    return lonely or Admitted({**pod, "spec": found})


class Asking(t.NamedTuple):
    """What the filters look at of a pod. where: the pod, for messages. wanted: its requests, overhead included."""

    where: str
    spec: t.Mapping[str, t.Any]
    selector: t.Mapping[str, str]
    tolerations: tuple[Toleration, ...]
    wanted: Counts


class Room(t.NamedTuple):
    """What the filters look at of a node. has: allocatable. taken: the requests of the pods there. pods: how many these are."""

    name: str
    labels: t.Mapping[str, str]
    taints: tuple[Taint, ...]
    cordoned: bool
    has: Counts
    taken: Counts
    pods: int


def fits(pod: t.Mapping[str, t.Any], node: t.Mapping[str, t.Any], pods_there: t.Iterable[t.Mapping[str, t.Any]] = ()) -> Unfit | None:
    """[filter] Why the scheduler passes this node over for this pod; None where it takes it.

    pod: as it is stored, that is, after admit. node: a Node object. pods_there: pods; those that are bound to this node and
    not over take room. Raises RuntimeGateError for objects that the API server would not decode.
    """
    place = _name(node, "node")
    meta, spec = part(node, "metadata", where=place), part(node, "spec", where=place)
    there = [each for each in pods_there if occupies(each, "a pod there") == meta.get("name")]
    room = Room(
        name=str(meta.get("name")),
        labels=parse_selector(meta.get("labels"), f"{place}: labels"),
        taints=parse_taints(spec.get("taints"), f"{place}: taints"),
        cordoned=bool(spec.get("unschedulable")),
        has=counted(allocatable(node, place)),
        taken=requested(there),
        pods=len(there),
    )
    return unfit(asking(pod), room)


def asking(pod: t.Mapping[str, t.Any], overhead: bool = True) -> Asking:
    """A pod as the filters see it. overhead: False leaves its overhead out. Raises RuntimeGateError as fits does."""
    where = _name(pod, "pod")
    spec = part(pod, "spec", where=where)
    return Asking(
        where=where,
        spec=spec,
        selector=parse_selector(spec.get("nodeSelector"), f"{where}: nodeSelector"),
        tolerations=parse_tolerations(spec.get("tolerations"), f"{where}: tolerations"),
        wanted=dict(sorted(counted(pod_requests(pod, where, overhead)).items(), key=lambda entry: _order(entry[0]))),
    )


def unfit(pod: Asking, room: Room) -> Unfit | None:
    """[filter] The first filter that refuses speaks."""
    if room.cordoned and not any(tolerates(entry, _CORDON) for entry in pod.tolerations):
        return Unfit((UNSCHEDULABLE,))
    if pod.spec.get("nodeName") not in (None, "", room.name):
        return Unfit((OTHER_NODE,))
    if untolerated(room.taints, pod.tolerations):
        return Unfit((UNTOLERATED,))
    if not (selector_matches(pod.selector, room.labels) and affinity_matches(pod.spec, room.labels, room.name, pod.where)):
        return Unfit((NOT_SELECTED,))
    lacking = insufficient(pod.wanted, room.has, room.taken, room.pods)
    return Unfit(lacking) if lacking else None


def insufficient(wanted: Counts, has: Counts, taken: Counts, pods: int) -> tuple[str, ...]:
    """[filter] fitsRequest of noderesources: what a node lacks for a pod, in the scheduler's words.

    wanted: the pod's requests, in the order in which they are looked at. has: the node's allocatable. taken: the requests of the pods
    there. pods: how many these are.
    """
    found = [TOO_MANY_PODS] if pods + 1 > has.get("pods", 0) else []
    for name, count in wanted.items():
        if count > 0 and count > has.get(name, 0) - taken.get(name, 0):
            found.append(f"Insufficient {name}")
    return tuple(found)


def merged_tolerations(first: t.Iterable[t.Mapping[str, t.Any]], second: t.Iterable[t.Mapping[str, t.Any]]) -> list[t.Any]:
    """[merge] "If one toleration is a superset of another, only the superset is kept". Tolerations as Kubernetes writes them."""
    every = [*first, *second]
    written = [_Written(*(entry.get(key) or "" for key in _Written._fields[:-1]), entry.get("tolerationSeconds")) for entry in every]
    kept: list[int] = []
    for index, one in enumerate(written):
        earlier = any(_covers(written[other], one) for other in kept)
        later = any(other != one and _covers(other, one) for other in written[index + 1 :])
        if not earlier and not later:
            kept.append(index)
    return [every[index] for index in kept]


class _Written(t.NamedTuple):
    """A toleration as it is written, nothing filled in: to this function of the API server, unlike to the scheduler, an
    absent operator of the inner toleration is not Equal."""

    key: str
    operator: str
    value: str
    effect: str
    tolerationSeconds: int | None


def _covers(outer: _Written, inner: _Written) -> bool:
    """[merge] isSuperset."""
    if outer == inner:
        return True
    if inner.key != outer.key and (outer.key or outer.operator != "Exists"):
        return False
    if outer.effect and inner.effect != outer.effect:
        return False
    allowed, wanted = outer.tolerationSeconds, inner.tolerationSeconds
    if outer.effect == "NoExecute" and allowed is not None and (wanted is None or wanted > allowed):
        return False
    if outer.operator in ("Equal", ""):
        return inner.operator == "Equal" and inner.value == outer.value
    return outer.operator == "Exists"


def _with_overhead(spec: t.Mapping[str, t.Any], runtime_class: t.Mapping[str, t.Any], where: str) -> dict[str, t.Any] | Refusal:
    """[admit] setOverhead. An overhead of the pod's own has to be the one of its class."""
    if runtime_class.get("overhead") is None:
        return dict(spec)
    named = f"RuntimeClass {spec.get('runtimeClassName')}"
    fixed = amounts(part(runtime_class, "overhead", "podFixed", where=named), f"{named}: overhead.podFixed")
    own = amounts(part(spec, "overhead", where=where), f"{where}: spec.overhead")
    if own and not _equal(own, fixed):
        return Refusal("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    return {**spec, "overhead": {name: str(amount) for name, amount in fixed.items()}}


def _equal(one: Amounts, other: Amounts) -> bool:
    """Quantities are equal by their amount, however they are written."""
    return {name: amount.nano for name, amount in one.items()} == {name: amount.nano for name, amount in other.items()}


def _with_scheduling(spec: dict[str, t.Any], runtime_class: t.Mapping[str, t.Any], where: str) -> dict[str, t.Any] | Refusal:
    """[admit] setScheduling: both selectors must hold, either's tolerations do. Where several labels conflict the API server
    names one of them, not always the same; this names the first."""
    if runtime_class.get("scheduling") is None:
        return spec
    scheduling = part(runtime_class, "scheduling", where=f"RuntimeClass {spec.get('runtimeClassName')}")
    wanted = parse_selector(scheduling.get("nodeSelector"), "scheduling.nodeSelector")
    own = parse_selector(spec.get("nodeSelector"), f"{where}: nodeSelector")
    for key in sorted(wanted):
        if own.get(key, wanted[key]) != wanted[key]:
            return Refusal(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted[key]}; pod.spec.nodeSelector[{key}] = {own[key]}"
            )
    tolerations = merged_tolerations(entries(spec, "tolerations", where), entries(scheduling, "tolerations", where))
    merged = {"nodeSelector": {**own, **wanted}, "tolerations": tolerations}
    rest = {key: value for key, value in spec.items() if key not in merged}
    return {**rest, **{key: value for key, value in merged.items() if value}}


def _overhead_without_class(spec: t.Mapping[str, t.Any], runtime_class: t.Mapping[str, t.Any]) -> Refusal | None:
    """[admit] validateOverhead: only a class can give an overhead; an empty one counts as well."""
    if runtime_class.get("overhead") is None and spec.get("overhead") is not None:
        return Refusal("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
    return None


def requested(pods: t.Iterable[t.Mapping[str, t.Any]]) -> Counts:
    """The sum of the requests of pods. Each pod is rounded up by itself, as the scheduler does."""
    total: Counts = {}
    for pod in pods:
        for name, count in counted(pod_requests(pod, _name(pod, "pod"))).items():
            total[name] = total.get(name, 0) + count
    return total


def _order(name: str) -> tuple[int, str]:
    """cpu, memory and ephemeral-storage first, as the scheduler looks at them."""
    plain = ("cpu", "memory", "ephemeral-storage")
    return (plain.index(name) if name in plain else len(plain), name)


def _name(thing: t.Mapping[str, t.Any], kind: str) -> str:
    meta = part(thing, "metadata", where=kind)
    return " ".join((kind, "/".join(str(meta[key]) for key in ("namespace", "name") if meta.get(key)))).strip()
