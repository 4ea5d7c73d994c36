"""The facts of the real module against the answer of real CRI-O daemons, on two release lines.

What this proves: on CRI-O 1.34 and 1.36, each a real daemon with its own files, root and socket, the module crio_runtime_facts
(run through ansible on that node) says what the daemon itself says to an independent client over CRI, in ``crio status config``, and
in the words in which it refuses a sandbox of a handler that does not exist: edited but not restarted, upgraded but not restarted, dead,
unable to start again, hanging, after a SIGHUP that worked, after one that failed, and after the restart that mends both. What the
facts foretell for a restart is compared with a restart. A daemon that is sane has no fault.
(Some situations run the module's two halves without ansible around them, to save its seconds.)
"""

from __future__ import annotations

import time
import typing as t

import pytest

from tests.integration.real_module import module_facts
from tests.testbed.crio_host import CONFIG, CONFIG_DIR, CrioHost
from tests.testbed.product import collect, interpret
from tests.testbed.tools import CRIO_LINES, tool

UPGRADES = {"1.34": "1.36", "1.36": "1.34"}
"""Line that runs -> the one laid over it on disk."""
MINE = "/opt/bin/mine"
KATA = "/opt/kata/bin/containerd-shim-kata-v2"
DROP_IN = CONFIG_DIR + "/50-handlers.conf"

Facts = dict[str, t.Any]
Table = dict[tuple[str, str], bool]


@pytest.fixture(scope="module", params=CRIO_LINES)
def host(request: pytest.FixtureRequest) -> t.Iterator[CrioHost]:
    """One node per release line."""
    with CrioHost(request.param) as made:
        yield made


@pytest.fixture
def node(host: CrioHost) -> CrioHost:
    """The node with handlers of every kind, what they need to run, and a kubelet; the daemon is not started."""
    host.reset()
    host.install(tool("runc"), MINE)
    host.install_script(KATA, "#!/bin/sh\nexit 1\n")
    host.write(CONFIG, '[crio.runtime]\ndefault_runtime = "mine"\n')
    host.write(CONFIG_DIR + "/10-crio.conf", '[crio.runtime.runtimes.runc]\nruntime_path = "/usr/bin/runc"\nruntime_root = "/run/runc"\n')
    host.write(DROP_IN, handlers("kata"))
    host.write("/var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\ncgroupDriver: cgroupfs\n")
    host.kubelet()
    return host


def handlers(vm: str) -> str:
    """A handler of type oci with everything that it can have, and one of type vm under this name."""
    return f"""[crio.runtime.runtimes.mine]
runtime_path = "{MINE}"
runtime_type = "oci"
runtime_root = "/run/mine"
monitor_env = ["A=b"]
allowed_annotations = ["io.kubernetes.cri-o.ShmSize"]
[crio.runtime.runtimes.{vm}]
runtime_path = "{KATA}"
runtime_type = "vm"
privileged_without_host_devices = true
"""


class Check:
    """Notes for the table whether the body of a test held."""

    def __init__(self, table: Table, host: CrioHost, situation: str) -> None:
        self.table, self.key = table, (f"crio {host.line}", situation)

    def __enter__(self) -> None:
        self.table[self.key] = False

    def __exit__(self, kind: object, *_rest: object) -> None:
        self.table[self.key] = kind is None


def module(host: CrioHost) -> Facts:
    """The facts by the real module."""
    return module_facts(host, module="crio_runtime_facts", fact="crio_runtime")


def halves(host: CrioHost, **options: t.Any) -> Facts:
    """The facts by the two halves of the module, without ansible."""
    return interpret(collect(host, {"engine": "crio", **options}))


def start(host: CrioHost) -> None:
    """Starts the daemon and makes sure that it serves CRI."""
    assert host.start(), host.log()[-3000:]


