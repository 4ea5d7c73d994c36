"""What the writer makes of the API server's answers, and what is told when a change stops half-way. Answers as recorded on 1.36."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.declared_classes import FIELD_MANAGER, Declared
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import cluster_reader, runtimeclass_steps
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_reader import Answer
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_writer import Refused, Writer, writer_for

PATH = "/apis/node.k8s.io/v1/runtimeclasses"
MANAGED = [{"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": {"f:handler": {}}}]


def thing(name="a", handler="h"):
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": handler}


def status(code, message, **more):
    return Answer(code, json.dumps({"kind": "Status", "code": code, "message": message, **more}).encode())


class Server:
    """Gives the answers one after another, and keeps what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def __call__(self, method, path, query, body, content_type):
        self.asked.append((method, path, dict(query), json.loads(body) if body else None))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(cluster_reader.time, "sleep", lambda seconds: None)


def test_a_busy_server_is_asked_again():
    server = Server(status(429, "busy"), status(429, "busy"), Answer(200, json.dumps(thing()).encode()))
    assert Writer(server, "x").apply(PATH, thing(), True) == thing() and len(server.asked) == 3
    assert server.asked[0][2] == {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict", "dryRun": "All"}  # and no force


@pytest.mark.parametrize(
    "answer, words",
    [
        (status(401, "Unauthorized"), ["401", "renew"]),
        (status(403, 'runtimeclasses.node.k8s.io "a" is forbidden: User "u" cannot patch'), ["does not let this user patch runtimeclasses", "RIGHTS"]),
        (status(500, "etcd is down"), ["500", "etcd is down", "try again"]),
        (status(503, "no"), ["503"]),
        (Answer(200, b"<html>"), ["no API server"]),
        (Answer(200, b"[]"), ["no API server"]),
        (RuntimeGateError("the API server x did not answer within 30 s"), ["did not answer"]),
    ],
)
def test_one_sentence_for_each_failure(answer, words):
    with pytest.raises(RuntimeGateError) as told:
        Writer(Server(answer), "RIGHTS").apply(PATH, thing(), False)
    assert all(word in str(told.value) for word in words) and not isinstance(told.value, Refused)


def test_a_server_that_stays_busy():
    server = Server(*[status(429, "busy")] * 4)
    with pytest.raises(RuntimeGateError, match="429"):
        Writer(server, "x").apply(PATH, thing(), False)


@pytest.mark.parametrize(
    "answer, owners",
    [
        (
            status(
                409,
                "Apply failed with 1 conflict",
                details={"causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "helm" using node.k8s.io/v1', "field": ".overhead.podFixed"}]},
            ),
            {"overhead.podFixed": "helm"},
        ),
        (status(409, "Precondition failed", details={"causes": None}), {}),
        (Answer(409, b"no json"), {}),
        (status(422, "is invalid", details={"causes": [{"reason": "FieldManagerConflict", "field": ".x"}]}), {}),
        (status(403, "ValidatingAdmissionPolicy 'x' denied request"), {}),
    ],
)
def test_a_refusal_and_its_owners(answer, owners):
    with pytest.raises(Refused) as told:
        Writer(Server(answer), "x").apply(PATH, thing(), False)
    assert told.value.owners == owners and told.value.status == answer.status


def test_a_deletion_names_its_object_and_a_dry_one_says_so_in_the_body():
    live = {**thing(), "metadata": {"name": "a", "uid": "u", "resourceVersion": "7"}}
    for dry in (True, False):
        server = Server(Answer(200, b"{}"))
        Writer(server, "x").delete(PATH, live, dry)
        body = server.asked[0][3]
        assert body["preconditions"] == {"uid": "u", "resourceVersion": "7"} and body.get("dryRun") == (["All"] if dry else None)
    Writer(Server(status(404, "gone")), "x").delete(PATH, live, False)
    assert Writer(Server(status(404, "gone")), "x").get(PATH, "a") is None


def test_connection_options_that_are_none():
    with pytest.raises(RuntimeGateError, match="runtime_gate_cluster.*kubeconfg"):
        writer_for({"kubeconfg": "x"}, "x")


def declared(*names):
    return Declared({name: thing(name) for name in names}, {name: ["w"] for name in names}, [], {})


def change(server, wanted, check_mode=False, phase="all"):
    return runtimeclass_steps.change(Writer(server, "x"), wanted, 1, phase, runtimeclass_steps.Consent(), check_mode)


LIST = Answer(200, json.dumps({"kind": "RuntimeClassList", "items": []}).encode())


def made(name):
    live = thing(name)
    live["metadata"]["managedFields"] = MANAGED
    return Answer(200, json.dumps(live).encode())


def test_what_was_done_before_a_failure_is_told():
    server = Server(LIST, made("a"), made("b"), made("a"), RuntimeGateError("it went away"))
    with pytest.raises(RuntimeGateError, match="RuntimeClass b: it went away; before that: a applied"):
        change(server, declared("a", "b"))
    with pytest.raises(RuntimeGateError, match="RuntimeClass a: it went away; nothing was written before"):
        change(Server(LIST, made("a"), made("b"), RuntimeGateError("it went away")), declared("a", "b"))


def test_a_refusal_in_the_dry_run_writes_nothing():
    server = Server(LIST, made("a"), status(422, "b is invalid"))
    with pytest.raises(RuntimeGateError, match="RuntimeClass b: b is invalid"):
        change(server, declared("a", "b"))
    assert [asked[2].get("dryRun") for asked in server.asked[1:]] == ["All", "All"]


@pytest.mark.parametrize("phase, check_mode, told", [("before_nodes", False, True), ("all", True, True), ("all", False, False)])
def test_our_own_policy_may_refuse_a_class_whose_handler_is_still_to_come(phase, check_mode, told):
    denied = status(422, "ValidatingAdmissionPolicy 'runtime-gate-runtimeclasses' with binding 'x' denied request: no node has loaded it")
    if told:
        answer = change(Server(LIST, denied), declared("a"), check_mode, phase)
        assert answer["changed"] is check_mode and (phase == "before_nodes" or "until handler h is loaded" in answer["notes"][0])
    else:
        with pytest.raises(RuntimeGateError, match="no node has loaded it"):
            change(Server(LIST, denied), declared("a"), check_mode, phase)
