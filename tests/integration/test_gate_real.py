"""The audit on a node of the test bed, beside a real daemon: one remote call, no file of the node changed."""

from __future__ import annotations

import json

import pytest

from tests.integration.ansible_runs import ROOT
from tests.testbed.host import CONFIG, ContainerdHost

V2 = """version = 2
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.{handler}]
  runtime_type = "io.containerd.runc.v2"
"""
CLASS = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "gpu"}, "handler": "nvidia"}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "localhost"}}


def audit(host, *arguments):
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "ANSIBLE_LOCAL_TEMP": "/run/ansible-local",
        "ANSIBLE_REMOTE_TEMP": "/run/ansible-remote",
        "HOME": "/run",
    }
    options = {
        "runtime_gate_manifests": ["/run/manifests.json"],
        "runtime_gate_node_name": "localhost",
        "runtime_gate_report_path": "/run/report.json",
        "runtime_gate_become": False,
        "ansible_python_interpreter": "/usr/bin/python3",
    }
    program = str(ROOT / ".venv/bin/ansible-playbook")
    command = [program, "kubenode.runtime_gate.audit", "-i", "localhost,", "-c", "local", "-e", json.dumps(options), *arguments]
    done = host.run(command, env=environment, timeout=180)
    assert "Traceback" not in done.stdout + done.stderr
    return done.returncode, done.stdout


@pytest.mark.parametrize("line", ["1.7", "2.1"])
def test_loaded_stale_and_stopped(line):
    with ContainerdHost(line) as host:
        host.write("/run/manifests.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": [CLASS, NODE]}))
        host.write(CONFIG, V2.format(handler="nvidia"))
        for program in ("containerd-shim-runc-v2", "runc"):
            host.install_script(f"/usr/bin/{program}", "#!/bin/sh\nexit 0\n")
        assert host.start(), host.log()
        status, text = audit(host)
        assert status == 0 and "1 of 1 hosts judged (1 of the cluster's 1 Nodes); 1 ok; none fails" in text, text

        host.write(CONFIG, V2.format(handler="kata"))
        status, text = audit(host, "--check")
        assert status == 2 and "lost at restart" in text, text

        assert host.restart(), host.log()
        status, text = audit(host)
        assert status == 2 and "missing" in text, text

        host.stop()
        status, text = audit(host)
        assert status == 2 and "missing" in text, text
