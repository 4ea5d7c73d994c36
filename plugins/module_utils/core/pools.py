# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools of nodes as somebody describes them, for a check that has neither nodes nor an API server: a claim, judged as one. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import shown, yaml_kind
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.suggest import did_you_mean
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

_KEYS = ("name", "labels", "taints", "handlers", "default_handler", "allocatable")
# What the kubelet labels each Node of a pool with by itself; classes may select on it.
_OWN_LABELS = {"kubernetes.io/os": "linux"}


def pool_nodes(raw: t.Any) -> list[dict[str, t.Any]]:
    """One node a pool, in the short form of the cross-check.

    raw: a list of {name, labels, taints, handlers, default_handler, allocatable}; name and handlers are required, and handlers may be
    empty. Raises RuntimeGateError naming the pool.
    """
    if not isinstance(raw, (list, tuple)):
        raise RuntimeGateError(f"runtime_gate_pools is {yaml_kind(raw)}, not a list of pools")
    return [_node(entry, f"runtime_gate_pools[{index}]") for index, entry in enumerate(raw)]


def _node(entry: t.Any, where: str) -> dict[str, t.Any]:
    if not isinstance(entry, t.Mapping):
        raise RuntimeGateError(f"{where} is {yaml_kind(entry)}, not a pool; write {{name: NAME, labels: {{…}}, handlers: […]}}")
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        raise RuntimeGateError(f"{where} has no name")
    for key in entry:
        if key not in _KEYS:
            raise RuntimeGateError(f"{where} ({name}) has the unknown key {shown(key)}{did_you_mean(str(key), _KEYS)} (known: {', '.join(_KEYS)})")
    handlers = entry.get("handlers")
    if not isinstance(handlers, (list, tuple)) or not all(isinstance(handler, str) and handler for handler in handlers):
        raise RuntimeGateError(f"{where} ({name}): handlers is {shown(handlers)}, not the list of the handlers that its nodes have loaded")
    labels = entry.get("labels")
    if labels is not None and not isinstance(labels, t.Mapping):
        raise RuntimeGateError(f"{where} ({name}): labels is {yaml_kind(labels)}, not a mapping")
    return {
        "name": name,
        "labels": {**_OWN_LABELS, **(labels or {})},
        "taints": entry.get("taints") or [],
        "allocatable": entry.get("allocatable") or {},
        "runtime": {
            "schema": 1,
            "evidence": "declared",
            "explicit": True,
            "cri_ready": None,
            "handlers": list(handlers),
            "default_handler": entry.get("default_handler"),
        },
    }
