# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof by a pod sandbox: one of each handler is made and removed over CRI, as the kubelet would.

Messages: https://github.com/kubernetes/cri-api, pkg/apis/runtime/v1/api.proto; v1alpha2 has the same numbers for everything
used here. The kubelet may find a sandbox first and remove it as an orphan; that is no failure. What is left over from a run that
was ended is found by its label. Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import time
import typing as t
import uuid

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import cri, grpc_unary

if t.TYPE_CHECKING:
    # proof.py asks a sandbox of CRI-O, so that it needs this module when it runs.
    from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.proof import Answer

LABEL = "runtime-gate/probe"
_MANAGED_BY = ("app.kubernetes.io/managed-by", "runtime-gate")
_NAMESPACE = "runtime-gate"
_NODE_NETWORK = 2
_NOT_FOUND = 5
#: Pulling the pause image may take a while; everything else is quick.
_RUN_TIMEOUT = 120.0
_TIMEOUT = 20.0
_TRIES = 2
#: How the runtimes begin when a pod's network cannot be made, before they look at the handler.
_NETWORK = ("failed to setup network for sandbox", "failed to create pod network sandbox")

_Failures = (grpc_unary.GrpcStatus, grpc_unary.NoAnswer, cri.NotProtobuf)


def probe(socket: str, answer: Answer, handlers: t.Sequence[str]) -> t.Dict[str, t.Optional[str]]:
    """Handler -> None (a sandbox was ready) or the daemon's own words why not (not masked)."""
    return {handler: _probe_twice(socket, answer, handler) for handler in handlers}


def _probe_twice(socket: str, answer: Answer, handler: str) -> t.Optional[str]:
    """A second try where the kubelet may have removed the first sandbox while it was being made.

    A network that cannot be made is no fault of the handler: then the second try is in the node's own.
    """
    reason = network = ""
    pod_network = "NetworkReady" in answer.conditions
    for _number in range(_TRIES):
        try:
            _run_and_remove(socket, answer, handler, pod_network)
            return None
        except _Failures as error:
            reason = str(error)
            if pod_network and any(words in reason for words in _NETWORK):
                pod_network, network = False, reason
    return "%s; and in the node's own network: %s" % (network, reason) if network and network != reason else reason


def _run_and_remove(socket: str, answer: Answer, handler: str, pod_network: bool) -> None:
    service = "/runtime.%s.RuntimeService/" % answer.api_version
    request = sandbox_request(handler, uuid.uuid4().hex, pod_network, cgroup_parent(answer.info, handler))
    response = grpc_unary.call(socket, service + "RunPodSandbox", request, _RUN_TIMEOUT)
    for number, value in cri.fields(response):
        if number == 1 and isinstance(value, bytes):
            _remove(socket, service, value)


def _remove(socket: str, service: str, identifier: bytes) -> None:
    for method in ("StopPodSandbox", "RemovePodSandbox"):
        try:
            grpc_unary.call(socket, service + method, field(1, identifier), _TIMEOUT)
        except grpc_unary.GrpcStatus as error:
            if error.code != _NOT_FOUND:
                raise


def remove_leftovers(socket: str, api_version: str) -> int:
    """Remove the sandboxes of runs that were ended, and return their number.

    :raises grpc_unary.GrpcStatus, grpc_unary.NoAnswer, cri.NotProtobuf: as :func:`cri.ask`.
    """
    service = "/runtime.%s.RuntimeService/" % api_version
    wanted = field(1, field(3, _entry(*_MANAGED_BY)))
    removed = 0
    for number, item in cri.fields(grpc_unary.call(socket, service + "ListPodSandbox", wanted, _TIMEOUT)):
        if number != 1 or not isinstance(item, bytes):
            continue
        inner = cri.fields(item)
        labels = [dict(cri.fields(value)) for key, value in inner if key == 5 and isinstance(value, bytes)]
        if any(label.get(1) == LABEL.encode() for label in labels):
            identifiers = [value for key, value in inner if key == 1 and isinstance(value, bytes)]
            for identifier in identifiers:
                _remove(socket, service, identifier)
                removed += 1
    return removed


def cgroup_parent(info: t.Mapping[str, t.Any], handler: str) -> str:
    """A parent group in the spelling of the handler's cgroup driver: another one is refused by runc.

    The driver is that of the handler's options; of a handler without such an option, that of the default handler.
    """
    containerd = (info.get("config") or {}).get("containerd") or {}
    runtimes = containerd.get("runtimes") or {}
    for name in (handler, containerd.get("defaultRuntimeName")):
        options = (runtimes.get(name) or {}).get("options") or {}
        if "SystemdCgroup" in options:
            return "system.slice" if options["SystemdCgroup"] else "/runtime-gate"
    return "/runtime-gate"


def sandbox_request(handler: str, uid: str, pod_network: bool, parent: str) -> bytes:
    """A RunPodSandboxRequest. Its network is the node's own where the runtime has none to give."""
    name = "probe-%s-%d" % (handler, int(time.time()))
    metadata = field(1, name.encode()) + field(2, uid.encode()) + field(3, _NAMESPACE.encode())
    namespaces = b"" if pod_network else varint_field(1, _NODE_NETWORK)
    linux = field(1, parent.encode()) + field(2, field(1, namespaces))
    labels = field(6, _entry(LABEL, handler)) + field(6, _entry(*_MANAGED_BY))
    hostname = field(2, b"runtime-gate-probe") if pod_network else b""
    config = field(1, metadata) + hostname + labels + field(8, linux)
    return field(1, config) + field(2, handler.encode())


def _entry(key: str, value: str) -> bytes:
    return field(1, key.encode()) + field(2, value.encode())


def field(number: int, value: bytes) -> bytes:
    """A field of bytes, text or a message."""
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def varint_field(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
