# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A made-up cluster in the shape of a real one: what `kubectl get -o json` and the API server give for it.

The sizes are those of live objects: a Node some 5 KB, most of it images and conditions, a pod of two containers some 4 KB. Of all pairs
of node and class some 39 % are notable, as in a fleet that really needs the report; no two nodes have the same host name or addresses,
and they fall into 20 pools.
"""

from __future__ import annotations

import typing as t

POOLS = 20
NAMESPACES = 200
# The classes by what they ask for, of 100: one pool each, every node with a handler that all have, every node with one that none has.
_POOLED, _EVERYWHERE = 45, 16
# Pools with a taint that no class tolerates.
_TAINTED = 2

Object = t.Dict[str, t.Any]


def runtime_classes(count: int) -> list[Object]:
    """RuntimeClasses that ask for a pool's own handler, for one that every node has, or for one that none has."""
    return [_runtime_class(index, count) for index in range(count)]


def nodes(count: int) -> list[Object]:
    """Nodes with the handlers of their pool in status.runtimeHandlers."""
    return [_node(index) for index in range(count)]


def pods(count: int, over: int) -> t.Iterator[Object]:
    """Running pods, spread over so many nodes; one in fifty names a RuntimeClass of its node's pool."""
    return (_pod(index, index % over) for index in range(count))


def _runtime_class(index: int, count: int) -> Object:
    share = index * 100 // count
    if share < _POOLED:
        handler, selector = f"own-{index % POOLS}", {"example.com/pool": f"pool-{index % POOLS}"}
    elif share < _POOLED + _EVERYWHERE:
        handler, selector = "runc", {}
    else:
        handler, selector = f"absent-{index}", {"kubernetes.io/os": "linux"}
    made: Object = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": f"class-{index:03}"}, "handler": handler}
    return {**made, "scheduling": {"nodeSelector": selector}} if selector else made


def _node(index: int) -> Object:
    name, pool, stamp = f"worker-{index:05}", index % POOLS, "2026-01-01T00:00:00Z"
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "example.com/pool": f"pool-{pool}",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "m5.4xlarge",
        "topology.kubernetes.io/region": "eu-central-1",
        "topology.kubernetes.io/zone": f"eu-central-1{'abc'[index % 3]}",
    }
    room = {"cpu": "15890m", "ephemeral-storage": "95551679124", "hugepages-2Mi": "0", "memory": "60988952Ki", "pods": "110"}
    conditions = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "annotations": {"node.alpha.kubernetes.io/ttl": "0", "volumes.kubernetes.io/controller-managed-attach-detach": "true"},
            "creationTimestamp": stamp,
            "labels": labels,
            "name": name,
            "resourceVersion": str(100000 + index),
            "uid": _uid(index),
        },
        "spec": {
            "podCIDR": f"10.{index // 256 % 256}.{index % 256}.0/24",
            "providerID": f"aws:///eu-central-1a/i-{index:017x}",
            **({"taints": [{"key": "example.com/dedicated", "value": f"pool-{pool}", "effect": "NoSchedule"}]} if pool < _TAINTED else {}),
        },
        "status": {
            "addresses": [{"address": f"172.16.{index // 256}.{index % 256}", "type": "InternalIP"}, {"address": name, "type": "Hostname"}],
            "allocatable": room,
            "capacity": room,
            "conditions": [
                {
                    "lastHeartbeatTime": stamp,
                    "lastTransitionTime": stamp,
                    "message": "kubelet says so",
                    "reason": f"Kubelet{kind}",
                    "status": str(kind == "Ready"),
                    "type": kind,
                }
                for kind in conditions
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": [
                {"names": [f"registry.example.com/team/image-{i}@sha256:{i:064x}", f"registry.example.com/team/image-{i}:v1.{i}.0"], "sizeBytes": 10**7 * i}
                for i in range(20)
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": _uid(index + 10**7),
                "containerRuntimeVersion": "containerd://2.1.4",
                "kernelVersion": "6.1.0",
                "kubeProxyVersion": "v1.34.1",
                "kubeletVersion": "v1.34.1",
                "machineID": f"{index:032x}",
                "operatingSystem": "linux",
                "osImage": "Debian GNU/Linux 12",
                "systemUUID": _uid(index + 2 * 10**7),
            },
            "runtimeHandlers": [{"features": {"recursiveReadOnlyMounts": True, "userNamespaces": True}, "name": each} for each in ("", "runc", f"own-{pool}")],
        },
    }


