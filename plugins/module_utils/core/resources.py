# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pod asks of a node, and what a node has to give, counted as kube-scheduler counts. Pure.

Sources, named at each rule:

[requests] PodRequests and AggregateContainerRequests in k8s.io/component-helpers/resource/helpers.go, and
           https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers
[default]  SetDefaults_Pod and defaultPodRequests in k8s.io/kubernetes/pkg/apis/core/v1/defaults.go
[count]    Resource.Add in k8s.io/kubernetes/pkg/scheduler/framework/types.go, IsScalarResourceName in pkg/scheduler/util

LimitRanges, which fill in requests too, are objects of a namespace that nothing here sees: a pod of the API server has
theirs already, one from a manifest has not.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import entries, part
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.quantity import NANO, Quantity, parse_quantity

#: Resource name -> quantity.
Amounts = t.Dict[str, Quantity]
#: Resource name -> the scheduler's count: cpu in thousandths, anything else in whole units.
Counts = t.Dict[str, int]

OVER = ("Succeeded", "Failed")
_PLAIN = ("cpu", "memory", "ephemeral-storage", "pods")
# [requests] IsSupportedPodLevelResource; hugepages cannot be overcommitted, so [default] does not sum them up.
_POD_LEVEL = ("cpu", "memory")
_HUGEPAGES = "hugepages-"
# The replicas of a workload ask for the same, so a cluster has a few hundred answers for its 100,000s of pods.
_MOST_REMEMBERED = 65536
_REMEMBERED: t.Dict[str, Amounts] = {}


def amounts(raw: t.Mapping[str, t.Any], where: str) -> Amounts:
    """A ResourceList. Raises RuntimeGateError for what is no quantity."""
    return {str(name): parse_quantity(value, f"{where}.{name}") for name, value in raw.items()}


def counted(found: t.Mapping[str, Quantity]) -> Counts:
    """[count] What the scheduler makes of a ResourceList: names that it does not know are left out."""
    return {name: amount.milli() if name == "cpu" else amount.whole() for name, amount in found.items() if _counts(name)}


