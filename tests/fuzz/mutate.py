"""Small and large damage to bytes, texts and trees of values, by a random.Random.

What this proves: nothing by itself. Most damage is small, so that an input gets past a parser's first check; some of it is what breaks
parsers: deep nesting, huge numbers, long runs, strange Unicode.
"""

from __future__ import annotations

import random
import typing as t

_DEPTH, _LONG = 3000, (1000, 10000, 100000)
_WORDS = (
    "",
    "\x00",
    "\ufeff",
    "\u2028",
    "\u00b2",  # a digit to str.isdigit, no number to int
    "\u0661",  # a digit of another script
    "\ud800",
    "\U0001f600",
    "\r",
    "'''",
    '"""',
    "[[",
    "]]",
    "{",
    "}",
    "= = =",
    "#",
    "\\u",
    "\\",
    "{{ x }}",
    "0x",
    "1e999",
    "-0",
    "nan",
    "inf",
    "9" * 5000,
    "true",
    "null",
    "~",
    "*",
    "[*",
    "&a *a",
    "!!python/object:os.system",
    "<<:",
    "unix://",
    "://@",
    "a=b=c",
    "--",
    "1979-05-27T07:32:00Z",
)
_RUNS = (*" \t\"'\\[].=,:-#\n@/aA0", "a.", "a=", "a b ", "# ", "://", "\\n", "{{", "a:b@", "-a ", "\r\n", "[a]\n", "'a' ")
_NUMBERS: tuple[t.Any, ...] = (0, -1, 2**63, 10**400, 1.5, float("inf"), float("nan"))
_VALUES: tuple[t.Any, ...] = (None, True, False, *_NUMBERS, "", "x", "\u00b2", "9" * 5000, [], {}, [[]], {"": {}}, [None])


def text(rng: random.Random, original: str, others: t.Sequence[str] = ()) -> str:
    """A damaged text. others: texts of the same kind, to take parts of."""
    made = original
    for _time in range(rng.choice((1, 1, 1, 2, 3, 8))):
        made = rng.choice(_TEXT_CHANGES)(rng, made, others)
    return made[:400000]


def _spot(rng: random.Random, size: int) -> tuple[int, int]:
    start = rng.randint(0, size)
    return start, min(size, start + rng.choice((0, 1, 1, 2, 5, 20, 200)))


def _delete(rng: random.Random, made: str, others: t.Sequence[str]) -> str:
    start, end = _spot(rng, len(made))
    return made[:start] + made[end:]


def _insert(rng: random.Random, made: str, others: t.Sequence[str]) -> str:
    start, _end = _spot(rng, len(made))
    return made[:start] + rng.choice(_WORDS) + made[start:]


def _replace(rng: random.Random, made: str, others: t.Sequence[str]) -> str:
    start, end = _spot(rng, len(made))
    return made[:start] + rng.choice(_WORDS) + made[end:]


def _repeat(rng: random.Random, made: str, others: t.Sequence[str]) -> str:
    start, end = _spot(rng, len(made))
    return made[:end] + made[start:end] * rng.choice((1, 1, 1, 2, 2, 5, 50, 2000)) + made[end:]


def _nest(rng: random.Random, made: str, others: t.Sequence[str]) -> str:
    start, _end = _spot(rng, len(made))
    opening, closing = rng.choice((("[", "]"), ("{a=", "}"), ('{"a":', "}"), ("a.", ""), ("- ", ""), ("(", ")"), ("a: ", "")))
    depth = rng.choice((2, 5, 70, _DEPTH))
    return made[:start] + opening * depth + "1" + closing * rng.choice((depth, 0)) + made[start:]


def _run_of_one(rng: random.Random, made: str, others: t.Sequence[str]) -> str:
    start, _end = _spot(rng, len(made))
    return made[:start] + rng.choice(_RUNS) * rng.choice(_LONG) + made[start:]


def _splice(rng: random.Random, made: str, others: t.Sequence[str]) -> str:
    other = rng.choice(others) if others else made
    (start, _end), (first, last) = _spot(rng, len(made)), sorted((rng.randint(0, len(other)), rng.randint(0, len(other))))
    return made[:start] + other[first:last][:5000] + made[start:]


def _line_twice(rng: random.Random, made: str, others: t.Sequence[str]) -> str:
    lines = made.splitlines(keepends=True) or [""]
    lines.insert(rng.randint(0, len(lines)), rng.choice(lines))
    return "".join(lines)


def _lines_swapped(rng: random.Random, made: str, others: t.Sequence[str]) -> str:
    lines = made.splitlines(keepends=True)
    rng.shuffle(lines)
    return "".join(lines)


def _cut(rng: random.Random, made: str, others: t.Sequence[str]) -> str:
    return made[: rng.randint(0, len(made))]


_TEXT_CHANGES = (_delete, _delete, _insert, _insert, _replace, _replace, _repeat, _nest, _run_of_one, _splice, _line_twice, _lines_swapped, _cut)


def raw(rng: random.Random, original: bytes, others: t.Sequence[bytes] = ()) -> bytes:
    """Damaged bytes: single ones, and what happens to texts."""
    if rng.random() < 0.4:
        changed = text(rng, original.decode("latin-1"), [other.decode("latin-1") for other in others[:4]])
        return changed.encode("latin-1", "replace")
    made = bytearray(original)
    for _time in range(rng.choice((1, 1, 2, 5, 20))):
        place = rng.randint(0, len(made))
        kind = rng.randrange(3)
        if kind == 0 and place < len(made):
            made[place] = rng.randrange(256)
        elif kind == 1:
            made[place:place] = bytes(rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256))) for _byte in range(rng.choice((1, 4, 10))))
        else:
            del made[place : place + rng.choice((1, 2, 8))]
    return bytes(made)


def tree(rng: random.Random, original: t.Any) -> t.Any:
    """A damaged copy of a tree of dictionaries, lists and scalars."""
    made = _copy(original)
    for _time in range(rng.choice((1, 1, 2, 4, 10))):
        made = _changed(rng, made)
    return made


def _copy(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    return [_copy(inner) for inner in value] if isinstance(value, list) else value


def _changed(rng: random.Random, made: t.Any) -> t.Any:
    """One change somewhere in the tree."""
    if not isinstance(made, (dict, list)) or not made or rng.random() < 0.15:
        return _other(rng, made)
    keys = list(made) if isinstance(made, dict) else list(range(len(made)))
    key = rng.choice(keys)
    kind = rng.random()
    if kind < 0.1:
        del made[key]
    elif kind < 0.2 and isinstance(made, dict):
        made[rng.choice(("", "name", "metadata", "\u00b2", "x" * 300))] = made.pop(key)
    elif kind < 0.25 and isinstance(made, list):
        made.append(_copy(made[key]))
    else:
        made[key] = _changed(rng, made[key])
    return made


def _other(rng: random.Random, made: t.Any) -> t.Any:
    kind = rng.random()
    if isinstance(made, str) and kind < 0.5:
        return text(rng, made)
    if kind < 0.6:
        return [made]
    if kind < 0.7:
        return {"a": made}
    if kind < 0.73:
        for _level in range(rng.choice((10, 200))):
            made = {"a": made} if rng.random() < 0.5 else [made]
        return made
    return _copy(rng.choice(_VALUES))
