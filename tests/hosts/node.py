"""One host: a container of podman's in which systemd is PID 1, with PID, mount, UTS, IPC and network namespace of its own.

What this proves: nothing by itself. The tests reach a host over ssh to its own sshd (its network has nothing but loopback, so ssh
is started in its network namespace), and ask its daemon past all of that, through the socket's path below /proc.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import typing as t

from tests.faults.sandboxes import pause_image
from tests.hosts import crio, image
from tests.testbed import crio_host
from tests.testbed.tools import cache_root, entry, tool

#: Of each engine: where it serves CRI, and the file that its configuration begins with.
SOCKETS = {"containerd": "/run/containerd/containerd.sock", "crio": crio_host.SOCKET}
CONFIGS = {"containerd": "/etc/containerd/config.toml", "crio": crio_host.CONFIG}
PAUSE_TAR = "/root/pause.tar"
_BOOT_SECONDS = 60.0
#: Release lines without a package of Debian's: the program is its own, the rest comes from this package.
_PACKAGED = "containerd-2.1"
_NO_FILES = ("dev", "proc", "run", "sys", "tmp", "var/tmp")
# What a host writes by itself, or Ansible into its temporary directory: no run may leave anything else.
_RESTLESS = ("var/lib/containerd", "var/lib/containers", "var/lib/crio", "var/lib/systemd", "var/log")


class HostError(Exception):
    """A host cannot be had, or did not do what a test needs of it."""


class Hosts:
    """The hosts of one test, told from those of others by the directory of the test."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory.absolute()
        self._scope = hashlib.sha256(str(self.directory).encode()).hexdigest()[:8]

    def names(self) -> list[str]:
        """Those that are there."""
        listed = podman("ps", "--all", "--format", "{{.Names}}").split()
        return [name.partition(".")[2] for name in listed if name.startswith(f"{self._scope}.")]

    def host(self, name: str) -> Host:
        """A host that was made before."""
        return Host(name, f"{self._scope}.{name}", self.directory)

    def up(self, runtimes: t.Mapping[str, str]) -> None:
        """Make hosts: name -> container runtime, as the test bed calls it. Those that are left over from an earlier run go first."""
        self.down()
        self.directory.mkdir(parents=True, exist_ok=True)
        key = self.directory / "key"
        if not key.exists():
            _run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)])
        for name in runtimes:
            self.host(name).create()
        for name, runtime in runtimes.items():
            self.host(name).prepare(runtime)

    def down(self) -> None:
        """Remove the hosts and all that runs in them."""
        for name in self.names():
            podman("rm", "--force", "--time", "0", f"{self._scope}.{name}")


