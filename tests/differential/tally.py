"""What a run of the differential test counts, and what it demands of the counts.

What this proves: that the trees were many and various enough to prove anything: losses and none in fair shares, every fault that a
release line can have (the written list, not what came out), and repairs of enough kinds, each with what it was tried on.
"""

from __future__ import annotations

import collections
import time
import typing as t

from tests.differential.judge import Result
from tests.differential.mend import Mended

LEAST_SHARE = 0.30
LEAST_TIMES, PER_PAIRS = 20, 10000
LEAST_EDITED = 30
_SHARES_FROM, _COUNTS_FROM = 50, 5000


class Tally:
    """The counts of one run.

    :param possible: fault to the lines that can have it.
    :param lines: the lines of the run.
    """

    def __init__(self, possible: t.Mapping[int, tuple[str, ...]], lines: t.Sequence[str]) -> None:
        self.possible, self.lines = possible, list(lines)
        self.pairs = 0
        self.kinds: collections.Counter[str] = collections.Counter()
        self.by_line: collections.Counter[str] = collections.Counter()
        self.numbers: collections.Counter[tuple[str, int]] = collections.Counter()
        self.manners: collections.Counter[str] = collections.Counter()
        self.mended = Mended()
        self._start = time.monotonic()

    def add(self, line: str, tree: t.Any, result: Result, trouble: str = "") -> None:
        """Counts a judged pair."""
        self.pairs += 1
        self.by_line[line] += 1
        self.kinds.update(result.findings().keys())
        self.kinds.update(name for name, value in (("lost", result.lost), ("clean", result.clean), ("stale", tree.stale), ("trouble", trouble)) if value)
        self.numbers.update((line, number) for number in result.numbers)
        self.manners.update(tree.ingredients[:1])
        self.mended.add(result.mended)

    def progress(self, of: int) -> str:
        """One line for who waits."""
        bad = sum(self.kinds[kind] for kind in ("mismatch", "unexplained", "false alarm", "edits", "trouble"))
        return f"{self.pairs} of {of} pairs, {bad} bad, {time.monotonic() - self._start:.0f} s"

    def least(self) -> int:
        """How often a fault must come up on a line that can have it; 0: the run is too small to ask."""
        return LEAST_TIMES * self.pairs // PER_PAIRS if self.pairs >= _COUNTS_FROM else 0

    def rare(self) -> list[tuple[str, int, int]]:
        """(line, fault, times) of what came up too seldom."""
        wanted = ((line, number) for number, lines in sorted(self.possible.items()) for line in lines if line in self.lines)
        return [(line, number, self.numbers[line, number]) for line, number in wanted if self.numbers[line, number] < self.least()]

    def complaints(self) -> list[str]:
        """What is wrong with the run, in sentences."""
        found = []
        share = self.kinds["lost"] / self.pairs if self.pairs else 0.0
        if self.pairs >= _SHARES_FROM and not LEAST_SHARE <= share <= 1 - LEAST_SHARE:
            found.append(f"the trees are lopsided: at least {LEAST_SHARE:.0%} must have a loss and at least {LEAST_SHARE:.0%} none")
        found += [f"fault {number} came up {times} times on {line}, at least {self.least()} are wanted" for line, number, times in self.rare()]
        if self.least() and len(self.mended.tried) < LEAST_EDITED:
            found.append(f"{len(self.mended.tried)} kinds of faults offered edits, at least {LEAST_EDITED} are wanted")
        if not self.pairs:
            found.append("no pair was run")
        return found

    def report(self, seeds: t.Sequence[int], seconds: float) -> bool:
        """Prints the figures; whether the run is good."""
        self._show_numbers()
        self._show_edits()
        kinds, share = self.kinds, self.kinds["lost"] / max(self.pairs, 1)
        print("lines: " + ", ".join(f"{line} {self.by_line[line]}" for line in self.lines))
        print("trees: " + ", ".join(f"{manner} {count}" for manner, count in sorted(self.manners.items())))
        print(
            f"pairs {self.pairs}, mismatches {kinds['mismatch']}, unexplained losses {kinds['unexplained']}, false alarms {kinds['false alarm']}, "
            f"pairs with edits that do not mend {kinds['edits']}, with a loss {share:.0%}, without {1 - share:.0%}, clean {kinds['clean']}, "
            f"changed after the start {kinds['stale']}, seeds {', '.join(map(str, seeds))}, {seconds:.0f} s"
        )
        if kinds["trouble"]:
            print(f"the test bed failed in {kinds['trouble']} pairs")
        complaints = self.complaints()
        for sentence in complaints:
            print(sentence)
        bad = any(kinds[kind] for kind in ("mismatch", "unexplained", "false alarm", "edits", "trouble"))
        return not bad and not complaints

    def _show_numbers(self) -> None:
        """A row for each fault: how often on each line; a point where the line cannot have it and it did not come up."""
        width = max(len(line) for line in self.lines) + 1
        print("fault " + "".join(line.rjust(width) for line in self.lines))
        for number in sorted(set(self.possible) | {number for _line, number in self.numbers}):
            counts = [(self.numbers[line, number], line in self.possible.get(number, ())) for line in self.lines]
            print(f"{number:5} " + "".join((str(count) if count or wanted else ".").rjust(width) for count, wanted in counts))
        if not self.least():
            print(f"whether every fault came up often enough is asked from {_COUNTS_FROM} pairs on ({LEAST_TIMES} times in {PER_PAIRS}); here it is off")

    def _show_edits(self) -> None:
        mended = self.mended
        cells = []
        for number in sorted(mended.tried):
            blocked = f" ({mended.blocked[number]} by hand)" if mended.blocked[number] else ""
            cells.append(f"{number}: {mended.fixed[number]} of {mended.tried[number]}{blocked}")
        named = {number for _line, number in self.numbers}
        print(f"edits of {len(mended.tried)} of the {len(named)} kinds of faults that came up, handlers then loaded: " + ", ".join(cells))
