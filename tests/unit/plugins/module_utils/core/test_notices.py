# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The notices, each seen and, on the mended twin, not seen."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crosscheck import crosscheck


def node(name: str, handlers: t.Any = ("runc",), labels: t.Any = None, **more: t.Any) -> dict[str, t.Any]:
    handlers = handlers if isinstance(handlers, dict) else list(handlers)
    return {"name": name, "labels": labels or {}, "runtime": {"handlers": handlers, "default_handler": "runc", **more}}


def cls(handler: str = "h", name: str = "c", **selector: str) -> dict[str, t.Any]:
    return {"name": name, "handler": handler, "scheduling": {"nodeSelector": selector} if selector else {}}


def notices(name: str, classes: t.Any, nodes: t.Any, **more: t.Any) -> list[dict[str, t.Any]]:
    return [notice for notice in crosscheck(classes, nodes, **more)["notices"] if notice["name"] == name]


RUNC2, KATA2 = "io.containerd.runc.v2", "io.containerd.kata.v2"
SEVEN = [node(f"n{i}", ["runc", "x"]) for i in range(7)]


@pytest.mark.parametrize(
    ("name", "severity", "seen", "twin", "words"),
    [
        ("no_nodes_judged", "warning", ([], []), ([], [node("a")]), ["no node"]),
        ("no_nodes_judged", "error", ([cls()], []), ([cls()], [node("a", ["h"])]), ["there is no node", "nothing passes"]),
        ("no_runtime_classes", "info", ([], [node("a")]), ([cls()], [node("a", ["h"])]), ["no RuntimeClass"]),
        (
            "old_api_version",
            "warning",
            ([{"apiVersion": "node.k8s.io/v1beta1", "metadata": {"name": "c"}, "handler": "h"}], [node("a")]),
            ([{"apiVersion": "node.k8s.io/v1", "metadata": {"name": "c"}, "handler": "h"}], [node("a")]),
            ["RuntimeClass c", "v1beta1", "1.25"],
        ),
        ("unscoped_classes", "info", ([cls()], [node("a")]), ([cls(x="y")], [node("a")]), ["without scheduling", "(1): c"]),
        ("handler_unnameable", "warning", ([], [node("a", ["Kata_Q"])]), ([], [node("a", ["kata-q"])]), ["Kata_Q", "a"]),
        (
            "selector_matches_no_node",
            "warning",
            ([cls(gpu="yes")], [node("a", labels={"gpus": "yes"})]),
            ([cls(gpu="yes")], [node("a", labels={"gpu": "yes"})]),
            ["RuntimeClass c", "gpu=yes", 'did you mean "gpus"?'],
        ),
        (
            "selector_matches_no_node",
            "warning",
            ([cls(gpu="yes")], [node("a")]),
            ([cls()], [node("a")]),
            ["no node has the label gpu"],
        ),
        (
            "selector_matches_no_node",
            "warning",
            ([cls(gpu="yes")], [node("a", labels={"gpu": "true"})]),
            ([cls(gpu="true")], [node("a", labels={"gpu": "true"})]),
            ["the label gpu has the values true"],
        ),
        (
            "selector_matches_no_node",
            "warning",
            ([cls(a="1", b="1")], [node("x", labels={"a": "1"}), node("y", labels={"b": "1"})]),
            ([cls(a="1", b="1")], [node("x", labels={"a": "1", "b": "1"})]),
            ["on no node together"],
        ),
        (
            "class_nobody_serves",
            "warning",
            ([cls("nvidai")], [node("a", ["nvidia"]), {"name": "b"}]),
            ([cls("nvidia")], [node("a", ["nvidia"]), {"name": "b"}]),
            ["RuntimeClass c", "1 missing, 1 unknown", 'did you mean handler "nvidia"?'],
        ),
        (
            "orphan_handler",
            "info",
            ([], [node("a", ["runc", "crun"]), node("b", ["runc", "crun"])]),
            ([cls("crun")], [node("a", ["runc", "crun"])]),
            ["handler crun", "a, b"],
        ),
        ("orphan_handler", "info", ([], SEVEN), ([cls("x")], SEVEN), ["n0, n1, n2, n3, n4 and 2 more"]),
        (
            "label_promises_handler",
            "warning",
            ([], [node("a", labels={"katacontainers.io/kata-runtime": "true"})]),
            ([], [node("a", ["kata-qemu"], labels={"katacontainers.io/kata-runtime": "true"})]),
            ["katacontainers.io/kata-runtime=true", "handler kata", "a"],
        ),
        (
            "label_promises_handler",
            "warning",
            ([], [node("a", labels={"handlers.example.com/nvidia": "loaded"})]),
            ([], [node("a", ["nvidia"], labels={"handlers.example.com/nvidia": "loaded"})]),
            ["handlers.example.com/nvidia=loaded", "handler nvidia"],
        ),
        (
            "label_promises_handler",
            "warning",
            ([cls(pool="gpu")], [node("a", labels={"pool": "gpu"})]),
            ([cls(pool="gpu")], [node("a", ["h"], labels={"pool": "gpu"})]),
            ["pool=gpu", "handler h"],
        ),
        (
            "label_promises_handler",
            "warning",
            ([cls(pool="gpu")], [node("a", labels={"pool": "gpu"})]),
            ([{**cls(), "scheduling": {"nodeSelector": {"kubernetes.io/os": "linux"}}}], [node("a", labels={"kubernetes.io/os": "linux"})]),
            ["pool=gpu"],
        ),
        (
            "handler_without_label",
            "info",
            ([cls(pool="gpu")], [node("a", ["h"], labels={"pool": "x"})]),
            ([cls(pool="gpu"), cls(name="d", pool="x")], [node("a", ["h"], labels={"pool": "x"})]),
            ["handler h", "a", "pool=gpu"],
        ),
        (
            "handler_differs",
            "warning",
            ([], [node("a", {"h": {"runtime_type": RUNC2}}), node("b", {"h": {"runtime_type": KATA2}}), node("c", {"h": {"runtime_type": KATA2}})]),
            ([], [node("a", {"h": {"runtime_type": KATA2}}), node("b", {"h": {"runtime_type": KATA2}})]),
            [f"runtime_type {KATA2} on b, c; runtime_type {RUNC2} on a"],
        ),
        (
            "handler_differs",
            "warning",
            (
                [],
                [
                    node("a", {"h": {"runtime_type": KATA2, "options": {"privileged_without_host_devices": True}}}),
                    node("b", {"h": {"runtime_type": KATA2, "privileged_without_host_devices": False}}),
                ],
            ),
            (
                [],
                [
                    node("a", {"h": {"runtime_type": KATA2, "privileged_without_host_devices": False}}),
                    node("b", {"h": {"runtime_type": KATA2}}),
                ],
            ),
            ["privileged_without_host_devices True on a"],
        ),
        (
            "handler_paths_differ",
            "info",
            ([], [node("a", {"h": {"runtime_type": RUNC2, "binary": "/x"}}), node("b", {"h": {"runtime_type": RUNC2, "binary": "/y"}})]),
            ([], [node("a", {"h": {"runtime_type": RUNC2, "binary": "/x"}}), node("b", {"h": {"runtime_type": KATA2, "binary": "/y"}})]),
            ["binary /x on a; binary /y on b"],
        ),
        (
            "weakening_option",
            "warning",
            ([], [node("a", {"h": {"options": {"NoPivotRoot": True}}})]),
            ([], [node("a", {"h": {"options": {"NoPivotRoot": False}}})]),
            ["NoPivotRoot of handler h", "a"],
        ),
        (
            "weakening_option",
            "warning",
            ([], [node("a", {"h": {"pod_annotations": ["*"]}})]),
            ([], [node("a", {"h": {"pod_annotations": ["io.katacontainers.*"]}})]),
            ["pod_annotations of handler h"],
        ),
        (
            "evidence_api",
            "info",
            ([], [{"kind": "Node", "metadata": {"name": "a"}, "status": {"runtimeHandlers": [{"name": "h"}]}}]),
            ([], [node("a")]),
            ["alone (1): a"],
        ),
    ],
)
def test_notice(name: str, severity: str, seen: tuple[t.Any, t.Any], twin: tuple[t.Any, t.Any], words: list[str]) -> None:
    found = notices(name, *seen)
    assert found
    assert found[0]["severity"] == severity
    assert set(found[0]) == {"name", "severity", "message", "fix", "runtime_class", "handler", "nodes"}
    for word in words:
        assert word in found[0]["message"]
    assert notices(name, *twin) == []


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"node_selector": {"nvidai": {"a": "b"}}}, ["node_selector", "nvidai", '(did you mean "nvidia"?)']),
    ],
)
def test_a_class_of_the_policy_that_does_not_exist(policy: dict[str, t.Any], words: list[str]) -> None:
    (found,) = notices("policy_class_unknown", [cls("nvidia", "nvidia")], [node("a", ["nvidia"])], policy=policy)
    assert found["severity"] == "warning"
    for word in words:
        assert word in found["message"]
    assert not notices("policy_class_unknown", [cls("nvidia", "nvidia")], [node("a")], policy={"classes": ["nvidia"]})
    assert not notices("policy_class_unknown", None, [node("a")], policy=policy, classes_read=False)


