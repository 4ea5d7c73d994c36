"""The product's repairs, done: the files edited as `fix_edits` says, the daemon restarted, the handler asked for.

What this proves: that an edit which a fault offers makes the daemon load the handler that the fault names. Faults of one severity are
mended together and, for errors, again with what is then named, because one cause may hide another (a daemon that does not start hides
everything). At the end each handler of each mended fault is loaded, or a fault without edits names it (that is a person's work:
`blocked`), or the edits have failed.
"""

from __future__ import annotations

import collections
import posixpath
import re
import typing as t
from dataclasses import dataclass, field

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.fix_edits import apply_edits
from tests.testbed.host import RuntimeHost

ROUNDS = 6
Facts = dict[str, t.Any]
Fault = dict[str, t.Any]
#: A restart of the daemon with the files as they are: the handlers that it then has (None: CRI is not served), its default, the facts.
Restart = t.Callable[[], "tuple[set[str] | None, str | None, Facts]"]


@dataclass
class Mended:
    """What became of the edits of a pair, by the fault's number; the unit is a handler, or the fault where it names none."""

    tried: collections.Counter[int] = field(default_factory=collections.Counter)
    fixed: collections.Counter[int] = field(default_factory=collections.Counter)
    blocked: collections.Counter[int] = field(default_factory=collections.Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, other: Mended) -> None:
        """Counts another pair's."""
        self.tried.update(other.tried)
        self.fixed.update(other.fixed)
        self.blocked.update(other.blocked)


def chosen(faults: t.Iterable[Fault]) -> list[Fault]:
    """The faults with edits of the highest severity that has any."""
    with_edits = [fault for fault in faults if fault["fix_edits"]]
    found = {fault["severity"] for fault in with_edits}
    severity = next((each for each in ("error", "warning", "info") if each in found), None)
    return [fault for fault in with_edits if fault["severity"] == severity]


def real_path(path: str, links: t.Mapping[str, str]) -> str:
    """The path behind the tree's own links, which must not be followed from outside the node."""
    for _hop in range(40):
        found = next((link for link in links if path == link or path.startswith(link + "/")), None)
        if found is None:
            break
        path = posixpath.normpath(posixpath.join(posixpath.dirname(found), links[found]) + path[len(found) :])
    return path


def edit(host: RuntimeHost, faults: t.Iterable[Fault], links: t.Mapping[str, str]) -> bool:
    """Does the edits in the node's files; whether a text has changed. Raises RuntimeGateError when an edit cannot be done."""
    edits = [one for fault in faults for one in fault["fix_edits"]]
    paths = {one["file"]: real_path(one["file"], links) for one in edits}
    texts = {}
    for path in set(paths.values()):
        if host.path(path).is_file():
            texts[path] = host.path(path).read_bytes().decode("utf-8", "surrogateescape")
    changed = {path: text for path, text in apply_edits(texts, [dict(one, file=paths[one["file"]]) for one in edits]).items() if text != texts.get(path)}
    for path, text in changed.items():
        host.write(path, text)
    return bool(changed)


def mend(host: RuntimeHost, facts: Facts, links: t.Mapping[str, str], declared: t.Collection[str], calm: bool, restart: Restart) -> Mended:
    """Mends what the facts name, and asks the daemon.

    :param declared: the handlers that stand in the files; one that a change has taken out of them cannot come back.
    :param calm: nothing has changed since the daemon was started; else a restart brings other files or another program as well, and only
        what is an error now is mended.
    """
    result = Mended()
    gone = set(facts["restart_loses"]) - set(declared) - {"runc"}
    asked: dict[tuple[t.Any, ...], Fault] = {}
    served: set[str] | None = None
    default: str | None = None
    for _round in range(ROUNDS):
        now = chosen(facts["faults"])
        if not now or (now[0]["severity"] != "error" and (asked or not calm)):
            break
        asked.update({(fault["id"], fault["file"], fault["message"]): fault for fault in now})
        gone |= {name for fault in now for name in given_up(fault)}
        changed = [_edited(host, fault, facts, links, result) for fault in now]
        if not any(changed):
            break
        served, default, facts = restart()
        if now[0]["severity"] != "error":
            break
    for fault in asked.values():
        judge(fault, served, default, facts, result, gone)
    return result


def _edited(host: RuntimeHost, fault: Fault, facts: Facts, links: t.Mapping[str, str], result: Mended) -> bool:
    """Does one fault's edits; whether a text has changed. A file that is no TOML waits for a person, and its edits wait with it."""
    try:
        return edit(host, [fault], links)
    except RuntimeGateError as error:
        files = {one["file"] for one in fault["fix_edits"]}
        if not any(other["file"] in files and not other["fix_edits"] and other["severity"] == "error" for other in facts["faults"]):
            result.failures.append(f"the edits of {fault['id']} ({fault['message']}) cannot be done: {error}")
    return False


def given_up(fault: Fault) -> list[str]:
    """Handlers that the fault's edits do away with: `default` of a default_runtime table, `a` where an unquoted dot made it of `a.b`."""
    if fault["id"] == 17:
        return ["default"]
    return [name for name in fault["handlers"] if any(other.startswith(name + ".") for other in fault["handlers"])]


def _loaded(name: str, fault: Fault, served: set[str], default: str | None) -> bool:
    renamed = re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")
    if fault["id"] == 17:
        return name == default
    return bool({name, renamed} & served)


def judge(fault: Fault, served: set[str] | None, default: str | None, facts: Facts, result: Mended, gone: t.Collection[str] = ()) -> None:
    """Counts one fault's edits.

    :param served: the handlers that the daemon then has, None where it does not serve CRI.
    :param gone: names that need not be loaded.
    """
    number, names = fault["id"], [name for name in fault["handlers"] if name not in gone]
    left = [other for other in facts["faults"] if all(other[key] == fault[key] for key in ("id", "file", "severity", "message"))]
    by_hand = [other for other in facts["faults"] if not other["fix_edits"] and other["severity"] != "info"]
    for name in names or ([] if fault["handlers"] else [""]):
        result.tried[number] += 1
        good = served is not None and (not name or _loaded(name, fault, served, default))
        if good and (fault["severity"] == "error" or not left):
            result.fixed[number] += 1
        elif any((name and name in other["handlers"]) or (served is None and other["severity"] == "error") for other in by_hand):
            result.blocked[number] += 1
        else:
            what = f"handler {name}" if name else "the setting"
            still = "; it is still named" if left else ""
            others = sorted({other["id"] for other in facts["faults"] if other["severity"] != "info"})
            has = "serves no CRI" if served is None else f"has {', '.join(sorted(served))}"
            result.failures.append(f"edits of {number} ({fault['message']}): {what} is not in order; the daemon {has}, faults {others}{still}")
