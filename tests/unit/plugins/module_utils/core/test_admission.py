# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What admission and the scheduler make of a pod. Sources are named at each row:

A: k8s.io/kubernetes/plugin/pkg/admission/runtimeclass/admission.go     M: pkg/util/tolerations/tolerations.go
F: the filters under k8s.io/kubernetes/pkg/scheduler/framework/plugins  K: https://kubernetes.io/docs/concepts/ (the page is named)
API: answered by a real kube-apiserver 1.36; tests/cluster asks one again, over a matrix.
"""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.admission import Admitted, Refusal, Unfit, admit, fits, merged_tolerations
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

Data = t.Dict[str, t.Any]
GPU = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}


def pod(**spec: t.Any) -> Data:
    return {"kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [], **spec}}


def runtime_class(**more: t.Any) -> Data:
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "rc"}, "handler": "h", **more}


def admitted(one: Data, runtime: Data | None) -> Data:
    found = admit(one, runtime)
    assert isinstance(found, Admitted), found
    return t.cast(Data, found.pod["spec"])


def test_a_pod_without_a_class_is_left_alone() -> None:
    assert admit(pod(nodeSelector={"a": "b"}), None) == Admitted(pod(nodeSelector={"a": "b"}))


def test_a_class_adds_selector_tolerations_and_overhead() -> None:
    """A: setOverhead and setScheduling; the pod that was handed in stays as it was."""
    runtime = runtime_class(
        overhead={"podFixed": {"cpu": "0.25", "memory": "128Mi"}}, scheduling={"nodeSelector": {"accelerator": "h200"}, "tolerations": [GPU]}
    )
    given = pod(runtimeClassName="rc", nodeSelector={"zone": "a"}, tolerations=[{"key": "own", "operator": "Exists"}])
    before = repr(given)
    assert admitted(given, runtime) == {
        "containers": [],
        "runtimeClassName": "rc",
        "nodeSelector": {"zone": "a", "accelerator": "h200"},
        "tolerations": [{"key": "own", "operator": "Exists"}, GPU],
        "overhead": {"cpu": "250m", "memory": "128Mi"},
    }
    assert repr(given) == before


@pytest.mark.parametrize(
    ("spec", "runtime", "reason", "source"),
    [
        ({"runtimeClassName": "x"}, None, 'pod rejected: RuntimeClass "x" not found', "A: prepareObjects"),
        ({"runtimeClassName": ""}, None, "resource name may not be empty", "API"),
        (
            {"runtimeClassName": "rc", "nodeSelector": {"accelerator": "a100"}},
            {"scheduling": {"nodeSelector": {"accelerator": "h200"}}},
            "conflict: runtimeClass.scheduling.nodeSelector[accelerator] = h200; pod.spec.nodeSelector[accelerator] = a100",
            "A: setScheduling",
        ),
        (
            {"runtimeClassName": "rc", "overhead": {"cpu": "100m"}},
            {"overhead": {"podFixed": {"cpu": "250m"}}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            "A: setOverhead",
        ),
        (
            {"runtimeClassName": "rc", "overhead": {"cpu": "250m"}},
            {"overhead": {"podFixed": {"cpu": "250m", "memory": "1Mi"}}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            "A: the whole list is compared",
        ),
        (
            {"runtimeClassName": "rc", "overhead": {"cpu": "250m"}},
            {"overhead": {}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            "API: an overhead without podFixed is an overhead of nothing",
        ),
        (
            {"runtimeClassName": "rc", "overhead": {"cpu": "250m"}},
            {},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            "A: validateOverhead",
        ),
        ({"overhead": {"cpu": "250m"}}, None, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead", "A: validateOverhead"),
        ({"overhead": {}}, None, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead", "API: an empty one is set as well"),
        (
            {"runtimeClassName": "rc", "overhead": {"cpu": "1"}, "nodeSelector": {"a": "1"}},
            {"overhead": {"podFixed": {"cpu": "2"}}, "scheduling": {"nodeSelector": {"a": "2"}}},
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
            "A: Admit calls setOverhead before setScheduling",
        ),
        (
            {"runtimeClassName": "rc", "overhead": {"cpu": "1"}, "nodeSelector": {"a": "1"}},
            {"scheduling": {"nodeSelector": {"a": "2"}}},
            "conflict: runtimeClass.scheduling.nodeSelector[a] = 2; pod.spec.nodeSelector[a] = 1",
            "A: Validate comes after Admit",
        ),
    ],
)
def test_refusals(spec: Data, runtime: Data | None, reason: str, source: str) -> None:
    assert admit(pod(**spec), None if runtime is None else runtime_class(**runtime)) == Refusal(reason), source


@pytest.mark.parametrize(
    ("own", "fixed"),
    [({"cpu": "250m"}, {"cpu": "0.25"}), ({"memory": "1Gi"}, {"memory": "1024Mi"}), ({}, {"cpu": "250m"}), ({}, {})],
)
def test_an_overhead_that_is_the_one_of_the_class(own: Data, fixed: Data) -> None:
    """A: Semantic.DeepEqual compares amounts, and an empty overhead of the pod is filled in."""
    assert admitted(pod(runtimeClassName="rc", overhead=own), runtime_class(overhead={"podFixed": fixed}))["overhead"].keys() == fixed.keys()


def test_the_same_label_with_the_same_value_is_no_conflict() -> None:
    runtime = runtime_class(scheduling={"nodeSelector": {"a": "1"}})
    assert admitted(pod(runtimeClassName="rc", nodeSelector={"a": "1"}), runtime)["nodeSelector"] == {"a": "1"}


def test_an_empty_scheduling_adds_nothing() -> None:
    assert admitted(pod(runtimeClassName="rc"), runtime_class(scheduling={})) == {"containers": [], "runtimeClassName": "rc"}


def test_another_class_than_the_named_one_is_an_error_of_the_caller() -> None:
    with pytest.raises(RuntimeGateError, match="pod n/p names RuntimeClass 'other', but another one was handed in"):
        admit(pod(runtimeClassName="other"), runtime_class())


def toleration(**keys: t.Any) -> Data:
    return keys


@pytest.mark.parametrize(
    ("first", "second", "kept", "source"),
    [
        ([GPU], [GPU], [GPU], "M: if the tolerations are equal, prefer the first"),
        ([GPU], [toleration(key="gpu", operator="Exists")], [toleration(key="gpu", operator="Exists")], "M: an empty effect covers each"),
        ([toleration(operator="Exists")], [GPU], [toleration(operator="Exists")], "M: an empty key with Exists covers all"),
        ([GPU], [toleration(operator="Exists")], [toleration(operator="Exists")], "M: a later superset wins as well"),
        (
            [toleration(key="gpu", operator="Equal", value="a", effect="NoSchedule")],
            [GPU],
            [GPU],
            "M: Exists covers Equal",
        ),
        (
            [toleration(key="gpu", operator="Equal", value="a")],
            [toleration(key="gpu", operator="Equal", value="b")],
            [toleration(key="gpu", operator="Equal", value="a"), toleration(key="gpu", operator="Equal", value="b")],
            "M: another value is another toleration",
        ),
        (
            [toleration(key="gpu", value="a", effect="NoSchedule")],
            [toleration(key="gpu", operator="Equal", value="a")],
            [toleration(key="gpu", value="a", effect="NoSchedule"), toleration(key="gpu", operator="Equal", value="a")],
            "M: t.Operator == Equal is asked of the inner one; an absent operator is kept beside",
        ),
        (
            [toleration(key="gpu", operator="Equal", value="a", effect="NoSchedule")],
            [toleration(key="gpu", value="a")],
            [toleration(key="gpu", value="a")],
            "M: empty operator means Equal, of the outer one",
        ),
        (
            [toleration(key="e", operator="Exists", effect="NoExecute", tolerationSeconds=60)],
            [toleration(key="e", operator="Exists", effect="NoExecute")],
            [toleration(key="e", operator="Exists", effect="NoExecute")],
            "M: forever covers a minute",
        ),
        (
            [toleration(key="e", operator="Exists", effect="NoExecute")],
            [toleration(key="e", operator="Exists", effect="NoExecute", tolerationSeconds=60)],
            [toleration(key="e", operator="Exists", effect="NoExecute")],
            "M: a minute does not cover forever",
        ),
        (
            [toleration(key="e", operator="Exists", effect="NoExecute", tolerationSeconds=30)],
            [toleration(key="e", operator="Exists", effect="NoExecute", tolerationSeconds=60)],
            [toleration(key="e", operator="Exists", effect="NoExecute", tolerationSeconds=60)],
            "M: the longer covers the shorter",
        ),
        ([toleration(key="a", operator="Exists")], [toleration(key="b", operator="Exists")], None, "M: another key is another toleration"),
        (
            [toleration(key="n", operator="Gt", value="5")],
            [toleration(key="n", operator="Equal", value="7")],
            None,
            "M: an operator that isSuperset does not know covers nothing",
        ),
    ],
)
def test_tolerations_are_merged(first: list[Data], second: list[Data], kept: list[Data] | None, source: str) -> None:
    assert merged_tolerations(first, second) == (first + second if kept is None else kept), source


def node(labels: Data | None = None, taints: t.Any = (), cordoned: bool = False, **allocatable: t.Any) -> Data:
    return {
        "kind": "Node",
        "metadata": {"name": "a", "labels": labels or {}},
        "spec": {"taints": list(taints), "unschedulable": cordoned},
        "status": {"allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10", **allocatable}},
    }


def asking(cpu: str = "0", **spec: t.Any) -> Data:
    return pod(**{"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec})


def there(cpu: str, name: str | None = "a", phase: str = "Running", **spec: t.Any) -> Data:
    return {**asking(cpu, nodeName=name, **spec), "status": {"phase": phase}}


def affinity(*terms: Data) -> Data:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def expression(key: str, operator: str, *values: str) -> Data:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


NOT_SELECTED = "node(s) didn't match Pod's node affinity/selector"
TAINT = {"key": "gpu", "value": "x", "effect": "NoSchedule"}
CORDON = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("one", "on", "pods", "reasons", "source"),
    [
        (asking(), node(), [], None, "nothing keeps it away"),
        (asking("900m", overhead={"cpu": "250m"}), node(), [], ["Insufficient cpu"], "F: fitsRequest; K: pod-overhead"),
        (asking("750m", overhead={"cpu": "250m"}), node(), [], None, "F: requests up to allocatable fit"),
        (asking("500m"), node(), [there("501m")], ["Insufficient cpu"], "F: what is there counts"),
        (asking("500m"), node(), [there("501m", "b"), there("501m", None)], None, "F: only what is bound to this node"),
        (asking("500m"), node(), [there("501m", phase="Succeeded"), there("501m", phase="Failed")], None, "F: not what is over"),
        (asking("500m"), node(), [there("400m", overhead={"cpu": "101m"})], ["Insufficient cpu"], "F: with its overhead"),
        (
            asking(overhead={"cpu": "2", "memory": "2Gi", "nvidia.com/gpu": "1"}),
            node(),
            [],
            ["Insufficient cpu", "Insufficient memory", "Insufficient nvidia.com/gpu"],
            "F: all reasons are kept",
        ),
        (asking(), node(pods="1"), [there("0")], ["Too many pods"], "F: one pod more than pods"),
        (asking("2"), node(pods="0"), [], ["Too many pods", "Insufficient cpu"], "F: pods first"),
        (asking(), {"kind": "Node", "metadata": {"name": "a"}}, [], ["Too many pods"], "F: a node without allocatable has room for none"),
        (asking(), node(cordoned=True), [], ["node(s) were unschedulable"], "F: nodeunschedulable"),
        (asking(tolerations=[CORDON]), node(cordoned=True), [], None, "F: who tolerates the taint tolerates the cordon"),
        (asking(), node(taints=[TAINT]), [], ["node(s) had untolerated taint(s)"], "F: tainttoleration"),
        (asking(tolerations=[GPU]), node(taints=[TAINT]), [], None, "F: tainttoleration"),
        (asking(), node(taints=[{**TAINT, "effect": "PreferNoSchedule"}]), [], None, "F: DoNotScheduleTaintsFilterFunc"),
        (asking("2"), node(taints=[TAINT], cordoned=True), [], ["node(s) were unschedulable"], "F: the first filter that refuses speaks"),
        (asking("2"), node(taints=[TAINT]), [], ["node(s) had untolerated taint(s)"], "F: the first filter that refuses speaks"),
        (asking("2", nodeSelector={"a": "b"}), node(), [], [NOT_SELECTED], "F: nodeaffinity before noderesources"),
        (asking(nodeName="b"), node(), [], ["node(s) didn't match the requested node name"], "F: nodename"),
        (asking(nodeName="a"), node(), [], None, "F: nodename"),
        (asking(nodeSelector={"a": "b"}), node({"a": "b"}), [], None, "K: assign-pod-node"),
        (asking(affinity=affinity(expression("a", "In", "b", "c"))), node({"a": "c"}), [], None, "K: In"),
        (asking(affinity=affinity(expression("a", "In", "b"))), node(), [], [NOT_SELECTED], "K: In needs the label"),
        (asking(affinity=affinity(expression("a", "NotIn", "b"))), node({"a": "b"}), [], [NOT_SELECTED], "K: NotIn"),
        (asking(affinity=affinity(expression("a", "NotIn", "b"))), node(), [], None, "labels.Requirement: NotIn takes a node without the label"),
        (asking(affinity=affinity(expression("a", "Exists"))), node({"a": ""}), [], None, "K: Exists"),
        (asking(affinity=affinity(expression("a", "Exists"))), node(), [], [NOT_SELECTED], "K: Exists"),
        (asking(affinity=affinity(expression("a", "DoesNotExist"))), node({"a": ""}), [], [NOT_SELECTED], "K: DoesNotExist"),
        (asking(affinity=affinity(expression("a", "DoesNotExist"))), node(), [], None, "K: DoesNotExist"),
        (asking(affinity=affinity(expression("n", "Gt", "9"))), node({"n": "10"}), [], None, "K: Gt, as integers"),
        (asking(affinity=affinity(expression("n", "Gt", "9"))), node({"n": "many"}), [], [NOT_SELECTED], "labels.Requirement: no integer"),
        (asking(affinity=affinity(expression("n", "Lt", "9"))), node({"n": "9"}), [], [NOT_SELECTED], "K: Lt"),
        (asking(affinity=affinity(expression("n", "Lt", "9"))), node({"n": "8"}), [], None, "K: Lt"),
        (asking(affinity=affinity(expression("a", "Near", "b"))), node({"a": "b"}), [], [NOT_SELECTED], "an unknown operator matches nothing"),
        (
            asking(affinity=affinity(expression("a", "Exists"), expression("b", "Exists"))),
            node({"b": ""}),
            [],
            None,
            "K: nodeSelectorTerms are ORed",
        ),
        (
            asking(affinity=affinity({"matchExpressions": expression("a", "Exists")["matchExpressions"] + expression("b", "Exists")["matchExpressions"]})),
            node({"b": ""}),
            [],
            [NOT_SELECTED],
            "K: matchExpressions are ANDed",
        ),
        (asking(affinity=affinity({})), node(), [], [NOT_SELECTED], "nodeaffinity.go: nil or empty term selects no objects"),
        (asking(affinity=affinity()), node(), [], [NOT_SELECTED], "nodeaffinity.go: no term, no node"),
        (asking(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}), node(), [], None, "K: preferred keeps nobody away"),
        (asking(affinity={"podAffinity": {}}), node(), [], None, "not restated"),
        (
            asking(affinity=affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]})),
            node(),
            [],
            [NOT_SELECTED],
            "K: matchFields, metadata.name",
        ),
        (asking(affinity=affinity({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]})), node(), [], None, "K: matchFields"),
        (
            asking(nodeSelector={"a": "b"}, affinity=affinity(expression("c", "Exists"))),
            node({"c": ""}),
            [],
            [NOT_SELECTED],
            "K: if both are specified, both must be satisfied",
        ),
    ],
)
def test_fits(one: Data, on: Data, pods: list[Data], reasons: list[str] | None, source: str) -> None:
    found = fits(one, on, pods)
    assert found == (None if reasons is None else Unfit(tuple(reasons))), source


def test_an_unfit_node_is_told_in_one_line() -> None:
    assert str(fits(asking("2"), node(pods="0"))) == "Too many pods, Insufficient cpu"
