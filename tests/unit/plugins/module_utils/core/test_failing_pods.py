# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Failures that events tell of. The texts are those of real kubelets, daemons and controllers (tests/cluster shows more of them)."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crosscheck import crosscheck
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.failing_pods import (
    NO_CLASS,
    NOT_CONFIGURED,
    REJECTED,
    UNUSABLE,
    denied_handlers,
    read_failures,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

Data = t.Dict[str, t.Any]
HEAD = "Failed to create pod sandbox: rpc error: code = Unknown desc = "
WORDS_2 = HEAD + 'unable to get OCI runtime for sandbox "4f": no runtime for "nvidai" is configured'
WORDS_1 = HEAD + 'failed to get sandbox runtime: no runtime for "nvidai" is configured'
WORDS_CRIO = HEAD + "failed to find runtime handler nvidai from runtime list map[crun:0xc00 runc:0xc01]"
NOT_INSTALLED = (
    HEAD + 'failed to start sandbox "4f": failed to create containerd task: failed to start shim: failed to resolve runtime path: runtime'
    ' "io.containerd.kata.v2" binary not installed "containerd-shim-kata-v2": file does not exist'
)
NO_BINARY = (
    HEAD + "unable to retrieve OCI runtime error (open /run/log.json: no such file or directory): fork/exec"
    " /usr/bin/nvidia-container-runtime: no such file or directory"
)


def event(message: str, reason: str = "FailedCreatePodSandBox", kind: str = "Pod", name: str = "p", **more: t.Any) -> Data:
    return {"reason": reason, "message": message, "involvedObject": {"kind": kind, "namespace": "ns", "name": name}, "source": {"host": "w1"}, **more}


def pod(name: str = "p", phase: str = "Pending", ready: bool = False, **spec: t.Any) -> Data:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": "u1"},
        "spec": {"runtimeClassName": "gpu", "nodeName": "w1", **spec},
        "status": {"phase": phase, "conditions": conditions},
    }


@pytest.mark.parametrize(
    ("message", "cause", "handler"),
    [
        (WORDS_2, NOT_CONFIGURED, "nvidai"),
        (WORDS_1, NOT_CONFIGURED, "nvidai"),
        (WORDS_CRIO, NOT_CONFIGURED, "nvidai"),
        (NOT_INSTALLED, UNUSABLE, None),
        (NO_BINARY, UNUSABLE, None),
        (HEAD + "invalid custom binary path: stat /opt/x: no such file or directory", UNUSABLE, None),
        ('Failed to create pod sandbox: runtimeclass.node.k8s.io "gpu" not found', NO_CLASS, None),
        (HEAD + 'failed to setup network for sandbox "4f": plugin type="calico" failed (add): timeout', None, None),
        (HEAD + "failed to reserve sandbox name", None, None),
    ],
)
def test_what_a_sandbox_that_fails_means(message: str, cause: str | None, handler: str | None) -> None:
    found = read_failures([event(message)], [pod()], ["gpu"])
    assert [(failure.cause, failure.handler, failure.node, failure.runtime_class) for failure in found or ()] == (
        [] if cause is None else [(cause, handler, "w1", "gpu")]
    )


@pytest.mark.parametrize(
    ("one", "there", "why"),
    [
        (event(WORDS_2), [], "the pod is gone"),
        (event(WORDS_2), [pod(phase="Succeeded")], "the pod is over"),
        (event(WORDS_2), [pod(phase="Running", ready=True)], "the pod runs"),
        (event(WORDS_2, involvedObject={"kind": "Pod", "namespace": "ns", "name": "p", "uid": "u0"}), [pod()], "another pod of that name"),
        (event(WORDS_2, reason="BackOff"), [pod()], "another reason"),
        (event(WORDS_2, kind="Node"), [pod()], "no pod"),
    ],
)
def test_an_event_outlives_what_it_tells_of(one: Data, there: list[Data], why: str) -> None:
    assert read_failures([one], there, ["gpu"]) == [], why
    assert read_failures([event(WORDS_2)], [pod()], ["gpu"]), "the twin"


def test_a_pod_that_ran_before_its_node_was_restarted_counts() -> None:
    assert read_failures([event(WORDS_2)], [pod(phase="Running")], ["gpu"])


@pytest.mark.parametrize(
    ("message", "cause", "named"),
    [
        ('Error creating: pods "d-1-" is forbidden: pod rejected: RuntimeClass "nope" not found', NO_CLASS, "nope"),
        (
            'Error creating: pods "d-1-" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[a] = 1; pod.spec.nodeSelector[a] = 2',
            REJECTED,
            None,
        ),
        ("Error creating: pods \"d-1-\" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead", REJECTED, None),
        ('Error creating: pods "d-1-" is forbidden: exceeded quota: q', None, None),
        ('Error creating: pods "d-1-" is forbidden: pod rejected: RuntimeClass "gpu" not found', None, None),  # made meanwhile
    ],
)
def test_controllers_whose_pods_are_refused(message: str, cause: str | None, named: str | None) -> None:
    found = read_failures([event(message, "FailedCreate", "ReplicaSet", "d-1")], [], ["gpu"])
    assert [(failure.kind, failure.name, failure.cause, failure.runtime_class, failure.node) for failure in found or ()] == (
        [] if cause is None else [("ReplicaSet", "ns/d-1", cause, named, None)]
    )


