# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A declared handler as CRI-O's own table, complete: a later table of a handler replaces an earlier one as a whole.

The same declaration gives containerd's table (:mod:`desired`). Sources of the values: Kata's and gVisor's instructions for CRI-O
(type vm, the shim, /run/vc; type oci, runsc, /run/runsc), and nvidia-ctk, which also takes the monitor from the table of the
default handler, as its program need not be on CRI-O's PATH.
"""

from __future__ import annotations

import posixpath
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import usability
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio import keys, load
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.executables import Executables
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.release_lines import CrioRules
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.desired import CRIO_KEYS, Handler, ProgramAbsent, parse

Table = t.Dict[str, t.Any]

_ORDER = ["runtime_path", "runtime_type", "runtime_root", "runtime_config_path", "privileged_without_host_devices"]
#: Where programs lie, the packages' own places first.
_DIRECTORIES = ("/usr/bin", "/usr/libexec/crio", "/usr/local/bin", "/usr/sbin", "/opt/kata/bin")
#: What a handler of a kind takes from the default handler where it does not say it: how its monitor is run.
_MONITOR_KEYS = ("monitor_path", "monitor_cgroup", "monitor_env", "monitor_exec_cgroup")
#: Drops that the installation of something on the node mends.
_ABSENT = ("path_missing", "not_on_path", "config_path")
#: OCI runtimes that keep their state in a directory of their own.
_ROOTS = {"runc": "/run/runc", "crun": "/run/crun", "runsc": "/run/runsc", "youki": "/run/youki"}
_KATA_ROOT = "/run/vc"


class Circumstances(t.NamedTuple):
    """What of a node decides about values that nobody wrote.

    :ivar default: the table of the node's default handler, without ours. :ivar installed: CRI-O is on the node.
    """

    rules: CrioRules
    executables: Executables
    default: t.Mapping[str, t.Any]
    installed: bool


class Rendered(t.NamedTuple):
    """A handler's table, and why CRI-O would not load it yet ("" where it would)."""

    table: Table
    absent: str


def executables(options: t.Mapping[str, t.Any]) -> t.List[str]:
    """Every program and file that the declaration could need: what is to be looked up on the node."""
    found: t.Set[str] = set()
    for handler in parse(options).present:
        found.update(_candidates(_program(handler)))
        found.update(str(handler.table.get(key) or "") for key in ("runtime_config_path", "monitor_path"))
        found.add(str((handler.table.get("options") or {}).get("ConfigPath") or ""))
    return sorted(found - {""})


def rendered(handler: Handler, circumstances: Circumstances) -> Rendered:
    """The handler's complete table on a release line of CRI-O.

    :raises ProgramAbsent: a program is not there. RuntimeGateError: CRI-O cannot run such a handler, or the line lacks a key that was written.
    """
    table: Table = {key: value for key, value in handler.table.items() if key in CRIO_KEYS}
    for key in table:
        if not circumstances.rules.knows(keys.HANDLER, key):
            raise RuntimeGateError("runtime_gate_handlers.%s.%s: CRI-O %s has no such option" % (handler.name, key, circumstances.rules.name))
    kind = _kind(handler)
    table["runtime_type"] = kind
    table["runtime_path"] = _path(handler, circumstances)
    if handler.table.get("privileged_without_host_devices"):
        table["privileged_without_host_devices"] = True
    options = handler.table.get("options") or {}
    root = options.get("Root") or (_KATA_ROOT if kind == "vm" else _ROOTS.get(posixpath.basename(table["runtime_path"])))
    if root:
        table.setdefault("runtime_root", root)
    if kind == "vm" and options.get("ConfigPath"):
        table.setdefault("runtime_config_path", options["ConfigPath"])
    if kind != "vm" and circumstances.rules.monitor_per_handler:
        for key in _MONITOR_KEYS:
            if circumstances.default.get(key):
                table.setdefault(key, circumstances.default[key])
    return Rendered(_ordered(table), _absent(handler, table, circumstances))


