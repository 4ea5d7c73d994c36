# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role runtimeclass against a real kube-apiserver, run as a person runs it, with the rights of examples/rbac-runtimeclass.yml.

What this proves: objects are what the declaration says and the API server keeps of it; check mode tells what apply then does and stores
nothing; a second run writes nothing; objects and fields of others stay as they are, byte for byte, and the message says whose they
are; what is refused is refused before anything is written; a class goes only when it is ours, nobody declares it and no pod uses it.
"""

from __future__ import annotations

import json
import pathlib
import re
import typing as t
import urllib.error

import pytest
import yaml

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_writer import Refused, writer_for
from tests.cluster.control_plane import ControlPlane
from tests.cluster.pods import pod, runtime_class
from tests.cluster.waiting import wait_until
from tests.integration.ansible_runs import EXAMPLE, ROOT, Run, playbook, write_yaml
from tests.integration.real_rollout import RealNode

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
RBAC = ROOT / "examples/rbac-runtimeclass.yml"
ACCOUNT = "system:serviceaccount:kube-system:runtime-gate-runtimeclasses"
STRANGER = "stranger"
RICH = {
    "preset": "nvidia",
    "runtime_class": {
        "overhead": {"cpu": 0.25, "memory": "131072Ki"},
        "node_selector": {"accelerator": "h200"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "labels": {"team": "ml"},
    },
}


@pytest.fixture(scope="module", name="plane")
def _plane() -> t.Iterator[ControlPlane]:
    with ControlPlane(users=(STRANGER,)) as plane:
        plane.kubectl("create", "-f", str(RBAC))
        # Pods may be made without the controllers that make ServiceAccounts.
        plane.kubectl("create", "serviceaccount", "default")
        assert wait_until(lambda: plane.kubectl("auth", "can-i", "patch", "runtimeclasses.node.k8s.io", f"--as={ACCOUNT}", check=False).returncode == 0, 30)
        yield plane


@pytest.fixture(autouse=True)
def _empty(plane: ControlPlane) -> t.Iterator[None]:
    yield
    plane.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    plane.kubectl("delete", "runtimeclasses", "--all")


class Fleet:
    """An inventory and the playbook of the role; each change of the variables is written before a run."""

    def __init__(self, plane: ControlPlane, home: pathlib.Path) -> None:
        self.home = home
        token = plane.service_account_token("kube-system", "runtime-gate-runtimeclasses")
        self.variables: dict[str, t.Any] = {
            "runtime_gate_cluster": {"kubeconfig": str(plane.token_kubeconfig("runtimeclasses", token))},
            "runtime_gate_runtimeclasses": True,
        }
        self.hosts: dict[str, dict[str, t.Any]] = {"w-1": {}, "w-2": {}}

    def declare(self, handlers: t.Any, *hosts: str) -> None:
        """What these hosts, or all, declare."""
        if not hosts:
            self.variables["runtime_gate_handlers"] = handlers
        for host in hosts:
            self.hosts.setdefault(host, {})["runtime_gate_handlers"] = handlers

    def run(self, *arguments: str, entry: str = "main", **variables: t.Any) -> Run:
        inventory = write_yaml(self.home / "hosts.yml", {"all": {"vars": self.variables, "hosts": self.hosts}})
        role = {"name": "Work", "ansible.builtin.include_role": {"name": "kubenode.runtime_gate.runtimeclass", "tasks_from": entry}}
        play = write_yaml(self.home / "play.yml", [{"name": "P", "hosts": "all", "gather_facts": False, "tasks": [role]}])
        return playbook(play, "-i", inventory, "-e", json.dumps(variables), *arguments)


@pytest.fixture(name="fleet")
def _fleet(plane: ControlPlane, tmp_path: pathlib.Path) -> Fleet:
    return Fleet(plane, tmp_path)


def classes(plane: ControlPlane) -> dict[str, dict[str, t.Any]]:
    return {thing["metadata"]["name"]: thing for thing in plane.request("GET", CLASSES)["items"]}


def versions(plane: ControlPlane) -> dict[str, str]:
    return {name: thing["metadata"]["resourceVersion"] for name, thing in classes(plane).items()}


def changed(run: Run) -> int:
    assert run.status == 0, run.text
    return sum(counts["changed"] for counts in run.recap.values())


def refused(run: Run) -> str:
    """The message of the one task that failed."""
    assert run.status == 2, run.text
    (line,) = (line for line in run.text.splitlines() if line.startswith("fatal: ["))
    return str(json.loads(line.partition("=> ")[2])["msg"])


def asked(plane: ControlPlane, since: int, user: str = ACCOUNT) -> list[str]:
    """The verbs of this user's requests."""
    return [event["verb"] for event in plane.audit()[since:] if event["user"]["username"] == user]


