# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a handler can run, from shim look-up in containerd's shim_manager.go."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import usability
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import rules_for

RUNC = "io.containerd.runc.v2"
SHIM = "containerd-shim-runc-v2"


@pytest.mark.parametrize(
    ("runtime_type", "shim"),
    [
        (RUNC, SHIM),
        ("io.containerd.kata-qemu.v2", "containerd-shim-kata-qemu-v2"),
        ("io.containerd.kata", "containerd-shim-containerd-kata"),
        ("/opt/kata/bin/containerd-shim-kata-v2", "/opt/kata/bin/containerd-shim-kata-v2"),
        ("kata", ""),
    ],
)
def test_shim_of(runtime_type: str, shim: str) -> None:
    assert usability.shim_of(runtime_type) == shim


CASES = [
    # handler, version, binaries, introspected, usable, word of the reason
    ({"runtime_type": ""}, "2.1.9", {}, None, False, "empty"),
    ({"runtime_type": "kata"}, "2.1.9", {}, None, False, "not a runtime_type"),
    ({"runtime_type": "a/b.c"}, "2.1.9", {}, None, False, "not a runtime_type"),
    ({"runtime_type": "/x/shim"}, "1.4.13", {"/x/shim": True}, None, False, "1.4"),
    ({"runtime_type": "/x/shim"}, "1.6.20", {"/x/shim": True}, None, True, ""),
    ({"runtime_type": "/x/shim"}, "1.6.20", {"/x/shim": False}, None, False, "/x/shim"),
    ({"runtime_type": "/x/shim"}, "1.6.20", {}, None, None, "no evidence"),
    ({"runtime_type": "io.containerd.runtime.v1.linux"}, "1.7.24", {"containerd-shim-v1-linux": True}, None, True, ""),
    ({"runtime_type": "io.containerd.runtime.v1.linux"}, "2.1.9", {}, None, False, "removed"),
    ({"runtime_type": RUNC}, "2.1.9", {}, True, True, ""),
    ({"runtime_type": RUNC}, "2.1.9", {}, None, None, "no evidence"),
    ({"runtime_type": RUNC}, "2.1.9", {SHIM: False}, True, False, SHIM),
    ({"runtime_type": RUNC}, "2.1.9", {"/usr/bin/" + SHIM: True}, None, True, ""),
    ({"runtime_type": RUNC, "options": {"BinaryName": "/x"}}, "2.1.9", {SHIM: True, "/x": False}, None, False, "/x"),
    ({"runtime_type": RUNC, "options": {"BinaryName": "/x"}}, "2.1.9", {SHIM: True, "/x": True}, None, True, ""),
    ({"runtime_type": RUNC, "options": {"BinaryName": "/x"}}, "2.1.9", {SHIM: True}, None, None, "/x"),
    # without BinaryName the shim runs runc from its PATH
    ({"runtime_type": RUNC}, "2.1.9", {SHIM: True, "runc": False}, None, False, "runc"),
    ({"runtime_type": RUNC}, "2.1.9", {SHIM: True, "runc": True}, None, True, ""),
    ({"runtime_type": RUNC, "options": {"BinaryName": "/x"}}, "2.1.9", {SHIM: True, "/x": True, "runc": False}, None, True, ""),
    # runtime_path is honoured from 1.7 on
    ({"runtime_type": RUNC, "runtime_path": "/p"}, "1.7.24", {"/p": False, SHIM: True}, None, False, "/p"),
    ({"runtime_type": RUNC, "runtime_path": "/p"}, "1.6.20", {"/p": False, SHIM: True}, None, True, ""),
    # BinaryName means nothing to another shim
    ({"runtime_type": "io.containerd.kata.v2", "options": {"BinaryName": "/x"}}, "2.1.9", {"/x": False}, None, None, "kata"),
]


@pytest.mark.parametrize(("handler", "version", "binaries", "introspected", "usable", "word"), CASES)
def test_judge(handler: dict, version: str, binaries: dict, introspected: object, usable: object, word: str) -> None:
    verdict = usability.judge(handler, rules_for(version), binaries, introspected)
    assert verdict.usable is usable
    assert word in verdict.reason and (bool(verdict.reason) is (usable is not True))


@pytest.mark.parametrize(
    ("handler", "proxies", "word"),
    [
        ({"sandboxer": "shim2"}, {}, "no sandbox controller shim2"),
        ({"sandbox_mode": "nope"}, {}, "no sandbox controller nope"),
        ({"snapshotter": "nydus"}, {}, "no snapshotter nydus"),
        ({"options": {"SystemdCgroup": "true"}}, None, "must be true or false"),
        ({"options": {"Root": 7}}, None, "must be a string"),
        ({"runtime_path": "containerd-shim-kata-v2"}, None, "is not absolute"),
        ({"options": {"BinaryName": "nope/nvidia"}}, None, "relative path"),
    ],
)
def test_values_with_which_every_sandbox_fails(handler: dict, proxies: object, word: str) -> None:
    binaries = {SHIM: True, "runc": True, "containerd-shim-kata-v2": True}
    verdict = usability.judge(dict({"runtime_type": RUNC}, **handler), rules_for("2.1.9"), binaries, True, proxies)
    assert verdict.usable is False and word in verdict.reason


@pytest.mark.parametrize(
    ("handler", "proxies"),
    [
        ({"sandboxer": "kuasar"}, {"kuasar": {"type": "sandbox"}}),
        ({"snapshotter": "nydus"}, {"nydus": {"type": "snapshot"}}),
        ({"snapshotter": "nydus"}, None),
        ({"snapshotter": "overlayfs", "sandboxer": "podsandbox"}, {}),
    ],
)
def test_values_that_are_there_or_not_known(handler: dict, proxies: object) -> None:
    verdict = usability.judge(dict({"runtime_type": RUNC}, **handler), rules_for("2.1.9"), {SHIM: True, "runc": True}, True, proxies)
    assert verdict.usable is True


def test_of_two_spellings_the_last_in_byte_order_holds() -> None:
    assert usability.option({"BinaryName": "/a", "binaryName": "/b"}, "BinaryName") == "/b"
    assert usability.option({"BinaryName": "/a", "binaryName": ""}, "BinaryName") == "/a"
    assert usability.option({}, "BinaryName") is None
