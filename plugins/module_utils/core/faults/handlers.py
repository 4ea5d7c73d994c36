# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of single handlers: loaded, but not usable, not nameable, or not as their options say."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import suggest, usability
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.cri_section import LINUX_V1
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import Declaration, dotted_children, toml_key
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.catalogue import (
    ERROR,
    INFO,
    WARNING,
    Edit,
    Fault,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.load import struct_key
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import NEW_IMAGES
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.situation import Situation

#: The API server's rule for RuntimeClass.handler: an RFC 1123 label (k8s.io/api node/v1, validation NameIsDNSLabel).
_DNS_LABEL = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\Z")

_RUNC_OPTIONS = sorted(usability.RUNC_OPTION_TYPES)

_WINDOWS_TYPE = "io.containerd.runhcs.v1"

Table = t.Mapping[str, t.Any]


def handler_faults(
    situation: Situation,
    handlers: t.Mapping[str, Table],
    verdicts: t.Mapping[str, usability.Verdict],
    default: t.Optional[str],
) -> t.List[Fault]:
    """Faults of the handlers that are loaded (or would be, where nothing is).

    :param handlers: name → values under configuration key names.
    """
    found: t.List[Fault] = []
    for name in sorted(handlers):
        site = _site(name, situation)
        for check in (_unusable, _runtime_path, _unknown_keys, _options, _snapshotter, _name):
            found.extend(check(name, handlers[name], verdicts[name], site, situation))
    found.extend(_cgroup_drivers(situation, handlers, default))
    return found


class _Site(t.NamedTuple):
    """Where a handler's table stands."""

    file: str
    table: str
    line: int
    declaration: t.Optional[Declaration]

    def fault(
        self, number: int, severity: str, name: str, message: str, fix: str, edits: t.Iterable[Edit] = ()
    ) -> Fault:
        return Fault(number, severity, (name,), self.file, self.table, self.line, message, fix, tuple(edits))

    def at(self, key: str, situation: Situation) -> _Site:
        """The same table, at the line of one of its keys (or of its options)."""
        document = situation.files.documents.get(self.file)
        if document is None or self.declaration is None:
            return self
        path = self.declaration.path
        in_options = document.line_of(path + ("options", key))
        own = document.line_of(path + (key,))
        return self._replace(line=max(in_options, own, self.line))


def _site(name: str, situation: Situation) -> _Site:
    loaded = situation.load.paths if situation.load else []
    sites = [item for item in situation.declarations() if item.handler == name]
    sites.sort(key=lambda item: loaded.index(item.file) if item.file in loaded else -1)
    if not sites:
        return _Site(situation.root, "", 0, None)
    last = sites[-1]
    return _Site(last.file, last.table, last.line, last)


def _unusable(
    name: str, handler: Table, verdict: usability.Verdict, site: _Site, situation: Situation
) -> t.Iterator[Fault]:
    if verdict.usable is not False:
        return
    if handler.get("runtime_type") == _WINDOWS_TYPE:
        yield site.fault(34, INFO, name, "handler %s is for Windows and cannot run here" % name, "Nothing to do.")
        return
    if verdict.kind == "empty_type":
        yield _empty_type(name, verdict, site)
        return
    if verdict.kind == "bad_option":
        key = verdict.reason.split(" ")[0]
        said = "handler %s is loaded, but cannot run: %s" % (name, verdict.reason)
        yield site.at(key, situation).fault(33, ERROR, name, said, "Correct %s and restart containerd." % key)
        return
    fix = "Install what the handler needs and ask again; or take handler %s out." % name
    if verdict.kind == "removed":
        fix = 'Use runtime_type "io.containerd.runc.v2" with options.BinaryName, and restart containerd.'
    yield site.fault(34, ERROR, name, "handler %s is loaded, but cannot run: %s" % (name, verdict.reason), fix)


def _empty_type(name: str, verdict: usability.Verdict, site: _Site) -> Fault:
    said = "handler %s is loaded, but its %s" % (name, verdict.reason)
    children = dotted_children(site.declaration.body) if site.declaration is not None else []
    if children and site.declaration is not None:
        meant = ["%s.%s" % (name, child) for child in children]
        fix = "Write the name in quotes (and mind that a RuntimeClass cannot name a handler with a dot), or without the dot"
        edits = [
            Edit(
                "rename_table",
                site.file,
                toml_key(site.declaration.path + (child,)),
                value=toml_key(site.declaration.path[:-1] + ("%s-%s" % (name, child),)),
            )
            for child in children
        ]
        said += "; [%s.%s] is read as a key of it" % (site.table, toml_key(children[:1]))
        return site.fault(31, ERROR, name, said, fix + "; then restart containerd.", edits)._replace(
            handlers=(name,) + tuple(meant)
        )
    where = site.table or "its table"
    fix = 'Set runtime_type (for runc and its like "io.containerd.runc.v2") in [%s] and restart containerd.' % where
    edits = [Edit("set", site.file, site.table, "runtime_type", "io.containerd.runc.v2")] if site.table else []
    return site.fault(31, ERROR, name, said, fix, edits)


def _runtime_path(
    name: str, handler: Table, verdict: usability.Verdict, site: _Site, situation: Situation
) -> t.Iterator[Fault]:
    rules = situation.running or situation.rules
    written = handler.get("runtime_path") or (site.declaration.body.get("runtime_path") if site.declaration else None)
    if not written or rules is None or rules.honours_runtime_path:
        return
    fix = "Name the shim's absolute path in runtime_type" if rules.absolute_runtime_type else "Put the shim on PATH"
    edits = [Edit("unset", site.file, site.table, "runtime_path")]
    if rules.absolute_runtime_type:
        edits.append(Edit("set", site.file, site.table, "runtime_type", written))
    yield site.at("runtime_path", situation).fault(
        32,
        WARNING,
        name,
        "runtime_path = %r of handler %s is ignored by containerd %s, which looks for %s on its PATH"
        % (written, name, rules.name, usability.shim_of(str(handler.get("runtime_type") or "")) or "the shim"),
        fix + " and restart containerd.",
        edits if site.table else (),
    )


def _unknown_keys(
    name: str, handler: Table, verdict: usability.Verdict, site: _Site, situation: Situation
) -> t.Iterator[Fault]:
    """Keys of a handler's table that this release does not know (2.x says so in its log, 1.x is silent)."""
    rules = situation.running or situation.rules
    if rules is None or site.declaration is None:
        return
    children = dotted_children(site.declaration.body)
    if children and handler.get("runtime_type"):
        yield _too_deep(name, children, site)
    for key, value in site.declaration.body.items():
        known = any(struct_key({key: value}, item, rules) for item in rules.handler_keys)
        if known or key in children or key.lower() in _SAID_ELSEWHERE or value in (None, "", 0, False, [], {}):
            continue
        near = suggest.nearest(key, rules.handler_keys)
        edits = [Edit("unset", site.file, site.table, key)]
        if near and not struct_key(dict(site.declaration.body), near, rules):
            edits.append(Edit("set", site.file, site.table, near, value))
        yield site.at(key, situation).fault(
            57,
            WARNING,
            name,
            "%s = %r of handler %s is not a key that containerd %s knows: it is ignored%s"
            % (key, value, name, rules.name, suggest.did_you_mean(key, rules.handler_keys)),
            "Take %s out%s, and restart containerd." % (key, " or write %s" % near if near else ""),
            edits if site.table else (),
        )


def _too_deep(name: str, children: t.List[str], site: _Site) -> Fault:
    """A handler's table that stands below another handler's."""
    path = site.declaration.path if site.declaration is not None else ()
    edits = [
        Edit("rename_table", site.file, toml_key(path + (child,)), value=toml_key(path[:-1] + (child,)))
        for child in children
    ]
    return site.fault(
        14,
        ERROR,
        name,
        "[%s] stands one level too deep, below handler %s, and is not read" % (toml_key(path + (children[0],)), name),
        "Name the table [%s] and restart containerd." % toml_key(path[:-1] + (children[0],)),
        edits,
    )._replace(handlers=tuple(children))


#: Keys that older releases know or that have a number of their own: 16 (removed), 32 (runtime_path); migrated: sandbox_mode.
_SAID_ELSEWHERE = frozenset("runtime_engine runtime_root runtime_path sandbox_mode".split())


def _options(
    name: str, handler: Table, verdict: usability.Verdict, site: _Site, situation: Situation
) -> t.Iterator[Fault]:
    # What is written counts here: Status of 2.x also lists every option that is not.
    written = site.declaration.body.get("options") if site.declaration is not None else None
    options = written or handler.get("options") or {}
    runtime_type = str(handler.get("runtime_type") or "")
    if not isinstance(options, dict) or runtime_type in ("", LINUX_V1):
        return
    if runtime_type not in usability.RUNC_TYPES:
        yield from _foreign_options(name, options, site, situation)
        return
    known = _RUNC_OPTIONS
    table = "%s.options" % site.table if site.table else ""
    for key in sorted(options):
        same = [other for other in options if other.lower() == key.lower()]
        if key.lower() in (item.lower() for item in known):
            if len(same) > 1 and key == sorted(same)[0] and len({str(options[other]) for other in same}) > 1:
                yield _twice(name, same, options, site, situation, table)
        elif options[key] not in (None, "", 0, False, [], {}):
            yield _unread(name, key, options[key], known, site, situation, table)


def _foreign_options(name: str, options: Table, site: _Site, situation: Situation) -> t.Iterator[Fault]:
    """Another shim than runc's gets the whole table as its ConfigBody (pkg/cri GetRuntimeOptions): runc's options there
    are the shim's own affair (runwasi reads SystemdCgroup), only BinaryName is worth a word."""
    for key in sorted(options):
        if key.lower() == "binaryname" and options[key]:
            yield site.at(key, situation).fault(
                33,
                INFO,
                name,
                "%s = %r of handler %s is handed to its shim as it is: containerd itself runs no such binary"
                % (key, options[key], name),
                "Name the shim in runtime_type where another one is meant.",
            )


def _twice(
    name: str, same: t.List[str], options: Table, site: _Site, situation: Situation, table: str
) -> Fault:
    spelled = sorted(same)
    winner = spelled[-1]
    proper = next((item for item in _RUNC_OPTIONS if item.lower() == winner.lower()), winner)
    edits = [Edit("unset", site.file, table, key) for key in spelled if key != proper] if table else []
    return site.at(winner, situation).fault(
        33,
        WARNING,
        name,
        "handler %s has the option %s in several letter cases (%s); they are one option, and %s = %r holds"
        % (name, proper, ", ".join("%s = %r" % (key, options[key]) for key in spelled), winner, options[winner]),
        "Keep one %s in the options of handler %s, and restart containerd." % (proper, name),
        edits,
    )


def _unread(
    name: str,
    key: str,
    value: t.Any,
    known: t.Sequence[str],
    site: _Site,
    situation: Situation,
    table: str,
) -> Fault:
    near = suggest.nearest(key, known)
    edits = []
    if table:
        edits.append(Edit("unset", site.file, table, key))
        if near:
            edits.append(Edit("set", site.file, table, near, value))
    said = "is not an option of the runc shim and is not read%s" % suggest.did_you_mean(key, known)
    return site.at(key, situation).fault(
        33,
        WARNING,
        name,
        "%s = %r in the options of handler %s %s" % (key, value, name, said),
        "Take %s out%s, and restart containerd." % (key, " or write %s" % near if near else ""),
        edits,
    )


def _cgroup_drivers(situation: Situation, handlers: t.Mapping[str, Table], default: t.Optional[str]) -> t.Iterator[Fault]:
    """SystemdCgroup of the runc-type handlers against the driver that the kubelet uses.

    On 2.x a kubelet from 1.31 on takes the driver from CRI, which answers for the default handler (KEP-4033); on 1.x its
    own configuration holds. Without a kubelet there is nothing to compare with.
    """
    driver = (situation.node.get("kubelet") or {}).get("cgroup_driver")
    rules = situation.running or situation.rules
    if driver not in ("systemd", "cgroupfs") or rules is None or not rules.shows_options:
        return
    asked = handlers.get(default or "") or {}
    over_cri = rules.modern and asked.get("runtime_type") in usability.RUNC_TYPES
    wanted = _systemd(asked) if over_cri else driver == "systemd"
    for name in sorted(handlers):
        if handlers[name].get("runtime_type") not in usability.RUNC_TYPES or _systemd(handlers[name]) == wanted:
            continue
        site = _site(name, situation)
        whose = "the default handler %s has" % default if over_cri else "the kubelet's cgroup driver asks for"
        yield site.fault(
            35,
            # Nobody wrote the built-in runc, and where it is not the default hardly anybody asks for it.
            WARNING if site.declaration is not None or name == default else INFO,
            name,
            "handler %s has SystemdCgroup = %s, but %s %s: its pods fail with `expected cgroupsPath to be of format`"
            % (name, str(not wanted).lower(), whose, str(wanted).lower()),
            "Set SystemdCgroup = %s in the options of handler %s and restart containerd." % (str(wanted).lower(), name),
            (Edit("set", site.file, site.table + ".options", "SystemdCgroup", wanted),) if site.table else (),
        )


def _systemd(handler: Table) -> bool:
    return bool(usability.option(handler.get("options") or {}, "SystemdCgroup"))


def _snapshotter(
    name: str, handler: Table, verdict: usability.Verdict, site: _Site, situation: Situation
) -> t.Iterator[Fault]:
    rules = situation.running or situation.rules
    if not handler.get("snapshotter") or rules is None or rules.snapshotter_for_pulls or not rules.modern:
        return
    if _pulls_with(name, situation) == handler["snapshotter"]:
        return
    table = toml_key(("plugins", NEW_IMAGES, "runtime_platforms", name))
    yield site.at("snapshotter", situation).fault(
        36,
        WARNING,
        name,
        "snapshotter %r of handler %s is not used when images are pulled on containerd %s"
        % (handler["snapshotter"], name, rules.name),
        "Set snapshotter in [%s] as well, or upgrade to containerd 2.3." % table,
        [Edit("set", site.file, table, "snapshotter", handler["snapshotter"])] if site.table else (),
    )


def _pulls_with(name: str, situation: Situation) -> t.Any:
    """The snapshotter that the images plugin has for pulls of a handler, where it is set there."""
    images = situation.load.plugins.get(NEW_IMAGES) if situation.load else None
    platforms = images.get("runtime_platforms") if isinstance(images, dict) else None
    entry = platforms.get(name) if isinstance(platforms, dict) else None
    return entry.get("snapshotter") if isinstance(entry, dict) else None


def _name(
    name: str, handler: Table, verdict: usability.Verdict, site: _Site, situation: Situation
) -> t.Iterator[Fault]:
    path = site.declaration.path if site.declaration else ()
    yield from name_fault(name, site.file, site.table, site.line, path, "containerd")


def name_fault(
    name: str, file: str, table: str, line: int, path: t.Tuple[str, ...], engine: str
) -> t.Iterator[Fault]:
    """37: a handler that no RuntimeClass can name.

    :param path: the key path of its table, () where it has none. :param engine: as the fix calls it.
    """
    if _DNS_LABEL.match(name):
        return
    better = re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-") or "handler"
    edits = (Edit("rename_table", file, table, value=toml_key(path[:-1] + (better,))),) if path else ()
    message = (
        "handler %r is loaded, but no RuntimeClass can name it: a handler there is a DNS label (lower-case letters, "
        "digits and -)" % name
    )
    yield Fault(37, WARNING, (name,), file, table, line, message, "Rename the handler (%s) and restart %s." % (better, engine), edits)


__all__ = ("handler_faults", "name_fault")
