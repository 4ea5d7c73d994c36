# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of the cross-check as a whole: counts, lines, order, what is read in which form, bad input."""

from __future__ import annotations

import json
import time
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.blast_radius import is_plain
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crosscheck import crosscheck
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

GVISOR = {"name": "gvisor", "handler": "runsc", "scheduling": {"nodeSelector": {"sandbox": "true"}}}
OBJECT = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "gvisor"},
    "handler": "runsc",
    "scheduling": {"nodeSelector": {"sandbox": "true"}},
}
OLD = {
    "apiVersion": "node.k8s.io/v1alpha1",
    "kind": "RuntimeClass",
    "metadata": {"name": "gvisor"},
    "spec": {"runtimeHandler": "runsc", "scheduling": {"nodeSelector": {"sandbox": "true"}}},
}


def node(name: str, handlers: t.Any = ("runc",), labels: t.Any = None, **more: t.Any) -> dict[str, t.Any]:
    labels = {"sandbox": "true"} if labels is None else labels
    return {"name": name, "labels": labels, "runtime": {"handlers": list(handlers), "default_handler": "runc"}, **more}


def pod(name: str, on: str | None, names: str | None = None, phase: str = "Running") -> dict[str, t.Any]:
    spec = {"nodeName": on, "runtimeClassName": names}
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "ns"}, "spec": spec, "status": {"phase": phase}}


def test_without_a_node_nothing_passes_that_was_asked() -> None:
    result = crosscheck([GVISOR], [])
    assert (result["ok"], result["lines"], result["verdicts"]) == (False, [], [])
    assert crosscheck([], [], policy={"required_handlers": ["runc"]})["ok"] is False
    assert crosscheck([], [])["ok"] is True


def test_the_whole_result() -> None:
    result = crosscheck([GVISOR], [node("w2"), node("w1", ["runc", "runsc"]), node("w0", labels={})], verdicts="all")
    assert result["ok"] is False
    assert [(record["node"], record["verdict"]) for record in result["verdicts"]] == [("w0", "not_targeted"), ("w1", "ok"), ("w2", "missing")]
    assert result["missing"] == {"w2": ["runsc"]}
    assert result["missing_handlers"] == ["runsc"]
    assert result["lines"] == ["MISSING=runsc"]
    assert result["counts"] == {
        "ok": 1,
        "missing": 1,
        "restart_required": 0,
        "unusable": 0,
        "not_targeted": 1,
        "excluded_by_taint": 0,
        "unknown": 0,
        "records": 3,
        "fails": 1,
        "pending": 0,
        "restart_loss": 0,
        "failing_nodes": 1,
        "runtime_classes": 1,
        "nodes": 3,
        "judged_nodes": 3,
        "windows_nodes": 0,
        "virtual_nodes": 0,
    }
    assert [entry["name"] for entry in result["nodes"]] == ["w2", "w1", "w0"]
    assert [entry["fails"] for entry in result["nodes"]] == [True, False, False]
    (summary,) = result["classes"]
    assert (summary["name"], summary["scope"], summary["targeted"], summary["references"]) == ("gvisor", "scheduling", 2, None)
    assert summary["counts"]["ok"] == summary["counts"]["missing"] == summary["counts"]["not_targeted"] == 1
    json.dumps(result)


def test_every_record_has_every_key() -> None:
    result = crosscheck([GVISOR], [node("a"), {"name": "b"}, node("c", ["runsc"])], verdicts="all")
    keys = {"node", "runtime_class", "handler", "verdict", "reason", "fix", "evidence", "handler_loaded", "after_restart", "faults"}
    for record in result["verdicts"]:
        assert set(record) == keys | {"pending", "fails"}
        assert record["reason"]
        assert record["fix"] or record["verdict"] == "ok"


def test_notable_leaves_out_what_nobody_needs_to_read() -> None:
    fleet = [node("ok", ["runsc"]), node("missing"), node("elsewhere", labels={}), node("tainted", taints=["k:NoSchedule"])]
    notable = crosscheck([GVISOR], fleet)
    everything = crosscheck([GVISOR], fleet, verdicts="all")
    assert [record["node"] for record in notable["verdicts"]] == ["missing", "tainted"]
    assert len(everything["verdicts"]) == 4
    assert notable["counts"] == everything["counts"]


