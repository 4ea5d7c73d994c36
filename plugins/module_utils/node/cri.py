# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks a container runtime over CRI, without crictl: Version and Status (verbose) in the shape of ``crictl info``.

Messages: https://github.com/kubernetes/cri-api, pkg/apis/runtime/v1/api.proto; v1alpha2 has the same numbers for
everything read here. Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import json
import time
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import grpc_unary

Fields = t.List[t.Tuple[int, t.Union[int, bytes]]]

#: Newest first. v1alpha2 is only for daemons that do not know the service of v1 (containerd 1.4 and 1.5): on 1.7,
#: which serves both, a call of v1alpha2 leaves a deprecation mark in the daemon's state.
API_VERSIONS = ("v1", "v1alpha2")
_VERBOSE = b"\x08\x01"


class NotProtobuf(Exception):
    """The answer is not the message that was asked for."""


class Answer(t.NamedTuple):
    """What the runtime said.

    :ivar api_version: ``v1`` or ``v1alpha2``.
    :ivar runtime_name: of Version, as ``containerd``; empty when Version was not answered.
    :ivar runtime_version: of Version, as ``v1.7.24``.
    :ivar info: Status, verbose, in the shape of ``crictl info``.
    """

    api_version: str
    runtime_name: str
    runtime_version: str
    info: t.Dict[str, t.Any]


def ask(path: str, timeout: float) -> Answer:
    """Version and Status (verbose) of the runtime that listens on a unix socket.

    :param path: the unix socket.
    :param timeout: seconds for all calls together.
    :raises grpc_unary.GrpcStatus: CRI refused; ``UNIMPLEMENTED``: the daemon runs without its CRI plugin.
    :raises grpc_unary.NoAnswer: nobody answered, or not in gRPC.
    :raises NotProtobuf: the answer is no Status.
    """
    deadline = time.monotonic() + timeout
    unknown: t.Optional[grpc_unary.GrpcStatus] = None
    for api_version in API_VERSIONS:
        service = "/runtime.%s.RuntimeService/" % api_version
        try:
            status = grpc_unary.call(path, service + "Status", _VERBOSE, _left(deadline, timeout))
        except grpc_unary.GrpcStatus as error:
            if error.code != grpc_unary.UNIMPLEMENTED or "service" not in error.message:
                raise
            unknown = unknown or error
            continue
        info = decode_status(status)
        try:
            version = grpc_unary.call(path, service + "Version", b"", _left(deadline, timeout))
            name, number = decode_version(version)
        except (grpc_unary.GrpcStatus, grpc_unary.NoAnswer, NotProtobuf):
            # Status is what counts; a daemon that stops between the two calls has still given it.
            name = number = ""
        return Answer(api_version, name, number, info)
    raise unknown or grpc_unary.GrpcStatus(grpc_unary.UNIMPLEMENTED, "unknown service")


def _left(deadline: float, timeout: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise grpc_unary.NoAnswer("timeout", "no answer within %g s" % round(timeout, 1))
    return left


# ---- protobuf (https://protobuf.dev/programming-guides/encoding/)


def _varint(data: bytes, pos: int) -> t.Tuple[int, int]:
    number = shift = 0
    while pos < len(data) and shift < 70:
        byte = data[pos]
        pos += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, pos
        shift += 7
    raise NotProtobuf("a number that does not end")


def fields(data: bytes) -> Fields:
    """Number and value of each field of a message, in order; a varint is an int, everything else bytes.

    :raises NotProtobuf: the bytes are no message.
    """
    found: Fields = []
    pos = 0
    while pos < len(data):
        tag, pos = _varint(data, pos)
        kind = tag & 7
        if tag >> 3 == 0:
            raise NotProtobuf("a field without number")
        if kind == 0:
            number, pos = _varint(data, pos)
            found.append((tag >> 3, number))
            continue
        if kind == 2:
            size, pos = _varint(data, pos)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise NotProtobuf("a field of unknown kind %d" % kind)
        if pos + size > len(data):
            raise NotProtobuf("a field that does not end")
        found.append((tag >> 3, data[pos : pos + size]))
        pos += size
    return found


def _text(value: t.Union[int, bytes]) -> str:
    if not isinstance(value, bytes):
        raise NotProtobuf("a number in place of a text")
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise NotProtobuf("a text that is no UTF-8") from None


def _message(value: t.Union[int, bytes]) -> Fields:
    if not isinstance(value, bytes):
        raise NotProtobuf("a number in place of a message")
    return fields(value)


def decode_version(data: bytes) -> t.Tuple[str, str]:
    """runtime_name and runtime_version of a VersionResponse.

    :raises NotProtobuf: it is none.
    """
    texts = {number: _text(value) for number, value in fields(data) if number in (2, 3)}
    return texts.get(2, ""), texts.get(3, "")


def decode_status(data: bytes) -> t.Dict[str, t.Any]:
    """A StatusResponse in the shape of ``crictl info``.

    :raises NotProtobuf: it is none.
    """
    answer: t.Dict[str, t.Any] = {}
    handlers = []
    for number, value in fields(data):
        if number == 1:
            answer["status"] = {"conditions": [_condition(inner) for key, inner in _message(value) if key == 1]}
        elif number == 2:
            entry = {key: _text(inner) for key, inner in _message(value)}
            answer[entry.get(1, "")] = _json_or_text(entry.get(2, ""))
        elif number == 3:
            handlers.append(_handler(value))
        elif number == 4:
            answer["features"] = _flags(value, {1: "supplemental_groups_policy"})
    if handlers:
        answer["runtimeHandlers"] = handlers
    if "status" not in answer:
        raise NotProtobuf("a status without conditions")
    return answer


def _json_or_text(text: str) -> t.Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _condition(value: t.Union[int, bytes]) -> t.Dict[str, t.Any]:
    condition: t.Dict[str, t.Any] = {"type": "", "status": False, "reason": "", "message": ""}
    for number, inner in _message(value):
        if number == 2:
            condition["status"] = bool(inner)
        elif number in (1, 3, 4):
            condition[{1: "type", 3: "reason", 4: "message"}[number]] = _text(inner)
    return condition


def _handler(value: t.Union[int, bytes]) -> t.Dict[str, t.Any]:
    handler: t.Dict[str, t.Any] = {}
    for number, inner in _message(value):
        if number == 1:
            handler["name"] = _text(inner)
        elif number == 2:
            handler["features"] = _flags(inner, {1: "recursive_read_only_mounts", 2: "user_namespaces"})
    return handler


def _flags(value: t.Union[int, bytes], names: t.Dict[int, str]) -> t.Dict[str, bool]:
    return {names[number]: True for number, inner in _message(value) if number in names and inner}