def assert_equal(host: CrioHost, facts: Facts) -> None:
    """Facts and daemon say the same: served, default, the handlers that sandboxes can have, their keys, the version."""
    answer = host.cri()
    served = answer["state"] == "served"
    assert facts["engine"] == "crio" and facts["cri_ready"] is served
    usable = host.usable_handlers() if served else []
    assert sorted(facts["handlers"]) == usable
    assert facts["default_handler"] == (host.default_handler() if served else None)
    said = host.handlers()
    for name in usable:
        fact = facts["handlers"][name]
        assert fact["runtime_type"] == (said[name]["runtime_type"] or "oci"), name
        assert fact["binary" if fact["runtime_type"] == "oci" else "shim"] == said[name]["runtime_path"], name
    if served:
        assert facts["version"].lstrip("v") == answer["version"]["runtimeVersion"]
        assert facts["evidence"] == "loaded"


def ids(facts: Facts, handler: str = "") -> set[int]:
    """Numbers of the faults, of those that name a handler where one is given."""
    return {fault["id"] for fault in facts["faults"] if not handler or handler in fault["handlers"]}


def alarms(facts: Facts) -> list[str]:
    """What of the faults is no remark."""
    return [f"{fault['id']} {fault['message']}" for fault in facts["faults"] if fault["severity"] != "info"]


def test_equal_and_healthy(node: CrioHost, equal_table: Table) -> None:
    """A daemon with everything loaded as written: the same answer, complete, and no fault."""
    with Check(equal_table, node, "as written"):
        start(node)
        facts = module(node)
        assert_equal(node, facts)
        assert {"kata", "mine", "runc"} <= set(facts["handlers"]) and facts["default_handler"] == "mine"
        assert facts["serves_kubelet"] is True and facts["restart_pending"] is False and facts["lost"] == []
        assert facts["release_line"] == node.line and facts["config_path"] == CONFIG
        assert alarms(facts) == [] and facts["healthy"] is True


def test_nothing_written(node: CrioHost, equal_table: Table) -> None:
    """No file at all: the built-in handler, no fault."""
    with Check(equal_table, node, "no file"):
        for path in (CONFIG, DROP_IN, CONFIG_DIR + "/10-crio.conf"):
            node.path(path).unlink()
        start(node)
        facts = halves(node)
        assert_equal(node, facts)
        assert sorted(facts["handlers"]) == ["crun"] == [facts["default_handler"]]
        assert alarms(facts) == [] and facts["healthy"] is True


def test_edited_but_not_restarted(node: CrioHost, equal_table: Table) -> None:
    """What is loaded stays; a restart would add one handler and take one away, and then does."""
    with Check(equal_table, node, "edited"):
        start(node)
        node.write(DROP_IN, handlers("foo"))
        facts = module(node)
        assert_equal(node, facts)
        assert facts["restart_pending"] is True
        assert (facts["restart_gains"], facts["restart_loses"], facts["lost"]) == (["foo"], ["kata"], ["foo"])
        assert 1 in ids(facts, "foo")
        assert node.restart(), node.log()[-3000:]
        assert sorted(facts["layers"]["next"]["handlers"]) == node.usable_handlers()
        assert facts["layers"]["next"]["default_handler"] == node.default_handler()


def test_upgraded_but_not_restarted(node: CrioHost, equal_table: Table) -> None:
    """The running daemon is judged by its own version, the next one by the binary on disk; a restart proves both."""
    with Check(equal_table, node, "upgraded"):
        start(node)
        other = UPGRADES[node.line]
        node.replace_binary(other)
        facts = module(node)
        assert_equal(node, facts)
        assert facts["version"].lstrip("v").startswith(node.line) and facts["next_version"].lstrip("v").startswith(other)
        assert node.restart(), node.log()[-3000:]
        assert sorted(facts["layers"]["next"]["handlers"]) == node.usable_handlers()
        after = halves(node)
        assert after["version"].lstrip("v").startswith(other) and after["next_version"] in (None, after["version"])


