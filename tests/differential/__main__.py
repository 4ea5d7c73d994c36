"""Command line of the differential test: makes the pairs, runs them on several nodes at once, counts, prints.

What this proves: that product and daemons agree over random trees, and how many of each kind were tried. Ends non-zero on any
mismatch, unexplained loss, false alarm or repair that does not repair; when fewer than 30 % of the pairs have a loss or fewer than
30 % have none; and, in runs of some size, when a fault that a release line can have (possible.py) came up less often than 20 times in
10,000 pairs, or when fewer than 30 kinds of faults offered edits.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import multiprocessing
import multiprocessing.util
import os
import pathlib
import shutil
import sys
import time
import traceback
import typing as t

from tests.differential import crio, generate, judge, possible, shrink
from tests.differential.judge import Result
from tests.differential.parts import Tree as ContainerdTree
from tests.differential.quick_host import QuickHost
from tests.differential.tally import Tally
from tests.testbed.crio_host import CrioHost
from tests.testbed.tools import CRIO_LINES, tool

Tree = t.Union[ContainerdTree, crio.Tree]
_CHUNK = 8
_CASES = pathlib.Path(".cache/differential/cases")


class Engine(t.NamedTuple):
    """What makes, runs and judges the pairs of one container runtime. possible: the faults that each line can have."""

    lines: tuple[str, ...]
    host: t.Any
    make: t.Callable[[int, int, str], t.Any]
    judge: t.Callable[[t.Any, t.Any, str], Result]
    possible: dict[int, tuple[str, ...]]


ENGINES = {
    "containerd": Engine(possible.ALL, QuickHost, generate.make, judge.judge, possible.POSSIBLE),
    "crio": Engine(CRIO_LINES, CrioHost, crio.make, crio.judge, possible.POSSIBLE_CRIO),
}


class Pair(t.NamedTuple):
    """The name of a pair: the tree that the seed and the number give on the line."""

    seed: int
    line: str
    number: int

    def __str__(self) -> str:
        return f"{self.seed}/{self.line}/{self.number}"

    @classmethod
    def parse(cls, text: str) -> Pair:
        """The pair of such a name."""
        seed, line, number = text.split("/")
        return cls(int(seed), line, int(number))


class Outcome(t.NamedTuple):
    """What is kept of a judged pair. trouble: what went wrong in the test bed, "" where nothing did."""

    pair: Pair
    tree: t.Any
    result: Result
    trouble: str = ""


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description="Random configurations: daemon and product compared.")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1, help="the first of the run's seeds")
    parser.add_argument("--seeds", type=int, default=generate.SEEDS, help="how many seeds, in a row; the pairs are split over them")
    parser.add_argument("--engine", choices=list(ENGINES), default="containerd")
    parser.add_argument("--lines", nargs="+", metavar="LINE", help="default: every line of the engine")
    parser.add_argument("--only", type=Pair.parse, nargs="+", metavar="SEED/LINE/NUMBER", help="run only these pairs")
    parser.add_argument("--keep", type=pathlib.Path, help="directory for the tree and the answers of each bad pair")
    parser.add_argument("--nodes", type=int, default=(os.cpu_count() or 1) + 1, help="nodes at once; one more than processors, since daemons let wait")
    parser.add_argument("--shrink", type=int, default=3, help=f"so many failures are made small and written to {_CASES}")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args(argv)
    options.lines = options.lines or list(ENGINES[options.engine].lines)
    return options


def pairs_of(options: argparse.Namespace) -> list[Pair]:
    """The pairs of a run: seeds and lines in turn, grouped by line so that a node seldom changes its daemon."""
    if options.only:
        return list(options.only)
    found = []
    for index in range(options.pairs):
        rest, turn = divmod(index, options.seeds)
        number, line = divmod(rest, len(options.lines))
        found.append(Pair(options.seed + turn, options.lines[line], number))
    return sorted(found, key=lambda pair: options.lines.index(pair.line))


# a node of its own in each worker ----------------------------------------------------------------------------------------------------

_worker: dict[str, t.Any] = {}


def _open_node(engine: str, line: str) -> None:
    host = ENGINES[engine].host(line, name="node")
    multiprocessing.util.Finalize(None, host.close, exitpriority=10)
    _worker.update(engine=ENGINES[engine], host=host)


def _judged(pair: Pair) -> Outcome:
    """One pair on this worker's node. The answers are kept only where somebody will want to look at them."""
    engine: Engine = _worker["engine"]
    tree = engine.make(pair.seed, pair.number, pair.line)
    for last in (False, True):  # a machine that was too busy once gets another chance
        try:
            result = engine.judge(_worker["host"], tree, pair.line)
            break
        except Exception:
            if last:
                return Outcome(pair, tree, Result(), traceback.format_exc()[-1500:])
    if not result.bad:
        result.evidence = {}
    return Outcome(pair, tree, result)


