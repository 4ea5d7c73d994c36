"""Faults that are no system call: a binary that rejects, a daemon that refuses, two runs at once, a cut connection, a full disk.

What this proves: each situation ends as its function says, on a real daemon; cri-ask is the judge.
"""
from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import time
import typing as t

from tests.faults import sandboxes, system_calls
from tests.faults.changes import CHANGES, MASKED, ROLLOUT, SECRET
from tests.faults.node import BROKEN, RESTART, FaultNode
from tests.testbed.host import CONFIG, PATH

Checks = t.List[str]
_OLD = 'plugins."io.containerd.grpc.v1.cri"'
#: While it is not there, a held restart waits.
_GO = "/run/go-on"


@contextlib.contextmanager
def _node() -> t.Iterator[FaultNode]:
    node = FaultNode(ROLLOUT.line)
    try:
        node.reset(ROLLOUT.before)
        yield node
    finally:
        node.close()


def _plan(node: FaultNode, **more: t.Any) -> dict[str, t.Any]:
    return {**node.plan(ROLLOUT.wanted, ROLLOUT.expect), **more}


def _with_root(node: FaultNode, text: str) -> dict[str, t.Any]:
    """A plan that replaces the root file."""
    return node.plan({CONFIG: text}, ROLLOUT.expect)


def _untouched(node: FaultNode) -> Checks:
    """The old tree, nothing beside it, and a daemon that has what it had."""
    checks = [f"the tree is {sorted(node.tree())}"] if node.tree() != ROLLOUT.before else []
    loaded = node.loaded()
    return checks + ([f"the daemon has {loaded}"] if loaded != ROLLOUT.loaded_before else [])


def _done(node: FaultNode) -> Checks:
    """The new tree, nothing beside it, a daemon that has it, no journal."""
    checks = [f"the tree is {sorted(node.tree())}"] if node.tree() != ROLLOUT.after else []
    checks += ["there is a journal"] if node.journal() else []
    loaded = node.loaded()
    return checks + ([f"the daemon has {loaded}"] if loaded != ROLLOUT.loaded_after else [])


def _converged(node: FaultNode) -> Checks:
    """One more run, and all is as wanted."""
    _code, recovered = node.call("recover")
    _code, result = node.call("apply", node.plan(ROLLOUT.wanted_now(node.tree()), ROLLOUT.expect))
    checks = [] if result["state"] in ("applied", "unchanged") else [f"the next run: {result} (recovered: {recovered})"]
    return checks + _done(node)


def _says(result: dict[str, t.Any], state: str, *words: str) -> Checks:
    checks = [] if result["state"] == state else [f"it ended with {result['state']}: {result['msg']}"]
    checks += [f"{word!r} is not said: {result['msg']}" for word in words if word not in result["msg"]]
    return checks + (["the secret is said"] if SECRET in str(result) else [])


def rejected() -> Checks:
    with _node() as node:
        twice = ROLLOUT.wanted[CONFIG] + f'\n[{_OLD}.containerd.runtimes.other]\nruntime_type = "x"\n'
        plan = _with_root(node, twice)
        _code, proved = node.call("prove", plan)
        checks = [] if proved["dump"] and proved["dump"]["rc"] != 0 else [f"prove: {proved}"]
        _code, result = node.call("apply", plan)
        return checks + _says(result, "refused", "does not load the planned files", "nothing was changed") + _untouched(node) + _converged(node)


def refused_by_the_daemon() -> Checks:
    with _node() as node:
        plan = _with_root(node, ROLLOUT.wanted[CONFIG] + f'\n[{_OLD}.containerd]\ndefault_runtime_name = "nowhere"\n')
        _code, proved = node.call("prove", plan)
        checks = [] if proved["dump"]["rc"] == 0 else [f"prove: {proved}"]
        _code, result = node.call("apply", plan)
        words = ("without its CRI plugin", "The old configuration is back, and the daemon has what it had before")
        return checks + _says(result, "rolled_back", *words) + _untouched(node) + _converged(node)


