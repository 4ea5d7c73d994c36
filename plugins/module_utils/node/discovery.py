# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which container runtime of the node is the one to judge: the one that the kubelet uses.

The kubelet's endpoint comes first, then the process that listens on it (the kernel knows, SO_PEERCRED). Where that cannot be
decided (two kubelets, several runtimes and no endpoint), nothing is chosen and the sockets are named.
Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import struct
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import commands
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.kubelet import Kubelet, socket_path
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.processes import Process, option

DEFAULT_CONFIG = {"containerd": "/etc/containerd/config.toml", "crio": "/etc/crio/crio.conf"}
DEFAULT_SOCKET = {"containerd": "/run/containerd/containerd.sock", "crio": "/run/crio/crio.sock"}
_ENGINES = {"containerd": "containerd", "docker-containerd": "containerd", "crio": "crio"}
_ADDRESS = re.compile(rb"""^[ \t]*\[grpc\][^\[]*?^[ \t]*address[ \t]*=[ \t]*["']([^"'\n]+)["']""", re.MULTILINE | re.DOTALL)
_UNIT_PROPERTIES = (
    "Id,LoadState,ActiveState,FragmentPath,DropInPaths,ExecStart,ExecReload,KillMode,NeedDaemonReload,MainPID,Environment,EnvironmentFiles"
)
_EXEC_ARGV = re.compile(r"argv\[\]=(.*?) ; ignore_errors=")

# Distribution, by what its paths look like: the first pattern that is found in the configuration path, the executable,
# the socket or the unit of the runtime decides.
_DISTRIBUTIONS = (
    ("rke2", re.compile(r"/rke2/|rke2-(?:server|agent)\.service")),
    ("k3s", re.compile(r"/k3s/|k3s(?:-agent)?\.service")),
    ("k0s", re.compile(r"/k0s/|k0s\w*\.service")),
    ("microk8s", re.compile(r"/microk8s/|microk8s")),
    ("docker", re.compile(r"/docker/containerd|docker\.service|/var/snap/docker/")),
)
# ... else by a file that only this distribution has.
_MARKS = (
    ("openshift", "/etc/machine-config-daemon"),
    ("bottlerocket", "/etc/bottlerocket-release"),
    ("flatcar", "/usr/share/flatcar/release"),
    ("eks", "/etc/eks"),
    ("aks", "/etc/default/kubelet-aks"),
    ("aks", "/opt/azure/containers"),
    ("gke", "/home/kubernetes/kube-env"),
    ("gke", "/home/kubernetes/bin"),
    ("kubespray", "/etc/kubernetes/kubelet-config.yaml"),
    ("kubeadm", "/var/lib/kubelet/kubeadm-flags.env"),
)


class Runtime(t.NamedTuple):
    """One container runtime on the node.

    :ivar engine: ``containerd`` or ``crio``.
    :ivar process: None when it is installed but does not run.
    :ivar exe: path of the executable: the running one's, else the installed one's.
    :ivar socket: the unix socket that it serves CRI on, by its own word.
    :ivar config_dir: CRI-O's directory of drop-ins.
    """

    engine: str
    process: t.Optional[Process]
    exe: t.Optional[str]
    config_path: str
    socket: str
    config_dir: str = ""


class Choice(t.NamedTuple):
    """The runtime to judge, or why there is none.

    :ivar serves_kubelet: whether the kubelet uses it; None when that is not known.
    :ivar undecided: sockets among which it could not be decided.
    """

    runtime: t.Optional[Runtime]
    serves_kubelet: t.Optional[bool]
    undecided: t.List[str]
    reason: t.Optional[str]


def half_of_crio() -> t.Any:
    """The module crio, imported where it is first needed: a node without CRI-O is spared it. Whatever a module imports is compiled anew
    on every node in every run, since nothing may be kept there."""
    from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import crio

    return crio


def runtimes(processes: t.Iterable[Process], root: str = "") -> t.List[Runtime]:
    """The runtimes that run on the node."""
    found = []
    for process in processes:
        engine = next((_ENGINES[name] for name in sorted(process.names) if name in _ENGINES), None)
        # `containerd config dump` and the like are no daemons.
        if engine and not _subcommand(process.argv):
            found.append(_described(engine, process, root or process.root))
    return found


def _described(engine: str, process: Process, root: str) -> Runtime:
    if engine == "crio":
        return _crio(process, root)
    config = _config_path(engine, process, None)
    return Runtime(engine, process, process.exe, config, _address(engine, process.argv, root + config))


