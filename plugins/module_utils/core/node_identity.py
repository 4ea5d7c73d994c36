# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Node object is this host?

The rule of DESIGN, first answer wins: the operator's variable, kubelet's --hostname-override, the user
system:node:NAME of kubelet's kubeconfig, a unique match of boot id or machine id with Node.status.nodeInfo, the
lower-case host name (kubelet's own default, https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/).

Used by the gate for each host::

    found = identify(facts["identity"], node_objects, node_name=runtime_gate_node_name)
    found == {"name": "w1", "registered": True, "source": "boot_id", "reason": "...", "conflict": None}
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import part
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

_IDS = ("bootID", "machineID")


def identify(
    identity: t.Mapping[str, t.Any] | None,
    nodes: t.Iterable[t.Mapping[str, t.Any]],
    node_name: str | None = None,
) -> dict[str, t.Any]:
    """Name the Node object of a host.

    identity: the key of that name in the runtime facts (hostname, boot_id, machine_id, kubelet_hostname_override,
    kubelet_node_name; each may be absent or null). nodes: the cluster's Node objects. node_name: the operator's
    own word.
    Returns name, registered (a Node of that name exists), source (variable, hostname_override, kubeconfig,
    boot_id, machine_id or hostname), reason (a sentence) and conflict (a sentence, where a lower-ranking sign
    points to another Node; else None).
    Raises RuntimeGateError when nothing gives a name.
    """
    identity = identity or {}
    by_name = {str(part(node, "metadata", where="a node").get("name")): node for node in nodes}
    signs = [sign for sign in _signs(identity, by_name, node_name) if sign[1]]
    if not signs:
        raise RuntimeGateError(
            "cannot tell which Node this host is: no kubelet name, boot id, machine id or host name was found;"
            " set runtime_gate_node_name for it"
        )
    source, name, reason = signs[0]
    return {
        "name": name,
        "registered": name in by_name,
        "source": source,
        "reason": reason if name in by_name else f"{reason}; no Node of that name is registered",
        "conflict": _conflict(signs, by_name),
    }


def keys_of_node(node: t.Mapping[str, t.Any]) -> list[str]:
    """By what identify() can find this Node: its name first, its boot id and machine id as far as it has them."""
    info = part(node, "status", "nodeInfo", where="a node")
    ids = [f"{key} {_plain(info[key])}" for key in _IDS if info.get(key)]
    return [f"name {part(node, 'metadata', where='a node').get('name')}", *ids]


def keys_of_host(identity: t.Mapping[str, t.Any] | None, node_name: str | None = None) -> list[str]:
    """The keys of all Nodes that matter for identify() of this host: with only those it gives the same answer as with every Node."""
    identity = identity or {}
    ids = {"bootID": identity.get("boot_id"), "machineID": identity.get("machine_id")}
    names = {name for source, name, _reason in _signs(identity, {}, node_name) if source not in ("boot_id", "machine_id") and name}
    return [*(f"name {name}" for name in sorted(names)), *(f"{key} {_plain(ids[key])}" for key in _IDS if ids[key])]


def _signs(
    identity: t.Mapping[str, t.Any], by_name: t.Mapping[str, t.Any], node_name: str | None
) -> list[tuple[str, str | None, str]]:
    """Every sign of a name, the strongest first: (source, name or None, sentence)."""
    override, login = identity.get("kubelet_hostname_override"), identity.get("kubelet_node_name")
    hostname = str(identity.get("hostname") or "").strip().lower() or None
    boot, machine = identity.get("boot_id"), identity.get("machine_id")
    return [
        ("variable", node_name or None, f"runtime_gate_node_name says {node_name}"),
        ("hostname_override", override or None, f"kubelet runs with --hostname-override={override}"),
        ("kubeconfig", login or None, f"kubelet logs in as system:node:{login}"),
        ("boot_id", _unique(by_name, "bootID", boot), f"its boot id {boot} is that of this Node alone"),
        ("machine_id", _unique(by_name, "machineID", machine), f"its machine id {machine} is that of this Node alone"),
        ("hostname", hostname, f"its host name is {hostname}"),
    ]


def _unique(by_name: t.Mapping[str, t.Mapping[str, t.Any]], key: str, value: t.Any) -> str | None:
    """The one Node whose nodeInfo has this value. Cloned machines share a machine id: two matches are none."""
    if not value:
        return None
    wanted = _plain(value)
    found = [
        name
        for name, node in by_name.items()
        if _plain(part(node, "status", "nodeInfo", where=f"node {name}").get(key) or "") == wanted
    ]
    return found[0] if len(found) == 1 else None


def _plain(value: t.Any) -> str:
    """Ids without case and dashes: /etc/machine-id has none, a product UUID has them."""
    return str(value).strip().replace("-", "").lower()


def _conflict(signs: list[tuple[str, str | None, str]], by_name: t.Mapping[str, t.Any]) -> str | None:
    """A boot id cannot lie about where the host is registered; a name can be left over from another life."""
    _source, name, reason = signs[0]
    for source, other, other_reason in signs[1:]:
        if source == "boot_id" and other != name and other in by_name:
            return f"{reason}, but Node {other} has the same boot id ({other_reason})"
    return None
