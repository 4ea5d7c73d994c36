"""Real inputs, out of tests/cases and out of what the product itself expects.

What this proves: nothing by itself. Every corpus is read from files that tests of meaning use, so that the fuzzing starts where parsers
are in the middle of their work.
"""

from __future__ import annotations

import functools
import json
import pathlib
import struct
import typing as t

import yaml

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import hpack

CASES = pathlib.Path(__file__).resolve().parents[1] / "cases"
_LARGEST = 200_000


def _texts(pattern: str) -> list[str]:
    files = sorted(path for path in CASES.rglob(pattern) if path.is_file() and path.stat().st_size <= _LARGEST)
    return [path.read_bytes().decode("utf-8", "surrogateescape") for path in files]


@functools.cache
def tomls() -> list[str]:
    """Configurations of containerd."""
    return _texts("*.toml")


@functools.cache
def crio_tomls() -> list[str]:
    """Configurations of CRI-O."""
    return _texts("*.conf") + _texts("status-config.toml")


@functools.cache
def manifests() -> list[str]:
    """Manifests of RuntimeClasses, nodes and workloads."""
    return [text for text in _texts("*.yaml") if "kind" in text]


@functools.cache
def infos() -> list[t.Any]:
    """Answers of crictl info."""
    return [json.loads(text) for text in _texts("crictl-info.json")]


@functools.cache
def captures() -> list[pathlib.Path]:
    """Capture directories."""
    return sorted(path.parent for path in CASES.rglob("node.yml"))


@functools.cache
def objects() -> list[t.Any]:
    """Kubernetes objects, parsed."""
    found = [one for text in manifests() for one in yaml.safe_load_all(text) if isinstance(one, dict)]
    return [inner for one in found for inner in (one.get("items") if isinstance(one.get("items"), list) else [one])]


# protobuf and HTTP/2, written here by hand: the other side of the product's reader ---------------------------------------------------


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes([*made, number])


def field(number: int, value: t.Union[bytes, str, int, bool]) -> bytes:
    """One field of a protobuf message."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(int(value))
    data = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def status_message(info: dict[str, t.Any]) -> bytes:
    """The StatusResponse that crictl would have printed so (cri-api, api.proto)."""
    conditions = [field(1, field(1, str(one.get("type"))) + field(2, bool(one.get("status")))) for one in info.get("status", {}).get("conditions") or []]
    made = field(1, b"".join(conditions))
    for key, value in info.items():
        if key not in ("status", "runtimeHandlers", "features"):
            made += field(2, field(1, key) + field(2, json.dumps(value)))
    for handler in info.get("runtimeHandlers") or []:
        features = handler.get("features") or {}
        inner = field(1, bool(features.get("recursive_read_only_mounts"))) + field(2, bool(features.get("user_namespaces")))
        made += field(3, field(1, handler.get("name") or "") + field(2, inner))
    return made


@functools.cache
def status_messages() -> list[bytes]:
    """StatusResponse messages."""
    return [status_message(info) for info in infos()]


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def http2_answer(message: bytes) -> bytes:
    """Everything that a gRPC server sends for one call."""
    start = _frame(4, 0, 0, b"") + _frame(4, 1, 0, b"") + _frame(1, 4, 1, hpack.encode([(":status", "200"), ("content-type", "application/grpc")]))
    body = struct.pack(">BI", 0, len(message)) + message
    pieces = b"".join(_frame(0, 0, 1, body[at : at + 16000]) for at in range(0, len(body), 16000))
    return start + pieces + _frame(1, 5, 1, hpack.encode([("grpc-status", "0"), ("grpc-message", "")]))


@functools.cache
def http2_answers() -> list[bytes]:
    """Whole answers of a gRPC server, and one that refuses."""
    refusal = _frame(4, 0, 0, b"") + _frame(1, 5, 1, hpack.encode([(":status", "200"), ("grpc-status", "12"), ("grpc-message", "unknown service")]))
    return [http2_answer(message[:3000]) for message in status_messages()[:8]] + [refusal]
