# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which source wins, when the cluster is asked, and how one host is placed."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import crosscheck_inputs
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import gather, judge


def cls(name: str) -> dict[str, t.Any]:
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": "h"}


def node(name: str, **info: str) -> dict[str, t.Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"from": "api"}}, "status": {"nodeInfo": info}}


def pod(name: str) -> dict[str, t.Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {}}


def listed(*items: t.Any) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


class Cluster:
    """Stands where read_cluster stands."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[dict[str, t.Any]] = []
        monkeypatch.setattr(crosscheck_inputs, "read_cluster", self.read)

    def read(self, auth: t.Any, **options: t.Any) -> dict[str, t.Any]:
        self.asked.append({"auth": auth, **options})
        return {
            "classes": [cls("cluster")] if options["classes"] else None,
            "nodes": [node("cluster")] if options["nodes"] else None,
            "workloads": [pod("cluster")] if options["workloads"] else None,
            "events": [] if options["events"] else None,
        }


@pytest.fixture(name="cluster")
def _cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


def names(things: t.Any) -> list[str]:
    return [thing["metadata"]["name"] for thing in things]


def test_a_list_wins_over_manifests_over_kubectl_over_the_cluster(cluster: Cluster, tmp_path: pathlib.Path) -> None:
    (tmp_path / "m.json").write_text(listed(cls("manifest"), node("manifest"), pod("manifest")), encoding="utf-8")
    params: dict[str, t.Any] = {
        "runtime_classes": [cls("list")],
        "nodes": [node("list")],
        "workloads": [pod("list")],
        "manifests": [str(tmp_path)],
        "kubectl_output": {"runtime_classes": listed(cls("kubectl")), "nodes": listed(node("kubectl")), "workloads": listed(pod("kubectl"))},
        "policy": {"unscoped": "referenced"},
    }
    for winner, without in (("list", ("runtime_classes", "nodes", "workloads")), ("manifest", ("manifests",)), ("kubectl", ("kubectl_output",))):
        found = gather(params)
        assert names(found.classes) == names(found.nodes) == names(found.workloads) == [winner]
        for key in without:
            del params[key]
    assert cluster.asked == []
    found = gather(params)
    assert names(found.classes) == names(found.nodes) == names(found.workloads) == ["cluster"]
    assert len(cluster.asked) == 1


def test_only_what_is_missing_is_asked_of_the_cluster(cluster: Cluster) -> None:
    gather({"runtime_classes": [], "nodes": [], "policy": {}})
    assert cluster.asked == []
    found = gather({"runtime_classes": [], "host": "h", "api_key": None, "api_timeout": 5.0, "api_page_size": 7})
    assert names(found.nodes) == ["cluster"]
    assert found.workloads is None
    assert cluster.asked == [{"auth": {"host": "h"}, "classes": False, "nodes": True, "workloads": False, "events": False, "timeout": 5.0, "page_size": 7}]
    gather({"runtime_classes": [], "nodes": [], "read_workloads": True})
    assert cluster.asked[1]["workloads"] is True


def test_manifests_that_say_none(cluster: Cluster, tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.json").write_text(listed(), encoding="utf-8")
    assert gather({"manifests": [str(tmp_path)], "nodes": []}).classes == []
    assert cluster.asked == []


def test_manifests_that_say_nothing_about_classes(cluster: Cluster, tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.json").write_text(listed(pod("p")), encoding="utf-8")
    assert names(gather({"manifests": [str(tmp_path)], "nodes": []}).classes) == ["cluster"]


@pytest.mark.parametrize(
    "held, policy, words",
    [
        (cls("c"), {}, ["hold no Node, and", "add the Nodes to the manifests (kubectl get nodes -o yaml)"]),
        (node("n"), {}, ["hold no RuntimeClass, and", "(kubectl get runtimeclasses -o yaml)"]),
        (
            cls("c"),
            {"unscoped": "referenced"},
            ["no Node and no pod or workload, and", "add the Nodes and pods to", "nodes -o yaml, kubectl get pods --all-namespaces -o yaml)"],
        ),
    ],
)
def test_what_the_manifests_lack_is_said_where_the_cluster_cannot_be_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, held: t.Any, policy: t.Any, words: list[str]
) -> None:
    def unreached(*_auth: t.Any, **_options: t.Any) -> t.NoReturn:
        raise RuntimeGateError("nobody answers")

    monkeypatch.setattr(crosscheck_inputs, "read_cluster", unreached)
    (tmp_path / "one.json").write_text(json.dumps(held))
    with pytest.raises(RuntimeGateError) as caught:
        gather({"manifests": [str(tmp_path)], "policy": policy})
    for part in ["the manifests", "the API server cannot be asked: nobody answers; add", *words]:
        assert part in str(caught.value)


def test_kubectl_that_found_none(cluster: Cluster) -> None:
    found = gather({"kubectl_output": {"runtime_classes": listed(), "nodes": listed()}})
    assert (found.classes, found.nodes, cluster.asked) == ([], [], [])


def test_once_in_a_run(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, t.Any] = {}

    def once(key: str, produce: t.Callable[[], t.Any]) -> t.Any:
        if key not in kept:
            kept[key] = json.loads(json.dumps(produce()))
        return kept[key]

    monkeypatch.setattr(crosscheck_inputs, "once", once)
    for _host in range(3):
        gather({"cache_for_run": True, "host": "a"})
    assert len(cluster.asked) == 1
    gather({"cache_for_run": True, "host": "b"})
    gather({"cache_for_run": True, "host": "a", "read_workloads": True})
    gather({"host": "a"})
    assert len(cluster.asked) == 4


def facts(**identity: t.Any) -> dict[str, t.Any]:
    return {
        "schema": 1,
        "engine": "containerd",
        "evidence": "loaded",
        "cri_ready": True,
        "handlers": {"h": {}},
        "default_handler": "runc",
        "identity": identity,
    }


@pytest.mark.parametrize(
    ("identity", "more", "name", "registered"),
    [
        ({"boot_id": "b2", "hostname": "x"}, {}, "w2", True),
        ({"hostname": "W1"}, {}, "w1", True),
        ({"hostname": "w1"}, {"node_name": "w2"}, "w2", True),
        ({"hostname": "new"}, {}, "new", False),
    ],
)
def test_one_host(identity: dict[str, t.Any], more: dict[str, t.Any], name: str, registered: bool) -> None:
    params = {"runtime_classes": [cls("c")], "nodes": [node("w1", bootID="b1"), node("w2", bootID="b2")], "verdicts": "all"}
    result = judge({**params, "node_runtime": facts(**identity), **more})
    assert [(record["node"], record["verdict"], record["evidence"]) for record in result["verdicts"]] == [(name, "ok", "loaded")]
    assert (result["node_identity"]["name"], result["node_identity"]["registered"]) == (name, registered)
    assert result["notices"] == []


def test_one_host_that_has_not_registered() -> None:
    selecting = {"name": "c", "handler": "h", "scheduling": {"nodeSelector": {"kubernetes.io/arch": "arm64", "gpu": "yes"}}}
    params: dict[str, t.Any] = {
        "runtime_classes": [selecting],
        "nodes": [],
        "node_runtime": facts(hostname="new", os="linux", arch="arm64"),
        "verdicts": "all",
    }
    (record,) = judge(params)["verdicts"]
    assert record["verdict"] == "unknown"
    (record,) = judge({**params, "node_labels": {"gpu": "yes"}})["verdicts"]
    assert record["verdict"] == "ok"
    (record,) = judge({**params, "node_labels": {"gpu": "no"}})["verdicts"]
    assert record["verdict"] == "not_targeted"
    (record,) = judge({**params, "node_labels": {"gpu": "yes"}, "node_taints": ["k:NoSchedule"]})["verdicts"]
    assert record["verdict"] == "excluded_by_taint"


def test_one_node_by_its_api_object_alone() -> None:
    handlers = {**node("w1")["status"], "runtimeHandlers": [{"name": "h"}]}
    result = judge({"runtime_classes": [cls("c")], "nodes": [{**node("w1"), "status": handlers}], "node_name": "w1", "verdicts": "all"})
    assert [(record["verdict"], record["evidence"]) for record in result["verdicts"]] == [("ok", "api")]


def test_pending_of_one_host() -> None:
    missing = {**facts(hostname="w1"), "handlers": {}}
    result = judge({"runtime_classes": [cls("c")], "nodes": [{"name": "w1", "labels": {}}], "node_runtime": missing, "node_pending": ["h"]})
    assert [record["pending"] for record in result["verdicts"]] == [True]


def test_repeated_manifests_are_told(tmp_path: pathlib.Path) -> None:
    (tmp_path / "m.json").write_text(listed(cls("c"), cls("c")), encoding="utf-8")
    result = judge({"manifests": [str(tmp_path)], "nodes": []})
    assert "object_repeated" in [notice["name"] for notice in result["notices"]]


def test_facts_that_are_none() -> None:
    with pytest.raises(RuntimeGateError, match="node_runtime is a string"):
        judge({"runtime_classes": [], "nodes": [], "node_runtime": "runc"})
    with pytest.raises(RuntimeGateError, match="identity is a list"):
        judge({"runtime_classes": [], "nodes": [], "node_runtime": {"handlers": {}, "identity": ["w1"]}})


@pytest.mark.parametrize("nodes", [["w1"], [{"labels": {}}]])
def test_nodes_that_are_none(nodes: list[t.Any]) -> None:
    with pytest.raises(RuntimeGateError, match="nodes has an entry"):
        judge({"runtime_classes": [], "nodes": nodes, "node_name": "w1"})


def test_failing_pods_want_workloads_and_events(cluster: Cluster) -> None:
    assert gather({"runtime_classes": [], "nodes": [], "failing_pods": True}).events == []
    assert (cluster.asked[0]["workloads"], cluster.asked[0]["events"], cluster.asked[0]["nodes"]) == (True, True, False)
    given = gather({"runtime_classes": [], "nodes": [], "workloads": [], "events": [{"reason": "r"}], "failing_pods": True})
    assert given.events == [{"reason": "r"}] and len(cluster.asked) == 1
    assert gather({"runtime_classes": [], "nodes": [], "events": [{"reason": "r"}]}).events is None, "nobody asked"
