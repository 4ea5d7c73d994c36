# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes for tests of the rendering: root files as distributions ship them, releases, and captures made of texts."""

from __future__ import annotations

import hashlib
import typing as t

CONFIG = "/etc/containerd/config.toml"
OLD, NEW, IMAGES = (
    'plugins."io.containerd.grpc.v1.cri"',
    'plugins."io.containerd.cri.v1.runtime"',
    'plugins."io.containerd.cri.v1.images"',
)

#: One patch level for each line (2.3 twice: 2.3.0 to 2.3.4 refuse a drop-in that is newer than the root file).
RELEASES = ("1.4.13", "1.5.18", "1.6.20", "1.6.36", "1.7.13", "1.7.28", "2.0.5", "2.1.4", "2.2.1", "2.3.4", "2.3.7", "2.4.0")

VERSION_2 = """\
# Written by an administrator.
version = 2
root = "/var/lib/containerd"   # the data

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.example/pause:3.9"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = true
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.foo]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".registry.configs."registry.example".auth]
    password = "__RUNTIME_GATE_MASKED_1__"

# the end
[debug]
  level = "info"
"""
VERSION_3 = """\
version = 3
imports = [
  "/etc/containerd/conf.d/*.toml",  # for everyone
]

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = 'registry.example/pause:3.9'

[plugins.'io.containerd.cri.v1.runtime'.containerd]
default_runtime_name = 'runc'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = true
"""
VERSION_4 = VERSION_3.replace("version = 3", "version = 4")
SHORT_NAMES = """\
disabled_plugins = ["restart"]
oom_score = -999
[plugins.cri]
  stream_server_address = "127.0.0.1"
  [plugins.cri.containerd]
    default_runtime_name = "runc"
    [plugins.cri.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
"""
NO_VERSION = VERSION_2.replace("version = 2\n", "")
BOTH_NAMES = """\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.example/pause:3.9"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.foo]
    runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.bar]
  runtime_type = "io.containerd.runc.v2"
"""
NEW_NAMES_2 = """\
version = 2
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "registry.example/pause:3.9"
[plugins."io.containerd.cri.v1.runtime".containerd]
  default_runtime_name = "runc"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      SystemdCgroup = true
"""
DOCKER = 'disabled_plugins = ["cri"]\n\n#root = "/var/lib/containerd"\n'
EMPTY = "# nothing here\n"


def handler(plugin: str, name: str, more: str = "") -> str:
    """A runc-type handler's table as another tool would write it."""
    return f'[{plugin}.containerd.runtimes.{name}]\n  runtime_type = "io.containerd.runc.v2"\n{more}'


def capture(files: t.Mapping[str, str], version: t.Optional[str], **node: t.Any) -> t.Dict[str, t.Any]:
    """What a collector would bring from a node with these files, whose daemon does not run."""
    digests = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in files.items()}
    facts: t.Dict[str, t.Any] = {"engine": "containerd", "config_path": CONFIG, "sha256": digests, "cri_state": "not_running"}
    if version:
        facts["version"] = version
    facts.update(node)
    return {"format": 1, "node": facts, "files": dict(files), "dump": None, "status_config": None, "info": None}


def status(handlers: t.Mapping[str, t.Mapping[str, t.Any]], default: str = "runc") -> t.Dict[str, t.Any]:
    """The CRI answer of a daemon that has these handlers loaded."""
    return {"status": {}, "config": {"containerd": {"runtimes": dict(handlers), "defaultRuntimeName": default}}}


def after(files: t.Mapping[str, str], plan: t.Mapping[str, t.Any]) -> t.Dict[str, str]:
    """The files after a plan was applied."""
    changed = dict(files)
    for write in plan["writes"]:
        if write["text"] is None:
            del changed[write["path"]]
        else:
            changed[write["path"]] = write["text"]
    return changed
