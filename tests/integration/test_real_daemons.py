"""The facts of the real module against the answer of real daemons, on every release line of containerd.

What this proves: on containerd 1.4 to 2.4, each a real daemon with its own files, root, state and socket, the module
containerd_runtime_facts (run through ansible on that node) says what the daemon itself says over CRI to an independent client:
with crictl, without one, with one that is broken; edited but not restarted; upgraded but not restarted; with a dead CRI plugin;
with a daemon that will not start again, and that has not started again. What it foretells for a restart is compared with a restart.
(Three situations run the module's two halves without ansible around them, to save its seconds.)
"""

from __future__ import annotations

import json
import re
import time
import typing as t
from dataclasses import dataclass

import pytest

from tests.integration.loading_scenarios import NEW, OLD, SHORT, text
from tests.integration.real_module import module_facts
from tests.testbed.host import CONFIG, ContainerdHost
from tests.testbed.product import collect, interpret
from tests.testbed.tools import LINES, PYTHON_LINES, tool

CRICTL = "/usr/local/bin/crictl"
MARK = "/run/tripwire"
TRIPWIRE = f'#!/bin/sh\necho "$0 $*" >> {MARK}\nexit 1\n'
OUT_OF_PATH = ("/opt/cni/bin/crictl", "/srv/crictl", "/crictl", "/var/lib/crictl")


@dataclass(frozen=True)
class Upgrade:
    """A release line whose files mean something else to another one."""

    to: str
    tree: str
    lost: tuple[str, ...]
    gained: tuple[str, ...]


def _first(version: int | None, plugin: str) -> str:
    return text(version, (plugin, "runc foo"))


UPGRADES = {
    "1.4": Upgrade("1.6", text(2, (OLD, "foo")), ("foo", "runc"), ()),
    "1.6": Upgrade("1.7", _first(3, OLD), ("foo", "runc"), ()),
    "1.7": Upgrade("2.1", _first(None, SHORT), ("foo",), ()),
    "2.0": Upgrade("2.3", _first(3, OLD), (), ("foo",)),
    "2.1": Upgrade("2.4", _first(None, OLD), (), ("foo",)),
    "2.2": Upgrade("2.4", _first(1, SHORT), (), ("foo",)),
    "2.3": Upgrade("2.2", _first(4, NEW), ("foo", "runc"), ()),
    "2.4": Upgrade("2.1", _first(3, OLD), ("foo",), ()),
}
"""Line that runs -> binary laid over it, files, and what a restart would then take away and add (the last two lines go back)."""


@pytest.fixture(scope="module", params=LINES)
def host(request: pytest.FixtureRequest) -> t.Iterator[ContainerdHost]:
    """One node per release line."""
    with ContainerdHost(request.param) as made:
        yield made


@pytest.fixture
def node(host: ContainerdHost) -> ContainerdHost:
    """The node with handlers of every kind, what they need to run, and a kubelet; the daemon is not started."""
    host.reset()
    host.path(CRICTL).unlink(missing_ok=True)
    host.install(tool("runc"), "/usr/sbin/runc")
    for shim in ("runc", "kata", "foo"):
        host.install_script(f"/usr/local/bin/containerd-shim-{shim}-v2", "#!/bin/sh\nexit 1\n")
    host.install_script("/opt/bin/mine", '#!/bin/sh\nexec runc "$@"\n')
    host.write(CONFIG, full_configuration())
    host.write("/var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\ncgroupDriver: systemd\n")
    host.kubelet()
    return host


def full_configuration() -> str:
    """Handlers with options, a shim of its own, a default that is not runc; loaded by every line."""
    runtimes = f"{OLD}.containerd.runtimes"
    return f"""version = 2
[{OLD}.containerd]
  default_runtime_name = "mine"
[{runtimes}.runc]
  runtime_type = "io.containerd.runc.v2"
  [{runtimes}.runc.options]
    SystemdCgroup = true
[{runtimes}.mine]
  runtime_type = "io.containerd.runc.v2"
  privileged_without_host_devices = true
  [{runtimes}.mine.options]
    BinaryName = "/opt/bin/mine"
    SystemdCgroup = true
[{runtimes}.kata]
  runtime_type = "io.containerd.kata.v2"
"""


