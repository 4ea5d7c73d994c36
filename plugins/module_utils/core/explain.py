# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a verdict is what it is, and what an operator can do about it: two sentences for each record."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.judged_node import JudgedNode, Runtime
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import Policy
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.runtime_class import JudgedClass
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.scheduling import extended_resource
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.suggest import nearest
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.verdict import (
    LACKING,
    State,
    excluding_taints,
    is_time_bomb,
)

_SEVERITY = {"error": 0, "warning": 1, "info": 2}
# Faults that by their number say why CRI is down, the most precise first (faults/start.py).
_CRI_DOWN = (27, 3, 26)
# How the message of a fault that stops the daemon begins, whatever its number (faults/start.py, crio/starts.py).
_STOPPED = ("containerd does not start", "CRI-O does not start")
# Names that people really use for handlers: none of them is a typing error of another one.
_ESTABLISHED = (
    "runc",
    "crun",
    "youki",
    "runsc",
    "gvisor",
    "kata",
    "nvidia",
    "nvidia-cdi",
    "nvidia-legacy",
    "nvidia-experimental",
    "spin",
    "slight",
    "wws",
    "lunatic",
    "wasmedge",
    "wasmtime",
    "wasmer",
    "sysbox-runc",
)


class Hints(t.NamedTuple):
    """What the other nodes teach about a class. meant: the handler of the targeted nodes that its name was probably
    meant to be, or None. broken: why that handler cannot run on any targeted node that has it, or None. label: (key,
    value) that the nodes with the handler share, or None."""

    meant: str | None = None
    broken: str | None = None
    label: tuple[str, str] | None = None


def explain(
    node: JudgedNode, judged: JudgedClass, policy: Policy, where: str, verdict: str, state: State, hints: Hints
) -> tuple[str, str | None, list[int]]:
    """(reason, fix or None, ids of the faults that name the handler)."""
    faults = faults_of(node.runtime, judged.handler)
    ids = list(dict.fromkeys(fault["id"] for fault in faults))
    if where == "not_targeted":
        return _not_targeted(node, judged), None, ids
    if where == "excluded_by_taint":
        return (*_excluded(node, judged, policy, state), ids)
    if where == "unknown":
        return (*_undecided(node, judged), ids)
    if verdict == "unknown":
        return (*_unknown(node, judged.handler, state), ids)
    if is_time_bomb(verdict, state):
        return (*_time_bomb(node, judged.handler, faults), ids)
    if verdict in LACKING:
        reason, fix = _lacking(node, judged, verdict, faults, hints)
        advised = verdict == "missing" and node.runtime.cri_ready is not False
        return reason, _with_scope(fix, judged, hints) if advised else fix, ids
    return _ok(node, judged.handler), None, ids


def faults_of(runtime: Runtime, handler: str) -> list[t.Mapping[str, t.Any]]:
    """The faults that explain the handler, worst first. Where CRI is down, first those that say why, for every handler:
    mending what is wrong with the handler alone would bring nothing back."""
    if not runtime.faults:
        return []
    down = outage(runtime)
    found = [fault for fault in runtime.faults if handler in (fault.get("handlers") or ()) and fault not in down]
    if runtime.cri_ready is False:
        found += [fault for fault in runtime.faults if _of_all(fault) and fault not in down]
    return down + sorted(found, key=lambda fault: _SEVERITY.get(str(fault.get("severity")), 3))


def _of_all(fault: t.Mapping[str, t.Any]) -> bool:
    return not fault.get("handlers") and fault.get("severity") == "error"


def outage(runtime: Runtime) -> list[t.Mapping[str, t.Any]]:
    """The faults that say why CRI is down or the daemon does not start, the most precise first; none where CRI answers."""
    if runtime.cri_ready is not False:
        return []
    errors = [fault for fault in runtime.faults if fault.get("severity") == "error"]
    stopped = [fault for fault in errors if str(fault.get("message")).startswith(_STOPPED)]
    down = [fault for number in _CRI_DOWN for fault in errors if fault.get("id") == number and fault not in stopped]
    return stopped + down


def outage_told(runtime: Runtime) -> tuple[str, str]:
    """(why CRI is down, what to do about it); the first may be empty."""
    faults = outage(runtime) or [fault for fault in runtime.faults if _of_all(fault)]
    engine = runtime.engine or "the container runtime"
    why = str(faults[0]["message"]) if faults else runtime.reason
    return why, _mended(faults, f"Find out why CRI is down (journal of {engine}), then restart {engine}.")


def typing_error(handler: str, known: t.Iterable[str]) -> str | None:
    """The handler that was probably meant, or None. Variants of a family (kata-qemu, kata-clh; nvidia, nvidia-cdi)
    and established names are no typing errors of each other."""
    if handler in _ESTABLISHED:
        return None
    return nearest(handler, [name for name in known if _same_family(handler, name)])


