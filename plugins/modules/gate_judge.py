#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gate_judge
short_description: Judge this host alone against the cluster, and close the round when it is the last
version_added: 0.1.0
author:
  - The kubenode.runtime_gate contributors (@kubenode)
description:
  - The second task of the role P(kubenode.runtime_gate.gate#role), which is the way to use it.
    To judge a list of nodes in one task, use M(kubenode.runtime_gate.runtimeclass_crosscheck).
  - The cluster is read once a run, by the first host that needs it, whatever the strategy, C(serial) or C(--limit).
  - The host that completes the set of its batch prints the table, writes the report and sets the statistics of the run.
  - It never fails a host for what it finds; M(kubenode.runtime_gate.gate_verdict) does.
  - It runs on the controller and sends nothing to the host, but for C(kubectl).
extends_documentation_fragment:
  - kubenode.runtime_gate.controller
options:
  runtime:
    description: The registered result of M(kubenode.runtime_gate.containerd_runtime_facts), also of a host that could not be read.
    type: dict
    required: true
  manifests:
    description:
      - Files or directories with RuntimeClasses, Nodes, pods and workloads.
      - What they hold is not asked of the API server. What they lack still is, the Nodes, and with C(unscoped=referenced) in O(policy)
        the pods.
    type: list
    elements: path
    default: []
  kubectl_host:
    description:
      - The host that the task is delegated to, where C(kubectl) reads the cluster, for controllers that have no way to the API server.
    type: str
    default: ""
  kubectl:
    description: The command that is C(kubectl) there, with its first arguments, in the syntax of the shell.
    type: str
    default: kubectl
  cluster:
    description:
      - The connection options of M(kubenode.runtime_gate.runtimeclass_crosscheck), which are those of C(kubernetes.core), with
        C(api_timeout) and C(api_page_size).
    type: dict
    default: {}
  node_name:
    description: The name of this host's Node. Empty, it is found.
    type: str
    default: ""
  node_labels:
    description: Labels of a Node that has not registered yet.
    type: dict
    default: {}
  node_taints:
    description: Taints of a Node that has not registered yet.
    type: list
    elements: raw
    default: []
  policy:
    description: See the option O(kubenode.runtime_gate.runtimeclass_crosscheck#module:policy).
    type: dict
    default: {}
  read_workloads:
    description: See the option O(kubenode.runtime_gate.runtimeclass_crosscheck#module:read_workloads). The closing step looks at them.
    type: bool
    default: false
  failing_pods:
    description: See the option O(kubenode.runtime_gate.runtimeclass_crosscheck#module:failing_pods). The closing step looks at them.
    type: bool
    default: false
  pending:
    description: Whether a handler that this run would load fails the host.
    type: str
    choices:
      - fail
      - report
    default: fail
  pending_handlers:
    description: The handlers that this run would load and whose proof passed.
    type: list
    elements: str
    default: []
  report_path:
    description: Files on the controller, each in the format of its ending. See the role P(kubenode.runtime_gate.gate#role).
    type: list
    elements: path
    default: []
  previous_report:
    description: An earlier report (JSON) that this one is compared with.
    type: path
    default: ""
  startup_taint:
    description:
      - The taint, as C(KEY:EFFECT) or C(KEY=VALUE:EFFECT), with which nodes register until they have passed. Taints of its key exclude
        no class from the judgement.
    type: str
    default: ""
seealso:
  - module: kubenode.runtime_gate.runtimeclass_crosscheck
"""

EXAMPLES = r"""
---
- name: Judge the node by the cluster's RuntimeClasses
  kubenode.runtime_gate.gate_judge:
    runtime: "{{ runtime }}"
  register: judged
"""

RETURN = r"""
fails:
  description: Whether the host fails.
  returned: always
  type: bool
message:
  description: Why, empty where it does not fail.
  returned: always
  type: str
verdicts:
  description:
    - Every verdict but a plain ok and not_targeted, as in
      the return value RV(kubenode.runtime_gate.runtimeclass_crosscheck#module:verdicts).
  returned: always
  type: list
  elements: dict
publication:
  description: What is known of the node in the words of M(kubenode.runtime_gate.node_publish), which writes it where that is asked for.
  returned: always
  type: dict
  contains:
    node:
      description: The name of the Node, null where it is not known.
      returned: always
      type: str
    registered:
      description: Whether the cluster has that Node.
      returned: always
      type: bool
    conflict:
      description: Why another Node may be meant, or null.
      returned: always
      type: str
    handlers:
      description: The handlers that are loaded and can run.
      returned: always
      type: list
      elements: str
    status:
      description: The status of the condition, V(True), V(False) or V(Unknown).
      returned: always
      type: str
    reason:
      description: Why, in one word.
      returned: always
      type: str
    message:
      description: Why, in a sentence.
      returned: always
      type: str
    passed:
      description: Whether the node may take work.
      returned: always
      type: bool
round:
  description: How often this host had passed through the gate before, in this play.
  returned: always
  type: int
batch:
  description: Names the hosts that are judged together.
  returned: always
  type: str
cluster_key:
  description: Under which name the cluster's data is kept for this run.
  returned: always
  type: str
report_error:
  description: Why the report could not be written. The host that closed the round fails with it, after everything else.
  returned: when the host closed the round and the report could not be written
  type: str
report:
  description: The options O(report_path) and O(previous_report) as given.
  returned: always
  type: dict
"""
