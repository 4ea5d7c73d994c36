# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The proof before a change: what would the planned files load, and is that what was asked for, and nothing less?

Two witnesses must agree. One is the node's own binary, which has loaded the staged files (``config dump``); it does not
validate as a start does, and prints what a start would not load (LOADING.md, sections 0 and 3). The other is the model of
a start of this release over the planned texts.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import comparison
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.cri_section import Section
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import Document
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import section_of_dump
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import (
    NEW_IMAGES,
    NEW_RUNTIME,
    OLD_CRI,
    SHORT_CRI,
    rules_for,
)

Table = t.Mapping[str, t.Any]

#: The one warning that a good change may bring: a version 2 root file is migrated in memory at every start.
_MIGRATION_NOTICE = re.compile(r"Configuration migrated from version|Deprecated version", re.IGNORECASE)
_TIME = re.compile(r'\b(?:time="[^"]*"|\d{4}-\d\d-\d\dT\S+)\s*')
_LEVEL = re.compile(r"level=(?:warning|error|fatal)")
_CRI_TABLES = (OLD_CRI, NEW_RUNTIME, NEW_IMAGES, SHORT_CRI)
_SHOWN = 8


class Wanted(t.NamedTuple):
    """What must come out.

    :ivar tables: desired handler → the keys that it must have on this release line.
    :ivar keep: handlers that are loaded now and must stay. ``absent``: that must be gone.
    :ivar default: the desired default; None: the present one stays.
    :ivar present_default: what it is now (None: CRI is not served).
    :ivar cdi: containerd's own CDI support may change with it.
    :ivar may_change_more: a repair or a removal: what was ignored becomes effective.
    """

    tables: t.Mapping[str, Table]
    keep: t.Sequence[str]
    absent: t.Sequence[str]
    default: t.Optional[str]
    present_default: t.Optional[str]
    cdi: bool
    may_change_more: bool


def judge_section(section: Section, wanted: Wanted, who: str, with_options: bool = True) -> t.List[str]:
    """What one witness lacks, as sentences without a full stop.

    :param who: the witness, as the subject of a sentence.
    """
    if section.refusal is not None:
        return ["%s would not start: %s" % (who, section.refusal.message)]
    if section.down is not None:
        return ["%s would start without CRI: %s" % (who, section.down.message)]
    reasons = []
    handlers = section.handlers
    for name, table in sorted(wanted.tables.items()):
        if name not in handlers:
            reasons.append("%s would not load handler %s" % (who, name))
        elif not comparison.holds(table, handlers[name], with_options):
            keys = comparison.differing(table, handlers[name], with_options)
            reasons.append("%s would load handler %s with another %s" % (who, name, ", ".join(keys)))
    return reasons + judge_names(section, wanted, who)


def judge_names(section: t.Any, wanted: Wanted, who: str) -> t.List[str]:
    """What one witness, of either engine, lacks of what is loaded now, and has of what must go.

    :param section: has ``handlers`` and ``default``.
    """
    reasons = []
    for name in sorted(set(wanted.keep) - set(wanted.absent) - set(section.handlers)):
        reasons.append("%s would lose handler %s, which is loaded now and not declared absent" % (who, name))
    for name in sorted(set(wanted.absent) & set(section.handlers)):
        reasons.append("%s would still load handler %s" % (who, name))
    default = wanted.default or (None if wanted.present_default in wanted.absent else wanted.present_default)
    if default and section.default != default:
        reasons.append("%s would have the default handler %s, not %s" % (who, section.default or "(none)", default))
    return reasons


def judge_dump(
    before: t.Optional[Table], answer: Table, wanted: Wanted, version: t.Optional[str]
) -> t.Tuple[t.List[str], t.List[str]]:
    """The binary's word: (reasons against the change, notes).

    :param before: ``dump`` of the capture. ``answer``: of the step prove. ``version``: of the binary.
    """
    if answer.get("withheld"):
        return ["the proof cannot be read: %s" % answer["withheld"]], []
    dump = answer.get("dump")
    if dump is None:
        return [], ["There is no containerd on the node yet: the proof is the model of its release alone."]
    if dump["rc"] != 0:
        return ["%s does not load the planned files: %s" % (answer["exe"], dump["stderr"].strip()[-1000:])], []
    document = Document("config dump", str(dump["stdout"]))
    if document.tree is None:
        return ["what %s prints for the planned files is not TOML: %s" % (answer["exe"], document.error)], []
    rules = rules_for(version)
    section = section_of_dump(document, rules)
    reasons = judge_section(section, wanted, str(answer["exe"]), rules is None or rules.shows_options)
    if before is None or before.get("rc") != 0:
        return reasons, []
    beside = _beside(before, document, str(dump["stderr"]), str(answer["exe"]), wanted)
    return (reasons, beside) if wanted.may_change_more else (reasons + beside, [])


