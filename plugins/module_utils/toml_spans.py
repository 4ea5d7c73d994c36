# Copyright (c) The kubenode.runtime_gate contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where things stand in a TOML text: the position of every table, key and string.

No value is judged here: numbers and dates are taken as they are written, duplicate keys are reported twice.
What matters is certainty about *extent*: masking replaces spans of text, so a text whose spans are in doubt
is refused (:class:`TomlScanError`), and the caller withholds it.

Grammar: https://toml.io/en/v1.0.0, and from 1.1 what older readers refuse anyway (line breaks, comments and a last
comma in inline tables, the escapes ``\\e`` and ``\\xHH``). Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import re
import typing as t

Path = t.Tuple[t.Union[str, int], ...]

#: Nested arrays and inline tables; deeper is refused (no configuration needs it, and recursion must be bounded).
MAX_DEPTH = 64

_SPACE = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\n]|\r\n)*")
_COMMENT = re.compile(r"#[^\n\r]*")
_LINE_END = re.compile(r"[ \t]*(?:\n|\r\n|\Z)")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# A dotted key without escapes, with the blanks around it, and its parts.
_PLAIN_PART = re.compile(r"""[A-Za-z0-9_-]+|"[^"\\\n\r]*"|'[^'\n\r]*'""")
_PLAIN_KEY = re.compile(rf"[ \t]*((?:{_PLAIN_PART.pattern})(?:[ \t]*\.[ \t]*(?:{_PLAIN_PART.pattern}))*)[ \t]*")
_BASIC = re.compile(r'"([^"\\\n\r]*(?:\\[^\n\r][^"\\\n\r]*)*)"')
_LITERAL = re.compile(r"'([^'\n\r]*)'")
# A run of up to five quotes ends a multi-line string: the last three are the delimiter.
_ML_BASIC = re.compile(r'"""([^"\\]*(?:(?:\\[\s\S]|"{1,2}(?!"))[^"\\]*)*"{0,2})"""(?!")')
_ML_LITERAL = re.compile(r"'''([^']*(?:'{1,2}(?!')[^']*)*'{0,2})'''(?!')")
_MULTI_LINE = {'"""': _ML_BASIC, "'''": _ML_LITERAL}
_SCALAR = re.compile(
    r"true|false"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[Tt ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})?)?"
    r"|[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?"
    r"|[+-]?(?:inf|nan|0x[0-9A-Fa-f_]+|0o[0-7_]+|0b[01_]+|[0-9][0-9_]*(?:\.[0-9][0-9_]*)?(?:[eE][+-]?[0-9][0-9_]*)?)"
)
_ESCAPE = re.compile(r"\\(?:([btnfre\"\\])|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})|([ \t]*\r?\n[ \t\r\n]*)|)")
_SHORT_ESCAPES = {
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    '"': '"',
    "\\": "\\",
}
_BOM = "\ufeff"


class TomlScanError(Exception):
    """The text cannot be scanned with certainty.

    :ivar line: 1-based line of the place that is in doubt.
    """

    def __init__(self, line: int, reason: str) -> None:
        super().__init__("line %d: %s" % (line, reason))
        self.line = line
        self.reason = reason


class Entry:
    """One table header, key/value pair or array element.

    :ivar kind: ``table``, ``array_table``, ``value`` (a key with its value) or ``element`` (of an array).
    :ivar path: decoded key parts from the root; an int is the index in an array (also of an array of tables).
    :ivar line: 1-based line on which the value (of tables: the header) starts.
    :ivar start: offset of the value (of tables: of the header's first bracket) in the text, in characters.
    :ivar end: offset just behind it.
    :ivar form: of values: ``string``, ``array``, ``inline_table`` or ``scalar``; of tables: ``table``.
    :ivar string: the decoded text of a string, else None.
    """

    __slots__ = ("_text", "kind", "path", "line", "start", "end", "form", "string")

    def __init__(self, text: str, kind: str, path: Path, line: int, start: int, form: str = "table") -> None:
        self._text = text
        self.kind = kind
        self.path = path
        self.line = line
        self.start = start
        self.end = start
        self.form = form
        self.string: t.Optional[str] = None

    @property
    def raw(self) -> str:
        """The text of the span as it is written."""
        return self._text[self.start : self.end]

    def __repr__(self) -> str:
        return "Entry(%s, %r, line %d)" % (self.kind, self.path, self.line)