def test_the_policy_names_classes_and_there_is_none() -> None:
    """With any class there it is an error, see test_crosscheck."""
    (found,) = notices("policy_class_unknown", [], [node("a")], policy={"classes": ["nvidai"]})
    assert "policy: classes names RuntimeClass nvidai, which does not exist" in found["message"]


DOWN = {
    "schema": 1,
    "engine": "containerd",
    "cri_ready": False,
    "evidence": "next",
    "handlers": {"h": {}},
    "reason": "rpc error: code = Unimplemented",
    "faults": [
        {"id": 18, "severity": "error", "handlers": ["h"], "message": "file b is not imported", "fix": "Import b."},
        {"id": 26, "severity": "error", "handlers": ["h"], "message": "CRI is not served: disabled", "fix": "Take cri out."},
    ],
}


def down(name: str, **more: t.Any) -> dict[str, t.Any]:
    return {"name": name, "labels": {}, "runtime": {**DOWN, **more}}


def test_a_node_whose_cri_is_down_and_that_no_class_targets() -> None:
    (found,) = notices("cri_not_served", [cls(gpu="yes")], [down("a")])
    assert found["message"] == (
        "containerd on a does not serve CRI, so it can run no pod at all; no RuntimeClass targets it, so it does not fail."
        " CRI is not served: disabled"
    )
    assert (found["severity"], found["fix"], found["nodes"]) == ("warning", "Take cri out.", ["a"])
    (found,) = notices("cri_not_served", [cls()], [down("a"), down("b")], policy={"unscoped": "ignore"}, fleet=False)
    assert "on a, b does not serve CRI, so they can run no pod at all; no RuntimeClass targets them, so they do not" in found["message"]
    (found,) = notices("cri_not_served", [cls(gpu="yes")], [down("a", faults=[])])
    assert "Unimplemented" in found["message"]
    assert "Find out why CRI is down" in found["fix"]
    assert not notices("cri_not_served", [cls(gpu="yes")], [down("a", cri_ready=True)])