def _pod(index: int, node: int) -> Object:
    name, stamp = f"app-{index // 10:05}-7d4b9c6f8-{index:06}", "2026-01-01T00:00:00Z"
    spec: Object = {
        "containers": [_container("app", index), _container("sidecar", index)],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "nodeName": f"worker-{node:05}",
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {"fsGroup": 1000, "runAsNonRoot": True},
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {"effect": "NoExecute", "key": f"node.kubernetes.io/{key}", "operator": "Exists", "tolerationSeconds": 300} for key in ("not-ready", "unreachable")
        ],
        "volumes": [{"name": "token", "projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}]}}],
    }
    if index % 50 == 0:
        spec["runtimeClassName"] = f"class-{node % POOLS:03}"
    conditions = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "annotations": {"checksum/config": f"{index:064x}"},
            "creationTimestamp": stamp,
            "generateName": f"app-{index // 10:05}-7d4b9c6f8-",
            "labels": {"app.kubernetes.io/name": f"app-{index // 10:05}", "pod-template-hash": "7d4b9c6f8"},
            "name": name,
            "namespace": f"team-{index % NAMESPACES:03}",
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "blockOwnerDeletion": True,
                    "controller": True,
                    "kind": "ReplicaSet",
                    "name": f"app-{index // 10:05}-7d4b9c6f8",
                    "uid": _uid(index // 10),
                }
            ],
            "resourceVersion": str(10**6 + index),
            "uid": _uid(index + 3 * 10**7),
        },
        "spec": spec,
        "status": {
            "conditions": [{"lastProbeTime": None, "lastTransitionTime": stamp, "status": "True", "type": kind} for kind in conditions],
            "containerStatuses": [
                {
                    "allocatedResources": _requests(index),
                    "containerID": f"containerd://{index:064x}",
                    "image": f"registry.example.com/team/{each}:v1",
                    "imageID": f"registry.example.com/team/{each}@sha256:{7:064x}",
                    "lastState": {},
                    "name": each,
                    "ready": True,
                    "resources": {"limits": {"memory": _requests(index)["memory"]}, "requests": _requests(index)},
                    "restartCount": 0,
                    "started": True,
                    "state": {"running": {"startedAt": stamp}},
                }
                for each in ("app", "sidecar")
            ],
            "hostIP": "172.16.0.1",
            "phase": "Running",
            "podIP": f"10.{index // 65536}.{index // 256 % 256}.{index % 256}",
            "podIPs": [{"ip": f"10.{index // 65536}.{index // 256 % 256}.{index % 256}"}],
            "qosClass": "Burstable",
            "startTime": stamp,
        },
    }


def _container(name: str, index: int) -> Object:
    return {
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {"name": "LOG_LEVEL", "value": "info"},
        ],
        "image": f"registry.example.com/team/{name}:v1",
        "imagePullPolicy": "IfNotPresent",
        "livenessProbe": {"failureThreshold": 3, "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1},
        "name": name,
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "resources": {"limits": {"memory": _requests(index)["memory"]}, "requests": _requests(index)},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [{"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "token", "readOnly": True}],
    }


def _requests(index: int) -> dict[str, str]:
    return {"cpu": ("100m", "250m", "500m", "1")[index % 4], "memory": ("128Mi", "256Mi", "1Gi")[index % 3]}


def _uid(index: int) -> str:
    return f"{index:08x}-0000-4000-8000-{index:012x}"