class Comment(t.NamedTuple):
    """One comment, from its ``#`` to the end of its line (both offsets in characters)."""

    line: int
    start: int
    end: int


class Document(t.NamedTuple):
    """Everything found in one text, in file order."""

    entries: t.List[Entry]
    comments: t.List[Comment]


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 1 if text.startswith(_BOM) else 0
        self.entries: t.List[Entry] = []
        self.comments: t.List[Comment] = []
        self._counted_to = 0
        self._line = 1
        self._array_lengths: t.Dict[Path, int] = {}

    def line_here(self) -> int:
        """The line of ``pos``; positions only ever grow, so each newline is counted once."""
        self._line += self.text.count("\n", self._counted_to, self.pos)
        self._counted_to = self.pos
        return self._line

    def fail(self, reason: str) -> t.NoReturn:
        raise TomlScanError(self.line_here(), reason)

    def peek(self, prefix: str) -> bool:
        return self.text.startswith(prefix, self.pos)

    def skip(self, pattern: t.Pattern[str]) -> None:
        match = pattern.match(self.text, self.pos)
        if match:
            self.pos = match.end()

    def take_comment(self) -> bool:
        match = _COMMENT.match(self.text, self.pos)
        if not match:
            return False
        self.comments.append(Comment(self.line_here(), match.start(), match.end()))
        self.pos = match.end()
        return True

    def skip_gap(self) -> None:
        """Blanks, line breaks and comments."""
        self.skip(_GAP)
        while self.peek("#") and self.take_comment():
            self.skip(_GAP)

    def end_line(self, what: str) -> None:
        match = _LINE_END.match(self.text, self.pos)
        if not match:
            self.skip(_SPACE)
            self.take_comment()
            match = _LINE_END.match(self.text, self.pos)
        if not match:
            self.fail("unexpected text after %s" % what)
        self.pos = match.end()

    def document(self) -> Document:
        prefix: Path = ()
        self.skip_gap()
        while self.pos < len(self.text):
            if self.peek("["):
                prefix = self.header()
                self.end_line("a table header")
            else:
                self.pair(prefix, 0)
                self.end_line("a value")
            self.skip_gap()
        return Document(self.entries, self.comments)

    def header(self) -> Path:
        is_array = self.peek("[[")
        entry = Entry(self.text, "array_table" if is_array else "table", (), self.line_here(), self.pos)
        self.pos += 2 if is_array else 1
        entry.path = self.table_path(self.key(), is_array)
        closing = "]]" if is_array else "]"
        if not self.peek(closing):
            self.fail("a table header without its %r" % closing)
        self.pos += len(closing)
        entry.end = self.pos
        self.entries.append(entry)
        return entry.path

    def table_path(self, keys: t.Tuple[str, ...], is_array: bool) -> Path:
        """The path of a header, with the index of the current element after each array of tables on the way."""
        path: Path = ()
        for position, key in enumerate(keys):
            path += (key,)
            if is_array and position == len(keys) - 1:
                self._array_lengths[path] = self._array_lengths.get(path, 0) + 1
            if path in self._array_lengths:
                path += (self._array_lengths[path] - 1,)
        return path

    def key(self) -> t.Tuple[str, ...]:
        """A dotted key, with the blanks around it."""
        parts: t.List[str] = []
        while True:
            match = _PLAIN_KEY.match(self.text, self.pos)
            if match:
                parts += [part[1:-1] if part[0] in "\"'" else part for part in _PLAIN_PART.findall(match.group(1))]
                self.pos = match.end()
            else:
                parts.append(self.escaped_key())
            if not self.peek("."):
                return tuple(parts)
            self.pos += 1

    def escaped_key(self) -> str:
        self.skip(_SPACE)
        match = _BASIC.match(self.text, self.pos)
        if not match:
            self.fail("not a TOML key")
        part = self.unescape(match.group(1))
        self.pos = match.end()
        self.skip(_SPACE)
        return part

    def pair(self, prefix: Path, depth: int) -> None:
        path = prefix + self.key()
        if not self.peek("="):
            self.fail("a key without '='")
        self.pos += 1
        self.skip(_SPACE)
        self.value("value", path, depth)

    def value(self, kind: str, path: Path, depth: int) -> None:
        if depth > MAX_DEPTH:
            self.fail("nested deeper than %d levels" % MAX_DEPTH)
        entry = Entry(self.text, kind, path, self.line_here(), self.pos)
        self.entries.append(entry)
        if self.peek("["):
            entry.form = "array"
            self.array(path, depth + 1)
        elif self.peek("{"):
            entry.form = "inline_table"
            self.inline_table(path, depth + 1)
        elif self.peek('"') or self.peek("'"):
            entry.form = "string"
            entry.string = self.string()
        else:
            entry.form = "scalar"
            self.scalar()
        entry.end = self.pos

    def array(self, path: Path, depth: int) -> None:
        self.pos += 1
        index = 0
        while True:
            self.skip_gap()
            if self.peek("]"):
                self.pos += 1
                return
            self.value("element", path + (index,), depth)
            index += 1
            self.separator("]", "an array")

    def inline_table(self, path: Path, depth: int) -> None:
        self.pos += 1
        while True:
            self.skip_gap()
            if self.peek("}"):
                self.pos += 1
                return
            self.pair(path, depth)
            self.separator("}", "an inline table")

    def separator(self, closing: str, what: str) -> None:
        self.skip_gap()
        if self.peek(","):
            self.pos += 1
        elif not self.peek(closing):
            self.fail("%s without its %r" % (what, closing))

    def string(self) -> str:
        opening = self.text[self.pos : self.pos + 3]
        pattern = _MULTI_LINE.get(opening)
        if pattern is None:
            opening = opening[:1]
            pattern = _BASIC if opening == '"' else _LITERAL
        match = pattern.match(self.text, self.pos)
        if not match:
            self.fail("a string that does not end")
        inner = match.group(1)
        if len(opening) == 3:
            inner = re.sub(r"\A\r?\n", "", inner)
        decoded = self.unescape(inner) if opening[0] == '"' else inner
        self.pos = match.end()
        return decoded

    def unescape(self, inner: str) -> str:
        return _ESCAPE.sub(self.one_escape, inner) if "\\" in inner else inner

    def one_escape(self, match: t.Match[str]) -> str:
        short, code4, code8, code2, folded = match.groups()
        if short:
            return _SHORT_ESCAPES[short]
        if folded is not None:
            return ""
        number = int(code4 or code8 or code2 or "FFFFFFFF", 16)
        if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
            self.fail("an escape that TOML does not have")
        return chr(number)

    def scalar(self) -> None:
        match = _SCALAR.match(self.text, self.pos)
        if not match:
            self.fail("not a TOML value")
        self.pos = match.end()
        # "12abc" must not pass as 12 followed by something.
        if _BARE_KEY.match(self.text, self.pos):
            self.fail("not a TOML value")


