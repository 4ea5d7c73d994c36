# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels, condition and startup taint of one Node: what is to be written, and the writing, one request each and only where it differs.

The order is that of trust: labels first (stale ones go), then the condition, and the taint, which lets pods in, last and only
after a pass. Labels are server-side applied under our field manager: what somebody else owns with another value is theirs.
"""

from __future__ import annotations

import datetime
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.declared_classes import FIELD_MANAGER
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import entries, part
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.publication import CONDITION, LOADED, labels_of
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_api import (
    APPLY,
    JSON_PATCH,
    STRATEGIC,
    ApiRefused,
    NodeApi,
    Object,
)

_LABEL_FIELD = ".metadata.labels."
_SHOWN = ("status", "reason", "message")


class Wanted(t.NamedTuple):
    """What shall stand on the Node. condition: status, reason and message; None: none of ours. taint: to be taken away."""

    prefix: str
    labels: t.Mapping[str, str]
    condition: t.Optional[t.Mapping[str, str]]
    taint: t.Optional[t.Mapping[str, str]]
    notices: t.Sequence[str] = ()


def wanted_of(publication: t.Mapping[str, t.Any], prefix: str, taint: t.Optional[t.Mapping[str, str]]) -> Wanted:
    """By what publication.publication_of said of the node."""
    labels, unfit = labels_of(publication["handlers"], prefix)
    notices = []
    if unfit:
        notices.append(
            "no label for handler %s: such a name cannot stand in a label, nor in a RuntimeClass (handler must be a DNS label)"
            % ", ".join(map(repr, unfit))
        )
    condition = {key: publication[key] for key in _SHOWN}
    return Wanted(prefix, labels, condition, taint if publication["passed"] else None, notices)


def nothing(prefix: str) -> Wanted:
    """What removal leaves: nothing of ours. The taint is no promise and stays where it is."""
    return Wanted(prefix, {}, None, None)


def publish(api: NodeApi, name: str, wanted: Wanted) -> Object:
    """Bring the Node to that. At most four requests (five with a conflict), one where nothing is to be changed.

    Returns changed, before and after (what is ours on the Node), written (the parts, in their order) and notices.
    Raises RuntimeGateError with what had been written before, where one of the requests fails.
    """
    return _Publisher(api, name, wanted).run()


class _Publisher:
    def __init__(self, api: NodeApi, name: str, wanted: Wanted) -> None:
        self._api = api
        self._name = name
        self._wanted = wanted
        self._written: t.List[str] = []
        self._refused_labels: t.List[str] = []

    def run(self) -> Object:
        try:
            node = self._api.node(self._name)
            before = _ours(node, self._wanted)
            after = dict(before)
            after["labels"] = self._apply_labels(node)
            after["condition"] = self._patch_condition(node)
            if self._refused_labels:
                raise RuntimeGateError("; ".join(self._refused_labels))
            if self._take_taint(node):
                after["startup_taint"] = None
        except RuntimeGateError as error:
            raise RuntimeGateError(f"{error}. {self._so_far()}") from error
        return {
            "changed": bool(self._written),
            "written": self._written,
            "before": before,
            "after": after,
            "notices": [*self._wanted.notices, *_left_alone(node, self._wanted)],
        }

    def _so_far(self) -> str:
        if not self._written:
            return "Nothing was written"
        return "%s before that: %s" % ("Would have been written" if self._api.dry_run else "Written", ", ".join(self._written))

    # ---- labels

    def _apply_labels(self, node: Object) -> t.Dict[str, str]:
        labels = part(node, "metadata", "labels", where="the Node")
        owned = _owned(node)
        wanted = dict(self._wanted.labels)
        if owned == set(wanted) and all(labels.get(key) == value for key, value in wanted.items()):
            return wanted
        try:
            self._apply(node, wanted)
        except ApiRefused as error:
            theirs = _conflicts(error)
            if not theirs:
                raise
            # What somebody else owns stays theirs; all the rest is brought up to date, so that no stale label stays with it.
            wanted = {key: value for key, value in wanted.items() if key not in theirs}
            self._refused_labels = [
                f"label {key} of Node {self._name} is written by somebody else ({said}); it was left alone" for key, said in theirs.items()
            ]
            if owned == set(wanted):
                return wanted
            self._apply(node, wanted)
        self._written.append("labels")
        return wanted

    def _apply(self, node: Object, labels: t.Mapping[str, str]) -> None:
        # The uid makes sure that a Node which was deleted in between is not created anew.
        metadata = {"name": self._name, "uid": node["metadata"]["uid"], "labels": labels}
        self._api.patch(self._name, APPLY, {"apiVersion": "v1", "kind": "Node", "metadata": metadata}, f"label Node {self._name}")

    # ---- condition

    def _patch_condition(self, node: Object) -> t.Optional[t.Dict[str, str]]:
        present, wanted = _present_condition(node), self._wanted.condition
        if wanted is None:
            if present is not None:
                # https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/: lists are merged by their key
                self._patch_status({"type": CONDITION, "$patch": "delete"})
            return None
        if present is not None and all(present.get(key) == wanted[key] for key in _SHOWN):
            return dict(wanted)
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        same = present is not None and present.get("status") == wanted["status"]
        since = (present or {}).get("lastTransitionTime") if same else None
        self._patch_status({"type": CONDITION, **wanted, "lastHeartbeatTime": now, "lastTransitionTime": since or now})
        return dict(wanted)

    def _patch_status(self, condition: t.Mapping[str, t.Any]) -> None:
        what = f"set the condition {CONDITION} of Node {self._name}"
        self._api.patch(self._name, STRATEGIC, {"status": {"conditions": [condition]}}, what, "status")
        self._written.append("condition")

    # ---- startup taint

    def _take_taint(self, node: Object) -> bool:
        """Take it away where it is there; the list of taints is one value for the API, so the patch tests the entry first."""
        taint = self._wanted.taint
        if taint is None or _index_of(node, taint) is None:
            return False
        taken = self._api.update(self._name, JSON_PATCH, lambda now: _without(now, taint), f"take the startup taint off Node {self._name}")
        if taken is not None:
            self._written.append("startup taint")
        return True


def _without(node: Object, taint: t.Mapping[str, str]) -> t.Optional[t.List[Object]]:
    index = _index_of(node, taint)
    if index is None:
        return None
    path = f"/spec/taints/{index}"
    return [{"op": "test", "path": path, "value": node["spec"]["taints"][index]}, {"op": "remove", "path": path}]


def _index_of(node: Object, taint: t.Mapping[str, str]) -> t.Optional[int]:
    taints = entries(part(node, "spec", where="the Node"), "taints", "the Node")
    for index, present in enumerate(taints):
        if all((present.get(key) or "") == taint[key] for key in ("key", "value", "effect")):
            return index
    return None


def _present_condition(node: Object) -> t.Optional[t.Mapping[str, t.Any]]:
    conditions = entries(part(node, "status", where="the Node"), "conditions", "the Node")
    return next((one for one in conditions if one.get("type") == CONDITION), None)


def _owned(node: Object) -> t.Set[str]:
    """The labels that an earlier run applied, by the API server's own book."""
    found: t.Set[str] = set()
    for entry in entries(part(node, "metadata", where="the Node"), "managedFields", "the Node"):
        if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply" and not entry.get("subresource"):
            labels = part(entry, "fieldsV1", "f:metadata", "f:labels", where="managedFields of the Node")
            found |= {key[2:] for key in labels if key.startswith("f:")}
    return found


