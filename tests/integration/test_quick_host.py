"""The cheap node of the differential test is the node of host.py: each line's own program, the product's own capture, no guess about a slow start."""

from __future__ import annotations

import typing as t

import pytest

from tests.differential.quick_host import QuickHost, SlowStart
from tests.testbed.host import CONFIG, HostError
from tests.testbed.product import collect


@pytest.fixture(scope="module")
def host() -> t.Iterator[QuickHost]:
    """One node for all lines."""
    with QuickHost("1.7") as made:
        yield made


def _lay(host: QuickHost, line: str) -> None:
    host.reset(line)
    host.write(CONFIG, "version = 2\n")
    host.kubelet()


def test_each_line_has_its_own_program_and_answer(host: QuickHost) -> None:
    """Laid by links, also after another line and after an upgrade under the running daemon, which the product sees."""
    for line in ("1.7", "2.1", "1.7"):
        _lay(host, line)
        assert host.start(), host.log()
        assert host.cri()["version"]["runtimeVersion"].lstrip("v").startswith(line)
        capture = host.collect()
        assert capture["node"]["version"].lstrip("v").startswith(line) and "next_version" not in capture["node"]
    host.replace_binary("2.1")
    assert host.collect()["node"]["next_version"].lstrip("v").startswith("2.1")
    _lay(host, "1.7")
    assert host.run(["/usr/bin/containerd", "--version"]).stdout.split()[2].lstrip("v").startswith("1.7")


def test_the_forked_collector_brings_what_the_collector_brings(host: QuickHost) -> None:
    _lay(host, "2.1")
    assert host.start(), host.log()
    forked, plain = host.collect(), collect(host)
    for capture in (forked, plain):
        capture["node"].pop("collected_at")
    assert forked == plain


def test_a_daemon_that_lives_and_does_not_answer_is_no_answer(host: QuickHost, monkeypatch: pytest.MonkeyPatch) -> None:
    _lay(host, "2.1")
    monkeypatch.setattr(host, "_ask", lambda *_command, **_options: {"state": "down"})
    with pytest.raises(SlowStart):
        host.start(wait=0.5)


def test_a_daemon_that_ends_is_down(host: QuickHost) -> None:
    _lay(host, "2.1")
    host.write(CONFIG, "version = 9\n")
    assert not host.start()
    assert host.cri()["state"] == "down"


def test_a_traceback_of_the_collector_is_told(host: QuickHost) -> None:
    with pytest.raises(HostError, match="traceback"):
        host._collector.collect({"timeout": "no number"})
