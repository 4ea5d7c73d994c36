# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole node: a real kubelet on a real containerd of a release line, on which real pods run.

    with RealNode(tmp_path / "a", cluster, name="real-2-1", line="2.1") as node:
        node.wait_ready()
        cluster.create([pod("probe", runtime_class="mine", node=node.name)])

Several may live at once: each has its own namespaces, directories, ports and control groups; the network is the machine's. The
release lines are those that serve CRI v1 (1.6 and later), the kubelet speaks nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import typing as t

from tests.cluster.control_plane import LOOPBACK, ControlPlane, free_ports
from tests.cluster.kwok import is_ready
from tests.cluster.pods import IMAGE
from tests.cluster.waiting import wait_until
from tests.faults.sandboxes import pause_image
from tests.testbed.host import CONFIG, PATH, SOCKET, ContainerdHost, HostError
from tests.testbed.tools import tool

RESTART = "/usr/local/sbin/restart-containerd"
_LOG = "/run/containerd.log"
_RESTART_SCRIPT = f"""#!/bin/sh
# What a unit's restart does: end the daemon and nothing else of its group, start it anew.
pid=$(pidof -s /usr/bin/containerd) && kill "$pid"
n=0
while [ -n "$pid" ] && [ -e "/proc/$pid" ]; do
    sleep 0.05
    n=$((n + 1))
    [ $n -gt 400 ] && exit 7
done
rm -f {SOCKET} {SOCKET}.ttrpc
setsid /usr/bin/containerd </dev/null >>{_LOG} 2>&1 &
"""
_KUBELET_CONFIG, _KUBECONFIG = "/var/lib/kubelet/config.yaml", "/etc/kubernetes/kubelet.conf"
CNI = "/etc/cni/net.d/10-loopback.conflist"
# No pod has a network of its own; the kubelet is Ready only when there is some configuration of one.
LOOPBACK_NETWORK = {"cniVersion": "1.0.0", "name": "loopback", "plugins": [{"type": "loopback"}]}
# A release line without a package of Debian's has its own daemon; ctr and the shim are this package's.
_PACKAGED = "containerd-2.1"
_TASKS = "/run/containerd/io.containerd.runtime.v2.task/k8s.io"
# Without groups by quality of service the kubelet names no parent, and containerd's own choice is this one.
_GROUPS = pathlib.Path("/sys/fs/cgroup")
_PARENT = "k8s.io"


def containerd_config(line: str, runtimes: t.Mapping[str, t.Mapping[str, t.Any]] | None = None, default: str = "runc", top: str = "") -> str:
    """A configuration with which containerd of a line runs pods here: the given handlers, and what this machine asks for.

    It may not lower oom_score_adj, and has no overlay on overlay. runtimes: handler -> keys of its table (runtime_type is filled in,
    options is a table of strings). top: text between the version and the tables, such as imports.
    """
    old = line.startswith("1.")
    section = "io.containerd.grpc.v1.cri" if old else "io.containerd.cri.v1.runtime"
    images = section if old else "io.containerd.cri.v1.images"
    parts = [f"version = {2 if old else 3}", top]
    parts += [f'[plugins."{section}"]', "restrict_oom_score_adj = true"]
    if old:
        parts += [f'sandbox_image = "{IMAGE}"', f'[plugins."{section}".containerd]', 'snapshotter = "native"']
    else:
        parts += [f'[plugins."{images}"]', 'snapshotter = "native"', f'[plugins."{images}".pinned_images]', f'sandbox = "{IMAGE}"']
        parts += [f'[plugins."{section}".containerd]']
    parts += [f'default_runtime_name = "{default}"']
    for name, keys in ({"runc": {}, "mine": {}} if runtimes is None else runtimes).items():
        parts += _runtime(f'plugins."{section}".containerd.runtimes.{name}', {"runtime_type": "io.containerd.runc.v2", **keys})
    return "\n".join(parts) + "\n"


def kubelet_config(ca_file: str) -> dict[str, t.Any]:
    """A KubeletConfiguration with what it takes here: no swap accounting, no QoS groups, no firewall, no right to lower oom_score_adj.

    ca_file: of the authority that the API server's client certificate comes from, on the node.
    """
    port, health = free_ports(2)
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": LOOPBACK,
        "port": port,
        "healthzBindAddress": LOOPBACK,
        "healthzPort": health,
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}, "x509": {"clientCAFile": ca_file}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        "oomScoreAdj": 0,
        "localStorageCapacityIsolation": False,
        "makeIPTablesUtilChains": False,
        "evictionHard": {"memory.available": "1%", "nodefs.available": "0%", "imagefs.available": "0%"},
        "resolvConf": "",
        "nodeStatusUpdateFrequency": "2s",
        "syncFrequency": "5s",
        "imageGCHighThresholdPercent": 100,
        "logging": {"verbosity": 1},
    }


