#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: runtime_capture
short_description: Record what is to be known about a node's container runtime
version_added: 0.1.0
author:
  - The kubenode.runtime_gate contributors (@kubenode)
description:
  - Writes a directory on the controller with the configuration files, the dump, the CRI answer and the facts about process, unit
    and kubelet of one node, a directory for each host.
  - Of a node with more than one runtime the one that serves the kubelet is recorded, containerd or CRI-O.
  - M(kubenode.runtime_gate.containerd_runtime_facts) and M(kubenode.runtime_gate.crio_runtime_facts) judge such a recording like the
    node itself.
  - Secrets are masked on the node, before anything leaves it.
extends_documentation_fragment:
  - kubenode.runtime_gate.collect
  - kubenode.runtime_gate.collect.containerd
  - kubenode.runtime_gate.collect.crio
attributes:
  action:
    description: Has a corresponding action plugin, so that parts of it run on the controller.
    support: full
  check_mode:
    description: Can run in C(check_mode) and tells what it would without it.
    support: full
  diff_mode:
    description: Shows what has changed when in diff mode.
    support: none
  platform:
    description: The systems on whose hosts it can be used.
    support: full
    platforms: posix
options:
  dest:
    description:
      - The directory on the controller that gets one directory for each host, named like the host in the inventory.
      - A recording of the host that is there is replaced; anything else is left alone, and the host fails.
    type: path
    required: true
seealso:
  - module: kubenode.runtime_gate.containerd_runtime_facts
  - module: kubenode.runtime_gate.crio_runtime_facts
"""

EXAMPLES = r"""
---
- name: Record the node
  kubenode.runtime_gate.runtime_capture:
    dest: captures
  become: true
"""

RETURN = r"""
path:
  description: The directory of this host's recording.
  returned: success
  type: str
  sample: /home/ops/captures/worker-1
withheld:
  description: Files of the node that were withheld, since their secrets could not be located with certainty, with the reason.
  returned: success
  type: dict
  sample: {"/etc/containerd/config.toml.tmpl": "its secrets cannot be located, it is no readable TOML (line 3, not a TOML key)"}
"""

# This module has no half of its own on the node: its action plugin runs the node half of gate_facts.
