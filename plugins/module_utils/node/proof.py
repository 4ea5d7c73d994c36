# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof after a restart: the daemon's own answer over CRI has every handler that it must have.

Compared are names (LOADING.md, section 4): the handlers, the default, and that a condition which held before holds again.
Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import http.client
import os
import time
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio import loaded as crio_answers
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.loaded import read_status
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import cri, crio, discovery, grpc_unary

_PAUSE = 0.2
#: Seconds for which the same daemon must say the same. A daemon reads its configuration once, so an answer that
#: fails for that long is final; and one that passes twice does not end right after its start.
_FINAL = 3.0
_STEADY = 0.5
_CONDITIONS = ("RuntimeReady", "NetworkReady")


class Answer(t.NamedTuple):
    """One look at the daemon.

    :ivar identity: which process listens (boot, pid, start), None where nobody does or the kernel does not say.
    :ivar state: ``served``, ``unimplemented`` or ``down``.
    :ivar handlers: their names. ``default``: the default handler. ``conditions``: those that hold.
    :ivar api_version: of CRI. ``error``: why it is not served (not masked). ``info``: the whole answer.
    """

    identity: t.Optional[str]
    state: str
    handlers: t.List[str]
    default: t.Optional[str]
    conditions: t.List[str]
    api_version: str
    error: str
    info: t.Dict[str, t.Any]

    def summary(self) -> t.Dict[str, t.Any]:
        """What the journal and the result keep: names only."""
        return {
            "identity": self.identity,
            "state": self.state,
            "handlers": self.handlers,
            "default": self.default,
            "conditions": self.conditions,
        }


def look(socket: str, timeout: float) -> Answer:
    """Ask the daemon now."""
    identity = _identity(socket, timeout)
    try:
        answer = cri.ask(socket, timeout)
    except grpc_unary.GrpcStatus as error:
        state = "unimplemented" if error.code == grpc_unary.UNIMPLEMENTED else "down"
        return Answer(identity, state, [], None, [], "", str(error), {})
    except (grpc_unary.NoAnswer, cri.NotProtobuf) as error:
        return Answer(identity, "down", [], None, [], "", "%s: %s" % (socket, error), {})
    handlers, default = _of_crio(socket, answer, timeout) if answer.runtime_name == "cri-o" else _of_containerd(answer)
    conditions = [one["type"] for one in answer.info["status"]["conditions"] if one["status"] and one["type"] in _CONDITIONS]
    return Answer(
        identity,
        "served",
        handlers,
        default,
        conditions,
        answer.api_version,
        "",
        answer.info,
    )


def _of_containerd(answer: cri.Answer) -> t.Tuple[t.List[str], t.Optional[str]]:
    loaded = read_status(answer.info)
    return (sorted(loaded.handlers), loaded.default) if loaded else ([], None)


def _of_crio(socket: str, answer: cri.Answer, timeout: float) -> t.Tuple[t.List[str], t.Optional[str]]:
    """What sandboxes can have, by the refusal of one that cannot be; after a SIGHUP the other answers are wrong (LOADING.md, section 9)."""
    try:
        config: t.Optional[str] = crio.ask_config(socket, timeout).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        # Lines before 1.28 have another program for it; CRI may tell it.
        config = None
    try:
        refusal = crio.probe(socket, answer.api_version, timeout)
    except (grpc_unary.GrpcStatus, grpc_unary.NoAnswer):
        refusal = None
    said, names = crio_answers.read_answer(answer.info, config), crio_answers.read_probe(refusal)
    default = said.default if said else None
    return names if names is not None else sorted(said.handlers if said else ()), default


def _identity(socket: str, timeout: float) -> t.Optional[str]:
    pid = discovery.owner(socket, timeout)
    try:
        with open("/proc/%s/stat" % pid, "rb") as file:
            ticks = file.read().rpartition(b")")[2].split()[19].decode()
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.readline().strip()
    except (OSError, IndexError, ValueError):
        return None
    return "%s/%s/%s" % (boot, pid, ticks)


