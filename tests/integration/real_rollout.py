# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-playbook inside a node of the test bed, for the tests of the rollout.

What this proves: nothing by itself. The real ansible runs the installed playbooks over the local connection in the namespaces
of the node, so that the module meets this node's files, processes and daemon and no others.
"""

from __future__ import annotations

import hashlib
import os
import typing as t

from tests.integration.ansible_runs import Run, _recap
from tests.matrix.playbooks import remote_calls, run_playbook
from tests.matrix.product import RESTART, Product
from tests.testbed.host import CONFIG, ContainerdHost

SHIM = "/usr/bin/containerd-shim-runc-v2"
_OF_THE_DAEMON = "/var/lib/containerd"


class RealNode:
    """A node with a real daemon, which the product restarts, and the playbooks run on it.

    :ivar product: for the judge and the restart.
    """

    def __init__(self, line: str, root: str, files: t.Optional[t.Mapping[str, str]] = None, start: bool = True) -> None:
        self.host = ContainerdHost(line, name="n1")
        for program in (SHIM, "/usr/bin/crun", "/usr/local/bin/mine"):
            self.host.install_script(program, "#!/bin/sh\nexit 0\n")
        self.host.write(CONFIG, root)
        for path, text in (files or {}).items():
            self.host.write(path, text)
        self.product = Product(self.host)
        if start:
            self.product.start()

    def close(self) -> None:
        self.product.close()
        self.host.close()

    def playbook(self, name: str, variables: t.Mapping[str, t.Any], *arguments: str) -> Run:
        """Run ``kubenode.runtime_gate.NAME``."""
        self.host.write("/run/manifests/classes.yaml", CLASSES)
        every = {"runtime_gate_restart_command": [RESTART], "runtime_gate_manifests": ["/run/manifests"], **variables}
        done = run_playbook(self.host, name, every, *arguments)
        text = done.stdout + done.stderr
        assert "Traceback" not in text, text
        return Run(done.returncode, text, _recap(done.stdout))

    def checksums(self) -> t.Dict[str, t.Tuple[str, int, int]]:
        """Path → sha256 (of a link: where it points), mode and owner, of everything that was ever made, changed or removed on the node."""
        found = {}
        top = self.host.differences
        for path in sorted(top.rglob("*")):
            facts = path.lstat()
            data = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
            name = "/" + str(path.relative_to(top))
            if not name.startswith(_OF_THE_DAEMON):
                found[name] = (hashlib.sha256(data).hexdigest(), facts.st_mode, facts.st_uid)
        return found


CLASSES = """apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: crun}
handler: crun
scheduling: {nodeSelector: {kubernetes.io/os: linux}}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/os: linux}}
"""

__all__ = ("SHIM", "RealNode", "remote_calls")
