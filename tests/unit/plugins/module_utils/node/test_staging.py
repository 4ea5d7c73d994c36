# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Staged files, with a stand-in for the system calls that need privilege; real mounts are made in tests/faults."""

from __future__ import annotations

import os
import pathlib
import shutil
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import staging
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.tree import Change


class Kernel:
    """A tmpfs is a directory in another one's place; a bind mount is a copy."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.refuses = ""
        self.unshared = 0
        monkeypatch.setattr(staging.ctypes, "CDLL", lambda *_arguments, **_named: self)
        monkeypatch.setattr(staging.ctypes, "get_errno", lambda: 1)

    def unshare(self, flags: int) -> int:
        self.unshared = flags
        return -1 if self.refuses == "unshare" else 0

    def mount(self, source: bytes, target: bytes, kind: t.Optional[bytes], flags: t.Any, _data: t.Optional[bytes]) -> int:
        if kind == b"tmpfs":
            if self.refuses == "tmpfs":
                return -1
            os.rename(target, target + b".hidden")
            os.mkdir(target)
        elif target != b"/":
            assert flags.value == 4096 | 16384
            if os.path.isdir(source):
                os.rmdir(target)
                shutil.copytree(source, target)
            else:
                shutil.copyfile(source, target)
        return 0


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(monkeypatch)


def _change(path: pathlib.Path, old: t.Optional[bytes], new: t.Optional[bytes]) -> Change:
    return Change(str(path), str(path), old, new, {})


def test_the_files_lie_at_their_places(kernel: Kernel, tmp_path: pathlib.Path) -> None:
    etc = tmp_path / "etc"
    (etc / "conf.d").mkdir(parents=True)
    (etc / "certs.d").mkdir()
    (etc / "certs.d" / "ca").write_text("ca")
    (etc / "config.toml").write_text("old")
    (etc / "conf.d" / "theirs.toml").write_text("theirs")
    (etc / "conf.d" / "ours.toml").write_text("ours")
    (etc / "link").symlink_to("config.toml")
    staging._stage(
        [
            _change(etc / "conf.d" / "ours.toml", b"ours", None),
            _change(etc / "config.toml", b"old", b"new"),
            _change(etc / "deep" / "more" / "x.toml", None, b"x"),
        ]
    )
    assert kernel.unshared == 0x20000
    seen = {str(path.relative_to(etc)): path.read_text() for path in sorted(etc.rglob("*")) if path.is_file() and ".hidden" not in str(path)}
    assert seen == {"certs.d/ca": "ca", "conf.d/theirs.toml": "theirs", "config.toml": "new", "deep/more/x.toml": "x", "link": "new"}
    assert os.readlink(etc / "link") == "config.toml"


def test_a_name_that_went_away(kernel: Kernel, tmp_path: pathlib.Path) -> None:
    staging._bind_back(kernel, str(tmp_path / "gone"), str(tmp_path / "x"))  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("call", "words"), [("unshare", "a private mount namespace cannot be made"), ("tmpfs", "cannot be mounted: Operation not permitted")])
def test_without_privilege(kernel: Kernel, tmp_path: pathlib.Path, call: str, words: str) -> None:
    kernel.refuses = call
    with pytest.raises(RuntimeGateError, match="cannot be loaded beforehand: .*" + words):
        staging.run_staged([_change(tmp_path / "x", None, b"")], lambda: None)


def test_the_answer_comes_from_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "_stage", lambda _changes: None)
    assert staging.run_staged([], os.getpid) != os.getpid()
    with pytest.raises(RuntimeGateError, match="ValueError: why"):
        staging.run_staged([], _raise)
    with pytest.raises(RuntimeGateError, match="ended without an answer"):
        staging.run_staged([], lambda: os._exit(3))


def _raise() -> t.NoReturn:
    raise ValueError("why")