def _crio(process: Process, root: str) -> Runtime:
    """CRI-O takes each of its options from its environment too."""
    crio = half_of_crio()
    environment = crio.variables(process.environment())
    config = _config_path("crio", process, environment.get("CONTAINER_CONFIG"))
    config_dir = crio.directory(process.argv, environment)
    given = option(process.argv, "listen") or environment.get("CONTAINER_LISTEN") or crio.listen(root, config, config_dir)
    return Runtime("crio", process, process.exe, config, socket_path(given) or given or DEFAULT_SOCKET["crio"], config_dir)


_SUBCOMMANDS = frozenset("config publish oci-hook version --version -v help --help -h status wipe check complete".split())


def _subcommand(argv: t.Sequence[str]) -> bool:
    return not _SUBCOMMANDS.isdisjoint(argv[1:])


def _config_path(engine: str, process: Process, otherwise: t.Optional[str]) -> str:
    given = option(process.argv, "config", "c") or otherwise
    if not given:
        return DEFAULT_CONFIG[engine]
    return given if given.startswith("/") else os.path.join(process.cwd or "/", given)


def _address(engine: str, argv: t.Sequence[str], config: str) -> str:
    given = option(argv, "address", "a", "listen")
    if not given:
        try:
            with open(config, "rb") as file:
                match = _ADDRESS.search(file.read(1024 * 1024))
            given = match.group(1).decode("utf-8", "replace") if match else None
        except OSError:
            # An unreadable file is reported by the one who reads the files; the default stands in here.
            given = None
    return socket_path(given) or given or DEFAULT_SOCKET[engine]


def owner(path: str, timeout: float) -> t.Optional[int]:
    """The pid of the process that listens on a unix socket; None when nobody does or the kernel does not say.

    The credentials are those of the time of listen(2), so that also a daemon that hangs is found.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        try:
            connection.connect(path)
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        except OSError:
            return None
    pid = struct.unpack("3i", credentials)[0]
    return pid or None


def choose(
    engine: t.Optional[str],
    found: t.Sequence[Runtime],
    kubelets: t.Sequence[Kubelet],
    wanted: t.Optional[str],
    config_path: t.Optional[str],
    timeout: float,
) -> Choice:
    """The runtime to judge.

    :param engine: only this engine is chosen; None: any.
    :param wanted: path of a socket that the user named; it decides.
    :param config_path: configuration file that the user named; it decides among several runtimes.
    """
    if wanted:
        return _by_socket(engine, found, wanted, timeout, _serves(kubelets, wanted))
    sockets = sorted({path for path in (socket_path(kubelet.endpoint) for kubelet in kubelets) if path})
    if len(kubelets) > 1:
        return Choice(None, None, sockets, "%d kubelets run on this node" % len(kubelets))
    if sockets and kubelets[0].endpoint_source != "default":
        return _by_socket(engine, found, sockets[0], timeout, True)
    return _without_endpoint(engine, found, kubelets, config_path, timeout)


def _serves(kubelets: t.Sequence[Kubelet], path: str) -> t.Optional[bool]:
    if len(kubelets) != 1 or not socket_path(kubelets[0].endpoint):
        return None
    return os.path.realpath(socket_path(kubelets[0].endpoint) or "") == os.path.realpath(path)


def _by_socket(
    engine: t.Optional[str], found: t.Sequence[Runtime], path: str, timeout: float, serves: t.Optional[bool]
) -> Choice:
    pid = owner(path, timeout)
    listening = [one for one in found if one.process and one.process.pid == pid]
    if not listening:
        listening = [one for one in found if os.path.realpath(one.socket) == os.path.realpath(path)]
    own = _of(engine, listening)
    if own:
        return Choice(own[0]._replace(socket=path), serves, [], None)
    others = _of(engine, found)
    if listening or (pid and others):
        # The kubelet is served by something else: another engine, or a program between it and the runtime.
        if len(others) == 1:
            return Choice(others[0], False if serves else None, [], "the kubelet uses %s, which is not this runtime's" % path)
        if others:
            return Choice(None, False, [one.socket for one in others], "the kubelet uses none of these sockets")
    if pid or listening:
        what = "no %s" % (engine or "container runtime that is known here")
        return Choice(None, None, [path], "%s is served by process %s, which is %s" % (path, pid, what))
    return Choice(None, serves, [], "nobody listens on %s" % path)


def _of(engine: t.Optional[str], found: t.Sequence[Runtime]) -> t.List[Runtime]:
    return [one for one in found if engine is None or one.engine == engine]


def _without_endpoint(
    engine: t.Optional[str],
    found: t.Sequence[Runtime],
    kubelets: t.Sequence[Kubelet],
    config_path: t.Optional[str],
    timeout: float,
) -> Choice:
    own = _of(engine, found)
    if config_path:
        own = [one for one in own if one.config_path == config_path] or own
    default = socket_path(kubelets[0].endpoint) if kubelets else None
    if default:
        # Nothing was configured; the kubelet's own default holds where somebody listens there.
        choice = _by_socket(engine, found, default, timeout, True)
        if choice.runtime or not own:
            return choice
    if len(own) > 1:
        why = "several runtimes run, and which one the kubelet uses is not known"
        return Choice(None, None, sorted(one.socket for one in own), why)
    if own:
        return Choice(own[0], None, [], None)
    return Choice(None, None, [], "no %s runs on this node" % (engine or "container runtime"))


_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def engine_of(endpoint: t.Optional[str]) -> t.Optional[str]:
    """The engine that a socket's path speaks of, where nobody listens on it; else the only one that is installed.

    None: both are installed, or none is.
    """
    named = [engine for engine in ("containerd", "crio") if engine in os.path.basename(endpoint or "")]
    there = named or [engine for engine in ("containerd", "crio") if shutil.which(engine, path=_PATH)]
    return there[0] if len(there) == 1 else None


def installed(engine: str, named: t.Optional[str], endpoint: t.Optional[str]) -> t.Optional[Runtime]:
    """The runtime that is installed where none runs, by what belongs to the kubelet's socket, else from PATH."""
    exe = named or shutil.which(engine, path=_PATH)
    config = DEFAULT_CONFIG[engine]
    path = endpoint or DEFAULT_SOCKET[engine]
    for mark, program, file in _INSTALLED:
        if engine == "containerd" and mark in path and (os.path.exists(file) or os.path.exists(program)):
            exe, config = named or (program if os.access(program, os.X_OK) else exe), file
            break
    return Runtime(engine, None, exe, config, path, half_of_crio().CONFIG_DIR if engine == "crio" else "") if exe else None


