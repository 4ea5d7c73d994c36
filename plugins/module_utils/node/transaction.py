# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One change of a node's container runtime, from proof to proof: staged, applied in one step, restarted, proved, or taken back.

:func:`prove` changes nothing. :func:`apply` runs to its end by itself, in a process of its own: a cut connection does not stop it.
:func:`recover` finishes or undoes what was interrupted (a loss of power, a killed process) and comes first in the next run.

The order on disk, each step synced before the next: backup, journal, new files that the present root file does not read, the one
rename (or unlink) that switches, removal of what the new root file does not read, restart, proof, end of the journal. By the
journal and by what lies on disk it is known at any time which side of the one step the node is on.

Everything that is returned or raised is masked. Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import os
import time
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import (
    binaries,
    commands,
    cri,
    detached,
    discovery,
    grpc_unary,
    kubelet,
    probe,
    processes,
    proof,
    restart,
    staging,
    tree,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.files import decode, decode_configuration
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.secrets import Masker, Withheld
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.state import STATE_DIRECTORY, State

DEFAULTS: t.Dict[str, t.Any] = {
    "ready_timeout": 120.0,
    "restart": "auto",
    "probe": "none",
    "backups": 5,
    "timeout": 5.0,
    "lock_timeout": 5.0,
}
#: What a result's ``state`` can be.
UNCHANGED, APPLIED, REFUSED, ROLLED_BACK, ROLLBACK_FAILED = "unchanged", "applied", "refused", "rolled_back", "rollback_failed"

Plan = t.Mapping[str, t.Any]
Options = t.Mapping[str, t.Any]
Result = t.Dict[str, t.Any]


def prove(plan: Plan, options: Options) -> Result:
    """Load the planned files with the node's own binary, in a private mount namespace, and check what :func:`apply` would need.

    :param plan: ``writes``, ``commit``, ``config_path``, ``exe`` and the rest, as the controller made it. ``proof``: the files to
        load, where they are others than ``writes`` (a distribution renders its own from them).
    :param options: see :data:`DEFAULTS`, and ``endpoint``.
    :returns: ``dump`` (stdout, stderr, rc; masked; None: the binary is not there), ``binaries`` (executable that a handler of the
        planned files could need -> is it there), ``withheld`` (why the dump is withheld) and ``exe``.
    :raises RuntimeGateError: the plan cannot be carried out here; the sentence says why.
    """
    return _Run(plan, options).prove()


def apply(plan: Plan, options: Options) -> Result:
    """Carry out a plan to its end. The work goes on when this process ends.

    :returns: ``ok``, ``changed``, ``state`` (:data:`UNCHANGED`, :data:`APPLIED`, :data:`ROLLED_BACK` or
        :data:`ROLLBACK_FAILED`), ``msg``, ``reasons`` (of the failure, and of a failed way back), ``restarted``,
        ``restart_pending``, ``backup``, ``handlers`` and ``default`` (what the daemon now says), ``probe`` (handler -> None or the
        daemon's words), ``notes``, ``recovered`` (see :func:`recover`, None where nothing was interrupted).
    :raises RuntimeGateError: nothing was changed, or the process was ended and the next run will finish; the sentence says which.
    """
    return _heard(detached.run(lambda: apply_here(plan, options)))


def apply_here(plan: Plan, options: Options) -> Result:
    """As :func:`apply`, in this process: never raises; where nothing was changed, ``state`` is :data:`REFUSED`."""
    return _Run(plan, options).to_the_end(lambda run: run.apply())


def recover(options: Options) -> t.Optional[Result]:
    """Finish or undo an interrupted transaction, and remove left-over sandboxes of its probe.

    :param options: as for :func:`apply`; with ``check`` nothing is done, only said.
    :returns: None where nothing was interrupted; else as :func:`apply`, with ``ok`` (the node is on one proved side of the
        change, so that the run may go on) and ``action``: ``undone``, ``finished``,
        ``rolled_back``, ``given_up`` (somebody else changed the files since) or, with ``check``, ``pending``.
    :raises RuntimeGateError: another run is at work, or the journal cannot be read.
    """
    state = State(options.get("state_directory") or STATE_DIRECTORY)
    journal = state.journal()
    if journal is None:
        return None
    if options.get("check"):
        return {"ok": True, "changed": False, "action": "pending", "msg": _pending_words(journal)}
    return _heard(detached.run(lambda: recover_here(options)))


def recover_here(options: Options) -> Result:
    """As :func:`recover` without ``check``, in this process: never raises."""
    return _Run({}, options).to_the_end(lambda run: run.recover_only())


def probe_handlers(handlers: t.Sequence[str], options: Options) -> Result:
    """Make and remove a sandbox of each handler of a node that is as declared; no file is looked at.

    :param options: as for :func:`apply`.
    :returns: as :func:`apply`; ``state`` is :data:`UNCHANGED`, ``ok`` tells whether every handler gave a sandbox.
    :raises RuntimeGateError: another run is at work, or the process was ended from outside.
    """
    plan = {"expect": {"handlers": list(handlers)}}
    return _heard(detached.run(lambda: _Run(plan, options).to_the_end(lambda run: run.probe_only())))


def _pending_words(journal: t.Mapping[str, t.Any]) -> str:
    return "A change that was begun at %s has not ended; the next run that is no check finishes or undoes it." % journal["started"]


def _heard(answer: t.Optional[Result]) -> Result:
    """The result of the process of its own.

    :raises RuntimeGateError: it was ended from outside, or it refused.
    """
    if answer is None:
        raise RuntimeGateError(
            "The process that changes the runtime was ended from outside. Run again: the next run finishes or undoes the change."
        )
    if answer["state"] == REFUSED:
        raise RuntimeGateError(answer["msg"])
    return answer


class _Failed(Exception):
    """The change must be taken back. The message is the reason, not masked."""


class _Run:
    def __init__(self, plan: Plan, options: Options) -> None:
        self._plan = plan
        self._engine = str(plan.get("engine") or "containerd")
        self._options = dict(DEFAULTS, **{key: value for key, value in options.items() if value is not None})
        self._timeout = float(self._options["timeout"])
        self._state = State(self._options.get("state_directory") or STATE_DIRECTORY)
        self._masker = Masker()
        self._changes: t.List[tree.Change] = []
        self._staged: t.List[tree.Change] = []
        self._journal: t.Dict[str, t.Any] = {}
        self._notes: t.List[str] = []
        self._restarted = False
        self._probed: t.Dict[str, t.Optional[str]] = {}
        self._answer: t.Optional[proof.Answer] = None
        self._socket = ""

    # ---- before

    def prove(self) -> Result:
        self._read()
        if self._wants_restart():
            self._find_restart()
        exe = self._executable()
        answer: Result = {"exe": exe, "dump": None, "withheld": None, "binaries": self._binaries(exe)}
        if exe:
            output = self._staged_dump(exe)
            answer["dump"], answer["withheld"] = self._masked_dump(output)
        return answer

    def _read(self) -> None:
        """The changes, checked against the present files.

        :raises RuntimeGateError: they cannot be carried out.
        """
        self._socket = self._find_socket()
        writes = self._plan.get("writes") or []
        self._changes = tree.read_changes(writes, self._plan.get("commit"), self._masker)
        self._staged = tree.read_texts(self._plan["proof"], self._masker) if "proof" in self._plan else self._changes
        for change in [*self._changes, *self._staged]:
            # So that a secret is known, and masked, when a message quotes it.
            for data in (change.old, change.new):
                self._learn(data)
        tree.check_single_step(self._changes, self._read_names())
        for change in self._changes:
            if not proof.daemon_sees(change.real, self._socket, self._timeout):
                raise RuntimeGateError(
                    "The running daemon has a mount namespace of its own, in which %s is another file than here; nothing was "
                    "changed." % change.path
                )

    def _read_names(self) -> t.Union[tree.ReadPatterns, tree.ReadDirectory]:
        config = self._plan.get("config_path")
        return tree.ReadDirectory(config, self._plan["config_dir"]) if self._engine == "crio" else tree.ReadPatterns(config)

    def _learn(self, data: t.Optional[bytes]) -> None:
        try:
            self._masker.toml(decode_configuration(data or b"")[0])
        except Withheld:
            # A template: the masker knows from now on that its messages are in doubt.
            pass

    def _find_socket(self) -> str:
        given = self._options.get("endpoint") or self._plan.get("endpoint")
        path = kubelet.socket_path(given) if given else None
        if path:
            return path
        running = processes.node_processes()
        config = self._plan.get("config_path")
        kubelets = kubelet.find(running)
        chosen = discovery.choose(self._engine, discovery.runtimes(running), kubelets, None, config, self._timeout)
        return chosen.runtime.socket if chosen.runtime else discovery.DEFAULT_SOCKET[self._engine]

    def _wants_restart(self) -> bool:
        return bool(self._plan.get("restart_needed")) and self._options["restart"] != "never"

    def _find_restart(self) -> restart.Restart:
        """By the options of this run, else as the plan says: an interrupted one may have named a way that failed."""
        given = [self._options.get(key) or self._plan.get(key) for key in ("unit", "restart_command")]
        return restart.find(given[0], given[1], self._timeout, self._engine)

    def _executable(self) -> t.Optional[str]:
        exe = self._plan.get("exe")
        return exe if exe and os.access(exe, os.X_OK) else None

    def _staged_dump(self, exe: str) -> commands.Output:
        argv, variables = self._dump_command(), self._plan.get("environment")

        def ask() -> t.List[t.Any]:
            output = commands.run(argv, self._timeout * 4, executable=exe, variables=variables)
            return [output.stdout.decode("latin-1"), output.stderr.decode("latin-1"), output.rc, output.truncated]

        stdout, stderr, rc, truncated = staging.run_staged(self._staged, ask)
        return commands.Output(stdout.encode("latin-1"), stderr.encode("latin-1"), rc, truncated)

    def _dump_command(self) -> t.List[str]:
        """What makes the binary print the configuration. The root file is named only where it is not the default: a file that is
        named must be there."""
        config, crio = self._plan.get("config_path"), self._engine == "crio"
        named = [] if config is None or config == discovery.DEFAULT_CONFIG[self._engine] else ["--config" if crio else "-c", config]
        if crio:
            directory = ["--config-dir", self._plan["config_dir"]]
            return ["crio", *named, *directory, *(self._plan.get("dump_options") or []), "config"]
        return ["containerd", *(named if config else []), "config", "dump"]

    def _masked_dump(self, output: commands.Output) -> t.Tuple[t.Optional[Result], t.Optional[str]]:
        """(dump, None), or (None, why it is withheld)."""
        stdout, reason = decode(output.stdout)
        if output.truncated:
            reason = "the dump is longer than %d bytes" % commands.MAX_OUTPUT
        try:
            masked = self._masker.toml(stdout or "")
        except Withheld as error:
            masked, reason = "", str(error)
        if reason:
            return None, reason
        return {"stdout": masked, "stderr": self._words(output.stderr), "rc": output.rc}, None

    def _words(self, data: bytes) -> str:
        return self._masker.text(data.decode("utf-8", "replace"))

    def _binaries(self, exe: t.Optional[str]) -> t.Dict[str, bool]:
        texts = [decode_configuration(change.new)[0] for change in self._staged if change.new is not None]
        running = [one for one in processes.node_processes() if one.pid == discovery.owner(self._socket, self._timeout)]
        process = running[0] if running else None
        path = process.environment().get("PATH") if process else os.environ.get("PATH")
        return binaries.look_up(binaries.wanted(texts), path, exe, process.cwd if process else None, "")

    # ---- the process of its own

    def to_the_end(self, work: t.Callable[[_Run], t.Optional[Result]]) -> Result:
        """``work`` under the lock; its result is kept on the node, whatever happens. Never raises."""
        try:
            self._state.lock(float(self._options["lock_timeout"]))
        except (RuntimeGateError, OSError) as error:
            return self._refused(str(error))
        try:
            result = work(self) or self._result(UNCHANGED, False, "Nothing was interrupted.")
        except RuntimeGateError as error:
            result = self._refused(str(error))
        except Exception as error:  # pylint: disable=broad-except
            # The journal tells the next run what to do.
            result = self._refused("%s: %s; run again: the next run finishes or undoes the change" % (type(error).__name__, error))
        result["ended"] = _now()
        try:
            self._state.write_result(result)
        except OSError:
            # A full disk: who waits for the result still gets it.
            pass
        finally:
            self._state.unlock()
        return result

    def _refused(self, reason: str) -> Result:
        return self._result(REFUSED, False, self._masker.text(reason))

    def _result(self, state: str, changed: bool, msg: str, reasons: t.Sequence[str] = ()) -> Result:
        answer = self._answer
        return {
            "ok": state in (UNCHANGED, APPLIED),
            "changed": changed,
            "state": state,
            "msg": msg,
            "reasons": [self._masker.text(reason) for reason in reasons],
            "restarted": self._restarted,
            "restart_pending": bool(self._plan.get("restart_needed")) and not self._restarted and state in (APPLIED, UNCHANGED),
            "backup": self._journal.get("backup"),
            "handlers": answer.handlers if answer else None,
            "default": answer.default if answer else None,
            "probe": {name: None if reason is None else self._masker.text(reason) for name, reason in self._probed.items()},
            "notes": [self._masker.text(note) for note in self._notes],
            "recovered": None,
        }

    # ---- apply

    def apply(self) -> Result:
        recovered = self._recover_here()
        result = self._apply()
        result["recovered"] = recovered
        result["changed"] = result["changed"] or bool(recovered and recovered["changed"])
        return result

    def _recover_here(self) -> t.Optional[Result]:
        journal = self._state.journal()
        if journal is None:
            return None
        other = _Run(journal["plan"], self._options)
        other._state = self._state  # pylint: disable=protected-access
        return other.recover_only()

    def _apply(self) -> Result:
        self._read()
        way = self._find_restart() if self._wants_restart() else None
        if not self._changes and way is None:
            return self._result(UNCHANGED, False, "Everything is as planned.")
        self._refuse_a_tree_that_does_not_load()
        before = proof.look(self._socket, self._timeout)
        self._begin(before)
        try:
            tree.prepare(self._changes)
            tree.commit(self._changes)
        except (OSError, RuntimeGateError) as error:
            return self._refuse_after_undo(error)
        return self._after_commit(way)

    def _refuse_a_tree_that_does_not_load(self) -> None:
        exe = self._executable()
        if not exe or not self._staged:
            return
        output = self._staged_dump(exe)
        if output.rc != 0:
            raise RuntimeGateError(
                "%s does not load the planned files (%s); nothing was changed." % (exe, self._words(output.stderr).strip()[-1000:])
            )

    def _begin(self, before: proof.Answer) -> None:
        """Backup, then journal.

        :raises RuntimeGateError: they cannot be written; nothing was changed.
        """
        now = time.time()
        name = "%s.%06dZ" % (time.strftime("%Y%m%dT%H%M%S", time.gmtime(now)), now % 1 * 1000000)
        try:
            backup = None
            if self._changes:
                olds = {change.path: (change.old, change.facts) for change in self._changes if change.old is not None}
                backup = self._state.write_backup(name, t.cast(t.Any, olds))
            before_written = self._state.written_handlers()
            if "written" in self._plan:
                # Ended anywhere from here on, whatever of ours lies on disk is known as ours.
                self._state.write_handlers({*(before_written or ()), *self._plan["written"]})
            self._journal = {
                "format": 1,
                "id": name,
                "started": _now(),
                "phase": "begun",
                "plan": self._plan_of_journal(),
                "records": [change.record() for change in self._changes],
                "backup": backup,
                "before": before.summary(),
                "written": before_written,
                "restart": self._wants_restart(),
            }
            self._state.write_journal(self._journal)
        except OSError as error:
            self._end()
            raise RuntimeGateError(
                "%s cannot be written (%s); nothing was changed." % (self._state.directory, error.strerror)
            ) from None

    def _plan_of_journal(self) -> t.Dict[str, t.Any]:
        """What the next run needs of the plan; its texts lie in the drafts and the backup."""
        kept = "commit config_path exe expect keep absent unit restart_command restart_needed endpoint".split()
        kept += "engine config_dir dump_options environment written".split()
        plan = {key: self._plan[key] for key in kept if key in self._plan}
        return dict(plan, endpoint="unix://" + self._socket)

    def _refuse_after_undo(self, error: Exception) -> Result:
        self._undo()
        self._end()
        reason = str(error) if isinstance(error, RuntimeGateError) else _os_words(error)
        raise RuntimeGateError("The files cannot be written: %s Nothing was changed." % (reason.rstrip(".") + "."))

    def _undo(self) -> None:
        self._notes += tree.undo(self._journal["records"], self._journal["backup"])
        self._remember(self._journal.get("written"))

    def _remember(self, names: t.Optional[t.Iterable[str]]) -> None:
        """Note the handlers of ours; None: nothing is known of them."""
        if names is None:
            return
        try:
            self._state.write_handlers(names)
        except OSError as error:
            self._notes.append("the names of our handlers could not be noted: %s" % _os_words(error))

    def _end(self) -> None:
        self._state.end_journal()
        self._state.prune_backups(int(self._options["backups"]))

    def _enter(self, phase: str) -> None:
        """Note the phase. Where the disk is full the next run still knows enough from the files themselves."""
        self._journal["phase"] = phase
        try:
            self._state.write_journal(self._journal)
        except OSError as error:
            self._notes.append("the journal could not be written: %s" % _os_words(error))

    def _after_commit(self, way: t.Optional[restart.Restart]) -> Result:
        """From the one step to the end; also where an earlier run was interrupted there."""
        try:
            if self._journal["phase"] == "begun":
                self._enter("committed")
            tree.remove_obsolete(self._journal["records"])
            if way is not None:
                self._restart_and_prove(way)
        except (_Failed, OSError) as error:
            return self._roll_back(way, str(error) if isinstance(error, _Failed) else _os_words(error))
        tree.clean_up(self._journal["records"])
        self._account_for_directories()
        self._remember(self._plan.get("written"))
        self._end()
        changed = bool(self._journal["records"]) or self._restarted
        return self._result(APPLIED, changed, "The change is applied%s." % (" and proved" if way is not None else ""))

    def _account_for_directories(self) -> None:
        """Remember the directories that this change made, and remove those that it has emptied."""
        records = self._journal["records"]
        before = self._state.made_directories()
        made = before.union(*(record["made"] for record in records))
        emptied = tree.emptied(records, made)
        tree.remove_empty(emptied)
        if made - emptied == before:
            return
        try:
            self._state.write_made_directories(made - emptied)
        except OSError as error:
            self._notes.append("an empty directory will stay when the handlers are removed: %s" % _os_words(error))

    def _restart_and_prove(self, way: restart.Restart) -> None:
        """:raises _Failed: the daemon does not come back, or not with what it must have."""
        before = self._journal["before"]
        deadline = time.monotonic() + float(self._options["ready_timeout"])
        if not self._was_restarted():
            self._restart(way, deadline)
        wanted = proof.demand(self._plan, before)
        reason, self._answer = proof.wait(self._socket, wanted, before["identity"], deadline, self._timeout)
        if reason:
            raise _Failed("after the restart %s" % reason)
        if self._options["probe"] == "sandbox":
            self._probe(self._answer)

    def _was_restarted(self) -> bool:
        """Of a transaction that is taken up again: whether another process than before answers already.

        It has read the new files when it was started by the interrupted restart, or when the node itself was.
        """
        now = proof.look(self._socket, self._timeout).identity
        before = self._journal["before"]["identity"]
        if now is None or now == before:
            return False
        return self._journal["phase"] == "restarting" or bool(before and now.split("/")[0] != before.split("/")[0])

    def _restart(self, way: restart.Restart, deadline: float) -> None:
        self._enter("restarting")
        failure = restart.run(way, max(deadline - time.monotonic(), 1.0))
        self._restarted = failure is None
        if failure:
            raise _Failed(failure)

    def _probe(self, answer: proof.Answer) -> None:
        """:raises _Failed: a handler gives no sandbox; the daemon's words tell why."""
        handlers = (self._plan.get("expect") or {}).get("handlers") or []
        self._probed = probe.probe(self._socket, answer, handlers)
        failed = ["%s: %s" % (name, reason) for name, reason in self._probed.items() if reason is not None]
        if failed:
            self._remove_probes()
            raise _Failed("no sandbox can be made of %s" % "; ".join(failed))

    def probe_only(self) -> Result:
        """Under the lock: the proof by sandboxes alone."""
        self._socket = self._find_socket()
        self._remove_probes()
        self._answer = proof.look(self._socket, self._timeout)
        try:
            self._probe(self._answer)
        except _Failed as error:
            failure = self._result(UNCHANGED, False, self._masker.text("This run changed nothing, and %s." % error), [str(error)])
            return dict(failure, ok=False)
        return self._result(UNCHANGED, False, "Every declared handler gives a sandbox.")

    # ---- the way back

    def _roll_back(self, way: t.Optional[restart.Restart], reason: str) -> Result:
        """The old tree, a restart where the daemon may have read the new one, and the proof of what was there before."""
        if not self._journal["records"]:
            self._end()
            msg = "The restart failed: %s. This run changed no file, so there is none to put back." % reason
            return self._result(ROLLBACK_FAILED, True, self._masker.text(msg), [reason])
        was_restarted = self._journal["phase"] in ("restarting", "undoing_restarted")
        self._journal["reason"] = self._masker.text(reason)
        self._enter("undoing_restarted" if was_restarted else "undoing")
        try:
            self._undo()
            back = self._prove_old(way) if was_restarted else None
        except (OSError, ValueError, KeyError) as error:
            back = "the old files cannot be put back: %s" % _os_words(error)
        if back:
            # The journal stays: the next run tries again.
            msg = "The change failed (%s), and the way back failed too: %s." % (reason, back)
            return self._result(ROLLBACK_FAILED, True, self._masker.text(msg), [reason, back])
        self._end()
        proved = ", and the daemon has what it had before" if self._answer and was_restarted else ""
        msg = "The change failed: %s. The old configuration is back%s." % (reason, proved)
        return self._result(ROLLED_BACK, False, self._masker.text(msg), [reason])

    def _prove_old(self, way: t.Optional[restart.Restart]) -> t.Optional[str]:
        """None, or why the daemon is not what it was before."""
        if way is None:
            return "the daemon must be restarted, and this run may not do it"
        before = self._journal["before"]
        failed = proof.look(self._socket, self._timeout).identity
        deadline = time.monotonic() + float(self._options["ready_timeout"])
        failure = None
        if failed and failed == before["identity"]:
            # The failed restart did not even end the old daemon: it is still the one that has what it had.
            failed = None
        else:
            restart.forgive(way, self._timeout)
            failure = restart.run(way, float(self._options["ready_timeout"]))
            self._restarted = self._restarted or failure is None
        if before["state"] != "served":
            self._answer = None
            self._notes.append("the daemon did not serve CRI before the change, so what it has now is not proved")
            return failure
        reason, self._answer = proof.wait(self._socket, proof.demand_again(before), failed, deadline, self._timeout)
        return "%s; %s" % (failure, reason) if reason and failure else reason

    # ---- recovery

    def recover_only(self) -> t.Optional[Result]:
        """Under the lock: take up what the journal tells, or None where it tells nothing."""
        journal = self._state.journal()
        if journal is None:
            return None
        self._journal = journal
        self._plan = journal["plan"]
        self._engine = str(self._plan.get("engine") or "containerd")
        self._socket = self._find_socket()
        for record in journal["records"]:
            self._learn_file(record["real"])
        self._remove_probes()
        action, result = self._take_up(journal)
        result["action"] = action
        # What counts here is the node: with the old configuration proved again it is as sound as with the new one.
        result["ok"] = result["state"] != ROLLBACK_FAILED
        result["msg"] = "An interrupted change of %s was %s. %s" % (journal["started"], action.replace("_", " "), result["msg"])
        return result

    def _learn_file(self, path: str) -> None:
        try:
            with open(path, "rb") as file:
                self._learn(file.read())
        except OSError:
            # It is not there, so no message can quote it.
            pass

    def _take_up(self, journal: t.Mapping[str, t.Any]) -> t.Tuple[str, Result]:
        records = journal["records"]
        way = self._find_restart() if journal["restart"] and self._options["restart"] != "never" else None
        if journal["phase"] in ("undoing", "undoing_restarted"):
            return "rolled_back", self._roll_back(way, journal.get("reason") or "it had failed before it was interrupted")
        committed = tree.is_committed(records)
        if committed is None:
            tree.clean_up(records)
            self._end()
            note = "Its files were changed by someone else since, and were left alone."
            return "given_up", self._result(UNCHANGED, False, note)
        if not committed:
            self._undo()
            self._end()
            return "undone", self._result(UNCHANGED, False, "The old configuration had not been replaced yet.")
        result = self._after_commit(way)
        return ("finished" if result["ok"] else "rolled_back"), result

    def _remove_probes(self) -> None:
        answer = proof.look(self._socket, self._timeout)
        if answer.state != "served":
            return
        try:
            number = probe.remove_leftovers(self._socket, answer.api_version)
        except (grpc_unary.GrpcStatus, grpc_unary.NoAnswer, cri.NotProtobuf) as error:
            self._notes.append("left-over sandboxes could not be looked for: %s" % error)
            return
        if number:
            self._notes.append("%d left-over sandboxes of an interrupted probe were removed" % number)


def _os_words(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return "%s%s" % (error.filename + ": " if isinstance(error.filename, str) else "", error.strerror.lower())
    return "%s: %s" % (type(error).__name__, error)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
