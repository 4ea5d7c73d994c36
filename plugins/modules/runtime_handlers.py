#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: runtime_handlers
short_description: Runtime handlers into a node's containerd or CRI-O as one transaction, proved before and after
version_added: 0.1.0
author:
  - The kubenode.runtime_gate contributors (@kubenode)
description:
  - Renders one declaration of handlers as the configuration that is right for the container runtime on this node. For containerd, by
    the version and the plugin names of its root file, and at the place that its distribution reads. For CRI-O, as one drop-in with
    complete tables, whose name comes last in C(crio.conf.d).
  - Has the node's own binary load the planned files in a private mount namespace before anything is replaced. A failed proof
    changes nothing.
  - Writes with one rename as the commit point, restarts the service where that is needed, and asks the daemon over CRI whether every
    declared handler and everything that was loaded before is there. Otherwise the old files come back, the daemon is restarted
    again, and the task fails with the reasons.
  - What others wrote survives byte for byte. What is ours carries a mark of origin, and O(remove) takes it away again.
  - A handler that an earlier run wrote stays until it is declared with C(state=absent).
  - It installs nothing. The binaries of a handler must be there.
  - The runtime is restarted and never reloaded. A reload loads no handler on either engine, and makes CRI-O tell handlers that no
    sandbox can have.
  - On OpenShift the files of a node belong to its Machine Config Operator. Nothing is written there; RV(machine_config) is the object that
    brings the declaration about.
extends_documentation_fragment:
  - kubenode.runtime_gate.collect
  - kubenode.runtime_gate.collect.containerd
  - kubenode.runtime_gate.collect.crio
  - kubenode.runtime_gate.writer
