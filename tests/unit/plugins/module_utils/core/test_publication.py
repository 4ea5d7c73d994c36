# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said of a node on its Node object: a promise only where the daemon itself has answered."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import LIFECYCLE_TAINTS, ignoring, parse_policy
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.publication import (
    checked_prefix,
    labels_of,
    parse_taint,
    publication_of,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.gate_record import Options, broken_record, judge_host

CLASS = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "sandboxed"}, "handler": "runsc"}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "w1", "labels": {}}, "spec": {}, "status": {}}
Facts = t.Dict[str, t.Any]


def facts(**keys: t.Any) -> Facts:
    """A node whose daemon has answered, with runc and runsc."""
    found = {"schema": 1, "evidence": "loaded", "cri_ready": True, "handlers": {"runc": {}, "runsc": {}}, "default_handler": "runc"}
    found.update(identity={"hostname": "w1"}, layers={"next": {"available": True}}, restart_gains=[], restart_loses=[], faults=[])
    return {**found, **keys}


def published(runtime: Facts, policy: t.Any = None, pending: t.Sequence[str] = (), unreachable: bool = False) -> t.Dict[str, t.Any]:
    """Through the judgement, as the gate does it."""
    result = {"unreachable": True, "msg": "no route"} if unreachable else {"ansible_facts": {"containerd_runtime": runtime}}
    cluster = {"classes": [CLASS], "nodes": [NODE], "workloads": None}
    record = judge_host("w1", result, cluster, Options(policy=policy, pending_handlers=pending, pending_fails=not pending))
    return publication_of(record, policy, pending)


def test_everything_is_loaded() -> None:
    found = published(facts())
    assert found == {
        "node": "w1",
        "registered": True,
        "conflict": None,
        "handlers": ["runc", "runsc"],
        "status": "True",
        "reason": "HandlersLoaded",
        "message": "every handler that pods can ask this node for is loaded",
        "passed": True,
    }


@pytest.mark.parametrize(
    ("runtime", "policy", "handlers", "status", "reason", "word"),
    [
        pytest.param(facts(handlers={"runc": {}}), None, ["runc"], "False", "HandlersMissing", "runsc (missing: ", id="missing"),
        pytest.param(
            facts(handlers={"runc": {}, "runsc": {"usable": False}}), None, ["runc"], "False", "HandlersMissing", "runsc (unusable: ", id="unusable"
        ),
        pytest.param(
            facts(handlers={"runc": {}}, restart_gains=["runsc"]), None, ["runc"], "False", "HandlersMissing", "restart_required", id="no restart"
        ),
        pytest.param(facts(restart_loses=["runsc"]), None, ["runc", "runsc"], "False", "LostAtRestart", "runsc (lost", id="time bomb"),
        pytest.param(facts(restart_loses=["runsc"]), {"restart_loss": "warn"}, ["runc", "runsc"], "True", "HandlersLoaded", "", id="bomb, warned"),
        pytest.param(facts(cri_ready=False, handlers={}, evidence="next"), None, [], "False", "HandlersMissing", "runsc", id="CRI is dead"),
        pytest.param(
            facts(cri_ready=False, handlers={}, evidence="next"), {"classes": []}, [], "False", "RuntimeDown", "no CRI", id="dead, nothing asked"
        ),
        pytest.param(facts(cri_ready=None, evidence="next"), None, [], "Unknown", "NotLoadedEvidence", "next", id="files only"),
        # A gate may pass on what the files say, where the operator accepts that; a label must not promise it.
        pytest.param(
            facts(cri_ready=None, evidence="next"), {"accept_evidence": ["loaded", "next"]}, [], "Unknown", "NotLoadedEvidence", "next", id="accepted"
        ),
        pytest.param(facts(), {"accept_evidence": ["api"]}, [], "Unknown", "NotLoadedEvidence", "loaded", id="evidence not accepted"),
        pytest.param(facts(cri_ready=None, evidence="none", handlers={}), None, [], "Unknown", "NotRead", "", id="nothing known"),
        pytest.param(
            facts(cri_ready=None, evidence="none", handlers={}), {"unknown": "warn"}, [], "Unknown", "NotRead", "", id="nothing known, warned"
        ),
        pytest.param(facts(serves_kubelet=False), None, [], "Unknown", "NotRead", "does not use", id="another runtime's"),
    ],
)
def test_each_state(runtime: Facts, policy: t.Any, handlers: t.List[str], status: str, reason: str, word: str) -> None:
    found = published(runtime, policy)
    assert (found["handlers"], found["status"], found["reason"]) == (handlers, status, reason), found
    assert word in found["message"] and found["message"]
    assert found["passed"] is (status == "True")


