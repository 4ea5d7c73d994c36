# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mistyped variables of ours are named; whatever the roles and playbooks read is known."""

from __future__ import annotations

import pathlib
import re

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import known_variables
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import RunStore

ROOT = pathlib.Path(__file__).resolve().parents[4]


def _variables(**given):
    return {"inventory_hostname": "w1", "ansible_host": "x", **given}


def test_a_mistyped_name_is_named_with_the_one_that_is_meant(tmp_path):
    given = _variables(runtime_gate_handler={}, runtime_gate_handlers={}, runtime_gate_team_note="", runtimegate_x=1)
    assert known_variables.warnings(given, RunStore(str(tmp_path))) == [
        "host w1 has a variable runtime_gate_handler, which kubenode.runtime_gate does not know and does not read; "
        "did you mean runtime_gate_handlers?",
        "host w1 has a variable runtime_gate_team_note, which kubenode.runtime_gate does not know and does not read",
    ]


def test_a_name_is_told_once_a_run(tmp_path):
    store = RunStore(str(tmp_path))
    assert len(known_variables.warnings(_variables(runtime_gate_handler={}), store)) == 1
    later = known_variables.warnings(dict(_variables(runtime_gate_handler={}, runtime_gate_polcy={}), inventory_hostname="w2"), store)
    assert [text.split(",")[0] for text in later] == ["host w2 has a variable runtime_gate_polcy"]


def test_every_variable_that_roles_and_playbooks_read_is_known():
    texts = [path.read_text() for folder in ("roles", "playbooks") for path in (ROOT / folder).rglob("*.yml")]
    read = {name for text in texts for name in re.findall(r"\bruntime_gate_[a-z_]+[a-z]\b", text)}
    assert len(read) > 50 and read - known_variables.known() == set()