@pytest.mark.parametrize("raw", [GVISOR, OBJECT, OLD, {**OBJECT, "apiVersion": "node.k8s.io/v1beta1"}])
def test_classes_in_every_form(raw: dict[str, t.Any]) -> None:
    result = crosscheck([raw], [node("w1", ["runsc"]), node("w2", labels={})], verdicts="all")
    assert [record["verdict"] for record in result["verdicts"]] == ["ok", "not_targeted"]


def test_an_empty_list_passes_with_a_notice_and_a_failed_query_does_not() -> None:
    empty = crosscheck([], [node("w1")])
    assert (empty["ok"], empty["lines"]) == (True, ["OK"])
    assert [notice["name"] for notice in empty["notices"]] == ["no_runtime_classes"]
    failed = crosscheck(None, [node("w1")], classes_read=False)
    assert (failed["ok"], failed["lines"]) == (False, [])
    assert failed["notices"][0]["name"] == "classes_not_read"
    assert failed["notices"][0]["severity"] == "error"


def test_required_handlers_ask_every_node_whatever_the_cluster_says() -> None:
    result = crosscheck([], [node("w1", ["kata"]), node("w2", taints=["k:NoSchedule"])], policy={"required_handlers": ["kata"]})
    (record,) = result["verdicts"]
    assert (record["node"], record["runtime_class"], record["handler"], record["verdict"]) == ("w2", None, "kata", "missing")
    assert result["missing"] == {"w2": ["kata"]}


@pytest.mark.parametrize(
    ("unscoped", "workloads", "verdicts", "ok"),
    [
        ("require", None, ["missing"], False),
        ("warn", None, ["missing"], True),
        ("ignore", None, [], True),
        ("referenced", [], [], True),
        ("referenced", [pod("p", "w1", "spin")], ["missing"], False),
        ("referenced", [pod("p", "w1", "spin", "Succeeded")], [], True),
        ("referenced", [{"kind": "Deployment", "spec": {"template": {"spec": {"runtimeClassName": "spin"}}}}], ["missing"], False),
        (
            "referenced",
            [{"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": {"runtimeClassName": "spin"}}}}}}],
            ["missing"],
            False,
        ),
        ("referenced", [{"kind": "List", "items": [pod("p", "w1", "spin")]}], ["missing"], False),
        ("referenced", [{"kind": "PodList", "items": [{"spec": {"runtimeClassName": "spin"}, "status": {"phase": "Failed"}}]}], [], True),
        (
            "referenced",
            [{"kind": "JobSet", "spec": {"replicatedJobs": [{"template": {"spec": {"template": {"spec": {"runtimeClassName": "spin"}}}}}]}}],
            ["missing"],
            False,
        ),
        (
            "referenced",
            [{"kind": "MPIJob", "spec": {"mpiReplicaSpecs": {"Worker": {"template": {"spec": {"runtimeClassName": "spin"}}}}}}],
            ["missing"],
            False,
        ),
        ("referenced", [{"kind": "CustomResourceDefinition", "spec": {"runtimeClassName": {"type": "string"}}}], [], True),
        ("referenced", [{"kind": "PodTemplate", "template": {"spec": {"runtimeClassName": "spin"}}}], ["missing"], False),
        ("referenced", [{"kind": "CronJob"}, {"kind": "Job", "spec": None}, {"kind": "Pod"}], [], True),
    ],
)
def test_unscoped_classes(unscoped: str, workloads: t.Any, verdicts: list[str], ok: bool) -> None:
    result = crosscheck([{"name": "spin", "handler": "spin"}], [node("w1")], workloads=workloads, policy={"unscoped": unscoped})
    assert [record["verdict"] for record in result["verdicts"]] == verdicts
    assert result["ok"] is ok
    assert result["classes"][0]["judged"] is bool(verdicts)


def test_what_scopes_a_class() -> None:
    tolerating = {"name": "c", "handler": "h", "scheduling": {"tolerations": [{"operator": "Exists"}]}}
    result = crosscheck([tolerating, {"name": "d", "handler": "h", "scheduling": {"nodeSelector": {}}}], [node("w1")])
    assert [entry["scope"] for entry in result["classes"]] == ["scheduling", "unscoped"]
    scoped = crosscheck([{"name": "d", "handler": "h"}], [node("w1")], policy={"node_selector": {"d": {}}})
    assert scoped["classes"][0]["scope"] == "policy"


