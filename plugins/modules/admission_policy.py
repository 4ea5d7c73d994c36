#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: admission_policy
short_description: Install the admission policies that know which runtime handlers are loaded
version_added: 0.1.0
author:
  - The kubenode.runtime_gate contributors (@kubenode)
description:
  - The task of the role P(kubenode.runtime_gate.admission#role), which is the way to use it.
  - A ValidatingAdmissionPolicy and its binding for RuntimeClasses, the same for pods and workloads, and an empty ConfigMap as their
    parameter, where there is none. Without content in it, everything passes. The role P(kubenode.runtime_gate.gate#role) fills it.
  - One call works for all hosts of the play, so that the task has C(run_once). Hosts with the same C(runtime_gate_cluster) belong to
    one cluster.
  - Objects are made by server-side apply under the field manager C(kubenode.runtime_gate), never by force. What belongs to somebody else is
    left alone.
  - It runs on the controller and sends nothing to any host.
extends_documentation_fragment:
  - kubenode.runtime_gate.cluster_writer
options:
  state:
    description: V(absent) takes everything away, the ConfigMap too.
    type: str
    choices: [present, absent]
    default: present
  namespace:
    description: The namespace of the ConfigMap. It must exist.
    type: str
    default: kube-system
  on_violation:
    description: V(warn) warns whoever asks and puts it into the audit log, V(deny) refuses.
    type: str
    choices: [warn, deny]
    default: warn
  accepted_handlers:
    description: Handlers that pass although no node has loaded them, such as those of a pool that is scaled to zero.
    type: list
    elements: str
    default: []
  cluster:
    description:
      - C(runtime_gate_cluster) as this task sees it, the connection options of M(kubenode.runtime_gate.runtimeclass_crosscheck) with
        C(api_timeout) and C(api_page_size).
    type: dict
    default: {}
requirements:
  - Kubernetes 1.30 or later
seealso:
  - module: kubenode.runtime_gate.gate_admission
"""

EXAMPLES = r"""
---
- name: Warn of RuntimeClasses whose handler no node has loaded
  kubenode.runtime_gate.admission_policy:
    cluster: {kubeconfig: ~/.kube/config}
  run_once: true
"""

RETURN = r"""
notes:
  description: What was left alone.
  returned: success
  type: list
  elements: str
  sample: []
diff:
  description: Each object that changes, before and after.
  returned: in diff mode
  type: list
  elements: dict
"""