def scan_document(text: str) -> Document:
    """Entries and comments of a TOML text, in file order.

    :raises TomlScanError: the extent of something is in doubt.
    """
    return _Scanner(text).document()


def scan(text: str) -> t.List[Entry]:
    """The entries of a TOML text, in file order; an inline table or array stands before what it contains.

    :raises TomlScanError: the extent of something is in doubt.
    """
    return scan_document(text).entries


def _is_table(entry: Entry) -> bool:
    return entry.kind in ("table", "array_table") or entry.form == "inline_table"


def table_lines(text: str) -> t.Dict[Path, int]:
    """Path of each table -> the 1-based line where it is first written.

    A header or inline table counts before the implicit tables that a longer path or a dotted key creates; an implicit
    table has the line of the first header or key that implies it.

    :raises TomlScanError: the extent of something is in doubt.
    """
    written: t.Dict[Path, int] = {}
    implied: t.Dict[Path, int] = {}
    for entry in scan(text):
        if _is_table(entry):
            written.setdefault(entry.path, entry.line)
        for length in range(1, len(entry.path)):
            implied.setdefault(entry.path[:length], entry.line)
    implied.update(written)
    return implied


def key_lines(text: str) -> t.Dict[Path, int]:
    """Path of each table, key and array element -> the 1-based line where it is first written.

    :raises TomlScanError: the extent of something is in doubt.
    """
    lines: t.Dict[Path, int] = {}
    for entry in scan(text):
        lines.setdefault(entry.path, entry.line)
    return lines