def does_not_start() -> Checks:
    with _node() as node:
        # 2.x: `config dump` passes over a missing import and ends with 0, the daemon stops at it.
        plan = _with_root(node, ROLLOUT.wanted[CONFIG].replace("conf.d/*.toml", "not-there.toml"))
        _code, result = node.call("apply", plan, {"ready_timeout": 5})
        return _says(result, "rolled_back", "does not answer", "The old configuration is back") + _untouched(node) + _converged(node)


def lacks_a_handler() -> Checks:
    with _node() as node:
        # Both names in one file: the runtimes under the old one are lost without a word.
        text = '[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.mine]\nruntime_type = "io.containerd.runc.v2"\n'
        _code, result = node.call("apply", node.plan({CONFIG: ROLLOUT.wanted[CONFIG] + text}, ["mine"]))
        return _says(result, "rolled_back", "has not loaded other") + _untouched(node) + _converged(node)


def does_not_come_back() -> Checks:
    with _node() as node:
        node.host.write(BROKEN, "")
        _code, result = node.call("apply", _plan(node), {"ready_timeout": 4})
        checks = _says(result, "rollback_failed", "the service manager of this node is broken", "the way back failed too")
        checks += [] if len(result["reasons"]) == 2 else [f"reasons: {result['reasons']}"]
        checks += [] if node.tree() == ROLLOUT.before and node.journal() else ["the old tree is not back, or the journal is gone"]
        _code, again = node.call("recover", options={"ready_timeout": 4})
        checks += _says(again, "rollback_failed")
        node.host.path(BROKEN).unlink()
        _code, recovered = node.call("recover")
        return checks + _says(recovered, "rolled_back", "rolled back") + _untouched(node) + _converged(node)


def restart_that_restarts_nothing() -> Checks:
    with _node() as node:
        _code, result = node.call("apply", _plan(node, restart_command=["/bin/true"]), {"ready_timeout": 3})
        return _says(result, "rolled_back", "was not restarted") + _untouched(node) + _converged(node)


def changed_since_read() -> Checks:
    with _node() as node:
        plan = _plan(node)
        theirs = ROLLOUT.before[CONFIG] + "# another writer\n"
        node.host.write(CONFIG, theirs)
        _code, result = node.call("apply", plan)
        checks = _says(result, "refused", "was changed since it was read", "nothing was changed")
        return checks + ([] if node.tree() == {CONFIG: theirs} else ["another writer's file was touched"])


def changed_before_recovery() -> Checks:
    with _node() as node:
        # Ended right after the one step, when the journal is written again.
        place = system_calls.Place("openat", 2, "", "/var/lib/runtime-gate/transaction.json.new")
        node.call("apply_here", _plan(node), under=system_calls.inject(place, "signal=KILL"))
        theirs = ROLLOUT.after[CONFIG] + "# another writer\n"
        node.host.write(CONFIG, theirs)
        _code, recovered = node.call("recover")
        checks = _says(recovered, "unchanged", "changed by someone else")
        checks += [] if recovered["action"] == "given_up" else [f"action {recovered['action']}"]
        return checks + ([] if node.tree() == {**ROLLOUT.after, CONFIG: theirs} and not node.journal() else ["another writer's file was touched"])


def _hold_restart(node: FaultNode) -> None:
    """The restart waits until the test lets it go: however busy the machine is, the run is at work till then."""
    waiting = "#!/bin/sh\nwhile [ ! -e %s ]; do sleep 0.05; done\n" % _GO
    node.host.install_script(RESTART, node.host.path(RESTART).read_text().replace("#!/bin/sh\n", waiting, 1))


def two_at_once() -> Checks:
    with _node() as node:
        # The one that comes second is refused at once; the first one goes on to its end.
        _hold_restart(node)
        plan = _plan(node)
        first = subprocess.Popen(node.host._enter(node.command("apply", plan)), env={"PATH": PATH}, stdout=subprocess.DEVNULL)
        while node.journal() is None:
            time.sleep(0.01)
        _code, second = node.call("apply", plan, {"lock_timeout": 0})
        node.host.write(_GO, "")
        first.wait(timeout=60)
        return _says(second, "refused", "Another run is changing this node's container runtime") + _done(node)


