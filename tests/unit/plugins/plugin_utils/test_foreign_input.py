# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever stands in a manifest, an answer or a variable: a result, or one RuntimeGateError of one line."""

from __future__ import annotations

import json
import pathlib
import typing as t

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crosscheck import crosscheck
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_objects import ClusterObjects
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_reader import Answer, read_with
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import judge
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.manifests import read_manifests

# Keys and words of the real formats, so that the fuzz gets past the first check of each.
KEYS = (
    "apiVersion kind metadata name namespace labels spec status taints key value effect operator items handler scheduling nodeSelector"
    " tolerations runtime handlers default_handler evidence cri_ready layers next available schema faults usable options runtime_type"
    " runtimeHandlers nodeInfo template jobTemplate runtimeClassName nodeName classes node_selector unscoped identity phase explicit"
).split()
WORDS = (
    "v1 node.k8s.io/v1 node.k8s.io/v1alpha1 RuntimeClass Node Pod List RuntimeClassList CronJob Deployment NoSchedule Exists loaded api next"
    " runc nvidia w1 linux windows true referenced {{x}}"
).split()
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.sampled_from(WORDS) | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6), max_leaves=25
)
MAPPINGS = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=8)
NODES = st.lists(
    MAPPINGS
    | st.fixed_dictionaries({"name": st.sampled_from(["w1", "w2"]), "labels": VALUES, "runtime": VALUES | MAPPINGS})
    | st.fixed_dictionaries({"kind": st.just("Node"), "metadata": VALUES, "spec": VALUES, "status": VALUES}),
    max_size=3,
)
CLASSES = st.lists(MAPPINGS | st.fixed_dictionaries({"name": st.just("c"), "handler": SCALARS, "scheduling": VALUES}), max_size=3)
FEW = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def tame(call: t.Callable[[], t.Any]) -> None:
    """The call gives something that JSON can hold, or one sentence."""
    try:
        json.dumps(call(), default=vars)
    except RuntimeGateError as error:
        assert str(error)
        assert "\n" not in str(error)
        assert len(str(error)) < 2000


@FEW
@given(CLASSES | VALUES, NODES | VALUES, st.none() | st.lists(VALUES | MAPPINGS, max_size=3), VALUES | MAPPINGS)
def test_crosscheck(classes: t.Any, nodes: t.Any, workloads: t.Any, policy: t.Any) -> None:
    tame(lambda: crosscheck(classes, nodes, workloads=workloads, policy=policy, verdicts="all"))
    tame(lambda: crosscheck(classes, nodes, workloads=workloads, verdicts="all"))


@FEW
@given(NODES, VALUES | MAPPINGS)
def test_one_host(nodes: t.Any, runtime: t.Any) -> None:
    tame(lambda: judge({"runtime_classes": [], "nodes": nodes, "node_runtime": runtime, "node_name": "w1"}))


@FEW
@given(VALUES | MAPPINGS)
def test_objects(document: t.Any) -> None:
    tame(lambda: ClusterObjects().add(document, "here"))
    tame(lambda: ClusterObjects().add({"apiVersion": "v1", "kind": "List", "items": [document]}, "here"))
    if isinstance(document, dict):
        for kind in ("Node", "Pod", "CronJob", "Deployment", "PodTemplate"):
            tame(lambda kind=kind: ClusterObjects().add({**document, "apiVersion": "v1", "kind": kind}, "here"))
        tame(lambda: ClusterObjects().add({**document, "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass"}, "here"))
        tame(lambda: ClusterObjects().add({**document, "apiVersion": "node.k8s.io/v1alpha1", "kind": "RuntimeClass"}, "here"))


@FEW
@given(st.sampled_from([200, 401, 403, 410, 429, 500]), VALUES | MAPPINGS | st.fixed_dictionaries({"items": VALUES, "metadata": VALUES}))
def test_answers_of_a_server(status: int, body: t.Any) -> None:
    answers = iter([Answer(status, json.dumps(body).encode())] * 60)

    def get(_path: str, _query: t.Any) -> Answer:
        return next(answers, Answer(500, b""))

    tame(lambda: read_with(get, workloads=True, pause=lambda _seconds: None))


@FEW
@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_bytes_of_a_file(tmp_path_factory: t.Any, body: bytes) -> None:
    path = pathlib.Path(tmp_path_factory.getbasetemp()) / "foreign.yaml"
    for head in (b"", b"apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: x}\nhandler: "):
        path.write_bytes(head + body)
        tame(lambda: read_manifests([str(path)]).runtime_classes)
