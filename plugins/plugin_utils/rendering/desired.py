# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked for: the declared handlers, checked before anything else, and what they mean on one release line."""

from __future__ import annotations

import posixpath
import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import suggest, usability
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.cri_section import RUNC_V2
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import LineRules
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

Table = t.Dict[str, t.Any]

#: Keys of a declared handler that go into its table, with the type that each must have.
_KEYS: t.Dict[str, t.Any] = {
    "runtime_type": str,
    "runtime_path": str,
    "options": dict,
    "snapshotter": str,
    "pod_annotations": list,
    "privileged_without_host_devices": bool,
    "base_runtime_spec": str,
    "sandboxer": str,
    "cgroup_writable": bool,
}
#: … and those that only CRI-O's table has. On a node of containerd they count for nothing.
CRIO_KEYS: t.Dict[str, t.Any] = {
    "runtime_root": str,
    "runtime_config_path": str,
    "allowed_annotations": list,
    "default_annotations": dict,
    "monitor_path": str,
    "monitor_cgroup": str,
    "monitor_env": list,
    "monitor_exec_cgroup": str,
    "container_min_memory": str,
    "container_create_timeout": int,
    "exec_cpu_affinity": str,
    "inherit_default_runtime": bool,
    "no_sync_log": bool,
    "platform_runtime_paths": dict,
    "runtime_pull_image": bool,
    "seccomp_profile": str,
    "stream_websockets": bool,
}
#: The order in which a table has them.
_ORDER = [key for key in _KEYS if key != "options"] + ["sandbox_mode", "options"]
#: Keys of a declared handler that do not go into its table.
_OTHER_KEYS: t.Dict[str, t.Any] = {"preset": str, "state": str, "allow_absent_binary": bool, "runtime_class": (dict, bool)}
_KIND: t.Dict[t.Any, str] = {
    str: "a string",
    dict: "a dictionary",
    list: "a list of strings",
    bool: "true or false",
    int: "a whole number",
    (dict, bool): "a dictionary or false",
}

#: CRI-O's own values of ``runtime_type``; the others are containerd's, and either is understood on a node of either.
CRIO_TYPES = ("oci", "vm", "pod")
_VM_SHIM = re.compile(r"containerd-shim-([A-Za-z0-9+-]+)-v2\Z")

#: The API server takes only a DNS label for RuntimeClass.handler.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")

#: Options of every handler that is not runc's (``runtimeoptions.Options``); those of runc's are usability.RUNC_OPTION_TYPES.
SHIM_OPTIONS: t.Dict[str, t.Any] = dict.fromkeys(("TypeUrl", "ConfigPath", "ConfigBody"), str)

_KATA_SHIM = "/opt/kata/bin/containerd-shim-kata-v2"
_KATA_CONFIGURATION = "/opt/kata/share/defaults/kata-containers/configuration-%s.toml"
_KATA: Table = {"privileged_without_host_devices": True, "pod_annotations": ["io.katacontainers.*"]}


def _kata_hypervisor(name: str) -> Table:
    """A hypervisor of the static Kata release: the same shim with another configuration."""
    return dict(
        _KATA,
        runtime_type="io.containerd.kata-%s.v2" % name,
        runtime_path=_KATA_SHIM,
        options={"ConfigPath": _KATA_CONFIGURATION % name},
    )


#: Ready-made handlers. ``kata`` alone is a distribution's package (shim on the PATH, its own configuration).
PRESETS: t.Dict[str, Table] = {
    "nvidia": {"runtime_type": RUNC_V2, "options": {"BinaryName": "/usr/bin/nvidia-container-runtime"}},
    "nvidia-cdi": {"runtime_type": RUNC_V2, "options": {"BinaryName": "/usr/bin/nvidia-container-runtime.cdi"}},
    "kata": dict(_KATA, runtime_type="io.containerd.kata.v2"),
    "kata-qemu": _kata_hypervisor("qemu"),
    "kata-clh": _kata_hypervisor("clh"),
    "kata-fc": _kata_hypervisor("fc"),
    "kata-dragonball": _kata_hypervisor("dragonball"),
    "kata-stratovirt": _kata_hypervisor("stratovirt"),
    "gvisor": {"runtime_type": "io.containerd.runsc.v1"},
    "crun": {"runtime_type": RUNC_V2, "options": {"BinaryName": "/usr/bin/crun"}},
    "spin": {"runtime_type": "io.containerd.spin.v2"},
}
#: Presets that need the CDI support of containerd itself, where the line has it.
_CDI_PRESETS = ("nvidia-cdi",)


