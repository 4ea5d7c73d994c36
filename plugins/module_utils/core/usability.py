# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a loaded handler's shim and binary can run.

Sources: ``runtime/v2/shim_manager.go`` resolveRuntimePath (1.6, 1.7), ``core/runtime/v2/shim_manager.go`` (2.x),
``runtime/v2/shim/util.go`` BinaryName. A handler is only ever called unusable on evidence; without any it is unknown.
"""

from __future__ import annotations

import posixpath
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.cri_section import LINUX_V1
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import LineRules

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
) -> Verdict:
    """Judge one loaded handler.

    :param binaries: path or bare name → it is there and executable, as collected on the node.
    :param introspected: the daemon ran the OCI binary and read its features (2.x); None: this release cannot tell.
    """
    runtime_type = str(handler.get("runtime_type") or "")
    options = handler.get("options") or {}
    binary = str(option(options, "BinaryName") or "") if runtime_type in RUNC_TYPES else ""
    shim = str(handler.get("runtime_path") or "") if rules is not None and rules.honours_runtime_path else ""
    shim = shim or shim_of(runtime_type)
    kind, reason = _type_fault(runtime_type, rules)
    if reason:
        return Verdict(False, reason, shim, binary, kind)
    shim_there = _there(shim, binaries)
    if shim_there is False:
        return Verdict(False, "shim %s is not there or cannot be executed" % shim, shim, binary, "missing")
    binary_there = _there(binary, binaries) if binary else None
    if binary_there is False:
        return Verdict(False, "binary %s is not there or cannot be executed" % binary, shim, binary, "missing")
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


__all__ = ("RUNC_TYPES", "Verdict", "judge", "option", "shim_of")
