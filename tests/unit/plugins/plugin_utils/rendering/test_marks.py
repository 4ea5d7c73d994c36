# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import marks

BASES = {
    "plain": 'version = 2\n# a comment\n[a]\nb = "c"\n',
    "no last line break": 'version = 2\n[a]\nb = "c"',
    "a string at the end": '[a]\nb = """\nc\n"""',
    "CRLF without the last": 'version = 2\r\n[a]\r\nb = "c"',
    "CRLF": 'version = 2\r\n[a]\r\nb = "c"\r\n',
    "byte order mark": '\ufeffversion = 2\n[a]\nb = "c"\n',
    "empty": "",
    "form feed in a comment": '# a\x85b\n[a]\nb = "c"\n',
}


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_what_was_marked_comes_back_byte_for_byte(base: str) -> None:
    top = "\ufeffx = 1\n" + base[1:] if base.startswith("\ufeff") else "x = 1\n" + base
    for edited in (top, base + "\n[more]\nd = 1\n", base.replace('"c"', '"changed"'), base.replace("version = 2", "version = 3")):
        marked = marks.mark(base, edited, "f")
        assert marks.unmark(marked, "f") == base
        assert marks.tree_of(marked, "f") == marks.tree_of(edited, "f")
        assert marks.has_marks(marked) is (edited != base)


def test_replaced_lines_are_kept_as_comments() -> None:
    marked = marks.mark("[a]\n  b = 1\nc = 2\n", "[a]\n  b = 3\nc = 2\n", "f")
    assert marked == "[a]\n%s\n#|  b = 1\n  b = 3\n%s\nc = 2\n" % (marks.BEGIN_LINE, marks.END_LINE)


def test_lines_that_the_owner_adds_around_ours_stay() -> None:
    marked = marks.mark("a = 1\n", "a = 1\nb = 2\n", "f")
    assert marks.unmark("z = 0\n" + marked + "c = 3\n", "f") == "z = 0\na = 1\nc = 3\n"


def test_a_line_break_that_the_owner_needs_now_stays() -> None:
    marked = marks.mark("a = 1", "a = 1\nb = 2\n", "f")
    assert marks.unmark(marked, "f") == "a = 1"
    assert marks.unmark(marked + "c = 3\n", "f") == "a = 1\nc = 3\n"


def test_a_mark_without_its_end_is_named() -> None:
    with pytest.raises(RuntimeGateError, match="f, line 2: .* has no closing"):
        marks.unmark("a = 1\n%s\nb = 2\n" % marks.BEGIN_LINE, "f")
    with pytest.raises(RuntimeGateError, match="line 1"):
        marks.unmark("%s\n%s\n%s\n" % (marks.BEGIN_LINE, marks.BEGIN_LINE, marks.END_LINE), "f")


def test_a_change_within_a_long_string_is_refused() -> None:
    with pytest.raises(RuntimeGateError, match="inside a string of several lines"):
        marks.mark('a = """\nx\ny\n"""\n', 'a = """\nx\nz\n"""\n', "f")


def test_a_line_that_would_be_masked_as_a_comment_is_not_replaced() -> None:
    with pytest.raises(RuntimeGateError, match="could hold a secret"):
        marks.mark('[a]\nkind = "basic auth word"\n', '[a]\nkind = "other"\n', "f")


def test_own_files_are_told_by_their_first_line() -> None:
    assert marks.is_own_file(marks.OWN_FILE + " from …\n")
    assert not marks.is_own_file("\n" + marks.OWN_FILE)
    assert not marks.is_own_file(None)
