"""The parts of a random tree: handlers, files, the tree itself, and the account of what was written.

What this proves: nothing by itself; it is the half of the differential test that must not know the product. The account
(`Tree.declared`, `Tree.defaults`, …) is what the generator wrote, never what some parser read back.
"""

from __future__ import annotations

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
    encoding: str = "utf-8"
    broken: bool = False

    def render(self) -> str:
        """The file's text; bytes that are no UTF-8 stand in it as surrogates."""
        lines = [] if self.version is None else [f"version = {self.version}"]
        import_line = [f"imports = [{', '.join(quoted(entry) for entry in self.imports)}]"] if self.imports else []
        lines += ([] if self.imports_last else import_line) + self.top
        plugin = f"plugins.{self.key}"
        settings = list(self.settings)
        if self.default is not None:
            settings.append((self.level, f"default_runtime_name = {quoted(self.default)}"))
        for table in dict.fromkeys(name for name, _line in settings):
            lines += [f"[{plugin}{table}]", *(line for name, line in settings if name == table)]
        if self.spelling == "entries" and self.handlers:
            lines.append(f"[{plugin}{self.level}.runtimes]")
        for handler in self.handlers:
            lines += _HANDLER_SPELLINGS[self.spelling](f"{plugin}{self.level}.runtimes.", handler)
        lines += self.raw + (import_line if self.imports_last else [])
        text = self.prefix + self.newline.join(lines) + self.newline
        return text if self.encoding == "utf-8" else text.encode(self.encoding).decode("utf-8", "surrogateescape")


def quoted(text: str) -> str:
    return f'"{text}"'


def _value(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else quoted(value)


def _as_tables(stem: str, handler: Handler) -> list[str]:
    lines = [f"[{stem}{handler.name}]"]
    if handler.runtime_type is not None:
        lines.append(f"  runtime_type = {quoted(handler.runtime_type)}")
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
        lines.append(f"runtime_type = {quoted(handler.runtime_type)}")
    if handler.options:
        lines.append("options = { " + ", ".join(f"{key} = {_value(value)}" for key, value in handler.options) + " }")
    return lines


def _as_entry(stem: str, handler: Handler) -> list[str]:
    """The handler as one inline table in its parent; works for one handler of a file, the others are tables."""
    parts = [] if handler.runtime_type is None else [f"runtime_type = {quoted(handler.runtime_type)}"]
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
class Written(File):
    """A file whose text is given; the account says which handlers stand in it."""

    text: str = ""

    def render(self) -> str:
        """The text."""
        return self.text


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
    restart: bool = False  # restart the daemon although nothing has changed
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
        return [(file.path, handler) for file in self.final() if not file.broken and not is_backup(file.path) for handler in file.handlers + file.also]

    def defaults(self) -> set[str]:
        """Each default_runtime_name written."""
        return {file.default for file in self.final() if file.default is not None and not file.broken and not is_backup(file.path)}

    def settings(self) -> list[str]:
        """The lines of further settings, each with a value of its own that shows in a dump when it is effective."""
        return [line for file in self.final() if not is_backup(file.path) for _table, line in file.settings]


def is_backup(path: str) -> bool:
    return path.endswith((".bak", "~", ".orig", ".rpmnew", ".dpkg-old", ".tmpl"))
