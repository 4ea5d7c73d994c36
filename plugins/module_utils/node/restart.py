# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restarts the container runtime: through the service manager, or by a command of the user's. Never by a signal.

A signal is no way: SIGHUP ends containerd on every release line (LOADING.md, section 4), and what a process manager then does
is its own affair. CRI-O survives it and then tells handlers that no sandbox can have (section 9). Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import commands, discovery

_SNAP_UNIT = re.compile(r"snap\.([^.]+)\.([^.]+)\.service\Z")
_SAFE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_KEPT_OUTPUT = 4000
# systemd.kill(5): of these two, everything that is left in the unit's control group is killed too. The shims of running pods
# live there: they are children of containerd, and neither containerd nor k3s moves them away. The packages of containerd,
# Docker, k3s, rke2 and k0s therefore all say KillMode=process.
_KILLS_PODS = ("control-group", "mixed")
#: Words by which a command shows that it reloads.
_RELOADS = frozenset("reload force-reload reload-or-restart try-reload-or-restart -1 -HUP HUP -SIGHUP SIGHUP".split())
NO_RELOAD = (
    "%s reloads the runtime, and a reload loads no handler: SIGHUP ends containerd, and CRI-O takes it into the answer that it gives "
    "and not into what sandboxes are made with. Restart it"
)


class Restart(t.NamedTuple):
    """How this node's runtime is restarted.

    :ivar argv: the command. ``unit``: the service, None for a user's command.
    """

    argv: t.List[str]
    unit: t.Optional[str]

    @property
    def words(self) -> str:
        return "`%s`" % self.argv[0] if self.unit is None else "`%s`" % " ".join(self.argv)


def find(unit: t.Optional[str], command: t.Optional[t.Sequence[str]], timeout: float, engine: str = "containerd") -> Restart:
    """The way to restart; it is checked before anything is changed.

    :param unit: name of the service. ``command``: the user's own command; it decides.
    :raises RuntimeGateError: there is no way, it only reloads, or it would end the running pods.
    """
    if command:
        if _RELOADS.intersection(command):
            raise RuntimeGateError("runtime_gate_restart_command: " + NO_RELOAD % ("`%s`" % " ".join(command)) + ".")
        if shutil.which(command[0], path=_SAFE_PATH) is None:
            raise RuntimeGateError(
                "runtime_gate_restart_command: there is no program %s on this node that can be executed (its PATH is %s)."
                % (command[0], _SAFE_PATH)
            )
        return Restart(list(command), None)
    if not unit:
        raise RuntimeGateError(
            "No service of the container runtime is known on this node, so it cannot be restarted; name it (runtime_gate_unit), give a "
            "command (runtime_gate_restart_command), or say runtime_gate_restart: never."
        )
    try:
        facts = discovery.unit(unit, timeout)
    except commands.CommandFailed as error:
        raise RuntimeGateError("%s cannot be restarted: %s." % (unit, error)) from None
    if facts is None:
        raise RuntimeGateError(
            "%s cannot be restarted: systemd does not run here or has no such service; name the right one (runtime_gate_unit), give a "
            "command (runtime_gate_restart_command), or say runtime_gate_restart: never." % unit
        )
    # CRI-O gives the monitor of each container a control group of its own (MoveConmonToCgroup), and its unit has no KillMode.
    if facts["kill_mode"] in _KILLS_PODS and engine != "crio":
        raise RuntimeGateError(
            "%s has KillMode=%s: its restart would end every running pod with it, since their shims live in its control group. "
            "Set KillMode=process in a drop-in of the unit, drain the node and say runtime_gate_restart: never, or give a command "
            "(runtime_gate_restart_command)." % (unit, facts["kill_mode"])
        )
    snap = _SNAP_UNIT.match(unit)
    tool = shutil.which("snap", path=_SAFE_PATH) if snap else None
    if snap and tool:
        return Restart([tool, "restart", "%s.%s" % snap.groups()], unit)
    systemctl = shutil.which("systemctl", path=_SAFE_PATH) or "systemctl"
    return Restart([systemctl, "restart", "--", unit], unit)


def forgive(restart: Restart, timeout: float) -> None:
    """Forget failed starts of the service: otherwise systemd may refuse to start it with the good configuration."""
    systemctl = shutil.which("systemctl", path=_SAFE_PATH)
    if restart.unit is None or not systemctl:
        return
    try:
        commands.run([systemctl, "reset-failed", "--", restart.unit], timeout)
    except commands.CommandFailed:
        # The restart that follows tells whether it matters.
        pass


def run(restart: Restart, timeout: float) -> t.Optional[str]:
    """Restart, and wait for the command to end.

    What it starts stays alive: nothing of its process group is ended, and its output goes into a file that no reader can
    close, so that a daemon which inherits it is not ended by a broken pipe.

    :param timeout: seconds.
    :returns: None, or why it failed (not masked).
    """
    environment = {"PATH": _SAFE_PATH, "HOME": "/root", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                restart.argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                env=environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return "%s cannot be started: %s" % (restart.words, getattr(error, "strerror", None) or error)
        try:
            rc = process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            return "%s did not end within %g s" % (restart.words, timeout)
        if rc == 0:
            return None
        output.seek(0, os.SEEK_END)
        output.seek(max(output.tell() - _KEPT_OUTPUT, 0))
        said = output.read().decode("utf-8", "replace").strip()
    return "%s ended with %d%s" % (restart.words, rc, ": " + said if said else "")
