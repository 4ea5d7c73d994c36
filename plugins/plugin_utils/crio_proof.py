# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof before a change of CRI-O's files: what would they load, and is that what was asked for, and nothing less?

Two witnesses must agree, as for containerd (:mod:`proof_judgement`). One is the node's own binary over the staged files (``crio
config``): it decodes and merges them, and refuses what no start takes; but it prints handlers that a start drops (LOADING.md,
section 9). The other is the model of a start, which knows what is dropped.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import comparison
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.documents import CrioDocument
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.interpret import section_of_dump
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import Document
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.proof_judgement import Wanted, judge_names
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.crio_plan import Section, lacking

Table = t.Mapping[str, t.Any]
_SHOWN = 8


def judge_section(section: Section, wanted: Wanted, who: str) -> t.List[str]:
    """What one witness lacks, as sentences without a full stop.

    :param who: the witness, as the subject of a sentence.
    """
    reasons = []
    for name, table in sorted(wanted.tables.items()):
        actual = section.handlers.get(name)
        if actual is None:
            reasons.append("%s would not load handler %s" % (who, name))
        elif actual:
            # A program that no file names is looked up at the start alone.
            keys = [key for key in lacking(dict(table), dict(actual)) if key != "runtime_path" or actual.get(key)]
            if keys:
                reasons.append("%s would load handler %s with another %s" % (who, name, ", ".join(keys)))
    return reasons + judge_names(section, wanted, who)


def judge_dump(before: t.Optional[Table], answer: Table, wanted: Wanted) -> t.Tuple[t.List[str], t.List[str]]:
    """The binary's word: (reasons against the change, notes).

    :param before: ``dump`` of the capture. ``answer``: of the step prove.
    """
    if answer.get("withheld"):
        return ["the proof cannot be read: %s" % answer["withheld"]], []
    dump = answer.get("dump")
    if dump is None:
        return [], ["There is no CRI-O on the node yet: the proof is the model of its release alone."]
    if dump["rc"] != 0:
        return ["%s does not load the planned files: %s" % (answer["exe"], dump["stderr"].strip()[-1000:])], []
    document = CrioDocument("crio config", str(dump["stdout"]))
    if document.tree is None:
        return ["what %s prints for the planned files is not TOML: %s" % (answer["exe"], document.error)], []
    reasons = judge_section(Section(*section_of_dump(document)), wanted, str(answer["exe"]))
    if before is None or before.get("rc") != 0:
        return reasons, []
    changed = changed_settings(str(before["stdout"]), document)
    if not changed:
        return reasons, []
    more = "%s would change more than the handlers: %s%s" % (answer["exe"], "; ".join(changed[:_SHOWN]), " …" if len(changed) > _SHOWN else "")
    return (reasons, [more]) if wanted.may_change_more else ([*reasons, more], [])


def changed_settings(before: str, after: Document) -> t.List[str]:
    """Settings beside the handlers and their default that come out otherwise than before, as ``KEY: OLD → NEW``."""
    old = CrioDocument("crio config", before)
    if old.tree is None:
        return []
    first, second = dict(_leaves(old.tree, ())), dict(_leaves(after.tree or {}, ()))
    keys = sorted(key for key in set(first) | set(second) if comparison.plain(first.get(key)) != comparison.plain(second.get(key)))
    return ["%s: %s → %s" % (".".join(key), first.get(key, "unset"), second.get(key, "unset")) for key in keys]


def _leaves(node: Table, path: t.Tuple[str, ...]) -> t.Iterator[t.Tuple[t.Tuple[str, ...], t.Any]]:
    for key, value in node.items():
        here = (*path, key)
        if here in (("crio", "runtime", "runtimes"), ("crio", "runtime", "default_runtime")):
            continue
        if isinstance(value, dict):
            yield from _leaves(value, here)
        else:
            yield here, value


__all__ = ("changed_settings", "judge_dump", "judge_section")
