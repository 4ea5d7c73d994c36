# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a declaration in a file is not what the daemon has: one cause per declaration.

Each rule is a cell of the table "which file content is effective" (by release line, file version and plugin name); the
simulated start decides *whether* a handler is lost, this module says *why*.
"""

from __future__ import annotations

import posixpath
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import go_glob
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import (
    Declaration,
    Document,
    KeyPath,
    Tree,
    toml_key,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.catalogue import ERROR, Edit, Fault
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.load import field, struct_key, v1_plugin_name
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import (
    NEW_RUNTIME,
    OLD_CRI,
    SHORT_CRI,
    LineRules,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.situation import (
    Situation,
    is_template,
)

_CONFD = "/etc/containerd/conf.d/"


def explain(declaration: Declaration, situation: Situation) -> t.List[Fault]:
    """The reasons in the files for which this declaration is not effective at the next start; none: it is effective.

    Only for a start that is neither refused nor undetermined.
    """
    load, rules = situation.load, situation.rules
    if load is None or rules is None:
        return []
    document = next((item for item in load.order if item.path == declaration.file), None)
    if document is None:
        linked = _relative_to_link(declaration, situation)
        return [fault for fault in (linked, _not_imported(declaration, situation)) if fault is not None]
    found = (
        _wrong_plugin(declaration, document, situation)
        or _wrong_level(declaration, document, situation)
        or _replaced(declaration, document, situation)
    )
    if found is None:
        return []
    if found.id == 50 and (document.stated_version or 0) > 2 and load.version <= 2:
        return [found, _hidden_version(declaration, document, situation)]
    # An old table beside a new one in the same file would be dropped even where it was read.
    both = found.id == 6 and declaration.kind == "old" and _has_runtimes(document, NEW_RUNTIME, rules)
    return [found, _both_names(declaration)] if both else [found]


def _fault(
    number: int, declaration: Declaration, message: str, fix: str, edits: t.Iterable[Edit] = (), line: int = 0
) -> Fault:
    return Fault(
        number,
        ERROR,
        (declaration.handler,),
        declaration.file,
        declaration.table,
        line or declaration.line,
        message,
        fix,
        tuple(edits),
    )


# --- the file is not read at all -----------------------------------------------------------------------------------


def _not_imported(declaration: Declaration, situation: Situation) -> Fault:
    load = situation.load
    path = declaration.file
    if load.truncated_at is not None:
        return _fault(
            22,
            declaration,
            "%s is skipped: %s imports %s, which does not exist, and this release drops that file and all later ones"
            % (path, load.truncated_at.file, load.truncated_at.pattern),
            "Create %s or take it out of imports in %s, then restart containerd."
            % (load.truncated_at.resolved, load.truncated_at.file),
            [Edit("discard", load.truncated_at.file, "", "imports", load.truncated_at.pattern)],
        )
    if is_template(path):
        return _fault(
            25,
            declaration,
            "%s is a template; what it rendered (%s) does not have this handler" % (path, situation.root),
            "Restart the service that renders the template, then look at %s again." % situation.root,
        )
    if situation.belongs_elsewhere(path):
        return _elsewhere(declaration, situation)
    return (
        _merged_elsewhere(declaration, situation)
        or _misplaced_imports(declaration, situation)
        or _relative_glob(declaration, situation)
        or _printed_confd(declaration, situation)
        or _no_pattern(declaration, situation)
    )


def _elsewhere(declaration: Declaration, situation: Situation) -> Fault:
    fault = _fault(
        24,
        declaration,
        "%s is not read: the containerd that serves the kubelet was started with %s"
        % (declaration.file, situation.root),
        "Put the handler where this runtime reads it (%s), and restart it." % situation.root,
    )
    return fault._replace(severity="warning")


def _misplaced_imports(declaration: Declaration, situation: Situation) -> t.Optional[Fault]:
    for document in situation.load.order:
        for key_path, patterns in _nested_imports(document.tree or {}, ()):
            if any(_would_match(pattern, document.path, declaration.file) for pattern in patterns):
                table = toml_key(key_path[:-1])
                return _fault(
                    20,
                    declaration,
                    "imports stands below the table header [%s] in %s, line %d, and is a key of that table: "
                    "nothing is imported by it" % (table, document.path, document.line_of(key_path)),
                    "Move the imports line of %s above its first table header, then restart containerd."
                    % document.path,
                    [
                        Edit("unset", document.path, table, key_path[-1]),
                        *(Edit("add", document.path, "", "imports", pattern) for pattern in patterns),
                    ],
                )._replace(file=document.path, table=table, line=document.line_of(key_path))
    return None


def _nested_imports(tree: Tree, path: KeyPath) -> t.Iterator[t.Tuple[KeyPath, t.List[str]]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _nested_imports(value, path + (key,))
        elif path and key.lower() == "imports" and isinstance(value, list):
            yield path + (key,), [item for item in value if isinstance(item, str)]


def _would_match(pattern: str, importer: str, path: str) -> bool:
    """The pattern, read relative to its file, stands for the path."""
    resolved = pattern if pattern.startswith("/") else go_glob.join(posixpath.dirname(importer), pattern)
    if "*" not in pattern:
        return go_glob.clean(resolved) == path
    try:
        return bool(go_glob.glob(go_glob.clean(resolved), [path]))
    except go_glob.GlobSyntaxError:
        return False


def _relative_to_link(declaration: Declaration, situation: Situation) -> t.Optional[Fault]:
    """A relative import of a file that is reached by a symbolic link is relative to the link, not to its target."""
    for use in situation.load.imports:
        target = situation.files.target(use.file)
        if target == use.file or use.pattern.startswith("/") or not _would_match(use.pattern, target, declaration.file):
            continue
        absolute = go_glob.join(posixpath.dirname(target), use.pattern)
        return _fault(
            24,
            declaration,
            "%s is a link to %s, and its relative import %r is looked up beside the link (%s), not beside the target"
            % (use.file, target, use.pattern, use.resolved),
            "Write the import as an absolute path (%s) and restart containerd." % absolute,
            [Edit("discard", target, "", "imports", use.pattern), Edit("add", target, "", "imports", absolute)],
        )._replace(file=use.file, table="", line=use.line)
    return None


#: Directories whose files a distribution merges itself: (directory, who, where the result is written).
_MERGED_BY_DISTRIBUTION = (("/etc/k0s/containerd.d/", "k0s", "/run/k0s/containerd-cri.toml"),)


def _merged_elsewhere(declaration: Declaration, situation: Situation) -> t.Optional[Fault]:
    for directory, product, result in _MERGED_BY_DISTRIBUTION:
        if declaration.file.startswith(directory):
            return _fault(
                25,
                declaration,
                "%s is merged into %s by %s when it starts, and the result does not have this handler"
                % (declaration.file, result, product),
                "Restart %s; if the handler is still missing, look at its log for this file." % product,
            )
    return None


def _relative_glob(declaration: Declaration, situation: Situation) -> t.Optional[Fault]:
    for use in situation.load.imports:
        relative = use.is_glob and not use.pattern.startswith("/") and situation.rules.relative_glob_from_cwd
        if relative and _would_match(use.pattern, use.file, declaration.file):
            absolute = go_glob.join(posixpath.dirname(use.file), use.pattern)
            return _fault(
                19,
                declaration,
                "the relative import %r of %s is looked up from the daemon's working directory (%s) by containerd %s, "
                "not from the file's own" % (use.pattern, use.file, use.resolved, situation.rules.name),
                "Write it as an absolute path (%s) in %s and restart containerd." % (absolute, use.file),
                [
                    Edit("discard", use.file, "", "imports", use.pattern),
                    Edit("add", use.file, "", "imports", absolute),
                ],
            )._replace(file=use.file, table="", line=use.line)
    return None


def _printed_confd(declaration: Declaration, situation: Situation) -> t.Optional[Fault]:
    inside = posixpath.dirname(declaration.file) + "/" == _CONFD and declaration.file.endswith(".toml")
    if not (inside and situation.rules.prints_confd):
        return None
    pattern = _CONFD + "*.toml"
    missing = situation.load.root_missing
    edits = () if missing else (Edit("add", situation.root, "", "imports", pattern),)
    what = "does not exist" if missing else "does not import it"
    return _fault(
        21,
        declaration,
        "`containerd config dump` prints %s, but the daemon follows only imports that a file states, and %s %s"
        % (pattern, situation.root, what),
        "Write imports = [%r] at the top of %s and restart containerd." % (pattern, situation.root),
        edits,
    )


def _no_pattern(declaration: Declaration, situation: Situation) -> Fault:
    load = situation.load
    patterns = ["%s (%s)" % (use.pattern, use.file) for use in load.imports]
    said = "no file imports it; the imports are %s" % ", ".join(patterns) if patterns else "no file imports anything"
    misnamed = _misnamed_imports(situation, declaration.file)
    edits = [Edit("add", situation.root, "", "imports", declaration.file)]
    if load.root_missing:
        said, edits = "%s does not exist, so nothing is imported" % situation.root, []
    if misnamed is not None:
        document, key = misnamed
        said = "%s, line %d, has the key %r, which containerd does not know; imports is meant" % (
            document.path,
            document.line_of((key,)),
            key,
        )
        edits.append(Edit("unset", document.path, "", key))
    return _fault(
        18,
        declaration,
        "%s is not loaded: %s" % (declaration.file, said),
        "Add %s to imports in %s (before any table) and restart containerd." % (declaration.file, situation.root),
        edits,
    )


def _misnamed_imports(situation: Situation, path: str) -> t.Optional[t.Tuple[Document, str]]:
    """A top-level list under another name than imports that would have caught the path."""
    for document in situation.load.order:
        for key, value in (document.tree or {}).items():
            if not isinstance(value, list) or struct_key({key: value}, "imports", situation.rules):
                continue
            if any(isinstance(item, str) and _would_match(item, document.path, path) for item in value):
                return document, key
    return None


# --- the file is read, its table is not ------------------------------------------------------------------------------


def _wrong_plugin(declaration: Declaration, document: Document, situation: Situation) -> t.Optional[Fault]:
    if declaration.kind in ("unknown", "unquoted", "none", "images"):
        return _unknown_plugin(declaration, situation)
    if not situation.rules.modern:
        return _wrong_plugin_1x(declaration, document, situation)
    if situation.rules.migration == "per_file":
        return _wrong_plugin_per_file(declaration, document, situation)
    return _wrong_plugin_merged(declaration, document, situation)


def _right_plugin(document: Document, situation: Situation) -> str:
    """The plugin name that a file of this version must use on this line."""
    version = document.stated_version or 0
    if situation.rules.modern:
        return NEW_RUNTIME if version >= 3 or (version == 0 and situation.rules.migration == "merged") else OLD_CRI
    return SHORT_CRI if situation.load is not None and situation.load.version == 1 else OLD_CRI


def _renamed(declaration: Declaration, plugin: str) -> t.List[Edit]:
    path = ("plugins", plugin, "containerd", "runtimes", declaration.path[-1])
    return [Edit("rename_table", declaration.file, declaration.table, value=toml_key(path))]


def _unknown_plugin(declaration: Declaration, situation: Situation) -> Fault:
    document = situation.files.documents.get(declaration.file) or Document(declaration.file, "")
    right = _right_plugin(document, situation)
    if declaration.kind == "unquoted":
        said = "the plugin id is written without quotes, so TOML reads it as nested tables"
    elif declaration.kind == "none":
        said = "the table stands outside [plugins]"
    else:
        said = "no plugin with handlers is called %r" % declaration.plugin
    return _fault(
        13,
        declaration,
        "[%s] is ignored: %s" % (declaration.table, said),
        'Name the table [plugins."%s".containerd.runtimes.%s] and restart containerd.' % (right, declaration.handler),
        _renamed(declaration, right),
    )


def _wrong_plugin_1x(declaration: Declaration, document: Document, situation: Situation) -> t.Optional[Fault]:
    load = situation.load
    name = situation.rules.name
    if declaration.kind == "new":
        return _fault(
            50,
            declaration,
            "containerd %s does not know the plugin %s and ignores its tables without a word" % (name, NEW_RUNTIME),
            'On containerd 1.x use version = 2 and [plugins."%s".containerd.runtimes.%s], then restart containerd.'
            % (OLD_CRI, declaration.handler),
            _renamed(declaration, OLD_CRI) + _version_edits(document, 2),
        )
    if declaration.kind == "old" and load.version == 1:
        lowering = _lowering_file(document, situation)
        if lowering is not None:
            return _fault(
                9,
                declaration,
                "%s states version 1 and is read last, so the whole configuration counts as version 1 and %s is not read"
                % (lowering.path, OLD_CRI),
                "State the same version in every file (version = 2 in %s) and restart containerd." % lowering.path,
                _version_edits(lowering, 2),
            )
        return _fault(
            5,
            declaration,
            "no file states a version, so containerd %s reads version 1 and ignores the long plugin name %s"
            % (name, OLD_CRI),
            "Write version = 2 at the top of %s and restart containerd." % document.path,
            _version_edits(document, 2),
        )
    if declaration.kind == "short" and load.version != 1:
        return _fault(
            12,
            declaration,
            "the short plugin name %r belongs to version 1 files; the configuration is read as version %d"
            % (SHORT_CRI, load.version),
            'Name the table [plugins."%s".containerd.runtimes.%s] and restart containerd.'
            % (OLD_CRI, declaration.handler),
            _renamed(declaration, OLD_CRI),
        )
    return None


def _hidden_version(declaration: Declaration, document: Document, situation: Situation) -> Fault:
    """1.x: the last stated version holds, so an older drop-in hides from the check that the root is too new."""
    load = situation.load
    later = [item for item in load.order if item is not document and 0 < (item.stated_version or 0) <= 2]
    winner = later[-1] if later else document
    return _fault(
        9,
        declaration,
        "%s states version %s and is read last, so nothing says that containerd %s cannot read %s (version %s)"
        % (winner.path, winner.stated_version, _line(situation), document.path, document.stated_version),
        "Write every file as version 2 with the plugin name %s, and restart containerd." % OLD_CRI,
        lowered(document, 2),
    )


def _version_edits(document: Document, version: int) -> t.List[Edit]:
    """Edits that make a file state a version; one that was read as version 1 gets the plugin names of later ones, all of it."""
    edits = [Edit("prepend" if document.stated_version is None else "set", document.path, "", "version", version)]
    return edits + _full_names(document) if (document.stated_version or 0) < 2 <= version else edits


def _full_names(document: Document) -> t.List[Edit]:
    """Edits that replace every short plugin name of a version 1 file by its id: the tables, and the two lists of names."""
    tree = document.tree or {}
    plugins = tree.get("plugins")
    present = plugins if isinstance(plugins, dict) else {}
    edits = [
        Edit("rename_table", document.path, toml_key(("plugins", name)), value=toml_key(("plugins", v1_plugin_name(name))))
        for name in present
        # An id that was written without quotes is no name, and a table of the full id has the place already.
        if "." not in name and name != "io" and v1_plugin_name(name) not in present
    ]
    for key in ("disabled_plugins", "required_plugins"):
        names = tree.get(key)
        for name in names if isinstance(names, list) else ():
            if isinstance(name, str) and "." not in name:
                edits += [Edit("discard", document.path, "", key, name), Edit("add", document.path, "", key, v1_plugin_name(name))]
    return edits


def lowered(document: Document, version: int) -> t.List[Edit]:
    """Edits that give a file an older version and its CRI tables the old plugin name."""
    edits = [Edit("set", document.path, "", "version", version)]
    if version < 3 and NEW_RUNTIME in ((document.tree or {}).get("plugins") or {}):
        old, new = toml_key(("plugins", NEW_RUNTIME)), toml_key(("plugins", OLD_CRI))
        edits.append(Edit("rename_table", document.path, old, value=new))
    return edits


def _lowering_file(document: Document, situation: Situation) -> t.Optional[Document]:
    """The other file whose explicit version 1 makes this one's version count for nothing."""
    if (document.stated_version or 0) < 2:
        return None
    return next((item for item in reversed(situation.load.order) if item.stated_version == 1), None)


