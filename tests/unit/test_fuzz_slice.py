"""A slice of `make fuzz` for every run of the unit tests, what it once found, and the fuzzer seen to find.

What this proves: that none of the first inputs of each parser makes it fall, and that an error, a hang and a hunger for memory would each
be told.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import time
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import documents, go_glob
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import interpret, interpret_dump
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.loaded import read_status
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import grpc_unary, hpack, kubelet, secrets
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.reports.drift import read_report
from tests.fuzz import __main__ as command
from tests.fuzz import corpus, mutate, targets
from tests.unit.rendering_nodes import CONFIG, capture


@pytest.mark.parametrize("name", targets.TARGETS)
def test_the_first_inputs(name: str) -> None:
    for number in range(12):
        assert command.one(targets.TARGETS[name], targets.make(name, 1, number)) == "", f"python -m tests.fuzz --input {name}:1:{number}"


def test_an_input_has_a_name_for_ever() -> None:
    for name in targets.TARGETS:
        assert repr(targets.make(name, 3, 4)) == repr(targets.make(name, 3, 4))
    assert targets.make("toml-scan", 3, 4) != targets.make("toml-scan", 3, 5)


def test_every_corpus_has_real_inputs() -> None:
    made = (corpus.tomls(), corpus.crio_tomls(), corpus.manifests(), corpus.infos(), corpus.captures(), corpus.objects(), corpus.status_messages())
    assert all(len(each) >= 3 for each in made), [len(each) for each in made]


def test_damage_leaves_the_original_alone() -> None:
    value = {"a": [1, {"b": "c"}]}
    for number in range(200):
        mutate.tree(random.Random(number), value)
    assert value == {"a": [1, {"b": "c"}]}


# the fuzzer finds ------------------------------------------------------------------------------------------------------------------------


def _raise(error: BaseException) -> t.Callable[[t.Any], t.NoReturn]:
    def run(_value: t.Any) -> t.NoReturn:
        raise error

    return run


def _spin(_value: t.Any) -> None:
    while True:
        pass


def test_an_error_that_is_not_the_parsers_own_is_told() -> None:
    allowed = targets.Target(random.Random.random, _raise(RuntimeGateError("x")), (RuntimeGateError,))
    silent = targets.Target(random.Random.random, _raise(RuntimeGateError()), (RuntimeGateError,))
    other = targets.Target(random.Random.random, _raise(KeyError("x")), (RuntimeGateError,))
    assert command.one(allowed, None) == ""
    assert command.one(silent, None) == "a RuntimeGateError without a word"
    assert command.one(other, None).startswith("KeyError")


def test_a_parser_that_spins_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "SECONDS_PER_INPUT", 0.2)
    assert command.one(targets.Target(random.Random.random, _spin), None).startswith("more than 0.2 s")


def _session(monkeypatch: pytest.MonkeyPatch, run: t.Callable[[t.Any], t.Any]) -> command.Session:
    monkeypatch.setitem(targets.TARGETS, "x", targets.Target(lambda _rng: None, run))
    session = command.Session(argparse.Namespace(only=["x"], time=20.0, seed=1, most=5))
    session.run()
    return session


def test_a_session_counts_what_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    session = _session(monkeypatch, lambda _value: None)
    assert (session.counts["x"], session.findings, session.report()) == (5, [], True)


def test_a_hunger_for_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    session = _session(monkeypatch, lambda _value: bytearray(command.MEMORY))
    assert session.findings[0].what.startswith("MemoryError")
    assert not session.report()


def test_a_parser_that_does_not_come_back_to_python_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "WALL_SECONDS", 0.5)
    session = _session(monkeypatch, lambda _value: time.sleep(30))
    assert "no sign of life" in session.findings[0].what


# what it found -------------------------------------------------------------------------------------------------------------------------


def test_a_lone_surrogate_in_a_dump() -> None:
    with pytest.raises(RuntimeGateError, match="the dump"):
        interpret_dump("[x\ud800")


def test_tables_that_are_nested_without_end() -> None:
    text = "version = 3\n" + "a." * 3000 + "b = 1\n"
    begun = time.process_time()
    document = documents.Document("f", text)
    assert document.tree is None and "nested" in str(document.error)
    assert document.declarations == []
    assert interpret(capture({CONFIG: text}, "2.1.9"))["handlers"] == {}
    assert time.process_time() - begun < 2  # tomllib alone takes ten times as long for one such key
    assert documents.Document("f", "a." * 60 + "b = 1\n").tree is not None
    assert documents.Document("f", 'x = "%s"\n' % ("a." * 100)).tree is not None


def test_many_stars_take_no_longer_than_few() -> None:
    begun = time.process_time()
    assert go_glob.glob("/x/" + "*a" * 200 + "b", ["/x/" + "a" * 250]) == []
    assert go_glob.glob("/x/" + "*a" * 100 + "*", ["/x/" + "a" * 250]) == ["/x/" + "a" * 250]
    assert time.process_time() - begun < 2


def test_blanks_without_end_in_a_kubelets_configuration(tmp_path: t.Any) -> None:
    (tmp_path / "k.yaml").write_bytes(b"cgroupDriver: x" + b" \t" * 50000 + b"y\ncontainerRuntimeEndpoint: 'unix:///a' # b\n")
    begun = time.process_time()
    found = kubelet.describe(1, ["kubelet", "--config=/k.yaml"], {}, str(tmp_path))
    assert (found.endpoint, str(found.cgroup_driver)[:1]) == ("unix:///a", "x")
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b"cgroupDriver: systemd", "systemd"),
        (b"cgroupDriver:\tsystemd\t# c", "systemd"),
        (b"'cgroupDriver': \"systemd\"  # c", "systemd"),
        (b"cgroupDriver: 'systemd'\r", "systemd"),
        (b"cgroupDriver: systemd\r", "systemd"),
        (b"cgroupDriver: 'system", None),
        (b"cgroupDriver: 'a' b", None),
        (b"cgroupDriver: # c", None),
        (b"cgroupDriver:systemd", None),
        (b"  cgroupDriver: systemd", None),
    ],
)
def test_scalars_of_a_kubelets_configuration(tmp_path: t.Any, line: bytes, value: str | None) -> None:
    (tmp_path / "k.yaml").write_bytes(b"a: b\n" + line + b"\nc: d\n")
    assert kubelet.describe(1, ["kubelet", "--config=/k.yaml"], {}, str(tmp_path)).cgroup_driver == value


@pytest.mark.parametrize("status", ["\u00b2", "9" * 5000, "-1", ""])
def test_a_grpc_status_that_is_no_number(status: str) -> None:
    path, answer = targets._socket()
    octets = status.encode()
    block = hpack.encode([(":status", "200"), ("grpc-status", "")])[:-1] + hpack._encode_length(len(octets)) + octets
    answer[0] = corpus._frame(4, 0, 0, b"") + corpus._frame(1, 5, 1, block)
    with pytest.raises(grpc_unary.NoAnswer, match="without a gRPC status"):
        grpc_unary.call(path, "/x/y", b"", 5)


@pytest.mark.parametrize("text", ['{"schema": 1, "hosts": [%s]}' % host for host in ("5", "{}", '{"node": null, "host": "a"}')] + ["[" * 5000])
def test_an_earlier_report_that_is_none(tmp_path: t.Any, text: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(RuntimeGateError, match="runtime_gate_previous_report"):
        read_report(str(path), 1)


def test_blank_lines_without_end() -> None:
    begun = time.process_time()
    with pytest.raises(secrets.Withheld):
        secrets.Masker().toml("a = [\n" + "\n" * 60000 + "password\n")
    with contextlib.suppress(secrets.Withheld):
        secrets.Masker().toml("[a\n" + "\n" * 60000)
    assert time.process_time() - begun < 3


def test_a_handler_in_an_answer_whose_name_is_none() -> None:
    handlers = [{"name": {}, "features": {}}, {"name": "runc", "features": {}}]
    loaded = read_status({"status": {}, "config": {"containerd": {"runtimes": {"runc": {}}}}, "runtimeHandlers": handlers})
    assert loaded is not None and loaded.features == {"runc": {}}