def test_the_latest_of_each_object_and_both_ways_of_counting() -> None:
    events = [
        event(WORDS_1, count=3, lastTimestamp="2026-01-02T00:00:00Z"),
        event(WORDS_2, count=2, lastTimestamp="2026-01-01T00:00:00Z"),
        event(WORDS_2, name="q", series={"count": 5, "lastObservedTime": "2026-01-03T00:00:00Z"}),
    ]
    found = read_failures(events, [pod(), pod("q")], ["gpu"])
    assert [(failure.name, failure.count, failure.last_seen) for failure in found or ()] == [
        ("ns/p", 3, "2026-01-02T00:00:00Z"),
        ("ns/q", 5, "2026-01-03T00:00:00Z"),
    ]


def test_not_read_is_not_none() -> None:
    assert read_failures(None, [], []) is None
    with pytest.raises(RuntimeGateError, match="events is a mapping, not a list"):
        read_failures({}, [], [])
    with pytest.raises(RuntimeGateError, match=r"events\[0\] is a string, not an Event"):
        read_failures(["x"], [], [])


def test_denied_handlers() -> None:
    found = read_failures([event(WORDS_2), event(NOT_INSTALLED, name="q")], [pod(), pod("q")], ["gpu"])
    assert denied_handlers(found or ()) == {"w1": {"nvidai"}}


CLASS = {"metadata": {"name": "gpu"}, "handler": "nvidai"}


def node_object(*handlers: str) -> Data:
    info = {"containerRuntimeVersion": "cri-o://1.36.3", "kubeletVersion": "v1.36.3"}
    return {"kind": "Node", "metadata": {"name": "w1"}, "status": {"nodeInfo": info, "runtimeHandlers": [{"name": name} for name in handlers]}}


def test_a_failing_pod_is_tied_to_verdict_and_fault() -> None:
    fault = {"id": 7, "severity": "error", "handlers": ["nvidai"], "message": "the table is misspelled", "fix": "Write it right."}
    runtime = {"schema": 1, "evidence": "loaded", "cri_ready": True, "handlers": {"runc": {}}, "faults": [fault]}
    answer = crosscheck([CLASS], [{"name": "w1", "labels": {}, "runtime": runtime}], workloads=[pod()], events=[event(WORDS_1)])
    (told,) = answer["failing_pods"]
    assert (told["verdict"], told["handler"], told["faults"]) == ("missing", "nvidai", [7])
    assert told["fix"].startswith("Write it right.")
    (notice,) = [each for each in answer["notices"] if each["name"] == "failing_pods"]
    assert notice["nodes"] == ["w1"] and notice["fix"] == told["fix"]
    for words in ("no handler nvidai", "(1: ns/p)", "the verdict there is missing", 'no runtime for "nvidai" is configured'):
        assert words in notice["message"]


def test_a_status_that_the_runtime_itself_contradicts_shows_nothing() -> None:
    """CRI-O after a reload lists what it refuses. The verdict is unknown and fails; without the event, and with a pod that runs, it is ok."""
    for events, pods, verdict in (
        ([event(WORDS_CRIO)], [pod()], "unknown"),
        ([], [pod()], "ok"),
        ([event(WORDS_CRIO)], [pod(phase="Running", ready=True)], "ok"),
    ):
        answer = crosscheck([CLASS], [node_object("nvidai", "runc")], workloads=pods, events=events, verdicts="all")
        assert answer["verdicts"][0]["verdict"] == verdict
        assert answer["ok"] is (verdict == "ok")
    loaded = {"name": "w1", "labels": {}, "runtime": {"handlers": ["nvidai"]}}
    now = crosscheck([CLASS], [loaded], workloads=[pod()], events=[event(WORDS_CRIO)], verdicts="all")
    assert now["verdicts"][0]["verdict"] == "ok", "what was read from the daemon just now is newer than the event"


def test_a_failure_that_was_not_judged_stands_there_all_the_same() -> None:
    answer = crosscheck([CLASS], [node_object("runc")], workloads=[pod(nodeName="w9")], events=[event(WORDS_2)])
    (told,) = answer["failing_pods"]
    assert (told["node"], told["verdict"]) == ("w9", None)
    assert crosscheck([CLASS], [node_object("runc")])["failing_pods"] is None
