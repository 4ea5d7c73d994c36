"""Runs the real module containerd_runtime_facts through the real ansible inside a test bed node.

What this proves: nothing by itself; test_real_daemons.py compares what comes back with the daemon's own answer.
"""

from __future__ import annotations

import json
import pathlib
import sys
import typing as t

from tests.testbed.host import PATH, ContainerdHost, HostError

BIN = str(pathlib.Path(sys.executable).parent)


def module_facts(host: ContainerdHost, arguments: str = "", python: str = sys.executable, path: str = PATH) -> dict[str, t.Any]:
    """ansible_facts.containerd_runtime as `ansible localhost -c local` returns it in the node's namespaces.

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
        "kubenode.runtime_gate.containerd_runtime_facts",
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
    return json.loads(body)["ansible_facts"]["containerd_runtime"]
