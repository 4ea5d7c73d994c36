# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole collector on nodes made of files, fake programs and a fake CRI server. Real daemons: tests/integration."""

from __future__ import annotations

import json
import os
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import collect, commands, discovery
from ansible_collections.kubenode.runtime_gate.tests.unit.fake_node import FakeProc, write_tree
from ansible_collections.kubenode.runtime_gate.tests.unit.node_tables import (
    INFO,
    SECRET,
    SETTINGS_FRAME,
    STATUS,
    FakeServer,
    grpc_answer,
    message,
    sends,
    trailers,
)

_VERSION = grpc_answer(message((2, "containerd"), (3, "v2.1.9")))
_DUMP = 'version = 3\n[plugins."io.containerd.cri.v1.images".registry.configs.r.auth]\npassword = "%s"\n' % SECRET


class Node:
    """A node whose containerd is this process (for the kernel: it owns the fake server's socket)."""

    def __init__(self, directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.proc = FakeProc(directory / "proc")
        self.programs: t.Dict[str, t.Union[commands.Output, commands.CommandFailed]] = {
            "--version": commands.Output(b"containerd github.com/containerd/containerd v2.1.9 abc\n", b"", 0, False),
            "dump": commands.Output(_DUMP.encode(), b'level=warning msg="near %s"' % SECRET.encode(), 0, False),
        }
        self.ran: t.List[t.List[str]] = []
        self.seconds: t.List[float] = []
        self.unit: t.Optional[t.Dict[str, t.Any]] = None
        self.config = str(directory / "etc/containerd/config.toml")
        monkeypatch.setattr(collect.processes, "node_processes", self.proc.processes)
        monkeypatch.setattr(collect.commands, "run", self._run)
        monkeypatch.setattr(collect.discovery, "unit", lambda _name, _timeout: self.unit)
        monkeypatch.setattr(collect.shutil, "which", lambda name, path=None: None)
        monkeypatch.setattr(collect, "_CRICTL_PLACES", ())

    def _run(self, argv: t.Sequence[str], timeout: float, executable: t.Optional[str] = None, cwd: str = "/", **_more: t.Any) -> commands.Output:
        self.ran.append(list(argv))
        self.seconds.append(timeout)
        answer = self.programs.get("%s %s" % (os.path.basename(argv[0]), argv[-1])) or self.programs[argv[-1]]
        if isinstance(answer, commands.CommandFailed):
            raise answer
        return answer

    def daemon(self, socket: str, **more: t.Any) -> None:
        argv = ["/usr/bin/containerd", "-c", self.config, "-a", socket, "--token", SECRET]
        more = {"exe": "/usr/bin/containerd", "environment": {"PATH": str(self.directory / "bin")}, **more}
        self.proc.add(os.getpid(), argv, **more)

    def write(self, tree: t.Mapping[str, t.Any]) -> None:
        write_tree(self.directory, tree)

    def collect(self, **options: t.Any) -> t.Dict[str, t.Any]:
        capture = collect.collect({"timeout": 2.0, **options})
        text = json.dumps(capture)
        assert SECRET not in text
        yaml.safe_dump(capture)
        return json.loads(text)


@pytest.fixture(name="node")
def _node(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


def test_a_daemon_that_answers(node: Node) -> None:
    node.write(
        {
            "/etc/containerd/config.toml": 'version = 3\npassword = "%s"\nruntime_type = "io.containerd.kata.v2"\n' % SECRET,
            "/etc/containerd/broken.toml": 'password = %s' % SECRET,
            "/etc/containerd/utf16.toml": "a = 1".encode("utf-16"),
            "/bin/containerd-shim-kata-v2": "",
        }
    )
    (node.directory / "bin/containerd-shim-kata-v2").chmod(0o755)
    with FakeServer(sends(b""), grpc_answer(STATUS), _VERSION) as server:
        node.daemon(server.path)
        node.proc.add(99, ["kubelet", "--container-runtime-endpoint=" + server.path, "--hostname-override=n1", "--token=" + SECRET])
        capture = node.collect()
    facts = capture["node"]
    assert facts["problems"] == []
    assert capture["info"] == INFO and facts["cri_state"] == "served" and facts["cri_api"] == "v1"
    assert "cri_error" not in facts
    assert (facts["name"], facts["serves_kubelet"], facts["version"]) == ("n1", True, "v2.1.9")
    assert facts["config_path"] == node.config and facts["endpoint"] == "unix://" + server.path
    assert facts["daemon_exe"] == "/usr/bin/containerd" and facts["daemon_path"] == str(node.directory / "bin")
    assert facts["cmdline"].endswith("--token __RUNTIME_GATE_MASKED_1__")
    assert facts["kubelet"]["cmdline"].endswith("--token=__RUNTIME_GATE_MASKED_1__")
    assert facts["kubelet"]["endpoint_source"] == "flag" and "config_path" not in facts["kubelet"]
    assert list(facts["withheld"]) == [str(node.directory / "etc/containerd/broken.toml")]
    utf16 = str(node.directory / "etc/containerd/utf16.toml")
    assert "UTF-16" in facts["not_utf8"][utf16] and capture["files"][utf16] == "a = 1"
    assert sorted(capture["files"]) == [node.config, utf16]
    assert set(facts["sha256"]) == set(facts["files"]) and len(facts["files"]) == 3
    assert facts["binaries"]["containerd-shim-kata-v2"] is True and "runc" in facts["binaries"]
    assert capture["dump"]["rc"] == 0 and "__RUNTIME_GATE_MASKED_1__" in capture["dump"]["stdout"]
    assert "near __RUNTIME_GATE_MASKED_1__" in capture["dump"]["stderr"]
    assert ["/usr/bin/containerd", "-c", node.config, "config", "dump"] in node.ran
    assert not facts["needs_become"]


# what the server answers -> state, words of the error
STATES = {
    "dead plugin": ([sends(SETTINGS_FRAME + trailers(12, "unknown service runtime.v1.RuntimeService"))] * 2, "unimplemented", "Unimplemented"),
    "starting": ([sends(SETTINGS_FRAME + trailers(2, "server is not initialized yet"))], "undetermined", "not initialized"),
    "not protobuf": ([grpc_answer(b"\xff")], "undetermined", "number"),
    "not grpc": ([sends(b"HTTP/1.1 400 Bad\r\n\r\n")], "undetermined", "no gRPC"),
    "hangs": ([sends(b"", 3)], "undetermined", "no answer within 0.3 s"),
    "too deep": ([grpc_answer(message((1, b""), (2, message((1, "config"), (2, "[" * 900 + "]" * 900))))), _VERSION], "undetermined", "deep"),
}


@pytest.mark.parametrize("name", STATES)
def test_a_daemon_that_does_not_answer(node: Node, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    scripts, state, words = STATES[name]
    if name == "too deep":
        monkeypatch.setattr(collect.Masker, "json", _too_deep)
    with FakeServer(sends(b""), *scripts) as server:
        node.daemon(server.path)
        facts = node.collect(endpoint=server.path, timeout=0.3)["node"]
    assert facts["cri_state"] == state
    assert words in facts["cri_error"]


def _too_deep(_masker: t.Any, _value: t.Any) -> t.NoReturn:
    raise RecursionError


def test_a_dead_socket(node: Node) -> None:
    node.daemon("/nowhere.sock")
    facts = node.collect()["node"]
    assert (facts["cri_state"], facts["cri_error"]) == ("undetermined", "/nowhere.sock: no such file or directory")


def test_no_permission(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_path: str, _timeout: float) -> t.NoReturn:
        raise collect.grpc_unary.NoAnswer("permission", "permission denied")

    monkeypatch.setattr(collect.cri, "ask", refused)
    monkeypatch.setattr(collect.os, "geteuid", lambda: 1000)
    node.daemon("/x.sock", exe=None)
    facts = node.collect()["node"]
    assert (facts["cri_state"], facts["needs_become"]) == ("undetermined", True)
    assert "version" not in facts


def test_nothing_installed(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect.discovery, "installed", lambda *_arguments: None)
    capture = node.collect()
    assert capture["node"]["cri_state"] == "not_running" and capture["dump"] is None and capture["info"] is None
    assert "no containerd runs" in capture["node"]["cri_error"]


def _installed(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = discovery.Runtime("containerd", None, "/usr/bin/containerd", "/etc/containerd/config.toml", "/nowhere.sock")
    monkeypatch.setattr(collect.discovery, "installed", lambda *_arguments: runtime)


def test_installed_and_not_running(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    _installed(node, monkeypatch)
    capture = node.collect()
    assert capture["node"]["cri_state"] == "not_running" and capture["dump"]["rc"] == 0
    assert ["/usr/bin/containerd", "config", "dump"] in node.ran
    node.unit = {"name": "containerd.service", "exec_start": "/opt/containerd --config %s --token=%s" % (node.config, SECRET)}
    node.unit["exec_start"] = node.unit["exec_start"].replace("/opt/containerd", "/opt/bin/containerd")
    facts = node.collect()["node"]
    assert facts["config_path"] == node.config
    assert facts["unit"]["exec_start"].endswith("--token=__RUNTIME_GATE_MASKED_1__")
    assert ["/opt/bin/containerd", "-c", node.config, "config", "dump"] in node.ran


# command line of the unit -> next_version is looked up, next_config_path
UNITS = [
    ("/opt/new/containerd -c /new.toml", True, "/new.toml"),
    ("/usr/bin/containerd", False, "/etc/containerd/config.toml"),
    ("/usr/bin/containerd $ARGS", False, None),
    ("/usr/local/bin/k3s server", False, None),
    ("/usr/bin/containerd 'broken", False, None),
    ("", False, None),
]  # type: t.List[t.Tuple[str, bool, t.Optional[str]]]


@pytest.mark.parametrize("command, looked_up, config", UNITS)
def test_what_a_restart_would_run(
    node: Node, monkeypatch: pytest.MonkeyPatch, command: str, looked_up: bool, config: t.Optional[str]
) -> None:
    monkeypatch.setattr(collect.processes.Process, "exe_replaced", lambda _process: False)
    node.unit = {"name": "containerd.service", "exec_start": command}
    node.daemon("/x.sock")
    facts = node.collect()["node"]
    assert ("next_version" in facts, facts.get("next_config_path")) == (looked_up, config)


def test_an_upgrade_without_restart(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect.processes.Process, "exe_replaced", lambda _process: True)
    node.daemon("/x.sock")
    assert node.collect()["node"]["next_version"] == "v2.1.9"
    node.programs["containerd --version"] = commands.CommandFailed("containerd cannot be started: gone")
    facts = node.collect()["node"]
    assert "version" not in facts and any("gone" in problem for problem in facts["problems"])


def test_a_version_that_cannot_be_read_on_disk(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    real = node._run

    def run(argv: t.Sequence[str], timeout: float, executable: t.Optional[str] = None, cwd: str = "/", **_more: t.Any) -> commands.Output:
        if executable is None:
            raise commands.CommandFailed("no such file")
        return real(argv, timeout, executable, cwd)

    monkeypatch.setattr(collect.commands, "run", run)
    monkeypatch.setattr(collect.processes.Process, "exe_replaced", lambda _process: True)
    node.daemon("/x.sock")
    facts = node.collect()["node"]
    assert "next_version" not in facts and facts["problems"] == ["the version on disk is not known: no such file"]


def test_a_program_that_fails_at_version(node: Node) -> None:
    node.programs["--version"] = commands.Output(b"", b"cannot execute", 126, False)
    node.daemon("/x.sock")
    facts = node.collect()["node"]
    assert "version" not in facts and facts["version_output"] == "cannot execute"


# dump -> what is in the capture
DUMPS = [
    (commands.CommandFailed("containerd did not end within 5 s"), "dump_error", "did not end"),
    (commands.Output(b"x" * 10, b"", 0, True), "truncated", "longer than"),
    (commands.Output(b"password = %s" % SECRET.encode(), b"", 0, False), "withheld", "no readable TOML"),
    (commands.Output(b"\xff", b"", 0, False), "withheld", "no UTF-8"),
]  # type: t.List[t.Tuple[t.Any, str, str]]


@pytest.mark.parametrize("dump, key, words", DUMPS)
def test_dumps(node: Node, dump: t.Any, key: str, words: str) -> None:
    node.programs["dump"] = dump
    node.daemon("/x.sock")
    capture = node.collect()
    assert capture["dump"] is None
    assert words in json.dumps(capture["node"][key])


def test_a_program_gets_more_time_than_a_socket(node: Node) -> None:
    node.programs["dump"] = commands.Output(b"", b"", 0, False)
    node.daemon("/x.sock")
    node.collect(timeout=2.0)
    assert {words[-1]: seconds for words, seconds in zip(node.ran, node.seconds)}["dump"] == 8.0


def test_a_failing_dump_is_kept(node: Node) -> None:
    node.programs["dump"] = commands.Output(b"", b"containerd: failed to load TOML", 1, False)
    node.daemon("/x.sock")
    assert node.collect()["dump"] == {"stdout": "", "stderr": "containerd: failed to load TOML", "rc": 1}


def test_undecided(node: Node) -> None:
    node.daemon("/x.sock")
    for pid, path in ((98, "/b.sock"), (99, "/a.sock")):
        node.proc.add(pid, ["kubelet", "--container-runtime-endpoint=" + path])
    capture = node.collect()
    facts = capture["node"]
    assert (facts["cri_state"], facts["undecided"]) == ("undetermined", ["/a.sock", "/b.sock"])
    assert facts["cri_error"] == facts["undecided_reason"] == "2 kubelets run on this node"
    assert [runtime["pid"] for runtime in facts["runtimes"]] == [os.getpid()]


def test_options_win(node: Node) -> None:
    node.write({"/other.toml": "version = 2\n"})
    node.daemon("/x.sock")
    path = str(node.directory / "other.toml")
    capture = node.collect(config_path=path, containerd="/opt/containerd")
    assert capture["node"]["config_path"] == path and path in capture["files"]
    assert "next_version" in capture["node"]


# ---- crictl

CRICTL_ANSWERS = [
    (commands.Output(json.dumps(INFO).encode(), b"", 0, False), "served", True),
    (commands.Output(b"no json", b"", 0, False), "undetermined", False),
    (commands.Output(b"[]", b"", 0, False), "undetermined", False),
    (commands.Output(b"", b"getting status: ...", 1, False), "undetermined", False),
    (commands.CommandFailed("crictl did not end within 4 s"), "undetermined", False),
]  # type: t.List[t.Tuple[t.Any, str, bool]]


@pytest.mark.parametrize("answer, state, has_info", CRICTL_ANSWERS)
def test_crictl(node: Node, answer: t.Any, state: str, has_info: bool) -> None:
    node.programs["crictl --version"] = commands.Output(b"crictl version v1.34.0\n", b"", 0, False)
    node.programs["crictl info"] = answer
    node.daemon("/x.sock")
    capture = node.collect(crictl="/opt/bin/crictl")
    assert (capture["node"]["cri_state"], capture["info"] is not None) == (state, has_info)
    assert capture["node"]["crictl"] == "1.34.0"
    assert ["/opt/bin/crictl", "--runtime-endpoint", "unix:///x.sock", "--timeout", "2000ms", "info"] in node.ran


def test_when_crictl_fails_cri_is_asked_without_it(node: Node) -> None:
    node.programs["crictl --version"] = commands.Output(b"", b"", 0, False)
    node.programs["crictl info"] = commands.Output(b"", b"", 1, False)
    with FakeServer(sends(b""), grpc_answer(STATUS), _VERSION) as server:
        node.daemon(server.path)
        facts = node.collect(crictl="/crictl", endpoint=server.path)["node"]
    assert facts["cri_state"] == "served" and "crictl" not in facts


# ---- a daemon in a mount namespace of its own

def test_a_foreign_mount_namespace(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.daemon("/x.sock", mnt_ns="mnt:[9]")
    root = node.directory / "proc" / str(os.getpid()) / "root"
    os.symlink(node.directory / "theirs", root)
    write_tree(node.directory / "theirs", {node.config: "version = 2\n"})
    capture = node.collect()
    assert capture["files"] == {node.config: "version = 2\n"}
    assert "no nsenter" in capture["node"]["dump_error"] and any("nsenter" in text for text in capture["node"]["problems"])
    monkeypatch.setattr(collect.shutil, "which", lambda name, path=None: "/usr/bin/nsenter" if name == "nsenter" else None)
    node.collect(crictl="/crictl")
    expected = ["/usr/bin/nsenter", "--mount", "--target", str(os.getpid()), "--", "/usr/bin/containerd", "--version"]
    assert expected in node.ran


def test_k3s_is_called_by_the_name_of_its_program(node: Node) -> None:
    node.proc.add(7, ["containerd", "-c", "/c.toml"], exe="/data/bin/k3s")
    node.collect()
    assert ["containerd", "--version"] in node.ran


# ---- whatever happens

@pytest.mark.parametrize("step", ["identify", "discover", "describe_unit", "find_versions", "read_files", "run_dump", "ask_cri", "find_binaries"])
def test_it_never_raises(node: Node, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def broken(_collector: t.Any) -> t.NoReturn:
        raise ValueError("strange: password=%s" % SECRET)

    broken.__name__ = step
    monkeypatch.setattr(collect._Collector, step, broken)
    node.daemon("/x.sock")
    facts = node.collect()["node"]
    assert any(problem.startswith("%s: ValueError in test_collect.py:" % step) for problem in facts["problems"])


def test_systemctl_fails(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_name: t.Any, _timeout: float) -> t.NoReturn:
        raise commands.CommandFailed("systemctl show x ended with 1")

    monkeypatch.setattr(collect.discovery, "unit", fails)
    assert node.collect()["node"]["problems"] == ["systemctl show x ended with 1"]


def test_the_version_is_that_of_the_collection() -> None:
    galaxy = pathlib.Path(__file__).resolve().parents[5] / "galaxy.yml"
    assert collect.COLLECTOR == "kubenode.runtime_gate " + str(yaml.safe_load(galaxy.read_text())["version"])


def test_a_machine_without_identity(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "_first_line", lambda _path: None)
    monkeypatch.setattr(collect.discovery, "distribution", lambda *_arguments: None)
    facts = node.collect()["node"]
    assert "boot_id" not in facts and "distribution" not in facts
