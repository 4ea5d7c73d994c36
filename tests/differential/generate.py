"""Random trees of a root file and drop-ins, made of ingredients, with an account of what was written.

What this proves: nothing by itself; it is the half of the differential test that must not know the product. The account
(`Tree.declared`, `Tree.defaults`, …) is what the generator wrote, never what some parser read back. Everything comes from one
random.Random, so that a seed and a number name a tree for ever.

Two manners: tidy trees (one version, the names that belong to it, complete sections) are what most nodes have; wild trees mix
every version, every spelling of the plugin's name, every form of import and the oddities in `_ODDITIES`. Either may be edited
after the daemon has started.
"""

from __future__ import annotations

import dataclasses
import random
import typing as t
from dataclasses import dataclass, field

OLD, NEW, SHORT = "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime", "cri"
CONFIG = "/etc/containerd/config.toml"
NAMES = ("nvidia", "kata", "runsc", "crun", "spin", "kata-qemu", "nvidia-cdi", "youki", "wasmtime", "sysbox", "gvisor", "mine")
BINARIES = ("/usr/bin/nvidia-container-runtime", "/usr/local/bin/crun", "/opt/bin/youki", "/usr/bin/sysbox-runc")
SHIMS = ("kata", "runsc", "spin", "wasmtime")
"""Names X of the shims containerd-shim-X-v1 or -v2 that the test's nodes have, beside runc's."""
SHIM_TYPES = {"kata": "io.containerd.kata.v2", "runsc": "io.containerd.runsc.v1", "spin": "io.containerd.spin.v2", "wasmtime": "io.containerd.wasmtime.v1"}


@dataclass(frozen=True)
class Handler:
    """One table of a handler as written: no type means that the table holds options alone (or nothing)."""

    name: str
    runtime_type: str | None
    options: tuple[tuple[str, str | bool], ...] = ()


@dataclass
class File:
    """One file: what is in it and where. `key` is the plugin's key as written behind `plugins.`, quotes included."""

    path: str
    version: int | None
    key: str
    handlers: list[Handler] = field(default_factory=list)
    default: str | None = None
    imports: list[str] = field(default_factory=list)
    top: list[str] = field(default_factory=list)
    settings: list[tuple[str, str]] = field(default_factory=list)  # (table below the plugin or "", line)
    raw: list[str] = field(default_factory=list)
    also: list[Handler] = field(default_factory=list)  # tables that stand in `raw`, for the account
    level: str = ".containerd"
    imports_last: bool = False
    spelling: str = "tables"
    prefix: str = ""
    newline: str = "\n"
    broken: bool = False

    def render(self) -> str:
        """The file's text."""
        lines = [] if self.version is None else [f"version = {self.version}"]
        import_line = [f"imports = [{', '.join(_quoted(entry) for entry in self.imports)}]"] if self.imports else []
        lines += ([] if self.imports_last else import_line) + self.top
        plugin = f"plugins.{self.key}"
        settings = list(self.settings)
        if self.default is not None:
            settings.append((self.level, f"default_runtime_name = {_quoted(self.default)}"))
        for table in dict.fromkeys(name for name, _line in settings):
            lines += [f"[{plugin}{table}]", *(line for name, line in settings if name == table)]
        if self.spelling == "entries" and self.handlers:
            lines.append(f"[{plugin}{self.level}.runtimes]")
        for handler in self.handlers:
            lines += _HANDLER_SPELLINGS[self.spelling](f"{plugin}{self.level}.runtimes.", handler)
        lines += self.raw + (import_line if self.imports_last else [])
        return self.prefix + self.newline.join(lines) + self.newline


def _quoted(text: str) -> str:
    return f'"{text}"'