def managers(thing: dict[str, t.Any]) -> set[str]:
    return {entry["manager"] for entry in thing["metadata"]["managedFields"]}


def test_the_objects_are_what_is_declared(plane: ControlPlane, fleet: Fleet) -> None:
    fleet.declare({"nvidia": RICH, "runsc": {"preset": "gvisor", "runtime_class": {"name": "gvisor.v1"}}, "crun": {"preset": "crun", "runtime_class": False}})
    check = fleet.run("--check", "--diff")
    assert changed(check) == 1 and classes(plane) == {}
    applied = fleet.run("--diff")
    assert changed(applied) == 1
    diff = re.compile(r"^[-+ ].*$", re.MULTILINE)
    assert diff.findall(check.text) == diff.findall(applied.text) and "+    cpu: 250m" in applied.text

    made = classes(plane)
    assert set(made) == {"nvidia", "gvisor.v1"}
    assert {name: made["nvidia"].get(name) for name in ("handler", "overhead", "scheduling")} == {
        "handler": "nvidia",
        "overhead": {"podFixed": {"cpu": "250m", "memory": "128Mi"}},
        "scheduling": {
            "nodeSelector": {"accelerator": "h200"},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        },
    }
    assert made["nvidia"]["metadata"]["labels"] == {"team": "ml"}
    assert made["gvisor.v1"]["handler"] == "runsc" and "scheduling" not in made["gvisor.v1"]
    assert managers(made["nvidia"]) == {"kubenode.runtime_gate"}

    before = versions(plane)
    since = len(plane.audit())
    assert changed(fleet.run()) == 0 and versions(plane) == before
    assert asked(plane, since) == ["list", "patch", "patch"]  # both patches are dry runs


def test_a_change_and_its_way_back(plane: ControlPlane, fleet: Fleet) -> None:
    fleet.declare({"nvidia": RICH})
    fleet.run()
    plane.kubectl("label", "runtimeclass", "nvidia", "owner=somebody")
    settings = {**RICH["runtime_class"], "overhead": {"cpu": "500m"}, "labels": {}}  # type: ignore[dict-item]
    fleet.declare({"nvidia": {**RICH, "runtime_class": settings}})
    assert changed(fleet.run("--check")) == 1
    assert classes(plane)["nvidia"]["overhead"] == {"podFixed": {"cpu": "250m", "memory": "128Mi"}}
    assert changed(fleet.run()) == 1
    made = classes(plane)["nvidia"]
    assert made["overhead"] == {"podFixed": {"cpu": "500m"}} and made["metadata"]["labels"] == {"owner": "somebody"}
    assert changed(fleet.run()) == 0
    fleet.declare({"nvidia": {"state": "absent"}})
    assert changed(fleet.run("--check")) == 1 and "nvidia" in classes(plane)
    assert changed(fleet.run("--diff")) == 1 and classes(plane) == {}
    assert changed(fleet.run()) == 0


