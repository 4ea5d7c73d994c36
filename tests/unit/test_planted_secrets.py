# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials in random spellings at random places of random texts. On real nodes: tests/integration/test_planted_secrets.py."""

from __future__ import annotations

import json
import re
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.runtime_gate.plugins.module_utils import toml_spans
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import secrets
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.secrets import Masker, Withheld
from ansible_collections.kubenode.runtime_gate.tests.unit.node_tables import SECRET

_NAMES = ["version", "plugins", "io.containerd.grpc.v1.cri", "registry", "configs", "runtimes", "kata", "a b", "x", "token", "mirrors"]
_SECRET_KEYS = ["password", "auth", "identitytoken", "registry_token", "Authorization", "clientSecret", "PASSWD", "api-key", "credentials", "bearer_x"]


def _escaped(text: str, every: int) -> str:
    """A basic string's inside in which each n-th character is an escape."""
    return "".join("\\u%04x" % ord(char) if every and not index % every else char for index, char in enumerate(text))


@st.composite
def _key(draw: st.DrawFn, name: str) -> str:
    if name.replace("_", "").replace("-", "").isalnum() and draw(st.booleans()):
        return name
    if draw(st.booleans()):
        return "'%s'" % name
    return '"%s"' % _escaped(name, draw(st.integers(0, 3)))


@st.composite
def _path(draw: st.DrawFn, names: t.Sequence[str]) -> str:
    dot = draw(st.sampled_from([".", " . ", ".\t"]))
    return dot.join(draw(_key(name)) for name in names)


@st.composite
def _string(draw: st.DrawFn, text: str) -> str:
    form = draw(st.sampled_from(["basic", "escaped", "literal", "ml", "ml-folded", "ml-literal"]))
    return {
        "basic": '"%s"' % text,
        "escaped": '"%s"' % _escaped(text, draw(st.integers(2, 5))),
        "literal": "'%s'" % text,
        "ml": '"""\n%s"""' % text,
        "ml-folded": '"""%s\\\n   """' % text,
        "ml-literal": "'''%s'''" % text,
    }[form]


@st.composite
def _secret_value(draw: st.DrawFn) -> str:
    value = draw(_string(SECRET))
    form = draw(st.sampled_from(["plain", "array", "table", "deep"]))
    return {
        "plain": value,
        "array": "[%s,\n %s]" % (value, value),
        "table": "{ %s = %s }" % (draw(_key("x")), value),
        "deep": "[{ y = [%s] }]" % value,
    }[form]


@st.composite
def _planted(draw: st.DrawFn) -> str:
    names = draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=4))
    # A child of runtimes is a handler, whatever its name.
    names = [*names, "x"] if names[-1] == "runtimes" else names
    key = draw(st.sampled_from(_SECRET_KEYS))
    value = draw(_secret_value())
    form = draw(st.sampled_from(["header", "dotted", "inline", "array-table", "comment", "url"]))
    if form == "header":
        return "[%s]\n%s = %s\n" % (draw(_path(names)), draw(_key(key)), value)
    if form == "dotted":
        return "%s = %s\n" % (draw(_path([*names, key])), value)
    if form == "inline":
        return "%s = { %s = %s, z = 1 }\n" % (draw(_path(names)), draw(_path(["q", key])), value)
    if form == "array-table":
        return "[[%s]]\n%s = %s # note\n" % (draw(_path(names)), draw(_key(key)), value)
    if form == "comment":
        return "".join("# %s\n" % line for line in ("[%s]\n%s = %s" % (draw(_path(names)), draw(_key(key)), draw(_string(SECRET)))).split("\n"))
    return "%s = [%s]\n" % (draw(_path(names)), draw(_string("https://joe:%s@r.example/x" % SECRET)))


_NOISE = ["", "\n", "# a comment\n", "version = 2\n", '[plugins.x]\na = "b"\n', "t = [1, 2,\n 3]\n", "[z] # why\n"]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(_NOISE), _planted()), min_size=1, max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_any_spelling(pieces: t.List[str], newline: str) -> None:
    text = "".join(pieces).replace("\n", newline)
    document = toml_spans.scan_document(text)
    masked = Masker().toml(text)
    assert SECRET not in masked
    after = toml_spans.scan_document(masked)
    assert SECRET not in json.dumps([[entry.path, entry.string] for entry in after.entries])
    assert [(entry.path, entry.line) for entry in after.entries] == [(entry.path, entry.line) for entry in document.entries]
    assert Masker().toml(masked) == masked


def _names(text: str) -> list[str]:
    """The keys of a text; of one that cannot be scanned (and was found harmless), all its words."""
    try:
        return [part for entry in toml_spans.scan(text) for part in entry.path if isinstance(part, str)]
    except toml_spans.TomlScanError:
        return re.findall(r"[A-Za-z0-9_-]+", text)


@settings(max_examples=200, deadline=None)
@given(_planted(), st.data())
def test_any_damage(text: str, data: st.DataObject) -> None:
    """A text damaged in one place before the secret is either withheld or masked."""
    start = text.find(SECRET)
    if start < 1 or text.startswith("#"):
        return
    place = data.draw(st.integers(0, start - 1))
    damage = data.draw(st.sampled_from(["", '"', "'", "[", "{", "\n", "{{ x }}", "#"]))
    damaged = text[:place] + damage + text[place + 1 :]
    try:
        masked = Masker().toml(damaged)
    except Withheld:
        return
    # The damage may have taken the letter that made the word of a secret.
    assert SECRET not in masked or not any(secrets.is_secret_name(name) for name in _names(masked))


def test_what_cannot_be_masked_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second look: whatever the first one missed, or broke, withholds the text."""
    monkeypatch.setattr(secrets.Masker, "_toml_spans", lambda *_arguments: iter([]))
    with pytest.raises(Withheld, match="line 2 holds a secret"):
        Masker().toml("a = 1\npassword = '%s'" % SECRET)
    for spoiled, words in (("a = ", "cannot be masked"), ("", "change its meaning")):
        monkeypatch.setattr(secrets, "_replace", lambda *_arguments, text=spoiled: text)
        with pytest.raises(Withheld, match=words):
            Masker().toml("a = 1")
