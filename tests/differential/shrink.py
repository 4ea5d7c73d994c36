"""A failure made small, and written in the form of tests/cases.

What this proves: nothing by itself. Hypothesis looks for the fewest parts of the tree (files, handlers, imports, tables, settings, the
edit, links) with which product and daemon still disagree in the same way; each try is a pair on a real daemon.
"""

from __future__ import annotations

import copy
import pathlib
import re
import shutil
import typing as t

import hypothesis
import yaml
from hypothesis import strategies

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.capture_directory import write_capture
from tests.differential.judge import Result, judge
from tests.differential.parts import File, Handler, Tree, Written
from tests.testbed.host import ContainerdHost

_TRIES = 60
Part = tuple[t.Any, ...]
_HEADER = re.compile(r"(?m)^(?=[ \t]*\[)")


class Small(t.NamedTuple):
    """The smallest tree that was found to fail, its result, and how many trees were judged."""

    tree: Tree
    result: Result
    tries: int


def blocks(lines: t.Sequence[str]) -> list[list[str]]:
    """Raw lines, a table with its header each."""
    found: list[list[str]] = []
    for line in lines:
        if line.lstrip().startswith("[") or not found:
            found.append([])
        found[-1].append(line)
    return found


def _texts(file: Written) -> list[str]:
    return [text for text in _HEADER.split(file.text) if text]


def _parts_of(where: Part, file: File) -> t.Iterator[Part]:
    if isinstance(file, Written):
        yield from ((*where, "text", index) for index in range(len(_texts(file))))
        return
    for name in ("handlers", "imports", "top", "settings"):
        yield from ((*where, name, index) for index in range(len(getattr(file, name))))
    yield from ((*where, "raw", index) for index in range(len(blocks(file.raw))))
    plain = {"default": None, "prefix": "", "newline": "\n", "encoding": "utf-8", "spelling": "tables", "imports_last": False}
    yield from ((*where, name) for name, value in plain.items() if getattr(file, name) != value)


def parts(tree: Tree) -> list[Part]:
    """Everything of a tree that can be left out; the root file itself stays."""
    found: list[Part] = []
    for name in ("files", "edit"):
        for index, file in enumerate(getattr(tree, name)):
            found += [(name, index)] if name == "edit" or index else []
            found += _parts_of((name, index), file)
    found += [("links", path) for path in tree.links] + [("others", path) for path in tree.others]
    found += [("removed", path) for path in tree.removed] + [("directories", path) for path in tree.directories]
    found += [("upgrade",)] if tree.upgrade else []
    return found + ([("systemd_cgroup",)] if tree.systemd_cgroup else [])


def _reduced_file(where: Part, file: File, kept: t.Collection[Part]) -> File:
    made = copy.deepcopy(file)
    if isinstance(made, Written):
        made.text = "".join(text for index, text in enumerate(_texts(made)) if (*where, "text", index) in kept)
        made.handlers = [handler for handler in made.handlers if _named(handler, [made.text])]
        return made
    for name in ("handlers", "imports", "top", "settings"):
        setattr(made, name, [item for index, item in enumerate(getattr(file, name)) if (*where, name, index) in kept])
    made.raw = [line for index, block in enumerate(blocks(file.raw)) if (*where, "raw", index) in kept for line in block]
    made.also = [handler for handler in file.also if _named(handler, made.raw)]
    for name, value in (("default", None), ("prefix", ""), ("newline", "\n"), ("encoding", "utf-8"), ("spelling", "tables"), ("imports_last", False)):
        if (*where, name) not in kept:
            setattr(made, name, value)
    return made


def _named(handler: Handler, lines: t.Iterable[str]) -> bool:
    """Whether a table of this handler has a header (or an entry) in the lines."""
    name = re.escape(handler.name)
    return any(re.search(rf"(?im)runtimes\.[\"']?{name}[\"']?[\].]|^[ \t]*{name} = \{{", line) for line in lines)


def reduced(tree: Tree, kept: t.Collection[Part]) -> Tree:
    """The tree with these parts only."""
    made = copy.copy(tree)
    made.files = [_reduced_file(("files", index), file, kept) for index, file in enumerate(tree.files) if not index or ("files", index) in kept]
    made.edit = [_reduced_file(("edit", index), file, kept) for index, file in enumerate(tree.edit) if ("edit", index) in kept]
    paths = {file.path for file in made.files}
    made.removed = [path for path in tree.removed if ("removed", path) in kept and path in paths]
    made.links = {path: target for path, target in tree.links.items() if ("links", path) in kept}
    made.others = {path: text for path, text in tree.others.items() if ("others", path) in kept}
    made.directories = [path for path in tree.directories if ("directories", path) in kept]
    made.upgrade = tree.upgrade if ("upgrade",) in kept else None
    made.systemd_cgroup = tree.systemd_cgroup and ("systemd_cgroup",) in kept
    return made


