"""Runs the product's node half on a test bed node, and its core here, the way the module does.

What this proves: nothing by itself. collect() runs as a process of its own inside the node's namespaces, by any interpreter, and hands the
capture over as JSON; interpret() is the pure core in this process.
"""

from __future__ import annotations

import json
import pathlib
import sys
import typing as t

from tests.testbed.host import HostError, RuntimeHost

_COLLECT = """
import json, sys
sys.path.insert(0, sys.argv[1])
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.collect import collect
json.dump(collect(json.load(sys.stdin)), sys.stdout)
"""


def collections_root() -> str:
    """The directory in which this environment has ansible_collections/kubenode/runtime_gate. Raises HostError without one."""
    for entry in sys.path:
        if (pathlib.Path(entry or ".") / "ansible_collections/kubenode/runtime_gate/plugins").is_dir():
            return str(pathlib.Path(entry or ".").resolve())
    raise HostError("the collection kubenode.runtime_gate is not on sys.path: run `make venv` and use .venv/bin/python")


def collect(host: RuntimeHost, options: dict[str, t.Any] | None = None, python: str = sys.executable, env: dict[str, str] | None = None) -> dict[str, t.Any]:
    """The product's capture of the node. Raises HostError with what it printed when it ends with a traceback."""
    text = json.dumps({"engine": host.engine, **(options or {})})
    done = host.run([python, "-c", _COLLECT, collections_root()], input=text, timeout=120, env=env)
    if done.returncode:
        raise HostError(f"collect ended with {done.returncode}: {done.stderr[-3000:]}")
    return json.loads(done.stdout)


def interpret(capture: dict[str, t.Any]) -> dict[str, t.Any]:
    """The product's facts of a capture, by the core of its engine."""
    if capture["node"].get("engine") == "crio":
        from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.interpret import interpret as core
    else:
        from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import interpret as core

    return core(json.loads(json.dumps(capture)))
