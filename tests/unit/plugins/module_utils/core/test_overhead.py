# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Overhead. Expected values are counted by hand, by https://kubernetes.io/docs/concepts/scheduling-eviction/pod-overhead/.

tests/cluster/test_overhead.py asks a real API server and scheduler: the largest request fits, one thousandth more does not.
"""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crosscheck import crosscheck
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

Data = t.Dict[str, t.Any]
FIXED = {"cpu": "250m", "memory": "128Mi"}


def runtime_class(name: str = "nv", fixed: t.Any = None, **more: t.Any) -> Data:
    return {"metadata": {"name": name}, "handler": "nvidia", "overhead": {"podFixed": FIXED if fixed is None else fixed}, **more}


def node(name: str = "a", **allocatable: str) -> Data:
    known = {"cpu": "1", "memory": "4Gi", "pods": "10", **allocatable}
    return {"name": name, "labels": {"gpu": name}, "runtime": {"handlers": ["nvidia"]}, "allocatable": known}


def pod(cpu: str, name: str = "p", node: str | None = None, stuck: bool = True, **spec: t.Any) -> Data:
    """A pod as the API server has it: with its overhead filled in."""
    status: Data = {"phase": "Pending"}
    if stuck and not node:
        status["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    asked = {"runtimeClassName": "nv", "overhead": FIXED, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec}
    return {"kind": "Pod", "metadata": {"namespace": "ns", "name": name}, "spec": {**asked, **({"nodeName": node} if node else {})}, "status": status}


def template(cpu: str, kind: str = "Deployment", **spec: t.Any) -> Data:
    asked = {"runtimeClassName": "nv", "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec}
    return {"kind": kind, "metadata": {"namespace": "ns", "name": "t"}, "spec": {"template": {"spec": asked}}}


def largest(classes: list[Data], nodes: list[Data], workloads: list[Data] | None = None) -> t.Any:
    return {each["runtime_class"]: each["nodes"] for each in crosscheck(classes, nodes, workloads=workloads)["overhead"]}


def notices(name: str, *arguments: t.Any, **more: t.Any) -> list[Data]:
    return [notice for notice in crosscheck(*arguments, **more)["notices"] if notice["name"] == name]


@pytest.mark.parametrize(
    ("fixed", "allocatable", "workloads", "expected"),
    [
        (FIXED, {}, None, {"cpu": "750m", "memory": "3968Mi"}),
        (FIXED, {"memory": "16393244Ki"}, None, {"cpu": "750m", "memory": "16262172Ki"}),
        (FIXED, {}, [pod("300m", node="a")], {"cpu": "200m", "memory": "3840Mi"}),
        (FIXED, {}, [pod("300m", node="b")], {"cpu": "750m", "memory": "3968Mi"}),
        (FIXED, {}, [{**pod("300m", node="a"), "status": {"phase": "Succeeded"}}], {"cpu": "750m", "memory": "3968Mi"}),
        (FIXED, {}, [pod("500m", node="a")], {"cpu": "0", "memory": "3840Mi"}),
        (FIXED, {}, [pod("501m", node="a")], None),
        (FIXED, {"pods": "1"}, [pod("0", node="a")], None),
        ({"cpu": "2"}, {}, None, None),
        ({"cpu": "1"}, {}, None, {"cpu": "0", "memory": "4Gi"}),
        ({"example.com/slot": "1"}, {"example.com/slot": "3"}, None, {"cpu": "1", "memory": "4Gi", "example.com/slot": "2"}),
        ({"example.com/slot": "1"}, {}, None, None),
        ({"cpu": "0.1m"}, {}, None, {"cpu": "999m", "memory": "4Gi"}),
    ],
)
def test_the_largest_request(fixed: Data, allocatable: Data, workloads: list[Data] | None, expected: Data | None) -> None:
    found = largest([runtime_class(fixed=fixed)], [node(**allocatable)], workloads)
    assert found == {"nv": {"a": expected}}


def test_what_it_rests_on_and_on_which_nodes() -> None:
    scheduling = {"nodeSelector": {"gpu": "a"}}
    classes = [runtime_class(scheduling=scheduling), {"name": "plain", "handler": "nvidia"}]
    nodes = [node("a"), node("b"), {"name": "c", "labels": {"gpu": "a"}, "runtime": {"handlers": ["nvidia"]}}]
    (alone,) = crosscheck(classes, nodes)["overhead"]
    assert (alone["rests_on"], alone["known"], alone["carried_by"], list(alone["nodes"])) == ("allocatable", 1, 1, ["a"])
    (room,) = notices("overhead_room", classes, nodes)
    assert "adds cpu 250m, memory 128Mi" in room["message"] and "cpu 750m" in room["message"] and "the pods there are not known" in room["message"]
    (counted,) = crosscheck(classes, nodes, workloads=[])["overhead"]
    assert counted["rests_on"] == "pods"


def test_a_class_that_no_node_can_carry() -> None:
    (notice,) = notices("overhead_nobody_carries", [runtime_class(fixed={"cpu": "1001m"})], [node("a"), node("b")])
    assert notice["runtime_class"] == "nv" and notice["nodes"] == ["a", "b"] and "stays Pending" in notice["message"]
    assert not notices("overhead_nobody_carries", [runtime_class(fixed={"cpu": "1001m"})], [node("a"), node("b", cpu="2")])
    full = [pod("900m", name, node=name, overhead={}) for name in ("a", "b")]
    assert not notices("overhead_nobody_carries", [runtime_class()], [node("a"), node("b")], workloads=full), "full nodes are not the class's fault"
    (room,) = notices("overhead_room", [runtime_class()], [node("a"), node("b")], workloads=full)
    assert "no node has room for one more of its pods" in room["message"]


@pytest.mark.parametrize(
    ("one", "others", "seen", "why"),
    [
        (pod("900m"), [], True, "900m + 250m > 1"),
        (pod("750m"), [], False, "750m + 250m fits"),
        (pod("1100m"), [], False, "it would not fit without the overhead either"),
        (pod("900m", stuck=False), [], False, "the scheduler has not tried yet"),
        (pod("600m"), [pod("200m", "q", node="a", overhead={})], True, "with what is there"),
        (pod("900m", nodeSelector={"gpu": "b"}), [], False, "no node of its selector is there"),
        (pod("900m", node="a"), [], False, "it is bound"),
        (template("900m"), [], True, "not even an empty node"),
        (template("900m", "Job"), [], True, "not even an empty node"),
        (template("700m"), [pod("200m", "q", node="a", overhead={})], False, "a template is held against empty nodes"),
        ({**pod("900m", overhead=None), "status": {}}, [], True, "a pod that is not created yet"),
    ],
)
def test_who_is_pending_for_overhead(one: Data, others: list[Data], seen: bool, why: str) -> None:
    found = notices("pods_pending_for_overhead", [runtime_class()], [node()], workloads=[one, *others])
    assert bool(found) is seen, why
    if seen:
        assert "because of its overhead (1: " in found[0]["message"] and "without it a would take them" in found[0]["message"]
        assert found[0]["nodes"] == ["a"] and "or lower overhead.podFixed" in found[0]["fix"]


def test_the_largest_request_is_advised() -> None:
    (notice,) = notices("pods_pending_for_overhead", [runtime_class()], [node()], workloads=[pod("900m"), pod("900m", "q")])
    assert notice["fix"].startswith("Request at most cpu 750m, memory 3968Mi,") and "(2: ns/p, ns/q)" in notice["message"]


def test_many_different_pods_are_looked_at_in_part_and_it_says_so() -> None:
    pods = [pod("900m", f"p{index}", tolerations=[{"key": f"k{index}", "operator": "Exists"}]) for index in range(205)]
    found = notices("pods_pending_for_overhead", [runtime_class()], [node()], workloads=pods)
    assert "5 further kinds of pods were not looked at" in found[0]["message"]


def test_workloads_that_admission_will_refuse() -> None:
    classes = [runtime_class(scheduling={"nodeSelector": {"gpu": "a"}})]
    (notice,) = notices("workload_refused", classes, [node()], workloads=[template("1m", nodeSelector={"gpu": "b"}), template("1m")])
    assert "Deployment ns/t" in notice["message"]
    assert "conflict: runtimeClass.scheduling.nodeSelector[gpu] = a; pod.spec.nodeSelector[gpu] = b" in notice["message"]
    old = {**pod("1m", overhead={"cpu": "1"}), "status": {"phase": "Running"}}
    assert not notices("workload_refused", classes, [node()], workloads=[old]), "what was admitted before the class was changed is there"


@pytest.mark.parametrize(
    ("fixed", "allocatable", "words"),
    [
        ({"cpu": "much"}, {}, "RuntimeClass nv: overhead.podFixed.cpu is 'much', which is no quantity"),
        (FIXED, {"cpu": "1 core"}, "node a: allocatable.cpu is '1 core', which is no quantity"),
        ([], {}, "overhead.podFixed is a list, not a mapping"),
    ],
)
def test_bad_input(fixed: t.Any, allocatable: Data, words: str) -> None:
    with pytest.raises(RuntimeGateError, match=words):
        crosscheck([runtime_class(fixed=fixed)], [node(**allocatable)])


def test_alpha_classes_have_it_elsewhere() -> None:
    alpha = {"apiVersion": "node.k8s.io/v1alpha1", "metadata": {"name": "nv"}, "spec": {"runtimeHandler": "nvidia", "overhead": {"podFixed": FIXED}}}
    assert largest([alpha], [node()]) == {"nv": {"a": {"cpu": "750m", "memory": "3968Mi"}}}


def test_a_class_that_does_not_exist_names_its_workloads() -> None:
    (notice,) = notices("workload_class_unknown", [{"name": "x", "handler": "h"}], [node()], workloads=[template("1m"), pod("1m")])
    assert "(2: Deployment ns/t)" in notice["message"] and "applies without an error" in notice["message"]
    (bare,) = notices("workload_class_unknown", [{"name": "x", "handler": "h"}], [node()], workloads=[pod("1m")])
    assert "(1)" in bare["message"] and "applies" not in bare["message"]
