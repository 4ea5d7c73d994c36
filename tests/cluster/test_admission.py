# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role admission, and the list that the gate keeps for it, against a real kube-apiserver.

What this proves: without the list everything passes; with it, a mistyped handler gets a warning in the answer and an annotation in the
audit log that name the handlers which exist, or is refused; a changed list changes the answer; pods and workloads of a class that no
node can serve likewise; the gate keeps the list, and takes nothing away from a partial view; all of it with the rights of
examples/rbac-admission.yml; and all of it goes again.
"""

from __future__ import annotations

import json
import pathlib
import re
import shlex
import shutil
import time
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.handler_policy import (
    BINDINGS,
    POLICIES,
    Known,
    View,
    list_object,
    lists_path,
)
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import admission_list
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_writer import Writer, writer_for
from tests.cluster.control_plane import ControlPlane
from tests.cluster.pods import pod, runtime_class
from tests.cluster.waiting import wait_until
from tests.integration.ansible_runs import EXAMPLE, ROOT, Run, playbook, write_yaml

RBAC = (ROOT / "examples/rbac.yml", ROOT / "examples/rbac-admission.yml")
NAMES = ["runtime-gate-runtimeclasses", "runtime-gate-workloads"]
LIST = "/api/v1/namespaces/kube-system/configmaps/runtime-gate-handlers"
INSTALLER, GATE = "runtime-gate-admission-installer", "runtime-gate-admission"
LOADED = ["kata-qemu", "nvidia", "runc", "runsc"]


def made() -> ControlPlane:
    # The controller-manager checks the types of the expressions, and says what it finds in the status of a policy.
    return ControlPlane(programs=("controller-manager",))


def with_accounts(plane: ControlPlane) -> ControlPlane:
    for path in RBAC:
        plane.kubectl("create", "-f", str(path))
    # The gate reads the cluster too.
    plane.kubectl("create", "clusterrolebinding", "gate", "--clusterrole=runtime-gate-reader", f"--serviceaccount=kube-system:{GATE}")
    return plane


@pytest.fixture(scope="module", name="plane")
def _plane() -> t.Iterator[ControlPlane]:
    """One whose policies stay: an API server that has lost its last binding no longer follows the list."""
    with made() as plane:
        yield with_accounts(plane)


@pytest.fixture(scope="module", name="other")
def _other() -> t.Iterator[ControlPlane]:
    """One for installing and removing."""
    with made() as plane:
        yield with_accounts(plane)


def connection(plane: ControlPlane, account: str) -> dict[str, str]:
    return {"kubeconfig": str(plane.token_kubeconfig(account, plane.service_account_token("kube-system", account)))}


def admission(plane: ControlPlane, home: pathlib.Path, *arguments: str, **variables: t.Any) -> Run:
    """The playbook admission, by the installer's account."""
    shared = {"runtime_gate_cluster": connection(plane, INSTALLER)}
    inventory = write_yaml(home / "admission-hosts.yml", {"all": {"vars": shared, "hosts": {"w-1": None, "w-2": None}}})
    return playbook("kubenode.runtime_gate.admission", "-i", inventory, "-e", json.dumps(variables), *arguments)


def changed(run: Run) -> int:
    assert run.status == 0, run.text
    return sum(counts["changed"] for counts in run.recap.values())


@pytest.fixture(name="writer")
def _writer(plane: ControlPlane) -> Writer:
    return admin(plane)


def admin(plane: ControlPlane) -> Writer:
    return writer_for({"kubeconfig": str(plane.kubeconfig)}, "x")