def _has_runtimes(document: Document, plugin: str, rules: LineRules) -> bool:
    plugins = field(document.tree or {}, "plugins", rules) or {}
    body = plugins.get(plugin)
    containerd = body.get("containerd") if isinstance(body, dict) else None
    return isinstance(containerd, dict) and "runtimes" in containerd


def _both_names(declaration: Declaration) -> Fault:
    return _fault(
        11,
        declaration,
        "%s has runtimes under both plugin names; the ones under %s win as a whole and those under %s are dropped"
        % (declaration.file, NEW_RUNTIME, declaration.plugin),
        'Move the handler to [plugins."%s".containerd.runtimes.%s] and restart containerd.'
        % (NEW_RUNTIME, declaration.handler),
        _renamed(declaration, NEW_RUNTIME),
    )


def _wrong_plugin_per_file(declaration: Declaration, document: Document, situation: Situation) -> t.Optional[Fault]:
    """2.3 and later: every file is migrated from its own version."""
    version = document.stated_version or 0
    if declaration.kind == "short" and version >= 2:
        return _short_on_2x(declaration, version)
    if declaration.kind != "new" and version >= 4:
        return _fault(
            6,
            declaration,
            "%s states version %d, and tables of %s are not migrated from there: they are ignored"
            % (document.path, version, declaration.plugin),
            'Name the table [plugins."%s".containerd.runtimes.%s] and restart containerd.'
            % (NEW_RUNTIME, declaration.handler),
            _renamed(declaration, NEW_RUNTIME),
        )
    if declaration.kind != "new" and _has_runtimes(document, NEW_RUNTIME, situation.rules):
        return _both_names(declaration)
    return None


