# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a kubelet of each distribution says which socket it uses, and who it is."""

from __future__ import annotations

import base64
import pathlib
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import kubelet
from ansible_collections.kubenode.runtime_gate.tests.unit.fake_node import FakeProc, write_tree

_K3S = "unix:///run/k3s/containerd/containerd.sock"

# name -> (arguments, environment, files, endpoint, source)
RUNNING: t.Dict[str, t.Tuple[t.List[str], t.Dict[str, str], t.Dict[str, t.Any], t.Optional[str], str]] = {
    "flag": (["kubelet", "--container-runtime-endpoint=unix:///f.sock"], {}, {}, "unix:///f.sock", "flag"),
    "bare path": (["/usr/bin/kubelet", "--container-runtime-endpoint", "/f.sock"], {}, {}, "unix:///f.sock", "flag"),
    "file": (
        ["kubelet", "--config=/k.yaml"], {}, {"/k.yaml": "containerRuntimeEndpoint: unix:///c.sock\n"}, "unix:///c.sock", "config",
    ),
    "flag over file": (
        ["kubelet", "--config=/k.yaml", "--container-runtime-endpoint=unix:///f.sock"], {},
        {"/k.yaml": "containerRuntimeEndpoint: unix:///c.sock\n"}, "unix:///f.sock", "flag",
    ),
    "drop-in over file": (
        ["kubelet", "--config=/k.yaml", "--config-dir=/k.d"], {},
        {"/k.yaml": "containerRuntimeEndpoint: unix:///c.sock\n", "/k.d/1.conf": "containerRuntimeEndpoint: unix:///d.sock\n",
         "/k.d/2.conf": "cgroupDriver: systemd\n", "/k.d/3.yaml": "containerRuntimeEndpoint: unix:///no.sock\n"},
        "unix:///d.sock", "config",
    ),
    "missing file and directory": (["kubelet", "--config=/k.yaml", "--config-dir=/k.d"], {}, {}, kubelet.DEFAULT_ENDPOINT, "default"),
    "environment": (["kubelet"], {"CONTAINER_RUNTIME_ENDPOINT": "unix:///e.sock"}, {}, "unix:///e.sock", "environment"),
    "default": (["kubelet"], {}, {}, kubelet.DEFAULT_ENDPOINT, "default"),
    "hyperkube": (["hyperkube", "kubelet", "--container-runtime-endpoint=unix:///f.sock"], {}, {}, "unix:///f.sock", "flag"),
    "k3s server": (["/usr/local/bin/k3s server"], {}, {}, _K3S, "distribution"),
    "k3s agent": (["/usr/local/bin/k3s", "agent", "--node-name", "w"], {}, {}, _K3S, "distribution"),
    "k3s-agent": (["k3s-agent"], {}, {}, _K3S, "distribution"),
    "k3s flag": (["k3s", "agent", "--container-runtime-endpoint", "/x.sock"], {}, {}, "unix:///x.sock", "flag"),
    "k3s file": (
        ["k3s", "agent"], {}, {"/etc/rancher/k3s/config.yaml": "container-runtime-endpoint: unix:///y.sock\n"},
        "unix:///y.sock", "flag",
    ),
    "k3s kubelet-arg": (
        ["k3s", "agent", "--kubelet-arg=container-runtime-endpoint=unix:///z.sock", "--kubelet-arg", "v=2"], {}, {},
        "unix:///z.sock", "flag",
    ),
    "k3s docker": (["k3s", "server", "--docker"], {}, {}, None, "distribution"),
    "microk8s": (
        ["/snap/microk8s/1/kubelite", "--kubelet-args-file=/var/snap/microk8s/1/args/kubelet"], {},
        {"/var/snap/microk8s/1/args/kubelet": "# c\n--container-runtime-endpoint=${SNAP_COMMON}/run/containerd.sock\n--x=$SNAP_DATA/$Y\n"},
        "unix:///var/snap/microk8s/common/run/containerd.sock", "flag",
    ),
    "microk8s without file": (["kubelite"], {}, {}, kubelet.DEFAULT_ENDPOINT, "default"),
}  # fmt: skip


@pytest.mark.parametrize("name", RUNNING)
def test_running(tmp_path: pathlib.Path, name: str) -> None:
    argv, environment, files, endpoint, source = RUNNING[name]
    proc = FakeProc(tmp_path / "proc")
    proc.add(5, argv, environment=environment)
    write_tree(tmp_path / "root", files)
    (found,) = kubelet.find(proc.processes(), str(tmp_path / "root"))
    assert (found.pid, found.endpoint, found.endpoint_source) == (5, endpoint, source)


