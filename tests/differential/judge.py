"""One pair: a real daemon's answer and the product's, compared.

What this proves: for the tree of the pair, that the product's facts equal what the daemon itself says over CRI (asked by a
client that shares no code with the product), that no handler which the generator wrote is lost without a fault that names it, that a
tree which is loaded as written raises no alarm, that the product foretells what a real restart then brings, and that the repairs which
its faults offer make the daemon load the handlers (mend.py).
"""

from __future__ import annotations

import os
import time
import traceback
import typing as t
from dataclasses import dataclass, field

from tests.differential.mend import Mended, mend
from tests.differential.parts import BINARIES, CONFIG, SHIMS, Handler, Tree
from tests.differential.quick_host import QuickHost, SlowStart
from tests.testbed.host import ContainerdHost, HostError
from tests.testbed.product import collect, interpret
from tests.testbed.tools import tool

NEXT_LINE = {"1.4": "1.6", "1.6": "1.7", "1.7": "2.0", "2.0": "2.1", "2.1": "2.2", "2.2": "2.3", "2.3.4": "2.3", "2.3": "2.4", "2.4": "2.4"}
#: Seconds.
_APART = 2


@dataclass
class Answer:
    """What a daemon has loaded, by its own word."""

    state: str
    handlers: dict[str, dict[str, t.Any]] = field(default_factory=dict)
    default: str | None = None

    @classmethod
    def of(cls, host: ContainerdHost) -> Answer:
        """Asks the daemon of the node."""
        answer = host.cri()
        if answer["state"] != "served":
            return cls(answer["state"])
        loaded = answer["info"]["config"]["containerd"]
        return cls("served", loaded.get("runtimes") or {}, loaded.get("defaultRuntimeName"))

    def meaning(self) -> tuple[str, str | None, dict[str, tuple[str, dict[str, t.Any]]]]:
        """All that counts as the same or another answer."""
        return self.state, self.default, {name: (entry.get("runtimeType") or "", _options(entry)) for name, entry in self.handlers.items()}


def _options(entry: dict[str, t.Any]) -> dict[str, t.Any]:
    """Options that say something: Status of 2.x lists every field of the schema, most of them empty."""
    return {key: value for key, value in (entry.get("options") or {}).items() if value not in ("", False, 0, None, [])}


@dataclass
class Result:
    """The outcome of a pair; each list holds sentences, empty where all is well."""

    mismatches: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    false_alarms: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    clean: bool = False
    evidence: dict[str, t.Any] = field(default_factory=dict)
    numbers: set[int] = field(default_factory=set)  # of the faults that the product names
    mended: Mended = field(default_factory=Mended)

    def findings(self) -> dict[str, list[str]]:
        """What counts against the product, by kind."""
        kinds = {"mismatch": self.mismatches, "unexplained": self.unexplained, "false alarm": self.false_alarms, "edits": self.mended.failures}
        return {kind: sentences for kind, sentences in kinds.items() if sentences}

    @property
    def bad(self) -> bool:
        """Whether the pair counts against the product."""
        return bool(self.findings())


def furnish(host: ContainerdHost, tree: Tree) -> None:
    """Lays the node around the tree: executables that handlers need, a kubelet and its configuration."""
    host.write_tree(tree.before())
    driver = "systemd" if tree.systemd_cgroup else "cgroupfs"
    host.write(
        "/var/lib/kubelet/config.yaml",
        f"kind: KubeletConfiguration\ncgroupDriver: {driver}\ncontainerRuntimeEndpoint: unix:///run/containerd/containerd.sock\n",
    )
    for path in BINARIES:
        host.install_script(path, '#!/bin/sh\nexec runc "$@"\n')
    for kind in SHIMS:
        for version in ("v1", "v2"):
            host.install_script(f"/usr/local/bin/containerd-shim-{kind}-{version}", "#!/bin/sh\nexit 1\n")
    if not host.path("/usr/bin/containerd-shim-runc-v2").exists():
        host.install_script("/usr/bin/containerd-shim-runc-v2", "#!/bin/sh\nexit 1\n")
    if not host.path("/usr/sbin/runc").exists():
        host.install(tool("runc"), "/usr/sbin/runc")
    if tree.root != CONFIG:
        host.unit(["/usr/bin/containerd", "-c", tree.root])  # nothing else tells of -c while the daemon is down
    host.kubelet()


