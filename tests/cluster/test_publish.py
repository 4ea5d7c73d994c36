# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels, condition and startup taint on the Nodes of a real kube-apiserver, with the rights of examples/rbac-publish.yml.

What this proves: what stands on a Node afterwards, read as the admin; how many requests that took, by the audit log; check mode stores
nothing and a second run writes nothing; labels go when their handler goes; what somebody else owns stays; the audit's ServiceAccount is
refused; each error of the API is one sentence that says what had been written.
"""

from __future__ import annotations

import collections
import re
import typing as t
import urllib.parse

import pytest
import yaml

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_reader import Answer, Ask, connect_for_all
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_api import STRATEGIC, ApiRefused, NodeApi
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_publisher import nothing, publish, wanted_of
from tests.cluster.control_plane import ControlPlane
from tests.cluster.waiting import wait_until
from tests.integration.ansible_runs import EXAMPLE, ROOT, Run, playbook, write_yaml

PREFIX = "runtime-gate.kubenode.io"
TAINT = {"key": f"{PREFIX}/not-verified", "value": "", "effect": "NoSchedule"}
OTHER_TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
CONDITION = "RuntimeHandlersReady"
GOOD = {"handlers": ["runc", "runsc"], "status": "True", "reason": "HandlersLoaded", "message": "all loaded", "passed": True}
LOST = {"handlers": ["runc"], "status": "False", "reason": "HandlersMissing", "message": "runsc (missing: …)", "passed": False}
UNKNOWN = {"handlers": [], "status": "Unknown", "reason": "NotRead", "message": "the host was unreachable", "passed": False}
KUBE_SYSTEM = "system:serviceaccount:kube-system:"
PUBLISHER, READER = KUBE_SYSTEM + "runtime-gate-publisher", KUBE_SYSTEM + "runtime-gate-reader"
BROKEN = {"docker-1", "eks-1", "kubespray-1"}
_CALL = ".venv/bin/ansible-playbook -i hosts.yml kubenode.runtime_gate."
#: Playbook and arguments of each command of the page.
COMMANDS = [
    line[len(_CALL) :].split()
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / "docs/publish.md").read_text(), re.DOTALL)
    for line in block.splitlines()
    if line.startswith(_CALL)
]


@pytest.fixture(scope="module", name="plane")
def _plane() -> t.Iterator[ControlPlane]:
    with ControlPlane(users=("half",)) as plane:
        for name in ("rbac.yml", "rbac-publish.yml"):
            plane.kubectl("create", "-f", str(ROOT / "examples" / name))
        plane.kubectl("create", "clusterrole", "half", "--verb=get,patch", "--resource=nodes")
        plane.kubectl("create", "clusterrolebinding", "half", "--clusterrole=half", "--user=half")
        for who, verb, what in (("half", "patch", "nodes"), (PUBLISHER, "patch", "nodes/status"), (READER, "list", "nodes"), (PUBLISHER, "list", "nodes")):
            assert wait_until(lambda: may(plane, who, verb, what), 30), who  # noqa: B023 - asked at once
        yield plane


def may(plane: ControlPlane, who: str, verb: str, what: str) -> bool:
    resource, _slash, part = what.partition("/")
    return plane.kubectl("auth", "can-i", verb, resource, f"--subresource={part}", f"--as={who}", check=False).returncode == 0


@pytest.fixture(name="node")
def _node(plane: ControlPlane) -> t.Iterator[t.Callable[[], t.Dict[str, t.Any]]]:
    """A Node n1 that waits for the gate; called, it is what the API server has now."""
    plane.create([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"pool": "a"}}, "spec": {"taints": [OTHER_TAINT, TAINT]}}])
    yield lambda: plane.request("GET", "/api/v1/nodes/n1")
    plane.request("DELETE", "/api/v1/nodes/n1")


def api(plane: ControlPlane, dry_run: bool = False, user: str = "", token: str = "", around: t.Callable[[Ask], Ask] = lambda ask: ask) -> NodeApi:
    auth = {"host": plane.url, "api_key": token or plane.tokens[user or "admin"], "ca_cert": plane.ca_file}
    return NodeApi(around(connect_for_all(auth, 10.0)), dry_run, pause=lambda _seconds: None)


def as_publisher(plane: ControlPlane, **keys: t.Any) -> NodeApi:
    return api(plane, token=plane.service_account_token("kube-system", "runtime-gate-publisher"), **keys)


def wanted(publication: t.Mapping[str, t.Any]) -> t.Any:
    return wanted_of(publication, PREFIX, TAINT)


def labels_of(node: t.Mapping[str, t.Any]) -> t.Dict[str, str]:
    return {key: value for key, value in (node["metadata"].get("labels") or {}).items() if key.startswith(PREFIX)}


def condition_of(node: t.Mapping[str, t.Any]) -> t.Dict[str, t.Any]:
    return next((one for one in node["status"].get("conditions") or () if one["type"] == CONDITION), {})


def taints_of(node: t.Mapping[str, t.Any]) -> t.Set[str]:
    return {taint["key"] for taint in node["spec"].get("taints") or ()} - {"node.kubernetes.io/not-ready"}


def requests_of(plane: ControlPlane, since: int, user: str = PUBLISHER) -> t.List[t.Tuple[str, str]]:
    return [
        (event["verb"], urllib.parse.urlsplit(event["requestURI"]).path)
        for event in plane.audit()[since:]
        if event["user"]["username"] == user and event["stage"] == "ResponseComplete"
    ]


def test_a_node_that_has_passed_and_the_second_run(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    mine = as_publisher(plane)
    dry = publish(as_publisher(plane, dry_run=True), "n1", wanted(GOOD))
    assert dry["changed"] and labels_of(node()) == {} and condition_of(node()) == {} and taints_of(node()) == {"dedicated", TAINT["key"]}
    since = len(plane.audit())
    done = publish(mine, "n1", wanted(GOOD))
    assert done["written"] == dry["written"] == ["labels", "condition", "startup taint"] and done["after"] == dry["after"]
    assert labels_of(node()) == {f"{PREFIX}/runc": "loaded", f"{PREFIX}/runsc": "loaded"} and node()["metadata"]["labels"]["pool"] == "a"
    assert {key: condition_of(node())[key] for key in ("status", "reason", "message")} == {key: GOOD[key] for key in ("status", "reason", "message")}
    assert taints_of(node()) == {"dedicated"}
    path = "/api/v1/nodes/n1"
    assert requests_of(plane, since) == [("get", path), ("patch", path), ("patch", path + "/status"), ("get", path), ("patch", path)]
    since, version = len(plane.audit()), node()["metadata"]["resourceVersion"]
    again = publish(mine, "n1", wanted(GOOD))
    assert not again["changed"] and again["written"] == [] and again["before"] == again["after"]
    assert requests_of(plane, since) == [("get", path)] and node()["metadata"]["resourceVersion"] == version


def test_labels_go_with_their_handler_and_with_what_is_known(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    mine = as_publisher(plane)
    publish(mine, "n1", wanted(GOOD))
    publish(mine, "n1", wanted(LOST))
    assert labels_of(node()) == {f"{PREFIX}/runc": "loaded"} and condition_of(node())["status"] == "False" and "runsc" in condition_of(node())["message"]
    publish(mine, "n1", wanted(UNKNOWN))
    assert labels_of(node()) == {} and condition_of(node())["status"] == "Unknown" and condition_of(node())["reason"] == "NotRead"


@pytest.mark.parametrize("publication", [LOST, UNKNOWN])
def test_the_startup_taint_stays_without_a_pass(plane: ControlPlane, node: t.Callable[[], t.Any], publication: t.Dict[str, t.Any]) -> None:
    publish(as_publisher(plane), "n1", wanted(publication))
    assert taints_of(node()) == {"dedicated", TAINT["key"]}


def test_the_time_of_the_transition_changes_with_the_status_alone(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    mine = as_publisher(plane)
    publish(mine, "n1", wanted(LOST))
    # The clock of conditions has seconds; an old time shows without waiting.
    long_ago = {"status": {"conditions": [{"type": CONDITION, "lastTransitionTime": "2001-01-01T00:00:00Z"}]}}
    plane.request("PATCH", "/api/v1/nodes/n1/status", long_ago, content_type="application/strategic-merge-patch+json")
    publish(mine, "n1", wanted(dict(LOST, message="runsc (unusable: …)")))
    assert condition_of(node())["lastTransitionTime"] == "2001-01-01T00:00:00Z" and "unusable" in condition_of(node())["message"]
    publish(mine, "n1", wanted(GOOD))
    assert condition_of(node())["lastTransitionTime"] > "2020"


def test_removal_takes_what_is_ours_and_nothing_else(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    mine = as_publisher(plane)
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}
    plane.request("PATCH", "/api/v1/nodes/n1/status", ready, content_type="application/strategic-merge-patch+json")
    publish(mine, "n1", wanted(GOOD))
    assert publish(mine, "n1", nothing(PREFIX))["written"] == ["labels", "condition"]
    assert labels_of(node()) == {} and [one["type"] for one in node()["status"]["conditions"]] == ["Ready"]
    assert node()["metadata"]["labels"]["pool"] == "a" and taints_of(node()) == {"dedicated"}
    assert not publish(mine, "n1", nothing(PREFIX))["changed"]


def test_another_prefix_takes_the_labels_of_the_old_one_along(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    mine = as_publisher(plane)
    publish(mine, "n1", wanted(GOOD))
    publish(mine, "n1", wanted_of(GOOD, "example.com", TAINT))
    assert labels_of(node()) == {} and node()["metadata"]["labels"]["example.com/runc"] == "loaded"


def test_a_second_field_manager_is_respected_and_stale_labels_go_all_the_same(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    mine = as_publisher(plane)
    publish(mine, "n1", wanted(dict(GOOD, passed=False, handlers=["runc", "runsc", "old"])))
    theirs = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {f"{PREFIX}/runsc": "theirs", f"{PREFIX}/kata": "loaded"}}}
    apply = "/api/v1/nodes/n1?fieldManager=somebody&force=true"
    plane.request("PATCH", apply, theirs, content_type="application/apply-patch+yaml")
    for wrote in ("Written before that: labels, condition", "Nothing was written"):
        since = len(plane.audit())
        with pytest.raises(RuntimeGateError) as caught:
            publish(mine, "n1", wanted(dict(GOOD, message="anew")))
        for word in (f"label {PREFIX}/runsc", "somebody", "left alone", wrote):
            assert word in str(caught.value), (word, str(caught.value))
        assert len(requests_of(plane, since)) <= 5
    assert labels_of(node()) == {f"{PREFIX}/runc": "loaded", f"{PREFIX}/runsc": "theirs", f"{PREFIX}/kata": "loaded"}
    assert TAINT["key"] in taints_of(node())
    plane.request("PATCH", apply, {**theirs, "metadata": {"name": "n1", "labels": {f"{PREFIX}/kata": "loaded"}}}, content_type="application/apply-patch+yaml")
    done = publish(mine, "n1", wanted(GOOD))
    assert labels_of(node())[f"{PREFIX}/runsc"] == "loaded" and "kata says loaded, was written by somebody else" in done["notices"][0]


def test_a_name_that_no_label_can_have_is_a_notice(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    done = publish(as_publisher(plane), "n1", wanted(dict(GOOD, handlers=["runc", "a/b", "x" * 64])))
    assert labels_of(node()) == {f"{PREFIX}/runc": "loaded"}
    (notice,) = done["notices"]
    assert "'a/b'" in notice and "x" * 64 in notice and "DNS label" in notice


def test_the_audit_s_service_account_is_refused(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    before = node()
    reader = plane.service_account_token("kube-system", "runtime-gate-reader")
    for dry_run in (True, False):
        with pytest.raises(RuntimeGateError) as caught:
            publish(api(plane, token=reader, dry_run=dry_run), "n1", wanted(GOOD))
        assert "403" in str(caught.value) and "examples/rbac-publish.yml" in str(caught.value) and "Nothing was written" in str(caught.value)
    # Nor may it write without reading first.
    status = {"status": {"conditions": [{"type": CONDITION, "status": "True"}]}}
    for content, body, part in (("application/merge-patch+json", {"metadata": {"labels": {"a": "b"}}}, ""), (STRATEGIC, status, "status")):
        with pytest.raises(ApiRefused) as refused:
            api(plane, token=reader).patch("n1", content, body, "write", part)
        assert refused.value.status == 403
    assert node() == before
    for verb, what in (("get", "nodes"), ("patch", "nodes"), ("patch", "nodes/status"), ("create", "nodes"), ("list", "secrets")):
        assert not may(plane, READER, verb, what)


def test_the_rights_of_the_example_are_no_more_than_needed(plane: ControlPlane) -> None:
    for verb, what in (("list", "nodes"), ("get", "nodes"), ("patch", "nodes"), ("patch", "nodes/status"), ("list", "runtimeclasses.node.k8s.io")):
        assert may(plane, PUBLISHER, verb, what), (verb, what)
    forbidden = [(verb, "nodes") for verb in ("delete", "create", "update")] + [(verb, "pods") for verb in ("list", "patch")]
    for verb, what in [*forbidden, ("list", "secrets"), ("patch", "runtimeclasses.node.k8s.io")]:
        assert not may(plane, PUBLISHER, verb, what), (verb, what)


def test_half_a_right_says_what_was_written(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    with pytest.raises(RuntimeGateError) as caught:
        publish(api(plane, user="half"), "n1", wanted(GOOD))
    text = str(caught.value)
    assert "403" in text and "patch on nodes/status" in text and text.endswith("Written before that: labels")
    assert labels_of(node()) and condition_of(node()) == {} and TAINT["key"] in taints_of(node())
    assert publish(as_publisher(plane), "n1", wanted(GOOD))["written"] == ["condition", "startup taint"]


def test_a_node_that_is_not_there_is_not_made(plane: ControlPlane) -> None:
    with pytest.raises(RuntimeGateError, match="there is no Node n2"):
        publish(api(plane), "n2", wanted(GOOD))
    # … also where it goes between the reading and the writing.
    plane.create([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n3"}}])

    def deleting(ask: Ask) -> Ask:
        def asked(method: str, path: str, *rest: t.Any) -> Answer:
            if method == "PATCH":
                plane.kubectl("delete", "node", "n3", "--ignore-not-found")
            return ask(method, path, *rest)

        return asked

    with pytest.raises(RuntimeGateError, match=r"n3.*Nothing was written"):
        publish(api(plane, around=deleting), "n3", wanted(GOOD))
    assert plane.kubectl("get", "node", "n3", check=False).returncode != 0


def answering(when: t.Callable[[str, str], bool], *answers: t.Any) -> t.Callable[[Ask], Ask]:
    """In place of the real answer to the first such requests: an answer, or an exception that is raised after the server has done it."""
    left = list(answers)

    def around(ask: Ask) -> Ask:
        def asked(method: str, path: str, *rest: t.Any) -> Answer:
            if not left or not when(method, path):
                return ask(method, path, *rest)
            answer = left.pop(0)
            if isinstance(answer, Exception):
                ask(method, path, *rest)
                raise answer
            return t.cast(Answer, answer)

        return asked

    return around


def is_status(method: str, path: str) -> bool:
    return method == "PATCH" and path.endswith("/status")


BUSY = Answer(429, b'{"kind": "Status", "message": "too many requests"}', 0.0)


def test_a_busy_server_is_asked_again_and_not_for_ever(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    with pytest.raises(RuntimeGateError) as caught:
        publish(api(plane, around=answering(is_status, *[BUSY] * 4)), "n1", wanted(GOOD))
    assert "429" in str(caught.value) and "too busy" in str(caught.value) and "Written before that: labels" in str(caught.value)
    assert condition_of(node()) == {}
    assert publish(api(plane, around=answering(is_status, *[BUSY] * 3)), "n1", wanted(GOOD))["written"] == ["condition", "startup taint"]


def test_a_write_that_is_not_answered_is_in_doubt_and_the_second_run_makes_up_for_it(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    silent = answering(is_status, RuntimeGateError("the API server did not answer within 1 s"))
    with pytest.raises(RuntimeGateError) as caught:
        publish(api(plane, around=silent), "n1", wanted(GOOD))
    for word in ("did not answer within 1 s", "whether it took effect is not known", "Written before that: labels"):
        assert word in str(caught.value)
    assert publish(api(plane), "n1", wanted(GOOD))["written"] == ["startup taint"]


def test_taints_that_change_meanwhile_are_not_lost(plane: ControlPlane, node: t.Callable[[], t.Any]) -> None:
    """Somebody puts one in front between our reading and our writing: the patch is tested, fails, and is made anew."""
    done = []

    def meddling(ask: Ask) -> Ask:
        def asked(method: str, path: str, query: t.Any, body: t.Any, content: t.Any) -> Answer:
            if content == "application/json-patch+json" and not done:
                done.append(1)
                more = {"spec": {"taints": [{"key": "new", "effect": "NoSchedule"}, OTHER_TAINT, TAINT]}}
                plane.request("PATCH", "/api/v1/nodes/n1", more, content_type="application/merge-patch+json")
            return ask(method, path, query, body, content)

        return asked

    assert "startup taint" in publish(api(plane, around=meddling), "n1", wanted(GOOD))["written"]
    assert done and taints_of(node()) == {"new", "dedicated"}


# ---- the playbooks, on the recordings of the example cluster


@pytest.fixture(scope="module", name="fleet")
def _fleet(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> t.Callable[..., Run]:
    """Runs a playbook on the example's recordings against the API server, as the publisher."""
    nodes = list(yaml.safe_load_all((EXAMPLE / "manifests/nodes.yaml").read_text()))
    for one in nodes:
        one.setdefault("spec", {}).setdefault("taints", []).append(TAINT)
    plane.create([*nodes, *yaml.safe_load_all((EXAMPLE / "manifests/runtimeclasses.yaml").read_text())])
    directory = tmp_path_factory.mktemp("fleet")
    hosts = [one["metadata"]["name"] for one in nodes]

    def run(name: str, *arguments: str, user: str = "runtime-gate-publisher", **shared: t.Any) -> Run:
        config = plane.token_kubeconfig(user, plane.service_account_token("kube-system", user))
        known = {"runtime_gate_captures": str(EXAMPLE / "captures"), "runtime_gate_cluster": {"kubeconfig": str(config)}, **shared}
        inventory = write_yaml(directory / "hosts.yml", {"all": {"vars": known, "hosts": dict.fromkeys(hosts)}})
        return playbook(f"kubenode.runtime_gate.{name}", "-i", inventory, *arguments)

    return run


