"""A node of its own for one CRI-O: the namespaces of host.py, /etc/crio, the socket and the storage of its own, a real daemon.

What this proves: nothing by itself. It lets a test lay /etc/crio/crio.conf and /etc/crio/crio.conf.d, start the CRI-O of a release line
on them, ask it through an independent client (cri-ask) and through its own ``crio status config``, and reload it by SIGHUP.

Real: the daemon, its configuration, its CRI answers, runc. Stand-ins: ``crun`` is the same runc under the name that CRI-O's built-in
default asks for; ``pinns`` and ``nft`` do nothing (the daemon wants them to be there, and would call them for a pod).
What a machine without systemd and overlay on overlay needs is set in the daemon's environment and in storage.conf, so that
the configuration under test holds what the test has written and nothing else.

    with CrioHost("1.36") as host:
        host.write("/etc/crio/crio.conf.d/50-x.conf", '[crio.runtime.runtimes.x]\\nruntime_path = "/usr/bin/runc"\\n')
        assert host.start(), host.log()
        print(host.handlers(), host.default_handler(), host.usable_handlers())
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
import typing as t

import tomllib

from tests.testbed.host import RuntimeHost
from tests.testbed.tools import tool

SOCKET = "/run/crio/crio.sock"
CONFIG = "/etc/crio/crio.conf"
CONFIG_DIR = "/etc/crio/crio.conf.d"

_WIPED = (
    "/run",
    "/etc/containerd",
    "/etc/crio",
    "/etc/containers",
    "/etc/systemd/system",
    "/etc/machine-config-daemon",
    "/etc/crictl.yaml",
    "/usr/local/bin",
    "/var/lib/containers",
    "/var/lib/crio",
    "/var/lib/kubelet",
    "/var/log/crio",
    "/opt",
)
ENVIRONMENT = {
    "CONTAINER_CGROUP_MANAGER": "cgroupfs",  # no systemd
    "CONTAINER_CONMON_CGROUP": "pod",  # what cgroupfs asks for
}
_STORAGE = '[storage]\ndriver = "vfs"\nrunroot = "/run/containers/storage"\ngraphroot = "/var/lib/containers/storage"\n'
_JOURNALCTL = """#!%(python)s -IS
import datetime, re, sys
pattern = next(word[7:] for word in sys.argv if word.startswith("--grep="))
for line in open("%(log)s", errors="replace"):
    when = re.match('time="([^"]{26})', line)
    if when and re.search(pattern, line):
        seconds = datetime.datetime.fromisoformat(when.group(1)).replace(tzinfo=datetime.timezone.utc).timestamp()
        print("%%.6f node crio[1]: %%s" %% (seconds, line.rstrip()))
"""
NO_SUCH = "runtime-gate-no-such-handler"
_RELOADED = ("Configuration reload completed", "Unable to reload configuration")


class CrioHost(RuntimeHost):
    """One node with the CRI-O of a release line (one of tools.CRIO_LINES)."""

    engine = "crio"
    program = "/usr/bin/crio"
    socket = SOCKET
    wiped = _WIPED

    def replace_binary(self, line: str) -> None:
        """Upgrades CRI-O on disk to another line; the running daemon stays what it is."""
        super().replace_binary(line)
        self.lay_runtimes()

    def lay_runtimes(self) -> None:
        """Puts the programs there that a node of CRI-O has, and takes the machine's own runtimes out of the way."""
        for name in ("runc", "crun", "pinns", "nft"):  # the machine's own would be found on the PATH first
            self.path(f"/usr/sbin/{name}").unlink(missing_ok=True)
        for name in ("runc", "crun"):
            self.install(tool("runc"), f"/usr/bin/{name}")
        for name in ("pinns", "nft"):
            self.install_script(f"/usr/bin/{name}", "#!/bin/sh\n# a stand-in of the test bed\n")
        self.write("/etc/containers/storage.conf", _STORAGE)
        self.write("/etc/containers/policy.json", '{"default": [{"type": "insecureAcceptAnything"}]}\n')

    def reset(self, line: str | None = None) -> None:
        """As every host; the programs and the storage's settings are there afterwards."""
        super().reset(line)
        self.lay_runtimes()

    def _environment(self) -> dict[str, str]:
        return ENVIRONMENT

    # its own answers -----------------------------------------------------------------------------------------------------------

    def config(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of `crio ARGUMENTS config` by the binary on disk: what the files say, dropped handlers included."""
        done = self.run([self.program, *arguments, "config"], env=ENVIRONMENT)
        return done.returncode, done.stdout, done.stderr

    def status_config(self) -> dict[str, t.Any]:
        """``crio status config``: the running daemon's own configuration ({} where it does not answer)."""
        # The command reads the files too, before it asks: a broken one must not hide what runs.
        nothing = ["--config", "/dev/null", "--config-dir", "/run/no-such-directory"]
        done = self.run([self.program, *nothing, "status", "--socket", SOCKET, "config"])
        return tomllib.loads(done.stdout)["crio"] if done.returncode == 0 else {}

    def handlers(self) -> dict[str, dict[str, t.Any]]:
        """The handlers that the daemon says it has loaded, as ``crio status config`` gives them. After a SIGHUP this is not the truth."""
        return self.status_config().get("runtime", {}).get("runtimes", {})

    def cri_handlers(self) -> list[str]:
        """The handlers of CRI's Status, without the nameless one, sorted. After a SIGHUP this is not the truth."""
        return sorted(entry["name"] for entry in self.cri().get("runtime_handlers") or [] if entry["name"])

    def default_handler(self) -> str | None:
        """The default handler, as ``crio status config`` gives it (None where the daemon does not answer)."""
        return self.status_config().get("runtime", {}).get("default_runtime")

    def usable_handlers(self) -> list[str]:
        """The handlers that a sandbox can really use, sorted: the daemon's words when it is asked for one that does not exist."""
        return named_in_refusal(self.sandbox(NO_SUCH).get("error", ""))

    def journal(self) -> None:
        """Gives the node a journal: a stand-in for journalctl that prints the daemon's own log in the form ``short-unix``."""
        self.install_script("/usr/local/bin/journalctl", _JOURNALCTL % {"python": os.path.realpath(sys.executable), "log": self._log})

    def hangup(self, wait: float = 10) -> str:
        """Sends SIGHUP and waits for the line that says how the reload ended; returns that line ("" when none came within `wait` s)."""
        before = self._reload_lines()
        os.kill(self.daemon_pid(), signal.SIGHUP)
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline:
            lines = self._reload_lines()
            if len(lines) > len(before):
                return lines[-1]
            time.sleep(0.02)
        return ""

    def _reload_lines(self) -> list[str]:
        return [line for line in self.log().splitlines() if any(words in line for words in _RELOADED)]


def named_in_refusal(error: str) -> list[str]:
    """The handlers, sorted, that CRI-O's refusal of a sandbox of NO_SUCH names."""
    found = re.search(r"from runtime list map\[([^\]]*)\]", error)
    return sorted(re.findall(r"(\S+):0x[0-9a-f]+", found[1])) if found else []
