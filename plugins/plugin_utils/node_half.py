# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the node half from an action plugin, and says in one sentence why it did not run."""

from __future__ import annotations

import json
import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.collect_options import CAPTURE_KEY

#: The node half that reads whichever engine serves the kubelet.
MODULE = "kubenode.runtime_gate.gate_facts"

# What ansible-core's wrapper, the interpreter or the shell say where no Python, or one that is too old, is on the node.
_PYTHON = re.compile(
    r"minimum of Python version|unsupported Python|SyntaxError|future feature annotations|"
    r"python[0-9.]*: (?:command )?not found|python[0-9.]*: No such file|no python interpreters|Could not find .*python|"
    r"interpreter .* (?:was )?not found|The module interpreter '[^']*' was not found",
    re.IGNORECASE,
)
_OTHER_WAYS = (
    "The node half needs Python 3.8 or later (and what this ansible-core demands) on the node. Without it, judge the node by its Node object's "
    "status.runtimeHandlers (runtime_gate_source: api, or the module kubenode.runtime_gate.runtimeclass_crosscheck), or by a capture directory of "
    "it (runtime_gate_captures, or the module's option 'capture')."
)


class NodeHalfFailed(Exception):
    """The module failed on the node.

    :ivar result: its result with one clear message, to be returned as it is (an unreachable host stays unreachable).
    """

    def __init__(self, result: t.Dict[str, t.Any]) -> None:
        super().__init__(result.get("msg", ""))
        self.result = result


def run_node_half(
    execute_module: t.Callable[..., t.Dict[str, t.Any]],
    arguments: t.Mapping[str, t.Any],
    task_vars: t.Mapping[str, t.Any],
    module: str = MODULE,
) -> t.Tuple[t.Dict[str, t.Any], t.Dict[str, t.Any]]:
    """(capture, rest of the module's result: warnings and the like).

    :param execute_module: ``_execute_module`` of the action plugin.
    :param arguments: the options of collect_options.py; None means not given.
    :param module: the module whose node half is run.
    :raises NodeHalfFailed: the module failed, or the host is unreachable.
    """
    return run_module(execute_module, module, CAPTURE_KEY, arguments, task_vars)


def run_module(
    execute_module: t.Callable[..., t.Dict[str, t.Any]],
    name: str,
    key: str,
    arguments: t.Mapping[str, t.Any],
    task_vars: t.Mapping[str, t.Any],
) -> t.Tuple[t.Dict[str, t.Any], t.Dict[str, t.Any]]:
    """(what the module returns under ``key``, rest of its result: warnings and the like).

    :raises NodeHalfFailed: the module failed, or the host is unreachable.
    """
    given = {option: value for option, value in arguments.items() if value is not None}
    result = execute_module(module_name=name, module_args=given, task_vars=task_vars)
    if result.get("failed") or result.get("unreachable") or not isinstance(result.get(key), dict):
        raise NodeHalfFailed(_explained(result, key))
    rest = {other: result[other] for other in ("warnings", "deprecations") if other in result}
    # Plain data from here on: ansible-core 2.18 has a text class of its own (which no YAML writer knows), 2.19 tags them.
    return json.loads(json.dumps(result[key])), rest


def _explained(result: t.Dict[str, t.Any], answer: str) -> t.Dict[str, t.Any]:
    result = {key: value for key, value in result.items() if key not in (answer, "invocation")}
    if result.get("unreachable"):
        return result
    said = " ".join(str(result.get(key, "")) for key in ("msg", "module_stderr", "module_stdout", "exception"))
    if _PYTHON.search(said):
        return {"failed": True, "msg": "%s Found: %s" % (_OTHER_WAYS, _first_sentence(result, said))}
    result["failed"] = True
    result.setdefault("msg", "the node half gave no answer")
    return result


def _first_sentence(result: t.Mapping[str, t.Any], said: str) -> str:
    match = _PYTHON.search(said)
    lines = [line.strip() for line in said.splitlines() if _PYTHON.search(line)]
    return (lines[0] if lines else match.group() if match else str(result.get("msg", "")))[:300]
