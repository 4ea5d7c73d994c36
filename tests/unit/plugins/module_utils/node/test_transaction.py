# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The transaction over a daemon that is played: each end it can come to, and what the next run makes of each interruption.

Real daemons, real mounts and real kills are in tests/faults.
"""

from __future__ import annotations

import hashlib
import os
import pathlib
import re
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import (
    commands,
    cri,
    detached,
    discovery,
    grpc_unary,
    probe,
    processes,
    proof,
    restart,
    staging,
    transaction,
    tree,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.state import State

SECRET = "hunter2-Zx9q"


class Killed(BaseException):
    """Stands for a killed process: nothing may catch it."""


class Node:
    """A root file, its drop-in, and a daemon that loads both at its start."""

    def __init__(self, directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.state = directory / "state"
        self.root = directory / "config.toml"
        self.drop_in = directory / "conf.d" / "ours.toml"
        self.old = '[runtimes.runc]\n[auth]\npassword = "%s"\n' % SECRET
        self.root.write_text(self.old)
        self.exe = directory / "containerd"
        self.exe.write_text("#!/bin/sh\n")
        self.exe.chmod(0o755)
        self.starts = 1
        self.handlers = ["runc"]
        self.cri = "served"
        #: What the next restarts do: "" they work, "dead" the daemon stays away, "nothing", or the words of a failure.
        self.restarts: t.List[str] = []
        #: A handler that a daemon never loads, whatever the files say.
        self.refuses = ""
        self.dump = commands.Output(b"version = 3\n", b"", 0, False)
        self.probes: t.Dict[str, t.Optional[str]] = {}
        self.leftovers: t.Union[int, Exception] = 0
        self._play(monkeypatch)

    def _play(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("_STEADY", "_FINAL", "_PAUSE"):
            monkeypatch.setattr(proof, name, 0.0)
        monkeypatch.setattr(proof, "look", self.look)
        monkeypatch.setattr(proof, "daemon_sees", lambda *_arguments: True)
        monkeypatch.setattr(restart, "find", lambda unit, command, _timeout, _engine: restart.Restart(list(command or [unit]), unit))
        monkeypatch.setattr(restart, "run", self.restart)
        monkeypatch.setattr(restart, "forgive", lambda *_arguments: None)
        monkeypatch.setattr(detached, "run", lambda work: work())
        monkeypatch.setattr(staging, "run_staged", lambda _changes, ask: ask())
        monkeypatch.setattr(commands, "run", self.run)
        monkeypatch.setattr(probe, "probe", lambda _socket, _answer, names: {name: self.probes.get(name) for name in names})
        monkeypatch.setattr(probe, "remove_leftovers", self.remove_leftovers)

    def look(self, _socket: str, _timeout: float) -> proof.Answer:
        if not self.starts:
            return proof.Answer(None, "down", [], None, [], "", "refused", {})
        identity = "boot/1/%d" % self.starts
        if self.cri != "served":
            return proof.Answer(identity, "unimplemented", [], None, [], "", "no service", {})
        return proof.Answer(identity, "served", list(self.handlers), "runc", [], "v1", "", {})

    def restart(self, way: restart.Restart, _timeout: float) -> t.Optional[str]:
        what = self.restarts.pop(0) if self.restarts else ""
        if what == "dead":
            self.starts = 0
        elif not what:
            self.start()
        return what if what not in ("", "dead", "nothing") else None

    def start(self) -> None:
        self.starts = self.starts + 1 if self.starts else 1000
        texts = [self.root.read_text()]
        if "imports" in texts[0] and self.drop_in.exists():
            texts.append(self.drop_in.read_text())
        self.handlers = sorted(name for text in texts for name in re.findall(r"runtimes\.(\w+)\]", text) if name != self.refuses)
        self.cri = "served"

    def run(self, argv: t.Sequence[str], _timeout: float, **_how: t.Any) -> commands.Output:
        self.argv = list(argv)
        return self.dump

    def remove_leftovers(self, _socket: str, _version: str) -> int:
        if isinstance(self.leftovers, Exception):
            raise self.leftovers
        return self.leftovers

    def plan(self, **more: t.Any) -> t.Dict[str, t.Any]:
        text = 'imports = ["conf.d/*.toml"]\n' + self.old.replace(SECRET, "__RUNTIME_GATE_MASKED_1__")
        sha256 = hashlib.sha256(self.root.read_bytes()).hexdigest()
        plan = {
            "writes": [
                {"path": str(self.root), "text": text, "sha256": sha256, "mode": None},
                {"path": str(self.drop_in), "text": "[runtimes.mine]\n", "sha256": None, "mode": "0644"},
            ],
            "commit": str(self.root),
            "config_path": str(self.root),
            "exe": str(self.exe),
            "expect": {"handlers": ["mine"], "default": None},
            "keep": [],
            "absent": [],
            "unit": "containerd.service",
            "restart_command": None,
            "restart_needed": True,
        }
        return dict(plan, **more)

    def options(self, **more: t.Any) -> t.Dict[str, t.Any]:
        return dict({"state_directory": str(self.state), "endpoint": "unix:///run/x.sock", "ready_timeout": 0.05, "lock_timeout": 0}, **more)

    def apply(self, plan: t.Optional[t.Dict[str, t.Any]] = None, **options: t.Any) -> t.Dict[str, t.Any]:
        result = transaction.apply(plan or self.plan(), self.options(**options))
        assert SECRET not in str(result)
        return result

    def recover(self, **options: t.Any) -> t.Dict[str, t.Any]:
        result = transaction.recover(self.options(**options))
        assert result is not None and SECRET not in str(result)
        return result

    @property
    def journal(self) -> t.Optional[t.Dict[str, t.Any]]:
        return State(str(self.state)).journal()

    @property
    def is_old(self) -> bool:
        """The old files, nothing beside them."""
        names = sorted(path.name for path in self.directory.iterdir())
        return self.root.read_text() == self.old and names == ["config.toml", "containerd", "state"]

    @property
    def is_new(self) -> bool:
        names = [sorted(path.name for path in directory.iterdir()) for directory in (self.directory, self.drop_in.parent)]
        new = 'imports = ["conf.d/*.toml"]\n' + self.old
        return self.root.read_text() == new and names == [["conf.d", "config.toml", "containerd", "state"], ["ours.toml"]]


@pytest.fixture
def node(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


# ---- prove


def test_prove(node: Node) -> None:
    node.dump = commands.Output(b'[auth]\npassword = "abcd1234"\n', b"level=warning msg=%s" % SECRET.encode(), 0, False)
    answer = transaction.prove(node.plan(), node.options())
    assert answer["exe"] == str(node.exe)
    assert answer["dump"] == {
        "stdout": '[auth]\npassword = "__RUNTIME_GATE_MASKED_1__"\n',
        "stderr": "level=warning msg=__RUNTIME_GATE_MASKED_1__",
        "rc": 0,
    }
    assert answer["binaries"]["runc"] in (True, False)
    assert node.argv == ["containerd", "-c", str(node.root), "config", "dump"]
    assert not node.state.exists() and node.root.read_text() == node.old


def test_what_is_loaded_beforehand_can_be_another_text(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution renders its own file from the one that is written: the former is loaded, in both proofs."""
    staged: t.List[t.Any] = []
    monkeypatch.setattr(staging, "run_staged", lambda changes, ask: staged.append(changes) or ask())
    plan = node.plan()
    rendered = {"path": str(node.directory / "rendered.toml"), "text": "[runtimes.mine]\n", "sha256": None, "mode": None}
    plan["proof"] = [rendered]
    transaction.prove(plan, node.options())
    assert node.apply(plan)["state"] == "applied"
    assert [[change.path for change in changes] for changes in staged] == [[rendered["path"]]] * 2
    assert not os.path.exists(rendered["path"])
    # … and it guards against another change as the written files do.
    with pytest.raises(RuntimeGateError, match="rendered.toml is gone since it was read"):
        transaction.prove(dict(plan, writes=[], proof=[dict(rendered, sha256="0" * 64)]), node.options())


