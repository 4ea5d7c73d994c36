"""Runs the parsers on damaged inputs, each parser in a process of its own under limits, and prints what fell.

What this proves: that no input among so many made a parser end in anything but its own errors, spin for more than a few seconds or take
more memory than a small node has. Ends non-zero on any finding, and when a parser was never run.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import multiprocessing
import multiprocessing.connection
import pathlib
import resource
import signal
import sys
import tempfile
import time
import traceback
import typing as t

from tests.fuzz import targets

SECONDS_PER_INPUT = 5
"""Of the processor, for one input; a machine that is busy with other things does not make a parser slow."""
WALL_SECONDS = 60
"""After which a parser that does not even come back to Python is ended."""
MEMORY = 1536 * 1024 * 1024
"""Bytes of address space for the interpreter, the corpus and one input."""
_CASES = pathlib.Path(".cache/fuzz")
_MOST_FINDINGS = 3


class Finding(t.NamedTuple):
    """An input that made a parser fall: what happened, and the call that repeats it."""

    target: str
    seed: int
    number: int
    what: str

    @property
    def name(self) -> str:
        """For --input."""
        return f"{self.target}:{self.seed}:{self.number}"


class TooSlow(BaseException):
    """An input took too long. No Exception, so that no parser catches it."""


def _too_slow(_number: int, _frame: t.Any) -> t.NoReturn:
    raise TooSlow


def one(target: targets.Target, value: t.Any) -> str:
    """Runs one input; "" or what happened."""
    signal.signal(signal.SIGPROF, _too_slow)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_INPUT)
    try:
        target.run(value)
    except target.allowed as error:
        return "" if str(error) else f"a {type(error).__name__} without a word"
    except TooSlow:
        return f"more than {SECONDS_PER_INPUT} s: {''.join(traceback.format_exc().splitlines(keepends=True)[-6:])}"
    except (Exception, RecursionError) as error:
        frames = traceback.extract_tb(error.__traceback__)
        place = " < ".join(f"{pathlib.Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-4:]))
        return f"{type(error).__name__}: {str(error)[:200]!r} at {place}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


def _work(name: str, seed: int, first: int, seconds: float, limit: int, told: multiprocessing.connection.Connection) -> None:
    """In a process of its own: inputs until the time is over.

    Tells ("at", number), ("took", number, seconds of the processor), ("fell", number, what) and ("end", number).
    """
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    faulthandler.enable()
    deadline, number = time.monotonic() + seconds, first
    while time.monotonic() < deadline and number - first < limit:
        told.send(("at", number))
        value = targets.make(name, seed, number)
        begun = time.process_time()
        what = one(targets.TARGETS[name], value)
        told.send(("took", number, time.process_time() - begun))
        if what:
            told.send(("fell", number, what))
        number += 1
    told.send(("end", number))


class Session:
    """One run over the parsers."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.findings: list[Finding] = []
        self.counts: collections.Counter[str] = collections.Counter()
        self.slowest: dict[str, tuple[float, int]] = {}
        self._context = multiprocessing.get_context("fork")

    def run(self) -> None:
        """Every parser in turn, each with its share of the time. What the processes leave behind goes when the run is over."""
        with tempfile.TemporaryDirectory(prefix="runtime-gate-fuzz-") as folder:
            before, tempfile.tempdir = tempfile.tempdir, folder
            try:
                self._run()
            finally:
                tempfile.tempdir = before

    def _run(self) -> None:
        names = self.options.only or list(targets.TARGETS)
        share = self.options.time / len(names)
        for name in names:
            start = time.monotonic()
            first = 0
            while time.monotonic() - start < share and len(self._of(name)) < _MOST_FINDINGS:
                first = self._part(name, first, share - (time.monotonic() - start))
                if first >= self.options.most:
                    break

    def _of(self, name: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.target == name]

    def _part(self, name: str, first: int, seconds: float) -> int:
        """Runs inputs from a number on; returns the number to go on with. A process that ends or hangs costs one input."""
        ours, theirs = self._context.Pipe(duplex=False)
        limit = self.options.most - first
        worker = self._context.Process(target=_work, args=(name, self.options.seed, first, seconds, limit, theirs), daemon=True)
        worker.start()
        theirs.close()
        at, ended = first, False
        try:
            while ours.poll(WALL_SECONDS):
                message = ours.recv()
                if message[0] == "took":
                    self.slowest[name] = max(self.slowest.get(name, (0.0, 0)), (message[2], message[1]))
                if message[0] == "fell":
                    self._found(name, message[1], message[2])
                    if len(self._of(name)) >= _MOST_FINDINGS:
                        break
                at, ended = message[1], message[0] == "end"
                if ended:
                    break
            else:
                self._found(name, at, f"no sign of life for {WALL_SECONDS} s")
        except EOFError:
            worker.join()
            self._found(name, at, f"the process ended with {worker.exitcode}")
        worker.kill()
        worker.join()
        self.counts[name] += at - first + (not ended)
        return at if ended else at + 1

    def _found(self, name: str, number: int, what: str) -> None:
        known = {finding.what for finding in self._of(name)}
        if what in known:
            return
        finding = Finding(name, self.options.seed, number, what)
        self.findings.append(finding)
        print(f"{finding.name}: {what}", flush=True)

    def report(self) -> bool:
        """Prints the counts; whether nothing fell and everything ran."""
        names = self.options.only or list(targets.TARGETS)
        for name in names:
            seconds, number = self.slowest.get(name, (0.0, 0))
            print(f"{name:24}{self.counts[name]:8} inputs, slowest {seconds:.2f} s ({name}:{self.options.seed}:{number})")
        idle = [name for name in names if not self.counts[name]]
        if idle:
            print(f"never run: {', '.join(idle)}")
        print(f"{sum(self.counts.values())} inputs of seed {self.options.seed}, {len(self.findings)} findings")
        return not self.findings and not idle


def _again(name: str) -> int:
    """Shows one input and runs it with its whole traceback."""
    target, seed, number = name.split(":")
    value = targets.make(target, int(seed), int(number))
    _CASES.mkdir(parents=True, exist_ok=True)
    place = _CASES / name.replace(":", "-")
    place.write_bytes(value if isinstance(value, bytes) else repr(value).encode("utf-8", "backslashreplace"))
    print(f"the input is in {place}")
    what = one(targets.TARGETS[target], value)
    if what:
        print(what)
        if not what.startswith("more than"):
            targets.TARGETS[target].run(value)
    return 1 if what else 0


def main(argv: list[str] | None = None) -> int:
    """Runs and reports; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Damaged foreign bytes into every parser.")
    parser.add_argument("--time", type=float, default=60, help="seconds for all parsers together")
    parser.add_argument("--most", type=int, default=sys.maxsize, help="inputs for each parser at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=list(targets.TARGETS), metavar="PARSER", help="of " + ", ".join(targets.TARGETS))
    parser.add_argument("--input", metavar="PARSER:SEED:NUMBER", help="run this one input and show what happens")
    options = parser.parse_args(argv)
    if options.input:
        return _again(options.input)
    session = Session(options)
    session.run()
    return 0 if session.report() else 1


if __name__ == "__main__":
    sys.exit(main())
