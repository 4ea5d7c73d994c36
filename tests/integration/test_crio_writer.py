# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The writer on real CRI-O daemons of two lines: from check to removal, refusals, and the way back.

What this proves: check mode changes nothing and tells what apply then does; apply loads what is declared by the daemon's own words
(`crio status config`, and what it says to a sandbox that cannot be); a second run is one remote call and changes nothing; removal gives
the first bytes back; what others wrote survives; a reload is refused; after a SIGHUP the lie is no reason to take a good change back;
a start that fails is taken back; OpenShift's files are left alone and the MachineConfig is printed.
"""

from __future__ import annotations

import base64
import json
import time
import typing as t

import pytest
import yaml

from tests.matrix.crio_product import CONFIG_DIR, RESTART, CrioProduct
from tests.testbed.crio_host import CONFIG, CrioHost
from tests.testbed.tools import CRIO_LINES, tool

OURS = CONFIG_DIR + "/zz-runtime-gate.conf"
THEIRS = CONFIG_DIR + "/10-crio.conf"
KATA = "/opt/kata/bin/containerd-shim-kata-v2"
TEXT = """# the platform team's file
[crio.runtime.runtimes.runc]
runtime_path = "/usr/bin/runc"   # keep
runtime_root = "/run/runc"
monitor_path = "/usr/bin/conmon"
allowed_annotations = ["io.kubernetes.cri-o.ShmSize"]
"""
DECLARED: dict[str, t.Any] = {
    "kata": {"preset": "kata"},
    "mine": {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/opt/bin/mine"}},
}


@pytest.fixture(scope="module", params=CRIO_LINES)
def product(request: pytest.FixtureRequest) -> t.Iterator[CrioProduct]:
    """One node of a line."""
    with CrioHost(request.param) as host:
        made = CrioProduct(host)
        yield made
        made.close()


@pytest.fixture
def node(product: CrioProduct) -> CrioProduct:
    """The node with another team's drop-in and the daemon running on it."""
    product.reset()
    product.install_restart()
    product.host.install(tool("runc"), "/opt/bin/mine")
    product.host.install_script(KATA, "#!/bin/sh\nexit 1\n")
    product.host.write(CONFIG, '[crio.runtime]\ndefault_runtime = "runc"\n')
    product.host.write(THEIRS, TEXT)
    product.start()
    return product


def names(node: CrioProduct) -> list[str]:
    """What sandboxes can have."""
    return node.host.usable_handlers()


def test_from_check_to_removal(node: CrioProduct) -> None:
    first = node.files()
    check = node.change({"handlers": DECLARED}, check=True)
    assert not check.get("failed"), check
    assert check["changed"] and check["pending_handlers"] == ["kata", "mine"] and node.calls == ["collect", "prove"]
    assert node.files() == first and node.restarts() == 1 and "kata" not in names(node)

    applied = node.change({"handlers": DECLARED})
    assert not applied.get("failed"), applied
    assert applied["loaded_diff"] == check["loaded_diff"] and applied["restarted"] and applied["proved"]
    handlers, default = node.loaded()
    assert {"crun", "kata", "mine", "runc"} == set(handlers) and default == "runc" == applied["default_handler"]
    assert handlers["mine"]["runtime_path"] == "/opt/bin/mine" and handlers["mine"]["monitor_path"] == "/usr/bin/conmon"
    assert (handlers["kata"]["runtime_type"], handlers["kata"]["runtime_path"], handlers["kata"]["runtime_root"]) == ("vm", KATA, "/run/vc")
    assert handlers["kata"]["privileged_without_host_devices"] is True
    assert handlers["runc"]["allowed_annotations"] == ["io.kubernetes.cri-o.ShmSize"]
    assert node.host.path(THEIRS).read_text() == TEXT

    again = node.change({"handlers": DECLARED})
    assert not again["changed"] and node.calls == ["collect"] and node.restarts() == 2

    one = node.change({"handlers": {"kata": {"state": "absent"}}})
    assert one["changed"] and names(node) == ["crun", "mine", "runc"]

    removed = node.change({"remove": True})
    assert removed["changed"] and not removed.get("failed"), removed
    assert names(node) == ["crun", "runc"] and node.files() == first
    assert not node.change({"remove": True})["changed"]


def test_a_default_handler_and_back(node: CrioProduct) -> None:
    first = node.files()
    refused = node.change({"handlers": DECLARED, "default_handler": "mine"})
    assert refused["failed"] and "the default handler changes from runc to mine" in refused["msg"] and node.files() == first
    agreed = node.change({"handlers": DECLARED, "default_handler": "mine", "accept_blast_radius": True})
    assert not agreed.get("failed") and node.loaded()[1] == "mine", agreed
    removed = node.change({"remove": True, "accept_blast_radius": True})
    assert not removed.get("failed") and node.loaded()[1] == "runc" and node.files() == first, removed