options:
  _request:
    description: What the action plugin asks of the half on the node. It is not for use.
    type: str
  engine:
    description: Which engine is written. V(auto) is the one that serves the kubelet, or the only one that runs or is installed.
    type: str
    choices: [auto, containerd, crio]
    default: auto
  handlers:
    description:
      - Name of each handler, and what it is. A name must be a DNS label, as RuntimeClass.handler must be.
      - C(preset) is one of V(crun), V(gvisor), V(kata), V(kata-clh), V(kata-dragonball), V(kata-fc), V(kata-qemu), V(kata-stratovirt),
        V(nvidia), V(nvidia-cdi), V(spin). Keys beside it win over those of the preset. Without a preset, C(runtime_type) is needed.
      - The keys of containerd's own table are C(runtime_type), C(runtime_path), C(options), C(snapshotter), C(pod_annotations),
        C(privileged_without_host_devices), C(base_runtime_spec), C(sandboxer) and C(cgroup_writable). A key that the release line of
        the node does not have is an error.
      - On CRI-O the same declaration gives the table of CRI-O. A runc-type handler becomes C(oci) with its binary, one of Kata C(vm), gVisor
        C(oci) with runsc; a shim that CRI-O cannot run, as of V(spin), is an error there. Its own keys are C(runtime_root),
        C(runtime_config_path), C(allowed_annotations), C(default_annotations), C(monitor_path), C(monitor_cgroup), C(monitor_env),
        C(monitor_exec_cgroup), C(container_min_memory), C(container_create_timeout), C(exec_cpu_affinity), C(inherit_default_runtime),
        C(no_sync_log), C(platform_runtime_paths), C(runtime_pull_image), C(seccomp_profile) and C(stream_websockets), and C(runtime_type)
        may be C(oci), C(vm) or C(pod). What only one engine has counts for nothing on the other.
      - C(options.SystemdCgroup) of a runc-type handler follows the kubelet's cgroup driver, or the default handler's value, unless it
        is given.
      - C(state) is V(present) or V(absent), C(allow_absent_binary) is O(allow_absent_binary) for this handler alone.
      - C(runtime_class) is for P(kubenode.runtime_gate.runtimeclass#role) and counts for nothing here.
    type: dict
    default: {}
  default_handler:
    description: The handler of pods without runtimeClassName. Without it, the present one stays.
    type: str
  remove:
    description: Take everything away that this module ever wrote, and give back the default handler of before. O(handlers) is ignored.
    type: bool
    default: false
  mode:
    description:
      - V(dropin) writes one file of ours that the root file imports, V(merge) edits the root file between marks.
      - V(auto) is a drop-in on CRI-O and containerd 2.x, and a merge on 1.x, where an imported file replaces the whole CRI section.
    type: str
    choices: [auto, dropin, merge]
    default: auto
  repair:
    description:
      - Make a root file loadable in which handlers would be lost, for example one without version, with the names of another version, or
        with CRI disabled. Without it, such a node is refused with the reason.
    type: bool
    default: false
  migrate:
    description: Move the root file and its drop-ins up to this version of the format, as one step and proved equal in what is loaded.
    type: int
    choices: [3]
  allow_absent_binary:
    description:
      - Write a handler although its shim or binary is not on the node. CRI-O does not load such a handler before it is there and CRI-O has
        been restarted.
    type: bool
    default: false
  accept_blast_radius:
    description:
      - Go on although the default handler changes, which reaches every pod that names no RuntimeClass. Without it, such a change is
        refused, and the message says what it reaches.
    type: bool
    default: false
  restart:
    description: V(auto) restarts the runtime where what is loaded must change, V(never) leaves that to you, V(reload) is refused.
    type: str
    choices: [auto, never, reload]
    default: auto
  restart_control_plane:
    description:
      - Restart k3s, rke2 or k0s on several servers at once. Their containerd is part of the process that is also the API server, so
        that it is refused otherwise unless the play changes one host at a time.
    type: bool
    default: false
  unit:
    description: The service to restart. Without it, the one that the running daemon belongs to.
    type: str
  restart_command:
    description:
      - The command that restarts the runtime, where no service manager does, as a list of words. One that reloads is refused.
      - A string is split into words as a shell does it. No shell runs it, so that what only a shell understands is refused.
    type: raw
  ready_timeout:
    description: Seconds in which the restarted daemon must have everything, before the old configuration comes back.
    type: float
    default: 120.0
  probe:
    description:
      - V(sandbox) also makes and removes a real pod sandbox of each declared handler, after the restart or, on a node that is as
        declared already, in a remote call of its own. Check mode makes none.
    type: str
    choices: [none, sandbox]
    default: none
  backups:
    description: How many backups are kept in C(/var/lib/runtime-gate) on the node.
    type: int
    default: 5
  target_version:
    description: The release that will be installed, for a node that has no runtime yet. Without O(engine), of containerd.
    type: str
  cordon:
    description:
      - Cordon the host's Node before the runtime is restarted, and only then. A node that is as declared is left alone.
      - Role P(kubenode.runtime_gate.gate#role) gives it back when it has passed. A Node whose change was taken back, and whose old
        state was proved, is given back at once; any other stays cordoned, with the reason in an annotation. After O(remove) the proof
        is enough.
      - A Node that was cordoned before stays cordoned.
    type: bool
    default: false
  drain:
    description: Drain the Node too, before the runtime is restarted. It includes O(cordon).
    type: bool
    default: false
  drain_grace:
    description: Seconds that each evicted pod has to end. Without it, the pod's own.
    type: int
  drain_timeout:
    description: Seconds for the whole drain. When they are over, the Node is given back and nothing is changed on it.
    type: float
    default: 300.0
  drain_options:
    description:
      - By the names of M(kubernetes.core.k8s_drain), C(force), C(ignore_daemonsets) (V(true) here), C(delete_emptydir_data),
        C(disable_eviction), C(wait_sleep) and C(pod_selectors).
    type: dict
    default: {}
  cluster:
    description:
      - How the API server is reached for O(cordon) and O(drain), from the controller. The connection options of
        M(kubenode.runtime_gate.runtimeclass_crosscheck), which are those of C(kubernetes.core).
    type: dict
    default: {}
  node_name:
    description: The name of this host's Node, where nothing on the host tells it.
    type: str
  prefix:
    description: The prefix of the annotation that marks a cordon as ours.
    type: str
    default: runtime-gate.kubenode.io
seealso:
  - module: kubenode.runtime_gate.containerd_runtime_facts
  - module: kubenode.runtime_gate.crio_runtime_facts
  - module: kubenode.runtime_gate.runtimeclass_crosscheck
"""

EXAMPLES = r"""
---
- name: NVIDIA and gVisor, and a handler of our own
  kubenode.runtime_gate.runtime_handlers:
    handlers:
      nvidia: {preset: nvidia}
      runsc: {preset: gvisor}
      mine:
        runtime_type: io.containerd.runc.v2
        options: {BinaryName: /usr/local/bin/mine}
  become: true

- name: Kata with a configuration of our own, on nodes of either engine
  kubenode.runtime_gate.runtime_handlers:
    handlers:
      kata:
        preset: kata
        options: {ConfigPath: /etc/kata/ours.toml}
  become: true

- name: Take one handler away
  kubenode.runtime_gate.runtime_handlers:
    handlers:
      mine: {state: absent}
  become: true

- name: Make nvidia the default of a GPU node
  kubenode.runtime_gate.runtime_handlers:
    handlers:
      nvidia: {preset: nvidia}
    default_handler: nvidia
    accept_blast_radius: true
  become: true

- name: A Docker package's containerd, whose file disables CRI
  kubenode.runtime_gate.runtime_handlers:
    handlers:
      crun: {preset: crun}
    repair: true
  become: true

- name: Take everything of ours away
  kubenode.runtime_gate.runtime_handlers:
    remove: true
  become: true
"""

RETURN = r"""
restarted:
  description: The runtime was restarted, by a service manager or command that said so. A restart that failed is none.
  returned: success, or failure after the change began
  type: bool
  sample: true
restart_pending:
  description: What is loaded is not yet what the files say, because O(restart) is V(never) or in check mode.
  returned: success, or failure after the change began
  type: bool
  sample: false
rolled_back:
  description: The change was made, failed its proof and was taken back.
  returned: success, or failure after the change began
  type: bool
  sample: false
proved:
  description: The daemon itself has answered, after the change or after the way back, that it has what it must have.
  returned: success, or failure after the change began
  type: bool
  sample: true
cordoned:
  description: With O(cordon), whether the Node is cordoned by this collection for the restart; in check mode, whether it would be.
  returned: success, or failure after the change began
  type: bool
  sample: false
evicted:
  description: With O(drain), the pods that were evicted; in check mode, those that would be.
  returned: success, or failure after the change began
  type: list
  elements: str
  sample: []
handlers:
  description: Names of the handlers that are loaded, as the daemon says after the change; in check mode, as it says now.
  returned: success, or failure after the change began
  type: list
  elements: str
  sample: [nvidia, runc]
default_handler:
  description: The default handler that is loaded; null where the daemon serves no CRI.
  returned: success, or failure after the change began
  type: str
  sample: runc
pending_handlers:
  description: In check mode, the handlers that this run would load and whose proof passed.
  returned: success, or failure after the change began
  type: list
  elements: str
  sample: []
machine_config:
  description: The MachineConfig that brings the declared handlers about, as YAML; nothing is written on such a node.
  returned: on nodes of OpenShift that are not as declared
  type: str
  sample: "apiVersion: machineconfiguration.openshift.io/v1"
loaded_diff:
  description: The change of the loaded configuration, one sentence for each handler or key.
  returned: success, or when refused
  type: list
  elements: str
  sample: ["handler nvidia: added (runtime_type io.containerd.runc.v2)"]
loaded_change:
  description: The same in one line, for a person who looks at many hosts; empty where what is loaded does not change.
  returned: success, or failure after the change began
  type: str
  sample: "handlers added: nvidia, runsc; default handler: runc -> nvidia"
notes:
  description: What is worth knowing and stopped nothing, such as conflicts with another tool's file.
  returned: success, or when refused
  type: list
  elements: str
  sample: []
reasons:
  description: Why the proof failed; after a failed way back, its reason too.
  returned: success, or when refused
  type: list
  elements: str
  sample: []
backup:
  description: The directory on the node that holds what the files were before; null where nothing was written.
  returned: success, or failure after the change began
  type: str
  sample: /var/lib/runtime-gate/backups/20260601T080500Z-4711
probe:
  description: With O(probe=sandbox), name of each probed handler and null, or the daemon's words why it cannot make a sandbox.
  returned: success, or failure after the change began
  type: dict
  sample: {"nvidia": null}
kubespray:
  description: The variables with which kubespray writes the same handlers itself. It overwrites the root file at its next run.
  returned: on nodes of kubespray
  type: str
  sample: "containerd_additional_runtimes: []"
diff:
  description: The change of the loaded configuration, then of each file, with masked values.
  returned: in diff mode
  type: list
  elements: dict
"""

import json
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.handlers_options import (
    ANSWER_KEY,
    HANDLERS_OPTIONS,
    REQUEST_KEY,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import handlers_steps


def main() -> t.NoReturn:
    """The half that runs on the node: one step a call, by the request of the action plugin."""
    # The request is long and of no use in the node's log: that is what no_log is for here.
    request = {REQUEST_KEY: {"type": "str", "no_log": True}}
    module = AnsibleModule(argument_spec=dict(HANDLERS_OPTIONS, **request), supports_check_mode=True)
    text = module.params[REQUEST_KEY]
    if not text:
        module.fail_json(msg="this module works only with its action plugin, which comes with the collection")
    try:
        answer = handlers_steps.run(json.loads(text))
    except RuntimeGateError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**{"changed": False, ANSWER_KEY: answer})


if __name__ == "__main__":
    main()
