"""Where the gate's cluster data comes from: kubectl on a host is called once a run, whatever the strategy."""

from __future__ import annotations

import json

import pytest
import yaml

from tests.integration.ansible_runs import EXAMPLE, ROOT, playbook, write_yaml

# A pattern of hosts comes from the command line: a play's hosts are chosen before any host's variables are read.
AUDIT = ("kubenode.runtime_gate.audit", "-e", "runtime_gate_hosts=all:!cp-1")
KUBECTL = """#!/bin/sh
echo "$*" >>{calls}
[ -z "{failure}" ] || {{ echo "{failure}" >&2; exit 1; }}
while [ "$1" != get ]; do shift; done
case "$2" in
runtimeclasses*) cat {folder}/runtimeclasses.json ;;
nodes*) cat {folder}/nodes.json ;;
*) cat {folder}/pods.json ;;
esac
"""


@pytest.fixture
def kubectl(tmp_path):
    """A kubectl that prints the example's objects and writes down each call."""

    def make(failure=""):
        for name in ("runtimeclasses", "nodes", "pods"):
            items = list(yaml.safe_load_all((EXAMPLE / f"manifests/{name}.yaml").read_text()))
            (tmp_path / f"{name}.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        program = tmp_path / "kubectl"
        program.write_text(KUBECTL.format(calls=tmp_path / "calls", failure=failure, folder=tmp_path))
        program.chmod(0o755)
        return program

    return make


def inventory(tmp_path, program, names, **shared):
    hosts = {
        "cp-1": {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"},
        **dict.fromkeys(names),
    }
    known = {
        "runtime_gate_captures": str(EXAMPLE / "captures"),
        "runtime_gate_kubectl_host": "cp-1",
        "runtime_gate_kubectl": str(program),
        "runtime_gate_become": False,
    }
    return write_yaml(tmp_path / "hosts.yml", {"all": {"vars": {**known, **shared}, "hosts": hosts}})


def calls(tmp_path):
    return (tmp_path / "calls").read_text().splitlines()


@pytest.mark.parametrize("keys", [{}, {"strategy": "free"}, {"serial": 2}, {"serial": 1}])
def test_the_same_number_of_calls_for_two_hosts_and_for_four_with_every_strategy(tmp_path, kubectl, keys):
    names = ["debian-1", "flatcar-1", "k3s-1", "microk8s-1"]
    path = inventory(tmp_path, kubectl(), names)
    play = [{"name": "Gate", "hosts": "all:!cp-1", "gather_facts": False, "roles": [{"role": "kubenode.runtime_gate.gate"}], **keys}]
    file = write_yaml(tmp_path / "play.yml", play)
    for limit in (names[:2], names):
        run = playbook(file, "-i", path, "--limit", ",".join([*limit, "cp-1"]))
        assert run.status == 0 and set(run.recap) == set(limit), run.text
        asked = calls(tmp_path)
        assert asked == ["get runtimeclasses.node.k8s.io --all-namespaces -o json", "get nodes --all-namespaces -o json"]
        (tmp_path / "calls").unlink()


def test_workloads_are_read_only_where_the_policy_needs_them(tmp_path, kubectl):
    path = inventory(tmp_path, kubectl(), ["k3s-1"], runtime_gate_policy={"unscoped": "referenced"})
    assert playbook(*AUDIT, "-i", path).status == 0
    assert [line.split()[1].partition(",")[0] for line in calls(tmp_path)] == ["runtimeclasses.node.k8s.io", "nodes", "pods"]


def test_a_kubectl_that_fails_is_asked_once_and_is_the_error_of_every_host(tmp_path, kubectl):
    path = inventory(tmp_path, kubectl("The connection to the server was refused"), ["debian-1", "k3s-1"])
    run = playbook(*AUDIT, "-i", path)
    assert run.status == 2 and len(calls(tmp_path)) == 1
    for host in ("debian-1", "k3s-1"):
        (line,) = (line for line in run.text.splitlines() if line.startswith(f"fatal: [{host}]"))
        assert "The connection to the server was refused" in line


def test_a_kubectl_host_that_cannot_be_reached_is_the_error_of_every_host(tmp_path, kubectl):
    path = inventory(tmp_path, kubectl(), ["debian-1", "k3s-1"])
    data = json.loads(path.read_text())
    data["all"]["hosts"]["cp-1"] = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
    run = playbook(*AUDIT, "-i", write_yaml(path, data))
    assert run.status == 2 and {host for host, counts in run.recap.items() if counts["failed"]} == {"debian-1", "k3s-1"}
    assert "runtime_gate_kubectl_host: the host could not be reached" in run.text


def test_kubespray_s_hook_needs_kubespray_s_names_and_no_kubernetes_client(tmp_path, kubectl):
    """Included per node, as post_upgrade_hooks does it, with kubespray's groups and variables and nothing else."""
    (tmp_path / "bin").mkdir()
    kubectl().rename(tmp_path / "bin/kubectl")
    hook = ROOT / "playbooks/tasks/kubespray_post_upgrade.yml"
    tasks = [{"name": "Run post upgrade hooks", "ansible.builtin.include_tasks": "{{ item }}", "loop": "{{ post_upgrade_hooks }}"}]
    file = write_yaml(tmp_path / "play.yml", [{"name": "Upgrade", "hosts": "kube_node", "gather_facts": False, "serial": 1, "tasks": tasks}])
    shared = {
        "post_upgrade_hooks": [str(hook)],
        "bin_dir": str(tmp_path / "bin"),
        "runtime_gate_captures": str(EXAMPLE / "captures"),
        "runtime_gate_become": False,
    }
    local = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    groups = {"kube_control_plane": {"hosts": {"cp-1": local}}, "kube_node": {"hosts": dict.fromkeys(["flatcar-1", "k3s-1", "eks-1"])}}
    path = write_yaml(tmp_path / "hosts.yml", {"all": {"vars": shared, "children": groups}})
    run = playbook(file, "-i", path)
    assert {host: counts["failed"] for host, counts in run.recap.items()} == {"flatcar-1": 0, "k3s-1": 0, "eks-1": 1}, run.text
    assert [line.partition(" get ")[0] for line in calls(tmp_path)] == ["--kubeconfig /etc/kubernetes/admin.conf"] * 2
