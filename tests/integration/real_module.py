"""Runs the real modules of runtime facts through the real ansible inside a test bed node.

What this proves: nothing by itself; test_real_daemons.py and test_crio_real_daemons.py compare what comes back with the daemon's own answer.
"""

from __future__ import annotations

import json
import pathlib
import sys
import typing as t

from tests.testbed.host import PATH, HostError, RuntimeHost

BIN = str(pathlib.Path(sys.executable).parent)


def module_facts(
    host: RuntimeHost,
    arguments: str = "",
    python: str = sys.executable,
    path: str = PATH,
    module: str = "containerd_runtime_facts",
    fact: str = "containerd_runtime",
) -> dict[str, t.Any]:
    """The fact of the module as `ansible localhost -c local` returns it in the node's namespaces.

    `python` is the interpreter of the node half, `path` the PATH that the module sees. Raises HostError when ansible fails.
    """
    command = [
        f"{BIN}/ansible",
        "localhost",
        "-c",
        "local",
        "-e",
        f"ansible_python_interpreter={python}",
        "-m",
        f"kubenode.runtime_gate.{module}",
    ]
    environment = {
        "PATH": path,
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_LOCAL_TEMP": "/run/ansible-local",
        "ANSIBLE_REMOTE_TEMP": "/run/ansible-remote",
    }
    done = host.run([*command, *(["-a", arguments] if arguments else [])], env=environment, timeout=120)
    head, _arrow, body = done.stdout.partition(" => ")
    if done.returncode or "SUCCESS" not in head:
        raise HostError(f"ansible ended with {done.returncode}: {done.stdout[-2000:]} {done.stderr[-2000:]}")
    return json.loads(body)["ansible_facts"][fact]
