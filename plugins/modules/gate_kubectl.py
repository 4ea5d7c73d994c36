#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gate_kubectl
short_description: Read the cluster with kubectl on the host that the task is delegated to, once a run
version_added: 0.1.0
author:
  - The kubenode.runtime_gate contributors
description:
  - A task of the role P(kubenode.runtime_gate.gate#role), for controllers that have no way to the API server.
  - Every host of the play comes here, the first one opens the connection, and M(kubenode.runtime_gate.gate_judge) finds what it read.
extends_documentation_fragment:
  - kubenode.runtime_gate.controller
options:
  host:
    description: The host that the task is delegated to; it names what was read.
    type: str
    required: true
  kubectl:
    description: The command that is C(kubectl) there, with its first arguments, in the syntax of the shell.
    type: str
    default: kubectl
  workloads:
    description: Whether pods and workloads are read too.
    type: bool
    default: false
seealso:
  - module: kubenode.runtime_gate.gate_judge
"""

EXAMPLES = r"""
---
- name: Read the cluster with kubectl on a control-plane host
  kubenode.runtime_gate.gate_kubectl:
    host: cp-1
    kubectl: kubectl --kubeconfig /etc/kubernetes/admin.conf
  delegate_to: cp-1
"""

RETURN = r"""
msg:
  description: Why the cluster could not be read.
  returned: failure
  type: str
  sample: "kubectl on cp-1 failed (rc 1): The connection to the server was refused"
"""