class Handler(t.NamedTuple):
    """One declared handler, checked, with its preset filled in.

    :ivar present: False: it must not be loaded. :ivar table: keys and values, without what depends on the line.
    :ivar written: keys that the user wrote (an error about one of them names the user's line, not the preset's).
    """

    name: str
    present: bool
    table: Table
    preset: t.Optional[str]
    written: t.FrozenSet[str]
    allow_absent_binary: bool


class Desired(t.NamedTuple):
    """The declaration.

    :ivar default: the wanted default handler, or None: leave it alone.
    """

    handlers: t.Tuple[Handler, ...]
    default: t.Optional[str]

    @property
    def present(self) -> t.Tuple[Handler, ...]:
        return tuple(handler for handler in self.handlers if handler.present)

    @property
    def absent(self) -> t.Tuple[str, ...]:
        return tuple(handler.name for handler in self.handlers if not handler.present)

    @property
    def wants_cdi(self) -> bool:
        return any(handler.preset in _CDI_PRESETS for handler in self.present)


def parse(options: t.Mapping[str, t.Any]) -> Desired:
    """The declaration of a module call, without looking at any node.

    :raises RuntimeGateError: a name, key, value or preset is wrong.
    """
    declared = options.get("handlers") or {}
    if not isinstance(declared, dict):
        raise RuntimeGateError("runtime_gate_handlers must be a dictionary: name of the handler, then its preset or runtime_type")
    handlers = tuple(_handler(str(name), entry, options) for name, entry in declared.items())
    default = options.get("default_handler") or None
    if default is not None and not isinstance(default, str):
        raise RuntimeGateError("runtime_gate_default_handler must be the name of a handler")
    if any(handler.name == default and not handler.present for handler in handlers):
        raise RuntimeGateError("runtime_gate_default_handler: %s is declared with state: absent; name another one" % default)
    return Desired(handlers, default)


def _handler(name: str, entry: t.Any, options: t.Mapping[str, t.Any]) -> Handler:
    if not _NAME.match(name):
        raise RuntimeGateError(
            "runtime_gate_handlers: %r cannot be a handler: RuntimeClass.handler must be a DNS label (lower-case letters, digits and "
            "'-', at most 63)" % name
        )
    entry = {} if entry is None else entry
    if not isinstance(entry, dict):
        raise RuntimeGateError("runtime_gate_handlers.%s must be a dictionary, such as {preset: nvidia}" % name)
    given = {str(key): value for key, value in entry.items() if value is not None}
    for key, value in given.items():
        _check_value(name, key, value)
    state = given.get("state", "present")
    if state not in ("present", "absent"):
        raise RuntimeGateError("runtime_gate_handlers.%s.state must be present or absent, not %r" % (name, state))
    preset = given.get("preset")
    if preset is not None and preset not in PRESETS:
        near = suggest.nearest(preset, list(PRESETS))
        hint = " (did you mean %s?)" % near if near else ""
        raise RuntimeGateError(
            "runtime_gate_handlers.%s.preset: there is no preset %r%s; there are %s" % (name, preset, hint, ", ".join(sorted(PRESETS)))
        )
    keys = [*_KEYS, *CRIO_KEYS]
    written = frozenset(key for key in given if key in keys)
    table = _with_preset(preset, {key: given[key] for key in keys if key in given})
    if state == "present":
        _check_table(name, table)
    allowed = bool(given.get("allow_absent_binary", options.get("allow_absent_binary")))
    return Handler(name, state == "present", table, preset, written, allowed)


def _check_value(name: str, key: str, value: t.Any) -> None:
    kind = _KEYS.get(key) or CRIO_KEYS.get(key) or _OTHER_KEYS.get(key)
    if kind is None:
        near = suggest.nearest(key, [*_KEYS, *CRIO_KEYS, *_OTHER_KEYS])
        hint = " (did you mean %s?)" % near if near else ""
        raise RuntimeGateError("runtime_gate_handlers.%s: there is no option %r%s" % (name, key, hint))
    good = isinstance(value, kind) and (kind is not list or all(isinstance(item, str) for item in value))
    good = good and (kind is not int or not isinstance(value, bool))
    if not good:
        raise RuntimeGateError("runtime_gate_handlers.%s.%s must be %s, not %r" % (name, key, _KIND[kind], value))


def _with_preset(preset: t.Optional[str], given: Table) -> Table:
    table = dict(PRESETS.get(preset or "", {}))
    options = dict(table.get("options") or {}, **(given.get("options") or {}))
    table.update(given)
    if options:
        table["options"] = options
    return table