def _short_on_2x(declaration: Declaration, version: int) -> Fault:
    plugin = OLD_CRI if version == 2 else NEW_RUNTIME
    return _fault(
        12,
        declaration,
        "the short plugin name %r belongs to version 1 files; in a version %d file its tables are dead, and nothing "
        "is printed" % (SHORT_CRI, version),
        'Name the table [plugins."%s".containerd.runtimes.%s] and restart containerd.' % (plugin, declaration.handler),
        _renamed(declaration, plugin),
    )


def _wrong_plugin_merged(declaration: Declaration, document: Document, situation: Situation) -> t.Optional[Fault]:
    """2.0 to 2.2: old names are migrated once, and only where the merged version is 2."""
    load, rules = situation.load, situation.rules
    version = document.stated_version or 0
    if declaration.kind == "new":
        return None
    if declaration.kind == "short" and version >= 2:
        return _short_on_2x(declaration, version)
    if load.version >= 3:
        return _old_names_in_newer(declaration, document, situation)
    if _has_runtimes(document, NEW_RUNTIME, rules):
        return _both_names(declaration)
    hiding = [item for item in load.order if item is not document and _has_runtimes(item, NEW_RUNTIME, rules)]
    if not hiding:
        return None
    return _hidden_by_new_names(declaration, hiding[-1], situation)