def _runtime(table: str, keys: t.Mapping[str, t.Any]) -> list[str]:
    lines = [f"[{table}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items() if key != "options")]
    if "options" in keys:
        lines += [f"[{table}.options]", *(f"{key} = {json.dumps(value)}" for key, value in keys["options"].items())]
    return lines


class _Host(ContainerdHost):
    """A host whose daemon is (re)started inside it, so that the product can do it as well as a test."""

    def start(self, args: t.Sequence[str] | None = None, env: t.Mapping[str, str] | None = None, wait: float = 60) -> bool:
        if self.running():
            raise HostError(f"{self.name}: the daemon is already running")
        if args or env:
            raise HostError("the daemon of a real node takes no arguments: write its configuration")
        self.run([RESTART])
        return wait_until(lambda: self.running() and self.path(SOCKET).is_socket() and self._serves(), wait, 0.05)

    def _serves(self) -> bool:
        return self._ask("version", wait=1)["state"] in ("served", "unimplemented")

    def _daemon_process(self) -> int | None:
        for child in pathlib.Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if pathlib.Path(f"/proc/{child}/comm").read_text() == "containerd\n" and not _ended(int(child)):
                    return int(child)
        return None

    def running(self) -> bool:
        return self._init.poll() is None and self._daemon_process() is not None

    def daemon_pid(self) -> int:
        found = self._daemon_process()
        if found is None:
            raise HostError(f"{self.name}: the daemon does not run")
        return found

    def kill(self, number: int = signal.SIGKILL) -> int | None:
        found = self._daemon_process()
        if found is not None:
            os.kill(found, number)
            if not wait_until(lambda: _ended(found), 10, 0.02):
                os.kill(found, signal.SIGKILL)
        return None

    def resume(self) -> None:
        os.kill(self.daemon_pid(), signal.SIGCONT)

    def log(self) -> str:
        path = self.path(_LOG)
        return path.read_text(errors="replace") if path.exists() else ""


def _ended(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


class RealNode:
    """One node. It joins the cluster when the with-block begins; its Node, processes and control groups go when it is left.

    Where the test is killed, the kernel ends the processes and drops the mounts; empty control groups stay.

    :ivar containerd: the host with its daemon: paths, socket, restart.
    """

    def __init__(
        self, directory: pathlib.Path, cluster: ControlPlane, name: str, line: str, config: str | None = None, labels: t.Mapping[str, str] | None = None
    ) -> None:
        """directory: logs, and what Ansible leaves. config: TOML of /etc/containerd/config.toml (default: handlers runc and mine)."""
        self.directory = directory.resolve()
        self.name, self.line = name, line
        self._cluster = cluster
        self._labels = dict(labels or {})
        self._config = containerd_config(line) if config is None else config
        self._kubelet: subprocess.Popen[bytes] | None = None
        self.containerd: ContainerdHost

    def __enter__(self) -> RealNode:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.containerd = _Host(self.line, name=self.name)
        try:
            self._install()
            if not self.containerd.start():
                raise HostError(f"containerd {self.line} does not start:\n{self.containerd.log()[-3000:]}")
            self._import_image()
            self.start_kubelet()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        # The Node may be gone with the API server; nothing of this machine depends on it.
        with contextlib.suppress(OSError):
            self._cluster.request("DELETE", f"/api/v1/nodes/{self.name}")
        self.stop_kubelet()
        tasks = self.containerd.path(_TASKS)
        left = [entry.name for entry in tasks.iterdir()] if tasks.is_dir() else []
        self.containerd.close()
        # The kernel empties the control groups of the pods a moment after the last process.
        wait_until(lambda: not _remove_groups(left), 10)

    def _install(self) -> None:
        host = self.containerd
        package = tool(f"containerd-{self.line}").parent
        package = package if (package / "ctr").exists() else tool(_PACKAGED).parent
        for program in ("ctr", "containerd-shim-runc-v2"):
            host.install(package / program, f"/usr/bin/{program}")
        host.install_script(RESTART, _RESTART_SCRIPT)
        host.write(CONFIG, self._config)
        host.write(CNI, json.dumps(LOOPBACK_NETWORK))
        host.write(_KUBECONFIG, self._cluster.user_kubeconfig(f"system:node:{self.name}", ("system:nodes",)).read_text(encoding="utf-8"))
        host.write(_KUBELET_CONFIG, json.dumps(kubelet_config(self._cluster.ca_file)))

    def _import_image(self) -> None:
        self.containerd.path("/run/pause.tar").write_bytes(pause_image(tool("stand-in")))
        done = self.containerd.run(["ctr", "-n", "k8s.io", "images", "import", "--local", "--snapshotter", "native", "/run/pause.tar"])
        if done.returncode:
            raise HostError(f"the pause image cannot be imported: {done.stderr}")

    # the kubelet -----------------------------------------------------------------------------------------------------------------

    def start_kubelet(self) -> None:
        """Start the kubelet; it registers the Node by itself."""
        labels = ",".join(f"{key}={value}" for key, value in self._labels.items())
        command = [str(tool("kubelet")), f"--config={_KUBELET_CONFIG}", f"--kubeconfig={_KUBECONFIG}", f"--hostname-override={self.name}"]
        command += [f"--node-labels={labels}"] if labels else []
        with open(self.directory / "kubelet.log", "ab") as log:
            environment = {"PATH": PATH, "HOME": "/root"}
            self._kubelet = subprocess.Popen(
                self.containerd._enter(command), env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def stop_kubelet(self) -> None:
        """End the kubelet; the pods go on."""
        if self._kubelet is not None:
            self.containerd._signal(self._kubelet, signal.SIGTERM)
            self._kubelet = None

    def kubelet_log(self) -> str:
        """What the kubelet has printed."""
        path = self.directory / "kubelet.log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def api_object(self) -> dict[str, t.Any]:
        """The Node as the API server has it ({} before it has registered)."""
        nodes = self._cluster.request("GET", f"/api/v1/nodes?fieldSelector=metadata.name%3D{self.name}")["items"]
        return nodes[0] if nodes else {}

    def wait_ready(self, wait: float = 120) -> None:
        """Wait until the Node is Ready, and free of the taint that keeps pods away until then. Raises HostError after `wait` seconds."""
        controlled = "controller-manager" in self._cluster.programs
        if not wait_until(lambda: self._ready(controlled), wait, 0.2):
            raise HostError(f"{self.name} is not Ready after {wait:g} s:\n{self.kubelet_log()[-3000:]}\n{self.containerd.log()[-2000:]}")

    def _ready(self, controlled: bool) -> bool:
        node = self.api_object()
        if node and not controlled:
            node["spec"]["taints"] = []
        return bool(node) and is_ready(node)

    # what the product is told ----------------------------------------------------------------------------------------------------

    def inventory_vars(self) -> dict[str, t.Any]:
        """Variables of an Ansible inventory host: modules run inside this node, over the local connection, by its own Python."""
        interpreter = self.directory / "python3"
        interpreter.write_text(f'#!/bin/sh\nexec {" ".join(self.containerd._enter(["/usr/bin/python3"]))} "$@"\n', encoding="utf-8")
        interpreter.chmod(0o755)
        return {
            "ansible_connection": "local",
            "ansible_python_interpreter": str(interpreter),
            "ansible_remote_tmp": str(self.directory / "ansible"),
            "runtime_gate_become": False,
            "runtime_gate_restart_command": [RESTART],
        }

    def containers(self) -> dict[str, int]:
        """Id of each task of containerd (sandboxes and containers) -> its process, by the word of containerd's own client."""
        done = self.containerd.run(["ctr", "-n", "k8s.io", "tasks", "ls"])
        if done.returncode:
            raise HostError(f"ctr tasks ls: {done.stderr}")
        rows = [line.split() for line in done.stdout.splitlines()[1:]]
        return {row[0]: int(row[1]) for row in rows if row[2] == "RUNNING"}


def _remove_groups(identifiers: t.Iterable[str]) -> list[pathlib.Path]:
    """Removes the groups of these containers in every hierarchy, and says which are still in use."""
    groups = [group for identifier in identifiers for group in _GROUPS.glob(f"*/{_PARENT}/{identifier}")]
    for group in groups:
        with contextlib.suppress(OSError):
            group.rmdir()
    return [group for group in groups if group.exists()]


__all__ = ("RESTART", "RealNode", "containerd_config")
