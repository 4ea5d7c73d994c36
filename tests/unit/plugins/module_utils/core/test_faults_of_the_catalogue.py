# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scenarios of tests/catalogue without a daemon: named from the files alone, gone after the fault's own edits.

That the scenarios are true of real daemons is shown by `make catalogue`, which runs the same ones.
"""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import interpret
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.fix_edits import apply_edits
from tests.catalogue.scenarios import CONFIG, SCENARIOS, Scenario, binary

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
#: What an edit after the daemon's start does needs a daemon's answer: test_interpret.py.
STALE = (1, 25)
CELLS = [
    pytest.param(scenario, line, id="%d-%s" % (scenario.id, line))
    for scenario in SCENARIOS
    for line in scenario.lines
    if scenario.id not in STALE
]


def facts(scenario: Scenario, line: str, files: dict) -> dict:
    root = scenario.arguments[1] if scenario.arguments else CONFIG
    node = {
        "engine": "containerd",
        "version": VERSIONS[line],
        "config_path": root,
        "cmdline": " ".join(("/usr/bin/containerd",) + scenario.arguments),
        "binaries": {binary(name): name not in scenario.without for name in ("foo", "kata", "default", "Foo_X")},
    }
    if scenario.kubelet:
        node["kubelet"] = {"cgroup_driver": "systemd"}
    return interpret({"node": node, "files": files})


@pytest.mark.parametrize(("scenario", "line"), CELLS)
def test_named_with_its_place_and_a_fix(scenario: Scenario, line: str) -> None:
    answer = facts(scenario, line, scenario.tree)
    faults = [fault for fault in answer["faults"] if fault["id"] == scenario.id]
    assert faults, answer["faults"]
    assert set(scenario.handlers) <= {name for fault in faults for name in fault["handlers"]}
    for fault in faults:
        assert fault["file"].startswith("/") and fault["message"] and fault["fix"].endswith(".")
        assert fault["line"] > 0 or fault["file"] not in scenario.tree or scenario.id in (3, 27, 26)


@pytest.mark.parametrize(("scenario", "line"), CELLS)
def test_its_own_edits_mend_it(scenario: Scenario, line: str) -> None:
    answer = facts(scenario, line, scenario.tree)
    edits = [edit for fault in answer["faults"] if fault["id"] == scenario.id for edit in fault["fix_edits"]]
    if not edits:
        assert scenario.mend or scenario.install, "neither edits nor a mending by hand"
        return
    mended = facts(scenario, line, apply_edits(scenario.tree, edits))
    assert scenario.id not in [fault["id"] for fault in mended["faults"]]
    assert not set(mended["lost"]) & set(scenario.handlers)
