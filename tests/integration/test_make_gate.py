"""make gate, as its exit code and its last line tell it."""

from __future__ import annotations

import shutil
import subprocess

from tests.integration.ansible_runs import EXAMPLE, ROOT, copy_example, environment, write_yaml


def gate(*arguments):
    done = subprocess.run(
        ["make", "--no-print-directory", "gate", *arguments],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # where make says that a target failed
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout.rstrip("\n").rpartition("\n")[2], done.stdout


def replace(cluster, node, by, handler="", wanted=""):
    """Give the node what another daemon loaded, its handler renamed everywhere."""
    target = cluster / "captures" / node
    shutil.rmtree(target)
    shutil.copytree(EXAMPLE / "captures" / by, target)
    for file in target.rglob("*"):
        if file.is_file():
            text = file.read_text().replace(by, node)
            file.write_text(text.replace(handler, wanted) if handler else text)


def test_the_example_cluster_ends_as_the_readme_says():
    status, last, text = gate()
    assert (status, last) == (0, "3 nodes fail: docker-1 eks-1 kubespray-1: exactly those that are broken on purpose. The gate works.")
    assert "NODE " in text


def test_a_healed_node_and_then_a_broken_one_change_the_last_line_and_the_exit_code(tmp_path):
    cluster = copy_example(tmp_path / "cluster")
    expected = "but broken on purpose are: docker-1 eks-1 kubespray-1."
    replace(cluster, "eks-1", by="flatcar-1", handler="crun", wanted="runsc")
    assert gate(f"EXAMPLE={cluster}")[:2] == (2, f"2 nodes fail: docker-1 kubespray-1, {expected}")
    replace(cluster, "debian-1", by="docker-1")
    assert gate(f"EXAMPLE={cluster}")[:2] == (2, f"3 nodes fail: debian-1 docker-1 kubespray-1, {expected}")


def test_a_broken_node_alone_changes_them_too(tmp_path):
    cluster = copy_example(tmp_path / "cluster")
    (cluster / "captures/k3s-1/crictl-info.json").unlink()
    status, last, _text = gate(f"EXAMPLE={cluster}")
    assert status == 2 and last.startswith("4 nodes fail: docker-1 eks-1 k3s-1 kubespray-1, but")


def test_an_inventory_of_one_s_own_ends_non_zero_when_a_host_fails():
    inventory = f"INVENTORY={EXAMPLE / 'inventory.yml'}"
    assert gate(inventory, "LIMIT=debian-1,k3s-1")[:2] == (0, "No node fails.")
    assert gate(inventory, "LIMIT=debian-1,eks-1", "CHECK=1")[:2] == (2, "1 node fails: eks-1")
    assert gate(inventory)[:2] == (2, "3 nodes fail: docker-1 eks-1 kubespray-1")


def test_args_reach_ansible_playbook():
    status, last, text = gate(f"INVENTORY={EXAMPLE / 'inventory.yml'}", 'ARGS=--list-hosts -u ops')
    assert "hosts (7)" in text and (status, last) == (2, "The audit ended before it could judge a node (see above).")


def test_an_audit_that_judges_nobody_is_no_pass(tmp_path):
    assert gate("INVENTORY=/nowhere")[0] == 2
    empty = write_yaml(tmp_path / "hosts.yml", {"all": {"hosts": {}}})
    assert gate(f"INVENTORY={empty}")[:2] == (2, "The audit ended before it could judge a node (see above).")
    assert gate(f"EXAMPLE={tmp_path}")[0] == 2
