# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cordon, drain and giving back on a real API server with its controllers, with the rights of examples/rbac-drain.yml.

What this proves: a cordon bears our mark in the same request, only such a one is given back, and races are won by nobody; which pods are
evicted and which are a reason not to begin, among them those that a PodDisruptionBudget protects, counted by its real controller; a drain
that fails leaves a Node that takes pods. No kubelet runs here: evicted pods are ended by the test.
"""

from __future__ import annotations

import contextlib
import threading
import typing as t
import urllib.error

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_reader import Answer, Ask, connect_for_all
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_api import MERGE, NodeApi
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_maintenance import BEFORE_RESTART, DRAIN_OPTIONS, Drain, NodeMaintenance
from tests.cluster.control_plane import ControlPlane
from tests.cluster.pods import pod
from tests.cluster.waiting import wait_until
from tests.integration.ansible_runs import ROOT

PREFIX = "runtime-gate.kubenode.io"
MARK = f"{PREFIX}/cordoned"
ACCOUNT = "system:serviceaccount:kube-system:runtime-gate-rollout"
NODE = "/api/v1/nodes/n1"


@pytest.fixture(scope="module", name="plane")
def _plane() -> t.Iterator[ControlPlane]:
    with ControlPlane(programs=("controller-manager",)) as plane:
        for name in ("rbac.yml", "rbac-drain.yml"):
            plane.kubectl("create", "-f", str(ROOT / "examples" / name))
        for verb, what in (("create", "pods/eviction"), ("list", "pods"), ("patch", "nodes")):
            assert wait_until(lambda: may(plane, verb, what), 30)  # noqa: B023 - asked at once
        yield plane


def may(plane: ControlPlane, verb: str, what: str) -> bool:
    resource, _slash, part = what.partition("/")
    return plane.kubectl("auth", "can-i", verb, resource, f"--subresource={part}", f"--as={ACCOUNT}", check=False).returncode == 0


@pytest.fixture(name="node")
def _node(plane: ControlPlane) -> t.Iterator[t.Callable[[], t.Dict[str, t.Any]]]:
    """A Node n1; called, it is what the API server has now."""
    plane.create([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"pool": "a"}}, "spec": {}}])
    yield lambda: t.cast("dict[str, t.Any]", plane.request("GET", NODE))
    plane.kubectl("delete", "poddisruptionbudgets", "--all")
    plane.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    plane.request("DELETE", NODE)


def maintenance(plane: ControlPlane, dry_run: bool = False, around: t.Callable[[Ask], Ask] = lambda ask: ask) -> NodeMaintenance:
    """As the ServiceAccount of the example. It never waits longer than a moment."""
    token = plane.service_account_token("kube-system", "runtime-gate-rollout")
    ask = connect_for_all({"host": plane.url, "api_key": token, "ca_cert": plane.ca_file}, 10.0)
    return NodeMaintenance(NodeApi(around(ask), dry_run), "n1", PREFIX)


def how(grace: t.Optional[int] = 0, timeout: float = 20.0, **options: t.Any) -> Drain:
    return Drain(grace, timeout, {**{name: spec["default"] for name, spec in DRAIN_OPTIONS.items()}, "wait_sleep": 0.2, **options})


def cordoned(node: t.Dict[str, t.Any]) -> bool:
    return bool(node["spec"].get("unschedulable"))


def mark(node: t.Dict[str, t.Any]) -> t.Optional[str]:
    return t.cast("t.Optional[str]", (node["metadata"].get("annotations") or {}).get(MARK))


def pods(plane: ControlPlane) -> t.Set[str]:
    return {one["metadata"]["name"] for one in plane.request("GET", "/api/v1/pods")["items"] if not one["metadata"].get("deletionTimestamp")}


# ---- cordon


def test_a_cordon_is_marked_and_given_back(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    mine = maintenance(plane)
    assert maintenance(plane, dry_run=True).take(None)["cordoned"] and not cordoned(node())
    assert mine.take(None) == {"cordoned": True, "cordoned_before": False, "evicted": []}
    assert cordoned(node()) and mark(node()) == BEFORE_RESTART
    # A run that was lost here leaves exactly this; the next one takes it for its own. (The node controller adds its taint meanwhile.)
    assert wait_until(lambda: any(taint["key"] == "node.kubernetes.io/unschedulable" for taint in node()["spec"].get("taints", ())), 30)
    version = node()["metadata"]["resourceVersion"]
    assert maintenance(plane).take(None)["cordoned"] and node()["metadata"]["resourceVersion"] == version
    assert mine.give_back() and not cordoned(node()) and mark(node()) is None and node()["metadata"]["labels"]["pool"] == "a"
    assert not mine.give_back()


def test_what_somebody_else_cordoned_stays_cordoned(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    plane.kubectl("cordon", "n1")
    mine = maintenance(plane)
    assert mine.take(None) == {"cordoned": False, "cordoned_before": True, "evicted": []}
    assert not mine.give_back() and mine.keep("why") == (False, False) and cordoned(node()) and mark(node()) is None


def test_a_cordon_between_our_reading_and_our_writing_is_not_ours(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    done = []

    def meddling(ask: Ask) -> Ask:
        def asked(method: str, *rest: t.Any) -> Answer:
            if method == "PATCH" and not done:
                done.append(1)
                plane.request("PATCH", NODE, {"spec": {"unschedulable": True}}, content_type=MERGE)
            return ask(method, *rest)

        return asked

    assert maintenance(plane, around=meddling).take(None)["cordoned_before"] and mark(node()) is None


def test_a_node_that_stays_cordoned_says_why(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    mine = maintenance(plane)
    mine.take(None)
    assert mine.keep("the daemon does not start") == (True, True) and mark(node()) == "the daemon does not start" and cordoned(node())
    assert mine.keep("the daemon does not start") == (True, False)
    # Somebody has looked at it and let pods in: it is theirs now, whatever the mark still says.
    plane.kubectl("uncordon", "n1")
    assert mine.keep("again") == (False, False)


def test_somebody_who_changes_the_node_all_the_time_is_one_error(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    tries: t.List[int] = []

    def meddling(ask: Ask) -> Ask:
        def asked(method: str, *rest: t.Any) -> Answer:
            if method == "PATCH":
                tries.append(1)
                plane.request("PATCH", NODE, {"metadata": {"annotations": {"count": str(len(tries))}}}, content_type=MERGE)
            return ask(method, *rest)

        return asked

    with pytest.raises(RuntimeGateError, match=r"cannot cordon Node n1: .* 409"):
        maintenance(plane, around=meddling).take(None)
    assert len(tries) == 5 and not cordoned(node())


# ---- drain


def owner(kind: str = "Job") -> t.Dict[str, t.Any]:
    """An owner that no controller of the plane looks after: none counts the pod as one too many, and none collects it as garbage."""
    return {"apiVersion": "example.com/v1", "kind": kind, "name": "o", "uid": "8b7d7a56-0000-4000-8000-000000000000", "controller": True}


def place(plane: ControlPlane, name: str, of: t.Optional[t.Dict[str, t.Any]] = None, phase: str = "Running", mirror: bool = False, **spec: t.Any) -> None:
    """A pod on n1, ready, as a kubelet would report it."""
    made = pod(name, node="n1", labels={"app": name}, **spec)
    made["metadata"]["ownerReferences"] = [of] if of else []
    made["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"} if mirror else {}
    plane.request("POST", "/api/v1/namespaces/default/pods", made)
    status = {"status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}}
    plane.request("PATCH", f"/api/v1/namespaces/default/pods/{name}/status", status, content_type=MERGE)


@pytest.fixture(name="kubelet")
def _kubelet(plane: ControlPlane) -> t.Callable[[], t.ContextManager[None]]:
    """Ends pods that are to end, as the kubelet of n1 would, while its block runs."""

    @contextlib.contextmanager
    def ending() -> t.Iterator[None]:
        over = threading.Event()

        def work() -> None:
            while not over.wait(0.1):
                for one in plane.request("GET", "/api/v1/pods")["items"]:
                    if one["metadata"].get("deletionTimestamp"):
                        with contextlib.suppress(urllib.error.HTTPError):
                            plane.request("DELETE", f"/api/v1/namespaces/default/pods/{one['metadata']['name']}", {"gracePeriodSeconds": 0})

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(30)

    return ending


def protect(plane: ControlPlane, app: str) -> None:
    """A budget that allows no disruption of these pods; waits until the API server's own controller has counted."""
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app}}
    budget["spec"] = {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}}
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    plane.request("POST", path, budget)

    def counted() -> bool:
        status = plane.request("GET", f"{path}/{app}").get("status") or {}
        return bool(status.get("observedGeneration")) and status.get("currentHealthy") == 1 and status.get("disruptionsAllowed") == 0

    assert wait_until(counted, 30)