def _hidden_by_new_names(declaration: Declaration, hiding: Document, situation: Situation) -> Fault:
    version = hiding.stated_version or 0
    if version >= 3:
        return _fault(
            8,
            declaration,
            "%s (version %d) has runtimes under %s; on containerd %s they hide, as a whole and without a warning, those "
            "that %s has under %s"
            % (hiding.path, version, NEW_RUNTIME, _line(situation), declaration.file, declaration.plugin),
            "Write %s with version = %d and the plugin name %s, then restart containerd."
            % (declaration.file, version, NEW_RUNTIME),
            _renamed(declaration, NEW_RUNTIME)
            + _version_edits(situation.files.document(declaration.file) or hiding, version),
        )
    edits = [
        Edit("rename_table", hiding.path, other.table, value=_under(OLD_CRI, other))
        for other in hiding.declarations
        if other.kind == "new" and other.level == "right"
    ]
    return _fault(
        10,
        declaration,
        "%s uses the new plugin name %s in a version 2 configuration; on containerd %s its runtimes hide, as a whole and "
        "without a warning, those under %s" % (hiding.path, NEW_RUNTIME, _line(situation), OLD_CRI),
        "Use the old plugin name %s in %s too, and restart containerd." % (OLD_CRI, hiding.path),
        edits,
    )


