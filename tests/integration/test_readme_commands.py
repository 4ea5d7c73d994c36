"""Every command of README.md, run as it stands there, on a node of the test bed with a real daemon."""

from __future__ import annotations

import json
import re

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.catalogue import NAMES
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import Policy
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.verdict import VERDICTS
from tests.integration.ansible_runs import ROOT
from tests.testbed.host import CONFIG, ContainerdHost

SCRIPT = ROOT / "roles/gate/files/rc-crosscheck.sh"
README = (ROOT / "README.md").read_text()
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for line in block.splitlines()]
#: What a reader has under these names.
WORK = "/run/reader"
NAMES_OF_THE_READER = {
    "hosts.yml": f"{WORK}/hosts.yml",
    "$PWD": WORK,
    "handlers.txt": f"{WORK}/handlers.txt",
    " dist": f" {WORK}/dist",
    "-p installed": f"-p {WORK}/installed",
}
OBJECTS = [
    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "plain"}, "handler": "runc"},
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-1"}},
]
INVENTORY = {
    "all": {
        "vars": {
            "ansible_connection": "local",
            "ansible_python_interpreter": "/usr/bin/python3",
            "runtime_gate_become": False,
            "runtime_gate_manifests": [f"{WORK}/objects.json"],
            "runtime_gate_node_name": "worker-1",
        },
        "hosts": {"worker-1": None},
    }
}


@pytest.fixture(scope="module")
def node():
    """A node with a containerd that has loaded what its class asks for, and a reader's files."""
    with ContainerdHost("2.1") as host:
        host.write(CONFIG, "version = 2\n")
        for program in ("containerd-shim-runc-v2", "runc"):
            host.install_script(f"/usr/bin/{program}", "#!/bin/sh\nexit 0\n")
        assert host.start(), host.log()
        host.write(f"{WORK}/hosts.yml", json.dumps(INVENTORY))
        host.write(f"{WORK}/objects.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS}))
        host.write(f"{WORK}/handlers.txt", "runc\ncrun\n")
        yield host


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_ends_with_0(node, command):
    for name, meant in NAMES_OF_THE_READER.items():
        command = command.replace(name, meant)
    environment = {
        "HOME": WORK,
        "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "ANSIBLE_LOCAL_TEMP": f"{WORK}/local",
        "ANSIBLE_REMOTE_TEMP": f"{WORK}/remote",
    }
    done = node.run(["/bin/bash", "-c", f"cd {ROOT} && {command}"], env=environment, timeout=300)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_the_script_is_on_the_node(node):
    """Where the playbook put it, executable; a second run changes nothing."""
    assert node.run(["/bin/sh", "-c", "test -x /opt/rc-crosscheck && cat /opt/rc-crosscheck"]).stdout == SCRIPT.read_text()
    environment = {"HOME": WORK, "PATH": "/usr/bin:/bin", "ANSIBLE_LOCAL_TEMP": f"{WORK}/local", "ANSIBLE_REMOTE_TEMP": f"{WORK}/remote"}
    path = ["-e", "runtime_gate_rc_crosscheck_path=/opt/rc-crosscheck"]
    command = [str(ROOT / ".venv/bin/ansible-playbook"), "-i", f"{WORK}/hosts.yml", "kubenode.runtime_gate.rc_crosscheck", *path]
    assert "changed=0" in node.run(command, env=environment, timeout=120).stdout


def test_the_installed_collection_runs(node):
    """What the last two commands built and installed, from another directory, without the checkout."""
    environment = {"HOME": WORK, "PATH": "/usr/bin:/bin", "ANSIBLE_LOCAL_TEMP": f"{WORK}/local", "ANSIBLE_COLLECTIONS_PATH": f"{WORK}/installed"}
    inventory = ROOT / "examples/cluster/inventory.yml"
    command = [str(ROOT / ".venv/bin/ansible-playbook"), "-i", str(inventory), "kubenode.runtime_gate.audit", "--limit", "debian-1"]
    done = node.run(command, env=environment, timeout=120)
    assert done.returncode == 0, done.stdout[-3000:]
    listed = node.run(["/bin/sh", "-c", f"ls {WORK}/installed/ansible_collections/kubenode/runtime_gate"]).stdout.split()
    assert "tests" not in listed and "examples" not in listed and "plugins" in listed


def test_it_has_the_commands_that_it_promises():
    assert len(COMMANDS) >= 10 and any(line.startswith("make gate INVENTORY=") for line in COMMANDS)


def test_it_has_the_sections_that_certification_asks_for():
    sections = re.findall(r"^## (.+)$", README, re.MULTILINE)
    wanted = ["Description", "Requirements", "Installation", "Use Cases", "Testing", "Support", "Release Notes", "License"]
    assert [name for name in sections if name in wanted] == wanted


def test_make_test_is_what_ci_runs():
    assert (ROOT / ".ci/run").read_text().rstrip().endswith("exec make test") and "`make test`" in README


def test_its_tables_are_those_of_the_code():
    for word in VERDICTS:
        assert f"| `{word}` |" in README, word
    keys = re.findall(r"^\| `(\w+)` \|", README.partition("## Policy")[2].partition("\n## ")[0], re.MULTILINE)
    assert sorted(keys) == sorted(Policy._fields)


def test_the_page_of_faults_has_every_fault():
    rows = re.findall(r"^\| (\d+) \| (\S+) \|", (ROOT / "docs/faults.md").read_text(), re.MULTILINE)
    assert {int(number): name for number, name in rows} == NAMES
