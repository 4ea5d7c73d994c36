# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The string validated: admission policies that know which handlers are loaded somewhere, and the list that they know it from.

Pure. Two ValidatingAdmissionPolicies with a binding each, and a ConfigMap that is their parameter. Source of every field:
https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/ (stable since Kubernetes 1.30) and, for the
functions, https://kubernetes.io/docs/reference/using-api/cel/.

They fail open: without the list, with an empty one, and where an expression cannot be evaluated, the object passes.
"""

from __future__ import annotations

import json
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.judged_node import JudgedNode
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import Policy
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.runtime_class import JudgedClass
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.scheduling import check_handler
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.verdict import reach

Object = t.Dict[str, t.Any]

GROUP = "admissionregistration.k8s.io/v1"
POLICIES = "/apis/%s/validatingadmissionpolicies" % GROUP
BINDINGS = "/apis/%s/validatingadmissionpolicybindings" % GROUP
#: Names of the policies, which are those of their bindings.
CLASSES_POLICY = "runtime-gate-runtimeclasses"
WORKLOADS_POLICY = "runtime-gate-workloads"
#: The parameter.
LIST_NAME = "runtime-gate-handlers"
HANDLERS_KEY, UNSERVED_KEY = "handlers", "unserved"

#: What a binding does with a violation. The API server refuses Deny together with Warn, which would say it twice.
ACTIONS = {"warn": ["Warn", "Audit"], "deny": ["Deny", "Audit"]}

_LONGEST_HANDLER = 63
#: The lines of a key of the parameter.
_LINES = "has(params.data) && '%s' in params.data ? params.data['%s'].split('\\n').filter(line, line != '') : []"

# Did you mean: the rule of core.suggest as far as CEL has words for it, which has no edit distance. A name is near when it is the
# same but for dashes, has up to two letters other than the asked one (a swap is two), one letter more or less, or is the other's
# beginning.
_NEAR = """variables.loaded.filter(known,
  known.replace('-', '') == object.handler.replace('-', '')
  || (size(known) == size(object.handler) && size(known) > 3
      && variables.places.filter(i, i < size(known) && known.charAt(i) != object.handler.charAt(i)).size() <= 2)
  || (size(known) == size(object.handler) + 1
      && variables.places.exists(i, i < size(known) && known.substring(0, i) + known.substring(i + 1) == object.handler))
  || (size(object.handler) == size(known) + 1
      && variables.places.exists(i, i < size(object.handler)
        && object.handler.substring(0, i) + object.handler.substring(i + 1) == known))
  || known.startsWith(object.handler + '-') || object.handler.startsWith(known + '-'))"""

# dyn: the same expression is for several kinds, and the type checker would look for each field in all of them.
_POD_OF = """request.resource.resource == 'pods' ? dyn(%(thing)s).spec
  : request.resource.resource == 'cronjobs' ? dyn(%(thing)s).spec.jobTemplate.spec.template.spec
  : dyn(%(thing)s).spec.template.spec"""


class Known(t.NamedTuple):
    """What the list holds. handlers: loaded on some node. unserved: (RuntimeClass, its handler) that no node can serve."""

    handlers: t.FrozenSet[str] = frozenset()
    unserved: t.FrozenSet[t.Tuple[str, str]] = frozenset()


class View(t.NamedTuple):
    """What one run of the gate has seen.

    :ivar whole: every node of the cluster was seen. :ivar classes: every (RuntimeClass, handler) that there is.
    :ivar served: the names of those that some node can serve.
    """

    known: Known
    whole: bool
    classes: t.FrozenSet[t.Tuple[str, str]]
    served: t.FrozenSet[str]


def view_of(nodes: t.Sequence[JudgedNode], classes: t.Sequence[JudgedClass]) -> View:
    """What these nodes, which are all that there are, and these classes show.

    A class is served by nobody where at least one node is in its reach, each of those has answered, and none has its handler. Taints
    do not count: pods bring tolerations. A selector that no node has says nothing: a pool may be scaled to zero.
    """
    everything = Policy()
    seen = [node for node in nodes if _answered(node)]
    unserved, served = set(), set()
    for entry in classes:
        reached = [node for node in nodes if reach(node, entry, everything) != "not_targeted"]
        if any(entry.handler in node.runtime.handlers for node in reached if _answered(node)):
            served.add(str(entry.name))
        elif reached and all(_answered(node) for node in reached):
            unserved.add((str(entry.name), entry.handler))
    handlers = frozenset(handler for node in seen for handler in node.runtime.handlers)
    whole = bool(nodes) and len(seen) == len(nodes)
    pairs = frozenset((str(entry.name), entry.handler) for entry in classes)
    return View(Known(handlers, frozenset(unserved)), whole, pairs, frozenset(served))


def _answered(node: JudgedNode) -> bool:
    """Whether the node's runtime, or its Node object, has told what is loaded. A runtime that is down tells nothing that lasts."""
    return node.runtime.why_unknown is None and node.runtime.cri_ready is True and node.runtime.evidence in ("loaded", "api")


