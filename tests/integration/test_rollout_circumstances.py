# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rollout by ansible-playbook where more than a file changes: no containerd yet, real sandboxes, a tool that overwrites the file.

What this proves: a node without containerd is rendered for, shown and, once the package is there, needs nothing more; with
``probe: sandbox`` each handler that the role wrote starts a real pod sandbox, and where one cannot, the daemon's own words are
the reason and the old configuration is back; kubespray's variables are said.
"""

from __future__ import annotations

import shutil
import typing as t

import pytest
import yaml

from tests.faults import sandboxes
from tests.integration.real_rollout import SHIM, RealNode
from tests.integration.test_runtime_handlers import TWO
from tests.testbed.host import CONFIG

RUNC = "io.containerd.runc.v2"


def declared(**handlers: t.Any) -> t.Dict[str, t.Any]:
    return {"runtime_gate_handlers": handlers}


def test_a_node_on_which_nothing_is_installed_yet() -> None:
    node = RealNode("2.1", "", start=False)
    programs = ("/usr/bin/containerd", SHIM, "/usr/bin/crun", "/usr/local/bin/mine")
    try:
        for program in programs:
            shutil.move(node.host.path(program), node.host.path("/run" + program.replace("/", "-")))
        shutil.rmtree(node.host.path("/etc/containerd"))
        first = node.checksums()
        refused = node.playbook("site", TWO, "--check", "--diff")
        assert refused.status == 2 and "no containerd was found on this node: set runtime_gate_target_version" in refused.text
        coming = {**TWO, "runtime_gate_target_version": "2.1.9"}
        check = node.playbook("site", coming, "--check", "--diff")
        assert check.status == 0 and check.recap["n1"]["changed"] == 1, check.text
        assert "+handler mine\n+  options.BinaryName: /usr/local/bin/mine\n" in check.text
        assert '+[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.crun]' in check.text and "1 pending; none fails" in check.text
        assert node.checksums() == first

        # It is rendered before the package comes; the gate then says what is true: nothing is loaded.
        applied = node.playbook("site", coming)
        assert applied.status == 2 and applied.recap["n1"]["changed"] == 1 and "no handler is loaded" in applied.text, applied.text
        for program in programs:
            shutil.move(node.host.path("/run" + program.replace("/", "-")), node.host.path(program))
        node.product.start()
        after = node.checksums()
        last = node.playbook("site", coming)
        assert last.status == 0 and last.recap["n1"]["changed"] == 0, last.text
        assert node.checksums() == after and sorted(node.product.loaded()[0]) == ["crun", "mine", "runc"]
    finally:
        node.close()


@pytest.fixture
def sandboxed() -> t.Iterator[RealNode]:
    """A node on which pod sandboxes run, one of them already."""
    node = RealNode(sandboxes.LINE, sandboxes.ROOT)
    try:
        sandboxes.equip(node.host)
        made = node.host.sandbox("runc", "bystander")
        assert made.get("sandbox"), made
        yield node
    finally:
        sandboxes.remove_all(node.host)
        node.close()


def test_a_real_sandbox_of_each_handler(sandboxed: RealNode) -> None:
    node = sandboxed
    others = sandboxes.sandboxes(node.host)
    shutil.copy(node.host.path("/usr/sbin/runc"), node.host.path("/usr/local/bin/mine"))
    probed = {"runtime_gate_probe": "sandbox", "runtime_gate_manifests": ["/run/none"]}
    node.host.write("/run/none/classes.yaml", NO_CLASS)
    wanted = {**probed, **declared(mine={"runtime_type": RUNC, "options": {"BinaryName": "/usr/local/bin/mine"}})}
    applied = node.playbook("site", wanted, "-v")
    assert applied.status == 0 and '"probe": {"mine": null}' in applied.text, applied.text
    assert sandboxes.sandboxes(node.host) == others
    made = node.host.sandbox("mine", "judge")
    assert made.get("sandbox"), made
    others = sandboxes.sandboxes(node.host)
    # On request also where nothing changes.
    again = node.playbook("site", wanted, "-v")
    assert again.status == 0 and again.recap["n1"]["changed"] == 0 and '"probe": {"mine": null}' in again.text
    first = node.host.path(CONFIG).read_bytes()

    # A binary, and a shim, that are not there: the daemon's own words, and the way back.
    absent = {"allow_absent_binary": True}
    no_binary = {"runtime_type": RUNC, "options": {"BinaryName": "/usr/local/bin/gone"}, **absent}
    run = node.playbook("site", {**probed, **declared(gone=no_binary)})
    assert run.status == 2 and "no sandbox can be made of gone: " in run.text and "The old configuration is back" in run.text
    assert "fork/exec /usr/local/bin/gone: no such file or directory" in run.text
    run = node.playbook("site", {**probed, **declared(gone={"runtime_type": "io.containerd.gone.v1", **absent})})
    assert run.status == 2 and 'binary not installed "containerd-shim-gone-v1"' in run.text, run.text
    assert node.host.path(CONFIG).read_bytes() == first and sorted(node.product.loaded()[0]) == ["mine", "runc"]

    # One that stopped working while nothing changed, and a name that is not loaded.
    node.host.install_script("/usr/local/bin/mine", "#!/bin/sh\nexit 1\n")
    run = node.playbook("site", wanted)
    assert run.status == 2 and "This run changed nothing, and no sandbox can be made of mine: " in run.text
    step = {"step": "probe", "engine": "containerd", "handlers": ["nope"], "options": {"timeout": 5.0}}
    said = node.product._call(step)
    assert not said["ok"] and 'no runtime for "nope" is configured' in said["probe"]["nope"]
    assert sandboxes.sandboxes(node.host) == others


def test_kubespray_is_told_and_its_overwriting_foreseen() -> None:
    node = RealNode("2.1", "version = 2\n", {"/etc/kubernetes/kubelet-config.yaml": ""})
    try:
        run = node.playbook("site", TWO)
        assert run.status == 0 and run.recap["n1"]["changed"] == 1, run.text
        assert "kubespray writes /etc/containerd/config.toml anew at its next run" in run.text
        said = yaml.safe_load("\n".join(_raw(run.text)))
        assert [one["name"] for one in said["containerd_additional_runtimes"]] == ["crun", "mine"]
        # The overwriting, and the run after it.
        node.host.write(CONFIG, "version = 2\n")
        node.product.start()
        assert sorted(node.product.loaded()[0]) == ["runc"]
        again = node.playbook("site", TWO)
        assert again.status == 0 and again.recap["n1"]["changed"] == 1, again.text
        assert sorted(node.product.loaded()[0]) == ["crun", "mine", "runc"]
    finally:
        node.close()


def _raw(text: str) -> t.List[str]:
    """The lines of YAML that debug has printed as JSON strings."""
    said = [line.strip().rstrip(",") for line in text.splitlines() if line.startswith(' ' * 8 + '"')]
    words = [yaml.safe_load(line) for line in said]
    return words[words.index("containerd_additional_runtimes:") :]


NO_CLASS = """apiVersion: v1
kind: List
items: []
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/os: linux}}
"""
