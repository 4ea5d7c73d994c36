# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated start against what real daemons of nine releases were measured to do with the same files.

The expected values are tests/integration/loading_expected.py, which a test there compares with the daemons themselves.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.situation import Situation
from tests.integration import loading_scenarios
from tests.integration.loading_expected import EXPECTED

#: The patch level that stands for each line of the measured table.
VERSIONS = {
    "1.4": "1.4.13",
    "1.6": "1.6.20",
    "1.7": "1.7.24",
    "2.0": "2.0.11",
    "2.1": "2.1.9",
    "2.2": "2.2.7",
    "2.3.4": "2.3.4",
    "2.3": "2.3.7",
    "2.4": "2.4.2",
}
CELLS = [
    (scenario, line, outcome)
    for scenario, outcomes in EXPECTED.items()
    for outcome, lines in outcomes.items()
    for line in lines.split()
]


def capture(tree: dict, version: str) -> dict:
    """The capture that a collector would make of a scenario's tree (links, directories and what does not exist)."""
    node = {"engine": "containerd", "version": version, "config_path": "/etc/containerd/config.toml"}
    node["links"] = {path: text[3:] for path, text in tree.items() if text.startswith("-> ")}
    node["directories"] = [path.rstrip("/") for path in tree if path.endswith("/")]
    node["absent"] = ["/nonexistent.json"]
    files = {path: text for path, text in tree.items() if path not in node["links"] and not path.endswith("/")}
    return {"node": node, "files": files}


def predicted(tree: dict, version: str) -> str:
    situation = Situation(capture(tree, version))
    if situation.section is None:
        return "FATAL"
    if situation.section.down is not None:
        return "CRI-DOWN"
    default = situation.section.default
    return " ".join(sorted(situation.section.handlers)) + ("" if default == "runc" else f" default={default}")


@pytest.mark.parametrize(("scenario", "line", "outcome"), CELLS, ids=lambda value: str(value))
def test_prediction_is_what_the_daemon_did(scenario: tuple, line: str, outcome: str) -> None:
    assert predicted(getattr(loading_scenarios, scenario[0])[scenario[1]], VERSIONS[line]) == outcome.removesuffix(" warn")
