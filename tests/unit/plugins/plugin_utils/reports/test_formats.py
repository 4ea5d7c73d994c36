"""The formats of the report.

What this proves: JUnit XML says what a pipeline must fail on and what not; the metrics are in the exposition format of Prometheus, read here
by its rules and not by the writer; the page holds all data and nothing of it can end the script element; drift names each change once.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.report_table import render
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.reports.drift import drift, read_report
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.reports.junit import junit
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.reports.page import change_text, page
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.reports.prometheus import prometheus
from tests.unit.plugins.plugin_utils.reports.fleet_report import host, report

MIXED = report(
    host("a", {"runc": "ok", "nvidia": "missing", "kata": "not_targeted", "gvisor": "excluded_by_taint"}),
    host("b", {"runc": "time bomb", "nvidia": "unknown", "kata": "pending"}, pool="gpu"),
)


def _cases(text):
    root = ElementTree.fromstring(text)
    return root, {(case.get("classname"), case.get("name")): [child.tag for child in case] for case in root.iter("testcase")}


def test_junit_fails_what_the_gate_fails_and_counts_it():
    root, cases = _cases(junit(MIXED))
    assert cases == {
        ("a", "nvidia"): ["failure"],
        ("a", "runc"): [],
        ("b", "kata"): ["skipped"],
        ("b", "nvidia"): ["error"],
        ("b", "runc"): ["failure"],
    }
    assert (root.get("tests"), root.get("failures"), root.get("errors"), root.get("skipped")) == ("5", "2", "1", "1")


def test_junit_a_host_that_was_not_judged_is_an_error_and_control_characters_do_no_harm():
    broken = host("c", {}, error="it said \x00\x1b[31m & <no>", fails=True)
    _root, cases = _cases(junit(report(broken, not_judged={"hosts": ["d"], "nodes": []})))
    assert cases == {("c", "judged"): ["error"], ("d", "judged"): ["error"]}


# https://prometheus.io/docs/instrumenting/exposition_formats/
_SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (-?\d+)')


def _samples(text):
    found, types, helps = {}, [], []
    for line in text.rstrip("\n").split("\n"):
        if line.startswith("# "):
            (types if line.startswith("# TYPE") else helps).append(line.split()[2])
            continue
        match = _SAMPLE.fullmatch(line)
        assert match, line
        assert match[1] in types and match[1] in helps
        assert (match[1], match[2]) not in found, "one series twice"
        found[match[1], match[2]] = int(match[3])
    assert len(types) == len(set(types))
    return found


def test_metrics_follow_the_exposition_format():
    samples = _samples(prometheus(report(*MIXED["hosts"], host('we"ird\\\n', {"runc": "ok"}))))
    assert samples["runtime_gate_ok", None] == 0
    assert samples["runtime_gate_generated_timestamp_seconds", None] == 1780301100  # date -u -d 2026-06-01T08:05:00Z +%s
    assert samples["runtime_gate_verdict", 'node="a",runtime_class="nvidia",verdict="missing",fails="true"'] == 1
    assert samples["runtime_gate_verdict", 'node="b",runtime_class="runc",verdict="lost at restart",fails="true"'] == 1
    assert samples["runtime_gate_verdict", 'node="b",runtime_class="kata",verdict="pending",fails="false"'] == 1
    assert samples["runtime_gate_node_fails", 'node="we\\"ird\\\\\\n"'] == 0
    assert samples["runtime_gate_faults", 'node="a",severity="warning"'] == 1
    assert not [labels for name, labels in samples if labels and "kata" in labels and 'node="a"' in labels], "nothing was asked of it"


def test_the_page_holds_the_report_and_nothing_ends_its_script():
    hostile = host("a", {"</script><script>alert(1)</script>": "missing", "<!--": "ok"})
    text = page(report(hostile))
    data = re.search(r'<script type="application/json" id="report">(.*?)</script>', text, re.S)[1]
    assert "<" not in data
    assert json.loads(data)["classes"] == ["<!--", "</script><script>alert(1)</script>"]
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", text), "no network"


def test_drift_names_each_change_once():
    before = report(host("a", {"runc": "ok", "nvidia": "ok"}), host("gone", {"runc": "ok"}))
    now = report(host("a", {"runc": "ok", "nvidia": "missing"}, default_handler="nvidia", handlers={"nvidia": {}, "runc": {}}), host("new", {"runc": "ok"}))
    found = drift(before, now)
    assert [change_text(change) for change in found["changes"]] == [
        "a: class nvidia was ok, is missing",
        "a: default handler was runc, is nvidia",
        "a: handlers was runc, is nvidia runc",
        "new: judged for the first time",
    ]
    assert found["not_compared"] == ["gone"]
    assert drift(now, now)["changes"] == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2, "hosts": []}', '{"schema": 1}'])
def test_an_earlier_report_that_is_none_is_an_error(tmp_path, text):
    (tmp_path / "old.json").write_text(text)
    with pytest.raises(RuntimeGateError, match="runtime_gate_previous_report: .*old.json"):
        read_report(str(tmp_path / "old.json"), 1)


def test_a_time_bomb_that_this_run_would_defuse_is_pending_in_every_format():
    bomb = host("a", {"runc": "time bomb"})
    bomb["verdicts"][0].update(pending=True, fails=False)
    told = report(bomb)
    assert ("a", "runc") in _cases(junit(told))[1] and 'message="pending: ' in junit(told)
    assert _samples(prometheus(told))["runtime_gate_verdict", 'node="a",runtime_class="runc",verdict="pending",fails="false"'] == 1
    assert "1 pending" in render(told)[-1] and '"words":["-","pending"]' in page(told)
