# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kubernetes objects, wherever they come from: sorted by kind, and made small.

A Node of a real cluster is 5 to 20 KB, most of it images and managedFields that no judgement looks at.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import entries, part, shown, yaml_kind
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.resources import OVER, pod_requests
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.runtime_class import WORKLOAD_KINDS, custom_templates
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.suggest import did_you_mean
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

_GROUP = "node.k8s.io/"
_VERSIONS = ("node.k8s.io/v1", "node.k8s.io/v1beta1", "node.k8s.io/v1alpha1")
_INFO = ("bootID", "machineID", "operatingSystem", "architecture", "containerRuntimeVersion", "kubeletVersion")


class ClusterObjects:
    """Objects of the kinds that the cross-check reads, and of other APIs those with a pod template that names a RuntimeClass. The rest is
    passed over.

    runtime_classes, nodes, workloads, events: the (small) objects. empty_lists: how many List objects without items were seen:
    somebody says "none", which is not the same as saying nothing. repeated: sentences about objects that stand twice, word for word.
    """

    def __init__(self) -> None:
        self.runtime_classes: list[dict[str, t.Any]] = []
        self.nodes: list[dict[str, t.Any]] = []
        self.workloads: list[dict[str, t.Any]] = []
        self.events: list[dict[str, t.Any]] = []
        self.empty_lists = 0
        self.repeated: list[str] = []
        self._seen: dict[tuple[str, str], tuple[dict[str, t.Any], str]] = {}

    def add(self, document: t.Any, where: str) -> None:
        """Take one object or a List of them. where: the place for error messages.

        Raises RuntimeGateError for what is no Kubernetes object, for a RuntimeClass without name or handler, and for
        two different objects of one name.
        """
        if not isinstance(document, dict):
            raise RuntimeGateError(f"{where} is {yaml_kind(document)}, not a Kubernetes object")
        kind, version = document.get("kind"), document.get("apiVersion")
        if not isinstance(kind, str) or not isinstance(version, str):
            raise RuntimeGateError(f"{where} has no kind or no apiVersion, so it is no Kubernetes object")
        if version.startswith("kustomize.config.k8s.io/") or kind == "Kustomization":
            raise RuntimeGateError(f"{where} is a kustomization; render it first (kubectl kustomize DIR) and pass the result")
        if kind.endswith("List") and "items" in document:
            self._add_list(document, kind, version, where)
        elif kind == "RuntimeClass" or version.startswith(_GROUP):
            self._add_class(document, kind, version, where)
        elif kind == "Node" and version == "v1":
            self._add_unique("Node", slim_node(document, where), where, self.nodes)
        elif kind in WORKLOAD_KINDS:
            self.workloads.append(slim_workload(document, where))
        elif kind == "Event" and version == "v1":
            self.events.append(slim_event(document, where))
        else:
            self.workloads += [slim_workload(each, where) for each in custom_templates(document)]

    def _add_list(self, document: dict[str, t.Any], kind: str, version: str, where: str) -> None:
        items = document["items"]
        if items is not None and not isinstance(items, list):
            raise RuntimeGateError(f"{where} is a {kind} whose items are no list")
        self.empty_lists += 0 if items else 1
        # The items of a typed list in an API answer carry neither kind nor version.
        typed = {} if kind == "List" else {"kind": kind[: -len("List")], "apiVersion": version}
        for index, item in enumerate(items or ()):
            place = f"{where}, item {index + 1}"
            self.add({**typed, **item} if isinstance(item, dict) else item, place)

    def _add_class(self, document: dict[str, t.Any], kind: str, version: str, where: str) -> None:
        if kind != "RuntimeClass":
            raise RuntimeGateError(f"{where} is of kind {shown(kind)}, which {version} does not have{did_you_mean(kind, ['RuntimeClass'])}")
        if version not in _VERSIONS:
            raise RuntimeGateError(f"{where} is a RuntimeClass of {shown(version)}, which does not exist{did_you_mean(version, _VERSIONS)}")
        name = _name(document, where)
        spec = document if version != "node.k8s.io/v1alpha1" else part(document, "spec", where=where)
        key = "handler" if spec is document else "runtimeHandler"
        handler = spec.get(key)
        if "{{" in f"{name}{handler}":
            raise RuntimeGateError(f"{where} is a template; render it first (helm template CHART) and pass the result")
        if handler is None or handler == "":
            raise RuntimeGateError(f"{where}: RuntimeClass {name} has no {key}; write {key}: NAME-OF-THE-HANDLER")
        self._add_unique("RuntimeClass", slim_class(document, where), where, self.runtime_classes)

    def _add_unique(self, kind: str, thing: dict[str, t.Any], where: str, to: list[dict[str, t.Any]]) -> None:
        name = _name(thing, where)
        earlier = self._seen.get((kind, name))
        if earlier is None:
            self._seen[kind, name] = (thing, where)
            to.append(thing)
        elif earlier[0] == thing:
            self.repeated.append(f"{kind} {name} stands twice, in {earlier[1]} and in {where}, with the same content")
        else:
            raise RuntimeGateError(f"{kind} {name} stands twice and differs: in {earlier[1]} and in {where}; take one away")


