"""`python -m tests.faults [--only WORD] [--slice N] [--jobs N]`: every fault, what failed, the counts at the end.

What this proves: see the package. `--slice N` takes every Nth place of a system call (the named situations always run); the counts say
so. Ends with 1 when a check fails or none ran.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import multiprocessing
import sys
import time

from tests.faults import crio, situations, strikes
from tests.faults.changes import CHANGES


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slice", type=int, default=1, help="take every Nth place of a system call")
    parser.add_argument("--only", default="", help="only changes and situations whose name has this word")
    parser.add_argument("--engine", choices=("containerd", "crio"), default="containerd", help="crio: the system calls; the situations are containerd's")
    parser.add_argument("--jobs", type=int, default=2, help="nodes at a time")
    arguments = parser.parse_args()
    started = time.monotonic()
    counts: dict[str, int] = {}
    failed: list[str] = []
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as pool:
        changes, others = (crio.CHANGES, ()) if arguments.engine == "crio" else (CHANGES, situations.SITUATIONS)
        parts = [pool.submit(strikes.strike_everywhere, change, arguments.slice) for change in changes if arguments.only in change.name]
        parts += [pool.submit(strikes.situation, name) for name in others if arguments.only in name]
        for part in concurrent.futures.as_completed(parts):
            outcome = part.result()
            for kind, number in outcome.counts.items():
                counts[kind] = counts.get(kind, 0) + number
            failed += outcome.failed
            print(f"{'FAILED' if outcome.failed else 'ok'} {outcome.name}: {outcome.counts}, {outcome.seconds:.0f} s", flush=True)
            for sentence in outcome.failed:
                print("  " + sentence, flush=True)
    places = counts.pop("places", 0)
    taken = "each" if arguments.slice == 1 else f"every {arguments.slice}th"
    print(f"{places} system calls change something, {taken} taken")
    print(f"faults: {counts}; {len(failed)} failed; {time.monotonic() - started:.0f} s")
    return 1 if failed or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
