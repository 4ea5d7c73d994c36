#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: crio_runtime_facts
short_description: Which runtime handlers a node's CRI-O has really loaded, and why not the others
version_added: 0.1.0
author:
  - The kubenode.runtime_gate contributors (@kubenode)
description:
  - Asks the running CRI-O which handlers it has loaded, and reads its configuration files, its command line, its unit and
    C(crio config) to tell what a restart would load and what was lost on the way, with the reason.
  - The facts have the schema and the words of M(kubenode.runtime_gate.containerd_runtime_facts).
  - After a reload (SIGHUP) CRI-O's own answers are wrong, on every release line. Where the journal does not exclude one, the
    handlers that sandboxes are really made with are learned from the refusal of a sandbox with a handler that cannot exist. Nothing is
    made; CRI-O logs one error. RV(ansible_facts.crio_runtime.layers) says how it was settled.
  - CRI-O 1.20 to 1.36.
extends_documentation_fragment:
  - kubenode.runtime_gate.collect
  - kubenode.runtime_gate.collect.crio
  - kubenode.runtime_gate.controller
options:
  dump:
    description:
      - The text of a C(crio config) or C(crio status config). Only this text is judged, no host is touched.
      - It tells what a restart would load, so RV(ignore:cri_ready) is null.
    type: str
  capture:
    description:
      - A directory on the controller with the capture of a node, as M(kubenode.runtime_gate.runtime_capture) writes it.
      - The recording is judged like the node itself, no host is touched.
    type: path
seealso:
  - module: kubenode.runtime_gate.containerd_runtime_facts
  - module: kubenode.runtime_gate.runtime_capture
  - module: kubenode.runtime_gate.runtimeclass_crosscheck
"""

EXAMPLES = r"""
---
- name: Read what CRI-O has loaded
  kubenode.runtime_gate.crio_runtime_facts:
  become: true

- name: Show the handlers that are declared and not loaded
  ansible.builtin.debug:
    msg: "{{ ansible_facts['crio_runtime']['lost'] }}"

- name: Judge a recording
  kubenode.runtime_gate.crio_runtime_facts:
    capture: captures/worker-1

- name: Judge a dump
  kubenode.runtime_gate.crio_runtime_facts:
    dump: "{{ lookup('ansible.builtin.file', 'dump.toml') }}"
"""

RETURN = r"""
ansible_facts:
  description: The facts, under one key.
  returned: success
  type: dict
  contains:
    crio_runtime:
      description: What this node's CRI-O has loaded.
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
          sample: crio
        version:
          description: Version of the running daemon.
          returned: success
          type: str
          sample: 1.36.3
        next_version:
          description: Version that a restart would run.
          returned: success
          type: str
          sample: 1.36.4
        release_line:
          description: The release line whose rules hold.
          returned: success
          type: str
          sample: "1.36"
        config_path:
          description: The root configuration file.
          returned: success
          type: str
          sample: /etc/crio/crio.conf
        endpoint:
          description: The socket of the runtime.
          returned: success
          type: str
          sample: unix:///run/crio/crio.sock
        serves_kubelet:
          description: Whether the kubelet uses this runtime; null when that is not known.
          returned: success
          type: bool
          sample: true
        evidence:
          description: What RV(ansible_facts.crio_runtime.handlers) rests on, one of V(loaded), V(api), V(next), V(none).
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
          sample: crun
        handlers:
          description:
            - Name of each loaded handler, with runtime_type (oci, vm, pod), binary, shim (of vm), options (every other setting of its
              table), features, usable (null when not known) and reason, and what widens the rights of its pods
              (privileged_without_host_devices; pod_annotations are the allowed_annotations). snapshotter is always null.
          returned: success
          type: dict
          sample: {"crun": {"runtime_type": "oci", "usable": true}}
        layers:
          description:
            - The layers of evidence (loaded, next, declared), each with available, source, handlers and default_handler.
            - The layer loaded also has reloaded (whether CRI-O was reloaded since its start; null when not known), settled_by (V(answer),
              V(probe) or V(files)), claimed (handlers that it names and no sandbox can have) and hidden (the other way round).
          returned: success
          type: dict
        imports:
          description: The directory of drop-ins, with the files below it in the order in which they are loaded.
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
    CRIO_OPTIONS,
    RECORDED_EXCLUSIVE,
    RECORDED_OPTIONS,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.collect import collect


def main() -> t.NoReturn:
    """The half that runs on the node: it collects, masks and returns; the action plugin judges."""
    module = AnsibleModule(
        argument_spec={**CRIO_OPTIONS, **RECORDED_OPTIONS},
        mutually_exclusive=RECORDED_EXCLUSIVE,
        supports_check_mode=True,
    )
    capture = collect(dict(module.params, engine="crio"))
    module.exit_json(**{"changed": False, CAPTURE_KEY: capture})


if __name__ == "__main__":
    main()
