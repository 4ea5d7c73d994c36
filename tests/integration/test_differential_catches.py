"""The differential test can fail: a product that lies in any of the ways it is made to find is found.

What this proves: that no comparison of tests/differential is empty. A tree is judged on a real daemon, with the product's true facts
changed by one lie before they are compared; each lie must be reported, and the unchanged facts must not.
"""

from __future__ import annotations

import copy
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.capture_directory import read_capture
from tests.differential import judge as judging
from tests.differential import shrink
from tests.differential.parts import File, Handler, Tree
from tests.testbed.host import ContainerdHost

CONFIG = "/etc/containerd/config.toml"
KEY = '"io.containerd.cri.v1.runtime"'
RUNC = Handler("runc", "io.containerd.runc.v2")
MINE = Handler("mine", "io.containerd.runc.v2", (("BinaryName", "/opt/bin/youki"),))
KATA = Handler("kata", "io.containerd.kata.v2")

Facts = dict[str, t.Any]


@pytest.fixture(scope="module")
def host() -> t.Iterator[ContainerdHost]:
    """One node of 2.1."""
    with ContainerdHost("2.1") as made:
        yield made


def clean() -> Tree:
    """All that is written is loaded."""
    return Tree([File(CONFIG, 3, KEY, [RUNC, MINE])])


def lossy() -> Tree:
    """kata stands in a file that nothing imports."""
    return Tree([File(CONFIG, 3, KEY, [RUNC, MINE]), File("/etc/containerd/conf.d/kata.toml", 3, KEY, [KATA])])


def stale() -> Tree:
    """mine is replaced by kata after the start."""
    return Tree([File(CONFIG, 3, KEY, [RUNC, MINE])], edit=[File(CONFIG, 3, KEY, [RUNC, KATA])])


def down() -> Tree:
    """The daemon does not start."""
    return Tree([File(CONFIG, 9, KEY, [RUNC, MINE])])


def _no_lie(facts: Facts) -> None:
    """The facts as they are."""


def _drop_handler(facts: Facts) -> None:
    facts["handlers"].pop("mine")


def _invent_handler(facts: Facts) -> None:
    facts["handlers"]["ghost"] = {"runtime_type": "x", "options": {}}


def _other_default(facts: Facts) -> None:
    facts["default_handler"] = "mine"


def _other_type(facts: Facts) -> None:
    facts["handlers"]["mine"]["runtime_type"] = "io.containerd.kata.v2"


def _other_options(facts: Facts) -> None:
    facts["handlers"]["mine"]["options"] = {"BinaryName": "/usr/bin/other"}


def _ready(facts: Facts) -> None:
    facts["cri_ready"] = not facts["cri_ready"]


def _silent(facts: Facts) -> None:
    facts["faults"] = []


def _nothing_lost(facts: Facts) -> None:
    facts["lost"] = []


def _alarm(facts: Facts) -> None:
    facts["faults"] = [{"id": 99, "name": "x", "severity": "warning", "handlers": [], "message": "x", "file": "", "fix_edits": []}]


def _unwell(facts: Facts) -> None:
    facts["healthy"] = False


def _pending(facts: Facts) -> None:
    facts["restart_pending"] = not facts["restart_pending"]


def _next_is_now(facts: Facts) -> None:
    facts["layers"]["next"]["handlers"] = facts["handlers"]


def _gains_nothing(facts: Facts) -> None:
    facts["restart_gains"] = []


def _dump_for_truth(facts: Facts) -> None:
    facts["handlers"] = {"runc": {}, "mine": {}}


