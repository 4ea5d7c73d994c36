# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The root files of the matrix, as distributions and tools write them, each with and without files of other tools.

What this proves: nothing by itself. Every tree is a node that exists: the texts are those of the packages and installers, with
the names of registries replaced.
"""

from __future__ import annotations

import typing as t

from tests.testbed.host import CONFIG, SOCKET, ContainerdHost

OLD = 'plugins."io.containerd.grpc.v1.cri"'
NEW = 'plugins."io.containerd.cri.v1.runtime"'
SHORT = "plugins.cri"
CONF_D = "/etc/containerd/conf.d"
K3S = "/var/lib/rancher/k3s/agent/etc/containerd"
RKE2 = "/var/lib/rancher/rke2/agent/etc/containerd"
K3S_SOCKET = "/run/k3s/containerd/containerd.sock"
K0S = "/etc/k0s"
K0S_SOCKET = "/run/k0s/containerd.sock"
MICROK8S = "/var/snap/microk8s/current/args"
MICROK8S_SOCKET = "/var/snap/microk8s/common/run/containerd.sock"
_IMPORTS = 'imports = ["%s/*.toml"]\n' % CONF_D

Files = t.Dict[str, str]


class Tree(t.NamedTuple):
    """A node before the product comes.

    :ivar files: path → text. ``programs``: executables that its handlers need.
    :ivar config: the root file; ``socket`` and ``arguments`` of the daemon.
    :ivar before_start: a script that runs before each start, as k3s renders its file; "": none.
    :ivar marks: empty files by which the distribution is known.
    """

    files: Files
    config: str = CONFIG
    socket: str = SOCKET
    arguments: t.Tuple[str, ...] = ()
    before_start: str = ""
    marks: t.Tuple[str, ...] = ()
    programs: t.Tuple[str, ...] = ()


class Root(t.NamedTuple):
    """One kind of root file.

    :ivar make: (node, release line, with files of other tools) → the tree.
    :ivar repair: line → the words with which the product must refuse it without ``repair: true``; None: it must not.
    :ivar never: (line, with files of other tools, the declaration changes the default) → the words with which it must refuse,
        whatever is asked, for the reason beside the root below; None: it must not.
    """

    name: str
    make: t.Callable[[ContainerdHost, str, bool], Tree]
    repair: t.Callable[[str, bool], t.Optional[str]]
    never: t.Callable[[str, bool, bool], t.Optional[str]] = lambda line, foreign, default: None


def is_modern(line: str) -> bool:
    return line.startswith("2.")


# ---- files of other tools


def _foreign(line: str, version: t.Optional[int], plugin: str) -> Files:
    """Two drop-ins: one without anything of CRI, and the one of a device toolkit with a handler of its own.

    On 1.x a drop-in replaces the whole CRI section, so the toolkit repeats the runc of the root file there.
    """
    head = "version = %d\n" % version if version else ""
    runc = ""
    if not is_modern(line):
        runc = '[%s.containerd]\n  default_runtime_name = "runc"\n%s' % (plugin, _runc(plugin))
    return {
        CONF_D + "/10-tuning.toml": head + '# ours, says the platform team\n[timeouts]\n  "io.containerd.timeout.task.state" = "3s"\n',
        CONF_D + "/50-toolkit.toml": head + runc + _handler(plugin, "toolkit", "/usr/bin/crun"),
    }


def _runc(plugin: str) -> str:
    return _handler(plugin, "runc", "")


def _handler(plugin: str, name: str, binary: str, cgroup: t.Optional[bool] = None) -> str:
    text = '\n[%s.containerd.runtimes.%s]\n  runtime_type = "io.containerd.runc.v2"\n' % (plugin, name)
    options = ['BinaryName = "%s"' % binary] if binary else []
    options += ["SystemdCgroup = %s" % str(cgroup).lower()] if cgroup is not None else []
    if options:
        text += "  [%s.containerd.runtimes.%s.options]\n    %s\n" % (plugin, name, "\n    ".join(options))
    return text


def _with_imports(text: str) -> str:
    return _IMPORTS + text


# ---- the root files


_DEBIAN = """version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
      conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd/opt"
