# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading the API page by page, and the one sentence for each refusal. Real servers: tests/integration."""

from __future__ import annotations

import json
import time
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import cluster_reader
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_reader import Answer, list_all, read_with


def page(*names: str, token: str = "", **more: t.Any) -> Answer:
    items = [{"metadata": {"name": name}, **more} for name in names]
    return Answer(200, json.dumps({"metadata": {"continue": token}, "items": items}).encode())


def status(code: int, message: str = "said why", retry_after: float | None = None) -> Answer:
    return Answer(code, json.dumps({"kind": "Status", "message": message}).encode(), retry_after)


class Server:
    """Gives its answers one after the other and remembers what was asked."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.pauses: list[float] = []

    def get(self, path: str, query: t.Sequence[tuple[str, str]]) -> Answer:
        self.asked.append((path, dict(query)))
        return self.answers.pop(0)

    def names(self, path: str = "/api/v1/nodes", size: int = 2) -> list[str]:
        return [item["metadata"]["name"] for item in list_all(self.get, path, size, self.pauses.append)]


def test_pages() -> None:
    server = Server(page("a", "b", token="t1"), page("c", "d", token="t2"), page("e"))
    assert server.names() == ["a", "b", "c", "d", "e"]
    assert [query for _path, query in server.asked] == [
        {"limit": "2"},
        {"limit": "2", "continue": "t1"},
        {"limit": "2", "continue": "t2"},
    ]


def compact(answer: Answer) -> Answer:
    """As an API server writes it."""
    return answer._replace(body=json.dumps(json.loads(answer.body), separators=(",", ":")).encode())


def test_the_next_page_is_asked_for_while_this_one_is_parsed() -> None:
    server = Server(compact(page("a", token="t1")), compact(page("b", token="t2")), compact(page("c")))
    asked_at: list[int] = []

    def slim(item: dict[str, t.Any]) -> dict[str, t.Any]:
        deadline = time.monotonic() + 10
        while len(server.asked) < min(3, len(asked_at) + 2) and time.monotonic() < deadline:
            time.sleep(0.001)
        asked_at.append(len(server.asked))
        return item

    found = list_all(server.get, "/x", 1, server.pauses.append, slim)
    assert [item["metadata"]["name"] for item in found] == ["a", "b", "c"] and asked_at == [2, 3, 3]


def test_a_token_that_was_only_thought_to_be_one_leads_nowhere() -> None:
    body = b'{"metadata":{"note":{"continue":"wrong"},"continue":"t1"},"items":[{"metadata":{"name":"a"}}]}'
    server = Server(Answer(200, body), page("not of this list"), page("b"))
    assert server.names() == ["a", "b"] and [query.get("continue") for _path, query in server.asked] == [None, "wrong", "t1"]


@pytest.mark.parametrize("body", [b'{"items":[],"metadata":{"continue":"t1"}}', b'{"metadata":{"continue": "t1"},"items":[]}'])
def test_a_token_elsewhere_is_found_by_parsing(body: bytes) -> None:
    server = Server(Answer(200, body), compact(page("b")))
    assert server.names() == ["b"] and len(server.asked) == 2


def test_no_items() -> None:
    assert Server(Answer(200, b'{"metadata": {}, "items": null}')).names() == []


def test_an_expired_token_reads_the_whole_list_again() -> None:
    server = Server(page("a", token="t1"), status(410, "the provided continue parameter is too old"), page("a", "x", token="t2"), page("y"))
    assert server.names() == ["a", "x", "y"]
    assert [query.get("continue") for _path, query in server.asked] == [None, "t1", None, "t2"]


def test_a_token_that_expires_every_time() -> None:
    server = Server(*[page("a", token="t"), status(410)] * 4)
    with pytest.raises(RuntimeGateError, match="expire 4 times"):
        server.names()


def test_a_busy_server_is_asked_again_after_a_bounded_pause() -> None:
    server = Server(status(429, retry_after=1.0), status(429, retry_after=3600.0), status(429), page("a"))
    assert server.names() == ["a"]
    assert server.pauses == [1.0, 5.0, 3.0]


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([status(401, "Unauthorized")], ["401", "credentials", "Unauthorized"]),
        ([status(403, 'User "x" cannot list resource "nodes"')], ["403", "list nodes", "cannot list resource", "examples/rbac.yml"]),
        ([status(404)], ["404", "1.20"]),
        ([status(429)] * 4, ["429", "4 times", "later"]),
        ([status(500, "etcdserver: leader changed")], ["500", "leader changed"]),
        ([Answer(503, b"")], ["503", "without a word"]),
        ([Answer(502, b"<html>bad gateway</html>")], ["502", "bad gateway"]),
        ([status(410)], ["410"]),
        ([Answer(418, b'"teapot"')], ["418", "teapot"]),
        ([Answer(503, b'{"kind": "Status"}')], ["503", "without a word"]),
        ([Answer(200, b"<html>login</html>")], ["no API server", "no JSON"]),
        ([Answer(200, b"[" * 100000)], ["no API server"]),
        ([Answer(200, b'{"items": {}}')], ["no API server", "no list"]),
        ([Answer(200, b'{"items": ["a"]}')], ["no API server", "no list"]),
        ([Answer(200, b'{"items": [], "metadata": [1]}')], ["metadata is a list"]),
        ([Answer(200, b'{"a": 1}')], ["no API server", "no list"]),
        ([Answer(200, b"[]")], ["no API server", "no list"]),
    ],
)
def test_refusals(answers: list[Answer], words: list[str]) -> None:
    with pytest.raises(RuntimeGateError) as caught:
        Server(*answers).names()
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_lists_and_no_more() -> None:
    server = Server(page("gvisor", handler="runsc", extra=1), page("w1"))
    found = read_with(server.get)
    assert [path for path, _query in server.asked] == ["/apis/node.k8s.io/v1/runtimeclasses", "/api/v1/nodes"]
    assert found["classes"] == [{"apiVersion": "node.k8s.io/v1", "handler": "runsc", "metadata": {"name": "gvisor"}}]
    assert found["nodes"][0]["metadata"]["name"] == "w1"
    assert found["workloads"] is None


def test_workloads_only_where_asked() -> None:
    server = Server(page("p"), *[page()] * 6)
    found = read_with(server.get, classes=False, nodes=False, workloads=True)
    assert len(server.asked) == len(cluster_reader.WORKLOAD_LISTS) == 7
    assert (found["classes"], found["nodes"]) == (None, None)
    assert [workload["kind"] for workload in found["workloads"]] == ["Pod"]


def test_events_only_where_asked_and_by_their_reason() -> None:
    told = {"reason": "FailedCreatePodSandBox", "message": "no", "involvedObject": {"kind": "Pod", "name": "p", "apiVersion": "v1"}, "source": {"host": "w1"}}
    server = Server(page("e", token="t", **told), page("e2", **told), page())
    found = read_with(server.get, classes=False, nodes=False, events=True)
    selectors = [query["fieldSelector"] for _path, query in server.asked]
    assert selectors == ["reason=FailedCreatePodSandBox"] * 2 + ["reason=FailedCreate"]
    assert {path for path, _query in server.asked} == {"/api/v1/events"}
    assert found["events"][0] == {
        "reason": "FailedCreatePodSandBox",
        "message": "no",
        "involvedObject": {"kind": "Pod", "name": "p"},
        "source": {"host": "w1"},
    }
    assert read_with(Server().get, classes=False, nodes=False)["events"] is None


def test_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "kubernetes.client", None)
    with pytest.raises(RuntimeGateError, match=r"kubernetes\.core"):
        cluster_reader.connect({}, 1.0)


@pytest.mark.parametrize("auth", [{"kubeconfig": "/nonexistent/kubeconfig"}, {"context": "nowhere", "kubeconfig": "/nonexistent/kubeconfig"}])
def test_no_way_to_the_api(auth: dict[str, str]) -> None:
    with pytest.raises(RuntimeGateError, match="no way to the API server") as caught:
        cluster_reader.connect(auth, 1.0)
    assert "\n" not in str(caught.value)


def test_nobody_listens() -> None:
    get = cluster_reader.connect({"host": "http://127.0.0.1:9", "api_key": "secret-token"}, 1.0)
    with pytest.raises(RuntimeGateError, match="cannot be reached") as caught:
        get("/api/v1/nodes", [])
    assert "secret-token" not in str(caught.value)


@pytest.mark.parametrize(("text", "seconds"), [(None, None), ("2", 2.0), ("-1", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", None)])
def test_retry_after(text: str | None, seconds: float | None) -> None:
    assert cluster_reader._seconds(text) == seconds
