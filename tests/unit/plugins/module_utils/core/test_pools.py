# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools: a claim is judged as one, and a claim that is none is refused."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crosscheck import crosscheck
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.pools import pool_nodes
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

CLASSES = [
    {"name": "nvidia", "handler": "nvidia", "overhead": {"podFixed": {"cpu": "250m"}}, "scheduling": {"nodeSelector": {"pool": "gpu"}}},
    {"name": "linux", "handler": "runc", "scheduling": {"nodeSelector": {"kubernetes.io/os": "linux"}}},
]


def judged(*pools: dict[str, t.Any], **policy: t.Any) -> dict[str, t.Any]:
    return crosscheck(CLASSES, pool_nodes(list(pools)), policy=policy, verdicts="all")


def cells(answer: dict[str, t.Any]) -> dict[tuple[str, str], str]:
    return {(record["node"], record["runtime_class"]): record["verdict"] for record in answer["verdicts"]}


def test_a_pool_is_judged_by_its_list() -> None:
    answer = judged(
        {"name": "a", "labels": {"pool": "gpu"}, "handlers": ["runc", "nvidia"], "default_handler": "runc", "allocatable": {"cpu": "4", "pods": "10"}},
        {"name": "b", "labels": {"pool": "gpu"}, "handlers": ["runc"]},
        {"name": "c", "labels": {"pool": "gpu"}, "taints": ["x=y:NoSchedule"], "handlers": []},
        {"name": "d", "handlers": ["nvidia"]},
    )
    assert cells(answer) == {
        ("a", "nvidia"): "ok",
        ("a", "linux"): "ok",
        ("b", "nvidia"): "missing",
        ("b", "linux"): "ok",
        ("c", "nvidia"): "excluded_by_taint",
        ("c", "linux"): "excluded_by_taint",
        ("d", "nvidia"): "not_targeted",
        ("d", "linux"): "missing",
    }
    records = {(record["node"], record["runtime_class"]): record for record in answer["verdicts"]}
    assert records["a", "nvidia"]["reason"] == "the list given for a has handler nvidia"
    assert records["b", "nvidia"]["reason"] == "handler nvidia is not loaded on b: the list given for it has runc"
    assert {record["evidence"] for record in answer["verdicts"]} == {"declared"}
    assert any(notice["name"] == "evidence_declared" and "no daemon was asked" in notice["message"] for notice in answer["notices"])
    assert answer["overhead"][0]["nodes"] == {"a": {"cpu": "3750m", "memory": "0"}}


def test_a_claim_does_not_depend_on_what_evidence_a_policy_takes() -> None:
    """As with a dump that is handed in: somebody asks for this very list to be judged."""
    assert cells(judged({"name": "a", "labels": {"pool": "gpu"}, "handlers": ["nvidia"]}, accept_evidence=["loaded"]))["a", "nvidia"] == "ok"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({}, "runtime_gate_pools is a mapping, not a list of pools"),
        (["gpu"], r"runtime_gate_pools\[0\] is a string, not a pool"),
        ([{"handlers": []}], r"runtime_gate_pools\[0\] has no name"),
        ([{"name": "a", "handler": ["x"]}], r"runtime_gate_pools\[0\] \(a\) has the unknown key 'handler'; did you mean \"handlers\""),
        ([{"name": "a"}], r"\(a\): handlers is None, not the list of the handlers"),
        ([{"name": "a", "handlers": "runc"}], r"\(a\): handlers is 'runc', not the list"),
        ([{"name": "a", "handlers": [""]}], r"\(a\): handlers is \[''\], not the list"),
        ([{"name": "a", "handlers": [], "labels": ["x"]}], r"\(a\): labels is a list, not a mapping"),
    ],
)
def test_what_is_no_pool(raw: t.Any, words: str) -> None:
    with pytest.raises(RuntimeGateError, match=words):
        pool_nodes(raw)


def test_two_pools_of_one_name_and_bad_labels_are_refused_as_those_of_nodes() -> None:
    with pytest.raises(RuntimeGateError, match="node a stands twice"):
        judged({"name": "a", "handlers": []}, {"name": "a", "handlers": []})
    with pytest.raises(RuntimeGateError, match="write it in quotes"):
        judged({"name": "a", "handlers": [], "labels": {"gpu": True}})