def _same_family(handler: str, name: str) -> bool:
    parts, others = handler.split("-"), name.split("-")
    if len(parts) != len(others):
        return handler.replace("-", "").lower() == name.replace("-", "").lower()
    return all(part == other or nearest(part, [other]) for part, other in zip(parts, others))


def scoping_line(judged: JudgedClass, hints: Hints) -> str:
    """The line of inventory that would scope an unscoped class."""
    key, value = hints.label or ("LABEL", "VALUE")
    return f'runtime_gate_policy: {{node_selector: {{{judged.name}: {{{key}: "{value}"}}}}}}'


def _ok(node: JudgedNode, handler: str) -> str:
    if node.runtime.evidence == "api":
        return f"the Node's status lists handler {handler}"
    if node.runtime.evidence == "declared":
        return f"the list given for {node.name} has handler {handler}"
    if node.runtime.cri_ready is None:
        return f"the configuration given loads handler {handler}"
    return f"{_engine(node)} has handler {handler} loaded"


def _lacking(
    node: JudgedNode, judged: JudgedClass, verdict: str, faults: list[t.Mapping[str, t.Any]], hints: Hints
) -> tuple[str, str]:
    handler, engine = judged.handler, _engine(node)
    if node.runtime.cri_ready is False:
        why, fix = outage_told(node.runtime)
        reason = f"{engine} on {node.name} does not serve CRI, so no handler is loaded, {handler} neither"
        return (f"{reason}. {why}" if why else reason), fix + _also(node.runtime, handler, faults)
    if verdict == "unusable":
        return _unusable(node, handler, faults)
    if verdict == "restart_required":
        reason = f"handler {handler} is not loaded, but the files on {node.name} have it and a restart would load it"
        return reason, f"Restart {engine} on {node.name} (a reload or SIGHUP does not load handlers)."
    if node.runtime.evidence == "api":
        has = "the Node's status lists"
    elif node.runtime.evidence == "declared":
        has = "the list given for it has"
    else:
        has = f"{engine} has" if node.runtime.cri_ready else "the configuration given loads"
    loaded = ", ".join(sorted(node.runtime.handlers)) or "none"
    reason = f"handler {handler} is not loaded on {node.name}: {has} {loaded}"
    return _told(reason, faults), _mended(faults, _never_declared(node, judged, hints))


def _also(runtime: Runtime, handler: str, faults: list[t.Mapping[str, t.Any]]) -> str:
    """What is wrong with the handler itself and would show once CRI is back."""
    down = outage(runtime)
    for fault in faults:
        own = handler in (fault.get("handlers") or ()) and fault not in down and fault.get("severity") in ("error", "warning")
        if down and own and fault.get("fix"):
            return f" Handler {handler} also needs this: {_ended(fault['fix'] + _place(fault))}"
    return ""


def _unusable(node: JudgedNode, handler: str, faults: list[t.Mapping[str, t.Any]]) -> tuple[str, str]:
    """The fault that repeats why the handler cannot run says it better than the facts of the handler, so it replaces
    them."""
    why = cannot_run(node.runtime.handlers[handler]) or ""
    install = f"Install what handler {handler} needs on {node.name}, or take the handler away."
    same = [fault for fault in faults if why in str(fault.get("message"))]
    if same:
        return str(same[0]["message"]), _mended(same + faults, install)
    return _told(f"handler {handler} is loaded, but unusable: {why}", faults), _mended(faults, install)


def _never_declared(node: JudgedNode, judged: JudgedClass, hints: Hints) -> str:
    if hints.meant and judged.name:
        return (
            f'Did you mean handler "{hints.meant}"? It is loaded where this class lands{_but_broken(node, hints)}. The handler'
            f" of a RuntimeClass cannot be changed: delete RuntimeClass {judged.name} and create it again with"
            f" handler: {hints.meant}."
        )
    if hints.meant:
        broken = _but_broken(node, hints)
        return f'Did you mean handler "{hints.meant}"{" (loaded" + broken + ")" if broken else ""}? Correct required_handlers in the policy.'
    return f"Configure handler {judged.handler} for {_engine(node)} on {node.name} and restart it."


def _but_broken(node: JudgedNode, hints: Hints) -> str:
    """ ', but unusable …' where the handler that was probably meant could not run either; on the node itself, else on
    all others."""
    here = node.runtime.handlers.get(str(hints.meant))
    if here is not None:
        return f", but unusable on {node.name}: {cannot_run(here)}" if cannot_run(here) else ""
    return f", but unusable there: {hints.broken}" if hints.broken else ""


def cannot_run(handler: t.Mapping[str, t.Any]) -> str | None:
    """Why a loaded handler cannot run, or None."""
    if handler.get("usable") is not False:
        return None
    return str(handler.get("reason") or "its shim or binary cannot run")