def test_classes_of_the_policy() -> None:
    classes = [GVISOR, {"name": "kata", "handler": "kata"}]
    result = crosscheck(classes, [node("w1", ["runsc"])], policy={"classes": ["gvisor"]}, verdicts="all")
    assert [record["runtime_class"] for record in result["verdicts"]] == ["gvisor"]
    assert result["ok"] is True
    assert result["classes"][1]["not_judged_because"] == "policy: classes does not name it"


def test_pending_is_said_and_still_fails() -> None:
    result = crosscheck([GVISOR], [node("w1", pending=["runsc"]), node("w2", ["runsc"], pending=["runsc"])], verdicts="all")
    assert [(record["pending"], record["fails"]) for record in result["verdicts"]] == [(True, True), (False, False)]
    assert result["counts"]["pending"] == 1


def test_what_the_next_restart_loses_is_pending_where_this_run_brings_it() -> None:
    known = {"schema": 1, "engine": "containerd", "evidence": "loaded", "cri_ready": True, "default_handler": "runc"}
    bomb = {**known, "handlers": {"runsc": {}}, "restart_gains": [], "restart_loses": ["runsc"]}
    nodes = [{**node("w1", pending=["runsc"]), "runtime": bomb}, {**node("w2"), "runtime": bomb}]
    result = crosscheck([GVISOR], nodes, verdicts="all")
    assert [(record["verdict"], record["pending"]) for record in result["verdicts"]] == [("ok", True), ("ok", False)]
    assert result["counts"]["pending"] == 1 and result["counts"]["restart_loss"] == 2


def test_nodes_of_the_api() -> None:
    def api(name: str, handlers: t.Any) -> dict[str, t.Any]:
        status: dict[str, t.Any] = {"nodeInfo": {"containerRuntimeVersion": "containerd://2.1.9"}}
        if handlers is not None:
            status["runtimeHandlers"] = handlers
        return {"kind": "Node", "metadata": {"name": name, "labels": {"sandbox": "true"}}, "status": status}

    fleet = [
        api("a", [{"name": ""}, {"name": "runsc"}]),
        api("b", [{"name": ""}]),
        api("c", None),
        api("d", []),
        {**api("e", None), "runtime": {"handlers": ["runsc"]}},
    ]
    result = crosscheck([GVISOR], fleet, verdicts="all")
    assert [record["verdict"] for record in result["verdicts"]] == ["ok", "missing", "unknown", "unknown", "ok"]
    assert [record["evidence"] for record in result["verdicts"]] == ["api", "api", "none", "none", "loaded"]
    assert (result["nodes"][0]["engine"], result["nodes"][0]["version"]) == ("containerd", "2.1.9")
    assert result["nodes"][0]["default_handler"] is None
    assert [entry["handlers"] for entry in result["nodes"][:3]] == [["runsc"], [], None]
    strict = crosscheck([GVISOR], fleet[:2], policy={"accept_evidence": ["loaded"]}, verdicts="all")
    assert [record["verdict"] for record in strict["verdicts"]] == ["unknown", "missing"]


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ({"name": "n", "labels": {"kubernetes.io/os": "windows"}}, "windows"),
        ({"kind": "Node", "metadata": {"name": "n"}, "status": {"nodeInfo": {"operatingSystem": "windows"}}}, "windows"),
        ({"name": "n", "labels": {"type": "virtual-kubelet"}}, "virtual"),
        ({"name": "n", "labels": {"eks.amazonaws.com/compute-type": "fargate"}}, "virtual"),
        ({"name": "n", "taints": ["virtual-kubelet.io/provider=azure:NoSchedule"]}, "virtual"),
        ({"name": "n", "labels": {"type": "kwok"}}, "linux"),
    ],
)
def test_windows_and_virtual_nodes_are_counted_and_not_judged(raw: dict[str, t.Any], kind: str) -> None:
    result = crosscheck([{"name": "c", "handler": "h"}], [raw], verdicts="all", policy={"required_handlers": ["h"]})
    judged = kind == "linux"
    assert bool(result["verdicts"]) is judged
    assert result["ok"] is not judged
    assert result["nodes"][0]["kind"] == kind
    assert result["counts"]["judged_nodes"] == int(judged)
    assert result["counts"]["windows_nodes"] == int(kind == "windows")
    assert result["counts"]["virtual_nodes"] == int(kind == "virtual")
    assert (f"{kind}_nodes" in [notice["name"] for notice in result["notices"]]) is not judged