def test_will_not_start_again(node: CrioHost, equal_table: Table) -> None:
    """Loaded now, all lost at the next restart: a file that is not TOML, or a default without a table."""
    with Check(equal_table, node, "will not start again"):
        start(node)
        before = node.usable_handlers()
        for text in ("[half written\n", '[crio.runtime]\ndefault_runtime = "nowhere"\n'):
            node.write(CONFIG_DIR + "/90-broken.conf", text)
            facts = module(node)
            assert_equal(node, facts)
            assert facts["restart_loses"] == before and facts["healthy"] is False
            assert any(fault["severity"] == "error" for fault in facts["faults"])
        assert node.restart() is False


def test_dead(node: CrioHost, equal_table: Table) -> None:
    """The daemon has been killed: nothing is loaded, and what the files would bring is told beside it."""
    with Check(equal_table, node, "dead"):
        start(node)
        loaded = node.usable_handlers()
        node.kill()
        facts = module(node)
        assert_equal(node, facts)
        assert facts["handlers"] == {} and facts["default_handler"] is None and facts["evidence"] in ("next", "none")
        assert sorted(facts["layers"]["next"]["handlers"]) == loaded
        assert facts["healthy"] is False


def test_does_not_run(node: CrioHost, equal_table: Table) -> None:
    """It has not come up: nothing is loaded, and each handler that is written is lost and named."""
    with Check(equal_table, node, "does not run"):
        node.write(CONFIG_DIR + "/90-broken.conf", "[half written\n")
        assert node.start() is False
        facts = module(node)
        assert_equal(node, facts)
        assert facts["handlers"] == {} and facts["healthy"] is False
        assert {"kata", "mine", "runc"} <= {name for fault in facts["faults"] for name in fault["handlers"]}


def test_a_socket_that_hangs(node: CrioHost, equal_table: Table) -> None:
    """The daemon is stopped in its tracks (SIGSTOP): cri_ready is null, not false, within the time-out."""
    with Check(equal_table, node, "hangs"):
        start(node)
        node.pause()
        try:
            begun = time.monotonic()
            facts = halves(node, timeout=2)
            assert facts["cri_ready"] is None
            assert time.monotonic() - begun < 40
        finally:
            node.resume()
        assert_equal(node, halves(node))


def test_without_crictl(node: CrioHost, equal_table: Table) -> None:
    """With crictl on PATH, and with one that fails: the same answer."""
    with Check(equal_table, node, "with and without crictl"):
        start(node)
        without = halves(node)
        assert_equal(node, without)
        node.install(tool("crictl"), "/usr/local/bin/crictl")
        assert halves(node)["handlers"] == without["handlers"]
        node.install_script("/usr/local/bin/crictl", "#!/bin/sh\nexit 1\n")
        assert halves(node)["handlers"] == without["handlers"]


def test_the_lie_after_a_hangup(node: CrioHost, equal_table: Table) -> None:
    """After SIGHUP the daemon names a handler over CRI and in `crio status config` that no sandbox can have; the facts do not."""
    with Check(equal_table, node, "after SIGHUP"):
        start(node)
        usable = node.usable_handlers()
        node.write(CONFIG_DIR + "/60-new.conf", '[crio.runtime.runtimes.new]\nruntime_path = "/usr/bin/runc"\n')
        assert "Configuration reload completed" in node.hangup()
        # The lie itself, by the daemon's own three answers.
        assert "new" in node.cri_handlers() and "new" in node.handlers()
        assert "new" not in node.usable_handlers() == usable
        facts = module(node)
        assert_equal(node, facts)
        assert "new" in facts["lost"] and 45 in ids(facts, "new")
        assert facts["restart_gains"] == ["new"] and facts["healthy"] is False
        # Gone after a restart: the daemon says one thing again, and so do the facts.
        assert node.restart(), node.log()[-3000:]
        assert "new" in node.usable_handlers() and node.cri_handlers() == node.usable_handlers()
        after = module(node)
        assert_equal(node, after)
        assert 45 not in ids(after) and after["healthy"] is True, alarms(after)