def _beside(before: Table, document: Document, stderr: str, exe: str, wanted: Wanted) -> t.List[str]:
    """What else comes out otherwise than before, as sentences without a full stop."""
    found = ["%s warns about the planned files: %s" % (exe, line) for line in new_warnings(str(before.get("stderr") or ""), stderr)]
    changed = changed_settings(str(before["stdout"]), document, wanted)
    if changed:
        shown = "%s%s" % ("; ".join(changed[:_SHOWN]), " …" if len(changed) > _SHOWN else "")
        found.append("%s would change more than the handlers: %s" % (exe, shown))
    return found


def new_warnings(before: str, after: str) -> t.List[str]:
    """Warnings and errors that the present files do not bring, without their times; the migration notice left out."""
    known = {_TIME.sub("", line).strip() for line in before.splitlines()}
    found = []
    for line in after.splitlines():
        text = _TIME.sub("", line).strip()
        if _LEVEL.search(text) and text not in known and not _MIGRATION_NOTICE.search(text) and text not in found:
            found.append(text)
    return found


def changed_settings(before: str, after: Document, wanted: Wanted) -> t.List[str]:
    """CRI settings beside the declared ones that come out otherwise than before, as ``KEY: OLD → NEW``."""
    old = Document("config dump", before)
    if old.tree is None:
        return []
    first, second = _settings(old.tree), _settings(after.tree or {})
    if not first or not second:
        # CRI is disabled on one side: what is loaded then is judged by its handlers.
        return []
    found = []
    for key in sorted(set(first) | set(second)):
        one, two = first.get(key), second.get(key)
        if one != two and not _is_ours(key, wanted):
            found.append("%s: %s → %s" % (".".join(key[1:]), _show(one), _show(two)))
    return found


def _settings(tree: Table) -> t.Dict[t.Tuple[str, ...], t.Any]:
    plugins = tree.get("plugins")
    found: t.Dict[t.Tuple[str, ...], t.Any] = {}
    for name in _CRI_TABLES:
        body = plugins.get(name) if isinstance(plugins, dict) else None
        if isinstance(body, dict):
            # Version 1 and 2 print the same table under two names.
            _flatten(body, (OLD_CRI if name == SHORT_CRI else name,), found)
    return found


def _flatten(value: t.Any, path: t.Tuple[str, ...], found: t.Dict[t.Tuple[str, ...], t.Any]) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _flatten(item, path + (key,), found)
        return
    plain = comparison.plain(value)
    # Another spelling of "not set" (comparison.normal).
    is_unset = path[-1] in ("sandboxer", "sandbox_mode") and plain == "podsandbox"
    if plain is not None and not is_unset:
        found[path] = plain


def _is_ours(key: t.Tuple[str, ...], wanted: Wanted) -> bool:
    """A setting that is judged elsewhere: of a declared, removed or new handler, the default, CDI where it was asked for."""
    if "runtimes" in key[:-1]:
        name = key[key.index("runtimes") + 1]
        return name in wanted.tables or name in wanted.absent or name not in wanted.keep
    if "runtime_platforms" in key[:-1]:
        # Where 2.0 to 2.2 look for the snapshotter with which a handler's images are pulled.
        return key[key.index("runtime_platforms") + 1] in wanted.tables
    if key[-1] == "enable_cdi":
        return wanted.cdi
    return key[-1] == "default_runtime_name"


def _show(value: t.Any) -> str:
    return "(unset)" if value is None else str(value)[:80]


__all__ = ("Wanted", "changed_settings", "judge_dump", "judge_section", "new_warnings")
