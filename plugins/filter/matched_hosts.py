# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter matched_hosts: a pattern of hosts, if it matches one."""

from __future__ import annotations

import typing as t

from ansible import context
from ansible.errors import AnsibleFilterError
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader

DOCUMENTATION = r"""
name: matched_hosts
short_description: A pattern of hosts, if it matches one
version_added: 0.1.0
author:
  - The kubenode.runtime_gate contributors (@kubenode)
description:
  - Returns the pattern as it is, for C(hosts) of a play. Where no host of the inventory matches, it is an error.
  - Ansible itself passes over such a play with a warning and ends with 0, which reads as if every host had passed.
  - A C(--limit) is not looked at. With C(--syntax-check), which mostly has no inventory, any pattern passes.
positional: _input, groups
options:
  _input:
    description: A pattern, or a list of patterns, as C(hosts) of a play takes it.
    type: raw
    required: true
  groups:
    description: The variable C(groups).
    type: dict
    required: true
"""

EXAMPLES = r"""
---
- name: A play that does not pass over a mistyped group
  hosts: "{{ runtime_gate_hosts | default('all') | kubenode.runtime_gate.matched_hosts(groups) }}"
  gather_facts: false
  roles:
    - role: kubenode.runtime_gate.gate
"""

RETURN = r"""
_value:
  description: The pattern.
  type: raw
"""


def matched_hosts(pattern: t.Any, groups: t.Mapping[str, t.Sequence[str]]) -> t.Any:
    """The pattern. Raises AnsibleFilterError where no host matches it and something would run."""
    if context.CLIARGS.get("syntax"):
        return pattern
    inventory = InventoryManager(DataLoader(), parse=False)
    for group, hosts in groups.items():
        inventory.add_group(group)
        for host in hosts:
            inventory.add_host(host, group=group)
    if not inventory.list_hosts(pattern):
        number = len(inventory.list_hosts("all"))
        raise AnsibleFilterError(
            f"no host matches {pattern!r}, so nothing would be done: look at runtime_gate_hosts and at the inventory (-i), which has"
            f" {number} host{'' if number == 1 else 's'}"
        )
    return pattern


class FilterModule:
    """What ansible loads."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"matched_hosts": matched_hosts}
