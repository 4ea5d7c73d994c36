# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about a handler that CRI-O does not take: as a sentence, and as edits where a program can do it."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.load import Drop
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.catalogue import Edit

_MENDING = {
    "path_missing": "Install %(value)s, or correct runtime_path",
    "not_on_path": "Install an executable %(handler)s on the PATH of CRI-O, or set runtime_path",
    "vm_name": "Name a program containerd-shim-NAME-v2 in runtime_path, or use runtime_type oci",
    "type": "Set runtime_type to one of %(types)s",
    "config_path": "Create %(value)s, or correct runtime_config_path",
    "config_path_type": "Take runtime_config_path away, or set runtime_type to vm",
    "annotation": "Take %(value)r out of allowed_annotations",
    "sync_log": "Take no_sync_log away, or set runtime_type to oci",
    "websockets": "Take stream_websockets away, or set runtime_type to pod",
    "daemon": "Look for `Runtime handler \"%(handler)s\" is being ignored due to` in the log of CRI-O and mend what it names",
    "affinity": "Set exec_cpu_affinity to first, or take it away",
}


def mending(drop: Drop, types: t.Sequence[str]) -> str:
    """What to do about a handler that the daemon does not take."""
    return _MENDING[drop.kind] % {"value": drop.value, "handler": drop.handler, "types": ", ".join(types)}


def drop_edits(drop: Drop, file: str, table: str) -> t.Tuple[Edit, ...]:
    """What a program can do about it."""
    if not table:
        return ()
    if drop.kind in ("config_path_type", "sync_log", "websockets", "affinity"):
        return (Edit("unset", file, table, drop.key),)
    if drop.kind == "annotation":
        return (Edit("discard", file, table, drop.key, drop.value),)
    if drop.kind == "type":
        return (Edit("set", file, table, "runtime_type", "oci"),)
    return ()


__all__ = ("drop_edits", "mending")