"""


def _distribution(_host: ContainerdHost, line: str, foreign: bool) -> Tree:
    if not foreign:
        return Tree({CONFIG: _DEBIAN})
    return Tree({CONFIG: _with_imports(_DEBIAN), **_foreign(line, 2, OLD)})


def _config_default(host: ContainerdHost, line: str, foreign: bool) -> Tree:
    """What people make with `containerd config default >/etc/containerd/config.toml`."""
    done = host.run(["/usr/bin/containerd", "config", "default"])
    assert done.returncode == 0 and "[plugins" in done.stdout, done.stderr
    text = done.stdout
    if not foreign:
        return Tree({CONFIG: text})
    assert "\nimports = [" in text, "the default configuration has an imports key on every line"
    lines = ['imports = ["%s/*.toml"]' % CONF_D if one.startswith("imports = [") else one for one in text.split("\n")]
    version = int(next(one for one in text.split("\n") if one.startswith("version = ")).split()[-1])
    plugin = NEW if version >= 3 else OLD
    return Tree({CONFIG: "\n".join(lines), **_foreign(line, version, plugin)})


_EKS_3 = """version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "/run/containerd/containerd.sock"

[plugins.'io.containerd.cri.v1.images']
discard_unpacked_layers = true

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "registry.example/eks/pause:3.10"

[plugins."io.containerd.cri.v1.images".registry]
config_path = "/etc/containerd/certs.d:/etc/docker/certs.d"

[plugins.'io.containerd.cri.v1.runtime']
enable_cdi = true

[plugins.'io.containerd.cri.v1.runtime'.containerd]
default_runtime_name = "runc"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = "/usr/sbin/runc"
SystemdCgroup = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dir = "/opt/cni/bin"
conf_dir = "/etc/cni/net.d"
"""
_EKS_2 = """version = 2
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "/run/containerd/containerd.sock"

[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "runc"
discard_unpacked_layers = true

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "registry.example/eks/pause:3.10"

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "/etc/containerd/certs.d:/etc/docker/certs.d"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = "/usr/sbin/runc"
SystemdCgroup = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/opt/cni/bin"
conf_dir = "/etc/cni/net.d"
"""


def _eks(_host: ContainerdHost, line: str, foreign: bool) -> Tree:
    text, version, plugin = (_EKS_3, 3, NEW) if is_modern(line) else (_EKS_2, 2, OLD)
    files = {CONFIG: _with_imports(text), **_foreign(line, version, plugin)} if foreign else {CONFIG: text}
    return Tree(files, marks=("/etc/eks/.keep",), programs=("/usr/sbin/runc",))


_AKS = """version = 2
oom_score = -999
[plugins."io.containerd.cri.v1.images"]
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "registry.example/pause:3.6"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "/etc/containerd/certs.d"
[plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = "/usr/bin/runc"
      SystemdCgroup = true
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.untrusted]
      runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.untrusted.options]
      BinaryName = "/usr/bin/runc"
"""


def _aks(_host: ContainerdHost, line: str, foreign: bool) -> Tree:
    """A file of version 2 with the plugin names of version 3, as AKS has it on containerd 2.x."""
    plugin = NEW if is_modern(line) else OLD
    files = {CONFIG: _with_imports(_AKS), **_foreign(line, 2, plugin)} if foreign else {CONFIG: _AKS}
    return Tree(files, marks=("/opt/azure/containers/.keep",), programs=("/usr/bin/runc",))


_DOCKER = """#   Copyright 2018-2022 Docker Inc.

disabled_plugins = ["cri"]

#root = "/var/lib/containerd"
#state = "/run/containerd"
#subreaper = true
#oom_score = 0

#[grpc]
#  address = "/run/containerd/containerd.sock"
#  uid = 0
#  gid = 0
"""


def _docker(_host: ContainerdHost, _line: str, foreign: bool) -> Tree:
    """CRI is disabled, so the files of other tools are none of CRI."""
    if not foreign:
        return Tree({CONFIG: _DOCKER})
    files = {
        CONF_D + "/10-tuning.toml": '# ours\n[timeouts]\n  "io.containerd.timeout.task.state" = "3s"\n',
        CONF_D + "/50-debug.toml": '[debug]\n  level = "info"\n',
    }
    return Tree({CONFIG: _with_imports(_DOCKER), **files})


_GKE = """oom_score = -999
disabled_plugins = ["restart"]

[plugins.linux]
  shim = "/usr/bin/containerd-shim"
  runtime = "/usr/bin/runc"

[plugins.cri]
  stream_server_address = "127.0.0.1"
  max_container_log_line_size = 262144
  sandbox_image = "registry.example/pause:3.9"
