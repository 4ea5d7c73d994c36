# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is special about a change of CRI-O on its node: no reload, no draft that it reads, its own command, and what it has loaded."""

from __future__ import annotations

import http.client
import pathlib
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import (
    cri,
    crio,
    discovery,
    grpc_unary,
    handlers_steps,
    proof,
    restart,
    transaction,
    tree,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.secrets import Masker

_REFUSAL = "failed to find runtime handler x from runtime list map[crun:0xc1 mine:0xc2]"


@pytest.mark.parametrize(
    "command", [["systemctl", "reload", "crio"], ["kill", "-HUP", "1"], ["pkill", "-SIGHUP", "crio"], ["systemctl", "reload-or-restart", "crio"]]
)
def test_a_command_that_reloads_is_refused(command: t.List[str]) -> None:
    with pytest.raises(RuntimeGateError, match="a reload loads no handler"):
        restart.find(None, command, 5, "crio")


def test_the_kill_mode_of_its_unit_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "unit", lambda _name, _timeout: {"name": "crio.service", "kill_mode": "control-group"})
    assert restart.find("crio.service", None, 5, "crio").unit == "crio.service"
    with pytest.raises(RuntimeGateError, match="KillMode=control-group"):
        restart.find("crio.service", None, 5)


def test_no_draft_lies_where_it_is_read(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "crio" / "crio.conf.d"
    directory.mkdir(parents=True)
    ours = directory / "zz-runtime-gate.conf"
    reads = tree.ReadDirectory(str(tmp_path / "crio" / "crio.conf"), str(directory))
    assert reads.match(str(tmp_path / "crio" / "crio.conf")) and reads.match(str(directory / "old" / "x.bak"))
    assert not reads.match(str(tmp_path / "crio" / "x.conf"))
    write = {"path": str(ours), "text": "# x\n", "sha256": None, "mode": "0644"}
    changes = tree.read_changes([write], str(ours), Masker())
    tree.check_single_step(changes, reads)
    assert {str(pathlib.Path(name).parent) for name in (changes[0].draft, changes[0].aside)} == {str(tmp_path / "crio")}
    monkeypatch.setattr(tree, "_device", lambda path: path == str(directory))
    with pytest.raises(RuntimeGateError, match="CRI-O reads every name beside"):
        tree.check_single_step(changes, reads)


@pytest.mark.parametrize(
    ("plan", "command"),
    [
        ({"config_path": "/etc/crio/crio.conf", "config_dir": "/d"}, ["crio", "--config-dir", "/d", "config"]),
        (
            {"config_path": "/x.conf", "config_dir": "/d", "dump_options": ["--default-runtime=runc"]},
            ["crio", "--config", "/x.conf", "--config-dir", "/d", "--default-runtime=runc", "config"],
        ),
        ({"config_path": "", "config_dir": "/d"}, ["crio", "--config", "", "--config-dir", "/d", "config"]),
    ],
)
def test_the_command_that_loads_the_planned_files(plan: t.Dict[str, t.Any], command: t.List[str]) -> None:
    assert transaction._Run(dict(plan, engine="crio"), {})._dump_command() == command


def _answers(monkeypatch: pytest.MonkeyPatch, refusal: t.Any, config: t.Any) -> None:
    info = {"status": {"conditions": [{"type": "RuntimeReady", "status": True}]}, "runtimeHandlers": [{"name": "crun"}, {"name": ""}, {"name": "lie"}]}
    monkeypatch.setattr(cri, "ask", lambda _socket, _timeout: cri.Answer("v1", "cri-o", "1.36.3", info))
    monkeypatch.setattr(proof, "_identity", lambda _socket, _timeout: "b/1/2")

    def say(what: t.Any) -> t.Callable[..., t.Any]:
        def call(*_arguments: t.Any) -> t.Any:
            if isinstance(what, Exception):
                raise what
            return what

        return call

    monkeypatch.setattr(crio, "probe", say(refusal))
    monkeypatch.setattr(crio, "ask_config", say(config))


def test_what_sandboxes_can_have_counts_and_not_what_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    _answers(monkeypatch, _REFUSAL, b'[crio.runtime]\ndefault_runtime = "mine"\n[crio.runtime.runtimes.crun]\n[crio.runtime.runtimes.lie]\n')
    answer = proof.look("/s", 1)
    assert (answer.state, answer.handlers, answer.default, answer.conditions) == ("served", ["crun", "mine"], "mine", ["RuntimeReady"])


def test_where_it_tells_less(monkeypatch: pytest.MonkeyPatch) -> None:
    _answers(monkeypatch, grpc_unary.NoAnswer("timeout", "x"), http.client.HTTPException("404"))
    answer = proof.look("/s", 1)
    assert (answer.handlers, answer.default) == (["crun", "lie"], "crun")


def test_programs_are_looked_up_as_it_does(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = tmp_path / "configuration.toml"
    plain.write_text("x\n")
    monkeypatch.setattr(handlers_steps.transaction, "recover", lambda _options: None)
    monkeypatch.setattr(handlers_steps, "collect", lambda _options: {"node": {"engine": "crio"}})
    request = {"step": "collect", "options": {}, "collect": {}, "executables": ["/no"], "crio_executables": [str(plain), "sh"]}
    node = handlers_steps.run(request)["capture"]["node"]
    assert node["not_executable"] == [str(plain)] and node["binaries"]["sh"] is True and "/no" not in node["binaries"]
    assert node["machine_config"] is False
    monkeypatch.setattr(handlers_steps, "_MACHINE_CONFIG", (str(plain),))
    assert handlers_steps.run(request)["capture"]["node"]["machine_config"] is True
