"""The generator of random configurations: reproducible, varied, and its account agrees with an independent parse of its texts."""

from __future__ import annotations

import random

import pytest
import tomllib

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.catalogue import NAMES
from tests.differential import aims, generate, parts, possible, rehearsal
from tests.differential.generator import Generator
from tests.testbed.tools import LINES

NUMBERS = range(60)


def _trees(line: str) -> list[parts.Tree]:
    return [generate.make(7, number, line) for number in NUMBERS]


def test_a_seed_and_a_number_name_one_tree() -> None:
    """The same arguments give the same texts, other ones others."""
    first, again, other = generate.make(1, 2, "2.1"), generate.make(1, 2, "2.1"), generate.make(2, 2, "2.1")
    assert first == again
    assert first.before() != other.before()


@pytest.mark.parametrize("line", LINES)
def test_trees_vary(line: str) -> None:
    """Tidy, wild, aimed and our own ones, with and without an edit, on every line."""
    trees = _trees(line)
    assert {"tidy", "wild", "aimed", "ours"} <= {ingredient for tree in trees for ingredient in tree.ingredients}
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
            text = file.render().lstrip("\ufeff").replace("\x07", " ")  # what 1.x lets pass, and tomllib does not
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
    tree = parts.Tree([parts.File("/etc/containerd/config.toml.bak", 2, '"x"', [parts.Handler("old", "t")])])
    assert tree.declared() == []


@pytest.mark.parametrize("aim", aims.AIMS, ids=lambda aim: f"{aim.number}-{aim.make.__name__}")
def test_an_aim_brings_its_fault_about(aim: aims.Aim) -> None:
    """On every line of the aim, by the product's own model of a start, and soon: each tree has other things in it as well."""
    for line in aim.lines:
        assert any(_has(aim, line, number) for number in range(12)), line


def _has(aim: aims.Aim, line: str, number: int) -> bool:
    generator = Generator(random.Random(f"{number}/{line}"), line)
    aims.aimed(generator, aim)
    return aim.number in {fault["id"] for fault in rehearsal.facts(generator.tree, line)["faults"]}


def test_every_possible_fault_has_an_aim_or_comes_up_by_itself() -> None:
    """The written list, against the trees: 900 pairs are few, so only that each comes up on some line is asked."""
    result = rehearsal.rehearse(900, [1, 2, 3])
    seen = {number for (_line, number), count in result.numbers.items() if count}
    assert set(possible.POSSIBLE) - seen == set()
    assert 0.3 <= result.with_loss <= 0.7


def test_no_number_is_forgotten() -> None:
    """Each number of the catalogue is possible on some line of one of the engines, or is said not to be."""
    assert set(possible.POSSIBLE) | set(possible.ELSEWHERE) == set(NAMES)
    assert not set(possible.POSSIBLE) & set(possible.ELSEWHERE)
    assert set(possible.POSSIBLE_CRIO) <= set(NAMES)