def test_an_object_of_somebody_else_is_left_alone(plane: ControlPlane, fleet: Fleet) -> None:
    same = runtime_class("nvidia", "nvidia", overhead={"podFixed": {"cpu": "0.25"}})
    plane.kubectl("apply", "--server-side", "--field-manager=gitops", "-f", "-", input=json.dumps(same))
    before = classes(plane)
    fleet.declare({"nvidia": {"preset": "nvidia", "runtime_class": {"overhead": {"cpu": "250m"}}}})
    run = fleet.run()
    assert changed(run) == 0 and classes(plane) == before
    assert "belongs to gitops, is as declared, and is left alone" in run.text

    for settings, words in (
        ({"overhead": {"cpu": "300m"}}, ["overhead.podFixed.cpu is owned by gitops"]),
        ({"overhead": {"cpu": "250m", "memory": "1Mi"}}, ["lacks something", "gitops", "memory"]),
        ({"name": "nvidia", "labels": {"a": "b"}}, ["lacks something", "labels is not set"]),
    ):
        fleet.declare({"nvidia": {"preset": "nvidia", "runtime_class": settings}, "another": {"preset": "crun"}})
        message = refused(fleet.run())
        assert all(word in message for word in ["RuntimeClass nvidia", *words, "runtime_class: false"]), message
        assert classes(plane) == before  # and "another" was not made

    fleet.declare({"runsc": {"preset": "gvisor", "runtime_class": {"name": "nvidia"}}})
    assert "handler is owned by gitops" in refused(fleet.run())
    fleet.declare({"nvidia": {"state": "absent"}})
    run = fleet.run()
    assert changed(run) == 0 and classes(plane) == before and "belongs to gitops: left alone" in run.text


def test_a_field_that_somebody_took_is_theirs(plane: ControlPlane, fleet: Fleet) -> None:
    fleet.declare({"nvidia": RICH})
    fleet.run()
    theirs = runtime_class("nvidia", "nvidia", overhead={"podFixed": {"cpu": "1"}})
    plane.kubectl("apply", "--server-side", "--force-conflicts", "--field-manager=finops", "-f", "-", input=json.dumps(theirs))
    before = classes(plane)
    message = refused(fleet.run())
    assert "overhead.podFixed.cpu is owned by finops" in message and classes(plane) == before
    # finops owns the handler too now, so that the object is not ours to delete.
    fleet.declare({"nvidia": {"state": "absent"}})
    run = fleet.run()
    assert changed(run) == 0 and classes(plane) == before and "finops owns its handler too" in run.text


def test_another_handler_needs_consent(plane: ControlPlane, fleet: Fleet) -> None:
    fleet.declare({"nvidia": {"preset": "nvidia", "runtime_class": {"name": "gpu"}}})
    fleet.run()
    plane.create([pod("busy", "gpu"), pod("done", "gpu"), pod("plain")])
    plane.request("PATCH", "/api/v1/namespaces/default/pods/done/status", {"status": {"phase": "Succeeded"}}, content_type="application/merge-patch+json")
    before = classes(plane)
    fleet.declare({"nvidia": {"preset": "nvidia", "runtime_class": False}, "nvidia-cdi": {"preset": "nvidia-cdi", "runtime_class": {"name": "gpu"}}})
    for arguments in ([], ["--check"]):
        message = refused(fleet.run(*arguments))
        assert "has handler nvidia, declared is nvidia-cdi" in message and "Pods that use it: default/busy (1)" in message, message
        assert "runtime_gate_replace_runtimeclasses: true" in message and classes(plane) == before
    check = fleet.run("--check", "--diff", runtime_gate_replace_runtimeclasses=True)
    assert changed(check) == 1 and classes(plane) == before and "+handler: nvidia-cdi" in check.text
    run = fleet.run("--diff", runtime_gate_replace_runtimeclasses=True)
    assert changed(run) == 1 and "default/busy (1)" in run.text and "+handler: nvidia-cdi" in run.text
    made = classes(plane)["gpu"]
    assert made["handler"] == "nvidia-cdi" and made["metadata"]["uid"] != before["gpu"]["metadata"]["uid"]
    assert changed(fleet.run(runtime_gate_replace_runtimeclasses=True)) == 0


