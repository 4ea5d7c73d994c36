# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The flow of runtime_handlers: which calls are made, what is refused before any of them changes something, what is returned."""

from __future__ import annotations

import copy
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.handlers_options import HANDLERS_OPTIONS
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import handlers_flow

CONFIG = "/etc/containerd/config.toml"
OLD = 'plugins."io.containerd.grpc.v1.cri"'
ROOT = 'version = 2\n[%s.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n' % OLD
RUNC = {"runtimeType": "io.containerd.runc.v2"}
CRUN = {"runtimeType": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/bin/crun"}}
DUMP = """version = 3
[plugins.'io.containerd.cri.v1.runtime'.containerd]
default_runtime_name = 'runc'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
"""
WITH_CRUN = DUMP + """[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.crun]
runtime_type = 'io.containerd.runc.v2'
options = {BinaryName = '/usr/bin/crun'}
"""
Table = t.Dict[str, t.Any]


class Node:
    """A node of 2.1 whose answers a test sets.

    :ivar calls: the requests, in their order.
    """

    def __init__(self) -> None:
        self.calls: t.List[Table] = []
        self.recovered: t.Optional[Table] = None
        self.dump: Table = {"stdout": WITH_CRUN, "stderr": "", "rc": 0}
        self.applied: Table = {"ok": True, "changed": True, "state": "applied", "msg": "", "reasons": [], "restarted": True}
        self.applied.update(restart_pending=False, backup="/b", handlers=["crun", "runc"], default="runc", probe={}, notes=[], recovered=None)
        self.probed: Table = {"ok": True, "msg": "", "reasons": [], "probe": {"crun": None}, "notes": []}
        self.capture: Table = {
            "format": 1,
            "node": {
                "engine": "containerd",
                "version": "2.1.9",
                "config_path": CONFIG,
                "daemon_exe": "/usr/bin/containerd",
                "cri_state": "served",
                "binaries": {"/usr/bin/crun": True, "containerd-shim-runc-v2": True, "runc": True},
                "sha256": {CONFIG: "0" * 64},
                "unit": {"name": "containerd.service", "exec_start": "/usr/bin/containerd"},
            },
            "files": {CONFIG: ROOT},
            "dump": {"stdout": DUMP, "stderr": "", "rc": 0},
            "info": {"config": {"containerd": {"defaultRuntimeName": "runc", "runtimes": {"runc": RUNC}}}},
        }

    def __call__(self, request: Table) -> Table:
        self.calls.append(copy.deepcopy(request))
        if request["step"] == "collect":
            return {"capture": copy.deepcopy(self.capture), "recovered": self.recovered}
        if request["step"] == "probe":
            return self.probed
        if request["step"] == "prove":
            return {"exe": "/usr/bin/containerd", "dump": self.dump, "withheld": None, "binaries": {}}
        return self.applied

    @property
    def steps(self) -> t.List[str]:
        return [call["step"] for call in self.calls]

    def load(self, **handlers: Table) -> None:
        self.capture["info"]["config"]["containerd"]["runtimes"].update(handlers)

    def take(self) -> None:
        """The files become what the last plan wrote."""
        for write in self.calls[-1]["plan"]["writes"]:
            self.capture["files"][write["path"]] = write["text"]
            self.capture["node"]["sha256"][write["path"]] = "1" * 64


@pytest.fixture
def node() -> Node:
    return Node()


def change(node: Node, check: bool = False, alone: bool = True, **options: t.Any) -> Table:
    defaults = {name: spec.get("default") for name, spec in HANDLERS_OPTIONS.items()}
    return handlers_flow.change(node, dict(defaults, **dict({"handlers": {"crun": {"preset": "crun"}}}, **options)), check, alone)


def test_a_change_is_three_calls_and_the_second_run_one(node: Node) -> None:
    result = change(node)
    assert node.steps == ["collect", "prove", "apply"]
    assert node.calls[0]["executables"] == ["/usr/bin/crun", "containerd-shim-runc-v2"]
    assert result["changed"] and result["restarted"] and not result["rolled_back"]
    assert result["handlers"] == ["crun", "runc"] and result["default_handler"] == "runc"
    assert result["loaded_diff"] == ["handler crun: added (runtime_type io.containerd.runc.v2, options.BinaryName /usr/bin/crun)"]
    assert result["loaded_change"] == "handlers added: crun"
    assert [one["after_header"] for one in result["diff"]][0] == "loaded after the restart"
    # What is for people does not travel.
    assert {"changes", "notes", "conflicts", "kubespray", "section"}.isdisjoint(node.calls[2]["plan"])
    node.take()
    node.load(crun=CRUN)
    node.calls = []
    again = change(node)
    assert node.steps == ["collect"] and not again["changed"] and again["diff"] == [] and again["loaded_diff"] == [] and again["loaded_change"] == ""
    assert again["handlers"] == ["crun", "runc"] and not again["restart_pending"]


def test_check_mode_proves_and_stops(node: Node) -> None:
    result = change(node, check=True)
    assert node.steps == ["collect", "prove"] and node.calls[0]["options"]["check"] is True
    assert result["changed"] and result["pending_handlers"] == ["crun"] and result["handlers"] == ["runc"]
    assert result["restart_pending"] and not result["restarted"]


def test_what_is_loaded_and_lost_at_the_next_restart_is_pending_too(node: Node) -> None:
    loaded = node.capture["info"]["config"]["containerd"]["runtimes"]
    loaded["crun"] = dict(RUNC)
    assert change(node, check=True)["pending_handlers"] == ["crun"]


def test_a_lost_restart_is_made_up_for_and_never_is_never(node: Node) -> None:
    change(node)
    node.take()
    node.calls = []
    assert change(node)["changed"] and node.steps == ["collect", "prove", "apply"]
    node.calls = []
    result = change(node, restart="never")
    assert node.steps == ["collect"] and not result["changed"] and result["restart_pending"]


def test_sandboxes_are_made_of_a_node_that_is_as_declared_too(node: Node) -> None:
    change(node)
    node.take()
    node.load(crun=CRUN)
    node.calls = []
    result = change(node, probe="sandbox")
    assert node.steps == ["collect", "probe"] and node.calls[1]["handlers"] == ["crun"]
    assert result["probe"] == {"crun": None} and not result["changed"] and "failed" not in result
    node.probed.update(ok=False, msg="no sandbox of crun", reasons=["why"], probe={"crun": "why"}, notes=["a left-over"])
    result = change(node, probe="sandbox")
    assert (result["failed"], result["msg"], result["reasons"], result["notes"]) == (True, "no sandbox of crun", ["why"], ["a left-over"])
    node.calls = []
    assert change(node, probe="sandbox", check=True)["probe"] == {} and node.steps == ["collect"]


def test_removal_tells_the_proofs_what_goes_and_what_stays(node: Node) -> None:
    change(node)
    node.take()
    node.load(crun=CRUN)
    node.dump = {"stdout": DUMP, "stderr": 'level=warning msg="of the first state"', "rc": 0}
    node.calls = []
    result = change(node, remove=True)
    plan = node.calls[2]["plan"]
    assert plan["absent"] == ["crun"] and plan["keep"] == ["runc"] and plan["expect"] == {"handlers": [], "tables": {}, "default": "runc"}
    assert "warns about the planned files" in result["notes"][0]


def test_a_failed_proof_is_refused_with_every_reason(node: Node) -> None:
    node.dump = {"stdout": DUMP, "stderr": "", "rc": 0}
    with pytest.raises(handlers_flow.Refused, match="proof failed, nothing was changed: /usr/bin/containerd would not load handler crun") as caught:
        change(node)
    assert node.steps == ["collect", "prove"]
    assert caught.value.details["reasons"] == ["/usr/bin/containerd would not load handler crun"]
    assert caught.value.details["loaded_diff"]


def test_a_change_that_was_taken_back_fails_the_task(node: Node) -> None:
    node.applied.update(ok=False, changed=False, state="rolled_back", msg="The change failed: x.", reasons=["x"], handlers=None)
    node.applied["recovered"] = {"msg": "An interrupted change was undone."}
    result = change(node)
    assert result["failed"] and result["rolled_back"] and result["reasons"] == ["x"] and result["msg"] == "The change failed: x."
    assert result["notes"] == ["An interrupted change was undone."]


def test_the_default_needs_consent(node: Node) -> None:
    with pytest.raises(handlers_flow.Refused, match="reaches every pod") as caught:
        change(node, default_handler="crun")
    assert node.steps == ["collect"] and caught.value.details["loaded_diff"][-1] == "default handler: runc -> crun"


@pytest.mark.parametrize(
    "given, words",
    [
        ("systemctl restart 'a service'", ["systemctl", "restart", "a service"]),
        (["/bin/restart", "a b"], ["/bin/restart", "a b"]),
        ("", None),
        ([], None),
    ],
)
def test_a_restart_command_may_be_a_string(node: Node, given: t.Any, words: t.Any) -> None:
    change(node, restart_command=given)
    assert [call["options"].get("restart_command") for call in node.calls] == [words] * 3
    assert node.calls[2]["plan"]["restart_command"] == words


@pytest.mark.parametrize(
    "given, words",
    [
        ("systemctl stop x && systemctl start x", "needs a shell"),
        ("systemctl stop x; systemctl start x", "needs a shell"),
        ("restart 'x", "cannot be split into words"),
        ([1], "must be a list of words, or a string"),
        ({"a": "b"}, "must be a list of words, or a string"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_a_wrong_restart_command_is_refused_in_check_mode_too(node: Node, given: t.Any, words: str, check: bool) -> None:
    with pytest.raises(RuntimeGateError, match="runtime_gate_restart_command.* %s" % words):
        change(node, check=check, restart_command=given)
    assert node.steps == []


@pytest.mark.parametrize("key, value, words", [("needs_become", True, "become: true"), ("undecided", ["/a", "/b"], "/a, /b")])
def test_an_unclear_node_is_refused(node: Node, key: str, value: t.Any, words: str) -> None:
    node.capture["node"][key] = value
    with pytest.raises(RuntimeGateError, match=words):
        change(node)
    assert node.steps == ["collect"]


def test_a_wrong_declaration_needs_no_node(node: Node) -> None:
    with pytest.raises(RuntimeGateError, match="no preset"):
        change(node, handlers={"crun": {"preset": "crum"}})
    assert node.steps == []


def test_an_interrupted_change_is_told(node: Node) -> None:
    change(node)
    node.take()
    node.load(crun=CRUN)
    node.recovered = {"ok": True, "changed": True, "action": "finished", "msg": "It was finished."}
    result = change(node)
    assert result["changed"] and result["notes"] == ["It was finished."]
    node.recovered = {"ok": False, "changed": True, "action": "rolled_back", "msg": "It cannot be undone."}
    with pytest.raises(RuntimeGateError, match="cannot be undone"):
        change(node)


def test_the_executable_of_a_daemon_that_does_not_run(node: Node) -> None:
    del node.capture["node"]["daemon_exe"]
    node.capture["node"]["runtimes"] = [{"engine": "crio", "exe": "/usr/bin/crio"}, {"engine": "containerd", "exe": "/usr/bin/containerd"}]
    change(node)
    assert node.calls[1]["plan"]["exe"] == "/usr/bin/containerd"
    node.capture["node"]["runtimes"] = []
    change(node)
    assert node.calls[-2]["plan"]["exe"] is None


@pytest.mark.parametrize(
    "distribution, name, command, expected",
    [
        ("k3s", "k3s.service", "/usr/local/bin/k3s server --x", "k3s.service"),
        ("k3s", "k3s-agent.service", "/usr/local/bin/k3s agent", None),
        ("k3s", "k3s-lab.service", "/usr/local/bin/k3s agent --label server", None),
        ("rke2", "rke2-server.service", "", "rke2-server.service"),
        ("rke2", "rke2-agent.service", "", None),
        ("k0s", "k0scontroller.service", "/usr/bin/k0s controller --enable-worker", "k0scontroller.service"),
        ("k0s", "k0sworker.service", "/usr/bin/k0s worker 'broken", None),
        ("k0s", "", "", "k0s"),
        ("kubeadm", "containerd.service", "/usr/bin/containerd", None),
    ],
)
def test_which_restart_reaches_a_control_plane(distribution: str, name: str, command: str, expected: t.Optional[str]) -> None:
    unit = {"name": name, "exec_start": command}
    assert handlers_flow.control_plane({"distribution": distribution, "unit": unit}) == expected


def test_several_control_planes_at_once_need_consent(node: Node) -> None:
    server = {"name": "k0scontroller.service", "exec_start": "/usr/bin/k0s controller --enable-worker"}
    node.capture["node"].update(distribution="k0s", unit=server)
    node.capture["node"]["config_path"] = CONFIG
    with pytest.raises(handlers_flow.Refused, match="serial: 1") as caught:
        change(node, alone=False)
    assert "k0scontroller.service" in str(caught.value) and "apply" not in node.steps
    assert change(node, alone=False, restart_control_plane=True)["changed"]
    assert change(node, alone=True)["changed"]


def test_1_7_dumps_an_empty_root_file_where_it_will_be_gone(node: Node) -> None:
    """Its daemon starts without one, its config dump does not."""
    node.capture["node"].update(version="1.7.24", absent=[CONFIG], sha256={})
    node.capture["files"] = {}
    old = "version = 2\n[plugins.'io.containerd.grpc.v1.cri'.containerd]\ndefault_runtime_name = 'runc'\n"
    old += "[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc]\nruntime_type = 'io.containerd.runc.v2'\n"
    crun = "[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.crun]\nruntime_type = 'io.containerd.runc.v2'\n"
    node.capture["dump"] = {"stdout": "", "stderr": "no such file", "rc": 1}
    node.dump = {"stdout": old + crun + "options = {BinaryName = '/usr/bin/crun'}\n", "stderr": "", "rc": 0}
    change(node)
    assert node.calls[2]["plan"]["exe"] == "/usr/bin/containerd"
    node.take()
    node.capture["node"]["absent"] = []
    node.load(crun=CRUN)
    node.dump = {"stdout": old, "stderr": "", "rc": 0}
    change(node, remove=True)
    assert node.steps[-2:] == ["prove", "apply"] and node.calls[-2]["plan"] == node.calls[-1]["plan"]
    plan = node.calls[-1]["plan"]
    assert [write["text"] for write in plan["writes"]] == [None] and [write["text"] for write in plan["proof"]] == [""]
