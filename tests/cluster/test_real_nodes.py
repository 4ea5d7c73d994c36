# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict before is the pod's fate after: the audit playbook judges real nodes, then real pods are sent there.

Each class is judged on each node, then a pod of it that only this node can take goes through admission, scheduler, kubelet and
containerd. Then every daemon is restarted, which turns two verdicts around, and it is done again.
"""

from __future__ import annotations

import collections
import contextlib
import json
import pathlib
import typing as t

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.pods import pod, pod_events, runtime_class
from tests.cluster.real_node import RealNode, containerd_config
from tests.cluster.waiting import wait_until
from tests.integration.ansible_runs import ROOT, playbook, write_yaml
from tests.testbed.host import CONFIG

ABSENT = "/usr/local/bin/absent-runtime"
TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
TOLERATES = {"tolerations": [{"key": "dedicated", "operator": "Exists"}]}

#: What has become of a pod, by the verdict on its class and node. The daemon's words hold for every release line.
RUNS = "runs"
NO_RUNTIME = 'FailedCreatePodSandBox: no runtime for "HANDLER" is configured'
NO_BINARY = f"FailedCreatePodSandBox: {ABSENT}"
NOT_SELECTED = "FailedScheduling: node affinity/selector"
UNTOLERATED = "FailedScheduling: untolerated taint"
FATES = {
    "ok": RUNS,
    "missing": NO_RUNTIME,
    "restart_required": NO_RUNTIME,
    "unusable": NO_BINARY,
    "not_targeted": NOT_SELECTED,
    "excluded_by_taint": UNTOLERATED,
}


class Fleet(t.NamedTuple):
    """A control plane and its real nodes; the last one is tainted."""

    cluster: ControlPlane
    nodes: list[RealNode]
    directory: pathlib.Path


def handlers(line: str, *names: str) -> str:
    """A configuration with the handlers every node has, one that only this line has, one whose binary is absent, and these."""
    own = dict.fromkeys(("runc", "mine", only(line), *names), t.cast(t.Mapping[str, t.Any], {}))
    return containerd_config(line, {**own, "broken": {"options": {"BinaryName": ABSENT}}})


def only(line: str) -> str:
    return "only-" + line.replace(".", "-")


def classes(lines: t.Sequence[str]) -> list[dict[str, t.Any]]:
    """Every class but one tolerates the taint of the last node."""
    named = ["runc", "mine", "bomb", "late", "broken", *(only(line) for line in lines)]
    made = [runtime_class(name, name, scheduling=TOLERATES) for name in named]
    made.append(runtime_class("typo", "nvidai", scheduling=TOLERATES))
    made.append(runtime_class("elsewhere", "runc", scheduling={**TOLERATES, "nodeSelector": {"pool": "other"}}))
    made.append(runtime_class("first-pool", "runc", scheduling={**TOLERATES, "nodeSelector": {"pool": "p0"}}))
    made.append(runtime_class("intolerant", "runc", scheduling={"nodeSelector": {"kubernetes.io/os": "linux"}}))
    return made


@pytest.fixture(scope="module")
def fleet(lines: list[str], tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Fleet]:
    directory = tmp_path_factory.mktemp("fleet")
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(ControlPlane(directory / "control-plane", programs=("scheduler", "controller-manager")))
        nodes = []
        for index, line in enumerate(lines):
            config = handlers(line, "bomb")
            name = f"real-{line.replace('.', '-')}"
            nodes.append(stack.enter_context(RealNode(directory / name, cluster, name=name, line=line, config=config, labels={"pool": f"p{index}"})))
        for node in nodes:
            node.wait_ready()
            # From here on the files say something else than what is loaded: "bomb" goes at the next restart, "late" comes.
            node.containerd.write(CONFIG, handlers(node.line, "late"))
        cluster.kubectl("taint", "node", nodes[-1].name, "dedicated=gpu:NoSchedule")
        cluster.apply(classes(lines))
        cluster.kubectl("apply", "-f", str(ROOT / "examples/rbac.yml"))
        cluster.kubectl("create", "clusterrolebinding", "audit", "--clusterrole=runtime-gate-reader", "--user=audit")
        yield Fleet(cluster, nodes, directory)


def audit(fleet: Fleet) -> dict[tuple[str, str], str]:
    """(node, class) -> verdict, by the playbook a person runs, with the rights of the example and no others."""
    report = fleet.directory / "report.json"
    hosts = {node.name: node.inventory_vars() for node in fleet.nodes}
    shared = {"runtime_gate_cluster": {"kubeconfig": str(fleet.cluster.user_kubeconfig("audit"))}, "runtime_gate_report_path": str(report)}
    inventory = write_yaml(fleet.directory / "hosts.yml", {"all": {"hosts": hosts, "vars": shared}})
    report.unlink(missing_ok=True)
    run = playbook("kubenode.runtime_gate.audit", "-i", inventory)
    assert report.exists(), run.text
    found = {(host["node"], name): verdict for host in json.loads(report.read_text())["hosts"] for name, verdict in host["cells"].items()}
    assert {node for node, _name in found} == {node.name for node in fleet.nodes}, run.text
    return found


def send_pods(fleet: Fleet, verdicts: t.Iterable[tuple[str, str]], mark: str) -> dict[tuple[str, str], str]:
    """(node, class) -> name of a pod of this class that only this node can take, sent through the scheduler."""
    names = {(node, name): f"{mark}-{node}-{name}" for node, name in verdicts}
    fleet.cluster.create([pod(made, runtime_class=name, **_only_on(node)) for (node, name), made in names.items()])
    return names


def _only_on(node: str) -> dict[str, t.Any]:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}}


def fate(cluster: ControlPlane, name: str, handler: str) -> str | None:
    """What has become of a pod; None: not known yet."""
    status = cluster.request("GET", f"/api/v1/namespaces/default/pods/{name}")["status"]
    if any("running" in each.get("state", {}) for each in status.get("containerStatuses", [])):
        return RUNS
    words = [f"{reason}: {message}" for reason, message in pod_events(cluster, name)]
    for line in words:
        if line.startswith("FailedCreatePodSandBox: ") and f'no runtime for "{handler}" is configured' in line:
            return NO_RUNTIME
        if line.startswith("FailedCreatePodSandBox: ") and ABSENT in line:
            return NO_BINARY
        if line.startswith("FailedScheduling: ") and "1 node(s) didn't match Pod's node affinity/selector" in line:
            return NOT_SELECTED
        if line.startswith("FailedScheduling: ") and "1 node(s) had untolerated taint(s)" in line:
            return UNTOLERATED
    return None


def fates(fleet: Fleet, pods: t.Mapping[tuple[str, str], str]) -> dict[tuple[str, str], str]:
    """What has become of each pod. A pod whose fate is not known in time shows its events instead."""
    handler = {entry["metadata"]["name"]: entry["handler"] for entry in classes([node.line for node in fleet.nodes])}
    found: dict[tuple[str, str], str] = {}

    def all_known() -> bool:
        for cell, name in pods.items():
            if cell not in found and (word := fate(fleet.cluster, name, handler[cell[1]])):
                found[cell] = word
        return len(found) == len(pods)

    wait_until(all_known, 150, 0.5)
    return {cell: found.get(cell) or f"unknown: {pod_events(fleet.cluster, name)}" for cell, name in pods.items()}


def compare(fleet: Fleet, mark: str, tell: t.Callable[[str], None]) -> dict[tuple[str, str], str]:
    """Audit, send the pods, compare. Returns the verdicts."""
    verdicts = audit(fleet)
    seen = fates(fleet, send_pods(fleet, verdicts, mark))
    differ = {cell: (verdict, seen[cell]) for cell, verdict in verdicts.items() if FATES.get(verdict) != seen[cell]}
    assert not differ, differ
    counts = collections.Counter(verdicts.values())
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    lines = ", ".join(node.line for node in fleet.nodes)
    tell(f"{mark} restart: the verdict was the fate of {len(verdicts)} of {len(verdicts)} pods on containerd {lines}: {told}")
    return verdicts


def test_the_verdict_is_the_fate_and_running_pods_survive_a_restart(fleet: Fleet, tell: t.Callable[[str], None]) -> None:
    before = compare(fleet, "before", tell)
    for node in fleet.nodes:
        # Only as much as each node was made to show; what the verdicts are worth is said by the pods.
        assert {before[node.name, name] for name in ("mine", only(node.line))} == {"ok"}
        assert (before[node.name, "bomb"], before[node.name, "late"]) == ("ok", "restart_required")
    assert set(before.values()) == set(FATES)

    running = {node.name: node.containers() for node in fleet.nodes}
    states = pods_that_run(fleet.cluster)
    # Each running pod is a sandbox and a container.
    assert sum(len(tasks) for tasks in running.values()) == 2 * len(states) == 2 * list(before.values()).count("ok")
    for node in fleet.nodes:
        pid = node.containerd.daemon_pid()
        assert node.containerd.restart(), node.containerd.log()
        assert node.containerd.daemon_pid() != pid
        assert running[node.name].items() <= node.containers().items()

    after = compare(fleet, "after", tell)
    for node in fleet.nodes:
        assert (after[node.name, "bomb"], after[node.name, "late"]) == ("missing", "ok")
    # By then each kubelet has asked the new daemon about its pods. Those that only waited for the restart run now as well.
    earlier = {name: state for name, state in pods_that_run(fleet.cluster).items() if name.startswith("before-")}
    assert states.items() <= earlier.items()
    assert earlier.keys() - states.keys() <= {f"before-{node.name}-late" for node in fleet.nodes}
    tell(f"{len(states)} running pods survived the restart of their containerd with the same processes")


def pods_that_run(cluster: ControlPlane) -> dict[str, tuple[str, int, str]]:
    """Name of each running pod -> (container id, restarts, start), as its kubelet last told."""
    found = {}
    for each in cluster.request("GET", "/api/v1/namespaces/default/pods")["items"]:
        for status in each["status"].get("containerStatuses", []):
            if "running" in status["state"]:
                found[each["metadata"]["name"]] = (status["containerID"], status["restartCount"], status["state"]["running"]["startedAt"])
    return found


def test_a_node_object_says_what_its_daemon_has_loaded(fleet: Fleet) -> None:
    """status.runtimeHandlers is the kubelet's copy: filled from containerd 2.0 on, absent before."""
    for node in fleet.nodes:
        loaded = set(node.containerd.handlers())

        def copied(node: RealNode = node, loaded: set[str] = loaded) -> bool:
            told = {entry["name"] for entry in node.api_object()["status"].get("runtimeHandlers", [])}
            return told == ({*loaded, ""} if not node.line.startswith("1.") else set())

        assert wait_until(copied, 30, 0.5), (node.line, node.api_object()["status"].get("runtimeHandlers"), loaded)
