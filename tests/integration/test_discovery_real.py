# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which containerd is judged on nodes with several, laid out as k3s, rke2, k0s, MicroK8s and Docker lay them out.

What this proves: with real daemons on real sockets, the collector picks the one that the kubelet uses (stand-ins for the kubelets:
only their /proc entries are real), reads its files and gives its handlers; and says which sockets there are where it cannot decide.
"""

from __future__ import annotations

import json
import shlex
import time
import typing as t

import pytest

from tests.testbed.host import SOCKET, ContainerdHost
from tests.testbed.product import _COLLECT, collect, collections_root, interpret
from tests.testbed.tools import tool

_K3S = "/run/k3s/containerd/containerd.sock"
_TEXT = """version = 2
root = "/var/lib/%(name)s-root"
state = "/run/%(name)s-state"
[grpc]
address = "%(socket)s"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.%(name)s]
runtime_type = "io.containerd.%(name)s.v2"
"""


@pytest.fixture(scope="module", name="made")
def _made() -> t.Iterator[ContainerdHost]:
    with ContainerdHost("2.1", name="n1") as host:
        yield host


@pytest.fixture(name="host")
def _host(made: ContainerdHost) -> t.Iterator[ContainerdHost]:
    made.reset()
    yield made
    made.run(["pkill", "-KILL", "containerd"])
    made.run(["pkill", "-KILL", "k3s-multi"])


def _daemon(host: ContainerdHost, name: str, socket: str, config: str, exe: str = "/usr/bin/containerd", prefix: str = "") -> None:
    """A real daemon that has a handler of its name, so that it is known by its answer."""
    host.write(config, _TEXT % {"name": name, "socket": socket})
    host.install(tool("containerd-2.1"), exe)
    command = "mkdir -p %s; (exec %s %s -c %s) >/dev/null 2>&1 &" % (shlex.quote(socket.rpartition("/")[0]), prefix or "", exe, config)
    assert host.run(["bash", "-c", command]).returncode == 0
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if host._ask("version", wait=1, socket=socket)["state"] == "served":
            return
        time.sleep(0.05)
    raise AssertionError("%s does not answer" % name)


def _judged(host: ContainerdHost, **options: t.Any) -> t.Tuple[t.Dict[str, t.Any], t.List[str]]:
    capture = collect(host, options)
    assert capture["node"]["problems"] == []
    return capture["node"], sorted(interpret(capture)["handlers"])


def test_k3s_beside_dockers_containerd(host: ContainerdHost) -> None:
    config = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"
    _daemon(host, "docker", SOCKET, "/etc/containerd/config.toml")
    # k3s is many programs in one file; only the name that it is called by tells which.
    _daemon(host, "mine", _K3S, config, exe="/var/lib/rancher/k3s/data/abc/bin/k3s-multi", prefix="-a containerd")
    host.stand_in("k3s", ["agent", "--node-name", "worker"], path="/usr/local/bin/k3s")
    node, handlers = _judged(host)
    assert handlers == ["mine", "runc"]
    assert (node["distribution"], node["config_path"], node["endpoint"]) == ("k3s", config, "unix://" + _K3S)
    assert (node["serves_kubelet"], node["name"], node["version"]) == (True, "worker", node["version"])
    assert len(node["runtimes"]) == 2 and node["version"].startswith("2.1")


@pytest.mark.parametrize(
    "name, program, socket, config, kubelet",
    [
        ("rke2", "/var/lib/rancher/rke2/bin/containerd", _K3S, "/var/lib/rancher/rke2/agent/etc/containerd/config.toml", "kubelet"),
        ("k0s", "/var/lib/k0s/bin/containerd", "/run/k0s/containerd.sock", "/etc/k0s/containerd.toml", "kubelet"),
        (
            "microk8s", "/snap/microk8s/current/bin/containerd", "/var/snap/microk8s/common/run/containerd.sock",
            "/var/snap/microk8s/current/args/containerd.toml", "kubelite",
        ),
    ],
)  # fmt: skip
def test_distributions(host: ContainerdHost, name: str, program: str, socket: str, config: str, kubelet: str) -> None:
    _daemon(host, "other", SOCKET, "/etc/containerd/config.toml")
    _daemon(host, "mine", socket, config, exe=program)
    host.write("/var/snap/microk8s/current/args/kubelet", "--container-runtime-endpoint=${SNAP_COMMON}/run/containerd.sock\n")
    flags = ["--kubelet-args-file=/var/snap/microk8s/current/args/kubelet"] if kubelet == "kubelite" else []
    host.stand_in(kubelet, flags or ["--container-runtime-endpoint=unix://" + socket])
    node, handlers = _judged(host)
    assert handlers == ["mine", "runc"]
    assert (node["distribution"], node["config_path"], node["serves_kubelet"]) == (name, config, True)


def test_two_containerds_and_no_kubelet(host: ContainerdHost) -> None:
    _daemon(host, "one", SOCKET, "/etc/containerd/config.toml")
    _daemon(host, "two", "/run/two/c.sock", "/etc/two/config.toml")
    capture = collect(host, {})
    node = capture["node"]
    assert node["undecided"] == [SOCKET, "/run/two/c.sock"] and "several runtimes" in node["undecided_reason"]
    facts = interpret(capture)
    assert (facts["cri_ready"], facts["evidence"], facts["handlers"]) == (None, "none", {})
    node, handlers = _judged(host, endpoint="/run/two/c.sock")
    assert handlers == ["runc", "two"] and "serves_kubelet" not in node


def test_two_kubelets(host: ContainerdHost) -> None:
    _daemon(host, "one", SOCKET, "/etc/containerd/config.toml")
    host.kubelet()
    host.kubelet("unix:///run/two/c.sock")
    node = collect(host, {})["node"]
    assert node["undecided"] == [SOCKET, "/run/two/c.sock"] and node["cri_state"] == "undetermined"


def test_a_containerd_of_a_foreign_pid_namespace_is_not_the_nodes(host: ContainerdHost) -> None:
    _daemon(host, "inner", "/run/inner/c.sock", "/etc/inner/config.toml", prefix="unshare --pid --fork --")
    node = collect(host, {})["node"]
    assert node["runtimes"] == [] and node["cri_state"] == "not_running"
    _daemon(host, "mine", SOCKET, "/etc/containerd/config.toml")
    node, handlers = _judged(host)
    assert handlers == ["mine", "runc"] and len(node["runtimes"]) == 1


def test_the_kubelet_uses_something_else(host: ContainerdHost) -> None:
    _daemon(host, "docker", SOCKET, "/etc/containerd/config.toml")
    host.kubelet("unix:///run/crio/crio.sock")
    node = collect(host, {})["node"]
    assert node["cri_state"] == "not_running" and "nobody listens on /run/crio/crio.sock" in node["choice_reason"]


def test_a_daemon_in_a_mount_namespace_of_its_own(host: ContainerdHost) -> None:
    host.write("/etc/containerd/config.toml", "version = 2\n")
    host.write("/srv/theirs/config.toml", "")
    inside = "unshare --mount -- sh -c 'mount --bind /srv/theirs /etc/containerd && exec \"$@\"' sh"
    _daemon(host, "theirs", SOCKET, "/srv/theirs/config.toml", prefix=inside)
    host.path("/srv/theirs/extra.toml").write_text("version = 2\n")
    capture = collect(host, {})
    assert sorted(interpret(capture)["handlers"]) == ["runc", "theirs"]
    assert capture["files"]["/etc/containerd/extra.toml"] == "version = 2\n"
    assert capture["dump"]["rc"] == 0 and "theirs" in capture["dump"]["stdout"]


def test_without_root(host: ContainerdHost) -> None:
    _daemon(host, "mine", SOCKET, "/etc/containerd/config.toml")
    host.path("/etc/containerd/config.toml").chmod(0o600)
    # The interpreter of the test may lie where only root can read; the machine's own is for everybody.
    command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", _COLLECT, "/srv/collection"]
    collection = "/ansible_collections/kubenode/runtime_gate"
    copy = 'mkdir -p "$2" && cp -rL "$1"/plugins "$2"'
    copied = host.run(["sh", "-c", copy, "sh", collections_root() + collection, "/srv/collection" + collection])
    assert copied.returncode == 0, copied.stderr
    done = host.run(command, input="{}")
    assert done.returncode == 0, done.stderr
    capture = json.loads(done.stdout)
    facts = interpret(capture)
    assert capture["node"]["needs_become"] is True and capture["node"]["cri_state"] == "undetermined"
    assert "permission denied" in capture["node"]["cri_error"]
    assert (facts["cri_ready"], facts["evidence"]) == (None, "none")
