# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One handler of CRI-O: what it is to the daemon, whether it can run, and its public facts."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.comparison import plain
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.executables import Executables
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.release_lines import CrioRules
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.usability import Verdict

Table = t.Mapping[str, t.Any]

#: What makes a handler what it is and is not filled in by the daemon where a file does not say it.
COMPARED_KEYS = (
    "runtime_type",
    "runtime_path",
    "runtime_root",
    "runtime_config_path",
    "allowed_annotations",
    "default_annotations",
    "platform_runtime_paths",
    "privileged_without_host_devices",
    "runtime_pull_image",
    "no_sync_log",
    "stream_websockets",
    "exec_cpu_affinity",
    "seccomp_profile",
)
#: … and what is filled in: compared only where both sides say it.
_FILLED_KEYS = ("monitor_path", "monitor_exec_cgroup", "container_min_memory", "container_create_timeout")
_LEAST_TIMEOUT = 30
_DEFAULT_MEMORY = 12.0 * 1024**2
#: docker/go-units, RAMInBytes.
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgtKMGT])?[iI]?[bB]?\Z")
#: Settings of a handler that stand in its public facts as options, beside its type and program.
_OPTIONS = (
    "runtime_root runtime_config_path monitor_path monitor_cgroup monitor_exec_cgroup monitor_env allowed_annotations"
    " default_annotations platform_runtime_paths runtime_pull_image container_min_memory container_create_timeout no_sync_log"
    " stream_websockets exec_cpu_affinity seccomp_profile inherit_default_runtime"
).split()


def comparable(mine: Table, other: Table) -> t.Dict[str, t.Any]:
    """A handler as it is compared with another description of it: what either leaves to the daemon does not count."""
    found = {key: value for key, value in mine.items() if key in COMPARED_KEYS}
    found["runtime_type"] = found.get("runtime_type") or "oci"
    if not mine.get("runtime_path") or not other.get("runtime_path"):
        found.pop("runtime_path", None)
    for key in _FILLED_KEYS:
        if plain(mine.get(key)) is not None and plain(other.get(key)) is not None:
            found[key] = _as_validated(key, mine[key])
    return found


def _as_validated(key: str, value: t.Any) -> t.Any:
    """What CRI-O makes of a value at its start (``ValidateContainerMinMemory``, ``ValidateContainerCreateTimeout``)."""
    if key == "container_create_timeout":
        return max(int(value), _LEAST_TIMEOUT)
    if key == "container_min_memory":
        size = _SIZE.match(str(value).strip())
        return float(size.group(1)) * 1024 ** " kmgt".index((size.group(2) or " ").lower()) if size else _DEFAULT_MEMORY
    return value


def judge(name: str, handler: Table, rules: t.Optional[CrioRules], executables: Executables, introspected: bool) -> Verdict:
    """Whether a loaded handler can run.

    :param introspected: the daemon ran its program at the start and read its features.
    """
    if not handler:
        return Verdict(None, "only the name of handler %s is known" % name, "", "", "")
    path = str(handler.get("runtime_path") or executables.on_path(name) or "")
    is_vm = handler.get("runtime_type") == "vm"
    shim, binary = (path, "") if is_vm else ("", path)
    needed = [path]
    monitor = str(handler.get("monitor_path") or "")
    if monitor and not is_vm:
        needed.append(monitor)
    for program in needed:
        if program and executables.runs(program) is False:
            what = "cannot be executed" if executables.exists(program) else "is not there"
            return Verdict(False, "%s %s" % (program, what), shim, binary, "missing")
    if path and executables.runs(path) or introspected:
        return Verdict(True, "", shim, binary)
    return Verdict(None, "no evidence about %s" % (path or name), shim, binary)


def public(handler: Table, verdict: Verdict, features: t.Optional[Table]) -> t.Dict[str, t.Any]:
    """The facts of one handler, in the words of the contract."""
    options = {key: handler[key] for key in _OPTIONS if plain(handler.get(key)) is not None}
    return {
        "runtime_type": str(handler.get("runtime_type") or "oci") if handler else "",
        "binary": verdict.binary or None,
        "shim": verdict.shim or None,
        "options": options,
        "snapshotter": None,
        "privileged_without_host_devices": bool(handler.get("privileged_without_host_devices")),
        "privileged_without_host_devices_all_devices_allowed": False,
        "cgroup_writable": False,
        # What pods may ask for by annotation: as containerd's key of this name, it widens what they can do.
        "pod_annotations": list(handler.get("allowed_annotations") or []),
        "container_annotations": [],
        "features": features,
        "usable": verdict.usable,
        "reason": verdict.reason,
    }


__all__ = ("COMPARED_KEYS", "comparable", "judge", "public")
