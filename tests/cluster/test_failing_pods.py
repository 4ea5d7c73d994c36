# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods that really fail on real nodes, found and explained by the audit.

What this proves: the words of the daemon, of its kubelet and of the controllers are recognised as they come; each failing pod is tied to
node, class, handler and verdict, by the API alone and by what is read on the nodes; what has ended is not told any more; and a status
that the runtime itself contradicts is no pass. CRI-O's words are in the unit test.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import typing as t

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.pods import IMAGE, pod, pod_events, runtime_class
from tests.cluster.real_node import RealNode, containerd_config
from tests.cluster.waiting import wait_until
from tests.integration.ansible_runs import ROOT, Run, playbook, write_yaml

pytestmark = pytest.mark.full  # real nodes of its own; the slice has those of test_real_nodes.py

AUDIT = "kubenode.runtime_gate.audit"
OLD, NEW = "1.7", "2.1"
ABSENT = "/usr/local/bin/absent-runtime"
USER = "events"
PODS = "/api/v1/namespaces/default/pods"
ROLES = ("runtime-gate-reader", "runtime-gate-workload-reader", "runtime-gate-event-reader")


class Fleet(t.NamedTuple):
    """A control plane and a real node of each line."""

    cluster: ControlPlane
    nodes: dict[str, RealNode]
    directory: pathlib.Path


