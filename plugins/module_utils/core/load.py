# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a start of one containerd release makes of the files: imports, versions, merging, migration.

A model of ``LoadConfig`` and ``mergeConfig`` (containerd, ``config.go`` of each line) over captured texts. It answers for
the *next* start only; what runs is read from CRI.
"""

from __future__ import annotations

import posixpath
import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import go_glob
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import Document, Tree, toml_key
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import (
    NEW_IMAGES,
    NEW_RUNTIME,
    OLD_CRI,
    LineRules,
)

#: v1MigratePluginName, 2.x ``config.go``: names of version 1 files.
_V1_PLUGINS = {
    "cri": OLD_CRI,
    "cgroups": "io.containerd.monitor.v1.cgroups",
    "linux": "io.containerd.runtime.v1.linux",
    "scheduler": "io.containerd.gc.v1.scheduler",
    "bolt": "io.containerd.metadata.v1.bolt",
    "task": "io.containerd.runtime.v2.task",
    "opt": "io.containerd.internal.v1.opt",
    "restart": "io.containerd.internal.v1.restart",
    "tracing": "io.containerd.internal.v1.tracing",
    "otlp": "io.containerd.tracing.processor.v1.otlp",
    "aufs": "io.containerd.snapshotter.v1.aufs",
    "btrfs": "io.containerd.snapshotter.v1.btrfs",
    "devmapper": "io.containerd.snapshotter.v1.devmapper",
    "native": "io.containerd.snapshotter.v1.native",
    "overlayfs": "io.containerd.snapshotter.v1.overlayfs",
    "zfs": "io.containerd.snapshotter.v1.zfs",
}

#: Keys of the old plugin that migration moves to ``io.containerd.cri.v1.images`` (plugins/cri/images/plugin.go).
IMAGE_KEYS = (
    "registry",
    "image_decryption",
    "max_concurrent_downloads",
    "image_pull_progress_timeout",
    "image_pull_with_sync_fs",
    "stats_collect_period",
)
#: … and those that stay with the server (plugins/cri/cri.go).
SERVER_KEYS = (
    "disable_tcp_service",
    "stream_server_address",
    "stream_server_port",
    "stream_idle_timeout",
    "enable_tls_streaming",
    "x509_key_pair_streaming",
)
#: Keys of ``containerd`` that belong to images.
IMAGE_CONTAINERD_KEYS = ("snapshotter", "disable_snapshot_annotations", "discard_unpacked_layers")

#: Keys of the daemon's own top level (all lines), with the type that each must have.
_TOP_LEVEL_TYPES: t.Dict[str, t.Any] = {
    "version": int,
    "root": str,
    "state": str,
    "temp": str,
    "plugin_dir": str,
    "oom_score": int,
    "disabled_plugins": list,
    "required_plugins": list,
    "imports": list,
    "plugins": dict,
    "grpc": dict,
    "ttrpc": dict,
    "debug": dict,
    "metrics": dict,
    "cgroup": dict,
    "proxy_plugins": dict,
    "timeouts": dict,
    "stream_processors": dict,
}


#: logrus.ParseLevel; the daemon ends at another one.
_LOG_LEVELS = frozenset(["", "trace", "debug", "info", "warn", "warning", "error", "fatal", "panic"])


class Refusal(t.NamedTuple):
    """Why the daemon does not start with these files."""

    #: toml, bom, missing_import, directory, bad_glob, version, newer_dropin, plugin_uri, disabled_uri, wrong_type,
    #: missing_config, proxy, dump
    kind: str
    file: str
    line: int
    message: str
    table: str = ""
    key: str = ""
    value: t.Any = None


class ImportUse(t.NamedTuple):
    """One pattern of one ``imports`` list, and what it stood for."""

    file: str
    line: int
    pattern: str
    #: absolute form that was looked up
    resolved: str
    is_glob: bool
    #: existing paths that it stands for
    matches: t.Tuple[str, ...]


class Files:
    """The node's files, as far as a capture has them.

    :ivar documents: path → document of every text.
    :ivar hidden: path → reason, for files that are there but whose text the capture lacks.
    """

    def __init__(self, capture: t.Mapping[str, t.Any], document: t.Type[Document] = Document) -> None:
        """:param document: how the engine reads a text."""
        node = capture.get("node") or {}
        strange = node.get("not_utf8") or {}
        texts = sorted((capture.get("files") or {}).items())
        self.documents = {path: document(path, text, strange.get(path)) for path, text in texts}
        self.hidden: t.Dict[str, str] = {}
        self.hidden.update(node.get("unreadable") or {})
        self.hidden.update(node.get("withheld") or {})
        self.links: t.Dict[str, str] = dict(node.get("links") or {})
        self.directories = set(node.get("directories") or []) | _parents(list(self.documents) + list(self.hidden))
        self.times: t.Dict[str, t.Any] = dict(node.get("files") or {})

    def known(self) -> t.Set[str]:
        """Every path that a glob can match."""
        return set(self.documents) | set(self.hidden) | set(self.links) | self.directories

    def target(self, path: str) -> str:
        """The path behind symbolic links (at most 40, as the kernel)."""
        for _hop in range(40):
            if path in self.documents or path not in self.links:
                return path
            path = go_glob.join(posixpath.dirname(path), self.links[path])
        return path

    def exists(self, path: str) -> bool:
        real = self.target(path)
        return real in self.documents or real in self.hidden or real in self.directories

    def document(self, path: str) -> t.Optional[Document]:
        """The document at a path; a link's text under the link's own name."""
        found = self.documents.get(path)
        if found is None:
            behind = self.documents.get(self.target(path))
            found = behind.renamed(path) if behind is not None else None
        return found


def _parents(paths: t.Iterable[str]) -> t.Set[str]:
    """Every directory above these paths: a recording has files only, and an import may name their directory."""
    found: t.Set[str] = set()
    for path in paths:
        path = posixpath.dirname(path)
        while path not in ("", "/") and path not in found:
            found.add(path)
            path = posixpath.dirname(path)
    return found


class Load:
    """The outcome of one simulated start.

    :ivar refusal: why the daemon would not start, or None.
    :ivar undetermined: why this cannot be known from the capture (a text is missing), or None.
    :ivar order: documents in the order in which they were merged.
    :ivar version: the merged version.
    :ivar plugins: the merged ``[plugins]``, after migration.
    :ivar before_migration: the merged ``[plugins]`` as written (2.0 to 2.2), for explanations.
    :ivar truncated_at: 1.4: the missing import after which everything was skipped.
    """

    def __init__(self, rules: LineRules, root: str) -> None:
        self.rules = rules
        self.root = root
        self.refusal: t.Optional[Refusal] = None
        self.undetermined: t.Optional[str] = None
        self.order: t.List[Document] = []
        self.imports: t.List[ImportUse] = []
        self.version = rules.default_version
        self.plugins: Tree = {}
        self.before_migration: Tree = {}
        self.proxy_plugins: Tree = {}
        self.disabled: t.List[str] = []
        self.required: t.List[str] = []
        self.truncated_at: t.Optional[ImportUse] = None
        self.root_missing = False

    @property
    def paths(self) -> t.List[str]:
        return [document.path for document in self.order]


def struct_key(tree: Tree, name: str, rules: LineRules) -> t.Optional[str]:
    """The key of tree that the daemon takes for its field of this name, by the line's rule for letter case."""
    if name in tree:
        return name
    if rules.key_case == "four":
        # go-toml v1, marshal.go: the name, its lower, its upper form, its first letter in lower case
        tries = [name.lower(), name.upper(), name[:1].lower() + name[1:]]
        return next((key for key in tries if key in tree), None)
    folded = name.lower()
    return next((key for key in tree if key.lower() == folded), None)