def nodes_of(plane: ControlPlane) -> t.Dict[str, t.Dict[str, t.Any]]:
    return {one["metadata"]["name"]: one for one in plane.request("GET", "/api/v1/nodes")["items"]}


def changed(run: Run) -> t.Set[str]:
    return {host for host, counts in run.recap.items() if counts["changed"]}


def failed(run: Run) -> t.Set[str]:
    return {host for host, counts in run.recap.items() if counts["failed"]}


def test_the_commands_of_the_page_from_check_to_removal(plane: ControlPlane, fleet: t.Callable[..., Run]) -> None:
    to_check, to_publish, to_unpublish = COMMANDS
    before = nodes_of(plane)
    everybody = set(before)
    check = fleet(*to_check)
    assert failed(check) == BROKEN and changed(check) == everybody, check.text
    assert nodes_of(plane) == before
    since = len(plane.audit())
    run = fleet(*to_publish, "--diff")
    assert failed(run) == BROKEN and changed(run) == everybody, run.text
    # Hosts end in any order.
    foretold, told = (sorted(line for line in one.text.splitlines() if line.startswith(("+", "-"))) for one in (check, run))
    assert foretold == told and f"+  {PREFIX}/runc: loaded" in told
    asked = collections.Counter(path.partition("/status")[0] for _verb, path in requests_of(plane, since))
    assert asked.pop("/api/v1/nodes") == 1 and asked.pop("/apis/node.k8s.io/v1/runtimeclasses") == 1
    assert set(asked) == {f"/api/v1/nodes/{name}" for name in everybody} and max(asked.values()) <= 5
    after = nodes_of(plane)
    for name, one in after.items():
        status = condition_of(one)["status"]
        assert (status == "True") is (name not in BROKEN), (name, condition_of(one))
        assert (TAINT["key"] in taints_of(one)) is (name in BROKEN), name
    assert "runsc" in condition_of(after["eks-1"])["message"] and f"{PREFIX}/runsc" not in labels_of(after["eks-1"])
    assert labels_of(after["docker-1"]) == {}  # CRI is disabled there
    again = fleet("publish", "--diff")
    assert failed(again) == BROKEN and changed(again) == set() and nodes_of(plane) == after
    gone = fleet(*to_unpublish)
    assert gone.status == 0 and changed(gone) == everybody, gone.text
    assert all(labels_of(one) == {} and condition_of(one) == {} for one in nodes_of(plane).values())
    assert changed(fleet("unpublish")) == set()


