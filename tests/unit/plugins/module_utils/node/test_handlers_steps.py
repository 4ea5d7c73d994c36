# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node half of runtime_handlers: the order of its parts, and what is handed through."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import handlers_steps
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.state import State


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> t.List[t.Any]:
    """What was called with what, in its order."""
    calls: t.List[t.Any] = []

    def note(name: str, answer: t.Any) -> t.Callable[..., t.Any]:
        def called(*arguments: t.Any) -> t.Any:
            calls.append((name, *arguments))
            return answer

        return called

    node = {"engine": "containerd", "binaries": {"runc": True}, "runtimes": [{"engine": "containerd", "exe": "/usr/bin/env"}]}
    monkeypatch.setattr(handlers_steps.transaction, "recover", note("recover", {"msg": "done"}))
    monkeypatch.setattr(handlers_steps.transaction, "prove", note("prove", {"exe": "x"}))
    monkeypatch.setattr(handlers_steps.transaction, "apply", note("apply", {"ok": True}))
    monkeypatch.setattr(handlers_steps.transaction, "probe_handlers", note("probe", {"probe": {}}))
    monkeypatch.setattr(handlers_steps, "collect", note("collect", {"node": node}))
    return calls


def test_what_was_interrupted_ends_before_the_node_is_read(seen: t.List[t.Any]) -> None:
    request = {"step": "collect", "options": {"check": True}, "collect": {"timeout": 3}, "executables": ["sh", "/no/such", "runc"]}
    answer = handlers_steps.run(request)
    assert seen == [("recover", {"check": True}), ("collect", {"timeout": 3})]
    assert answer["recovered"] == {"msg": "done"}
    found = answer["capture"]["node"]["binaries"]
    assert found["sh"] is True and found["/no/such"] is False and found["runc"] is True


def test_the_handlers_that_runs_have_written_are_told(seen: t.List[t.Any], tmp_path: pathlib.Path) -> None:
    request = {"step": "collect", "options": {"state_directory": str(tmp_path)}, "collect": {}}
    assert handlers_steps.run(request)["capture"]["node"]["written_handlers"] is None
    State(str(tmp_path)).write_handlers({"b", "a"})
    assert handlers_steps.run(request)["capture"]["node"]["written_handlers"] == ["a", "b"]
    (tmp_path / "handlers.json").write_text("[]")
    assert handlers_steps.run(request)["capture"]["node"]["written_handlers"] is None


def test_proof_and_change_get_the_plan(seen: t.List[t.Any]) -> None:
    assert handlers_steps.run({"step": "prove", "plan": {"a": 1}, "options": {}}) == {"exe": "x"}
    assert handlers_steps.run({"step": "apply", "plan": {"a": 1}, "options": {}}) == {"ok": True}
    assert handlers_steps.run({"step": "probe", "handlers": ["a"], "options": {}}) == {"probe": {}}
    assert seen == [("prove", {"a": 1}, {}), ("apply", {"a": 1}, {}), ("probe", ["a"], {})]


def test_another_step_is_refused() -> None:
    with pytest.raises(RuntimeGateError, match="no step 'x'"):
        handlers_steps.run({"step": "x"})