LIES: list[tuple[t.Callable[[], Tree], t.Callable[[Facts], None], str]] = [
    (clean, _no_lie, ""),
    (lossy, _no_lie, ""),
    (stale, _no_lie, ""),
    (down, _no_lie, ""),
    (clean, _drop_handler, "mismatches"),
    (clean, _invent_handler, "mismatches"),
    (clean, _other_default, "mismatches"),
    (clean, _other_type, "mismatches"),
    (clean, _other_options, "mismatches"),
    (clean, _ready, "mismatches"),
    (clean, _pending, "mismatches"),
    (clean, _alarm, "false_alarms"),
    (clean, _unwell, "false_alarms"),
    (lossy, _silent, "unexplained"),
    (lossy, _nothing_lost, "unexplained"),
    (stale, _pending, "mismatches"),
    (stale, _next_is_now, "mismatches"),
    (stale, _gains_nothing, "mismatches"),
    (stale, _silent, "unexplained"),
    (down, _dump_for_truth, "mismatches"),
    (down, _silent, "unexplained"),
]


@pytest.mark.parametrize(("tree", "lie", "found"), LIES, ids=lambda value: getattr(value, "__name__", None))
def test_a_lie_is_found(
    host: ContainerdHost, monkeypatch: pytest.MonkeyPatch, tree: t.Callable[[], Tree], lie: t.Callable[[Facts], None], found: str
) -> None:
    """Exactly the kind of finding that the lie deserves; none for the truth."""

    def lying(capture: Facts) -> Facts:
        facts = copy.deepcopy(truthful(capture))
        lie(facts)
        return facts

    truthful = judging.interpret
    monkeypatch.setattr(judging, "interpret", lying)
    result = judging.judge(host, tree(), "2.1")
    findings = {"mismatches": result.mismatches, "unexplained": result.unexplained, "false_alarms": result.false_alarms}
    assert [kind for kind, sentences in findings.items() if sentences] == ([found] if found else []), findings


def test_a_failure_is_made_small_and_written(host: ContainerdHost, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """A product that does not see one handler is shown with little else but that handler, and the daemon's answer is what is expected."""

    def blind(capture: Facts) -> Facts:
        facts = truthful(capture)
        facts["handlers"].pop("mine", None)
        return facts

    truthful = judging.interpret
    monkeypatch.setattr(judging, "interpret", blind)
    monkeypatch.setattr(shrink, "_TRIES", 10)
    tree = Tree([File(CONFIG, 3, KEY, [RUNC, MINE, KATA], settings=[("", "enable_cdi = true")], raw=["[debug]", 'level = "info"'])], ingredients=["wild"])
    small = shrink.smallest(tree, "2.1", judging.judge(host, tree, "2.1"), host)
    assert small.result.mismatches and "mine" in {handler.name for _path, handler in small.tree.declared()}
    assert len(shrink.parts(small.tree)) < len(shrink.parts(tree))
    case = shrink.write_case(tmp_path, "x", small.tree, "2.1", small.result)
    answers = yaml.safe_load((case / "expected.yml").read_text(encoding="utf-8"))["captures"]["2.1"]
    assert "mine" in answers["handlers"] and answers["healthy"] is True
    assert read_capture(str(case / "captures" / "2.1"))["files"]


def test_edits_that_do_not_mend_are_found(host: ContainerdHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """A product whose edits miss the place is told, and the one whose edits are right is not."""

    def missing(capture: Facts) -> Facts:
        facts = truthful(capture)
        for fault in facts["faults"]:
            fault["fix_edits"] = [dict(edit, value="/etc/containerd/conf.d/other.toml") for edit in fault["fix_edits"]]
        return facts

    truthful = judging.interpret
    good = judging.judge(host, lossy(), "2.1").mended
    assert (good.fixed[18], good.tried[18], good.failures) == (1, 1, [])
    monkeypatch.setattr(judging, "interpret", missing)
    bad = judging.judge(host, lossy(), "2.1")
    assert bad.findings().keys() == {"edits"} and "handler kata is not in order" in bad.mended.failures[0]


def test_a_traceback_is_a_mismatch(host: ContainerdHost, monkeypatch: pytest.MonkeyPatch) -> None:
    """A product that falls over is not passed over."""

    def broken(_capture: Facts) -> Facts:
        raise KeyError("x")

    monkeypatch.setattr(judging, "interpret", broken)
    assert "traceback in the core" in judging.judge(host, clean(), "2.1").mismatches[0]
