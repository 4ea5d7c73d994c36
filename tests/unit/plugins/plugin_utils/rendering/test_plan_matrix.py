# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every release, every kind of root file: the plan does what was declared, loses nothing, repeats as nothing, goes back."""

from __future__ import annotations

import itertools
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import interpret
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import rules_for
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.situation import Situation
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.plan import make_plan
from tests.unit import rendering_nodes as nodes

IMPORTS = 'imports = ["/etc/containerd/conf.d/*.toml"]\n'
ROOTS: t.Dict[str, t.Optional[str]] = {
    "version 2": nodes.VERSION_2,
    "version 3": nodes.VERSION_3,
    "version 4": nodes.VERSION_4,
    "short names": nodes.SHORT_NAMES,
    "no version": nodes.NO_VERSION,
    "both names": nodes.BOTH_NAMES,
    "new names in version 2": nodes.NEW_NAMES_2,
    "docker": nodes.DOCKER,
    "empty": nodes.EMPTY,
    "absent": None,
}
#: What has to be repaired first, on which of the generations 1.x, 2.0 to 2.2, 2.3 and later.
REPAIRED = {
    "short names": ("1", "2.0"),
    "no version": ("1", "2.0"),
    "both names": ("1", "2.0", "2.3"),
    "docker": ("1", "2.0", "2.3"),
}
IMPOSSIBLE = {"version 3": ("1",), "version 4": ("1", "2.0")}
HANDLERS: t.Dict[str, t.Any] = {
    "nvidia": {"preset": "nvidia"},
    "kata": {"preset": "kata-qemu"},
    "mine": {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/local/bin/mine"}},
}


def generation(release: str) -> str:
    rules = rules_for(release)
    assert rules is not None
    return {"none": "1", "merged": "2.0", "per_file": "2.3"}[rules.migration]


def plan_of(files: t.Mapping[str, str], release: str, written: t.Optional[t.List[str]] = None, **options: t.Any) -> t.Dict[str, t.Any]:
    """:param written: what the node has noted of the runs before."""
    capture = nodes.capture(files, release, written_handlers=written)
    return make_plan(capture, interpret(capture), dict({"allow_absent_binary": True}, **options))


def section_of(files: t.Mapping[str, str], release: str) -> t.Any:
    situation = Situation(nodes.capture(files, release))
    assert situation.load is not None
    assert situation.load.refusal is None, situation.load.refusal
    return situation.section


def loads(files: t.Mapping[str, str], release: str) -> t.Dict[str, t.Any]:
    section = section_of(files, release)
    return dict(section.served_handlers)


@pytest.mark.parametrize("release", nodes.RELEASES)
@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("strangers", [False, True], ids=["alone", "with-foreign-drop-ins"])
def test_declared_handlers_come_and_go(root: str, release: str, strangers: bool) -> None:
    files = tree(root, release, strangers)
    kind = generation(release)
    if kind in IMPOSSIBLE.get(root, ()):
        with pytest.raises(RuntimeGateError):
            plan_of(files, release, handlers=HANDLERS, repair=True)
        return
    needs_repair = kind in REPAIRED.get(root, ())
    if needs_repair:
        with pytest.raises(RuntimeGateError, match="repair: true mends it"):
            plan_of(files, release, handlers=HANDLERS)

    plan = plan_of(files, release, handlers=HANDLERS, repair=True)
    done = nodes.after(files, plan)
    handlers = loads(done, release)
    before = Situation(nodes.capture(files, release)).section
    assert set(handlers) >= set(HANDLERS) | set(before.served_handlers if before else ())
    assert section_of(done, release).default == "runc"
    assert handlers["mine"]["options"]["BinaryName"] == "/usr/local/bin/mine"
    assert plan["writes"][-1 if kind == "1" else 0]["text"]
    assert_single_step(files, plan, release)

    assert set(HANDLERS) <= set(plan["written"])
    again = plan_of(done, release, plan["written"], handlers={"mine": HANDLERS["mine"]}, repair=True)
    assert (again["writes"], again["written"]) == ([], plan["written"])
    second = plan_of(done, release, plan["written"], handlers=HANDLERS, default_handler="mine", repair=True)
    other = nodes.after(done, second)
    assert section_of(other, release).default == "mine"
    assert set(loads(other, release)) == set(handlers)

    removal = plan_of(other, release, second["written"], remove=True)
    removed = nodes.after(other, removal)
    assert removal["written"] == [] and not any("without our marks" in note for note in removal["notes"])
    if needs_repair:
        assert not set(loads(removed, release)) & set(HANDLERS)
        assert "kubenode.runtime_gate" not in "".join(removed.values())
    else:
        assert removed == files


def tree(root: str, release: str, strangers: bool) -> t.Dict[str, str]:
    text = ROOTS[root]
    files: t.Dict[str, str] = {}
    if strangers:
        # One that is about something else, and one with a handler where this release adds it to the root file's.
        text = text or ""
        text = text if "conf.d" in text else IMPORTS + text
        files["/etc/containerd/conf.d/10-grpc.toml"] = "[grpc]\n  max_recv_message_size = 16777216\n"
        if root in ("version 2", "version 3", "version 4") and generation(release) != "1":
            plugin = nodes.OLD if root == "version 2" else nodes.NEW
            body = "# of another tool\n" + nodes.handler(plugin, "other")
            files["/etc/containerd/conf.d/20-other.toml"] = "version = %s\n" % root[-1] + body
    if text is not None:
        files[nodes.CONFIG] = text
    return files


def assert_single_step(files: t.Mapping[str, str], plan: t.Dict[str, t.Any], release: str) -> None:
    """Before the commit the node loads what it did, after it all that is planned, whatever of the rest is done."""
    paths = [write["path"] for write in plan["writes"]]
    position = paths.index(plan["commit"])
    early, late = plan["writes"][:position], plan["writes"][position + 1 :]
    assert all(write["sha256"] is None for write in early)
    assert all(write["text"] is None for write in late)
    began = nodes.after(files, {"writes": early})
    switched = nodes.after(files, {"writes": plan["writes"][: position + 1]})
    now = Situation(nodes.capture(files, release))
    if now.section is not None:
        assert loads(began, release) == dict(now.section.served_handlers)
    assert loads(switched, release) == loads(nodes.after(files, plan), release)


@pytest.mark.parametrize("release", [release for release in nodes.RELEASES if not release.startswith("1.")])
@pytest.mark.parametrize("root", ["version 2", "short names", "no version", "empty"])
def test_migration_changes_nothing_that_is_loaded(root: str, release: str) -> None:
    files = tree(root, release, True)
    files = nodes.after(files, plan_of(files, release, handlers=HANDLERS, repair=True))
    before = section_of(files, release)
    plan = plan_of(files, release, sorted(HANDLERS), handlers={}, repair=True, migrate=3)
    done = nodes.after(files, plan)
    after = section_of(done, release)
    assert (after.handlers, after.default) == (before.handlers, before.default)
    assert "version = 2" not in "".join(done.values())
    assert nodes.CONFIG not in done or "grpc.v1.cri" not in done[nodes.CONFIG].replace("stream_server", "") or root != "version 2"
    if plan["writes"]:
        assert_single_step(files, plan, release)
    assert plan_of(done, release, handlers=HANDLERS, repair=True, migrate=3)["writes"] == []


@pytest.mark.parametrize(("release", "mode"), list(itertools.product(["2.0.5", "2.2.1", "2.3.4", "2.4.0"], ["dropin", "merge"])))
@pytest.mark.parametrize("root", ["version 2", "version 3", "new names in version 2", "empty", "absent"])
def test_the_other_mode_gives_the_same(root: str, release: str, mode: str) -> None:
    files = tree(root, release, False)
    first = nodes.after(files, plan_of(files, release, handlers=HANDLERS, mode=mode))
    assert set(loads(first, release)) >= set(HANDLERS)
    other = "merge" if mode == "dropin" else "dropin"
    plan = plan_of(first, release, handlers=HANDLERS, mode=other)
    second = nodes.after(first, plan)
    assert loads(second, release) == loads(first, release)
    assert_single_step(first, plan, release)
    assert nodes.after(second, plan_of(second, release, remove=True)) == files
