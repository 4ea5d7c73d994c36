#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: runtimeclass_objects
short_description: Make the RuntimeClass objects of the declared handlers
version_added: 0.1.0
author:
  - The kubenode.runtime_gate contributors (@kubenode)
description:
  - The task of the role P(kubenode.runtime_gate.runtimeclass#role), which is the way to use it.
  - One call works for all hosts of the play, so that the task has C(run_once). It reads the variables C(runtime_gate_handlers),
    C(runtime_gate_runtimeclasses) and C(runtime_gate_cluster) of each of them. Hosts with the same connection belong to one cluster.
  - Objects are made by server-side apply under the field manager C(kubenode.runtime_gate), never by force. Objects and fields that
    somebody else owns are left alone, and are an error where they are not as declared.
  - Everything is tried by the API server first, in a dry run. Where one thing is refused, nothing is written.
  - It runs on the controller and sends nothing to any host.
extends_documentation_fragment:
  - kubenode.runtime_gate.cluster_writer
options:
  handlers:
    description:
      - The declaration, C(runtime_gate_handlers), as this task sees it. Where the inventory says something else of this host, it comes
        from the play or the role, and holds for all hosts.
      - The key C(runtime_class) of a handler is a mapping with C(name), C(overhead), C(node_selector), C(tolerations) and C(labels), all
        optional, or V(false) for no class. Without it, the class has the name of the handler.
    type: dict
    default: {}
  enabled:
    description: C(runtime_gate_runtimeclasses) as this task sees it. The declarations of hosts where it is V(false) ask for no class.
    type: bool
    default: true
  cluster:
    description:
      - C(runtime_gate_cluster) as this task sees it, the connection options of M(kubenode.runtime_gate.runtimeclass_crosscheck) with
        C(api_timeout) and C(api_page_size).
    type: dict
    default: {}
  hosts:
    description:
      - Every host whose declaration counts, also those that are not in this run (C(--limit)). Only what the hosts of the run declare is
        applied or deleted. The others can contradict, and keep the class of a handler that they have.
    type: list
    elements: str
    required: true
  phase:
    description:
      - V(all) deletes the classes of handlers that are declared absent, and applies the others.
      - V(before_nodes) only deletes and V(after_nodes) only applies, around a rollout. The former tries both.
      - V(remove) deletes the classes of all handlers that the hosts of the run declare.
    type: str
    choices: [all, before_nodes, after_nodes, remove]
    default: all
  replace:
    description: Delete and create a class whose handler is another one, which the API server does not change.
    type: bool
    default: false
  remove_used:
    description: Delete a class although pods use it. They go on; pods that are made later are rejected.
    type: bool
    default: false
seealso:
  - module: kubenode.runtime_gate.runtime_handlers
"""

EXAMPLES = r"""
---
- name: RuntimeClasses for what the inventory declares
  kubenode.runtime_gate.runtimeclass_objects:
    handlers: "{{ runtime_gate_handlers }}"
    hosts: "{{ ansible_play_hosts_all }}"
  run_once: true
"""

RETURN = r"""
classes:
  description: What became of each RuntimeClass of this phase. In check mode, what would become of it.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
      returned: success
      sample: nvidia
    state:
      description:
        - V(created), V(updated), V(replaced), V(deleted), V(unchanged), or V(foreign), which is somebody else's and left alone.
      type: str
      returned: success
      sample: created
    cluster_of:
      description: A host of the cluster that has it.
      type: str
      returned: success
      sample: worker-1
notes:
  description: What is worth knowing and stopped nothing, such as classes that pods use.
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
