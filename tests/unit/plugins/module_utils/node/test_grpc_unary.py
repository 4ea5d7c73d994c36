# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gRPC call against a server that answers right, wrong, slowly or not at all."""

from __future__ import annotations

import os
import pathlib
import socket
import struct
import time
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import cri, grpc_unary, hpack
from ansible_collections.kubenode.runtime_gate.tests.unit.node_tables import (
    OK_HEADERS,
    SETTINGS_FRAME,
    STATUS,
    FakeServer,
    frame,
    grpc_answer,
    message,
    sends,
    trailers,
    varint,
)

_HTTP = [(":status", "200"), ("content-type", "application/grpc")]
_BODY = struct.pack(">BI", 0, 2) + b"ok"
_BLOCK = hpack.encode(_HTTP)
_END = hpack.encode([("grpc-status", "0")])


def _call(script: t.Callable[[socket.socket], None], timeout: float = 5) -> bytes:
    with FakeServer(script) as server:
        return grpc_unary.call(server.path, "/x.Y/Z", b"request", timeout)


# what the server sends -> the message
ANSWERS = {
    "plain": SETTINGS_FRAME + OK_HEADERS + frame(0, 0, 1, _BODY) + trailers(0),
    "settings-ack-ping-window": SETTINGS_FRAME
    + frame(4, 1, 0, b"")
    + frame(6, 0, 0, b"12345678")
    + frame(6, 1, 0, b"12345678")
    + frame(8, 0, 0, b"\0\0\1\0")
    + frame(77, 0, 0, b"unknown kind")
    + OK_HEADERS
    + frame(0, 0, 1, _BODY)
    + frame(0, 0, 3, b"another stream")
    + frame(3, 0, 3, b"\0\0\0\1")
    + trailers(0),
    "continuation": SETTINGS_FRAME
    + frame(1, 0, 1, _BLOCK[:3])
    + frame(9, 0, 1, _BLOCK[3:9])
    + frame(9, 4, 1, _BLOCK[9:])
    + frame(0, 0, 1, _BODY)
    + frame(1, 1, 1, _END[:2])
    + frame(9, 4, 1, _END[2:]),
    "padding-and-priority": SETTINGS_FRAME
    + frame(1, 4 | 8 | 32, 1, b"\3" + b"\0\0\0\0\1" + _BLOCK + b"\0\0\0")
    + frame(0, 8, 1, b"\2" + _BODY + b"\0\0")
    + trailers(0),
    "goaway-after-our-stream": SETTINGS_FRAME + frame(7, 0, 0, b"\0\0\0\1\0\0\0\0") + OK_HEADERS + frame(0, 0, 1, _BODY) + trailers(0),
    "data-in-pieces": SETTINGS_FRAME + OK_HEADERS + b"".join(frame(0, 0, 1, bytes((b,))) for b in _BODY) + frame(0, 0, 1, b"") + trailers(0),
    "huffman-and-table": SETTINGS_FRAME
    + frame(1, 4, 1, b"\x88\x5f\x8b\x1d\x75\xd0\x62\x0d\x26\x3d\x4c\x4d\x65\x64")
    + frame(0, 0, 1, _BODY)
    + frame(1, 5, 1, b"\xbe" + _END),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name: str) -> None:
    assert _call(sends(ANSWERS[name], 1)) == b"ok"


def test_a_large_answer() -> None:
    payload = os.urandom(3 * 1024 * 1024)
    with FakeServer(grpc_answer(payload)) as server:
        assert grpc_unary.call(server.path, "/x.Y/Z", b"", 20) == payload


def test_the_server_gets_credit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_unary, "_WINDOW", 65536)
    payload = os.urandom(150_000)
    body = struct.pack(">BI", 0, len(payload)) + payload

    def server_with_window(connection: socket.socket) -> None:
        connection.sendall(SETTINGS_FRAME + OK_HEADERS)
        window, position, received = 65536, 0, b""
        while position < len(body):
            size = min(window, 16384, len(body) - position)
            if size == 0:
                received += connection.recv(65536)
                while len(received) >= 13:
                    length = int.from_bytes(received[:3], "big")
                    if received[3] == 8 and received[5:9] == b"\0\0\0\1":
                        window += int.from_bytes(received[9:13], "big")
                    received = received[9 + length :]
                continue
            connection.sendall(frame(0, 0, 1, body[position : position + size]))
            position += size
            window -= size
        connection.sendall(trailers(0))

    assert _call(server_with_window) == payload


