#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: runtimeclass_crosscheck
short_description: Check which nodes can serve which RuntimeClass
version_added: 0.1.0
author:
  - The kubenode.runtime_gate contributors (@kubenode)
description:
  - Compares what RuntimeClasses ask for with the handlers that the nodes' container runtimes have really loaded, and gives one
    verdict for each pair of node and class, with the reason and a fix.
  - Follows C(scheduling.nodeSelector) of a class, and its tolerations against the taints of the nodes.
  - RuntimeClasses, nodes and workloads come as lists, from rendered manifests, from the output of C(kubectl), or from the cluster.
    For each of them a list that is given wins over manifests, manifests over C(kubectl), and that over the cluster.
  - It reports and never fails on a bad verdict, see RV(ok); use M(ansible.builtin.assert) or the role C(kubenode.runtime_gate.gate) to
    fail. Bad input fails the module with one sentence.
  - It runs on the controller; nothing is sent to the host of the task.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
attributes:
  check_mode:
    support: full
    description: Can run in C(check_mode) and gives the same answer there.
  diff_mode:
    support: N/A
    description: Changes nothing, so there is nothing to show.
  idempotent:
    support: full
    description: The same input gives the same answer.
options:
  runtime_classes:
    description:
      - The RuntimeClasses, as API objects (of any API version) or in the short form C(name), C(handler), C(scheduling).
      - An empty list means that there are none. That passes, with a notice.
    type: list
    elements: dict
  nodes:
    description:
      - The nodes. Each is either a mapping of the keys below, or a Node object of the API (with C(kind) and C(metadata)), judged
        by its C(status.runtimeHandlers) with evidence V(api); where that field is absent, its verdicts are V(unknown).
      - C(name) of the node.
      - C(labels) of the node. Without them a class that has a node selector is V(unknown) on the node.
      - C(taints) of the node, each a mapping or a string like V(nvidia.com/gpu=present:NoSchedule).
      - C(labels_complete) is V(false) where the node may still get labels that it has not yet (it has not registered). A class that
        selects a label which is not given is V(unknown) then.
      - C(runtime) is C(ansible_facts.containerd_runtime) of the host, or just C(handlers) (a list of names, or a mapping) and
        C(default_handler), which then count as loaded. Without it the verdicts are V(unknown). Also a Node object may carry it.
      - C(pending) lists handlers that the current run in check mode would load.
      - C(allocatable) maps resources to quantities, as C(status.allocatable) of a Node object does, for RV(overhead).
    type: list
    elements: dict
  workloads:
    description:
      - Pods, and objects with a pod template (Deployment, DaemonSet, StatefulSet, ReplicaSet, ReplicationController, Job, CronJob,
        PodTemplate). They show which classes are referenced and which pods run with the default handler of a node.
    type: list
    elements: dict
  manifests:
    description:
      - Files, and directories with all their sub-directories, of rendered manifests (V(.yml), V(.yaml), V(.json); several documents and
        C(List) objects are understood). Other kinds of objects in them are passed over.
      - A kustomization or a Helm chart is refused; render it first.
    type: list
    elements: path
  kubectl_output:
    description:
      - Outputs of C(kubectl get --output=json), each the text or what it parses to, for a controller that has no way to the API server.
      - C(runtime_classes) is that of C(kubectl get runtimeclasses).
      - C(nodes) is that of C(kubectl get nodes).
      - C(workloads) is that of C(kubectl get pods,deployments --all-namespaces) and what else matters.
      - C(events) is that of C(kubectl get events --all-namespaces).
    type: dict
  read_workloads:
    description:
      - Read pods and workload templates from the cluster also when the policy does not need them, for RV(blast_radius) and the
        references in RV(classes).
    type: bool
    default: false
  failing_pods:
    description:
      - Read the events of the cluster as well, those that tell of a pod that cannot start or is not created, and tie them to node,
        handler and verdict, see RV(failing_pods). Pods and workload templates are read too, since an event outlives its pod.
      - Where the runtime itself tells a pod that it has not a handler which C(status.runtimeHandlers) of the Node lists, the verdict of
        that handler on that node is V(unknown).
    type: bool
    default: false
  events:
    description:
      - With O(failing_pods=true), the events (core C(v1)), where they are not to be read.
    type: list
    elements: dict
  policy:
    description:
      - What counts and what fails. Every key is optional; a key that does not exist is an error.
      - C(classes) is a list of the only RuntimeClasses that count, or V(all), the default. A name that none of the RuntimeClasses has
        fails the module, because the class that was meant would silently not be judged; where there is no RuntimeClass at all it is
        only a notice.
      - C(node_selector) maps a class to labels, which replace the node selector of that class. An empty mapping means every node.
      - C(tolerations) is a list that is added to every class (what the pods are known to bring).
      - C(ignore_taints) is a list of taint keys that never exclude a node. The default are the C(node.kubernetes.io) life-cycle taints,
        the cloud provider's C(uninitialized) and C(shutdown), and those with which autoscalers mark a node for deletion. A list that is
        given replaces the default.
      - C(unscoped) says what happens with classes that have neither C(scheduling) nor an entry in C(node_selector). V(require) (the
        default) asks every node for them, V(referenced) only when a workload names them, V(warn) reports without failing, V(ignore) does
        not judge them.
      - C(required_handlers) is a list of handlers that every judged node must have, whatever the cluster says.
      - C(allowed_handlers) is a list of handlers; any other that is loaded is reported. By default none is.
      - C(unknown) is V(fail) (the default) or V(warn), for verdicts of V(unknown).
      - C(restart_loss) is V(fail) (the default) or V(warn), for handlers that are loaded now and that a restart would lose.
      - C(accept_evidence) is a list of V(loaded), V(api) and V(next), on which a pass may rest. V(loaded) is what the running daemon
        answered, V(api) what kubelet wrote into C(status.runtimeHandlers) of the Node, V(next) what the files would load at the next
        start. The default is V([loaded, api]).
    type: dict
  verdicts:
    description:
      - Which records RV(verdicts) has. V(notable) leaves out V(not_targeted) and V(ok), unless a restart would lose the handler.
    type: str
    choices: [notable, all]
    default: notable
  node_name:
    description:
      - Judge this one node of the cluster, and nothing that needs the whole fleet.
      - Without O(node_runtime) it is judged by its Node object.
    type: str
  node_runtime:
    description:
      - The runtime facts of one host (C(ansible_facts.containerd_runtime)). Only the Node of that host is judged.
      - The Node is found by O(node_name), else by kubelet's C(--hostname-override), else by the user C(system:node:NAME) of its
        kubeconfig, else by a boot id or machine id that one Node alone has, else by the lower-case host name. See
        RV(node_identity).
    type: dict
  node_labels:
    description:
      - With O(node_runtime), the labels that the node will have, used only where no Node of its name is registered.
    type: dict
  node_taints:
    description:
      - With O(node_runtime), the taints that the node will have, used only where no Node of its name is registered.
    type: list
    elements: raw
  node_pending:
    description:
      - With O(node_runtime), handlers that the current run in check mode would load and whose proof passed.
    type: list
    elements: str
  cache_for_run:
    description:
      - Read the cluster once in a run of C(ansible-playbook), however many hosts and tasks ask with the same options.
    type: bool
    default: false
  api_timeout:
    description: Seconds that one request to the API server may take.
    type: float
    default: 30.0
  api_page_size:
    description: How many objects one request to the API server asks for.
    type: int
    default: 500
