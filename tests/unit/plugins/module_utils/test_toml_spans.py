# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scanner against tomllib on every recorded case; its tables are in node_tables.py."""

from __future__ import annotations

import pathlib
import time

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils import toml_spans

CASES = pathlib.Path(__file__).resolve().parents[3] / "cases"


def test_comments() -> None:
    text = "# one\na = [ # two\n  1 ] # three\r\nb = '# no'\n"
    found = [(comment.line, text[comment.start : comment.end]) for comment in toml_spans.scan_document(text).comments]
    assert found == [(1, "# one"), (2, "# two"), (3, "# three")]


def test_lines() -> None:
    text = "[a.b]\nc.d = {e = 1}\n[a]\nf = 2\n[a.b.g]\nf = 3\n"
    assert toml_spans.table_lines(text) == {
        ("a",): 3,
        ("a", "b"): 1,
        ("a", "b", "c"): 2,
        ("a", "b", "c", "d"): 2,
        ("a", "b", "g"): 5,
    }
    assert toml_spans.key_lines(text) == {
        ("a", "b"): 1,
        ("a", "b", "c", "d"): 2,
        ("a", "b", "c", "d", "e"): 2,
        ("a",): 3,
        ("a", "f"): 4,
        ("a", "b", "g"): 5,
        ("a", "b", "g", "f"): 6,
    }


def _paths(value: object, path: tuple = ()) -> dict:
    """Every key path and element of a parsed document -> its value."""
    found = {}
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        found[path + (key,)] = inner
        found.update(_paths(inner, path + (key,)))
    return found


def test_agrees_with_tomllib_on_every_case() -> None:
    tomllib = pytest.importorskip("tomllib")
    compared = 0
    for file in sorted(CASES.glob("**/*.toml*")):
        text = file.read_text(encoding="utf-8")
        try:
            expected = _paths(tomllib.loads(text))
        except tomllib.TOMLDecodeError:
            continue
        entries = toml_spans.scan(text)
        prefixes = {entry.path[:length] for entry in entries for length in range(1, len(entry.path) + 1)}
        assert prefixes == set(expected), file
        assert all(expected[entry.path] == entry.string for entry in entries if entry.form == "string"), file
        compared += 1
    assert compared > 300


def test_large_texts_are_scanned_in_bounded_time() -> None:
    mirror = '[plugins."io.containerd.grpc.v1.cri".registry.mirrors."h%d"]\n  endpoint = ["https://a%d"]\n'
    text = "".join(mirror % (number, number) for number in range(3500))
    assert len(text) > 300_000
    began = time.process_time()
    assert len(toml_spans.scan(text)) == 3 * 3500
    assert time.process_time() - began < 1.0


def test_repr_names_the_place() -> None:
    assert repr(toml_spans.scan("a = 1")[0]) == "Entry(value, ('a',), line 1)"
