# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods for tests, and what has become of them."""

from __future__ import annotations

import typing as t

from tests.cluster.control_plane import ControlPlane

IMAGE = "runtime-gate.example/pause:1"  # each real node has it; it sleeps


def pod(
    name: str,
    runtime_class: str | None = None,
    node: str | None = None,
    requests: t.Mapping[str, str] | None = None,
    namespace: str = "default",
    labels: t.Mapping[str, str] | None = None,
    **spec: t.Any,
) -> dict[str, t.Any]:
    """A pod that a real node of the test bed can run: of the host's network, with an image that is already there.

    node: bind it there past the scheduler. spec: further fields of PodSpec (nodeSelector, tolerations, overhead, …).
    """
    made: dict[str, t.Any] = {
        "hostNetwork": True,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {"name": "main", "image": IMAGE, "imagePullPolicy": "Never", "resources": {"requests": dict(requests or {})}},
        ],
        **spec,
    }
    if runtime_class is not None:
        made["runtimeClassName"] = runtime_class
    if node is not None:
        made["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {})}, "spec": made}


def runtime_class(name: str, handler: str, **more: t.Any) -> dict[str, t.Any]:
    """A RuntimeClass; more: scheduling, overhead."""
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": handler, **more}


def pod_events(cluster: ControlPlane, name: str, namespace: str = "default") -> list[tuple[str, str]]:
    """(reason, message) of each event of a pod, oldest first."""
    query = f"fieldSelector=involvedObject.name%3D{name}%2CinvolvedObject.kind%3DPod"
    events = cluster.request("GET", f"/api/v1/namespaces/{namespace}/events?{query}")["items"]
    events.sort(key=lambda event: event["metadata"]["creationTimestamp"])
    return [(event.get("reason", ""), event.get("message", "")) for event in events]


__all__ = ("IMAGE", "pod", "pod_events", "runtime_class")
