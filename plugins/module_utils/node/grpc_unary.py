# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One unary gRPC call over a unix socket, with a deadline for the whole of it.

HTTP/2 (RFC 9113) as far as one request on one connection needs it, and
https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md. Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import errno
import re
import socket
import struct
import time
import typing as t
import urllib.parse

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import hpack

#: gRPC status codes that the collector distinguishes (https://grpc.github.io/grpc/core/md_doc_statuscodes.html).
UNIMPLEMENTED = 12
DEADLINE_EXCEEDED = 4
_CODE_NAMES = (
    "OK Canceled Unknown InvalidArgument DeadlineExceeded NotFound AlreadyExists PermissionDenied ResourceExhausted "
    "FailedPrecondition Aborted OutOfRange Unimplemented Internal Unavailable DataLoss Unauthenticated"
).split()

#: Largest answer that is taken, in bytes. A Status answer with hundreds of registries has a few hundred kB.
MAX_ANSWER = 32 * 1024 * 1024
_MAX_HEADERS = 256 * 1024
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_MAX_FRAME = 16384
_WINDOW = 16 * 1024 * 1024
_DEFAULT_WINDOW = 65535
_STREAM = 1

_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PUSH_PROMISE, _PING, _GOAWAY, _WINDOW_UPDATE, _CONTINUATION = (
    0, 1, 3, 4, 5, 6, 7, 8, 9,
)  # fmt: skip
_END_STREAM = _ACK = 0x1
_END_HEADERS = 0x4
_PADDED = 0x8
_PRIORITY = 0x20
_SETTINGS_INITIAL_WINDOW = 4


class GrpcStatus(Exception):
    """The server answered the call with an error.

    :ivar code: gRPC status code.
    """

    def __init__(self, code: int, message: str) -> None:
        name = _CODE_NAMES[code] if 0 <= code < len(_CODE_NAMES) else "Code(%d)" % code
        super().__init__("rpc error: code = %s desc = %s" % (name, message))
        self.code = code
        self.message = message