def test_a_node_that_fails_because_cri_is_down_needs_no_notice() -> None:
    assert not notices("cri_not_served", [cls()], [down("a")])
    assert not notices("cri_not_served", [], [down("a")], policy={"required_handlers": ["h"]})
    undecided = {**down("a"), "labels_complete": False}
    (found,) = notices("cri_not_served", [cls(gpu="yes")], [undecided])
    assert "does not fail" not in found["message"]


def test_handlers_that_the_policy_does_not_allow() -> None:
    fleet = [node("a", ["runc", "x"]), node("b", ["runc"])]
    (found,) = notices("handler_not_allowed", [], fleet, policy={"allowed_handlers": ["runc"]})
    assert (found["handler"], found["nodes"], found["severity"]) == ("x", ["a"], "warning")
    assert not notices("handler_not_allowed", [], fleet, policy={"allowed_handlers": ["runc", "x"]})
    assert not notices("handler_not_allowed", [], fleet)


def test_classes_that_the_policy_leaves_out() -> None:
    (found,) = notices("classes_not_judged", [cls()], [node("a")], policy={"unscoped": "ignore"})
    assert found["message"] == "RuntimeClasses that are not judged (1 without scheduling; the policy says unscoped: ignore): c"
    assert not notices("classes_not_judged", [cls()], [node("a")])
    (found,) = notices("classes_not_judged", [cls()], [node("a")], policy={"unscoped": "referenced"}, workloads=[])
    assert "(1 without scheduling, which no workload names; the policy says unscoped: referenced): c" in found["message"]
    named = notices("classes_not_judged", [cls(), cls("h", "d")], [node("a")], policy={"classes": ["d"], "unscoped": "ignore"})
    assert [notice["message"].partition("(")[2] for notice in named] == [
        "1 that classes of the policy does not name): c",
        "1 without scheduling; the policy says unscoped: ignore): d",
    ]


