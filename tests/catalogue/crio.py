# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each fault of CRI-O × release line: reproduced on a real daemon, named by the product, absent on the mended twin.

    python -m tests.catalogue.crio [--lines 1.36] [--ids 45,46]

Ends non-zero when a cell is not reproduced, not named, or still named after mending and a restart.
"""

from __future__ import annotations

import argparse
import sys
import typing as t

from tests.catalogue import product
from tests.catalogue.crio_scenarios import FOO, SCENARIOS, SHIM, Scenario
from tests.testbed.crio_host import CrioHost
from tests.testbed.tools import CRIO_LINES

NUMBERS = range(41, 47)


class Cell(t.NamedTuple):
    """The outcome of one scenario on one line."""

    scenario: Scenario
    line: str
    reproduced: bool
    named: bool
    mended: bool
    note: str

    @property
    def good(self) -> bool:
        return self.reproduced and self.named and self.mended


def run(host: CrioHost, scenario: Scenario) -> Cell:
    """One cell."""
    host.reset()
    for path in (FOO, SHIM):
        host.install_script(path, "#!/bin/sh\nexit 1\n")
    host.write_tree(scenario.tree)
    host.kubelet()
    host.journal()
    if not host.start():
        return Cell(scenario, host.line, False, False, False, "the daemon does not start: %s" % host.log()[-300:])
    for path, text in scenario.edited.items():
        product.write_later(host, path, text)
    if scenario.edited:
        host.hangup()
    reproduced = scenario.reproduced(host)
    facts = product.facts(host)
    faults = [fault for fault in facts["faults"] if fault["id"] == scenario.id]
    named = bool(faults) and set(scenario.handlers) <= {name for fault in faults for name in fault["handlers"]}
    note = "" if named else "faults: %s" % [(fault["id"], fault["handlers"]) for fault in facts["faults"]]
    mended, why = _mend(host, scenario, [edit for fault in faults for edit in fault["fix_edits"]])
    return Cell(scenario, host.line, reproduced, named, mended, note + why)


def _mend(host: CrioHost, scenario: Scenario, edits: t.List[t.Dict[str, t.Any]]) -> t.Tuple[bool, str]:
    """The repair: the fault's own edits where nothing else is said, and a restart, which is what the fix of 45 and 46 is."""
    host.stop()
    if not scenario.mend and not scenario.install:
        product.apply(host, edits)
    for path, text in scenario.mend.items():
        host.path(path).unlink(missing_ok=True) if text is None else host.write(path, text)
    for path in scenario.install:
        host.install_script(path, "#!/bin/sh\nexit 1\n")
    if not host.start():
        return False, " mended twin does not start: %s" % host.log()[-300:]
    facts = product.facts(host)
    left = [fault for fault in facts["faults"] if fault["id"] == scenario.id and fault["severity"] != "info"]
    if left:
        return False, " still named: %s" % left[0]["message"]
    alarms = [fault["message"] for fault in facts["faults"] if fault["severity"] != "info"]
    return not alarms, " the mended twin has faults: %s" % alarms if alarms else ""


def main(arguments: t.Optional[t.List[str]] = None) -> int:
    """Runs every scenario and prints the table; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.catalogue.crio", description=__doc__)
    parser.add_argument("--lines", default=",".join(CRIO_LINES))
    parser.add_argument("--ids", default=",".join(map(str, NUMBERS)))
    options = parser.parse_args(arguments)
    wanted = {int(number) for number in options.ids.split(",")}
    cells: t.List[Cell] = []
    for line in options.lines.split(","):
        with CrioHost(line) as host:
            for scenario in SCENARIOS:
                if scenario.id in wanted:
                    cells.append(run(host, scenario))
                    _show(cells[-1])
    bad = [cell for cell in cells if not cell.good]
    judged = sorted({cell.scenario.id for cell in cells})
    print("catalogue of CRI-O: numbers %s on lines %s; %d cells, %d bad" % (judged, options.lines, len(cells), len(bad)))
    return 1 if bad or not cells or set(judged) != wanted else 0


def _show(cell: Cell) -> None:
    words = [
        "reproduced" if cell.reproduced else "NOT REPRODUCED",
        "named" if cell.named else "NOT NAMED",
        "mended" if cell.mended else "NOT MENDED",
    ]
    print("%2d  %-5s  %-36s %s%s" % (cell.scenario.id, cell.line, cell.scenario.name, ", ".join(words), "  " + cell.note if cell.note else ""), flush=True)


if __name__ == "__main__":
    sys.exit(main())
