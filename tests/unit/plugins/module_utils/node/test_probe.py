# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe: its messages, and what counts as a failure."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import cri, grpc_unary, probe
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.proof import Answer


class Runtime:
    """Answers CRI calls from memory. ``failures``: method -> errors that it gives first."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: t.List[t.Tuple[str, bytes]] = []
        self.failures: t.Dict[str, t.List[Exception]] = {}
        self.sandboxes: t.Dict[bytes, t.Dict[bytes, bytes]] = {}
        monkeypatch.setattr(grpc_unary, "call", self._call)

    def _call(self, _path: str, method: str, request: bytes, _timeout: float) -> bytes:
        service, name = method.rsplit("/", 1)
        assert service == "/runtime.v1.RuntimeService"
        self.calls.append((name, request))
        if self.failures.get(name):
            raise self.failures[name].pop(0)
        return getattr(self, name)(dict(cri.fields(request)))

    def RunPodSandbox(self, request: t.Dict[int, t.Any]) -> bytes:
        identifier = b"id-%d" % len(self.calls)
        config = cri.fields(request[1])
        entries = [dict(cri.fields(value)) for number, value in config if number == 6]  # type: ignore[arg-type]
        self.sandboxes[identifier] = {entry[1]: entry[2] for entry in entries}  # type: ignore[misc]
        return probe.field(1, identifier)

    def StopPodSandbox(self, request: t.Dict[int, t.Any]) -> bytes:
        return b""

    def RemovePodSandbox(self, request: t.Dict[int, t.Any]) -> bytes:
        del self.sandboxes[request[1]]
        return b""

    def ListPodSandbox(self, request: t.Dict[int, t.Any]) -> bytes:
        items = b""
        for identifier, labels in self.sandboxes.items():
            entries = b"".join(probe.field(5, probe.field(1, key) + probe.field(2, value)) for key, value in labels.items())
            items += probe.field(1, probe.field(1, identifier) + probe.varint_field(3, 0) + entries)
        return items + probe.varint_field(9, 300)

    @property
    def names(self) -> t.List[str]:
        return [name for name, _request in self.calls]


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Runtime:
    return Runtime(monkeypatch)


def _answer(conditions: t.Sequence[str] = (), **containerd: t.Any) -> Answer:
    return Answer("b/1/1", "served", [], "runc", list(conditions), "v1", "", {"config": {"containerd": containerd}})


def test_made_and_removed(runtime: Runtime) -> None:
    assert probe.probe("/s", _answer(), ["mine", "kata"]) == {"mine": None, "kata": None}
    assert runtime.names == ["RunPodSandbox", "StopPodSandbox", "RemovePodSandbox"] * 2
    assert runtime.sandboxes == {}


def test_the_daemons_own_words_after_a_second_try(runtime: Runtime) -> None:
    runtime.failures["RunPodSandbox"] = [grpc_unary.GrpcStatus(2, "no shim")] * 2
    assert probe.probe("/s", _answer(), ["mine"]) == {"mine": "rpc error: code = Unknown desc = no shim"}
    assert runtime.names == ["RunPodSandbox"] * 2


def test_a_network_that_cannot_be_made_is_no_fault_of_the_handler(runtime: Runtime) -> None:
    network = grpc_unary.GrpcStatus(2, 'failed to setup network for sandbox "x": no plugin')
    runtime.failures["RunPodSandbox"] = [network]
    assert probe.probe("/s", _answer(["NetworkReady"]), ["mine"]) == {"mine": None}
    options = [dict(cri.fields(dict(cri.fields(request))[1]))[8] for name, request in runtime.calls if name == "RunPodSandbox"]  # type: ignore[arg-type,index]
    assert options[0] != options[1]
    runtime.failures["RunPodSandbox"] = [network, grpc_unary.GrpcStatus(2, "no shim")]
    said = probe.probe("/s", _answer(["NetworkReady"]), ["mine"])["mine"]
    assert said and said.endswith("no plugin; and in the node's own network: rpc error: code = Unknown desc = no shim")
    runtime.failures["RunPodSandbox"] = [grpc_unary.GrpcStatus(2, "removed"), network]
    assert str(probe.probe("/s", _answer(["NetworkReady"]), ["mine"])["mine"]).count("no plugin") == 1


def test_the_kubelet_was_first(runtime: Runtime) -> None:
    gone = grpc_unary.GrpcStatus(5, "not found")
    runtime.failures = {"StopPodSandbox": [gone], "RemovePodSandbox": [gone]}
    assert probe.probe("/s", _answer(), ["mine"]) == {"mine": None}
    runtime.failures = {"StopPodSandbox": [grpc_unary.GrpcStatus(13, "x")], "RunPodSandbox": []}
    assert probe.probe("/s", _answer(), ["mine"]) == {"mine": None}


def test_no_answer(runtime: Runtime) -> None:
    runtime.failures["RunPodSandbox"] = [grpc_unary.NoAnswer("timeout", "no answer within 120 s")] * 2
    assert probe.probe("/s", _answer(), ["mine"]) == {"mine": "no answer within 120 s"}


def test_leftovers_by_label(runtime: Runtime) -> None:
    runtime.sandboxes = {
        b"a": {probe.LABEL.encode(): b"mine"},
        b"b": {b"app": b"theirs"},
        b"c": {b"app.kubernetes.io/managed-by": b"runtime-gate"},
    }
    assert probe.remove_leftovers("/s", "v1") == 1
    assert sorted(runtime.sandboxes) == [b"b", b"c"]


_SYSTEMD = {"options": {"SystemdCgroup": True}}


@pytest.mark.parametrize(
    ("containerd", "parent"),
    [
        ({}, "/runtime-gate"),
        ({"runtimes": {"mine": {"options": {"SystemdCgroup": True}}}}, "system.slice"),
        ({"runtimes": {"mine": {"options": {"SystemdCgroup": False}}, "runc": _SYSTEMD}, "defaultRuntimeName": "runc"}, "/runtime-gate"),
        ({"runtimes": {"mine": {"options": None}, "runc": _SYSTEMD}, "defaultRuntimeName": "runc"}, "system.slice"),
    ],
)
def test_the_parent_group(containerd: t.Dict[str, t.Any], parent: str) -> None:
    assert probe.cgroup_parent({"config": {"containerd": containerd}}, "mine") == parent


def test_the_request() -> None:
    for pod_network in (False, True):
        request = dict(cri.fields(probe.sandbox_request("mine", "uid" * 50, pod_network, "system.slice")))
        assert request[2] == b"mine"
        config = dict(cri.fields(request[1]))  # type: ignore[arg-type]
        metadata = dict(cri.fields(config[1]))  # type: ignore[arg-type]
        assert metadata[2] == b"uid" * 50 and metadata[3] == b"runtime-gate"
        linux = dict(cri.fields(config[8]))  # type: ignore[arg-type]
        assert linux[1] == b"system.slice"
        security = dict(cri.fields(linux[2]))  # type: ignore[arg-type]
        assert cri.fields(security[1]) == ([] if pod_network else [(1, 2)])  # type: ignore[arg-type]
        assert (2 in config) is pod_network