class Demand(t.NamedTuple):
    """What the answer must have.

    :ivar handlers: names that must be there. ``absent``: names that must not.
    :ivar default: the default handler; None: any.
    :ivar conditions: that must hold.
    """

    handlers: t.List[str]
    absent: t.List[str]
    default: t.Optional[str]
    conditions: t.List[str]


def demand(plan: t.Mapping[str, t.Any], before: t.Mapping[str, t.Any]) -> Demand:
    """What must be there after the change: what the plan wants, and everything that was there before."""
    expect = plan.get("expect") or {}
    wanted = expect.get("handlers") or []
    absent = [name for name in plan.get("absent") or [] if name not in wanted]
    kept = set(before["handlers"]) | set(plan.get("keep") or []) | set(wanted)
    default = expect.get("default")
    if not default and before["default"] not in absent:
        default = before["default"]
    return Demand(sorted(kept - set(absent)), sorted(absent), default, list(before["conditions"]))


def demand_again(before: t.Mapping[str, t.Any]) -> Demand:
    """What must be there after the way back: what was there before."""
    return Demand(list(before["handlers"]), [], before["default"], list(before["conditions"]))


def shortcoming(answer: Answer, wanted: Demand) -> t.Optional[str]:
    """What the answer lacks, in one sentence without a full stop; None: nothing."""
    if answer.state != "served":
        reason = {"unimplemented": "the daemon runs without its CRI plugin", "down": "the daemon does not answer"}[answer.state]
        return "%s (%s)" % (reason, answer.error)
    missing = [name for name in wanted.handlers if name not in answer.handlers]
    if missing:
        return "the daemon has not loaded %s; it has %s" % (", ".join(missing), ", ".join(answer.handlers) or "no handler")
    left = [name for name in wanted.absent if name in answer.handlers]
    if left:
        return "the daemon still has %s" % ", ".join(left)
    if wanted.default and answer.default != wanted.default:
        return "the daemon's default handler is %s, not %s" % (answer.default, wanted.default)
    lost = [name for name in wanted.conditions if name not in answer.conditions]
    return "the daemon no longer says %s" % ", ".join(lost) if lost else None


def wait(
    socket: str, wanted: Demand, other_than: t.Optional[str], deadline: float, timeout: float
) -> t.Tuple[t.Optional[str], Answer]:
    """Ask until the answer is right, or is wrong for good, or time is over.

    :param other_than: identity of the process that must have been replaced; None: any.
    :param deadline: of ``time.monotonic()``.
    :returns: (None or why the proof failed, the last answer).
    """
    first: t.Optional[t.Tuple[float, t.Optional[str], t.Optional[str]]] = None
    while True:
        answer = look(socket, timeout)
        lacks = shortcoming(answer, wanted)
        if other_than and answer.identity == other_than:
            lacks = "the daemon was not restarted: the same process answers"
        now = time.monotonic()
        if first is None or first[1:] != (answer.identity, lacks):
            first = (now, answer.identity, lacks)
        steady = now - first[0]
        if lacks is None and steady >= _STEADY:
            return None, answer
        if lacks is not None and steady >= _FINAL and _is_final(answer, wanted, other_than):
            return lacks, answer
        if now >= deadline:
            return lacks or "the daemon did not stay up", answer
        time.sleep(_PAUSE)


def _is_final(answer: Answer, wanted: Demand, other_than: t.Optional[str]) -> bool:
    """Whether a daemon that says this will say nothing else: handlers are read once, conditions may still come."""
    if answer.identity is None or answer.identity == other_than or answer.state == "down":
        return False
    return shortcoming(answer, wanted._replace(conditions=[])) is not None


def daemon_sees(path: str, socket: str, timeout: float) -> bool:
    """Whether the running daemon sees the same directory under a path as this process; True where none runs."""
    pid = discovery.owner(socket, timeout)
    directory = os.path.dirname(path)
    while not os.path.isdir(directory):
        directory = os.path.dirname(directory)
    try:
        theirs, ours = os.stat("/proc/%d/root%s" % (pid, directory)) if pid else None, os.stat(directory)
    except OSError:
        return not pid or not os.path.isdir("/proc/%d/root" % pid)
    return theirs is None or (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino)
