# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rendered manifests: what is read, and the one sentence for each file that cannot be."""

from __future__ import annotations

import json
import os
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.manifests import read_kubectl, read_manifests

CLASS = """apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: gvisor, annotations: {a: b}}
handler: runsc
scheduling: {nodeSelector: {sandbox: "true"}}
"""
NODE = """apiVersion: v1
kind: Node
metadata: {name: w1, labels: {sandbox: "true"}, managedFields: [{}]}
spec: {taints: [{key: k, effect: NoSchedule}]}
status:
  images: [{names: [x]}]
  nodeInfo: {containerRuntimeVersion: "containerd://2.1.9", kernelVersion: "6"}
  runtimeHandlers: [{name: runsc}]
"""
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec: {replicas: 2, template: {spec: {runtimeClassName: gvisor, containers: []}}}
"""

# Nine times nine times … nine: a hundred lines of text, a billion entries when it is written out.
LAUGHS = CLASS + "overhead:\n  a0: &a0 [x]\n" + "".join(
    f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 11)
)


def write(folder: pathlib.Path, **files: str) -> pathlib.Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def names(things: t.Iterable[dict[str, t.Any]]) -> list[str]:
    return [thing["metadata"]["name"] for thing in things]


def test_several_documents_of_one_file(tmp_path: pathlib.Path) -> None:
    write(tmp_path, all_yaml=f"---\n{CLASS}---\n---\n{NODE}---\n# nothing\n---\n{DEPLOYMENT}---\napiVersion: v1\nkind: ConfigMap\n")
    found = read_manifests([str(tmp_path / "all.yaml")])
    assert found.runtime_classes == [
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "gvisor"},
            "handler": "runsc",
            "scheduling": {"nodeSelector": {"sandbox": "true"}},
        }
    ]
    assert found.nodes[0]["status"] == {
        "nodeInfo": {"containerRuntimeVersion": "containerd://2.1.9"},
        "runtimeHandlers": [{"name": "runsc"}],
    }
    assert found.nodes[0]["spec"]["taints"] == [{"key": "k", "effect": "NoSchedule"}]
    assert found.workloads == [
        {
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"template": {"spec": {"runtimeClassName": "gvisor"}}},
        }
    ]


def test_directories_are_read_with_their_sub_directories(tmp_path: pathlib.Path) -> None:
    write(
        tmp_path,
        b_yml=CLASS,
        a__c_json=json.dumps({**yaml.safe_load(CLASS), "metadata": {"name": "kata"}}),
        README_md="not: [a manifest",
        a___hidden_yaml="not: [a manifest",
    )
    write(tmp_path, **{".git__x_yaml": "not: [a manifest"})
    assert names(read_manifests([str(tmp_path)]).runtime_classes) == ["gvisor", "kata"]


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: gvisor}, handler: runsc}\n",
        "apiVersion: node.k8s.io/v1\nkind: RuntimeClassList\nitems:\n- {metadata: {name: gvisor}, handler: runsc}\n",
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: node.k8s.io/v1\n  kind: RuntimeClassList\n"
        "  items: [{metadata: {name: gvisor}, handler: runsc}]\n",
        "\ufeff" + CLASS,
        "apiVersion: node.k8s.io/v1alpha1\nkind: RuntimeClass\nmetadata: {name: gvisor}\nspec: {runtimeHandler: runsc}\n",
        "apiVersion: node.k8s.io/v1beta1\nkind: RuntimeClass\nmetadata: {name: gvisor}\nhandler: runsc\n",
    ],
)
def test_lists_and_versions(tmp_path: pathlib.Path, text: str) -> None:
    write(tmp_path, a_yaml=text)
    found = read_manifests([str(tmp_path)])
    assert names(found.runtime_classes) == ["gvisor"]
    assert found.empty_lists == 0


def test_an_empty_list_is_not_nothing(tmp_path: pathlib.Path) -> None:
    write(tmp_path, a_yaml="apiVersion: v1\nkind: List\nitems: []\n")
    found = read_manifests([str(tmp_path)])
    assert (found.runtime_classes, found.empty_lists) == ([], 1)
    write(tmp_path, a_yaml="apiVersion: v1\nkind: List\nitems:\n")
    assert read_manifests([str(tmp_path)]).empty_lists == 1


def test_what_stands_twice(tmp_path: pathlib.Path) -> None:
    write(tmp_path, a_yaml=CLASS, b_yaml=CLASS.replace("a: b", "a: c"))
    found = read_manifests([str(tmp_path)])
    assert names(found.runtime_classes) == ["gvisor"]
    assert "RuntimeClass gvisor stands twice" in found.repeated[0]
    write(tmp_path, b_yaml=CLASS.replace("runsc", "kata"))
    with pytest.raises(RuntimeGateError) as caught:
        read_manifests([str(tmp_path)])
    for word in ("RuntimeClass gvisor", "differs", "a.yaml, document 1", "b.yaml, document 1"):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a_yaml": f"{CLASS}---\n{CLASS}handler: [x\n"}, ["a.yaml", "document 2", "line "]),
        ({"a_yaml": "a: b\n\tc: d\n"}, ["a.yaml", "document 1", "line 2", "no YAML"]),
        ({"a_yaml": f"{CLASS}---\n{CLASS}handler: kata\n"}, ["document 2", "'handler' stands twice"]),
        ({"a_yaml": f"{NODE}---\nkind: RuntimeClass\nhandler: x\n"}, ["document 2 (line 10)", "no kind or no apiVersion"]),
        ({"a_yaml": "just text\n"}, ["document 1 (line 1)", "not a Kubernetes object"]),
        ({"a_yaml": "a: b\n"}, ["no kind or no apiVersion"]),
        ({"a_yaml": CLASS.replace("handler: runsc\n", "")}, ["document 1", "RuntimeClass gvisor", "no handler"]),
        ({"a_yaml": CLASS.replace("handler: runsc", 'handler: ""')}, ["RuntimeClass gvisor", "no handler"]),
        (
            {"a_yaml": "apiVersion: node.k8s.io/v1alpha1\nkind: RuntimeClass\nmetadata: {name: g}\nhandler: x\n"},
            ["RuntimeClass g", "no runtimeHandler"],
        ),
        ({"a_yaml": CLASS.replace("name: gvisor, ", "")}, ["without metadata.name"]),
        ({"a_yaml": CLASS.replace("{name: gvisor, annotations: {a: b}}", "")}, ["without metadata.name"]),
        ({"a_yaml": CLASS.replace("RuntimeClass", "Runtimeclass")}, ["'Runtimeclass'", 'did you mean "RuntimeClass"']),
        ({"a_yaml": CLASS.replace("node.k8s.io/v1", "node.k8s.io/v2")}, ["'node.k8s.io/v2'", "did you mean"]),
        ({"a_yaml": CLASS.replace("node.k8s.io/v1", "v1")}, ["'v1'", "does not exist"]),
        ({"a_yaml": CLASS.replace("runsc", "{{ .Values.handler }}")}, ["helm template"]),
        ({"a_yaml": CLASS.replace("runsc", '"{{ .Values.handler }}"')}, ["document 1", "template", "helm template"]),
        ({"a_yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"}, ["kustomization", "kubectl kustomize"]),
        ({"kustomization_yaml": "resources: [a.yaml]\n", "a_yaml": CLASS}, ["is a kustomization", "kubectl kustomize"]),
        ({"Chart_yaml": "name: x\n", "templates__a_yaml": CLASS}, ["is a Helm chart", "helm template"]),
        ({"a_json": "{"}, ["a.json", "no JSON", "line 1"]),
        ({"a_json": ""}, ["a.json", "it is empty"]),
        ({"a_json": "[" * 100000}, ["a.json", "nested too deeply"]),
        ({"a_yaml": "[" * 2000 + "]" * 2000}, ["a.yaml"]),
        ({"a_yaml": "x: 2024-13-45\n"}, ["a.yaml", "no manifest"]),
        ({"a_yaml": "x: !!python/object/apply:os.system [id]\n"}, ["a.yaml", "no YAML"]),
        ({"a_yaml": "? [a, b]\n: c\n? {x: y}\n: d\n"}, ["a.yaml"]),
        ({"a_yaml": "apiVersion: v1\nkind: List\nitems: {}\n"}, ["items are no list"]),
        ({"a_yaml": "apiVersion: v1\nkind: List\nitems: [x]\n"}, ["document 1 (line 1), item 1", "not a Kubernetes object"]),
        ({"a_yaml": LAUGHS}, ["document 1 (line 1)", "aliases"]),
        ({"a_yaml": f"{CLASS}---\n{CLASS}extra: &a [*a]\n"}, ["document 2 (line 7)", "aliases"]),
        ({"a_yaml": CLASS.replace("v1", "v" * 3000)}, ["does not exist"]),
        ({"a_txt": CLASS}, ["no file that ends in .yml"]),
    ],
)
def test_what_cannot_be_read(tmp_path: pathlib.Path, files: dict[str, str], words: list[str]) -> None:
    write(tmp_path, **files)
    with pytest.raises(RuntimeGateError) as caught:
        read_manifests([str(tmp_path)])
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_few_aliases_are_fine(tmp_path: pathlib.Path) -> None:
    text = "apiVersion: v1\nkind: List\nx: &labels {sandbox: 'true'}\nitems:\n" + "".join(
        f"- {{apiVersion: v1, kind: Node, metadata: {{name: w{i}, labels: *labels}}}}\n" for i in range(5)
    )
    write(tmp_path, a_yaml=text)
    found = read_manifests([str(tmp_path)])
    assert [node["metadata"]["labels"] for node in found.nodes] == [{"sandbox": "true"}] * 5


def test_paths_that_are_wrong(tmp_path: pathlib.Path) -> None:
    with pytest.raises(RuntimeGateError, match="does not exist"):
        read_manifests([str(tmp_path / "nowhere")])
    write(tmp_path, kustomization_yaml="resources: []\n")
    with pytest.raises(RuntimeGateError, match="kubectl kustomize"):
        read_manifests([str(tmp_path / "kustomization.yaml")])
    (tmp_path / "utf16.yaml").write_bytes(CLASS.encode("utf-16"))
    with pytest.raises(RuntimeGateError, match="not UTF-8"):
        read_manifests([str(tmp_path / "utf16.yaml")])


def test_a_file_that_cannot_be_opened(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, a_yaml=CLASS)

    def refuse(*_args: t.Any, **_more: t.Any) -> t.NoReturn:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(RuntimeGateError, match=r"cannot read .*a\.yaml: Permission denied"):
        read_manifests([str(tmp_path / "a.yaml")])


def test_bounds(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = read_manifests.__globals__
    write(tmp_path, a_yaml=CLASS, b_yaml=NODE)
    monkeypatch.setitem(module, "_MAX_FILES", 1)
    with pytest.raises(RuntimeGateError, match="more than 1 files"):
        read_manifests([str(tmp_path)])
    monkeypatch.setitem(module, "_MAX_BYTES", 10)
    with pytest.raises(RuntimeGateError, match="too large"):
        read_manifests([str(tmp_path / "a.yaml")])


def test_links_are_not_followed_into_a_circle(tmp_path: pathlib.Path) -> None:
    write(tmp_path, a_yaml=CLASS)
    os.symlink(tmp_path, tmp_path / "again")
    assert len(read_manifests([str(tmp_path)]).runtime_classes) == 1


def test_kubectl() -> None:
    items = {"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(CLASS)]}
    assert names(read_kubectl(json.dumps(items), "runtime_classes").runtime_classes) == ["gvisor"]
    assert names(read_kubectl(items, "runtime_classes").runtime_classes) == ["gvisor"]
    for said in ("error: You must be logged in to the server (Unauthorized)", "", "\n"):
        with pytest.raises(RuntimeGateError, match="output of kubectl for nodes is no JSON"):
            read_kubectl(said, "nodes")
    with pytest.raises(RuntimeGateError, match="output of kubectl for nodes"):
        read_kubectl("[]", "nodes")


@pytest.mark.parametrize(
    ("kind", "raw", "small"),
    [
        (
            "Pod",
            {"spec": {"nodeName": "w1", "containers": []}, "status": {"phase": "Running", "podIP": "x"}},
            {"spec": {"nodeName": "w1"}, "status": {"phase": "Running"}},
        ),
        ("PodTemplate", {"template": {"spec": {"runtimeClassName": "c", "x": 1}}}, {"template": {"spec": {"runtimeClassName": "c"}}}),
        (
            "CronJob",
            {"spec": {"jobTemplate": {"spec": {"template": {"spec": {"runtimeClassName": "c"}}}}}},
            {"spec": {"jobTemplate": {"spec": {"template": {"spec": {"runtimeClassName": "c"}}}}}},
        ),
        ("CronJob", {"spec": None}, {"spec": {"jobTemplate": {"spec": {"template": {"spec": {}}}}}}),
        ("Job", {"spec": {"template": None}}, {"spec": {"template": {"spec": {}}}}),
    ],
)
def test_workloads_are_made_small(tmp_path: pathlib.Path, kind: str, raw: dict[str, t.Any], small: dict[str, t.Any]) -> None:
    items = {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "x/v1", "kind": kind, "metadata": {"name": "n", "namespace": "s"}, **raw}]}
    assert read_kubectl(items, "workloads").workloads == [{"kind": kind, "metadata": {"name": "n", "namespace": "s"}, **small}]


def test_pod_templates_of_other_apis_are_taken(tmp_path: pathlib.Path) -> None:
    template = {"spec": {"runtimeClassName": "spin", "containers": []}}
    jobs = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "n", "namespace": "s"}}
    jobs["spec"] = {"replicatedJobs": [{"template": {"spec": {"template": template}}}, {"template": {"spec": {"template": {"spec": {}}}}}]}
    (tmp_path / "jobs.yaml").write_text(json.dumps(jobs))
    small = {"kind": "JobSet", "metadata": {"name": "n", "namespace": "s"}, "spec": {"template": {"spec": {"runtimeClassName": "spin"}}}}
    assert read_manifests([str(tmp_path)]).workloads == [small]


def test_a_pod_keeps_what_it_asks_of_a_node_and_what_a_class_looks_at() -> None:
    """All its containers as one; its limits and sidecars are counted, its affinity to other pods is not of interest."""
    spec = {
        "runtimeClassName": "c",
        "nodeSelector": {"a": "b"},
        "tolerations": [{"operator": "Exists"}],
        "overhead": {"cpu": "1"},
        "affinity": {"podAffinity": {}, "nodeAffinity": {"x": []}},
        "containers": [{"name": "m", "resources": {"requests": {"cpu": "1"}}}, {"name": "n", "resources": {"limits": {"cpu": "500m"}}}],
        "initContainers": [{"name": "s", "restartPolicy": "Always", "resources": {"requests": {"memory": "1Mi"}}}],
        "volumes": [],
    }
    status = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "m"}, {"type": "Other"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "u"}, "spec": spec, "status": status}
    (small,) = read_kubectl({"apiVersion": "v1", "kind": "List", "items": [pod]}, "workloads").workloads
    assert small["metadata"] == {"name": "p", "namespace": None, "uid": "u"}
    assert small["spec"] == {
        "runtimeClassName": "c",
        "nodeSelector": {"a": "b"},
        "tolerations": [{"operator": "Exists"}],
        "overhead": {"cpu": "1"},
        "affinity": {"nodeAffinity": {"x": []}},
        "containers": [{"resources": {"requests": {"cpu": "1500m", "memory": "1Mi"}}}],
    }
    assert small["status"] == {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    # Without a class only what takes room counts, and nothing of a pod that is over.
    plain = {**pod, "spec": {**spec, "runtimeClassName": None}}
    del plain["spec"]["runtimeClassName"]
    (other,) = read_kubectl({"apiVersion": "v1", "kind": "List", "items": [plain]}, "workloads").workloads
    assert set(other["spec"]) == {"overhead", "containers"}
    (over,) = read_kubectl({"apiVersion": "v1", "kind": "List", "items": [{**plain, "status": {"phase": "Failed"}}]}, "workloads").workloads
    assert set(over["spec"]) == {"overhead"}
    with pytest.raises(RuntimeGateError, match="Pod default/p: container m: requests.cpu is 'x', which is no quantity"):
        broken = {**pod, "spec": {"containers": [{"name": "m", "resources": {"requests": {"cpu": "x"}}}]}}
        read_kubectl({"apiVersion": "v1", "kind": "List", "items": [broken]}, "workloads")


def test_events(tmp_path: pathlib.Path) -> None:
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "r", "message": "m", "involvedObject": {"kind": "Pod"}, "count": 2}
    write(tmp_path, a_json=json.dumps(event))
    assert read_manifests([str(tmp_path)]).events == [
        {"reason": "r", "message": "m", "count": 2, "involvedObject": {"kind": "Pod"}, "source": {"host": None}}
    ]
