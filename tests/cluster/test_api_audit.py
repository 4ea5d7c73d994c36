# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The audit without a node, against a real kube-apiserver, run as a person runs it with the rights of examples/rbac.yml.

What this proves: every Linux Node is a row, judged by its status; two LISTs a run, pages and not more, whichever hosts the play has
and however many Nodes there are; whatever goes wrong is one clear error and nothing passes; the audit's user cannot write; and the
same from manifests, without the API server.
"""

from __future__ import annotations

import collections
import contextlib
import json
import pathlib
import socket
import ssl
import typing as t
import urllib.error
import urllib.parse

import pytest
import yaml

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_reader import EVENTS, WORKLOAD_LISTS
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok import node_object
from tests.cluster.pods import runtime_class
from tests.cluster.waiting import wait_until
from tests.integration.ansible_runs import ROOT, Run, playbook, table_rows, write_yaml
from tests.integration.test_cluster_reading import BUSY, NO_SEATS, may

AUDIT = "kubenode.runtime_gate.audit"
LISTS = {"/api/v1/nodes": 1, "/apis/node.k8s.io/v1/runtimeclasses": 1}
ROLES = ("runtime-gate-reader", "runtime-gate-workload-reader", "runtime-gate-event-reader")
GPU = {"gpu": "true"}
NODES = [
    {"name": "good", "labels": GPU, "runtimeHandlers": ["", "runc", "nvidia"]},
    {"name": "lacks", "labels": GPU, "runtimeHandlers": ["", "runc"]},
    {"name": "tainted", "labels": GPU, "runtimeHandlers": ["", "runc"], "taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]},
    {"name": "cordoned", "labels": GPU, "runtimeHandlers": ["", "runc"], "unschedulable": True},
    {"name": "plain", "runtimeHandlers": ["", "runc"]},
    {"name": "old", "labels": GPU},
    {"name": "windows", "labels": {"kubernetes.io/os": "windows"}},
]
CLASSES = [runtime_class("nvidia", "nvidia", scheduling={"nodeSelector": GPU}), runtime_class("plain", "runc")]
CELLS = {
    "good": {"nvidia": "ok", "plain": "ok"},
    "lacks": {"nvidia": "missing", "plain": "ok"},
    "tainted": {"nvidia": "excluded_by_taint", "plain": "excluded_by_taint"},
    "cordoned": {"nvidia": "missing", "plain": "ok"},
    "plain": {"nvidia": "not_targeted", "plain": "ok"},
    "old": {"nvidia": "unknown", "plain": "unknown"},
}
FAILING = ["cordoned", "lacks", "old"]


def node(entry: dict[str, t.Any]) -> dict[str, t.Any]:
    made = node_object(entry)
    made["status"]["nodeInfo"]["kubeletVersion"] = "v1.36.3"
    if entry["name"] == "old":
        made["status"]["nodeInfo"]["containerRuntimeVersion"] = "containerd://1.7.24"
    if entry["name"] == "windows":
        made["status"]["nodeInfo"]["operatingSystem"] = "windows"
    return made


@pytest.fixture(scope="module", name="cluster")
def _cluster() -> t.Iterator[ControlPlane]:
    with ControlPlane(users=("audit", "workloads", "events", "nobody", "busy")) as cluster:
        cluster.create([*CLASSES, NO_SEATS, BUSY, *(node(entry) for entry in NODES)])
        cluster.kubectl("create", "-f", "-", input=(ROOT / "examples/rbac.yml").read_text(encoding="utf-8"))
        for user, roles in {"audit": ROLES[:1], "workloads": ROLES[:2], "events": ROLES, "busy": ("cluster-admin",)}.items():
            for role in roles:
                cluster.kubectl("create", "clusterrolebinding", f"{user}-{role}", f"--clusterrole={role}", f"--user={user}")
        assert wait_until(lambda: may(cluster, "list", "events", "--as=events") and may(cluster, "list", "nodes", "--as=busy"), 30)
        yield cluster


def audit(cluster: ControlPlane, tmp_path: pathlib.Path, *arguments: str, user: str = "audit", options: t.Any = None, **variables: t.Any) -> Run:
    """The audit of a person who has a kubeconfig and nothing else: no inventory."""
    connection = {"kubeconfig": str(cluster.token_kubeconfig(user)), **(options or {})}
    given = {"runtime_gate_source": "api", "runtime_gate_cluster": connection, "runtime_gate_report_path": str(tmp_path / "report.json")}
    path = write_yaml(tmp_path / "variables.yml", {**given, **variables})
    return playbook(AUDIT, "-e", f"@{path}", *arguments, cwd=tmp_path)


def report_of(tmp_path: pathlib.Path) -> dict[str, t.Any]:
    return t.cast("dict[str, t.Any]", json.loads((tmp_path / "report.json").read_text(encoding="utf-8")))


def cells(report: dict[str, t.Any]) -> dict[str, dict[str, str]]:
    return {host["node"]: host["cells"] for host in report["hosts"]}


def asked(cluster: ControlPlane, user: str, since: int) -> collections.Counter[str]:
    """Path -> number of requests of the user; each of them is a list."""
    mine = [event for event in cluster.audit()[since:] if event["user"]["username"] == user]
    assert {event["verb"] for event in mine} <= {"list"}
    return collections.Counter(urllib.parse.urlsplit(event["requestURI"]).path for event in mine)


def test_every_linux_node_is_a_row_judged_by_its_status(cluster: ControlPlane, tmp_path: pathlib.Path) -> None:
    since = len(cluster.audit())
    run = audit(cluster, tmp_path)
    report = report_of(tmp_path)
    assert run.status == 2 and run.recap["localhost"]["failed"] == 1, run.text
    assert cells(report) == CELLS and report["failing_nodes"] == FAILING and report["source"] == "api"
    assert sorted(table_rows(run.text)) == sorted(CELLS)
    assert asked(cluster, "audit", since) == LISTS
    said = " ".join(run.text.split())
    for words in (
        "5 of 6 Nodes judged",
        "3 fail: cordoned, lacks, old",
        "handler nvidia is not loaded on lacks: the Node's status lists runc",
        "containerd 1.7.24 does not report them; 2.0 and later do",
        "it is a late copy of what CRI reports and does not show whether a handler is usable or survives a restart",
        "not judged, Windows nodes",
    ):
        assert words in said, words


def test_a_fleet_without_fault_passes(cluster: ControlPlane, tmp_path: pathlib.Path) -> None:
    run = audit(cluster, tmp_path, runtime_gate_policy={"classes": ["plain"], "unknown": "warn"})
    assert run.status == 0 and report_of(tmp_path)["ok"] is True, run.text
    assert "none fails" in run.text


def test_the_hosts_of_the_play_make_no_difference(cluster: ControlPlane, tmp_path: pathlib.Path) -> None:
    """Judged once, asked once, told once: none of them is touched."""
    hosts = {f"h{index}": {"ansible_connection": "local"} for index in range(5)}
    inventory = write_yaml(tmp_path / "hosts.yml", {"all": {"hosts": hosts}})
    since = len(cluster.audit())
    run = audit(cluster, tmp_path, "-i", str(inventory), "-e", "runtime_gate_hosts=all")
    assert run.status == 2 and set(run.recap) == {"h0"} and run.recap["h0"]["failed"] == 1, run.text
    assert asked(cluster, "audit", since) == LISTS and sorted(table_rows(run.text)) == sorted(CELLS)


def test_pages(cluster: ControlPlane, tmp_path: pathlib.Path) -> None:
    since = len(cluster.audit())
    audit(cluster, tmp_path, options={"api_page_size": 3})
    assert cells(report_of(tmp_path)) == CELLS
    assert asked(cluster, "audit", since) == {**LISTS, "/api/v1/nodes": 3}


def test_failing_pods_cost_the_same_requests_for_7_nodes_and_for_57(cluster: ControlPlane, tmp_path: pathlib.Path) -> None:
    wanted = {**LISTS, **{path: 1 for _kind, path in WORKLOAD_LISTS}, EVENTS: 2}
    more = [node({"name": f"more-{index}", "runtimeHandlers": ["", "runc"]}) for index in range(50)]
    for extra in ([], more):
        cluster.create(extra)
        since = len(cluster.audit())
        audit(cluster, tmp_path, user="events", runtime_gate_failing_pods=True)
        assert len(cells(report_of(tmp_path))) == len(CELLS) + len(extra)
        assert asked(cluster, "events", since) == wanted
    for extra in more:
        cluster.request("DELETE", f"/api/v1/nodes/{extra['metadata']['name']}")


@pytest.mark.parametrize(
    ("user", "variables", "words"),
    [
        ("nobody", {}, "the API server refuses to list runtimeclasses (403)"),
        ("audit", {"runtime_gate_read_workloads": True}, "the API server refuses to list pods (403)"),
        ("workloads", {"runtime_gate_failing_pods": True}, "the API server refuses to list events (403)"),
        ("audit", {"runtime_gate_cluster": {"kubeconfig": "/nowhere"}}, "no way to the API server"),
        ("audit", {"runtime_gate_policy": {"classes": ["nvidai"]}}, "policy: classes names RuntimeClass nvidai, which does not exist"),
        ("audit", {"runtime_gate_report_path": "/nowhere/report.json"}, "cannot be written"),
        ("audit", {"runtime_gate_source": "apis"}, "value of runtime_gate_source must be one of: node, api, pools"),
    ],
)
def test_what_goes_wrong_is_one_clear_error_and_nothing_passes(
    cluster: ControlPlane, tmp_path: pathlib.Path, user: str, variables: dict[str, t.Any], words: str
) -> None:
    run = audit(cluster, tmp_path, user=user, **variables)
    said = " ".join(run.text.split())
    assert run.status == 2 and run.recap["localhost"]["failed"] == 1 and words in said, run.text
    assert "none fails" not in said and not (tmp_path / "report.json").exists()
    assert cluster.tokens[user] not in run.text


@contextlib.contextmanager
def a_seat_taken(cluster: ControlPlane, user: str) -> t.Iterator[None]:
    """A request of the user whose body never comes: it is served for a minute, and each further one is rejected with 429."""
    address = urllib.parse.urlsplit(cluster.url)
    head = (
        f"POST /apis/node.k8s.io/v1/runtimeclasses?dryRun=All HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {cluster.tokens[user]}\r\nContent-Length: 100\r\n\r\n{{"
    )

    def rejected() -> bool:
        try:
            cluster.request("GET", "/api/v1/nodes?limit=1", user=user)
        except urllib.error.HTTPError as error:
            return error.code == 429
        return False

    context = ssl.create_default_context(cafile=cluster.ca_file)
    with socket.create_connection((str(address.hostname), address.port)) as plain:
        with context.wrap_socket(plain, server_hostname=address.hostname) as held:
            held.sendall(head.encode())
            assert wait_until(rejected, 30)
            yield


def test_a_server_that_is_too_busy(cluster: ControlPlane, tmp_path: pathlib.Path) -> None:
    with a_seat_taken(cluster, "busy"):
        run = audit(cluster, tmp_path, user="busy")
    assert run.status == 2 and "too busy (429" in run.text and not (tmp_path / "report.json").exists()


def test_a_cluster_without_a_node_is_no_pass(tmp_path: pathlib.Path) -> None:
    with ControlPlane() as empty:
        empty.create(CLASSES[:1])
        run = audit(empty, tmp_path, user="admin")
    assert run.status == 2 and "the cluster has no Linux Node, so nothing was judged" in " ".join(run.text.split())
    assert report_of(tmp_path)["ok"] is False


def status(cluster: ControlPlane, method: str, path: str, body: t.Any, content: str) -> int:
    """The API server's answer to the user of the audit. A busy machine loses a connection now and then; then it is asked again."""
    for _attempt in range(5):
        try:
            cluster.request(method, path, body, user="events", content_type=content)
            return 200
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            continue
    raise AssertionError(f"{method} {path} was never answered")


