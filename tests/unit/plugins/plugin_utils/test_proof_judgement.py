# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof before a change: each reason against it, and that a good change has none."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.proof_judgement import Wanted, judge_dump, new_warnings

TABLE = {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/bin/crun"}}
WANTED = Wanted({"crun": TABLE}, ["runc", "other"], ["gone"], None, "runc", False, False)
EXE = "/usr/bin/containerd"


def dump(extra: str = "", default: str = "runc", other: bool = True, crun: bool = True) -> t.Dict[str, t.Any]:
    text = "version = 3\n[plugins.'io.containerd.cri.v1.images']\nsnapshotter = 'overlayfs'\n"
    text += "[plugins.'io.containerd.cri.v1.runtime']\nenable_cdi = true\n"
    text += "[plugins.'io.containerd.cri.v1.runtime'.containerd]\ndefault_runtime_name = '%s'\n" % default
    base = "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.%s]\nruntime_type = 'io.containerd.runc.v2'\n"
    text += base % "runc" + (base % "other" if other else "") + (base % "crun" + "options = {BinaryName = '/usr/bin/crun'}\n" if crun else "")
    return {"stdout": text + extra, "stderr": "", "rc": 0}


BEFORE = dump(crun=False)
GONE = "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.gone]\nruntime_type = 'io.containerd.x.v1'\n"


def judged(answer: t.Any, wanted: Wanted = WANTED, before: t.Any = BEFORE, **more: t.Any) -> t.Tuple[t.List[str], t.List[str]]:
    return judge_dump(before, dict({"exe": EXE, "dump": answer, "withheld": None}, **more), wanted, "2.1.9")


def test_a_good_change_has_no_reason_against_it() -> None:
    assert judged(dump()) == ([], [])


@pytest.mark.parametrize(
    "answer, words",
    [
        (dump(crun=False), "would not load handler crun"),
        (dump(other=False), "would lose handler other, which is loaded now"),
        (dump(default="crun"), "default handler crun, not runc"),
        (dump(extra=GONE), "would still load handler gone"),
        ({**dump(), "stdout": dump()["stdout"].replace("/usr/bin/crun", "/bin/x")}, "would load handler crun with another options.BinaryName"),
        ({**dump(), "stdout": dump()["stdout"].replace("overlayfs", "native")}, "would change more than the handlers: snapshotter: overlayfs → native"),
        ({**dump(), "stdout": dump()["stdout"].replace("enable_cdi = true", "enable_cdi = false")}, "enable_cdi: True → (unset)"),
        ({**dump(), "stderr": 'time="x" level=warning msg="Ignoring unknown key"'}, 'warns about the planned files: level=warning msg="Ignoring'),
        ({"stdout": "", "stderr": "boom\n", "rc": 1}, "does not load the planned files: boom"),
        ({"stdout": "not TOML", "stderr": "", "rc": 0}, "is not TOML"),
        ({**dump(), "stdout": "disabled_plugins = ['io.containerd.grpc.v1.cri']\n" + dump()["stdout"]}, "would start without CRI"),
        (dump(default="nowhere"), "would start without CRI"),
        ({**dump(), "stdout": dump()["stdout"].replace("'io.containerd.runc.v2'", "5")}, "would not start: "),
    ],
)
def test_each_reason(answer: t.Dict[str, t.Any], words: str) -> None:
    reasons, _notes = judged(answer)
    assert any(words in reason for reason in reasons), reasons


def test_what_cannot_be_read_is_no_proof() -> None:
    assert judged(None, withheld="a secret could not be located")[0] == ["the proof cannot be read: a secret could not be located"]


def test_without_a_binary_the_model_is_the_proof_and_that_is_said() -> None:
    assert judged(None) == ([], ["There is no containerd on the node yet: the proof is the model of its release alone."])


def test_a_repair_tells_what_else_becomes_effective() -> None:
    changed = {**dump(), "stdout": dump()["stdout"].replace("overlayfs", "native")}
    reasons, notes = judged(changed, WANTED._replace(may_change_more=True))
    assert reasons == [] and "snapshotter: overlayfs → native" in notes[0]


@pytest.mark.parametrize("before", [None, {"stdout": "", "stderr": "", "rc": 1}, {"stdout": "not TOML", "stderr": "", "rc": 0}])
def test_files_that_did_not_load_before_are_no_measure(before: t.Any) -> None:
    assert judged({**dump(), "stdout": dump()["stdout"].replace("overlayfs", "native")}, before=before) == ([], [])


def test_a_wanted_default_and_cdi() -> None:
    wanted = WANTED._replace(default="crun", cdi=True)
    changed = dump(default="crun")
    assert judged({**changed, "stdout": changed["stdout"].replace("enable_cdi = true", "enable_cdi = false")}, wanted) == ([], [])


def test_the_name_of_a_version_1_table_and_the_spelling_of_unset_are_no_changes() -> None:
    table = "[plugins.%s.containerd]\ndefault_runtime_name = 'runc'\n[plugins.%s.containerd.runtimes.runc]\nruntime_type = 'io.containerd.runc.v2'\n"
    before = {"stdout": "version = 1\n" + table % ("cri", "cri") + "sandbox_mode = 'podsandbox'\n", "stderr": "", "rc": 0}
    old = "'io.containerd.grpc.v1.cri'"
    after = {"stdout": "version = 2\n" + table % (old, old), "stderr": "", "rc": 0}
    wanted = Wanted({}, ["runc"], [], None, "runc", False, False)
    assert judge_dump(before, {"exe": EXE, "dump": after, "withheld": None}, wanted, "1.7.24") == ([], [])


def test_warnings_are_compared_without_their_times_and_the_migration_notice_is_none() -> None:
    before = 'time="2026-01-01T00:00:00Z" level=warning msg="old"\n'
    after = 'time="2026-01-02T00:00:00Z" level=warning msg="old"\ntime="x" level=info msg="fine"\n'
    after += 'time="x" level=warning msg="Configuration migrated from version 2, use `containerd config migrate`"\n'
    assert new_warnings(before, after) == []
    assert new_warnings(before, after + 'time="y" level=error msg="new"\ntime="z" level=error msg="new"\n') == ['level=error msg="new"']
