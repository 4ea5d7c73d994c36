# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a row says, medians and ratios, and the table."""

from __future__ import annotations

import datetime
import os
import pathlib
import platform
import statistics
import typing as t

# A profile is complete when it names this share of what is spent beyond the other side.
NAMED_SHARE = 0.9


class NotMeasured(Exception):
    """Why a row could not be measured here, in a sentence."""


class Row(t.NamedTuple):
    """One line of the table.

    :ivar name: the row by which the command line knows it. :ivar what: what was done, with its size.
    :ivar ours: its cost, as text. :ivar other: that of the other side. :ivar ratio: None where there is none.
    :ivar goal: the most that the ratio may be; None for a figure without a goal. :ivar notes: sentences below the table.
    """

    name: str
    what: str
    ours: str = ""
    other: str = ""
    ratio: float | None = None
    goal: float | None = None
    notes: t.Sequence[str] = ()


class Spent(t.NamedTuple):
    """A part of the work and its seconds."""

    part: str
    seconds: float


def ratio_of(ours: t.Sequence[float], other: t.Sequence[float]) -> float:
    """The ratio of two medians."""
    return statistics.median(ours) / statistics.median(other)


def alternately(runs: int, *sides: t.Callable[[], float]) -> list[list[float]]:
    """What each side costs, so many times, in turn: what else the machine does meets all of them."""
    found: list[list[float]] = [[] for _side in sides]
    for _run in range(runs):
        for side, costs in zip(sides, found, strict=True):
            costs.append(side())
    return found


def seconds(costs: t.Sequence[float]) -> str:
    """A median, with the lowest and the highest where there are several."""
    middle = statistics.median(costs)
    spread = f" ({min(costs):.3g}–{max(costs):.3g})" if len(costs) > 1 else ""
    return f"{middle:.3g} s{spread}"


def named_parts(parts: t.Iterable[Spent], excess: float) -> list[str]:
    """The largest parts, until they make NAMED_SHARE of the excess, each in words."""
    said, named = [], 0.0
    for part in sorted(parts, key=lambda each: -each.seconds):
        if named >= NAMED_SHARE * excess:
            break
        named += part.seconds
        said.append(f"{part.part} {part.seconds:.3g} s")
    return said


def missed(row: Row) -> bool:
    return row.goal is not None and row.ratio is not None and row.ratio > row.goal


def table(rows: t.Sequence[Row], scale: float) -> str:
    """The page: what was measured on which machine, the table, the notes."""
    lines = [
        "# What it costs",
        "",
        "Written by `make bench`, which measures each row side by side with what it is compared to, in turn, and takes medians. Wall-clock",
        "seconds, unless the row says otherwise (lowest and highest in parentheses). `large-fleets.md` says what follows from it.",
        "",
        f"{_machine()}, scale {scale:g}, {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}.",
        "",
        "| row | what | collection | compared to | ratio | goal | |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        verdict = "" if row.goal is None or row.ratio is None else "missed" if missed(row) else "met"
        cells = (row.name, row.what, row.ours, row.other, _number(row.ratio), _number(row.goal), verdict)
        lines.append("| " + " | ".join(cells) + " |")
    for row in rows:
        lines += ["", *(f"* {row.name}: {note}" for note in row.notes)] if row.notes else []
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _machine() -> str:
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model = next((line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    busy = os.getloadavg()[2]
    return f"{os.cpu_count()} cores ({model}), {memory:.0f} GiB, Python {platform.python_version()}, load of the last 15 minutes {busy:.1f}"
