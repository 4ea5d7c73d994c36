# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cordon, drain and give back one Node around the restart of its runtime.

An annotation says that the cordon is ours, and why it stands. It is written and taken away in one request with the cordon itself, so
that a run which is lost leaves a Node that the next run knows: only what is marked so is ever given back.

Why not kubernetes.core.k8s_drain: its time-out is a warning after which the play goes on, a budget that forbids an eviction ends it at
once, it does nothing in check mode, and it treats a DaemonSet's pod with an emptyDir as one to be evicted.
"""

from __future__ import annotations

import time
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import entries, part
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_api import MERGE, ApiRefused, NodeApi, Object

BEFORE_RESTART = "cordoned for a restart of the container runtime; given back when the restart is proved and the gate has passed"
_MIRROR = "kubernetes.io/config.mirror"
_SHOWN = 5  # pods in a sentence

#: The options of a drain, by the names of kubernetes.core.k8s_drain's delete_options. Daemons are not evicted there either, but need consent.
DRAIN_OPTIONS: t.Dict[str, t.Dict[str, t.Any]] = {
    "force": {"type": "bool", "default": False},
    "ignore_daemonsets": {"type": "bool", "default": True},
    "delete_emptydir_data": {"type": "bool", "default": False},
    "disable_eviction": {"type": "bool", "default": False},
    "wait_sleep": {"type": "float", "default": 5.0},
    "pod_selectors": {"type": "list", "elements": "str", "default": []},
}


class Drain(t.NamedTuple):
    """How to drain. grace: seconds for each pod, None: its own. timeout: seconds for all of it. options: those of DRAIN_OPTIONS."""

    grace: t.Optional[int]
    timeout: float
    options: t.Mapping[str, t.Any]


class NodeMaintenance:
    """One Node. Every method raises RuntimeGateError where the API server does not do what is asked; the message says what was done."""

    def __init__(self, api: NodeApi, name: str, prefix: str, clock: t.Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._name = name
        self._mark = prefix + "/cordoned"
        self._clock = clock
        self._evicted: t.List[str] = []

    # ---- before the restart

    def take(self, drain: t.Optional[Drain]) -> Object:
        """Cordon, and drain where that is asked for. What cannot be drained is said before anything is written.

        Returns cordoned (by this run or an earlier one of ours), cordoned_before (by somebody else, so that it will stay), evicted.
        Raises RuntimeGateError where it fails; what this call had cordoned is then given back, as the runtime was not touched.
        """
        if drain:
            self._refuse_what_stays(self._sorted_pods(drain)[1])
        written = self._api.update(self._name, MERGE, self._cordon_body, f"cordon Node {self._name}")
        ours = written is not None or self._mark in _annotations(self._api.node(self._name))
        if drain:
            try:
                self._drain(drain)
            except RuntimeGateError as error:
                raise RuntimeGateError(f"{error}. {self._back_after_failure(written is not None)}") from error
        return {"cordoned": ours, "cordoned_before": not ours, "evicted": self._evicted}

    def _cordon_body(self, node: Object) -> t.Optional[Object]:
        if part(node, "spec", where="the Node").get("unschedulable"):
            return None
        return self._body(node, True, BEFORE_RESTART)

    def _body(self, node: Object, unschedulable: t.Optional[bool], mark: t.Optional[str]) -> Object:
        # The version makes it fail, and look again, where somebody else cordons in between.
        metadata = {"resourceVersion": node["metadata"]["resourceVersion"], "annotations": {self._mark: mark}}
        return {"metadata": metadata, "spec": {"unschedulable": unschedulable}}

    def _back_after_failure(self, cordoned: bool) -> str:
        done = "Evicted before that: %s. " % _some(self._evicted) if self._evicted else ""
        done += "The runtime was not touched"
        if not cordoned:
            return done
        try:
            self.give_back()
        except RuntimeGateError as error:
            return f"{done}. Node {self._name} is still cordoned: {error}"
        return f"{done}, and Node {self._name} takes pods again"

    # ---- drain

    def _sorted_pods(self, drain: Drain) -> t.Tuple[t.List[Object], t.List[str]]:
        """(pods to be evicted, sentences about those that nobody has consented to evict)."""
        leaving: t.List[Object] = []
        staying: t.Dict[str, t.List[str]] = {}
        for pod in self._api.pods_on(self._name, drain.options["pod_selectors"]):
            why = _why_it_stays(pod, drain.options)
            if why is None:
                leaving.append(pod)
            elif why:
                staying.setdefault(why, []).append(_name_of(pod))
        return leaving, [f"{_some(names)} {why}" for why, names in sorted(staying.items())]

    def _refuse_what_stays(self, sentences: t.Sequence[str]) -> None:
        if sentences:
            raise RuntimeGateError(f"Node {self._name} cannot be drained, and nothing was changed: {'; '.join(sentences)}")

    def _drain(self, drain: Drain) -> None:
        """Evict until nothing is left that has to go; a budget that forbids it now is asked again until the time is over."""
        deadline = self._clock() + drain.timeout
        asked: t.Set[str] = set()
        while True:
            leaving, staying = self._sorted_pods(drain)
            if staying:
                raise RuntimeGateError(f"Node {self._name} cannot be drained: {'; '.join(staying)}")
            if self._api.dry_run:
                self._evicted = sorted(map(_name_of, leaving))
                return
            forbidden = [said for said in (self._end(pod, drain, asked) for pod in leaving) if said]
            if not leaving:
                return
            if self._clock() >= deadline:
                detail = f": {forbidden[0]}" if forbidden else ""
                raise RuntimeGateError(
                    f"Node {self._name} is not drained after {drain.timeout:g} s, still there: {_some(sorted(map(_name_of, leaving)))}{detail}"
                )
            self._api.pause(max(0.0, min(drain.options["wait_sleep"], deadline - self._clock())))

    def _end(self, pod: Object, drain: Drain, asked: t.Set[str]) -> t.Optional[str]:
        """Ask once for the end of a pod. Returns what a budget says against it, if one does."""
        meta = pod["metadata"]
        if meta["uid"] in asked or meta.get("deletionTimestamp"):
            return None
        end = self._api.delete_pod if drain.options["disable_eviction"] else self._api.evict
        try:
            end(meta.get("namespace") or "default", meta["name"], drain.grace)
        except ApiRefused as error:
            if error.status == 429:
                return str(error)
            if error.status != 404:
                raise
            return None
        asked.add(meta["uid"])
        self._evicted.append(_name_of(pod))
        return None

    # ---- after the restart

    def give_back(self) -> bool:
        """Let pods in again, if the cordon is ours. Returns whether anything was written."""
        return self._api.update(self._name, MERGE, self._give_back_body, f"uncordon Node {self._name}") is not None

    def _give_back_body(self, node: Object) -> t.Optional[Object]:
        return self._body(node, None, None) if self._mark in _annotations(node) else None

    def keep(self, reason: str) -> t.Tuple[bool, bool]:
        """Leave it cordoned, and say why in our annotation; nothing where the cordon is not ours.

        Returns whether the cordon is ours, and whether anything was written."""
        ours = []

        def body(node: Object) -> t.Optional[Object]:
            said = _annotations(node).get(self._mark)
            ours[:] = [said is not None and bool(part(node, "spec", where="the Node").get("unschedulable"))]
            if not ours[0] or said == reason:
                return None
            metadata = {"resourceVersion": node["metadata"]["resourceVersion"], "annotations": {self._mark: reason}}
            return {"metadata": metadata}

        written = self._api.update(self._name, MERGE, body, f"say on Node {self._name} why it stays cordoned")
        return ours[0], written is not None


def _why_it_stays(pod: Object, options: t.Mapping[str, t.Any]) -> t.Optional[str]:
    """None: it is to be evicted. Empty: it stays, as it should. Else why nobody has consented to its end.

    The rules and their order are those of kubectl drain, https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/
    """
    meta = part(pod, "metadata", where="a pod")
    if _MIRROR in part(meta, "annotations", where="a pod"):
        return ""
    owners = {str(owner.get("kind")) for owner in entries(meta, "ownerReferences", "a pod") if owner.get("controller")}
    finished = part(pod, "status", where="a pod").get("phase") in ("Succeeded", "Failed")
    if "DaemonSet" in owners and not finished:
        return "" if options["ignore_daemonsets"] else "belong to a DaemonSet (ignore_daemonsets: true)"
    if finished:
        return None
    if not options["delete_emptydir_data"] and any("emptyDir" in volume for volume in entries(part(pod, "spec", where="a pod"), "volumes", "a pod")):
        return "keep data in an emptyDir, which would be lost (delete_emptydir_data: true)"
    if not owners and not options["force"]:
        return "belong to no controller that would start them elsewhere (force: true)"
    return None


def _annotations(node: Object) -> t.Mapping[str, t.Any]:
    return part(node, "metadata", "annotations", where="the Node")


def _name_of(pod: Object) -> str:
    return "%s/%s" % (pod["metadata"].get("namespace") or "default", pod["metadata"]["name"])


def _some(names: t.Sequence[str]) -> str:
    more = " and %d more" % (len(names) - _SHOWN) if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


__all__ = ("BEFORE_RESTART", "DRAIN_OPTIONS", "Drain", "NodeMaintenance")