def test_a_class_that_pods_use_stays(plane: ControlPlane, fleet: Fleet) -> None:
    fleet.declare({"nvidia": {"preset": "nvidia"}, "runsc": {"preset": "gvisor"}})
    fleet.run()
    plane.create([pod("busy", "nvidia")])
    before = classes(plane)
    message = refused(fleet.run(entry="remove"))
    assert "default/busy (1)" in message and "runtime_gate_remove_used_runtimeclasses" in message
    assert classes(plane) == before  # runsc, which nobody uses, is not deleted alone
    run = fleet.run(entry="remove", runtime_gate_remove_used_runtimeclasses=True)
    assert changed(run) == 1 and classes(plane) == {} and "deleted although it is used" in run.text
    assert changed(fleet.run(entry="remove")) == 0


def test_a_class_stays_as_long_as_a_host_declares_its_handler(plane: ControlPlane, fleet: Fleet) -> None:
    two = {"nvidia": {"preset": "nvidia"}, "runsc": {"preset": "gvisor"}}
    fleet.declare({**two, "crun": {"preset": "crun", "runtime_class": {"name": "forgotten"}}}, "w-1")
    fleet.declare({"nvidia": {"preset": "nvidia"}}, "w-2")
    assert changed(fleet.run("--limit", "w-1")) == 1 and set(classes(plane)) == {"nvidia", "runsc", "forgotten"}
    fleet.declare(two, "w-1")
    run = fleet.run("--limit", "w-1", entry="remove")
    assert changed(run) == 1 and set(classes(plane)) == {"nvidia", "forgotten"}, run.text
    assert "handler nvidia stay: it is still declared on w-2" in run.text and "nobody here declares stay: forgotten" in run.text
    plane.kubectl("delete", "runtimeclass", "forgotten")
    fleet.declare({"nvidia": {"state": "absent"}}, "w-1")
    assert changed(fleet.run()) == 0 and set(classes(plane)) == {"nvidia"}
    fleet.declare({"nvidia": {"state": "absent"}}, "w-2")
    assert changed(fleet.run()) == 1 and classes(plane) == {}


def test_hosts_that_contradict_each_other(plane: ControlPlane, fleet: Fleet) -> None:
    fleet.declare({"nvidia": RICH}, "w-1")
    fleet.declare({"nvidia": {"preset": "nvidia"}}, "w-2")
    since = len(plane.audit())
    for arguments in ([], ["--limit", "w-1"]):
        message = refused(fleet.run(*arguments))
        assert "runtime_gate_handlers.nvidia.runtime_class differs between hosts" in message and "w-1: nvidia {" in message and "w-2: nvidia {}" in message
    fleet.declare({"nvidia": {"preset": "nvidia"}, "runsc": {"preset": "gvisor", "runtime_class": {"name": "nvidia"}}}, "w-1")
    assert "nvidia and runsc both ask for RuntimeClass nvidia" in refused(fleet.run())
    assert asked(plane, since) == []
    # A host that asks for no classes has no say in how they are.
    fleet.declare({"nvidia": RICH}, "w-1")
    fleet.hosts["w-2"]["runtime_gate_runtimeclasses"] = "no"
    run = fleet.run()
    assert changed(run) == 1 and "overhead" in classes(plane)["nvidia"]
    assert "has no node_selector" not in run.text


@pytest.mark.parametrize(
    "handlers, words",
    [
        ({"Nvidia_X": {"preset": "nvidia"}}, ["Nvidia_X", "63", "DNS label"]),
        ({"a.b": {"preset": "nvidia"}}, ["a.b", "DNS label"]),
        ({"a" * 64: {"preset": "nvidia"}}, ["aaa", "63"]),
        ({"a": {"runtime_class": {"overhead": {"cpu": "1Q"}}}}, ["runtime_class.overhead.cpu", "1Q", "no quantity"]),
    ],
)
def test_what_is_wrong_is_said_before_the_api_is_asked(plane: ControlPlane, fleet: Fleet, handlers: t.Any, words: list[str]) -> None:
    fleet.declare(handlers)
    since = len(plane.audit())
    message = refused(fleet.run())
    assert all(word in message for word in words), message
    assert asked(plane, since) == []


