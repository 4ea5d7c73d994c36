# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's kubelet, also the one inside k3s, kubelite and the like: which runtime socket it uses, and who it is.

Flags win over the configuration file, its drop-ins win over the file, and the environment file of a kubelet that does
not run stands for its flags (https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/).
Runs on nodes: the standard library of Python 3.8 only, so the two or three top-level keys that matter are read from the YAML by
line.
"""

from __future__ import annotations

import binascii
import json
import os
import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.processes import Process, option

#: What the kubelet uses when nothing says otherwise (k8s.io/kubernetes cmd/kubelet/app/options, since 1.27).
DEFAULT_ENDPOINT = "unix:///run/containerd/containerd.sock"
#: Where a kubelet that does not run keeps its flags and its configuration.
FLAG_FILES = ("/var/lib/kubelet/kubeadm-flags.env", "/etc/default/kubelet", "/etc/sysconfig/kubelet")
CONFIG_FILE = "/var/lib/kubelet/config.yaml"
_K3S_ENDPOINT = "unix:///run/k3s/containerd/containerd.sock"
_K3S_CONFIG = "/etc/rancher/k3s/config.yaml"
_ENDPOINT = "container-runtime-endpoint"
_NODE_NAME = re.compile(rb"system:node:([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)")
_CERTIFICATE_DATA = re.compile(rb"client-certificate-data:\s*['\"]?([A-Za-z0-9+/=]+)")
_CERTIFICATE_FILE = re.compile(rb"client-certificate:\s*['\"]?([^\s'\"]+)")
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----([\sA-Za-z0-9+/=]+)-----END")
_SUBJECT = re.compile(rb"[\x0c\x13][\x00-\x7f](?P<text>system:node:)")
_MAX_SIZE = 1024 * 1024


class Kubelet(t.NamedTuple):
    """One kubelet, running or not.

    :ivar pid: None when it does not run.
    :ivar endpoint: the runtime's socket as a ``unix://`` URL, None when undecidable.
    :ivar endpoint_source: ``flag``, ``config``, ``environment``, ``distribution`` or ``default``.
    """

    pid: t.Optional[int]
    argv: t.List[str]
    config_path: t.Optional[str]
    endpoint: t.Optional[str]
    endpoint_source: str
    cgroup_driver: t.Optional[str]
    hostname_override: t.Optional[str]
    node_name: t.Optional[str]
    kubeconfig: t.Optional[str]


def find(processes: t.Iterable[Process], root: str = "") -> t.List[Kubelet]:
    """The kubelets that run; one entry for the configured one when none runs; empty where there is none at all.

    :param root: prefix of all paths that are read.
    """
    running = [kubelet for kubelet in (_running(process, root) for process in processes) if kubelet]
    if running:
        return running
    stopped = _stopped(root)
    return [stopped] if stopped else []


def _running(process: Process, root: str) -> t.Optional[Kubelet]:
    names = process.names
    if "kubelet" in names or (process.argv[1:2] == ["kubelet"] and "hyperkube" in names):
        argv = process.argv
    elif "kubelite" in names:
        argv = process.argv + _args_file(root, option(process.argv, "kubelet-args-file"))
    elif names & {"k3s", "k3s-agent", "k3s-server"} and _runs_agent(process.argv):
        return _k3s(process, root)
    else:
        return None
    return describe(process.pid, argv, process.environment(), root or process.root)


def _runs_agent(argv: t.Sequence[str]) -> bool:
    """Whether this k3s process is a node: a server that was not started with --disable-agent, or an agent."""
    words = " ".join(argv[:2]).split()
    is_node = any(word in ("server", "agent") or word.endswith(("k3s-server", "k3s-agent")) for word in words)
    return is_node and option(argv, "disable-agent") not in ("", "true") and "--disable-agent" not in argv


def _k3s(process: Process, root: str) -> Kubelet:
    """The kubelet inside k3s: options of k3s itself, its config.yaml, and --kubelet-arg."""
    config = _read(root + (option(process.argv, "config", "c") or _K3S_CONFIG))
    kubelet_args = ["--" + word for word in _all_options(process.argv, "kubelet-arg")]
    flags = describe(process.pid, process.argv[:1] + kubelet_args, process.environment(), root)
    endpoint = option(process.argv, _ENDPOINT) or _yaml_value(config, _ENDPOINT)
    docker = "--docker" in process.argv or _yaml_value(config, "docker") == "true"
    if endpoint:
        flags = flags._replace(endpoint=_as_url(endpoint), endpoint_source="flag")
    elif flags.endpoint_source == "default":
        default = None if docker else _K3S_ENDPOINT
        flags = flags._replace(endpoint=default, endpoint_source="distribution")
    name = option(process.argv, "node-name") or _yaml_value(config, "node-name")
    return flags._replace(argv=process.argv, hostname_override=flags.hostname_override or name)


def _all_options(argv: t.Sequence[str], name: str) -> t.List[str]:
    values = [word.split("=", 1)[1] for word in argv if word.lstrip("-").startswith(name + "=")]
    return values + [argv[i + 1] for i, word in enumerate(argv[:-1]) if word.lstrip("-") == name]


def _args_file(root: str, path: t.Optional[str]) -> t.List[str]:
    """MicroK8s: one argument a line, with the variables of its snap."""
    if not path:
        return []
    snap_data = path.partition("/args/")[0]
    values = {"SNAP_DATA": snap_data, "SNAP_COMMON": os.path.dirname(snap_data) + "/common"}
    text = re.sub(
        r"\$\{?(\w+)\}?", lambda match: values.get(match.group(1), match.group()), _read(root + path).decode("utf-8", "replace")
    )
    return [word for line in text.splitlines() if not line.startswith("#") for word in line.split()]


def _stopped(root: str) -> t.Optional[Kubelet]:
    flags: t.List[str] = ["kubelet"]
    for path in FLAG_FILES:
        for line in _read(root + path).decode("utf-8", "replace").splitlines():
            name, equals, value = line.strip().partition("=")
            if equals and name in ("KUBELET_KUBEADM_ARGS", "KUBELET_EXTRA_ARGS"):
                flags += value.strip("\"'").split()
    if len(flags) == 1 and not os.path.exists(root + CONFIG_FILE):
        return None
    found = describe(None, flags + ([] if option(flags, "config") else ["--config", CONFIG_FILE]), {}, root)
    source = "environment" if found.endpoint_source == "flag" else found.endpoint_source
    return found._replace(argv=[], endpoint_source=source)


def describe(pid: t.Optional[int], argv: t.List[str], environment: t.Mapping[str, str], root: str) -> Kubelet:
    """What a kubelet with these arguments uses."""
    config_path = option(argv, "config")
    texts = [_read(root + config_path)] if config_path else []
    texts += _drop_ins(root, option(argv, "config-dir"))
    endpoint, source = option(argv, _ENDPOINT), "flag"
    if not endpoint:
        endpoint, source = _last([_yaml_value(text, "containerRuntimeEndpoint") for text in texts]), "config"
    if not endpoint:
        endpoint, source = environment.get("CONTAINER_RUNTIME_ENDPOINT"), "environment"
    if not endpoint:
        endpoint, source = DEFAULT_ENDPOINT, "default"
    kubeconfig = option(argv, "kubeconfig")
    return Kubelet(
        pid=pid,
        argv=argv,
        config_path=config_path,
        endpoint=_as_url(endpoint),
        endpoint_source=source,
        cgroup_driver=option(argv, "cgroup-driver") or _last([_yaml_value(text, "cgroupDriver") for text in texts]),
        hostname_override=option(argv, "hostname-override"),
        node_name=_node_name(root, kubeconfig),
        kubeconfig=kubeconfig,
    )


def _as_url(endpoint: str) -> str:
    """A socket as a URL: the kubelet also takes a bare path."""
    return "unix://" + endpoint if endpoint.startswith("/") else endpoint


def socket_path(endpoint: t.Optional[str]) -> t.Optional[str]:
    """The path of a unix socket, or None for anything else."""
    path = re.sub(r"^unix:(//)?", "", endpoint or "")
    return path if path.startswith("/") else None


def _last(values: t.Sequence[t.Optional[str]]) -> t.Optional[str]:
    given = [value for value in values if value]
    return given[-1] if given else None


def _drop_ins(root: str, directory: t.Optional[str]) -> t.List[bytes]:
    if not directory:
        return []
    try:
        names = sorted(name for name in os.listdir(root + directory) if name.endswith(".conf"))
    except OSError:
        return []
    return [_read("%s%s/%s" % (root, directory, name)) for name in names]


def _yaml_value(text: bytes, key: str) -> t.Optional[str]:
    """A top-level scalar of a YAML or JSON document."""
    stripped = text.lstrip()
    if stripped.startswith(b"{"):
        try:
            value = json.loads(stripped.decode("utf-8")).get(key)
        except (ValueError, AttributeError, RecursionError):
            return None
        return value if isinstance(value, str) else None
    lines = re.findall(rb"""^["']?%s["']?[ \t]*:[ \t]+(.*)$""" % re.escape(key.encode()), text, re.MULTILINE)
    values = [value for value in map(_yaml_scalar, lines) if value is not None]
    return values[-1].decode("utf-8", "replace") if values else None


def _yaml_scalar(rest: bytes) -> t.Optional[bytes]:
    """The scalar that the rest of a line begins with, without quotes and the comment behind it; None: it begins with none."""
    if rest[:1] in (b'"', b"'"):
        value, quote, behind = rest[1:].partition(rest[:1])
        return value if quote and behind.strip(b" \t\r")[:1] in (b"", b"#") else None
    value = rest.partition(b"#")[0].rstrip(b" \t\r")
    return value or None


def _node_name(root: str, kubeconfig: t.Optional[str]) -> t.Optional[str]:
    """NAME of system:node:NAME, from the kubeconfig's user or the subject of its client certificate."""
    if not kubeconfig:
        return None
    text = _read(root + kubeconfig)
    match = _NODE_NAME.search(text)
    if match:
        return match.group(1).decode()
    pems = [_decoded(data) for data in _CERTIFICATE_DATA.findall(text)]
    pems += [_read(root + path.decode("utf-8", "replace")) for path in _CERTIFICATE_FILE.findall(text)]
    for pem in pems:
        for body in _CERTIFICATE.findall(pem):
            name = _subject_name(_decoded(body))
            if name:
                return name
    return None


def _decoded(data: bytes) -> bytes:
    """Base64 decoded, empty when it is none."""
    try:
        return binascii.a2b_base64(data)
    except binascii.Error:
        return b""


def _subject_name(certificate: bytes) -> t.Optional[str]:
    """The node's name in a certificate in DER: a text there is a tag, the length in one byte, and its bytes (X.690, 8.1)."""
    match = _SUBJECT.search(certificate)
    if not match:
        return None
    start = match.start("text")
    text = certificate[start : start + certificate[start - 1]]
    name = _NODE_NAME.fullmatch(text)
    return name.group(1).decode() if name else None


def _read(path: str) -> bytes:
    """A file of the kubelet, empty when it cannot be read: what it would say is then not known."""
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_SIZE)
    except OSError:
        return b""
