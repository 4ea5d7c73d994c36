# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Captures on disk: every recorded one, hostile ones, and what is written and read back."""

from __future__ import annotations

import json
import os
import pathlib
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import capture_directory
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.capture_directory import differs, read_capture, write_capture
from ansible_collections.kubenode.runtime_gate.tests.unit.fake_node import write_tree
from ansible_collections.kubenode.runtime_gate.tests.unit.node_tables import SECRET

_CAPTURES = sorted((pathlib.Path(__file__).resolve().parents[3] / "cases").glob("*/captures/*"))


def test_every_recorded_capture() -> None:
    assert len(_CAPTURES) == 145
    for path in _CAPTURES:
        capture = read_capture(str(path))
        assert capture["node"]["engine"] in ("containerd", "crio")
        assert (capture["info"] is not None) == (path / "crictl-info.json").exists()
        assert capture["dump"]["rc"] == int((path / "config-dump.rc").read_text())
        assert "withheld" not in capture["node"], path
        assert set(capture["files"]) == {"/" + str(file.relative_to(path / "rootfs")) for file in (path / "rootfs").rglob("*") if file.is_file()}


def test_there_and_back(tmp_path: pathlib.Path) -> None:
    for path in _CAPTURES[::20]:
        capture = read_capture(str(path))
        target = str(tmp_path / path.parent.parent.name)
        assert differs(capture, target)
        write_capture(capture, target)
        assert read_capture(target) == capture
        assert not differs(capture, target)
        capture["node"]["collected_at"] = "2026-01-01T00:00:00Z"
        assert not differs(capture, target)
        capture["node"]["name"] = "another"
        assert differs(capture, target)
        write_capture(capture, target)
        assert read_capture(target)["node"]["name"] == "another"
    assert sorted(os.listdir(tmp_path)) == sorted({path.parent.parent.name for path in _CAPTURES[::20]})


def test_only_the_owner_can_read_it(tmp_path: pathlib.Path) -> None:
    write_capture({"node": {}, "files": {"/etc/c.toml": "a = 1\r\n"}, "dump": None, "info": None}, str(tmp_path / "c"))
    for path in [tmp_path / "c", *(path for path in (tmp_path / "c").rglob("*") if path.is_file())]:
        assert path.stat().st_mode & 0o077 == 0
    assert (tmp_path / "c/rootfs/etc/c.toml").read_bytes() == b"a = 1\r\n"


_MINIMAL = {"node.yml": "engine: containerd\n"}

