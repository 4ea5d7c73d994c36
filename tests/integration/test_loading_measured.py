"""LOADING.md sections 1a, 1b, 2, 2a, 2b and 3, measured again on real daemons of every release line of the test bed.

What this proves: that the rules which the product's predictor is built on hold for the very binaries in the test bed, among them
containerd 2.4 and the newest 2.3, which are newer than LOADING.md's own measurements. The product has no part in it: files are
laid, a real daemon is started on them, and an independent CRI client says what was loaded. About 75 daemon starts a line.
"""

from __future__ import annotations

import typing as t

import pytest

from tests.integration import loading_scenarios as scenarios
from tests.integration.loading_expected import ALL, EXPECTED
from tests.testbed.host import CONFIG, ContainerdHost

GROUPS: dict[str, dict[str, dict[str, str]]] = {
    "MAIN": scenarios.MAIN,
    "PAIR": scenarios.PAIR,
    "MERGE": scenarios.MERGE,
    "IMPORT": scenarios.IMPORT,
}
LINES = ALL.split()


@pytest.fixture(scope="module", params=LINES)
def host(request: pytest.FixtureRequest) -> t.Iterator[ContainerdHost]:
    """One node per release line; each scenario resets it."""
    with ContainerdHost(request.param) as made:
        yield made


def expected(group: str, name: str, line: str) -> str:
    """The outcome that the table has for a line."""
    (found,) = [outcome for outcome, lines in EXPECTED[group, name].items() if line in lines.split()]
    return found


def test_every_scenario_has_one_outcome_for_every_line() -> None:
    """The table is complete: a scenario without an expectation would go unmeasured."""
    assert set(EXPECTED) == {(group, name) for group, trees in GROUPS.items() for name in trees}
    for outcomes in EXPECTED.values():
        assert sorted(line for lines in outcomes.values() for line in lines.split()) == sorted(LINES)


@pytest.mark.parametrize("group", GROUPS)
def test_outcomes(host: ContainerdHost, group: str) -> None:
    """Every scenario of the group ends as the table says."""
    measured = {name: scenarios.outcome(host, tree) for name, tree in GROUPS[group].items()}
    assert measured == {name: expected(group, name, host.line) for name in GROUPS[group]}


def _loaded(host: ContainerdHost, first: str, second: str, version: int) -> dict[str, t.Any]:
    host.reset()
    host.write_tree(scenarios.same(first, second, version))
    assert host.start(), host.log()
    return host.cri()["info"]["config"]


RUNC = '[@.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'


def test_a_later_false_and_a_later_empty_array_win_inside_a_plugin(host: ContainerdHost) -> None:
    """Section 2: 2.x merges deeply, zero values included; 1.x replaces the whole section of the plugin."""
    first = "[@]\nenable_selinux = true\n" + RUNC + 'pod_annotations = ["a", "b"]\nprivileged_without_host_devices = true\n'
    second = "[@]\nenable_selinux = false\n[@.containerd.runtimes.runc]\npod_annotations = []\n"
    if host.line.startswith("1."):
        second += 'runtime_type = "io.containerd.runc.v2"\n'
    found = _loaded(host, first, second, 2)
    runc = found["containerd"]["runtimes"]["runc"]
    assert found["enableSelinux"] is False
    assert not runc["PodAnnotations"]
    assert runc["runtimeType"] == "io.containerd.runc.v2"
    assert runc["privileged_without_host_devices"] is (not host.line.startswith("1."))


def test_arrays_are_replaced_not_appended(host: ContainerdHost) -> None:
    """Section 2: the later array is the whole array, on every line."""
    second = RUNC + 'pod_annotations = ["c"]\n'
    found = _loaded(host, RUNC + 'pod_annotations = ["a", "b"]\n', second, 2)
    assert found["containerd"]["runtimes"]["runc"]["PodAnnotations"] == ["c"]


def test_options_reach_the_default_runc_without_its_type(host: ContainerdHost) -> None:
    """Section 2: options alone keep runtime_type on 2.x, and make a handler without a type on 1.x."""
    host.reset()
    host.write(CONFIG, f"version = 2\n[{scenarios.OLD}.containerd.runtimes.runc.options]\nSystemdCgroup = true\n")
    assert host.start(), host.log()
    runc = host.handlers()["runc"]
    if host.line.startswith("1."):
        assert runc["runtimeType"] == ""
    else:
        assert runc["runtimeType"] == "io.containerd.runc.v2"
    if host.line != "1.4":
        assert runc["options"]["SystemdCgroup"] is True


def test_hang_up_ends_the_daemon(host: ContainerdHost) -> None:
    """Section 4: containerd has no reload; SIGHUP kills it on every line."""
    host.reset()
    assert host.start(), host.log()
    host.kill(1)
    assert not host.running()


def test_a_dump_reads_the_disk_and_status_the_daemon(host: ContainerdHost) -> None:
    """Section 4: after an edit the dump changes and Status does not."""
    host.reset()
    host.write(CONFIG, scenarios.text(2, (scenarios.OLD, "runc before")))
    assert host.start(), host.log()
    host.write(CONFIG, scenarios.text(2, (scenarios.OLD, "runc after")))
    assert sorted(host.handlers()) == ["before", "runc"]
    code, dump, _errors = host.dump()
    assert code == 0 and "after" in dump and "before" not in dump