def _value(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else _quoted(value)


def _as_tables(stem: str, handler: Handler) -> list[str]:
    lines = [f"[{stem}{handler.name}]"]
    if handler.runtime_type is not None:
        lines.append(f"  runtime_type = {_quoted(handler.runtime_type)}")
    if handler.options:
        lines += [f"  [{stem}{handler.name}.options]", *(f"    {key} = {_value(value)}" for key, value in handler.options)]
    return lines


def _as_literals(stem: str, handler: Handler) -> list[str]:
    """Literal strings, a quoted handler name, blanks and comments where TOML allows them."""
    lines = [f"[ {stem}'{handler.name}' ]  # {handler.name}"]
    if handler.runtime_type is not None:
        lines.append(f"runtime_type='{handler.runtime_type}'   # type")
    if handler.options:
        lines.append(f"[ {stem}'{handler.name}'.\"options\" ]")
        lines += [f"{key}={_value(value) if isinstance(value, bool) else repr(value)}" for key, value in handler.options]
    return lines


def _as_inline(stem: str, handler: Handler) -> list[str]:
    """Options as an inline table."""
    lines = [f"[{stem}{handler.name}]"]
    if handler.runtime_type is not None:
        lines.append(f"runtime_type = {_quoted(handler.runtime_type)}")
    if handler.options:
        lines.append("options = { " + ", ".join(f"{key} = {_value(value)}" for key, value in handler.options) + " }")
    return lines


def _as_entry(stem: str, handler: Handler) -> list[str]:
    """The handler as one inline table in its parent; works for one handler of a file, the others are tables."""
    parts = [] if handler.runtime_type is None else [f"runtime_type = {_quoted(handler.runtime_type)}"]
    if handler.options:
        parts.append("options = { " + ", ".join(f"{key} = {_value(value)}" for key, value in handler.options) + " }")
    return [f"{handler.name} = {{ {', '.join(parts)} }}"]


_HANDLER_SPELLINGS: dict[str, t.Callable[[str, Handler], list[str]]] = {
    "tables": _as_tables,
    "literals": _as_literals,
    "inline": _as_inline,
    "entries": _as_entry,
}


@dataclass
class Tree:
    """One random tree: files, links and directories, the edit made after the start, and the account of it."""

    files: list[File]
    links: dict[str, str] = field(default_factory=dict)
    directories: list[str] = field(default_factory=list)
    others: dict[str, str] = field(default_factory=dict)  # files that are no configuration
    edit: list[File] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    systemd_cgroup: bool = False
    root: str = CONFIG
    upgrade: str | None = None  # release line of the program laid over the running one after the start
    ingredients: list[str] = field(default_factory=list)

    @property
    def stale(self) -> bool:
        """Whether files or program change after the daemon has started."""
        return bool(self.edit or self.removed or self.upgrade)

    def before(self) -> dict[str, str]:
        """Path to text at the time the daemon starts (links "-> target", directories end in /)."""
        tree = dict.fromkeys(self.directories, "") | {path: f"-> {target}" for path, target in self.links.items()}
        return tree | self.others | {file.path: file.render() for file in self.files}

    def final(self) -> list[File]:
        """The files as they lie on disk when the product looks."""
        replaced = {file.path: file for file in self.edit}
        kept = [replaced.pop(file.path, file) for file in self.files if file.path not in self.removed]
        return kept + list(replaced.values())

    def declared(self) -> list[tuple[str, Handler]]:
        """(path, handler) of each table written in a file that is TOML and no backup copy."""
        return [(file.path, handler) for file in self.final() if not file.broken and not _backup(file.path) for handler in file.handlers + file.also]

    def defaults(self) -> set[str]:
        """Each default_runtime_name written."""
        return {file.default for file in self.final() if file.default is not None and not file.broken and not _backup(file.path)}

    def settings(self) -> list[str]:
        """The lines of further settings, each with a value of its own that shows in a dump when it is effective."""
        return [line for file in self.final() if not _backup(file.path) for _table, line in file.settings]


def _backup(path: str) -> bool:
    return path.endswith((".bak", "~", ".orig", ".rpmnew", ".dpkg-old", ".tmpl"))


class Generator:
    """Makes one tree for a release line out of a random.Random."""

    def __init__(self, rng: random.Random, line: str) -> None:
        self.rng, self.line = rng, line
        self.one = line.startswith("1.")
        self.tree = Tree([])
        self._serial = 0

    def chance(self, share: float) -> bool:
        """True in this share of cases."""
        return self.rng.random() < share

    def note(self, ingredient: str) -> None:
        """Remembers an ingredient for the report."""
        self.tree.ingredients.append(ingredient)

    # parts ---------------------------------------------------------------------------------------------------------------------

    def handler(self, name: str, complete: bool = True) -> Handler:
        """A handler: of runc's type with a binary, or of a shim of its own; incomplete ones may lack the type."""
        cgroup: tuple[tuple[str, str | bool], ...] = (("SystemdCgroup", True),) if self.tree.systemd_cgroup else ()
        if name == "runc":
            return Handler(name, "io.containerd.runc.v2", cgroup)
        kind = self.rng.choice(SHIMS)
        if self.chance(0.6):
            made = Handler(name, "io.containerd.runc.v2", (("BinaryName", self.rng.choice(BINARIES)), *cgroup))
        else:
            made = Handler(name, SHIM_TYPES[kind])
        if not complete and self.chance(0.12):
            self.note("options only")
            made = dataclasses.replace(made, runtime_type=None, options=made.options or (("BinaryName", BINARIES[0]),))
        return made

    def names(self, count: int) -> list[str]:
        """Different handler names."""
        return self.rng.sample(NAMES, count)

    def spelling(self) -> str:
        """How handlers are spelled in a file."""
        return self.rng.choices(("tables", "literals", "inline", "entries"), (6, 2, 2, 1))[0]

    def key(self, plugin: str) -> str:
        """A right spelling of a plugin's key."""
        return plugin if plugin == SHORT else self.rng.choice((f'"{plugin}"', f'"{plugin}"', f"'{plugin}'"))

    def setting(self, plugin: str) -> tuple[str, str]:
        """A harmless setting of the plugin with a value that no other file has."""
        self._serial += 1
        return ".cni", f'conf_dir = "/etc/cni/net-{self._serial}.d"'

    # tidy ----------------------------------------------------------------------------------------------------------------------

    def tidy(self) -> Tree:
        """A tree as a careful person writes it for this line."""
        self.tree.systemd_cgroup = self.chance(0.5)
        version, plugin = self.rng.choice(_NATIVE[self.line])
        key = self.key(plugin)
        names = self.names(self.rng.randint(0, 4))
        root = File(self.tree.root, version, key, spelling=self.spelling())
        self.tree.files.append(root)
        drops = self.rng.randint(0, 2)
        if drops and self.one:
            self._tidy_complete_drop_in(root, version, key, names)
        elif drops:
            self._tidy_drop_ins(root, version, key, names, drops)
        else:
            root.handlers = [self.handler(name) for name in ["runc", *names]]
            if self.chance(0.4):
                root.default = self.rng.choice(["runc", *names])
        if self.chance(0.4) and (not self.one or root.handlers):
            root.settings.append(self.setting(plugin))
        if self.chance(0.15):
            self.note("backup")
            self.tree.files.append(File(root.path + ".bak", version, key, [self.handler("old-backup")]))
        if not root.handlers and not drops and self.chance(0.3):
            self.tree.files, self.tree.systemd_cgroup = [], False
            self.note("no file at all")
        return self.tree

    def _tidy_complete_drop_in(self, root: File, version: int | None, key: str, names: list[str]) -> None:
        """1.x replaces whole sections: the one drop-in holds everything."""
        root.imports = [self.rng.choice(("/etc/containerd/conf.d/*.toml", "/etc/containerd/conf.d/10-handlers.toml"))]
        drop = File("/etc/containerd/conf.d/10-handlers.toml", version, key, [self.handler(name) for name in ["runc", *names]], spelling=self.spelling())
        self.tree.files.append(drop)

    def _tidy_drop_ins(self, root: File, version: int | None, key: str, names: list[str], count: int) -> None:
        """2.x merges deeply: each drop-in brings its own handlers."""
        directory = self.rng.choice(("conf.d", "conf.d", "config.d"))
        paths = [f"/etc/containerd/{directory}/{number}0-{self.rng.choice(('gpu', 'vm', 'a', 'z'))}.toml" for number in range(1, count + 1)]
        root.imports = self.rng.choice(
            ([f"/etc/containerd/{directory}/*.toml"], paths, [f"{directory}/*.toml"], [f"{directory}/{path.rsplit('/', 1)[1]}" for path in paths])
        )
        if self.tree.systemd_cgroup or self.chance(0.5):  # the built-in runc has the other cgroup driver
            root.handlers = [self.handler("runc")]
        for index, path in enumerate(paths):
            mine = names[index::count]
            self.tree.files.append(File(path, version, key, [self.handler(name) for name in mine], spelling=self.spelling()))
        if names and self.chance(0.3):
            self.rng.choice(self.tree.files).default = self.rng.choice(names)

    # wild ----------------------------------------------------------------------------------------------------------------------

    def wild(self) -> Tree:
        """A tree in which anything may be mixed with anything."""
        self.tree.systemd_cgroup = self.chance(0.4)
        if self.chance(0.06):
            self.tree.root = "/etc/containerd/other.toml"
            self.note("-c elsewhere")
        root = self.wild_file(self.tree.root, root=True)
        self.tree.files.append(root)
        for _number in range(self.rng.choices((0, 1, 2, 3), (2, 5, 3, 1))[0]):
            self.wild_drop_in(root)
        for oddity, share in _ODDITIES.items():
            if self.chance(share):
                self.note(oddity.__name__.strip("_"))
                oddity(self, self.rng.choice(self.tree.files))
        return self.tree

    def wild_file(self, path: str, root: bool = False) -> File:
        """A file of any version under any name of the plugin."""
        version = self.rng.choices((None, 1, 2, 3, 4), (3, 1, 6, 4, 1))[0]
        fitting = {None: SHORT, 1: SHORT, 2: OLD, 3: NEW, 4: NEW}[version]
        plugin = fitting if self.chance(0.65) else self.rng.choice((OLD, NEW, SHORT))
        file = File(path, version, self.key(plugin), spelling=self.spelling())
        file.handlers = [self.handler(name, complete=False) for name in self.names(self.rng.randint(0, 3))]
        if self.chance(0.7 if root else 0.35):
            file.handlers.insert(0, self.handler("runc"))
        if self.chance(0.15) and file.handlers:
            file.default = self.rng.choice(file.handlers).name
        if self.chance(0.2):
            file.settings.append(self.setting(plugin))
        return file

    def wild_drop_in(self, parent: File) -> None:
        """A drop-in, and an entry in the parent's imports that may or may not reach it."""
        self._serial += 1
        name = f"{self.rng.choice(('10', '9', '99', 'Z', 'a', '.h'))}-{self._serial}"
        directory = self.rng.choice(("conf.d", "conf.d", "conf.d", "config.d"))
        path = f"/etc/containerd/{directory}/{name}.toml"
        form, entry, path = self.rng.choice(_IMPORT_FORMS)(self.rng, directory, name, path)
        self.note(f"import {form}")
        self.tree.files.append(self.wild_file(path))
        if entry is not None and entry not in parent.imports:
            parent.imports.append(entry)
        if form == "nested":
            middle = f"/etc/containerd/{directory}/nested-{self._serial}.toml"
            file = self.wild_file(middle)
            file.imports = [path]
            parent.imports[parent.imports.index(path)] = middle
            self.tree.files.append(file)

    # edits ---------------------------------------------------------------------------------------------------------------------

    def edit(self) -> None:
        """Changes the tree as somebody does who then forgets the restart."""
        files = [file for file in self.tree.files if not _backup(file.path)]
        choice = self.rng.choice(("add handler", "remove handler", "new file", "remove file", "change options", "change default", "change version", "break"))
        self.note(f"edit: {choice}")
        file = self.rng.choice(files) if files else File(self.tree.root, 2, f'"{OLD}"')
        changed = dataclasses.replace(file, handlers=list(file.handlers), imports=list(file.imports))
        spare = [name for name in NAMES if all(handler.name != name for each in files for handler in each.handlers)]
        if choice == "remove file" and file.path != self.tree.root:
            self.tree.removed.append(file.path)
            return
        if choice == "new file":
            changed = File("/etc/containerd/conf.d/50-new.toml", file.version, file.key, [self.handler("runc"), self.handler(self.rng.choice(spare))])
        elif choice == "remove handler" and changed.handlers:
            changed.handlers.pop(self.rng.randrange(len(changed.handlers)))
        elif choice == "change options" and changed.handlers:
            self._change_options(changed)
        elif choice == "change default":
            changed.default = self.rng.choice([handler.name for handler in changed.handlers] or ["runc"])
        elif choice == "change version":
            changed.version = self.rng.choice((None, 1, 2, 3, 4))
        elif choice == "break":
            changed.raw, changed.broken = [*changed.raw, "[[[ half written"], True
        else:
            changed.handlers.append(self.handler(self.rng.choice(spare)))
        self.tree.edit.append(changed)

    def _change_options(self, file: File) -> None:
        index = self.rng.randrange(len(file.handlers))
        handler = file.handlers[index]
        options = dict(handler.options) | {"BinaryName": "/usr/local/bin/crun"} if handler.runtime_type == "io.containerd.runc.v2" else dict(handler.options)
        file.handlers[index] = dataclasses.replace(handler, options=tuple(options.items()))

    def make(self) -> Tree:
        """The tree."""
        wild = self.chance(0.5)
        self.note("wild" if wild else "tidy")
        (self.wild if wild else self.tidy)()
        if self.chance(0.25):
            self.edit()
        if self.chance(0.08):
            self.tree.upgrade = self.rng.choice([line for line in _NATIVE if line != self.line])
            self.note(f"upgrade to {self.tree.upgrade}")
        return self.tree


_NATIVE: dict[str, list[tuple[int | None, str]]] = {
    **{line: [(2, OLD), (2, OLD), (2, OLD), (None, SHORT), (1, SHORT)] for line in ("1.4", "1.6", "1.7")},
    **{line: [(2, OLD), (3, NEW), (3, NEW), (2, NEW)] for line in ("2.0", "2.1", "2.2")},
    **{line: [(2, OLD), (3, NEW), (3, NEW), (4, NEW)] for line in ("2.3", "2.3.4", "2.4")},
}
"""Version and plugin name that a tidy file of the line has."""


# forms of import: (random, directory, name, path) -> (form, entry of imports or None, path of the file) -------------------------

_Form = t.Callable[[random.Random, str, str, str], "tuple[str, str | None, str]"]
_IMPORT_FORMS: list[_Form] = [
    lambda _rng, directory, _name, path: ("glob", f"/etc/containerd/{directory}/*.toml", path),
    lambda _rng, directory, _name, path: ("glob", f"/etc/containerd/{directory}/*.toml", path),
    lambda _rng, _directory, _name, path: ("literal", path, path),
    lambda _rng, _directory, _name, path: ("literal", path, path),
    lambda _rng, directory, name, path: ("relative literal", f"{directory}/{name}.toml", path),
    lambda _rng, directory, _name, path: ("relative glob", f"{directory}/*.toml", path),
    lambda _rng, _directory, _name, path: ("nested", path, path),
    lambda _rng, directory, name, path: ("unclean", f"/etc/containerd/./x/../{directory}/{name}.toml", path),
    lambda _rng, directory, name, _path: ("wrong extension", f"/etc/containerd/{directory}/*.toml", f"/etc/containerd/{directory}/{name}.conf"),
    lambda _rng, directory, _name, path: ("unmatched glob", f"/etc/containerd/{directory}.d/*.toml", path),
    lambda _rng, directory, name, path: ("brace", f"/etc/containerd/{directory}/{{{name},other}}*.toml", path),
    lambda _rng, directory, _name, path: ("double star", f"/etc/containerd/{directory}/**/*.toml", path),
    lambda rng, directory, name, path: ("class", f"/etc/containerd/{directory}/[!{rng.choice('0qz')}]*.toml", path),
    lambda _rng, directory, name, path: ("question mark", f"/etc/containerd/{directory}/?{name[1:]}*", path),
    lambda _rng, _directory, _name, path: ("not imported", None, path),
]


# oddities: each changes a file or the tree -------------------------------------------------------------------------------------


def _wrong_level(generator: Generator, file: File) -> None:
    file.level, file.default = "", None


def _misspelled_plugin(generator: Generator, file: File) -> None:
    file.key = generator.rng.choice((f'"{OLD}i"', '"io.containerd.cri.v1.runtimes"', '"io.containerd.grpc.v2.cri"'))


def _unquoted_plugin(generator: Generator, file: File) -> None:
    file.key = generator.rng.choice((OLD, NEW))


def _both_names(generator: Generator, file: File) -> None:
    twin = generator.wild_file(file.path)
    twin.version, twin.imports, twin.key = None, [], f'"{NEW if OLD in file.key else OLD}"'
    twin.default = None
    file.raw += twin.render().splitlines()
    file.also += twin.handlers


def _missing_import(generator: Generator, file: File) -> None:
    file.imports.insert(generator.rng.randint(0, len(file.imports)), "/etc/containerd/conf.d/gone.toml")


def _dangling_link(generator: Generator, file: File) -> None:
    generator.tree.links["/etc/containerd/conf.d/5-link.toml"] = "nowhere.toml"


def _link_to_a_file(generator: Generator, file: File) -> None:
    if file.path != generator.tree.root:
        generator.tree.links["/etc/containerd/conf.d/zz-alias.toml"] = file.path


def _imports_after_table(generator: Generator, file: File) -> None:
    file.imports_last = bool(file.handlers)


def _disabled_plugin(generator: Generator, file: File) -> None:
    name = generator.rng.choice((OLD, OLD, "cri", NEW, "io.containerd.snapshotter.v1.zfs"))
    file.top.append(f'disabled_plugins = ["{name}"]')


def _default_missing(generator: Generator, file: File) -> None:
    file.default = "nowhere"


def _empty_default(generator: Generator, file: File) -> None:
    file.default = ""


def _legacy_default_runtime(generator: Generator, file: File) -> None:
    file.raw += [f"[plugins.{file.key}.containerd.default_runtime]", 'runtime_type = "io.containerd.runc.v2"']


def _legacy_untrusted(generator: Generator, file: File) -> None:
    file.raw += [f"[plugins.{file.key}.containerd.untrusted_workload_runtime]", 'runtime_type = "io.containerd.kata.v2"']


def _dotted_handler(generator: Generator, file: File) -> None:
    if file.spelling != "entries":
        file.raw += [f"[plugins.{file.key}.containerd.runtimes.dotted.name]", 'runtime_type = "io.containerd.kata.v2"']
        file.also.append(Handler("dotted", "io.containerd.kata.v2"))


def _upper_case_handler(generator: Generator, file: File) -> None:
    if all(handler.name != "Kata_X" for handler in file.handlers):
        file.handlers.append(generator.handler("Kata_X"))


def _byte_order_mark(generator: Generator, file: File) -> None:
    file.prefix = "\ufeff"


def _windows_lines(generator: Generator, file: File) -> None:
    file.newline = "\r\n"


def _template(generator: Generator, file: File) -> None:
    file.raw, file.broken = [*file.raw, "{{ .NodeConfig }}"], True


def _duplicate_table(generator: Generator, file: File) -> None:
    if file.handlers:
        file.handlers.append(file.handlers[0])
        file.broken = True


def _version_in_table(generator: Generator, file: File) -> None:
    if file.version is not None:
        file.raw += ["[debug]", f"version = {file.version}"]
        file.version = None


def _unknown_snapshotter(generator: Generator, file: File) -> None:
    file.settings.append((".containerd" if OLD in file.key else "", 'snapshotter = "nydus"'))


def _base_spec_missing(generator: Generator, file: File) -> None:
    file.raw += [f"[plugins.{file.key}.containerd.runtimes.based]", 'runtime_type = "io.containerd.kata.v2"', 'base_runtime_spec = "/etc/containerd/gone.json"']
    file.also.append(Handler("based", "io.containerd.kata.v2"))


def _cycle(generator: Generator, file: File) -> None:
    file.imports.append(generator.tree.root)


def _star_and_directory(generator: Generator, file: File) -> None:
    file.imports.append("/etc/containerd/conf.d/*")
    generator.tree.directories.append("/etc/containerd/conf.d/sub/")


def _empty_file(generator: Generator, file: File) -> None:
    generator.tree.others["/etc/containerd/conf.d/00-empty.toml"] = generator.rng.choice(("", "# nothing here\n"))


def _imports_as_text(generator: Generator, file: File) -> None:
    if not file.imports:
        file.top.append('imports = "/etc/containerd/conf.d/*.toml"')


def _key_case(generator: Generator, file: File) -> None:
    if file.spelling == "tables" and file.handlers:
        first, *others = file.handlers
        keys = generator.rng.choice((("runtimes", "Runtime_Type"), ("runtimes", "RUNTIME_TYPE"), ("Runtimes", "runtime_type"), ("RUNTIMES", "runtime_type")))
        file.handlers, file.also = others, [*file.also, first]
        file.raw += [f"[plugins.{file.key}.containerd.{keys[0]}.{first.name}]", f"{keys[1]} = {_quoted(first.runtime_type or '')}"]


def _wrong_type(generator: Generator, file: File) -> None:
    file.raw += generator.rng.choice(
        (
            [f"[plugins.{file.key}.containerd.runtimes.typed]", "runtime_type = 5"],
            [f"[plugins.{file.key}.containerd.runtimes.typed]", 'runtime_type = "io.containerd.runc.v2"', 'privileged_without_host_devices = "yes"'],
            [f"[plugins.{file.key}.containerd.runtimes.typed]", 'runtime_type = "io.containerd.runc.v2"', 'pod_annotations = "a"'],
        )
    )
    file.also.append(Handler("typed", "io.containerd.runc.v2"))


def _version_as_text(generator: Generator, file: File) -> None:
    if file.version is not None:
        file.top.insert(0, generator.rng.choice((f'version = "{file.version}"', f"version = {file.version}.0", "version = 0", "version = -1", "version = 9")))
        file.version = None


def _empty_runtime_type(generator: Generator, file: File) -> None:
    if file.spelling != "entries":
        file.raw += [f"[plugins.{file.key}.containerd.runtimes.typeless]", 'runtime_type = ""']
        file.also.append(Handler("typeless", None))


def _commented_handler(generator: Generator, file: File) -> None:
    file.raw += [f"# [plugins.{file.key}.containerd.runtimes.commented]", '#   runtime_type = "io.containerd.runc.v2"']


def _handler_in_a_string(generator: Generator, file: File) -> None:
    file.raw += ["[debug]", 'level = """', '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.instring]', '"""']


def _registry_twice(generator: Generator, file: File) -> None:
    if OLD in file.key:
        file.raw += [
            f"[plugins.{file.key}.registry]",
            'config_path = "/etc/containerd/certs.d"',
            f'[plugins.{file.key}.registry.mirrors."r.example"]',
            'endpoint = ["https://m.example"]',
        ]


def _proxy_plugin_in_parts(generator: Generator, file: File) -> None:
    file.raw += ["[proxy_plugins.nydus]", *generator.rng.choice((['type = "snapshot"', 'address = "/run/nydus.sock"'], ['address = "/run/nydus.sock"']))]


def _more_keys(generator: Generator, file: File) -> None:
    """Keys of a handler that are right on some lines and unknown on others."""
    if file.spelling != "entries":
        lines = [
            'runtime_path = "/usr/local/bin/containerd-shim-kata-v2"',
            'snapshotter = "native"',
            'sandboxer = "podsandbox"',
            'sandbox_mode = "podsandbox"',
            "cni_max_conf_num = 1",
        ]
        lines += [
            'pod_annotations = ["io.katacontainers.*"]',
            'runtime_root = "/run/x"',
            'runtime_engine = "/usr/bin/x"',
            "unheard_of = true",
            "cgroup_writable = true",
        ]
        file.raw += [f"[plugins.{file.key}.containerd.runtimes.keyed]", 'runtime_type = "io.containerd.kata.v2"', *generator.rng.sample(lines, 2)]
        file.also.append(Handler("keyed", "io.containerd.kata.v2"))


def _option_typo(generator: Generator, file: File) -> None:
    if file.spelling != "entries":
        wrong = generator.rng.choice(('binary_name = "/opt/bin/youki"', "SystemdCgoup = true", "systemd_cgroup = true", 'binaryname = "/opt/bin/youki"'))
        file.raw += [
            f"[plugins.{file.key}.containerd.runtimes.slipped]",
            'runtime_type = "io.containerd.runc.v2"',
            f"[plugins.{file.key}.containerd.runtimes.slipped.options]",
            wrong,
        ]
        file.also.append(Handler("slipped", "io.containerd.runc.v2"))


def _plugin_level_systemd_cgroup(generator: Generator, file: File) -> None:
    file.settings.append(("", "systemd_cgroup = true"))


def _root_is_a_link(generator: Generator, file: File) -> None:
    root = generator.tree.files[0]
    if root.path == generator.tree.root and generator.tree.root == CONFIG:
        root.path = "/etc/containerd/real/config.toml"
        generator.tree.links[CONFIG] = "real/config.toml"


def _linked_directory(generator: Generator, file: File) -> None:
    if "/conf.d/" in file.path:
        generator.tree.links["/etc/containerd/linked.d"] = "conf.d"
        generator.tree.files[0].imports.append("/etc/containerd/linked.d/*.toml")


def _not_utf8(generator: Generator, file: File) -> None:
    file.top.append("# caf\udce9")


_ODDITIES: dict[t.Callable[[Generator, File], None], float] = {
    _wrong_level: 0.05,
    _misspelled_plugin: 0.05,
    _unquoted_plugin: 0.04,
    _both_names: 0.05,
    _missing_import: 0.05,
    _dangling_link: 0.05,
    _link_to_a_file: 0.04,
    _imports_after_table: 0.04,
    _disabled_plugin: 0.06,
    _default_missing: 0.03,
    _empty_default: 0.02,
    _legacy_default_runtime: 0.05,
    _legacy_untrusted: 0.04,
    _dotted_handler: 0.05,
    _upper_case_handler: 0.03,
    _byte_order_mark: 0.03,
    _windows_lines: 0.05,
    _template: 0.02,
    _duplicate_table: 0.02,
    _version_in_table: 0.03,
    _unknown_snapshotter: 0.02,
    _base_spec_missing: 0.02,
    _cycle: 0.03,
    _star_and_directory: 0.02,
    _empty_file: 0.05,
    _imports_as_text: 0.02,
    _key_case: 0.05,
    _wrong_type: 0.02,
    _version_as_text: 0.03,
    _empty_runtime_type: 0.03,
    _commented_handler: 0.05,
    _handler_in_a_string: 0.02,
    _registry_twice: 0.02,
    _proxy_plugin_in_parts: 0.02,
    _more_keys: 0.06,
    _option_typo: 0.04,
    _plugin_level_systemd_cgroup: 0.02,
    _root_is_a_link: 0.03,
    _linked_directory: 0.03,
    _not_utf8: 0.02,
}
"""What may go wrong in a wild tree, and how often."""


def make(seed: int, number: int, line: str) -> Tree:
    """The tree that this seed and number name."""
    return Generator(random.Random(f"{seed}/{number}/{line}"), line).make()
