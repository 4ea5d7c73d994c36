# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pod asks for. Expected values follow the examples and formulas of the sources:

S: https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/#resource-sharing-within-containers
O: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-overhead/ (its example is computed below)
H: k8s.io/component-helpers/resource/helpers.go
D: SetDefaults_Pod in k8s.io/kubernetes/pkg/apis/core/v1/defaults.go
"""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.resources import (
    allocatable,
    amount_of,
    counted,
    occupies,
    pod_requests,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError


def container(name: str = "c", limits: t.Any = None, always: bool = False, **requests: str) -> dict[str, t.Any]:
    found: dict[str, t.Any] = {"name": name, "resources": {"requests": requests}}
    if limits:
        found["resources"]["limits"] = limits
    return {**found, "restartPolicy": "Always"} if always else found


def texts(amounts: t.Mapping[str, t.Any]) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}


@pytest.mark.parametrize(
    ("spec", "expected", "source"),
    [
        ({"containers": [container()]}, {}, "nothing asked"),
        ({"containers": [container(cpu="250m"), container(cpu="1", memory="1Gi")]}, {"cpu": "1250m", "memory": "1Gi"}, "S: the sum of all app containers"),
        (
            # The pod of O: 500m and 100Mi, 1500m and 100Mi, podFixed 250m and 120Mi; "a total CPU request of 2250m and 320Mi".
            {
                "containers": [container(cpu="500m", memory="100Mi"), container(cpu="1500m", memory="100Mi")],
                "overhead": {"cpu": "250m", "memory": "120Mi"},
            },
            {"cpu": "2250m", "memory": "320Mi"},
            "O: the sum of container requests and pod overhead",
        ),
        (
            # The example of computePodResourceRequest in noderesources/fit.go: CPU 3, memory 3G.
            {
                "initContainers": [container(cpu="2", memory="1G"), container(cpu="2", memory="3G")],
                "containers": [container(cpu="2", memory="1G"), container(cpu="1", memory="1G")],
            },
            {"cpu": "3", "memory": "3G"},
            "fit.go: result CPU 3, memory 3G",
        ),
        (
            {"initContainers": [container(always=True, cpu="100m")], "containers": [container(cpu="200m")]},
            {"cpu": "300m"},
            "S: sidecars count with the app containers",
        ),
        (
            {
                "initContainers": [container(always=True, cpu="100m"), container(cpu="500m"), container(always=True, cpu="1")],
                "containers": [container(cpu="200m")],
            },
            {"cpu": "1300m"},
            "H: an init container only runs beside the sidecars before it",
        ),
        (
            {"initContainers": [container(always=True, cpu="100m"), container(cpu="2")], "containers": [container(cpu="200m")]},
            {"cpu": "2100m"},
            "H: InitContainerUse(i) is the sidecars before it and its own",
        ),
        ({"containers": [container(limits={"cpu": "2", "memory": "1Gi"}, cpu="1")]}, {"cpu": "1", "memory": "1Gi"}, "D: default requests to limits"),
        (
            {"containers": [container(cpu="1", memory="1Gi")], "resources": {"requests": {"cpu": "3"}}, "overhead": {"cpu": "1"}},
            {"cpu": "4", "memory": "1Gi"},
            "H: pod-level requests replace the containers', overhead comes on top",
        ),
        ({"containers": [container()], "resources": {"limits": {"cpu": "3"}}}, {"cpu": "3"}, "D: pod-level requests default to pod-level limits"),
        (
            {"containers": [container(cpu="1")], "resources": {"limits": {"cpu": "3"}}},
            {"cpu": "1"},
            "D: when containers specify requests, the pod-level ones default to their sum",
        ),
        ({"containers": [container()], "resources": {"requests": {"nvidia.com/gpu": "1"}}}, {}, "H: only cpu, memory and hugepages at pod level"),
    ],
)
def test_pod_requests(spec: dict[str, t.Any], expected: dict[str, str], source: str) -> None:
    assert texts(pod_requests({"kind": "Pod", "spec": spec}, "pod p")) == expected, source


def test_overhead_can_be_left_out() -> None:
    pod = {"spec": {"containers": [container(cpu="1")], "overhead": {"cpu": "250m"}}}
    assert texts(pod_requests(pod, "pod p", overhead=False)) == {"cpu": "1"}


def test_a_pod_that_is_resized_counts_with_the_most_of_it() -> None:
    """H: max(spec, actuated, allocated), for containers and sidecars, not for init containers."""
    status = {
        "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "1"}}],
        "initContainerStatuses": [{"name": "i", "resources": {"requests": {"cpu": "9"}}}],
    }
    spec = {"containers": [container(cpu="500m")], "initContainers": [container("i", cpu="100m")]}
    assert texts(pod_requests({"spec": spec, "status": status}, "pod p")) == {"cpu": "2"}
    status["containerStatuses"][0].pop("resources")
    assert texts(pod_requests({"spec": spec, "status": status}, "pod p")) == {"cpu": "500m"}, "a status without resources says nothing"


def test_an_answer_is_not_changed_by_who_got_it_before() -> None:
    pod = {"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "250m"}}}]}}
    pod_requests(pod, "pod x").clear()
    assert texts(pod_requests(pod, "pod x")) == {"cpu": "250m"}


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"resources": {"requests": {"cpu": "7"}}}},
        {"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "7"}}}]}},
        {"spec": {"initContainers": [{"name": "b", "resources": {"requests": {"cpu": "7"}}}]}},
        {"spec": {"initContainers": [{"name": "b", "restartPolicy": "Always", "resources": {"requests": {"cpu": "6"}}}]}},
        {"status": {"containerStatuses": [{"name": "a", "resources": {"requests": {"cpu": "7"}}}]}},
        {"status": {"containerStatuses": [{"name": "a", "resources": {}, "allocatedResources": {"cpu": "7"}}]}},
    ],
    ids=["pod", "container", "init", "sidecar", "resized", "promised"],
)
def test_pods_that_differ_in_what_they_ask_are_told_apart(change: dict[str, t.Any]) -> None:
    plain = {"spec": {"containers": [{"name": "a", "resources": {"requests": {"cpu": "1"}}}]}}
    assert texts(pod_requests(plain, "pod x")) == {"cpu": "1"}
    asks = {**plain, **change, "spec": {**plain["spec"], **change.get("spec", {})}}
    assert texts(pod_requests(asks, "pod x")) == {"cpu": "7"}


def test_what_the_scheduler_counts() -> None:
    raw = {
        "cpu": "0.1m",
        "memory": "1Ki",
        "nvidia.com/gpu": "2",
        "hugepages-2Mi": "4Mi",
        "attachable-volumes-aws-ebs": "39",
        "example.kubernetes.io/thing": "1",
        "storage": "1Gi",
    }
    found = counted(allocatable({"status": {"allocatable": raw}}, "node n"))
    assert found == {
        "cpu": 1,
        "memory": 1024,
        "nvidia.com/gpu": 2,
        "hugepages-2Mi": 4194304,
        "attachable-volumes-aws-ebs": 39,
        "example.kubernetes.io/thing": 1,
    }
    assert str(amount_of("cpu", 250)) == "250m"
    assert str(amount_of("memory", 2**20, "binary")) == "1Mi"


@pytest.mark.parametrize(
    ("pod", "node"),
    [
        ({"spec": {"nodeName": "a"}, "status": {"phase": "Running"}}, "a"),
        ({"spec": {"nodeName": "a"}}, "a"),
        ({"spec": {"nodeName": "a"}, "status": {"phase": "Succeeded"}}, None),
        ({"spec": {"nodeName": "a"}, "status": {"phase": "Failed"}}, None),
        ({"spec": {}, "status": {"phase": "Pending"}}, None),
        ({"metadata": {"deletionTimestamp": "now"}, "spec": {"nodeName": "a"}, "status": {"phase": "Running"}}, "a"),
    ],
)
def test_which_node_a_pod_occupies(pod: dict[str, t.Any], node: str | None) -> None:
    assert occupies(pod, "pod p") == node


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        ({"spec": {"containers": [container(cpu="fast")]}}, "pod p: container c: requests.cpu is 'fast', which is no quantity"),
        ({"spec": {"containers": {}}}, "pod p: containers is no list of mappings"),
        ({"spec": {"overhead": []}}, "pod p: overhead is a list, not a mapping"),
    ],
)
def test_what_is_no_request(pod: dict[str, t.Any], words: str) -> None:
    with pytest.raises(RuntimeGateError, match=words):
        pod_requests(pod, "pod p")
