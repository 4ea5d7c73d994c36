# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What depends on a node's default handler: every pod that names no RuntimeClass."""

from __future__ import annotations

import posixpath
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.judged_node import JudgedNode
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.runtime_class import References

# OCI runtimes that run a container as any other would. A default beyond these reaches all pods of the node.
_PLAIN = ("runc", "crun", "youki")


def blast_radius(node: JudgedNode, references: References | None) -> dict[str, t.Any]:
    """default_handler: its name or None. needs_runtimeclass: a pod gets a special handler only by naming a
    RuntimeClass (false where the default itself is special, None where the default is not known). reach: node (a
    fault of the default or a change of it meets every pod without a RuntimeClass) or gpu-pods (only the pods that
    ask for a special handler). pods: NAMESPACE/NAME of the pods on this node that run with the default handler,
    None where no workloads were handed in."""
    default = node.runtime.default_handler
    plain = None if default is None else is_plain(default, node.runtime.handlers.get(default) or {})
    return {
        "default_handler": default,
        "needs_runtimeclass": plain,
        "reach": None if plain is None else "gpu-pods" if plain else "node",
        "pods": None if references is None else sorted(references.default_pods.get(node.name, ())),
    }


def is_plain(name: str, info: t.Mapping[str, t.Any]) -> bool:
    """Whether this handler runs containers with an ordinary OCI runtime, by its binary where that is known, else
    by its name. A handler called runc may well start nvidia-container-runtime."""
    kind = info.get("runtime_type")
    if kind and kind not in ("oci", "io.containerd.runc.v1", "io.containerd.runc.v2", "io.containerd.runtime.v1.linux"):
        return False
    binary = info.get("binary") or (info.get("options") or {}).get("BinaryName")
    return posixpath.basename(binary) in _PLAIN if binary else name in _PLAIN