[plugins.cri.cni]
  bin_dir = "/home/kubernetes/bin"
  conf_dir = "/etc/cni/net.d"
[plugins.cri.containerd]
  default_runtime_name = "runc"
[plugins.cri.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins.cri.containerd.runtimes.untrusted]
  runtime_type = "io.containerd.runc.v2"
"""


def _gke(_host: ContainerdHost, line: str, foreign: bool) -> Tree:
    """Version 1 with its short names; the files of other tools speak the same."""
    files = {CONFIG: _with_imports(_GKE), **_foreign(line, None, SHORT)} if foreign else {CONFIG: _GKE}
    return Tree(files, marks=("/home/kubernetes/kube-env",))


_K3S_3 = """# File generated by {kind}. DO NOT EDIT. Use config-v3.toml.tmpl instead.
version = 3
imports = ["{dir}/config-v3.toml.d/*.toml"]
root = "/var/lib/rancher/{kind}/agent/containerd"
state = "/run/k3s/containerd"

[grpc]
  address = "/run/k3s/containerd/containerd.sock"

[plugins.'io.containerd.internal.v1.opt']
  path = "/var/lib/rancher/{kind}/agent/containerd"

[plugins.'io.containerd.grpc.v1.cri']
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"

[plugins.'io.containerd.cri.v1.runtime']
  enable_selinux = false
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true
  device_ownership_from_security_context = false

