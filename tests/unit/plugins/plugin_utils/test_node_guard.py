# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of a cordoned Node, by how the change ended; on an API server that is a mapping. tests/cluster has a real one."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import node_guard
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_reader import Answer
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_api import NodeApi
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import RunStore

MARK = "runtime-gate.kubenode.io/cordoned"
OPTIONS = {"cluster": {}, "node_name": None, "prefix": "runtime-gate.kubenode.io", "drain": False, "remove": False}
NODE = {"metadata": {"name": "w1", "uid": "u", "resourceVersion": "1"}, "spec": {}, "status": {"nodeInfo": {"bootID": "b-1"}}}


class Server:
    """One Node, merge patches on it, and a server that can stop answering."""

    def __init__(self) -> None:
        self.node: t.Dict[str, t.Any] = json.loads(json.dumps(NODE))
        self.down = False
        self.asked: t.List[str] = []

    def __call__(self, method: str, path: str, query: t.Any, body: t.Optional[bytes], content: t.Optional[str]) -> Answer:
        self.asked.append(method)
        if self.down:
            raise RuntimeGateError("the API server did not answer")
        if body:
            patch = json.loads(body)
            annotations = self.node["metadata"].setdefault("annotations", {})
            annotations.update(patch["metadata"]["annotations"])
            self.node["metadata"]["annotations"] = {key: value for key, value in annotations.items() if value is not None}
            self.node["spec"].update(patch.get("spec") or {})
        return Answer(200, json.dumps(self.node).encode())

    @property
    def state(self) -> t.Tuple[bool, t.Optional[str]]:
        return bool(self.node["spec"].get("unschedulable")), self.node["metadata"].get("annotations", {}).get(MARK)


@pytest.fixture(name="server")
def _server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setattr(node_guard, "open_api", lambda _cluster, dry_run: NodeApi(made, dry_run, pause=lambda _seconds: None))
    monkeypatch.setattr(node_guard, "read_cluster", lambda *_args, **_keys: {"nodes": [made.node]})
    return made


def guard(tmp_path: pathlib.Path, check: bool = False, **options: t.Any) -> node_guard.NodeGuard:
    made = node_guard.NodeGuard({**OPTIONS, **options}, "host-1", check, RunStore(str(tmp_path)))
    made.know({"hostname": "w1", "boot_id": None})
    return made


def ended(**keys: t.Any) -> t.Dict[str, t.Any]:
    result = {"changed": True, "restarted": True, "rolled_back": False, "proved": True, "restart_pending": False, "cordoned": True, "msg": "It failed."}
    return {**result, **keys}


def test_a_change_that_was_proved_waits_for_the_gate(tmp_path: pathlib.Path, server: Server) -> None:
    one = guard(tmp_path)
    assert one.before_restart() == {"cordoned": True, "evicted": []} and one.taken
    one.settle(ended())
    assert server.state[0] and server.state[1] and not one.taken


@pytest.mark.parametrize(
    ("how", "cordoned"),
    [
        pytest.param({"rolled_back": True}, False, id="taken back and proved"),
        pytest.param({"rolled_back": True, "restarted": False, "proved": False}, False, id="taken back before the restart"),
        pytest.param({"rolled_back": True, "proved": False}, True, id="taken back, not proved"),
        pytest.param({"rolled_back": False, "proved": False}, True, id="the way back failed"),
        pytest.param({"rolled_back": False, "proved": True}, True, id="failed after the proof"),
    ],
)
def test_a_change_that_failed(tmp_path: pathlib.Path, server: Server, how: t.Dict[str, t.Any], cordoned: bool) -> None:
    one = guard(tmp_path)
    one.before_restart()
    result = ended(failed=True, **how)
    one.settle(result)
    assert server.state == ((True, "It failed.") if cordoned else (False, None)) and result["cordoned"] is cordoned
    assert result["msg"] == ("It failed. Node w1 stays cordoned." if cordoned else "It failed. Node w1 takes pods again.")


@pytest.mark.parametrize("how", [{"rolled_back": True}, {"rolled_back": False}])
def test_an_api_server_that_is_gone_by_then_is_said_beside_the_failure(tmp_path: pathlib.Path, server: Server, how: t.Dict[str, t.Any]) -> None:
    one = guard(tmp_path)
    one.before_restart()
    server.down = True
    result = ended(failed=True, **how)
    one.settle(result)
    assert result["msg"].startswith("It failed. Node w1 ") and "cordoned" in result["msg"] and "did not answer" in result["msg"]


def test_a_host_whose_state_is_not_known_keeps_the_cordon(tmp_path: pathlib.Path, server: Server) -> None:
    one = guard(tmp_path)
    one.before_restart()
    assert one.keep("The connection was lost.") == "Node w1 stays cordoned." and server.state == (True, "The connection was lost.")


def test_removal_gives_back_after_the_proof_and_finds_what_a_lost_run_left(tmp_path: pathlib.Path, server: Server) -> None:
    one = guard(tmp_path, remove=True)
    one.before_restart()
    one.settle(ended())
    assert server.state == (False, None)
    guard(tmp_path).before_restart()
    later = guard(tmp_path, remove=True)
    result = ended(changed=False, restarted=False)
    later.settle(result)
    assert server.state == (False, None) and result["changed"]
    later.settle(result)
    assert server.asked[-1] == "GET"
    server.down = True
    later.settle(result)
    assert result["failed"] and "could not be given back" in result["msg"]


def test_a_removal_that_still_waits_for_its_restart_gives_nothing_back(tmp_path: pathlib.Path, server: Server) -> None:
    guard(tmp_path).before_restart()
    guard(tmp_path, remove=True).settle(ended(restarted=False, restart_pending=True))
    assert server.state[0]


def test_check_mode_settles_nothing(tmp_path: pathlib.Path, server: Server) -> None:
    one = guard(tmp_path, check=True, remove=True)
    one.settle(ended())
    assert server.asked == []


def test_no_restart_no_question(tmp_path: pathlib.Path, server: Server) -> None:
    guard(tmp_path).settle(ended(restarted=False))
    assert server.asked == []


def test_who_writes_does_not_guess(tmp_path: pathlib.Path, server: Server) -> None:
    stranger = guard(tmp_path, node_name="w9")
    with pytest.raises(RuntimeGateError, match="Node w9 is not registered"):
        stranger.before_restart()
    doubtful = guard(tmp_path, node_name="w9")
    doubtful.know({"boot_id": "b-1"})
    with pytest.raises(RuntimeGateError, match="same boot id.*set runtime_gate_node_name"):
        doubtful.before_restart()
    assert server.asked == []
    with pytest.raises(RuntimeGateError, match="runtime_gate_prefix"):
        guard(tmp_path, prefix="kubernetes.io")
