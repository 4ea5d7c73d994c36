# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages name the role's variables; to a caller of the module they name its options."""

from __future__ import annotations

import pathlib
import re

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import option_names

ROOT = pathlib.Path(__file__).resolve().parents[4] / "plugins"


def test_sentences_have_the_names_of_the_module() -> None:
    result = {
        "msg": "set runtime_gate_repair: true, runtime_gate_restart_control_plane or runtime_gate_restart; runtime_gate_serial stays",
        "notes": ["runtime_gate_become: true"],
        "reasons": [],
        "backup": "/runtime_gate_unit",
        "changed": True,
    }
    assert option_names.of_the_module(result) == {
        "msg": "set repair: true, restart_control_plane or restart; runtime_gate_serial stays",
        "notes": ["become: true"],
        "reasons": [],
        "backup": "/runtime_gate_unit",
        "changed": True,
    }


def test_no_message_of_the_writer_names_an_option_that_is_no_variable_of_the_role() -> None:
    paths = [*(ROOT / "plugin_utils/rendering").glob("*.py"), ROOT / "plugin_utils/handlers_flow.py", ROOT / "module_utils/node/restart.py"]
    option = re.compile(
        r'["( ](?:(?:repair|become|accept_blast_radius|allow_absent_binary): (?:true|false)|migrate: 3|mode: (?:auto|merge|dropin)|'
        r"restart: never|set (?:target_version|default_handler))"
    )
    for path in paths:
        strings = [line for line in path.read_text(encoding="utf-8").splitlines() if '"' in line and '"""' not in line]
        assert not [line for line in strings if option.search(line)], path
