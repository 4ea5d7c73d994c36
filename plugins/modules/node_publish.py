#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_publish
short_description: Write what the gate found onto the host's Node, as labels and a condition
version_added: 0.1.0
author:
  - The kubenode.runtime_gate contributors (@kubenode)
description:
  - A task of the role P(kubenode.runtime_gate.gate#role) with C(runtime_gate_publish), which is the way to use it.
  - A label C(PREFIX/HANDLER=loaded) for each handler that the running daemon has loaded and that can run, by server-side apply under
    the field manager C(kubenode.runtime_gate). Labels of handlers that are no longer loaded, or of which nothing is known, go away.
    A label that somebody else has given another value is left alone, and the host fails.
  - The condition C(RuntimeHandlersReady) with the status V(True), V(False) or V(Unknown), and a message that names what is missing.
  - The startup taint is taken away last, and only where the status is V(True) and the host passes.
  - It runs on the controller and sends nothing to the host. One request for a Node that is as it should be, four at most for another,
    five where a label is somebody else's.
extends_documentation_fragment:
  - kubenode.runtime_gate.cluster_writer
options:
  state:
    description: V(absent) takes labels and condition away. The startup taint stays as it is.
    type: str
    choices: [present, absent]
    default: present
  judged:
    description: The registered result of M(kubenode.runtime_gate.gate_judge), for O(state=present).
    type: dict
  runtime:
    description:
      - The registered result of M(kubenode.runtime_gate.containerd_runtime_facts), by which the host's Node is found, for O(state=absent).
    type: dict
  cluster:
    description:
      - The connection options of M(kubenode.runtime_gate.runtimeclass_crosscheck), which are those of C(kubernetes.core), with
        C(api_timeout) and C(api_page_size).
    type: dict
    default: {}
  node_name:
    description: The name of this host's Node, for O(state=absent). Empty, it is found.
    type: str
    default: ""
  prefix:
    description: The prefix of the labels, a DNS subdomain.
    type: str
    default: runtime-gate.kubenode.io
  startup_taint:
    description: The taint, as C(KEY:EFFECT) or C(KEY=VALUE:EFFECT), with which nodes register until they have passed. Empty, there is none.
    type: str
    default: ""
requirements:
  - kubernetes.core 6.0.0 or later and the Python package kubernetes on the controller.
seealso:
  - module: kubenode.runtime_gate.gate_judge
"""

EXAMPLES = r"""
---
- name: Publish what was found
  kubenode.runtime_gate.node_publish:
    judged: "{{ judged }}"
    startup_taint: runtime-gate.kubenode.io/not-verified:NoSchedule
"""

RETURN = r"""
node:
  description: The name of the Node, null where it is not known.
  returned: success
  type: str
  sample: worker-1
written:
  description: The parts that were written, in their order; in check mode, that would be.
  returned: success
  type: list
  elements: str
  sample: [labels, condition, startup taint]
notices:
  description: What is worth knowing, such as a handler whose name cannot be a label.
  returned: success
  type: list
  elements: str
  sample: []
msg:
  description: The message of the condition, or why nothing was published.
  returned: always
  type: str
  sample: every handler that pods can ask this node for is loaded
"""
