"""A node for faults: a real daemon that a command restarts, the product's transaction in it, and what lies on its disk.

What this proves: nothing by itself. The product runs as a process of its own inside the node, plain or under strace.
"""
from __future__ import annotations

import hashlib
import json
import pathlib
import sys
import time
import typing as t

from tests.testbed.host import CONFIG, SOCKET, ContainerdHost, HostError
from tests.testbed.product import collections_root

Tree = t.Dict[str, str]

RESTART = "/usr/local/sbin/restart-containerd"
#: While this file is there, the restart command ends the daemon and fails.
BROKEN = "/run/restart-is-broken"
_RESTART_SCRIPT = """#!/bin/sh
pid=$(pgrep -x containerd)
[ -n "$pid" ] && kill $pid
n=0
while [ -n "$pid" ] && kill -0 $pid 2>/dev/null; do
    sleep 0.02
    n=$((n + 1))
    [ $n -gt 500 ] && exit 7
done
rm -f /run/containerd/containerd.sock
if [ -e /run/restart-is-broken ]; then
    echo "the service manager of this node is broken" >&2
    exit 5
fi
setsid /usr/bin/containerd </dev/null >>/run/containerd.log 2>&1 &
"""
STATE = "/var/lib/runtime-gate"
_PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import transaction
what, plan, options = json.load(open(sys.argv[2]))
try:
    if what.startswith("recover"):
        result = getattr(transaction, what)(options)
    else:
        result = getattr(transaction, what)(plan, options)
except RuntimeGateError as error:
    result = {"state": "refused", "msg": str(error)}
print(json.dumps(result))
"""
_REQUEST = "/run/request.json"
KILLED = (137, -9)


class FaultNode:
    """One node; `reset` gives it a tree and a daemon that has loaded it."""

    def __init__(self, line: str) -> None:
        self.host = ContainerdHost(line)

    def close(self) -> None:
        self.host.close()

    def reset(self, tree: Tree) -> None:
        """The daemon runs with this tree, and nothing of the product is left."""
        self.host.run(["sh", "-c", "pkill -KILL -x containerd; for d in /etc/containerd /var/lib/runtime-gate; do umount -l $d; done 2>/dev/null; true"])
        self.host.reset()
        self.host.run(["rm", "-rf", STATE])
        self.host.install_script(RESTART, _RESTART_SCRIPT)
        for path, text in tree.items():
            self.host.write(path, text)
        self.power_cycle()
        # Only then has it read the tree, and a test may change it.
        loaded = self.loaded()
        if isinstance(loaded, str):
            raise HostError(f"the daemon does not serve this tree: {loaded}")

    def power_cycle(self) -> None:
        """The daemon is ended without mercy, and another one is started from what lies on disk."""
        self.host.run(["sh", "-c", "pkill -KILL -x containerd; rm -f /run/restart-is-broken; true"])
        done = self.host.run([RESTART])
        if done.returncode:
            raise HostError(f"the daemon cannot be started: {done.stderr}")

    # what is there -------------------------------------------------------------------------------------------------------------

    def loaded(self, wait: float = 10) -> tuple[list[str], str | None] | str:
        """(handlers, default) that the daemon answers, or the state and words of a daemon that does not serve CRI."""
        answer = self.host._ask("status", wait=wait)
        containerd = answer.get("info", {}).get("config", {}).get("containerd", {})
        if answer["state"] != "served":
            return f"{answer['state']}: {answer.get('error')}"
        return sorted(containerd.get("runtimes") or {}), containerd.get("defaultRuntimeName")

    def tree(self) -> Tree:
        """Every file below /etc/containerd, left-overs included."""
        root = self.host.path("/etc/containerd")
        files = [path for path in sorted(root.rglob("*")) if path.is_file() or path.is_symlink()]
        return {"/etc/containerd/" + str(path.relative_to(root)): path.read_bytes().decode("utf-8", "replace") for path in files}

    def journal(self) -> dict[str, t.Any] | None:
        path = self.host.path(STATE + "/transaction.json")
        return json.loads(path.read_text()) if path.exists() else None

    def last_result(self) -> dict[str, t.Any] | None:
        path = self.host.path(STATE + "/last-run.json")
        return json.loads(path.read_text()) if path.exists() else None

    # the product ---------------------------------------------------------------------------------------------------------------

    def plan(self, wanted: Tree, expect: t.Sequence[str], absent: t.Sequence[str] = (), removed: t.Sequence[str] = ()) -> dict[str, t.Any]:
        """What a controller would send to bring the present tree to the wanted one. `removed`: files that must go."""
        present = self.tree()
        writes = []
        for path, text in {**wanted, **dict.fromkeys(removed)}.items():
            if present.get(path) != text and (text is not None or path in present):
                found = hashlib.sha256(present[path].encode()).hexdigest() if path in present else None
                writes.append({"path": path, "text": text, "sha256": found, "mode": None if found else "0644"})
        paths = [write["path"] for write in writes]
        handlers = self.loaded(wait=3)
        return {
            "writes": writes,
            "commit": CONFIG if CONFIG in paths else (paths or [None])[0],
            "config_path": CONFIG,
            "exe": "/usr/bin/containerd",
            "expect": {"handlers": list(expect), "default": None},
            "keep": [],
            "absent": list(absent),
            "unit": None,
            "restart_command": [RESTART],
            "restart_needed": bool(writes) or isinstance(handlers, str) or not set(expect) <= set(handlers[0]) or bool(set(absent) & set(handlers[0])),
        }

    def command(self, what: str, plan: dict[str, t.Any] | None, options: dict[str, t.Any] | None = None) -> list[str]:
        """The command line that runs a function of the transaction inside the node."""
        request = [what, plan, {"endpoint": f"unix://{SOCKET}", "ready_timeout": 20, **(options or {})}]
        self.host.write(_REQUEST, json.dumps(request))
        return [sys.executable, "-B", "-c", _PROGRAM, collections_root(), _REQUEST]

    def call(self, what: str, plan: dict[str, t.Any] | None = None, options: dict[str, t.Any] | None = None, under: t.Sequence[str] = ()) -> tuple[int, t.Any]:
        """(exit code, result) of a function of the transaction; `under`: a program to run it under, as strace."""
        done = self.host.run([*under, *self.command(what, plan, options)], timeout=240)
        if done.returncode not in (0, *KILLED):
            raise HostError(f"{what} ended with {done.returncode}: {done.stderr[-3000:]}")
        return done.returncode, json.loads(done.stdout) if done.returncode == 0 else None

    def wait_for_end(self, seconds: float = 60) -> bool:
        """Until the run that goes on by itself has ended and kept its result."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            result = self.last_result()
            if result is not None and self.journal() is None:
                return True
            time.sleep(0.05)
        return False

    def output(self, path: str) -> pathlib.Path:
        return self.host.path(path)
