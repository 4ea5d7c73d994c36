"""Options and counts of the tests of the cluster side."""

from __future__ import annotations

import collections
import typing as t

import pytest

COUNTS: list[str] = []
# The slice of make test has four minutes. The tests of these files cost next to nothing once the first one is set up.
_FIRST = 3
_WHOLE = ("test_control_plane", "test_prediction", "test_quantities")


def pytest_addoption(parser: pytest.Parser) -> None:
    """--slice, --lines and --combinations: how much of the tests runs."""
    parser.addoption("--slice", action="store_true", help=f"the first {_FIRST} tests of each file, without those that are marked as full")
    parser.addoption("--lines", default="1.7,2.1,2.4", help="release lines of containerd of the real nodes, separated by commas")
    parser.addoption("--combinations", type=int, default=720, help="about how many combinations the prediction matrix has")


def pytest_configure(config: pytest.Config) -> None:
    """The marks of these tests."""
    config.addinivalue_line("markers", "full: takes so long that the slice in make test leaves it out; make cluster-test runs it")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What is left out is counted as deselected, not as skipped: a skip would look like a reason."""
    if config.getoption("--slice"):
        kept: list[pytest.Item] = []
        taken: collections.Counter[str] = collections.Counter()
        for item in items:
            file = item.path.stem
            if not item.get_closest_marker("full") and (file in _WHOLE or taken[file] < _FIRST):
                taken[file] += 1
                kept.append(item)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


@pytest.fixture(scope="session")
def lines(pytestconfig: pytest.Config) -> list[str]:
    """The release lines of the real nodes."""
    return str(pytestconfig.getoption("--lines")).split(",")


@pytest.fixture(scope="session")
def tell() -> t.Callable[[str], None]:
    """Says a line after the results."""
    return COUNTS.append


def pytest_terminal_summary(terminalreporter: t.Any) -> None:
    """What was counted."""
    if COUNTS:
        terminalreporter.section("cluster tests: counts")
        for line in COUNTS:
            terminalreporter.write_line(line)