def field(tree: Tree, name: str, rules: LineRules, default: t.Any = None) -> t.Any:
    """The value that the daemon reads for its field of this name.

    Where any letter case is taken, keys that differ in it alone are all decoded into the one field, in byte order:
    tables add up, of other values the last holds.
    """
    key = struct_key(tree, name, rules)
    if key is None:
        return default
    if rules.key_case != "fold":
        return tree[key]
    alike = sorted(other for other in tree if other.lower() == name.lower())
    value = tree[alike[0]]
    for other in alike[1:]:
        both = isinstance(value, dict) and isinstance(tree[other], dict)
        value = merge_deep(value, tree[other]) if both else tree[other]
    return value


def simulate(files: Files, root: str, rules: LineRules, root_is_explicit: bool, cwd: str = "/") -> Load:
    """Load the files as the daemon of this line would.

    :param root: the path given with ``-c``, or the default one.
    :param root_is_explicit: ``-c`` was given: a missing file is then fatal (not on 1.4).
    :param cwd: the daemon's working directory, for relative globs on old lines.
    """
    load = Load(rules, root)
    if not files.exists(root):
        _missing_root(load, root_is_explicit)
    else:
        _walk(load, files, cwd)
    if load.refusal is None and load.undetermined is None and load.truncated_at is None:
        load.refusal = _validate(load)
    if load.refusal is None:
        load.before_migration = load.plugins
        if rules.migration == "merged" and load.version == 2:
            load.plugins = migrate_cri(load.plugins)
    return load