def _conflicts(error: ApiRefused) -> t.Dict[str, str]:
    """Label -> who has it, of a refused apply.

    https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
    """
    return {
        str(cause["field"])[len(_LABEL_FIELD) :]: str(cause.get("message") or "conflict")
        for cause in error.causes
        if cause.get("reason") == "FieldManagerConflict" and str(cause.get("field", "")).startswith(_LABEL_FIELD)
    }


def _ours(node: Object, wanted: Wanted) -> Object:
    """What of the Node this run has to do with, for the diff."""
    labels = part(node, "metadata", "labels", where="the Node")
    keys = _owned(node) | set(wanted.labels)
    condition = _present_condition(node)
    taint = wanted.taint
    return {
        "labels": {key: labels[key] for key in sorted(keys) if key in labels},
        "condition": {key: condition.get(key) for key in _SHOWN} if condition else None,
        "startup_taint": dict(taint) if taint and _index_of(node, taint) is not None else None,
    }


def _left_alone(node: Object, wanted: Wanted) -> t.List[str]:
    """Labels that say the same of other handlers, in somebody else's name."""
    labels = part(node, "metadata", "labels", where="the Node")
    strange = sorted(
        key
        for key, value in labels.items()
        if key.startswith(wanted.prefix + "/") and value == LOADED and key not in wanted.labels and key not in _owned(node)
    )
    return ["label %s says loaded, was written by somebody else, and was left alone" % key for key in strange]


__all__ = ("Wanted", "nothing", "publish", "wanted_of")