def judge(host: ContainerdHost, tree: Tree, line: str) -> Result:
    """Runs the pair on the host, which is left as it was."""
    result = Result()
    host.reset(line)
    furnish(host, tree)
    arguments = ["-c", tree.root] if tree.root != CONFIG else []
    host.start(arguments)
    truth, log = Answer.of(host), host.log()
    _edit(host, tree)
    facts = _product(host, result)
    # A daemon that starts again with the same program on the same files brings the same; some pairs make sure of it.
    restarted = _restart(host, arguments) if tree.stale or tree.restart else truth
    result.evidence.update(truth=truth.__dict__, restarted=restarted.__dict__, facts=facts, log=log, log_after_restart=host.log())
    if facts is None:
        return result
    result.numbers = {fault["id"] for fault in facts["faults"]}
    _compare(result, truth, restarted, facts, line)
    if truth.meaning() == restarted.meaning() and facts["restart_pending"] and line != "1.4" and not tree.upgrade:
        result.mismatches.append("restart_pending is true, and a restart changed nothing")
    _explained(result, tree, truth, facts)
    _alarms(result, host, tree, line, truth, restarted, facts)
    _mend(result, host, tree, arguments, facts)
    return result


def _mend(result: Result, host: ContainerdHost, tree: Tree, arguments: list[str], facts: dict[str, t.Any]) -> None:
    """Does the faults' edits on the node and asks the daemon; what the product then says is asked as often as it is restarted."""

    def restart() -> tuple[set[str] | None, str | None, dict[str, t.Any]]:
        answer = _restart(host, arguments)
        again = interpret(_collect(host))
        return (set(answer.handlers) if answer.state == "served" else None), answer.default, again

    try:
        result.mended = mend(host, facts, tree.links, {handler.name for _path, handler in tree.declared()}, not tree.stale, restart)
    except HostError as error:
        result.mismatches.append(f"traceback on the mended node: {error}")
    except SlowStart:
        raise
    except Exception:
        result.mismatches.append(f"traceback after the edits: {traceback.format_exc()[-1500:]}")


def _edit(host: ContainerdHost, tree: Tree) -> None:
    for path in tree.removed:
        host.path(path).unlink()
    # The start of a process is known to the second: what a test edits in the same one would pass for older.
    after = time.time() + _APART
    for file in tree.edit:
        host.write(file.path, file.render())
        os.utime(host.path(file.path), (after, after))
    if tree.upgrade:
        host.replace_binary(tree.upgrade)


def _collect(host: ContainerdHost) -> dict[str, t.Any]:
    return host.collect() if isinstance(host, QuickHost) else collect(host)


def _product(host: ContainerdHost, result: Result) -> dict[str, t.Any] | None:
    """The product's facts; a traceback on either side counts as a mismatch."""
    try:
        capture = _collect(host)
        result.evidence["capture"] = capture
        return interpret(capture)
    except HostError as error:
        result.mismatches.append(f"traceback on the node: {error}")
    except Exception:
        result.mismatches.append(f"traceback in the core: {traceback.format_exc()[-1500:]}")
    return None


def _restart(host: ContainerdHost, arguments: list[str]) -> Answer:
    host.stop()
    return Answer.of(host) if host.start(arguments) else Answer("down")


def _compare(result: Result, truth: Answer, restarted: Answer, facts: dict[str, t.Any], line: str) -> None:
    """Loaded layer against the daemon, next layer against the restarted daemon."""

    def equal(what: str, product: t.Any, daemon: t.Any) -> None:
        if product != daemon:
            result.mismatches.append(f"{what}: product {product!r}, daemon {daemon!r}")

    equal("cri_ready", facts["cri_ready"], truth.state == "served")
    equal("handlers", sorted(facts["handlers"]), sorted(truth.handlers))
    equal("default_handler", facts["default_handler"], truth.default)
    for name in set(facts["handlers"]) & set(truth.handlers):
        entry = truth.handlers[name]
        equal(f"runtime_type of {name}", facts["handlers"][name].get("runtime_type") or "", entry.get("runtimeType") or "")
        if line != "1.4":
            equal(f"options of {name}", _options(facts["handlers"][name]), _options(entry))
    _foretold(result, truth, restarted, facts)


def _foretold(result: Result, truth: Answer, restarted: Answer, facts: dict[str, t.Any]) -> None:
    """What the product says that a restart brings, against a restart."""
    following = facts["layers"]["next"]
    if restarted.state == "served" and sorted(following["handlers"]) != sorted(restarted.handlers):
        result.mismatches.append(f"layers.next.handlers: product {sorted(following['handlers'])}, restarted daemon {sorted(restarted.handlers)}")
    if restarted.state == "served" and following["default_handler"] != restarted.default:
        result.mismatches.append(f"layers.next.default_handler: product {following['default_handler']!r}, restarted daemon {restarted.default!r}")
    gains, loses = sorted(set(restarted.handlers) - set(truth.handlers)), sorted(set(truth.handlers) - set(restarted.handlers))
    if sorted(facts["restart_gains"]) != gains or sorted(facts["restart_loses"]) != loses:
        result.mismatches.append(f"restart_gains, restart_loses: product {facts['restart_gains']}, {facts['restart_loses']}; daemon {gains}, {loses}")
    certain = (truth.default, sorted(truth.handlers)) != (restarted.default, sorted(restarted.handlers))
    if certain and not facts["restart_pending"]:
        result.mismatches.append("restart_pending is false, and a restart changed what is loaded")


