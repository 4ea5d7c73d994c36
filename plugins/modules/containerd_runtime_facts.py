#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: containerd_runtime_facts
short_description: Which runtime handlers a node's containerd has really loaded, and why not the others
version_added: 0.1.0
author:
  - The kubenode.runtime_gate contributors (@kubenode)
description:
  - Asks the running containerd over CRI which handlers it has loaded, and reads its configuration files and
    C(containerd config dump) to tell what a restart would load and what was lost on the way, with the reason.
  - The verdict never comes from a file. What a file says and the daemon did not load is explained by a fault.
  - Finds the containerd that the kubelet uses on nodes of kubeadm, kubespray, k3s, rke2, k0s, MicroK8s, EKS, AKS, GKE, Flatcar
    and Docker's packages, from containerd 1.4 on.
extends_documentation_fragment:
  - kubenode.runtime_gate.collect
  - kubenode.runtime_gate.collect.containerd
  - kubenode.runtime_gate.controller
options:
  dump:
    description:
      - The text of a C(containerd config dump). Only this text is judged, no host is touched.
      - It tells what a restart would load, so RV(ignore:cri_ready) is null.
    type: str
  capture:
    description:
      - A directory on the controller with the capture of a node, as M(kubenode.runtime_gate.runtime_capture) writes it.
      - The recording is judged like the node itself, no host is touched.
    type: path
seealso:
  - module: kubenode.runtime_gate.crio_runtime_facts
  - module: kubenode.runtime_gate.runtime_capture
  - module: kubenode.runtime_gate.runtimeclass_crosscheck
"""

EXAMPLES = r"""
---
- name: Read what containerd has loaded
  kubenode.runtime_gate.containerd_runtime_facts:
  become: true

- name: Show the handlers that are declared and not loaded
  ansible.builtin.debug:
    msg: "{{ ansible_facts['containerd_runtime']['lost'] }}"

- name: Judge a recording
  kubenode.runtime_gate.containerd_runtime_facts:
    capture: captures/worker-1

- name: Judge a dump
  kubenode.runtime_gate.containerd_runtime_facts:
    dump: "{{ lookup('ansible.builtin.file', 'dump.toml') }}"
"""

RETURN = r"""
ansible_facts:
  description: The facts, under one key.
  returned: success
  type: dict
  contains:
    containerd_runtime:
      description: What this node's containerd has loaded.
      returned: success
      type: dict
      contains:
        schema:
          description: Version of this structure.
          returned: success
          type: int
          sample: 1
        collected_at:
          description: When the node was read (UTC).
          returned: success
          type: str
          sample: "2026-06-01T08:05:00Z"
        engine:
          description: The engine that was judged.
          returned: success
          type: str
          sample: containerd
        version:
          description: Version of the running daemon.
          returned: success
          type: str
          sample: 1.7.24
        next_version:
          description: Version that a restart would run.
          returned: success
          type: str
          sample: 2.1.9
        release_line:
          description: The release line whose rules hold.
          returned: success
          type: str
          sample: "1.7"
        config_path:
          description: The root configuration file.
          returned: success
          type: str
          sample: /etc/containerd/config.toml
        endpoint:
          description: The socket of the runtime.
          returned: success
          type: str
          sample: unix:///run/containerd/containerd.sock
        serves_kubelet:
          description: Whether the kubelet uses this runtime; null when that is not known.
          returned: success
          type: bool
          sample: true
        evidence:
          description: What RV(ansible_facts.containerd_runtime.handlers) rests on, one of V(loaded), V(api), V(next), V(none).
          returned: success
          type: str
          sample: loaded
        cri_ready:
          description: True, false (CRI is not served, or the daemon does not run), or null (it could not be asked).
          returned: success
          type: bool
          sample: true
        explicit:
          description: Only a O(dump) was judged.
          returned: success
          type: bool
          sample: false
        reason:
          description: Why the runtime could not be asked, or serves no CRI; empty when it answered.
          returned: success
          type: str
          sample: ""
        default_handler:
          description: The handler of a pod without runtimeClassName.
          returned: success
          type: str
          sample: runc
        handlers:
          description:
            - Name of each loaded handler, with runtime_type, binary, shim, options, snapshotter, features, usable (null when
              not known) and reason, and what widens the rights of its pods (privileged_without_host_devices, its
              all_devices_allowed, cgroup_writable, pod_annotations, container_annotations).
          returned: success
          type: dict
          sample: {"runc": {"runtime_type": "io.containerd.runc.v2", "usable": true}}
        layers:
          description: The layers of evidence (loaded, next, declared), each with available, source, handlers and default_handler.
          returned: success
          type: dict
        imports:
          description: Each import pattern as it is written, with file, line, the files it matches and those that are loaded.
          returned: success
          type: list
          elements: dict
        restart_pending:
          description: A restart would change what is loaded.
          returned: success
          type: bool
          sample: false
        restart_gains:
          description: Handlers that a restart would add.
          returned: success
          type: list
          elements: str
        restart_loses:
          description: Handlers that a restart would take away.
          returned: success
          type: list
          elements: str
        restart_changes:
          description: Handlers that a restart would keep and load differently, with the keys that change.
          returned: success
          type: dict
        lost:
          description: Handlers that are declared for this runtime and not loaded.
          returned: success
          type: list
          elements: str
        faults:
          description:
            - Ways in which what a file says was not loaded, or loaded as something else, each with id, name, severity, handlers,
              file, table, line, message, fix and fix_edits.
          returned: success
          type: list
          elements: dict
        identity:
          description: What tells which Node object this node is (name, host name, boot and machine id, the kubelet's names, os, arch).
          returned: success
          type: dict
          sample: {"name": "worker-1", "hostname": "worker-1", "os": "linux", "arch": "amd64"}
        healthy:
          description: There is no fault of severity error or warning.
          returned: success
          type: bool
          sample: true
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.collect_options import (
    CAPTURE_KEY,
    COLLECT_OPTIONS,
    RECORDED_EXCLUSIVE,
    RECORDED_OPTIONS,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.collect import collect


def main() -> t.NoReturn:
    """The half that runs on the node: it collects, masks and returns; the action plugin judges."""
    module = AnsibleModule(
        argument_spec={**COLLECT_OPTIONS, **RECORDED_OPTIONS},
        mutually_exclusive=RECORDED_EXCLUSIVE,
        supports_check_mode=True,
    )
    capture = collect(dict(module.params, engine="containerd"))
    module.exit_json(**{"changed": False, CAPTURE_KEY: capture})


if __name__ == "__main__":
    main()
