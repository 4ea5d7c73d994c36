"""The random tree that a seed and a number name: tidy, wild, written by our own role, or aimed at a fault.

    generate.make(seed, number, line) -> Tree

What this proves: nothing by itself; everything comes from the seed and the number, so that they name a tree for ever. Of which kind a
tree is goes round evenly instead of by chance (an additive recurrence over the number), so that no fault is left out by bad luck.
"""

from __future__ import annotations

import itertools
import random
import typing as t

from tests.differential import aims, ours
from tests.differential.generator import Generator
from tests.differential.parts import Tree

Maker = t.Callable[[Generator], t.Any]
_SHARES: dict[str, float] = {"tidy": 0.20, "wild": 0.12, "ours": 0.07}
"""Of all trees; the rest is aimed at faults."""
_GOLDEN = 0.6180339887498949
SEEDS = 3
"""Seeds of one run, in a row: together they go round the kinds evenly."""


def _tidy(generator: Generator) -> None:
    generator.tidy()


def _wild(generator: Generator) -> None:
    generator.wild()


_MAKERS: dict[str, Maker] = {"tidy": _tidy, "wild": _wild, "ours": ours.ours}


def _kinds(line: str) -> tuple[list[tuple[str, aims.Aim | None]], list[float]]:
    """Kinds of trees of a line, and the share of each added up."""
    fitting = [aim for aim in aims.AIMS if line in aim.lines]
    share = (1 - sum(_SHARES.values())) / sum(aim.weight for aim in fitting)
    kinds: list[tuple[str, aims.Aim | None]] = [(name, None) for name in _SHARES]
    kinds += [("aimed", aim) for aim in fitting]
    return kinds, list(itertools.accumulate([*_SHARES.values(), *(share * aim.weight for aim in fitting)]))


def _kind(seed: int, number: int, line: str) -> tuple[str, aims.Aim | None]:
    place = (number * SEEDS + seed) * _GOLDEN % 1.0
    kinds, bounds = _kinds(line)
    return next((kind for kind, bound in zip(kinds, bounds) if place < bound), kinds[-1])


def make(seed: int, number: int, line: str) -> Tree:
    """The tree that this seed and number name."""
    generator = Generator(random.Random(f"{seed}/{number}/{line}"), line)
    manner, aim = _kind(seed, number, line)
    generator.note(manner)
    if aim is not None:
        aims.aimed(generator, aim)
    else:
        _MAKERS[manner](generator)
    tree = generator.tree
    if manner != "ours" and not tree.edit and generator.chance(0.2):
        generator.edit()
    if generator.chance(0.06):
        tree.upgrade = generator.another_line()
        generator.note(f"upgrade to {tree.upgrade}")
    tree.restart = generator.chance(0.1)
    return tree
