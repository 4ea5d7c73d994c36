# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The superset of files: what is read, what is only recorded, and where it ends."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import files
from ansible_collections.kubenode.runtime_gate.tests.unit.fake_node import write_tree

_ROOT = "/etc/containerd/config.toml"


def _gather(tmp_path: pathlib.Path, tree: t.Dict[str, t.Any], root: str = _ROOT, cwd: str = "/") -> files.Files:
    write_tree(tmp_path, tree)
    found = files.Files(str(tmp_path))
    found.gather([root], cwd)
    return found


# tree -> paths that must be among those read
READ: t.Dict[str, t.Tuple[t.Dict[str, t.Any], t.List[str]]] = {
    "root and siblings": (
        {_ROOT: "", "/etc/containerd/conf.d/a.toml": "", "/etc/containerd/config.d/b.toml": "", "/etc/containerd/x.toml.bak": "",
         "/etc/containerd/runtime_nvidia.toml": "", "/etc/containerd/a.conf": "", "/etc/containerd/conf.d/deep/er/c.toml": ""},
        ["/etc/containerd/conf.d/a.toml", "/etc/containerd/config.d/b.toml", "/etc/containerd/x.toml.bak",
         "/etc/containerd/runtime_nvidia.toml", "/etc/containerd/a.conf", "/etc/containerd/conf.d/deep/er/c.toml", _ROOT],
    ),
    "absolute pattern": ({_ROOT: 'imports = ["/opt/x/*.toml"]', "/opt/x/a.toml": "", "/opt/x/b.toml.bak": ""},
                         ["/opt/x/a.toml", "/opt/x/b.toml.bak"]),
    "any name that a pattern matches": ({_ROOT: 'imports = ["/opt/x/*"]', "/opt/x/README": "", "/opt/x/.hidden": ""},
                                        ["/opt/x/README", "/opt/x/.hidden"]),
    "relative to the file": ({_ROOT: 'imports = ["../other/*.toml"]', "/etc/other/a.toml": ""}, ["/etc/other/a.toml"]),
    "relative to the working directory": ({_ROOT: 'imports = ["sub/*.toml"]', "/daemon/sub/a.toml": ""}, ["/daemon/sub/a.toml"]),
    "nested": ({_ROOT: 'imports = ["/opt/a.toml"]', "/opt/a.toml": 'imports = ["b/c.cfg"]', "/opt/b/c.cfg": ""},
               ["/opt/a.toml", "/opt/b/c.cfg"]),
    "cycle": ({_ROOT: 'imports = ["/opt/a.toml"]', "/opt/a.toml": 'imports = ["/opt/a.toml", "%s"]' % _ROOT}, ["/opt/a.toml"]),
    "braces": ({_ROOT: 'imports = ["/opt/{a,b}/*.toml"]', "/opt/a/x.toml": "", "/opt/b/x.toml": ""}, ["/opt/a/x.toml", "/opt/b/x.toml"]),
    "double star": ({_ROOT: 'imports = ["/opt/**/*.toml"]', "/opt/x.toml": "", "/opt/a/x.toml": "", "/opt/a/b/x.toml": ""},
                    ["/opt/x.toml", "/opt/a/x.toml", "/opt/a/b/x.toml"]),
    "question mark and class": ({_ROOT: 'imports = ["/opt/?.d/[a-c].cfg"]', "/opt/x.d/b.cfg": ""}, ["/opt/x.d/b.cfg"]),
    "malformed class": ({_ROOT: 'imports = ["/opt/[*.toml"]', "/opt/a.toml": ""}, ["/opt/a.toml"]),
    "a directory as import": ({_ROOT: 'imports = ["/opt/d"]', "/opt/d/a.toml": ""}, ["/opt/d/a.toml"]),
    "misspelled key": ({_ROOT: 'includes = ["/opt/x.toml"]', "/opt/x.toml": ""}, ["/opt/x.toml"]),
    "text that is no TOML": ({_ROOT: 'version = two\nimports = ["/opt/x.toml"]', "/opt/x.toml": ""}, ["/opt/x.toml"]),
    "other runtimes": (
        {"/var/lib/rancher/k3s/agent/etc/containerd/config.toml": "", "/etc/k0s/containerd.d/a.toml": "", "/run/k0s/containerd-cri.toml": "",
         "/var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.tmpl": ""},
        ["/var/lib/rancher/k3s/agent/etc/containerd/config.toml", "/etc/k0s/containerd.d/a.toml", "/run/k0s/containerd-cri.toml",
         "/var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.tmpl"],
    ),
    "linked file and directory": (
        {_ROOT: "-> /real/config.toml", "/real/config.toml": 'imports = ["conf.d/*.toml"]', "/etc/containerd/conf.d": "-> ../../real/d",
         "/real/d/a.toml": "", "/real/conf.d/b.toml": ""},
        [_ROOT, "/etc/containerd/conf.d/a.toml"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_read(tmp_path: pathlib.Path, name: str) -> None:
    tree, expected = READ[name]
    # A link of the tree points into the tree.
    tree = {path: "-> %s%s" % (tmp_path, text[3:]) if str(text).startswith("-> /") else text for path, text in tree.items()}
    found = _gather(tmp_path, tree, cwd="/daemon")
    assert set(expected) <= set(found.contents), sorted(found.contents)
    assert set(found.modified) == set(found.contents)


NOT_READ = {
    "/etc/containerd/certs.d/docker.io/hosts.toml": "",
    "/etc/containerd/config.json": "{}",
    "/etc/containerd/tls.key": "",
    "/etc/containerd/secret-config": "",
    "/etc/containerd/README": "",
    "/etc/other.conf": "",
    "/opt/other.toml": "",
}


def test_not_read(tmp_path: pathlib.Path) -> None:
    found = _gather(tmp_path, {_ROOT: 'imports = ["/etc/containerd/conf.d/*.toml"]', **NOT_READ})
    assert sorted(found.contents) == [_ROOT]
    assert "/etc/containerd/conf.d" in found.absent
    assert "/etc/containerd" in found.directories


def test_a_root_in_etc_does_not_take_the_rest_of_etc(tmp_path: pathlib.Path) -> None:
    found = _gather(tmp_path, {"/etc/c.toml": "", "/etc/host.conf": "", "/etc/x/y.toml": "", "/etc/z.toml": ""}, root="/etc/c.toml")
    assert sorted(found.contents) == ["/etc/c.toml", "/etc/z.toml"]


def test_what_is_not_there(tmp_path: pathlib.Path) -> None:
    found = _gather(tmp_path, {"/etc/containerd/other.toml": 'imports = ["/opt/none.toml", "/none/*.toml"]'})
    assert {_ROOT, "/opt/none.toml", "/none"} <= found.absent
    assert sorted(found.contents) == ["/etc/containerd/other.toml"]


def test_links_are_recorded(tmp_path: pathlib.Path) -> None:
    tree = {_ROOT: "-> shared/c.toml", "/etc/containerd/shared": "-> ../real", "/etc/real/c.toml": "", "/etc/containerd/conf.d/a.toml": "-> /gone"}
    found = _gather(tmp_path, tree)
    assert found.links[_ROOT] == "shared/c.toml"
    assert found.links["/etc/containerd/shared"] == "../real"
    assert found.links["/etc/containerd/conf.d/a.toml"] == "/gone"
    assert "/etc/containerd/conf.d/a.toml" in found.absent


def test_a_loop_of_links(tmp_path: pathlib.Path) -> None:
    found = _gather(tmp_path, {_ROOT: "-> config.toml"})
    assert "too many levels" in found.unreadable[_ROOT]


def test_what_cannot_be_read(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILE_SIZE", 10)
    write_tree(tmp_path, {"/etc/containerd/big.toml": "x" * 11, "/etc/containerd/dir.toml": None, _ROOT: ""})
    os.mkfifo(tmp_path / "etc/containerd/pipe.toml")
    found = files.Files(str(tmp_path))
    found.gather([_ROOT, "/etc/containerd/dir.toml"])
    assert found.unreadable == {
        "/etc/containerd/big.toml": "it is larger than 10 bytes",
        "/etc/containerd/dir.toml": "it is a directory",
        "/etc/containerd/pipe.toml": "it is no regular file",
    }
    assert found.read("/etc/containerd/big.toml") is None and found.read(_ROOT) == b""


def test_without_permission(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: t.Any) -> t.NoReturn:
        raise PermissionError(13, "Permission denied")

    write_tree(tmp_path, {_ROOT: ""})
    monkeypatch.setattr(files.os, "open", refuse)
    found = files.Files(str(tmp_path))
    found.gather([_ROOT])
    assert (found.unreadable, found.denied) == ({_ROOT: "permission denied"}, True)


def test_bounds(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILES", 3)
    monkeypatch.setattr(files, "_MAX_ENTRIES", 6)
    found = _gather(tmp_path, {"/etc/containerd/conf.d/%d.toml" % number: "" for number in range(9)})
    assert len(found.contents) == 3
    assert found.truncated == [
        "/etc/containerd/conf.d has more than 6 entries",
        "not all files were read: more than 3 files or %d bytes" % files.MAX_TOTAL_SIZE,
    ]
    assert found.unreadable["/etc/containerd/conf.d/5.toml"] == "not read, there are too many files"


def test_a_name_that_is_no_text(tmp_path: pathlib.Path) -> None:
    write_tree(tmp_path, {_ROOT: ""})
    with open(bytes(tmp_path) + b"/etc/containerd/\xff.toml", "w"):
        pass
    found = files.Files(str(tmp_path))
    found.gather([_ROOT])
    assert sorted(found.contents) == [_ROOT]
    assert found.truncated == ["/etc/containerd has 1 names that are no UTF-8"]


def test_a_file_in_the_place_of_a_directory(tmp_path: pathlib.Path) -> None:
    found = _gather(tmp_path, {_ROOT: 'imports = ["/opt/f/*.toml"]', "/opt/f": ""})
    assert found.list("/opt/f") == [] and "/opt/f" not in found.directories
