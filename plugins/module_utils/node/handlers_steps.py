# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What module runtime_handlers does on the node: one step a remote call, each by itself.

Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import os
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import binaries, crio, transaction
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.collect import collect
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.state import STATE_DIRECTORY, State

Table = t.Dict[str, t.Any]
#: What OpenShift's Machine Config Operator keeps on a node whose files it renders.
_MACHINE_CONFIG = ("/etc/machine-config-daemon/currentconfig", "/etc/machine-config-daemon/node-annotations.json")


def run(request: t.Mapping[str, t.Any]) -> Table:
    """Do one step.

    :param request: ``step`` (``collect``, ``prove``, ``apply`` or ``probe``) and ``options`` (of transaction.py); for ``collect`` also
        ``collect`` (options of collect.py) and ``executables`` (names and paths to look up); for ``probe`` the ``handlers``;
        else ``plan``.
    :returns: for ``collect``: ``capture`` and ``recovered`` (transaction.recover); else what the step of that name gives.
    :raises RuntimeGateError: the step cannot be done; the node is as it was.
    """
    steps: t.Dict[str, t.Callable[[t.Mapping[str, t.Any]], Table]] = {
        "collect": _collect,
        "prove": _prove,
        "apply": _apply,
        "probe": _probe,
    }
    step = steps.get(str(request.get("step")))
    if step is None:
        raise RuntimeGateError("there is no step %r" % request.get("step"))
    return step(request)


def _collect(request: t.Mapping[str, t.Any]) -> Table:
    """An interrupted change is finished or undone first: what is collected must be a state to build on."""
    recovered = transaction.recover(request["options"])
    capture = collect(request["collect"])
    is_crio = capture["node"].get("engine") == "crio"
    capture["node"]["written_handlers"] = State(request["options"].get("state_directory") or STATE_DIRECTORY).written_handlers()
    _look_up(capture["node"], request.get("crio_executables" if is_crio else "executables") or [])
    return {"capture": capture, "recovered": recovered}


def _look_up(node: Table, names: t.Iterable[str]) -> None:
    """Note the executables of handlers that no file of the node names yet."""
    found = node.setdefault("binaries", {})
    missing = [name for name in names if name not in found]
    running = node.get("daemon_path")
    exes = [one.get("exe") for one in node.get("runtimes") or [] if one.get("engine") == node.get("engine")]
    exe = node.get("daemon_exe") or next(iter(exes), None)
    found.update(binaries.look_up(missing, running or os.environ.get("PATH"), exe, node.get("daemon_cwd"), ""))
    if node.get("engine") == "crio":
        plain = set(node.get("not_executable") or []) | set(crio.not_executable(missing, ""))
        node["not_executable"] = sorted(plain)
        node["machine_config"] = any(os.path.exists(path) for path in _MACHINE_CONFIG)


def _prove(request: t.Mapping[str, t.Any]) -> Table:
    return transaction.prove(request["plan"], request["options"])


def _apply(request: t.Mapping[str, t.Any]) -> Table:
    return transaction.apply(request["plan"], request["options"])


def _probe(request: t.Mapping[str, t.Any]) -> Table:
    return transaction.probe_handlers(request["handlers"], request["options"])
