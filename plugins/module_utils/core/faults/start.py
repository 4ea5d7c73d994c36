# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why containerd would not start with these files, or starts without serving CRI."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.cri_section import Down, Section
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import Document, KeyPath, toml_key
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.catalogue import (
    ERROR,
    INFO,
    WARNING,
    Edit,
    Fault,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.losses import lowered
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.load import (
    Refusal,
    bad_plugin_ids,
    field,
    has_proxy_type,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import (
    OLD_CRI,
    SHORT_CRI,
    later_lines,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.situation import Situation

_AGAIN = " Then start containerd."


def start_faults(situation: Situation, handlers: t.Sequence[str]) -> t.List[Fault]:
    """Faults of a next start that is refused or does not serve CRI.

    :param handlers: the handlers that this costs, or would cost.
    """
    load = situation.load
    if load is None:
        return []
    if load.refusal is not None:
        return _refusals(load.refusal, situation, tuple(handlers))
    if situation.section is not None and situation.section.down is not None:
        return _cri_down(situation.section, situation.section.down, situation, tuple(handlers))
    return []


def _refusals(refusal: Refusal, situation: Situation, handlers: t.Tuple[str, ...]) -> t.List[Fault]:
    """The refusal, and its like in the same file: Go names one of several bad plugin ids, in no fixed order."""
    alike = bad_plugin_ids(situation.load) if refusal.kind == "plugin_uri" else [refusal]
    return [_refused(item, situation, handlers) for item in alike]


def _refused(refusal: Refusal, situation: Situation, handlers: t.Tuple[str, ...]) -> Fault:
    number, said, fix, edits = _REFUSALS[refusal.kind](refusal, situation)
    now = "does not start" if situation.cri_ready is not True else "runs, and will not start again"
    message = "containerd %s: %s" % (now, said)
    return Fault(
        number, ERROR, handlers, refusal.file, refusal.table, refusal.line, message, fix + _AGAIN, tuple(edits)
    )


_Explained = t.Tuple[int, str, str, t.List[Edit]]


def _toml(refusal: Refusal, situation: Situation) -> _Explained:
    said = "%s is not valid TOML (%s)" % (refusal.file, refusal.message)
    return 47, said, "Repair %s at line %d." % (refusal.file, refusal.line), []


def _bom(refusal: Refusal, situation: Situation) -> _Explained:
    said = "%s starts with a UTF-8 byte order mark, which this release does not take" % refusal.file
    return 48, said, "Save %s without a byte order mark." % refusal.file, [Edit("drop_bom", refusal.file)]


def _missing_import(refusal: Refusal, situation: Situation) -> _Explained:
    said = "%s imports %s, which does not exist (or is a link to nothing)" % (refusal.file, refusal.message)
    if "*" in str(refusal.value):
        # A pattern finds only what is there: this is a link, and without the pattern every file beside it would be lost.
        fix = "Remove the link %s, which the pattern %r of %s finds, or create its target." % (refusal.message, refusal.value, refusal.file)
        return 22, said, fix, []
    fix = "Create %s, or take %r out of imports in %s." % (refusal.message, refusal.value, refusal.file)
    return 22, said, fix, [Edit("discard", refusal.file, "", "imports", refusal.value)]


def _directory(refusal: Refusal, situation: Situation) -> _Explained:
    said = "%s imports %s, which is a directory" % (refusal.file, refusal.message)
    fix = "Move %s out of reach of the pattern %r, or narrow the pattern to *.toml." % (refusal.message, refusal.value)
    narrow = str(refusal.value) + ".toml" if str(refusal.value).endswith("*") else None
    edits = [Edit("discard", refusal.file, "", "imports", refusal.value)]
    if narrow:
        edits.append(Edit("add", refusal.file, "", "imports", narrow))
    return 22, said, fix, edits


def _bad_glob(refusal: Refusal, situation: Situation) -> _Explained:
    said = "an import pattern of %s is malformed: %s" % (refusal.file, refusal.message)
    return 53, said, "Correct the pattern in imports of %s." % refusal.file, []


def _version(refusal: Refusal, situation: Situation) -> _Explained:
    highest = situation.rules.max_version
    if situation.rules.modern:
        fix = "State version = %s in %s, with the plugin names of that version; or upgrade containerd." % (
            highest,
            refusal.file,
        )
        return 49, refusal.message, fix, [Edit("set", refusal.file, "", "version", highest)]
    document = situation.files.document(refusal.file)
    fix = "State version = 2 in %s and name the plugin %s; or upgrade to containerd 2.x." % (refusal.file, OLD_CRI)
    if document is None:
        return 49, refusal.message, fix, []
    edits = lowered(document, 2)
    if any(_has_cri_table(other) for other in situation.load.order if other.path != document.path):
        # Under the name that 1.x reads, this file's section would replace the other's as a whole.
        edits = edits[:1]
    return 49, refusal.message, fix, edits


def _has_cri_table(document: Document) -> bool:
    plugins = (document.tree or {}).get("plugins")
    return isinstance(plugins, dict) and OLD_CRI in plugins


def _newer_dropin(refusal: Refusal, situation: Situation) -> _Explained:
    document = situation.files.document(refusal.file)
    root = situation.files.document(situation.root)
    root_version = (root.stated_version if root else None) or 2
    stated = (document.stated_version if document else None) or 0
    number = 40 if stated >= 4 else 7
    said = "%s (%s): %s" % (refusal.file, "version %d" % stated, refusal.message)
    fix = (
        "Give %s the version that %s states (%d) and the plugin names of that version. `config dump` prints the "
        "highest version that containerd knows, not the file's; containerd 2.3.5 and later take both."
        % (refusal.file, situation.root, root_version)
    )
    return number, said, fix, lowered(document, root_version) if document is not None else []


def _plugin_uri(refusal: Refusal, situation: Situation) -> _Explained:
    name = refusal.key
    number = 12 if name == SHORT_CRI else 13
    fix = 'Name the table with its full id, in quotes: [plugins."%s"] in %s, line %d.' % (
        OLD_CRI,
        refusal.file,
        refusal.line,
    )
    document = situation.files.document(refusal.file)
    return number, refusal.message, fix, _full_names(document, name) if document is not None else []


def _full_names(document: Document, name: str) -> t.List[Edit]:
    if name == SHORT_CRI:
        old, new = toml_key(("plugins", SHORT_CRI)), toml_key(("plugins", OLD_CRI))
        return [Edit("rename_table", document.path, old, value=new)]
    unquoted = [item for item in document.declarations if item.kind == "unquoted" and item.path[1] == name]
    edits = []
    for item in unquoted:
        path = ("plugins", item.plugin) + item.path[1 + item.plugin.count(".") + 1 :]
        edits.append(Edit("rename_table", document.path, item.table, value=toml_key(path)))
    return edits


def _disabled_uri(refusal: Refusal, situation: Situation) -> _Explained:
    fix = "Write the full plugin id in disabled_plugins of %s, or take %r out." % (refusal.file, refusal.value)
    return 54, refusal.message, fix, [Edit("discard", refusal.file, "", refusal.key, refusal.value)]


def _wrong_type(refusal: Refusal, situation: Situation) -> _Explained:
    said = "%s, line %d: %s" % (refusal.file, refusal.line, refusal.message)
    return 51, said, "Correct %s in %s, line %d." % (refusal.key, refusal.file, refusal.line), []


def _missing_config(refusal: Refusal, situation: Situation) -> _Explained:
    said = "%s, which -c names, does not exist" % refusal.file
    return 23, said, "Create %s, or correct -c in the unit." % refusal.file, []


def _proxy(refusal: Refusal, situation: Situation) -> _Explained:
    """A drop-in that repeats an entry without its type: the later entry replaces the earlier one as a whole."""
    entries = [(document.tree or {}).get("proxy_plugins") or {} for document in situation.load.order]
    complete = [item[refusal.key] for item in entries if has_proxy_type(item.get(refusal.key))]
    said = "%s: a later file's entry replaces the earlier one as a whole (`plugin: no type`)" % refusal.message
    fix = "Write type and address together in [%s] of %s." % (refusal.table, refusal.file)
    wanted = complete[-1]["type"] if complete else "snapshot"
    return 29, said, fix, [Edit("set", refusal.file, refusal.table, "type", wanted)]


def _dump(refusal: Refusal, situation: Situation) -> _Explained:
    said = "`config dump` of the installed binary fails: %s" % refusal.message
    return 56, said, "Correct what the message names in the files that %s loads." % refusal.file, []


_REFUSALS: t.Dict[str, t.Callable[[Refusal, Situation], _Explained]] = {
    "toml": _toml,
    "bom": _bom,
    "missing_import": _missing_import,
    "directory": _directory,
    "bad_glob": _bad_glob,
    "version": _version,
    "newer_dropin": _newer_dropin,
    "plugin_uri": _plugin_uri,
    "disabled_uri": _disabled_uri,
    "wrong_type": _wrong_type,
    "missing_config": _missing_config,
    "proxy": _proxy,
    "dump": _dump,
}


def _cri_down(section: Section, down: Down, situation: Situation, handlers: t.Tuple[str, ...]) -> t.List[Fault]:
    now = "is not served" if situation.cri_ready is not True else "will not be served after a restart"
    place = _place_of(section, down, situation)
    base = Fault(
        26,
        ERROR,
        handlers,
        place[0],
        place[1],
        place[2],
        "CRI %s although containerd itself runs: %s" % (now, down.message),
        _down_fix(section, down, situation, place[0]),
        tuple(_down_edits(section, down, situation, place[0])),
    )
    if down.kind == "disabled":
        said = base.message.replace(down.plugin, _as_disabled(down, situation), 1)
        return [base._replace(message=said)]
    if down.kind == "default_missing" and down.handler == "runc" and section.written_default is None:
        dropped = "the files define handlers without runc, and containerd %s then drops its built-in runc, which is %s" % (
            situation.rules.name if situation.rules else "?",
            "still the default",
        )
        return [base._replace(id=3, handlers=handlers + ("runc",), message=dropped), base]
    number = 3 if down.kind == "default_missing" and down.handler == "runc" else 27
    return [base._replace(id=number, message="the CRI configuration is rejected: %s" % down.message), base]


def _place_of(section: Section, down: Down, situation: Situation) -> t.Tuple[str, str, int]:
    """(file, table, line) of what brings CRI down."""
    load = situation.load
    if down.kind == "disabled":
        for document in load.order:
            written = field(document.tree or {}, "disabled_plugins", load.rules) or []
            if any(item in (down.plugin, SHORT_CRI) for item in written):
                return document.path, "", document.line_of(("disabled_plugins",))
    for document in reversed(load.order):
        path = _key_below_cri(document, down.key, down.handler)
        if path:
            return document.path, toml_key(path[:-1]), document.line_of(path)
    for document in reversed(load.order):
        for declaration in document.declarations:
            return document.path, declaration.table, declaration.line
    return (load.order[-1].path if load.order else situation.root), "", 0


def _key_below_cri(document: Document, key: str, handler: str) -> KeyPath:
    """The path of a key (of a handler where one is named) in any CRI table of the document, or ()."""
    found: t.List[KeyPath] = []

    def walk(node: t.Dict[str, t.Any], path: KeyPath) -> None:
        for name, value in node.items():
            if name == key and (not handler or handler in path or key == "default_runtime_name"):
                found.append(path + (name,))
            if isinstance(value, dict):
                walk(value, path + (name,))

    if key:
        walk((document.tree or {}).get("plugins") or {}, ("plugins",))
    return found[0] if found else ()


def _down_fix(section: Section, down: Down, situation: Situation, file: str) -> str:
    again = " Then restart containerd."
    if down.kind == "disabled":
        return (
            "Take %s out of disabled_plugins in %s (a drop-in cannot switch it on again)."
            % (_as_disabled(down, situation), file)
            + again
        )
    if down.kind in ("default_missing", "default_empty"):
        name = down.handler or "runc"
        return (
            "Add a table [plugins.%s.containerd.runtimes.%s] with runtime_type, or set default_runtime_name to a handler "
            "that is defined." % (toml_key([section.name]), name) + again
        )
    if down.kind == "mirrors":
        return "Remove either registry.mirrors or registry.config_path." + again
    if down.kind == "base_spec":
        return "Create %s or take base_runtime_spec out of handler %s." % (down.value, down.handler) + again
    if down.kind == "snapshotter":
        return "Install the snapshotter %r as a proxy plugin, or name one that exists." % (down.value,) + again
    return "Remove or correct %s%s." % (down.key, " of handler %s" % down.handler if down.handler else "") + again


def _as_disabled(down: Down, situation: Situation) -> str:
    """The disabled plugin as the files spell it (a version 1 file says cri)."""
    for document in situation.load.order:
        written = field(document.tree or {}, "disabled_plugins", situation.load.rules) or []
        if down.plugin in written:
            return down.plugin
        if down.plugin == OLD_CRI and SHORT_CRI in written:
            return SHORT_CRI
    return down.plugin


def _down_edits(section: Section, down: Down, situation: Situation, file: str) -> t.List[Edit]:
    load = situation.load
    if down.kind == "disabled":
        edits = []
        for document in load.order:
            for item in field(document.tree or {}, "disabled_plugins", load.rules) or []:
                if item in (down.plugin, SHORT_CRI):
                    edits.append(Edit("discard", document.path, "", "disabled_plugins", item))
        return edits
    if down.kind == "default_missing" and down.handler == "runc":
        table = toml_key(("plugins", section.name, "containerd", "runtimes", "runc"))
        return [Edit("set", _section_file(section, situation), table, "runtime_type", "io.containerd.runc.v2")]
    document = situation.files.document(file)
    path = _key_below_cri(document, down.key, down.handler) if document is not None else ()
    if not path or document is None:
        return []
    if down.kind in ("default_missing", "default_empty"):
        good = "runc" if "runc" in section.handlers else (sorted(section.handlers) or ["runc"])[0]
        return [Edit("set", file, toml_key(path[:-1]), path[-1], good)]
    return [Edit("unset", file, toml_key(path[:-1]), path[-1])]


def _section_file(section: Section, situation: Situation) -> str:
    """The file whose CRI table holds last: where a missing handler belongs on 1.x."""
    load = situation.load
    for document in reversed(load.order):
        if section.name in (field(document.tree or {}, "plugins", load.rules) or {}):
            return document.path
    return load.order[-1].path


def later_refusals(situation: Situation) -> t.List[Fault]:
    """Files that load here and stop the daemon of a later release.

    A warning where the next line stops, and for a byte order mark, which nothing but 1.5 to 1.7 takes; else a hint.
    """
    if situation.rules is None or situation.load is None or situation.load.refusal or situation.load.undetermined:
        return []
    for distance, rules in enumerate(later_lines(situation.rules)):
        refusal = situation.start(rules).refusal
        if refusal is not None:
            number, said, fix, edits = _REFUSALS[refusal.kind](refusal, situation)
            near = distance == 0 or number == 48
            message = "these files load on containerd %s, but containerd %s will not start with them: %s" % (
                situation.rules.name,
                rules.name,
                said,
            )
            return [
                Fault(
                    number if number == 48 else 52,
                    WARNING if near else INFO,
                    tuple(sorted(situation.section.handlers)) if situation.section else (),
                    refusal.file,
                    refusal.table,
                    refusal.line,
                    message,
                    fix,
                    tuple(edits),
                )
            ]
    return []


__all__ = ("later_refusals", "start_faults")
