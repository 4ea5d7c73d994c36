# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collects the capture of one node: files, dump, CRI answer, and facts about process, unit and kubelet.

Reads only. Judges nothing. Never raises: what failed is recorded with its reason. Everything is masked before it is
returned. Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
import shutil
import socket
import time
import traceback
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import (
    binaries,
    commands,
    cri,
    discovery,
    grpc_unary,
    kubelet,
    processes,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.files import Files, decode, decode_configuration
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.secrets import Masker, Withheld

#: The version of the collection (the same as in galaxy.yml; a test compares them).
COLLECTOR = "kubenode.runtime_gate 0.1.0"
DEFAULT_TIMEOUT = 5.0
#: Names under which masked-out parts of a capture that are no files stand in ``withheld``.
DUMP = "config dump"
STATUS = "CRI status"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_CRICTL_PLACES = ("/usr/local/bin/crictl", "/opt/bin/crictl", "/home/kubernetes/bin/crictl")


def collect(options: t.Mapping[str, t.Any]) -> t.Dict[str, t.Any]:
    """The capture of this node, masked.

    :param options: ``engine`` (``containerd``), ``config_path``, ``containerd`` (executable), ``endpoint``, ``crictl``, all
        discovered when absent, and ``timeout`` (seconds for each thing that is asked or run).
    """
    collector = _Collector(options)
    for step in (
        collector.identify,
        collector.discover,
        collector.describe_unit,
        collector.find_versions,
        collector.read_files,
        collector.run_dump,
        collector.ask_cri,
        collector.find_binaries,
    ):
        try:
            step()
        except Exception as error:  # pylint: disable=broad-except
            # Whatever a strange node does: what was collected so far must come back. The text of an unforeseen error may
            # quote what it stumbled over, so only its kind and place are told.
            collector.problem("%s: %s in %s" % (step.__name__, type(error).__name__, _place(error)))
    return collector.capture()


def _place(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return "%s:%s" % (os.path.basename(frames[-1].filename), frames[-1].lineno) if frames else "an unknown place"


def _iso(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _first_line(path: str) -> t.Optional[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline(256).strip() or None
    except OSError:
        return None


def _without_none(values: t.Dict[str, t.Any]) -> t.Dict[str, t.Any]:
    return {key: value for key, value in values.items() if value is not None}


class _Collector:
    def __init__(self, options: t.Mapping[str, t.Any]) -> None:
        self._engine: str = options.get("engine") or "containerd"
        self._options = options
        self._timeout = float(options.get("timeout") or DEFAULT_TIMEOUT)
        self._masker = Masker()
        self._node: t.Dict[str, t.Any] = {"engine": self._engine, "collector": COLLECTOR}
        self._problems: t.List[str] = []
        self._denied = False
        self._kubelets: t.List[kubelet.Kubelet] = []
        self._choice = discovery.Choice(None, None, [], None)
        self._runtime: t.Optional[discovery.Runtime] = None
        self._unit: t.Optional[t.Dict[str, t.Any]] = None
        self._files = Files()
        self._dump: t.Optional[commands.Output] = None
        self._info: t.Optional[t.Dict[str, t.Any]] = None

    def problem(self, sentence: str) -> None:
        self._problems.append(sentence)

    # ---- steps

    def identify(self) -> None:
        self._node.update(
            _without_none(
                {
                    "collected_at": _iso(time.time()),
                    "hostname": socket.gethostname(),
                    "boot_id": _first_line("/proc/sys/kernel/random/boot_id"),
                    "machine_id": _first_line("/etc/machine-id"),
                    "cgroup_version": 2 if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else 1,
                    "os": platform.system().lower(),
                    "arch": _ARCHITECTURES.get(platform.machine(), platform.machine()),
                }
            )
        )
        self._node["name"] = self._node["hostname"].lower()

    def discover(self) -> None:
        running = processes.node_processes()
        found = discovery.runtimes(running)
        self._kubelets = kubelet.find(running)
        wanted = kubelet.socket_path(self._options.get("endpoint"))
        config_path = self._options.get("config_path")
        self._choice = discovery.choose(self._engine, found, self._kubelets, wanted, config_path, self._timeout)
        self._runtime = self._choice.runtime
        if not self._runtime and not self._choice.undecided:
            endpoint = kubelet.socket_path(self._kubelets[0].endpoint) if self._kubelets else None
            named = self._options.get("containerd")
            self._runtime = discovery.installed(self._engine, named, wanted or endpoint)
        if config_path and self._runtime:
            self._runtime = self._runtime._replace(config_path=config_path)
        self._describe_runtimes(found)
        self._describe_kubelet()
        if self._runtime:
            self._describe_runtime(self._runtime)

    def _describe_runtimes(self, found: t.List[discovery.Runtime]) -> None:
        chosen = self._runtime.process.pid if self._runtime and self._runtime.process else None
        self._node["runtimes"] = [
            {
                "engine": one.engine,
                "pid": one.process.pid if one.process else None,
                "exe": one.exe,
                "config_path": one.config_path,
                "endpoint": "unix://" + one.socket,
                "serves_kubelet": self._choice.serves_kubelet if one.process and one.process.pid == chosen else None,
            }
            for one in found
        ]
        self._node["serves_kubelet"] = self._choice.serves_kubelet
        if self._choice.undecided:
            self._node["undecided"] = self._choice.undecided
        if self._choice.reason:
            self._node["undecided_reason" if self._choice.undecided else "choice_reason"] = self._choice.reason

    def _describe_kubelet(self) -> None:
        if not self._kubelets:
            return
        first = self._kubelets[0]
        facts = first._asdict()
        facts["cmdline"] = " ".join(self._masker.command(facts.pop("argv")))
        self._node["kubelet"] = _without_none(facts)
        self._node["name"] = first.hostname_override or first.node_name or self._node["name"]

    def _describe_runtime(self, runtime: discovery.Runtime) -> None:
        self._node["config_path"] = runtime.config_path
        self._node["endpoint"] = "unix://" + runtime.socket
        process = runtime.process
        if not process:
            return
        started = process.started()
        self._denied = self._denied or process.exe is None
        self._node.update(
            _without_none(
                {
                    "cmdline": " ".join(self._masker.command(process.argv)),
                    "daemon_pid": process.pid,
                    "daemon_exe": process.exe,
                    "daemon_exe_deleted": process.exe_deleted,
                    "daemon_cwd": process.cwd,
                    "daemon_path": process.environment().get("PATH"),
                    "daemon_started": None if started is None else _iso(started),
                }
            )
        )

    def describe_unit(self) -> None:
        runtime = self._runtime
        name = runtime.process.unit() if runtime and runtime.process else None
        if runtime and not runtime.process:
            name = self._engine + ".service"
        self._node["distribution"] = discovery.distribution(
            runtime, name, self._kubelets[0] if self._kubelets else None
        )
        try:
            self._unit = discovery.unit(name, self._timeout)
        except commands.CommandFailed as error:
            self.problem(str(error))
        if self._unit:
            shown = dict(self._unit)
            if shown["exec_start"]:
                shown["exec_start"] = self._masker.command_line(shown["exec_start"])
            self._node["unit"] = shown
            self._take_config_of_unit()

    def _take_config_of_unit(self) -> None:
        """A daemon that does not run would be started with the configuration that its unit names."""
        runtime = self._runtime
        if runtime and not runtime.process and not self._options.get("config_path"):
            exe, config = self._after_restart(runtime)
            if config:
                self._runtime = runtime._replace(exe=exe, config_path=config)
                self._node["config_path"] = config

    def find_versions(self) -> None:
        runtime = self._runtime
        if not runtime or not runtime.exe:
            return
        try:
            self._note_version("version", self._command(["--version"]))
        except commands.CommandFailed as error:
            self.problem("the version is not known: %s" % error)
        if not runtime.process:
            return
        next_exe, next_config = self._after_restart(runtime)
        if next_exe and (next_exe != runtime.exe or runtime.process.exe_replaced()):
            root = runtime.process.root
            try:
                self._note_version("next_version", commands.run([root + next_exe, "--version"], self._timeout))
            except commands.CommandFailed as error:
                self.problem("the version on disk is not known: %s" % error)
        if next_config and next_config != runtime.config_path:
            self._node["next_config_path"] = next_config

    def _after_restart(self, runtime: discovery.Runtime) -> t.Tuple[t.Optional[str], t.Optional[str]]:
        """Executable and configuration path that a restart would use, by the unit's command line."""
        exe = self._options.get("containerd") or runtime.exe
        command = (self._unit or {}).get("exec_start") or ""
        if "$" in command:
            return exe, None
        try:
            argv = shlex.split(command)
        except ValueError:
            return exe, None
        if not argv or os.path.basename(argv[0]) != self._engine or self._options.get("config_path"):
            return exe, None
        config = processes.option(argv, "config", "c") or discovery.DEFAULT_CONFIG[self._engine]
        return self._options.get("containerd") or argv[0], config

    def _note_version(self, key: str, output: commands.Output) -> None:
        text = (output.stdout or output.stderr).decode("utf-8", "replace").strip()
        words = text.split()
        self._node[key + "_output"] = self._masker.text(text[:1024])
        if output.rc == 0 and len(words) >= 3:
            self._node[key] = words[2]

    def _command(self, arguments: t.List[str]) -> commands.Output:
        """Run the very executable that runs (or the installed one), in the daemon's mount namespace and directory."""
        runtime = self._runtime
        if runtime is None or runtime.exe is None:
            raise commands.CommandFailed("no executable of the runtime is known")
        process = runtime.process
        if not process:
            return commands.run([runtime.exe] + arguments, self._timeout)
        argv = [self._program_name(process)] + arguments
        if process.root:
            nsenter = shutil.which("nsenter")
            if not nsenter:
                raise commands.CommandFailed("the daemon has its own mount namespace, and there is no nsenter")
            argv = [nsenter, "--mount", "--target", str(process.pid), "--"] + [runtime.exe] + arguments
            return commands.run(argv, self._timeout)
        return commands.run(argv, self._timeout, executable=process.exe_path, cwd=process.cwd or "/")

    def _program_name(self, process: processes.Process) -> str:
        """What the program is called by: k3s is several programs in one file, told apart by this."""
        name = process.argv[0]
        return name if os.path.basename(name) == self._engine else self._engine

    def read_files(self) -> None:
        runtime = self._runtime
        process = runtime.process if runtime else None
        self._files = Files(process.root if process else "")
        roots = [runtime.config_path] if runtime else [discovery.DEFAULT_CONFIG[self._engine]]
        roots += [self._node["next_config_path"]] if "next_config_path" in self._node else []
        self._files.gather(roots, (process.cwd if process else None) or "/")

    def run_dump(self) -> None:
        runtime = self._runtime
        if not runtime or not runtime.exe:
            return
        arguments = ["config", "dump"]
        given = runtime.process and processes.option(runtime.process.argv, "config", "c")
        if given or runtime.config_path != discovery.DEFAULT_CONFIG[self._engine]:
            # Only then: a file that was named must be there, the default one need not.
            arguments = ["-c", runtime.config_path] + arguments
        try:
            self._dump = self._command(arguments)
        except commands.CommandFailed as error:
            self._node["dump_error"] = self._masker.text(str(error))

    def ask_cri(self) -> None:
        runtime = self._runtime
        if not runtime:
            undecided = bool(self._choice.undecided)
            self._node["cri_state"] = "undetermined" if undecided else "not_running"
            self._node["cri_error"] = self._choice.reason or "no %s on this node" % self._engine
            return
        path = (runtime.process.root if runtime.process else "") + runtime.socket
        self._node["crictl"] = None
        info = self._ask_crictl(runtime.socket)
        if info is not None:
            self._node["cri_state"] = "served"
            self._info = info
            return
        try:
            answer = cri.ask(path, self._timeout)
        except (grpc_unary.GrpcStatus, grpc_unary.NoAnswer, cri.NotProtobuf) as error:
            self._node["cri_state"] = self._state(error)
            self._node["cri_error"] = "%s: %s" % (runtime.socket, error)
            return
        self._node["cri_state"] = "served"
        self._node["cri_api"] = answer.api_version
        self._info = answer.info

    def _state(self, error: Exception) -> str:
        if isinstance(error, grpc_unary.GrpcStatus) and error.code == grpc_unary.UNIMPLEMENTED:
            return "unimplemented"
        if isinstance(error, grpc_unary.NoAnswer):
            self._denied = self._denied or error.kind == "permission"
            runs = self._runtime is not None and self._runtime.process is not None
            if error.kind in ("absent", "refused") and not runs:
                return "not_running"
        return "undetermined"

    def _ask_crictl(self, path: str) -> t.Optional[t.Dict[str, t.Any]]:
        """``crictl info``, or None: then CRI is asked without it, and its failure is only recorded."""
        runtime = self._runtime
        named = self._options.get("crictl")
        crictl = named or shutil.which("crictl") or next((one for one in _CRICTL_PLACES if os.access(one, os.X_OK)), None)
        if not crictl or not runtime or not runtime.process or runtime.process.root:
            return None
        try:
            version = commands.run([crictl, "--version"], self._timeout).stdout.split()
            self._node["crictl"] = version[-1].decode("utf-8", "replace").lstrip("v") if version else None
            seconds = "%dms" % int(self._timeout * 1000)
            argv = [crictl, "--runtime-endpoint", "unix://" + path, "--timeout", seconds, "info"]
            # crictl spends its time-out on more than one call.
            output = commands.run(argv, self._timeout * 2)
        except commands.CommandFailed as error:
            self.problem(str(error))
            return None
        try:
            info = json.loads(output.stdout.decode("utf-8")) if output.rc == 0 else None
        except (ValueError, RecursionError):
            self.problem("%s info printed no JSON" % crictl)
            return None
        return info if isinstance(info, dict) and isinstance(info.get("status"), dict) else None

    def find_binaries(self) -> None:
        runtime = self._runtime
        texts = [decode_configuration(data)[0] for data in self._files.contents.values()]
        texts.append(json.dumps(self._info))
        texts.append(self._dump.stdout.decode("utf-8", "replace") if self._dump else "")
        process = runtime.process if runtime else None
        root = process.root if process else ""
        self._files.absent.update(path for path in binaries.base_specs(texts) if not os.path.exists(root + path))
        path = process.environment().get("PATH") if process else os.environ.get("PATH")
        self._node["binaries"] = binaries.look_up(
            binaries.wanted(texts),
            path,
            runtime.exe if runtime else None,
            process.cwd if process else None,
            root,
        )

    # ---- assembly: nothing unmasked passes here

    def capture(self) -> t.Dict[str, t.Any]:
        withheld: t.Dict[str, str] = {}
        texts = self._masked_files(withheld)
        info = self._masked_info(withheld)
        dump = self._masked_dump(withheld)
        files = self._files
        node = self._node
        node["files"] = {path: _iso(when) for path, when in files.modified.items()}
        node["unreadable"] = dict(files.unreadable)
        node["withheld"] = withheld
        node["links"] = files.links
        node["directories"] = sorted(files.directories)
        node["absent"] = sorted(files.absent)
        node["truncated"] = files.truncated
        node["sha256"] = {path: hashlib.sha256(data).hexdigest() for path, data in files.contents.items()}
        node["needs_become"] = os.geteuid() != 0 and (self._denied or files.denied)
        node["problems"] = [self._masker.text(sentence) for sentence in self._problems]
        reasons = {path: decode(data)[1] for path, data in files.contents.items()}
        node["not_utf8"] = {path: reason for path, reason in reasons.items() if reason}
        if "cri_error" in node:
            node["cri_error"] = self._masker.text(node["cri_error"])
        return {
            "format": 1,
            "node": _without_none(node),
            "files": texts,
            "dump": dump,
            "status_config": None,
            "info": info,
        }

    def _masked_files(self, withheld: t.Dict[str, str]) -> t.Dict[str, str]:
        texts = {}
        for path, data in self._files.contents.items():
            try:
                texts[path] = self._masker.toml(decode_configuration(data)[0])
            except Withheld as error:
                withheld[path] = str(error)
        return texts

    def _masked_info(self, withheld: t.Dict[str, str]) -> t.Optional[t.Dict[str, t.Any]]:
        if self._info is None:
            return None
        try:
            return self._masker.json(self._info)
        except RecursionError:
            self._node["cri_state"] = "undetermined"
            self._node["cri_error"] = withheld[STATUS] = "the answer is nested too deeply to find its secrets"
            return None

    def _masked_dump(self, withheld: t.Dict[str, str]) -> t.Optional[t.Dict[str, t.Any]]:
        output = self._dump
        if output is None:
            return None
        if output.truncated:
            self._files.truncated.append("the dump is longer than %d bytes and was left out" % commands.MAX_OUTPUT)
            return None
        stdout, reason = decode(output.stdout)
        try:
            masked = self._masker.toml(stdout or "")
        except Withheld as error:
            masked, reason = "", str(error)
        if reason:
            withheld[DUMP] = reason
            return None
        stderr = self._masker.text(output.stderr.decode("utf-8", "replace"))
        return {"stdout": masked, "stderr": stderr, "rc": output.rc}
