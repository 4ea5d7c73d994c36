# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which runtime is chosen, and when none is."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import commands, discovery, kubelet
from ansible_collections.kubenode.runtime_gate.tests.unit.fake_node import FakeProc, write_tree
from ansible_collections.kubenode.runtime_gate.tests.unit.node_tables import FakeServer, sends

_DEFAULT = "/run/containerd/containerd.sock"


def _kubelet(endpoint: t.Optional[str], source: str = "flag") -> kubelet.Kubelet:
    return kubelet.Kubelet(5, ["kubelet"], None, endpoint, source, None, None, None, None)


# arguments, files -> engine, configuration, socket
FOUND: t.List[t.Tuple[t.List[str], t.Optional[str], t.Dict[str, t.Any], t.Optional[t.Tuple[str, str, str]]]] = [
    (["/usr/bin/containerd"], None, {}, ("containerd", "/etc/containerd/config.toml", _DEFAULT)),
    (["containerd", "-c", "/x.toml", "-a", "/x.sock"], "/var/lib/rancher/k3s/data/abc/bin/k3s", {}, ("containerd", "/x.toml", "/x.sock")),
    (["containerd", "--config=rel.toml"], None, {}, ("containerd", "/w/rel.toml", _DEFAULT)),
    (
        ["containerd", "-c", "/x.toml"], None, {"/x.toml": '# [grpc]\n[grpc]\n  uid = 0\n  address = "/g.sock"\n[ttrpc]\naddress = "/t"\n'},
        ("containerd", "/x.toml", "/g.sock"),
    ),
    (["containerd", "-c", "/x.toml"], None, {"/x.toml": '[grpc]\n[ttrpc]\naddress = "/t"\n'}, ("containerd", "/x.toml", _DEFAULT)),
    (["/usr/bin/crio", "--listen=unix:///c.sock"], None, {}, ("crio", "/etc/crio/crio.conf", "/c.sock")),
    (["docker-containerd"], None, {}, ("containerd", "/etc/containerd/config.toml", _DEFAULT)),
    (["/usr/bin/containerd", "config", "dump"], None, {}, None),
    (["containerd", "--version"], None, {}, None),
    (["/usr/bin/containerd-shim-runc-v2", "-address", "/x"], None, {}, None),
    (["dockerd"], None, {}, None),
]  # fmt: skip


@pytest.mark.parametrize("argv, exe, files, expected", FOUND)
def test_found(
    tmp_path: pathlib.Path, argv: t.List[str], exe: t.Optional[str], files: t.Dict[str, t.Any], expected: t.Optional[t.Tuple[str, str, str]]
) -> None:
    proc = FakeProc(tmp_path / "proc")
    proc.add(7, argv, exe=exe, cwd="/w")
    write_tree(tmp_path / "root", files)
    found = discovery.runtimes(proc.processes(), str(tmp_path / "root"))
    assert [(one.engine, one.config_path, one.socket) for one in found] == ([expected] if expected else [])


class _Node:
    """Some runtimes on sockets, one of which this process listens on."""

    def __init__(self, directory: pathlib.Path, server: FakeServer) -> None:
        self.proc = FakeProc(directory / "proc")
        self.server = server

    def add(self, pid: int, socket: str, engine: str = "containerd") -> None:
        option = "-a" if engine == "containerd" else "--listen"
        self.proc.add(pid, [engine, option, socket, "-c", "/%d.toml" % pid], exe="/usr/bin/" + engine)

    def choose(
        self, kubelets: t.Sequence[kubelet.Kubelet] = (), wanted: t.Optional[str] = None, config: t.Optional[str] = None
    ) -> discovery.Choice:
        return discovery.choose("containerd", discovery.runtimes(self.proc.processes()), kubelets, wanted, config, 1.0)


@pytest.fixture(name="node")
def _node(tmp_path: pathlib.Path) -> t.Iterator[_Node]:
    with FakeServer(*[sends(b"")] * 4) as server:
        yield _Node(tmp_path, server)


def _pid(choice: discovery.Choice) -> t.Optional[int]:
    return choice.runtime.process.pid if choice.runtime and choice.runtime.process else None


