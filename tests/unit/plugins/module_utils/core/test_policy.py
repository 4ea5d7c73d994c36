# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The policy table of the public contract: defaults, and one sentence for each thing that is wrong."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import Policy, needs_workloads, parse_policy
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.scheduling import Toleration
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError


def test_defaults() -> None:
    assert parse_policy(None) == parse_policy({}) == Policy()
    policy = Policy()
    assert (policy.classes, policy.unscoped, policy.unknown, policy.restart_loss) == (None, "require", "fail", "fail")
    assert policy.accept_evidence == {"loaded", "api"}
    assert policy.allowed_handlers is None
    for taint in ("node.kubernetes.io/unschedulable", "node.cloudprovider.kubernetes.io/uninitialized", "ToBeDeletedByClusterAutoscaler"):
        assert taint in policy.ignore_taints


def test_every_key() -> None:
    policy = parse_policy(
        {
            "classes": ["a", "b", "a"],
            "node_selector": {"a": {"k": "v"}, "b": {}},
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "ignore_taints": ["x"],
            "unscoped": "ignore",
            "required_handlers": ["h"],
            "allowed_handlers": [],
            "unknown": "warn",
            "restart_loss": "warn",
            "accept_evidence": ["next"],
        }
    )
    assert policy == Policy(
        classes=("a", "b"),
        node_selector={"a": {"k": "v"}, "b": {}},
        tolerations=(Toleration("k", "Exists", "", ""),),
        ignore_taints=frozenset(["x"]),
        unscoped="ignore",
        required_handlers=("h",),
        allowed_handlers=frozenset(),
        unknown="warn",
        restart_loss="warn",
        accept_evidence=frozenset(["next"]),
    )
    assert parse_policy({"classes": "all", "allowed_handlers": None}) == Policy()


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (["classes"], ["a list, not a mapping"]),
        ({"class": ["a"]}, ["'class'", 'did you mean "classes"']),
        ({"node-selector": {}}, ["'node-selector'", 'did you mean "node_selector"']),
        ({"xyz": 1}, ["'xyz'", "known: classes"]),
        ({"classes": "nvidia"}, ["classes", "not a list"]),
        ({"classes": [1]}, ["classes", "no name"]),
        ({"required_handlers": [""]}, ["required_handlers", "no name"]),
        ({"node_selector": ["a"]}, ["node_selector", "not a mapping"]),
        ({"node_selector": {"a": "gpu=true"}}, ["node_selector: a", "not a mapping of labels"]),
        ({"node_selector": {"a": {"gpu": True}}}, ["node_selector: a", "in quotes"]),
        ({"node_selector": {"a": None}}, ["node_selector: a", "every node"]),
        ({"tolerations": [{"key": "k", "operator": "Equals", "value": "v"}]}, ["tolerations[0]", 'did you mean "Equal"']),
        ({"unscoped": "warning"}, ["unscoped", 'did you mean "warn"']),
        ({"unknown": True}, ["unknown", "fail, warn"]),
        ({"restart_loss": None}, ["restart_loss", "fail, warn"]),
        ({"accept_evidence": ["load"]}, ["accept_evidence", 'did you mean "loaded"']),
        ({"accept_evidence": []}, ["accept_evidence", "nothing could ever pass"]),
        ({"accept_evidence": "loaded"}, ["accept_evidence", "not a list"]),
        ({"allowed_handlers": "runc"}, ["allowed_handlers", "not a list"]),
        ({"ignore_taints": {"a": "b"}}, ["ignore_taints", "not a list"]),
    ],
)
def test_what_is_wrong_is_named(raw: object, words: list[str]) -> None:
    with pytest.raises(RuntimeGateError) as caught:
        parse_policy(raw)
    for word in words:
        assert word in str(caught.value)


def test_only_references_need_workloads() -> None:
    assert needs_workloads({"unscoped": "referenced"})
    assert not needs_workloads({"unscoped": "require"})
    assert not needs_workloads(None)
