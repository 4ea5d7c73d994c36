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
    host = hosts.setdefault(line, ContainerdHost(line)) if line not in hosts else hosts[line]
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
