# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The test bed itself: users and their rights, addresses, kwok's nodes, and that nothing of it is left behind."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import sys
import time
import typing as t
import urllib.error

import pytest

from tests.cluster.control_plane import ControlPlane, ControlPlaneError
from tests.cluster.kwok import Kwok, ready_nodes
from tests.cluster.pods import pod, pod_events, runtime_class
from tests.cluster.real_node import RealNode
from tests.cluster.waiting import wait_until
from tests.testbed.tools import TOOLS

ROOT = pathlib.Path(__file__).resolve().parents[2]
OTHER_ADDRESS = "127.0.0.2"  # not the usual one, and on every Linux machine


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[ControlPlane]:
    directory = tmp_path_factory.mktemp("plane")
    with ControlPlane(directory, programs=("scheduler", "controller-manager"), bind_address=OTHER_ADDRESS) as made:
        yield made


def test_the_version_is_the_pinned_one(cluster: ControlPlane) -> None:
    told = json.loads(cluster.kubectl("version", "-o", "json").stdout)
    pinned = TOOLS["kube-apiserver"].version()
    if not os.environ.get("RUNTIME_GATE_TOOLS"):
        assert told["serverVersion"]["gitVersion"].rpartition(".")[0] == pinned.rpartition(".")[0]
    assert told["serverVersion"]["minor"] == told["clientVersion"]["minor"]


def test_it_listens_where_it_is_told_and_its_certificate_names_loopback_too(cluster: ControlPlane) -> None:
    assert cluster.url.startswith(f"https://{OTHER_ADDRESS}:")
    assert json.loads(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]["server"] == cluster.url
    port = int(cluster.url.rpartition(":")[2])
    context = ssl.create_default_context(cafile=cluster.ca_file)
    for name in (OTHER_ADDRESS, "127.0.0.1", "localhost"):
        with socket.create_connection((OTHER_ADDRESS, port), 5) as raw, context.wrap_socket(raw, server_hostname=name):
            pass
    with pytest.raises(ssl.SSLCertVerificationError), socket.create_connection((OTHER_ADDRESS, port), 5) as raw:
        context.wrap_socket(raw, server_hostname="127.0.0.3")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)


def test_a_user_may_what_rbac_says_and_no_more(cluster: ControlPlane) -> None:
    user = ["--kubeconfig", str(cluster.user_kubeconfig("ann", ("readers",)))]
    who = json.loads(cluster.kubectl(*user, "auth", "whoami", "-o", "json").stdout)["status"]["userInfo"]
    assert who["username"] == "ann" and "readers" in who["groups"]
    with pytest.raises(ControlPlaneError, match='User "ann" cannot list resource "nodes"'):
        cluster.kubectl(*user, "get", "nodes")
    cluster.kubectl("create", "clusterrole", "node-reader", "--verb=list", "--resource=nodes")
    cluster.kubectl("create", "clusterrolebinding", "node-reader", "--clusterrole=node-reader", "--group=readers")
    assert wait_until(lambda: cluster.kubectl(*user, "get", "nodes", check=False).returncode == 0, 30, 0.5)
    refused = cluster.kubectl(*user, "delete", "node", "any", check=False)
    assert refused.returncode and "forbidden" in refused.stderr