def _missing_root(load: Load, explicit: bool) -> None:
    load.root_missing = True
    if explicit and not load.rules.missing_config_ignored:
        load.refusal = Refusal("missing_config", load.root, 0, "the file named with -c does not exist")


def _walk(load: Load, files: Files, cwd: str) -> None:
    """The breadth-first queue of ``LoadConfig``."""
    pending: t.List[t.Tuple[str, t.Optional[ImportUse]]] = [(load.root, None)]
    seen: t.Set[str] = set()
    first_version = 0
    while pending:
        path, use = pending.pop(0)
        if path in seen:
            continue
        if use is not None and not files.exists(path):
            if load.rules.missing_import == "stop":
                load.truncated_at = use
                return
            load.refusal = Refusal("missing_import", use.file, use.line, path, value=use.pattern, key="imports")
            return
        document = _open(load, files, path, use)
        if document is None:
            return
        version = field(document.tree or {}, "version", load.rules) or 0
        first_version = first_version or version
        if load.rules.refuses_newer_dropin and version > first_version:
            message = "drop-in config version %d higher than root config version %d" % (version, first_version)
            load.refusal = Refusal("newer_dropin", path, document.line_of(("version",)), message, key="version")
            return
        _merge(load, document, version)
        seen.add(path)
        try:
            pending.extend(_imports_of(load, document, files, cwd))
        except go_glob.GlobSyntaxError as error:
            line = document.line_of(("imports",))
            load.refusal = Refusal("bad_glob", path, line, "syntax error in pattern %s" % error, key="imports")
            return


def _open(load: Load, files: Files, path: str, use: t.Optional[ImportUse]) -> t.Optional[Document]:
    """The file as a document with a tree, or None with the refusal (or doubt) noted on load."""
    real = files.target(path)
    if real in files.directories and real not in files.documents:
        asked = use or ImportUse(path, 0, path, path, False, ())
        load.refusal = Refusal("directory", asked.file, asked.line, path, key="imports", value=asked.pattern)
        return None
    document = files.document(path)
    if document is None:
        load.undetermined = "%s: %s" % (path, files.hidden.get(real, "its text is not in the capture"))
        return None
    if document.bom and not load.rules.accepts_bom:
        load.refusal = Refusal("bom", path, 1, "the file starts with a UTF-8 byte order mark")
        return None
    if document.tree is None or (document.error and not load.rules.lenient_toml):
        load.refusal = Refusal("toml", path, document.error_line, document.error or "not TOML")
        return None
    load.refusal = _shape(document, load.rules)
    return document if load.refusal is None else None


def _shape(document: Document, rules: LineRules) -> t.Optional[Refusal]:
    """A top-level value of the wrong type stops the daemon (Go cannot decode it)."""
    tree = document.tree or {}
    for name, kind in _TOP_LEVEL_TYPES.items():
        key = struct_key(tree, name, rules)
        if key is None:
            continue
        value = tree[key]
        wrong = not isinstance(value, kind) or (kind is int and isinstance(value, bool))
        wrong = wrong or (kind is list and not all(isinstance(item, str) for item in value))
        if wrong:
            said = "%s must be %s" % (name, _KIND_NAMES[kind])
            return Refusal("wrong_type", document.path, document.line_of((key,)), said, key=key)
    if rules.migration == "per_file" and (field(tree, "version", rules) or 0) < 0:
        return _negative_version(document)
    level = field(field(tree, "debug", rules) or {}, "level", rules)
    if isinstance(level, str) and level.lower() not in _LOG_LEVELS:
        said = "%r is no log level" % level
        line = document.line_of(("debug", "level"))
        return Refusal("wrong_type", document.path, line, said, table="debug", key="level")
    plugins = field(tree, "plugins", rules) or {}
    for plugin, body in plugins.items():
        if not isinstance(body, dict) and not rules.modern:
            said = "plugins.%s must be a table" % toml_key([plugin])
            return Refusal("wrong_type", document.path, document.line_of(("plugins", plugin)), said, key=plugin)
    return None


