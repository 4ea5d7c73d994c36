# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof after a restart: what the daemon must say, and when its word is final."""

from __future__ import annotations

import os
import pathlib
import socket
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import cri, discovery, grpc_unary, proof
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.proof import Answer, Demand

_READY = ["RuntimeReady"]


def _answer(handlers: str = "runc mine", **other: t.Any) -> Answer:
    known = Answer("b/2/1", "served", handlers.split(), "runc", list(_READY), "v1", "", {})
    return known._replace(**other)


_WANTED = Demand(["mine", "runc"], ["gone"], "runc", _READY)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (_answer(), None),
        (_answer("runc mine more"), None),
        (_answer("runc"), "the daemon has not loaded mine; it has runc"),
        (_answer(""), "the daemon has not loaded mine, runc; it has no handler"),
        (_answer("runc mine gone"), "the daemon still has gone"),
        (_answer(default="mine"), "the daemon's default handler is mine, not runc"),
        (_answer(conditions=[]), "the daemon no longer says RuntimeReady"),
        (_answer(state="unimplemented", error="no service"), "the daemon runs without its CRI plugin (no service)"),
        (_answer(state="down", error="refused"), "the daemon does not answer (refused)"),
    ],
)
def test_shortcoming(answer: Answer, words: t.Optional[str]) -> None:
    assert proof.shortcoming(answer, _WANTED) == words


def test_everything_that_was_there_is_wanted() -> None:
    before = _answer("runc old kata").summary()
    plan = {"expect": {"handlers": ["mine"], "default": None}, "keep": ["spare"], "absent": ["kata", "mine"]}
    assert proof.demand(plan, before) == Demand(["mine", "old", "runc", "spare"], ["kata"], "runc", _READY)
    assert proof.demand({"expect": {"default": "mine"}}, before).default == "mine"
    assert proof.demand({"absent": ["runc"]}, before).default is None
    assert proof.demand_again(before) == Demand(["runc", "old", "kata"], [], "runc", _READY)


class _Clock:
    """Time goes on only by sleeping; the daemon's answers follow a script, the last one stays."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers: t.Sequence[Answer]) -> None:
        self.now = 100.0
        self._answers = list(answers)
        monkeypatch.setattr(proof.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(proof.time, "sleep", self._sleep)
        monkeypatch.setattr(proof, "look", self._look)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def _look(self, _socket: str, _timeout: float) -> Answer:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


_OLD = _answer(identity="b/1/1")
_DOWN = _answer(identity=None, state="down", error="refused")


@pytest.mark.parametrize(
    ("answers", "other_than", "words", "seconds"),
    [
        # right at once, and steady
        ([_answer()], None, None, (0.5, 0.7)),
        # the old one still answers, then nobody, then the new one
        ([_OLD, _OLD, _DOWN, _answer()], "b/1/1", None, (1.0, 1.4)),
        # never restarted
        ([_OLD], "b/1/1", "the daemon was not restarted: the same process answers", (20.0, 20.4)),
        # down for good
        ([_DOWN], None, "the daemon does not answer (refused)", (20.0, 20.4)),
        # a wrong answer of the new one is final
        ([_DOWN, _answer("runc")], "b/1/1", "the daemon has not loaded mine; it has runc", (3.0, 3.6)),
        ([_answer(state="unimplemented", error="x")], "b/1/1", "the daemon runs without its CRI plugin (x)", (3.0, 3.4)),
        # but a condition may still come
        ([_answer(conditions=[])] * 30 + [_answer()], None, None, (6.0, 7.0)),
        ([_answer(conditions=[])], None, "the daemon no longer says RuntimeReady", (20.0, 20.4)),
        # each time another process: it does not stay up
        ([_answer(identity="b/%d/1" % number) for number in range(3, 200)], None, "the daemon did not stay up", (20.0, 20.4)),
    ],
)
def test_wait(
    monkeypatch: pytest.MonkeyPatch, answers: t.List[Answer], other_than: t.Optional[str], words: t.Optional[str], seconds: t.Tuple[float, float]
) -> None:
    clock = _Clock(monkeypatch, answers)
    reason, _answer_then = proof.wait("/s", _WANTED, other_than, 120.0, 5)
    assert reason == words
    assert seconds[0] <= clock.now - 100 <= seconds[1]


def test_look(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    status = {"conditions": [{"type": name, "status": held} for name, held in (("RuntimeReady", True), ("NetworkReady", False), ("Other", True))]}
    runtimes = {"config": {"containerd": {"runtimes": {"runc": {}, "mine": {}}, "defaultRuntimeName": "runc"}}}
    monkeypatch.setattr(discovery, "owner", lambda _socket, _timeout: os.getpid())
    monkeypatch.setattr(cri, "ask", lambda _socket, _timeout: cri.Answer("v1", "containerd", "v2", dict(runtimes, status=status)))
    answer = proof.look("/s", 5)
    assert answer.summary() == {
        "identity": answer.identity, "state": "served", "handlers": ["mine", "runc"], "default": "runc", "conditions": ["RuntimeReady"],
    }  # fmt: skip
    assert (answer.identity or "").split("/")[1] == str(os.getpid())
    monkeypatch.setattr(cri, "ask", lambda _socket, _timeout: cri.Answer("v1", "other", "v2", {"status": status}))
    assert proof.look("/s", 5)[2:4] == ([], None)


@pytest.mark.parametrize(
    ("error", "state", "words"),
    [
        (grpc_unary.GrpcStatus(grpc_unary.UNIMPLEMENTED, "unknown service"), "unimplemented", "unknown service"),
        (grpc_unary.GrpcStatus(14, "not ready"), "down", "not ready"),
        (grpc_unary.NoAnswer("refused", "connection refused"), "down", "/s: connection refused"),
        (cri.NotProtobuf("a field that does not end"), "down", "does not end"),
    ],
)
def test_no_answer(monkeypatch: pytest.MonkeyPatch, error: Exception, state: str, words: str) -> None:
    def ask(_socket: str, _timeout: float) -> None:
        raise error

    monkeypatch.setattr(cri, "ask", ask)
    answer = proof.look("/s", 5)
    assert (answer.identity, answer.state) == (None, state)
    assert words in answer.error


def test_whether_the_daemon_sees_the_same_file(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "not" / "there" / "x")
    monkeypatch.setattr(discovery, "owner", lambda _socket, _timeout: None)
    assert proof.daemon_sees(path, "/s", 5)
    monkeypatch.setattr(discovery, "owner", lambda _socket, _timeout: os.getpid())
    assert proof.daemon_sees(path, "/s", 5)
    theirs = os.stat("/")
    real = os.stat
    monkeypatch.setattr(proof.os, "stat", lambda where: theirs if str(where).startswith("/proc/") else real(where))
    assert not proof.daemon_sees(path, "/s", 5)


def test_a_daemon_that_just_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(discovery, "owner", lambda _socket, _timeout: 2**22 + 1)
    assert proof.daemon_sees(str(tmp_path / "x"), "/s", 5)


def test_identity_of_a_real_listener(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        assert "/%d/" % os.getpid() in (proof._identity(path, 5) or "")
    assert proof._identity(path, 5) is None