def test_the_owner_of_the_kubelets_socket(node: _Node) -> None:
    node.add(11, _DEFAULT)
    node.add(os.getpid(), "/elsewhere.sock")
    choice = node.choose([_kubelet("unix://" + node.server.path)])
    assert (_pid(choice), choice.serves_kubelet, choice.reason) == (os.getpid(), True, None)
    assert choice.runtime and choice.runtime.socket == node.server.path


def test_the_word_of_a_runtime_whose_socket_is_dead(node: _Node, tmp_path: pathlib.Path) -> None:
    (tmp_path / "link.sock").symlink_to(tmp_path / "real.sock")
    node.add(11, str(tmp_path / "real.sock"))
    node.add(12, "/other.sock")
    choice = node.choose([_kubelet("unix://%s/link.sock" % tmp_path)])
    assert (_pid(choice), choice.serves_kubelet) == (11, True)


def test_the_kubelet_uses_another_engine(node: _Node) -> None:
    node.add(11, _DEFAULT)
    node.add(os.getpid(), "/x.sock", engine="crio")
    choice = node.choose([_kubelet("unix://" + node.server.path)])
    assert (_pid(choice), choice.serves_kubelet) == (11, False)
    node.add(12, "/third.sock")
    choice = node.choose([_kubelet("unix://" + node.server.path)])
    assert (_pid(choice), choice.undecided) == (None, [_DEFAULT, "/third.sock"])


def test_only_another_engine(node: _Node) -> None:
    node.add(os.getpid(), "/x.sock", engine="crio")
    choice = node.choose([_kubelet("unix://" + node.server.path)])
    assert (_pid(choice), choice.undecided) == (None, [node.server.path])
    assert choice.reason and "which is no containerd" in choice.reason


def test_something_between_kubelet_and_containerd(node: _Node) -> None:
    node.add(11, _DEFAULT)
    choice = node.choose([_kubelet("unix://" + node.server.path)])
    assert (_pid(choice), choice.serves_kubelet) == (11, False)


def test_two_kubelets(node: _Node) -> None:
    node.add(11, _DEFAULT)
    choice = node.choose([_kubelet("unix:///b.sock"), _kubelet("unix:///a.sock")])
    assert (_pid(choice), choice.undecided, choice.reason) == (None, ["/a.sock", "/b.sock"], "2 kubelets run on this node")


def test_nobody_listens_on_the_kubelets_socket(node: _Node) -> None:
    node.add(11, _DEFAULT)
    choice = node.choose([_kubelet("unix:///none.sock")])
    assert (_pid(choice), choice.undecided, choice.reason) == (None, [], "nobody listens on /none.sock")


def test_no_endpoint(node: _Node) -> None:
    assert node.choose().reason == "no containerd runs on this node"
    node.add(11, "/a.sock")
    assert (_pid(node.choose()), node.choose().serves_kubelet) == (11, None)
    assert _pid(node.choose([_kubelet(None)])) == 11
    node.add(12, "/b.sock")
    assert (_pid(node.choose()), node.choose().undecided) == (None, ["/a.sock", "/b.sock"])
    assert _pid(node.choose(config="/12.toml")) == 12


def test_the_kubelets_default_endpoint(node: _Node) -> None:
    node.add(os.getpid(), "/x.sock")
    node.add(12, "/b.sock")
    choice = node.choose([_kubelet("unix://" + node.server.path, "default")])
    assert (_pid(choice), choice.serves_kubelet) == (os.getpid(), True)
    choice = node.choose([_kubelet("unix:///nobody.sock", "default")])
    assert (_pid(choice), choice.undecided) == (None, ["/b.sock", "/x.sock"])


def test_a_socket_that_the_user_named(node: _Node) -> None:
    node.add(os.getpid(), "/x.sock")
    for kubelets, serves in (
        ([], None),
        ([_kubelet("unix:///other.sock")], False),
        ([_kubelet("unix://" + node.server.path)], True),
    ):
        choice = node.choose(kubelets, wanted=node.server.path)
        assert (_pid(choice), choice.serves_kubelet) == (os.getpid(), serves)


def test_nothing_at_all(node: _Node) -> None:
    assert node.choose([_kubelet("unix:///none.sock", "default")]).reason == "nobody listens on /none.sock"


# ---- what is installed

INSTALLED = [
    ("/run/k3s/containerd/containerd.sock", 0, "/var/lib/rancher/rke2/agent/etc/containerd/config.toml"),
    ("/run/k0s/containerd.sock", 2, "/etc/k0s/containerd.toml"),
    (_DEFAULT, None, "/etc/containerd/config.toml"),
]


