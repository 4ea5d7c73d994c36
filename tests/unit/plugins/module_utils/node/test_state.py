# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state directory: lock, journal, result, backups."""

from __future__ import annotations

import fcntl
import os
import pathlib
import stat

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import state as module
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.state import State, read_backup


@pytest.fixture
def state(tmp_path: pathlib.Path) -> State:
    return State(str(tmp_path / "state"))


def test_nothing_is_made_before_the_lock(state: State) -> None:
    assert (state.journal(), state.last_result(), state.backups()) == (None, None, [])
    assert not os.path.exists(state.directory)


def test_only_root_may_look(state: State) -> None:
    os.makedirs(state.directory, 0o755)
    state.lock(0)
    assert stat.S_IMODE(os.stat(state.directory).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(state.directory + "/lock").st_mode) == 0o600


def test_one_writer(state: State) -> None:
    state.lock(0)
    other = State(state.directory)
    with pytest.raises(RuntimeGateError, match=r"Another run is changing .* \(process %d, since 20" % os.getpid()):
        other.lock(0.15)
    state.unlock()
    state.unlock()
    other.lock(0)


def test_a_lock_of_nobody_known(state: State) -> None:
    os.makedirs(state.directory, 0o700)
    with open(state.directory + "/lock", "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(RuntimeGateError, match="container runtime; wait"):
            state.lock(0)


def test_the_signature_may_fail(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module.os, "pwrite", full)
    state.lock(0)


def test_a_link_is_no_state_directory(tmp_path: pathlib.Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RuntimeGateError, match="must be a directory of root"):
        State(str(tmp_path / "state")).lock(0)


def test_it_cannot_be_made(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RuntimeGateError, match="cannot be used: Not a directory. The writer keeps"):
        State(str(tmp_path / "file" / "state")).lock(0)


def test_the_lock_file_cannot_be_opened(state: State) -> None:
    os.makedirs(state.directory + "/lock")
    with pytest.raises(RuntimeGateError, match="lock cannot be opened: Is a directory"):
        state.lock(0)


def test_the_journal(state: State) -> None:
    state.lock(0)
    state.write_journal({"phase": "begun"})
    pathlib.Path(state.directory, "transaction.json.new").write_text("half a")
    state.write_journal({"phase": "committed"})
    assert state.journal() == {"phase": "committed"}
    state.end_journal()
    state.end_journal()
    assert state.journal() is None
    assert sorted(os.listdir(state.directory)) == ["lock"]


@pytest.mark.parametrize("text", ["", "{", "[]", "\xff"])
def test_a_journal_in_pieces(state: State, text: str) -> None:
    state.lock(0)
    pathlib.Path(state.directory, "transaction.json").write_text(text, encoding="latin-1")
    with pytest.raises(RuntimeGateError, match="can neither be finished nor undone"):
        state.journal()


def test_the_result(state: State) -> None:
    state.lock(0)
    state.write_result({"state": "applied"})
    assert state.last_result() == {"state": "applied"}


def test_backups_are_bounded(state: State) -> None:
    state.lock(0)
    for number in range(4):
        state.write_backup("2026-%d" % number, {"/etc/x": (b"%d" % number, {"mode": 0o640})})
    assert [os.path.basename(path) for path in state.backups()] == ["2026-0", "2026-1", "2026-2", "2026-3"]
    state.prune_backups(2)
    assert [os.path.basename(path) for path in state.backups()] == ["2026-2", "2026-3"]
    assert read_backup(state.backups()[0], "/etc/x") == (b"2", {"mode": 0o640, "file": "0"})
    state.prune_backups(-1)
    assert state.backups() == []


def test_a_directory_that_cannot_be_synced(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (22, 5):

        def fails(_descriptor: int, number: int = number) -> None:
            raise OSError(number, "x")

        monkeypatch.setattr(module.os, "fsync", fails)
        if number == 22:
            module.sync_directory(str(tmp_path))
        else:
            with pytest.raises(OSError):
                module.sync_directory(str(tmp_path))