def _check_table(name: str, table: Table) -> None:
    runtime_type = table.get("runtime_type") or ""
    if not runtime_type:
        raise RuntimeGateError("runtime_gate_handlers.%s needs a preset or a runtime_type, such as %s" % (name, RUNC_V2))
    if runtime_type in CRIO_TYPES:
        if runtime_type != "oci" and not table.get("runtime_path"):
            raise RuntimeGateError("runtime_gate_handlers.%s.runtime_type: %s needs a runtime_path" % (name, runtime_type))
    elif not usability.shim_of(runtime_type) or ("/" in runtime_type and not runtime_type.startswith("/")):
        raise RuntimeGateError(
            "runtime_gate_handlers.%s.runtime_type: %r is neither io.containerd.NAME.vN nor an absolute path nor one of oci, vm and pod"
            % (name, runtime_type)
        )
    for key in ("runtime_path", "base_runtime_spec", "runtime_config_path", "monitor_path"):
        if table.get(key) and not table[key].startswith("/"):
            raise RuntimeGateError("runtime_gate_handlers.%s.%s must be an absolute path, not %r" % (name, key, table[key]))
    is_runc = runtime_type in (*usability.RUNC_TYPES, "oci")
    for key, value in (table.get("options") or {}).items():
        _check_option(name, str(key), value, is_runc, runtime_type)


def _check_option(name: str, key: str, value: t.Any, is_runc: bool, runtime_type: str) -> None:
    known = usability.RUNC_OPTION_TYPES if is_runc else SHIM_OPTIONS
    if key in known:
        # containerd loads a value of another type and refuses it for each sandbox.
        if not isinstance(value, known[key]) or (known[key] is int and isinstance(value, bool)):
            raise RuntimeGateError("runtime_gate_handlers.%s.options.%s must be %s, not %r" % (name, key, usability.TYPE_WORDS[known[key]], value))
        return
    if key.lower() in [option.lower() for option in known]:
        right = next(option for option in known if option.lower() == key.lower())
        raise RuntimeGateError("runtime_gate_handlers.%s.options.%s must be spelled %s" % (name, key, right))
    if not is_runc:
        raise RuntimeGateError(
            "runtime_gate_handlers.%s.options.%s is not read with runtime_type %s: containerd passes such a shim only %s"
            % (name, key, runtime_type, ", ".join(SHIM_OPTIONS))
        )
    near = suggest.nearest(key, list(known))
    hint = " (did you mean %s?)" % near if near else ""
    raise RuntimeGateError("runtime_gate_handlers.%s.options: containerd has no option %r%s" % (name, key, hint))


def for_containerd(name: str, table: Table) -> Table:
    """A table as containerd spells it: without what only CRI-O has, and a type of CRI-O's as the one that does the same.

    :raises RuntimeGateError: containerd has none that does the same.
    """
    found = {key: value for key, value in table.items() if key not in CRIO_KEYS}
    options = dict(found.get("options") or {})
    if found["runtime_type"] == "pod":
        raise RuntimeGateError("runtime_gate_handlers.%s.runtime_type: pod is a type of CRI-O alone; containerd has none like it" % name)
    if found["runtime_type"] == "oci":
        found["runtime_type"] = RUNC_V2
        options.update({"BinaryName": found.pop("runtime_path")} if found.get("runtime_path") else {})
        options.update({"Root": table["runtime_root"]} if table.get("runtime_root") else {})
    elif found["runtime_type"] == "vm":
        shim = _VM_SHIM.match(posixpath.basename(found["runtime_path"]))
        found["runtime_type"] = "io.containerd.%s.v2" % shim.group(1) if shim else found.pop("runtime_path")
        options.update({"ConfigPath": table["runtime_config_path"]} if table.get("runtime_config_path") else {})
    if options:
        found["options"] = options
    return found


def executables(options: t.Mapping[str, t.Any]) -> t.List[str]:
    """Every executable that the declaration could need on any release line: what is to be looked up on the node."""
    found: t.Set[str] = set()
    for handler in parse(options).present:
        table = handler.table
        if table["runtime_type"] != "pod":
            table = for_containerd(handler.name, table)
        found.add(usability.shim_of(str(table["runtime_type"])))
        found.add(str(table.get("runtime_path") or ""))
        found.add(str((table.get("options") or {}).get("BinaryName") or ""))
    return sorted(found - {""})


class ProgramAbsent(RuntimeGateError):
    """A handler's shim or binary is not on the node, and nobody has said that this may be. The message is no whole sentence."""


Rendered = t.TypeVar("Rendered")