def _cut(end: t.Callable[[int, int], None]) -> Checks:
    """The run's terminal is taken away while it is at work."""
    with _node() as node:
        _hold_restart(node)
        argv = node.host._enter(node.command("apply", _plan(node)))
        pid, terminal = pty.fork()
        if pid == 0:
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs this under nohup hands its deafness on
            os.execvpe(argv[0], argv, {"PATH": PATH})
        while node.journal() is None:
            time.sleep(0.01)
        checks = ["it ended before the connection was cut"] if node.last_result() else []
        end(pid, terminal)
        os.waitpid(pid, 0)
        checks += ["it had ended before the connection was cut"] if node.last_result() else []
        node.host.write(_GO, "")
        checks += [] if node.wait_for_end() else ["it did not go on by itself"]
        result = node.last_result() or {"state": "none", "msg": ""}
        return checks + _says(result, "applied") + _done(node)


def hung_up() -> Checks:
    return _cut(lambda pid, terminal: os.close(terminal))


def ended_foreground() -> Checks:
    def end(pid: int, terminal: int) -> None:
        os.killpg(pid, signal.SIGKILL)
        os.close(terminal)

    return _cut(end)


def _full(directory: str, size: str, then: t.Sequence[str] = ()) -> Checks:
    """`directory` is a file system of its own without room, or read-only."""
    with _node() as node:
        script = f"mkdir -p {directory} && cp -a {directory} /run/kept && mount -t tmpfs -o size={size} full {directory} && cp -a /run/kept/. {directory}/"
        setup = node.host.run(["sh", "-c", "; ".join([script, *then])])
        checks = [] if setup.returncode == 0 or "No space left" in setup.stderr else [setup.stderr]
        _code, result = node.call("apply", _plan(node))
        checks += _says(result, "refused")
        checks += [] if "othing was changed" in result["msg"] or "cannot be used" in result["msg"] else [result["msg"]]
        tree = {path: text for path, text in node.tree().items() if not path.endswith("/filler")}
        checks += [] if tree == ROLLOUT.before else [f"the tree is {sorted(tree)}"]
        checks += [] if node.loaded() == ROLLOUT.loaded_before else [f"the daemon has {node.loaded()}"]
        node.host.run(["sh", "-c", f"mount -o remount,rw,size=10m full {directory}; rm -f {directory}/filler"])
        return checks + _converged(node)


def full_configuration() -> Checks:
    return _full("/etc/containerd", "32k", ["cat /dev/zero >/etc/containerd/filler"])


def full_state() -> Checks:
    return _full("/var/lib/runtime-gate", "16k", ["cat /dev/zero >/var/lib/runtime-gate/filler"])


def read_only_configuration() -> Checks:
    return _full("/etc/containerd", "1m", ["mount -o remount,ro full /etc/containerd"])


def read_only_state() -> Checks:
    return _full("/var/lib/runtime-gate", "1m", ["mount -o remount,ro full /var/lib/runtime-gate"])


def second_file_beside_the_commit() -> Checks:
    with _node() as node:
        node.host.write("/etc/containerd/conf.d/10-theirs.toml", "version = 2\n")
        first = node.call("apply", _plan(node))[1]
        root = node.tree()[CONFIG].replace(SECRET, MASKED) + "# more\n"
        both = {CONFIG: root, "/etc/containerd/conf.d/10-theirs.toml": "version = 2\n# more\n"}
        before = node.tree()
        checks = _says(first, "applied") + _says(node.call("apply", node.plan(both, []))[1], "refused", "no single step")
        early = {CONFIG: root, "/etc/containerd/conf.d/20-new.toml": "version = 2\n"}
        checks += _says(node.call("apply", node.plan(early, []))[1], "refused", "reads it already")
        return checks + ([] if node.tree() == before else ["the tree was touched"])


