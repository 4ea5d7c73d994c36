#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gate_admission
short_description: Keep the admission policies' list of loaded handlers current
version_added: 0.1.0
author:
  - The kubenode.runtime_gate contributors (@kubenode)
description:
  - A task of the role P(kubenode.runtime_gate.gate#role), which is the way to use it, for the host that completes the set of its batch.
  - Writes the handlers that are loaded somewhere, and the RuntimeClasses that no node can serve, into a ConfigMap, which is the parameter
    of the policies of the role P(kubenode.runtime_gate.admission#role).
  - From a partial view (C(--limit), slices, hosts that could not be read) no handler is taken away, and a class stays in the list until a
    node serves it. The view is whole when each Node of the cluster was read, or tells its handlers in its status.
  - It runs on the controller and sends nothing to the host.
extends_documentation_fragment:
  - kubenode.runtime_gate.cluster_writer
options:
  judged:
    description: The registered result of M(kubenode.runtime_gate.gate_judge) of this host.
    type: dict
    required: true
  cluster:
    description:
      - The connection options of M(kubenode.runtime_gate.runtimeclass_crosscheck), with C(api_timeout) and C(api_page_size).
    type: dict
    default: {}
  namespace:
    description: The namespace of the ConfigMap.
    type: str
    default: kube-system
  partial:
    description: The Nodes that the gate knows are not those of the API server, so that the view is never whole.
    type: bool
    default: false
seealso:
  - module: kubenode.runtime_gate.admission_policy
"""

EXAMPLES = r"""
---
- name: Keep the list of loaded handlers current
  kubenode.runtime_gate.gate_admission:
    judged: "{{ judged }}"
  when: judged.ansible_stats is defined
"""

RETURN = r"""
handlers:
  description: The handlers in the list now. In check mode, those that would be.
  returned: success
  type: list
  elements: str
  sample: [nvidia, runc]
unserved:
  description: The RuntimeClasses that no node can serve.
  returned: success
  type: list
  elements: str
  sample: []
whole:
  description: Every node of the cluster was seen, so that handlers may also have been taken away.
  returned: success
  type: bool
  sample: true
diff:
  description: The list before and after.
  returned: in diff mode
  type: list
  elements: dict
"""
