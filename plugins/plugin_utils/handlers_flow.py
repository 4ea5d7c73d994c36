# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way of one change through a node: collect, plan, prove, apply. Without Ansible: the caller brings the node's ear.

A node that is as declared is called once; in check mode, and where something changes, the proof is a second call; the
change itself, with its proof and its way back, is one more. A node that is as declared is called again only for the
sandboxes that ``probe: sandbox`` asks for.
"""

from __future__ import annotations

import shlex
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.restart import NO_RELOAD
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import engines, proof_judgement
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import desired as declaration

Table = t.Dict[str, t.Any]
#: Asks the node for one step (handlers_steps.run) and gives its answer; raises what the caller raises for a failed node.
Call = t.Callable[[Table], Table]

_COLLECT = ("config_path", "config_dir", "containerd", "crio", "endpoint", "crictl", "timeout")
#: What of a plan is for people or for the judgement here, and does not travel.
_KEPT_HERE = ("changes", "notes", "conflicts", "kubespray", "machine_config", "section")
_TRANSACTION = ("ready_timeout", "restart", "probe", "backups", "timeout", "endpoint", "unit", "restart_command")
#: Units whose restart also restarts the control plane that runs in the same process.
_SERVERS = {"k3s": "server", "rke2": "server", "k0s": "controller"}
_COMMANDS = ("server", "controller", "agent", "worker")


class Refused(RuntimeGateError):
    """The change is not made. The node is as it was.

    :ivar details: what is known of the change all the same, for the result.
    """

    def __init__(self, message: str, details: Table) -> None:
        super().__init__(message)
        self.details = details


class Guard(t.Protocol):
    """What is to happen in the cluster before the runtime is restarted; node_guard.NodeGuard."""

    def know(self, identity: t.Mapping[str, t.Any]) -> None:
        """How the host can be told among the Nodes."""

    def before_restart(self) -> Table:
        """Called when everything is proved and a restart is going to happen (check: would). Returns keys for the result.

        :raises RuntimeGateError: the runtime must not be restarted.
        """


def change(call: Call, options: t.Mapping[str, t.Any], check: bool, alone: bool, guard: t.Optional[Guard] = None) -> Table:
    """Bring a node to the declaration, or (``check``) say what that would do.

    :param options: those of module ``runtime_handlers``.
    :param alone: no other host of the play is changed at the same time.
    :param guard: asked before a restart; None: nobody is.
    :returns: the module's result. ``failed`` is set where the node was changed and changed back.
    :raises RuntimeGateError: nothing was changed; where it is :class:`Refused`, it tells more.
    """
    return _Flow(call, options, check, alone, guard).run()


class _Flow:
    def __init__(self, call: Call, options: t.Mapping[str, t.Any], check: bool, alone: bool, guard: t.Optional[Guard]) -> None:
        self._call = call
        self._guard = guard
        self._options = dict(options, restart_command=restart_words(options.get("restart_command")))
        self._check = check
        self._alone = alone
        self._notes: t.List[str] = []
        self._transaction: Table = {key: self._options.get(key) for key in _TRANSACTION if self._options.get(key) is not None}
        self._capture: Table = {}
        self._facts: Table = {}
        self._plan: Table = {}
        self._engine = engines.ENGINES["containerd"]

    def run(self) -> Table:
        # A wrong declaration needs no node.
        executables = {} if self._options.get("remove") else engines.executables(self._options)
        if self._options.get("restart") == "reload":
            raise RuntimeGateError("runtime_gate_restart: " + NO_RELOAD % "reload" + " (auto), or leave that to yourself (never).")
        recovered = self._collect(executables)
        self._engine = engines.ENGINES[self._capture["node"]["engine"]]
        self._facts = self._engine.interpret(self._capture)
        self._refuse_unclear_node()
        if self._guard:
            self._guard.know(self._facts.get("identity") or {})
        self._plan = self._engine.make_plan(self._capture, self._facts, self._options)
        if self._plan.get("endpoint"):
            self._transaction.setdefault("endpoint", self._plan["endpoint"])
        self._notes += list(self._plan.get("notes") or []) + list(self._plan.get("conflicts") or [])
        result = self._result()
        result["changed"] = bool(recovered and recovered["changed"])
        if not self._something_to_do():
            return self._probed(result)
        self._refuse_what_needs_consent()
        self._prove(result)
        if self._guard and self._will_restart():
            result.update(self._guard.before_restart())
        result["changed"] = True
        return result if self._check else self._apply(result)

    # ---- before

    def _collect(self, executables: t.Mapping[str, t.List[str]]) -> t.Optional[Table]:
        collect = {key: self._options.get(key) for key in _COLLECT if self._options.get(key) is not None}
        options = dict(self._transaction, check=self._check)
        engine = self._options.get("engine") or "auto"
        collect["engine"] = "any" if engine == "auto" else engine
        request = {"step": "collect", "collect": collect, **executables}
        answer = self._call(dict(request, options=options))
        self._capture = answer["capture"]
        recovered = answer["recovered"]
        if recovered:
            self._notes.append(recovered["msg"])
            if not recovered["ok"]:
                raise RuntimeGateError(recovered["msg"])
        return recovered

    def _refuse_unclear_node(self) -> None:
        node = self._capture["node"]
        if node.get("needs_become"):
            raise RuntimeGateError("The runtime's files and socket belong to root: set runtime_gate_become: true.")
        if node.get("undecided"):
            raise RuntimeGateError(
                "It cannot be told which runtime serves the kubelet (%s); name it by runtime_gate_endpoint or runtime_gate_config_path."
                % ", ".join(map(str, node["undecided"]))
            )

    def _will_restart(self) -> bool:
        return bool(self._plan["restart_needed"]) and self._options.get("restart") != "never"

    def _something_to_do(self) -> bool:
        return bool(self._plan["writes"]) or self._will_restart()

    def _refuse_what_needs_consent(self) -> None:
        plan = self._plan
        if plan.get("needs_blast_radius"):
            raise Refused("Refused: %s" % plan["blast_radius"], self._details())
        role = control_plane(self._capture["node"])
        if self._will_restart() and role and not self._alone and not self._options.get("restart_control_plane"):
            raise Refused(
                "Refused: a restart of %s restarts the control plane of this node with it, and other hosts of this play are "
                "changed at the same time. Use serial: 1 (runtime_gate_serial, with -e), or set runtime_gate_restart_control_plane: true." % role,
                self._details(),
            )

    def _details(self) -> Table:
        return {"loaded_diff": self._plan["changes"]["loaded"], "notes": self._notes}

    # ---- the proof

    def _prove(self, result: Table) -> None:
        answer = self._call({"step": "prove", "plan": self._node_plan(), "options": self._transaction})
        wanted = self._wanted()
        reasons, notes = self._engine.judge(self._plan, wanted, self._capture.get("dump"), answer)
        self._notes += notes
        result["notes"] = self._notes
        result["reasons"] = list(dict.fromkeys(reasons))
        if result["reasons"]:
            details = dict(self._details(), reasons=result["reasons"])
            raise Refused("The proof failed, nothing was changed: %s." % "; ".join(result["reasons"]), details)

    def _node_plan(self) -> Table:
        return {key: value for key, value in self._plan.items() if key not in _KEPT_HERE}

    def _wanted(self) -> proof_judgement.Wanted:
        plan = self._plan
        removing = bool(self._options.get("remove"))
        return proof_judgement.Wanted(
            tables=plan["expect"]["tables"],
            keep=plan["keep"],
            absent=plan["absent"],
            default=plan["expect"]["default"],
            present_default=None if removing else self._facts["layers"]["loaded"]["default_handler"],
            cdi=removing or declaration.parse(self._options).wants_cdi,
            may_change_more=removing or bool(self._options.get("repair")),
        )

    # ---- the change

    def _apply(self, result: Table) -> Table:
        answer = self._call({"step": "apply", "plan": self._node_plan(), "options": self._transaction})
        self._notes += answer["notes"]
        recovered = answer.get("recovered")
        self._notes += [recovered["msg"]] if recovered else []
        result.update(
            changed=answer["changed"],
            restarted=answer["restarted"],
            restart_pending=answer["restart_pending"],
            rolled_back=answer["state"] == "rolled_back",
            proved=answer["handlers"] is not None,
            backup=answer["backup"],
            probe=answer["probe"],
            reasons=answer["reasons"],
            notes=self._notes,
        )
        if answer["handlers"] is not None:
            result["handlers"], result["default_handler"] = answer["handlers"], answer["default"]
        if not answer["ok"]:
            result.update(failed=True, msg=answer["msg"])
        return result

    def _probed(self, result: Table) -> Table:
        """The proof by sandboxes, on request, of a node that is as declared. Check mode makes none."""
        handlers = self._plan["expect"]["handlers"]
        if self._options.get("probe") != "sandbox" or self._check or not handlers or self._plan["restart_needed"]:
            return result
        answer = self._call({"step": "probe", "handlers": handlers, "options": self._transaction})
        self._notes += answer["notes"]
        result.update(probe=answer["probe"], reasons=answer["reasons"], notes=self._notes)
        if not answer["ok"]:
            result.update(failed=True, msg=answer["msg"])
        return result

    # ---- the result

    def _result(self) -> Table:
        """What holds before the change, and what the change is."""
        facts, plan = self._facts, self._plan
        loaded = facts["layers"]["loaded"]
        coming = plan["section"].served_handlers
        result: Table = {
            "restarted": False,
            "restart_pending": bool(plan["restart_needed"]),
            "rolled_back": False,
            "proved": False,
            "cordoned": False,
            "evicted": [],
            "handlers": sorted(loaded["handlers"]),
            "default_handler": loaded["default_handler"],
            "pending_handlers": [],
            "loaded_diff": plan["changes"]["loaded"],
            "loaded_change": plan["changes"]["summary"],
            "notes": self._notes,
            "reasons": [],
            "backup": None,
            "probe": {},
            "diff": [one for one in plan["changes"]["diff"] if one["before"] != one["after"]],
        }
        if self._check:
            # One that is loaded now and lost at the next restart is not safe yet either.
            safe = set(loaded["handlers"]) - set(facts.get("restart_loses") or [])
            result["pending_handlers"] = sorted(set(coming) - safe)
        for key in ("kubespray", "machine_config"):
            if plan.get(key):
                result[key] = plan[key]
        return result


#: What only a shell understands, as words of their own.
_SHELL = frozenset("&& || ; | & > >> < <<".split())


def restart_words(command: t.Any) -> t.Optional[t.List[str]]:
    """The words of ``restart_command``; None: there is none. A string is split as a shell splits it.

    :raises RuntimeGateError: it is neither a list of words nor a string, or it needs a shell.
    """
    if isinstance(command, str):
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise RuntimeGateError("runtime_gate_restart_command: %r cannot be split into words: %s" % (command, error)) from error
        if _SHELL.intersection(words) or any(word.endswith(";") for word in words):
            raise RuntimeGateError(
                "runtime_gate_restart_command: %r needs a shell, and none runs it; give the path of a script, or [sh, -c, COMMAND]" % command
            )
        return words or None
    if not command:
        return None
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        raise RuntimeGateError("runtime_gate_restart_command must be a list of words, or a string, not %r" % (command,))
    return command


def control_plane(node: t.Mapping[str, t.Any]) -> t.Optional[str]:
    """The unit whose restart restarts a control plane too; None: there is none in it.

    k3s, rke2 and k0s run containerd as a child of the one process that is also the API server.
    """
    word = _SERVERS.get(str(node.get("distribution")))
    unit = node.get("unit") or {}
    if word is None:
        return None
    command = str(unit.get("exec_start") or "")
    try:
        argv = shlex.split(command)
    except ValueError:
        argv = command.split()
    command_word = next((one for one in argv[1:] if one in _COMMANDS), None)
    if command_word is not None:
        return str(unit.get("name")) if command_word == word else None
    # Without such a command the name tells: only agents and workers are known to be none.
    name = str(unit.get("name") or "")
    return None if "agent" in name or "worker" in name else name or str(node["distribution"])


__all__ = ("Refused", "change", "control_plane", "restart_words")