def test_both_spellings_and_what_others_set(node: CrioProduct) -> None:
    """CRI-O's own words, and a handler of another team: what we do not say of it stays as it is."""
    node.change({"handlers": {"plain": {"runtime_type": "oci", "runtime_path": "/opt/bin/mine", "runtime_root": "/run/plain", "monitor_env": ["A=b"]}}})
    plain = node.loaded()[0]["plain"]
    assert (plain["runtime_root"], plain["monitor_env"]) == ("/run/plain", ["A=b"])
    result = node.change({"handlers": {"runc": {"runtime_type": "oci", "runtime_path": "/opt/bin/mine"}}, "accept_blast_radius": True})
    assert not result.get("failed"), result
    runc = node.loaded()[0]["runc"]
    assert runc["runtime_path"] == "/opt/bin/mine" and runc["allowed_annotations"] == ["io.kubernetes.cri-o.ShmSize"]
    assert any("also declared in " + THEIRS in note and "ours wins" in note for note in result["notes"])
    assert node.change({"remove": True, "accept_blast_radius": True})["changed"]
    assert node.loaded()[0]["runc"]["runtime_path"] == "/usr/bin/runc"


_REFUSALS: tuple[tuple[dict[str, t.Any], str], ...] = (
    ({"handlers": DECLARED, "restart": "reload"}, "a reload loads no handler"),
    ({"handlers": DECLARED, "restart_command": ["systemctl", "reload", "crio"]}, "a reload loads no handler"),
    ({"handlers": {"runsc": {"preset": "gvisor"}}}, "CRI-O drops such a handler; install it, or set runtime_gate_allow_absent_binary: true"),
    ({"handlers": {"spin": {"preset": "spin"}}}, "CRI-O cannot run the shim of io.containerd.spin.v2"),
    ({"handlers": {"x": {"runtime_type": "vm", "runtime_path": "/opt/bin/mine"}}}, "must be named containerd-shim-NAME-v2"),
    ({"handlers": {"mine": dict(DECLARED["mine"], allowed_annotations=["no.such"])}}, "invalid allowed_annotation: no.such"),
    ({"handlers": {"crun": {"state": "absent"}}}, "CRI-O brings it by itself"),
    ({"handlers": {"runc": {"state": "absent"}}}, "it is the default handler"),
    ({"handlers": DECLARED, "mode": "merge"}, "mode: merge is for containerd"),
    ({"handlers": {}, "default_handler": "nowhere"}, "nowhere"),
    ({"handlers": DECLARED, "target_version": "1.30.0"}, "target_version is 1.30.0"),
)


def test_refusals_say_why_and_change_nothing(node: CrioProduct) -> None:
    first = node.files()
    for options, words in _REFUSALS:
        result = node.change(options)
        assert result.get("failed") and words in result["msg"], (options, result)
        assert "apply" not in node.calls
    assert node.files() == first and node.restarts() == 1


def test_a_handler_whose_program_comes_later(node: CrioProduct) -> None:
    """allow_absent_binary: the table is written, CRI-O does not load it, the run says so; with the program there one more run loads it."""
    options = {"handlers": {"runsc": {"preset": "gvisor"}}, "allow_absent_binary": True}
    result = node.change(options)
    assert not result.get("failed") and any("handler runsc is written and not loaded" in note for note in result["notes"]), result
    assert "runsc" not in names(node) and not node.change(options)["changed"]
    node.host.install(tool("runc"), "/usr/local/bin/runsc")
    assert node.change(options)["restarted"] and "runsc" in names(node)
    assert node.loaded()[0]["runsc"]["runtime_root"] == "/run/runsc"


