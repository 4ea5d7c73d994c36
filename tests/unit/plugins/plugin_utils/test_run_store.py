"""What the workers of one run share, with real processes."""

from __future__ import annotations

import multiprocessing
import os
import stat
import time

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import RunStore

FORK = multiprocessing.get_context("fork")


def _ask(directory, results):
    def produce():
        with open(os.path.join(directory, "calls"), "a", encoding="utf-8") as stream:
            stream.write("x")
        time.sleep(0.05)
        return {"answer": [1, "ü"]}

    results.put(RunStore(directory).once("the same key", produce))


def test_eight_processes_ask_once(tmp_path):
    results = FORK.Queue()
    workers = [FORK.Process(target=_ask, args=(str(tmp_path), results)) for _number in range(8)]
    for worker in workers:
        worker.start()
    answers = [results.get(timeout=20) for _worker in workers]
    for worker in workers:
        worker.join()
    assert answers == [{"answer": [1, "ü"]}] * 8
    assert (tmp_path / "calls").read_text() == "x"


def _claim(directory, results):
    results.put(RunStore(directory).claim("the report"))


def test_exactly_one_of_eight_wins_a_claim(tmp_path):
    results = FORK.Queue()
    workers = [FORK.Process(target=_claim, args=(str(tmp_path), results)) for _number in range(8)]
    for worker in workers:
        worker.start()
    assert sorted(results.get(timeout=20) for _worker in workers) == [False] * 7 + [True]
    for worker in workers:
        worker.join()


def _die_while_asking(directory):
    RunStore(directory).once("key", lambda: os._exit(9))


def test_a_worker_that_dies_while_it_asks_leaves_no_lock_and_no_value(tmp_path):
    worker = FORK.Process(target=_die_while_asking, args=(str(tmp_path),))
    worker.start()
    worker.join()
    assert worker.exitcode == 9
    assert RunStore(str(tmp_path)).once("key", lambda: "asked again") == "asked again"


def test_an_error_of_the_input_is_asked_once_and_raised_for_everyone(tmp_path):
    store, calls = RunStore(str(tmp_path)), []

    def produce():
        calls.append(1)
        raise RuntimeGateError("the API refuses")

    for _host in range(3):
        with pytest.raises(RuntimeGateError, match="the API refuses"):
            store.once("key", produce)
    assert calls == [1]


def test_a_defect_is_not_remembered(tmp_path):
    store = RunStore(str(tmp_path))
    with pytest.raises(ZeroDivisionError):
        store.once("key", lambda: 1 // 0)
    assert store.once("key", lambda: 2) == 2


def test_other_keys_have_other_values(tmp_path):
    store = RunStore(str(tmp_path))
    assert [store.once(key, lambda key=key: key) for key in ("a", "b", "a/../b", "x" * 500)] == ["a", "b", "a/../b", "x" * 500]


def test_records_are_kept_by_kind_and_host_and_replaced(tmp_path):
    store = RunStore(str(tmp_path))
    store.put_record("one", "b/1", {"n": 1})
    store.put_record("one", "a", {"n": 2})
    store.put_record("two", "a", {"n": 3})
    store.put_record("one", "b/1", {"n": 4})
    assert list(store.records("one").items()) == [("a", {"n": 2}), ("b/1", {"n": 4})]
    assert store.records("two") == {"a": {"n": 3}}
    assert store.records("three") == {}
    assert store.has_record("one", "a") and not store.has_record("one", "c")


def test_nobody_else_can_read_it(tmp_path):
    store = RunStore(str(tmp_path))
    store.put_record("kind", "host", {})
    store.once("key", lambda: 1)
    store.claim("name")
    for folder, _folders, names in os.walk(tmp_path / "runtime_gate"):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        assert [name for name in names if stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) & 0o077] == []