def test_a_reload_that_failed(node: CrioHost, equal_table: Table) -> None:
    """A refused reload leaves handlers in the daemon's answer that were never validated; the facts have none of them."""
    with Check(equal_table, node, "after a failed reload"):
        start(node)
        node.journal()
        usable = node.usable_handlers()
        late = CONFIG_DIR + "/60-late.conf"
        node.write(late, '[crio.runtime]\ndefault_runtime = "nowhere"\n[crio.runtime.runtimes.ghost]\nruntime_path = "/nowhere"\n')
        assert "Unable to reload configuration" in node.hangup()
        assert "ghost" in node.cri_handlers() and node.usable_handlers() == usable
        facts = module(node)
        assert sorted(facts["handlers"]) == usable
        assert 46 in ids(facts) and "ghost" in facts["lost"]
        node.path(late).unlink()
        assert node.restart(), node.log()[-3000:]
        after = halves(node)
        assert_equal(node, after)
        assert not {45, 46} & ids(after) and after["healthy"] is True, alarms(after)


def test_a_missing_binary(node: CrioHost, equal_table: Table) -> None:
    """A handler whose program is not there is dropped by the daemon, though `crio config` shows it; named with its file and path."""
    with Check(equal_table, node, "missing binary"):
        node.path(KATA).unlink()
        start(node)
        assert "kata" not in node.usable_handlers() and "runtimes.kata]" in node.config()[1]
        assert 'Runtime handler "kata" is being ignored' in node.log().replace('\\"', '"')
        facts = module(node)
        assert_equal(node, facts)
        assert facts["lost"] == ["kata"] and facts["healthy"] is False
        (fault,) = [fault for fault in facts["faults"] if fault["id"] == 41]
        assert fault["handlers"] == ["kata"] and fault["file"] == DROP_IN and KATA in fault["message"] and fault["fix"]
        # Mended as the fault says: the program is installed, and a restart loads the handler.
        node.install_script(KATA, "#!/bin/sh\nexit 1\n")
        assert node.restart() and "kata" in node.usable_handlers()
        assert 41 not in ids(halves(node))


@pytest.mark.parametrize("name", ["50-handlers.conf.bak", ".50-handlers.conf.swp", "old/10-handlers.conf"])
def test_a_stray_file_is_loaded(node: CrioHost, name: str, equal_table: Table) -> None:
    """A backup, an editor's file or a directory beside the drop-ins is loaded, and takes a setting over: named, with the file."""
    with Check(equal_table, node, "stray file"):
        stray = f"{CONFIG_DIR}/{name}"
        node.write(stray, f'[crio.runtime.runtimes.mine]\nruntime_path = "{MINE}"\n[crio.runtime.runtimes.stale]\nruntime_path = "/usr/bin/runc"\n')
        start(node)
        assert "stale" in node.usable_handlers()
        facts = halves(node)
        assert_equal(node, facts)
        assert stray in {fault["file"] for fault in facts["faults"] if fault["id"] == 43}


def test_a_later_table_erases(node: CrioHost, equal_table: Table) -> None:
    """A later table of the same handler replaces the whole entry: its runtime_path is gone, and the name is looked up on PATH."""
    with Check(equal_table, node, "later table"):
        later = CONFIG_DIR + "/70-annotations.conf"
        node.write(later, '[crio.runtime.runtimes.kata]\nallowed_annotations = ["io.kubernetes.cri-o.ShmSize"]\n')
        start(node)
        assert "kata" not in node.usable_handlers()  # there is no program named kata
        facts = halves(node)
        assert_equal(node, facts)
        assert facts["lost"] == ["kata"]
        assert any(fault["id"] == 42 and fault["file"] == later and "kata" in fault["handlers"] for fault in facts["faults"])


def test_not_executable(node: CrioHost, equal_table: Table) -> None:
    """A program that is there and cannot run is kept by the daemon: loaded, and not usable."""
    with Check(equal_table, node, "not executable"):
        node.path(KATA).chmod(0o644)
        start(node)
        assert "kata" in node.usable_handlers()
        facts = halves(node)
        assert_equal(node, facts)
        assert facts["handlers"]["kata"]["usable"] is False
        assert any("kata" in fault["handlers"] for fault in facts["faults"] if fault["severity"] != "info")