def _under(plugin: str, declaration: Declaration) -> str:
    return toml_key(("plugins", plugin, "containerd", "runtimes", declaration.path[-1]))


def _line(situation: Situation) -> str:
    return situation.rules.name if situation.rules is not None else "?"


def _old_names_in_newer(declaration: Declaration, document: Document, situation: Situation) -> Fault:
    """The merged version is 3, so names of version 2 are not migrated."""
    load = situation.load
    version = document.stated_version or 0
    raising = [item for item in load.order if item is not document and (item.stated_version or 0) >= 3]
    if version == 2 and raising:
        return _fault(
            7,
            declaration,
            "%s states version %d, so the merged configuration counts as version %d and the %s tables of %s (version 2) "
            "are not migrated" % (raising[-1].path, raising[-1].stated_version, load.version, OLD_CRI, document.path),
            "Write every file in the version of the root file (%s), then restart containerd; "
            "containerd 2.3.5 and later take both." % situation.root,
            lowered(raising[-1], version),
        )
    if version >= 3:
        return _fault(
            6,
            declaration,
            "%s states version %d, but names the plugin %s, which containerd %s does not read in such a file"
            % (document.path, version, declaration.plugin, _line(situation)),
            'Name the table [plugins."%s".containerd.runtimes.%s] and restart containerd.'
            % (NEW_RUNTIME, declaration.handler),
            _renamed(declaration, NEW_RUNTIME),
        )
    return _fault(
        4,
        declaration,
        "%s states %s, and containerd %s then takes it for version %d without migrating its CRI tables: they are ignored"
        % (document.path, "version 1" if version == 1 else "no version", _line(situation), load.version),
        "Write version = 2 at the top of %s and use the plugin name %s, then restart containerd."
        % (document.path, OLD_CRI),
        (_renamed(declaration, OLD_CRI) if declaration.kind == "short" else []) + _version_edits(document, 2)
        if not raising
        else _renamed(declaration, NEW_RUNTIME),
    )


