# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks on a node of CRI-O, and on one that has both engines, with no option set: site, remove, and the role crio.

What this proves: the real ansible with the installed playbooks brings the declared handlers into the engine that serves the kubelet, gates
the node by that engine's facts, changes nothing the second time, and takes everything away again. What is loaded is asked of the daemons.
"""

from __future__ import annotations

import json
import pathlib
import sys
import typing as t

import pytest

from tests.integration.ansible_runs import Run, _recap
from tests.integration.real_rollout import remote_calls
from tests.matrix.crio_product import CONFIG_DIR, RESTART, CrioProduct
from tests.testbed.crio_host import CrioHost
from tests.testbed.product import collections_root
from tests.testbed.tools import tool

BIN = pathlib.Path(sys.executable).parent
HANDLERS = {"mine": {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/opt/bin/mine"}}}
CLASSES = """apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: mine}
handler: mine
scheduling: {nodeSelector: {kubernetes.io/os: linux}}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/os: linux}}
"""
ROLE = """- hosts: all
  gather_facts: false
  roles:
    - kubenode.runtime_gate.crio
"""


@pytest.fixture
def node() -> t.Iterator[CrioProduct]:
    """A node of CRI-O with a kubelet that uses it."""
    with CrioHost("1.36", name="n1") as host:
        product = CrioProduct(host)
        host.install(tool("runc"), "/opt/bin/mine")
        host.write(CONFIG_DIR + "/10-crio.conf", '[crio.runtime.runtimes.runc]\nruntime_path = "/usr/bin/runc"\n')
        host.write("/var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\ncgroupDriver: cgroupfs\n")
        host.kubelet()
        product.start()
        yield product
        product.close()


def play(node: CrioProduct, what: str, *arguments: str) -> Run:
    """`ansible-playbook` in the node; nothing says which engine it has."""
    variables = {
        "ansible_connection": "local",
        "ansible_python_interpreter": "/usr/bin/python3",
        "runtime_gate_handlers": HANDLERS,
        "runtime_gate_restart_command": [RESTART],
        "runtime_gate_ready_timeout": 60,
        "runtime_gate_manifests": ["/run/manifests"],
    }
    node.host.write("/run/manifests/classes.yaml", CLASSES)
    node.host.write("/run/role.yml", ROLE)
    command = [str(BIN / "ansible-playbook"), "-i", "n1,", what, "-e", json.dumps(variables), *arguments]
    environment = {
        "ANSIBLE_COLLECTIONS_PATH": collections_root(),
        "ANSIBLE_LOCAL_TEMP": "/run/ansible-local",
        "ANSIBLE_REMOTE_TEMP": "/run/ansible-remote",
        "ANSIBLE_NOCOLOR": "1",
        "COLUMNS": "120",
    }
    done = node.host.run(command, env=environment, timeout=400)
    text = done.stdout + done.stderr
    assert "Traceback" not in text, text
    return Run(done.returncode, text, _recap(done.stdout))


def test_site_and_remove_with_no_option_set(node: CrioProduct) -> None:
    first = node.files()
    missing = play(node, "kubenode.runtime_gate.audit")
    assert missing.status == 2 and "mine" in missing.text, missing.text
    check = play(node, "kubenode.runtime_gate.site", "--check", "--diff")
    assert check.status == 0 and "+handler mine" in check.text and node.files() == first and node.restarts() == 1, check.text
    applied = play(node, "kubenode.runtime_gate.site")
    assert applied.status == 0 and node.host.usable_handlers() == ["crun", "mine", "runc"], applied.text
    again = play(node, "kubenode.runtime_gate.site", "-vvv")
    assert again.status == 0 and again.recap["n1"]["changed"] == 0 and node.restarts() == 2, again.text[-4000:]
    assert len(remote_calls(again.text)) == 2, remote_calls(again.text)
    removed = play(node, "kubenode.runtime_gate.remove")
    assert removed.status == 0 and node.files() == first and node.host.usable_handlers() == ["crun", "runc"], removed.text


def test_a_node_with_both_engines(node: CrioProduct) -> None:
    """containerd runs there too and is not the kubelet's: its files and its daemon stay as they are."""
    host = node.host
    host.install(tool("containerd-2.1"), "/usr/bin/containerd")
    host.write("/etc/containerd/config.toml", "version = 2\n")
    host.run(["sh", "-c", "setsid /usr/bin/containerd </dev/null >/run/containerd.log 2>&1 &"])
    answer = host._ask("status", wait=20, socket="/run/containerd/containerd.sock")
    assert answer["state"] == "served"
    applied = play(node, "/run/role.yml")
    assert applied.status == 0 and "mine" in host.usable_handlers(), applied.text
    assert host.path("/etc/containerd/config.toml").read_text() == "version = 2\n"
    assert not host.path("/etc/containerd/conf.d").exists()
    gated = play(node, "kubenode.runtime_gate.site")
    assert gated.status == 0 and gated.recap["n1"]["changed"] == 0, gated.text
