# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node half on a node of CRI-O made of files, fake programs and a fake server. Real daemons: tests/integration."""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import socket
import time
import typing as t

import pytest
import yaml

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import collect, commands, crio, discovery
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.files import Files
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.kubelet import Kubelet
from ansible_collections.kubenode.runtime_gate.tests.unit.fake_node import FakeProc, write_tree
from ansible_collections.kubenode.runtime_gate.tests.unit.node_tables import (
    SECRET,
    SETTINGS_FRAME,
    STATUS,
    FakeServer,
    grpc_answer,
    message,
    sends,
    trailers,
)

_VERSION = grpc_answer(message((2, "cri-o"), (3, "1.36.3")))
_REFUSAL = "failed to find runtime handler x- from runtime list map[crun:0xc1 runc:0xc2]"
_REFUSES = sends(SETTINGS_FRAME + trailers(2, _REFUSAL))
_UNKNOWN = sends(SETTINGS_FRAME + trailers(12, "unknown service runtime.v1.RuntimeService"))
_CONFIG = '[crio.runtime]\ndefault_env = ["TOKEN=%s"]\n[crio.runtime.runtimes.runc]\nruntime_path = "/opt/x"\n' % SECRET


def _http(body: str, status: str = "200 OK") -> t.Callable[[socket.socket], None]:
    return sends(("HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)).encode())


class Node:
    """A node whose CRI-O is this process (for the kernel: it owns the fake server's socket)."""

    def __init__(self, directory: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.proc = FakeProc(directory / "proc")
        self.unit: t.Optional[t.Dict[str, t.Any]] = None
        self.ran: t.List[t.Tuple[t.List[str], t.Any]] = []
        self.config_dir = str(directory / "etc/crio/crio.conf.d")
        self.config = str(directory / "etc/crio/crio.conf")
        self.journal: t.Union[commands.Output, Exception] = commands.Output(b"", b"", 1, False)
        monkeypatch.setattr(collect.processes, "node_processes", self.proc.processes)
        monkeypatch.setattr(collect.commands, "run", self._run)
        monkeypatch.setattr(crio, "run", self._journal)
        monkeypatch.setattr(crio.shutil, "which", lambda name, path=None: "/bin/journalctl" if name == "journalctl" else None)
        monkeypatch.setattr(collect.discovery, "unit", lambda _name, _timeout: self.unit)
        monkeypatch.setattr(collect, "_CRICTL_PLACES", ())

    def _run(self, argv: t.Sequence[str], timeout: float, *_rest: t.Any, **more: t.Any) -> commands.Output:
        self.ran.append((list(argv), more.get("variables")))
        if argv[-1] == "--version":
            return commands.Output(b"crio version 1.36.3\nVersion: 1.36.3\n", b"", 0, False)
        return commands.Output(_CONFIG.encode(), b"level=info", 0, False)

    def _journal(self, argv: t.Sequence[str], timeout: float) -> commands.Output:
        if isinstance(self.journal, Exception):
            raise self.journal
        return self.journal

    def daemon(self, path: str, *more: str, **environment: str) -> None:
        argv = ["/usr/bin/crio", "-c", self.config, "-d", self.config_dir, "--listen", path, *more]
        self.proc.add(os.getpid(), argv, exe="/usr/bin/crio", environment={"PATH": str(self.directory / "bin"), "OTHER": SECRET, **environment})

    def write(self, tree: t.Mapping[str, t.Any]) -> None:
        write_tree(self.directory, tree)

    def collect(self, **options: t.Any) -> t.Dict[str, t.Any]:
        capture = collect.collect({"timeout": 2.0, "engine": "any", **options})
        text = json.dumps(capture)
        assert SECRET not in text
        yaml.safe_dump(capture)
        return json.loads(text)


@pytest.fixture(name="node")
def _node(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(tmp_path, monkeypatch)


def _collected(node: Node, *scripts: t.Callable[[socket.socket], None], **environment: str) -> t.Dict[str, t.Any]:
    with FakeServer(sends(b""), grpc_answer(STATUS), _VERSION, *scripts) as server:
        node.daemon(server.path, **environment)
        return node.collect(endpoint=server.path)


def test_a_daemon_that_answers(node: Node) -> None:
    node.write(
        {
            "/etc/crio/crio.conf": "[crio]\n",
            "/etc/crio/crio.conf.d/10": '[crio.runtime.runtimes.named]\n[crio.runtime.runtimes.x]\nruntime_path = "%s/opt/plain"\n' % node.directory,
            "/etc/crio/crio.conf.d/sub/.y.swp": 'password = "%s"\n' % SECRET,
            "/etc/crio/crio.conf.bak": "[crio]\n",
            "/opt/plain": "x",
            "/bin/named": "#!/bin/sh\n",
        }
    )
    (node.directory / "bin/named").chmod(0o755)
    capture = _collected(node, _http(_CONFIG), _REFUSES, CONTAINER_DEFAULT_RUNTIME="runc")
    facts = capture["node"]
    assert facts["problems"] == [] and (facts["engine"], facts["version"], facts["cri_state"]) == ("crio", "1.36.3", "served")
    assert (facts["config_path"], facts["config_dir"]) == (node.config, node.config_dir)
    assert facts["environment"] == {"CONTAINER_DEFAULT_RUNTIME": "runc"}
    assert sorted(os.path.relpath(path, node.directory) for path in capture["files"]) == [
        "etc/crio/crio.conf",
        "etc/crio/crio.conf.bak",
        "etc/crio/crio.conf.d/10",
        "etc/crio/crio.conf.d/sub/.y.swp",
    ]
    plain = str(node.directory / "opt/plain")
    assert facts["not_executable"] == [plain] and facts["binaries"][plain] is False and plain in facts["binary_times"]
    assert facts["binaries"]["named"] is True and facts["binaries"][str(node.directory / "bin/named")] is True
    assert "runtimes.runc" in capture["status_config"] and capture["probe"] == _REFUSAL and facts["reload_evidence"] == "unknown"
    argv, variables = next(item for item in node.ran if item[0][-1] == "config")
    assert argv[1:5] == ["--config", node.config, "--config-dir", node.config_dir] and variables == {"CONTAINER_DEFAULT_RUNTIME": "runc"}


def test_the_journal_excludes_a_reload(node: Node) -> None:
    node.journal = commands.Output(b'1764434.1 h crio[1]: msg="Starting CRI-O, version: 1.36.3"\n', b"", 0, False)
    capture = _collected(node, _http(_CONFIG))
    assert capture["node"]["reload_evidence"] == "excluded" and capture["probe"] is None and capture["node"]["problems"] == []


def test_what_cannot_be_asked_is_said(node: Node) -> None:
    node.journal = commands.CommandFailed("journalctl did not end")
    capture = _collected(node, _http("", "404 Not Found"), sends(b"HTTP/1.1 400 Bad\r\n\r\n"))
    said = " ".join(capture["node"]["problems"])
    assert "/config is answered with 404" in said and "journalctl did not end" in said and "what sandboxes are made with" in said
    assert capture["status_config"] is None and capture["probe"] is None


@pytest.mark.parametrize(("body", "words"), [(b"\xff\xfe", "UTF-16"), (("password = %s" % SECRET).encode(), "no readable TOML")])
def test_a_configuration_that_is_withheld(node: Node, monkeypatch: pytest.MonkeyPatch, body: bytes, words: str) -> None:
    monkeypatch.setattr(crio, "ask_config", lambda _path, _timeout: body)
    capture = _collected(node, _REFUSES)
    assert capture["status_config"] is None and words in capture["node"]["withheld"][collect.STATUS_CONFIG]


def test_a_dump_that_fails(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_arguments: t.Any, **_more: t.Any) -> t.NoReturn:
        raise commands.CommandFailed("crio did not end")

    monkeypatch.setattr(collect.commands, "run", fails)
    assert _collected(node, _http(_CONFIG), _REFUSES)["node"]["dump_error"] == "crio did not end"


def _unit(command: str, **more: t.Any) -> t.Dict[str, t.Any]:
    return {"name": "crio.service", "state": "active", "exec_start": command, "environment": None, "environment_files": [], **more}


def test_what_the_unit_would_start(node: Node) -> None:
    node.write({"/etc/sysconfig/crio": "# none\n; none\n\nOPTIONS='--default-runtime kata'\nCONTAINER_CONFIG=/etc/c.conf\n"})
    command = "/usr/local/bin/kubenswrapper /usr/bin/crio $OPTIONS ${LEVEL}x"
    texts = [str(node.directory / "etc/sysconfig/crio"), "/nowhere"]
    node.unit = _unit(command, environment="CONTAINER_CONMON=/opt/conmon LEVEL=a 'OTHER=%s'" % SECRET, environment_files=texts)
    facts = _collected(node, _http(_CONFIG), _REFUSES)["node"]
    assert facts["next_cmdline"].startswith("/usr/bin/crio --default-runtime kata ax")
    assert facts["next_environment"] == {"CONTAINER_CONFIG": "/etc/c.conf", "CONTAINER_CONMON": "/opt/conmon"}
    assert "/opt/conmon" in facts["binaries"] and "environment" not in facts["unit"]
    node.unit = _unit("/usr/bin/other")
    assert "next_cmdline" not in node.collect()["node"]


def test_installed_and_not_running(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = discovery.Runtime("crio", None, "/usr/bin/crio", "/etc/crio/crio.conf", "/nowhere.sock", "/etc/crio/crio.conf.d")
    monkeypatch.setattr(collect.discovery, "installed", lambda *_arguments: runtime)
    node.unit = _unit("/usr/bin/crio -c %s --config-dir=%s" % (node.config, node.config_dir), state="failed")
    facts = node.collect()["node"]
    assert (facts["engine"], facts["config_path"], facts["config_dir"]) == ("crio", node.config, node.config_dir)
    assert facts["cri_state"] == "not_running" and "status_config" not in facts
    given = node.collect(config_dir="/given.d", config_path="/given.conf")["node"]
    assert (given["config_path"], given["config_dir"]) == ("/given.conf", "/given.d")


@pytest.mark.parametrize(
    ("exec_start", "words"),
    [("/usr/bin/crio 'a b' \"c", ["/usr/bin/crio", "'a", "b'", '"c']), ("", []), ("/bin/sh -c crio.sh", []), ("crio $A", ["crio", "1", "2"])],
)
def test_the_words_of_a_unit(exec_start: str, words: t.List[str]) -> None:
    assert crio.next_start({"exec_start": exec_start, "environment": "'A=1 2' strange"}, {}).argv == words


def test_the_socket_that_the_files_name(tmp_path: pathlib.Path) -> None:
    assert crio.listen(str(tmp_path), "/etc/crio/crio.conf", "/etc/crio/crio.conf.d") is None
    write_tree(tmp_path, {"/etc/crio/crio.conf": "[crio.api]\nlisten = '/a.sock'\n", "/etc/crio/crio.conf.d/9": '[crio.api]\nlisten = "/b.sock"\n'})
    assert crio.listen(str(tmp_path), "/etc/crio/crio.conf", "/etc/crio/crio.conf.d") == "/b.sock"


def test_the_programs_of_the_command_line() -> None:
    argv = ["crio", "--runtimes", "a:/opt/a:/run/a:vm:true:/opt/a.toml", "--conmon", "/opt/c"]
    found = crio.wanted(["a = [", "# runtime_path = '/comment'\nruntime_path = ''\n"], {"CONTAINER_RUNTIMES": "b:/opt/b:/run/b"}, argv)
    assert found == ["/opt/a", "/opt/a.toml", "/opt/b", "/opt/c", "a", "b", "conmon", "crun", "runc"]


def test_every_file_below_the_directory(tmp_path: pathlib.Path) -> None:
    write_tree(tmp_path, {"/d/a": "1", "/d/link": "-> ../e", "/e/x": "2", "/deep/" + "s/" * 25 + "f": "3"})
    files = Files()
    files.read_all(str(tmp_path / "d"))
    assert list(files.contents) == [str(tmp_path / "d/a")] and str(tmp_path / "e") in files.directories
    files.read_all(str(tmp_path / "deep"))
    assert "nested too deeply" in files.truncated[0]


# ---- reloads

_LINES = [
    ('1764434.1 h crio[1]: msg="Starting CRI-O, version: 1.36.3"', crio.Reloads("excluded", None, False)),
    ('1764434.5 h crio[1]: msg="Configuration reload completed"', crio.Reloads("journal", 1764434.5, False)),
    ('h crio[1]: msg="Unable to reload configuration: x"', crio.Reloads("journal", None, True)),
    ("", None),
]


@pytest.mark.parametrize(("text", "expected"), _LINES)
def test_the_journal(text: str, expected: t.Optional[crio.Reloads]) -> None:
    assert crio.read_journal(text) == expected


def test_reloads(monkeypatch: pytest.MonkeyPatch) -> None:
    now = int(time.time())
    when = time.strftime("%a %Y-%m-%d %H:%M:%S XXX", time.localtime(now))
    unit = {"exec_reload": "{ path=/bin/kill ; start_time=[%s] ; pid=1 }" % when}
    monkeypatch.setattr(crio.shutil, "which", lambda _name: None)
    assert crio.reloads(1, now - 5, unit, 1) == crio.Reloads("systemd", now, False)
    assert crio.reloads(1, now + 5, unit, 1) == crio.Reloads("unknown", None, False)
    assert crio.reloads(1, None, {"exec_reload": "{ start_time=[n/a] }"}, 1).evidence == "unknown"
    monkeypatch.setattr(crio.shutil, "which", lambda _name: "/bin/journalctl")
    monkeypatch.setattr(crio, "run", lambda _argv, _timeout: commands.Output(_LINES[0][0].encode(), b"", 0, False))
    assert crio.reloads(1, now - 5, None, 1).evidence == "excluded" and crio.reloads(1, now - 5, unit, 1).evidence == "systemd"
    monkeypatch.setattr(crio, "run", lambda _argv, _timeout: commands.Output(b"", b"no grep", 2, False))
    assert crio.reloads(1, now - 5, None, 1).evidence == "unknown"


# ---- the probe


@pytest.mark.parametrize(
    ("scripts", "api", "expected"),
    [
        ([_REFUSES], "v1", _REFUSAL),
        ([_UNKNOWN, _REFUSES], None, _REFUSAL),
        ([_UNKNOWN, _UNKNOWN], None, None),
        ([sends(SETTINGS_FRAME + trailers(2, "no network"))], "v1", None),
        ([grpc_answer(message((1, "abc"))), grpc_answer(b""), grpc_answer(b"")], "v1", None),
    ],
)
def test_the_probe(scripts: t.List[t.Any], api: t.Optional[str], expected: t.Optional[str]) -> None:
    with FakeServer(*scripts) as server:
        assert crio.probe(server.path, api, 2.0) == expected


def test_a_daemon_that_does_not_speak_http() -> None:
    with FakeServer(sends(b"nothing")) as server, pytest.raises((OSError, http.client.HTTPException)):
        crio.ask_config(server.path, 1.0)


# ---- which engine


def _kubelet(endpoint: t.Optional[str], source: str = "flag") -> Kubelet:
    return Kubelet(1, ["kubelet"], None, endpoint, source, None, None, None, None)


def test_the_kubelets_runtime_of_either_engine(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer(*[sends(b"")] * 3) as server:
        node.daemon(server.path)
        node.proc.add(99, ["containerd", "-a", "/c.sock"], exe="/usr/bin/containerd")
        found = discovery.runtimes(node.proc.processes())
        assert sorted(one.engine for one in found) == ["containerd", "crio"]
        chosen = discovery.choose(None, found, [_kubelet("unix://" + server.path)], None, None, 1.0)
        assert chosen.runtime and (chosen.runtime.engine, chosen.serves_kubelet) == ("crio", True)
        nobody = discovery.choose(None, found, [], None, None, 1.0)
        assert nobody.runtime is None and nobody.undecided == sorted(["/c.sock", server.path])
    none = discovery.choose(None, [], [], None, None, 1.0)
    assert none.reason == "no container runtime runs on this node"


def test_the_engine_of_a_node_on_which_none_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    there: t.Set[str] = set()
    monkeypatch.setattr(discovery.shutil, "which", lambda name, path=None: name if name in there else None)
    assert discovery.engine_of("/var/run/crio/crio.sock") == "crio" and discovery.engine_of(None) is None
    there.add("crio")
    assert discovery.engine_of("/x.sock") == "crio" and discovery.engine_of("/run/containerd/containerd.sock") == "containerd"
    there.add("containerd")
    assert discovery.engine_of(None) is None


def test_the_environment_stands_for_flags(tmp_path: pathlib.Path) -> None:
    proc = FakeProc(tmp_path / "proc")
    environment = {"CONTAINER_CONFIG": "/e.conf", "CONTAINER_CONFIG_DIR": "/e.d", "CONTAINER_LISTEN": "/e.sock"}
    proc.add(7, ["/usr/bin/crio"], exe="/usr/bin/crio", environment=environment)
    (found,) = discovery.runtimes(proc.processes())
    assert (found.config_path, found.config_dir, found.socket) == ("/e.conf", "/e.d", "/e.sock")