def test_the_api_servers_own_refusal_comes_before_anything_is_written(plane: ControlPlane, fleet: Fleet) -> None:
    fleet.declare({"a": {"preset": "crun"}, "b": {"preset": "crun", "runtime_class": {"overhead": {"cpu": "-1"}}}})
    message = refused(fleet.run())
    assert "RuntimeClass b" in message and "must be greater than or equal to 0" in message and classes(plane) == {}


def test_a_user_without_the_right_is_told_what_it_needs(plane: ControlPlane, fleet: Fleet) -> None:
    plane.kubectl("create", "clusterrole", "lister", "--verb=list", "--resource=runtimeclasses.node.k8s.io")
    fleet.variables["runtime_gate_cluster"] = {"kubeconfig": str(plane.token_kubeconfig(STRANGER))}
    fleet.declare({"nvidia": {"preset": "nvidia"}})
    assert "403" in refused(fleet.run())
    plane.kubectl("create", "clusterrolebinding", "lister", "--clusterrole=lister", f"--user={STRANGER}")
    assert wait_until(lambda: plane.kubectl("auth", "can-i", "list", "runtimeclasses.node.k8s.io", f"--as={STRANGER}", check=False).returncode == 0, 30)
    message = refused(fleet.run())
    assert "does not let this user patch runtimeclasses" in message and "examples/rbac-runtimeclass.yml" in message and classes(plane) == {}


