"""The gate against a real kube-apiserver: the answer of the example cluster, for two LISTs a run."""

from __future__ import annotations

import json
import shutil

import pytest
import yaml

from tests.cluster.control_plane import ControlPlane
from tests.integration.ansible_runs import EXAMPLE, playbook, write_yaml
from tests.integration.test_gate import ALL, BROKEN, HEALTHY, failed, play
from tests.integration.test_make_gate import gate

USER = "gate"
LISTS = ["/api/v1/nodes", "/apis/node.k8s.io/v1/runtimeclasses"]


@pytest.fixture(scope="module")
def plane():
    with ControlPlane(users=(USER,)) as made:
        made.kubectl("create", "clusterrole", "reader", "--verb=list", "--resource=nodes,runtimeclasses.node.k8s.io")
        made.kubectl("create", "clusterrolebinding", "reader", "--clusterrole=reader", f"--user={USER}")
        for name in ("runtimeclasses", "nodes"):
            made.create(list(yaml.safe_load_all((EXAMPLE / f"manifests/{name}.yaml").read_text())))
        yield made


@pytest.fixture
def inventory(tmp_path, plane):
    """The recordings; the cluster comes from the API server."""
    captures = tmp_path / "captures"
    shutil.copytree(EXAMPLE / "captures", captures)
    hosts = dict.fromkeys(sorted(ALL))
    cluster = {"kubeconfig": str(plane.token_kubeconfig(USER))}
    shared = {"runtime_gate_captures": str(captures), "runtime_gate_cluster": cluster}
    return write_yaml(tmp_path / "hosts.yml", {"all": {"vars": shared, "hosts": hosts}})


def asked(plane, since):
    """The paths that the gate's user asked for, without their queries."""
    entries = [entry for entry in plane.audit()[since:] if entry["user"]["username"] == USER and entry["stage"] == "ResponseComplete"]
    return sorted(entry["requestURI"].partition("?")[0] for entry in entries)


@pytest.mark.parametrize(
    "keys, arguments, hosts",
    [
        ({}, [], ALL),
        ({}, ["--limit", "debian-1,eks-1"], {"debian-1", "eks-1"}),
        ({"strategy": "free"}, [], ALL),
        ({"serial": 2}, ["--limit", ",".join(HEALTHY)], HEALTHY),
    ],
)
def test_two_lists_a_run_and_the_answer_of_the_manifests(tmp_path, plane, inventory, keys, arguments, hosts):
    since = len(plane.audit())
    run = playbook(play(tmp_path, **keys), "-i", inventory, *arguments)
    assert set(run.recap) == hosts and failed(run) == hosts & BROKEN, run.text
    assert asked(plane, since) == LISTS


def test_make_gate_with_a_kubeconfig(tmp_path, plane, inventory):
    data = json.loads(inventory.read_text())
    del data["all"]["vars"]["runtime_gate_cluster"]
    write_yaml(inventory, data)
    since = len(plane.audit())
    config = f"KUBECONFIG={plane.token_kubeconfig(USER)}"
    assert gate(f"INVENTORY={inventory}", config)[:2] == (2, "3 nodes fail: docker-1 eks-1 kubespray-1")
    assert gate(f"INVENTORY={inventory}", config, "LIMIT=debian-1,k3s-1", "CHECK=1")[:2] == (0, "No node fails.")
    assert asked(plane, since) == sorted(LISTS * 2)