def _negative_version(document: Document) -> Refusal:
    """The migration of 2.x indexes its steps by the version: of each file since 2.3, of the merged files before."""
    said = "version must not be negative (containerd panics)"
    return Refusal("wrong_type", document.path, document.line_of(("version",)), said, key="version")


_KIND_NAMES = {int: "a whole number", str: "a string", list: "a list of strings", dict: "a table"}


def _merge(load: Load, document: Document, version: int) -> None:
    tree, rules = document.tree or {}, load.rules
    plugins = field(tree, "plugins", rules) or {}
    disabled = list(field(tree, "disabled_plugins", rules) or [])
    required = list(field(tree, "required_plugins", rules) or [])
    if rules.migration == "per_file" and version < 4:
        plugins, disabled, required = _migrate_file(plugins, disabled, required, version)
        version = load.version
    elif rules.migration == "merged" and version in (0, 1):
        plugins, disabled, required = _rename_v1(plugins, disabled, required)
        version = load.version
    load.order.append(document)
    load.version = version or load.version
    for name, body in plugins.items():
        deep = rules.plugin_merge == "deep" and isinstance(load.plugins.get(name), dict) and isinstance(body, dict)
        load.plugins[name] = merge_deep(load.plugins[name], body) if deep else body
    for name, body in (field(tree, "proxy_plugins", rules) or {}).items():
        load.proxy_plugins[name] = body
    load.disabled.extend(item for item in disabled if item not in load.disabled)
    load.required.extend(item for item in required if item not in load.required)


def merge_deep(older: Tree, newer: Tree) -> Tree:
    """mergo with override on maps of any: tables merge, everything else (arrays, zero values too) is replaced."""
    merged = dict(older)
    for key, value in newer.items():
        both = isinstance(merged.get(key), dict) and isinstance(value, dict)
        merged[key] = merge_deep(merged[key], value) if both else value
    return merged


def _rename_v1(plugins: Tree, *lists: t.List[str]) -> t.Tuple[Tree, t.List[str], t.List[str]]:
    """v1Migrate: short plugin names become URIs, in tables and in the two lists."""
    renamed = {v1_plugin_name(name): body for name, body in plugins.items()}
    disabled, required = ([v1_plugin_name(name) for name in names] for names in lists)
    return renamed, disabled, required


def v1_plugin_name(name: str) -> str:
    """The plugin id that 2.x takes a version 1 name for."""
    if "." in name:
        return name
    if name in _V1_PLUGINS:
        return _V1_PLUGINS[name]
    if name.endswith("-service"):
        return "io.containerd.service.v1." + name
    if name in ("windows", "windows-lcow"):
        return "io.containerd.snapshotter.v1." + name
    return "io.containerd.grpc.v1." + name


def _migrate_file(
    plugins: Tree, disabled: t.List[str], required: t.List[str], version: int
) -> t.Tuple[Tree, t.List[str], t.List[str]]:
    """2.3: each file from its own version to 4; the CRI migration runs at every step below 4."""
    if version <= 1:
        if OLD_CRI in plugins:
            plugins = migrate_cri(plugins)
        plugins, disabled, required = _rename_v1(plugins, disabled, required)
    return migrate_cri(plugins), disabled, required


def migrate_cri(plugins: Tree) -> Tree:
    """The three CRI migrations (plugins/cri/runtime, plugins/cri/images, plugins/cri/cri.go) on one ``[plugins]``."""
    old = plugins.get(OLD_CRI)
    if not isinstance(old, dict):
        return plugins
    migrated = dict(plugins)
    migrated[NEW_RUNTIME] = _migrate_runtime(migrated.get(NEW_RUNTIME), old)
    migrated[NEW_IMAGES] = _migrate_images(migrated.get(NEW_IMAGES), old)
    migrated[OLD_CRI] = {key: value for key, value in old.items() if key in SERVER_KEYS}
    return migrated


