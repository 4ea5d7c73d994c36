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
import threading
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

if t.TYPE_CHECKING:
    from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import crio

#: The version of the collection (the same as in galaxy.yml; a test compares them).
COLLECTOR = "kubenode.runtime_gate 0.1.0"
DEFAULT_TIMEOUT = 5.0
#: A program may take so many times longer: it has tens of megabytes, which a node that is busy must first read from its disk.
_PROGRAM_PATIENCE = 4
#: Names under which masked-out parts of a capture that are no files stand in ``withheld``.
DUMP = "config dump"
STATUS = "CRI status"
STATUS_CONFIG = "crio status config"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
#: The PATH of a systemd service (systemd.exec(5)).
_SERVICE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CRICTL_PLACES = ("/usr/local/bin/crictl", "/opt/bin/crictl", "/home/kubernetes/bin/crictl")


def collect(options: t.Mapping[str, t.Any]) -> t.Dict[str, t.Any]:
    """The capture of this node, masked.

    :param options: ``engine`` (``containerd``, ``crio``, or ``any``: the one that serves the kubelet), ``config_path``,
        ``config_dir`` (CRI-O), ``containerd`` and ``crio`` (executables), ``endpoint``, ``crictl``, all discovered when
        absent, and ``timeout`` (seconds for each thing that is asked; four times as many for a program that is run).
    """
    collector = _Collector(options)
    for step in (
        collector.identify,
        collector.discover,
        collector.describe_unit,
        collector.start_commands,
        collector.find_versions,
        collector.read_files,
        collector.run_dump,
        collector.ask_cri,
        collector.ask_crio,
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


def _text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(256 * 1024)
    except OSError:
        # systemd goes on without an environment file that is marked as optional; CRI-O's are.
        return ""


def _without_none(values: t.Dict[str, t.Any]) -> t.Dict[str, t.Any]:
    return {key: value for key, value in values.items() if value is not None}


class _Coming:
    """What a command prints, which runs while something else is done: most of the time of this module is the start of the runtime's
    large program."""

    def __init__(self, work: t.Callable[[], commands.Output]) -> None:
        self._work = work
        self._output: t.Optional[commands.Output] = None
        self._error: t.Optional[Exception] = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._output = self._work()
        except Exception as error:  # pylint: disable=broad-except
            self._error = error  # raised for who asks

    def output(self) -> commands.Output:
        """:raises commands.CommandFailed: as commands.run does."""
        self._thread.join()
        if self._error:
            raise self._error
        return t.cast(commands.Output, self._output)


class _Collector:
    def __init__(self, options: t.Mapping[str, t.Any]) -> None:
        wanted = str(options.get("engine") or "containerd")
        self._wanted: t.Optional[str] = None if wanted == "any" else wanted
        self._engine = self._wanted or "containerd"
        self._options = options
        self._timeout = float(options.get("timeout") or DEFAULT_TIMEOUT)
        self._program_timeout = _PROGRAM_PATIENCE * self._timeout
        self._masker = Masker()
        self._node: t.Dict[str, t.Any] = {"engine": self._engine, "collector": COLLECTOR}
        self._problems: t.List[str] = []
        self._denied = False
        self._kubelets: t.List[kubelet.Kubelet] = []
        self._choice = discovery.Choice(None, None, [], None)
        self._runtime: t.Optional[discovery.Runtime] = None
        self._unit: t.Optional[t.Dict[str, t.Any]] = None
        self._files = Files()
        self._version: t.Optional[_Coming] = None
        self._dumping: t.Optional[_Coming] = None
        self._dump: t.Optional[commands.Output] = None
        self._info: t.Optional[t.Dict[str, t.Any]] = None
        self._environment: t.Dict[str, str] = {}
        self._status_config: t.Optional[bytes] = None
        self._probe: t.Optional[str] = None

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
        self._choice = discovery.choose(self._wanted, found, self._kubelets, wanted, config_path, self._timeout)
        self._runtime = self._choice.runtime
        if not self._runtime and not self._choice.undecided:
            self._runtime = self._installed(wanted)
        if self._runtime:
            self._engine = self._runtime.engine
        self._node["engine"] = self._engine
        if config_path and self._runtime:
            self._runtime = self._runtime._replace(config_path=config_path)
        if self._options.get("config_dir") and self._runtime:
            self._runtime = self._runtime._replace(config_dir=str(self._options["config_dir"]))
        self._describe_runtimes(found)
        self._describe_kubelet()
        if self._runtime:
            self._describe_runtime(self._runtime)

    def _installed(self, wanted: t.Optional[str]) -> t.Optional[discovery.Runtime]:
        endpoint = wanted or (kubelet.socket_path(self._kubelets[0].endpoint) if self._kubelets else None)
        told = bool(wanted or self._kubelets and self._kubelets[0].endpoint_source != "default")
        engine = self._wanted or discovery.engine_of(endpoint if told else None) or discovery.engine_of(endpoint) or "containerd"
        return discovery.installed(engine, self._options.get(engine), endpoint)

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
        if runtime.engine == "crio":
            self._node["config_dir"] = runtime.config_dir
        process = runtime.process
        if not process:
            return
        started = process.started()
        if runtime.engine == "crio":
            self._environment = discovery.half_of_crio().variables(process.environment())
            self._node["environment"] = {name: self._masker.text(value) for name, value in self._environment.items()}
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
            # Variables of a unit may hold anything; those that matter are told beside it.
            for name in ("environment", "environment_files", "exec_reload"):
                shown.pop(name, None)
            self._node["unit"] = shown
            if self._engine == "crio":
                self._describe_next_start(self._unit)
            else:
                self._take_config_of_unit()

    def _describe_next_start(self, unit: t.Dict[str, t.Any]) -> None:
        """Command line and environment that a restart would give CRI-O; of one that does not run they are all that there is."""
        crio = discovery.half_of_crio()
        runtime = self._runtime
        texts = {path: _text_of(path) for path in unit.get("environment_files") or ()}
        coming = crio.next_start(unit, texts)
        if not coming.argv or runtime is None:
            return
        self._node["next_cmdline"] = " ".join(self._masker.command(coming.argv))
        self._node["next_environment"] = {name: self._masker.text(value) for name, value in coming.environment.items()}
        if not runtime.process:
            config = processes.option(coming.argv, "config", "c") or coming.environment.get("CONTAINER_CONFIG")
            directory = self._options.get("config_dir") or crio.directory(coming.argv, coming.environment)
            path = self._options.get("config_path") or config or runtime.config_path
            self._environment = coming.environment
            self._runtime = runtime._replace(config_path=path, config_dir=directory)
            self._node.update(config_path=path, config_dir=directory)

    def _take_config_of_unit(self) -> None:
        """A daemon that does not run would be started with the configuration that its unit names."""
        runtime = self._runtime
        if runtime and not runtime.process and not self._options.get("config_path"):
            exe, config = self._after_restart(runtime)
            if config:
                self._runtime = runtime._replace(exe=exe, config_path=config)
                self._node["config_path"] = config

    def start_commands(self) -> None:
        """find_versions and run_dump take what they print."""
        runtime = self._runtime
        if runtime and runtime.exe:
            arguments = self._dump_of_crio(runtime) if runtime.engine == "crio" else self._dump_of_containerd(runtime)
            self._version = _Coming(lambda: self._command(["--version"]))
            self._dumping = _Coming(lambda: self._command(arguments))

    def find_versions(self) -> None:
        runtime = self._runtime
        if not runtime or not self._version:
            return
        try:
            self._note_version("version", self._version.output())
        except commands.CommandFailed as error:
            self.problem("the version is not known: %s" % error)
        if not runtime.process:
            return
        next_exe, next_config = self._after_restart(runtime)
        if next_exe and (next_exe != runtime.exe or runtime.process.exe_replaced()):
            root = runtime.process.root
            try:
                self._note_version("next_version", commands.run([root + next_exe, "--version"], self._program_timeout))
            except commands.CommandFailed as error:
                self.problem("the version on disk is not known: %s" % error)
        if next_config and next_config != runtime.config_path:
            self._node["next_config_path"] = next_config

    def _after_restart(self, runtime: discovery.Runtime) -> t.Tuple[t.Optional[str], t.Optional[str]]:
        """Executable and configuration path that a restart would use, by the unit's command line."""
        exe = self._options.get(self._engine) or runtime.exe
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
        return self._options.get(self._engine) or argv[0], None if self._engine == "crio" else config

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
        variables = self._environment
        if not process:
            return commands.run([runtime.exe] + arguments, self._program_timeout, variables=variables)
        argv = [self._program_name(process)] + arguments
        if process.root:
            nsenter = shutil.which("nsenter")
            if not nsenter:
                raise commands.CommandFailed("the daemon has its own mount namespace, and there is no nsenter")
            argv = [nsenter, "--mount", "--target", str(process.pid), "--"] + [runtime.exe] + arguments
            return commands.run(argv, self._program_timeout, variables=variables)
        return commands.run(argv, self._program_timeout, executable=process.exe_path, cwd=process.cwd or "/", variables=variables)

    def _program_name(self, process: processes.Process) -> str:
        """What the program is called by: k3s is several programs in one file, told apart by this."""
        name = process.argv[0]
        return name if os.path.basename(name) == self._engine else self._engine

    def read_files(self) -> None:
        runtime = self._runtime
        process = runtime.process if runtime else None
        self._files = Files(process.root if process else "")
        if runtime and runtime.engine == "crio":
            discovery.half_of_crio().gather(self._files, runtime.config_path, runtime.config_dir)
            return
        roots = [runtime.config_path] if runtime else [discovery.DEFAULT_CONFIG[self._engine]]
        roots += [self._node["next_config_path"]] if "next_config_path" in self._node else []
        self._files.gather(roots, (process.cwd if process else None) or "/")

    def run_dump(self) -> None:
        try:
            self._dump = self._dumping.output() if self._dumping else None
        except commands.CommandFailed as error:
            self._node["dump_error"] = self._masker.text(str(error))

    def _dump_of_containerd(self, runtime: discovery.Runtime) -> t.List[str]:
        given = runtime.process and processes.option(runtime.process.argv, "config", "c")
        if given or runtime.config_path != discovery.DEFAULT_CONFIG[self._engine]:
            # Only then: a file that was named must be there, the default one need not.
            return ["-c", runtime.config_path, "config", "dump"]
        return ["config", "dump"]

    def _dump_of_crio(self, runtime: discovery.Runtime) -> t.List[str]:
        """``crio config``, with the command line and the environment of the daemon."""
        argv = runtime.process.argv if runtime.process else []
        arguments = []
        if processes.option(argv, "config", "c") or runtime.config_path != discovery.DEFAULT_CONFIG["crio"]:
            # Only then: a file that was named must be there, the default one need not.
            arguments += ["--config", runtime.config_path]
        arguments += ["--config-dir", runtime.config_dir]
        for name in ("default-runtime", "runtimes"):
            given = processes.option(argv, name)
            arguments += ["--%s=%s" % (name, given)] if given else []
        return arguments + ["config"]

    def ask_crio(self) -> None:
        """What CRI-O tells beside CRI: its configuration, its reloads, and what sandboxes are really made with."""
        runtime = self._runtime
        if not runtime or runtime.engine != "crio" or not runtime.process or self._node.get("cri_state") != "served":
            return
        crio = discovery.half_of_crio()
        path = runtime.process.root + runtime.socket
        try:
            self._status_config = crio.ask_config(path, self._timeout)
        except crio.NOT_TOLD as error:
            self.problem("CRI-O does not tell its configuration: %s" % error)
        started = runtime.process.started()
        told = crio.Reloads("unknown", None, False)
        try:
            told = crio.reloads(runtime.process.pid, started, self._unit, self._timeout)
        except commands.CommandFailed as error:
            self.problem("the journal could not be asked: %s" % error)
        self._node["reload_evidence"] = told.evidence
        if told.last is not None:
            self._node["daemon_reloaded"] = _iso(told.last)
        self._node["reload_failed"] = told.failed
        if self._reload_in_doubt(told):
            self._ask_probe(path)

    def _reload_in_doubt(self, told: crio.Reloads) -> bool:
        """A reload makes CRI-O's answer wrong, so the probe is worth a line in its log; else only where nothing names handlers."""
        crio = discovery.half_of_crio()
        rules = crio.rules_for(self._node.get("version"))
        named = self._status_config is not None or bool((self._info or {}).get("runtimeHandlers"))
        return not named or (told.evidence != "excluded" and (rules is None or rules.reloads_runtimes))

    def _ask_probe(self, path: str) -> None:
        crio = discovery.half_of_crio()
        try:
            self._probe = crio.probe(path, self._node.get("cri_api"), self._timeout)
        except (grpc_unary.GrpcStatus, grpc_unary.NoAnswer) as error:
            self.problem("what sandboxes are made with is not known: %s" % self._masker.text(str(error)))

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
            version = commands.run([crictl, "--version"], self._program_timeout).stdout.split()
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
        texts.append((self._status_config or b"").decode("utf-8", "replace"))
        process = runtime.process if runtime else None
        root = process.root if process else ""
        if self._engine == "crio":
            self._find_binaries_of_crio(texts, process, root)
            return
        self._files.absent.update(path for path in binaries.base_specs(texts) if not os.path.exists(root + path))
        path = process.environment().get("PATH") if process else os.environ.get("PATH")
        self._node["binaries"] = binaries.look_up(
            binaries.wanted(texts),
            path,
            runtime.exe if runtime else None,
            process.cwd if process else None,
            root,
        )

    def _find_binaries_of_crio(self, texts: t.List[str], process: t.Optional[processes.Process], root: str) -> None:
        crio = discovery.half_of_crio()
        coming = self._node.get("next_environment") or {}
        argv = list(process.argv if process else []) + str(self._node.get("next_cmdline") or "").split()
        names = crio.wanted(texts, dict(self._environment, **coming), argv)
        path = process.environment().get("PATH") if process else None
        # exec.LookPath goes along the PATH and nowhere else.
        self._node["binaries"] = binaries.look_up(names, path or _SERVICE_PATH, None, None, root)
        self._node["not_executable"] = crio.not_executable(names, root)
        times = crio.changed((path for path in self._node["binaries"] if path.startswith("/")), root)
        self._node["binary_times"] = {path: _iso(when) for path, when in times.items()}

    # ---- assembly: nothing unmasked passes here

    def capture(self) -> t.Dict[str, t.Any]:
        withheld: t.Dict[str, str] = {}
        texts = self._masked_files(withheld)
        info = self._masked_info(withheld)
        dump = self._masked_dump(withheld)
        status_config = self._masked_status_config(withheld)
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
            "status_config": status_config,
            "info": info,
            "probe": None if self._probe is None else self._masker.text(self._probe),
        }

    def _masked_status_config(self, withheld: t.Dict[str, str]) -> t.Optional[str]:
        if self._status_config is None:
            return None
        text, reason = decode(self._status_config)
        if text is not None:
            try:
                return self._masker.toml(text)
            except Withheld as error:
                reason = str(error)
        withheld[STATUS_CONFIG] = str(reason)
        return None

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
