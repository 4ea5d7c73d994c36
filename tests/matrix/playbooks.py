# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The product as people run it: ``ansible-playbook kubenode.runtime_gate.site`` and ``remove`` inside a node of the test bed.

What this proves: nothing by itself. The real ansible runs the installed playbooks over the local connection in the namespaces of the
node, so that the module meets this node's files, processes and daemon and no others.
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
import typing as t

from tests.matrix.product import Product, Table
from tests.testbed.host import HostError, RuntimeHost
from tests.testbed.product import collections_root

PLAYBOOK = pathlib.Path(sys.executable).parent / "ansible-playbook"
LOG = "/run/ansible.log"
_TASK = re.compile(r"^TASK \[kubenode\.runtime_gate\.containerd : Change \| Render, prove, apply and prove again\] .*?(?=^TASK |^PLAY |\Z)", re.M | re.S)
_RESULT = re.compile(r"^(ok|changed|fatal): \[n1\](?:: FAILED!)? => (\{.*?^\})", re.M | re.S)
_REMOTE_CALL = re.compile(r"EXEC .*python\S* \S*AnsiballZ_(\w+)\.py")
#: A cluster that asks for nothing: what the daemon has loaded is judged by the matrix itself.
_NO_CLASS = json.dumps({"apiVersion": "v1", "kind": "List", "items": []}) + '\n---\n{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}\n'


def run_playbook(host: RuntimeHost, name: str, variables: t.Mapping[str, t.Any], *arguments: str) -> subprocess.CompletedProcess[str]:
    """``kubenode.runtime_gate.NAME`` on the node, which the inventory calls n1."""
    every = {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3", "runtime_gate_ready_timeout": 30, **variables}
    command = [str(PLAYBOOK), "-i", "n1,", "kubenode.runtime_gate." + name, "-e", json.dumps(every), *arguments]
    environment = {
        "ANSIBLE_COLLECTIONS_PATH": collections_root(),
        "ANSIBLE_LOCAL_TEMP": "/run/ansible-local",
        "ANSIBLE_REMOTE_TEMP": "/run/ansible-remote",
        "ANSIBLE_LOG_PATH": LOG,
        "ANSIBLE_NOCOLOR": "1",
        "COLUMNS": "120",
    }
    return host.run(command, env=environment, timeout=600)


def remote_calls(text: str) -> t.List[str]:
    """Modules that ran on the node, by the output of a run with -vvv."""
    return _REMOTE_CALL.findall(text)


class PlaybookProduct(Product):
    """The whole rollout, where :class:`Product` is the module: its result is read from what ansible-playbook prints."""

    def change(self, options: t.Mapping[str, t.Any], check: bool = False) -> Table:
        self.host.write("/run/no-class/objects.json.yaml", _NO_CLASS)
        variables = {"runtime_gate_" + name: value for name, value in options.items() if name != "remove"}
        variables.update(runtime_gate_restart_command=[self.restart], runtime_gate_manifests=["/run/no-class"])
        name = "remove" if options.get("remove") else "site"
        done = run_playbook(self.host, name, variables, "-vvv", *(["--check"] if check else []))
        text = done.stdout + done.stderr
        task = _TASK.search(done.stdout)
        found = _RESULT.search(task.group()) if task else None
        if found is None:
            raise HostError("%s did not change or refuse anything: %s" % (name, text[-1200:]))
        # That it failed is not said in the result that is shown.
        result: Table = {**json.loads(found.group(2)), **({"failed": True} if found.group(1) == "fatal" else {})}
        if done.returncode != 0 and not result.get("failed"):
            raise HostError("%s ended with %d after its change: %s" % (name, done.returncode, text[-1200:]))
        calls = remote_calls(text)
        # A run that finds everything as declared: one call to look, and the gate's own look.
        self.calls = ["collect"] * calls.count("runtime_handlers")
        if len(calls) > len(self.calls) + 1:
            raise HostError("%s made %d remote calls: %s" % (name, len(calls), calls))
        return dict({"diff": [], "loaded_diff": [], "restarted": False}, **result)


__all__ = ("LOG", "PlaybookProduct", "remote_calls", "run_playbook")
