# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What other hosts have as a variable, for a task that works once for all of them."""

from __future__ import annotations

import json
import typing as t

from ansible.errors import AnsibleError

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError


def of_hosts(task_vars: t.Mapping[str, t.Any], hosts: t.Iterable[str], name: str, here: t.Any, default: t.Any) -> t.Dict[str, t.Any]:
    """host -> the variable, as plain data.

    hostvars hold what the inventory and the command line say of a host, and not what the play or the role say. Those two say it
    of every host: where the value of this task is not what the inventory has for its host, it holds for all.

    :param here: the value in this task. :param default: where nothing says anything.
    :raises RuntimeGateError: the variable of a host cannot be templated.
    """
    hostvars, this = task_vars["hostvars"], task_vars["inventory_hostname"]
    mine = plain(here)
    if mine != _of(hostvars, this, name, default):
        return dict.fromkeys(hosts, mine)
    return {host: _of(hostvars, host, name, default) for host in hosts}


def by_cluster(task_vars: t.Mapping[str, t.Any], hosts: t.Iterable[str], here: t.Any) -> t.List[t.Tuple[t.Any, t.List[str]]]:
    """(connection options, hosts) of each cluster: hosts whose runtime_gate_cluster is the same belong to one.

    :param here: runtime_gate_cluster in this task. :raises RuntimeGateError: as of_hosts does.
    """
    found: t.Dict[str, t.Tuple[t.Any, t.List[str]]] = {}
    for host, connection in of_hosts(task_vars, hosts, "runtime_gate_cluster", here, {}).items():
        found.setdefault(json.dumps(connection, sort_keys=True), (connection, []))[1].append(host)
    return list(found.values())


def _of(hostvars: t.Mapping[str, t.Any], host: str, name: str, default: t.Any) -> t.Any:
    try:
        known = hostvars[host]
        return plain(known[name]) if name in known else default
    except AnsibleError as error:
        raise RuntimeGateError("host %s: %s cannot be templated: %s" % (host, name, error)) from error


def plain(value: t.Any) -> t.Any:
    """The same without what Ansible's own kinds of text, list and mapping add."""
    if isinstance(value, t.Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return str(value)


__all__ = ("by_cluster", "of_hosts", "plain")