def test_the_account_of_the_example_may_do_nothing_else(plane: ControlPlane) -> None:
    rules = [rule for thing in yaml.safe_load_all(RBAC.read_text()) for rule in (thing or {}).get("rules", [])]
    assert rules == [
        {"apiGroups": ["node.k8s.io"], "resources": ["runtimeclasses"], "verbs": ["list", "create", "patch", "delete"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
    ]
    for verb, what in (("delete", "pods"), ("patch", "nodes"), ("list", "secrets"), ("get", "pods")):
        assert plane.kubectl("auth", "can-i", verb, what, f"--as={ACCOUNT}", check=False).returncode == 1, (verb, what)


def test_two_clusters_in_one_inventory(plane: ControlPlane, fleet: Fleet) -> None:
    """Two connections are two clusters; here they lead to the same one, where both leave their class."""
    with ControlPlane() as second:
        fleet.hosts["w-2"] = {"runtime_gate_cluster": {"kubeconfig": str(second.kubeconfig)}}
        fleet.declare({"nvidia": RICH}, "w-1")
        fleet.declare({"nvidia": {"preset": "nvidia"}}, "w-2")  # which contradicts nobody
        assert changed(fleet.run()) == 1
        assert "overhead" in classes(plane)["nvidia"] and "overhead" not in classes(second)["nvidia"]


def test_a_declaration_of_the_play_holds_for_all_its_hosts(plane: ControlPlane, fleet: Fleet) -> None:
    fleet.variables = {}
    inventory = write_yaml(fleet.home / "hosts.yml", {"all": {"hosts": fleet.hosts}})
    variables = {
        "runtime_gate_cluster": {"kubeconfig": str(plane.kubeconfig)},
        "runtime_gate_runtimeclasses": True,
        "runtime_gate_handlers": {"nvidia": {"preset": "nvidia"}},
    }
    role = {"role": "kubenode.runtime_gate.runtimeclass", "vars": variables}
    play = write_yaml(fleet.home / "play.yml", [{"name": "P", "hosts": "all", "gather_facts": False, "roles": [role]}])
    run = playbook(play, "-i", inventory)
    assert changed(run) == 1 and set(classes(plane)) == {"nvidia"} and "has no node_selector" not in run.text


def test_the_playbooks_touch_no_node_where_the_api_server_refuses(plane: ControlPlane, fleet: Fleet) -> None:
    plane.create([runtime_class("nvidia", "somebody-elses")])
    fleet.variables.update({"ansible_connection": "local", "runtime_gate_serial": "100%"})
    fleet.declare({"nvidia": {"preset": "nvidia"}})
    inventory = write_yaml(fleet.home / "hosts.yml", {"all": {"vars": fleet.variables, "hosts": fleet.hosts}})
    for name in ("site", "remove"):
        if name == "remove":
            plane.kubectl("delete", "runtimeclass", "nvidia")
            fleet.run()
            plane.create([pod("busy", "nvidia")])
        run = playbook("-i", inventory, f"kubenode.runtime_gate.{name}")
        assert "RuntimeClass nvidia" in refused(run) and "roles/containerd" not in run.text and "containerd :" not in run.text, run.text


@pytest.mark.parametrize("flag", [None, "no"])
def test_the_playbooks_ask_nothing_where_no_classes_are_wanted(plane: ControlPlane, fleet: Fleet, flag: t.Any) -> None:
    # What the gate will need is tested first; it is in files here, so that nothing has to be asked for it.
    files = {"runtime_gate_captures": str(fleet.home), "runtime_gate_manifests": [str(EXAMPLE / "manifests")]}
    fleet.variables.update(files, runtime_gate_runtimeclasses=flag)
    if flag is None:
        del fleet.variables["runtime_gate_runtimeclasses"]
    fleet.declare({"Wrong_Name": {"preset": "nvidia"}})
    inventory = write_yaml(fleet.home / "hosts.yml", {"all": {"vars": fleet.variables, "hosts": fleet.hosts}})
    since = len(plane.audit())
    for name in ("site", "remove"):
        run = playbook("-i", inventory, f"kubenode.runtime_gate.{name}")
        assert "runtimeclass :" not in run.text and run.status != 0  # the role containerd refuses recordings
    assert asked(plane, since) == []


def test_a_rollout_with_its_classes(plane: ControlPlane) -> None:
    """On a node with a real daemon: the class comes when the handler is loaded, and goes before it."""
    variables = {
        "runtime_gate_cluster": {"host": plane.url, "api_key": plane.tokens["admin"], "ca_cert": plane.ca_file},
        "runtime_gate_runtimeclasses": True,
        "runtime_gate_handlers": {"crun": {"preset": "crun", "runtime_class": {"overhead": {"cpu": "10m"}}}},
    }
    node = RealNode("2.1", "version = 2\n")
    try:
        check = node.playbook("site", variables, "--check", "--diff")
        assert check.status == 0 and "RuntimeClass crun (created)" in check.text and classes(plane) == {}, check.text
        run = node.playbook("site", variables)
        assert run.status == 0 and classes(plane)["crun"]["overhead"] == {"podFixed": {"cpu": "10m"}}, run.text
        assert "crun" in node.product.loaded()[0]
        second = node.playbook("site", variables)
        assert second.status == 0 and second.recap["n1"]["changed"] == 0, second.text
        plane.create([pod("busy", "crun")])
        run = node.playbook("remove", variables)
        assert run.status == 2 and "default/busy (1)" in run.text and "crun" in node.product.loaded()[0], run.text
        plane.kubectl("delete", "pod", "busy", "--force", "--grace-period=0")
        run = node.playbook("remove", variables)
        assert run.status == 0 and classes(plane) == {} and "crun" not in node.product.loaded()[0], run.text
    finally:
        node.close()


def test_an_object_that_changes_between_reading_and_deleting_is_not_deleted(plane: ControlPlane) -> None:
    """What the writer's precondition is for."""
    plane.create([runtime_class("nvidia", "nvidia")])
    live = classes(plane)["nvidia"]
    plane.kubectl("label", "runtimeclass", "nvidia", "a=b")
    writer = writer_for({"kubeconfig": str(plane.kubeconfig)}, "x")
    with pytest.raises(Refused, match="ResourceVersion in the precondition"):
        writer.delete(CLASSES, live, dry_run=False)
    writer.delete(CLASSES, classes(plane)["nvidia"], dry_run=False)
    with pytest.raises(urllib.error.HTTPError):
        plane.request("GET", f"{CLASSES}/nvidia")