class NoAnswer(Exception):
    """Nobody answered, or not in gRPC.

    :ivar kind: ``absent``, ``refused``, ``permission``, ``timeout`` or ``protocol``.
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def call(path: str, method: str, request: bytes, timeout: float) -> bytes:
    """Send one request and return the one message of the answer.

    :param path: the unix socket.
    :param method: ``/package.Service/Method``.
    :param timeout: seconds for everything together.
    :raises GrpcStatus: the server refused.
    :raises NoAnswer: the socket is not there, nobody listens, no permission, no answer in time, or no gRPC.
    """
    deadline = time.monotonic() + timeout
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(max(timeout, 0.001))
            connection.connect(path)
            return _Call(connection, deadline, timeout).run(method, request)
        except socket.timeout:
            raise NoAnswer("timeout", "no answer within %g s" % round(timeout, 1)) from None
        except (hpack.HpackError, _ProtocolError) as error:
            raise NoAnswer("protocol", "the answer is no gRPC: %s" % error) from None
        except OSError as error:
            raise NoAnswer(_KINDS.get(error.errno or 0, "protocol"), _sentence(error)) from None


#: A gRPC status code as the trailers have it (str.isdigit would take other scripts' digits, too).
_STATUS = re.compile(r"[0-9]{1,9}\Z")

_KINDS = {
    errno.ENOENT: "absent",
    errno.ENOTDIR: "absent",
    errno.ECONNREFUSED: "refused",
    errno.EACCES: "permission",
    errno.EPERM: "permission",
    errno.EAGAIN: "timeout",
}


def _sentence(error: OSError) -> str:
    if error.errno == errno.EAGAIN:
        return "the queue of the socket is full, nobody accepts a connection"
    return (error.strerror or str(error)).lower()


class _ProtocolError(Exception):
    pass


class _Call:
    def __init__(self, connection: socket.socket, deadline: float, timeout: float) -> None:
        self._connection = connection
        self._deadline = deadline
        self._timeout = timeout
        self._buffer = b""
        self._decoder = hpack.Decoder()
        self._headers: t.Dict[str, str] = {}
        self._block: t.Optional[bytearray] = None
        self._block_ends_stream = False
        self._body = bytearray()
        self._consumed = 0
        self._ended = False

    def run(self, method: str, request: bytes) -> bytes:
        self._send_request(method, request)
        first = True
        while not self._ended:
            kind, flags, stream, payload = self._frame()
            if first and kind != _SETTINGS:
                raise _ProtocolError("it does not begin like HTTP/2")
            first = False
            self._handle(kind, flags, stream, payload)
        return self._message()

    def _send_request(self, method: str, request: bytes) -> None:
        headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", method),
            (":authority", "localhost"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
            ("grpc-timeout", "%dm" % max(1, int(self._timeout * 1000))),
            ("user-agent", "kubenode.runtime_gate"),
        ]
        message = struct.pack(">BI", 0, len(request)) + request
        self._send(
            _PREFACE
            + _pack(_SETTINGS, 0, 0, struct.pack(">HI", _SETTINGS_INITIAL_WINDOW, _WINDOW))
            + _pack(_WINDOW_UPDATE, 0, 0, struct.pack(">I", _WINDOW - _DEFAULT_WINDOW))
            + _pack(_HEADERS, _END_HEADERS, _STREAM, hpack.encode(headers))
            + _pack(_DATA, _END_STREAM, _STREAM, message)
        )

    def _remaining(self) -> float:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise socket.timeout
        return remaining

    def _send(self, data: bytes) -> None:
        self._connection.settimeout(self._remaining())
        try:
            self._connection.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            # The server has said everything and gone; what it said is still to be read.
            pass

    def _read(self, count: int) -> bytes:
        pieces = [self._buffer]
        size = len(self._buffer)
        while size < count:
            self._connection.settimeout(self._remaining())
            try:
                piece = self._connection.recv(65536)
            except ConnectionResetError:
                # A server that closes with unread bytes of ours in its queue; what it sent before has been read.
                piece = b""
            if not piece:
                raise _ProtocolError("the connection was closed before the answer was complete")
            pieces.append(piece)
            size += len(piece)
        data = b"".join(pieces)
        self._buffer = data[count:]
        return data[:count]

    def _frame(self) -> t.Tuple[int, int, int, bytes]:
        head = self._read(9)
        size = int.from_bytes(head[:3], "big")
        if size > _MAX_FRAME:
            raise _ProtocolError("a frame of %d bytes" % size)
        return head[3], head[4], int.from_bytes(head[5:], "big") & 0x7FFFFFFF, self._read(size)

    def _handle(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if self._block is not None and kind != _CONTINUATION:
            raise _ProtocolError("a header block that does not go on")
        if kind == _SETTINGS and not flags & _ACK:
            self._send(_pack(_SETTINGS, _ACK, 0, b""))
        elif kind == _PING and not flags & _ACK:
            self._send(_pack(_PING, _ACK, 0, payload))
        elif kind == _GOAWAY:
            # A server that is about to stop still finishes the streams up to the last one that it names.
            if len(payload) < 8 or int.from_bytes(payload[:4], "big") & 0x7FFFFFFF < _STREAM:
                raise _ProtocolError("the server closed the connection (GOAWAY)")
        elif kind == _PUSH_PROMISE:
            raise _ProtocolError("a push that nobody asked for")
        elif stream == _STREAM:
            self._handle_stream(kind, flags, payload)

    def _handle_stream(self, kind: int, flags: int, payload: bytes) -> None:
        if kind == _RST_STREAM:
            raise _ProtocolError("the server reset the call (error %d)" % int.from_bytes(payload, "big"))
        if kind == _DATA:
            self._take_data(flags, payload)
        elif kind == _HEADERS:
            self._block = bytearray(_content(flags, payload, bool(flags & _PRIORITY)))
            self._block_ends_stream = bool(flags & _END_STREAM)
            self._end_headers(flags)
        elif kind == _CONTINUATION:
            if self._block is None:
                raise _ProtocolError("a continuation of nothing")
            self._block += payload
            self._end_headers(flags)

    def _take_data(self, flags: int, payload: bytes) -> None:
        self._body += _content(flags, payload, False)
        if len(self._body) > MAX_ANSWER:
            raise _ProtocolError("an answer of more than %d bytes" % MAX_ANSWER)
        self._ended = bool(flags & _END_STREAM)
        self._consumed += len(payload)
        if self._consumed >= _WINDOW // 2 and not self._ended:
            credit = struct.pack(">I", self._consumed)
            self._consumed = 0
            self._send(_pack(_WINDOW_UPDATE, 0, 0, credit) + _pack(_WINDOW_UPDATE, 0, _STREAM, credit))

    def _end_headers(self, flags: int) -> None:
        block = self._block or bytearray()
        if len(block) > _MAX_HEADERS:
            raise _ProtocolError("headers of more than %d bytes" % _MAX_HEADERS)
        if flags & _END_HEADERS:
            self._headers.update(self._decoder.decode(bytes(block)))
            self._block = None
            self._ended = self._block_ends_stream

    def _message(self) -> bytes:
        status = self._headers.get("grpc-status")
        if status is None or not _STATUS.match(status):
            raise _ProtocolError("HTTP status %s without a gRPC status" % self._headers.get(":status", "missing"))
        if int(status) != 0:
            raise GrpcStatus(int(status), urllib.parse.unquote(self._headers.get("grpc-message", "")))
        if len(self._body) < 5 or self._body[0] != 0:
            raise _ProtocolError("no message, or a compressed one")
        size = int.from_bytes(self._body[1:5], "big")
        if len(self._body) != 5 + size:
            raise _ProtocolError("a message that is not complete")
        return bytes(self._body[5:])


def _pack(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _content(flags: int, payload: bytes, has_priority: bool) -> bytes:
    """A payload without its padding and priority (RFC 9113, 6.1 and 6.2)."""
    padding = 0
    if flags & _PADDED:
        padding = payload[0] if payload else 0
        payload = payload[1:]
    if has_priority:
        payload = payload[5:]
    if padding > len(payload):
        raise _ProtocolError("more padding than payload")
    return payload[: len(payload) - padding]