@pytest.mark.parametrize("endpoint, row, config", INSTALLED)
def test_installed(monkeypatch: pytest.MonkeyPatch, endpoint: str, row: t.Optional[int], config: str) -> None:
    there = set(discovery._INSTALLED[row][1:]) if row is not None else set()
    monkeypatch.setattr(discovery.os.path, "exists", lambda path: path in there)
    monkeypatch.setattr(discovery.os, "access", lambda path, _mode: path in there)
    monkeypatch.setattr(discovery.shutil, "which", lambda *_a, **_k: "/usr/bin/containerd")
    found = discovery.installed("containerd", None, endpoint)
    assert found and (found.config_path, found.socket, found.process) == (config, endpoint, None)
    assert found.exe == (discovery._INSTALLED[row][1] if row is not None else "/usr/bin/containerd")
    named = discovery.installed("containerd", "/opt/containerd", None)
    assert named and (named.exe, named.socket) == ("/opt/containerd", _DEFAULT)


def test_nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery.shutil, "which", lambda *_a, **_k: None)
    assert discovery.installed("containerd", None, None) is None


# ---- the unit

def _systemctl(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = tmp_path / "systemctl"
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    monkeypatch.setattr(discovery.shutil, "which", lambda _name: str(program))
    monkeypatch.setattr(discovery.os.path, "isdir", lambda _path: True)


def test_unit(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _systemctl(tmp_path, monkeypatch, 'echo "Id=$6"; echo LoadState=loaded')
    unit = discovery.unit("containerd.service", 5)
    assert unit and (unit["name"], unit["exec_start"], unit["fragment"]) == ("containerd.service", None, None)


def test_systemctl_fails(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _systemctl(tmp_path, monkeypatch, "echo no bus >&2; exit 1")
    with pytest.raises(commands.CommandFailed, match="systemctl show x.service ended with 1: no bus"):
        discovery.unit("x.service", 5)


def test_no_systemd(monkeypatch: pytest.MonkeyPatch) -> None:
    assert discovery.unit(None, 5) is None
    monkeypatch.setattr(discovery.shutil, "which", lambda _name: None)
    assert discovery.unit("x.service", 5) is None


# ---- the distribution

DISTRIBUTIONS = [
    ("/var/lib/rancher/rke2/agent/etc/containerd/config.toml", None, {}, "rke2"),
    ("/var/lib/rancher/k3s/agent/etc/containerd/config.toml", None, {}, "k3s"),
    ("/x", "k3s-agent.service", {}, "k3s"),
    ("/etc/k0s/containerd.toml", None, {}, "k0s"),
    ("/x", "k0sworker.service", {}, "k0s"),
    ("/var/snap/microk8s/current/args/containerd.toml", None, {}, "microk8s"),
    ("/run/docker/containerd/containerd.toml", None, {}, "docker"),
    ("/etc/containerd/config.toml", None, {"/usr/share/flatcar/release": ""}, "flatcar"),
    ("/etc/containerd/config.toml", None, {"/etc/eks": None}, "eks"),
    ("/etc/containerd/config.toml", None, {"/opt/azure/containers": None}, "aks"),
    ("/etc/containerd/config.toml", None, {"/home/kubernetes/kube-env": ""}, "gke"),
    ("/etc/containerd/config.toml", None, {"/var/lib/kubelet/kubeadm-flags.env": ""}, "kubeadm"),
    ("/etc/containerd/config.toml", "containerd.service", {}, None),
]  # type: t.List[t.Tuple[str, t.Optional[str], t.Dict[str, t.Any], t.Optional[str]]]


@pytest.mark.parametrize("config, unit, files, expected", DISTRIBUTIONS)
def test_distribution(
    tmp_path: pathlib.Path, config: str, unit: t.Optional[str], files: t.Dict[str, t.Any], expected: t.Optional[str]
) -> None:
    write_tree(tmp_path, files)
    runtime = discovery.Runtime("containerd", None, None, config, _DEFAULT)
    assert discovery.distribution(runtime, unit, _kubelet("unix://" + _DEFAULT), str(tmp_path)) == expected
    assert discovery.distribution(None, None, None, str(tmp_path / "empty")) is None