def test_files_that_lose_or_stop(node: CrioProduct) -> None:
    """A later file of somebody else's that says otherwise, one that stops the daemon, and a loaded handler that would be lost: refused."""
    for path, text, words in (
        (CONFIG_DIR + "/zzzzz.conf", '[crio.runtime.runtimes.mine]\nruntime_path = "/usr/bin/runc"\n', "sets it otherwise and is loaded later"),
        (CONFIG_DIR + "/90-half.conf", "[half\n", "CRI-O 1.3"),
        (CONFIG, '[crio.runtime]\ndefault_runtime = "nowhere"\n', "default_runtime is 'nowhere'"),
    ):
        before = node.files()
        node.host.write(path, text)
        result = node.change({"handlers": DECLARED})
        assert result.get("failed") and words in result["msg"], result
        node.host.path(path).unlink()
        if path == CONFIG:
            node.host.write(CONFIG, before["crio.conf"].decode())
        assert node.files() == before
    # A file that sorts after our first name and says nothing of ours is no obstacle.
    node.host.write(CONFIG_DIR + "/zzz-last.conf", '[crio.runtime.runtimes.mine]\nruntime_path = "/usr/bin/runc"\n')
    result = node.change({"handlers": DECLARED})
    assert not result.get("failed") and node.loaded()[0]["mine"]["runtime_path"] == "/opt/bin/mine", result
    assert node.change({"remove": True})["changed"] and node.loaded()[0]["mine"]["runtime_path"] == "/usr/bin/runc"


def test_after_a_hangup(node: CrioProduct) -> None:
    """The daemon tells a handler that no sandbox can have: it is not taken for loaded, a restart is made, and nothing is taken back."""
    node.host.write(CONFIG_DIR + "/60-mine.conf", '[crio.runtime.runtimes.mine]\nruntime_path = "/opt/bin/mine"\nmonitor_path = "/usr/bin/conmon"\n')
    node.host.run(["pkill", "-HUP", "-x", "crio"])
    deadline = time.monotonic() + 10
    while "mine" not in node.host.cri_handlers() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "mine" in node.host.cri_handlers() and "mine" not in names(node)
    result = node.change({"handlers": DECLARED})
    assert not result.get("failed") and result["restarted"] and {"kata", "mine"} <= set(names(node)), result
    again = node.change({"handlers": DECLARED})
    assert not again["changed"], json.dumps([again, result])


def test_a_lie_alone_is_mended_by_a_restart(node: CrioProduct) -> None:
    """What is declared stands in the files and in the daemon's answer, and sandboxes cannot have it: one restart, no file."""
    node.host.write(OURS, "# theirs, by chance under our name\n")
    node.host.path(OURS).unlink()
    node.host.write(CONFIG_DIR + "/60-mine.conf", '[crio.runtime.runtimes.mine]\nruntime_path = "/opt/bin/mine"\nmonitor_path = "/usr/bin/conmon"\n')
    node.host.run(["pkill", "-HUP", "-x", "crio"])
    deadline = time.monotonic() + 10
    while "mine" not in node.host.cri_handlers() and time.monotonic() < deadline:
        time.sleep(0.1)
    first = node.files()
    result = node.change({"handlers": {"mine": {"runtime_type": "oci", "runtime_path": "/opt/bin/mine"}}})
    assert not result.get("failed") and result["restarted"] and "mine" in names(node) and node.files() == first, result


def test_a_start_that_fails_is_taken_back(node: CrioProduct) -> None:
    """The service manager does not start CRI-O with our file, and does without: the old files and the old daemon come back."""
    node.host.install_script("/usr/local/sbin/picky", f"#!/bin/sh\n{RESTART} || exit 1\n[ ! -e {OURS} ] || {{ echo picky >&2; exit 3; }}\n")
    first = node.files()
    result = node.change({"handlers": DECLARED, "restart_command": ["/usr/local/sbin/picky"]})
    assert result.get("failed") and result["rolled_back"] and "picky" in result["msg"], result
    assert node.files() == first and names(node) == ["crun", "runc"]
    assert not node.change({"handlers": DECLARED}).get("failed") and "kata" in names(node)


def test_openshift_is_left_alone(node: CrioProduct) -> None:
    """Machine Config Operator: nothing is written, and the MachineConfig that is printed holds the very file that loads the handlers."""
    node.host.write("/etc/machine-config-daemon/currentconfig", "{}")
    first = node.files()
    result = node.change({"handlers": DECLARED})
    assert not result["changed"] and not result.get("failed") and node.files() == first and node.restarts() == 1, result
    assert any("Machine Config Operator" in note for note in result["notes"])
    body = yaml.safe_load(result["machine_config"])
    assert (body["kind"], body["metadata"]["labels"]) == ("MachineConfig", {"machineconfiguration.openshift.io/role": "worker"})
    (file,) = body["spec"]["config"]["storage"]["files"]
    # Laid as the operator would, it does what is declared.
    node.host.write(file["path"], base64.b64decode(file["contents"]["source"].partition("base64,")[2]))
    node.start()
    assert {"kata", "mine"} <= set(names(node))
    after = node.change({"handlers": DECLARED})
    assert not after["changed"] and "machine_config" not in after
