"""What the differential test demands of its own run, how it counts repairs, and how it makes failures small: each seen to fail."""

from __future__ import annotations

import argparse
import pathlib
import types
import typing as t

import pytest
import yaml

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.capture_directory import read_capture
from tests.differential import __main__ as command
from tests.differential import mend, shrink
from tests.differential.judge import Result
from tests.differential.parts import CONFIG, File, Handler, Tree, Written
from tests.differential.tally import Tally

RUNC, KATA = Handler("runc", "io.containerd.runc.v2"), Handler("kata", "io.containerd.kata.v2")
TREE = types.SimpleNamespace(stale=False, ingredients=["tidy"])


def _tally(pairs: int, lost: int, numbers: t.Collection[int] = ()) -> Tally:
    tally = Tally({2: ("1.7",), 7: ("2.1",)}, ["1.7"])
    for index in range(pairs):
        tally.add("1.7", TREE, Result(lost=["x"] if index < lost else [], numbers=set(numbers)))
    return tally


def test_a_run_of_fair_shares_is_good(capsys: pytest.CaptureFixture[str]) -> None:
    assert _tally(100, 50).report([1, 2, 3], 1.0)
    printed = capsys.readouterr().out
    assert "seeds 1, 2, 3" in printed and "here it is off" in printed


@pytest.mark.parametrize("lost", [20, 80])
def test_lopsided_trees_fail_the_run(lost: int) -> None:
    assert not _tally(100, lost).report([1], 1.0)


@pytest.mark.parametrize("finding", ["mismatches", "unexplained", "false_alarms"])
def test_a_finding_fails_the_run(finding: str) -> None:
    tally = _tally(100, 50)
    tally.add("1.7", TREE, Result(**{finding: ["something"]}))
    assert not tally.report([1], 1.0)


def test_edits_that_do_not_mend_and_a_broken_test_bed_fail_the_run() -> None:
    first, second = _tally(100, 50), _tally(100, 50)
    first.add("1.7", TREE, Result(mended=mend.Mended(failures=["x"])))
    second.add("1.7", TREE, Result(), "traceback")
    assert not first.report([1], 1.0)
    assert not second.report([1], 1.0)


def test_a_fault_that_came_up_too_seldom_fails_a_large_run() -> None:
    """Only of lines that were run, by the written list, scaled to the size."""
    assert _tally(5000, 2500, {2}).rare() == []
    assert _tally(5000, 2500).rare() == [("1.7", 2, 0)]
    assert _tally(4999, 2500).rare() == []
    assert any("fault 2 came up 0 times on 1.7, at least 10" in sentence for sentence in _tally(5000, 2500).complaints())


def test_too_few_kinds_of_edits_fail_a_large_run() -> None:
    tally = _tally(5000, 2500, {2})
    tally.mended.tried.update(range(30))
    assert tally.complaints() == []
    del tally.mended.tried[29]
    assert tally.complaints() == ["29 kinds of faults offered edits, at least 30 are wanted"]


def _options(**changes: t.Any) -> argparse.Namespace:
    return argparse.Namespace(**{"only": None, "pairs": 100, "seed": 5, "seeds": 3, "lines": ["1.7", "2.1"], **changes})


def test_pairs_are_split_over_seeds_and_lines() -> None:
    pairs = command.pairs_of(_options())
    assert len(set(pairs)) == 100
    assert {pair.seed for pair in pairs} == {5, 6, 7}
    counts = [sum(pair.seed == seed and pair.line == line for pair in pairs) for seed in (5, 6, 7) for line in ("1.7", "2.1")]
    assert max(counts) - min(counts) <= 1
    assert command.Pair.parse(str(pairs[-1])) == pairs[-1]


# repairs -----------------------------------------------------------------------------------------------------------------------------


def _fault(**changes: t.Any) -> dict[str, t.Any]:
    fault = {"id": 14, "file": CONFIG, "severity": "error", "handlers": ["kata"], "message": "m", "fix_edits": [{"op": "set"}]}
    return {**fault, **changes}


def _judged(fault: dict[str, t.Any], served: set[str] | None, left: list[dict[str, t.Any]], default: str | None = None) -> tuple[int, int, int]:
    result = mend.Mended()
    mend.judge(fault, served, default, {"faults": left}, result)
    return result.fixed[fault["id"]], result.blocked[fault["id"]], len(result.failures)


@pytest.mark.parametrize(
    ("fault", "served", "left", "outcome"),
    [
        (_fault(), {"kata"}, [], (1, 0, 0)),
        (_fault(), {"runc"}, [], (0, 0, 1)),
        (_fault(), None, [], (0, 0, 1)),
        (_fault(handlers=["kata", "runc"]), {"runc"}, [], (1, 0, 1)),
        # a person's work is left: a fault without edits names the handler, or the daemon does not serve CRI because of it
        (_fault(), {"runc"}, [_fault(id=47, fix_edits=[])], (0, 1, 0)),
        (_fault(), {"runc"}, [_fault(id=47, fix_edits=[], handlers=["other"])], (0, 0, 1)),
        (_fault(), None, [_fault(id=47, fix_edits=[], handlers=[])], (0, 1, 0)),
        (_fault(), {"runc"}, [_fault(id=47, fix_edits=[], severity="info")], (0, 0, 1)),
        # a warning is about a handler that is loaded: it must be gone
        (_fault(severity="warning"), {"kata"}, [], (1, 0, 0)),
        (_fault(severity="warning"), {"kata"}, [_fault(severity="warning")], (0, 0, 1)),
        (_fault(severity="warning", handlers=[]), {"runc"}, [], (1, 0, 0)),
        (_fault(severity="warning", handlers=[]), {"runc"}, [_fault(severity="warning", handlers=[])], (0, 0, 1)),
        # names that the edits change
        (_fault(id=37, handlers=["Kata_X"]), {"kata-x"}, [], (1, 0, 0)),
        (_fault(id=31, handlers=["a.b"]), {"a-b"}, [], (1, 0, 0)),
    ],
)
def test_how_a_repair_counts(fault: dict[str, t.Any], served: set[str] | None, left: list[dict[str, t.Any]], outcome: tuple[int, int, int]) -> None:
    assert _judged(fault, served, left) == outcome


