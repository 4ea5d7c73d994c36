# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rollout by ansible-playbook on nodes with real daemons: site and remove, from the command line to the daemon's own answer.

What this proves: check mode with --diff tells the truth and changes nothing, apply loads what is declared, a second run changes nothing
in at most two remote calls, removal gives the first bytes back, a failed proof changes nothing, a failed restart is taken
back, refusals say what to do, and secrets of a root file survive byte for byte and are seen nowhere. What is loaded is asked through cri-ask.
"""

from __future__ import annotations

import shutil
import typing as t

import pytest

from tests.integration.real_rollout import RealNode, remote_calls
from tests.matrix.product import RESTART

OLD = 'plugins."io.containerd.grpc.v1.cri"'
ROOT = """# the platform team's file
version = 2
[%s]
  sandbox_image = "registry.example/pause:3.9"
[%s.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"   # keep
[%s.containerd.runtimes.runc.options]
  SystemdCgroup = false
""" % (OLD, OLD, OLD)
TWO = {
    "runtime_gate_handlers": {
        "crun": {"preset": "crun"},
        "mine": {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/local/bin/mine"}},
    }
}
PASSWORD = "corr3ct-horse-b4ttery"


@pytest.fixture
def node(request: pytest.FixtureRequest) -> t.Iterator[RealNode]:
    """A node with ROOT and the daemon of the line in the parameter running on it."""
    made = RealNode(request.param, ROOT)
    yield made
    made.close()


def on(*lines: str) -> t.Callable[..., t.Any]:
    return pytest.mark.parametrize("node", lines, indirect=True)


@on("1.7", "2.1", "2.3")
def test_a_rollout_from_check_to_removal(node: RealNode) -> None:
    first = node.checksums()
    check = node.playbook("site", TWO, "--check", "--diff")
    assert check.status == 0, check.text
    assert node.checksums() == first and node.product.restarts() == 1
    assert sorted(node.product.loaded()[0]) == ["runc"]
    assert "+handler mine\n+  options.BinaryName: /usr/local/bin/mine\n" in check.text and "+++ after: loaded after the restart" in check.text
    # The gate counts crun as pending, and does not fail for it.
    assert check.recap["n1"]["changed"] == 1 and check.recap["n1"]["failed"] == 0

    applied = node.playbook("site", TWO, "--diff")
    assert applied.status == 0, applied.text
    assert _changes(applied.text) == _changes(check.text)
    handlers, default = node.product.loaded()
    assert sorted(handlers) == ["crun", "mine", "runc"] and default == "runc"
    assert handlers["mine"]["options"]["BinaryName"] == "/usr/local/bin/mine"
    assert node.product.restarts() == 2

    after = node.checksums()
    second = node.playbook("site", TWO, "--diff", "-vvv")
    assert second.status == 0 and second.recap["n1"]["changed"] == 0, second.text
    assert remote_calls(second.text) == ["runtime_handlers", "gate_facts"]
    assert node.checksums() == after and node.product.restarts() == 2
    assert "before: loaded now" not in second.text

    removed = node.playbook("remove", {})
    assert removed.status == 0 and removed.recap["n1"]["changed"] == 1, removed.text
    assert node.product.loaded()[1] == "runc" and sorted(node.product.loaded()[0]) == ["runc"]
    # Every file and directory is as it was; what the product itself keeps is its own directory.
    left = {path: facts for path, facts in node.checksums().items() if not path.startswith("/var/lib/runtime-gate")}
    assert left == first


def _is_configuration(path: str) -> bool:
    return path.startswith("/etc/containerd/") and path.endswith(".toml")


def _changes(text: str) -> t.List[str]:
    """The lines of a diff that are added or taken away."""
    return [line for line in text.splitlines() if line[:1] in "+-" and line[:1]]


@on("2.1")
def test_a_failed_proof_changes_nothing(node: RealNode) -> None:
    """The binary on disk has been replaced by one that does not take our drop-in."""
    shutil.copy(node.host.path("/usr/bin/containerd"), node.host.path("/usr/lib/containerd"))
    node.host.path("/usr/bin/containerd").unlink()
    node.host.install_script(
        "/usr/bin/containerd",
        '#!/bin/bash\n[ ! -e /etc/containerd/conf.d/zz-runtime-gate.toml ] || { echo "containerd: no crun here" >&2; exit 1; }\n'
        'exec -a containerd /usr/lib/containerd "$@"\n',
    )
    first = node.checksums()
    run = node.playbook("site", TWO)
    assert run.status == 2 and "The proof failed, nothing was changed: /usr/bin/containerd does not load the planned files" in run.text
    assert "no crun here" in run.text
    assert node.checksums() == first and node.product.restarts() == 1


@on("2.1")
def test_a_restart_that_fails_is_taken_back(node: RealNode) -> None:
    """The service manager starts the daemon with the old files and not with the new ones."""
    node.host.install_script(
        "/usr/local/sbin/picky-restart",
        "#!/bin/sh\n%s || exit 1\n[ ! -e /etc/containerd/conf.d/zz-runtime-gate.toml ] || { echo picky >&2; exit 3; }\n" % RESTART,
    )
    first = node.checksums()
    run = node.playbook("site", {**TWO, "runtime_gate_restart_command": ["/usr/local/sbin/picky-restart"]})
    assert run.status == 2 and "The change failed:" in run.text and "picky" in run.text, run.text
    assert "The old configuration is back, and the daemon has what it had before." in run.text
    assert sorted(node.product.loaded()[0]) == ["runc"]
    assert {path: facts for path, facts in node.checksums().items() if _is_configuration(path)} == {
        path: facts for path, facts in first.items() if _is_configuration(path)
    }
    # … and one more run with a manager that works converges.
    assert node.playbook("site", TWO).status == 0
    assert sorted(node.product.loaded()[0]) == ["crun", "mine", "runc"]


@on("2.1")
def test_never_restarting_is_told_and_made_up_for(node: RealNode) -> None:
    never = {**TWO, "runtime_gate_restart": "never"}
    result = node.product.change({"handlers": TWO["runtime_gate_handlers"], "restart": "never"})
    assert result["changed"] and result["restart_pending"] and not result["restarted"]
    assert sorted(node.product.loaded()[0]) == ["runc"]
    again = node.product.change({"handlers": TWO["runtime_gate_handlers"], "restart": "never"})
    assert not again["changed"] and again["restart_pending"] and node.product.calls == ["collect"]
    # The gate does not take the files' word for it.
    run = node.playbook("site", never)
    assert run.status == 2 and "restart" in run.text
    made_up = node.product.change({"handlers": TWO["runtime_gate_handlers"]})
    assert made_up["changed"] and made_up["restarted"] and made_up["diff"][0]["after_header"] == "loaded after the restart"
    assert sorted(node.product.loaded()[0]) == ["crun", "mine", "runc"]


_REFUSALS: t.Tuple[t.Tuple[t.Dict[str, t.Any], str], ...] = (
    ({"handlers": {"Crun_X": {"preset": "crun"}}}, "cannot be a handler: RuntimeClass.handler must be a DNS label"),
    ({"handlers": {"crun": {"preset": "crum"}}}, "there is no preset 'crum' (did you mean crun?)"),
    ({"handlers": {"crun": {"preset": "crun", "options": {"SystemdCgoup": True}}}}, "SystemdCgroup"),
    ({"handlers": {"runsc": {"preset": "gvisor"}}}, "allow_absent_binary: true"),
    ({"handlers": {"crun": {"preset": "crun"}}, "default_handler": "crun"}, "runtime_gate_accept_blast_radius: true"),
    ({"handlers": {}, "default_handler": "nowhere"}, "nowhere"),
    ({"handlers": {"crun": {"preset": "crun"}}, "target_version": "1.7.24"}, "target_version is 1.7.24"),
)


@on("2.1")
def test_refusals_say_why_and_change_nothing(node: RealNode) -> None:
    first = node.checksums()
    for options, words in _REFUSALS:
        result = node.product.change(options)
        assert result["failed"] and words in result["msg"], (options, result)
        assert "apply" not in node.product.calls
    assert node.checksums() == first and node.product.restarts() == 1


def test_refusals_of_the_playbook() -> None:
    node = RealNode("2.1", 'disabled_plugins = ["cri"]\n')
    try:
        first = node.checksums()
        run = node.playbook("site", TWO)
        assert run.status == 2 and "CRI is switched off by disabled_plugins" in run.text and "repair: true mends it" in run.text
        recorded = node.playbook("site", {**TWO, "runtime_gate_captures": "/run/captures"})
        assert recorded.status == 2 and "recordings can be judged, not written" in recorded.text
        assert node.checksums() == first and node.product.ask()["state"] == "unimplemented"
    finally:
        node.close()


def test_secrets_of_a_root_file_stay_in_it() -> None:
    """1.7: handlers are merged into the very file that holds the registry passwords."""
    secret = (
        ROOT
        + '[%s.registry.configs."a.example".auth]\n  username = "joe"\n  password = "%s"\n' % (OLD, PASSWORD)
        + '[%s.registry.configs."b.example".auth]\n  auth = \'%s\'\n' % (OLD, PASSWORD[::-1])
    )
    node = RealNode("1.7", secret)
    try:
        said = ""
        for name, variables in (("site", TWO), ("remove", {})):
            run = node.playbook(name, variables, "--diff", "-vvvvv")
            assert run.status == 0 and run.recap["n1"]["changed"] == 1, run.text[-3000:]
            said += run.text
            text = node.host.path("/etc/containerd/config.toml").read_text()
            assert 'password = "%s"\n' % PASSWORD in text and "auth = '%s'\n" % PASSWORD[::-1] in text
            assert ("runtimes.mine" in text) == (name == "site")
        assert text == secret
        said += node.host.path("/run/ansible.log").read_text(errors="replace")
        said += node.host.path("/var/lib/runtime-gate/last-run.json").read_text()
        assert PASSWORD not in said and PASSWORD[::-1] not in said
        assert "__RUNTIME_GATE_MASKED_1__" in said
        for path in ("/run/ansible-local", "/run/ansible-remote"):
            for file in node.host.path(path).rglob("*"):
                assert not file.is_file() or PASSWORD.encode() not in file.read_bytes(), file
    finally:
        node.close()