def _migrate_runtime(new: t.Any, old: Tree) -> Tree:
    runtime = dict(new) if isinstance(new, dict) else {}
    for key, value in old.items():
        if key not in ("containerd", "sandbox_image") + IMAGE_KEYS + SERVER_KEYS:
            runtime.setdefault(key, value)
    containerd = old.get("containerd")
    if isinstance(containerd, dict):
        target = dict(runtime["containerd"]) if isinstance(runtime.get("containerd"), dict) else {}
        for key, value in containerd.items():
            if key not in IMAGE_CONTAINERD_KEYS:
                target.setdefault(key, value)
        runtime["containerd"] = target
        if isinstance(target.get("runtimes"), dict):
            target["runtimes"] = {name: _rename_sandbox_mode(body) for name, body in target["runtimes"].items()}
    return runtime


def _rename_sandbox_mode(body: t.Any) -> t.Any:
    if isinstance(body, dict) and "sandbox_mode" in body and "sandboxer" not in body:
        return {("sandboxer" if key == "sandbox_mode" else key): value for key, value in body.items()}
    return body


def _migrate_images(new: t.Any, old: Tree) -> Tree:
    images = dict(new) if isinstance(new, dict) else {}
    if "sandbox_image" in old:
        pinned = images.get("pinned_images")
        images["pinned_images"] = dict(pinned if isinstance(pinned, dict) else {}, sandbox=old["sandbox_image"])
    for key in IMAGE_KEYS:
        if key in old:
            images[key] = old[key]
    containerd = old.get("containerd")
    for key in IMAGE_CONTAINERD_KEYS:
        if isinstance(containerd, dict) and key in containerd:
            images[key] = containerd[key]
    return images


def _imports_of(
    load: Load, document: Document, files: Files, cwd: str
) -> t.List[t.Tuple[str, t.Optional[ImportUse]]]:
    """The queue entries of a document's imports, in order; each pattern is recorded on load.

    :raises GlobSyntaxError: a malformed pattern (fatal to the daemon).
    """
    queue: t.List[t.Tuple[str, t.Optional[ImportUse]]] = []
    tree = document.tree or {}
    key = struct_key(tree, "imports", load.rules)
    known: t.Optional[t.Set[str]] = None
    for pattern in tree[key] if key else []:
        is_glob = "*" in pattern
        base = cwd if is_glob and load.rules.relative_glob_from_cwd else posixpath.dirname(document.path)
        cleaned = go_glob.clean(pattern)
        resolved = cleaned if cleaned.startswith("/") else go_glob.join(base, cleaned)
        if is_glob:
            known = files.known() if known is None else known
            matches = _glob(resolved, known, load.rules)
        else:
            matches = (resolved,) if files.exists(resolved) else ()
        use = ImportUse(document.path, document.line_of((key or "imports",)), pattern, resolved, is_glob, matches)
        load.imports.append(use)
        queue.extend((path, use) for path in (matches if is_glob else (resolved,)))
    return queue


def _glob(pattern: str, known: t.Set[str], rules: LineRules) -> t.Tuple[str, ...]:
    try:
        return tuple(go_glob.glob(pattern, known))
    except go_glob.GlobSyntaxError:
        directory = posixpath.dirname(pattern)
        if rules.malformed_glob_needs_files and not any(posixpath.dirname(path) == directory for path in known):
            return ()
        raise


def _validate(load: Load) -> t.Optional[Refusal]:
    """What stops a daemon whose files could all be read."""
    return _validate_ids(load) or _untyped_proxy(load) or _same_directories(load) or _bad_timeout(load)


#: Go's time.ParseDuration.
DURATION = re.compile(r"[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)\Z")


def _same_directories(load: Load) -> t.Optional[Refusal]:
    """server.go CreateTopLevelDirectories: `root` and `state` must be different paths."""
    held = {"root": "/var/lib/containerd", "state": "/run/containerd"}
    place = load.order[-1] if load.order else None
    for document in load.order:
        for key in held:
            value = field(document.tree or {}, key, load.rules)
            if value:
                held[key], place = go_glob.clean(value), document
    if place is None or held["root"] != held["state"]:
        return None
    return Refusal("wrong_type", place.path, place.line_of(("state",)), "root and state must differ", key="state")


def _bad_timeout(load: Load) -> t.Optional[Refusal]:
    for document in load.order:
        for key, value in (field(document.tree or {}, "timeouts", load.rules) or {}).items():
            if not isinstance(value, str) or not DURATION.match(value):
                message = "%r is no duration" % (value,)
                line = document.line_of(("timeouts", key))
                return Refusal("wrong_type", document.path, line, message, table="timeouts", key=key)
    return None


