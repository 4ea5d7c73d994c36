# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Go's glob dialect, from the documentation of path/filepath (Match, Clean, Join)."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import go_glob

MATCHES = [
    ("*", "a.toml", True),
    ("*", "d/a.toml", False),
    ("**", "d/a.toml", False),
    ("/d/*.toml", "/d/.hidden.toml", True),
    ("/d/*.toml", "/d/a.TOML", False),
    ("/d/{a,b}.toml", "/d/a.toml", False),
    ("/d/{a,b}.toml", "/d/{a,b}.toml", True),
    ("a?c", "abc", True),
    ("a?c", "a/c", False),
    ("[a-c]x", "bx", True),
    ("[^a-c]x", "bx", False),
    ("[^a-c]x", "/x", False),
    ("[\\-]x", "-x", True),
    ("[c-a]x", "bx", False),
    ("[^c-a]x", "bx", True),
    ("a\\*b", "a*b", True),
    ("a\\*b", "axb", False),
]


@pytest.mark.parametrize(("pattern", "path", "expected"), MATCHES)
def test_match(pattern: str, path: str, expected: bool) -> None:
    assert bool(go_glob.compile_pattern(pattern).match(path)) is expected


@pytest.mark.parametrize("pattern", ["[", "[]", "[-]", "[a-", "[a", "[x-]", "a\\", "[\\", "[^"])
def test_malformed(pattern: str) -> None:
    with pytest.raises(go_glob.GlobSyntaxError):
        go_glob.glob(pattern, ["a"])


def test_order_is_byte_wise_by_component() -> None:
    paths = ["/d/a", "/d/Z", "/d/99-z", "/d/9-b", "/d/10-a", "/e/x"]
    assert go_glob.glob("/d/*", paths) == ["/d/10-a", "/d/9-b", "/d/99-z", "/d/Z", "/d/a"]


@pytest.mark.parametrize(
    ("path", "expected"), [("", "."), ("//a//b", "/a/b"), ("/a/../b/.", "/b"), ("a/./b/", "a/b"), ("../x", "../x")]
)
def test_clean(path: str, expected: str) -> None:
    assert go_glob.clean(path) == expected


def test_join() -> None:
    assert go_glob.join("/etc/containerd", "../x/*.toml") == "/etc/x/*.toml"
    assert go_glob.join("", "x") == "x"
