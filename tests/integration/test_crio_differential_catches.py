"""The differential test of CRI-O can fail: a product that lies in any of the ways it is made to find is found.

What this proves: that no comparison of tests/differential/crio.py is empty. A tree is judged on a real daemon once, and again with the
product's true facts changed by one lie; each lie must be reported, and the unchanged facts must not.
"""

from __future__ import annotations

import copy
import typing as t

from tests.differential import crio
from tests.differential.judge import Result
from tests.testbed.crio_host import CONFIG_DIR, CrioHost

Facts = dict[str, t.Any]
MINE = crio.Handler("mine", (("runtime_path", '"/usr/bin/runc"'),))
GONE = crio.Handler("gone", (("runtime_path", f'"{crio.ABSENT}"'),), "path missing")
LATE = crio.Handler("late", (("runtime_path", '"/usr/bin/runc"'),))


def _clean() -> crio.Tree:
    return crio.Tree([crio.File(CONFIG_DIR + "/50-mine.conf", [MINE])])


def _lossy() -> crio.Tree:
    """One handler is dropped, one is added after the start, with a SIGHUP."""
    edit = [crio.File(CONFIG_DIR + "/60-late.conf", [LATE])]
    return crio.Tree([crio.File(CONFIG_DIR + "/50-mine.conf", [MINE, GONE])], edit=edit, hangup=True)


def _no_fault(facts: Facts) -> None:
    facts["faults"] = []


def _ghost(facts: Facts) -> None:
    facts["handlers"]["late"] = dict(facts["handlers"]["mine"])


def _missing(facts: Facts) -> None:
    facts["handlers"].pop("mine")


def _default(facts: Facts) -> None:
    facts["default_handler"] = "mine"


def _type(facts: Facts) -> None:
    facts["handlers"]["mine"]["runtime_type"] = "vm"


def _program(facts: Facts) -> None:
    facts["handlers"]["mine"]["binary"] = "/usr/bin/other"


def _down(facts: Facts) -> None:
    facts["cri_ready"] = False


def _next(facts: Facts) -> None:
    facts["layers"]["next"]["handlers"] = {}


def _gains(facts: Facts) -> None:
    facts["restart_gains"] = ["x"]


def _loses(facts: Facts) -> None:
    facts["restart_loses"] = ["mine"]


def _pending(facts: Facts) -> None:
    facts["restart_pending"] = not facts["restart_pending"]


def _not_lost(facts: Facts) -> None:
    facts["lost"] = []


def _alarm(facts: Facts) -> None:
    facts["faults"] = [{"id": 1, "name": "x", "severity": "warning", "message": "x", "handlers": [], "file": "", "fix_edits": []}]


def _unhealthy(facts: Facts) -> None:
    facts["healthy"] = False


def judged(tree: crio.Tree, lies: t.Sequence[t.Callable[[Facts], None]]) -> dict[str, Result]:
    """The result of the true facts ("") and of each lie, from one pass over the daemon and as many comparisons."""
    with CrioHost("1.36", name="node") as host:
        true = crio.judge(host, tree, "1.36")
    evidence = true.evidence
    truth, restarted = crio.Answer(**evidence["truth"]), crio.Answer(**evidence["restarted"])
    found = {"": true}
    for lie in lies:
        facts = copy.deepcopy(evidence["facts"])
        lie(facts)
        result = Result()
        crio._compare(result, truth, restarted, facts)
        crio._explained(result, tree, truth, facts)
        crio._alarms(result, tree, truth, restarted, facts)
        found[lie.__name__] = result
    return found


def test_lies_about_a_tree_with_losses() -> None:
    found = judged(
        _lossy(), [_no_fault, _ghost, _missing, _default, _type, _program, _down, _next, _gains, _loses, _pending, _not_lost]
    )
    assert not found[""].bad and found[""].lost == ["gone", "late"], found[""]
    assert all(result.bad for name, result in found.items() if name), [name for name, result in found.items() if name and not result.bad]


def test_lies_about_a_clean_tree() -> None:
    found = judged(_clean(), [_alarm, _unhealthy, _pending])
    assert not found[""].bad and found[""].clean, found[""]
    assert all(result.bad for name, result in found.items() if name), [name for name, result in found.items() if name and not result.bad]
