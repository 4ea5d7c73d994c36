# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of settings around the handlers: keys in the wrong home, removed keys, what merging did not keep."""

from __future__ import annotations

import posixpath
import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import suggest
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.cri_section import LINUX_V1
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import (
    Declaration,
    Document,
    KeyPath,
    Tree,
    toml_key,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.catalogue import (
    ERROR,
    INFO,
    WARNING,
    Edit,
    Fault,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.load import (
    IMAGE_CONTAINERD_KEYS,
    IMAGE_KEYS,
    field,
    struct_key,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import (
    NEW_IMAGES,
    NEW_RUNTIME,
    OLD_CRI,
    SHORT_CRI,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.situation import Situation, is_backup

#: cri.v1.runtime has a different key of this name since 2.3 (a duration, not a number).
_RUNTIME_ALSO_HAS = ("stats_collect_period",)

_UNKNOWN_KEY = re.compile(r'Ignoring unknown key.*?\bkey=("[^"]*"|\S+)(?:.*?\bplugin=(\S+))?')


def setting_faults(situation: Situation) -> t.List[Fault]:
    """Every fault of a setting in files that the next start would read."""
    load = situation.load
    if load is None or load.refusal is not None or load.undetermined is not None:
        return []
    found: t.List[Fault] = []
    for check in (
        _wrong_home,
        _removed_keys,
        _legacy_default,
        _misspelled,
        _later_wins,
        _arrays,
        _zero_values,
        _baked,
        _ignored_config,
        _nested_imports,
        _unexpanded_imports,
    ):
        found.extend(check(situation))
    return found


def _plugin_tables(situation: Situation, plugin: str) -> t.Iterator[t.Tuple[Document, Tree]]:
    for document in situation.load.order:
        body = (field(document.tree or {}, "plugins", situation.load.rules) or {}).get(plugin)
        if isinstance(body, dict):
            yield document, body


def _wrong_home(situation: Situation) -> t.Iterator[Fault]:
    """Keys of the images plugin in the runtime plugin's table (2.x)."""
    if not situation.rules.modern:
        return
    for document, body in _plugin_tables(situation, NEW_RUNTIME):
        for key in ("sandbox_image",) + IMAGE_KEYS:
            if key in body and key not in _RUNTIME_ALSO_HAS:
                home = ("plugins", NEW_IMAGES, "pinned_images") if key == "sandbox_image" else ("plugins", NEW_IMAGES)
                yield _homeless(document, ("plugins", NEW_RUNTIME, key), body[key], home)
        containerd = body.get("containerd")
        for key in IMAGE_CONTAINERD_KEYS if isinstance(containerd, dict) else ():
            if key in containerd:
                path = ("plugins", NEW_RUNTIME, "containerd", key)
                yield _homeless(document, path, containerd[key], ("plugins", NEW_IMAGES))


def _homeless(document: Document, path: KeyPath, value: t.Any, home: KeyPath) -> Fault:
    name = "sandbox" if path[-1] == "sandbox_image" else path[-1]
    edits: t.List[Edit] = []
    if not isinstance(value, dict):
        edits = [
            Edit("unset", document.path, toml_key(path[:-1]), path[-1]),
            Edit("set", document.path, toml_key(home), name, value),
        ]
    return Fault(
        15,
        WARNING,
        (),
        document.path,
        toml_key(path[:-1]),
        document.line_of(path),
        "%s stands under %s, where containerd 2.x does not read it; the default holds" % (path[-1], NEW_RUNTIME),
        "Move it to [%s] as %s and restart containerd." % (toml_key(home), name),
        tuple(edits),
    )


def _removed_keys(situation: Situation) -> t.Iterator[Fault]:
    """Keys that containerd 2.0 no longer knows; a file that is not read at all is explained elsewhere."""
    if not situation.rules.modern:
        return
    for plugin in (OLD_CRI, NEW_RUNTIME, "cri"):
        for document, body in _plugin_tables(situation, plugin):
            containerd = body.get("containerd") if isinstance(body.get("containerd"), dict) else {}
            for key in ("default_runtime", "untrusted_workload_runtime"):
                table = containerd.get(key)
                if isinstance(table, dict) and table.get("runtime_type"):
                    yield _removed_table(document, ("plugins", plugin, "containerd", key), table)
            if body.get("systemd_cgroup") is True:
                yield _removed(document, ("plugins", plugin, "systemd_cgroup"), "options.SystemdCgroup of each handler")
            yield from _removed_handler_keys(document, plugin, containerd)


def _removed_handler_keys(document: Document, plugin: str, containerd: Tree) -> t.Iterator[Fault]:
    runtimes = containerd.get("runtimes")
    for name, handler in (runtimes if isinstance(runtimes, dict) else {}).items():
        for key, better in (("runtime_engine", "options.BinaryName"), ("runtime_root", "options.Root")):
            if isinstance(handler, dict) and handler.get(key) and handler.get("runtime_type") != LINUX_V1:
                path = ("plugins", plugin, "containerd", "runtimes", name, key)
                yield _removed(document, path, better, (name,))


def _removed(document: Document, path: KeyPath, better: str, handlers: t.Tuple[str, ...] = ()) -> Fault:
    return Fault(
        16,
        WARNING,
        handlers,
        document.path,
        toml_key(path[:-1]),
        document.line_of(path),
        "%s was removed in containerd 2.0 and is ignored" % path[-1],
        "Use %s instead and restart containerd." % better,
        (Edit("unset", document.path, toml_key(path[:-1]), path[-1]),),
    )


def _removed_table(document: Document, path: KeyPath, body: Tree) -> Fault:
    name = "default" if path[-1] == "default_runtime" else "untrusted"
    runtimes = path[:-1] + ("runtimes", name)
    edits = [Edit("rename_table", document.path, toml_key(path), value=toml_key(runtimes))]
    fix = "Rename the table to [%s]" % toml_key(runtimes)
    if name == "default":
        edits.append(Edit("set", document.path, toml_key(path[:-1]), "default_runtime_name", name))
        fix += ' and set default_runtime_name = "default"'
    return Fault(
        16,
        ERROR if name == "default" else WARNING,
        (name,),
        document.path,
        toml_key(path),
        document.line_of(path),
        "[%s] was removed in containerd 2.0 and is ignored%s"
        % (toml_key(path), ": the default handler is runc" if name == "default" else ""),
        fix + ", then restart containerd.",
        tuple(edits),
    )


def _legacy_default(situation: Situation) -> t.Iterator[Fault]:
    """1.x: a default_runtime table makes itself the default, whatever default_runtime_name says."""
    section, load = situation.section, situation.load
    if section is None or load is None or section.default != "default" or section.written_default in (None, "default"):
        return
    for document, body in _plugin_tables(situation, section.name):
        table = body.get("containerd", {}).get("default_runtime") if isinstance(body.get("containerd"), dict) else None
        if isinstance(table, dict) and table.get("runtime_type"):
            path = ("plugins", section.name, "containerd", "default_runtime")
            yield Fault(
                17,
                WARNING,
                ("default", str(section.written_default)),
                document.path,
                toml_key(path),
                document.line_of(path),
                "default_runtime_name = %r has no effect: the table default_runtime makes handler `default` the default"
                % section.written_default,
                "Take the table default_runtime out of %s and restart containerd." % document.path,
                (Edit("drop_table", document.path, toml_key(path)),),
            )


#: Keys of ``[plugins.<cri>.containerd]`` on any line.
_CONTAINERD_KEYS = (
    "default_runtime_name runtimes snapshotter default_runtime untrusted_workload_runtime no_pivot"
    " disable_snapshot_annotations discard_unpacked_layers ignore_blockio_not_enabled_errors"
    " ignore_rdt_not_enabled_errors"
).split()


def _misspelled(situation: Situation) -> t.Iterator[Fault]:
    """A key beside ``runtimes`` that nearly is one: containerd ignores it, 1.x without a word."""
    for plugin in (OLD_CRI, NEW_RUNTIME, SHORT_CRI):
        for document, body in _plugin_tables(situation, plugin):
            containerd = body.get("containerd")
            for key, value in (containerd if isinstance(containerd, dict) else {}).items():
                near = suggest.nearest(key, _CONTAINERD_KEYS)
                known = any(struct_key({key: value}, item, situation.rules) for item in _CONTAINERD_KEYS)
                removed_name = key == "default_runtime" and isinstance(value, str)
                if (known and not removed_name) or not (near or removed_name) or isinstance(value, dict):
                    continue
                better = "default_runtime_name" if removed_name else near
                path = ("plugins", plugin, "containerd", key)
                table = toml_key(path[:-1])
                yield Fault(
                    57,
                    WARNING,
                    (value,) if isinstance(value, str) and better == "default_runtime_name" else (),
                    document.path,
                    table,
                    document.line_of(path),
                    "%s = %r is not a key that containerd reads; did you mean %s?" % (key, value, better),
                    "Write %s and restart containerd." % better,
                    (Edit("unset", document.path, table, key), Edit("set", document.path, table, str(better), value)),
                )


class _Value(t.NamedTuple):
    """One value of the CRI configuration in one loaded file."""

    document: Document
    path: KeyPath
    value: t.Any


def _overridden(situation: Situation) -> t.Iterator[t.Tuple[_Value, _Value]]:
    """(loser, winner): a value of a CRI table that a later file has otherwise."""
    last: t.Dict[KeyPath, _Value] = {}
    for document in situation.load.order:
        plugins = field(document.tree or {}, "plugins", situation.load.rules) or {}
        for plugin in (OLD_CRI, NEW_RUNTIME, NEW_IMAGES):
            for path, value in _leaves(plugins.get(plugin), ("plugins", plugin)):
                earlier = last.get(path)
                if earlier is not None and earlier.value != value and not isinstance(value, list):
                    yield earlier, _Value(document, path, value)
                last[path] = _Value(document, path, value)


def _leaves(node: t.Any, path: KeyPath) -> t.Iterator[t.Tuple[KeyPath, t.Any]]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _leaves(value, path + (key,))
    elif node is not None:
        yield path, node


def _later_wins(situation: Situation) -> t.Iterator[Fault]:
    """A later file overrides an earlier one (2.x): a hint, and a warning where a person would expect it otherwise."""
    if situation.rules.plugin_merge != "deep":
        return
    for loser, winner in _overridden(situation):
        surprising = _surprising(loser.document.path, winner.document.path, situation)
        handler = winner.path[4] if winner.path[3:4] == ("runtimes",) else None
        if handler is None and not surprising:
            continue
        table = toml_key(winner.path[:-1])
        yield Fault(
            28,
            WARNING if surprising else INFO,
            (handler,) if handler else (),
            winner.document.path,
            table,
            winner.document.line_of(winner.path),
            "%s = %r of %s holds, not %r of %s, line %d: it is read later%s"
            % (
                winner.path[-1],
                winner.value,
                winner.document.path,
                loser.value,
                loser.document.path,
                loser.document.line_of(loser.path),
                surprising,
            ),
            "If %s should hold, take %s out of [%s] in %s and restart containerd."
            % (loser.document.path, winner.path[-1], table, winner.document.path),
            (Edit("unset", winner.document.path, table, winner.path[-1]),),
        )


def _surprising(loser: str, winner: str, situation: Situation) -> str:
    """Why a person would not expect that the winner wins, or ""."""
    first, second = posixpath.basename(loser), posixpath.basename(winner)
    if second.startswith("."):
        return " (files whose names start with a dot are loaded too)"
    if is_backup(winner):
        return " (a backup by its name, but an import pattern takes it)"
    root = situation.load.root
    importers = {use.file for use in situation.load.imports if winner in use.matches or use.resolved == winner}
    if importers and root not in importers and loser != root:
        return " (imported by an imported file, it comes after all of that file's siblings)"
    if posixpath.dirname(loser) == posixpath.dirname(winner) and _natural(first) > _natural(second):
        return " (names are sorted byte by byte, not by number)"
    if _is_stale_copy(loser, winner, situation):
        return " (a copy of %s, which was changed after it)" % loser
    return ""


#: A drop-in that overrides on purpose repeats little; one made from the whole file repeats nearly everything.
_COPY_SHARES = 3


def _is_stale_copy(original: str, copy: str, situation: Situation) -> bool:
    """The copy repeats values of the original, and the original was changed later."""
    times = situation.files.times
    if str(times.get(original) or "") <= str(times.get(copy) or "~"):
        return False
    first, second = (_cri_values(path, situation) for path in (original, copy))
    return sum(second.get(path) == value for path, value in first.items()) >= _COPY_SHARES


def _cri_values(path: str, situation: Situation) -> t.Dict[KeyPath, t.Any]:
    document = situation.files.document(path)
    plugins = (document.tree or {}).get("plugins") if document is not None else None
    tables = plugins if isinstance(plugins, dict) else {}
    named = {plugin: tables.get(plugin) for plugin in (OLD_CRI, NEW_RUNTIME, NEW_IMAGES)}
    return {leaf: value for plugin, body in named.items() for leaf, value in _leaves(body, (plugin,))}


def _natural(name: str) -> t.List[t.Tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part.lower()) for part in re.split(r"(\d+)", name) if part]


def _arrays(situation: Situation) -> t.Iterator[Fault]:
    """2.x replaces arrays where a reader of the man page expects them to be appended."""
    if situation.rules.plugin_merge != "deep":
        return
    seen: t.Dict[KeyPath, t.Tuple[Document, t.List[t.Any]]] = {}
    for document in situation.load.order:
        for path, value in _leaves((document.tree or {}).get("plugins") or {}, ("plugins",)):
            if not isinstance(value, list):
                continue
            earlier = seen.get(path)
            gone = [item for item in earlier[1] if item not in value] if earlier else []
            if earlier and gone and earlier[0].path != document.path:
                yield Fault(
                    29,
                    WARNING,
                    (path[-2],) if "runtimes" in path[:-1] else (),
                    document.path,
                    toml_key(path[:-1]),
                    document.line_of(path),
                    "%s replaces the list of %s instead of adding to it; %s gone"
                    % (path[-1], earlier[0].path, ", ".join(repr(item) for item in gone)),
                    "Write the whole list in %s and restart containerd." % document.path,
                    (
                        Edit(
                            "set", document.path, toml_key(path[:-1]), path[-1], earlier[1] + [i for i in value if i not in earlier[1]]
                        ),
                    ),
                )
            seen[path] = (document, value)


def _zero_values(situation: Situation) -> t.Iterator[Fault]:
    """A top-level zero or empty value never overrides an earlier one (mergo)."""
    held: t.Dict[str, t.Tuple[str, t.Any]] = {}
    for document in situation.load.order:
        for key, value in (document.tree or {}).items():
            if isinstance(value, dict) or key == "imports":
                continue
            if not value and key in held:
                yield Fault(
                    30,
                    WARNING,
                    (),
                    document.path,
                    "",
                    document.line_of((key,)),
                    "%s = %r does not take back %s = %r of %s: an empty value never overrides at the top level"
                    % (key, value, key, held[key][1], held[key][0]),
                    "Change %s in %s itself and restart containerd." % (key, held[key][0]),
                    (Edit("unset", held[key][0], "", key),),
                )
            elif value:
                held[key] = (document.path, value)


def _same_handler(situation: Situation) -> t.Iterator[t.Tuple[Declaration, Declaration]]:
    """(earlier, later): the same handler's table in two loaded files."""
    last: t.Dict[KeyPath, Declaration] = {}
    for document in situation.load.order:
        for declaration in document.declarations:
            earlier = last.get(declaration.path)
            if earlier is not None and earlier.file != declaration.file:
                yield earlier, declaration
            last[declaration.path] = declaration


def _baked(situation: Situation) -> t.Iterator[Fault]:
    """The same handler in the root and in a drop-in: taking the drop-in away does not take the handler away."""
    for first, second in _same_handler(situation):
        if first.file == situation.root and first.body == second.body:
            yield Fault(
                39,
                INFO,
                (first.handler,),
                second.file,
                second.table,
                second.line,
                "handler %s stands alike in %s and %s (as `containerd config migrate` leaves it): taking one away does "
                "not take the handler away" % (first.handler, first.file, second.file),
                "Keep it in one of the two.",
                (Edit("drop_table", first.file, first.table),),
            )


def _ignored_config(situation: Situation) -> t.Iterator[Fault]:
    """1.4 starts on its defaults when the file named with -c does not exist."""
    load = situation.load
    if load.root_missing and load.root != "/etc/containerd/config.toml" and load.rules.missing_config_ignored:
        yield Fault(
            23,
            ERROR,
            (),
            load.root,
            "",
            0,
            "%s, which -c names, does not exist: containerd %s runs on its built-in defaults" % (load.root, load.rules.name),
            "Create %s or correct -c in the unit, then restart containerd." % load.root,
        )


def _nested_imports(situation: Situation) -> t.Iterator[Fault]:
    """``imports`` and ``version`` behind a table header are keys of that table."""
    for document in situation.load.order:
        for path in _misplaced(document.tree or {}, ()):
            yield Fault(
                20,
                WARNING if path[-1].lower() == "imports" else INFO,
                (),
                document.path,
                toml_key(path[:-1]),
                document.line_of(path),
                "%s stands below the header [%s] and is a key of that table, not of the file"
                % (path[-1], toml_key(path[:-1])),
                "Move it above the first table header of %s and restart containerd." % document.path,
                (Edit("unset", document.path, toml_key(path[:-1]), path[-1]),),
            )


def _unexpanded_imports(situation: Situation) -> t.Iterator[Fault]:
    """Patterns in a dialect that is not Go's filepath.Glob."""
    for use in situation.load.imports if situation.load else ():
        if use.pattern.startswith(("~", "$", "file:")) and not use.matches:
            yield Fault(
                18,
                WARNING,
                (),
                use.file,
                "",
                use.line,
                "the import %r of %s is looked up as %s: containerd expands no home directory, variable or URL"
                % (use.pattern, use.file, use.resolved),
                "Write an absolute path and restart containerd.",
                (Edit("discard", use.file, "", "imports", use.pattern),),
            )


def _misplaced(node: Tree, path: KeyPath) -> t.Iterator[KeyPath]:
    for key, value in node.items():
        if isinstance(value, dict):
            yield from _misplaced(value, path + (key,))
        elif path and key == "imports" and isinstance(value, list):
            yield path + (key,)
        elif path and key == "version" and isinstance(value, int) and path[0] in ("grpc", "debug", "ttrpc", "metrics", "plugins"):
            yield path + (key,)


def unknown_keys(situation: Situation) -> t.List[Fault]:
    """What the binary itself said it ignores (2.x prints it, 1.x is silent)."""
    found: t.Dict[str, t.List[str]] = {}
    for key, plugin in _UNKNOWN_KEY.findall(str((situation.dump or {}).get("stderr") or "")):
        found.setdefault(plugin or "top level", []).append(key.strip('"'))
    return [
        Fault(
            57,
            INFO,
            (),
            situation.root,
            "" if plugin == "top level" else toml_key(("plugins", plugin)),
            0,
            "containerd ignores unknown keys (%s): %s" % (plugin, ", ".join(sorted(set(keys)))),
            "Correct or remove them.",
        )
        for plugin, keys in sorted(found.items())
    ]


__all__ = ("setting_faults", "unknown_keys")
