# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planned files under real daemons of each release: what they load is what the plan said, and removal gives it back."""

from __future__ import annotations

import itertools
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import interpret
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.plan import make_plan
from tests.testbed.host import CONFIG, ContainerdHost
from tests.unit import rendering_nodes as nodes

#: line of the test bed → the version whose rules the plan uses.
LINES = {"1.4": "1.4.13", "1.6": "1.6.20", "1.7": "1.7.24", "2.0": "2.0.11", "2.1": "2.1.9", "2.2": "2.2.7", "2.3.4": "2.3.4", "2.3": "2.3.7", "2.4": "2.4.0"}
ROOTS: t.Dict[str, t.Optional[str]] = {
    "version 2": nodes.VERSION_2,
    "version 3": nodes.VERSION_3,
    "version 4": nodes.VERSION_4,
    "short names": nodes.SHORT_NAMES,
    "no version": nodes.NO_VERSION,
    "both names": nodes.BOTH_NAMES,
    "new names in version 2": nodes.NEW_NAMES_2,
    "docker": nodes.DOCKER,
    "empty": nodes.EMPTY,
    "absent": None,
    "CRLF": nodes.VERSION_2.replace("\n", "\r\n"),
}
HANDLERS = {
    "nvidia": {"preset": "nvidia"},
    "runsc": {"preset": "gvisor"},
    "mine": {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/local/bin/mine", "SystemdCgroup": True}},
}
#: root files that this line does not take, whatever is written beside them
REFUSED = {("version 3", "1"), ("version 4", "1"), ("version 4", "2.0"), ("version 4", "2.1"), ("version 4", "2.2")}
CELLS = [
    (line, root)
    for line, root in itertools.product(LINES, ROOTS)
    if (root, line[0]) not in REFUSED and (root, line) not in REFUSED
]


@pytest.fixture(scope="module")
def hosts() -> t.Iterator[t.Dict[str, ContainerdHost]]:
    found: t.Dict[str, ContainerdHost] = {}
    yield found
    for host in found.values():
        host.close()


def plan_of(files: t.Mapping[str, str], line: str, **options: t.Any) -> t.Dict[str, t.Any]:
    capture = nodes.capture(files, LINES[line])
    return make_plan(capture, interpret(capture), dict(options, repair=True, allow_absent_binary=True))


def loaded(host: ContainerdHost, files: t.Mapping[str, str]) -> t.Tuple[t.Dict[str, t.Any], t.Optional[str]]:
    host.reset()
    host.write_tree(files)
    assert host.start(), host.log()[-2000:]
    found = host.handlers(), host.default_handler()
    host.stop()
    return found


@pytest.mark.parametrize(("line", "root"), CELLS, ids=lambda value: value.replace(" ", "-"))
def test_planned_files_load_what_was_declared(line: str, root: str, hosts: t.Dict[str, ContainerdHost]) -> None:
    host = hosts[line] if line in hosts else hosts.setdefault(line, ContainerdHost(line))
    text = ROOTS[root]
    first = {} if text is None else {CONFIG: text}
    before, default_before = loaded(host, first)
    files = nodes.after(first, plan_of(first, line, handlers=HANDLERS))
    handlers, default = loaded(host, files)
    assert set(handlers) >= set(HANDLERS) | set(before)
    assert default == (default_before or "runc")
    if line != "1.4":
        assert handlers["mine"]["options"]["BinaryName"] == "/usr/local/bin/mine"
        assert handlers["mine"]["options"]["SystemdCgroup"] is True
    assert handlers["runsc"]["runtimeType"] == "io.containerd.runsc.v1"

    files = nodes.after(files, plan_of(files, line, handlers=HANDLERS, default_handler="mine"))
    assert loaded(host, files)[1] == "mine"
    assert plan_of(files, line, handlers=HANDLERS, default_handler="mine")["writes"] == []

    files = nodes.after(files, plan_of(files, line, remove=True))
    again, default_again = loaded(host, files)
    if before:
        assert set(again) >= set(before)
        assert default_again == default_before
    assert not set(again) & set(HANDLERS)


FOREIGN = "/etc/containerd/conf.d/50-other.toml"
IMPORTS = 'imports = ["/etc/containerd/conf.d/*.toml"]\n'


def everything(host: ContainerdHost, files: t.Mapping[str, str]) -> t.Dict[str, t.Any]:
    """All that the daemon tells of its CRI configuration."""
    host.reset()
    host.write_tree(files)
    assert host.start(), host.log()[-2000:]
    config = host.cri()["info"]["config"]
    warnings = [line for line in host.log().splitlines() if "nknown key" in line]
    host.stop()
    return {"config": config, "warnings": warnings}


@pytest.mark.parametrize("line", [line for line in LINES if not line.startswith("1.")])
@pytest.mark.parametrize("root", ["version 2", "short names"])
def test_migration_is_the_same_to_the_daemon(line: str, root: str, hosts: t.Dict[str, ContainerdHost]) -> None:
    host = hosts[line] if line in hosts else hosts.setdefault(line, ContainerdHost(line))
    text = str(ROOTS[root])
    foreign = "version = 2\n# of another tool\n" + nodes.handler(nodes.OLD, "other", "  privileged_without_host_devices = true\n")
    files = {CONFIG: IMPORTS + text, FOREIGN: foreign}
    files = nodes.after(files, plan_of(files, line, handlers=HANDLERS))
    before = everything(host, files)
    plan = plan_of(files, line, handlers=HANDLERS, migrate=3)
    position = [write["path"] for write in plan["writes"]].index(CONFIG)
    # The moment after the commit, when the old drop-ins are still there, and the end.
    for writes in (plan["writes"][: position + 1], plan["writes"]):
        files_then = nodes.after(files, {"writes": writes})
        assert everything(host, files_then)["config"] == before["config"]
    done = nodes.after(files, plan)
    assert everything(host, done)["warnings"] == []
    assert "version = 2" not in "".join(done.values())
    assert plan_of(done, line, handlers=HANDLERS, migrate=3)["writes"] == []


@pytest.mark.parametrize("line", LINES)
def test_drop_ins_of_others_stay_in_force(line: str, hosts: t.Dict[str, ContainerdHost]) -> None:
    host = hosts[line] if line in hosts else hosts.setdefault(line, ContainerdHost(line))
    foreign = "version = 2\n" + nodes.handler(nodes.OLD, "runc") + nodes.handler(nodes.OLD, "other")
    first = {CONFIG: IMPORTS + nodes.VERSION_2, FOREIGN: foreign}
    before = loaded(host, first)
    files = nodes.after(first, plan_of(first, line, handlers=HANDLERS, default_handler="mine"))
    handlers, default = loaded(host, files)
    assert set(handlers) == set(before[0]) | set(HANDLERS)
    assert default == "mine"
    assert "other" in handlers
    files = nodes.after(files, plan_of(files, line, remove=True))
    assert files == first


@pytest.mark.parametrize("line", ["2.0", "2.1", "2.2", "2.3"])
def test_a_handlers_snapshotter_does_not_stop_cri(line: str, hosts: t.Dict[str, ContainerdHost]) -> None:
    host = hosts[line] if line in hosts else hosts.setdefault(line, ContainerdHost(line))
    first = {CONFIG: nodes.VERSION_3}
    declared = {"mine": dict(HANDLERS["mine"], snapshotter="native")}
    files = nodes.after(first, plan_of(first, line, handlers=declared))
    assert loaded(host, files)[0]["mine"]["snapshotter"] == "native"
