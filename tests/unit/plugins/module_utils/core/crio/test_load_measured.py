# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated start of CRI-O against what real daemons were measured to do with the same files.

The expected values are tests/integration/crio_scenarios.py, which a test there compares with the daemons themselves.
"""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.situation import CrioSituation
from tests.integration import crio_scenarios as scenarios

#: What a start of 1.36 checks that no file can tell: conmon-rs is asked for its version.
_NOT_SIMULATED = {("pod", "1.36"): "crun p runc default=runc"}
#: Keys that the line has and the build under test has not.
_OTHER_BUILD = {("annot", "1.34"), ("ws", "1.34"), ("aff", "1.34")}
CELLS = [(name, line) for name in scenarios.TREES for line in scenarios.LINES if (name, line) not in _OTHER_BUILD]


def capture(name: str, line: str) -> t.Dict[str, t.Any]:
    """The capture that a collector would make of a scenario's tree on a CrioHost."""
    there = dict.fromkeys(("/usr/bin/runc", "/usr/bin/crun", "/usr/bin/conmon", *scenarios.SCRIPTS), True)
    gone = dict.fromkeys(("/opt/none", "/opt/nope", "/nonexistent/kata.toml", "zz", "kata", "l"), False)
    node = {"engine": "crio", "version": scenarios.VERSIONS[line], "binaries": {**there, **gone}, "not_executable": list(scenarios.PLAIN)}
    return {"node": node, "files": scenarios.tree(name)}


def predicted(name: str, line: str) -> str:
    load = CrioSituation(capture(name, line)).load
    assert load is not None and load.undetermined is None
    if load.refusal is not None:
        return "FATAL"
    return " ".join(sorted(load.handlers)) + f" default={load.default}"


@pytest.mark.parametrize(("name", "line"), CELLS)
def test_prediction_is_what_the_daemon_did(name: str, line: str) -> None:
    assert predicted(name, line) == _NOT_SIMULATED.get((name, line), scenarios.expected(name, line))
