"""What declarations ask for, and whose an object is. What the API server makes of it is in tests/cluster."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.declared_classes import (
    FIELD_MANAGER,
    is_ours,
    others,
    our_fields,
    read_declarations,
    said_by,
    some,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

NVIDIA = {"preset": "nvidia"}
ABSENT = {"state": "absent"}


def read(declarations, enabled=None, acting=None, remove=False):
    every = set(declarations)
    return read_declarations(declarations, every if enabled is None else enabled, every if acting is None else acting, remove)


def thing(name="nvidia", handler="nvidia", **parts):
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": handler, **parts}


@pytest.mark.parametrize(
    "entry, classes",
    [
        (NVIDIA, {"nvidia": thing()}),
        (None, {"nvidia": thing()}),
        ({**NVIDIA, "runtime_class": True}, {"nvidia": thing()}),
        ({**NVIDIA, "runtime_class": None}, {"nvidia": thing()}),
        ({**NVIDIA, "runtime_class": {}}, {"nvidia": thing()}),
        ({**NVIDIA, "runtime_class": False}, {}),
        (ABSENT, {}),
        ({"runtime_class": {"name": "gpu.fast"}}, {"gpu.fast": thing("gpu.fast")}),
        ({"runtime_class": {"overhead": {"cpu": 0.25, "memory": "131072Ki"}}}, {"nvidia": thing(overhead={"podFixed": {"cpu": "250m", "memory": "128Mi"}})}),
        ({"runtime_class": {"node_selector": {"a": "b"}}}, {"nvidia": thing(scheduling={"nodeSelector": {"a": "b"}})}),
        (
            {"runtime_class": {"tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 5, "effect": "NoExecute"}]}},
            {"nvidia": thing(scheduling={"tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 5, "effect": "NoExecute"}]})},
        ),
    ],
)
def test_the_object_of_a_handler(entry, classes):
    assert read({"w": {"nvidia": entry}}).classes == classes


def test_labels():
    made = read({"w": {"nvidia": {"runtime_class": {"labels": {"team": "ml"}}}}}).classes["nvidia"]
    assert made["metadata"] == {"name": "nvidia", "labels": {"team": "ml"}}


@pytest.mark.parametrize("declaration", [None, {}, ""])
def test_nothing_is_declared(declaration):
    assert read({"w": declaration}) == ({}, {}, [], {}, frozenset())


@pytest.mark.parametrize(
    "declaration, words",
    [
        (["nvidia"], ["host w", "a list"]),
        ({"Nvidia": NVIDIA}, ["host w", "'Nvidia'", "DNS label"]),
        ({"a.b": NVIDIA}, ["'a.b'"]),
        ({"a" * 64: NVIDIA}, ["63"]),
        ({1: NVIDIA}, ["1"]),
        ({"nvidia": "yes"}, ["runtime_gate_handlers.nvidia", "a string"]),
        ({"nvidia": {"runtime_class": "gpu"}}, ["nvidia.runtime_class", "a string"]),
        ({"nvidia": {"runtime_class": {"nodeselector": {}}}}, ["nodeselector", 'did you mean "node_selector"?']),
        ({"nvidia": {"runtime_class": {"name": "A"}}}, [".name", "'A'"]),
        ({"nvidia": {"runtime_class": {"name": 5}}}, [".name", "5"]),
        ({"nvidia": {"runtime_class": {"name": "a" * 254}}}, [".name"]),
        ({"nvidia": {"runtime_class": {"overhead": "1"}}}, ["overhead", "a string"]),
        ({"nvidia": {"runtime_class": {"overhead": {"cpu": True}}}}, ["overhead.cpu", "no quantity"]),
        ({"nvidia": {"runtime_class": {"tolerations": [{"key": "a", "effect": "Never"}]}}}, ["tolerations", "Never"]),
        ({"nvidia": {"runtime_class": {"node_selector": ["a"]}}}, ["node_selector", "a list"]),
        ({"nvidia": {"runtime_class": {"labels": {"a": 1}}}}, ["labels", "quotes"]),
    ],
)
def test_what_is_wrong_is_named(declaration, words):
    with pytest.raises(RuntimeGateError) as told:
        read({"w": declaration})
    assert all(word in str(told.value) for word in words), str(told.value)


def test_hosts_that_agree_share_a_class():
    assert read({"a": {"nvidia": NVIDIA}, "b": {"nvidia": {**NVIDIA, "runtime_class": {"name": "nvidia"}}}, "c": None}).hosts == {"nvidia": ["a", "b"]}


@pytest.mark.parametrize("other", [{"runtime_class": {"overhead": {"cpu": "1"}}}, {"runtime_class": False}, {"runtime_class": {"labels": {"a": "b"}}}])
def test_hosts_that_do_not_agree(other):
    declarations = {"a": {"nvidia": NVIDIA}, "b": {"nvidia": other}}
    for acting in ({"a"}, {"a", "b"}):
        with pytest.raises(RuntimeGateError, match=r"nvidia.runtime_class differs between hosts.*a: nvidia \{\}.*b: "):
            read(declarations, acting=acting)
    # Who asks for no classes has no say, and a removal needs no agreement.
    assert set(read(declarations, enabled={"a"}).classes) == {"nvidia"}
    assert read(declarations, remove=True).absent == ["nvidia"]


def test_two_handlers_cannot_share_a_class():
    declaration = {"nvidia": NVIDIA, "crun": {"runtime_class": {"name": "nvidia"}}}
    with pytest.raises(RuntimeGateError, match="crun and nvidia both ask for RuntimeClass nvidia"):
        read({"w": declaration})
    with pytest.raises(RuntimeGateError, match="both ask"):
        read({"a": {"nvidia": NVIDIA}, "b": {"crun": declaration["crun"]}}, acting={"a"})


def test_only_what_the_acting_hosts_declare_is_applied():
    found = read({"a": {"nvidia": NVIDIA}, "b": {"nvidia": NVIDIA, "crun": {}}}, acting={"a"})
    assert set(found.classes) == {"nvidia"} and found.hosts == {"nvidia": ["a", "b"]}


@pytest.mark.parametrize(
    "declarations, enabled, acting, remove, absent, kept",
    [
        ({"a": {"x": ABSENT}}, "a", "a", False, ["x"], {}),
        ({"a": {"x": ABSENT}, "b": {"x": {}}}, "ab", "ab", False, [], {"x": ["b"]}),
        ({"a": {"x": ABSENT}, "b": {"x": {}}}, "ab", "a", False, [], {"x": ["b"]}),
        ({"a": {"x": ABSENT}, "b": {"x": {}}}, "a", "a", False, [], {"x": ["b"]}),  # b asks for no classes and has the handler
        ({"a": {"x": ABSENT}}, "", "a", False, [], {}),
        ({"a": {"x": ABSENT}}, "a", "", False, [], {}),
        ({"a": {"x": {}, "y": ABSENT}}, "a", "a", True, ["x", "y"], {}),
        ({"a": {"x": {}}, "b": {"x": {}}}, "ab", "ab", True, ["x"], {}),
        ({"a": {"x": {}}, "b": {"x": {}}}, "ab", "a", True, [], {"x": ["b"]}),
        ({"a": {"x": {}}, "b": {"x": {}}}, "a", "ab", True, ["x"], {}),
    ],
)
def test_what_goes_and_what_is_kept(declarations, enabled, acting, remove, absent, kept):
    found = read(declarations, set(enabled), set(acting), remove)
    assert (found.absent, found.kept) == (absent, kept) and not (remove and found.classes)
    assert found.known == {handler for handlers in declarations.values() for handler in handlers}


OURS = {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": {"f:handler": {}}}


@pytest.mark.parametrize(
    "managed, ours, owners",
    [
        (None, False, []),
        ([OURS], True, []),
        ([{**OURS, "operation": "Update"}], False, [FIELD_MANAGER]),
        ([{**OURS, "fieldsV1": {"f:overhead": {}}}], False, []),
        ([{**OURS, "fieldsV1": None}], False, []),
        ([{**OURS, "manager": "helm"}], False, ["helm"]),
        ([OURS, {"manager": "helm", "operation": "Apply", "fieldsV1": {"f:handler": {}}}], True, ["helm"]),
        ([OURS, {"manager": "kubectl-label", "operation": "Update", "fieldsV1": {"f:metadata": {}}}], True, []),
        ([{"operation": "Update", "fieldsV1": {"f:handler": {}}}], False, ["unknown"]),
    ],
)
def test_whose_an_object_is(managed, ours, owners):
    live = thing()
    live["metadata"]["managedFields"] = managed
    assert is_ours(live) is ours and others(live, "handler") == owners
    assert set(owners) <= set(others(live))


def test_our_fields():
    live = thing()
    assert our_fields(live) is None
    live["metadata"]["managedFields"] = [{**OURS, "operation": "Update", "fieldsV1": {"f:x": {}}}, OURS]
    assert our_fields(live) == {"f:handler": {}}
    live["metadata"]["managedFields"] = [{**OURS, "fieldsV1": None}]
    assert our_fields(live) == {}


def test_what_an_object_says():
    live = thing(overhead={"podFixed": {"cpu": "1"}})
    live["metadata"].update(uid="1", resourceVersion="2", labels={"a": "b"}, managedFields=[OURS])
    assert said_by(live) == {"metadata": {"name": "nvidia", "labels": {"a": "b"}}, "handler": "nvidia", "overhead": {"podFixed": {"cpu": "1"}}}


def test_some_names():
    assert some("ba") == "a, b" and some("abcdefg") == "a, b, c, d, e and 2 more"