def everything_is_on_disk() -> Checks:
    """Each step of a run relies on what came before it; strace tells that it was synced."""
    checks: Checks = []
    for change in CHANGES:
        node = FaultNode(change.line)
        try:
            node.reset(change.before)
            _places, result = system_calls.record(node, "apply_here", node.plan(change.wanted, change.expect, change.absent, change.removed), {})
            checks += _says(result, "applied") + [f"{change.name}: {what} was not synced" for what in system_calls.unsynced(node, CONFIG)]
        finally:
            node.close()
    return checks


_SYSTEMCTL = f"""#!/bin/sh
echo "$@" >>/run/systemctl.log
case "$1" in
show)
    echo Id=containerd.service
    echo LoadState=loaded
    echo "KillMode=$(cat /run/kill-mode)"
    ;;
restart) exec {RESTART} ;;
esac
"""


def service_manager() -> Checks:
    """A stand-in for systemctl, which says what systemd would say of the unit, and restarts."""
    with _node() as node:
        node.host.install_script("/usr/bin/systemctl", _SYSTEMCTL)
        node.host.path("/run/systemd/system").mkdir(parents=True)
        plan = _plan(node, restart_command=None, unit="containerd.service")
        checks: Checks = []
        for mode in ("control-group", "mixed"):
            node.host.write("/run/kill-mode", mode + "\n")
            for what in ("prove", "apply"):
                _code, result = node.call(what, plan)
                checks += _says({"state": "none", **result}, "refused", f"KillMode={mode}", "every running pod")
        checks += _untouched(node)
        node.host.write("/run/kill-mode", "process\n")
        checks += _says(node.call("apply", plan)[1], "applied")
        log = node.output("/run/systemctl.log").read_text()
        return checks + _done(node) + ([] if log.count("restart -- containerd.service") == 1 and "kill" not in log else [f"systemctl was told {log!r}"])


def attributes_and_links() -> Checks:
    """Mode, owner, extended attributes and links survive the change, and the way back."""
    real = "/etc/containerd/kept/root.toml"
    with _node() as node:
        node.reset({real: ROLLOUT.before[CONFIG]})
        node.host.run(["sh", "-c", f"ln -s kept/root.toml {CONFIG}; chmod 640 {real}; chown 12:34 {real}"])
        os.setxattr(node.output(real), "trusted.mark", b"label")
        node.power_cycle()

        def look() -> tuple[t.Any, ...]:
            facts = node.output(real).stat()
            return facts.st_mode, facts.st_uid, facts.st_gid, os.getxattr(node.output(real), "trusted.mark"), os.readlink(node.output(CONFIG))

        before = look()
        bad = node.plan({CONFIG: ROLLOUT.wanted[CONFIG] + f'\n[{_OLD}.containerd]\ndefault_runtime_name = "nowhere"\n'}, [])
        checks = _says(node.call("apply", bad)[1], "rolled_back")
        checks += [] if look() == before else [f"after the way back {look()}, not {before}"]
        checks += _says(node.call("apply", _plan(node))[1], "applied")
        checks += [] if look() == before else [f"after the change {look()}, not {before}"]
        return checks + ([] if node.output(real).read_text() == ROLLOUT.after[CONFIG] else ["the file behind the link is not the new one"])


def _sandbox_plan(node: FaultNode, name: str, **handler: t.Any) -> dict[str, t.Any]:
    return node.plan({CONFIG: sandboxes.ROOT + sandboxes.handler(name, **handler)}, [name])


@contextlib.contextmanager
def _sandbox_node() -> t.Iterator[FaultNode]:
    """With one sandbox that runs, as the kubelet would have made it: it must survive everything."""
    node = FaultNode(sandboxes.LINE)
    try:
        sandboxes.prepare(node)
        made = node.host.sandbox("runc", "bystander")
        assert made.get("sandbox"), made
        yield node
    finally:
        sandboxes.remove_all(node.host)
        node.close()


def sandbox_of_each_handler() -> Checks:
    with _sandbox_node() as node:
        others = sandboxes.sandboxes(node.host)
        _code, result = node.call("apply", _sandbox_plan(node, "mine", binary="/usr/sbin/runc"), {"probe": "sandbox"})
        checks = _says(result, "applied") + ([] if result["probe"] == {"mine": None} else [f"probe: {result['probe']}"])
        checks += [] if sandboxes.sandboxes(node.host) == others else ["a sandbox of the probe is left, or another one is gone"]
        made = node.host.sandbox("mine", "judge")
        return checks + ([] if made.get("sandbox") else [f"the judge gets no sandbox: {made}"])