def test_some_nodes_only_lend_their_labels() -> None:
    result = crosscheck([GVISOR], [node("w1"), {"name": "w2", "labels": {}}], judge=["w1"])
    assert [record["node"] for record in result["verdicts"]] == ["w1"]
    assert [entry["judged"] for entry in result["nodes"]] == [True, False]
    assert (result["counts"]["nodes"], result["counts"]["judged_nodes"]) == (2, 1)
    with pytest.raises(RuntimeGateError, match="w9"):
        crosscheck([GVISOR], [node("w1")], judge=["w9"])


def test_one_host_alone_says_nothing_about_the_fleet() -> None:
    alone = crosscheck([{"name": "c", "handler": "h"}], [node("w1", ["kata"])], fleet=False)
    whole = crosscheck([{"name": "c", "handler": "h"}], [node("w1", ["kata"])])
    assert alone["notices"] == []
    assert {"orphan_handler", "class_nobody_serves"} <= {notice["name"] for notice in whole["notices"]}


def test_blast_radius() -> None:
    plain = node("plain")
    special = {"name": "special", "runtime": {"handlers": ["runc", "nvidia"], "default_handler": "nvidia"}}
    unknown = {"name": "unknown"}
    workloads = [
        pod("b", "special"),
        pod("a", "special"),
        pod("c", "special", "gvisor"),
        pod("done", "special", phase="Succeeded"),
        pod("waits", None),
        {"kind": "Pod", "metadata": {"name": "d"}, "spec": {"nodeName": "plain"}},
    ]
    radius = crosscheck([], [plain, special, unknown], workloads=workloads)["blast_radius"]
    assert radius == {
        "plain": {"default_handler": "runc", "needs_runtimeclass": True, "reach": "gpu-pods", "pods": ["default/d"]},
        "special": {"default_handler": "nvidia", "needs_runtimeclass": False, "reach": "node", "pods": ["ns/a", "ns/b"]},
        "unknown": {"default_handler": None, "needs_runtimeclass": None, "reach": None, "pods": []},
    }
    assert crosscheck([], [plain])["blast_radius"]["plain"]["pods"] is None


