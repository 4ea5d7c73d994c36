"""Prints the table release line x equal to the daemon's own answer, filled by test_real_daemons.py."""

from __future__ import annotations

import typing as t

import pytest

TABLE: dict[tuple[str, str], bool] = {}


@pytest.fixture(scope="session")
def equal_table() -> dict[tuple[str, str], bool]:
    """(release line, situation) -> whether product and daemon gave the same answer."""
    return TABLE


def pytest_terminal_summary(terminalreporter: t.Any) -> None:
    """The table, after the results."""
    if not TABLE:
        return
    situations = list(dict.fromkeys(situation for _line, situation in TABLE))
    lines = list(dict.fromkeys(line for line, _situation in TABLE))
    terminalreporter.section("facts equal to the daemon's own answer")
    width = max(len(situation) for situation in situations)
    terminalreporter.write_line(f"{'':{width}}  " + "  ".join(f"{line:>4}" for line in lines))
    for situation in situations:
        words = [{True: "yes", False: "NO", None: "-"}[TABLE.get((line, situation))] for line in lines]
        terminalreporter.write_line(f"{situation:{width}}  " + "  ".join(f"{word:>{max(4, len(line))}}" for word, line in zip(words, lines, strict=True)))
