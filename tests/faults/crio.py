"""CRI-O's half of the faults: a node with a real CRI-O, and the changes of its files that are struck.

What this proves: nothing by itself; strikes.py strikes these changes as those of containerd. What is special here: CRI-O reads every file of
its directory, so that a draft in the wrong place would be configuration after a loss of power.
"""
from __future__ import annotations

import typing as t

from tests.faults.changes import Change
from tests.faults.node import STATE, FaultNode, Tree
from tests.matrix.crio_product import CONFIG_DIR, RESTART, RESTART_SCRIPT
from tests.testbed.crio_host import CONFIG, CrioHost
from tests.testbed.host import HostError
from tests.testbed.tools import tool

OURS = CONFIG_DIR + "/zz-runtime-gate.conf"
THEIRS = CONFIG_DIR + "/10-crio.conf"
_PROGRAM = "/opt/bin/mine"


def _handler(name: str) -> str:
    return f'[crio.runtime.runtimes.{name}]\nruntime_path = "{_PROGRAM}"\n'


class CrioFaultNode(FaultNode):
    """One node; `reset` gives it a tree and a CRI-O that has loaded it."""

    def __init__(self, line: str) -> None:
        self.host = CrioHost(line)  # type: ignore[assignment]

    def reset(self, tree: Tree) -> None:
        """The daemon runs with this tree, and nothing of the product is left."""
        self.host.run(["pkill", "-KILL", "-x", "crio"])
        self.host.reset()
        self.host.run(["rm", "-rf", STATE])
        self.host.install(tool("runc"), _PROGRAM)
        self.host.install_script(RESTART, RESTART_SCRIPT % "")
        for path, text in tree.items():
            self.host.write(path, text)
        self.power_cycle()
        loaded = self.loaded()
        if isinstance(loaded, str):
            raise HostError(f"the daemon does not serve this tree: {loaded}")

    def power_cycle(self) -> None:
        """The daemon is ended without mercy, and another one is started from what lies on disk."""
        self.host.run(["pkill", "-KILL", "-x", "crio"])
        done = self.host.run([RESTART])
        if done.returncode:
            raise HostError(f"the daemon cannot be started: {done.stderr}")

    def loaded(self, wait: float = 10) -> tuple[list[str], str | None] | str:
        """(what sandboxes can have, default), or the state of a daemon that does not serve CRI."""
        answer = self.host._ask("status", wait=wait)
        if answer["state"] != "served":
            return f"{answer['state']}: {answer.get('error')}"
        return self.host.usable_handlers(), self.host.default_handler()  # type: ignore[attr-defined]

    def tree(self) -> Tree:
        """Every file below /etc/crio, left-overs included."""
        root = self.host.path("/etc/crio")
        files = [path for path in sorted(root.rglob("*")) if path.is_file() or path.is_symlink()]
        return {"/etc/crio/" + str(path.relative_to(root)): path.read_bytes().decode("utf-8", "replace") for path in files}

    def plan(self, wanted: Tree, expect: t.Sequence[str], absent: t.Sequence[str] = (), removed: t.Sequence[str] = ()) -> dict[str, t.Any]:
        """What a controller would send to bring the present tree to the wanted one."""
        made = super().plan(wanted, expect, absent, removed)
        paths = [write["path"] for write in made["writes"]]
        crio = {"engine": "crio", "config_path": CONFIG, "config_dir": CONFIG_DIR, "exe": "/usr/bin/crio", "restart_command": [RESTART]}
        return {**made, **crio, "commit": (paths or [None])[0], "endpoint": "unix:///run/crio/crio.sock"}

    def command(self, what: str, plan: dict[str, t.Any] | None, options: dict[str, t.Any] | None = None) -> list[str]:
        """As for containerd, on CRI-O's socket."""
        return super().command(what, plan, {"endpoint": "unix:///run/crio/crio.sock", **(options or {})})


_BEFORE = {CONFIG: '[crio.runtime]\ndefault_runtime = "other"\n', THEIRS: _handler("other")}
_ONE, _TWO = "# ours\n" + _handler("mine"), "# ours\n" + _handler("mine") + _handler("second")
_LOADED = (["crun", "other"], "other")

CHANGES = (
    Change("a first rollout", "1.36", _BEFORE, {**_BEFORE, OURS: _ONE}, (), _LOADED, (["crun", "mine", "other"], "other"), "crio"),
    Change(
        "one handler more", "1.34", {**_BEFORE, OURS: _ONE}, {**_BEFORE, OURS: _TWO}, (),
        (["crun", "mine", "other"], "other"), (["crun", "mine", "other", "second"], "other"), "crio",
    ),  # fmt: skip
    Change("a removal", "1.36", {**_BEFORE, OURS: _TWO}, _BEFORE, (OURS,), (["crun", "mine", "other", "second"], "other"), _LOADED, "crio"),
)
