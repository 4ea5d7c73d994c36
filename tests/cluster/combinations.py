# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Combinations of a node, a RuntimeClass and a pod for the prediction matrix, the same ones at each run.

What this proves: nothing by itself. Each combination has a node of its own, and its pod can go nowhere else (matchFields on the
node's name), so what the scheduler does with it does not depend on the other pods. Nothing here says what the outcome is: that is
asked of the API server and the scheduler on one side and of the product on the other.
"""

from __future__ import annotations

import itertools
import random
import typing as t

from tests.cluster.pods import pod, runtime_class

Table = t.Dict[str, t.Any]

OPERATORS = ("Exists", "Equal", None, "Lt", "Gt")  # None: left out, which means Equal
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute", None)  # None: left out, which means every effect
TAINT_EFFECTS = ("NoSchedule", "NoSchedule", "PreferNoSchedule", "NoExecute")
ACCELERATORS = ("a100", "h200", "l4")
_KEY, _OTHER_KEY = "example.com/gpu", "example.com/fpga"


class Combination(t.NamedTuple):
    """One case. runtime_class: None where the pod names none, or one that does not exist."""

    name: str
    kind: str
    node: Table
    runtime_class: Table | None
    pod: Table


def combinations(count: int, seed: int = 20) -> list[Combination]:
    """At least `count`: each kind of situation in turn, with its details drawn. A prefix is as mixed as the whole."""
    draw = random.Random(seed)
    made = []
    turns = itertools.cycle(_KINDS)
    # Operators and effects go round independently of the draw, so that each pair comes equally often.
    pairs = itertools.cycle(itertools.product(OPERATORS, EFFECTS))
    for index in range(count):
        kind, make = next(turns)
        draft = _Draft(index, draw)
        make(draft, draw, *(next(pairs) if kind == "toleration" else ()))
        made.append(draft.done(kind))
    return made


class _Draft:
    """A combination under way: an ordinary node with room, no class, a pod that asks for little."""

    def __init__(self, index: int, draw: random.Random) -> None:
        self.name = f"c{index:04}"
        self.labels = {"accelerator": draw.choice(ACCELERATORS)}
        self.taints: list[Table] = []
        self.allocatable = {"cpu": "1", "memory": "2Gi", "pods": "5"}
        self.cordoned = False
        self.class_name: str | None = None
        self.handler_class: Table = {}
        self.requests = {"cpu": "100m", "memory": "64Mi"}
        self.spec: Table = {}

    def scheduling(self) -> Table:
        self.class_name = self.name
        return t.cast(Table, self.handler_class.setdefault("scheduling", {}))

    def overhead(self, **amounts: str) -> None:
        self.class_name = self.name
        self.handler_class["overhead"] = {"podFixed": amounts}

    def done(self, kind: str) -> Combination:
        node = {"name": f"n-{self.name}", "labels": self.labels, "taints": self.taints, "allocatable": self.allocatable, "runtimeHandlers": ["", "mine"]}
        if self.cordoned:
            node["unschedulable"] = True
        made = runtime_class(self.name, "mine", **self.handler_class) if self.class_name == self.name else None
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node["name"]]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
        asking = pod(f"p-{self.name}", runtime_class=self.class_name, requests=self.requests, affinity=affinity, **self.spec)
        return Combination(self.name, kind, node, made, asking)


def _taint(draw: random.Random) -> Table:
    return {"key": _KEY, "value": draw.choice(("", "yes", "5", "7", "12")), "effect": draw.choice(TAINT_EFFECTS)}


def _tolerating(draw: random.Random, operator: str | None, effect: str | None, taint: Table) -> Table:
    """A toleration that matches the taint as often as not."""
    made: Table = {"key": _KEY if draw.random() < 0.8 else _OTHER_KEY}
    if operator == "Exists" and draw.random() < 0.2:
        del made["key"]
    if operator is not None:
        made["operator"] = operator
    if operator in ("Lt", "Gt"):
        made["value"] = draw.choice(("6", "7", "11"))
    elif operator != "Exists":
        made["value"] = taint["value"] if draw.random() < 0.6 else "no"
    if effect is not None:
        made["effect"] = effect
    if effect == "NoExecute" and draw.random() < 0.3:
        made["tolerationSeconds"] = 86400
    return made


def _toleration(draft: _Draft, draw: random.Random, operator: str | None, effect: str | None) -> None:
    taint = _taint(draw)
    if operator in ("Lt", "Gt") and draw.random() < 0.8:
        taint["value"] = draw.choice(("5", "7", "12"))
    if effect is not None and draw.random() < 0.7:
        taint["effect"] = effect
    draft.taints.append(taint)
    if draw.random() < 0.15:
        draft.taints.append({"key": _OTHER_KEY, "value": "no", "effect": "NoSchedule"})
    wanted = [_tolerating(draw, operator, effect, taint)]
    # The API server takes Lt and Gt from pods, with the feature gate; from a RuntimeClass it refuses them even then.
    place = "pod" if operator in ("Lt", "Gt") else draw.choice(("class", "class", "pod", "both"))
    if place in ("class", "both"):
        draft.scheduling()["tolerations"] = wanted
    if place in ("pod", "both"):
        draft.spec["tolerations"] = wanted if place == "pod" or draw.random() < 0.5 else [_tolerating(draw, "Exists", None, taint)]


def _selector(draft: _Draft, draw: random.Random) -> None:
    draft.scheduling()["nodeSelector"] = {"accelerator": draw.choice(ACCELERATORS)}
    if draw.random() < 0.4:
        draft.spec["nodeSelector"] = {"kubernetes.io/os": draw.choice(("linux", "windows"))}


def _conflict(draft: _Draft, draw: random.Random) -> None:
    one, other = draw.sample(ACCELERATORS, 2)
    draft.scheduling()["nodeSelector"] = {"accelerator": one}
    draft.spec["nodeSelector"] = {"accelerator": other if draw.random() < 0.85 else one}


def _no_class(draft: _Draft, draw: random.Random) -> None:
    draft.class_name = draw.choice(("absent", "nvidai", "gvisor"))


def _empty_name(draft: _Draft, _draw: random.Random) -> None:
    draft.class_name = ""


def _overhead(draft: _Draft, draw: random.Random) -> None:
    """Around the edge of what the node has."""
    fixed = draw.choice(("250m", "0.1", "100m"))
    draft.overhead(cpu=fixed, memory=draw.choice(("128Mi", "1Gi", "134217728")))
    draft.requests = {"cpu": draw.choice(("749m", "750m", "751m", "900m", "901m", "950m")), "memory": draw.choice(("64Mi", "1Gi", "1920Mi"))}


def _own_overhead(draft: _Draft, draw: random.Random) -> None:
    """The pod brings an overhead: another one, or the class's, however it is written."""
    draft.overhead(cpu="250m", memory="128Mi")
    same = draw.random() < 0.15
    draft.spec["overhead"] = {"cpu": "0.25" if same else draw.choice(("200m", "1")), "memory": draw.choice(("128Mi", "131072Ki"))}


def _lonely_overhead(draft: _Draft, draw: random.Random) -> None:
    """The pod brings an overhead that no class gives."""
    if draw.random() < 0.5:
        draft.scheduling()
    draft.spec["overhead"] = {"cpu": "250m"}


def _node_state(draft: _Draft, draw: random.Random) -> None:
    draft.scheduling()
    draft.cordoned = draw.random() < 0.5
    if draw.random() < 0.3:
        draft.spec["tolerations"] = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]
    draft.allocatable["pods"] = draw.choice(("0", "0", "1"))


