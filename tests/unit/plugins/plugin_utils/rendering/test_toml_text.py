# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values as TOML text, and a controller without the library that spells them."""

from __future__ import annotations

import sys

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.fix_edits import apply_edits
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.toml_text import value_text


def test_values() -> None:
    assert value_text({"a.b": ['say "x"', True, 3]}) == '{ "a.b" = ["say \\"x\\"", true, 3] }'


def test_a_controller_without_tomlkit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tomlkit", None)
    with pytest.raises(RuntimeGateError, match="pip install tomlkit"):
        value_text("x")
    with pytest.raises(RuntimeGateError, match="pip install tomlkit"):
        apply_edits({"/c": ""}, [{"op": "set", "file": "/c", "table": "", "key": "version", "value": 2}])