@pytest.mark.parametrize("argv", [["k3s", "kubectl", "get"], ["k3s", "server", "--disable-agent"], ["sh", "kubelet"], ["etcd"]])
def test_no_kubelet(tmp_path: pathlib.Path, argv: t.List[str]) -> None:
    proc = FakeProc(tmp_path / "proc")
    proc.add(5, argv)
    assert kubelet.find(proc.processes(), str(tmp_path)) == []


# files of a kubelet that does not run -> endpoint, source
STOPPED: t.List[t.Tuple[t.Dict[str, t.Any], t.Optional[str], str]] = [
    (
        {"/var/lib/kubelet/kubeadm-flags.env": 'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///e.sock --v=2"\nX=y\n'},
        "unix:///e.sock", "environment",
    ),
    ({"/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--container-runtime-endpoint=unix:///d.sock\n"}, "unix:///d.sock", "environment"),
    ({"/var/lib/kubelet/config.yaml": "containerRuntimeEndpoint: unix:///c.sock\n"}, "unix:///c.sock", "config"),
    (
        {"/etc/sysconfig/kubelet": "KUBELET_EXTRA_ARGS='--config /k.yaml'", "/k.yaml": "containerRuntimeEndpoint: unix:///k.sock\n"},
        "unix:///k.sock", "config",
    ),
    ({"/var/lib/kubelet/config.yaml": "cgroupDriver: systemd\n"}, kubelet.DEFAULT_ENDPOINT, "default"),
]  # fmt: skip


@pytest.mark.parametrize("files, endpoint, source", STOPPED)
def test_stopped(tmp_path: pathlib.Path, files: t.Dict[str, t.Any], endpoint: str, source: str) -> None:
    write_tree(tmp_path, files)
    (found,) = kubelet.find([], str(tmp_path))
    assert (found.pid, found.argv, found.endpoint, found.endpoint_source) == (None, [], endpoint, source)


def test_two_kubelets(tmp_path: pathlib.Path) -> None:
    proc = FakeProc(tmp_path)
    proc.add(5, ["kubelet"])
    proc.add(6, ["kubelet"])
    assert [found.pid for found in kubelet.find(proc.processes(), str(tmp_path))] == [5, 6]


def test_who_it_is(tmp_path: pathlib.Path) -> None:
    certificate = b"\x30\x82binary\x0c\x1csystem:node:worker-1.example0Y0\x13"
    pem = b"-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n" % base64.encodebytes(certificate).strip()
    write_tree(
        tmp_path,
        {
            "/a.conf": "users:\n- name: system:node:worker-0\n  user: {}\n",
            "/b.conf": "  client-certificate-data: %s\n" % base64.b64encode(pem).decode(),
            "/c.conf": "  client-certificate: '/pki/c.pem'\n",
            "/pki/c.pem": pem,
            "/d.conf": "  client-certificate-data: AAA\n  client-certificate: /pki/broken.pem\n",
            "/f.conf": "  client-certificate: /pki/f.pem\n",
            "/pki/f.pem": b"-----BEGIN CERTIFICATE-----\n%s\n-----END" % base64.b64encode(b"\x13\x03system:node:x"),
            "/pki/broken.pem": "-----BEGIN CERTIFICATE-----\nA\n-----END",
        },
    )
    expected = {"/a.conf": "worker-0", "/b.conf": "worker-1.example", "/c.conf": "worker-1.example", "/d.conf": None, "/e.conf": None, "/f.conf": None}
    for path, name in expected.items():
        described = kubelet.describe(1, ["kubelet", "--kubeconfig", path, "--hostname-override=h"], {}, str(tmp_path))
        assert (described.node_name, described.kubeconfig, described.hostname_override) == (name, path, "h")


def test_cgroup_driver(tmp_path: pathlib.Path) -> None:
    write_tree(tmp_path, {"/k.yaml": "cgroupDriver: systemd\n"})
    for flags, driver in ((["--config=/k.yaml"], "systemd"), (["--config=/k.yaml", "--cgroup-driver=cgroupfs"], "cgroupfs"), ([], None)):
        assert kubelet.describe(1, ["kubelet"] + flags, {}, str(tmp_path)).cgroup_driver == driver


def test_k3s_node_name(tmp_path: pathlib.Path) -> None:
    write_tree(tmp_path / "root", {"/etc/rancher/k3s/config.yaml": "node-name: from-file\n"})
    for argv, name in ((["k3s", "agent"], "from-file"), (["k3s", "agent", "--node-name=flag"], "flag")):
        proc = FakeProc(tmp_path / name)
        proc.add(5, argv)
        assert kubelet.find(proc.processes(), str(tmp_path / "root"))[0].hostname_override == name
