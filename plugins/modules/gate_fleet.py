#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gate_fleet
short_description: Judge every node of a cluster, or every pool, without touching one
version_added: 0.1.0
author:
  - The kubenode.runtime_gate contributors (@kubenode)
description:
  - The part of the role P(kubenode.runtime_gate.gate#role) for C(runtime_gate_source=api) and C(pools), and the role is the way to use it.
    To judge a list of nodes in one task, use M(kubenode.runtime_gate.runtimeclass_crosscheck).
  - The fleet is judged once a run, whichever hosts the play has; localhost is enough. The table is printed, the report written and
    the statistics of the run set by the first host.
  - It never fails for what it finds; M(kubenode.runtime_gate.gate_verdict) does.
  - It runs on the controller and sends nothing to the host, but for C(kubectl).
extends_documentation_fragment:
  - kubenode.runtime_gate.controller
options:
  source:
    description:
      - V(api), each Linux Node of the cluster by its C(status.runtimeHandlers).
      - V(pools), each of O(pools) by the handlers that are listed there.
    type: str
    choices:
      - api
      - pools
    required: true
  pools:
    description: See the variable C(runtime_gate_pools) of the role P(kubenode.runtime_gate.gate#role).
    type: list
    elements: raw
    default: []
  manifests:
    description:
      - Files or directories with RuntimeClasses, Nodes, pods, workloads and events.
      - What they hold is not asked of the API server; what they lack and the judgement needs still is.
    type: list
    elements: path
    default: []
  kubectl_host:
    description: The host that the task is delegated to, where C(kubectl) reads the cluster.
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
  policy:
    description: See the option O(kubenode.runtime_gate.runtimeclass_crosscheck#module:policy).
    type: dict
    default: {}
  read_workloads:
    description: See the option O(kubenode.runtime_gate.runtimeclass_crosscheck#module:read_workloads).
    type: bool
    default: false
  failing_pods:
    description: See the option O(kubenode.runtime_gate.runtimeclass_crosscheck#module:failing_pods).
    type: bool
    default: false
  startup_taint:
    description:
      - The taint, as C(KEY:EFFECT) or C(KEY=VALUE:EFFECT), with which nodes register until they have passed. Taints of its key exclude
        no class from the judgement.
    type: str
    default: ""
  report_path:
    description: Files on the controller, each in the format of its ending. See the role P(kubenode.runtime_gate.gate#role).
    type: list
    elements: path
    default: []
  previous_report:
    description: An earlier report (JSON) that this one is compared with.
    type: path
    default: ""
seealso:
  - module: kubenode.runtime_gate.runtimeclass_crosscheck
"""

EXAMPLES = r"""
---
- name: Judge every node of the cluster by what it reports to the API
  kubenode.runtime_gate.gate_fleet:
    source: api
    cluster:
      kubeconfig: ~/.kube/config
  register: fleet
"""

RETURN = r"""
fails:
  description: Whether a node or pool fails, or the fleet could not be read.
  returned: always
  type: bool
message:
  description: Why, empty where none fails.
  returned: always
  type: str
counts:
  description: How many hosts (nodes or pools), judged ones, failing ones, and verdicts of each kind.
  returned: when the fleet could be read
  type: dict
failing_nodes:
  description: The nodes or pools that fail.
  returned: when the fleet could be read
  type: list
  elements: str
missing:
  description: For each of these the handlers that fail.
  returned: when the fleet could be read
  type: dict
"""