def assert_equal(host: ContainerdHost, facts: dict[str, t.Any]) -> None:
    """Facts and daemon say the same: served, default, handlers, their types and options, version."""
    answer = host.cri()
    served = answer["state"] == "served"
    assert facts["cri_ready"] is served
    loaded = answer["info"]["config"]["containerd"] if served else {"runtimes": {}, "defaultRuntimeName": None}
    assert facts["default_handler"] == loaded["defaultRuntimeName"]
    assert {name: handler["runtime_type"] for name, handler in facts["handlers"].items()} == {
        name: runtime["runtimeType"] for name, runtime in loaded["runtimes"].items()
    }
    if host.line != "1.4":  # 1.4 shows options nowhere; there the facts have them from the files
        for name, runtime in loaded["runtimes"].items():
            assert facts["handlers"][name]["options"] == (runtime.get("options") or {}), name
    if served:
        assert answer["version"]["runtimeVersion"].lstrip("v").startswith(facts["version"].lstrip("v"))
        assert facts["evidence"] == "loaded"
        features = {entry["name"]: "features" in entry for entry in answer.get("runtime_handlers", [])}
        for name in set(features) - {""}:
            assert (facts["handlers"][name]["features"] is not None) is features[name], name


def start(host: ContainerdHost) -> None:
    """Starts the daemon and makes sure that it serves CRI."""
    assert host.start(), host.log()
    assert host.cri()["state"] == "served", host.log()


class Check:
    """Notes for the table whether the body of a test held."""

    def __init__(self, table: dict[tuple[str, str], bool], line: str, situation: str) -> None:
        self.table, self.key = table, (line, situation)

    def __enter__(self) -> None:
        self.table[self.key] = False

    def __exit__(self, kind: object, *_rest: object) -> None:
        self.table[self.key] = kind is None


def test_with_crictl(node: ContainerdHost, equal_table: dict[tuple[str, str], bool]) -> None:
    """crictl is on PATH: the same answer, and the facts say so by being complete."""
    with Check(equal_table, node.line, "with crictl"):
        node.install(tool("crictl"), CRICTL)
        start(node)
        facts = module_facts(node)
        assert_equal(node, facts)
        assert sorted(facts["handlers"]) == ["kata", "mine", "runc"]
        assert facts["serves_kubelet"] is True and facts["restart_pending"] is False
        assert facts["release_line"] == node.line


def test_without_crictl(node: ContainerdHost, equal_table: dict[tuple[str, str], bool]) -> None:
    """crictl is taken from PATH; the ones that lie elsewhere leave a mark when they are executed, and none is."""
    with Check(equal_table, node.line, "without crictl"):
        for path in OUT_OF_PATH:
            node.install_script(path, TRIPWIRE)
        start(node)
        facts = module_facts(node)
        assert_equal(node, facts)
        assert not node.path(MARK).exists(), node.path(MARK).read_text()


def test_the_tripwire_leaves_a_mark(node: ContainerdHost) -> None:
    """The mark of the test above can appear at all."""
    node.install_script("/srv/crictl", TRIPWIRE)
    node.run(["/srv/crictl", "info"])
    assert node.path(MARK).read_text() == "/srv/crictl info\n"


def test_with_a_broken_crictl(node: ContainerdHost, equal_table: dict[tuple[str, str], bool]) -> None:
    """A crictl that fails does not decide anything: CRI is asked all the same."""
    with Check(equal_table, node.line, "broken crictl"):
        node.install_script(CRICTL, TRIPWIRE)
        start(node)
        assert_equal(node, interpret(collect(node)))


def test_edited_but_not_restarted(node: ContainerdHost, equal_table: dict[tuple[str, str], bool]) -> None:
    """What is loaded stays; a restart would add one handler and take one away, and then does."""
    with Check(equal_table, node.line, "edited"):
        start(node)
        node.write(CONFIG, full_configuration().replace("kata", "foo"))
        facts = module_facts(node)
        assert_equal(node, facts)
        assert facts["restart_pending"] is True
        assert (facts["restart_gains"], facts["restart_loses"], facts["lost"]) == (["foo"], ["kata"], ["foo"])
        assert any(fault["id"] == 1 and "foo" in fault["handlers"] for fault in facts["faults"])
        assert node.restart()
        assert sorted(facts["layers"]["next"]["handlers"]) == sorted(node.handlers())
        assert facts["layers"]["next"]["default_handler"] == node.default_handler()


