#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gate_inputs
short_description: Test what the gate will need before anything is read or changed
version_added: 0.1.0
author:
  - The kubenode.runtime_gate contributors (@kubenode)
description:
  - The first task of a rollout, from the entry point C(inputs) of the role P(kubenode.runtime_gate.gate#role), which is the way to use it.
  - Fails where a report could not be written, an earlier one not be read, the policy is none, or the cluster cannot be read.
  - The cluster is read once a run, and M(kubenode.runtime_gate.gate_judge) judges by what was read here.
  - Warns of variables of the host that start with C(runtime_gate_) and are none of this collection's.
  - It runs on the controller and sends nothing to the host, but for C(kubectl).
extends_documentation_fragment:
  - kubenode.runtime_gate.controller
options:
  report_alone:
    description: Test only what O(report_path) and O(previous_report) say.
    type: bool
    default: false
  manifests:
    description: See the option O(kubenode.runtime_gate.gate_judge#module:manifests).
    type: list
    elements: path
    default: []
  kubectl_host:
    description: See the option O(kubenode.runtime_gate.gate_judge#module:kubectl_host).
    type: str
    default: ""
  kubectl:
    description: See the option O(kubenode.runtime_gate.gate_judge#module:kubectl).
    type: str
    default: kubectl
  cluster:
    description: See the option O(kubenode.runtime_gate.gate_judge#module:cluster).
    type: dict
    default: {}
  policy:
    description: See the option O(kubenode.runtime_gate.runtimeclass_crosscheck#module:policy).
    type: dict
    default: {}
  read_workloads:
    description: See the option O(kubenode.runtime_gate.gate_judge#module:read_workloads).
    type: bool
    default: false
  failing_pods:
    description: See the option O(kubenode.runtime_gate.gate_judge#module:failing_pods).
    type: bool
    default: false
  report_path:
    description: See the option O(kubenode.runtime_gate.gate_judge#module:report_path).
    type: list
    elements: path
    default: []
  previous_report:
    description: See the option O(kubenode.runtime_gate.gate_judge#module:previous_report).
    type: path
    default: ""
  startup_taint:
    description: See the option O(kubenode.runtime_gate.gate_judge#module:startup_taint).
    type: str
    default: ""
seealso:
  - module: kubenode.runtime_gate.gate_judge
"""

EXAMPLES = r"""
---
- name: Test that the report can be written and the cluster be read
  kubenode.runtime_gate.gate_inputs:
    report_path: [report.json]
"""

RETURN = r"""
msg:
  description: What is wrong, and that nothing has been read or changed yet.
  returned: failure
  type: str
"""