#: Types of proxy plugins (``LoadPlugins``, server.go); another one makes containerd panic: `plugin: no type`.
_PROXY_TYPES = frozenset(
    "snapshot io.containerd.snapshotter.v1 content io.containerd.content.v1 sandbox io.containerd.sandbox.controller.v1"
    " diff io.containerd.differ.v1".split()
)


def has_proxy_type(entry: t.Any) -> bool:
    """A complete entry of ``[proxy_plugins]``."""
    return isinstance(entry, dict) and entry.get("type") in _PROXY_TYPES


def _untyped_proxy(load: Load) -> t.Optional[Refusal]:
    for name, entry in load.proxy_plugins.items():
        if not has_proxy_type(entry):
            document = _containing(load, "proxy_plugins", name)
            path = ("proxy_plugins", name)
            message = "proxy plugin %s has no valid type" % name
            return Refusal("proxy", document.path, document.line_of(path), message, table=toml_key(path), key=name)
    return None


def _validate_ids(load: Load) -> t.Optional[Refusal]:
    """``ValidateV2`` (1.x) and ``ValidateVersion`` (2.x) of the merged configuration."""
    rules = load.rules
    if rules.max_version is not None and load.version > rules.max_version:
        document = _stating_version(load)
        message = "version %d is above %d, the highest that containerd %s takes" % (
            load.version,
            rules.max_version,
            rules.name,
        )
        return Refusal("version", document.path, document.line_of(("version",)), message, key="version")
    if rules.modern and load.version < 0:
        return _negative_version(_stating_version(load))
    if rules.modern:
        return _bad_uri(load, "disabled_plugins", lambda uri: "." in uri)
    if load.version < 2 or (load.version != 2 and rules.checks_ids_of_version_2_only):
        return None
    refusal = _bad_uri(load, "disabled_plugins", lambda uri: _is_plugin_uri(uri, rules))
    return refusal or next(iter(bad_plugin_ids(load)), None)


def bad_plugin_ids(load: Load) -> t.List[Refusal]:
    """1.x: every key of ``[plugins]`` that the daemon does not take for a plugin id."""
    return [_plugin_refusal(load, name) for name in load.plugins if not _is_plugin_uri(name, load.rules)]


def _is_plugin_uri(uri: str, rules: LineRules) -> bool:
    prefixed = uri.startswith("io.containerd.") or not rules.plugin_prefix_checked
    return prefixed and len(uri.split(".", 3)) >= 4


def _bad_uri(load: Load, key: str, good: t.Callable[[str], bool]) -> t.Optional[Refusal]:
    for uri in load.disabled:
        if not good(uri):
            document = _containing(load, key, uri)
            message = "invalid disabled plugin URI %r expect io.containerd.x.vx" % uri
            return Refusal("disabled_uri", document.path, document.line_of((key,)), message, key=key, value=uri)
    return None


def _plugin_refusal(load: Load, name: str) -> Refusal:
    document = _containing(load, "plugins", name)
    line = document.line_of(("plugins", name))
    if not line or line == document.line_of(("plugins",)):
        line = _first_line_below(document, name) or line
    message = "invalid plugin key URI %r expect io.containerd.x.vx" % name
    return Refusal("plugin_uri", document.path, line, message, table=toml_key(["plugins", name]), key=name)


def _first_line_below(document: Document, name: str) -> int:
    lines = [item.line for item in document.declarations if item.path[:2] == ("plugins", name)]
    return min(lines) if lines else 0


def _stating_version(load: Load) -> Document:
    """The file whose version holds: the last one that states it."""
    stating = [document for document in load.order if (document.stated_version or 0) == load.version]
    return stating[-1] if stating else load.order[-1]


def _containing(load: Load, key: str, item: str) -> Document:
    """The last file whose top-level list or table of this name has the item."""
    holding = [document for document in load.order if item in (field(document.tree or {}, key, load.rules) or ())]
    return (holding or load.order)[-1]


__all__ = (
    "DURATION",
    "Files",
    "IMAGE_CONTAINERD_KEYS",
    "IMAGE_KEYS",
    "ImportUse",
    "Load",
    "Refusal",
    "SERVER_KEYS",
    "bad_plugin_ids",
    "field",
    "has_proxy_type",
    "merge_deep",
    "migrate_cri",
    "simulate",
    "struct_key",
    "v1_plugin_name",
)
