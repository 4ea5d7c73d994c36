# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a start of one CRI-O release makes of its files, its command line and the programs on the node.

A model of ``mergeConfigFiles``, ``UpdateFromPath`` and ``Validate`` (``internal/criocli``, ``pkg/config/config.go``): the root
file, then every file below the drop-in directory in the order of ``filepath.Walk``, whatever its name, each decoded onto what
is there already, so that a table of a handler replaces that handler's earlier table as a whole. It answers for the *next* start
only; what runs is read from the daemon.
"""

from __future__ import annotations

import posixpath
import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import go_glob
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio import keys
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.command_line import Overrides, runtime_entry
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.documents import RUNTIMES, is_right, tables
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.executables import Executables
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.release_lines import CrioRules
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import Document, KeyPath, Tree, toml_key
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.load import Files, Refusal

#: ``RuntimeTypeVMBinaryPattern``: found anywhere in the name (regexp.MatchString).
_VM_NAME = re.compile(r"containerd-shim-([a-zA-Z0-9\-\+])+-v2")
_KIND_NAMES = {
    "s": "a string",
    "b": "true or false",
    "i": "a whole number",
    "l": "a list of strings",
    "m": "a table of strings",
    "d": "a duration",
    "t": "a table",
}


class Drop(t.NamedTuple):
    """A handler that CRI-O takes away at its start: ``Runtime handler … is being ignored due to``.

    :ivar kind: path_missing, not_on_path, type, vm_name, config_path, config_path_type, annotation, sync_log, websockets,
        affinity, daemon (the daemon's own word). :ivar key: the setting that is wrong. :ivar value: its value.
    """

    handler: str
    kind: str
    key: str
    value: t.Any
    reason: str


#: Kinds of Drop that come and go with a file on the node, whatever the configuration says.
ABSENCES = frozenset(("path_missing", "not_on_path", "config_path"))


class CrioLoad:
    """The outcome of one simulated start.

    :ivar refusal: why the daemon would not start, or None.
    :ivar undetermined: why this cannot be known from the capture (a text is missing), or None.
    :ivar order: documents in the order in which they were merged.
    :ivar settings: the merged ``crio.runtime`` table, without its handlers.
    :ivar raw: name → the handler's table as merged, before anything is dropped; keys that the line knows only.
    :ivar owners: name → the document (None: the command line, or built in) whose table holds.
    :ivar replaced: (name, earlier document, later document), each time that a table replaced another one.
    :ivar handlers: name → what the daemon would have. :ivar default: the default handler.
    :ivar drops: the handlers that it would take away.
    :ivar removed_runc: the document that took the built-in runc away by naming another default (until 1.25.0).
    """

    def __init__(self, rules: CrioRules, root: str, directory: str) -> None:
        self.rules = rules
        self.root = root
        self.directory = directory
        self.refusal: t.Optional[Refusal] = None
        self.undetermined: t.Optional[str] = None
        self.root_missing = False
        self.order: t.List[Document] = []
        self.settings: Tree = {}
        self.raw: t.Dict[str, Tree] = {rules.default_runtime: builtin_handler(rules)}
        self.owners: t.Dict[str, t.Optional[Document]] = {rules.default_runtime: None}
        self.replaced: t.List[t.Tuple[str, Document, Document]] = []
        self.handlers: t.Dict[str, Tree] = {}
        self.default = ""
        self.drops: t.List[Drop] = []
        self.removed_runc: t.Optional[Document] = None

    @property
    def paths(self) -> t.List[str]:
        return [document.path for document in self.order]

    @property
    def known(self) -> bool:
        """The daemon would start, and what it would have can be told."""
        return self.refusal is None and self.undetermined is None


def builtin_handler(rules: CrioRules) -> Tree:
    """``defaultRuntimeHandler``: the handler that is there before any file is read."""
    return {"runtime_type": "oci", "runtime_root": "/run/" + rules.default_runtime}


def simulate(
    files: Files,
    root: str,
    directory: str,
    rules: CrioRules,
    given: Overrides,
    executables: Executables,
) -> CrioLoad:
    """Load the files as the daemon of this line would.

    :param root: the root file, "" for none (``-c ""``). :param directory: the drop-in directory.
    :param given: the command line and the environment of the start.
    :param executables: which programs and files are on the node.
    """
    load = CrioLoad(rules, root, directory)
    if root:
        _read_root(load, files, given.config is not None)
    if load.known:
        _walk(load, files)
    if load.known:
        _apply(load, given)
    if load.known:
        _resolve(load, executables)
    if load.known:
        load.refusal = _monitor_refusal(load, executables)
    return load


def below(directory: str, known: t.Iterable[str]) -> t.List[str]:
    """What ``filepath.Walk`` visits that is no directory, in its order: by the names of each level, byte by byte."""
    prefix = go_glob.clean(directory).rstrip("/") + "/"
    paths = [path for path in known if path.startswith(prefix)]
    return sorted(paths, key=lambda path: [part.encode("utf-8", "surrogateescape") for part in path[len(prefix) :].split("/")])


def _read_root(load: CrioLoad, files: Files, explicit: bool) -> None:
    if files.exists(load.root):
        _decode(load, files, load.root)
    elif explicit:
        load.refusal = Refusal("missing_config", load.root, 0, "the file named with -c does not exist")
    else:
        load.root_missing = True


def _walk(load: CrioLoad, files: Files) -> None:
    directory = load.directory
    if not files.exists(directory) and directory not in files.links:
        return
    if directory in files.links:
        # Walk does not follow a link that it starts with: it is read as a file.
        load.refusal = Refusal("directory", directory, 0, "%s is a link, and CRI-O reads it as a file" % directory)
        return
    for path in below(directory, files.known() - files.directories):
        if _behind_link(path, directory, files):
            continue
        _decode(load, files, path)
        if not load.known:
            return


def _behind_link(path: str, directory: str, files: Files) -> bool:
    """A file that is seen only through a linked directory, which Walk does not enter."""
    parent = posixpath.dirname(path)
    while len(parent) > len(directory):
        if parent in files.links:
            return True
        parent = posixpath.dirname(parent)
    return False


def _decode(load: CrioLoad, files: Files, path: str) -> None:
    real = files.target(path)
    if real in files.directories and real not in files.documents:
        load.refusal = Refusal("directory", path, 0, "%s is a link to a directory, and CRI-O reads it as a file" % path)
        return
    if not files.exists(path):
        load.refusal = Refusal("missing_import", path, 0, "%s is a link to nothing" % path)
        return
    document = files.document(path)
    if document is None:
        load.undetermined = "%s: %s" % (path, files.hidden.get(real, "its text is not in the capture"))
        return
    load.refusal = _unreadable(document, load.rules) or _wrong_type(document, load.rules)
    if load.refusal is None:
        _merge(load, document)


def _unreadable(document: Document, rules: CrioRules) -> t.Optional[Refusal]:
    if document.bom and not rules.accepts_bom:
        return Refusal("bom", document.path, 1, "the file starts with a UTF-8 byte order mark")
    if document.tree is None or document.error:
        return Refusal("toml", document.path, document.error_line, document.error or "not TOML")
    return None


def _wrong_type(document: Document, rules: CrioRules) -> t.Optional[Refusal]:
    """A value that Go cannot decode stops the daemon."""
    for place, path, table in known_tables(document.tree or {}, rules):
        kinds = rules.kinds(place)
        for key, value in table.items():
            kind = kinds.get(key.lower())
            if kind is not None and not _fits(value, kind):
                said = "%s must be %s" % (key, _KIND_NAMES[kind])
                line = document.line_of(path + (key,))
                return Refusal("wrong_type", document.path, line, said, toml_key(path), key, value)
    return _no_table(document, rules)


def _no_table(document: Document, rules: CrioRules) -> t.Optional[Refusal]:
    """A value where CRI-O has a table."""
    tree = document.tree or {}
    places: t.List[t.Tuple[KeyPath, Tree, t.Tuple[str, ...]]] = [((), tree, ("crio",))]
    places += [(path, table, rules.tables()) for path, table in tables(tree, ("crio",))]
    for path, table, names in places:
        for key, value in table.items():
            if key.lower() in names and not isinstance(value, dict):
                line = document.line_of(path + (key,))
                return Refusal("wrong_type", document.path, line, "%s must be a table" % key, toml_key(path), key, value)
    for path, table in tables(tree, RUNTIMES):
        for key, value in table.items():
            if not isinstance(value, dict):
                line = document.line_of(path + (key,))
                return Refusal("wrong_type", document.path, line, "handler %s must be a table" % key, toml_key(path), key, value)
    return None


def known_tables(tree: Tree, rules: CrioRules) -> t.Iterator[t.Tuple[str, KeyPath, Tree]]:
    """(name in keys.py, path as written, table) of each table that this line reads."""
    for path, table in tables(tree, ("crio",)):
        yield "crio", path, table
    for name in rules.tables():
        for path, table in tables(tree, ("crio", name)):
            yield "crio." + name, path, table
    for path, table in tables(tree, ("crio", "nri", "default_validator")):
        yield "crio.nri.default_validator", path, table
    for place, parent in ((keys.HANDLER, RUNTIMES), (keys.WORKLOAD, ("crio", "runtime", "workloads"))):
        if not rules.knows("crio.runtime", parent[-1]):
            continue
        for path, table in tables(tree, parent):
            for name, body in table.items():
                if isinstance(body, dict):
                    yield place, path + (name,), body


def _fits(value: t.Any, kind: str) -> bool:
    if kind == "l":
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind == "m":
        return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())
    if kind == "d":
        return isinstance(value, (str, int)) and not isinstance(value, bool)
    if kind == "i":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, {"s": str, "b": bool, "t": dict}[kind])


def _merge(load: CrioLoad, document: Document) -> None:
    load.order.append(document)
    tree, rules = document.tree or {}, load.rules
    for _path, table in tables(tree, ("crio", "runtime")):
        load.settings.update((key.lower(), value) for key, value in table.items() if key.lower() not in ("runtimes", "workloads"))
    for declaration in document.declarations:
        if not is_right(declaration.path):
            continue
        name = declaration.handler
        earlier = load.owners.get(name)
        if earlier is not None:
            load.replaced.append((name, earlier, document))
        load.raw[name] = canonical(declaration.body, rules)
        load.owners[name] = document
    written = ((tree.get("crio") or {}).get("runtime") or {}).get("default_runtime")
    if rules.other_default_removes_runc and written is not None and written != rules.default_runtime:
        # metadata.IsDefined(crio, runtime, default_runtime): the map is shared, so the file's own table of runc goes as well.
        if load.raw.pop(rules.default_runtime, None) is not None:
            load.removed_runc = document
        load.owners.pop(rules.default_runtime, None)


def canonical(body: Tree, rules: CrioRules) -> Tree:
    """A handler's table under CRI-O's own key names; keys that the line does not know are left out."""
    return {key.lower(): value for key, value in body.items() if rules.knows(keys.HANDLER, key)}


def _apply(load: CrioLoad, given: Overrides) -> None:
    """The command line and the environment on top of the files."""
    load.settings.update(given.settings)
    if given.default_runtime is not None:
        load.settings["default_runtime"] = given.default_runtime
    for value in given.runtimes:
        entry = runtime_entry(value, load.rules)
        if entry is None:
            load.refusal = Refusal("wrong_type", load.root, 0, "invalid format for --runtimes: %r" % value, key="--runtimes")
            return
        load.raw[entry[0]] = canonical(entry[1], load.rules)
        load.owners[entry[0]] = None


def _resolve(load: CrioLoad, executables: Executables) -> None:
    """``ValidateDefaultRuntime`` and ``ValidateRuntimes``."""
    rules = load.rules
    default = load.settings.get("default_runtime", rules.default_runtime)
    if default not in load.raw:
        if default:
            load.refusal = _default_refusal(load, str(default))
            return
        load.raw[rules.default_runtime] = builtin_handler(rules)
        load.owners[rules.default_runtime] = None
    load.default = default or rules.default_runtime
    for name, handler in _inherited(load, executables).items():
        drop = validate(name, handler, rules, executables)
        if drop is None:
            load.handlers[name] = _completed(name, handler, load, executables)
        elif name == load.default or not rules.drops_bad_handlers:
            load.refusal = _handler_refusal(load, drop)
            return
        else:
            load.drops.append(drop)


def _inherited(load: CrioLoad, executables: Executables) -> t.Dict[str, Tree]:
    """``inherit_default_runtime``: program, type, root and configuration of the default handler."""
    found = dict(load.raw)
    base = load.raw[load.default]
    for name, handler in load.raw.items():
        if load.rules.inherits and handler.get("inherit_default_runtime"):
            path = base.get("runtime_path") or executables.on_path(load.default) or ""
            taken = {key: base.get(key, "") for key in ("runtime_type", "runtime_config_path", "runtime_root")}
            found[name] = dict(handler, runtime_path=path, **taken)
    return found


def validate(name: str, handler: Tree, rules: CrioRules, executables: Executables) -> t.Optional[Drop]:
    """``RuntimeHandler.Validate``: why the daemon would not take this handler, or None."""
    kind = str(handler.get("runtime_type") or "")
    if kind and kind not in rules.runtime_types:
        return Drop(name, "type", "runtime_type", kind, "invalid `runtime_type` %r" % kind)
    return (
        _bad_path(name, handler, rules, executables)
        or _bad_config_path(name, handler, kind, executables)
        or _bad_annotation(name, handler, rules)
        or _bad_value(name, handler, kind)
    )


def _bad_path(name: str, handler: Tree, rules: CrioRules, executables: Executables) -> t.Optional[Drop]:
    path = str(handler.get("runtime_path") or "")
    if not path:
        path = executables.on_path(name)
        if path == "":
            return Drop(name, "not_on_path", "runtime_path", "", "%r is not found in $PATH" % name)
    elif executables.exists(path) is False:
        return Drop(name, "path_missing", "runtime_path", path, "runtime_path %s does not exist" % path)
    if handler.get("runtime_type") == "vm" and rules.checks_vm_name and path and not _VM_NAME.search(posixpath.basename(path)):
        said = "the program of a handler of type vm must be named containerd-shim-NAME-v2, not %s" % posixpath.basename(path)
        return Drop(name, "vm_name", "runtime_path", path, said)
    return None


def _bad_config_path(name: str, handler: Tree, kind: str, executables: Executables) -> t.Optional[Drop]:
    path = str(handler.get("runtime_config_path") or "")
    if path and kind != "vm":
        said = "runtime_config_path can only be used with runtime_type vm"
        return Drop(name, "config_path_type", "runtime_config_path", path, said)
    if path and executables.exists(path) is False:
        return Drop(name, "config_path", "runtime_config_path", path, "runtime_config_path %s does not exist" % path)
    return None


def _bad_annotation(name: str, handler: Tree, rules: CrioRules) -> t.Optional[Drop]:
    known = rules.annotations()
    for annotation in handler.get("allowed_annotations") or []:
        if known and annotation not in known:
            said = "invalid allowed_annotation: %s" % annotation
            return Drop(name, "annotation", "allowed_annotations", annotation, said)
    return None


def _bad_value(name: str, handler: Tree, kind: str) -> t.Optional[Drop]:
    if handler.get("no_sync_log") and kind not in ("", "oci"):
        return Drop(name, "sync_log", "no_sync_log", True, "no_sync_log is only allowed with runtime_type oci")
    if handler.get("stream_websockets") and kind != "pod":
        return Drop(name, "websockets", "stream_websockets", True, "stream_websockets is only allowed with runtime_type pod")
    affinity = handler.get("exec_cpu_affinity") or ""
    if affinity not in ("", "first"):
        return Drop(name, "affinity", "exec_cpu_affinity", affinity, "invalid exec_cpu_affinity %r" % affinity)
    return None


def _completed(name: str, handler: Tree, load: CrioLoad, executables: Executables) -> Tree:
    """A handler with what the daemon fills in at its start, as far as that is compared with its answer."""
    filled = dict(handler)
    if not filled.get("runtime_path"):
        filled["runtime_path"] = executables.on_path(name) or ""
    if load.settings.get("conmon") and filled.get("runtime_type", "") in ("", "oci"):
        filled["monitor_path"] = load.settings["conmon"]
    return filled


def _default_refusal(load: CrioLoad, default: str) -> Refusal:
    document, path = _default_site(load)
    said = "default_runtime is %r, but no table [crio.runtime.runtimes.%s] is there" % (default, default)
    line = document.line_of(path) if document is not None else 0
    file = document.path if document is not None else load.root
    return Refusal("default_missing", file, line, said, toml_key(path[:-1]), "default_runtime", default)


def _default_site(load: CrioLoad) -> t.Tuple[t.Optional[Document], KeyPath]:
    """Where the default that holds is written."""
    for document in reversed(load.order):
        for _name, path in reversed(document.default_names()):
            return document, path
    return None, ()


def _handler_refusal(load: CrioLoad, drop: Drop) -> Refusal:
    file, table, line = site(load, drop.handler, drop.key)
    which = "the default handler %s" % drop.handler if drop.handler == load.default else "handler %s" % drop.handler
    return Refusal("bad_handler", file, line, "%s: %s" % (which, drop.reason), table, drop.handler, drop)


def site(load: CrioLoad, handler: str, key: str = "") -> t.Tuple[str, str, int]:
    """(file, table, line) of the table that holds for a handler, at one of its keys where it is written there."""
    document = load.owners.get(handler)
    if document is None:
        return load.root, "", 0
    for declaration in document.declarations:
        if declaration.handler == handler and is_right(declaration.path):
            spelled = next((name for name in declaration.body if name.lower() == key), None)
            line = document.line_of(declaration.path + (spelled,)) if spelled else declaration.line
            return document.path, declaration.table, line
    return document.path, "", 0


def _monitor_refusal(load: CrioLoad, executables: Executables) -> t.Optional[Refusal]:
    """``TranslateMonitorFields``: a monitor that is not there, or a control group that it cannot have, stops the daemon."""
    if not load.rules.monitor_per_handler:
        return _monitor_of(load, "", {}, executables)
    for name, handler in sorted(load.handlers.items()):
        if handler.get("runtime_type", "") in ("", "oci"):
            refusal = _monitor_of(load, name, handler, executables)
            if refusal is not None:
                return refusal
    return None


def _monitor_of(load: CrioLoad, name: str, handler: Tree, executables: Executables) -> t.Optional[Refusal]:
    settings = load.settings
    path = str(settings.get("conmon") or handler.get("monitor_path") or "")
    there = executables.exists(path) if path else executables.on_path("conmon") != ""
    if there is False:
        what = "the monitor %s does not exist" % path if path else "the monitor conmon is not found in $PATH"
        return _monitor_site(load, name, "conmon" if settings.get("conmon") else "monitor_path", what, path)
    group = str(settings.get("conmon_cgroup") or handler.get("monitor_cgroup") or "")
    systemd = settings.get("cgroup_manager", "systemd") == "systemd"
    if group and group != "pod" and systemd and not group.endswith(".slice"):
        key = "conmon_cgroup" if settings.get("conmon_cgroup") else "monitor_cgroup"
        return _monitor_site(load, name, key, "%s must be pod or a systemd slice, not %r" % (key, group), group)
    return None


def _monitor_site(load: CrioLoad, name: str, key: str, said: str, value: str) -> Refusal:
    if key.startswith("conmon"):
        for document in reversed(load.order):
            for path, table in tables(document.tree or {}, ("crio", "runtime")):
                spelled = next((item for item in table if item.lower() == key), None)
                if spelled:
                    line = document.line_of(path + (spelled,))
                    return Refusal("monitor", document.path, line, said, toml_key(path), key, value)
    file, table_name, line = site(load, name, key)
    return Refusal("monitor", file, line, said, table_name, key, value)


__all__ = ("ABSENCES", "CrioLoad", "Drop", "below", "builtin_handler", "canonical", "known_tables", "simulate", "site", "validate")
