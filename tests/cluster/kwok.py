# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many Nodes without machines: kwok keeps them Ready and says that their pods run.

What this proves: what the API server, the scheduler and the controllers do with them. Nothing runs on them; a node that runs pods is
real_node.RealNode.
"""

from __future__ import annotations

import json
import typing as t

from tests.cluster.control_plane import LOOPBACK, ControlPlane, ControlPlaneError, free_ports
from tests.cluster.waiting import wait_until

_MANAGED = {"kwok.x-k8s.io/node": "fake"}
_ALLOCATABLE = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
_UNKNOWN = ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "kubeletVersion", "kubeProxyVersion")
_LEASE_SECONDS = 40

_NODE_STATUS = """
conditions:
- {type: Ready, status: "True", reason: KubeletReady, message: kwok, lastHeartbeatTime: {{ Now | Quote }}, lastTransitionTime: {{ Now | Quote }}}
"""
_POD_STATUS = """
{{ $now := Now }}
phase: Running
startTime: {{ $now | Quote }}
conditions:
- {type: Ready, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: ContainersReady, status: "True", lastTransitionTime: {{ $now | Quote }}}
- {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
containerStatuses:
{{ range .spec.containers }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", ready: true, restartCount: 0, state: {running: {startedAt: {{ $now | Quote }}}}}
{{ end }}
"""


def _stage(name: str, kind: str, selector: list[dict[str, t.Any]], following: dict[str, t.Any]) -> dict[str, t.Any]:
    """One step of an object's life in kwok's words: where the selector matches, what follows."""
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {"resourceRef": {"apiGroup": "v1", "kind": kind}, "selector": {"matchExpressions": selector}, "next": following},
    }


_ALIVE = {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"}
_ENDING = {"key": ".metadata.deletionTimestamp", "operator": "Exists"}
_STAGES = [
    _stage(
        "node-ready",
        "Node",
        [{"key": '.status.conditions.[] | select(.type == "Ready") | .status', "operator": "NotIn", "values": ["True"]}],
        {"statusTemplate": _NODE_STATUS},
    ),
    _stage("pod-runs", "Pod", [_ALIVE, {"key": ".status.startTime", "operator": "DoesNotExist"}], {"statusTemplate": _POD_STATUS}),
    _stage("pod-ends", "Pod", [_ENDING], {"finalizers": {"empty": True}, "delete": True}),
]


class Kwok:
    """kwok beside a control plane (with a controller-manager, or Nodes keep their not-ready taint). It ends with the with-block."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._cluster = cluster

    def __enter__(self) -> Kwok:
        (port,) = free_ports(1)
        stages = self._cluster.directory / "kwok-stages.yaml"
        stages.write_text("---\n".join(json.dumps(stage) + "\n" for stage in _STAGES), encoding="utf-8")
        selector = ",".join(f"{key}={value}" for key, value in _MANAGED.items())
        self._cluster.run(
            "kwok",
            f"--kubeconfig={self._cluster.kubeconfig}",
            f"--config={stages}",
            f"--manage-nodes-with-annotation-selector={selector}",
            f"--node-lease-duration-seconds={_LEASE_SECONDS}",
            f"--server-address={LOOPBACK}:{port}",
        )
        return self

    def __exit__(self, *_exception: object) -> None:
        self._cluster.end("kwok")

    def add_nodes(self, nodes: t.Sequence[dict[str, t.Any]], wait: float = 60) -> None:
        """Make Nodes and wait until each is Ready and pods can be bound to it.

        Each is name, and as needed labels, taints, allocatable (over a default of 8 CPUs), unschedulable and runtimeHandlers
        (names, or entries of Node.status.runtimeHandlers). Raises ControlPlaneError when one is not Ready after `wait` seconds.
        """
        self._cluster.create([node_object(entry, annotations=_MANAGED) for entry in nodes])
        names = {entry["name"] for entry in nodes}
        if not wait_until(lambda: names <= ready_nodes(self._cluster), wait, 0.2):
            late = sorted(names - ready_nodes(self._cluster))
            raise ControlPlaneError(f"not Ready after {wait:g} s: {', '.join(late)}\n{self._cluster.log('kwok')[-2000:]}")

    def remove_nodes(self, names: t.Iterable[str]) -> None:
        """Delete Nodes."""
        for name in names:
            self._cluster.request("DELETE", f"/api/v1/nodes/{name}")


def node_object(entry: t.Mapping[str, t.Any], annotations: t.Mapping[str, str] | None = None) -> dict[str, t.Any]:
    """The Node of an entry of add_nodes()."""
    unknown = set(entry) - {"name", "labels", "taints", "allocatable", "runtimeHandlers", "unschedulable"}
    if unknown:
        raise ControlPlaneError(f"a node of the test bed has no {', '.join(sorted(unknown))}")
    name, room = entry["name"], {**_ALLOCATABLE, **entry.get("allocatable", {})}
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **entry.get("labels", {})}
    status: dict[str, t.Any] = {
        "allocatable": room,
        "capacity": room,
        "addresses": [{"type": "Hostname", "address": name}],
        "nodeInfo": {**dict.fromkeys(_UNKNOWN, ""), "operatingSystem": "linux", "architecture": "amd64", "containerRuntimeVersion": "containerd://2.1.9"},
    }
    if "runtimeHandlers" in entry:
        handlers = entry["runtimeHandlers"]
        status["runtimeHandlers"] = [{"name": handler} if isinstance(handler, str) else handler for handler in handlers]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": dict(annotations or {})},
        "spec": {"taints": list(entry.get("taints", [])), "unschedulable": bool(entry.get("unschedulable"))},
        "status": status,
    }


def ready_nodes(cluster: ControlPlane) -> set[str]:
    """Names of the Nodes that are Ready and have no life-cycle taint of not being so."""
    return {node["metadata"]["name"] for node in cluster.request("GET", "/api/v1/nodes")["items"] if is_ready(node)}


def is_ready(node: t.Mapping[str, t.Any]) -> bool:
    """Whether a Node says it is Ready, and the node controller has drawn its conclusion from that."""
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in node["status"].get("conditions", []))
    keys = {taint["key"] for taint in node["spec"].get("taints", [])}
    return ready and not keys & {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}


__all__ = ("Kwok", "is_ready", "node_object", "ready_nodes")
