# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each fault of the catalogue × release line: reproduced on a real daemon, named by the product, absent on the mended twin.

    python -m tests.catalogue [--lines 1.7,2.1] [--ids 2,3] [--slice]

The daemon is asked through cri-ask, the product collects on the node and interprets as the module does. Ends non-zero
when a cell is not reproduced, not named, or still named after mending.
"""

from __future__ import annotations

import argparse
import sys
import typing as t

from tests.catalogue import product
from tests.catalogue.scenarios import ALL, ELSEWHERE, SCENARIOS, Scenario, binary
from tests.testbed.host import ContainerdHost

_BINARIES = ("foo", "kata", "default", "Foo_X")


class Cell(t.NamedTuple):
    """The outcome of one scenario on one line."""

    id: int
    line: str
    reproduced: bool
    named: bool
    mended: bool
    edits: bool
    note: str = ""

    @property
    def good(self) -> bool:
        return self.reproduced and self.named and self.mended


def run(host: ContainerdHost, scenario: Scenario) -> Cell:
    """One cell."""
    _prepare(host, scenario)
    host.start(list(scenario.arguments))
    for path, text in scenario.edited.items():
        product.write_later(host, path, text)
    reproduced = scenario.reproduced(host)
    facts = product.facts(host, scenario.config_path)
    faults = [fault for fault in facts["faults"] if fault["id"] == scenario.id]
    named = bool(faults) and set(scenario.handlers) <= {name for fault in faults for name in fault["handlers"]}
    edits = [edit for fault in faults for edit in fault["fix_edits"]]
    note = "" if named else "faults: %s" % [(fault["id"], fault["handlers"]) for fault in facts["faults"]]
    mended, why = _mend(host, scenario, edits)
    return Cell(scenario.id, host.line, reproduced, named, mended, bool(edits), note + why)


def _prepare(host: ContainerdHost, scenario: Scenario) -> None:
    host.reset()
    for name in _BINARIES:
        if name not in scenario.without:
            host.install_script(binary(name), "#!/bin/sh\nexit 0\n")
        else:
            host.path(binary(name)).unlink(missing_ok=True)
    # The shim is not part of the test bed's containerd; handlers are judged by whether it is there.
    host.install_script("/usr/bin/containerd-shim-runc-v2", "#!/bin/sh\nexit 0\n")
    host.write_tree(scenario.tree)
    if scenario.kubelet:
        host.kubelet()


def _mend(host: ContainerdHost, scenario: Scenario, edits: t.List[t.Dict[str, t.Any]]) -> t.Tuple[bool, str]:
    host.stop()
    product.apply(host, edits)
    for path, text in scenario.mend.items():
        host.path(path).unlink(missing_ok=True) if text is None else host.write(path, text)
    for name in scenario.install:
        host.install_script(binary(name), "#!/bin/sh\nexit 0\n")
    arguments = scenario.arguments if scenario.mended_arguments is None else scenario.mended_arguments
    if not host.start(list(arguments)):
        return False, " mended twin does not start: %s" % host.log().strip()[-300:]
    facts = product.facts(host, None)
    left = [fault for fault in facts["faults"] if fault["id"] == scenario.id]
    if left:
        return False, " still named: %s" % left[0]["message"]
    if scenario.handlers and facts["cri_ready"] is not True:
        return False, " mended twin serves no CRI: %s" % host.log().strip()[-300:]
    gone = [name for name in facts["lost"] if name in scenario.handlers]
    return not gone, " mended twin still lacks %s" % ", ".join(gone) if gone else ""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.catalogue", description=__doc__)
    parser.add_argument("--lines", default=",".join(ALL))
    parser.add_argument("--ids", default="")
    parser.add_argument("--slice", action="store_true", help="the first and the last line of every scenario only")
    return parser.parse_args()


def main() -> int:
    options = _arguments()
    wanted = {int(item) for item in options.ids.split(",") if item}
    cells: t.List[Cell] = []
    for line in options.lines.split(","):
        with ContainerdHost(line) as host:
            for scenario in SCENARIOS:
                lines = (scenario.lines[0], scenario.lines[-1]) if options.slice else scenario.lines
                if line in lines and (not wanted or scenario.id in wanted):
                    cells.append(run(host, scenario))
                    _show(cells[-1])
    return _summary(cells, wanted)


def _show(cell: Cell) -> None:
    words = ["reproduced" if cell.reproduced else "NOT REPRODUCED", "named" if cell.named else "NOT NAMED"]
    words.append("mended by %s" % ("its edits" if cell.edits else "its fix") if cell.mended else "NOT MENDED")
    print("%2d  %-5s  %s%s" % (cell.id, cell.line, ", ".join(words), "  " + cell.note if cell.note else ""), flush=True)


def _summary(cells: t.List[Cell], wanted: t.Set[int]) -> int:
    judged = {cell.id for cell in cells}
    with_edits = {cell.id for cell in cells if cell.edits}
    for number, reason in sorted(ELSEWHERE.items()):
        print("%2d  -      %s" % (number, reason))
    every = set(range(1, 41)) if not wanted else wanted
    uncovered = every - judged - set(ELSEWHERE)
    bad = [cell for cell in cells if not cell.good]
    print(
        "catalogue: %d of 40 numbers judged on a daemon, %d elsewhere, %d with edits; %d cells, %d bad%s"
        % (
            len(judged & set(range(1, 41))),
            len(ELSEWHERE),
            len(with_edits),
            len(cells),
            len(bad),
            ", not covered here: %s" % sorted(uncovered) if uncovered else "",
        )
    )
    return 1 if bad or not cells else 0


if __name__ == "__main__":
    sys.exit(main())
