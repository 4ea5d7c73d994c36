# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One cell of the matrix: a tree, a declaration, and everything that must hold before, after and after the removal.

The judge knows nothing of the product: what must be loaded is written down here in the words of CRI.
"""

from __future__ import annotations

import dataclasses
import json
import typing as t

from tests.matrix.product import Product
from tests.matrix.trees import Root, Tree
from tests.testbed.host import HostError

Table = t.Dict[str, t.Any]

CRUN = {"preset": "crun"}
KATA = {"preset": "kata-qemu"}
MINE = {
    "runtime_type": "io.containerd.runc.v2",
    "options": {"BinaryName": "/usr/local/bin/mine", "SystemdCgroup": True},
    "pod_annotations": ["example.com/*"],
    "privileged_without_host_devices": True,
}
PROGRAMS = (
    "/usr/bin/containerd-shim-runc-v2",
    "/usr/bin/crun",
    "/usr/local/bin/mine",
    "/opt/kata/bin/containerd-shim-kata-v2",
    "/usr/sbin/runc",
)
_SHOWN = 700
_KATA_SHIM = "/opt/kata/bin/containerd-shim-kata-v2"


class Step(t.NamedTuple):
    """One call of the module.

    :ivar options: of the module. ``present``: handlers that must be there after it, beside the first ones.
    :ivar default: the default handler after it; None: the first one.
    """

    options: Table
    present: t.Tuple[str, ...]
    default: t.Optional[str] = None


DECLARATIONS: t.Dict[str, t.Tuple[Step, ...]] = {
    "one": (Step({"handlers": {"crun": CRUN}}, ("crun",)),),
    "three": (Step({"handlers": {"crun": CRUN, "kata-qemu": KATA, "mine": MINE}}, ("crun", "kata-qemu", "mine")),),
    "default": (Step({"handlers": {"crun": CRUN}, "default_handler": "crun", "accept_blast_radius": True}, ("crun",), "crun"),),
    "removal": (
        Step({"handlers": {"crun": CRUN, "mine": MINE}}, ("crun", "mine")),
        Step({"handlers": {"crun": CRUN, "mine": {"state": "absent"}}}, ("crun",)),
    ),
}


def expected(name: str, line: str) -> Table:
    """What CRI must say of a declared handler (a subset; options that are not named may be anything)."""
    if name == "crun":
        return {"runtimeType": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/bin/crun"}}
    if name == "mine":
        return {
            "runtimeType": "io.containerd.runc.v2",
            "options": MINE["options"],
            "PodAnnotations": ["example.com/*"],
            "privileged_without_host_devices": True,
        }
    kata = {
        "options": {"ConfigPath": "/opt/kata/share/defaults/kata-containers/configuration-qemu.toml"},
        "privileged_without_host_devices": True,
        "PodAnnotations": ["io.katacontainers.*"],
    }
    if line == "1.6":
        # It does not read runtime_path, and takes the shim's path as the type.
        return dict(kata, runtimeType=_KATA_SHIM)
    return dict(kata, runtimeType="io.containerd.kata-qemu.v2", runtimePath=_KATA_SHIM)


class State(t.NamedTuple):
    """What the daemon says: its handlers, the default, and the rest of its CRI configuration. Nothing where CRI is not served."""

    served: bool
    handlers: t.Dict[str, Table]
    default: t.Optional[str]
    rest: Table


@dataclasses.dataclass
class Cell:
    """The outcome of one cell. faults: sentences; none: it is good."""

    line: str
    root: str
    foreign: bool
    declaration: str
    faults: t.List[str] = dataclasses.field(default_factory=list)
    applied: bool = False
    repaired: bool = False
    refused: bool = False
    second_runs: int = 0
    unchanged: int = 0
    removed: bool = False
    same_bytes: bool = False

    def __str__(self) -> str:
        where = "%-4s %-14s %-7s %-8s" % (self.line, self.root, "foreign" if self.foreign else "alone", self.declaration)
        faults = "".join("\n       %s" % fault[:_SHOWN] for fault in self.faults)
        if self.refused:
            return where + " refused" + faults
        words = ["applied" if self.applied else "NOT APPLIED"]
        words += ["after a refusal"] if self.repaired else []
        words += ["%d of %d second runs unchanged" % (self.unchanged, self.second_runs)]
        words += ["removed" + (" byte for byte" if self.same_bytes else "") if self.removed else "NOT REMOVED"]
        return where + " " + ", ".join(words) + faults


def run_cell(product: Product, root: Root, foreign: bool, declaration: str) -> Cell:
    """One cell; what goes wrong stands in its faults."""
    cell = Cell(product.host.line, root.name, foreign, declaration)
    tree = root.make(product.host, cell.line, foreign)
    try:
        _lay(product, tree)
        steps = DECLARATIONS[declaration]
        run = _Run(product, tree, cell, root.repair(cell.line, foreign))
        never = root.never(cell.line, foreign, steps[0].default is not None)
        if never:
            run.must_refuse(steps[0], {"repair": True}, never)
            cell.refused = True
        else:
            run.run(steps)
    except (HostError, AssertionError) as error:
        cell.faults.append("%s: %s" % (type(error).__name__, str(error)[:1500]))
    return cell


def _lay(product: Product, tree: Tree) -> None:
    """The node with this tree, and its daemon started on it."""
    product.reset()
    for program in (*PROGRAMS, *tree.programs):
        product.host.install_script(program, "#!/bin/sh\nexit 0\n")
    for mark in tree.marks:
        product.host.write(mark, "")
    for path, text in tree.files.items():
        product.host.write(path, text)
    product.socket = tree.socket
    product.install_restart(tree.arguments)
    if tree.before_start:
        product.host.install_script("/run/before-start", tree.before_start)
    product.start()


class _Run:
    def __init__(self, product: Product, tree: Tree, cell: Cell, refusal: t.Optional[str]) -> None:
        self._product, self._tree, self._cell, self._refusal = product, tree, cell, refusal
        self._options: Table = {}
        self._first = self.state()
        self._files = product.files()

    def fault(self, sentence: str, *values: t.Any) -> None:
        self._cell.faults.append(sentence % values if values else sentence)

    def state(self) -> State:
        answer = self._product.ask()
        if answer["state"] != "served":
            return State(False, {}, None, {})
        config = json.loads(json.dumps(answer["info"]["config"]))
        containerd = config["containerd"]
        handlers = {name: plain(body) or {} for name, body in (containerd.pop("runtimes", None) or {}).items()}
        # 1.x repeats the default handler's table under these names.
        for key in ("defaultRuntime", "untrustedWorkloadRuntime"):
            containerd.pop(key, None)
        return State(True, handlers, containerd.pop("defaultRuntimeName", None), plain(config) or {})

    def run(self, steps: t.Sequence[Step]) -> None:
        if self._refusal:
            self.must_refuse(steps[0], {}, self._refusal)
            self._options = {"repair": True}
            self._cell.repaired = True
        if steps[0].default and self._first.served:
            self.must_refuse(steps[0], {"accept_blast_radius": False, **self._options}, "reaches every pod")
        if not all(self._step(step) for step in steps):
            return
        self._cell.applied = True
        self._remove(steps)

    def must_refuse(self, step: Step, options: Table, words: str) -> None:
        result = self._product.change({**step.options, **options})
        if not result.get("failed") or words not in result["msg"]:
            self.fault("not refused for %r: %s", words, result.get("msg") or result)
        if self._product.files() != self._files or self.state() != self._first:
            self.fault("a refusal has changed something")

    def _step(self, step: Step) -> bool:
        options = {**step.options, **self._options}
        result = self._product.change(options)
        if result.get("failed") or not result["changed"]:
            self.fault("%s", result.get("msg") or "unchanged: %s" % result)
            return False
        self._judge(step)
        self._second_run(options)
        return True

    def _judge(self, step: Step) -> None:
        now = self.state()
        if not now.served:
            self.fault("CRI is not served after the change")
            return
        for name in step.present:
            lacks = missing(expected(name, self._cell.line), now.handlers.get(name))
            if lacks:
                self.fault("handler %s: %s", name, lacks)
        for name, body in self._first.handlers.items():
            if now.handlers.get(name) != body:
                self.fault("handler %s was %s and is %s", name, body, now.handlers.get(name))
        if not self._cell.repaired:
            extra = set(now.handlers) - set(self._first.handlers) - set(step.present)
            if extra:
                self.fault("nobody asked for %s", sorted(extra))
            if now.rest != self._first.rest:
                self.fault("another setting changed: %s", differences(self._first.rest, now.rest))
        default = step.default or self._first.default
        if default and now.default != default:
            self.fault("the default is %s, not %s", now.default, default)

    def _second_run(self, options: Table) -> None:
        self._cell.second_runs += 1
        files, restarts = self._product.files(), self._product.restarts()
        result = self._product.change(options)
        if result.get("failed") or result["changed"]:
            self.fault("the second run: %s", result.get("msg") or {key: result[key] for key in ("restarted", "loaded_diff", "diff")})
        elif self._product.calls != ["collect"]:
            self.fault("the second run called the node for %s", self._product.calls)
        elif self._product.files() != files or self._product.restarts() != restarts:
            self.fault("the second run changed a file or restarted the daemon")
        else:
            self._cell.unchanged += 1

    def _remove(self, steps: t.Sequence[Step]) -> None:
        # To give the old default back is a change of the default too.
        result = self._product.change({"remove": True, "accept_blast_radius": bool(steps[-1].default)})
        if result.get("failed") or not result["changed"]:
            self.fault("removal: %s", result.get("msg") or "unchanged: %s" % result)
            return
        now = self.state()
        if self._cell.repaired:
            ours = {name for step in steps for name in step.present} - set(self._first.handlers)
            left = sorted(ours & set(now.handlers))
            lost = sorted(set(self._first.handlers) - set(now.handlers))
            if left or lost:
                self.fault("after the removal left: %s, lost: %s", left, lost)
        elif now != self._first:
            self.fault("after the removal: %s", differences(self._first._asdict(), now._asdict()))
        files = self._product.files()
        self._cell.same_bytes = files == self._files
        if not self._cell.repaired and not self._cell.same_bytes:
            self.fault("after the removal these files differ: %s", sorted(path for path in {*files, *self._files} if files.get(path) != self._files.get(path)))
        self._cell.removed = True
        self._second_run({"remove": True})


def plain(value: t.Any) -> t.Any:
    """Without what is not set: the daemon prints a false, 0 or empty value for it in one place and nothing in another."""
    if isinstance(value, dict):
        items = {key: plain(item) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not None} or None
    if isinstance(value, list):
        return [plain(item) for item in value] or None
    return value or None


def missing(wanted: t.Any, actual: t.Any) -> str:
    """What of a subset is not so; "": nothing."""
    if isinstance(wanted, dict) and isinstance(actual, dict):
        found = [missing(value, actual.get(key)) and "%s: %s" % (key, missing(value, actual.get(key))) for key, value in wanted.items()]
        return "; ".join(one for one in found if one)
    return "" if wanted == actual else "%r, not %r" % (actual, wanted)


def differences(first: Table, second: Table, path: str = "") -> str:
    """Where two answers differ."""
    found = []
    for key in sorted({*first, *second}):
        one, two = first.get(key), second.get(key)
        if isinstance(one, dict) and isinstance(two, dict):
            found.append(differences(one, two, "%s%s." % (path, key)))
        elif one != two:
            found.append("%s%s: %r → %r" % (path, key, one, two))
    return "; ".join(one for one in found if one)
