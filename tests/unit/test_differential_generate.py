"""The generator of random configurations: reproducible, varied, and its account agrees with an independent parse of its texts."""

from __future__ import annotations

import pytest
import tomllib

from tests.differential import generate
from tests.testbed.tools import LINES

NUMBERS = range(60)


def _trees(line: str) -> list[generate.Tree]:
    return [generate.make(7, number, line) for number in NUMBERS]


def test_a_seed_and_a_number_name_one_tree() -> None:
    """The same arguments give the same texts, other ones others."""
    first, again, other = generate.make(1, 2, "2.1"), generate.make(1, 2, "2.1"), generate.make(2, 2, "2.1")
    assert first == again
    assert first.before() != other.before()


@pytest.mark.parametrize("line", LINES)
def test_trees_vary(line: str) -> None:
    """Tidy and wild ones, with and without an edit, on every line."""
    trees = _trees(line)
    assert {"tidy", "wild"} <= {ingredient for tree in trees for ingredient in tree.ingredients}
    assert {True, False} == {tree.stale for tree in trees}
    assert len({ingredient for tree in trees for ingredient in tree.ingredients}) > 15


def _tables(document: object) -> set[str]:
    """Keys of every table named runtimes, in any case of letters, wherever it stands."""
    if not isinstance(document, dict):
        return set()
    here = {name for key, value in document.items() if key.lower() == "runtimes" and isinstance(value, dict) for name in value}
    return here.union(*(_tables(value) for value in document.values()))


@pytest.mark.parametrize("line", LINES)
def test_the_account_is_what_stands_in_the_files(line: str) -> None:
    """Every file that is TOML declares the handlers of the account, and only those: read back by another parser."""
    checked = 0
    for tree in _trees(line):
        for file in tree.final():
            text = file.render().lstrip("\ufeff")
            try:
                document = tomllib.loads(text)
            except tomllib.TOMLDecodeError:
                assert file.broken, text
                continue
            assert _tables(document) == {handler.name for handler in file.handlers + file.also}, text
            checked += 1
    assert checked > 60


def test_backup_copies_are_not_declared() -> None:
    """A handler that stands only in a backup copy is none of the account."""
    tree = generate.Tree([generate.File("/etc/containerd/config.toml.bak", 2, '"x"', [generate.Handler("old", "t")])])
    assert tree.declared() == []
