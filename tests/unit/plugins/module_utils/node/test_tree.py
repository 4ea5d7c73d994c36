# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a change: what is refused, the order of the steps, and the way back from each of them."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import tree
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.secrets import Masker
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.state import State


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _write(path: pathlib.Path, text: t.Optional[str], old: t.Optional[str], mode: t.Optional[str] = None) -> t.Dict[str, t.Any]:
    return {"path": str(path), "text": text, "sha256": None if old is None else _sha(old), "mode": mode}


class Node:
    """A root file that imports one file, and a plan that gives it another one."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self.root = directory / "config.toml"
        self.old = directory / "old.toml"
        self.new = directory / "deep" / "conf.d" / "new.toml"
        self.old_text = 'imports = ["%s"]\npassword = "abcd1234"\n' % self.old
        self.new_text = 'imports = ["%s"]\npassword = "abcd1234"\n' % self.new
        self.root.write_text(self.old_text)
        self.old.write_text("a = 1\n")
        self.root.chmod(0o640)

    def writes(self) -> t.List[t.Dict[str, t.Any]]:
        masked = self.new_text.replace("abcd1234", "__RUNTIME_GATE_MASKED_1__")
        return [_write(self.old, None, "a = 1\n"), _write(self.root, masked, self.old_text), _write(self.new, "b = 2\n", None, "0600")]

    def changes(self) -> t.List[tree.Change]:
        changes = tree.read_changes(self.writes(), str(self.root), Masker())
        tree.check_single_step(changes, tree.ReadPatterns(str(self.root)))
        return changes

    def files(self) -> t.Dict[str, str]:
        return {str(path.relative_to(self.directory)): path.read_text() for path in sorted(self.directory.rglob("*")) if path.is_file()}

    @property
    def before(self) -> t.Dict[str, str]:
        return {"config.toml": self.old_text, "old.toml": "a = 1\n"}

    @property
    def after(self) -> t.Dict[str, str]:
        return {"config.toml": self.new_text, "deep/conf.d/new.toml": "b = 2\n"}


@pytest.fixture
def node(tmp_path: pathlib.Path) -> Node:
    (tmp_path / "etc").mkdir()
    return Node(tmp_path / "etc")


def test_the_whole_way(node: Node) -> None:
    changes = node.changes()
    records = [change.record() for change in changes]
    assert [record["role"] for record in records] == ["after", "commit", "before"]
    assert tree.is_committed(records) is False
    tree.prepare(changes)
    assert tree.is_committed(records) is False
    assert node.root.read_text() == node.old_text
    tree.commit(changes)
    assert tree.is_committed(records) is True
    tree.remove_obsolete(records)
    tree.remove_obsolete(records)
    tree.clean_up(records)
    assert node.files() == node.after
    assert (node.root.stat().st_mode & 0o777, node.new.stat().st_mode & 0o777) == (0o640, 0o600)


@pytest.mark.parametrize("steps", range(5))
@pytest.mark.parametrize("aside", [True, False])
def test_the_way_back(node: Node, steps: int, aside: bool, tmp_path: pathlib.Path) -> None:
    """From each point; ``aside`` False: as on a file system without hard links, so the backup must do."""
    changes = node.changes()
    records = [change.record() for change in changes]
    state = State(str(tmp_path / "state"))
    state.lock(0)
    backup = state.write_backup("1", {change.path: (change.old, change.facts) for change in changes if change.old is not None})
    inode = node.root.stat().st_ino
    way: t.List[t.Callable[[], t.Any]] = [
        lambda: tree.prepare(changes),
        lambda: tree.commit(changes),
        lambda: tree.remove_obsolete(records),
        lambda: tree.undo(records, backup),
    ]
    for step in way[:steps]:
        step()
    if not aside:
        for record in records:
            if os.path.exists(record["aside"]):
                os.unlink(record["aside"])
    assert tree.undo(records, backup) == []
    assert node.files() == node.before
    assert not (node.directory / "deep").exists()
    assert node.root.stat().st_mode & 0o777 == 0o640
    assert node.root.stat().st_ino == inode or not aside


def test_a_single_file_is_its_own_commit(node: Node) -> None:
    for text, old in (("c = 3\n", "a = 1\n"), (None, "c = 3\n")):
        changes = tree.read_changes([_write(node.old, text, old)], None, Masker())
        assert [change.role for change in changes] == [tree.COMMIT]
        tree.check_single_step(changes, tree.ReadPatterns(str(node.root)))
        tree.prepare(changes)
        tree.commit(changes)
        records = [change.record() for change in changes]
        assert tree.is_committed(records) is True
        tree.clean_up(records)
    assert node.files() == {"config.toml": node.old_text}


def test_without_files_there_is_nothing_to_commit() -> None:
    assert tree.read_changes([], None, Masker()) == []
    assert tree.is_committed([]) is True


def test_what_is_as_planned_is_left_out(node: Node) -> None:
    assert tree.read_changes([_write(node.old, "a = 1\n", "a = 1\n")], None, Masker()) == []


def test_links_are_followed(node: Node) -> None:
    link = node.directory / "link.toml"
    link.symlink_to("old.toml")
    changes = tree.read_changes([_write(link, "c = 3\n", "a = 1\n")], None, Masker())
    assert changes[0].real == str(node.old)
    with pytest.raises(RuntimeGateError, match="old.toml is named twice"):
        tree.read_changes([_write(link, "c = 3\n", "a = 1\n"), _write(node.old, "d = 4\n", "a = 1\n")], str(link), Masker())
    with pytest.raises(RuntimeGateError, match="is a link to .* remove it by hand"):
        tree.read_changes([_write(link, None, "a = 1\n")], None, Masker())


@pytest.mark.parametrize(
    ("write", "words"),
    [
        ({"path": "config.toml", "text": "", "sha256": None}, "no absolute path"),
        ({"path": "{d}/old.toml", "text": "", "sha256": "0" * 64}, "was changed since it was read"),
        ({"path": "{d}/old.toml", "text": "", "sha256": None}, "is there now since it was read"),
        ({"path": "{d}/gone.toml", "text": "", "sha256": "0" * 64}, "is gone since it was read"),
        ({"path": "{d}/pipe", "text": "", "sha256": None}, "no regular file"),
        ({"path": "{d}/old.toml/x", "text": "", "sha256": None}, "cannot be read: Not a directory"),
        ({"path": "{d}/new.toml", "text": "a = '__RUNTIME_GATE_MASKED_1__'", "sha256": None}, "stands for no value of this file"),
        ({"path": "{d}/new.toml", "text": "a = '\ud800'", "sha256": None}, "no UTF-8"),
        ({"path": "{d}/latin.toml", "text": "", "sha256": hashlib.sha256(b"# \xff\n").hexdigest()}, "cannot be edited: it is no UTF-8"),
        ({"path": "{d}/config.toml", "text": "a = 1\n", "sha256": "root"}, "would lose the secret value number 1"),
    ],
)
def test_refused(node: Node, write: t.Dict[str, t.Any], words: str) -> None:
    os.mkfifo(str(node.directory / "pipe"))
    (node.directory / "latin.toml").write_bytes(b"# \xff\n")
    write = dict(write, path=write["path"].replace("{d}", str(node.directory)))
    if write["sha256"] == "root":
        write["sha256"] = _sha(node.old_text)
    with pytest.raises(RuntimeGateError, match=words):
        tree.read_changes([write], None, Masker())


def test_too_large(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_FILE_SIZE", 3)
    with pytest.raises(RuntimeGateError, match="larger than 3 bytes"):
        tree.read_changes([_write(node.old, "", "a = 1\n")], None, Masker())


def test_no_commit_point_and_no_single_step(node: Node) -> None:
    with pytest.raises(RuntimeGateError, match="changes 3 files and none of them is its commit point"):
        tree.read_changes(node.writes(), "/elsewhere", Masker())
    writes = [_write(node.old, "c = 3\n", "a = 1\n")] + node.writes()[1:]
    with pytest.raises(RuntimeGateError, match="is no single step"):
        tree.read_changes(writes, str(node.root), Masker())


def test_a_new_file_that_is_read_already(node: Node) -> None:
    node.root.write_text(node.old_text.replace(str(node.old), "%s/deep/*/*.toml" % node.directory))
    node.old_text = node.root.read_text()
    with pytest.raises(RuntimeGateError, match="the present root file reads it already"):
        node.changes()


def test_names_that_nothing_reads(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = node.directory / "conf.d"
    conf.mkdir()
    (conf / "a.toml").write_text("x = 1\n")
    node.root.write_text('imports = ["conf.d/*"]\n')
    patterns = tree.ReadPatterns(str(node.root))
    changes = tree.read_changes([_write(conf / "a.toml", "x = 2\n", "x = 1\n")], None, Masker())
    tree.check_single_step(changes, patterns)
    assert os.path.dirname(changes[0].draft) == str(node.directory)
    # Beyond this directory another file system begins, to which a rename cannot go.
    monkeypatch.setattr(tree, "_device", lambda directory: directory.startswith(str(node.directory)))
    every = ["%s/*" % directory for directory in (conf, node.directory)]
    os.mkfifo(str(node.directory / "pipe"))
    node.root.write_text("imports = %s\n" % json.dumps(every))
    with pytest.raises(RuntimeGateError, match="read every name beside"):
        tree.check_single_step(changes, tree.ReadPatterns(str(node.root)))


def test_what_a_root_file_reads(node: Node) -> None:
    (node.directory / "a.toml").write_text('imports = ["b.toml", "[*"]\n')
    (node.directory / "b.toml").write_text('imports = ["a.toml", "gone/*/x*.toml"]\n')
    node.root.write_text('imports = ["a.*ml", "/nowhere/*.toml"]\n')
    patterns = tree.ReadPatterns(str(node.root))
    reads = [name for name in ("config.toml", "a.toml", "b.toml", "c.toml", "gone/y/x1.toml", "c.toml.new") if patterns.match(str(node.directory / name))]
    assert reads == ["config.toml", "a.toml", "b.toml", "gone/y/x1.toml"]
    assert not tree.ReadPatterns(None).match(str(node.root))


def test_whoever_wrote_meanwhile_is_not_overwritten(node: Node) -> None:
    changes = node.changes()
    records = [change.record() for change in changes]
    tree.prepare(changes)
    node.root.write_text("theirs\n")
    with pytest.raises(RuntimeGateError, match="changed by someone else meanwhile"):
        tree.commit(changes)
    assert tree.is_committed(records) is None
    assert tree.undo(records, None) == ["%s was changed by someone else and was left alone" % node.root]
    assert node.root.read_text() == "theirs\n"
    assert node.old.read_text() == "a = 1\n"


def test_a_new_file_of_someone_else_is_not_overwritten(node: Node) -> None:
    changes = node.changes()
    node.new.parent.mkdir(parents=True)
    node.new.write_text("theirs\n")
    with pytest.raises(RuntimeGateError, match="made by someone else meanwhile"):
        tree.prepare(changes)
    assert tree.undo([change.record() for change in changes], None) == ["%s was changed by someone else and was left alone" % node.new]
    assert node.files() == dict(node.before, **{"deep/conf.d/new.toml": "theirs\n"})


def test_a_directory_in_which_somebody_put_something(node: Node) -> None:
    changes = node.changes()
    tree.prepare(changes)
    (node.directory / "deep" / "theirs").write_text("")
    tree.undo([change.record() for change in changes], None)
    assert (node.directory / "deep" / "theirs").exists()


def test_extended_attributes(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    given: t.Dict[str, bytes] = {}
    monkeypatch.setattr(tree.os, "listxattr", lambda _file: ["security.selinux"])
    monkeypatch.setattr(tree.os, "getxattr", lambda _file, _name: b"system_u:object_r:container_config_t:s0\0")
    monkeypatch.setattr(tree.os, "setxattr", lambda path, name, value: given.update({name: value}))
    changes = tree.read_changes([_write(node.old, "c = 3\n", "a = 1\n")], None, Masker())
    tree.check_single_step(changes, tree.ReadPatterns(None))
    tree.prepare(changes)
    assert given == {"security.selinux": b"system_u:object_r:container_config_t:s0\0"}


def test_a_file_system_without_attributes_and_links(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(number: int) -> t.Callable[..., t.NoReturn]:
        def function(*_arguments: object) -> t.NoReturn:
            raise OSError(number, "x")

        return function

    monkeypatch.setattr(tree.os, "listxattr", fails(95))
    monkeypatch.setattr(tree.os, "link", fails(1))
    changes = tree.read_changes([_write(node.old, "c = 3\n", "a = 1\n")], None, Masker())
    tree.check_single_step(changes, tree.ReadPatterns(None))
    tree.prepare(changes)
    monkeypatch.setattr(tree.os, "link", fails(28))
    with pytest.raises(OSError):
        tree.prepare(changes)


def test_current(tmp_path: pathlib.Path) -> None:
    assert tree.current(str(tmp_path / "gone")) is None
    (tmp_path / "file").write_text("x")
    assert tree.current(str(tmp_path / "file" / "below")) is None
    assert tree.current(str(tmp_path / "file")) == _sha("x")