# the run ---------------------------------------------------------------------------------------------------------------------------


def run(options: argparse.Namespace, tally: Tally) -> list[Outcome]:
    """Runs all pairs, counts them and returns those that failed."""
    for line in options.lines:
        tool(f"{options.engine}-{line}")
    pairs, failed = pairs_of(options), []
    context = multiprocessing.get_context("fork")
    initial = (options.engine, pairs[0].line)
    with concurrent.futures.ProcessPoolExecutor(min(options.nodes, len(pairs)), context, _open_node, initial) as pool:
        for outcome in pool.map(_judged, pairs, chunksize=min(_CHUNK, max(1, len(pairs) // options.nodes))):
            tally.add(outcome.pair.line, outcome.tree, outcome.result, outcome.trouble)
            if outcome.result.bad or outcome.trouble or options.verbose:
                _show(outcome)
            if outcome.result.bad:
                failed.append(outcome)
                if options.keep:
                    _keep(options.keep / str(outcome.pair).replace("/", "-"), outcome)
            if tally.pairs % 500 == 0:
                print(tally.progress(len(pairs)), flush=True)
    return failed


def _show(outcome: Outcome) -> None:
    print(f"pair {outcome.pair} ({', '.join(outcome.tree.ingredients)}){' clean' if outcome.result.clean else ''}{outcome.trouble}", flush=True)
    for kind, sentences in outcome.result.findings().items():
        for sentence in sentences:
            print(f"    {kind}: {sentence}", flush=True)


def _keep(directory: pathlib.Path, outcome: Outcome) -> None:
    """Writes the tree (before and as edited), the answers and the sentences where somebody can look at them."""
    tree, result = outcome.tree, outcome.result
    shutil.rmtree(directory, ignore_errors=True)
    for name, files in (("before", tree.before()), ("final", {file.path: file.render() for file in tree.final()})):
        for path, text in files.items():
            target = directory / name / path.strip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            if not path.endswith("/"):
                target.write_bytes(text.encode("utf-8", "surrogateescape"))
    for name, value in result.evidence.items():
        (directory / f"{name}.json").write_text(json.dumps(value, indent=1, sort_keys=True))
    lines = [f"pair {outcome.pair}", f"ingredients {', '.join(tree.ingredients)}", f"removed {tree.removed}"]
    lines += [f"{kind}: {sentence}" for kind, sentences in result.findings().items() for sentence in sentences]
    (directory / "result.txt").write_text("\n".join(lines) + "\n")


def _shrink(failed: list[Outcome]) -> None:
    """Makes failures small on a node of their own, and writes each as a case."""
    with QuickHost(failed[0].pair.line, name="node") as host:
        for outcome in failed:
            small = shrink.smallest(outcome.tree, outcome.pair.line, outcome.result, host)
            place = shrink.write_case(_CASES, str(outcome.pair).replace("/", "-"), small.tree, outcome.pair.line, small.result)
            print(f"pair {outcome.pair} made small in {small.tries} tries ({', '.join(small.tree.ingredients)}): {place}", flush=True)


def main(argv: list[str] | None = None) -> int:
    """Runs and reports; returns the exit code."""
    options = _arguments(argv)
    engine = ENGINES[options.engine]
    tally, start = Tally(engine.possible, options.lines), time.monotonic()
    failed = run(options, tally)
    seeds = sorted({pair.seed for pair in pairs_of(options)})
    good = tally.report(seeds, time.monotonic() - start)
    if failed and options.shrink and options.engine == "containerd":
        _shrink(failed[: options.shrink])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