def amount_of(name: str, count: int, style: str = "decimal") -> Quantity:
    """A count of the scheduler as a quantity again."""
    return Quantity(count * (NANO // 1000 if name == "cpu" else NANO), style)


def pod_requests(pod: t.Mapping[str, t.Any], where: str, overhead: bool = True) -> Amounts:
    """[requests] Everything that a pod asks for, its spec.overhead included unless that is not wanted.

    Raises RuntimeGateError for a pod whose resources are none.
    """
    spec = part(pod, "spec", where=where)
    written = _as_written(pod, where)
    found = _REMEMBERED.get(written)
    if found is None:
        found = _aggregated(pod, where)
        found.update(_pod_level(spec, found, where))
        if len(_REMEMBERED) < _MOST_REMEMBERED:
            _REMEMBERED[written] = found
    found = dict(found)
    return _sum(found, amounts(part(spec, "overhead", where=where), f"{where}: spec.overhead")) if overhead else found


def occupies(pod: t.Mapping[str, t.Any], where: str) -> str | None:
    """The node on which the scheduler counts this pod: bound there and not over. A pod that is being deleted still counts."""
    if part(pod, "status", where=where).get("phase") in OVER:
        return None
    return t.cast("str | None", part(pod, "spec", where=where).get("nodeName") or None)


def allocatable(node: t.Mapping[str, t.Any], where: str) -> Amounts:
    """status.allocatable of a Node. Raises RuntimeGateError for what is no quantity."""
    return amounts(part(node, "status", "allocatable", where=where), f"{where}: status.allocatable")


def _counts(name: str) -> bool:
    # A scalar resource is an extended one (any domain), a prefixed native one, hugepages or attachable volumes.
    return name in _PLAIN or "/" in name or name.startswith((_HUGEPAGES, "attachable-volumes-"))


def _as_written(pod: t.Mapping[str, t.Any], where: str) -> str:
    """All of a pod that _aggregated and _pod_level look at: equal texts ask for the same."""
    spec, status = part(pod, "spec", where=where), part(pod, "status", where=where)
    asked = [
        [(each.get("name"), each.get("restartPolicy"), each.get("resources")) for each in entries(spec, key, where)]
        for key in ("containers", "initContainers")
    ]
    resized = [
        [(each.get("name"), each["resources"], each.get("allocatedResources")) for each in entries(status, key, where) if each.get("resources") is not None]
        for key in ("containerStatuses", "initContainerStatuses")
    ]
    return repr((spec.get("resources"), asked, resized))


def _aggregated(pod: t.Mapping[str, t.Any], where: str) -> Amounts:
    """[requests] Containers and sidecars together, or the neediest moment of the start, whichever is more."""
    spec, statuses = part(pod, "spec", where=where), _statuses(pod, where)
    total: Amounts = {}
    for container in entries(spec, "containers", where):
        total = _sum(total, _effective(container, statuses, where))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in entries(spec, "initContainers", where):
        stays = container.get("restartPolicy") == "Always"
        requests = _effective(container, statuses if stays else {}, where)
        if stays:
            total, sidecars = _sum(total, requests), _sum(sidecars, requests)
        starting = _max(starting, sidecars if stays else _sum(requests, sidecars))
    return _max(total, starting)


def _statuses(pod: t.Mapping[str, t.Any], where: str) -> dict[t.Any, t.Mapping[str, t.Any]]:
    status = part(pod, "status", where=where)
    return {each.get("name"): each for key in ("containerStatuses", "initContainerStatuses") for each in entries(status, key, where)}


def _effective(container: t.Mapping[str, t.Any], statuses: t.Mapping[t.Any, t.Mapping[str, t.Any]], where: str) -> Amounts:
    """The requests of a container; while it is resized in place, the greatest of what is wanted, promised and in force. (A
    resize that was refused as infeasible is counted as wanted all the same: too much rather than too little.)"""
    place = f"{where}: container {container.get('name')}"
    found = _requests(container, place)
    status = statuses.get(container.get("name"), {})
    if status.get("resources") is None:
        return found
    for path in (("resources", "requests"), ("allocatedResources",)):
        found = _max(found, amounts(part(status, *path, where=place), place))
    return found


def _requests(thing: t.Mapping[str, t.Any], where: str) -> Amounts:
    """[default] "If limits are specified, but requests are not, default requests to limits"."""
    limits = amounts(part(thing, "resources", "limits", where=where), f"{where}: limits")
    return {**limits, **amounts(part(thing, "resources", "requests", where=where), f"{where}: requests")}


def _pod_level(spec: t.Mapping[str, t.Any], containers: Amounts, where: str) -> Amounts:
    """Requests of the pod as a whole, which replace those of its containers. [default] Where only limits are set, the
    containers' requests count before the pod's limit does."""
    requests = amounts(part(spec, "resources", "requests", where=where), f"{where}: resources.requests")
    limits = amounts(part(spec, "resources", "limits", where=where), f"{where}: resources.limits")
    if limits:
        summed = {name: amount for name, amount in containers.items() if name in _POD_LEVEL}
        requests = {**limits, **summed, **requests}
    return {name: amount for name, amount in requests.items() if name in _POD_LEVEL or name.startswith(_HUGEPAGES)}


def _sum(one: Amounts, other: t.Mapping[str, Quantity]) -> Amounts:
    result = dict(one)
    for name, amount in other.items():
        result[name] = Quantity(result[name].nano + amount.nano, result[name].style) if name in result else amount
    return result


def _max(one: Amounts, other: t.Mapping[str, Quantity]) -> Amounts:
    result = dict(one)
    for name, amount in other.items():
        if name not in result or amount.nano > result[name].nano:
            result[name] = amount
    return result