def deployment(name: str, **spec: t.Any) -> dict[str, t.Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": IMAGE}], **spec}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


@pytest.fixture(scope="module", name="fleet")
def _fleet(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Fleet]:
    directory = tmp_path_factory.mktemp("failing")
    runtimes: dict[str, t.Mapping[str, t.Any]] = {"runc": {}, "broken": {"options": {"BinaryName": ABSENT}}}
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(ControlPlane(directory / "control-plane", programs=("scheduler", "controller-manager"), users=(USER,)))
        nodes = {}
        for line in (OLD, NEW):
            name = f"real-{line.replace('.', '-')}"
            node = RealNode(directory / name, cluster, name=name, line=line, config=containerd_config(line, runtimes), labels={"pool": name})
            nodes[line] = stack.enter_context(node)
        for node in nodes.values():
            node.wait_ready()
        cluster.create([runtime_class("good", "runc"), runtime_class("typo", "nvidai"), runtime_class("broken", "broken")])
        cluster.create([runtime_class("scoped", "runc", scheduling={"nodeSelector": {"pool": "real-2-1"}})])
        cluster.kubectl("create", "-f", "-", input=(ROOT / "examples/rbac.yml").read_text(encoding="utf-8"))
        for role in ROLES:
            cluster.kubectl("create", "clusterrolebinding", f"{USER}-{role}", f"--clusterrole={role}", f"--user={USER}")
        cluster.create([pod(f"{name}-{node.name}", runtime_class=name, node=node.name) for node in nodes.values() for name in ("good", "typo", "broken")])
        # Both apply without a word.
        cluster.apply([deployment("nowhere", runtimeClassName="nowhere"), deployment("torn", runtimeClassName="scoped", nodeSelector={"pool": "other"})])
        yield Fleet(cluster, nodes, directory)


def failed(fleet: Fleet, name: str) -> bool:
    return any(reason == "FailedCreatePodSandBox" for reason, _message in pod_events(fleet.cluster, name))


def audit(fleet: Fleet, inventory: dict[str, t.Any] | None = None, **variables: t.Any) -> tuple[Run, dict[str, t.Any]]:
    report = fleet.directory / "report.json"
    report.unlink(missing_ok=True)
    given = {
        "runtime_gate_failing_pods": True,
        "runtime_gate_cluster": {"kubeconfig": str(fleet.cluster.token_kubeconfig(USER))},
        "runtime_gate_report_path": str(report),
        **variables,
    }
    hosts = write_yaml(fleet.directory / "hosts.yml", {"all": {"hosts": inventory or {}}})
    run = playbook(AUDIT, "-i", hosts, "-e", f"@{write_yaml(fleet.directory / 'variables.yml', given)}")
    assert report.exists(), run.text
    return run, json.loads(report.read_text(encoding="utf-8"))


def told(report: dict[str, t.Any]) -> dict[str, tuple[t.Any, ...]]:
    """Kind, name and node -> node, class, handler, cause, verdict."""
    keys = ("node", "runtime_class", "handler", "cause", "verdict")
    found = {}
    for each in report["failing_pods"]:
        name = each["name"].rpartition("/")[2].partition("-")[0]
        found[f"{each['kind']} {name} {each['node']}"] = tuple(each[key] for key in keys)
    return found


def notices(report: dict[str, t.Any], name: str) -> str:
    return " | ".join(notice["message"] for notice in report["notices"] if notice["name"] == name)


def test_failing_pods_are_tied_to_node_handler_and_verdict(fleet: Fleet, tell: t.Callable[[str], None]) -> None:
    old, new = fleet.nodes[OLD].name, fleet.nodes[NEW].name
    for name in (f"{kind}-{node}" for kind in ("typo", "broken") for node in (old, new)):
        assert wait_until(lambda name=name: failed(fleet, name), 120, 0.5), pod_events(fleet.cluster, name)

    def refused() -> bool:
        events = fleet.cluster.request("GET", "/api/v1/events?fieldSelector=reason%3DFailedCreate")["items"]
        return {event["involvedObject"]["name"].partition("-")[0] for event in events} >= {"nowhere", "torn"}

    assert wait_until(refused, 60, 0.5)
    assert wait_until(lambda: handlers(fleet, NEW) == {"", "broken", "runc"}, 30, 0.5)

    # By the API alone: containerd 1.7 reports no handlers, so nothing is known there but what the pods say.
    _run, report = audit(fleet, runtime_gate_source="api")
    expected = {
        f"Pod typo {old}": (old, "typo", "nvidai", "handler_not_configured", "unknown"),
        f"Pod typo {new}": (new, "typo", "nvidai", "handler_not_configured", "missing"),
        f"Pod broken {old}": (old, "broken", "broken", "handler_unusable", "unknown"),
        f"Pod broken {new}": (new, "broken", "broken", "handler_unusable", "ok"),
        "ReplicaSet nowhere None": (None, "nowhere", None, "class_not_found", None),
        "ReplicaSet torn None": (None, None, None, "rejected", None),
    }
    assert told(report) == expected
    words = notices(report, "failing_pods")
    for line in (
        f"pods cannot start on {new}, whose runtime has no handler nvidai (1: default/typo-{new}); the verdict there is missing",
        f"pods cannot start on {new}, whose runtime cannot start handler broken",
        'RuntimeClass "nowhere" not found',
        "conflict: runtimeClass.scheduling.nodeSelector[pool] = real-2-1; pod.spec.nodeSelector[pool] = other",
    ):
        assert line in words, line
    assert "Deployment default/nowhere" in notices(report, "workload_class_unknown")
    assert "Deployment default/torn" in notices(report, "workload_refused")
    said = {each["said"].rpartition(": ")[2] for each in report["failing_pods"] if each["cause"] == "handler_not_configured"}
    assert said == {'no runtime for "nvidai" is configured'}

    # Read on the nodes, each verdict is certain and says why.
    run, report = audit(fleet, {node.name: node.inventory_vars() for node in fleet.nodes.values()})
    verdicts = {name: entry[-1] for name, entry in told(report).items() if name.startswith("Pod")}
    assert verdicts == {f"Pod typo {old}": "missing", f"Pod typo {new}": "missing", f"Pod broken {old}": "unusable", f"Pod broken {new}": "unusable"}
    assert all(ABSENT in each["reason"] for each in report["failing_pods"] if each["verdict"] == "unusable"), run.text
    tell(f"failing pods: {len(expected)} real failures on containerd {OLD} and {NEW}, each with its node, class, handler and cause")


def handlers(fleet: Fleet, line: str) -> set[str]:
    return {entry["name"] for entry in fleet.nodes[line].api_object()["status"].get("runtimeHandlers", [])}


def test_a_status_that_the_runtime_contradicts_is_no_pass(fleet: Fleet) -> None:
    """Its kubelet being away, nobody corrects what the status says."""
    node = fleet.nodes[NEW]
    assert wait_until(lambda: failed(fleet, f"typo-{node.name}"), 120, 0.5)
    node.stop_kubelet()
    wrong = {"status": {"runtimeHandlers": [{"name": name} for name in ("", "runc", "nvidai")]}}
    fleet.cluster.request("PATCH", f"/api/v1/nodes/{node.name}/status", wrong, content_type="application/merge-patch+json")
    policy = {"classes": ["typo"]}
    _run, believed = audit(fleet, runtime_gate_source="api", runtime_gate_failing_pods=False, runtime_gate_policy=policy)
    run, report = audit(fleet, runtime_gate_source="api", runtime_gate_policy=policy)
    cell = {name: {host["node"]: host["cells"]["typo"] for host in each["hosts"]}[node.name] for name, each in (("believed", believed), ("now", report))}
    assert cell == {"believed": "ok", "now": "unknown"}
    assert f"the runtime on {node.name} refuses it to a pod that still fails" in " ".join(run.text.split())
    node.start_kubelet()


def test_what_has_ended_is_not_told(fleet: Fleet) -> None:
    """The events are still there; the pods are not, and the class that was missing is."""
    for each in fleet.cluster.request("GET", PODS)["items"]:
        fleet.cluster.request("DELETE", f"{PODS}/{each['metadata']['name']}?gracePeriodSeconds=0")
    fleet.cluster.create([runtime_class("nowhere", "runc")])
    _run, report = audit(fleet, runtime_gate_source="api")
    assert set(told(report)) <= {"ReplicaSet torn None"}
    assert fleet.cluster.request("GET", "/api/v1/events?fieldSelector=reason%3DFailedCreatePodSandBox")["items"]
