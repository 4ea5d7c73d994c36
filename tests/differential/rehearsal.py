"""A pair without a daemon: the product's facts of a capture that is made of the tree.

    python -m tests.differential.rehearsal [--pairs 10000] [--seeds 1 2 3]

What this proves: nothing about the product, whose own model of a start stands in for the daemon here. It tells in a minute how
often each fault would come up in a run of some size, so that the generator can be weighed without hours of daemons.
"""

from __future__ import annotations

import argparse
import collections
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import interpret
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.situation import Situation
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.files import decode_configuration
from tests.differential import generate
from tests.differential.parts import BINARIES, CONFIG, SHIMS, Tree
from tests.differential.possible import ALL, on_line
from tests.differential.versions import VERSIONS

_START, _LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
_PROGRAMS = dict.fromkeys(BINARIES, True) | {f"containerd-shim-{kind}-{version}": True for kind in SHIMS for version in ("v1", "v2")}


def _capture(files: dict[str, str], tree: Tree, line: str) -> dict[str, t.Any]:
    """What a collector would bring, without anything that only a daemon can say."""
    links = {path: text[3:] for path, text in files.items() if text.startswith("-> ")}
    texts, strange = {}, {}
    for path, text in files.items():
        if path not in links and not path.endswith("/"):
            texts[path], reason = decode_configuration(text.encode("utf-8", "surrogateescape"))
            strange.update({path: reason} if reason else {})
    driver = "systemd" if tree.systemd_cgroup else "cgroupfs"
    binaries = dict(_PROGRAMS, **{"containerd-shim-runc-v2": True, "runc": True, "/opt/bin/gone": False, "containerd-shim-absent-v1": False})
    node = {
        "engine": "containerd",
        "version": VERSIONS[line],
        "config_path": tree.root,
        "cmdline": "/usr/bin/containerd" + (f" -c {tree.root}" if tree.root != CONFIG else ""),
        "kubelet": {"cgroup_driver": driver},
        "binaries": binaries,
        "links": links,
        "directories": [path.rstrip("/") for path in tree.directories],
        "not_utf8": strange,
        "absent": ["/etc/containerd/gone.json"],
        "cri_state": "not_running",
    }
    return {"format": 1, "node": node, "files": texts, "dump": None, "info": None}


def facts(tree: Tree, line: str) -> dict[str, t.Any]:
    """The product's facts, with its own simulated start in the daemon's place."""
    before = Situation(_capture(tree.before(), tree, line))
    after = tree.before() | {file.path: file.render() for file in tree.final()}
    capture = _capture({path: text for path, text in after.items() if path not in tree.removed}, tree, line)
    node = capture["node"]
    if before.load is not None and before.load.refusal is None:
        node.update(daemon_started=_START, cri_state="unimplemented")
        node["files"] = dict.fromkeys((file.path for file in tree.edit), _LATER)
        if before.section is not None and before.section.down is None:
            node["cri_state"] = "served"
            capture["info"] = {"status": {}, "config": {"containerd": {"runtimes": before.section.handlers, "defaultRuntimeName": before.section.default}}}
    if tree.upgrade:
        node["next_version"] = VERSIONS[tree.upgrade]
    return interpret(capture)


class Rehearsal(t.NamedTuple):
    """What a run would count. numbers: (line, fault) to pairs; shares are of all pairs."""

    pairs: int
    numbers: collections.Counter[tuple[str, int]]
    with_loss: float


def rehearse(pairs: int, seeds: t.Sequence[int], lines: t.Sequence[str] = ALL) -> Rehearsal:
    """Counts each fault of each line over so many pairs, split over the seeds."""
    numbers: collections.Counter[tuple[str, int]] = collections.Counter()
    lost = 0
    for index in range(pairs):
        rest, place = divmod(index, len(seeds))
        number, turn = divmod(rest, len(lines))
        line = lines[turn]
        tree = generate.make(seeds[place], number, line)
        found = facts(tree, line)
        numbers.update({(line, fault["id"]) for fault in found["faults"]})
        lost += bool(found["lost"])
    return Rehearsal(pairs, numbers, lost / pairs)


def main() -> None:
    """Prints the least frequent faults of each line."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.rehearsal")
    parser.add_argument("--pairs", type=int, default=10000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options = parser.parse_args()
    result = rehearse(options.pairs, options.seeds)
    print(f"pairs {result.pairs}, with a loss {result.with_loss:.0%}")
    for line in ALL:
        counts = sorted((result.numbers[line, number], number) for number in on_line(line))
        print(f"{line}: " + ", ".join(f"{number}×{count}" for count, number in counts[:16]))


if __name__ == "__main__":
    main()