def test_the_handler_that_was_meant_cannot_run_either() -> None:
    broken = {"nvidia": {"usable": False}}
    (found,) = notices("class_nobody_serves", [cls("nvidai")], [node("a", broken)])
    assert found["message"].endswith('(did you mean handler "nvidia", which is loaded, but unusable?)')
    (found,) = notices("class_nobody_serves", [cls("nvidai")], [node("a", broken), node("b", ["nvidia"])])
    assert found["message"].endswith('(did you mean handler "nvidia"?)')


def test_workloads_that_name_a_class_which_does_not_exist() -> None:
    pods = [{"kind": "Pod", "spec": {"runtimeClassName": "nvidai"}}]
    (found,) = notices("workload_class_unknown", [cls("nvidia", "nvidia")], [node("a")], workloads=pods)
    assert "RuntimeClass nvidai does not exist, but workloads name it (1)" in found["message"]
    assert 'did you mean "nvidia"' in found["message"]
    assert not notices("workload_class_unknown", [cls("nvidia", "nvidai")], [node("a")], workloads=pods)
    assert not notices("workload_class_unknown", None, [node("a")], workloads=pods, classes_read=False)


@pytest.mark.parametrize(
    "other", [node("other", labels={"gpu": "yes"}), {"name": "other", "labels": {"gpu": "yes", "kubernetes.io/os": "windows"}}]
)
def test_a_class_may_be_for_nodes_that_were_not_judged(other: dict[str, t.Any]) -> None:
    fleet = [node("a"), other]
    assert not notices("selector_matches_no_node", [cls(gpu="yes")], fleet, judge=["a"])
    assert notices("selector_matches_no_node", [cls(gpu="no")], fleet, judge=["a"])


def test_orphans_are_not_told_without_the_classes() -> None:
    assert not notices("orphan_handler", None, [node("a", ["x"])], classes_read=False)


def test_a_promise_is_told_once_a_node() -> None:
    labels = {"sandbox.gke.io/runtime": "gvisor"}
    selecting = {"name": "c", "handler": "gvisor", "scheduling": {"nodeSelector": labels}}
    (found,) = notices("label_promises_handler", [selecting], [node("a", labels=labels), {"name": "b", "labels": labels}])
    assert found["nodes"] == ["a"]


def test_different_engines_may_differ() -> None:
    def facts(name: str, engine: str, kind: str) -> dict[str, t.Any]:
        runtime = {"schema": 1, "engine": engine, "cri_ready": True, "evidence": "loaded", "handlers": {"h": {"runtime_type": kind}}}
        return {"name": name, "labels": {}, "runtime": runtime}

    assert not notices("handler_differs", [], [facts("a", "containerd", RUNC2), facts("b", "crio", "oci")])
    assert notices("handler_differs", [], [facts("a", "crio", "vm"), facts("b", "crio", "oci")])


def test_list_options_can_be_compared() -> None:
    fleet = [node("a", {"h": {"runtime_type": RUNC2, "binary": ["x"]}}), node("b", {"h": {"runtime_type": RUNC2, "binary": ["y"]}})]
    assert notices("handler_paths_differ", [], fleet)


def test_the_worst_notice_comes_first() -> None:
    result = crosscheck([cls(gpu="yes")], [node("a", ["x"])])
    assert [notice["severity"] for notice in result["notices"]] == ["warning", "info"]


def _reported(engine: str) -> dict[str, t.Any]:
    info = {"containerRuntimeVersion": f"{engine}://2.1.9"}
    return {"kind": "Node", "metadata": {"name": "a"}, "status": {"nodeInfo": info, "runtimeHandlers": [{"name": "h"}, {"name": "crun"}]}}


def test_what_the_status_of_a_crio_node_is_worth() -> None:
    (said,) = notices("evidence_api", [cls()], [_reported("cri-o")])
    assert said["message"].endswith("survives a restart; where CRI-O was reloaded it is wrong")
    (plain,) = notices("evidence_api", [cls()], [_reported("containerd")])
    assert plain["message"].endswith("survives a restart")
    assert [item["handler"] for item in notices("orphan_handler", [cls()], [_reported("containerd")])] == ["crun"]
    assert not notices("orphan_handler", [cls()], [_reported("cri-o")])