def _anything(draft: _Draft, draw: random.Random) -> None:
    if draw.random() < 0.5:
        _selector(draft, draw)
    if draw.random() < 0.5:
        _toleration(draft, draw, draw.choice(OPERATORS), draw.choice(EFFECTS))
    if draw.random() < 0.5:
        _overhead(draft, draw)
    if draw.random() < 0.1:
        draft.spec["nodeSelector"] = {"accelerator": draw.choice(ACCELERATORS)}
    if draw.random() < 0.1:
        draft.cordoned = True


# Tolerations have twenty pairs of operator and effect, so they come most often.
_KINDS: tuple[tuple[str, t.Callable[..., None]], ...] = (
    ("toleration", _toleration),
    ("selector", _selector),
    ("toleration", _toleration),
    ("conflict", _conflict),
    ("toleration", _toleration),
    ("no class", _no_class),
    ("toleration", _toleration),
    ("overhead", _overhead),
    ("toleration", _toleration),
    ("own overhead", _own_overhead),
    ("toleration", _toleration),
    ("lonely overhead", _lonely_overhead),
    ("toleration", _toleration),
    ("node state", _node_state),
    ("toleration", _toleration),
    ("empty name", _empty_name),
    ("anything", _anything),
)

__all__ = ("EFFECTS", "OPERATORS", "Combination", "combinations")
