# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Marks of origin: our lines in a file that belongs to somebody else, and the way back.

A text that was edited is compared with what it was, line by line, and every difference is put between two marks, the
lines that it replaced as comments. So the file tells by itself what is ours, and taking it out needs no memory::

    # >>> kubenode.runtime_gate: managed lines, changes here are overwritten
    #|  default_runtime_name = "runc"
      default_runtime_name = "nvidia"
    # <<< kubenode.runtime_gate
"""

from __future__ import annotations

import difflib
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import BOM
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.secrets import Masker, Withheld

_BEGIN = "# >>> kubenode.runtime_gate"
BEGIN_LINE = _BEGIN + ": managed lines, changes here are overwritten"
END_LINE = "# <<< kubenode.runtime_gate"
#: A line that ours replaced; and a line that says that the owner's last line, before the mark, had no line break.
_WAS, _UNENDED = "#|", "#~"
#: The first line of a file that is ours as a whole.
OWN_FILE = "# Written by kubenode.runtime_gate"


def is_own_file(text: t.Optional[str]) -> bool:
    """The file was made by us, and goes when all of ours goes."""
    return (text or "").startswith(OWN_FILE)


def has_marks(text: str) -> bool:
    return _BEGIN in text


def _lines(text: str) -> t.List[str]:
    """Lines as ``\\n`` ends them, each with its end: str.splitlines would also split at what TOML calls a character."""
    parts = text.split("\n")
    return [line + "\n" for line in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def mark(base: str, edited: str, name: str) -> str:
    """The edited text with a mark around everything in which it differs from ``base``.

    :param name: the file's path, for the message.
    :raises RuntimeGateError: marks cannot be set there: within a string of several lines, or because a replaced line
        would be taken for a secret once it is a comment (it could then not be brought back).
    """
    if base.startswith(BOM) and edited.startswith(BOM):
        return BOM + mark(base[1:], edited[1:], name)
    ending = "\r\n" if "\r\n" in base else "\n"
    before, after = _lines(base), _lines(edited)
    unended = bool(before) and not base.endswith("\n") and before[-1:] != after[-1:]
    if unended:
        before, after = _lines(base + "\n"), _lines(edited if edited.endswith("\n") else edited + "\n")
    hunks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    marked: t.List[str] = []
    for number, (operation, a, b, c, d) in enumerate(hunks):
        if operation == "equal":
            marked += before[a:b]
            continue
        was = [_WAS + (line if line.endswith("\n") else line + "\n") for line in before[a:b]]
        ours = [line if line.endswith("\n") else line + "\n" for line in after[c:d]]
        note = [_UNENDED + ending] if unended and number == len(hunks) - 1 else []
        marked += [BEGIN_LINE + ending, *note, *was, *ours, END_LINE + ending]
    text = "".join(marked)
    _prove(base, edited, text, name)
    return text


def appended(base: str, lines: str) -> str:
    """A text that may be no TOML (a template), with lines of ours at its end."""
    return "%s%s\n%s%s\n" % (base, BEGIN_LINE, lines, END_LINE)


def _prove(base: str, edited: str, marked: str, name: str) -> None:
    if unmark(marked, name) != base:
        raise RuntimeGateError("%s: marks of origin cannot be set in it, use another mode" % name)
    wanted = tree_of(edited, name)
    try:
        same = tree_of(marked, name) == wanted
    except RuntimeGateError:
        same = False
    if not same:
        raise RuntimeGateError(
            "%s: a change falls inside a string of several lines; write that string on one line and run again" % name
        )
    try:
        masked = Masker().toml(marked)
    except Withheld as error:
        raise RuntimeGateError("%s: %s" % (name, error)) from error
    if unmark(masked, name) != Masker().toml(base):
        raise RuntimeGateError(
            "%s: a line that would be replaced could hold a secret, and cannot be kept as a comment; change that line by "
            "hand first" % name
        )


def unmark(text: str, name: str) -> str:
    """The text without anything of ours, as its owner left it. What the owner changed elsewhere stays.

    :raises RuntimeGateError: a mark lacks its end.
    """
    if not has_marks(text):
        return text
    if text.startswith(BOM):
        return BOM + unmark(text[1:], name)
    kept: t.List[str] = []
    opened = 0
    lines = _lines(text)
    for number, line in enumerate(lines, 1):
        if line.strip().startswith(_BEGIN):
            if opened:
                break
            opened = number
        elif not opened:
            kept.append(line)
        elif line.strip().startswith(END_LINE):
            opened = 0
        elif line.startswith(_WAS):
            kept.append(line[len(_WAS) :])
    if opened:
        raise RuntimeGateError(
            "%s, line %d: the line %r has no closing %r; restore it, or delete both with what is ours between them"
            % (name, opened, _BEGIN, END_LINE)
        )
    return "".join(kept)[:-1] if _ends_without_line_break(lines) else "".join(kept)


def own_lines(text: str) -> t.Set[int]:
    """The numbers of the lines between marks, from 1."""
    found: t.Set[int] = set()
    inside = False
    for number, line in enumerate(_lines(text), 1):
        if line.strip().startswith(_BEGIN):
            inside = True
        elif line.strip().startswith(END_LINE):
            inside = False
        elif inside:
            found.add(number)
    return found


def _ends_without_line_break(lines: t.List[str]) -> bool:
    """A mark ends the text and says that what is before it had no line break at its end."""
    if not lines or not lines[-1].strip().startswith(END_LINE):
        return False
    start = max(index for index, line in enumerate(lines) if line.strip().startswith(_BEGIN))
    return any(line.startswith(_UNENDED) for line in lines[start:])


def tree_of(text: str, name: str) -> t.Dict[str, t.Any]:
    """The parsed text (a byte order mark left out).

    :raises RuntimeGateError: it is not TOML.
    """
    import tomllib

    try:
        return tomllib.loads(text[1:] if text.startswith(BOM) else text)
    except (ValueError, RecursionError) as error:
        raise RuntimeGateError("%s is not TOML: %s" % (name, error)) from error


__all__ = ("BEGIN_LINE", "END_LINE", "OWN_FILE", "appended", "has_marks", "is_own_file", "mark", "own_lines", "tree_of", "unmark")
