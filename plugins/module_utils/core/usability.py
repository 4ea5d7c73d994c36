# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a loaded handler's shim and binary can run.

Sources: ``runtime/v2/shim_manager.go`` resolveRuntimePath (1.6, 1.7), ``core/runtime/v2/shim_manager.go`` (2.x),
``runtime/v2/shim/util.go`` BinaryName. A handler is only ever called unusable on evidence; without any it is unknown.
"""

from __future__ import annotations

import posixpath
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.cri_section import BUILTIN_SNAPSHOTTERS, LINUX_V1
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import LineRules

#: Option types of the runc shim (api/types/runc/options/oci.proto, release lines 1.4 to 2.4).
RUNC_OPTION_TYPES: t.Dict[str, t.Any] = {
    **dict.fromkeys("BinaryName CriuImagePath CriuPath CriuWorkPath Root ShimCgroup TaskApiAddress".split(), str),
    **dict.fromkeys(("NoNewKeyring", "NoPivotRoot", "SystemdCgroup"), bool),
    **dict.fromkeys(("IoGid", "IoUid", "TaskApiVersion"), int),
}
TYPE_WORDS = {str: "a string", bool: "true or false", int: "a number"}
#: Sandbox controllers that are compiled in (1.7 sandbox_mode, 2.x sandboxer); others come as proxy plugins.
_CONTROLLERS = ("", "podsandbox", "shim")

#: Only these decode BinaryName, SystemdCgroup and the other runc options.
RUNC_TYPES = ("io.containerd.runc.v2", "io.containerd.runc.v1")


class Verdict(t.NamedTuple):
    """usable is True, False or None (no evidence); reason says why, "" when usable."""

    usable: t.Optional[bool]
    reason: str
    shim: str
    binary: str
    #: what is wrong: "" | empty_type | bad_type | missing | removed
    kind: str = ""


def shim_of(runtime_type: str) -> str:
    """The shim binary that a runtime_type stands for: the last two dotted parts; an absolute path is its own."""
    if runtime_type.startswith("/"):
        return runtime_type
    parts = runtime_type.split(".")
    return "containerd-shim-%s-%s" % (parts[-2], parts[-1]) if len(parts) >= 2 else ""


def option(options: t.Mapping[str, t.Any], name: str) -> t.Any:
    """A runc option, in any letter case; of several spellings the one that is decoded last (byte order) holds."""
    keys = sorted(key for key in options if key.lower() == name.lower() and options[key] not in ("", None))
    return options[keys[-1]] if keys else None


def judge(
    handler: t.Mapping[str, t.Any],
    rules: t.Optional[LineRules],
    binaries: t.Mapping[str, bool],
    introspected: t.Optional[bool] = None,
    proxies: t.Optional[t.Mapping[str, t.Any]] = None,
) -> Verdict:
    """Judge one loaded handler.

    :param proxies: ``[proxy_plugins]`` that are loaded, None where they are not known.

    :param binaries: path or bare name → it is there and executable, as collected on the node.
    :param introspected: the daemon ran the OCI binary and read its features (2.x); None: this release cannot tell.
    """
    runtime_type = str(handler.get("runtime_type") or "")
    options = handler.get("options") or {}
    binary = str(option(options, "BinaryName") or "") if runtime_type in RUNC_TYPES else ""
    shim = str(handler.get("runtime_path") or "") if rules is not None and rules.honours_runtime_path else ""
    shim = shim or shim_of(runtime_type)
    kind, reason = _type_fault(runtime_type, rules)
    if not reason:
        kind, reason = _value_fault(handler, rules, binary, proxies)
    if reason:
        return Verdict(False, reason, shim, binary, kind)
    shim_there = _there(shim, binaries)
    if shim_there is False:
        return Verdict(False, "shim %s is not there or cannot be executed" % shim, shim, binary, "missing")
    # Without BinaryName the runc shim runs "runc" from its PATH (go-runc, DefaultCommand).
    runs = binary or ("runc" if runtime_type in RUNC_TYPES else "")
    binary_there = _there(runs, binaries)
    if binary_there is False:
        return Verdict(False, "binary %s is not there or cannot be executed" % runs, shim, binary, "missing")
    good = introspected or (shim_there and (binary_there or not binary))
    return Verdict(True if good else None, "" if good else "no evidence about %s" % (binary or shim), shim, binary)


def _type_fault(runtime_type: str, rules: t.Optional[LineRules]) -> t.Tuple[str, str]:
    if not runtime_type:
        return "empty_type", "runtime_type is empty: pods fail with `container.Runtime.Name must be set`"
    if runtime_type.startswith("/"):
        if rules is not None and not rules.absolute_runtime_type:
            return "bad_type", "containerd %s does not take a path as runtime_type" % rules.name
        return "", ""
    if "/" in runtime_type or not shim_of(runtime_type):
        return "bad_type", "%r is not a runtime_type (io.containerd.NAME.vN or an absolute path)" % runtime_type
    if runtime_type == LINUX_V1 and rules is not None and rules.modern:
        return "removed", "%s was removed in containerd 2.0 and has no shim there" % LINUX_V1
    return "", ""


def mistyped_option(options: t.Mapping[str, t.Any]) -> t.Tuple[str, str]:
    """(option, what it must be) of the first runc option whose type the shim cannot decode, or ("", "")."""
    for key, value in sorted(options.items()):
        kind = next((kind for name, kind in RUNC_OPTION_TYPES.items() if name.lower() == key.lower()), None)
        good = kind is None or value is None or (isinstance(value, kind) and (kind is bool or not isinstance(value, bool)))
        if not good:
            return key, TYPE_WORDS[kind]
    return "", ""


def _value_fault(
    handler: t.Mapping[str, t.Any],
    rules: t.Optional[LineRules],
    binary: str,
    proxies: t.Optional[t.Mapping[str, t.Any]],
) -> t.Tuple[str, str]:
    """Values with which every sandbox of the handler fails (measured with RunPodSandbox on 1.7 and 2.1)."""
    options = handler.get("options") or {}
    key, wanted = mistyped_option(options) if handler.get("runtime_type") in RUNC_TYPES else ("", "")
    if key:
        return "bad_option", "%s = %r must be %s: the shim cannot read its options" % (key, options[key], wanted)
    if binary and "/" in binary and not binary.startswith("/"):
        return "missing", "BinaryName %s is a relative path" % binary
    path = str(handler.get("runtime_path") or "")
    if path and not path.startswith("/") and rules is not None and rules.honours_runtime_path:
        return "bad_type", "runtime_path %s is not absolute" % path
    controller = str(handler.get("sandboxer") or handler.get("sandbox_mode") or "")
    if proxies is not None and controller not in _CONTROLLERS and controller not in proxies:
        return "bad_value", "there is no sandbox controller %s" % controller
    snapshotter = str(handler.get("snapshotter") or "")
    if proxies is not None and snapshotter and snapshotter not in BUILTIN_SNAPSHOTTERS and snapshotter not in proxies:
        return "bad_value", "there is no snapshotter %s" % snapshotter
    return "", ""


def _there(name: str, binaries: t.Mapping[str, bool]) -> t.Optional[bool]:
    """Whether an executable is there: by its path, or for a bare name by any path that ends in it."""
    if not name:
        return None
    if name in binaries:
        return bool(binaries[name])
    if name.startswith("/"):
        return None
    found = [there for path, there in binaries.items() if posixpath.basename(path) == name]
    return any(found) if found else None


__all__ = ("RUNC_OPTION_TYPES", "RUNC_TYPES", "Verdict", "judge", "mistyped_option", "option", "shim_of")