def removal(node: Node) -> t.Dict[str, t.Any]:
    """The plan that takes the drop-in and its import away again."""
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (node.root, node.drop_in)]
    root = {"path": str(node.root), "text": node.old.replace(SECRET, "__RUNTIME_GATE_MASKED_1__"), "sha256": digests[0], "mode": None}
    drop_in = {"path": str(node.drop_in), "text": None, "sha256": digests[1], "mode": None}
    return node.plan(writes=[root, drop_in], expect={"handlers": [], "default": None}, absent=["mine"])


def test_a_directory_that_was_made_goes_with_its_last_file(node: Node) -> None:
    node.apply()
    assert State(str(node.state)).made_directories() == {str(node.drop_in.parent)}
    assert node.apply(removal(node))["state"] == "applied"
    assert node.is_old and State(str(node.state)).made_directories() == set()


def test_a_directory_in_which_others_have_put_something_stays(node: Node) -> None:
    node.apply()
    stranger = node.drop_in.parent / "stranger.toml"
    stranger.write_text("")
    assert node.apply(removal(node))["state"] == "applied"
    assert stranger.exists() and not node.drop_in.exists()
    # It is theirs from now on.
    assert State(str(node.state)).made_directories() == set()


def test_a_directory_that_was_there_stays(node: Node) -> None:
    node.drop_in.parent.mkdir()
    node.apply()
    assert node.apply(removal(node))["state"] == "applied"
    assert node.drop_in.parent.is_dir()