def test_upgraded_but_not_restarted(node: ContainerdHost, equal_table: dict[tuple[str, str], bool]) -> None:
    """The running daemon is judged by its own version, the next one by the binary on disk; a restart proves both."""
    upgrade = UPGRADES[node.line]
    with Check(equal_table, node.line, "upgraded"):
        node.write(CONFIG, upgrade.tree)
        start(node)
        before = sorted(node.handlers())
        node.replace_binary(upgrade.to)
        facts = module_facts(node)
        assert_equal(node, facts)
        assert facts["version"].lstrip("v").startswith(node.line) and facts["next_version"].lstrip("v").startswith(upgrade.to)
        assert (tuple(facts["restart_loses"]), tuple(facts["restart_gains"])) == (upgrade.lost, upgrade.gained)
        node.restart()
        after = sorted(node.handlers())
        assert after == sorted((set(before) - set(upgrade.lost)) | set(upgrade.gained))


def test_dead_cri_plugin(node: ContainerdHost, equal_table: dict[tuple[str, str], bool]) -> None:
    """containerd runs, CRI does not: nothing is loaded, whatever the dump prints, and every handler written is named."""
    with Check(equal_table, node.line, "dead CRI plugin"):
        node.write(CONFIG, full_configuration().replace('default_runtime_name = "mine"', 'default_runtime_name = "nowhere"'))
        assert node.start(), node.log()
        assert node.cri()["state"] == "unimplemented"
        facts = module_facts(node)
        assert_equal(node, facts)
        assert facts["handlers"] == {} and facts["evidence"] == "next"
        assert {"kata", "mine", "runc"} <= {name for fault in facts["faults"] for name in fault["handlers"]}


def test_will_not_start_again(node: ContainerdHost, equal_table: dict[tuple[str, str], bool]) -> None:
    """Loaded now, all lost at the next restart; on most lines `config dump` still says that all is well."""
    with Check(equal_table, node.line, "will not start again"):
        start(node)
        node.write(CONFIG, full_configuration() + "[half written\n")
        facts = module_facts(node)
        assert_equal(node, facts)
        assert facts["restart_loses"] == ["kata", "mine", "runc"] and facts["healthy"] is False
        assert any(fault["severity"] == "error" for fault in facts["faults"])
        assert node.restart() is False


def test_missing_import_that_the_dump_hides(node: ContainerdHost, equal_table: dict[tuple[str, str], bool]) -> None:
    """A literal import that is gone: 1.4 starts without the later files, every other line does not start; dump of 2.x exits 0."""
    with Check(equal_table, node.line, "missing import"):
        start(node)
        node.write(CONFIG, 'imports = ["/etc/containerd/gone.toml"]\n' + full_configuration())
        facts = interpret(collect(node))
        assert_equal(node, facts)
        came_up = node.restart()
        assert came_up is (node.line == "1.4")
        assert facts["restart_loses"] == ([] if came_up else ["kata", "mine", "runc"])
        assert (node.dump()[0] == 0) is (node.line not in ("1.6", "1.7"))


def test_does_not_run(node: ContainerdHost, equal_table: dict[tuple[str, str], bool]) -> None:
    """The daemon has not come up again: cri_ready is false, nothing is loaded, the handlers written are lost and named."""
    with Check(equal_table, node.line, "does not run"):
        node.write(CONFIG, full_configuration() + "[half written\n")
        assert node.start() is False
        facts = module_facts(node)
        assert_equal(node, facts)
        assert facts["handlers"] == {} and facts["default_handler"] is None and facts["evidence"] in ("next", "none")
        assert facts["healthy"] is False


def test_a_socket_that_hangs(node: ContainerdHost, equal_table: dict[tuple[str, str], bool]) -> None:
    """The daemon is stopped in its tracks (SIGSTOP): cri_ready is null, not false, within the time-out."""
    with Check(equal_table, node.line, "hangs"):
        start(node)
        node.pause()
        try:
            begun = time.monotonic()
            facts = interpret(collect(node, {"timeout": 2}))
            assert facts["cri_ready"] is None
            assert time.monotonic() - begun < 20
        finally:
            node.resume()
        assert_equal(node, interpret(collect(node)))


@pytest.mark.parametrize("version", PYTHON_LINES)
def test_node_half_under_old_interpreters(node: ContainerdHost, version: str) -> None:
    """The node half gives the same facts under Debian's interpreters as under this one."""
    start(node)
    facts = interpret(collect(node, python=str(tool(f"python-{version}"))))
    assert_equal(node, facts)
    reference = interpret(collect(node))
    assert _timeless(facts) == _timeless(reference)


def _timeless(facts: dict[str, t.Any]) -> dict[str, t.Any]:
    """Facts without the moment: that of the collection, and those in the log lines that the dump of 2.3 and later prints."""
    kept = {key: value for key, value in facts.items() if key != "collected_at"}
    return json.loads(re.sub(r'\bt(?:ime)?=\\"[^"]*\\"', "", json.dumps(kept)))
