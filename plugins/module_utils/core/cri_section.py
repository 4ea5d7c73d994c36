# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CRI plugin's part of a load: its handlers, its default, and whether the plugin would come up at all.

Sources: ``pkg/cri/config/config.go`` (1.x ValidatePluginConfig), ``internal/cri/config/config.go`` (2.x
ValidateRuntimeConfig, ValidateImageConfig), ``plugins/cri/images/plugin.go`` (snapshotter), release lines 1.4 to 2.4.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import Tree
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.load import (
    DURATION,
    Load,
    Refusal,
    field,
    struct_key,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import (
    NEW_IMAGES,
    NEW_RUNTIME,
    OLD_CRI,
    SHORT_CRI,
    LineRules,
)

RUNC_V2 = "io.containerd.runc.v2"
LINUX_V1 = "io.containerd.runtime.v1.linux"

#: Snapshotters that are compiled in on Linux; others come as proxy plugins.
BUILTIN_SNAPSHOTTERS = frozenset(["overlayfs", "native", "btrfs", "devmapper", "zfs", "aufs", "blockfile", "erofs", "stargz"])
_DEVMAPPER = "io.containerd.snapshotter.v1.devmapper"
_PROXY_SNAPSHOTTER_TYPES = ("snapshot", "io.containerd.snapshotter.v1")

#: Fields of a handler whose type the daemon checks while decoding (a wrong one stops the daemon).
_HANDLER_TYPES: t.Dict[str, t.Any] = {
    "runtime_type": str,
    "runtime_path": str,
    "runtime_engine": str,
    "runtime_root": str,
    "base_runtime_spec": str,
    "cni_conf_dir": str,
    "snapshotter": str,
    "sandboxer": str,
    "sandbox_mode": str,
    "io_type": str,
    "privileged_without_host_devices": bool,
    "privileged_without_host_devices_all_devices_allowed": bool,
    "cgroup_writable": bool,
    "pod_annotations": list,
    "container_annotations": list,
    "options": dict,
}


class Down(t.NamedTuple):
    """Why the CRI plugin would not come up (LOADING: containerd stays active all the same)."""

    #: disabled, default_missing, default_empty, mirrors, base_spec, snapshotter, legacy, devices_allowed, io_type,
    #: cgroup_writable
    kind: str
    message: str
    plugin: str = ""
    handler: str = ""
    key: str = ""
    value: t.Any = None


class Section(t.NamedTuple):
    """What a start would give CRI.

    :ivar name: the key in ``[plugins]`` that is read; "" where there is none.
    :ivar body: that table.
    :ivar handlers: name → the handler's table with the built-in values filled in.
    :ivar default: the default handler.
    :ivar written_default: ``default_runtime_name`` as the files have it (1.x may overwrite it), or None.
    :ivar down: why CRI would not be served, or None.
    :ivar refusal: a value of the wrong type that stops the daemon, or None.
    """

    name: str
    body: Tree
    handlers: t.Dict[str, Tree]
    default: str
    written_default: t.Optional[str]
    down: t.Optional[Down]
    refusal: t.Optional[Refusal]

    @property
    def served_handlers(self) -> t.Dict[str, Tree]:
        """The handlers that CRI would answer with: none where it is not served."""
        return {} if self.down or self.refusal else self.handlers


def section_name(load: Load) -> str:
    """The plugin key that this load reads handlers from."""
    if load.rules.modern:
        return NEW_RUNTIME
    return SHORT_CRI if load.version == 1 else OLD_CRI


def builtin_runc(rules: LineRules) -> Tree:
    """The handler that every line has before any file is read (``DefaultRuntimeConfig``)."""
    return {"runtime_type": RUNC_V2, "options": {}}


def resolve(load: Load, absent: t.Collection[str] = (), cgroup_version: t.Optional[int] = None) -> Section:
    """The CRI section of a load that was not refused.

    :param absent: paths that are known not to exist on the node.
    :param cgroup_version: 1 or 2, None where it is not known.
    """
    rules = load.rules
    name = section_name(load)
    body = load.plugins.get(name)
    body = body if isinstance(body, dict) else {}
    containerd = _containerd_table(body, rules)
    refusal = _wrong_types(load, name, containerd)
    handlers = {} if refusal else _handlers(containerd, rules)
    written = field(containerd, "default_runtime_name", rules)
    default = written if isinstance(written, str) else "runc"
    if rules.legacy_runtimes and not refusal:
        default = _legacy(containerd, handlers, rules, default)
    down = None
    if refusal is None:
        down = (
            _down(load, body, containerd, handlers, default)
            or _handler_conflicts(handlers, frozenset(absent), cgroup_version)
            or _image_conflicts(load, body, containerd)
            or _bad_duration(load)
        )
    return Section(name, body, handlers, default, written, down, refusal)


def _containerd_table(body: Tree, rules: LineRules) -> Tree:
    table = field(body, "containerd", rules)
    if isinstance(table, dict):
        return table
    return body if table is None and rules.promotes_runtimes else {}


def _handlers(containerd: Tree, rules: LineRules) -> t.Dict[str, Tree]:
    written = field(containerd, "runtimes", rules)
    tables = dict(written) if isinstance(written, dict) else None
    handlers: t.Dict[str, Tree] = {}
    if tables is None or rules.builtin_runc != "dropped":
        handlers["runc"] = builtin_runc(rules)
    for name, body in (tables or {}).items():
        if rules.builtin_runc == "merged" and name in handlers:
            handlers[name] = dict(handlers[name], **_canonical(body, rules))
        else:
            handlers[name] = _canonical(body, rules)
    return handlers


def _canonical(body: Tree, rules: LineRules) -> Tree:
    """A handler's table under the daemon's own key names; keys that it does not know are left out."""
    known = sorted(rules.handler_keys)
    return {name: field(body, name, rules) for name in known if struct_key(body, name, rules) is not None}


def _legacy(containerd: Tree, handlers: t.Dict[str, Tree], rules: LineRules, default: str) -> str:
    """1.x: ``default_runtime`` becomes handler ``default`` and the default; ``untrusted_workload_runtime`` likewise."""
    old_default = field(containerd, "default_runtime", rules)
    if isinstance(old_default, dict) and field(old_default, "runtime_type", rules):
        handlers["default"] = _canonical(old_default, rules)
        default = "default"
    untrusted = field(containerd, "untrusted_workload_runtime", rules)
    if isinstance(untrusted, dict) and field(untrusted, "runtime_type", rules):
        handlers.setdefault("untrusted", _canonical(untrusted, rules))
    return default


def _wrong_types(load: Load, name: str, containerd: Tree) -> t.Optional[Refusal]:
    """A field that the daemon cannot decode: it does not start."""
    rules = load.rules
    runtimes = field(containerd, "runtimes", rules)
    if runtimes is not None and not isinstance(runtimes, dict):
        return _type_refusal(load, name, "containerd.runtimes", "must be a table", ("containerd", "runtimes"))
    default = field(containerd, "default_runtime_name", rules)
    if default is not None and not isinstance(default, str):
        return _type_refusal(load, name, "default_runtime_name", "must be a string", ("containerd",))
    for handler, body in (runtimes or {}).items():
        if not isinstance(body, dict):
            return _type_refusal(load, name, "runtimes.%s" % handler, "must be a table", ("containerd", "runtimes"))
        for key, kind in _HANDLER_TYPES.items():
            value = field(body, key, rules)
            if key in rules.handler_keys and value is not None and not isinstance(value, kind):
                where = "%s of handler %s" % (key, handler)
                return _type_refusal(load, name, where, "has the wrong type", ("containerd", "runtimes", handler, key))
    return None


def _type_refusal(load: Load, name: str, what: str, said: str, below: t.Tuple[str, ...]) -> Refusal:
    path = ("plugins", name) + below
    for document in reversed(load.order):
        for size in range(len(path), 2, -1):
            line = document.line_of(path[:size])
            if line and _has(document.tree or {}, path[:size]):
                return Refusal("wrong_type", document.path, line, "%s %s" % (what, said), key=path[size - 1])
    return Refusal("wrong_type", load.order[-1].path, 0, "%s %s" % (what, said))


def _has(tree: Tree, path: t.Tuple[str, ...]) -> bool:
    node: t.Any = tree
    for part in path:
        if not isinstance(node, dict) or part not in node:
            return False
        node = node[part]
    return True


def _down(
    load: Load, body: Tree, containerd: Tree, handlers: t.Dict[str, Tree], default: str
) -> t.Optional[Down]:
    disabled = _disabled(load)
    if disabled:
        return Down("disabled", "%s stands in disabled_plugins" % disabled, plugin=disabled)
    legacy = _legacy_conflicts(load, body, containerd, handlers, default)
    if legacy:
        return legacy
    if default == "":
        return Down("default_empty", "`default_runtime_name` is empty", key="default_runtime_name")
    if default not in handlers:
        message = "no corresponding runtime configured in `containerd.runtimes` for default_runtime_name = %r" % default
        return Down("default_missing", message, handler=default, key="default_runtime_name")
    return None


def _disabled(load: Load) -> str:
    """The disabled plugin without which CRI is not served, or ""."""
    if not load.rules.modern and load.version == 1:
        return SHORT_CRI if SHORT_CRI in load.disabled else ""
    return next((uri for uri in load.rules.needed_plugins if uri in load.disabled), "")


def _legacy_conflicts(
    load: Load, body: Tree, containerd: Tree, handlers: t.Dict[str, Tree], default: str
) -> t.Optional[Down]:
    """Checks of keys that only 1.x knows."""
    rules = load.rules
    if not rules.legacy_runtimes:
        return None
    untrusted = field(containerd, "untrusted_workload_runtime", rules)
    runtimes = field(containerd, "runtimes", rules)
    if isinstance(untrusted, dict) and field(untrusted, "runtime_type", rules) and "untrusted" in (runtimes or {}):
        return Down("legacy", "both `untrusted_workload_runtime` and `runtimes.untrusted` are set", handler="untrusted")
    default_type = (handlers.get(default) or {}).get("runtime_type")
    if field(body, "systemd_cgroup", rules) is True and default_type != LINUX_V1 and default in handlers:
        return Down("legacy", "`systemd_cgroup` only works for runtime %s" % LINUX_V1, key="systemd_cgroup")
    if field(containerd, "no_pivot", rules) is True and default_type != LINUX_V1 and default in handlers:
        return Down("legacy", "`no_pivot` only works for runtime %s" % LINUX_V1, key="no_pivot")
    for name, handler in sorted(handlers.items()) if default in handlers else ():
        for key in ("runtime_engine", "runtime_root"):
            if handler.get(key) and handler.get("runtime_type") != LINUX_V1:
                return Down("legacy", "`%s` only works for runtime %s" % (key, LINUX_V1), handler=name, key=key)
    return None


def _handler_conflicts(
    handlers: t.Dict[str, Tree], absent: t.FrozenSet[str], cgroup_version: t.Optional[int]
) -> t.Optional[Down]:
    for name, handler in sorted(handlers.items()):
        if handler.get("cgroup_writable") and cgroup_version == 1:
            message = "runtime %s: `cgroup_writable` is only supported on cgroup v2" % name
            return Down("cgroup_writable", message, handler=name, key="cgroup_writable")
        if handler.get("privileged_without_host_devices_all_devices_allowed") and not handler.get(
            "privileged_without_host_devices"
        ):
            message = (
                "`privileged_without_host_devices_all_devices_allowed` requires `privileged_without_host_devices`"
            )
            key = "privileged_without_host_devices_all_devices_allowed"
            return Down("devices_allowed", message, handler=name, key=key)
        # The source's own message says named_pipe, its constant is "fifo".
        if handler.get("io_type") not in (None, "", "fifo", "streaming"):
            return Down("io_type", "`io_type` can only be streaming or fifo", handler=name, key="io_type")
        spec = handler.get("base_runtime_spec")
        if spec and spec in absent:
            return Down(
                "base_spec", "failed to load base OCI spec from file: %s" % spec, "", name, "base_runtime_spec", spec
            )
    return None


_DURATIONS = ("stream_idle_timeout", "image_pull_progress_timeout", "drain_exec_sync_io_timeout")


def _bad_duration(load: Load) -> t.Optional[Down]:
    """A time-out that Go cannot read keeps the plugin that has it down, and CRI with it."""
    for name in (SHORT_CRI, OLD_CRI, NEW_RUNTIME, NEW_IMAGES):
        body = load.plugins.get(name)
        for key in _DURATIONS if isinstance(body, dict) else ():
            value = field(body, key, load.rules)
            if isinstance(value, str) and value and not DURATION.match(value):
                return Down("duration", "invalid `%s`: %r is no duration" % (key, value), key=key, value=value)
    return None


def _image_conflicts(load: Load, body: Tree, containerd: Tree) -> t.Optional[Down]:
    rules = load.rules
    images = load.plugins.get(NEW_IMAGES) if rules.modern else body
    images = images if isinstance(images, dict) else {}
    registry = field(images, "registry", rules)
    registry = registry if isinstance(registry, dict) else {}
    mirrors, config_path = field(registry, "mirrors", rules), field(registry, "config_path", rules)
    if mirrors and config_path and rules.mirrors_exclude_config_path:
        return Down("mirrors", "`mirrors` cannot be set when `config_path` is provided", key="config_path")
    snapshotter = field(images if rules.modern else containerd, "snapshotter", rules)
    if isinstance(snapshotter, str) and snapshotter and not snapshotter_exists(load, snapshotter):
        message = "failed to find snapshotter %r" % snapshotter
        return Down("snapshotter", message, key="snapshotter", value=snapshotter)
    return None


def snapshotter_exists(load: Load, name: str) -> bool:
    """A snapshotter of this name is built in and not disabled, or comes as a proxy plugin."""
    proxy = load.proxy_plugins.get(name)
    if isinstance(proxy, dict):
        return proxy.get("type") in _PROXY_SNAPSHOTTER_TYPES
    if name == "devmapper":
        # snapshots/devmapper/plugin: without a pool it is skipped at start
        settings = load.plugins.get("devmapper" if not load.rules.modern and load.version == 1 else _DEVMAPPER)
        return isinstance(settings, dict) and bool(settings.get("pool_name"))
    return name in BUILTIN_SNAPSHOTTERS and "io.containerd.snapshotter.v1." + name not in load.disabled


__all__ = (
    "BUILTIN_SNAPSHOTTERS",
    "Down",
    "LINUX_V1",
    "RUNC_V2",
    "Section",
    "builtin_runc",
    "resolve",
    "section_name",
    "snapshotter_exists",
)
