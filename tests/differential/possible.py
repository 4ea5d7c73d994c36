"""The written list: which numbered faults a tree of files can bring about on which release line.

What this proves: the differential test counts what came up against this list, so that a generator that has forgotten a fault is
noticed. It is taken from LOADING.md (§1 to §3 and the catalogue in §12) and from the scenarios of tests/catalogue, which are
reproduced on real daemons; never from what a run printed.
"""

from __future__ import annotations

OLDEST, LEGACY, MIDDLE, NEWEST = ("1.4",), ("1.6", "1.7"), ("2.0", "2.1", "2.2"), ("2.3.4", "2.3", "2.4")
ONE, TWO = OLDEST + LEGACY, MIDDLE + NEWEST
ALL = ONE + TWO

POSSIBLE: dict[int, tuple[str, ...]] = {
    1: ALL,
    2: ONE,  # §2: 2.x merges deeply
    3: LEGACY,  # §2: 1.4 keeps the built-in runc, 2.x merges with it
    4: MIDDLE,  # §1a: 2.3 migrates each file from its own version
    5: ONE,
    6: TWO,  # §1a: version 3 on 2.0 to 2.2, version 4 since 2.3
    7: (*MIDDLE, "2.3.4"),  # §1b: lost on 2.0 to 2.2, refused by 2.3.0 to 2.3.4
    8: MIDDLE,
    9: ONE,  # §1b: on 2.x the version of another file may be lowered too, but nothing is lost by it
    10: MIDDLE,
    11: TWO,
    12: ALL,  # §1a: 1.x does not start, 2.x is silent
    13: ALL,
    14: ALL,
    15: TWO,
    16: TWO,
    17: ONE,
    18: ALL,
    19: ("1.4", "1.6"),  # §2a: before 1.6.29 and 1.7.16
    20: ALL,
    21: ("2.2", *NEWEST),  # §2b: since 2.2 the dump prints conf.d
    22: ALL,
    23: ALL,
    24: ALL,
    25: ALL,
    26: ALL,
    27: ALL,
    28: TWO,  # where files merge, a later value wins
    29: ALL,  # proxy plugins on every line, arrays where files merge
    30: ALL,
    31: ALL,
    32: ("1.6",),
    33: ALL,
    34: ALL,
    35: (*LEGACY, *TWO),  # §4: 1.4 shows no options
    36: MIDDLE,
    37: ALL,
    39: TWO,
    40: ("2.3.4",),
    47: ALL,
    48: ALL,  # 1.5 to 1.7 take the mark, and the next line does not
    49: ("1.7", *TWO),  # 1.4 and 1.6 before 1.6.32 do not check the version
    50: ONE,
    51: ALL,
    52: ONE,  # nothing that a 2.x line takes stops a later one, but for the drop-in check of 2.3.0 to 2.3.4, which has gone again
    53: ALL,
    54: ALL,
    57: ALL,
    58: ONE,  # §1: files of 1.x that 2.x reads otherwise
}

ELSEWHERE: dict[int, str] = {
    38: "Node.status is the API server's",
    **dict.fromkeys(range(41, 47), "of CRI-O"),
    55: "said where no rule explains a loss: that would be a finding",
    56: "said where the binary refuses what the model takes: that would be a finding",
    **dict.fromkeys(range(59, 64), "of CRI-O"),
}
"""Numbers that no tree of containerd's files brings about, and why."""


def on_line(line: str) -> list[int]:
    """The numbers that this line can have."""
    return [number for number, lines in POSSIBLE.items() if line in lines]


POSSIBLE_CRIO: dict[int, tuple[str, ...]] = dict.fromkeys((1, 37, 41, 42, 43, 44, 45, 47, 48, 51, 60), ("1.34", "1.36"))
"""§9 and §12, 41 to 45, and what makes CRI-O not start: for its lines under test. 46 needs a journal, which these nodes have not: tests/catalogue."""
