"""`python -m tests.faults [--only WORD] [--slice N]`: every fault, one line each that fails, the counts at the end.

What this proves: see the package. `--slice N` takes every Nth place of a system call (the named situations always run); the counts say
so. Ends with 1 when a check fails or none ran.
"""
from __future__ import annotations

import argparse
import sys
import time
import typing as t

from tests.faults import situations, system_calls
from tests.faults.changes import CHANGES, SECRET, Change
from tests.faults.node import KILLED, FaultNode
from tests.testbed.host import HostError


class Failures(t.NamedTuple):
    sentences: t.List[str]

    def check(self, holds: object, sentence: str) -> None:
        if not holds:
            self.sentences.append(sentence)


def _is_whole(node: FaultNode, change: Change, failures: Failures, when: str) -> None:
    """The daemon serves the old configuration or the new one, complete."""
    loaded = node.loaded()
    failures.check(loaded in (change.loaded_before, change.loaded_after), f"{when} the daemon has {loaded}")


def _converges(node: FaultNode, change: Change, failures: Failures) -> None:
    """One more run brings the wanted state, and leaves nothing behind."""
    _code, recovered = node.call("recover") if node.journal() is not None else (0, None)
    _code, result = node.call("apply", node.plan(change.wanted_now(node.tree()), change.expect, change.absent, change.removed))
    failures.check(result["state"] in ("applied", "unchanged"), f"the next run ended with {result['state']}: {result['msg']} (recovered: {recovered})")
    loaded = node.loaded()
    failures.check(loaded == change.loaded_after, f"after the next run the daemon has {loaded}")
    failures.check(node.tree() == change.after, f"after the next run the tree is {sorted(node.tree())}")
    failures.check(node.journal() is None, "after the next run there is a journal")
    for answer in (recovered, result):
        failures.check(SECRET not in str(answer), "a result holds the secret")


def _strike(node: FaultNode, change: Change, place: system_calls.Place, fault: str, power: bool) -> list[str]:
    failures = Failures([])
    node.reset(change.before)
    code, result = node.call("apply_here", node.plan(change.wanted, change.expect, change.absent, change.removed), under=system_calls.inject(place, fault))
    if fault == "signal=KILL":
        failures.check(code in KILLED, f"it was not killed (exit {code})")
    else:
        failures.check(system_calls.was_injected(node), "the fault was not reached")
        failures.check(code == 0 and result["state"] in ("applied", "refused", "rolled_back"), f"it ended with {result}")
        failures.check(SECRET not in str(result), "the result holds the secret")
    if power:
        node.power_cycle()
    _is_whole(node, change, failures, "after a loss of power" if power else "after the fault")
    _converges(node, change, failures)
    return failures.sentences


def _kinds(place: system_calls.Place, number: int) -> list[tuple[str, str, bool]]:
    """(name, fault of strace, does the power go too) of what strikes here.

    A loss of power is another thing than a killed process only where the daemon's files, or the daemon, are concerned.
    """
    kinds = [("killed", "signal=KILL", False)]
    if place.visible:
        kinds.append(("killed, then a loss of power", "signal=KILL", True))
    if place.name not in ("vfork", "wait4"):
        kinds.append(("no space", "error=ENOSPC", False) if number % 2 else ("read-only", "error=EROFS", False))
    return kinds


def _strikes(node: FaultNode, change: Change, step: int, counts: dict[str, int], failed: list[str]) -> None:
    node.reset(change.before)
    places, result = system_calls.record(node, "apply_here", node.plan(change.wanted, change.expect, change.absent, change.removed), {})
    if result["state"] != "applied" or node.tree() != change.after or node.loaded() != change.loaded_after:
        failed.append(f"{change.name}: without a fault it ended with {result}, {node.loaded()}")
        return
    counts["places"] = counts.get("places", 0) + len(places)
    for number, place in enumerate(places):
        if number % step:
            continue
        for kind, fault, power in _kinds(place, number):
            counts[kind] = counts.get(kind, 0) + 1
            try:
                sentences = _strike(node, change, place, fault, power)
            except HostError as error:
                sentences = [str(error)]
            if sentences:
                failed.append(f"{change.name}, {kind} at {place}: " + "; ".join(sentences))
                print("FAILED", failed[-1], flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slice", type=int, default=1, help="take every Nth place of a system call")
    parser.add_argument("--only", default="", help="only changes and situations whose name has this word")
    arguments = parser.parse_args()
    started = time.monotonic()
    counts: dict[str, int] = {}
    failed: list[str] = []
    for change in CHANGES:
        if arguments.only not in change.name:
            continue
        node = FaultNode(change.line)
        try:
            _strikes(node, change, arguments.slice, counts, failed)
        finally:
            node.close()
        print(f"{change.name} (containerd {change.line}): {counts}, {len(failed)} failed so far, {time.monotonic() - started:.0f} s", flush=True)
    for name, situation in situations.SITUATIONS.items():
        if arguments.only not in name:
            continue
        counts["situations"] = counts.get("situations", 0) + 1
        try:
            sentences = situation()
        except (HostError, AssertionError) as error:
            sentences = [f"{type(error).__name__}: {error}"]
        print(f"{'FAILED' if sentences else 'ok'} {name}{': ' + '; '.join(sentences) if sentences else ''}", flush=True)
        failed += [f"{name}: {sentence}" for sentence in sentences]
    places = counts.pop("places", 0)
    taken = "each" if arguments.slice == 1 else f"every {arguments.slice}th"
    print(f"{places} system calls change something, {taken} taken")
    print(f"faults: {counts}; {len(failed)} failed; {time.monotonic() - started:.0f} s")
    return 1 if failed or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
