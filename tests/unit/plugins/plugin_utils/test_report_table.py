"""The table: a line a node, reasons under what fails, counts at the end, colour only where it is asked for."""

from __future__ import annotations

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import report_table


def verdict(name, word, fails=False, reason="because", fix=None, after="loaded", pending=False):
    return {
        "runtime_class": name,
        "handler": name,
        "verdict": word,
        "fails": fails,
        "reason": reason,
        "fix": fix,
        "after_restart": after,
        "pending": pending,
    }


def host(name, cells, verdicts=(), error=None, unreachable=False):
    return {
        "host": name,
        "node": name,
        "engine": "containerd",
        "version": "2.1.9",
        "unreachable": unreachable,
        "error": error,
        "fails": bool(error) or any(entry["fails"] for entry in verdicts),
        "cells": cells,
        "verdicts": list(verdicts),
    }


def report(*hosts, notices=(), not_judged=None, cluster_nodes=0):
    failing = [entry["node"] for entry in hosts if entry["fails"]]
    words: dict[str, int] = {}
    for entry in hosts:
        for word in entry["cells"].values():
            words[word] = words.get(word, 0) + 1
    return {
        "ok": not failing,
        "hosts": list(hosts),
        "failing_nodes": failing,
        "notices": list(notices),
        "not_judged": not_judged or {"hosts": [], "nodes": []},
        "counts": {
            "hosts": len(hosts),
            "judged": len(hosts),
            "cluster_nodes": cluster_nodes,
            "cluster_nodes_judged": len(hosts),
            "verdicts": words,
        },
    }


def test_what_a_restart_would_change_is_seen_where_everything_is_ok():
    stale = {"id": 1, "name": "stale-daemon", "severity": "warning", "message": "a restart changes crun; makes crun the default (now runc)", "fix": "Restart."}
    entry = dict(host("w1", {"crun": "ok", "runc": "ok"}), faults=[stale], changed_at_restart=["crun"])
    shown = report_table.render(report(entry), width=100)
    assert shown[2:7] == [
        "w1    containerd 2.1.9  changed at restart  ok",
        "    at the next restart: a restart changes crun; makes crun the default (now runc)",
        "    fix: Restart.",
        "",
        "changed at restart: loaded now, the next restart loads it with other settings",
    ]
    assert shown[-1] == "1 of 1 hosts judged; 1 ok, 1 changed at restart; none fails"
    told = [dict(verdict("kata", "restart_required", True), faults=[1])]
    again = report_table.render(report(dict(host("w1", {"kata": "restart_required"}, told), faults=[stale])), width=100)
    assert "at the next restart" not in "\n".join(again)


def test_the_whole_table_as_a_person_sees_it():
    shown = report_table.render(
        report(
            host("w1", {"kata": "not_targeted", "nvidia": "ok"}),
            host(
                "worker-2",
                {"kata": "excluded_by_taint", "nvidia": "missing"},
                [verdict("kata", "excluded_by_taint"), verdict("nvidia", "missing", True, "it is not loaded", "Load it.")],
            ),
            notices=[{"severity": "warning", "message": "one name, two meanings", "fix": None}],
            not_judged={"hosts": [], "nodes": ["w3"]},
            cluster_nodes=3,
        ),
        width=100,
    )
    assert shown == [
        "",
        "NODE      RUNTIME           kata   nvidia",
        "w1        containerd 2.1.9  -      ok",
        "worker-2  containerd 2.1.9  taint  missing",
        "    nvidia: it is not loaded",
        "    fix: Load it.",
        "",
        "- the class's nodeSelector excludes the node; taint: selected, but a taint keeps the class away",
        "",
        "Nodes of the cluster that no host of this run is: w3",
        "",
        "warning: one name, two meanings",
        "",
        "2 of 2 hosts judged (2 of the cluster's 3 Nodes); 1 ok, 1 missing, 1 taint, 1 not targeted (-); 1 fail: worker-2",
    ]


def test_one_reason_for_several_classes_is_said_once():
    both = [verdict("a", "unknown", True, "nobody answers"), verdict("b", "unknown", True, "nobody answers")]
    shown = report_table.render(report(host("w1", {"a": "unknown", "b": "unknown"}, both)))
    assert [line for line in shown if "nobody answers" in line] == ["    a, b: nobody answers"]


def test_one_error_for_all_hosts_is_said_once():
    shown = report_table.render(report(*(host("w%d" % number, {}, error="no such file") for number in range(3))))
    assert [line.strip() for line in shown if line.startswith("    ")] == ["no such file", "as w0", "as w0"]


def test_a_time_bomb_and_a_pending_handler_have_words_of_their_own():
    shown = report_table.render(
        report(
            host("w1", {"a": "ok", "b": "missing"}, [verdict("a", "ok", True, after="missing"), verdict("b", "missing", pending=True)])
        )
    )
    assert "lost at restart  pending" in shown[2]
    assert "; 1 lost at restart, 1 pending; 1 fail: w1" in shown[-1]


def test_a_part_has_its_own_lines_and_the_counts_of_all():
    bad = host("w2", {"a": "ok"}, [verdict("a", "ok", True, after="missing")])
    whole = report(host("w1", {"a": "ok"}), bad, not_judged={"hosts": ["w9"], "nodes": []})
    part = report_table.render(whole, only=["w1"])
    assert [line.split()[0] for line in part if line.startswith("w")] == ["w1"] and "w9" not in "\n".join(part)
    assert part[-1] == "2 of 2 hosts judged; 1 ok, 1 lost at restart; 1 fail: w2"
    assert "w9" in "\n".join(report_table.render(whole))


def test_an_ok_on_a_failing_node_has_no_reason_below_it():
    shown = report_table.render(report(host("w1", {"a": "ok", "b": "missing"}, [verdict("a", "ok"), verdict("b", "missing", True)])))
    assert [line for line in shown if line.startswith("    ")] == ["    b: because"]


def test_columns_that_do_not_fit_give_way_but_no_failure_is_lost():
    names = ["class-%02d" % number for number in range(40)]
    cells = dict.fromkeys(names, "not_targeted")
    cells.update({"class-07": "missing", "class-08": "ok"})
    shown = report_table.render(report(host("w1", cells, [verdict("class-07", "missing", True)])), width=60)
    assert shown[1].split() == ["NODE", "RUNTIME", "class-07", "class-08"]
    for name in names:
        cells[name] = "missing"
    shown = report_table.render(report(host("w1", cells, [verdict(name, "missing", True) for name in names])), width=60)
    assert shown[1].split() == ["NODE", "RUNTIME"]
    assert all(name in "\n".join(shown) for name in names)
    assert all(len(line) <= 60 for line in shown[:-1])


def test_colour_is_what_the_paint_makes_and_plain_has_none():
    made = report(host("w1", {"a": "missing"}, [verdict("a", "missing", True)]))
    assert "\x1b" not in "\n".join(report_table.render(made))
    painted = report_table.render(made, paint=lambda text, color: "<%s:%s>" % (color, text))
    assert "<red:w1  >" in painted[2] and "<red:missing>" in painted[2] and painted[-1].startswith("<red:")


def test_no_host_at_all_is_said():
    assert report_table.render(dict(report(), ok=False))[-1] == "0 of 0 hosts judged; no verdict; none fails"


def test_long_lists_of_names_are_cut_with_their_number():
    hosts = [host("node-%02d" % number, {}, error="x") for number in range(12)]
    assert report_table.render(report(*hosts))[-1].endswith("12 fail: " + ", ".join("node-%02d" % n for n in range(10)) + " and 2 more")