def _unusable(word: str, **handler: t.Any) -> Checks:
    with _sandbox_node() as node:
        others = sandboxes.sandboxes(node.host)
        _code, result = node.call("apply", _sandbox_plan(node, "gone", **handler), {"probe": "sandbox"})
        checks = _says(result, "rolled_back", "no sandbox can be made of gone", word, "The old configuration is back")
        checks += [] if node.tree() == sandboxes.BEFORE and node.loaded() == (["runc"], "runc") else ["the old configuration is not back"]
        return checks + ([] if sandboxes.sandboxes(node.host) == others else ["a sandbox of the probe is left, or another one is gone"])


def sandbox_without_binary() -> Checks:
    return _unusable("fork/exec /usr/local/bin/gone: no such file or directory", binary="/usr/local/bin/gone")


def sandbox_without_shim() -> Checks:
    return _unusable("containerd-shim-gone-v1", runtime_type="io.containerd.gone.v1")


def sandbox_left_over() -> Checks:
    """The run is ended while it removes the sandbox of its probe; the next one finds it by its label."""
    with _sandbox_node() as node:
        others = sandboxes.sandboxes(node.host)
        plan = _sandbox_plan(node, "mine", binary=sandboxes.SLOW)
        first = subprocess.Popen(node.host._enter(node.command("apply_here", plan, {"probe": "sandbox"})), env={"PATH": PATH}, stdout=subprocess.DEVNULL)
        while not node.output(sandboxes.STOPPING).exists() and first.poll() is None:
            time.sleep(0.01)
        pid = node.output("/var/lib/runtime-gate/lock").read_text().split()[1].strip(",")
        node.host.run(["kill", "-KILL", pid])
        first.wait(timeout=30)
        left = sandboxes.sandboxes(node.host)
        checks = [] if len(left) == len(others) + 1 else ["no sandbox was left over, so nothing is tested"]
        _code, recovered = node.call("recover")
        checks += _says(recovered, "applied") + ([] if recovered["action"] == "finished" else [f"action {recovered['action']}"])
        checks += [] if "left-over" in str(recovered["notes"]) else [f"notes: {recovered['notes']}"]
        checks += [] if sandboxes.sandboxes(node.host) == others else ["the left-over sandbox is still there, or another one is gone"]
        return checks + ([] if node.loaded() == (["mine", "runc"], "runc") else [f"the daemon has {node.loaded()}"])


SITUATIONS: dict[str, t.Callable[[], Checks]] = {
    "the binary rejects the tree": rejected,
    "the proof is fine, the daemon refuses CRI": refused_by_the_daemon,
    "the proof is fine, the daemon does not start": does_not_start,
    "the daemon starts without a handler": lacks_a_handler,
    "the daemon does not come back at all": does_not_come_back,
    "the restart restarts nothing": restart_that_restarts_nothing,
    "a file changed since it was read": changed_since_read,
    "a file changed before the recovery": changed_before_recovery,
    "two runs at once": two_at_once,
    "the connection is cut (hang-up)": hung_up,
    "the connection is cut (the foreground is killed)": ended_foreground,
    "the configuration's disk is full": full_configuration,
    "the state's disk is full": full_state,
    "the configuration is read-only": read_only_configuration,
    "the state is read-only": read_only_state,
    "a plan that is no single step": second_file_beside_the_commit,
    "everything is on disk before the next step": everything_is_on_disk,
    "the service manager restarts, and a unit that would end the pods is refused": service_manager,
    "attributes and links": attributes_and_links,
    "a sandbox of each handler": sandbox_of_each_handler,
    "a sandbox whose binary is missing": sandbox_without_binary,
    "a sandbox whose shim is missing": sandbox_without_shim,
    "a sandbox left over by a killed run": sandbox_left_over,
}