def test_the_user_of_the_audit_is_refused_when_it_tries_to_write(cluster: ControlPlane) -> None:
    """With all three roles bound. The verbs are tried, not asked about."""
    refused = [
        ("POST", "/apis/node.k8s.io/v1/runtimeclasses", runtime_class("x", "x")),
        ("DELETE", "/apis/node.k8s.io/v1/runtimeclasses/nvidia", None),
        ("PATCH", "/api/v1/nodes/good", {"metadata": {"labels": {"a": "b"}}}),
        ("PATCH", "/api/v1/nodes/good/status", {"status": {"runtimeHandlers": []}}),
        ("POST", "/api/v1/namespaces/default/events", {"metadata": {"name": "x"}, "involvedObject": {}}),
        ("DELETE", "/api/v1/namespaces/default/pods/x", None),
        ("GET", "/api/v1/nodes/good", None),
        ("GET", "/api/v1/secrets", None),
    ]
    for method, path, body in refused:
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        assert status(cluster, method, path, body, content) == 403, (method, path)
    assert cluster.request("GET", "/api/v1/events?limit=1", user="events")["items"] == []


def test_the_same_from_manifests_without_the_api_server(cluster: ControlPlane, tmp_path: pathlib.Path) -> None:
    """What kubectl writes, judged in any pipeline."""
    for kind in ("nodes", "runtimeclasses"):
        (tmp_path / f"{kind}.yaml").write_text(cluster.kubectl("get", kind, "-o", "yaml").stdout, encoding="utf-8")
    manifests = [str(tmp_path / "nodes.yaml"), str(tmp_path / "runtimeclasses.yaml")]
    run = audit(cluster, tmp_path, runtime_gate_manifests=manifests, runtime_gate_cluster={"host": "http://127.0.0.1:9"})
    assert run.status == 2 and cells(report_of(tmp_path)) == CELLS, run.text