# tree -> words of the refusal
REFUSED: t.Dict[str, t.Tuple[t.Dict[str, t.Any], str]] = {
    "empty": ({}, "holds nothing of a capture"),
    "something else": ({"README.md": "x"}, "holds nothing of a capture"),
    "a link out": ({**_MINIMAL, "rootfs/etc/passwd": "-> /etc/passwd"}, "is a link"),
    "a linked directory": ({**_MINIMAL, "rootfs": "-> /etc"}, "rootfs is a link"),
    "node.yml is a link": ({"node.yml": "-> /etc/passwd"}, "node.yml is a link"),
    "no YAML": ({"node.yml": "a: [b"}, "is no YAML"),
    "tags": ({"node.yml": "a: !!python/object/apply:os.system [x]"}, "is no YAML"),
    "aliases": ({"node.yml": "a: &a [x]\nb: *a"}, "aliases are not allowed"),
    "deep YAML": ({"node.yml": "a: " + "[" * 3000}, "is no YAML"),
    "control characters": ({"node.yml": "a: \x01"}, "is no YAML"),
    "a list": ({"node.yml": "- a"}, "is no mapping"),
    "numbers as keys": ({"node.yml": "1: a"}, "is no mapping"),
    "no UTF-8": ({"node.yml": b"a: \xff"}, "no UTF-8"),
    "another format": ({"node.yml": "format: 2"}, "another format"),
    "binaries as a text": ({"node.yml": "binaries: x"}, "'binaries' must be a mapping"),
    "absent as a text": ({"node.yml": "absent: x"}, "'absent' must be a list"),
    "version as a mapping": ({"node.yml": "version: {a: 1}"}, "'version' must be a text"),
    "info is no JSON": ({**_MINIMAL, "crictl-info.json": "{"}, "is no JSON"),
    "info is a list": ({**_MINIMAL, "crictl-info.json": "[]"}, "is no JSON object"),
    "deep info": ({**_MINIMAL, "crictl-info.json": '{"a": ' + "[" * 100000}, "nested too deeply"),
    "info is no text": ({**_MINIMAL, "crictl-info.json": b"\xff\xfe"}, "UTF-16"),
    "no exit code": ({**_MINIMAL, "config-dump.rc": "zero"}, "is no exit code"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path: pathlib.Path, name: str) -> None:
    tree, words = REFUSED[name]
    tmp_path.joinpath("c").mkdir()
    write_tree(tmp_path / "c", tree)
    with pytest.raises(RuntimeGateError) as caught:
        read_capture(str(tmp_path / "c"))
    message = str(caught.value)
    assert words in message and str(tmp_path / "c") in message and "\n" not in message and len(message) < 600


def test_not_there(tmp_path: pathlib.Path) -> None:
    (tmp_path / "f").write_text("")
    for name in ("none", "f"):
        with pytest.raises(RuntimeGateError, match="is no directory"):
            read_capture(str(tmp_path / name))


def test_devices_and_pipes(tmp_path: pathlib.Path) -> None:
    write_tree(tmp_path, _MINIMAL)
    os.mkfifo(tmp_path / "crictl-info.json")
    with pytest.raises(RuntimeGateError, match="neither a file nor a directory"):
        read_capture(str(tmp_path))


# bound, its value for the test, tree -> words
BOUNDS: t.List[t.Tuple[str, int, t.Dict[str, t.Any], str]] = [
    ("MAX_FILE_SIZE", 10, {"rootfs/a": "x" * 11}, "larger than 10 bytes"),
    ("MAX_TOTAL_SIZE", 30, {"rootfs/a": "x" * 20, "rootfs/b": "x" * 20}, "more than 30 bytes"),
    ("MAX_FILES", 3, {"rootfs/%d" % number: "" for number in range(4)}, "more than 3 files"),
    ("MAX_DEPTH", 3, {"rootfs/a/b/c/d": ""}, "nested deeper than 3"),
]


@pytest.mark.parametrize("bound, value, tree, words", BOUNDS)
def test_bounds(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, bound: str, value: int, tree: t.Dict[str, t.Any], words: str) -> None:
    write_tree(tmp_path, {**tree, "node.yml": ""})
    read_capture(str(tmp_path))
    monkeypatch.setattr(capture_directory, bound, value)
    with pytest.raises(RuntimeGateError, match=words):
        read_capture(str(tmp_path))


@pytest.mark.parametrize("name", ["scandir", "open"])
def test_unreadable(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def refuse(*_arguments: t.Any) -> t.NoReturn:
        raise PermissionError(13, "Permission denied")

    write_tree(tmp_path, _MINIMAL)
    monkeypatch.setattr(capture_directory.os, name, refuse)
    with pytest.raises(RuntimeGateError, match="cannot be read at .*: Permission denied"):
        read_capture(str(tmp_path))


def test_secrets_of_a_foreign_capture_are_masked(tmp_path: pathlib.Path) -> None:
    write_tree(
        tmp_path,
        {
            "node.yml": "cmdline: k3s --token %s\ncri_error: dial http://joe:%s@h\nversion: 1.7\ndaemon_started: 2026-06-01T08:05:00Z\n"
            "name: null\nabsent: null\nunit: {exec_start: 'x --token=%s', drop_ins: [a]}\nneeds_become: false\n" % ((SECRET,) * 3),
            "rootfs/etc/a.toml": 'password = "%s"' % SECRET,
            "rootfs/etc/b.toml": "password = %s" % SECRET,
            "config-dump.toml": 'password = "%s"' % SECRET,
            "config-dump.stderr": "near %s" % SECRET,
            "config-dump.rc": "1\n",
            "status-config.toml": "password = %s" % SECRET,
            "crictl-info.json": json.dumps({"auth": {"password": SECRET}}),
        },
    )
    capture = read_capture(str(tmp_path))
    assert SECRET not in json.dumps(capture)
    assert capture["node"]["version"] == "1.7" and capture["node"]["daemon_started"] == "2026-06-01T08:05:00Z"
    assert "name" not in capture["node"] and capture["node"]["needs_become"] is False
    assert sorted(capture["node"]["withheld"]) == ["/etc/b.toml", "status-config.toml"]
    assert capture["dump"]["rc"] == 1 and capture["status_config"] is None


def test_parts_that_are_missing(tmp_path: pathlib.Path) -> None:
    write_tree(tmp_path, {"config-dump.rc": "1"})
    capture = read_capture(str(tmp_path))
    assert capture == {
        "format": 1, "node": {}, "files": {}, "dump": {"stdout": "", "stderr": "", "rc": 1}, "status_config": None, "info": None,
        "probe": None,
    }  # fmt: skip


def test_a_dump_that_is_withheld(tmp_path: pathlib.Path) -> None:
    write_tree(tmp_path, {"config-dump.toml": b"\xff"})
    capture = read_capture(str(tmp_path))
    assert capture["dump"] is None and "no UTF-8" in capture["node"]["withheld"]["config-dump.toml"]


def test_a_file_that_is_no_utf8(tmp_path: pathlib.Path) -> None:
    write_tree(tmp_path, {"rootfs/a": "a = 1".encode("utf-16"), "node.yml": "engine: containerd"})
    capture = read_capture(str(tmp_path))
    assert capture["files"] == {"/a": "a = 1"} and "UTF-16" in capture["node"]["not_utf8"]["/a"]


# ---- writing

_CAPTURE = {"node": {"engine": "containerd"}, "files": {}, "dump": None, "status_config": "a = 1", "info": {}}


@pytest.mark.parametrize("path", ["/../x", "/a/../../x", "x", "//x", "/a/", "/a\0b"])
def test_paths_that_lead_out(tmp_path: pathlib.Path, path: str) -> None:
    with pytest.raises(RuntimeGateError, match="leads out of it"):
        write_capture({**_CAPTURE, "files": {path: ""}}, str(tmp_path / "c"))
    assert os.listdir(tmp_path) == []


def test_what_is_no_capture_is_never_replaced(tmp_path: pathlib.Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").write_text("x")
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    os.symlink(tmp_path / "empty", tmp_path / "link")
    for name, words in (("full", "no capture is there"), ("file", "no capture is there"), ("link", "is a link"), ("file/c", "cannot be written")):
        with pytest.raises(RuntimeGateError, match=words):
            write_capture(_CAPTURE, str(tmp_path / name))
    write_capture(_CAPTURE, str(tmp_path / "empty"))
    assert sorted(os.listdir(tmp_path)) == ["empty", "file", "full", "link"]
    assert (tmp_path / "full/mine").read_text() == "x"


def test_a_file_that_is_also_a_directory(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RuntimeGateError, match="cannot be written"):
        write_capture({**_CAPTURE, "files": {"/a": "", "/a/b": ""}}, str(tmp_path / "c"))
    assert os.listdir(tmp_path) == []


def test_no_digest_of_a_text_with_masked_values_is_written(tmp_path: pathlib.Path) -> None:
    texts = {"/a": 'password = "__RUNTIME_GATE_MASKED_1__"\n', "/b": "version = 2\n"}
    digests = {"/a": "0" * 64, "/b": "1" * 64, "/withheld": "2" * 64}
    write_capture({"format": 1, "node": {"name": "n", "sha256": digests}, "files": texts, "dump": None, "info": None}, str(tmp_path / "n"))
    assert read_capture(str(tmp_path / "n"))["node"]["sha256"] == {"/b": "1" * 64}
