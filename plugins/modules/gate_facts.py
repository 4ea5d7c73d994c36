#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gate_facts
short_description: What the container runtime that serves the kubelet has loaded, whichever it is
version_added: 0.1.0
author:
  - The kubenode.runtime_gate contributors (@kubenode)
description:
  - The first task of the role P(kubenode.runtime_gate.gate#role), which is the way to use it.
  - In one call it finds the runtime that the kubelet uses and returns the facts of M(kubenode.runtime_gate.containerd_runtime_facts) or of
    M(kubenode.runtime_gate.crio_runtime_facts).
extends_documentation_fragment:
  - kubenode.runtime_gate.collect
  - kubenode.runtime_gate.collect.containerd
  - kubenode.runtime_gate.collect.crio
  - kubenode.runtime_gate.controller
options:
  capture:
    description:
      - A directory on the controller with the capture of a node, as M(kubenode.runtime_gate.runtime_capture) writes it.
      - The recording is judged like the node itself, no host is touched.
    type: path
seealso:
  - module: kubenode.runtime_gate.containerd_runtime_facts
  - module: kubenode.runtime_gate.crio_runtime_facts
"""

EXAMPLES = r"""
---
- name: Read what the container runtime has loaded
  kubenode.runtime_gate.gate_facts:
  become: true
  register: runtime
"""

RETURN = r"""
ansible_facts:
  description: The facts, under the key of their engine.
  returned: success
  type: dict
  contains:
    containerd_runtime:
      description: See RV(kubenode.runtime_gate.containerd_runtime_facts#module:ansible_facts.containerd_runtime).
      returned: where containerd serves the kubelet
      type: dict
    crio_runtime:
      description: See RV(kubenode.runtime_gate.crio_runtime_facts#module:ansible_facts.crio_runtime).
      returned: where CRI-O serves the kubelet
      type: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.collect_options import ANY_OPTIONS, CAPTURE_KEY
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.collect import collect


def main() -> t.NoReturn:
    """The half that runs on the node: it collects, masks and returns; the action plugin judges."""
    module = AnsibleModule(argument_spec={**ANY_OPTIONS, "capture": {"type": "path"}}, supports_check_mode=True)
    capture = collect(dict(module.params, engine="any"))
    module.exit_json(**{"changed": False, CAPTURE_KEY: capture})


if __name__ == "__main__":
    main()