def test_the_request() -> None:
    with FakeServer(grpc_answer(b"")) as server:
        assert grpc_unary.call(server.path, "/x.Y/Z", b"request", 5) == b""
        received = server.received
    assert received.startswith(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    for expected in (b"/x.Y/Z", b"application/grpc", b"5000m", b"\0\0\0\0\7request"):
        assert expected in received


# what the server sends -> kind and words of the failure
FAILURES = {
    "http1": (b"HTTP/1.1 400 Bad Request\r\n\r\n", "protocol", "frame of"),
    "garbage": (b"\0\0\1\7\0\0\0\0\0x", "protocol", "does not begin like HTTP/2"),
    "closes": (b"", "protocol", "closed before"),
    "closes-in-frame": (SETTINGS_FRAME + b"\0\0", "protocol", "closed before"),
    "goaway": (SETTINGS_FRAME + frame(7, 0, 0, b"\0\0\0\0\0\0\0\0"), "protocol", "GOAWAY"),
    "goaway-short": (SETTINGS_FRAME + frame(7, 0, 0, b"\0"), "protocol", "GOAWAY"),
    "reset": (SETTINGS_FRAME + frame(3, 0, 1, b"\0\0\0\7"), "protocol", "error 7"),
    "push": (SETTINGS_FRAME + frame(5, 0, 1, b""), "protocol", "push"),
    "no-grpc-status": (SETTINGS_FRAME + frame(1, 5, 1, _BLOCK), "protocol", "HTTP status 200"),
    "bad-grpc-status": (SETTINGS_FRAME + frame(1, 5, 1, hpack.encode([("grpc-status", "x")])), "protocol", "missing"),
    "no-message": (SETTINGS_FRAME + OK_HEADERS + trailers(0), "protocol", "no message"),
    "compressed": (SETTINGS_FRAME + OK_HEADERS + frame(0, 0, 1, b"\1\0\0\0\0") + trailers(0), "protocol", "compressed"),
    "half-message": (SETTINGS_FRAME + OK_HEADERS + frame(0, 0, 1, _BODY[:-1]) + trailers(0), "protocol", "not complete"),
    "data-ends-stream": (SETTINGS_FRAME + OK_HEADERS + frame(0, 1, 1, _BODY), "protocol", "without a gRPC status"),
    "bad-hpack": (SETTINGS_FRAME + frame(1, 4, 1, b"\x80"), "protocol", "index"),
    "block-interrupted": (SETTINGS_FRAME + frame(1, 0, 1, b"") + frame(6, 0, 0, b""), "protocol", "does not go on"),
    "continuation-of-nothing": (SETTINGS_FRAME + frame(9, 4, 1, b""), "protocol", "continuation of nothing"),
    "too-much-padding": (SETTINGS_FRAME + frame(0, 8, 1, b"\xff"), "protocol", "padding"),
    "empty-padded": (SETTINGS_FRAME + frame(0, 9, 1, b""), "protocol", "without a gRPC status"),
    "huge-headers": (SETTINGS_FRAME + frame(1, 0, 1, b"") + frame(9, 0, 1, b"\0" * 16384) * 17, "protocol", "headers of more"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures(name: str) -> None:
    data, kind, words = FAILURES[name]
    with pytest.raises(grpc_unary.NoAnswer) as caught:
        _call(sends(data))
    assert caught.value.kind == kind
    assert words in str(caught.value)


def test_an_endless_answer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_unary, "MAX_ANSWER", 100)
    with pytest.raises(grpc_unary.NoAnswer, match="more than 100 bytes"):
        _call(grpc_answer(b"x" * 200))


@pytest.mark.parametrize(
    "code, text, expected",
    [
        (12, "unknown service runtime.v1.RuntimeService", "code = Unimplemented desc = unknown service runtime.v1.RuntimeService"),
        (2, "a%20b%3A", "code = Unknown desc = a b:"),
        (99, "", "code = Code(99) desc = "),
    ],
)
def test_grpc_errors(code: int, text: str, expected: str) -> None:
    with pytest.raises(grpc_unary.GrpcStatus) as caught:
        _call(sends(SETTINGS_FRAME + trailers(code, text)))
    assert caught.value.code == code
    assert str(caught.value) == "rpc error: " + expected


def test_nobody(tmp_path: pathlib.Path) -> None:
    for path, kind in ((tmp_path / "none", "absent"), (tmp_path / "none" / "x", "absent")):
        with pytest.raises(grpc_unary.NoAnswer) as caught:
            grpc_unary.call(str(path), "/x.Y/Z", b"", 1)
        assert caught.value.kind == kind
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        with pytest.raises(grpc_unary.NoAnswer) as caught:
            grpc_unary.call(str(tmp_path / "s"), "/x.Y/Z", b"", 1)
        assert (caught.value.kind, str(caught.value)) == ("refused", "connection refused")


def test_a_path_too_long_for_a_socket_is_an_answer_too(tmp_path: pathlib.Path) -> None:
    with pytest.raises(grpc_unary.NoAnswer) as caught:
        grpc_unary.call(str(tmp_path) + "/x" * 100, "/x.Y/Z", b"", 1)
    assert caught.value.kind == "protocol"


@pytest.mark.parametrize("first", [b"", SETTINGS_FRAME, SETTINGS_FRAME + OK_HEADERS])
def test_a_server_that_hangs(first: bytes) -> None:
    began = time.monotonic()
    with pytest.raises(grpc_unary.NoAnswer) as caught:
        _call(sends(first, 3), timeout=0.3)
    assert caught.value.kind == "timeout"
    assert time.monotonic() - began < 4


def test_a_server_that_drips_is_cut_at_the_deadline() -> None:
    def drip(connection: socket.socket) -> None:
        for byte in SETTINGS_FRAME * 100:
            connection.sendall(bytes((byte,)))
            time.sleep(0.05)

    with pytest.raises(grpc_unary.NoAnswer) as caught:
        _call(drip, timeout=0.4)
    assert caught.value.kind == "timeout"


def test_a_full_queue(tmp_path: pathlib.Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen(0)
        waiting = []
        for _attempt in range(3):
            client = socket.socket(socket.AF_UNIX)
            client.setblocking(False)
            waiting.append(client)
            try:
                client.connect(str(tmp_path / "s"))
            except BlockingIOError:
                break
        with pytest.raises(grpc_unary.NoAnswer) as caught:
            grpc_unary.call(str(tmp_path / "s"), "/x.Y/Z", b"", 0.2)
        assert caught.value.kind == "timeout"
        for client in waiting:
            client.close()


# ---- the two versions of CRI
_UNKNOWN = sends(SETTINGS_FRAME + trailers(12, "unknown service runtime.v1.RuntimeService"))


def test_v1alpha2_only_when_v1_is_unknown() -> None:
    with FakeServer(_UNKNOWN, grpc_answer(STATUS), grpc_answer(message((2, "containerd"), (3, "1.4")))) as server:
        answer = cri.ask(server.path, 5)
        received = server.received
    assert (answer.api_version, answer.runtime_version) == ("v1alpha2", "1.4")
    assert received.index(b"/runtime.v1.RuntimeService/Status") < received.index(b"/runtime.v1alpha2.RuntimeService/Status")


def test_a_dead_cri_plugin() -> None:
    with FakeServer(_UNKNOWN, _UNKNOWN) as server:
        with pytest.raises(grpc_unary.GrpcStatus, match="unknown service runtime.v1.RuntimeService"):
            cri.ask(server.path, 5)


@pytest.mark.parametrize("code, text", [(12, "method Status not implemented"), (14, "server is not initialized yet")])
def test_v1alpha2_is_not_asked_for_other_errors(code: int, text: str) -> None:
    with FakeServer(sends(SETTINGS_FRAME + trailers(code, text)), grpc_answer(STATUS)) as server:
        with pytest.raises(grpc_unary.GrpcStatus):
            cri.ask(server.path, 5)
        assert b"v1alpha2" not in server.received


def test_status_counts_without_version() -> None:
    with FakeServer(grpc_answer(STATUS), sends(b"")) as server:
        assert cri.ask(server.path, 5)[:3] == ("v1", "", "")


def test_no_protobuf() -> None:
    with FakeServer(grpc_answer(b"\xff\xff")) as server:
        with pytest.raises(cri.NotProtobuf):
            cri.ask(server.path, 5)


def test_a_message_with_an_endless_number() -> None:
    with pytest.raises(cri.NotProtobuf):
        cri.fields(b"\x08" + b"\x80" * 11)
    assert cri.fields(b"\x08" + varint(300)) == [(1, 300)]


def test_the_deadline_holds_for_all_calls_together(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_arguments: t.Any) -> bytes:
        time.sleep(0.2)
        raise grpc_unary.GrpcStatus(grpc_unary.UNIMPLEMENTED, "unknown service x")

    monkeypatch.setattr(grpc_unary, "call", slow)
    with pytest.raises(grpc_unary.NoAnswer, match="within 0.1 s"):
        cri.ask("/nowhere", 0.1)


def test_old_entries_leave_the_header_table() -> None:
    decoder = hpack.Decoder()
    literal = b"\x40\x01a" + b"\x7f\xd1\x0e" + b"v" * 2000
    decoder.decode(literal * 3)
    assert decoder.decode(b"\xbe") == [("a", "v" * 2000)]
    with pytest.raises(hpack.HpackError):
        decoder.decode(b"\xc0")