def slim_class(raw: t.Mapping[str, t.Any], where: str) -> dict[str, t.Any]:
    """A RuntimeClass without annotations and managed fields. This and the two below raise RuntimeGateError where
    something else stands in the place of a mapping; where: the place for the message."""
    kept = {key: raw[key] for key in ("apiVersion", "kind", "handler", "scheduling", "overhead", "spec") if key in raw}
    return {**kept, "metadata": {"name": part(raw, "metadata", where=where).get("name")}}


def slim_node(raw: t.Mapping[str, t.Any], where: str) -> dict[str, t.Any]:
    """A Node with its labels, taints, what identifies it, what it has to give, and its handlers."""
    meta, spec, status = (part(raw, key, where=where) for key in ("metadata", "spec", "status"))
    info = part(status, "nodeInfo", where=where)
    slim_status: dict[str, t.Any] = {"nodeInfo": {key: info[key] for key in _INFO if key in info}}
    slim_status.update({key: status[key] for key in ("runtimeHandlers", "allocatable") if key in status})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": meta.get("name"), "labels": meta.get("labels") or {}},
        "spec": {"taints": spec.get("taints") or [], "unschedulable": bool(spec.get("unschedulable"))},
        "status": slim_status,
    }


def slim_workload(raw: t.Mapping[str, t.Any], where: str) -> dict[str, t.Any]:
    """A workload with nothing but what says which RuntimeClass it names, where it runs, and what it asks of a node."""
    meta, kind = part(raw, "metadata", where=where), raw.get("kind")
    small = {"kind": kind, "metadata": {"name": meta.get("name"), "namespace": meta.get("namespace")}}
    where = f"{where}, {kind} {meta.get('namespace') or 'default'}/{meta.get('name')}"
    if kind == "Pod":
        if meta.get("uid"):
            small["metadata"]["uid"] = meta["uid"]
        status = part(raw, "status", where=where)
        conditions = [
            {key: entry[key] for key in ("type", "status", "reason") if key in entry}
            for entry in entries(status, "conditions", where)
            if entry.get("type") in ("Ready", "PodScheduled")
        ]
        kept = {"phase": status.get("phase"), **({"conditions": conditions} if conditions else {})}
        return {**small, "spec": _pod(raw, "spec", where=where, status=status), "status": kept}
    if kind == "PodTemplate":
        return {**small, "template": {"spec": _pod(raw, "template", "spec", where=where)}}
    if kind == "CronJob":
        template = {"spec": _pod(raw, "spec", "jobTemplate", "spec", "template", "spec", where=where)}
        return {**small, "spec": {"jobTemplate": {"spec": {"template": template}}}}
    return {**small, "spec": {"template": {"spec": _pod(raw, "spec", "template", "spec", where=where)}}}


def slim_event(raw: t.Mapping[str, t.Any], where: str) -> dict[str, t.Any]:
    """An event with what was said about whom, where and when."""
    kept = {key: raw[key] for key in ("reason", "message", "count", "lastTimestamp", "eventTime", "series") if raw.get(key) is not None}
    about = part(raw, "involvedObject", where=where)
    return {
        **kept,
        "involvedObject": {key: about[key] for key in ("kind", "namespace", "name", "uid") if key in about},
        "source": {"host": part(raw, "source", where=where).get("host")},
    }


def _pod(raw: t.Mapping[str, t.Any], *path: str, where: str, status: t.Mapping[str, t.Any] | None = None) -> dict[str, t.Any]:
    """The pod spec at a path, small: all its containers as one that requests what they do together. status: a pod's, None for
    a template. Where the pod could go is only of interest where it names a class."""
    spec = part(raw, *path, where=where)
    kept = {key: spec[key] for key in ("runtimeClassName", "nodeName", "overhead") if key in spec}
    if "runtimeClassName" in spec:
        kept.update({key: spec[key] for key in ("nodeSelector", "tolerations") if spec.get(key)})
        affinity = part(spec, "affinity", "nodeAffinity", where=where)
        kept.update({"affinity": {"nodeAffinity": affinity}} if affinity else {})
    elif status is None:
        return kept
    if (status or {}).get("phase") not in OVER:
        requests = pod_requests({"spec": spec, "status": status}, where, overhead=False)
        texts = {name: str(amount) for name, amount in requests.items()}
        kept.update({"containers": [{"resources": {"requests": texts}}]} if texts else {})
    return kept


def _name(document: t.Mapping[str, t.Any], where: str) -> str:
    meta = document.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else None
    if not isinstance(name, str) or not name:
        raise RuntimeGateError(f"{where} is a {document.get('kind')} without metadata.name")
    return name
