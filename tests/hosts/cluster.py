"""A real cluster over the hosts of a test: an API server that each reaches in its own network, kubectl, and on request kubelets.

What this proves: nothing by itself. The programs are those of tests/cluster. etcd and the API server run on the machine, held by a
process of their own; a host's network has nothing but loopback, so there a port of it leads to the API server.
DIRECTORY/cluster/admin.kubeconfig is the admin's, on the machine and, as kubespray leaves it, in each host.
"""

from __future__ import annotations

import json
import os
import pathlib
import select
import shutil
import socket
import subprocess
import sys
import threading
import typing as t

from tests.cluster.control_plane import LOOPBACK, ControlPlane
from tests.cluster.kwok import is_ready
from tests.cluster.real_node import CNI, LOOPBACK_NETWORK, kubelet_config
from tests.cluster.waiting import wait_until
from tests.hosts.node import Host, HostError, Hosts
from tests.testbed.tools import tool

KUBECTL = "/usr/local/bin/kubectl"
KUBECONFIG = "/etc/kubernetes/admin.conf"
_READY = "ready"
_READY_SECONDS = 120.0
_LISTEN = "import socket; one = socket.create_server(({address!r}, {port})); socket.send_fds(socket.socket(fileno=0), [b' '], [one.fileno()])"
#: The kubelet refuses a loopback address as its own.
_NODE_ADDRESS = "192.0.2.1"
_CA = "/etc/kubernetes/ca.crt"
_UNIT = f"""[Unit]
Description=kubelet
After=containerd.service

[Service]
ExecStart=/usr/bin/kubelet --config=/var/lib/kubelet/config.yaml --kubeconfig=/etc/kubernetes/kubelet.conf --hostname-override=%H \\
  --node-ip={_NODE_ADDRESS}
Restart=always
RestartSec=2
"""


def start(hosts: Hosts, manifest: str, names: t.Sequence[str]) -> None:
    """Start it in the background and return when it has the objects of the manifest. Raises HostError with its words if it does not."""
    directory = _directory(hosts)
    # That of an earlier run has other ports.
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    with open(directory / "holder.log", "wb") as log:
        command = [sys.executable, "-m", "tests.hosts.cluster", str(hosts.directory), manifest, *names]
        holder = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
    assert holder.stdout
    if holder.stdout.readline().strip() != _READY:
        raise HostError(f"there is no API server: {(directory / 'holder.log').read_text(errors='replace')[-2000:]}")


def hold(hosts: Hosts, manifest: str, names: t.Sequence[str]) -> None:
    """Run it until the first host's PID 1 ends."""
    directory = _directory(hosts)
    first_ends = os.pidfd_open(hosts.host(names[0]).pid)
    with ControlPlane(directory / "plane") as cluster:
        cluster.kubectl("apply", "-f", manifest)
        admin = _flattened(cluster, cluster.kubeconfig)
        _write_secret(directory / "admin.kubeconfig", admin)
        shutil.copy2(cluster.ca_file, directory / "ca.crt")
        for name in names:
            host = hosts.host(name)
            _forward(host, int(cluster.url.rpartition(":")[2]))
            shutil.copy2(tool("kubectl"), host.path(KUBECTL))
            _write_secret(host.path(KUBECONFIG), admin)
            node = cluster.user_kubeconfig(f"system:node:{name}", ("system:nodes",))
            _write_secret(directory / f"{name}.kubeconfig", _flattened(cluster, node))
        print(_READY, flush=True)
        select.select([first_ends], [], [])


def join(hosts: Hosts, name: str) -> None:
    """Install and start a kubelet, and wait until its Node is Ready. Raises HostError with its log where that does not come."""
    host, directory = hosts.host(name), _directory(hosts)
    files = {
        CNI: json.dumps(LOOPBACK_NETWORK),
        "/var/lib/kubelet/config.yaml": json.dumps(kubelet_config(_CA)),
        "/usr/lib/systemd/system/kubelet.service": _UNIT,
    }
    for inside, text in files.items():
        host.path(inside).parent.mkdir(parents=True, exist_ok=True)
        host.path(inside).write_text(text, encoding="utf-8")
    _write_secret(host.path("/etc/kubernetes/kubelet.conf"), (directory / f"{name}.kubeconfig").read_text(encoding="utf-8"))
    shutil.copy2(directory / "ca.crt", host.path(_CA))
    shutil.copy2(tool("kubelet"), host.path("/usr/bin/kubelet"))
    for command in (["ip", "address", "add", f"{_NODE_ADDRESS}/32", "dev", "lo"], ["systemctl", "daemon-reload"], ["systemctl", "start", "kubelet"]):
        done = host.run(command)
        if done.returncode:
            raise HostError(f"{name}: {' '.join(command)}: {done.stderr}")
    if not wait_until(lambda: _is_ready(hosts, name), _READY_SECONDS, 1):
        log = host.run(["journalctl", "--unit", "kubelet", "--output", "cat", "--no-pager", "--lines", "40"]).stdout
        raise HostError(f"{name} is not Ready after {_READY_SECONDS:g} s:\n{log[-3000:]}")


def _is_ready(hosts: Hosts, name: str) -> bool:
    node = json.loads(kubectl(hosts, ("get", "node", name, "--ignore-not-found", "-o", "json")).stdout or "null")
    if node:
        # Nobody takes the taint of a new Node away: there is no controller manager, and the tests bind their pods themselves.
        node["spec"]["taints"] = []
    return bool(node) and is_ready(node)


def kubectl(hosts: Hosts, arguments: t.Sequence[str]) -> subprocess.CompletedProcess[str]:
    """kubectl as the admin, on the machine."""
    command = [str(tool("kubectl")), "--kubeconfig", str(_directory(hosts) / "admin.kubeconfig"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def _directory(hosts: Hosts) -> pathlib.Path:
    return hosts.directory / "cluster"


def _flattened(cluster: ControlPlane, kubeconfig: pathlib.Path) -> str:
    """With its certificates in it: in a host their files are not there."""
    return cluster.kubectl("config", "view", "--raw", "--flatten", "--kubeconfig", str(kubeconfig)).stdout


def _write_secret(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


def _forward(host: Host, port: int) -> None:
    """Let a port of the host's loopback lead to the same one of the machine's."""
    ours, theirs = socket.socketpair()
    # A socket stays in the network that it was made in.
    command = ["nsenter", "--net", "--target", str(host.pid), "--", sys.executable, "-c", _LISTEN.format(address=LOOPBACK, port=port)]
    subprocess.run(command, stdin=theirs, check=True, timeout=30)
    _, found, _, _ = socket.recv_fds(ours, 1, 1)
    threading.Thread(target=_serve, args=(socket.socket(fileno=found[0]), port), daemon=True).start()


def _serve(listener: socket.socket, port: int) -> None:
    while True:
        inner, _ = listener.accept()
        outer = socket.create_connection((LOOPBACK, port))
        for source, target in ((inner, outer), (outer, inner)):
            threading.Thread(target=_copy, args=(source, target), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # One end is gone: the other must not wait for it.
        for one in (source, target):
            one.close()


if __name__ == "__main__":
    hold(Hosts(pathlib.Path(sys.argv[1])), sys.argv[2], sys.argv[3:])