requirements:
  - kubernetes (Python package) and kubernetes.core (collection) on the controller, only where the cluster is asked
notes:
  - The cluster is asked with two lists, RuntimeClasses and Nodes, page by page; the verb C(list) on both suffices. Workloads are read
    only where O(policy) says C(unscoped=referenced), O(read_workloads=true) or O(failing_pods=true), with one list for each kind; with
    the last also events, with one list for each of two reasons. The number of requests does not depend on how many hosts ask.
seealso:
  - name: RuntimeClass
    description: The concept, in the documentation of Kubernetes.
    link: https://kubernetes.io/docs/concepts/containers/runtime-class/
"""

EXAMPLES = r"""
---
- name: Check two nodes by what is known of them
  kubenode.runtime_gate.runtimeclass_crosscheck:
    runtime_classes:
      - name: gvisor
        handler: runsc
        scheduling:
          nodeSelector:
            sandbox: "true"
    nodes:
      - name: w1
        labels: {sandbox: "true"}
        runtime: {handlers: [runc, runsc], default_handler: runc}
      - name: w2
        labels: {sandbox: "true"}
        runtime: {handlers: [runc], default_handler: runc}
  register: two_nodes

- name: Say what is missing where
  ansible.builtin.debug:
    msg: "{{ two_nodes.missing }}"

