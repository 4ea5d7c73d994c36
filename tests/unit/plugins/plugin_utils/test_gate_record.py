"""One host's record and what the closing step makes of all of them."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crosscheck import crosscheck
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import gate_record
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.gate_record import Options

GPU = {"gpu": "true"}
CLASSES = [
    {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": "nvidia"},
        "handler": "nvidia",
        "scheduling": {"nodeSelector": GPU},
    },
]


def node(name, labels=None, **info):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {},
        "status": {"nodeInfo": info},
    }


def cluster(*nodes, classes=None):
    return {"classes": CLASSES if classes is None else classes, "nodes": list(nodes), "workloads": None}


def facts(*handlers, loses=(), gains=(), **more):
    known = {
        "schema": 1,
        "engine": "containerd",
        "version": "2.1.9",
        "evidence": "loaded",
        "cri_ready": True,
        "default_handler": "runc",
        "handlers": {name: {} for name in handlers},
        "restart_gains": list(gains),
        "restart_loses": list(loses),
        "layers": {"next": {"available": True}},
        "faults": [],
        "identity": {"hostname": "w1"},
    }
    return {"ansible_facts": {"containerd_runtime": dict(known, **more)}}


def judge(result, *nodes, host="w1", classes=None, **options):
    return gate_record.judge_host(host, result, cluster(*nodes, classes=classes), Options(policy={}, **options))


def test_a_handler_that_a_restart_changes_is_told_and_passes():
    changes = {"nvidia": ["options.BinaryName"], "other": ["snapshotter"]}
    made = judge(facts("runc", "nvidia", restart_changes=changes), node("w1", GPU))
    assert made["changed_at_restart"] == ["nvidia"] and made["cells"] == {"nvidia": "ok"} and not made["fails"]
    assert judge(facts("runc", "nvidia", loses=["nvidia"], restart_changes=changes), node("w1", GPU))["changed_at_restart"] == []
    assert judge(facts("runc", "nvidia", restart_changes=changes), node("w1"))["changed_at_restart"] == []


def test_a_loaded_handler_passes():
    record = judge(facts("nvidia", "runc"), node("w1", GPU))
    assert (record["node"], record["registered"], record["fails"], record["error"]) == ("w1", True, False, None)
    assert record["cells"] == {"nvidia": "ok"}


def test_a_missing_handler_fails_and_the_message_names_class_handler_reason_and_fix():
    record = judge(facts("runc"), node("w1", GPU))
    assert record["fails"]
    message = gate_record.host_message(record)
    assert message.startswith("w1: RuntimeClass nvidia asks for handler nvidia: missing: ") and " Fix: " in message


def test_a_host_that_no_class_asks_and_whose_cri_is_down_stands_in_the_report_with_the_cause():
    fault = {"id": 26, "severity": "error", "handlers": [], "message": "CRI is not served: disabled", "fix": "Take cri out."}
    down = facts(cri_ready=False, evidence="none", faults=[fault], reason="rpc error")
    there = cluster(node("w1"))
    record = gate_record.judge_host("w1", down, there, Options(policy={}))
    assert not record["fails"]
    report = gate_record.make_report({"w1": record}, there, ["w1"], {})
    (notice,) = [entry for entry in report["notices"] if entry["name"] == "cri_not_served"]
    assert notice["message"].endswith("so it does not fail. CRI is not served: disabled") and notice["fix"] == "Take cri out."


def test_a_time_bomb_fails_in_words_that_say_so():
    record = judge(facts("nvidia", "runc", loses=["nvidia"]), node("w1", GPU))
    assert record["cells"] == {"nvidia": "ok"} and record["fails"]
    assert "nvidia: lost at restart: " in gate_record.host_message(record)


@pytest.mark.parametrize(
    "pending, loaded, pending_fails, fails",
    [
        ([], False, True, True),
        ([], False, False, True),
        (["nvidia"], False, True, True),
        (["nvidia"], False, False, False),
        (["nvidia"], True, True, False),
        ([], True, False, False),
    ],
)
def test_pending_excuses_only_what_this_run_would_load_and_only_where_asked(pending, loaded, pending_fails, fails):
    handlers = ("nvidia", "runc") if loaded else ("runc",)
    record = judge(facts(*handlers), node("w1", GPU), pending_handlers=pending, pending_fails=pending_fails)
    assert record["fails"] is fails
    assert [verdict["pending"] for verdict in record["verdicts"]] == ([] if loaded else [bool(pending)])


@pytest.mark.parametrize("pending, pending_fails, fails", [(["nvidia"], False, False), (["nvidia"], True, True), ([], False, True)])
def test_a_time_bomb_that_this_run_would_defuse_is_pending(pending, pending_fails, fails):
    lost = facts("nvidia", "runc", loses=["nvidia"])
    record = judge(lost, node("w1", GPU), pending_handlers=pending, pending_fails=pending_fails)
    assert record["fails"] is fails
    assert [verdict["pending"] for verdict in record["verdicts"]] == [bool(pending)]


UNREAD = [
    ({"unreachable": True, "msg": "Connection refused"}, "the host was unreachable: Connection refused"),
    ({"failed": True, "msg": "sudo: a password is required"}, "reading it failed: sudo: a password is required"),
    ({"skipped": True}, "the task that reads it was skipped"),
    ({}, "reading it failed"),
    ({"ansible_facts": {}}, "reading it failed"),
]


@pytest.mark.parametrize("result, why", UNREAD)
def test_a_host_that_could_not_be_read_is_unknown_and_fails(result, why):
    record = judge(result, node("w1", GPU))
    assert record["cells"] == {"nvidia": "unknown"} and record["fails"]
    assert why in gate_record.host_message(record) and "ansible w1 -b -m ping" in gate_record.host_message(record)


@pytest.mark.parametrize("result, why", UNREAD)
def test_it_fails_also_where_no_class_asks_anything_of_it(result, why):
    record = judge(result, node("w1"))
    assert record["cells"] == {"nvidia": "not_targeted"} and record["fails"]
    assert gate_record.host_message(record) == "w1: " + why


def test_unless_the_policy_only_warns_about_what_is_unknown():
    record = gate_record.judge_host("w1", {"unreachable": True}, cluster(node("w1")), Options(policy={"unknown": "warn"}))
    assert not record["fails"]


def test_a_host_that_could_not_be_read_does_not_count_as_judged():
    for record in (judge({"unreachable": True}, node("w1", GPU)), gate_record.broken_record("w1", "bad input")):
        made = gate_record.make_report({"w1": record}, cluster(node("w1", GPU)), ["w1"], {})
        assert [made["counts"][key] for key in ("hosts", "judged", "cluster_nodes_judged", "failing")] == [1, 0, 0, 1]
        assert [entry["host"] for entry in made["hosts"]] == ["w1"] and not made["ok"]


def test_a_capture_that_is_not_there_is_no_matter_of_the_host():
    record = judge({"failed": True, "msg": "The capture /c/w1 is no directory. Record it."}, node("w1", GPU))
    assert "Fix: Mend or record the capture" in gate_record.host_message(record) and "ping" not in gate_record.host_message(record)


def test_an_unreachable_host_is_not_judged_by_what_an_earlier_run_cached():
    cached = dict(facts("nvidia"), unreachable=True)
    assert judge(cached, node("w1", GPU))["cells"] == {"nvidia": "unknown"}


def test_a_host_is_found_by_boot_id_and_otherwise_by_its_name_in_the_inventory():
    found = judge(facts("nvidia", identity={"boot_id": "b-1"}), node("other", GPU, bootID="B1"), host="w1")
    assert (found["node"], found["registered"]) == ("other", True)
    assert judge(facts("nvidia", identity={}), node("w1", GPU), host="W1")["node"] == "w1"
    assert judge({"unreachable": True}, node("w1", GPU), host="w1")["registered"]


def test_a_node_that_has_not_registered_is_judged_by_the_inventory_s_labels():
    labelled = judge(facts("runc"), node_labels=GPU)
    assert (labelled["registered"], labelled["cells"]) == (False, {"nvidia": "missing"})
    assert judge(facts("runc"))["cells"] == {"nvidia": "unknown"}


def test_taints_of_an_unregistered_node_count():
    assert judge(facts("runc"), node_labels=GPU, node_taints=["a=b:NoSchedule"])["cells"] == {"nvidia": "excluded_by_taint"}


def report(records, *nodes, hosts=None, classes=None):
    return gate_record.make_report(
        {record["host"]: record for record in records}, cluster(*nodes, classes=classes), hosts or [r["host"] for r in records], {}
    )


def test_the_report_counts_and_names_who_was_not_judged():
    nodes = [node("w1", GPU), node("w2", GPU), node("w3")]
    records = [judge(facts("nvidia"), *nodes), judge(facts("runc", identity={"hostname": "w2"}), *nodes, host="w2")]
    made = report(records, *nodes, hosts=["w1", "w2", "w9"])
    assert made["counts"] == {
        "hosts": 3,
        "judged": 2,
        "failing": 1,
        "unreachable": 0,
        "cluster_nodes": 3,
        "cluster_nodes_judged": 2,
        "verdicts": {"missing": 1, "ok": 1},
        "fails": 1,
        "pending": 0,
    }
    assert made["not_judged"] == {"hosts": ["w9"], "nodes": ["w3"]}
    assert (made["ok"], made["failing_nodes"], made["missing"]) == (False, ["w2"], {"w2": ["nvidia"]})


def test_a_partial_view_is_not_ok_and_fails_no_host():
    made = report([judge(facts("nvidia"), node("w1", GPU))], node("w1", GPU), hosts=["w1", "w2"])
    assert made["ok"] is False and made["failing_nodes"] == []


def test_pods_that_were_not_read_are_not_taken_for_none():
    record = judge(facts("nvidia"), node("w1", GPU))
    assert report([record], node("w1", GPU))["blast_radius"]["w1"]["pods"] is None


def test_nothing_judged_is_not_ok():
    assert report([], hosts=["w1"])["ok"] is False
    assert report([], hosts=[])["ok"] is False


def test_the_same_name_with_another_meaning_is_seen_by_the_closing_step_only():
    nodes = [node("w1", GPU), node("w2", GPU)]
    runc = {"nvidia": {"runtime_type": "io.containerd.runc.v2"}}
    kata = {"nvidia": {"runtime_type": "io.containerd.kata.v2"}}
    first = judge(facts(handlers=runc), *nodes)
    second = judge(facts(handlers=kata, identity={"hostname": "w2"}), *nodes, host="w2")
    assert not first["fails"] and not second["fails"]
    told = [notice for notice in report([first, second], *nodes)["notices"] if notice["severity"] == "warning"]
    assert len(told) == 1 and told[0]["handler"] == "nvidia" and sorted(told[0]["nodes"]) == ["w1", "w2"]


def test_a_broken_host_fails_and_is_no_node():
    record = gate_record.broken_record("w1", "policy has the unknown key 'classs'")
    made = report([record], node("w1"))
    assert (made["failing_nodes"], made["missing"], made["not_judged"]["nodes"]) == (["w1"], {}, ["w1"])
    assert gate_record.host_message(record) == "policy has the unknown key 'classs'"


def test_a_policy_of_one_group_keeps_its_notices():
    nodes = [node("w1"), node("w2"), node("w3")]
    records = [
        gate_record.judge_host(name, facts("x", identity={"hostname": name}), cluster(*nodes), Options(policy=policy))
        for name, policy in (("w1", {}), ("w2", {}), ("w3", {"allowed_handlers": ["runc"]}))
    ]
    names = [(notice["name"], notice["nodes"]) for notice in report(records, *nodes)["notices"]]
    assert ("handler_not_allowed", ["w3"]) in names


def test_a_bad_policy_is_an_error_and_no_pass():
    with pytest.raises(RuntimeGateError, match="unknown key"):
        gate_record.judge_host("w1", facts("nvidia"), cluster(node("w1")), Options(policy={"classs": []}))


@pytest.mark.parametrize(
    "path, job, expected",
    [
        ("report.json", None, "report.json"),
        ("report.json", "42", "report-42.json"),
        ("/tmp/a.b/report", "42", "/tmp/a.b/report-42"),
        ("report-42.json", "42", "report-42.json"),
        ("/runs/42/report.json", "42", "/runs/42/report-42.json"),
        ("report-420.json", "42", "report-420-42.json"),
        ("", "42", ""),
    ],
)
def test_slices_of_one_job_write_different_files(path, job, expected):
    assert gate_record.report_path_of(path, job) == expected


def fleet(*nodes, **more):
    answer = crosscheck(CLASSES, list(nodes), verdicts="all", **more)
    records = gate_record.fleet_records(answer, {})
    objects = [{"metadata": {"name": entry["name"]}} for entry in answer["nodes"]]
    return gate_record.make_report(records, {"classes": CLASSES, "nodes": objects}, sorted(records), {}, "api", answer)


def reporting(name, *handlers, **labels):
    return {**node(name, labels, operatingSystem="linux"), "status": {"runtimeHandlers": [{"name": handler} for handler in handlers]}}


def test_a_fleet_that_is_judged_at_once_makes_the_same_report():
    report = fleet(reporting("a", "nvidia", gpu="true"), reporting("b", "runc", gpu="true"), node("c", GPU), node("w", operatingSystem="windows"))
    assert [(host["node"], host["cells"]["nvidia"], host["fails"], host["judged"]) for host in report["hosts"]] == [
        ("a", "ok", False, True),
        ("b", "missing", True, True),
        ("c", "unknown", True, False),
    ]
    assert (report["ok"], report["failing_nodes"], report["source"]) == (False, ["b", "c"], "api")
    assert report["counts"]["hosts"] == 3 and report["counts"]["judged"] == 2 and report["not_judged"]["nodes"] == ["w"]
    message = gate_record.fleet_message(report, "nobody")
    assert message.startswith("b: RuntimeClass nvidia asks for handler nvidia: missing: ") and " || c: " in message
    assert fleet(reporting("a", "nvidia", gpu="true"))["ok"] is True


def test_the_message_of_a_large_fleet_is_bounded_and_that_of_none_says_so():
    many = fleet(*(reporting(f"n{index}", "runc", gpu="true") for index in range(9)))
    assert gate_record.fleet_message(many, "nobody").endswith(" || and 4 more")
    none = fleet()
    assert none["ok"] is False and gate_record.fleet_message(none, "nobody was there") == "nobody was there"
