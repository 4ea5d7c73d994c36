# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a change depends on the container runtime: how a node is read, planned and judged. The way of the change does not."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import interpret as containerd_core
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio import interpret as crio_core
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import crio_proof, proof_judgement
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import crio_plan, crio_tables, desired, plan

Table = t.Dict[str, t.Any]
#: (reasons against the change, notes)
Judgement = t.Tuple[t.List[str], t.List[str]]


class Engine(t.NamedTuple):
    """One container runtime.

    :ivar label: its name in a sentence.
    :ivar interpret: facts of a capture. :ivar make_plan: the plan of (capture, facts, options).
    :ivar judge: what speaks against (plan, what must come out, present dump, answer of the step prove).
    """

    label: str
    interpret: t.Callable[[Table], Table]
    make_plan: t.Callable[[Table, Table, t.Mapping[str, t.Any]], Table]
    judge: t.Callable[[Table, proof_judgement.Wanted, t.Optional[Table], Table], Judgement]


def _judge_containerd(made: Table, wanted: proof_judgement.Wanted, before: t.Optional[Table], answer: Table) -> Judgement:
    reasons = proof_judgement.judge_section(made["section"], wanted, "containerd %s" % made["version"])
    more, notes = proof_judgement.judge_dump(before, answer, wanted, made["version"])
    return reasons + more, notes


def _judge_crio(made: Table, wanted: proof_judgement.Wanted, before: t.Optional[Table], answer: Table) -> Judgement:
    reasons = crio_proof.judge_section(made["section"], wanted, "CRI-O %s" % made["version"])
    more, notes = crio_proof.judge_dump(before, answer, wanted)
    return reasons + more, notes


ENGINES: t.Dict[str, Engine] = {
    "containerd": Engine("containerd", containerd_core.interpret, plan.make_plan, _judge_containerd),
    "crio": Engine("CRI-O", crio_core.interpret, crio_plan.make_plan, _judge_crio),
}


def executables(options: t.Mapping[str, t.Any]) -> t.Dict[str, t.List[str]]:
    """Every program that the declaration could need, by the key under which the node half takes it: the engine is known only there."""
    return {"executables": desired.executables(options), "crio_executables": crio_tables.executables(options)}


__all__ = ("ENGINES", "Engine", "executables")