def test_a_host_that_cannot_be_read_promises_nothing() -> None:
    for policy in (None, {"unknown": "warn"}):
        found = published({}, policy, unreachable=True)
        assert found["status"] == "Unknown" and found["handlers"] == [] and not found["passed"] and "unreachable" in found["message"]


def test_a_host_that_could_not_be_judged_has_no_node() -> None:
    found = publication_of(broken_record("w1", "two hosts seem to be Node w1"))
    assert found["node"] is None and found["status"] == "Unknown" and found["message"] == "two hosts seem to be Node w1" and not found["passed"]


def test_in_check_mode_what_this_run_would_load_counts() -> None:
    found = published(facts(handlers={"runc": {}}), pending=["runsc"])
    assert found["status"] == "True" and found["handlers"] == ["runc", "runsc"]


def test_a_class_whose_place_is_not_known_is_unknown() -> None:
    """The Node has not registered, so a label that decides may still come."""
    scoped = {**CLASS, "scheduling": {"nodeSelector": {"pool": "gpu"}}}
    cluster = {"classes": [scoped], "nodes": [], "workloads": None}
    record = judge_host("w1", {"ansible_facts": {"containerd_runtime": facts()}}, cluster, Options(policy={"unknown": "warn"}))
    found = publication_of(record, {"unknown": "warn"})
    assert found["status"] == "Unknown" and found["reason"] == "HandlersUnknown" and not found["registered"] and not found["passed"]


def test_long_messages_are_cut() -> None:
    record = dict(broken_record("w1", "x" * 5000))
    assert len(publication_of(record)["message"]) == 1024


def test_names_that_no_label_can_have_are_told_apart() -> None:
    fitting = ["runc", "a", "x" * 63, "kata.v2", "K_8"]
    unfit = ["", "-a", "a-", "x" * 64, "a/b", "a b", "ä", "runc\n"]
    labels, left = labels_of(fitting + unfit, "example.com")
    assert labels == {f"example.com/{name}": "loaded" for name in fitting} and left == sorted(unfit)


@pytest.mark.parametrize("prefix", ["runtime-gate.kubenode.io", "a", "example.com", "notkubernetes.io"])
def test_prefixes(prefix: str) -> None:
    assert checked_prefix(prefix) == prefix


@pytest.mark.parametrize("prefix", ["", "Example.com", "a/b", "a..b", "-a", "a.-b", "x" * 254, "kubernetes.io", "node.kubernetes.io", "k8s.io", "a b", "a\n"])
def test_prefixes_that_are_none(prefix: str) -> None:
    with pytest.raises(RuntimeGateError, match="runtime_gate_prefix"):
        checked_prefix(prefix)


def test_taints() -> None:
    assert parse_taint("") is None
    assert parse_taint("a.example/b:NoSchedule") == {"key": "a.example/b", "value": "", "effect": "NoSchedule"}
    assert parse_taint("b=c:NoExecute") == {"key": "b", "value": "c", "effect": "NoExecute"}
    for text in ("a", "a:", "a:Never", ":NoSchedule", "a=b c:NoSchedule", "=b:NoSchedule"):
        with pytest.raises(RuntimeGateError, match="runtime_gate_startup_taint"):
            parse_taint(text)


def test_a_node_behind_the_startup_taint_is_judged() -> None:
    """The class tolerates nothing, so that the taint would keep it away, and a node without its handler would pass."""
    tainted = {**NODE, "spec": {"taints": [{"key": "example.com/new", "effect": "NoSchedule"}]}}
    cluster = {"classes": [CLASS], "nodes": [tainted], "workloads": None}
    result = {"ansible_facts": {"containerd_runtime": facts(handlers={"runc": {}})}}
    assert judge_host("w1", result, cluster, Options())["fails"] is False
    assert judge_host("w1", result, cluster, Options(policy=ignoring(None, "example.com/new")))["fails"] is True


def test_ignoring_a_taint_keeps_the_rest_of_the_policy() -> None:
    assert parse_policy(ignoring(None, "k")).ignore_taints == {*LIFECYCLE_TAINTS, "k"}
    own = {"ignore_taints": ["a"], "unknown": "warn"}
    assert ignoring(own, "k") == {"ignore_taints": ["a", "k"], "unknown": "warn"} and own["ignore_taints"] == ["a"]
    assert ignoring(own, "a") is own and ignoring(own, "") is own
    # What is no policy is said by the one who parses it.
    assert ignoring("x", "k") == "x" and ignoring({"ignore_taints": "x"}, "k") == {"ignore_taints": "x"}