- name: Check the pools of a cluster in a pipeline, by manifests alone
  kubenode.runtime_gate.runtimeclass_crosscheck:
    manifests: ["{{ playbook_dir }}/rendered"]
    nodes:
      - name: pool-gpu
        labels: {pool: gpu, kubernetes.io/os: linux}
        taints: [nvidia.com/gpu=present:NoSchedule]
        runtime: {handlers: [runc, nvidia], default_handler: runc}
      - name: pool-general
        labels: {pool: general, kubernetes.io/os: linux}
        runtime: {handlers: [runc], default_handler: runc}
    policy:
      tolerations:
        - {key: nvidia.com/gpu, operator: Exists}
      node_selector:
        nvidia: {pool: gpu}
  register: pools

- name: Fail the pipeline where a pool lacks a handler
  ansible.builtin.assert:
    that: pools.ok
    fail_msg: "{{ pools.verdicts | selectattr('fails') | map(attribute='reason') | join('; ') }}"

- name: Check a cluster by its API alone, by what the nodes report there
  kubenode.runtime_gate.runtimeclass_crosscheck:
    kubeconfig: ~/.kube/config
    context: production
    verdicts: all
  register: fleet

- name: Check this host against the cluster's RuntimeClasses
  kubenode.runtime_gate.runtimeclass_crosscheck:
    kubeconfig: ~/.kube/config
    node_runtime: "{{ read_runtime.ansible_facts.containerd_runtime }}"
    cache_for_run: true
  register: this_host
"""

RETURN = r"""
ok:
  description: No record fails, and the RuntimeClasses were really read.
  returned: success
  type: bool
  sample: false
verdicts:
  description: The records, by node and class.
  returned: success
  type: list
  elements: dict
  contains:
    node:
      description: Name of the node.
      type: str
      returned: always
      sample: w2
    runtime_class:
      description: Name of the RuntimeClass; null where C(required_handlers) of the policy asks.
      type: str
      returned: always
      sample: gvisor
    handler:
      description: The handler that is asked for.
      type: str
      returned: always
      sample: runsc
    verdict:
      description:
        - V(ok), the handler is loaded.
        - V(missing), it is not.
        - V(restart_required), it is not, and a restart of the runtime would load it.
        - V(unusable), it is loaded, but its shim or binary cannot run.
        - V(not_targeted), the node selector of the class excludes the node.
        - V(excluded_by_taint), the node is selected, but a taint keeps the pods of the class away.
        - V(unknown), it could not be determined.
      type: str
      returned: always
      sample: missing
    reason:
      description: Why, in a sentence.
      type: str
      returned: always
      sample: "handler runsc is not loaded on w2: the container runtime has runc"
    fix:
      description: What an operator can do; null where nothing is to be done.
      type: str
      returned: always
      sample: Configure handler runsc for the container runtime on w2 and restart it.
    evidence:
      description: What is known about the runtime rests on V(loaded), V(api), V(next), V(declared) (a list that was handed in) or V(none).
      type: str
      returned: always
      sample: loaded
    handler_loaded:
      description: Whether the handler is loaded on the node, also where the class cannot land there; null where it is not known.
      type: bool
      returned: always
      sample: false
    after_restart:
      description: V(loaded), V(missing) or V(unknown) after a restart of the runtime.
      type: str
      returned: always
      sample: unknown
    faults:
      description: Ids of the faults in the runtime facts that explain the handler, the worst first.
      type: list
      elements: int
      returned: always
      sample: [7]
    pending:
      description: The handler is not there, and the current run in check mode would load it.
      type: bool
      returned: always
      sample: false
    fails:
      description:
        - V(true) for V(missing), V(restart_required) and V(unusable), and, unless the policy says V(warn), for V(unknown) and for an V(ok)
          that a restart would end.
      type: bool
      returned: always
      sample: true
counts:
  description: How many, over all pairs of a judged node and a judged class, whatever O(verdicts) says.
  returned: success
  type: dict
  contains:
    ok: {description: Pairs of this verdict., type: int, returned: always, sample: 1}
    missing: {description: Pairs of this verdict., type: int, returned: always, sample: 1}
    restart_required: {description: Pairs of this verdict., type: int, returned: always, sample: 0}
    unusable: {description: Pairs of this verdict., type: int, returned: always, sample: 0}
    not_targeted: {description: Pairs of this verdict., type: int, returned: always, sample: 0}
    excluded_by_taint: {description: Pairs of this verdict., type: int, returned: always, sample: 0}
    unknown: {description: Pairs of this verdict., type: int, returned: always, sample: 0}
    records: {description: All pairs., type: int, returned: always, sample: 2}
    fails: {description: Pairs that fail., type: int, returned: always, sample: 1}
    pending: {description: Pairs that are pending., type: int, returned: always, sample: 0}
    restart_loss: {description: Pairs that are ok now and lost at the next restart., type: int, returned: always, sample: 0}
    failing_nodes: {description: Nodes on which a pair fails., type: int, returned: always, sample: 1}
    runtime_classes: {description: RuntimeClasses that were read., type: int, returned: always, sample: 1}
    nodes: {description: Nodes that were read., type: int, returned: always, sample: 2}
    judged_nodes: {description: Nodes that were judged., type: int, returned: always, sample: 2}
    windows_nodes: {description: 'Nodes that run Windows, not judged.', type: int, returned: always, sample: 0}
    virtual_nodes: {description: 'Virtual nodes, not judged.', type: int, returned: always, sample: 0}
