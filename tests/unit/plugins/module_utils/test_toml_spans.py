# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scanner against tables, against tomllib on every recorded case, and against texts that must be refused."""

from __future__ import annotations

import pathlib
import time

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils import toml_spans

CASES = pathlib.Path(__file__).resolve().parents[3] / "cases"

# text, [(kind, path, line, raw, decoded string)]
SCANS = [
    ("", []),
    ("\ufeff# only a comment\r\n", []),
    ("version = 2\n", [("value", ("version",), 1, "2", None)]),
    ("a = 'C:\\x'", [("value", ("a",), 1, "'C:\\x'", "C:\\x")]),
    ('"a.b" . c = "x\\ty" # end', [("value", ("a.b", "c"), 1, '"x\\ty"', "x\ty")]),
    ("'lit.key' = true", [("value", ("lit.key",), 1, "true", None)]),
    ('"q\\u0075ote" = 1', [("value", ("quote",), 1, "1", None)]),
    (
        "[a]\r\nb = 1\r\n\r\n[ a . 'c' ]\r\nd = \"e\"",
        [
            ("table", ("a",), 1, "[a]", None),
            ("value", ("a", "b"), 2, "1", None),
            ("table", ("a", "c"), 4, "[ a . 'c' ]", None),
            ("value", ("a", "c", "d"), 5, '"e"', "e"),
        ],
    ),
    (
        "[[a]]\nx = 1\n[a.b]\n[[a]]\n[[a.c]]\n[[a.c]]",
        [
            ("array_table", ("a", 0), 1, "[[a]]", None),
            ("value", ("a", 0, "x"), 2, "1", None),
            ("table", ("a", 0, "b"), 3, "[a.b]", None),
            ("array_table", ("a", 1), 4, "[[a]]", None),
            ("array_table", ("a", 1, "c", 0), 5, "[[a.c]]", None),
            ("array_table", ("a", 1, "c", 1), 6, "[[a.c]]", None),
        ],
    ),
    (
        "a = { b.c = 'x', d = [1, {e = \"f\"}] }",
        [
            ("value", ("a",), 1, "{ b.c = 'x', d = [1, {e = \"f\"}] }", None),
            ("value", ("a", "b", "c"), 1, "'x'", "x"),
            ("value", ("a", "d"), 1, '[1, {e = "f"}]', None),
            ("element", ("a", "d", 0), 1, "1", None),
            ("element", ("a", "d", 1), 1, '{e = "f"}', None),
            ("value", ("a", "d", 1, "e"), 1, '"f"', "f"),
        ],
    ),
    (
        "a = [ # one\n  'x', # two\n  'y',\n]\nb = []\nc = {}",
        [
            ("value", ("a",), 1, "[ # one\n  'x', # two\n  'y',\n]", None),
            ("element", ("a", 0), 2, "'x'", "x"),
            ("element", ("a", 1), 3, "'y'", "y"),
            ("value", ("b",), 5, "[]", None),
            ("value", ("c",), 6, "{}", None),
        ],
    ),
    (
        'a = """\nb"c\\\n   d""\\""""""\ne = 1',
        [("value", ("a",), 1, '"""\nb"c\\\n   d""\\""""""', 'b"cd"""""'), ("value", ("e",), 4, "1", None)],
    ),
    ("a = '''\r\n[x]\n'y'''''", [("value", ("a",), 1, "'''\r\n[x]\n'y'''''", "[x]\n'y''")]),
    ('a = ""\nb = \'\'\nc = """"""', [
        ("value", ("a",), 1, '""', ""),
        ("value", ("b",), 2, "''", ""),
        ("value", ("c",), 3, '""""""', ""),
    ]),
    ('a = "\\x41\\e\\U0001F600\\b\\f\\n\\r\\"\\\\"', [
        ("value", ("a",), 1, '"\\x41\\e\\U0001F600\\b\\f\\n\\r\\"\\\\"', 'A\x1b\U0001f600\b\f\n\r"\\'),
    ]),
    ("a = {\n b = 1, # note\n}", [
        ("value", ("a",), 1, "{\n b = 1, # note\n}", None),
        ("value", ("a", "b"), 2, "1", None),
    ]),
]  # fmt: skip


@pytest.mark.parametrize("text, expected", SCANS)
def test_scan(text: str, expected: list) -> None:
    found = [(entry.kind, entry.path, entry.line, entry.raw, entry.string) for entry in toml_spans.scan(text)]
    assert found == expected


@pytest.mark.parametrize(
    "scalar",
    ["0", "-17", "+1_000", "0xDEAD_beef", "0o755", "0b11", "3.14", "-1e-9", "6.02E+23", "inf", "-nan", "false",
     "1979-05-27", "1979-05-27T07:32:00Z", "1979-05-27 07:32:00.5-07:00", "07:32:00", "07:32"],
)  # fmt: skip
def test_scalars(scalar: str) -> None:
    (entry,) = toml_spans.scan("a = %s # b" % scalar)
    assert (entry.form, entry.raw) == ("scalar", scalar)


# text, line of the doubt
REFUSED = [
    ("a", 1),
    ("a = ", 1),
    ("\na = word", 2),
    ("a = 12abc", 1),
    ("a = 1 b = 2", 1),
    ("a = 'x' 'y'", 1),
    ("a = 'x\n'", 1),
    ('a = "x\n"', 1),
    ('\n\na = """x', 3),
    ("a = '''x", 1),
    ('a = """x""""""', 1),
    ('a = "\\q"', 1),
    ('a = "\\uD800"', 1),
    ('a = "\\U00110000"', 1),
    ('"\\q" = 1', 1),
    ("a = [1", 1),
    ("a = [1 2]", 1),
    ("a = [,]", 1),
    ("a = {b = 1", 1),
    ("a = {b}", 1),
    ("a = {b = 1 c = 2}", 1),
    ("[a", 1),
    ("[[a]", 1),
    ("[a] b = 1", 1),
    ("[]", 1),
    ("[a.]", 1),
    ("schlüssel = 1", 1),
    ("{{ template \"base\" . }}", 1),
    ("a = 1\rb = 2", 1),
    ("# note\rpassword = 'x'", 1),
    ("a = 1\n\x00", 2),
    ("a = %s1%s" % ("[" * 100, "]" * 100), 1),
]  # fmt: skip


@pytest.mark.parametrize("text, line", REFUSED)
def test_refused(text: str, line: int) -> None:
    with pytest.raises(toml_spans.TomlScanError) as caught:
        toml_spans.scan(text)
    assert caught.value.line == line
    assert str(caught.value).startswith("line %d: " % line)


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