@pytest.mark.parametrize(
    ("name", "info", "plain"),
    [
        ("runc", {}, True),
        ("crun", {}, True),
        ("nvidia", {}, False),
        ("runc", {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/bin/nvidia-container-runtime"}}, False),
        ("default", {"runtime_type": "io.containerd.runc.v2", "binary": "/usr/sbin/runc"}, True),
        ("runc", {"runtime_type": "io.containerd.kata.v2"}, False),
        ("crun", {"runtime_type": "oci", "binary": "/usr/bin/crun"}, True),
    ],
)
def test_a_plain_default(name: str, info: dict[str, t.Any], plain: bool) -> None:
    assert is_plain(name, info) is plain


@pytest.mark.parametrize(
    ("classes", "nodes", "more", "words"),
    [
        ("x", [], {}, ["runtime_classes is a string"]),
        ([5], [], {}, ["runtime_classes[0] is a number"]),
        (None, [], {}, ["runtime_classes is empty"]),
        ([{"kind": "Pod", "metadata": {"name": "x"}}], [], {}, ["runtime_classes[0]", "'Pod'"]),
        ([{"handler": "h"}], [], {}, ["runtime_classes[0]", "no name"]),
        ([{"metadata": None, "handler": "h"}], [], {}, ["runtime_classes[0]", "no name"]),
        ([{"name": "c"}], [], {}, ["RuntimeClass c", "no handler"]),
        ([{"name": "c", "handler": "Nvidia_X"}], [], {}, ["RuntimeClass c", "'Nvidia_X'", "DNS label"]),
        ([{"name": "c", "handler": "h", "sheduling": {}}], [], {}, ["(c)", "'sheduling'", 'did you mean "scheduling"']),
        ([{"name": "c", "handler": "h", "scheduling": ["x"]}], [], {}, ["RuntimeClass c", "scheduling", "nodeSelector"]),
        ([{"name": "c", "handler": "h", "scheduling": {"nodeSelector": "a=b"}}], [], {}, ["RuntimeClass c", "nodeSelector", "a string"]),
        ([{"name": "c", "handler": "h", "scheduling": {"tolerations": [{}]}}], [], {}, ["RuntimeClass c", "tolerations[0]"]),
        ([GVISOR, OBJECT], [], {}, ["gvisor", "twice"]),
        ([], {}, {}, ["nodes is a mapping"]),
        ([], ["w1"], {}, ["nodes[0] is a string"]),
        ([], [{"labels": {}}], {}, ["nodes[0]", "no name"]),
        ([], [{"name": "w1", "lables": {}}], {}, ["w1", "'lables'", 'did you mean "labels"']),
        ([], [{"name": "w1", "labels": {"a": 1}}], {}, ["w1", "labels"]),
        ([], [{"name": "w1", "taints": ["a"]}], {}, ["w1", "taints[0]"]),
        ([], [{"name": "w1", "runtime": "runc"}], {}, ["w1", "containerd_runtime"]),
        ([], [{"name": "w1", "runtime": {"containerd_runtime": {}}}], {}, ["w1", "containerd_runtime"]),
        ([], [{"name": "w1", "runtime": {"handlers": "runc"}}], {}, ["w1", "handlers"]),
        ([], [{"name": "w1", "runtime": {"handlers": {}, "schema": 2}}], {}, ["w1", "schema 2"]),
        ([], [{"name": "w1"}, {"name": "w1"}], {}, ["w1", "twice"]),
        ([], [{"kind": "Pod", "metadata": {"name": "p"}}], {}, ["nodes[0]", "'Pod'"]),
        ([], [{"kind": "Node", "metadata": {}}], {}, ["nodes[0]", "metadata.name"]),
        ([], [], {"workloads": ["p"]}, ["workloads[0] is a string"]),
        ([], [], {"workloads": {}}, ["workloads is a mapping, not a list"]),
        ([], [], {"workloads": [{"kind": "Pod", "spec": ["x"]}]}, ["workloads[0]: spec is a list, not a mapping"]),
        ([], [], {"workloads": [{"kind": "Job", "spec": {"template": 5}}]}, ["workloads[0]: template is a number"]),
        ([], [{"kind": "Node", "metadata": ["w1"]}], {}, ["nodes[0]: metadata is a list"]),
        ([], [{"kind": "Node", "metadata": {"name": "w1"}, "status": {"nodeInfo": "x"}}], {}, ["node w1: status.nodeInfo is a string"]),
        ([], [{"kind": "Node", "metadata": {"name": "w1"}, "status": {"runtimeHandlers": ["runc"]}}], {}, ["node w1: runtimeHandlers"]),
        ([], [{"name": "w1", "runtime": {"handlers": {"runc": 5}}}], {}, ["node w1", "runc is a number"]),
        ([], [{"name": "w1", "runtime": {"handlers": {}, "schema": 1, "faults": [7]}}], {}, ["node w1", "faults"]),
        ([], [{"name": "w1", "pending": "runc"}], {}, ["node w1", "pending is no list of names"]),
        ([{"apiVersion": "node.k8s.io/v1alpha1", "metadata": {"name": "c"}, "spec": []}], [], {}, ["spec is a list"]),
        ([], [], {"policy": {"unscoped": "referenced"}}, ["referenced", "workloads"]),
        ([], [], {"verdicts": "some"}, ["verdicts", "'some'"]),
    ],
)
def test_bad_input_is_one_sentence(classes: t.Any, nodes: t.Any, more: dict[str, t.Any], words: list[str]) -> None:
    with pytest.raises(RuntimeGateError) as caught:
        crosscheck(classes, nodes, **more)
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_grouping_changes_no_verdict() -> None:
    """Alike nodes are judged once: the answer for each is that of judging it alone."""
    classes = [
        GVISOR,
        {"name": "kata", "handler": "kata", "scheduling": {"tolerations": [{"key": "k", "operator": "Exists"}]}},
        {"name": "u", "handler": "u"},
    ]
    fleet = []
    for index in range(96):
        handlers = [name for bit, name in enumerate(["runsc", "kata", "u"]) if index >> bit & 1]
        fleet.append(
            node(
                f"n{index}",
                handlers,
                labels={"sandbox": "true" if index & 8 else "false", "own": str(index)},
                taints=["k:NoSchedule"] if index & 16 else ["j:NoExecute"] if index & 32 else [],
            )
        )
    together = {(r["node"], r["runtime_class"]): r for r in crosscheck(classes, fleet, verdicts="all")["verdicts"]}
    assert len(together) == 3 * 96
    for entry in fleet:
        for record in crosscheck(classes, [entry], verdicts="all")["verdicts"]:
            other = together[record["node"], record["runtime_class"]]
            for key in ("verdict", "fails", "handler_loaded", "after_restart", "evidence"):
                assert record[key] == other[key]


def test_grouping_keeps_every_kind_of_evidence_apart() -> None:
    """Runtimes that differ in one thing only, side by side: each verdict is that of the node alone."""
    base: dict[str, t.Any] = {"schema": 1, "evidence": "next", "cri_ready": None, "explicit": False, "handlers": {}}
    after = {"layers": {"next": {"available": True}}}
    kinds = [
        {},
        {"cri_ready": False},
        {"cri_ready": True},
        {"evidence": "none"},
        {"evidence": "loaded"},
        {"explicit": True},
        {**after},
        {**after, "cri_ready": True},
        {**after, "cri_ready": True, "restart_gains": ["runsc"]},
        {"cri_ready": True, "handlers": {"runsc": {}}},
        {"cri_ready": True, "handlers": {"runsc": {"usable": False}}},
        {**after, "cri_ready": True, "handlers": {"runsc": {}}},
        {**after, "cri_ready": True, "handlers": {"runsc": {}}, "restart_loses": ["runsc"]},
    ]
    fleet = [{"name": f"n{i:02}", "labels": {"sandbox": "true"}, "runtime": {**base, **kind}} for i, kind in enumerate(kinds)]
    for accepted in (["loaded"], ["next"], ["loaded", "next"]):
        policy = {"accept_evidence": accepted}
        together = crosscheck([GVISOR], fleet, verdicts="all", policy=policy)["verdicts"]
        alone = [crosscheck([GVISOR], [entry], verdicts="all", policy=policy)["verdicts"][0] for entry in fleet]
        assert together == alone


def test_ten_times_the_nodes_take_no_more_than_some_twenty_times_as_long() -> None:
    """A quadratic step would take a hundred times; the wide margin is for a busy machine."""

    def seconds(count: int) -> float:
        classes = [{"name": f"c{i}", "handler": f"h{i}", "scheduling": {"nodeSelector": {"pool": f"p{i}"}}} for i in range(20)]
        fleet = [node(f"n{i}", [f"h{i % 20}", "x"], labels={"pool": f"p{i % 20}"}) for i in range(count)]
        best = 9e9
        for _attempt in range(3):
            start = time.process_time()
            crosscheck(classes, fleet)
            best = min(best, time.process_time() - start)
        return best

    assert seconds(2000) < 25 * seconds(200)


def test_a_class_of_the_policy_that_does_not_exist_is_an_error() -> None:
    """It would take the class that was meant out of the check, which would then pass."""
    classes = [{"name": "nvidia", "handler": "nvidia"}, {"name": "kata", "handler": "kata"}]
    nodes = [{"name": "w1", "labels": {}, "runtime": {"handlers": ["runc"]}}]
    said = 'policy: classes names RuntimeClass nvidai, which does not exist; did you mean "nvidia"\\? \\(existing: kata, nvidia\\)'
    with pytest.raises(RuntimeGateError, match=said):
        crosscheck(classes, nodes, policy={"classes": ["kata", "nvidai"]})
    assert crosscheck(classes, nodes, policy={"classes": ["nvidia"]})["missing"] == {"w1": ["nvidia"]}
    assert crosscheck([], nodes, policy={"classes": ["nvidai"]})["ok"] is True
    assert crosscheck(classes, nodes, policy={"classes": ["nvidai"]}, classes_read=False)["ok"] is False


def test_only_the_first_names_of_many_classes_are_told() -> None:
    classes = [{"name": f"c{number:02}", "handler": "h"} for number in range(25)]
    with pytest.raises(RuntimeGateError, match=r"which does not exist \(existing: c00, .*, c19 and 5 more\)"):
        crosscheck(classes, [], policy={"classes": ["zzz"]})
