# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of a host that look like ours and are none: a mistyped name is an undefined variable, and counts for nothing in silence."""

from __future__ import annotations

import functools
import pathlib
import typing as t

import yaml

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import suggest
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import RunStore

PREFIX = "runtime_gate_"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_ROLES = pathlib.Path(__file__).resolve().parents[2] / "roles"
#: What a role registers and a playbook alone reads: no option of a role.
_OTHERS = frozenset(("runtime_gate_result", "runtime_gate_admission_state"))


@functools.lru_cache(maxsize=None)
def known() -> t.FrozenSet[str]:
    """Every variable that a role or playbook of this collection reads, by the roles' argument specs."""
    names = set(_OTHERS)
    for path in sorted(_ROLES.glob("*/meta/argument_specs.yml")):
        for entry in yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)["argument_specs"].values():
            names.update(entry["options"])
    return frozenset(names)


def warnings(task_vars: t.Mapping[str, t.Any], store: RunStore) -> t.List[str]:
    """A sentence for each variable of this host that starts as ours do and is none; each name once a run, with the first host that has it.

    People may have variables of their own with such a name: nothing is refused.
    """
    host = task_vars["inventory_hostname"]
    # Each host has a process of its own, and the specs are some 100 KB of YAML: they are parsed once a run.
    ours = frozenset(store.once("known variables", lambda: sorted(known())))
    strange = sorted(name for name in task_vars if str(name).startswith(PREFIX) and name not in ours)
    return [_sentence(name, host) for name in strange if store.claim("unknown variable %s" % name)]


def _sentence(name: str, host: str) -> str:
    # What all of them have in common makes none likely.
    near = suggest.nearest(name[len(PREFIX) :], [word[len(PREFIX) :] for word in known()])
    hint = "; did you mean %s%s?" % (PREFIX, near) if near else ""
    return "host %s has a variable %s, which kubenode.runtime_gate does not know and does not read%s" % (host, name, hint)


__all__ = ("PREFIX", "known", "warnings")