[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  disable_snapshot_annotations = true

[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "registry.example/mirrored-pause:3.6"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = false

[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = "{dir}/certs.d"
"""
_K3S_2 = """# File generated by {kind}. DO NOT EDIT. Use config.toml.tmpl instead.
version = 2
root = "/var/lib/rancher/{kind}/agent/containerd"
state = "/run/k3s/containerd"

[grpc]
  address = "/run/k3s/containerd/containerd.sock"

[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/rancher/{kind}/agent/containerd"

[plugins."io.containerd.grpc.v1.cri"]
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  enable_selinux = false
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true
  sandbox_image = "registry.example/mirrored-pause:3.6"

[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"
  disable_snapshot_annotations = true

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false

[plugins."io.containerd.grpc.v1.cri".registry]
  config_path = "{dir}/certs.d"
"""
#: What k3s does before it starts containerd: the template, with its own file in place of "base"; without one, its own file.
_K3S_RENDER = """#!/usr/bin/python3
import os, re
directory = "{dir}"
base = open("/run/k3s-base.toml").read()
names = {names}
template = next((name for name in names if os.path.exists(directory + "/" + name)), None)
text = open(directory + "/" + template).read() if template else base
text = re.sub(r'\\{{\\{{-?\\s*template\\s+"base"\\s+\\.\\s*-?\\}}\\}}', lambda _: base, text)
assert "{{{{" not in text, "a template of a person's own is not rendered here"
with open(directory + "/config.toml", "w") as file:
    file.write(text)
"""


def _rancher(kind: str, directory: str, line: str, foreign: bool) -> Tree:
    """The rendered file, and the rendering at each start. The files of other tools are drop-ins of config-v3.toml.d, or on 1.x a template."""
    modern = is_modern(line)
    base = (_K3S_3 if modern else _K3S_2).format(dir=directory, kind=kind)
    files = {directory + "/config.toml": base, "/run/k3s-base.toml": base}
    if foreign and modern:
        texts = _foreign(line, 3, NEW)
        files.update({path.replace(CONF_D, directory + "/config-v3.toml.d"): text for path, text in texts.items()})
    elif foreign:
        template = '{{ template "base" . }}\n\n# the platform team\'s' + _handler(OLD, "toolkit", "/usr/bin/crun")
        files[directory + "/config.toml.tmpl"] = template
        files[directory + "/config.toml"] = template.replace('{{ template "base" . }}', base)
    names = ["config-v3.toml.tmpl", "config.toml.tmpl"] if modern else ["config.toml.tmpl"]
    config = directory + "/config.toml"
    return Tree(files, config, K3S_SOCKET, ("-c", config), _K3S_RENDER.format(dir=directory, names=names))


def _k3s(_host: ContainerdHost, line: str, foreign: bool) -> Tree:
    return _rancher("k3s", K3S, line, foreign)


def _rke2(_host: ContainerdHost, line: str, foreign: bool) -> Tree:
    return _rancher("rke2", RKE2, line, foreign)


_K0S_ROOT = """# k0s_managed=true
# k0s writes this file anew at each start; take the line above away to manage it yourself.
version = {version}
imports = [{imports}]
"""
_K0S_2 = """version = 2

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.example/pause:3.9"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/opt/cni/bin"
"""
_K0S_3 = """version = 3

[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "registry.example/pause:3.9"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dir = "/opt/cni/bin"
"""
#: What k0s does before it starts containerd: drop-ins of CRI are merged, key by key and in the order of their names, into
#: one file; the others are imported one by one.
_K0S_RENDER = """#!/usr/bin/python3
import glob, json, os, tomllib
def merge(into, other):
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value
def text(table, path=()):
    plain = ["%s = %s" % (json.dumps(key), json.dumps(value)) for key, value in table.items() if not isinstance(value, dict)]
    head = ["[%s]" % ".".join(map(json.dumps, path))] if path else []
    inner = [text(value, path + (key,)) for key, value in table.items() if isinstance(value, dict)]
    return "\\n".join(head + plain + inner) + "\\n"
cri = tomllib.loads(open("/run/k0s-base.toml").read())
imports = ["/run/k0s/containerd-cri.toml"]
for path in sorted(glob.glob("/etc/k0s/containerd.d/*.toml")):
    tree = tomllib.load(open(path, "rb"))
    if any(".cri" in name for name in tree.get("plugins", {})):
        merge(cri, tree)
    else:
        imports.append(path)
os.makedirs("/run/k0s", exist_ok=True)
open("/run/k0s/containerd-cri.toml", "w").write(text(cri))
root = open("/run/k0s-root.toml").read()
open("/etc/k0s/containerd.toml", "w").write(root.replace("IMPORTS", ", ".join(json.dumps(one) for one in imports)))
"""


def _k0s(_host: ContainerdHost, line: str, foreign: bool) -> Tree:
    """The root file and the merged file are rendered at each start; other tools' files lie in containerd.d."""
    version, base, plugin = (3, _K0S_3, NEW) if is_modern(line) else (2, _K0S_2, OLD)
    config = K0S + "/containerd.toml"
    root = _K0S_ROOT.format(version=version, imports="IMPORTS")
    # Its first start makes the directory.
    files = {"/run/k0s-base.toml": base, "/run/k0s-root.toml": root, config: root.replace("IMPORTS", "")}
    if foreign:
        files.update({path.replace(CONF_D, K0S + "/containerd.d"): text for path, text in _foreign(line, version, plugin).items()})
    arguments = ("--config=" + config, "--address=" + K0S_SOCKET, "--state=/run/k0s/containerd")
    return Tree(files, config, K0S_SOCKET, arguments, _K0S_RENDER)


_MICROK8S = """version = 2
oom_score = 0

# the template of the snap
[metrics]
  address = ""

[plugins."io.containerd.grpc.v1.cri"]
  stream_server_address = "127.0.0.1"
  sandbox_image = "registry.example/pause:3.7"

  # ${SNAPSHOTTER} and ${RUNTIME} are decided at each start
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "${SNAPSHOTTER}"
    default_runtime_name = "${RUNTIME}"

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "${RUNTIME_TYPE}"

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${SNAP_DATA}/opt/cni/bin"
    conf_dir = "${SNAP_DATA}/args/cni-network"

  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "${SNAP_DATA}/args/certs.d"
"""
#: What the snap does before it starts containerd.
_MICROK8S_RENDER = """#!/bin/sh
sed -e 's,${{SNAPSHOTTER}},overlayfs,g' -e 's,${{RUNTIME}},runc,g' -e 's,${{RUNTIME_TYPE}},io.containerd.runc.v2,g' \\
    -e 's,${{SNAP_DATA}},/var/snap/microk8s/current,g' <{dir}/containerd-template.toml >{dir}/containerd.toml
"""


def _microk8s(_host: ContainerdHost, _line: str, foreign: bool) -> Tree:
    """The template, from which the root file is rendered at each start; another tool has put a handler into the template."""
    config = MICROK8S + "/containerd.toml"
    template = _MICROK8S + (_handler(OLD, "toolkit", "/usr/bin/crun") if foreign else "")
    arguments = ("--config", config, "--address", MICROK8S_SOCKET)
    return Tree({MICROK8S + "/containerd-template.toml": template}, config, MICROK8S_SOCKET, arguments, _MICROK8S_RENDER.format(dir=MICROK8S))


_KUBESPRAY_2 = """version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0

[grpc]
  max_recv_message_size = 16777216
  max_send_message_size = 16777216

[debug]
  address = ""
  level = "info"
  format = ""
  uid = 0
  gid = 0

[metrics]
  address = ""
  grpc_histogram = false

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    sandbox_image = "registry.example/pause:3.9"
    max_container_log_line_size = 16384
    enable_unprivileged_ports = false
    enable_unprivileged_icmp = false
    [plugins."io.containerd.grpc.v1.cri".containerd]
      default_runtime_name = "runc"
      snapshotter = "overlayfs"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes]
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
          runtime_type = "io.containerd.runc.v2"
          [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
            SystemdCgroup = true
            BinaryName = "/usr/local/bin/runc"
    [plugins."io.containerd.grpc.v1.cri".registry]
      config_path = "/etc/containerd/certs.d"
"""
_KUBESPRAY_3 = """version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0

[grpc]
  max_recv_message_size = 16777216
  max_send_message_size = 16777216

[debug]
  level = "info"

[plugins]
  [plugins."io.containerd.cri.v1.images"]
    snapshotter = "overlayfs"
    [plugins."io.containerd.cri.v1.images".pinned_images]
      sandbox = "registry.example/pause:3.10"
    [plugins."io.containerd.cri.v1.images".registry]
      config_path = "/etc/containerd/certs.d"
  [plugins."io.containerd.cri.v1.runtime"]
    max_container_log_line_size = 16384
    enable_unprivileged_ports = false
    enable_unprivileged_icmp = false
    [plugins."io.containerd.cri.v1.runtime".containerd]
      default_runtime_name = "runc"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes]
        [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
          runtime_type = "io.containerd.runc.v2"
          [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
            SystemdCgroup = true
            BinaryName = "/usr/local/bin/runc"
"""


def _kubespray(_host: ContainerdHost, line: str, foreign: bool) -> Tree:
    text, version, plugin = (_KUBESPRAY_3, 3, NEW) if is_modern(line) else (_KUBESPRAY_2, 2, OLD)
    files = {CONFIG: _with_imports(text), **_foreign(line, version, plugin)} if foreign else {CONFIG: text}
    return Tree(files, marks=("/etc/kubernetes/kubelet-config.yaml",), programs=("/usr/local/bin/runc",))


def _unread(line: str) -> Files:
    """Drop-ins that nothing reads, because no root file imports them: they must stay unread."""
    return _foreign(line, 2, OLD)


def _empty(_host: ContainerdHost, line: str, foreign: bool) -> Tree:
    return Tree({CONFIG: "", **(_unread(line) if foreign else {})})


def _absent(_host: ContainerdHost, line: str, foreign: bool) -> Tree:
    return Tree(_unread(line) if foreign else {})


def _never(_line: str, _foreign: bool) -> t.Optional[str]:
    return None


def _gke_never(line: str, foreign: bool, _default: bool) -> t.Optional[str]:
    """On 1.x a root file of version 2 does not start with another tool's file of version 1, which is not ours to change."""
    return "50-toolkit.toml, line 4: invalid plugin key URI 'cri'" if foreign and not is_modern(line) else None


def _k3s_never(line: str, _foreign: bool, default: bool) -> t.Optional[str]:
    """The template of 1.x can only be added to: its [containerd] table is k3s' own."""
    return "its template can only be added to" if default and not is_modern(line) else None


def _gke_refusal(line: str, foreign: bool) -> t.Optional[str]:
    """2.3 and later migrate version 1 by themselves."""
    return None if line in ("2.3", "2.4") else "short name plugins.cri"


ROOTS: t.Tuple[Root, ...] = (
    Root("distribution", _distribution, _never),
    Root("config-default", _config_default, _never),
    Root("eks", _eks, _never),
    Root("aks-hybrid", _aks, _never),
    Root("docker", _docker, lambda line, foreign: "disabled_plugins"),
    Root("gke-v1", _gke, _gke_refusal, _gke_never),
    Root("k3s", _k3s, _never, _k3s_never),
    Root("rke2", _rke2, _never, _k3s_never),
    Root("k0s", _k0s, _never),
    Root("microk8s", _microk8s, _never),
    Root("kubespray", _kubespray, _never),
    Root("empty", _empty, _never),
    Root("absent", _absent, _never),
)

__all__ = ("K3S", "ROOTS", "Root", "Tree", "is_modern")