# Where a distribution keeps the containerd that belongs to a socket: part of the socket, program, configuration.
_INSTALLED = (
    ("/k3s/", "/var/lib/rancher/rke2/bin/containerd", "/var/lib/rancher/rke2/agent/etc/containerd/config.toml"),
    ("/k3s/", "/var/lib/rancher/k3s/data/current/bin/containerd", "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"),
    ("/k0s/", "/var/lib/k0s/bin/containerd", "/etc/k0s/containerd.toml"),
    ("/microk8s/", "/snap/microk8s/current/bin/containerd", "/var/snap/microk8s/current/args/containerd.toml"),
)


def unit(name: t.Optional[str], timeout: float) -> t.Optional[t.Dict[str, t.Any]]:
    """What systemd knows about a service; None without systemd or without such a service.

    :raises commands.CommandFailed: systemctl failed.
    """
    systemctl = shutil.which("systemctl")
    if not name or not systemctl or not os.path.isdir("/run/systemd/system"):
        return None
    output = commands.run([systemctl, "show", "--no-pager", "-p", _UNIT_PROPERTIES, "--", name], timeout)
    if output.rc != 0:
        text = output.stderr.decode("utf-8", "replace").strip()
        raise commands.CommandFailed("systemctl show %s ended with %d: %s" % (name, output.rc, text))
    return parse_unit(output.stdout.decode("utf-8", "replace"))


def parse_unit(text: str) -> t.Optional[t.Dict[str, t.Any]]:
    """The output of ``systemctl show``; None when the service does not exist."""
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if values.get("LoadState") in (None, "", "not-found"):
        return None
    command = _EXEC_ARGV.search(values.get("ExecStart", ""))
    files = [line.partition("=")[2].rpartition(" (")[0] for line in text.splitlines() if line.startswith("EnvironmentFiles=")]
    return {
        "name": values.get("Id"),
        "state": values.get("ActiveState"),
        "fragment": values.get("FragmentPath") or None,
        "drop_ins": values.get("DropInPaths", "").split(),
        "exec_start": command.group(1) if command else None,
        "kill_mode": values.get("KillMode"),
        "need_daemon_reload": values.get("NeedDaemonReload") == "yes",
        "exec_reload": values.get("ExecReload") or None,
        "environment": values.get("Environment") or None,
        "environment_files": [path for path in files if path],
    }


def distribution(runtime: t.Optional[Runtime], unit_name: t.Optional[str], kubelet: t.Optional[Kubelet], root: str = "") -> t.Optional[str]:
    """The distribution of the node, or None when nothing tells.

    A plain containerd that Docker's package brought (its unit is containerd.service) is told by the version text, which
    the caller has.
    """
    traces = [runtime.config_path, runtime.exe, runtime.socket] if runtime else []
    traces += [unit_name, kubelet.endpoint if kubelet else None]
    text = " ".join(trace for trace in traces if trace)
    for name, pattern in _DISTRIBUTIONS:
        if pattern.search(text):
            return name
    return next((name for name, mark in _MARKS if os.path.exists(root + mark)), None)