@pytest.fixture(scope="module", name="warning")
def _warning(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> ControlPlane:
    """The policies, warning. Once they warn of a list of one handler that no class has, policies and list are in force."""
    assert changed(admission(plane, tmp_path_factory.mktemp("warning"))) == 1
    put_list(plane, ["none-such"])
    soon(plane, runtime_class("probe", "probe"), "Warning")
    return plane


@pytest.fixture(name="installed")
def _installed(warning: ControlPlane) -> t.Iterator[ControlPlane]:
    """The policies with an empty list."""
    warning.kubectl("delete", "configmap", "--namespace=kube-system", "runtime-gate-handlers", "--ignore-not-found")
    warning.kubectl("create", "configmap", "--namespace=kube-system", "runtime-gate-handlers")
    assert wait_until(lambda: say(warning, runtime_class("probe", "probe"), dry=True) == (0, ""), 60)
    yield warning
    warning.kubectl("delete", "deployments,daemonsets,statefulsets,cronjobs,jobs,pods", "--all", "--wait=false", "--force", "--grace-period=0")
    warning.kubectl("delete", "runtimeclasses", "--all")


def take_all_away(plane: ControlPlane) -> None:
    for kind in ("validatingadmissionpolicybindings", "validatingadmissionpolicies"):
        plane.kubectl("delete", kind, *NAMES, "--ignore-not-found")
    plane.kubectl("delete", "configmap", "--namespace=kube-system", "runtime-gate-handlers", "--ignore-not-found")


def put_list(plane: ControlPlane, handlers: t.Sequence[str], unserved: t.Sequence[tuple[str, str]] = ()) -> None:
    """As the gate writes it."""
    thing = list_object(Known(frozenset(handlers), frozenset(unserved)), "kube-system")
    writer_for({"kubeconfig": str(plane.kubeconfig)}, "x").apply(lists_path("kube-system"), thing, False)


def say(plane: ControlPlane, thing: dict[str, t.Any], dry: bool = False) -> tuple[int, str]:
    """kubectl create: its exit code and what it said beside the answer."""
    dry_run = ["--dry-run=server"] if dry else []
    done = plane.kubectl("create", "-f", "-", *dry_run, input=json.dumps(thing), check=False)
    return done.returncode, done.stderr


def soon(plane: ControlPlane, thing: dict[str, t.Any], word: str) -> str:
    """The answer to a dry run, once it has this word: a list and a binding reach the admission a moment after they are written."""
    assert wait_until(lambda: word in say(plane, thing, dry=True)[1], 60), say(plane, thing, dry=True)
    return say(plane, thing, dry=True)[1]


def annotations(plane: ControlPlane, name: str) -> list[dict[str, t.Any]]:
    """What the policies put into the audit log for requests about an object of this name, dry runs left out."""
    key = "validation.policy.admission.k8s.io/validation_failure"
    events = [event for event in plane.audit() if (event.get("objectRef") or {}).get("name") == name and "dryRun" not in event["requestURI"]]
    return [entry for event in events for entry in json.loads(event.get("annotations", {}).get(key, "[]"))]


def workloads(name: str, cls: str | None) -> list[dict[str, t.Any]]:
    """One of each kind that makes pods of a class."""
    spec = pod(name, cls)["spec"]
    always = {"metadata": {"labels": {"app": name}}, "spec": {**spec, "restartPolicy": "Always"}}
    never = {"metadata": {"labels": {"app": name}}, "spec": spec}
    selector = {"selector": {"matchLabels": {"app": name}}}
    made = [pod(name, cls)]
    for kind, more in (("Deployment", {"replicas": 0}), ("DaemonSet", {}), ("StatefulSet", {"replicas": 0, "serviceName": "s"})):
        made.append({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": {**selector, **more, "template": always}})
    job = {"template": never, "suspend": True}
    made.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": job})
    cron = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job}}
    made.append({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": cron})
    return made


@pytest.mark.full
def test_installed_twice_changed_and_removed(other: ControlPlane, tmp_path: pathlib.Path) -> None:
    plane, writer = other, admin(other)
    try:
        check = admission(plane, tmp_path, "--check", "--diff")
        assert changed(check) == 1 and writer.get(POLICIES, NAMES[0]) is None and "+failurePolicy: Ignore" in check.text
        assert changed(admission(plane, tmp_path)) == 1
        assert changed(admission(plane, tmp_path)) == 0
        assert [writer.get(BINDINGS, name)["spec"]["validationActions"] for name in NAMES] == [["Warn", "Audit"]] * 2  # type: ignore[index]
        assert "data" not in plane.request("GET", LIST)
        # The API server's own type checker has nothing to say.
        for name in NAMES:
            assert wait_until(lambda name=name: "typeChecking" in (writer.get(POLICIES, name) or {}).get("status", {}), 60)  # type: ignore[misc]
            assert (writer.get(POLICIES, name) or {})["status"]["typeChecking"] == {}
        check = admission(plane, tmp_path, "--check", "--diff", runtime_gate_admission_action="deny")
        assert changed(check) == 1 and "+- Deny" in check.text and "-- Warn" in check.text
        assert changed(admission(plane, tmp_path, runtime_gate_admission_action="deny")) == 1
        assert [writer.get(BINDINGS, name)["spec"]["validationActions"] for name in NAMES] == [["Deny", "Audit"]] * 2  # type: ignore[index]

        absent = {"runtime_gate_admission_state": "absent"}
        assert changed(admission(plane, tmp_path, "--check", **absent)) == 1 and writer.get(POLICIES, NAMES[0])
        put_list(plane, ["old"])
        soon(plane, runtime_class("new", "new"), "denied request")
        run = admission(plane, tmp_path, **absent)
        assert changed(run) == 1 and "130887" in run.text
        assert [writer.get(path, name) for path in (POLICIES, BINDINGS) for name in NAMES] == [None] * 4
        assert writer.get(lists_path("kube-system"), "runtime-gate-handlers") is None
        assert changed(admission(plane, tmp_path, **absent)) == 0
        # Whether this API server follows the list again or not: it does not judge by the old one.
        assert changed(admission(plane, tmp_path, runtime_gate_admission_action="deny")) == 1
        put_list(plane, ["new"])
        time.sleep(5)
        assert say(plane, runtime_class("new", "new"), dry=True) == (0, "")
    finally:
        take_all_away(plane)


def test_a_mistyped_handler_gets_a_warning_that_names_what_exists(installed: ControlPlane) -> None:
    plane = installed
    assert say(plane, runtime_class("typo", "nvidai")) == (0, "")  # the empty list lets everything pass
    plane.kubectl("delete", "runtimeclass", "typo")
    put_list(plane, LOADED)
    soon(plane, runtime_class("typo", "nvidai"), "Warning")
    status, said = say(plane, runtime_class("typo", "nvidai"))
    assert status == 0 and 'no node has loaded handler "nvidai"' in said and 'did you mean "nvidia"? Loaded are: kata-qemu, nvidia, runc, runsc' in said
    (noted,) = annotations(plane, "typo")
    assert noted["policy"] == NAMES[0] and 'did you mean "nvidia"?' in noted["message"] and noted["validationActions"] == ["Warn", "Audit"]
    assert say(plane, runtime_class("right", "nvidia")) == (0, "") and annotations(plane, "right") == []
    # An existing class may be changed whatever its handler.
    assert plane.kubectl("label", "runtimeclass", "typo", "a=b").stderr == ""

    plane.kubectl("delete", "runtimeclass", "typo")
    put_list(plane, [*LOADED, "nvidai"])
    assert wait_until(lambda: say(plane, runtime_class("typo", "nvidai"), dry=True) == (0, ""), 30)
    put_list(plane, LOADED)
    soon(plane, runtime_class("typo", "nvidai"), "Warning")
    plane.kubectl("delete", "configmap", "--namespace=kube-system", "runtime-gate-handlers")
    assert wait_until(lambda: say(plane, runtime_class("typo", "nvidai"), dry=True) == (0, ""), 30)


def test_which_names_are_near(installed: ControlPlane) -> None:
    put_list(installed, LOADED)
    soon(installed, runtime_class("x", "nvidai"), "Warning")
    for handler, near in {
        "nvidai": ["nvidia"],  # two letters swapped
        "nvidi": ["nvidia"],  # one less
        "nvvidia": ["nvidia"],  # one more
        "run": ["runc"],
        "kata": ["kata-qemu"],  # the beginning
        "nvidia-cdi": ["nvidia"],
        "kataqemu": ["kata-qemu"],  # the dash
        "runcs": ["runc", "runsc"],
        "crun": [],
        "zzz": [],
        "a": [],
        "z" * 63: [],
    }.items():
        _status, said = say(installed, runtime_class("x", handler), dry=True)
        wanted = "did you mean %s?" % " or ".join(f'"{name}"' for name in near) if near else "would hang. Loaded"
        assert wanted in said, said


def test_deny_refuses(plane: ControlPlane, tmp_path: pathlib.Path, installed: ControlPlane) -> None:
    put_list(plane, LOADED, [("ghost", "gone")])
    denying = {"runtime_gate_admission_action": "deny", "runtime_gate_admission_accepted_handlers": ["coming"]}
    assert changed(admission(plane, tmp_path, **denying)) == 1
    try:
        refused_and_changeable(plane)
    finally:
        assert changed(admission(plane, tmp_path)) == 1
        soon(plane, runtime_class("typo", "nvidai"), "Warning")


def refused_and_changeable(plane: ControlPlane) -> None:
    """With the list of LOADED and the class ghost that nobody serves."""
    said = soon(plane, runtime_class("typo", "nvidai"), "denied request")
    assert "The runtimeclasses \"typo\" is invalid" in said and 'did you mean "nvidia"?' in said
    assert say(plane, runtime_class("typo", "nvidai"))[0] == 1 and plane.kubectl("get", "runtimeclass", "typo", check=False).returncode == 1
    assert say(plane, runtime_class("later", "coming")) == (0, "")
    assert say(plane, runtime_class("ghost", "nvidia")) == (0, "")
    for thing in workloads("w", "ghost"):
        status, said = say(plane, thing)
        assert status == 1 and 'its handler "gone" is loaded on none' in said, (thing["kind"], said)
    # What is there already can be changed, and its finalizers come off.
    plane.kubectl("delete", "configmap", "--namespace=kube-system", "runtime-gate-handlers")
    (deployment,) = (thing for thing in workloads("old", "ghost") if thing["kind"] == "Deployment")
    deployment["metadata"]["finalizers"] = ["example.com/hold"]
    assert wait_until(lambda: say(plane, deployment)[0] == 0, 30)
    put_list(plane, LOADED, [("ghost", "gone")])
    soon(plane, pod("w", "ghost"), "denied request")
    assert plane.kubectl("label", "deployment", "old", "a=b").stderr == ""
    plane.kubectl("delete", "deployment", "old", "--wait=false")
    plane.kubectl("patch", "deployment", "old", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    assert wait_until(lambda: plane.kubectl("get", "deployment", "old", check=False).returncode == 1, 30)


def test_pods_and_workloads_of_a_class_that_no_node_can_serve(installed: ControlPlane) -> None:
    plane = installed
    plane.create([runtime_class("ghost", "gone"), runtime_class("good", "nvidia"), runtime_class("ghosted", "nvidia")])
    put_list(plane, LOADED, [("ghost", "gone")])
    soon(plane, pod("p", "ghost"), "Warning")
    for thing in workloads("bad", "ghost"):
        status, said = say(plane, thing)
        assert status == 0 and 'no node can serve RuntimeClass "ghost": its handler "gone"' in said, (thing["kind"], said)
    assert {noted["policy"] for noted in annotations(plane, "bad")} == {NAMES[1]} and len(annotations(plane, "bad")) == 6
    for name, cls in (("fine", "good"), ("none", None), ("longer", "ghosted")):
        assert [say(plane, thing) for thing in workloads(name, cls)] == [(0, "")] * 6
    # An update that brings the class is told, one that does not is not.
    assert plane.kubectl("label", "cronjob", "bad", "a=b").stderr == ""
    template = {"spec": {"template": {"spec": {"runtimeClassName": "ghost"}}}}
    assert "no node can serve" in plane.kubectl("patch", "deployment", "fine", "--type=merge", "-p", json.dumps(template)).stderr


def test_somebody_elses_policy_is_left_alone(other: ControlPlane, tmp_path: pathlib.Path) -> None:
    plane, writer = other, admin(other)
    rule = {"apiGroups": ["x.example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["x"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "true"}]}
    theirs = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": NAMES[1]}, "spec": spec}
    try:
        plane.apply([theirs])
        before = writer.get(POLICIES, NAMES[1])
        run = admission(plane, tmp_path)
        assert run.status == 2 and "belongs to testbed" in run.text and writer.get(POLICIES, NAMES[0]) is None
        run = admission(plane, tmp_path, runtime_gate_admission_state="absent")
        assert changed(run) == 0 and "belongs to testbed: left alone" in run.text
        assert (writer.get(POLICIES, NAMES[1]) or {})["spec"] == (before or {})["spec"]
    finally:
        take_all_away(plane)


def test_a_namespace_that_is_not_there_and_a_user_without_rights(other: ControlPlane, tmp_path: pathlib.Path) -> None:
    plane, writer = other, admin(other)
    run = admission(plane, tmp_path, runtime_gate_admission_namespace="nowhere", runtime_gate_cluster={"kubeconfig": str(plane.kubeconfig)})
    assert run.status == 2 and 'namespaces \\"nowhere\\" not found' in run.text and writer.get(POLICIES, NAMES[0]) is None
    run = admission(plane, tmp_path, runtime_gate_cluster=connection(plane, GATE))
    assert run.status == 2 and "does not let this user get validatingadmissionpolicies" in run.text and "rbac-admission.yml" in run.text


# the list that the gate keeps ---------------------------------------------------------------------------------------------------


class Gate:
    """The gate on the recordings of the example cluster, with its own account; its Nodes are in the API server."""

    def __init__(self, plane: ControlPlane, home: pathlib.Path) -> None:
        self.home = home
        self.captures = pathlib.Path(shutil.copytree(EXAMPLE / "captures", home / "captures"))
        self.hosts = sorted(path.name for path in self.captures.iterdir())
        self.variables = {
            "runtime_gate_captures": str(self.captures),
            "runtime_gate_cluster": connection(plane, GATE),
            "runtime_gate_admission": True,
            "runtime_gate_policy": {"unscoped": "ignore", "restart_loss": "warn", "unknown": "warn"},
        }

    def run(self, *arguments: str, **variables: t.Any) -> Run:
        inventory = write_yaml(self.home / "hosts.yml", {"all": {"vars": {**self.variables, **variables}, "hosts": dict.fromkeys(self.hosts)}})
        play = write_yaml(
            self.home / "play.yml", [{"name": "G", "hosts": "all", "gather_facts": False, "roles": [{"role": "kubenode.runtime_gate.gate"}]}]
        )
        return playbook(play, "-i", inventory, *arguments)


def listed(plane: ControlPlane) -> dict[str, list[str]]:
    data = plane.request("GET", LIST).get("data") or {}
    return {key: [line for line in data.get(key, "").split("\n") if line] for key in ("handlers", "unserved")}


@pytest.fixture(name="nodes")
def _nodes(plane: ControlPlane, tmp_path: pathlib.Path) -> t.Iterator[Gate]:
    """A Node for each recording, by its name, and classes."""
    gate = Gate(plane, tmp_path)
    plane.create([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"which": name}}} for name in gate.hosts])
    yield gate
    plane.kubectl("delete", "nodes", "--all")


def loaded_of(gate: Gate, host: str) -> set[str]:
    """The handlers in the recorded CRI answer of a host, by its own words."""
    text = (gate.captures / host / "crictl-info.json")
    if not text.exists():
        return set()
    return set(json.loads(text.read_text())["config"]["containerd"]["runtimes"])


def test_the_gate_keeps_the_list(installed: ControlPlane, nodes: Gate) -> None:
    plane, gate = installed, nodes
    everywhere = set().union(*(loaded_of(gate, host) for host in gate.hosts))
    answering = [host for host in gate.hosts if loaded_of(gate, host)]
    assert "docker-1" not in answering and len(answering) == 6  # its CRI is disabled
    plane.kubectl("delete", "configmap", "--namespace=kube-system", "runtime-gate-handlers")
    plane.create([runtime_class("ghost", "gone", scheduling={"nodeSelector": {"which": answering[0]}}), runtime_class("everywhere", "runc")])
    plane.create([runtime_class("broken", "gone", scheduling={"nodeSelector": {"which": "docker-1"}})])
    # The gate's account may change the list, not make it.
    run = gate.run()
    assert run.status == 2 and "does not let this user create configmaps" in run.text, run.text
    plane.kubectl("create", "configmap", "runtime-gate-handlers", "--namespace=kube-system")

    check = gate.run("--check", "--diff")
    assert listed(plane) == {"handlers": [], "unserved": []} and "+  nvidia" in check.text, check.text
    run = gate.run()
    # docker-1 tells nothing, so that nothing is known of a class that only it could serve.
    assert listed(plane) == {"handlers": sorted(everywhere), "unserved": ["ghost=gone"]}, run.text
    before = plane.request("GET", LIST)["metadata"]["resourceVersion"]
    second = gate.run()
    assert plane.request("GET", LIST)["metadata"]["resourceVersion"] == before and sum(counts["changed"] for counts in second.recap.values()) == 0

    # A part of the nodes, or nodes of which one does not answer, take nothing away.
    gone = next(host for host in answering if loaded_of(gate, host) - set().union(*(loaded_of(gate, other) for other in answering if other != host)))
    shutil.rmtree(gate.captures / gone)
    gate.run()
    assert listed(plane)["handlers"] == sorted(everywhere)
    gate.run("--limit", answering[-1])
    assert listed(plane) == {"handlers": sorted(everywhere), "unserved": ["ghost=gone"]}
    # Once each Node of the cluster has answered or is gone, what is loaded nowhere goes.
    plane.kubectl("delete", "node", gone, "docker-1")
    gate.hosts = [host for host in answering if host != gone]
    gate.run()
    rest = set().union(*(loaded_of(gate, host) for host in gate.hosts))
    assert rest < everywhere and listed(plane)["handlers"] == sorted(rest)


def test_it_is_written_only_where_it_is_asked_for(installed: ControlPlane, nodes: Gate) -> None:
    before = plane_version(installed)
    for variables in ({"runtime_gate_admission": False}, {"runtime_gate_read_only": True}):
        nodes.run(**variables)
        assert plane_version(installed) == before
    nodes.run("--limit", "debian-1")
    assert plane_version(installed) != before and listed(installed)["handlers"] == sorted(loaded_of(nodes, "debian-1"))


def plane_version(plane: ControlPlane) -> str:
    return str(plane.request("GET", LIST)["metadata"]["resourceVersion"])


def test_two_writers_at_once_lose_nothing(installed: ControlPlane, writer: Writer) -> None:
    """Between the reading and the writing of one, another writes."""

    class Late(Writer):
        once = True

        def get(self, path: str, name: str) -> t.Any:
            found = super().get(path, name)
            if self.once:
                self.once = False
                admission_list.update(writer, "kube-system", seen("first"), False)
            return found

    def seen(handler: str) -> View:
        return View(Known(frozenset([handler])), False, frozenset(), frozenset())

    late = Late(writer._ask, "x")
    admission_list.update(late, "kube-system", seen("second"), False)
    assert listed(installed)["handlers"] == ["first", "second"]


def test_a_list_that_somebody_edits_is_not_overwritten(installed: ControlPlane, writer: Writer) -> None:
    view = View(Known(frozenset(["runc"])), True, frozenset(), frozenset())
    admission_list.update(writer, "kube-system", view, False)
    installed.apply([list_object(Known(frozenset(["theirs"])), "kube-system")])
    with pytest.raises(Exception, match="data.handlers is owned by testbed"):
        admission_list.update(writer, "kube-system", view, False)
    assert listed(installed)["handlers"] == ["theirs"]


def test_the_commands_of_the_page(other: ControlPlane, tmp_path: pathlib.Path) -> None:
    """docs/admission.md, as they stand there, from nothing to nothing."""
    commands = [line for block in re.findall(r"```sh\n(.*?)```", (ROOT / "docs/admission.md").read_text(), re.DOTALL) for line in block.splitlines()]
    assert len(commands) == 4
    plane, writer, nodes = other, admin(other), Gate(other, tmp_path)
    nodes.variables["runtime_gate_cluster"] = {"kubeconfig": str(plane.kubeconfig)}
    hosts = dict.fromkeys(["debian-1", "flatcar-1"])
    inventory = write_yaml(nodes.home / "hosts.yml", {"all": {"vars": nodes.variables, "hosts": hosts}})
    try:
        for number, command in enumerate(commands):
            program, *arguments = shlex.split(command.replace("hosts.yml", str(inventory)))
            assert program == ".venv/bin/ansible-playbook"
            assert playbook(*arguments).status == 0
            assert (writer.get(POLICIES, NAMES[0]) is not None) is (number in (1, 2))
            if number == 2:
                assert listed(plane)["handlers"] == sorted(loaded_of(nodes, "debian-1") | loaded_of(nodes, "flatcar-1"))
    finally:
        take_all_away(plane)