@pytest.mark.full
def test_a_host_that_cannot_be_read_loses_its_labels(plane: ControlPlane, fleet: t.Callable[..., Run]) -> None:
    assert fleet("publish", "--limit", "debian-1").status == 0 and labels_of(nodes_of(plane)["debian-1"])
    run = fleet("publish", "--limit", "debian-1", runtime_gate_captures="/nonexistent")
    assert failed(run) == {"debian-1"}, run.text
    one = nodes_of(plane)["debian-1"]
    assert labels_of(one) == {} and condition_of(one)["status"] == "Unknown" and condition_of(one)["reason"] == "NotRead"


def test_the_audit_writes_nothing_whatever_the_inventory_says(plane: ControlPlane, fleet: t.Callable[..., Run]) -> None:
    before = nodes_of(plane)
    since = len(plane.audit())
    run = fleet("audit", user="runtime-gate-reader", runtime_gate_publish=True, runtime_gate_cordon=True)
    assert failed(run) == BROKEN and nodes_of(plane) == before
    assert {verb for verb, _path in requests_of(plane, since, READER)} == {"list"}


def test_a_user_without_the_right_is_one_error_a_host_beside_the_verdict(plane: ControlPlane, fleet: t.Callable[..., Run]) -> None:
    run = fleet("publish", "--limit", "debian-1,eks-1", user="runtime-gate-reader")
    assert failed(run) == {"debian-1", "eks-1"}
    lines = {host: [line for line in run.text.splitlines() if line.startswith(f"fatal: [{host}]")] for host in ("debian-1", "eks-1")}
    for host, (line,) in lines.items():
        assert "not published: cannot read Node" in line and "403" in line and "examples/rbac-publish.yml" in line, line
        assert ("RuntimeClass gvisor asks for handler runsc" in line) is (host == "eks-1")