def merged(old: Known, view: View) -> Known:
    """The list after this view. From a partial one, no handler is taken away, and a class stays unserved until a node serves it."""
    if view.whole and view.known.handlers:
        return view.known
    still = {pair for pair in old.unserved if pair in view.classes and pair[0] not in view.served}
    return Known(old.handlers | view.known.handlers, view.known.unserved | still)


def read_list(live: t.Optional[t.Mapping[str, t.Any]]) -> Known:
    """What a ConfigMap holds, nothing where there is none."""
    data = (live or {}).get("data") or {}
    pairs = (line.partition("=") for line in str(data.get(UNSERVED_KEY) or "").split("\n") if "=" in line)
    handlers = frozenset(line for line in str(data.get(HANDLERS_KEY) or "").split("\n") if line)
    return Known(handlers, frozenset((name, handler) for name, _equals, handler in pairs))


def list_object(known: Known, namespace: str) -> Object:
    """The ConfigMap to apply."""
    data = {
        HANDLERS_KEY: "\n".join(sorted(known.handlers)),
        UNSERVED_KEY: "\n".join(sorted("%s=%s" % pair for pair in known.unserved)),
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": LIST_NAME, "namespace": namespace}, "data": data}


def refused_by_us(message: str) -> bool:
    """Whether a refusal of the API server comes from a policy of ours."""
    return "ValidatingAdmissionPolicy '%s'" % CLASSES_POLICY in message or "ValidatingAdmissionPolicy '%s'" % WORKLOADS_POLICY in message


def policy_objects(namespace: str, action: str, accepted: t.Sequence[str]) -> t.List[t.Tuple[str, Object]]:
    """(path of its kind, object) of both policies and their bindings, in the order in which they are made.

    :param action: warn or deny. :param accepted: handlers that pass although nobody has loaded them.
    :raises RuntimeGateError: an accepted handler is none.
    """
    names = [check_handler(name, "runtime_gate_admission_accepted_handlers") for name in accepted]
    made: t.List[t.Tuple[str, Object]] = []
    for name, spec in ((CLASSES_POLICY, _classes_spec(names)), (WORKLOADS_POLICY, _workloads_spec(names))):
        made.append((POLICIES, _object("ValidatingAdmissionPolicy", name, dict(_COMMON, **spec))))
        binding = {
            "policyName": name,
            "paramRef": {"name": LIST_NAME, "namespace": namespace, "parameterNotFoundAction": "Allow"},
            "validationActions": ACTIONS[action],
        }
        made.append((BINDINGS, _object("ValidatingAdmissionPolicyBinding", name, binding)))
    return made


def removal(namespace: str) -> t.List[t.Tuple[str, str]]:
    """(path of its kind, name) of everything, in the order in which it is taken away.

    The list goes first, while the API server still follows it. An API server stops following a parameter of a built-in kind for good
    when no binding names its kind any more (https://github.com/kubernetes/kubernetes/issues/130887): one that had stopped with the list
    in its memory would judge by it for ever, if the policies came back.
    """
    names = (CLASSES_POLICY, WORKLOADS_POLICY)
    return [(lists_path(namespace), LIST_NAME)] + [(BINDINGS, name) for name in names] + [(POLICIES, name) for name in names]


def lists_path(namespace: str) -> str:
    """Where the ConfigMaps of a namespace are."""
    return "/api/v1/namespaces/%s/configmaps" % namespace


_COMMON = {"failurePolicy": "Ignore", "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}


def _object(kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": GROUP, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _classes_spec(accepted: t.Sequence[str]) -> Object:
    """Only CREATE: the handler never changes afterwards, and a class whose handler went must stay changeable."""
    return {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": ["node.k8s.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["runtimeclasses"]}
            ]
        },
        "variables": [
            {"name": "loaded", "expression": _LINES % (HANDLERS_KEY, HANDLERS_KEY)},
            {"name": "accepted", "expression": json.dumps(list(accepted))},
            {"name": "places", "expression": json.dumps(list(range(_LONGEST_HANDLER + 1)))},
            {"name": "near", "expression": _NEAR},
        ],
        "validations": [
            {
                "expression": "size(variables.loaded) == 0 || object.handler in variables.loaded || object.handler in variables.accepted",
                "messageExpression": "'no node has loaded handler \"' + object.handler + '\", so pods of this RuntimeClass would hang'"
                " + (size(variables.near) > 0 ? '; did you mean \"' + variables.near.join('\" or \"') + '\"?' : '.')"
                " + ' Loaded are: ' + variables.loaded.join(', ')",
                "reason": "Invalid",
            }
        ],
    }