def _with_scope(fix: str, judged: JudgedClass, hints: Hints) -> str:
    """An unscoped class asks every node; say how to ask fewer. Where CRI is dead or the handler is there after all, that
    would not help."""
    if judged.scope is not None or judged.name is None:
        return fix
    return f"{fix} RuntimeClass {judged.name} has no scheduling, so it asks every node; to scope it: {scoping_line(judged, hints)}"


def _time_bomb(node: JudgedNode, handler: str, faults: list[t.Mapping[str, t.Any]]) -> tuple[str, str]:
    reason = f"handler {handler} is loaded now, but the next restart of {_engine(node)} on {node.name} would lose it"
    return _told(reason, faults), _mended(
        faults, f"Bring handler {handler} back into the files of {_engine(node)} before anything restarts it."
    )


def _not_targeted(node: JudgedNode, judged: JudgedClass) -> str:
    misses = [
        f"{key} is {node.labels[key]!r}, not {value!r}" if key in node.labels else f"label {key}={value} is absent"
        for key, value in judged.selector.items()
        if node.labels.get(key) != value
    ]
    return f"the node selector of the class does not match {node.name}: {'; '.join(misses)}"


def _excluded(node: JudgedNode, judged: JudgedClass, policy: Policy, state: State) -> tuple[str, str]:
    taints = excluding_taints(node, judged, policy)
    names = ", ".join(str(taint) for taint in taints)
    has = {True: "is loaded there", False: "is not loaded there", None: "may or may not be loaded there"}[state.loaded]
    reason = f"taint {names} keeps the pods of class {judged.name} off {node.name}; handler {judged.handler} {has}"
    line = ", ".join(f"{{key: {taint.key}, operator: Exists}}" for taint in taints)
    fix = f"If the pods bring a toleration of their own, say so: runtime_gate_policy: {{tolerations: [{line}]}}."
    extended = [taint.key for taint in taints if extended_resource(taint)]
    if extended:
        fix += f" Pods that request {extended[0]} get one where the API server runs ExtendedResourceToleration."
    return reason, fix


def _undecided(node: JudgedNode, judged: JudgedClass) -> tuple[str, str]:
    absent = ", ".join(f"{key}={value}" for key, value in judged.selector.items() if key not in node.labels)
    return (
        f"whether class {judged.name} lands on {node.name} is not known: it selects {absent},"
        " and the node's labels are not (all) known",
        "Judge the node after it has registered, or give its labels in runtime_gate_node_labels.",
    )


def _unknown(node: JudgedNode, handler: str, state: State) -> tuple[str, str]:
    runtime = node.runtime
    if handler in runtime.denied:
        reason = f"the Node's status lists handler {handler}, but the runtime on {node.name} refuses it to a pod that still fails"
        return reason, f"Run the gate on {node.name}, which asks the runtime itself; after a reload, CRI-O lists what only a restart brings."
    if runtime.why_unknown is not None:
        fix = "Run the gate on the node with become, so that it can ask the runtime itself."
        return f"nothing is known about the handlers of {node.name}: {runtime.why_unknown}", fix
    if runtime.cri_ready is None:
        after = {"loaded": "would load it", "missing": "would not load it"}[state.after_restart]
        reason = f"{_engine(node)} on {node.name} could not be asked; a restart {after}, which does not show what is loaded now"
        return reason, "Let the gate reach the CRI socket (become), or add `next` to accept_evidence of the policy."
    reason = f"the only evidence for {node.name} is {runtime.evidence}, which accept_evidence of the policy does not take"
    # What was just read on the node cannot get better by running the gate there.
    run = "" if runtime.evidence == "loaded" else "Run the gate on the node, or "
    return reason, f"{run}{'add' if run else 'Add'} `{runtime.evidence}` to accept_evidence of the policy."


def _told(reason: str, faults: list[t.Mapping[str, t.Any]]) -> str:
    return f"{reason}. {faults[0]['message']}" if faults else reason


def _mended(faults: list[t.Mapping[str, t.Any]], otherwise: str) -> str:
    """The fix of the worst fault that has one, with the place where it applies, else the general one."""
    for fault in faults:
        if fault.get("fix"):
            return _ended(f"{fault['fix']}{_place(fault)}")
    return otherwise


def _place(fault: t.Mapping[str, t.Any]) -> str:
    """ ' (FILE, table T, line N)', unless the sentence has the file already."""
    path = fault.get("file")
    if not path or path in fault["fix"]:
        return ""
    table = f", table {fault['table']}" if fault.get("table") else ""
    line = f", line {fault['line']}" if fault.get("line") else ""
    return f" ({path}{table}{line})"


def _ended(sentence: str) -> str:
    """With a full stop, so that another sentence can follow."""
    return sentence if sentence.endswith((".", ")", "!", "?")) else f"{sentence}."


def _engine(node: JudgedNode) -> str:
    return node.runtime.engine or "the container runtime"
