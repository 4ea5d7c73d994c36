"""A node of its own for one container runtime: private namespaces, private /etc, /var, /run, /opt and /usr, a real daemon in them.

What this proves: nothing by itself. It lets a test lay files under their true paths (/etc/containerd/config.toml, …), start the
runtime of a release line as /usr/bin/containerd on them (crio_host.py has CRI-O's), ask the daemon through an independent client (cri-ask), and run
any command inside, for which /proc then shows exactly the processes of this node.

How: one `unshare` makes mount, pid, uts and ipc namespaces. Overlays whose upper halves lie in a tmpfs cover the directories
that a node writes to; the rest of the machine stays visible (read it, do not write there). PID 1 inside reads a pipe from this process: when
the test ends, is killed or crashes, the pipe closes, PID 1 ends, and the kernel ends all that runs inside and drops the mounts.

    with ContainerdHost("2.1") as host:
        host.write("/etc/containerd/config.toml", "version = 2\\n")
        assert host.start(), host.log()
        print(host.handlers(), host.default_handler())
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import typing as t

from tests.testbed.tools import tool

SOCKET = "/run/containerd/containerd.sock"
CONFIG = "/etc/containerd/config.toml"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_OVERLAID = ("/etc", "/var", "/opt", "/usr")
_WIPED = (
    "/run",
    "/etc/containerd",
    "/etc/systemd/system",
    "/etc/rancher",
    "/etc/crictl.yaml",
    "/usr/local/bin/systemctl",
    "/var/lib/containerd",
    "/var/lib/rancher",
    "/var/lib/kubelet",
    "/opt",
)

_SETUP = r"""
set -e
base=$(mktemp -d)
mount --make-rprivate /
mount -t tmpfs -o size=2g,mode=755 testbed "$base"
for directory in %(overlaid)s; do
    mkdir -p "$base/upper$directory" "$base/work$directory"
    mount -t overlay overlay -o "lowerdir=$directory,upperdir=$base/upper$directory,workdir=$base/work$directory" "$directory"
done
mount -t tmpfs -o mode=755 run /run
# What differs from the machine's own directories, for a judge that must see every change.
mount --bind "$base/upper" /srv
umount -l "$base"
rmdir "$base" 2>/dev/null || true
mount -t proc proc /proc
hostname "$1"
cd /
exec "$2" -I -S -c '
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
def reap(*_):
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
signal.signal(signal.SIGCHLD, reap)
os.write(1, b"ready\n")
while os.read(0, 1):
    pass
'
"""


_SYSTEMCTL = """#!/bin/sh
[ "$1" = show ] || { echo "the stand-in for systemctl knows only show" >&2; exit 1; }
for last; do :; done
pid=$(pidof -s %(path)s) && state=active || { pid=0 state=inactive; }
case $last in
%(unit)s)
    printf '%%s\\n' Id=%(unit)s LoadState=loaded ActiveState=$state FragmentPath=/etc/systemd/system/%(unit)s DropInPaths= \\
        'ExecStart={ path=%(path)s ; argv[]=%(command)s ; ignore_errors=no ; pid='$pid' ; code=(null) ; status=0/0 }' \\
        KillMode=process NeedDaemonReload=no MainPID=$pid ;;
