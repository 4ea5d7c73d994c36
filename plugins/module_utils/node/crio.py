# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What only CRI-O's nodes have: its environment, its drop-in directory, ``/config``, its reloads, and the probe.

Reads only; the probe asks for a sandbox with a handler that cannot exist, which CRI-O refuses before it makes anything
(``server/sandbox_run_linux.go``: the handler is looked up when nothing but the pod's name is reserved, and that is given back).
Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import http.client
import os
import re
import shlex
import shutil
import socket
import time
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.command_line import CONFIG_DIR, VARIABLES
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.release_lines import rules_for
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import cri, grpc_unary
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.commands import CommandFailed, run
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.files import Files
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.probe import sandbox_request
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.processes import option
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.toml_spans import TomlScanError, scan

#: A handler that no file can declare for a RuntimeClass: it ends in a dash.
NO_SUCH_HANDLER = "runtime-gate-no-such-handler-"
MAX_CONFIG = 4 * 1024 * 1024
_MAX_NAMES = 500
_LISTEN = re.compile(rb"""^[ \t]*listen[ \t]*=[ \t]*["']([^"'\n]+)["']""", re.MULTILINE)
_PATHS = re.compile(
    r"""(?:runtime_?path|monitor_?path|runtime_?config_?path|conmon)["']?\s*[=:]\s*(?:"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)')""", re.IGNORECASE
)
_STARTED = "Starting CRI-O, version"
_RELOADED = "Configuration reload completed"
_REFUSED = "Unable to reload configuration"
_RELOAD_TIME = re.compile(r"start_time=\[([^\]]+)\]")
_REFERENCE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


# ---- how it is started


def variables(environment: t.Mapping[str, str]) -> t.Dict[str, str]:
    """The variables that say something about CRI-O's configuration."""
    return {name: environment[name] for name in VARIABLES if environment.get(name)}


def directory(argv: t.Sequence[str], environment: t.Mapping[str, str]) -> str:
    """The drop-in directory of a start."""
    return option(argv, "config-dir", "d") or environment.get("CONTAINER_CONFIG_DIR") or CONFIG_DIR


def listen(root: str, config: str, config_dir: str) -> t.Optional[str]:
    """The socket that the files name, as the last of them has it."""
    found = None
    paths = [root + config]
    for where, _names, files in sorted(os.walk(root + config_dir)):
        paths += [os.path.join(where, name) for name in sorted(files)]
    for path in paths:
        try:
            with open(path, "rb") as file:
                match = _LISTEN.search(file.read(1024 * 1024))
        except OSError:
            continue
        found = match.group(1).decode("utf-8", "replace") if match else found
    return found


class Start(t.NamedTuple):
    """What a unit would start. argv: with its variables filled in; empty where the unit starts no CRI-O by name."""

    argv: t.List[str]
    environment: t.Dict[str, str]


def next_start(unit: t.Mapping[str, t.Any], environment_files: t.Mapping[str, str]) -> Start:
    """The start that systemd would make (systemd.service(5), "Command lines"; systemd.exec(5), "Environment").

    :param unit: as discovery.parse_unit gives it. :param environment_files: path -> text of those that are there.
    """
    environment = dict(_assignments(str(unit.get("environment") or "")))
    for path in unit.get("environment_files") or ():
        for line in environment_files.get(path, "").splitlines():
            if line.strip() and not line.lstrip().startswith(("#", ";")):
                environment.update(_assignments(line))
    words: t.List[str] = []
    for word in _split(str(unit.get("exec_start") or "")):
        alone = re.match(r"\$(\w+)\Z", word)
        if alone:
            words += _split(environment.get(alone.group(1), ""))
        else:
            words.append(_REFERENCE.sub(lambda match: environment.get(match.group(1) or match.group(2), ""), word))
    first = next((index for index, word in enumerate(words) if os.path.basename(word) == "crio"), None)
    return Start([] if first is None else words[first:], variables(environment))


def _split(text: str) -> t.List[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _assignments(text: str) -> t.Iterator[t.Tuple[str, str]]:
    for word in _split(text):
        name, equals, value = word.partition("=")
        if equals:
            yield name, value


# ---- its files


def gather(files: Files, config: str, config_dir: str) -> None:
    """Read what CRI-O reads (the root file and every file below the directory), and what lies beside it by its name."""
    if config:
        files.read(config)
    files.read_all(config_dir)
    files.read_configuration(os.path.dirname(config or config_dir))
    if not config_dir.startswith("/etc/crio/"):
        files.read_configuration("/etc/crio")


def wanted(texts: t.Iterable[str], environment: t.Mapping[str, str], argv: t.Sequence[str]) -> t.List[str]:
    """Names and absolute paths of the programs and files that a start would look for: a superset, sorted."""
    found = {"conmon", "runc", "crun"}
    for text in texts:
        # `crio config` explains each key in a comment, with an example.
        written = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
        found.update(double or single for double, single in _PATHS.findall(written))
        found.update(_handler_names(text))
    given = [environment.get("CONTAINER_RUNTIMES", ""), option(argv, "runtimes") or ""]
    for value in ",".join(given).split(","):
        parts = value.strip().split(":")
        found.update(part for index, part in enumerate(parts) if index in (0, 1, 5))
    found.update(filter(None, (environment.get("CONTAINER_CONMON"), option(argv, "conmon"))))
    return sorted(name for name in found if name and (name.startswith("/") or "/" not in name))[:_MAX_NAMES]


def _handler_names(text: str) -> t.Iterator[str]:
    """A handler without runtime_path is looked up on the PATH by its own name."""
    try:
        entries = scan(text)
    except TomlScanError:
        return
    for entry in entries:
        path = [str(part) for part in entry.path]
        if len(path) >= 4 and [part.lower() for part in path[:3]] == ["crio", "runtime", "runtimes"]:
            yield path[3]


def not_executable(paths: t.Iterable[str], root: str) -> t.List[str]:
    """The files among these paths that are there and that nobody may execute. CRI-O takes them for a program all the same."""
    return sorted(path for path in paths if path.startswith("/") and os.path.exists(root + path) and not _is_executable(root + path))


def changed(paths: t.Iterable[str], root: str) -> t.Dict[str, float]:
    """Path -> when the file last came there or changed (its ctime: a package brings files with old modification times)."""
    found = {}
    for path in paths:
        try:
            found[path] = os.stat(root + path).st_ctime
        except OSError:
            continue
    return found


def _is_executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


# ---- its answers


#: What ask_config raises.
NOT_TOLD = (OSError, http.client.HTTPException)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("crio", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def ask_config(path: str, timeout: float) -> bytes:
    """``crio status config``: ``/config`` on CRI-O's own socket, on every release line.

    :raises NOT_TOLD: it does not answer, or with something else.
    """
    connection = _UnixConnection(path, timeout)
    try:
        connection.request("GET", "/config")
        response = connection.getresponse()
        if response.status != 200:
            raise http.client.HTTPException("/config is answered with %d" % response.status)
        return response.read(MAX_CONFIG + 1)
    finally:
        connection.close()


def probe(path: str, api_version: t.Optional[str], timeout: float) -> t.Optional[str]:
    """What CRI-O says to a sandbox with a handler that cannot exist: its refusal names the handlers that can be used.

    None: it refused for another reason.
    :raises grpc_unary.GrpcStatus, grpc_unary.NoAnswer: nobody answered.
    """
    for version in [api_version] if api_version else cri.API_VERSIONS:
        request = sandbox_request(NO_SUCH_HANDLER, NO_SUCH_HANDLER + str(int(time.time())), False, "")
        try:
            grpc_unary.call(path, "/runtime.%s.RuntimeService/RunPodSandbox" % version, request, timeout)
        except grpc_unary.GrpcStatus as error:
            if error.code == grpc_unary.UNIMPLEMENTED:
                continue
            return error.message if "runtime handler" in error.message else None
    return None


# ---- its reloads


class Reloads(t.NamedTuple):
    """evidence: ``journal`` or ``systemd`` (it was reloaded), ``excluded`` (the journal has its start and no reload since),
    ``unknown``. last: seconds since the epoch. failed: the last reload was refused."""

    evidence: str
    last: t.Optional[float]
    failed: bool


def reloads(pid: int, started: t.Optional[float], unit: t.Optional[t.Mapping[str, t.Any]], timeout: float) -> Reloads:
    """Whether CRI-O was reloaded since it started, as far as the node knows.

    :raises CommandFailed: the journal could not be asked in time.
    """
    times = _RELOAD_TIME.search(str((unit or {}).get("exec_reload") or ""))
    by_systemd = _seconds(times.group(1)) if times else None
    told = _journal(pid, timeout)
    if told is not None and (told.last is not None or by_systemd is None):
        return told
    if by_systemd is not None and by_systemd >= (started or 0) - 1:
        return Reloads("systemd", by_systemd, False)
    return told or Reloads("unknown", None, False)


def _journal(pid: int, timeout: float) -> t.Optional[Reloads]:
    journalctl = shutil.which("journalctl")
    if not journalctl:
        return None
    pattern = "|".join((_STARTED, _RELOADED, _REFUSED))
    argv = [journalctl, "--quiet", "--no-pager", "--boot", "--output=short-unix", "--grep=" + pattern, "_PID=%d" % pid]
    output = run(argv, timeout)
    if output.rc not in (0, 1) or output.truncated:
        return None
    return read_journal(output.stdout.decode("utf-8", "replace"))


def read_journal(text: str) -> t.Optional[Reloads]:
    """What the journal's lines (short-unix) of one process say; None where its start is not among them."""
    lines = text.splitlines()
    reloaded = [line for line in lines if _RELOADED in line or _REFUSED in line]
    if reloaded:
        when = re.match(r"(\d+\.\d+) ", reloaded[-1])
        return Reloads("journal", float(when.group(1)) if when else None, _REFUSED in reloaded[-1])
    return Reloads("excluded", None, False) if any(_STARTED in line for line in lines) else None


def _seconds(text: str) -> t.Optional[float]:
    """A time as systemctl prints it, in the node's own time zone; None for n/a."""
    try:
        return time.mktime(time.strptime(" ".join(text.split()[:3]), "%a %Y-%m-%d %H:%M:%S"))
    except ValueError:
        return None


__all__ = (
    "CONFIG_DIR",
    "CommandFailed",
    "NOT_TOLD",
    "NO_SUCH_HANDLER",
    "Reloads",
    "ask_config",
    "changed",
    "directory",
    "gather",
    "listen",
    "next_start",
    "not_executable",
    "probe",
    "read_journal",
    "reloads",
    "rules_for",
    "variables",
    "wanted",
)
