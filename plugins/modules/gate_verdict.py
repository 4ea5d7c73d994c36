#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gate_verdict
short_description: Fail the host that gate_judge found failing
version_added: 0.1.0
author:
  - The kubenode.runtime_gate contributors (@kubenode)
description:
  - The last task of the role P(kubenode.runtime_gate.gate#role), which is the way to use it.
  - It runs on the controller and sends nothing to the host.
extends_documentation_fragment:
  - kubenode.runtime_gate.controller
options:
  judged:
    description: The registered result of M(kubenode.runtime_gate.gate_judge). A host without one fails.
    type: dict
    required: true
  cordon:
    description: What became of the Node's cordon, for the message of a host that fails.
    type: str
    default: ""
seealso:
  - module: kubenode.runtime_gate.gate_judge
"""

EXAMPLES = r"""
---
- name: Fail the host that would fail a pod
  kubenode.runtime_gate.gate_verdict:
    judged: "{{ judged }}"
"""

RETURN = r"""
msg:
  description: Each handler that is missing, with the reason and the fix; or that none is.
  returned: always
  type: str
  sample: every handler that pods can ask this node for is loaded
"""