def fewest(every: t.Sequence[Part], fails: t.Callable[[frozenset[Part]], bool], tries: int) -> frozenset[Part]:
    """The fewest parts that still fail, as far as Hypothesis finds them in about so many tries; all of them where it finds none."""
    known: dict[frozenset[Part], bool] = {}

    def fails_still(flags: list[int]) -> bool:
        kept = frozenset(part for part, flag in zip(every, flags) if flag)
        if kept not in known:
            known[kept] = len(known) < tries * 3 and fails(kept)
        return known[kept]

    # Nine of ten parts are kept to begin with, so that what is needed is mostly there; 0, the simplest, is to leave a part out.
    flags = strategies.lists(strategies.integers(0, 9), min_size=len(every), max_size=len(every))
    settings = hypothesis.settings(max_examples=tries, database=None, deadline=None, derandomize=True, suppress_health_check=list(hypothesis.HealthCheck))
    try:
        found = hypothesis.find(flags, fails_still, settings=settings)
    except hypothesis.errors.NoSuchExample:
        return frozenset(every)
    return frozenset(part for part, flag in zip(every, found) if flag)


def smallest(tree: Tree, line: str, result: Result, host: ContainerdHost) -> Small:
    """The smallest tree that fails in one of the ways in which this one does."""
    judged: dict[frozenset[Part], Result] = {}

    def fails(kept: frozenset[Part]) -> bool:
        judged[kept] = judge(host, reduced(tree, kept), line)
        return bool(set(judged[kept].findings()) & set(result.findings()))

    every = parts(tree)
    kept = fewest(every, fails, _TRIES)
    small = reduced(tree, kept)
    return Small(small, judged.get(kept) or judge(host, small, line), len(judged))


# the case ------------------------------------------------------------------------------------------------------------------------


def write_case(folder: pathlib.Path, name: str, tree: Tree, line: str, result: Result) -> pathlib.Path:
    """Writes the tree, the capture and the daemon's answer as a directory of tests/cases; returns it.

    The daemon's word is what is expected. What a person must add: which fault numbers have to be among the product's.
    """
    case = folder / f"differential-{name}"
    shutil.rmtree(case, ignore_errors=True)
    case.mkdir(parents=True)
    for file in tree.final():
        target = case / file.path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.render().encode("utf-8", "surrogateescape"))
    if result.evidence.get("capture"):
        write_capture(result.evidence["capture"], str(case / "captures" / line))
    (case / "expected.yml").write_text(yaml.safe_dump({"captures": {line: expected(tree, result)}}, sort_keys=False), encoding="utf-8")
    said = [f"{kind}: {sentence}" for kind, sentences in result.findings().items() for sentence in sentences]
    links = [f"{path} is a link to {target}." for path, target in tree.links.items()]
    story = [f"# differential-{name}", "", f"Found by the differential test on containerd {line}: {', '.join(tree.ingredients)}.", "", *links, *said]
    if tree.stale:
        story += ["", "The files are as they lie after a change that the running daemon has not read."]
    (case / "case.md").write_text("\n".join(story) + "\n", encoding="utf-8")
    log = str(result.evidence.get("log", "")).strip().splitlines()[-8:]
    answer = [f"# differential-{name}: expected", "", "What the daemon printed last:", "", "```", *log, "```"]
    (case / "expected.md").write_text("\n".join(answer) + "\n", encoding="utf-8")
    return case


def expected(tree: Tree, result: Result) -> dict[str, t.Any]:
    """The right answer for machines: the daemon's, and the generator's account of what was written."""
    truth, restarted = result.evidence.get("truth") or {}, result.evidence.get("restarted") or {}
    handlers = sorted(truth.get("handlers") or {})
    lost = sorted({handler.name for _path, handler in tree.declared()} - set(handlers))
    served = truth.get("state") == "served"
    pending = served and (handlers, truth.get("default")) != (sorted(restarted.get("handlers") or {}), restarted.get("default"))
    return {
        "evidence": "loaded" if served else "none",
        "cri_ready": served,
        "default_handler": truth.get("default"),
        "handlers": handlers,
        "lost": lost,
        "restart_pending": pending,
        "healthy": served and not lost and not pending,
        "faults": [],
        "notes": "the daemon's answer; fault numbers are to be added by hand",
    }
