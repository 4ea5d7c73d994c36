# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line of tests.bench; see the package."""

from __future__ import annotations

import argparse
import pathlib
import signal
import sys
import time
import typing as t

from tests.bench import crosscheck, plays, rollout
from tests.bench.rows import NotMeasured, Row, table

ROWS: dict[str, t.Callable[[float, int], list[Row]]] = {
    "facts": plays.facts,
    "audit": plays.audit,
    "capture": plays.capture,
    "rollout": rollout.rollout,
    "crosscheck": crosscheck.from_json,
    "api": crosscheck.from_api,
    "filter": plays.filters,
}


def main(arguments: list[str]) -> int:
    """Returns the exit code: a missed goal is none."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)}; default: all")
    parser.add_argument("--scale", type=float, default=1.0, help="1: the sizes that the goals are for")
    parser.add_argument("--runs", type=int, default=3, help="how often each side is measured")
    parser.add_argument("--output", type=pathlib.Path, help="write the table to this file as well")
    options = parser.parse_args(arguments)
    # Hosts, daemons and clusters end with what made them, also where somebody ends this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    unknown = set(options.rows) - set(ROWS)
    if unknown:
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    rows: list[Row] = []
    for name in options.rows or ROWS:
        start = time.monotonic()
        try:
            rows += ROWS[name](options.scale, options.runs)
        except NotMeasured as reason:
            rows.append(Row(name, "not measured", notes=[f"not measured: {reason}"]))
        print(f"{name}: {time.monotonic() - start:.0f} s", file=sys.stderr)
    page = table(rows, options.scale)
    print(page)
    if options.output:
        options.output.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
