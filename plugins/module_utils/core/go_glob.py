# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Go's ``filepath.Glob``, ``Clean`` and ``Join`` over a known set of paths.

Source of the rules: Go standard library, ``path/filepath/match.go`` and ``path.Clean``. A ``*`` does not cross a
``/``, ``**`` is two stars in one component, ``{a,b}`` has no meaning, names that start with a dot do match.
"""

from __future__ import annotations

import posixpath
import re
import typing as t


class GlobSyntaxError(ValueError):
    """Go's ErrBadPattern: "syntax error in pattern"."""


def clean(path: str) -> str:
    """``filepath.Clean``: the shortest equivalent path; an empty one is ``.``."""
    cleaned = posixpath.normpath(path)
    return "/" + cleaned.lstrip("/") if cleaned.startswith("/") else cleaned


def join(directory: str, path: str) -> str:
    """``filepath.Join`` of two elements."""
    return clean(posixpath.join(directory, path) if directory else path)


def _class_end(pattern: str, start: int) -> t.Tuple[str, int]:
    """The regular expression of the character class that starts after ``[`` at start, and the position behind it."""
    index = start
    negated = pattern[index : index + 1] == "^"
    index += int(negated)
    ranges: t.List[str] = []
    while pattern[index : index + 1] != "]" or not ranges:
        low, index = _class_char(pattern, index)
        high = low
        if pattern[index : index + 1] == "-":
            high, index = _class_char(pattern, index + 1)
        ranges.append("%s-%s" % (re.escape(low), re.escape(high)) if low <= high else "")
        if index >= len(pattern):
            raise GlobSyntaxError(pattern)
    body = "".join(ranges)
    if not body:
        return ("[^/]" if negated else "(?!)"), index + 1
    return "[%s%s]" % ("^/" if negated else "", body), index + 1


def _class_char(pattern: str, index: int) -> t.Tuple[str, int]:
    if index >= len(pattern) or pattern[index] in "-]":
        raise GlobSyntaxError(pattern)
    if pattern[index] == "\\":
        index += 1
        if index >= len(pattern):
            raise GlobSyntaxError(pattern)
    return pattern[index], index + 1


def compile_pattern(pattern: str) -> t.Pattern[str]:
    """The regular expression of a Go glob pattern.

    :raises GlobSyntaxError: the pattern is malformed.
    """
    chunks: t.List[str] = [""]
    components: t.List[t.List[str]] = []
    index = 0
    while index < len(pattern):
        char = pattern[index]
        index += 1
        if char == "*":
            chunks.append("")
        elif char == "?":
            chunks[-1] += "[^/]"
        elif char == "[":
            text, index = _class_end(pattern, index)
            chunks[-1] += text
        elif char == "/":
            components.append(chunks)
            chunks = [""]
        else:
            if char == "\\":
                if index >= len(pattern):
                    raise GlobSyntaxError(pattern)
                char = pattern[index]
                index += 1
            chunks[-1] += re.escape(char)
    components.append(chunks)
    return re.compile("/".join(_component(each, number) for number, each in enumerate(components)) + r"\Z", re.DOTALL)


def _component(chunks: t.Sequence[str], number: int) -> str:
    """The expression of one component of a path, out of what stands between its stars.

    As in match.go a chunk takes the first place where it fits, and the last one the end: every part of a chunk is one character, so going
    back could not help, and many stars cost no more than few. A look-ahead and what it caught are Python 3.8's atomic group.

    :param number: of the component, for names of groups that no other one has.
    """
    made = chunks[0]
    for index, chunk in enumerate(chunks[1:], 1):
        name = "s%d_%d" % (number, index)
        end = r"(?=/|\Z)" if index == len(chunks) - 1 else ""
        made += "(?=(?P<%s>[^/]*?%s%s))(?P=%s)" % (name, chunk, end, name)
    return made


def glob(pattern: str, paths: t.Iterable[str]) -> t.List[str]:
    """The known paths that match, in the order in which Go returns them (byte-wise by component).

    :raises GlobSyntaxError: the pattern is malformed.
    """
    matcher = compile_pattern(pattern)
    found = {path for path in paths if matcher.match(path)}
    return sorted(found, key=lambda path: [part.encode("utf-8", "surrogateescape") for part in path.split("/")])


__all__ = ("GlobSyntaxError", "clean", "compile_pattern", "glob", "join")
