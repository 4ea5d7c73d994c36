# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applies the ``fix_edits`` of faults to texts: line by line, so that everything else stays as it is written."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils import toml_spans
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.toml_text import toml_library

Path = t.Tuple[str, ...]
Edit = t.Mapping[str, t.Any]


def apply_edits(files: t.Mapping[str, str], edits: t.Iterable[Edit]) -> t.Dict[str, str]:
    """The texts with all edits done, in order.

    :param files: path → text; every file that an edit names must be among them, or be creatable by ``set``.
    :param edits: dictionaries with op, file, table, key and value, as faults carry them.
    :raises RuntimeGateError: an edit cannot be done in the text (an unknown op, a table inside an inline table).
    """
    texts = dict(files)
    for edit in edits:
        operation = _OPERATIONS.get(str(edit["op"]))
        if operation is None:
            raise RuntimeGateError("fix_edits: the operation %r is unknown" % edit["op"])
        path = str(edit["file"])
        try:
            texts[path] = operation(texts.get(path, ""), edit)
        except toml_spans.TomlScanError as error:
            raise RuntimeGateError("fix_edits: %s cannot be edited: %s" % (path, error)) from error
    return texts


def _key_path(header: str) -> Path:
    """The path of a table header's text; "" is the top level."""
    if not header:
        return ()
    entries = toml_spans.scan("[%s]\n" % header)
    return tuple(str(part) for part in entries[0].path)


def _toml(value: t.Any) -> str:
    return toml_library().item(value).as_string()


def _find(text: str, path: Path) -> t.Optional[t.Any]:
    """The entry of a key with a value (the last one, should there be two)."""
    found = [entry for entry in toml_spans.scan(text) if entry.kind == "value" and tuple(entry.path) == path]
    return found[-1] if found else None


