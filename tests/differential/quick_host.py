"""The node of host.py, made cheap enough for thousands of pairs; the daemon, its files and its answers stay what they are.

What this proves: nothing by itself. What is saved: programs are laid there by hard links to one copy in the node instead of copies, the
stand-in for the kubelet lives on, the client asks once for a start, the daemon does not collect its garbage (GOGC), and the product's
collector is forked from one process in the node that has its modules loaded, instead of starting an interpreter each time.
"""

from __future__ import annotations

import json
import os
import pathlib
import select
import subprocess
import sys
import typing as t

from tests.testbed.host import PATH, ContainerdHost, HostError
from tests.testbed.product import collections_root

_STORE = "/usr/lib/.test-programs"
_SERVER = """
import json, os, sys, traceback
sys.path.insert(0, sys.argv[1])
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.collect import collect
while True:
    line = sys.stdin.buffer.readline()
    if not line:
        break
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        try:
            answer = {"capture": collect(json.loads(line))}
        except BaseException:
            answer = {"traceback": traceback.format_exc()}
        with os.fdopen(writer, "wb") as stream:
            stream.write(json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    sys.stdout.buffer.write(b"%d\\n" % len(answer) + answer)
    sys.stdout.buffer.flush()
"""


class SlowStart(Exception):
    """The daemon lives and does not answer: the machine is too busy, which says nothing about the daemon's files."""


class Collector:
    """A process in the node that forks one collection for each question. Not for two threads at once."""

    def __init__(self, host: ContainerdHost) -> None:
        command = host._enter([sys.executable, "-c", _SERVER, collections_root()])
        environment = {"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8"}
        self._process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)

    def collect(self, options: dict[str, t.Any], wait: float = 120) -> dict[str, t.Any]:
        """The product's capture. Raises HostError when the collection ends with a traceback or not within `wait` seconds."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(options).encode() + b"\n")
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], wait)[0]:
            raise HostError(f"collect did not end within {wait:.0f} s")
        answer = json.loads(self._process.stdout.read(int(self._process.stdout.readline())) or '{"traceback": "the collection was ended by a signal"}')
        if "traceback" in answer:
            raise HostError(f"collect ended with a traceback: {answer['traceback'][-3000:]}")
        return answer["capture"]

    def close(self) -> None:
        """Ends the process."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()
        self._process.kill()
        self._process.wait()


class QuickHost(ContainerdHost):
    """A ContainerdHost for many trees in a row."""

    def __init__(self, line: str, name: str | None = None) -> None:
        self._answer: dict[str, t.Any] | None = None
        self._kubelet: subprocess.Popen[bytes] | None = None
        super().__init__(line, name)
        self._collector = Collector(self)

    def close(self) -> None:
        """As every host."""
        self._collector.close()
        super().close()

    def _environment(self) -> dict[str, str]:
        return {"GOGC": "off"}

    def collect(self) -> dict[str, t.Any]:
        """The product's capture of the node. Raises HostError when it ends with a traceback."""
        return self._collector.collect({"engine": self.engine})

    def install(self, program: pathlib.Path, path: str) -> None:
        """As every host; while no daemon runs, by a hard link to a copy that is made once."""
        if self.running():  # an upgrade must be seen as a package manager makes it
            super().install(program, path)
            return
        stored = self.path(_STORE) / str(program).strip("/").replace("/", "_")
        if not stored.exists():
            super().install(program, f"{_STORE}/{stored.name}")
        target = self.path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.new")
        draft.unlink(missing_ok=True)
        os.link(stored, draft)
        draft.rename(target)
        draft.unlink(missing_ok=True)  # rename(2) leaves both names where they are one file already

    def install_script(self, path: str, text: str) -> None:
        """As every host; a script that is there already is left alone."""
        target = self.path(path)
        if not (target.is_file() and target.stat().st_mode & 0o100 and target.read_text() == text):
            super().install_script(path, text)

    def reset(self, line: str | None = None) -> None:
        """As every host; the stand-in for the kubelet lives on."""
        self._others = [process for process in self._others if process is not self._kubelet]
        super().reset(line)

    def kubelet(self, endpoint: str = "", config: str = "/var/lib/kubelet/config.yaml", arguments: t.Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """The one that runs already, else a new one; its command line is always the same here."""
        if self._kubelet is None or self._kubelet.poll() is not None:
            self._kubelet = super().kubelet(endpoint, config, arguments)
        return self._kubelet

    def start(self, args: t.Sequence[str] | None = None, env: t.Mapping[str, str] | None = None, wait: float = 90) -> bool:
        """As every host; cri() then gives the answer that this has brought.

        Raises SlowStart when the daemon lives and does not answer within `wait` seconds.
        """
        self._answer = None
        started = super().start(args, env, wait)
        if not started and self.running():
            raise SlowStart(f"no answer within {wait:.0f} s")
        return started

    def _ask(self, *command: str, wait: float = 0, socket: str = "") -> dict[str, t.Any]:
        """The first question after a start is for everything, so that a second one is not needed."""
        answer = super()._ask(*(("status",) if command == ("version",) else command), wait=wait, socket=socket)
        if command == ("version",) and answer["state"] in ("served", "unimplemented"):
            self._answer = answer
        return answer

    def cri(self) -> dict[str, t.Any]:
        """The daemon's answer after its start."""
        if self._answer is not None and self.running():
            return self._answer
        return super().cri()

    def stop(self) -> None:
        """As every host."""
        self._answer = None
        super().stop()