def over(present: t.Optional[t.Mapping[str, t.Any]], table: Table) -> Table:
    """Our table of a handler that somebody else's file has too: what ours does not say stays as it is there, as it would be lost."""
    same = present is not None and (present.get("runtime_type") or "oci") == table["runtime_type"]
    return _ordered(dict(present or {}, **table)) if same else table


def _ordered(table: Table) -> Table:
    return {key: table[key] for key in sorted(table, key=lambda key: (_ORDER.index(key) if key in _ORDER else 99, key))}


def _kind(handler: Handler) -> str:
    """CRI-O's ``runtime_type`` for the declared one."""
    kind = str(handler.table["runtime_type"])
    if kind in ("oci", "vm", "pod"):
        return kind
    if kind in usability.RUNC_TYPES or _shim_name(kind) == "runsc":
        return "oci"
    if _shim_name(kind).split("-")[0] == "kata":
        return "vm"
    raise RuntimeGateError(
        "runtime_gate_handlers.%s: CRI-O cannot run the shim of %s: it has OCI runtimes (oci), Kata's shim (vm) and pods (pod), and no other shims "
        "of containerd. Leave the handler out on nodes of CRI-O%s"
        % (handler.name, kind, "; WebAssembly runs there with crun" if _shim_name(kind) in ("spin", "wasmtime") else "")
    )


def _shim_name(runtime_type: str) -> str:
    """``kata-qemu`` of io.containerd.kata-qemu.v2, also of the shim's path."""
    if runtime_type.startswith("/"):
        words = posixpath.basename(runtime_type).split("-")
        return "-".join(words[2:-1]) if words[:2] == ["containerd", "shim"] else ""
    parts = runtime_type.split(".")
    return parts[-2] if len(parts) >= 2 else ""


def _program(handler: Handler) -> str:
    """The program that the declaration means: a path, or a name."""
    table = handler.table
    kind = str(table["runtime_type"])
    named = (table.get("options") or {}).get("BinaryName") or table.get("runtime_path")
    if named:
        return str(named)
    if kind in usability.RUNC_TYPES:
        return "runc"
    if kind in ("oci", "vm", "pod"):
        return handler.name
    if kind.startswith("/"):
        return kind
    return "runsc" if _shim_name(kind) == "runsc" else usability.shim_of(kind)


def _candidates(program: str) -> t.List[str]:
    """Where a program may lie: at its path, and under its name in the places of the packages."""
    name = posixpath.basename(program)
    places = [posixpath.join(directory, name) for directory in _DIRECTORIES]
    return ([program] if program.startswith("/") else []) + [place for place in places if place != program]


def _path(handler: Handler, circumstances: Circumstances) -> str:
    """The absolute path to write: one that the user wrote as it is, else the first place where the program is."""
    program = _program(handler)
    if program.startswith("/") and handler.written & {"runtime_path", "options", "runtime_type"}:
        return program
    found = [place for place in _candidates(program) if circumstances.executables.exists(place)]
    return found[0] if found else _candidates(program)[0]


def _absent(handler: Handler, table: Table, circumstances: Circumstances) -> str:
    """Why CRI-O would not load it yet, "" where it would.

    :raises ProgramAbsent: nobody has said that this may be. RuntimeGateError: CRI-O would drop it for another reason.
    """
    drop = load.validate(handler.name, table, circumstances.rules, circumstances.executables)
    if drop is None:
        program = table["runtime_path"]
        if circumstances.installed and circumstances.executables.runs(program) is False and not handler.allow_absent_binary:
            raise RuntimeGateError(
                "runtime_gate_handlers.%s: %s cannot be executed; mend it, or set runtime_gate_allow_absent_binary: true" % (handler.name, program)
            )
        return ""
    if drop.kind not in _ABSENT:
        raise RuntimeGateError("runtime_gate_handlers.%s: CRI-O would drop it: %s" % (handler.name, drop.reason))
    if circumstances.installed and not handler.allow_absent_binary:
        raise ProgramAbsent("runtime_gate_handlers.%s: %s, and CRI-O drops such a handler" % (handler.name, drop.reason))
    return drop.reason


__all__ = ("Circumstances", "Rendered", "executables", "over", "rendered")
