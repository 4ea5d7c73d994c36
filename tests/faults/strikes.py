"""A fault at a place of a change, and what must hold after it; the parts that a run is made of.

What this proves: after any fault the daemon has the old configuration or the new one, complete, also when it is started from what lies
on disk; and one more run converges and leaves nothing behind.
"""
from __future__ import annotations

import time
import typing as t

from tests.faults import crio, situations, system_calls
from tests.faults.changes import SECRET, Change
from tests.faults.node import KILLED, FaultNode
from tests.testbed.host import HostError

_NODES = {"containerd": FaultNode, "crio": crio.CrioFaultNode}


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


class Outcome(t.NamedTuple):
    """What one part found: kind of fault -> how often it struck, and what failed."""

    name: str
    counts: t.Dict[str, int]
    failed: t.List[str]
    seconds: float


def strike_everywhere(change: Change, step: int) -> Outcome:
    """Every `step`th place of a change."""
    started = time.monotonic()
    counts: dict[str, int] = {}
    failed: list[str] = []
    node = _NODES[change.engine](change.line)
    try:
        node.reset(change.before)
        places, result = system_calls.record(node, "apply_here", node.plan(change.wanted, change.expect, change.absent, change.removed), {})
        if result["state"] != "applied" or node.tree() != change.after or node.loaded() != change.loaded_after:
            return Outcome(change.name, {}, [f"{change.name}: without a fault it ended with {result}, {node.loaded()}"], 0)
        counts["places"] = len(places)
        for number, place in enumerate(places):
            for kind, fault, power in _kinds(place, number) if number % step == 0 else []:
                counts[kind] = counts.get(kind, 0) + 1
                failed += [f"{change.name}, {kind} at {place}: {sentence}" for sentence in _strike_or_say(node, change, place, fault, power)]
    finally:
        node.close()
    return Outcome(f"{change.name} ({change.engine} {change.line})", counts, failed, time.monotonic() - started)


def _strike_or_say(node: FaultNode, change: Change, place: system_calls.Place, fault: str, power: bool) -> list[str]:
    try:
        return _strike(node, change, place, fault, power)
    except HostError as error:
        return [str(error)]


def situation(name: str) -> Outcome:
    started = time.monotonic()
    try:
        sentences = situations.SITUATIONS[name]()
    except (HostError, AssertionError) as error:
        sentences = [f"{type(error).__name__}: {error}"]
    return Outcome(name, {"situations": 1}, [f"{name}: {sentence}" for sentence in sentences], time.monotonic() - started)
