# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Release line of CRI-O × tree of /etc/crio × declaration, applied to a real daemon by the product.

    python -m tests.matrix.crio [--lines 1.36] [--trees packaged,stray] [--declarations one,three] [--slice] [--jobs 2]

A cell: the daemon runs with the tree. Check mode must change nothing and foretell the change. The product applies the declaration and
restarts the daemon, which is then asked what sandboxes can have: every declared handler must be there as declared, and everything
that was there before as it was. A second run must be one call and change nothing, others' files must keep every byte, and removal must
give the first state back, in what is loaded and in every byte. Ends non-zero when a cell is bad.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import itertools
import sys
import time
import typing as t

from tests.matrix.crio_product import CONFIG_DIR, CrioProduct
from tests.matrix.product import Table
from tests.testbed.crio_host import CONFIG, CrioHost
from tests.testbed.host import HostError
from tests.testbed.tools import CRIO_LINES, tool

KATA = "/opt/kata/bin/containerd-shim-kata-v2"
MINE = {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/local/bin/mine", "Root": "/run/mine"}}
OWN = {"runtime_type": "oci", "runtime_path": "/usr/local/bin/mine", "monitor_env": ["A=b"], "allowed_annotations": ["io.kubernetes.cri-o.ShmSize"]}
CONSENT = {"accept_blast_radius": True}
_PACKAGED = """[crio.runtime.runtimes.crun]
runtime_path = "/usr/bin/crun"
runtime_root = "/run/crun"
monitor_path = "/usr/bin/conmon"
[crio.runtime.runtimes.runc]
runtime_path = "/usr/bin/runc"
runtime_root = "/run/runc"
monitor_path = "/usr/bin/conmon"
"""
_SITE = '[crio.runtime]\ndefault_runtime = "runc"\n[crio.runtime.runtimes.runc]\nruntime_path = "/usr/bin/runc"\n'


class Tree(t.NamedTuple):
    """Files, and the command line that the daemon is started with.

    :ivar refuses: declaration → words with which the product must refuse it.
    """

    name: str
    files: t.Mapping[str, str]
    arguments: t.Tuple[str, ...] = ()
    refuses: t.Mapping[str, str] = {}


TREES = (
    Tree("absent", {}),
    Tree("packaged", {CONFIG: '# [crio.runtime]\n# default_runtime = "crun"\n', CONFIG_DIR + "/10-crio.conf": _PACKAGED}),
    Tree("root", {CONFIG: _SITE}),
    Tree(
        "later",
        {CONFIG_DIR + "/10-crio.conf": _PACKAGED, CONFIG_DIR + "/99-site.conf": _SITE + '[crio.runtime.runtimes.site]\nruntime_path = "/usr/bin/runc"\n'},
    ),
    Tree(
        "same",
        {CONFIG_DIR + "/50-team.conf": '[crio.runtime.runtimes.mine]\nruntime_path = "/usr/bin/runc"\nallowed_annotations = ["io.kubernetes.cri-o.Devices"]\n'},
    ),
    Tree(
        "stray",
        {
            CONFIG_DIR + "/10-crio.conf.bak": _PACKAGED,
            CONFIG_DIR + "/old/10-x.conf": '[crio.runtime.runtimes.stale]\nruntime_path = "/usr/bin/runc"\n',
            CONFIG_DIR + "/zzz-last.conf": "# nothing\n",
        },
    ),
    Tree("dropped", {CONFIG_DIR + "/10-crio.conf": _PACKAGED, CONFIG_DIR + "/20-x.conf": '[crio.runtime.runtimes.gone]\nruntime_path = "/opt/none"\n'}),
    Tree(
        "elsewhere",
        {"/etc/crio/site/crio.conf": _SITE, "/etc/crio/site/conf.d/10-crio.conf": _PACKAGED},
        ("--config", "/etc/crio/site/crio.conf", "--config-dir", "/etc/crio/site/conf.d"),
    ),
    Tree("flags", {CONFIG_DIR + "/10-crio.conf": _PACKAGED}, ("--default-runtime", "runc"), {"default": "the command line of CRI-O names another one"}),
)


class Step(t.NamedTuple):
    """One call of the module. present: declared handler → keys that the daemon must say of it. gone: handlers that it must not have."""

    options: Table
    present: t.Mapping[str, Table]
    default: t.Optional[str] = None
    gone: t.Tuple[str, ...] = ()


_IS_CRUN = {"runtime_path": "/usr/bin/crun"}
_IS_MINE = {"runtime_path": "/usr/local/bin/mine", "runtime_root": "/run/mine"}
_IS_KATA = {"runtime_path": KATA, "runtime_type": "vm", "runtime_root": "/run/vc", "privileged_without_host_devices": True}
DECLARATIONS: t.Dict[str, t.Tuple[Step, ...]] = {
    "one": (Step({"handlers": {"mine": MINE}}, {"mine": _IS_MINE}),),
    "three": (
        Step({"handlers": {"crun": {"preset": "crun"}, "kata": {"preset": "kata"}, "mine": MINE}}, {"crun": _IS_CRUN, "kata": _IS_KATA, "mine": _IS_MINE}),
    ),
    "default": (Step({"handlers": {"mine": MINE}, "default_handler": "mine"}, {"mine": _IS_MINE}, "mine"),),
    "own words": (Step({"handlers": {"own": OWN}}, {"own": {key: value for key, value in OWN.items() if key != "runtime_type"}}),),
    "removal": (
        Step({"handlers": {"extra": MINE, "kata": {"preset": "kata"}}}, {"extra": _IS_MINE, "kata": _IS_KATA}),
        Step({"handlers": {"extra": {"state": "absent"}}}, {"kata": _IS_KATA}, gone=("extra",)),
    ),
}


@dataclasses.dataclass
class Cell:
    """The outcome of one cell. faults: sentences; none: it is good."""

    line: str
    tree: str
    declaration: str
    faults: t.List[str] = dataclasses.field(default_factory=list)
    steps: int = 0
    refused: bool = False
    removed: bool = False

    def __str__(self) -> str:
        words = "refused" if self.refused else "%d steps, %s" % (self.steps, "removed byte for byte" if self.removed else "NOT REMOVED")
        return "%-5s %-10s %-10s %s%s" % (self.line, self.tree, self.declaration, words, "".join("\n       " + fault[:700] for fault in self.faults))


def run_cell(product: CrioProduct, tree: Tree, name: str) -> Cell:
    """One cell, on a node that is reset first."""
    cell = Cell(product.host.line, tree.name, name)
    try:
        _lay(product, tree)
        _run(product, tree, name, cell)
    except HostError as error:
        cell.faults.append("the node: %s" % error)
    return cell


def _lay(product: CrioProduct, tree: Tree) -> None:
    product.reset()
    product.install_restart(tree.arguments)
    product.host.install(tool("runc"), "/usr/local/bin/mine")
    product.host.install_script(KATA, "#!/bin/sh\nexit 1\n")
    product.host.write_tree(tree.files)
    product.start()


def _run(product: CrioProduct, tree: Tree, name: str, cell: Cell) -> None:
    first, bytes_before = product.loaded(), product.files()
    refusal = tree.refuses.get(name)
    for step in DECLARATIONS[name]:
        before, restarts = product.files(), product.restarts()
        check = product.change({**step.options, **CONSENT}, check=True)
        if product.files() != before or product.restarts() != restarts:
            cell.faults.append("check mode changed something")
        result = product.change({**step.options, **CONSENT})
        if refusal is not None:
            cell.refused = bool(result.get("failed")) and refusal in result["msg"] and product.files() == bytes_before
            cell.faults += [] if cell.refused else ["it must be refused with %r: %s" % (refusal, result)]
            return
        if result.get("failed"):
            cell.faults.append("refused or failed: %s" % result["msg"])
            return
        if result["loaded_diff"] != check.get("loaded_diff"):
            cell.faults.append("check said %s, apply said %s" % (check.get("loaded_diff"), result["loaded_diff"]))
        cell.faults += _shortcomings(product, step, first)
        again = product.change({**step.options, **CONSENT})
        if again.get("failed") or again["changed"] or product.calls != ["collect"]:
            cell.faults.append("a second run changed something: %s %s" % (product.calls, again))
        cell.steps += 1
    after = product.files()
    lost = [path for path in bytes_before if after.get(path) != bytes_before[path]]
    cell.faults += ["files of others changed: %s" % lost] if lost else []
    removed = product.change({"remove": True, **CONSENT})
    cell.removed = not removed.get("failed") and product.files() == bytes_before and product.loaded() == first
    cell.faults += [] if cell.removed else ["removal: %s; %s, first %s" % (removed, product.loaded(), first)]


def _shortcomings(product: CrioProduct, step: Step, first: t.Tuple[t.Dict[str, Table], t.Optional[str]]) -> t.Iterator[str]:
    handlers, default = product.loaded()
    for name, wanted in step.present.items():
        for key, value in wanted.items():
            if (handlers.get(name) or {}).get(key) != value:
                yield "handler %s: %s is %r, not %r" % (name, key, (handlers.get(name) or {}).get(key), value)
    yield from ("handler %s is still there" % name for name in step.gone if name in handlers)
    for name, body in first[0].items():
        if name not in step.present and handlers.get(name) != body:
            yield "handler %s, which was there, is now %s" % (name, handlers.get(name))
    if default != (step.default or first[1]):
        yield "the default handler is %s, not %s" % (default, step.default or first[1])


def run_line(line: str, trees: t.Sequence[str], declarations: t.Sequence[str]) -> t.List[Cell]:
    """Every chosen cell of one release line, on one node."""
    cells = []
    with CrioHost(line) as host:
        product = CrioProduct(host)
        for tree, name in itertools.product([tree for tree in TREES if tree.name in trees], declarations):
            cells.append(run_cell(product, tree, name))
            print(cells[-1], flush=True)
        product.close()
    return cells


def main(arguments: t.Optional[t.List[str]] = None) -> int:
    """Runs the cells and prints the figures; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix.crio", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", default=",".join(CRIO_LINES))
    parser.add_argument("--trees", default="")
    parser.add_argument("--declarations", default="")
    parser.add_argument("--slice", action="store_true", help="some trees and declarations only")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    trees = options.trees.split(",") if options.trees else ("packaged", "same", "flags") if options.slice else [tree.name for tree in TREES]
    declarations = options.declarations.split(",") if options.declarations else ("three", "default") if options.slice else list(DECLARATIONS)
    started = time.monotonic()
    cells: t.List[Cell] = []
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        lines = options.lines.split(",")
        for found in pool.map(run_line, lines, [trees] * len(lines), [declarations] * len(lines)):
            cells += found
    bad = [cell for cell in cells if cell.faults]
    for cell in bad:
        print("BAD  %s" % str(cell).split("\n")[0])
    print(
        "matrix of CRI-O: %d cells on %d release lines, %d bad; %d applied, %d steps with an unchanged second run, %d refused as they must be, "
        "%d removed byte for byte; %d s"
        % (
            len(cells),
            len({cell.line for cell in cells}),
            len(bad),
            sum(cell.steps > 0 for cell in cells),
            sum(cell.steps for cell in cells),
            sum(cell.refused for cell in cells),
            sum(cell.removed for cell in cells),
            time.monotonic() - started,
        )
    )
    return 1 if bad or not cells else 0


if __name__ == "__main__":
    sys.exit(main())
