"""Tidy and wild trees of a root file and drop-ins, and what somebody changes after the daemon has started.

What this proves: nothing by itself. Tidy trees (one version, the names that belong to it, complete sections) are what most nodes
have; wild trees mix every version, every spelling of the plugin's name, every form of import and the oddities of oddities.py.
"""

from __future__ import annotations

import dataclasses
import random
import typing as t

from tests.differential.oddities import ODDITIES
from tests.differential.parts import BINARIES, NAMES, NEW, OLD, SHIM_TYPES, SHIMS, SHORT, File, Handler, Tree, is_backup


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
        version, plugin = self.rng.choice(NATIVE[self.line])
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
        for oddity, share in ODDITIES.items():
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
        files = [file for file in self.tree.files if not is_backup(file.path)]
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

    def another_line(self) -> str:
        """Any release line but the tree's own."""
        return self.rng.choice([line for line in NATIVE if line != self.line])


NATIVE: dict[str, list[tuple[int | None, str]]] = {
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
    lambda _rng, directory, _name, path: ("home directory", f"~/{directory}/*.toml", path),
    lambda _rng, directory, _name, path: ("URL", f"file:///etc/containerd/{directory}/*.toml", path),
    lambda _rng, directory, _name, path: ("malformed", f"/etc/containerd/{directory}/[*.toml", path),
    lambda _rng, _directory, _name, path: ("not imported", None, path),
]