class Host:
    """One host. ``root``: its root directory, as this process sees it."""

    def __init__(self, name: str, container: str, directory: pathlib.Path) -> None:
        self.name = name
        self._container = container
        self._directory = directory
        self._pid_file = _runtime_directory() / f"{container}.pid"

    @property
    def root(self) -> pathlib.Path:
        return pathlib.Path(f"/proc/{self.pid}/root")

    def path(self, inside: str) -> pathlib.Path:
        """The path by which this process reaches a file of the host (links inside must be relative to be followed)."""
        return self.root / inside.lstrip("/")

    def create(self) -> None:
        """Boot it."""
        podman(
            "run", "--detach", "--name", self._container, "--hostname", self.name, "--systemd=always", "--privileged", "--network=none",
            "--cgroupns=private", f"--pidfile={self._pid_file}", "--rootfs", f"{image.root()}:O", "/sbin/init",
        )  # fmt: skip

    @property
    def engine(self) -> str:
        """Which container runtime is installed: containerd or crio."""
        return "crio" if self.path(crio.PROGRAM).exists() else "containerd"

    @property
    def pid(self) -> int:
        """Its PID 1, as this process sees it."""
        return int(self._pid_file.read_text())

    def prepare(self, runtime: str) -> None:
        """Wait for its boot, install the container runtime and what a pod sandbox needs, and let the test's key in."""
        self._wait_for_boot()
        self.install(runtime)
        self.install("runc")
        self.path(PAUSE_TAR).write_bytes(pause_image(tool("stand-in")))
        home = self.path(f"/home/{image.USER}")
        (home / ".ssh").mkdir(mode=0o700)
        shutil.copyfile(f"{self._directory}/key.pub", home / ".ssh/authorized_keys")
        owner = home.stat()
        for path in (home / ".ssh", home / ".ssh/authorized_keys"):
            os.chown(path, owner.st_uid, owner.st_gid)
        self._write_ssh()

    def _wait_for_boot(self) -> None:
        deadline = time.monotonic() + _BOOT_SECONDS
        state = ""
        while time.monotonic() < deadline:
            # "degraded": a unit failed that the tests do not need. What they need fails by itself.
            state = self.run(["systemctl", "is-system-running"]).stdout.strip()
            if state in ("running", "degraded"):
                return
            time.sleep(0.1)
        raise HostError(f"{self.name} has not booted within {_BOOT_SECONDS:g} s ({state or 'no answer'})")

    def _write_ssh(self) -> None:
        script = self._directory / f"ssh-{self.name}"
        known = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "IdentitiesOnly=yes", "HostName=127.0.0.1")
        options = " ".join(f"-o {option}" for option in known)
        # The first value of an option counts: the connections that are kept are those of this host alone.
        control = f"-o ControlPath={_runtime_directory()}/{self._container}.ssh"
        command = f'nsenter --net --target "$(cat {self._pid_file})" ssh -F /dev/null {control} {options} -i {self._directory}/key -l {image.USER} "$@"'
        script.write_text(f"#!/bin/sh\nexec {command}\n", encoding="utf-8")
        script.chmod(0o755)

    def install(self, name: str) -> None:
        """Lay the files of a package down: a new file is renamed over the old one, a configuration that is there stays."""
        program, package = tool(name), entry(name) / "root"
        if package.is_dir():
            self._lay_package(package)
        elif name.startswith("crio-"):
            self._lay(program, crio.PROGRAM)
            crio.lay_beside(self.root)
        else:
            self.install(_PACKAGED)
            self._lay(program, "usr/bin/containerd")
        self.run(["systemctl", "daemon-reload"])

    def _lay_package(self, package: pathlib.Path) -> None:
        for path in sorted(package.rglob("*")):
            inside = str(path.relative_to(package))
            is_configuration = inside.startswith("etc/") and self.path(inside).exists()
            if path.is_file() and not is_configuration and not inside.startswith("usr/share/"):
                self._lay(path, inside)

    def _lay(self, source: pathlib.Path, inside: str) -> None:
        target = self.path(inside)
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.dpkg-new")
        shutil.copy2(source, draft)
        draft.rename(target)

    def run(self, argv: t.Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in the host as root."""
        command = ["podman", "exec", self._container, *argv]
        return subprocess.run(command, env=_environment(), capture_output=True, text=True, errors="replace", timeout=300, check=False)

    def ask(self, *words: str) -> dict[str, t.Any]:
        """What the daemon says over CRI, by a client that shares no code with the product."""
        command = [str(tool("cri-ask")), "--socket", str(self.path(SOCKETS[self.engine])), "--wait", "20", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
        try:
            return t.cast("dict[str, t.Any]", json.loads(done.stdout))
        except ValueError:
            raise HostError(f"cri-ask {' '.join(words)}: exit {done.returncode}, {done.stderr or done.stdout!r}") from None

    def handlers(self) -> list[str]:
        """The handlers that a sandbox can have, sorted, by the daemon's word.

        containerd gives the table that it works by; CRI-O lists them when it refuses one that does not exist, as its other answers
        may be wrong (docs/crio.md).
        """
        if self.engine == "crio":
            return crio_host.named_in_refusal(self.ask("runp", "nobody", crio_host.NO_SUCH).get("error", ""))
        return sorted(self.ask("status")["info"]["config"]["containerd"]["runtimes"])

    def try_pods(self, handlers: t.Sequence[str]) -> None:
        """Make a pod sandbox of each handler and remove it. Raises HostError with the daemon's words where it makes none."""
        for handler in handlers:
            made = self.ask("runp", f"try-{handler}", handler)
            if not made.get("sandbox"):
                raise HostError(f"{self.name} makes no sandbox of {handler}: {made.get('error')}")
            for verb in ("stopp", "rmp"):
                self.ask(verb, made["sandbox"])

    def start_pod(self, handler: str = "") -> None:
        """Start a pod that stays, of a handler or the default one, and note all that runs. With containerd."""
        done = self.run(["ctr", "--namespace", "k8s.io", "images", "import", "--local", "--snapshotter", "native", PAUSE_TAR])
        if done.returncode:
            raise HostError(f"{self.name}: the pause image cannot be imported: {done.stderr}")
        made = self.ask("runp", f"before-{handler or 'default'}", handler)
        if not made.get("sandbox"):
            raise HostError(f"{self.name} makes no sandbox: {made.get('error')}")
        self._noted("pods").write_text(self._tasks(), encoding="utf-8")

    def check_pod(self, more: str = "0") -> None:
        """Raises HostError unless the noted pods are still the same processes, and nothing else runs (no sandbox of a probe was left).

        more: how many processes of pods may have come since.
        """
        before, now = (text.splitlines()[1:] for text in (self._noted("pods").read_text(encoding="utf-8"), self._tasks()))
        are_running = all(task.split()[-1] == "RUNNING" for task in now)
        if not before or not are_running or not set(before) <= set(now) or len(now) != len(before) + int(more):
            raise HostError("\n".join([f"{self.name} ran", *before, "and now runs", *now]))

    def _noted(self, what: str) -> pathlib.Path:
        return self._directory / f"{self.name}.{what}"

    def _tasks(self) -> str:
        return self.run(["ctr", "--namespace", "k8s.io", "tasks", "ls"]).stdout

    def calls(self) -> int:
        """How many commands sshd has been asked for since the host booted."""
        log = self.run(["journalctl", "--unit", "ssh", "--output", "cat", "--no-pager"]).stdout
        return sum(line.startswith("Starting session:") for line in log.splitlines())

    def note_state(self) -> None:
        """Note every file, and the daemon's process."""
        self._noted("state").write_text(json.dumps(self._state()), encoding="utf-8")

    def check_state(self, but: str = "") -> None:
        """Raises HostError, with the differences, unless everything is as noted. but: a regular expression of what may differ."""
        before, now = json.loads(self._noted("state").read_text(encoding="utf-8")), self._state()
        if len(before) < 3000 or CONFIGS[self.engine] not in before:
            raise HostError(f"{self.name}: only {len(before)} files were noted, or not the right ones")
        differ = sorted(name for name in {*before, *now} if before.get(name) != now.get(name) and not re.fullmatch(but, name))
        if differ:
            raise HostError("\n".join(f"{self.name}: {name} was {before.get(name)}, is {now.get(name)}" for name in differ))

    def _state(self) -> dict[str, str]:
        """Path -> mode, owner and sha256 (of a link: where it points) of all but the kernel's files and what a host writes by itself;
        the engine's name -> the process of the daemon and its start."""
        shown = self.run(["systemctl", "show", "--property", "MainPID,ExecMainStartTimestampMonotonic,NRestarts", self.engine])
        found = {self.engine: shown.stdout}
        for top, directories, files in os.walk(self.root):
            inside = os.path.relpath(top, self.root)
            directories[:] = [name for name in directories if os.path.normpath(f"{inside}/{name}") not in (*_NO_FILES, *_RESTLESS)]
            for name in (*directories, *files):
                path = os.path.join(top, name)
                with contextlib.suppress(FileNotFoundError):
                    found["/" + os.path.normpath(f"{inside}/{name}")] = _facts(path)
        return found


def _facts(path: str) -> str:
    facts = os.lstat(path)
    data = b""
    if os.path.islink(path):
        data = os.readlink(path).encode()
    elif os.path.isfile(path):
        data = pathlib.Path(path).read_bytes()
    return f"{facts.st_mode:o} {facts.st_uid}:{facts.st_gid} {hashlib.sha256(data).hexdigest()}"


def why_not() -> str | None:
    """Why this machine cannot have hosts, in one sentence; None when it can, which is tried and not guessed."""
    if os.geteuid():
        return "it takes root"
    missing = [name for name in ("podman", "runc", "mmdebstrap", "ssh", "ssh-keygen", "nsenter") if not shutil.which(name)]
    if missing:
        return f"{', '.join(missing)} not found; tests/system_packages.sh --install installs what is missing"
    host = Hosts(_runtime_directory() / f"trial-{os.getpid()}").host("trial")
    try:
        host.create()
        host._wait_for_boot()  # pylint: disable=protected-access
    except (HostError, OSError) as error:
        return f"a host does not boot here: {error}"
    finally:
        with contextlib.suppress(HostError):
            podman("rm", "--force", "--time", "0", "--ignore", host._container)  # pylint: disable=protected-access
    return None


def podman(*arguments: str) -> str:
    """Run podman with a configuration and a storage of the tests' own. Raises HostError when it fails."""
    return _run(["podman", *arguments], _environment())


def _run(command: t.Sequence[str], environment: t.Mapping[str, str] | None = None) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", timeout=300, check=False)
    if done.returncode:
        raise HostError(f"{' '.join(command[:3])} … ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def _runtime_directory() -> pathlib.Path:
    """For what does not outlive a boot; one for each cache, as podman wants it. Short: sockets lie in it."""
    name = hashlib.sha256(str(cache_root()).encode()).hexdigest()[:8]
    directory = pathlib.Path("/run/runtime-gate-hosts") / name
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def _environment() -> dict[str, str]:
    # root without CAP_SYS_RESOURCE may not raise limits; crun refuses hybrid control groups, and a machine without systemd has no
    # other manager of them.
    home, run = cache_root() / "hosts", _runtime_directory()
    home.mkdir(exist_ok=True)
    texts = {
        "containers.conf": f"""[containers]
default_ulimits = ["nofile=20000:20000", "nproc=20000:20000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{run}/engine"
""",
        "storage.conf": f'[storage]\ndriver = "overlay"\ngraphroot = "{home}/storage"\nrunroot = "{run}/storage"\n',
    }
    for name, text in texts.items():
        draft = home / f".{name}.{os.getpid()}"
        draft.write_text(text, encoding="utf-8")
        draft.rename(home / name)
    return {**os.environ, "CONTAINERS_CONF": f"{home}/containers.conf", "CONTAINERS_STORAGE_CONF": f"{home}/storage.conf"}
