# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The product on a node of the test bed: the flow of runtime_handlers here, its node half inside the namespaces.

What this proves: nothing by itself. It is the module and its action plugin without Ansible between them: the requests and
answers are the JSON that would travel. One process inside the node answers all of them, so that a cell of the matrix does
not pay for starting Python each time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.handlers_options import HANDLERS_OPTIONS
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import handlers_flow
from tests.testbed.host import PATH, SOCKET, HostError
from tests.testbed.product import collections_root

Table = t.Dict[str, t.Any]

RESTART = "/usr/local/sbin/restart-containerd"
LOG = "/run/containerd.log"
_CONFIGURATION = (
    "etc/containerd",
    "etc/k0s",
    "var/lib/rancher/k3s/agent/etc/containerd",
    "var/lib/rancher/rke2/agent/etc/containerd",
    "var/snap/microk8s/current/args",
)
#: What a distribution lays outside the directories that every test of the test bed may use.
_OF_DISTRIBUTIONS = "/var/lib/runtime-gate /etc/kubernetes /etc/eks /etc/k0s /opt/azure /home/kubernetes /var/snap"
_RESTART_SCRIPT = """#!/bin/sh
# What a unit does: end the daemon, run what comes before the start, start it with the same command line.
pid=$(pgrep -x containerd)
[ -n "$pid" ] && kill $pid
n=0
while [ -n "$pid" ] && kill -0 $pid 2>/dev/null; do
    sleep 0.02
    n=$((n + 1))
    [ $n -gt 500 ] && exit 7
done
rm -f /run/containerd/containerd.sock* /run/k3s/containerd/containerd.sock* /run/k0s/containerd.sock* /var/snap/microk8s/common/run/containerd.sock*
[ ! -x /run/before-start ] || /run/before-start || exit 8
setsid /usr/bin/containerd %s </dev/null >/run/containerd.log 2>&1 &
echo restarted >>/run/restarts
"""
_LOOP = """
import json, sys
sys.path.insert(0, sys.argv[1])
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import handlers_steps
for line in sys.stdin:
    try:
        answer = {"answer": handlers_steps.run(json.loads(line))}
    except RuntimeGateError as error:
        answer = {"failed": str(error)}
    print(json.dumps(answer), flush=True)
"""


class Product:
    """The module on one node.

    :ivar host: a ContainerdHost, or CrioHost for :class:`tests.matrix.crio_product.CrioProduct`.
    :ivar calls: steps of the last :meth:`change`, one for each remote call.
    :ivar socket: the daemon's.
    """

    #: What restarts the daemon, and what it does.
    restart = RESTART
    restart_script = _RESTART_SCRIPT

    def __init__(self, host: t.Any, arguments: t.Sequence[str] = ()) -> None:
        self.host = host
        self.calls: t.List[str] = []
        self.socket: str = host.socket
        self._node: t.Optional[subprocess.Popen[str]] = None
        self.install_restart(arguments)

    def reset(self) -> None:
        """End the daemon, and take away everything that lies on the node."""
        self.host.run(["pkill", "-KILL", "-x", self.host.engine])
        self.host.reset()
        self.host.run(["sh", "-c", "rm -rf %s; mkdir -p /opt" % _OF_DISTRIBUTIONS])

    def install_restart(self, arguments: t.Sequence[str] = ()) -> None:
        """Lay the command that (re)starts the node's daemon with these arguments."""
        self.host.install_script(self.restart, self.restart_script % " ".join(arguments))

    def start(self) -> None:
        """Start the daemon as the product's restart does.

        :raises HostError: it does not answer.
        """
        done = self.host.run([self.restart])
        if done.returncode:
            raise HostError("the daemon cannot be started: %s" % done.stderr)
        if self.ask("version")["state"] not in ("served", "unimplemented"):
            raise HostError("the daemon does not start: %s" % self.log()[-800:])

    def log(self) -> str:
        path = self.host.path(LOG)
        return path.read_text(errors="replace") if path.exists() else ""

    def restarts(self) -> int:
        """How often the daemon was started since the node was reset."""
        path = self.host.path("/run/restarts")
        return len(path.read_text().splitlines()) if path.exists() else 0

    def change(self, options: t.Mapping[str, t.Any], check: bool = False) -> Table:
        """One call of the module. A refusal is a result too, as Ansible shows it (``failed``, ``msg``)."""
        self.calls = []
        defaults = {name: spec.get("default") for name, spec in HANDLERS_OPTIONS.items()}
        every = {**defaults, "restart_command": [self.restart], "ready_timeout": 30.0, **options}
        try:
            return handlers_flow.change(self._call, every, check, True)
        except handlers_flow.Refused as error:
            return dict(error.details, failed=True, changed=False, msg=str(error))
        except RuntimeGateError as error:
            return {"failed": True, "changed": False, "msg": str(error)}

    def _call(self, request: Table) -> Table:
        self.calls.append(request["step"])
        node = self._node or self._start_node()
        assert node.stdin and node.stdout
        node.stdin.write(json.dumps(request) + "\n")
        node.stdin.flush()
        line = node.stdout.readline()
        if not line:
            raise HostError("the node half ended: %s" % (node.stderr.read()[-3000:] if node.stderr else ""))
        answer = json.loads(line)
        if "failed" in answer:
            raise RuntimeGateError(answer["failed"])
        return t.cast(Table, answer["answer"])

    def _start_node(self) -> subprocess.Popen[str]:
        command = self.host._enter([sys.executable, "-B", "-c", _LOOP, collections_root()])
        environment = {"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self._node = subprocess.Popen(command, env=environment, text=True, start_new_session=True, **pipes)  # type: ignore[call-overload]
        return self._node

    def close(self) -> None:
        """End the process inside the node."""
        if self._node is None:
            return
        for stream in (self._node.stdin, self._node.stdout, self._node.stderr):
            if stream:
                stream.close()
        self._node.wait()
        self._node = None

    # ---- the judge: cri-ask alone

    def ask(self, what: str = "status") -> Table:
        """The daemon's own answer, as cri-ask gives it."""
        return self.host._ask(what, wait=10, socket=self.socket)

    def loaded(self) -> t.Tuple[t.Dict[str, Table], t.Optional[str]]:
        """(handlers as the daemon answers, default handler).

        :raises HostError: CRI is not served.
        """
        answer = self.ask()
        if answer["state"] != "served":
            raise HostError("CRI is not served: %s" % answer)
        containerd = answer["info"]["config"]["containerd"]
        return containerd.get("runtimes") or {}, containerd.get("defaultRuntimeName")

    def files(self) -> t.Dict[str, bytes]:
        """Every file below the directories that a runtime's configuration lies in, every link's target, every directory."""
        found = {}
        for top in _CONFIGURATION:
            for path in self.host.path(top).rglob("*"):
                if path.is_symlink():
                    found["/" + str(path.relative_to(self.host.root))] = os.readlink(path).encode()
                elif path.is_file():
                    found["/" + str(path.relative_to(self.host.root))] = path.read_bytes()
                elif path.is_dir():
                    found["/" + str(path.relative_to(self.host.root)) + "/"] = b""
        return found


__all__ = ("Product", "RESTART", "SOCKET")