missing:
  description: For each node that lacks a handler now, the handlers. Only records that fail.
  returned: success
  type: dict
  sample: {w2: [runsc]}
missing_handlers:
  description: The handlers in RV(missing), sorted, each once.
  returned: success
  type: list
  elements: str
  sample: [runsc]
classes:
  description: The RuntimeClasses, by name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Name of the class., type: str, returned: always, sample: gvisor}
    handler: {description: Its handler., type: str, returned: always, sample: runsc}
    scope:
      description: Where its selector comes from, V(scheduling), V(policy) or V(unscoped).
      type: str
      returned: always
      sample: scheduling
    node_selector: {description: The labels that it selects., type: dict, returned: always, sample: {sandbox: "true"}}
    judged: {description: Whether the policy lets it count., type: bool, returned: always, sample: true}
    not_judged_because: {description: 'Why not, else null.', type: str, returned: always, sample: 'policy: classes does not name it'}
    references: {description: How many workloads name it; null where none were read., type: int, returned: always, sample: 3}
    targeted: {description: How many judged nodes it lands on., type: int, returned: always, sample: 2}
    counts: {description: 'Verdict to number of nodes.', type: dict, returned: always, sample: {ok: 1, missing: 1}}
nodes:
  description: The nodes, in the order in which they came.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Name of the node., type: str, returned: always, sample: w1}
    kind: {description: 'V(linux), V(windows) or V(virtual).', type: str, returned: always, sample: linux}
    judged: {description: Whether it was judged., type: bool, returned: always, sample: true}
    engine: {description: 'V(containerd) or V(crio), where known.', type: str, returned: always, sample: containerd}
    version: {description: 'Version of the runtime, where known.', type: str, returned: always, sample: 2.1.9}
    evidence: {description: As in RV(verdicts)., type: str, returned: always, sample: loaded}
    cri_ready: {description: As in the runtime facts., type: bool, returned: always, sample: true}
    collected_at: {description: 'When the node was read, where known.', type: str, returned: always, sample: '2026-01-01T00:00:00Z'}
    default_handler: {description: 'The default handler, where known.', type: str, returned: always, sample: runc}
    handlers: {description: 'Names of its handlers; null where nothing is known.', type: list, elements: str, returned: always, sample: [runc, runsc]}
    fails: {description: Whether a record of it fails., type: bool, returned: always, sample: false}
    why_unknown: {description: 'Why nothing is known of its runtime, else null.', type: str, returned: always, sample: its runtime was not read}
notices:
  description:
    - What no single verdict shows, the worst first. Notices fail nothing.
    - "Their names: V(classes_not_read), V(no_runtime_classes), V(no_nodes_judged), V(windows_nodes), V(virtual_nodes),
      V(policy_class_unknown), V(cri_not_served), V(old_api_version), V(unscoped_classes), V(classes_not_judged), V(handler_not_allowed), V(weakening_option),
      V(handler_unnameable), V(selector_matches_no_node), V(class_nobody_serves), V(orphan_handler), V(label_promises_handler),
      V(handler_without_label), V(handler_differs), V(handler_paths_differ), V(workload_class_unknown), V(failing_pods),
      V(workload_refused), V(overhead_nobody_carries), V(overhead_room), V(pods_pending_for_overhead), V(evidence_api),
      V(evidence_declared), V(object_repeated)."
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str, returned: always, sample: orphan_handler}
    severity: {description: 'V(error), V(warning) or V(info).', type: str, returned: always, sample: info}
    message:
      description: A sentence.
      type: str
      returned: always
      sample: 'handler runsc is loaded on w1, but no RuntimeClass names it, so no pod can use it'
    fix: {description: 'What to do, or null.', type: str, returned: always, sample: 'Create a RuntimeClass with handler: runsc, or take the handler away.'}
    runtime_class: {description: 'The class that it is about, or null.', type: str, returned: always, sample: gvisor}
    handler: {description: 'The handler that it is about, or null.', type: str, returned: always, sample: runsc}
    nodes: {description: The nodes that it is about., type: list, elements: str, returned: always, sample: [w1]}