def test_what_nobody_consented_to_is_said_before_anything_is_written(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    place(plane, "naked")
    place(plane, "data", owner("ReplicaSet"), volumes=[{"name": "v", "emptyDir": {}}])
    place(plane, "daemon", owner("DaemonSet"))
    with pytest.raises(RuntimeGateError) as caught:
        maintenance(plane).take(how(ignore_daemonsets=False))
    text = str(caught.value)
    for word in (
        "nothing was changed",
        "default/naked belong to no controller that would start them elsewhere (force: true)",
        "default/data keep data in an emptyDir, which would be lost (delete_emptydir_data: true)",
        "default/daemon belong to a DaemonSet (ignore_daemonsets: true)",
    ):
        assert word in text, text
    assert not cordoned(node()) and mark(node()) is None and {"naked", "data", "daemon"} <= pods(plane)


def test_a_drain_with_every_consent(plane: ControlPlane, node: t.Callable[[], t.Any], kubelet: t.Callable[[], t.Any]) -> None:
    place(plane, "naked")
    place(plane, "data", owner(), volumes=[{"name": "v", "emptyDir": {}}])
    place(plane, "daemon", owner("DaemonSet"), volumes=[{"name": "v", "emptyDir": {}}])
    place(plane, "mirror", mirror=True)
    every = how(force=True, delete_emptydir_data=True)
    expected = ["default/data", "default/naked"]
    planned = maintenance(plane, dry_run=True).take(every)
    assert sorted(planned["evicted"]) == expected and not cordoned(node()) and {"naked", "data"} <= pods(plane)
    with kubelet():
        done = maintenance(plane).take(every)
    assert sorted(done["evicted"]) == expected and done["cordoned"]
    assert cordoned(node()) and pods(plane) == {"daemon", "mirror"}


def test_finished_pods_are_no_reason_and_selectors_choose(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    place(plane, "done", phase="Succeeded")
    place(plane, "naked")
    assert maintenance(plane).take(how(pod_selectors=["app=done"]))["evicted"] == ["default/done"]
    assert pods(plane) == {"naked"} and cordoned(node())


def test_a_budget_is_asked_again_until_it_allows_it(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    place(plane, "web", owner())
    protect(plane, "web")
    timer = threading.Timer(1.5, lambda: plane.kubectl("delete", "poddisruptionbudget", "web"))
    timer.start()
    assert maintenance(plane).take(how(timeout=60.0))["evicted"] == ["default/web"]
    timer.join()
    assert pods(plane) == set() and cordoned(node())


def test_a_budget_that_never_allows_it_gives_the_node_back(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    place(plane, "web", owner())
    place(plane, "job", owner())
    protect(plane, "web")
    with pytest.raises(RuntimeGateError) as caught:
        maintenance(plane).take(how(timeout=1.0))
    for word in ("not drained after 1 s", "still there: default/web", "disruption budget", "Evicted before that: default/job", "n1 takes pods again"):
        assert word in str(caught.value), str(caught.value)
    assert not cordoned(node()) and mark(node()) is None and pods(plane) == {"web"}
    # … and leaves it cordoned where somebody else had done that.
    plane.kubectl("cordon", "n1")
    with pytest.raises(RuntimeGateError, match="The runtime was not touched$"):
        maintenance(plane).take(how(timeout=0.0))
    assert cordoned(node()) and mark(node()) is None


def test_pods_that_take_too_long_to_end_are_no_success(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    """kubernetes.core.k8s_drain only warns here."""
    place(plane, "slow", owner(), terminationGracePeriodSeconds=600)
    with pytest.raises(RuntimeGateError, match=r"not drained after 1 s, still there: default/slow"):
        maintenance(plane).take(how(grace=None, timeout=1.0))
    assert plane.request("GET", "/api/v1/namespaces/default/pods/slow")["metadata"]["deletionGracePeriodSeconds"] == 600
    assert not cordoned(node())


def test_the_rights_of_the_example_are_no_more_than_needed(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    for verb, what in (("list", "nodes"), ("get", "nodes"), ("patch", "nodes"), ("list", "pods"), ("create", "pods/eviction")):
        assert may(plane, verb, what), (verb, what)
    for verb, what in (("delete", "pods"), ("create", "pods"), ("patch", "nodes/status"), ("delete", "nodes"), ("list", "secrets"), ("create", "pods/exec")):
        assert not may(plane, verb, what), (verb, what)
    place(plane, "web", owner())
    with pytest.raises(RuntimeGateError, match=r"cannot delete pod default/web: .*403.*n1 takes pods again"):
        maintenance(plane).take(how(disable_eviction=True))
    assert not cordoned(node())