def test_directories_that_cannot_be_noted_are_no_failure(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(State, "write_made_directories", _fails)
    result = node.apply()
    assert result["state"] == "applied" and "an empty directory will stay" in result["notes"][0]


def test_prove_of_the_default_file(node: Node) -> None:
    transaction.prove(node.plan(writes=[], config_path="/etc/containerd/config.toml"), node.options())
    assert node.argv == ["containerd", "config", "dump"]


def test_prove_without_a_binary(node: Node) -> None:
    assert transaction.prove(node.plan(exe=str(node.root)), node.options())["dump"] is None
    assert transaction.prove(node.plan(exe=None), node.options())["dump"] is None


@pytest.mark.parametrize(
    ("stdout", "truncated", "words"),
    [(b"password = {{", False, "no readable TOML"), (b"\xff", False, "no UTF-8"), (b"a = 1", True, "longer than")],
)
def test_a_dump_in_doubt_is_withheld(node: Node, stdout: bytes, truncated: bool, words: str) -> None:
    node.dump = commands.Output(stdout, b"", 0, truncated)
    answer = transaction.prove(node.plan(), node.options())
    assert answer["dump"] is None and words in answer["withheld"]


def test_prove_refuses_what_apply_would(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = node.plan()
    monkeypatch.setattr(proof, "daemon_sees", lambda *_arguments: False)
    with pytest.raises(RuntimeGateError, match="a mount namespace of its own"):
        transaction.prove(plan, node.options())
    node.root.write_text("theirs\n")
    with pytest.raises(RuntimeGateError, match="was changed since it was read"):
        transaction.prove(plan, node.options())


def test_the_socket_is_found(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(proof, "daemon_sees", lambda _path, socket, _timeout: asked.append(socket) or True)
    monkeypatch.setattr(processes, "node_processes", list)
    options = node.options(endpoint=None)
    transaction.prove(node.plan(), options)
    runtime = discovery.Runtime("containerd", None, None, "", "/run/k3s/x.sock")
    monkeypatch.setattr(discovery, "choose", lambda *_arguments: discovery.Choice(runtime, None, [], None))
    transaction.prove(node.plan(), options)
    transaction.prove(node.plan(endpoint="unix:///run/plan.sock"), options)
    assert sorted(set(asked)) == ["/run/containerd/containerd.sock", "/run/k3s/x.sock", "/run/plan.sock"]


def test_the_path_of_the_running_daemon(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "owner", lambda _socket, _timeout: os.getpid())
    assert transaction.prove(node.plan(), node.options())["dump"]["rc"] == 0


# ---- apply


def test_applied(node: Node) -> None:
    result = node.apply()
    assert (result["state"], result["ok"], result["changed"], result["restarted"], result["handlers"]) == ("applied", True, True, True, ["mine", "runc"])
    assert node.is_new and node.journal is None
    assert node.drop_in.stat().st_mode & 0o777 == 0o644
    assert State(str(node.state)).last_result() == dict(result, recovered=None)
    assert result["backup"] in State(str(node.state)).backups()


def test_nothing_to_do(node: Node) -> None:
    result = node.apply(node.plan(writes=[], restart_needed=False))
    assert (result["state"], result["changed"], result["backup"]) == ("unchanged", False, None)


def test_a_lost_restart_is_made_up_for(node: Node) -> None:
    result = node.apply(node.plan(writes=[], expect={}))
    assert (result["state"], result["changed"], result["restarted"]) == ("applied", True, True)
    node.restarts = ["systemctl said no"]
    result = node.apply(node.plan(writes=[], expect={}))
    assert result["state"] == "rollback_failed" and "This run changed no file" in result["msg"]
    assert node.journal is None


def test_restart_never(node: Node) -> None:
    result = node.apply(restart="never")
    assert (result["state"], result["restarted"], result["restart_pending"]) == ("applied", False, True)
    assert node.is_new and node.starts == 1
    result = node.apply(node.plan(writes=[]), restart="never")
    assert (result["state"], result["restart_pending"]) == ("unchanged", True)


def test_backups_are_bounded(node: Node) -> None:
    node.apply(backups=0)
    assert State(str(node.state)).backups() == []


def test_a_tree_that_does_not_load(node: Node) -> None:
    node.dump = commands.Output(b"", b"containerd: toml: near %s\n" % SECRET.encode(), 1, False)
    with pytest.raises(RuntimeGateError, match="does not load the planned files .*MASKED.* nothing was changed"):
        node.apply()
    assert node.is_old and node.journal is None


def test_a_second_writer_is_refused(node: Node) -> None:
    state = State(str(node.state))
    state.lock(0)
    with pytest.raises(RuntimeGateError, match="Another run"):
        node.apply()


def test_ended_from_outside(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detached, "run", lambda _work: None)
    with pytest.raises(RuntimeGateError, match="was ended from outside. Run again"):
        node.apply()


def test_the_journal_cannot_be_written(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(State, "write_journal", _fails)
    with pytest.raises(RuntimeGateError, match="cannot be written .No space left on device.; nothing was changed"):
        node.apply()
    assert node.is_old


def _fails(*_arguments: t.Any) -> t.NoReturn:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("step", ["prepare", "commit"])
def test_the_files_cannot_be_written(node: Node, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    real = getattr(tree, step)

    def fails(changes: t.Sequence[tree.Change]) -> None:
        real(changes)
        raise OSError(28, "No space left on device", "/etc/x")

    monkeypatch.setattr(tree, step, fails)
    with pytest.raises(RuntimeGateError, match="cannot be written: /etc/x: no space left on device. Nothing was changed."):
        node.apply()
    assert node.is_old and node.journal is None and node.starts == 1


def test_something_unforeseen(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_arguments: t.Any) -> t.NoReturn:
        raise KeyError("strange")

    monkeypatch.setattr(tree, "prepare", fails)
    monkeypatch.setattr(State, "write_result", _fails)
    with pytest.raises(RuntimeGateError, match="KeyError: 'strange'; run again"):
        node.apply()
    assert node.journal is not None


def test_a_journal_that_fails_later_does_not_stop_it(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    real = State.write_journal

    def first_only(self: State, journal: t.Mapping[str, t.Any]) -> None:
        if journal["phase"] != "begun":
            _fails()
        real(self, journal)

    monkeypatch.setattr(State, "write_journal", first_only)
    result = node.apply()
    assert result["state"] == "applied" and "journal could not be written" in result["notes"][0]


# ---- the names of what is ours


def _written(node: Node) -> t.Optional[t.List[str]]:
    return State(str(node.state)).written_handlers()


def _have_written(node: Node, *names: str) -> None:
    node.state.mkdir(mode=0o700, exist_ok=True)
    State(str(node.state)).write_handlers(names)


def test_the_names_of_our_handlers_are_kept(node: Node) -> None:
    assert _written(node) is None
    node.apply(node.plan(written=["mine"]))
    assert _written(node) == ["mine"]


def test_the_names_are_as_they_were_after_the_way_back(node: Node) -> None:
    _have_written(node, "old")
    node.refuses = "mine"
    assert node.apply(node.plan(written=["mine"]))["state"] == "rolled_back" and _written(node) == ["old"]


def test_an_interrupted_change_has_named_what_it_writes(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    _have_written(node, "old")
    _interrupt(node, monkeypatch, tree, "remove_obsolete", plan=node.plan(written=["mine"]))
    assert _written(node) == ["mine", "old"]
    assert node.recover()["action"] == "finished" and _written(node) == ["mine"]


def test_names_that_cannot_be_noted_are_no_failure(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    real = State.write_handlers
    calls: t.List[t.Any] = []

    def fails_at_the_end(self: State, names: t.Iterable[str]) -> None:
        calls.append(names)
        _fails() if len(calls) > 1 else real(self, names)

    monkeypatch.setattr(State, "write_handlers", fails_at_the_end)
    result = node.apply(node.plan(written=["mine"]))
    assert result["state"] == "applied" and "could not be noted: no space left" in result["notes"][0]


# ---- the way back


def test_a_handler_that_is_not_loaded(node: Node) -> None:
    node.refuses = "mine"
    result = node.apply()
    assert (result["state"], result["ok"], result["changed"]) == ("rolled_back", False, False)
    assert result["reasons"] == ["after the restart the daemon has not loaded mine; it has runc"]
    assert result["msg"].endswith("The old configuration is back, and the daemon has what it had before.")
    assert node.is_old and node.starts == 3 and node.journal is None


def test_a_restart_that_fails(node: Node) -> None:
    node.restarts = ["`systemctl` ended with 1: %s" % SECRET]
    result = node.apply()
    # The old daemon never ended, so it is not restarted for the way back.
    assert result["state"] == "rolled_back" and node.is_old and node.starts == 1
    assert result["restarted"] is False and result["handlers"] == ["runc"]


def test_the_restart_of_the_way_back_is_one(node: Node) -> None:
    def dies(_way: restart.Restart, _timeout: float) -> str:
        node.restart = played
        node.starts += 1
        return "`systemctl` ended with 1"

    played = node.restart
    node.restart = dies  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restart, "run", lambda way, timeout: node.restart(way, timeout))
        result = node.apply()
    assert result["state"] == "rolled_back" and node.is_old and result["restarted"] is True


def test_both_fail(node: Node) -> None:
    node.restarts = ["dead", "dead"]
    result = node.apply()
    assert result["state"] == "rollback_failed" and len(result["reasons"]) == 2
    assert "the way back failed too: the daemon does not answer (refused)" in result["msg"]
    assert node.root.read_text() == node.old and node.journal is not None
    node.restarts = ["`x` ended with 1", "dead"]
    node.starts = 0
    result = node.recover()
    assert (result["action"], result["state"], result["ok"]) == ("rolled_back", "rollback_failed", False)
    assert "`x` ended with 1; the daemon does not answer" in result["msg"]
    node.restarts = []
    result = node.recover()
    assert (result["action"], result["state"], result["ok"]) == ("rolled_back", "rolled_back", True)
    assert node.is_old and node.handlers == ["runc"] and node.journal is None
    assert node.apply()["state"] == "applied"


def test_the_old_files_cannot_be_put_back(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.refuses = "mine"
    with monkeypatch.context() as patch:
        patch.setattr(tree, "undo", _fails)
        result = node.apply()
    assert result["state"] == "rollback_failed" and "cannot be put back: no space left" in result["msg"]
    assert node.recover()["state"] == "rolled_back" and node.is_old


def test_obsolete_files_that_cannot_be_removed(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "remove_obsolete", _fails)
    result = node.apply()
    assert result["state"] == "rolled_back" and node.is_old and node.starts == 1


def test_a_daemon_without_cri_before(node: Node) -> None:
    node.cri = "unimplemented"
    node.refuses = "mine"
    result = node.apply()
    assert result["state"] == "rolled_back" and "not serve CRI before" in result["notes"][0]
    node.cri = "unimplemented"
    node.refuses = ""
    assert node.apply()["state"] == "applied"


# ---- the probe


def test_a_probe(node: Node) -> None:
    result = node.apply(probe="sandbox")
    assert (result["state"], result["probe"]) == ("applied", {"mine": None})


def test_a_probe_alone(node: Node) -> None:
    result = transaction.probe_handlers(["runc"], node.options())
    assert (result["ok"], result["state"], result["probe"]) == (True, "unchanged", {"runc": None})
    node.probes = {"runc": "not %s" % SECRET}
    node.leftovers = 1
    result = transaction.probe_handlers(["runc"], node.options())
    assert not result["ok"] and result["msg"].startswith("This run changed nothing, and no sandbox can be made of runc: not ")
    assert node.is_old and node.starts == 1 and "left-over" in result["notes"][0]


def test_a_probe_that_fails(node: Node) -> None:
    node.probes = {"mine": "no shim near %s" % SECRET}
    node.leftovers = 1
    result = node.apply(probe="sandbox")
    assert result["state"] == "rolled_back" and "no sandbox can be made of mine: no shim near __RUNTIME" in result["msg"]
    assert result["notes"] == ["1 left-over sandboxes of an interrupted probe were removed"]


# ---- interruptions


def _kill_at(monkeypatch: pytest.MonkeyPatch, owner: t.Any, name: str, after: bool = False) -> None:
    real = getattr(owner, name)

    def killed(*arguments: t.Any) -> t.NoReturn:
        if after:
            real(*arguments)
        raise Killed

    monkeypatch.setattr(owner, name, killed)


def _interrupt(node: Node, monkeypatch: pytest.MonkeyPatch, owner: t.Any, name: str, after: bool = False, **options: t.Any) -> None:
    locks: t.List[State] = []
    real = State.lock
    with monkeypatch.context() as patch:
        patch.setattr(State, "lock", lambda self, wait: (locks.append(self), real(self, wait))[1])
        _kill_at(patch, owner, name, after)
        with pytest.raises(Killed):
            node.apply(**options)
    for state in locks:
        # The kernel drops the lock of a process that ended.
        state.unlock()


@pytest.mark.parametrize(
    ("owner", "name", "after", "action"),
    [
        (tree, "prepare", False, "undone"),
        (tree, "prepare", True, "undone"),
        (tree, "commit", True, "finished"),
        (tree, "remove_obsolete", True, "finished"),
        (restart, "run", False, "finished"),
        (restart, "run", True, "finished"),
        (proof, "wait", True, "finished"),
        (tree, "clean_up", True, "finished"),
    ],
)
def test_interrupted(node: Node, monkeypatch: pytest.MonkeyPatch, owner: t.Any, name: str, after: bool, action: str) -> None:
    _interrupt(node, monkeypatch, owner, name, after)
    assert transaction.recover(node.options(check=True))["action"] == "pending"  # type: ignore[index]
    starts = node.starts
    result = node.recover()
    assert (result["action"], result["ok"], node.journal) == (action, True, None)
    assert node.is_old if action == "undone" else node.is_new
    # A daemon that has read the new files already is not restarted again.
    restarted = name in ("wait", "clean_up") or (name == "run" and after)
    assert node.starts - starts == (0 if restarted or action == "undone" else 1)
    assert transaction.recover(node.options()) is None


def test_the_next_apply_recovers_first(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt(node, monkeypatch, tree, "prepare", True)
    result = node.apply()
    assert (result["state"], result["recovered"]["action"]) == ("applied", "undone")
    _interrupt_again = node.plan(writes=[], restart_needed=False)
    assert node.apply(_interrupt_again)["recovered"] is None


def test_the_node_was_restarted_meanwhile(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt(node, monkeypatch, tree, "commit", True)
    node.start()
    look = node.look
    monkeypatch.setattr(proof, "look", lambda *arguments: look(*arguments)._replace(identity="other-boot/1/1"))
    starts = node.starts
    assert (node.recover()["action"], node.starts) == ("finished", starts)


def test_finished_without_a_restart(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt(node, monkeypatch, tree, "commit", True)
    result = node.recover(restart="never")
    assert (result["action"], result["restart_pending"], node.starts) == ("finished", True, 1)
    assert node.is_new


def test_interrupted_on_the_way_back(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.refuses = "mine"
    _interrupt(node, monkeypatch, tree, "undo")
    assert node.journal and node.journal["phase"] == "undoing_restarted"
    result = node.recover(restart="never")
    assert result["state"] == "rollback_failed" and "this run may not do it" in result["msg"]
    result = node.recover()
    assert (result["action"], result["state"]) == ("rolled_back", "rolled_back")
    assert "has not loaded mine" in result["msg"] and node.is_old


def test_the_recovery_fails_to_prove_and_goes_back(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt(node, monkeypatch, tree, "commit", True)
    node.refuses = "mine"
    result = node.recover()
    assert (result["action"], result["state"]) == ("rolled_back", "rolled_back")
    assert node.is_old


def test_somebody_else_changed_the_files(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt(node, monkeypatch, tree, "commit", True)
    node.root.write_text("theirs\n")
    result = node.recover()
    assert (result["action"], result["ok"], node.root.read_text()) == ("given_up", True, "theirs\n")
    assert node.journal is None


def test_a_file_that_went_away(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt(node, monkeypatch, tree, "commit", True)
    node.drop_in.unlink()
    node.root.unlink()
    assert node.recover()["action"] == "given_up"


def test_left_over_sandboxes(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt(node, monkeypatch, tree, "commit", True)
    node.leftovers = 2
    assert node.recover()["notes"] == ["2 left-over sandboxes of an interrupted probe were removed"]


@pytest.mark.parametrize("error", [grpc_unary.GrpcStatus(2, "x"), grpc_unary.NoAnswer("timeout", "x"), cri.NotProtobuf("x")])
def test_left_over_sandboxes_that_cannot_be_looked_for(node: Node, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    _interrupt(node, monkeypatch, tree, "commit", True)
    node.leftovers = error
    result = node.recover()
    assert result["ok"] and "could not be looked for" in result["notes"][0]


def test_the_daemon_is_down_at_recovery(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt(node, monkeypatch, restart, "run", False)
    node.starts = 0
    result = node.recover()
    assert (result["action"], result["state"], node.handlers) == ("finished", "applied", ["mine", "runc"])


def test_another_run_ended_it_first(node: Node) -> None:
    assert transaction.recover_here(node.options())["msg"] == "Nothing was interrupted."


def test_the_new_way_to_restart_is_taken(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    _interrupt(node, monkeypatch, tree, "commit", True)
    ways = []
    monkeypatch.setattr(restart, "run", lambda way, _timeout: ways.append(way.argv) or node.start())
    node.recover(restart_command=["service", "containerd", "restart"])
    assert ways == [["service", "containerd", "restart"]]
