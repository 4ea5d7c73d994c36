# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The benchmark's arithmetic and its table, and its rows that need nothing but Python, at a tiny size. All rows: tests/integration."""

from __future__ import annotations

import pathlib

import pytest

from tests.bench import __main__ as bench
from tests.bench import ansible_runs, fleet, plays
from tests.bench.rows import NotMeasured, Row, Spent, alternately, missed, named_parts, ratio_of, table


def test_a_ratio_is_that_of_medians() -> None:
    assert ratio_of([3.0, 9.0, 4.0], [2.0, 1.0, 100.0]) == 2.0


def test_sides_are_measured_in_turn() -> None:
    calls: list[str] = []
    found = alternately(2, lambda: calls.append("a") or 1.0, lambda: calls.append("b") or 2.0)
    assert calls == ["a", "b", "a", "b"] and found == [[1.0, 1.0], [2.0, 2.0]]


def test_a_profile_names_the_largest_parts_until_nine_tenths_are_named() -> None:
    parts = [Spent("small", 0.5), Spent("large", 7.0), Spent("middle", 2.5)]
    assert named_parts(parts, 10.0) == ["large 7 s", "middle 2.5 s"]
    assert named_parts(parts, 7.0) == ["large 7 s"]


def test_what_a_task_of_ours_takes_beyond_that_of_the_other_play() -> None:
    ours = ansible_runs.Play(15.0, [Spent("start", 2.0), Spent("read", 10.0), Spent("judge", 3.0)], "")
    other = ansible_runs.Play(7.0, [Spent("start", 1.0), Spent("ping", 6.0)], "")
    assert ansible_runs.beyond(ours, other) == [Spent("start", 1.0), Spent("read (beyond what ping takes)", 4.0), Spent("judge", 3.0)]


@pytest.mark.parametrize(("ratio", "goal", "expected"), [(1.2, 1.3, False), (1.4, 1.3, True), (None, 1.3, False), (9.0, None, False)])
def test_a_goal_is_missed(ratio: float | None, goal: float | None, expected: bool) -> None:
    assert missed(Row("x", "y", ratio=ratio, goal=goal)) is expected


def test_the_table_says_what_was_met_missed_and_why() -> None:
    rows = [Row("a", "one", "2 s", "1 s", 2.0, 1.5, ["because"]), Row("b", "two", "1 s", "1 s", 1.0, 1.5), Row("c", "three", "1 s")]
    page = table(rows, 0.5)
    assert "| a | one | 2 s | 1 s | 2.00 | 1.50 | missed |" in page and "* a: because" in page
    assert "| b | two | 1 s | 1 s | 1.00 | 1.50 | met |" in page and "| c | three | 1 s |  |  |  |  |" in page and "scale 0.5" in page


def test_a_row_that_cannot_be_measured_says_why_and_ends_with_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    def no_row(scale: float, runs: int) -> list[Row]:
        raise NotMeasured("there is no root")

    monkeypatch.setitem(bench.ROWS, "facts", no_row)
    assert bench.main(["facts", "--output", str(tmp_path / "bench.md")]) == 0
    page = (tmp_path / "bench.md").read_text()
    assert "| facts | not measured |" in page and "* facts: not measured: there is no root" in page and page in capsys.readouterr().out


def test_an_audit_that_did_not_judge_every_host_is_no_measurement() -> None:
    with pytest.raises(NotMeasured, match="did not say 4 of 4"):
        plays._judged(ansible_runs.Play(1.0, [], "3 of 4 hosts judged; none fails"), 4)


def test_the_made_up_cluster_is_one() -> None:
    nodes, pods = fleet.nodes(40), list(fleet.pods(120, 40))
    assert len({node["metadata"]["name"] for node in nodes}) == 40 and len({pod["metadata"]["name"] for pod in pods}) == 120
    assert {pod["spec"]["nodeName"] for pod in pods} == {node["metadata"]["name"] for node in nodes}
    assert len({entry["handler"] for entry in fleet.runtime_classes(100)}) > 50


def test_the_rows_of_python_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.main(["crosscheck", "filter", "--scale", "0.004", "--runs", "1"]) == 0
    page = capsys.readouterr().out
    lines = [line for line in page.splitlines() if line.startswith(("| crosscheck |", "| filter |"))]
    assert len(lines) == 4 and "not measured" not in page, page
    assert "100 nodes × 100 classes, 3,000 pods" in page and "pairs are notable" in page