def test_the_default_is_what_counts_where_a_table_was_in_its_way() -> None:
    fault = _fault(id=17)
    assert _judged(fault, {"kata"}, [], "kata") == (1, 0, 0)
    assert _judged(fault, {"kata"}, [], "runc") == (0, 0, 1)


def test_what_is_no_longer_declared_need_not_come_back() -> None:
    result = mend.Mended()
    mend.judge(_fault(handlers=["a", "kata"]), {"kata"}, None, {"faults": []}, result, {"a"})
    assert (result.tried[14], result.fixed[14], result.failures) == (1, 1, [])
    assert mend.given_up(_fault(handlers=["a", "a.b", "c"])) == ["a"]
    assert mend.given_up(_fault(id=17)) == ["default"]


def test_the_most_severe_faults_with_edits_are_mended_first() -> None:
    error, warning, bare = _fault(), _fault(severity="warning"), _fault(fix_edits=[])
    assert mend.chosen([warning, error, bare]) == [error]
    assert mend.chosen([warning, bare]) == [warning]
    assert mend.chosen([bare]) == []


def test_links_of_the_tree_are_followed_inside_the_node() -> None:
    links = {"/etc/containerd/conf.d/zz.toml": "/etc/containerd/a.toml", "/etc/containerd/linked.d": "conf.d"}
    assert mend.real_path("/etc/containerd/conf.d/zz.toml", links) == "/etc/containerd/a.toml"
    assert mend.real_path("/etc/containerd/linked.d/b.toml", links) == "/etc/containerd/conf.d/b.toml"
    assert mend.real_path("/etc/containerd/b.toml", links) == "/etc/containerd/b.toml"


# small failures ------------------------------------------------------------------------------------------------------------------------


def _tree() -> Tree:
    root = File(CONFIG, 2, '"io.containerd.grpc.v1.cri"', [RUNC, KATA], imports=["/etc/containerd/conf.d/*.toml"], settings=[("", "a = 1")])
    root.raw = ["[debug]", 'level = "info"', '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.keyed]', 'runtime_type = ""']
    root.also = [Handler("keyed", None)]
    drop = Written("/etc/containerd/conf.d/a.toml", None, "", [KATA], text='version = 2\n[plugins.x.containerd.runtimes.kata]\nruntime_type = "k"\n')
    return Tree([root, drop], edit=[File(CONFIG, 2, "cri", [RUNC])], others={"/x": ""}, upgrade="2.4", ingredients=["wild"])


def test_a_tree_of_all_its_parts_is_the_tree() -> None:
    tree = _tree()
    whole = shrink.reduced(tree, frozenset(shrink.parts(tree)))
    assert whole.before() == tree.before()
    assert whole.declared() == tree.declared()
    assert [file.render() for file in whole.final()] == [file.render() for file in tree.final()]


def test_a_tree_without_its_parts_is_its_root_file() -> None:
    bare = shrink.reduced(_tree(), frozenset())
    assert bare.before() == {CONFIG: "version = 2\n"}
    assert bare.declared() == [] and not bare.stale


def test_the_account_goes_with_the_tables() -> None:
    tree = _tree()
    table = ("files", 0, "raw", 1)
    assert [handler.name for _path, handler in shrink.reduced(tree, {table}).declared()] == ["keyed"]
    second = ("files", 1)
    assert shrink.reduced(tree, {second}).files[1].handlers == []
    assert shrink.reduced(tree, {second, (*second, "text", 1)}).files[1].handlers == [KATA]


def test_hypothesis_finds_the_fewest_parts() -> None:
    every = [("part", index) for index in range(25)]
    needed = {every[3], every[17]}
    assert shrink.fewest(every, lambda kept: needed <= kept, 60) == needed


def test_what_does_not_fail_again_stays_whole() -> None:
    every = [("part", index) for index in range(5)]
    assert shrink.fewest(every, lambda _kept: False, 20) == set(every)


def test_a_failure_is_written_as_a_case(tmp_path: pathlib.Path) -> None:
    capture = {"format": 1, "node": {"engine": "containerd", "version": "2.1.9"}, "files": {CONFIG: "version = 2\n"}, "dump": None, "info": None, "probe": None}
    answer = {"state": "served", "handlers": {"runc": {}}, "default": "runc"}
    result = Result(mismatches=["x: y"], evidence={"capture": capture, "truth": answer, "restarted": answer, "log": "said\n"})
    tree = Tree([File(CONFIG, 2, "cri", [RUNC, KATA])], ingredients=["wild"])
    case = shrink.write_case(tmp_path, "1-2.1-7", tree, "2.1", result)
    answers = yaml.safe_load((case / "expected.yml").read_text(encoding="utf-8"))["captures"]["2.1"]
    assert answers["handlers"] == ["runc"] and answers["lost"] == ["kata"] and answers["healthy"] is False and answers["restart_pending"] is False
    assert read_capture(str(case / "captures" / "2.1"))["files"] == capture["files"]
    assert "mismatch: x: y" in (case / "case.md").read_text(encoding="utf-8")
    assert (case / "etc/containerd/config.toml").read_text(encoding="utf-8") == tree.files[0].render()