*) printf '%%s\\n' "Id=$last" LoadState=not-found ActiveState=inactive MainPID=0 ;;
esac
"""


class HostError(Exception):
    """The node could not be made, or a program in it did not do what the test bed needs."""


class RuntimeHost:
    """One node for one container runtime; what the two engines have in common.

    Hosts are independent: several may live at once, also in parallel test runs. `reset()` makes one host serve many trees.

    :cvar engine: name of the runtime, of its tools (``engine-line``) and of its daemon's program.
    :cvar program: where the daemon's program lies on the node.
    :cvar socket: the socket that it serves CRI on.
    :cvar wiped: what :meth:`reset` takes away.
    """

    engine: str
    program: str
    socket: str
    wiped: tuple[str, ...]

    def __init__(self, line: str, name: str | None = None) -> None:
        self.line = line
        self._installed = ""
        self.name = name or f"node-{line.replace('.', '-')}"
        self._daemon: subprocess.Popen[bytes] | None = None
        self._others: list[subprocess.Popen[bytes]] = []
        self._scratch = pathlib.Path(tempfile.mkdtemp(prefix="runtime-gate-host-"))
        self._log = self._scratch / "daemon.log"
        self._init = self._unshare()
        self._pid = self._child_of(self._init.pid)
        self.root = pathlib.Path(f"/proc/{self._pid}/root")
        self.replace_binary(line)

    # the node itself -----------------------------------------------------------------------------------------------------------

    def _unshare(self) -> subprocess.Popen[bytes]:
        script = _SETUP % {"overlaid": " ".join(_OVERLAID)}
        command = ["unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "/bin/sh", "-c", script, "sh", self.name]
        made = subprocess.Popen(
            [*command, os.path.realpath(sys.executable)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        assert made.stdout and made.stderr
        if made.stdout.readline() != b"ready\n":
            made.kill()
            raise HostError(f"no namespaces for {self.name} (root is needed): {made.stderr.read().decode(errors='replace')}")
        return made

    @staticmethod
    def _child_of(pid: int) -> int:
        deadline = time.monotonic() + 10  # a busy machine forks late
        while time.monotonic() < deadline:
            found = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            if found:
                return int(found[0])
            if pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                break
            time.sleep(0.005)
        raise HostError(f"process {pid} has no child")

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all that runs in the node and drops it. May be called twice."""
        if self._init.poll() is None:
            assert self._init.stdin
            self._init.stdin.close()
            try:
                self._init.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self._init.kill()  # --kill-child: PID 1 of the node goes with it
                self._init.wait()
        for process in [self._daemon, *self._others]:
            if process and process.poll() is None:
                process.kill()  # what it ran inside is gone; nsenter itself may be stopped
                process.wait()
        for stream in (self._init.stdout, self._init.stderr):
            if stream:
                stream.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def path(self, inside: str) -> pathlib.Path:
        """The path by which this process reaches a file of the node (links inside must be relative to be followed)."""
        return self.root / inside.lstrip("/")

    @property
    def differences(self) -> pathlib.Path:
        """Everything in which the node's /etc, /var, /opt and /usr differ from the machine's: made, changed and removed files."""
        return self.path("/srv")

    def write(self, path: str, text: str | bytes) -> None:
        """Writes a file of the node, directories included."""
        target = self.path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text)

    def write_tree(self, tree: t.Mapping[str, str]) -> None:
        """Writes several files: path to text. A text "-> TARGET" makes a symbolic link, "dir" ending in / a directory."""
        for path, text in tree.items():
            if path.endswith("/"):
                self.path(path).mkdir(parents=True, exist_ok=True)
            elif text.startswith("-> "):
                self.path(path).parent.mkdir(parents=True, exist_ok=True)
                self.path(path).symlink_to(text[3:])
            else:
                self.write(path, text)

    def install(self, program: pathlib.Path, path: str) -> None:
        """Puts an executable on the node as a package manager does: a new file renamed over the old one."""
        target = self.path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{target.name}.new")
        shutil.copyfile(program, draft)
        draft.chmod(0o755)
        draft.rename(target)

    def install_script(self, path: str, text: str) -> None:
        """Puts an executable script on the node."""
        self.write(path, text)
        self.path(path).chmod(0o755)

    def replace_binary(self, line: str) -> None:
        """Upgrades the runtime on disk to another line; the running daemon stays what it is."""
        self.install(tool(f"{self.engine}-{line}"), self.program)
        self.install(tool("runc"), "/usr/bin/runc")
        self._installed = line

    def reset(self, line: str | None = None) -> None:
        """Stops everything, takes away what a test laid under the usual directories, and lays the runtime of the host's line.

        With `line`, the host is of that line from now on.
        """
        self.stop()
        for process in self._others:
            self._signal(process, signal.SIGKILL)
        self._others = []
        for directory in self.wiped:
            self._wipe(self.path(directory))
        self.line = line or self.line
        if self._installed != self.line:
            self.replace_binary(self.line)

    @staticmethod
    def _wipe(target: pathlib.Path) -> None:
        if target.is_dir() and not target.is_symlink():
            for inner in target.iterdir():
                if inner.is_dir() and not inner.is_symlink():
                    shutil.rmtree(inner, ignore_errors=True)
                else:
                    inner.unlink()
        else:
            target.unlink(missing_ok=True)

    def _enter(self, argv: t.Sequence[str], directory: str = "/") -> list[str]:
        return ["nsenter", "-t", str(self._pid), "-m", "-p", "-u", "-i", f"--wdns={directory}", "--", *argv]

    def run(
        self, argv: t.Sequence[str], env: t.Mapping[str, str] | None = None, timeout: float = 60, input: str | None = None, directory: str = "/"
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command inside the node and returns its outcome; `env` adds to a plain environment (PATH and HOME)."""
        environment = {"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8", **(env or {})}
        return subprocess.run(
            self._enter(argv, directory),
            env=environment,
            timeout=timeout,
            input="" if input is None else input,
            capture_output=True,
            text=True,
            errors="replace",
        )

    # the daemon ----------------------------------------------------------------------------------------------------------------

    def _environment(self) -> dict[str, str]:
        """What the daemon's environment has beside PATH and HOME."""
        return {}

    def start(self, args: t.Sequence[str] | None = None, env: t.Mapping[str, str] | None = None, wait: float = 20) -> bool:
        """Starts the daemon with `args`, in / like systemd does. True: its socket answers (with or without CRI).

        False: it ended, or did not answer within `wait` seconds; log() tells why.
        """
        if self.running():
            raise HostError(f"{self.name}: the daemon is already running")
        environment = {"PATH": PATH, "HOME": "/root", **self._environment(), **(env or {})}
        with open(self._log, "wb") as log:
            command = self._enter([self.program, *(args or [])])
            self._daemon = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline and self.running():
            if self.path(self.socket).is_socket() and self._ask("version", wait=1)["state"] in ("served", "unimplemented"):
                return self.running()
            time.sleep(0.01)
        return False

    def running(self) -> bool:
        """Whether the daemon process lives."""
        return self._daemon is not None and self._daemon.poll() is None

    def daemon_pid(self) -> int:
        """The daemon's process id as this process sees it. Raises HostError when it does not run."""
        if not self.running():
            raise HostError(f"{self.name}: the daemon does not run")
        assert self._daemon
        return self._child_of(self._daemon.pid)

    @staticmethod
    def _signal(process: subprocess.Popen[bytes], number: int) -> None:
        with contextlib.suppress(ProcessLookupError, HostError, FileNotFoundError, ValueError):
            os.kill(RuntimeHost._child_of(process.pid), number)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, HostError, FileNotFoundError, ValueError):
                os.kill(RuntimeHost._child_of(process.pid), signal.SIGKILL)
            process.kill()
            process.wait()

    def kill(self, number: int = signal.SIGKILL) -> int | None:
        """Sends the daemon a signal, waits for its end, returns its exit status (None: it was not running)."""
        if self._daemon is None:
            return None
        if self.running():
            self._signal(self._daemon, number)
        return self._daemon.returncode

    def pause(self) -> None:
        """Stops the daemon in its tracks (SIGSTOP): its socket accepts, nothing answers."""
        os.kill(self.daemon_pid(), signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a paused daemon go on; nsenter, which stops along with it, too."""
        pid = self.daemon_pid()
        assert self._daemon
        os.kill(self._daemon.pid, signal.SIGCONT)
        os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        """Ends the daemon as systemd does; its socket file is taken away, as its end leaves it or not by release line."""
        self.kill(signal.SIGTERM)
        self._daemon = None
        self.path(self.socket).unlink(missing_ok=True)
        self.path(self.socket + ".ttrpc").unlink(missing_ok=True)

    def restart(self, args: t.Sequence[str] | None = None) -> bool:
        """stop() and start()."""
        self.stop()
        return self.start(args)

    def log(self) -> str:
        """All that the daemon printed since its last start."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    # the judge -----------------------------------------------------------------------------------------------------------------

    def _ask(self, *command: str, wait: float = 0, socket: str = "") -> dict[str, t.Any]:
        client = [str(tool("cri-ask")), "--socket", str(self.path(socket or self.socket)), "--wait", str(wait)]
        done = subprocess.run([*client, *command], capture_output=True, text=True)
        try:
            return json.loads(done.stdout)
        except ValueError:
            raise HostError(f"cri-ask {' '.join(command)}: exit {done.returncode}, {done.stderr or done.stdout!r}") from None

    def cri(self) -> dict[str, t.Any]:
        """The daemon's own answer: state (served, unimplemented, down), api, version, runtime_handlers, info, error."""
        return self._ask("status", wait=2 if self.running() else 0)

    def sandbox(self, handler: str, name: str = "probe") -> dict[str, t.Any]:
        """Asks the daemon for a pod sandbox of a handler: `sandbox` is its id, `error` the daemon's words."""
        return self._ask("runp", name, handler)

    # stand-ins -----------------------------------------------------------------------------------------------------------------

    def stand_in(self, name: str, arguments: t.Sequence[str], path: str | None = None) -> subprocess.Popen[bytes]:
        """Starts a process named `name` with this command line. It is a stand-in: it sleeps, only its /proc entry is real."""
        program = path or f"/usr/bin/{name}"
        self.install(tool("stand-in"), program)
        process = subprocess.Popen(
            self._enter([program, *arguments]),
            env={"PATH": PATH},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._others.append(process)
        self._child_of(process.pid)
        return process

    def unit(self, argv: t.Sequence[str] = ()) -> None:
        """Gives the node the engine's unit with this ExecStart, as `systemctl show` tells it.

        A stand-in: there is no systemd, only a systemctl that knows this one command. Hosts with a real init are under test elsewhere.
        """
        self.path("/run/systemd/system").mkdir(parents=True, exist_ok=True)
        argv = argv or [self.program]
        command = " ".join(argv)
        self.write(f"/etc/systemd/system/{self.engine}.service", f"[Service]\nExecStart={command}\nKillMode=process\n")
        self.install_script("/usr/local/bin/systemctl", _SYSTEMCTL % {"path": argv[0], "command": command, "unit": f"{self.engine}.service"})

    def kubelet(self, endpoint: str = "", config: str = "/var/lib/kubelet/config.yaml", arguments: t.Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Starts a stand-in for the kubelet: nothing but its name, executable and command line, which a collector reads."""
        return self.stand_in("kubelet", [f"--container-runtime-endpoint={endpoint or 'unix://' + self.socket}", f"--config={config}", *arguments])


class ContainerdHost(RuntimeHost):
    """One node with the containerd of a release line (a key of tools.LINES, or a version such as 2.3.4)."""

    engine = "containerd"
    program = "/usr/bin/containerd"
    socket = SOCKET
    wiped = _WIPED

    def dump(self, config: str = CONFIG) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of `containerd -c CONFIG config dump` by the binary on disk."""
        done = self.run(["/usr/bin/containerd", "-c", config, "config", "dump"])
        return done.returncode, done.stdout, done.stderr

    def _containerd_config(self) -> dict[str, t.Any]:
        return self.cri().get("info", {}).get("config", {}).get("containerd", {})

    def handlers(self) -> dict[str, dict[str, t.Any]]:
        """The handlers that the daemon has loaded, by name, as its Status gives them ({} where CRI is not served)."""
        return self._containerd_config().get("runtimes") or {}

    def default_handler(self) -> str | None:
        """The default handler that the daemon has loaded (None where CRI is not served)."""
        return self._containerd_config().get("defaultRuntimeName")
