"""The list by which the admission policies judge: what a view shows, and how it becomes part of the list."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.handler_policy import (
    CLASSES_POLICY,
    LIST_NAME,
    WORKLOADS_POLICY,
    Known,
    View,
    list_object,
    merged,
    policy_objects,
    read_list,
    refused_by_us,
    removal,
    view_of,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.judged_node import read_node
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import Policy
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.runtime_class import read_classes
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError


def node(name, handlers=None, labels=None, taints=(), **facts):
    raw = {"name": name, "labels": labels or {}, "taints": list(taints)}
    if handlers is not None:
        raw["runtime"] = {"schema": 1, "evidence": "loaded", "cri_ready": True, "handlers": dict.fromkeys(handlers, {}), **facts}
    return raw


def view(nodes, *classes):
    parsed = read_classes([{"name": name, "handler": handler, "scheduling": {"nodeSelector": selector}} for name, handler, selector in classes], Policy(), None)
    return view_of([read_node(raw, index) for index, raw in enumerate(nodes)], parsed)


API = {
    "kind": "Node",
    "metadata": {"name": "api", "labels": {}},
    "status": {"runtimeHandlers": [{"name": ""}, {"name": "kata"}], "nodeInfo": {"containerRuntimeVersion": "containerd://2.1.9"}},
}


@pytest.mark.parametrize(
    "nodes, handlers, whole",
    [
        ([], [], False),
        ([node("a", ["runc", "nvidia"]), node("b", ["runc"])], ["nvidia", "runc"], True),
        ([node("a", ["runc"]), node("b")], ["runc"], False),
        ([node("a", ["runc"]), API], ["kata", "runc"], True),
        ([node("a", ["runc"]), {**API, "status": {}}], ["runc"], False),
        # A runtime that is down, a dump, files: not what is loaded.
        ([node("a", ["runc"]), node("b", [], cri_ready=False, evidence="none")], ["runc"], False),
        ([node("a", ["runc"]), node("b", ["kata"], cri_ready=None, evidence="next")], ["runc"], False),
        ([node("a", ["runc"]), node("b", ["kata"], serves_kubelet=False)], ["runc"], False),
    ],
)
def test_what_is_loaded_somewhere(nodes, handlers, whole):
    found = view(nodes)
    assert (sorted(found.known.handlers), found.whole) == (handlers, whole)


GPU = {"gpu": "yes"}


@pytest.mark.parametrize(
    "nodes, selector, unserved, served",
    [
        ([node("a", ["runc"])], {}, True, False),
        ([node("a", ["runc"]), node("b", ["x"])], {}, False, True),
        ([node("a", ["runc"]), node("b")], {}, False, False),  # b may have it
        ([node("a", ["runc"], GPU), node("b", ["x"])], GPU, True, False),  # b has it, and pods of the class never get there
        ([node("a", ["runc"], GPU), node("b")], GPU, True, False),
        ([node("a", ["runc"])], GPU, False, False),  # nobody is selected: a pool of no nodes
        ([node("a", ["x"], taints=["t=v:NoSchedule"])], {}, False, True),  # pods bring tolerations
        ([node("a", ["runc"], taints=["t=v:NoSchedule"])], {}, True, False),
        ([node("a", [], cri_ready=False, evidence="none")], {}, False, False),
    ],
)
def test_which_classes_nobody_can_serve(nodes, selector, unserved, served):
    found = view(nodes, ("c", "x", selector))
    assert (found.known.unserved == {("c", "x")}, found.served == {"c"}) == (unserved, served) and found.classes == {("c", "x")}


def seen(handlers, unserved=(), whole=False, classes=(), served=()):
    return View(Known(frozenset(handlers), frozenset(unserved)), whole, frozenset(classes), frozenset(served))


OLD = Known(frozenset("ab"), frozenset([("c", "x"), ("d", "y")]))


@pytest.mark.parametrize(
    "shown, handlers, unserved",
    [
        (seen("b", whole=True), "b", []),
        (seen("b", [("e", "z")], whole=True), "b", [("e", "z")]),
        (seen("", whole=True, classes=OLD.unserved), "ab", [("c", "x"), ("d", "y")]),  # nothing is loaded anywhere: that is no view
        (seen("k", classes=OLD.unserved), "abk", [("c", "x"), ("d", "y")]),
        (seen("k", classes=OLD.unserved, served="c"), "abk", [("d", "y")]),
        (seen("k", classes=[("c", "x"), ("d", "other")]), "abk", [("c", "x")]),  # d has another handler now
        (seen("k", [("e", "z")], classes=[("e", "z")]), "abk", [("e", "z")]),  # c and d are gone
    ],
)
def test_the_list_after_a_view(shown, handlers, unserved):
    assert merged(OLD, shown) == Known(frozenset(handlers), frozenset(unserved))


def test_the_list_reads_what_it_writes():
    thing = list_object(OLD, "ns")
    assert thing["metadata"] == {"name": LIST_NAME, "namespace": "ns"}
    assert thing["data"] == {"handlers": "a\nb", "unserved": "c=x\nd=y"} and read_list(thing) == OLD
    assert read_list(None) == read_list({}) == read_list({"data": {"handlers": "", "unserved": "noise"}}) == Known()


def test_the_objects_fail_open_and_name_the_parameter():
    made = policy_objects("ns", "warn", ["coming"])
    assert [(thing["kind"], thing["metadata"]["name"]) for _path, thing in made] == [
        (kind, name) for name in (CLASSES_POLICY, WORKLOADS_POLICY) for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    ]
    for _path, thing in made:
        if thing["kind"] == "ValidatingAdmissionPolicy":
            assert thing["spec"]["failurePolicy"] == "Ignore"
        else:
            assert thing["spec"]["paramRef"] == {"name": LIST_NAME, "namespace": "ns", "parameterNotFoundAction": "Allow"}
            assert thing["spec"]["validationActions"] == ["Warn", "Audit"]
    assert policy_objects("ns", "deny", [])[1][1]["spec"]["validationActions"] == ["Deny", "Audit"]
    with pytest.raises(RuntimeGateError, match="runtime_gate_admission_accepted_handlers"):
        policy_objects("ns", "warn", ["No_Handler"])


def test_everything_that_is_made_is_removed_the_list_first_and_bindings_before_policies():
    going = removal("ns")
    made = {(path, thing["metadata"]["name"]) for path, thing in policy_objects("ns", "warn", [])}
    assert going[0] == ("/api/v1/namespaces/ns/configmaps", LIST_NAME) and set(going[1:]) == made
    assert ["bindings" in path for path, _name in going] == [False, True, True, False, False]


def test_a_refusal_of_ours_is_known():
    assert refused_by_us("ValidatingAdmissionPolicy 'runtime-gate-runtimeclasses' with binding 'x' denied request: no")
    assert refused_by_us("ValidatingAdmissionPolicy 'runtime-gate-workloads' with binding 'x' denied request: no")
    assert not refused_by_us("ValidatingAdmissionPolicy 'other' denied request")
