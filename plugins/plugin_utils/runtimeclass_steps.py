# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RuntimeClass objects brought to what is declared: each step is tried by the server first, then all are done, or none.

An object is ours where we own its handler in managedFields. Others are never written to: such an object is as declared, or it is
a problem that names who owns what. The handler of a RuntimeClass is immutable
(https://kubernetes.io/docs/reference/kubernetes-api/cluster-resources/runtime-class-v1/), so another one takes delete and create.
"""

from __future__ import annotations

import typing as t

import yaml

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.declared_classes import (
    Declared,
    is_ours,
    others,
    our_fields,
    said_by,
    some,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.handler_policy import refused_by_us
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_reader import CLASSES
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_writer import Refused, Writer

Object = t.Dict[str, t.Any]

PODS = "/api/v1/pods"
_OVER = ("Succeeded", "Failed")

#: What is done in a phase of a rollout. Everything is tried in each of them, so that a refusal comes before a node is touched.
PHASES = {"all": ("delete", "apply"), "before_nodes": ("delete",), "after_nodes": ("apply",), "remove": ("delete",)}


class Step(t.NamedTuple):
    """What one object needs.

    :ivar kind: delete or apply, by what is declared.
    :ivar word: what becomes of it: created, updated, replaced, deleted, unchanged, foreign (not ours, and left alone).
    :ivar live: the object now, None where there is none. :ivar after: what it would be, None: gone.
    :ivar wanted: the object to apply. :ivar problem: why this cannot be done. :ivar notes: what is worth knowing.
    """

    name: str
    kind: str
    word: str
    live: t.Optional[Object]
    after: t.Optional[Object]
    wanted: t.Optional[Object] = None
    problem: t.Optional[str] = None
    notes: t.Tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        return self.word not in ("unchanged", "foreign")


class Consent(t.NamedTuple):
    """replace: delete and create a class whose handler changed. remove_used: delete a class although pods use it."""

    replace: bool = False
    remove_used: bool = False


def change(writer: Writer, declared: Declared, hosts: int, phase: str, consent: Consent, check_mode: bool) -> Object:
    """Do what is declared, in this phase.

    :param hosts: how many hosts share the cluster.
    :returns: changed, classes (name -> word), notes, diff.
    :raises RuntimeGateError: something cannot be done; nothing has been written then, unless the text says what.
    """
    planner = _Planner(writer, declared, phase, consent, check_mode)
    steps = planner.steps()
    problems = [step.problem for step in steps if step.problem]
    if problems:
        raise RuntimeGateError(" | ".join(problems))
    due = [step for step in steps if step.kind in PHASES[phase]]
    if not check_mode:
        due = _do(writer, due)
    notes = [note for step in due for note in step.notes]
    if phase != "before_nodes":
        notes += _notes(declared, hosts)
    if phase == "remove":
        notes += planner.forgotten()
    return {
        "changed": any(step.changes for step in due),
        "classes": {step.name: step.word for step in due},
        "notes": notes,
        "diff": [_diff(step) for step in due if step.changes],
    }


def _do(writer: Writer, steps: t.Sequence[Step]) -> t.List[Step]:
    """Everything that changes something, deletions first, as they are planned. What the server made of it is in the result."""
    done: t.List[Step] = []
    written: t.List[str] = []
    for step in sorted(steps, key=lambda step: step.kind == "apply"):
        if not step.changes:
            done.append(step)
            continue
        try:
            if step.live and step.word in ("deleted", "replaced"):
                writer.delete(CLASSES, step.live, dry_run=False)
                written.append("%s deleted" % step.name)
            if step.wanted:
                step = step._replace(after=writer.apply(CLASSES, step.wanted, dry_run=False))
                written.append("%s applied" % step.name)
        except RuntimeGateError as error:
            so_far = "; before that: %s" % ", ".join(written) if written else "; nothing was written before"
            raise RuntimeGateError("RuntimeClass %s: %s%s" % (step.name, error, so_far)) from error
        done.append(step)
    return done


class _Planner:
    """Every step, each tried by the server in a dry run."""

    def __init__(self, writer: Writer, declared: Declared, phase: str, consent: Consent, check_mode: bool) -> None:
        self._writer = writer
        self._declared = declared
        self._consent = consent
        self._deletes = "delete" in PHASES[phase]
        #: the nodes have not loaded the new handlers yet, so that our own admission policy may rightly refuse their classes now
        self._early = phase == "before_nodes" or check_mode
        self._live = {thing["metadata"]["name"]: thing for thing in writer.list(CLASSES)}
        self._users: t.Optional[t.Dict[str, t.List[str]]] = None

    def steps(self) -> t.List[Step]:
        found = [self._apply(name, thing) for name, thing in sorted(self._declared.classes.items())]
        if self._deletes:
            going = [thing for thing in self._live.values() if thing.get("handler") in self._declared.absent]
            found = [self._delete(thing) for thing in going if thing["metadata"]["name"] not in self._declared.classes] + found
        return found

    def forgotten(self) -> t.List[str]:
        """Classes of ours that nobody's declaration tells of; another inventory may."""
        names = [name for name, live in self._live.items() if is_ours(live) and live.get("handler") not in self._declared.known]
        told = "RuntimeClasses of ours whose handlers nobody here declares stay: %s; declare these handlers with state: absent, or delete them by hand"
        return [told % some(names)] if names else []

    def _apply(self, name: str, thing: Object) -> Step:
        live = self._live.get(name)
        if live is not None and not is_ours(live):
            return self._foreign(name, thing, live)
        if live is not None and live["handler"] != thing["handler"]:
            return self._replace(name, thing, live)
        try:
            after = self._writer.apply(CLASSES, thing, dry_run=True)
        except Refused as refused:
            return self._refused(name, thing, live, refused)
        same = live is not None and said_by(live) == said_by(after) and our_fields(live) == our_fields(after)
        word = "unchanged" if same else "updated" if live is not None else "created"
        return Step(name, "apply", word, live, after, thing)

    def _refused(self, name: str, thing: Object, live: t.Optional[Object], refused: Refused) -> Step:
        if self._early and refused_by_us(str(refused)):
            note = "RuntimeClass %s: until handler %s is loaded, the admission policy of this collection refuses it" % (name, thing["handler"])
            word = "updated" if live is not None else "created"
            return Step(name, "apply", word, live, thing, thing, notes=(note,))
        return Step(name, "apply", "unchanged", live, live, problem="RuntimeClass %s: %s" % (name, _why(refused)))

    def _foreign(self, name: str, thing: Object, live: Object) -> Step:
        """Somebody else's object. A dry run tells whether it is as declared, quantities in other words included."""
        whose = "RuntimeClass %s belongs to %s" % (name, some(others(live)) or "nobody that the API server knows")
        try:
            after = self._writer.apply(CLASSES, thing, dry_run=True)
        except Refused as refused:
            why = "%s and is not as declared: %s" % (whose, _why(refused))
        else:
            if said_by(after) == said_by(live):
                return Step(name, "apply", "foreign", live, live, notes=("%s, is as declared, and is left alone" % whose,))
            why = "%s and lacks something that is declared: %s" % (whose, "; ".join(_differences(said_by(live), said_by(after))))
        fix = "it is left alone; change it where it comes from, or declare runtime_class: false or another runtime_class.name"
        return Step(name, "apply", "foreign", live, live, problem="%s; %s" % (why, fix))

    def _replace(self, name: str, thing: Object, live: Object) -> Step:
        sharing = others(live, "handler")
        told = "RuntimeClass %s has handler %s, declared is %s" % (name, live["handler"], thing["handler"])
        if sharing:
            return Step(name, "apply", "unchanged", live, live, problem="%s; %s owns the handler too, so it is left alone" % (told, some(sharing)))
        users = self._users_of(name)
        if not self._consent.replace:
            problem = "%s, and the handler of a RuntimeClass cannot be changed. %s. runtime_gate_replace_runtimeclasses: true deletes and creates it"
            return Step(name, "apply", "unchanged", live, live, problem=problem % (told, _told(users)))
        try:
            self._writer.delete(CLASSES, live, dry_run=True)
            after = self._writer.try_new(CLASSES, thing)
        except Refused as refused:
            return self._refused(name, thing, live, refused)._replace(word="replaced")
        return Step(name, "apply", "replaced", live, after, thing, notes=("%s: deleted and created. %s" % (told, _told(users)),))

    def _delete(self, live: Object) -> Step:
        name = live["metadata"]["name"]
        if not is_ours(live):
            note = "RuntimeClass %s asks for handler %s, which goes, and belongs to %s: left alone" % (name, live["handler"], some(others(live)))
            return Step(name, "delete", "foreign", live, live, notes=(note,))
        sharing = others(live, "handler")
        if sharing:
            note = "RuntimeClass %s is left alone: %s owns its handler too" % (name, some(sharing))
            return Step(name, "delete", "foreign", live, live, notes=(note,))
        users = self._users_of(name)
        if users and not self._consent.remove_used:
            problem = "RuntimeClass %s is to go with handler %s. %s. Delete these pods first, or say runtime_gate_remove_used_runtimeclasses: true"
            return Step(name, "delete", "unchanged", live, live, problem=problem % (name, live["handler"], _told(users)))
        try:
            self._writer.delete(CLASSES, live, dry_run=True)
        except Refused as refused:
            return Step(name, "delete", "unchanged", live, live, problem="RuntimeClass %s: %s" % (name, refused))
        notes = ("RuntimeClass %s is deleted although it is used. %s" % (name, _told(users)),) if users else ()
        return Step(name, "delete", "deleted", live, None, notes=notes)

    def _users_of(self, name: str) -> t.List[str]:
        """namespace/name of the pods that run or will run with a class; all pods are read once, where one has to be known."""
        if self._users is None:
            self._users = {}
            for pod in self._writer.list(PODS):
                used = (pod.get("spec") or {}).get("runtimeClassName")
                if used and (pod.get("status") or {}).get("phase") not in _OVER:
                    self._users.setdefault(used, []).append("%s/%s" % (pod["metadata"].get("namespace"), pod["metadata"]["name"]))
        return self._users.get(name, [])


def _told(users: t.Sequence[str]) -> str:
    return "Pods that use it: %s (%d)" % (some(users), len(users)) if users else "No pod uses it"


def _why(refused: Refused) -> str:
    if not refused.owners:
        return str(refused)
    return ", ".join("%s is owned by %s" % (field, owner) for field, owner in sorted(refused.owners.items()))


def _differences(live: Object, after: Object) -> t.List[str]:
    """The parts in which two objects differ, each as it is and as it is declared."""
    pairs = [("labels", live["metadata"].get("labels"), after["metadata"].get("labels"))]
    pairs += [(key, live.get(key), after.get(key)) for key in ("handler", "overhead", "scheduling")]
    return ["%s is %s, declared is %s" % (key, has or "not set", wants) for key, has, wants in pairs if has != wants]


def _notes(declared: Declared, hosts: int) -> t.List[str]:
    """What the declaration itself makes worth knowing."""
    found = [
        "the RuntimeClasses of handler %s stay: it is still declared on %s" % (handler, some(keeping)) for handler, keeping in declared.kept.items()
    ]
    for name, thing in sorted(declared.classes.items()):
        if len(declared.hosts[name]) < hosts and not thing.get("scheduling", {}).get("nodeSelector"):
            found.append(
                "RuntimeClass %s has no node_selector, and %d of %d hosts declare its handler: its pods can land on the others, and hang there"
                % (name, len(declared.hosts[name]), hosts)
            )
    return found


def _diff(step: Step) -> Object:
    before, after = (yaml.safe_dump(said_by(thing), sort_keys=True) if thing else "" for thing in (step.live, step.after))
    header = "RuntimeClass %s (%s)" % (step.name, step.word)
    return {"before_header": header, "after_header": header, "before": before, "after": after}


__all__ = ("Consent", "PHASES", "change")
