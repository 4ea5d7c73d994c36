# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The admission policies in the cluster: made, changed and taken away as one, each step tried by the server where it can be."""

from __future__ import annotations

import time
import typing as t

import yaml

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.declared_classes import (
    is_ours,
    others,
    our_fields,
    some,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.handler_policy import (
    LIST_NAME,
    POLICIES,
    lists_path,
    policy_objects,
    removal,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.admission_list import make_list
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_writer import Refused, Writer

Data = t.Dict[str, t.Any]

#: Seconds in which every API server has seen that the list is gone.
_SETTLING = 3.0
_AFTERWARDS = (
    "should the policies be installed again, an API server without the fix of https://github.com/kubernetes/kubernetes/issues/130887"
    " lets everything pass until it is restarted"
)


def install(writer: Writer, namespace: str, action: str, accepted: t.Sequence[str], check_mode: bool) -> Data:
    """Both policies with their bindings, and an empty list where there is none: changed, notes, diff.

    :raises RuntimeGateError: one of them belongs to somebody else, or is refused.
    """
    wanted = policy_objects(namespace, action, accepted)
    names = [thing["metadata"]["name"] for path, thing in wanted if path == POLICIES]
    policies = {name: writer.get(POLICIES, name) for name in names}
    steps = [_planned(writer, path, thing, policies) for path, thing in wanted]
    no_list = writer.get(lists_path(namespace), LIST_NAME) is None
    if no_list:
        make_list(writer, namespace, check_mode=True)
    due = [step for step in steps if step.changes]
    if not check_mode:
        for step in due:
            _apply(writer, step.path, step.thing, dry_run=False)
        if no_list:
            make_list(writer, namespace, check_mode=False)
    return {"changed": bool(due) or no_list, "notes": [], "diff": [_diff(step.thing, step.live, step.after) for step in due]}


class _Step(t.NamedTuple):
    """One object: the path of its kind, what is wanted, what it is (None: nothing), what it would be."""

    path: str
    thing: Data
    live: t.Optional[Data]
    after: Data

    @property
    def changes(self) -> bool:
        return self.live is None or _said(self.live) != _said(self.after) or our_fields(self.live) != our_fields(self.after)


def _planned(writer: Writer, path: str, thing: Data, policies: t.Mapping[str, t.Optional[Data]]) -> _Step:
    """An object as the server would make it.

    A binding is tried only where its policy is there: without it the server cannot tell which rights on the parameter are needed,
    and asks for all rights on everything. A policy without binding does nothing, so that this halfway house harms nobody.
    """
    name = thing["metadata"]["name"]
    live = policies[name] if path == POLICIES else writer.get(path, name)
    if live is not None and not is_ours(live, "spec"):
        owner = some(others(live)) or "nobody that is known"
        raise RuntimeGateError("%s %s exists and belongs to %s; it is left alone" % (thing["kind"], name, owner))
    tried = path == POLICIES or policies[name] is not None
    return _Step(path, thing, live, _apply(writer, path, thing, dry_run=True) if tried else thing)


def _apply(writer: Writer, path: str, thing: Data, dry_run: bool) -> Data:
    try:
        return writer.apply(path, thing, dry_run)
    except Refused as refused:
        if refused.status == 404:
            raise RuntimeGateError("the API server does not know %s; Kubernetes 1.30 or later does" % path) from refused
        owners = ", ".join("%s is owned by %s" % pair for pair in sorted(refused.owners.items()))
        raise RuntimeGateError("%s %s: %s" % (thing["kind"], thing["metadata"]["name"], owners or refused)) from refused


def remove(writer: Writer, namespace: str, check_mode: bool, pause: t.Callable[[float], None] = time.sleep) -> Data:
    """Everything of ours, the list first: changed, notes, diff. What belongs to somebody else stays, and a note says so."""
    going: t.List[t.Tuple[str, Data]] = []
    notes = []
    for path, name in removal(namespace):
        live = writer.get(path, name)
        if live is None:
            continue
        field = "data" if name == LIST_NAME else "spec"
        if is_ours(live, field) or not others(live, field):
            going.append((path, live))
            writer.delete(path, live, dry_run=True)
        else:
            notes.append("%s %s belongs to %s: left alone" % (live["kind"], name, some(others(live, field))))
    if not check_mode:
        for path, live in going:
            writer.delete(path, live, dry_run=False)
            if live["metadata"]["name"] == LIST_NAME:
                pause(_SETTLING)
    if going:
        notes.append(_AFTERWARDS)
    return {"changed": bool(going), "notes": notes, "diff": [_diff(live, live, None) for _path, live in going]}


def _said(thing: t.Optional[Data]) -> t.Any:
    return None if thing is None else thing.get("spec", thing.get("data"))


def _diff(thing: Data, live: t.Optional[Data], after: t.Optional[Data]) -> Data:
    before, then = (yaml.safe_dump(_said(one)) if one is not None else "" for one in (live, after))
    header = "%s %s" % (thing["kind"], thing["metadata"]["name"])
    return {"before_header": header, "after_header": header, "before": before, "after": then}


__all__ = ("install", "remove")
