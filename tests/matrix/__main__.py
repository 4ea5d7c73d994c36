# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Release line × root file × files of other tools × declaration, applied to a real daemon by the product.

    python -m tests.matrix [--lines 1.6,2.1] [--roots eks,docker] [--declarations one,three] [--foreign] [--slice] [--playbooks] [--jobs 2]

A cell: the daemon runs with the tree. The product applies the declaration and restarts the daemon, which is then asked by
cri-ask: every declared handler must be loaded as declared, and everything that was loaded before as it was. A second run
must change nothing. Removal must give the first state back, in what is loaded and, where nothing had to be repaired, in
every byte below the configuration's directories. Where a tree needs `repair: true`, the product must refuse it without, for the
reason in trees.py, and have changed nothing. Ends non-zero when a cell is bad. With --playbooks the product is what people run,
ansible-playbook with site and remove; without it is the module, which takes a tenth of the time.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import itertools
import sys
import time
import typing as t

from tests.matrix.cells import DECLARATIONS, Cell, run_cell
from tests.matrix.playbooks import PlaybookProduct
from tests.matrix.product import Product
from tests.matrix.trees import ROOTS
from tests.testbed.host import ContainerdHost

LINES = ("1.6", "1.7", "2.0", "2.1", "2.2", "2.3", "2.4")
#: Of each kind one that is different from the others.
_SLICE_ROOTS = ("distribution", "config-default", "docker", "k3s", "absent")
_SLICE_DECLARATIONS = ("three", "default")


class Choice(t.NamedTuple):
    """Which cells, and by what the product is run."""

    roots: t.Sequence[str]
    declarations: t.Sequence[str]
    foreign: t.Sequence[bool]
    playbooks: bool


def run_line(line: str, choice: Choice) -> t.List[Cell]:
    """Every chosen cell of one release line, on one node."""
    cells = []
    with ContainerdHost(line) as host:
        product = (PlaybookProduct if choice.playbooks else Product)(host)
        chosen = [root for root in ROOTS if root.name in choice.roots]
        for root, foreign, name in itertools.product(chosen, choice.foreign, choice.declarations):
            cells.append(run_cell(product, root, foreign, name))
            print(cells[-1], flush=True)
        product.close()
    return cells


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", default=",".join(LINES))
    parser.add_argument("--roots", default="")
    parser.add_argument("--declarations", default="")
    parser.add_argument("--slice", action="store_true", help="some roots and declarations only")
    parser.add_argument("--foreign", action="store_true", help="only with files of other tools")
    parser.add_argument("--playbooks", action="store_true", help="by ansible-playbook, site and remove")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def main() -> int:
    options = _arguments()
    every_root = _SLICE_ROOTS if options.slice else tuple(root.name for root in ROOTS)
    every_declaration = _SLICE_DECLARATIONS if options.slice else tuple(DECLARATIONS)
    roots = options.roots.split(",") if options.roots else every_root
    declarations = options.declarations.split(",") if options.declarations else every_declaration
    choice = Choice(roots, declarations, (True,) if options.foreign else (False, True), options.playbooks)
    lines = options.lines.split(",")
    started = time.monotonic()
    cells: t.List[Cell] = []
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for found in pool.map(run_line, lines, [choice] * len(lines)):
            cells += found
    return _summary(cells, time.monotonic() - started)


def _summary(cells: t.Sequence[Cell], seconds: float) -> int:
    bad = [cell for cell in cells if cell.faults]
    for cell in bad:
        print("BAD  %s" % str(cell).split("\n")[0])
    print(
        "matrix: %d cells on %d release lines, %d bad; %d applied as they were, %d refused first and repaired, %d refused; "
        "%d second runs, %d unchanged; %d removals, %d of them byte for byte; %d s"
        % (
            len(cells),
            len({cell.line for cell in cells}),
            len(bad),
            sum(cell.applied and not cell.repaired for cell in cells),
            sum(cell.applied and cell.repaired for cell in cells),
            sum(cell.refused for cell in cells),
            sum(cell.second_runs for cell in cells),
            sum(cell.unchanged for cell in cells),
            sum(cell.removed for cell in cells),
            sum(cell.same_bytes for cell in cells),
            seconds,
        )
    )
    return 1 if bad or not cells else 0


if __name__ == "__main__":
    sys.exit(main())
