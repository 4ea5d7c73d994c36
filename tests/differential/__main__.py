"""Command line of the differential test: makes the pairs, runs them on several nodes at once, counts, prints.

What this proves: that product and daemons agree over random trees, and how many of each kind were tried. Ends non-zero on any
mismatch, unexplained loss or false alarm, and when fewer than 30 % of the pairs have a loss or fewer than 30 % have none.
"""

from __future__ import annotations

import argparse
import collections
import json
import pathlib
import queue
import shutil
import sys
import threading
import time
import typing as t

from tests.differential import crio, generate, judge
from tests.differential.judge import Result
from tests.testbed.crio_host import CrioHost
from tests.testbed.host import ContainerdHost
from tests.testbed.tools import CRIO_LINES, LINES, tool

LEAST_SHARE = 0.30
Tree = t.Union[generate.Tree, crio.Tree]


class Engine(t.NamedTuple):
    """What makes, runs and judges the pairs of one container runtime."""

    lines: tuple[str, ...]
    host: t.Any
    make: t.Callable[[int, int, str], t.Any]
    judge: t.Callable[[t.Any, t.Any, str], Result]


ENGINES = {
    "containerd": Engine(LINES, ContainerdHost, generate.make, judge.judge),
    "crio": Engine(CRIO_LINES, CrioHost, crio.make, crio.judge),
}


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description="Random configurations: daemon and product compared.")
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=list(ENGINES), default="containerd")
    parser.add_argument("--lines", nargs="+", metavar="LINE", help="default: every line of the engine")
    parser.add_argument("--only", type=int, nargs="+", help="run only these numbers of the seed")
    parser.add_argument("--keep", type=pathlib.Path, help="directory for the tree and the answers of each bad pair")
    parser.add_argument("--nodes", type=int, default=2, help="nodes at once")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args(argv)
    options.lines = options.lines or list(ENGINES[options.engine].lines)
    return options


class Run:
    """The pairs of one run and what became of them."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.engine = ENGINES[options.engine]
        self.results: list[tuple[int, str, Tree, Result]] = []
        self.failures: list[str] = []
        self._work: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._lock = threading.Lock()

    def line(self, number: int) -> str:
        """The release line of a pair: each in turn."""
        return self.options.lines[number % len(self.options.lines)]

    def run(self) -> None:
        """Runs all pairs."""
        for line in self.options.lines:
            tool(f"{self.options.engine}-{line}")
        for number in self.options.only or range(self.options.pairs):
            self._work.put(number)
        threads = [threading.Thread(target=self._worker) for _node in range(self.options.nodes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _worker(self) -> None:
        try:
            with self.engine.host(self.options.lines[0], name="node") as host:
                while True:
                    try:
                        number = self._work.get_nowait()
                    except queue.Empty:
                        return
                    self._pair(host, number)
        except Exception as error:
            with self._lock:
                self.failures.append(f"{type(error).__name__}: {error}")

    def _pair(self, host: t.Any, number: int) -> None:
        line = self.line(number)
        tree = self.engine.make(self.options.seed, number, line)
        result = self.engine.judge(host, tree, line)
        with self._lock:
            self.results.append((number, line, tree, result))
            if result.bad or self.options.verbose:
                _show(number, line, tree, result)
            if result.bad and self.options.keep:
                _keep(self.options.keep / str(number), line, tree, result)


def _show(number: int, line: str, tree: Tree, result: Result) -> None:
    print(f"pair {number} on {line} ({', '.join(tree.ingredients)}){' clean' if result.clean else ''}", flush=True)
    for kind, sentences in (("mismatch", result.mismatches), ("unexplained", result.unexplained), ("false alarm", result.false_alarms)):
        for sentence in sentences:
            print(f"    {kind}: {sentence}", flush=True)


def _keep(directory: pathlib.Path, line: str, tree: Tree, result: Result) -> None:
    """Writes the tree (before and as edited), the answers and the sentences where somebody can look at them."""
    shutil.rmtree(directory, ignore_errors=True)
    for name, files in (("before", tree.before()), ("final", {file.path: file.render() for file in tree.final()})):
        for path, text in files.items():
            target = directory / name / path.strip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            if not path.endswith("/"):
                target.write_bytes(text.encode("utf-8", "surrogateescape"))
    for name, value in result.evidence.items():
        (directory / f"{name}.json").write_text(json.dumps(value, indent=1, sort_keys=True))
    lines = [f"line {line}", f"ingredients {', '.join(tree.ingredients)}", f"removed {tree.removed}"]
    (directory / "result.txt").write_text("\n".join([*lines, *result.mismatches, *result.unexplained, *result.false_alarms]) + "\n")


def _count(results: t.Iterable[Result], attribute: str) -> int:
    return sum(bool(getattr(result, attribute)) for result in results)


def _report(run: Run, seconds: float) -> int:
    """Prints the figures; returns the exit code."""
    results = [result for _number, _line, _tree, result in run.results]
    pairs = len(results)
    wanted = len(run.options.only or range(run.options.pairs))
    bad = {kind: _count(results, kind) for kind in ("mismatches", "unexplained", "false_alarms")}
    lost = _count(results, "lost")
    share = lost / pairs if pairs else 0.0
    used = collections.Counter(line for _number, line, _tree, _result in run.results)
    print("lines: " + ", ".join(f"{line} {used[line]}" for line in run.options.lines))
    print(
        f"pairs {pairs}, mismatches {bad['mismatches']}, unexplained losses {bad['unexplained']}, false alarms {bad['false_alarms']}, "
        f"with a loss {share:.0%}, without {1 - share:.0%}, clean {_count(results, 'clean')}, "
        f"edited after the start {sum(tree.stale for _n, _l, tree, _r in run.results)}, seed {run.options.seed}, {seconds:.0f} s"
    )
    for failure in run.failures:
        print(f"the test bed failed: {failure}")
    if pairs >= 50 and not LEAST_SHARE <= share <= 1 - LEAST_SHARE:
        print(f"the trees are lopsided: at least {LEAST_SHARE:.0%} must have a loss and at least {LEAST_SHARE:.0%} none")
        return 1
    return 1 if any(bad.values()) or run.failures or pairs != wanted else 0


def main(argv: list[str] | None = None) -> int:
    """Runs and reports; returns the exit code."""
    options = _arguments(argv)
    run, start = Run(options), time.monotonic()
    run.run()
    return _report(run, time.monotonic() - start)


if __name__ == "__main__":
    sys.exit(main())
