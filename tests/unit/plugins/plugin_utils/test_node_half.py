# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the action plugins make of the module's result."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.collect_options import CAPTURE_KEY
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_half import NodeHalfFailed, run_node_half


def _run(result: t.Dict[str, t.Any], **arguments: t.Any) -> t.Tuple[t.Dict[str, t.Any], t.Dict[str, t.Any]]:
    asked = {}

    def execute(**more: t.Any) -> t.Dict[str, t.Any]:
        asked.update(more)
        return result

    answer = run_node_half(execute, arguments, {"a": 1})
    assert asked["module_args"] == {name: value for name, value in arguments.items() if value is not None}
    assert asked["task_vars"] == {"a": 1}
    return answer


def test_a_capture() -> None:
    result = {CAPTURE_KEY: {"format": 1}, "warnings": ["w"], "invocation": {}, "changed": False}
    assert _run(result, timeout=5.0, endpoint=None) == ({"format": 1}, {"warnings": ["w"]})


# result of the module -> words of the message; None: passed on as it is
FAILURES: t.List[t.Tuple[t.Dict[str, t.Any], t.Optional[str]]] = [
    ({"failed": True, "msg": "ansible-core requires a minimum of Python version 3.8. Current version: 3.6.8"}, "Current version: 3.6.8"),
    ({"failed": True, "module_stderr": "  File x\nSyntaxError: future feature annotations is not defined", "msg": "MODULE FAILURE"}, "SyntaxError"),
    ({"failed": True, "module_stderr": "/bin/sh: /usr/bin/python3: No such file or directory\n", "rc": 127}, "No such file"),
    ({"failed": True, "module_stdout": "/bin/sh: 1: python3: not found"}, "not found"),
    ({"failed": True, "msg": "The module interpreter '/usr/bin/python3.5' was not found."}, "3.5"),
    ({"failed": True, "msg": "the value of timeout is wrong", "invocation": {}}, None),
    ({"changed": False}, None),
    ({CAPTURE_KEY: "text"}, None),
]


@pytest.mark.parametrize("result, words", FAILURES)
def test_failures(result: t.Dict[str, t.Any], words: t.Optional[str]) -> None:
    with pytest.raises(NodeHalfFailed) as caught:
        _run(result)
    failure = caught.value.result
    assert failure["failed"] is True and CAPTURE_KEY not in failure and "invocation" not in failure
    if words is None:
        assert failure["msg"] == result.get("msg", "the node half gave no answer")
    else:
        ways = ("status.runtimeHandlers (runtime_gate_source: api, ", "runtimeclass_crosscheck", "runtime_gate_captures, ", "'capture'")
        assert all(part in failure["msg"] for part in (words, *ways))
        assert sorted(failure) == ["failed", "msg"]


def test_an_unreachable_host_stays_unreachable() -> None:
    with pytest.raises(NodeHalfFailed) as caught:
        _run({"unreachable": True, "msg": "python3: not found"})
    assert caught.value.result == {"unreachable": True, "msg": "python3: not found"}