def _headers(text: str) -> t.List[t.Any]:
    return [entry for entry in toml_spans.scan(text) if entry.kind in ("table", "array_table")]


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def _line_end(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end + 1


def _insert(text: str, offset: int, line: str) -> str:
    before = text[:offset]
    if before and not before.endswith("\n"):
        before += "\n"
    return before + line + "\n" + text[offset:]


def _set(text: str, edit: Edit) -> str:
    table, key = _key_path(str(edit["table"])), str(edit["key"])
    entry = _find(text, table + (key,))
    if entry is not None:
        return text[: entry.start] + _toml(edit["value"]) + text[entry.end :]
    line = "%s = %s" % (_toml_key(key), _toml(edit["value"]))
    if not table:
        return _insert(text, 1 if text.startswith("\ufeff") else 0, line)
    for header in _headers(text):
        if tuple(header.path) == table and header.kind == "table":
            indent = text[_line_start(text, header.start) : header.start]
            return _insert(text, _line_end(text, header.end), indent + "  " + line)
    inline = _find(text, table)
    if inline is not None:
        return _set_inline(text, inline, line)
    separator = "" if not text or text.endswith("\n") else "\n"
    return "%s%s\n[%s]\n%s\n" % (text, separator, edit["table"], line)


def _set_inline(text: str, inline: t.Any, pair: str) -> str:
    """One more pair in an inline table."""
    body = text[inline.start : inline.end]
    if not body.startswith("{"):
        raise RuntimeGateError("fix_edits: line %d is not a table" % inline.line)
    inner = body[1:-1].strip()
    return text[: inline.start] + "{ %s%s }" % (inner + ", " if inner else "", pair) + text[inline.end :]


def _toml_key(key: str) -> str:
    return toml_library().key(key).as_string()


def _unset(text: str, edit: Edit) -> str:
    path = _key_path(str(edit["table"])) + (str(edit["key"]),)
    entry = _find(text, path)
    if entry is None:
        return _drop(text, path)
    inline = _inline_table_around(text, entry)
    if inline is not None:
        return _unset_inline(text, entry, inline)
    return text[: _line_start(text, entry.start)] + text[_line_end(text, entry.end) :]


def _inline_table_around(text: str, entry: t.Any) -> t.Optional[t.Any]:
    """The innermost inline table in which an entry stands, or None."""
    around = [other for other in toml_spans.scan(text) if other.form == "inline_table" and other.start < entry.start and entry.end < other.end]
    return around[-1] if around else None


def _unset_inline(text: str, entry: t.Any, inline: t.Any) -> str:
    """Without one pair of an inline table, nor the comma that parts it from its neighbour."""
    inside = [other for other in toml_spans.scan(text) if inline.start < other.start and other.end < inline.end]
    pairs = [one for one in inside if not any(other.start <= one.start and one.end <= other.end and other is not one for other in inside)]
    place = [pair.start for pair in pairs].index(entry.start)
    if place:
        return text[: pairs[place - 1].end] + text[entry.end :]
    behind = text.index(",", entry.end) + 1 if len(pairs) > 1 else entry.end
    return text[: inline.start + 1] + text[behind:]


def _list_of(text: str, edit: Edit) -> t.List[t.Any]:
    entry = _find(text, _key_path(str(edit["table"])) + (str(edit["key"]),))
    if entry is None:
        return []
    import tomllib

    return list(tomllib.loads("x = " + entry.raw)["x"])


def _add(text: str, edit: Edit) -> str:
    values = _list_of(text, edit)
    if edit["value"] in values:
        return text
    path = _key_path(str(edit["table"])) + (str(edit["key"]),)
    array = _find(text, path)
    if array is None or array.form != "array":
        return _set(text, dict(edit, value=values + [edit["value"]]))
    # Behind the last element, so that comments and line breaks of the list stay.
    elements = [entry for entry in toml_spans.scan(text) if entry.kind == "element" and tuple(entry.path[:-1]) == path]
    place, separator = (elements[-1].end, ", ") if elements else (array.start + 1, "")
    return text[:place] + separator + _toml(edit["value"]) + text[place:]


def _append(text: str, edit: Edit) -> str:
    """A text of whole tables at the end of the file."""
    separator = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return text + separator + str(edit["value"])


def _discard(text: str, edit: Edit) -> str:
    values = _list_of(text, edit)
    kept = [value for value in values if value != edit["value"]]
    return text if kept == values else _set(text, dict(edit, value=kept))


def _rename_table(text: str, edit: Edit) -> str:
    """Every header at or below the table gets the new path; a table that is not there is renamed already."""
    old, new = _key_path(str(edit["table"])), _key_path(str(edit["value"]))
    for header in reversed(_headers(text)):
        path = tuple(str(part) for part in header.path)
        if path[: len(old)] == old:
            brackets = ("[[", "]]") if header.kind == "array_table" else ("[", "]")
            name = ".".join(_toml_key(part) for part in new + path[len(old) :])
            text = text[: header.start] + brackets[0] + name + brackets[1] + text[header.end :]
    if _find(text, old) is not None:
        text = _move_inline(text, old, new)
    return text


def _move_inline(text: str, old: Path, new: Path) -> str:
    """A table that is written as one inline value gets a header of its own."""
    entry = _find(text, old)
    if entry is None:
        return text
    start, end = _line_start(text, entry.start), _line_end(text, entry.end)
    header = "[%s]" % ".".join(_toml_key(part) for part in new[:-1])
    moved = "%s\n%s = %s\n" % (header, _toml_key(new[-1]), entry.raw)
    return text[:start] + text[end:] + ("" if text.endswith("\n") else "\n") + moved


def _drop_table(text: str, edit: Edit) -> str:
    return _drop(text, _key_path(str(edit["table"])))


def _drop(text: str, path: Path) -> str:
    """Without the table, everything below it included."""
    headers = _headers(text)
    for index in range(len(headers) - 1, -1, -1):
        if tuple(headers[index].path)[: len(path)] == path:
            start = _line_start(text, headers[index].start)
            end = _line_start(text, headers[index + 1].start) if index + 1 < len(headers) else len(text)
            text = text[:start] + text[end:]
    return text


def _drop_bom(text: str, edit: Edit) -> str:
    return text[1:] if text.startswith("\ufeff") else text


_OPERATIONS: t.Dict[str, t.Callable[[str, Edit], str]] = {
    "set": _set,
    "prepend": _set,
    "unset": _unset,
    "add": _add,
    "append": _append,
    "discard": _discard,
    "rename_table": _rename_table,
    "drop_table": _drop_table,
    "drop_bom": _drop_bom,
}


__all__ = ("apply_edits",)
