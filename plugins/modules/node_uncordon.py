#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: node_uncordon
short_description: Give a Node back that the rollout cordoned, or say on it why not
version_added: 0.1.0
author:
  - The kubenode.runtime_gate contributors (@kubenode)
description:
  - A task of the role P(kubenode.runtime_gate.gate#role) with C(runtime_gate_cordon) or C(runtime_gate_drain), which is the way to use it.
  - Only a cordon that bears the mark of M(kubenode.runtime_gate.runtime_handlers) is touched, of this run or of one that was lost.
  - Where the host has passed, its Node takes pods again. Otherwise it stays cordoned, and the annotation C(PREFIX/cordoned) says why.
  - It runs on the controller and sends nothing to the host.
extends_documentation_fragment:
  - kubenode.runtime_gate.cluster_writer
attributes:
  diff_mode:
    support: none
options:
  judged:
    description: The registered result of M(kubenode.runtime_gate.gate_judge).
    type: dict
    required: true
  cluster:
    description:
      - The connection options of M(kubenode.runtime_gate.runtimeclass_crosscheck), which are those of C(kubernetes.core), with
        C(api_timeout) and C(api_page_size).
    type: dict
    default: {}
  prefix:
    description: The prefix of the annotation, a DNS subdomain.
    type: str
    default: runtime-gate.kubenode.io
requirements:
  - kubernetes.core 6.0.0 or later and the Python package kubernetes on the controller.
seealso:
  - module: kubenode.runtime_gate.runtime_handlers
"""

EXAMPLES = r"""
---
- name: Give the Node back if its host has passed
  kubenode.runtime_gate.node_uncordon:
    judged: "{{ judged }}"
"""

RETURN = r"""
msg:
  description: What became of the cordon; empty where there was none of ours.
  returned: always
  type: str
  sample: Node worker-1 takes pods again.
"""