blast_radius:
  description: For each judged node, what depends on its default handler. The keys are the names of the nodes.
  returned: success
  type: dict
  contains:
    default_handler: {description: 'Its default handler, or null.', type: str, returned: always, sample: runc}
    needs_runtimeclass:
      description: Whether a pod gets a special handler only by naming a RuntimeClass; null where the default is not known.
      type: bool
      returned: always
      sample: true
    reach:
      description: V(node), a fault of the default handler meets every pod without a RuntimeClass; V(gpu-pods), only pods that ask for a
        special handler.
      type: str
      returned: always
      sample: gpu-pods
    pods:
      description: The pods there that run with the default handler; null where no workloads were read.
      type: list
      elements: str
      returned: always
      sample: [default/web]
overhead:
  description:
    - For each class that has an overhead, the largest request that one more pod of it can make on each node that it targets, where
      C(allocatable) of the node is known.
  returned: success
  type: list
  elements: dict
  contains:
    runtime_class: {description: Name of the class., type: str, returned: always, sample: gvisor}
    overhead: {description: 'What admission adds to each pod.', type: dict, returned: always, sample: {cpu: 250m, memory: 128Mi}}
    rests_on:
      description: V(pods), allocatable less what the pods there request; V(allocatable), that alone, because no pods were read.
      type: str
      returned: always
      sample: pods
    known: {description: Of how many targeted nodes allocatable is known., type: int, returned: always, sample: 2}
    carried_by: {description: How many of these could carry the overhead if they were empty., type: int, returned: always, sample: 2}
    nodes:
      description: For each of these nodes the quantities; null where not even the overhead fits.
      type: dict
      returned: always
      sample: {w1: {cpu: 750m, memory: 3968Mi}}
failing_pods:
  description:
    - What events say about pods that cannot start for their handler, or are not created for their class. Null without O(failing_pods=true).
  returned: success
  type: list
  elements: dict
  contains:
    kind: {description: 'V(Pod), or the kind of the controller object whose pods are refused.', type: str, returned: always, sample: Pod}
    name: {description: Its namespace and name., type: str, returned: always, sample: default/train-1}
    node: {description: 'The node, or null.', type: str, returned: always, sample: w1}
    runtime_class: {description: 'The class that it names, or null.', type: str, returned: always, sample: gvisor}
    handler: {description: 'The handler, or null.', type: str, returned: always, sample: runsc}
    cause:
      description:
        - V(handler_not_configured), the runtime has no such handler.
        - V(handler_unusable), it has it and cannot start it.
        - V(class_not_found), there is no such RuntimeClass.
        - V(rejected), admission refuses the pod for what its class says.
      type: str
      returned: always
      sample: handler_not_configured
    said: {description: 'The words of the event.', type: str, returned: always, sample: 'no runtime for "runsc" is configured'}
    count: {description: How often it was said., type: int, returned: always, sample: 12}
    last_seen: {description: 'When it was said last, or null.', type: str, returned: always, sample: '2026-01-01T00:00:00Z'}
    verdict: {description: 'The verdict of the class on the node, null where that was not judged.', type: str, returned: always, sample: missing}
    reason: {description: 'That of the verdict.', type: str, returned: always, sample: 'handler runsc is not loaded on w1'}
    fix: {description: 'That of the verdict.', type: str, returned: always, sample: 'Configure handler runsc for containerd on w1 and restart it.'}
    faults: {description: 'Those of the verdict.', type: list, elements: int, returned: always, sample: [7]}
lines:
  description: C(MISSING=HANDLER) for each handler that fails anywhere, sorted, each once; or C(OK), exactly when RV(ok).
  returned: success
  type: list
  elements: str
  sample: [MISSING=runsc]
node_identity:
  description: How the Node of the host was found.
  returned: with O(node_runtime) or O(node_name)
  type: dict
  contains:
    name: {description: Name of the Node., type: str, returned: always, sample: w1}
    registered: {description: Whether a Node of that name exists., type: bool, returned: always, sample: true}
    source:
      description: V(variable), V(hostname_override), V(kubeconfig), V(boot_id), V(machine_id) or V(hostname).
      type: str
      returned: always
      sample: boot_id
    reason: {description: A sentence., type: str, returned: always, sample: kubelet logs in as system:node:w1}
    conflict: {description: 'A sentence, where another Node has the boot id of the host; else null.', type: str, returned: always}
"""