def _explained(result: Result, tree: Tree, truth: Answer, facts: dict[str, t.Any]) -> None:
    """Every handler that was written and is not loaded is named by a fault."""
    named = {name for fault in facts["faults"] for name in fault["handlers"]}
    result.lost = sorted({handler.name for _path, handler in tree.declared()} - set(truth.handlers))
    for name in result.lost:
        if not named & {name, f"{name}.name"}:  # a dotted name may be called as it was meant
            paths = sorted({path for path, handler in tree.declared() if handler.name == name})
            result.unexplained.append(f"{name}, written in {', '.join(paths)}, is not loaded, and no fault names it")
    if set(result.lost) - set(facts["lost"]) - {"dotted"}:
        result.unexplained.append(f"lost: product {facts['lost']}, written and not loaded {result.lost}")


def _as_written(handler: Handler, entry: dict[str, t.Any] | None, line: str) -> bool:
    """Whether a handler is loaded with the type and the options that its table has."""
    if entry is None or handler.runtime_type is None or entry.get("runtimeType") != handler.runtime_type:
        return False
    options = entry.get("options") or {}
    return line == "1.4" or all(options.get(key) == value for key, value in handler.options)


def _as_declared(tree: Tree, line: str, truth: Answer, restarted: Answer) -> bool:
    """Whether all that was written is loaded as written, and a restart gives the same."""
    if truth.state != "served" or truth.meaning() != restarted.meaning() or any(file.broken for file in tree.final()):
        return False
    if not all(_as_written(handler, truth.handlers.get(handler.name), line) for _path, handler in tree.declared()):
        return False
    if tree.systemd_cgroup and all(handler.name != "runc" for _path, handler in tree.declared()):
        return False  # the built-in runc then has another cgroup driver than the kubelet: a true alarm
    return not (tree.defaults() - {truth.default} or set(truth.handlers) - {handler.name for _path, handler in tree.declared()} - {"runc"})


def _settled(host: ContainerdHost, tree: Tree, line: str, truth: Answer) -> bool:
    """Whether the other settings are effective as well, and the next release line gives the same: then nothing excuses an alarm."""
    _code, dump, _errors = host.dump(tree.root)
    if not all(setting.split(" = ")[1].strip('"') in dump for setting in tree.settings()):
        return False
    return _same_on_next_line(host, tree, line, truth)


def _same_on_next_line(host: ContainerdHost, tree: Tree, line: str, truth: Answer) -> bool:
    host.stop()
    host.replace_binary(NEXT_LINE[line])
    try:
        if not host.start(["-c", tree.root] if tree.root != CONFIG else []):
            return False
        answer = Answer.of(host)
        same = answer.default == truth.default and set(answer.handlers) == set(truth.handlers)
        return same and all(_as_written(handler, answer.handlers.get(handler.name), NEXT_LINE[line]) for _path, handler in tree.declared())
    finally:
        host.stop()
        host.replace_binary(line)


ALARMING = {
    "aimed",
    "byte_order_mark",
    "damage handler_case",
    "damage mark",
    "option_typo",
    "more_keys",
    "upper_case_handler",
    "disabled_plugin",
    "dangling_link",
    "missing_import",
    "legacy_default_runtime",
    "legacy_untrusted",
    "both_names",
}
"""Ingredients that are trouble whatever is loaded (a name that no RuntimeClass can have, a link to nowhere beside the files, a fault on purpose)."""


def _alarms(result: Result, host: ContainerdHost, tree: Tree, line: str, truth: Answer, restarted: Answer, facts: dict[str, t.Any]) -> None:
    if tree.upgrade or ALARMING & set(tree.ingredients) or not _as_declared(tree, line, truth, restarted):
        return
    result.clean = True
    alarms = [f"{fault['severity']} {fault['id']} {fault['name']}: {fault['message']}" for fault in facts["faults"] if fault["severity"] != "info"]
    alarms += [] if facts["healthy"] else ["healthy is false"]
    if alarms and _settled(host, tree, line, truth):
        result.false_alarms += alarms