def each(handlers: t.Iterable[Handler], render: t.Callable[[Handler], Rendered]) -> t.Dict[str, Rendered]:
    """name → what ``render`` makes of the handler.

    :raises RuntimeGateError: some cannot be rendered; it tells of every one of them.
    """
    found: t.Dict[str, Rendered] = {}
    refusals: t.List[str] = []
    absent: t.List[str] = []
    for handler in handlers:
        try:
            found[handler.name] = render(handler)
        except ProgramAbsent as error:
            absent.append(str(error))
        except RuntimeGateError as error:
            refusals.append(str(error))
    if absent:
        words = ("it", "the handler") if len(absent) == 1 else ("them", "the handlers")
        remedy = "install %s, or set runtime_gate_allow_absent_binary: true to write %s all the same" % words
        refusals += [*absent, remedy]
    if refusals:
        raise RuntimeGateError("; ".join(refusals))
    return found


class Circumstances(t.NamedTuple):
    """What of a node decides about values that nobody wrote.

    :ivar systemd_cgroup: what runc-type handlers get for SystemdCgroup; None: nothing tells, leave it out.
    :ivar binaries: path or name → there and executable. :ivar installed: containerd is on the node.
    """

    systemd_cgroup: t.Optional[bool]
    binaries: t.Mapping[str, bool]
    installed: bool


def rendered(handler: Handler, rules: LineRules, circumstances: Circumstances) -> Table:
    """The handler's complete table on a release line.

    :raises ProgramAbsent: what it runs is not there. RuntimeGateError: the line lacks an option that was written, or it could not run.
    """
    table = for_containerd(handler.name, handler.table)
    _fit_runtime_path(handler, table, rules)
    if "sandboxer" in table and "sandboxer" not in rules.handler_keys and "sandbox_mode" in rules.handler_keys:
        table["sandbox_mode"] = table.pop("sandboxer")
    for key in list(table):
        if key in rules.handler_keys:
            continue
        if key in handler.written or key == "sandbox_mode":
            raise RuntimeGateError(
                "runtime_gate_handlers.%s.%s: containerd %s has no such option%s" % (handler.name, key, rules.name, _since(key))
            )
        del table[key]
    options = dict(table.get("options") or {})
    if table["runtime_type"] in usability.RUNC_TYPES and circumstances.systemd_cgroup is not None:
        options.setdefault("SystemdCgroup", circumstances.systemd_cgroup)
    if options:
        table["options"] = options
    _check_binaries(handler, table, rules, circumstances)
    return {key: table[key] for key in sorted(table, key=_ORDER.index)}


def _fit_runtime_path(handler: Handler, table: Table, rules: LineRules) -> None:
    """``runtime_path`` is read from 1.7 on; before, a preset names its shim by an absolute type (1.6) or by the PATH."""
    if "runtime_path" in table and not rules.honours_runtime_path:
        if "runtime_path" in handler.written:
            raise RuntimeGateError(
                "runtime_gate_handlers.%s.runtime_path: containerd %s does not use it (1.7 and later do); give the path as runtime_type "
                "(1.6), or put the shim on containerd's PATH" % (handler.name, rules.name)
            )
        path = table.pop("runtime_path")
        if "runtime_type" not in handler.written and rules.absolute_runtime_type:
            table["runtime_type"] = path
        elif "runtime_type" not in handler.written:
            # Every kata handler runs the one shim, and only the PATH can name it here.
            table["runtime_type"] = "io.containerd.kata.v2"
    if table["runtime_type"].startswith("/") and not rules.absolute_runtime_type:
        raise RuntimeGateError(
            "runtime_gate_handlers.%s.runtime_type: containerd %s does not take a path (1.6 and later do)" % (handler.name, rules.name)
        )


_SINCE = {
    "runtime_path": "1.7",
    "snapshotter": "1.7",
    "sandboxer": "1.7",
    "cgroup_writable": "2.1",
}


def _since(key: str) -> str:
    return " (%s and later have it)" % _SINCE[key] if key in _SINCE else ""


def _check_binaries(handler: Handler, table: Table, rules: LineRules, circumstances: Circumstances) -> None:
    verdict = usability.judge(table, rules, circumstances.binaries)
    if verdict.kind in ("bad_type", "removed"):
        raise RuntimeGateError("runtime_gate_handlers.%s: %s" % (handler.name, verdict.reason))
    if verdict.kind == "missing" and circumstances.installed and not handler.allow_absent_binary:
        raise ProgramAbsent("runtime_gate_handlers.%s: %s" % (handler.name, verdict.reason))


__all__ = (
    "CRIO_KEYS",
    "CRIO_TYPES",
    "Circumstances",
    "Desired",
    "Handler",
    "PRESETS",
    "ProgramAbsent",
    "SHIM_OPTIONS",
    "each",
    "executables",
    "for_containerd",
    "parse",
    "rendered",
)