def _workloads_spec(accepted: t.Sequence[str]) -> Object:
    """An update is looked at only where it changes the class: a finalizer must always come off."""
    rules = [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]},
        {
            "apiGroups": ["apps"],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["deployments", "daemonsets", "statefulsets"],
        },
        {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["jobs", "cronjobs"]},
    ]
    named = "has(variables.%s.runtimeClassName) ? string(variables.%s.runtimeClassName) : ''"
    return {
        "matchConstraints": {"resourceRules": rules},
        "variables": [
            {"name": "pod", "expression": _POD_OF % {"thing": "object"}},
            {"name": "old", "expression": "oldObject == null ? dyn({}) : %s" % (_POD_OF % {"thing": "oldObject"})},
            {"name": "name", "expression": named % ("pod", "pod")},
            {"name": "before", "expression": named % ("old", "old")},
            {"name": "accepted", "expression": json.dumps(list(accepted))},
            {
                "name": "lines",
                "expression": "variables.name == '' ? [] : (%s).filter(line, line.startsWith(variables.name + '='))"
                % (_LINES % (UNSERVED_KEY, UNSERVED_KEY)),
            },
        ],
        "validations": [
            {
                "expression": "variables.name == '' || variables.name == variables.before"
                " || variables.lines.all(line, line.substring(size(variables.name) + 1) in variables.accepted)",
                "messageExpression": "'no node can serve RuntimeClass \"' + variables.name + '\": its handler \"'"
                " + variables.lines[0].substring(size(variables.name) + 1) + '\" is loaded on none of the nodes that it can land on,"
                " so the pod would hang in ContainerCreating'",
                "reason": "Invalid",
            }
        ],
    }


__all__ = (
    "ACTIONS",
    "BINDINGS",
    "CLASSES_POLICY",
    "Known",
    "LIST_NAME",
    "POLICIES",
    "View",
    "WORKLOADS_POLICY",
    "list_object",
    "lists_path",
    "merged",
    "policy_objects",
    "read_list",
    "refused_by_us",
    "removal",
    "view_of",
)