POOLS = [
    {"name": "gpu", "labels": GPU, "handlers": ["runc", "nvidia"], "default_handler": "runc"},
    {"name": "general", "handlers": ["runc"], "default_handler": "runc"},
    {"name": "forgotten", "labels": GPU, "handlers": ["runc"]},
]


def test_pools_by_the_lists_that_are_given(tmp_path: pathlib.Path) -> None:
    """No node, no API server: RuntimeClasses from a repository, and what each pool is known to load."""
    classes = tmp_path / "classes.yaml"
    classes.write_text(yaml.safe_dump_all(CLASSES), encoding="utf-8")
    report = tmp_path / "report.json"
    given = {"runtime_gate_source": "pools", "runtime_gate_manifests": [str(classes)], "runtime_gate_report_path": str(report)}
    run = playbook(AUDIT, "-e", json.dumps({**given, "runtime_gate_pools": POOLS}))
    assert run.status == 2 and "no daemon was asked" in run.text, run.text
    assert cells(report_of(tmp_path)) == {
        "gpu": {"nvidia": "ok", "plain": "ok"},
        "general": {"nvidia": "not_targeted", "plain": "ok"},
        "forgotten": {"nvidia": "missing", "plain": "ok"},
    }
    assert {host["evidence"] for host in report_of(tmp_path)["hosts"]} == {"declared"}
    healthy = playbook(AUDIT, "-e", json.dumps({**given, "runtime_gate_pools": POOLS[:2]}))
    assert healthy.status == 0 and "2 of 2 pools judged" in healthy.text
    nobody = playbook(AUDIT, "-e", json.dumps({**given, "runtime_gate_pools": []}))
    assert nobody.status == 2 and "runtime_gate_pools is empty, so nothing was judged" in " ".join(nobody.text.split())