def test_apply_is_server_side_and_says_the_servers_words(cluster: ControlPlane) -> None:
    cluster.apply([runtime_class("gvisor", "runsc"), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-rt"}}])
    managers = cluster.request("GET", "/apis/node.k8s.io/v1/runtimeclasses/gvisor")["metadata"]["managedFields"]
    assert [(entry["manager"], entry["operation"]) for entry in managers] == [("testbed", "Apply")]
    with pytest.raises(ControlPlaneError, match="field is immutable"):
        cluster.apply([runtime_class("gvisor", "kata")])


def test_many_nodes(cluster: ControlPlane) -> None:
    """kwok's nodes are Ready with what they were given, and pods that are bound to them run; a taint keeps pods away."""
    with Kwok(cluster) as kwok:
        taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
        kwok.add_nodes([{"name": f"fake-{index}", "labels": {"pool": "gpu"}, "runtimeHandlers": ["", "runsc"]} for index in range(20)])
        kwok.add_nodes([{"name": "tainted", "labels": {"pool": "tainted"}, "taints": [taint], "allocatable": {"cpu": "1"}}])
        assert ready_nodes(cluster) == {f"fake-{index}" for index in range(20)} | {"tainted"}
        node = cluster.request("GET", "/api/v1/nodes/fake-3")
        assert node["status"]["runtimeHandlers"] == [{"name": ""}, {"name": "runsc"}]
        assert cluster.request("GET", "/api/v1/nodes/tainted")["status"]["allocatable"]["cpu"] == "1"
        cluster.create([pod("goes", nodeSelector={"pool": "gpu"}), pod("stays", nodeSelector={"pool": "tainted"})])

        def phase(name: str) -> str:
            return t.cast(str, cluster.request("GET", f"/api/v1/namespaces/default/pods/{name}")["status"]["phase"])

        assert wait_until(lambda: phase("goes") == "Running", 30)
        assert wait_until(lambda: any("untolerated taint" in message for _reason, message in pod_events(cluster, "stays")), 30)
        assert phase("stays") == "Pending"
        for name in ("goes", "stays"):
            cluster.request("DELETE", f"/api/v1/namespaces/default/pods/{name}")
        assert wait_until(lambda: not cluster.request("GET", "/api/v1/namespaces/default/pods")["items"], 30)
        kwok.remove_nodes([f"fake-{index}" for index in range(20)] + ["tainted"])
        assert ready_nodes(cluster) == set()


def test_an_unknown_program_is_one_clear_error() -> None:
    with pytest.raises(ControlPlaneError, match="no such program of a control plane: kube-proxy .known: scheduler, controller-manager"):
        ControlPlane(programs=("kube-proxy",))


@pytest.mark.full
def test_a_program_that_ends_at_once_says_why(tmp_path: pathlib.Path) -> None:
    started = time.monotonic()
    words = "(?s)kube-apiserver is not ready.*unknown flag: --no-such-flag"
    with pytest.raises(ControlPlaneError, match=words), ControlPlane(tmp_path, arguments=["--no-such-flag"]):
        pass
    assert time.monotonic() - started < 60
    assert processes_of(tmp_path) == []


def processes_of(directory: pathlib.Path) -> list[str]:
    """Command lines that name a directory, this process apart."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(directory) in line and int(entry.parent.name) != os.getpid():
            found.append(line)
    return found


_OVERRIDE = "--hostname-override="


def kubelets() -> set[str]:
    """Host name overrides of all kubelets that run."""
    return {word.partition("=")[2] for line in processes_of(pathlib.Path(_OVERRIDE)) for word in line.split() if word.startswith(_OVERRIDE)}


def groups_of(containers: t.Iterable[str]) -> list[pathlib.Path]:
    """The control groups of these containers, in every hierarchy."""
    return [path for identifier in containers for path in pathlib.Path("/sys/fs/cgroup").glob(f"*/*/{identifier}")]


def mounts() -> set[str]:
    return set(pathlib.Path("/proc/self/mounts").read_text().splitlines())


def test_nothing_is_left(tmp_path: pathlib.Path) -> None:
    """No process, no control group, no mount, while a pod was running."""
    before = mounts()
    with ControlPlane(tmp_path / "plane") as plane, RealNode(tmp_path / "node", plane, name="left-nothing", line="2.1") as node:
        node.wait_ready()
        plane.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        plane.create([pod("runs", node=node.name)])
        assert wait_until(lambda: len(node.containers()) == 2, 60, 0.5), pod_events(plane, "runs")
        assert kubelets() >= {node.name}
        containers = node.containers()
        assert groups_of(containers)
        assert processes_of(tmp_path)
    assert wait_until(lambda: not processes_of(tmp_path) and node.name not in kubelets(), 10)
    assert groups_of(containers) == []
    # Other tests may mount something meanwhile.
    words = (str(tmp_path), "kubelet", "containerd", node.name)
    assert [line for line in mounts() - before if any(word in line for word in words)] == []


KILLED = """
import pathlib, sys, time
from tests.cluster.control_plane import ControlPlane
from tests.cluster.real_node import RealNode
home = pathlib.Path(sys.argv[1])
with ControlPlane(home / "plane") as plane, RealNode(home / "node", plane, name="was-killed", line="2.1"):
    print("up", flush=True)
    time.sleep(600)
"""


@pytest.mark.full
def test_a_test_that_is_killed_leaves_no_process(tmp_path: pathlib.Path) -> None:
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout and killed.stdout.readline() == "up\n"
        assert kubelets() >= {"was-killed"}
        killed.send_signal(signal.SIGKILL)
    assert wait_until(lambda: not processes_of(tmp_path) and "was-killed" not in kubelets(), 15), processes_of(tmp_path)


def test_a_node_may_not_touch_another(cluster: ControlPlane, tmp_path: pathlib.Path) -> None:
    """The node authorizer is on: what a kubelet's certificate may do is what a real cluster lets it do."""
    user = ["--kubeconfig", str(cluster.user_kubeconfig("system:node:one", ("system:nodes",)))]
    refused = cluster.kubectl(*user, "label", "node", "two", "a=b", check=False)
    assert refused.returncode
    assert cluster.kubectl(*user, "auth", "can-i", "create", "nodes", check=False).stdout.strip() == "yes"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        cluster.request("GET", "/api/v1/nodes/two")