def _wrong_level(declaration: Declaration, document: Document, situation: Situation) -> t.Optional[Fault]:
    rules, load = situation.rules, situation.load
    if declaration.level == "right" and _below_field(declaration, rules):
        return None
    if declaration.level == "promoted" and rules.promotes_runtimes:
        body = load.plugins.get(declaration.plugin)
        if isinstance(body, dict) and not isinstance(field(body, "containerd", rules), dict):
            return None
    plugin = declaration.plugin
    return _fault(
        14,
        declaration,
        "[%s] is not where containerd %s looks for handlers (containerd.runtimes below the plugin)"
        % (declaration.table, rules.name),
        'Name the table [plugins."%s".containerd.runtimes.%s] and restart containerd.' % (plugin, declaration.handler),
        [Edit("rename_table", declaration.file, declaration.table, value=_under(plugin, declaration))],
    )


def _below_field(declaration: Declaration, rules: LineRules) -> bool:
    """The path's own spelling of ``containerd`` and ``runtimes`` is one that the daemon matches."""
    below = declaration.path[2:4]
    names = ("containerd", "runtimes")
    return all(struct_key({part: 0}, name, rules) == part for part, name in zip(below, names))


def _replaced(declaration: Declaration, document: Document, situation: Situation) -> t.Optional[Fault]:
    """1.x: a later file has a table for the same plugin, and it replaces this one."""
    load, rules = situation.load, situation.rules
    if rules.plugin_merge != "replace":
        return None
    later = load.order[load.order.index(document) + 1 :]
    for other in reversed(later):
        plugins = field(other.tree or {}, "plugins", rules) or {}
        if declaration.path[1] in plugins:
            line = other.line_of(("plugins", declaration.path[1])) or 1
            return _fault(
                2,
                declaration,
                "%s (line %d) has a [plugins.%s] of its own, and containerd %s replaces the whole table of %s by it"
                % (other.path, line, toml_key([declaration.path[1]]), rules.name, document.path),
                "On containerd 1.x keep one complete CRI section in one file: move what %s has into %s and take it "
                "out of %s; or upgrade to containerd 2.x." % (document.path, other.path, document.path),
                _moved(declaration, other),
            )
    return None


def _moved(declaration: Declaration, other: Document) -> t.List[Edit]:
    return list(_set_table(other.path, declaration.table, declaration.body))


def _set_table(file: str, table: str, body: Tree) -> t.Iterator[Edit]:
    for key, value in body.items():
        if isinstance(value, dict):
            yield from _set_table(file, "%s.%s" % (table, toml_key([key])), value)
        else:
            yield Edit("set", file, table, key, value)


__all__ = ("explain", "lowered")
