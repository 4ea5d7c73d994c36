"""Files for LOADING.md sections 1a, 1b and 2, and what a daemon makes of them, in one word.

What this proves: nothing by itself; test_loading_measured.py starts real daemons on these files. An outcome is one of

    FATAL            the daemon ends at its start
    CRI-DOWN         it runs, but does not serve CRI
    "foo runc"       the handlers loaded, sorted; a sandbox of another default is shown as "foo runc default=foo"

followed by " warn" when the log of a daemon that runs holds "Ignoring unknown key" for a plugin.
"""

from __future__ import annotations

import typing as t

from tests.testbed.host import CONFIG, ContainerdHost

OLD, NEW, SHORT = 'plugins."io.containerd.grpc.v1.cri"', 'plugins."io.containerd.cri.v1.runtime"', "plugins.cri"
DROP_IN = "/etc/containerd/conf.d/10-drop.toml"
IMPORTS = 'imports = ["/etc/containerd/conf.d/*.toml"]'


def text(version: int | None, *tables: tuple[str, str], top: str = "", more: str = "") -> str:
    """A configuration: version line (None: none), top-level lines, one table per (plugin, handlers separated by blanks), more."""
    lines = ([f"version = {version}"] if version is not None else []) + ([top] if top else [])
    for plugin, handlers in tables:
        for handler in handlers.split():
            kind = "io.containerd.runc.v2" if handler == "runc" else f"io.containerd.{handler.strip(chr(34))}.v2"
            lines += [f"[{plugin}.containerd.runtimes.{handler}]", f'runtime_type = "{kind}"']
    return "\n".join([*lines, more]) + "\n"


def main_only(*arguments: t.Any, **more: str) -> dict[str, str]:
    """A tree of the root file alone."""
    return {CONFIG: text(*arguments, **more)}


def pair(main: tuple[t.Any, ...], drop: tuple[t.Any, ...], **others: tuple[t.Any, ...]) -> dict[str, str]:
    """A tree of a root file that imports conf.d, and its drop-ins (10-drop, then others by name)."""
    tree = {CONFIG: text(main[0], *main[1:], top=IMPORTS), DROP_IN: text(*drop)}
    for name, arguments in others.items():
        tree[f"/etc/containerd/conf.d/{name}.toml"] = text(*arguments)
    return tree


def outcome(host: ContainerdHost, tree: t.Mapping[str, str], args: t.Sequence[str] | None = None) -> str:
    """Starts the host's daemon on the tree and returns the outcome in the words of this module."""
    host.reset()
    host.write_tree(tree)
    if not host.start(args):
        return "FATAL"
    answer = host.cri()
    warned = " warn" if "Ignoring unknown key" in host.log() else ""
    if answer["state"] != "served":
        return "CRI-DOWN" + warned
    loaded = answer["info"]["config"]["containerd"]
    default = "" if loaded["defaultRuntimeName"] == "runc" else f" default={loaded['defaultRuntimeName']}"
    return " ".join(sorted(loaded["runtimes"])) + default + warned


RUNC_FOO, KATA = "runc foo", "kata"
MAIN: dict[str, dict[str, str]] = {
    "v2 old": main_only(2, (OLD, RUNC_FOO)),
    "v2 new": main_only(2, (NEW, RUNC_FOO)),
    "v2 both": main_only(2, (OLD, RUNC_FOO), (NEW, "runc kata")),
    "v2 short": main_only(2, (SHORT, RUNC_FOO)),
    "v3 old": main_only(3, (OLD, RUNC_FOO)),
    "v3 new": main_only(3, (NEW, RUNC_FOO)),
    "v3 both": main_only(3, (OLD, RUNC_FOO), (NEW, "runc kata")),
    "v4 new": main_only(4, (NEW, RUNC_FOO)),
    "v4 old": main_only(4, (OLD, RUNC_FOO)),
    "v4 both": main_only(4, (OLD, RUNC_FOO), (NEW, "runc kata")),
    "none old": main_only(None, (OLD, RUNC_FOO)),
    "none short": main_only(None, (SHORT, RUNC_FOO)),
    "v1 short": main_only(1, (SHORT, RUNC_FOO)),
    "none new": main_only(None, (NEW, RUNC_FOO)),
    "empty": {CONFIG: ""},
    "version in table": {CONFIG: "[debug]\nversion = 2\n" + text(None, (OLD, RUNC_FOO))},
    "v3 short": main_only(3, (SHORT, RUNC_FOO)),
    "v5 new": main_only(5, (NEW, RUNC_FOO)),
}
"""Section 1a: the root file alone."""

PAIR: dict[str, dict[str, str]] = {
    "v2 old + v2 old": pair((2, (OLD, RUNC_FOO)), (2, (OLD, KATA))),
    "v2 old + v2 old with runc": pair((2, (OLD, RUNC_FOO)), (2, (OLD, "runc kata"))),
    "v2 old + v3 new": pair((2, (OLD, RUNC_FOO)), (3, (NEW, KATA))),
    "v3 new + v2 old": pair((3, (NEW, RUNC_FOO)), (2, (OLD, "runc kata"))),
    "v3 new without runtimes + v2 old": pair((3,), (2, (OLD, "runc kata"))),
    "v3 new + v3 new": pair((3, (NEW, RUNC_FOO)), (3, (NEW, KATA))),
    "v3 new + v4 new": pair((3, (NEW, RUNC_FOO)), (4, (NEW, KATA))),
    "v2 old + v4 new": pair((2, (OLD, RUNC_FOO)), (4, (NEW, KATA))),
    "v2 old + none old": pair((2, (OLD, RUNC_FOO)), (None, (OLD, "runc kata"))),
    "v2 old + none new": pair((2, (OLD, RUNC_FOO)), (None, (NEW, KATA))),
    "v2 old + v2 new": pair((2, (OLD, RUNC_FOO)), (2, (NEW, KATA))),
    "v2 old + none short": pair((2, (OLD, RUNC_FOO)), (None, (SHORT, KATA))),
    "v2 old + v1 short": pair((2, (OLD, RUNC_FOO)), (1, (SHORT, "runc kata"))),
    "v3 new + none new": pair((3, (NEW, RUNC_FOO)), (None, (NEW, KATA))),
    "v3 new + none old": pair((3, (NEW, RUNC_FOO)), (None, (OLD, "runc kata"))),
    "none old + v2 old": pair((None, (OLD, RUNC_FOO)), (2, (OLD, "runc kata"))),
    "none old + v3 new": pair((None, (OLD, RUNC_FOO)), (3, (NEW, KATA))),
    "v1 short + v3 new": pair((1, (SHORT, RUNC_FOO)), (3, (NEW, KATA))),
    "v4 new + v3 v2 none": pair((4, (NEW, RUNC_FOO)), (3, (NEW, KATA)), **{"20": (2, (OLD, "bar")), "30": (None, (NEW, "baz"))}),
    "v4 new + v4 old": pair((4, (NEW, RUNC_FOO)), (4, (OLD, "runc kata"))),
    "v2 old + v4 new + v3 new": pair((2, (OLD, RUNC_FOO)), (4, (NEW, KATA)), **{"20": (3, (NEW, "bar"))}),
}
"""Section 1b: root file and drop-ins."""


CRI = {1: OLD, 2: OLD, 3: NEW, 4: NEW}


def same(first: str, second: str, version: int = 2, top: str = "") -> dict[str, str]:
    """Root and one drop-in of the same version; `first` and `second` are lines with @ for the version's CRI runtime plugin."""
    plugin = CRI[version]
    return {
        CONFIG: f"version = {version}\n{IMPORTS}\n{top}\n{first.replace('@', plugin)}\n",
        DROP_IN: f"version = {version}\n{second.replace('@', plugin)}\n",
    }


def imports(pattern: str, files: dict[str, str] | None = None, more: str = "") -> dict[str, str]:
    """A complete version 2 root with `imports = [pattern]`; each drop-in given holds runc, foo and a handler named after it."""
    tree = {CONFIG: f"version = 2\nimports = [{pattern}]\n{more}\n" + text(None, (OLD, RUNC_FOO))}
    for path, handler in (files or {}).items():
        tree[path] = handler if handler.startswith("-> ") or path.endswith("/") else text(2, (OLD, f"runc foo {handler}"))
    return tree


_RUNC = '[@.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
_D = "/etc/containerd/d"
MERGE: dict[str, dict[str, str]] = {
    "runc options only": main_only(2, more=f"[{OLD}.containerd.runtimes.runc.options]\nSystemdCgroup = true"),
    "only kata": main_only(2, (OLD, KATA)),
    "default missing": main_only(2, (OLD, RUNC_FOO), more=f'[{OLD}.containerd]\ndefault_runtime_name = "nope"'),
    "default in drop-in": same(
        _RUNC + '[@.containerd.runtimes.foo]\nruntime_type = "io.containerd.foo.v2"',
        _RUNC.replace("runc]", "foo]") + '[@.containerd]\ndefault_runtime_name = "foo"',
    ),
    "wrong level": main_only(2, (OLD, "runc"), more=f'[{OLD}.runtimes.kata]\nruntime_type = "io.containerd.kata.v2"'),
    "wrong level alone": main_only(2, more="".join(f'[{OLD}.runtimes.{name}]\nruntime_type = "io.containerd.{name}.v2"\n' for name in ("runc", "kata"))),
    "wrong level, other keys at the right one": main_only(
        2,
        more=f'[{OLD}.containerd]\nsnapshotter = "native"\n'
        + "".join(f'[{OLD}.runtimes.{name}]\nruntime_type = "io.containerd.{name}.v2"\n' for name in ("runc", "kata")),
    ),
    "legacy default_runtime": main_only(2, (OLD, RUNC_FOO), more=f'[{OLD}.containerd.default_runtime]\nruntime_type = "io.containerd.runc.v2"'),
    "dotted handler": main_only(2, (OLD, "runc"), more=f'[{OLD}.containerd.runtimes.kata.qemu]\nruntime_type = "io.containerd.kata.v2"'),
    "disabled in root": main_only(2, (OLD, RUNC_FOO), top='disabled_plugins = ["io.containerd.grpc.v1.cri"]'),
    "disabled in root, emptied in drop-in": same(_RUNC, "disabled_plugins = []", top='disabled_plugins = ["io.containerd.grpc.v1.cri"]'),
    "disabled in drop-in": same(_RUNC, "", top="") | {DROP_IN: 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n'},
    "disabled short v1": main_only(None, (SHORT, RUNC_FOO), top='disabled_plugins = ["cri"]'),
    "disabled short v2": main_only(2, (OLD, RUNC_FOO), top='disabled_plugins = ["cri"]'),
    "disabled cri runtime": main_only(2, (OLD, RUNC_FOO), top='disabled_plugins = ["io.containerd.cri.v1.runtime"]'),
    "snapshotter unknown": main_only(2, (OLD, RUNC_FOO), more=f'[{OLD}.containerd]\nsnapshotter = "nydus"'),
    "mirrors and config_path": main_only(
        2,
        (OLD, RUNC_FOO),
        more=f'[{OLD}.registry]\nconfig_path = "/etc/containerd/certs.d"\n[{OLD}.registry.mirrors."a.example"]\nendpoint = ["https://a.example"]',
    ),
    "base spec missing": main_only(
        2, (OLD, "runc"), more=f'[{OLD}.containerd.runtimes.kata]\nruntime_type = "io.containerd.kata.v2"\nbase_runtime_spec = "/nonexistent.json"'
    ),
    "proxy plugin address in drop-in": same(
        _RUNC + '[proxy_plugins.p]\ntype = "snapshot"\naddress = "/run/p.sock"', '[proxy_plugins.p]\naddress = "/run/q.sock"'
    ),
    "misspelled plugin": main_only(2, (OLD, "runc"), ('plugins."io.containerd.grpc.v1.crii"', "foo")),
    "unquoted plugin": main_only(2, ("plugins.io.containerd.grpc.v1.cri", RUNC_FOO)),
    "imports after table": {CONFIG: text(2, (OLD, RUNC_FOO)) + IMPORTS + "\n", DROP_IN: text(2, (OLD, "runc kata"))},
}
"""Section 2 and 3: merging and what takes CRI away."""

IMPORT: dict[str, dict[str, str]] = {
    "literal": imports(f'"{_D}/a.toml"', {f"{_D}/a.toml": "a"}),
    "glob": imports(f'"{_D}/*.toml"', {f"{_D}/a.toml": "a"}),
    "glob, wrong extension": imports(f'"{_D}/*.toml"', {f"{_D}/a.conf": "a"}),
    "glob, no match": imports(f'"{_D}/*.toml"'),
    "brace": imports(f'"{_D}/{{a,b}}*.toml"', {f"{_D}/a.toml": "a"}),
    "question mark": imports(f'"{_D}/?.toml"', {f"{_D}/a.toml": "a"}),
    "double star": imports(f'"{_D}/**/*.toml"', {f"{_D}/x/a.toml": "a", f"{_D}/x/y/b.toml": "b"}),
    "dot-file": imports(f'"{_D}/*.toml"', {f"{_D}/.a.toml": "a"}),
    "relative literal": imports('"d/a.toml"', {f"{_D}/a.toml": "a"}),
    "relative glob": imports('"d/*.toml"', {f"{_D}/a.toml": "a"}),
    "literal missing": imports(f'"{_D}/no.toml", "{_D}/a.toml"', {f"{_D}/a.toml": "a"}),
    "dangling link": imports(f'"{_D}/*.toml"', {f"{_D}/0.toml": "-> /nonexistent", f"{_D}/a.toml": "a"}),
    "star meets directory": imports(f'"{_D}/*"', {f"{_D}/x/": "", f"{_D}/a.toml": "a"}),
    "malformed glob, files beside": imports(f'"{_D}/[*"', {f"{_D}/a.toml": "a"}),
    "malformed glob": imports(f'"{_D}/[*"'),
    "byte order": imports(f'"{_D}/*.toml"', {f"{_D}/9-b.toml": "b", f"{_D}/10-a.toml": "a", f"{_D}/Z.toml": "z", f"{_D}/99.toml": "m"}),
    "imports is a string": {CONFIG: f'version = 2\nimports = "{_D}/a.toml"\n' + text(None, (OLD, RUNC_FOO))},
    "cycle": imports(f'"{CONFIG}"'),
    "conf.d without imports": {CONFIG: text(2, (OLD, RUNC_FOO)), DROP_IN: text(2, (OLD, "runc kata"))},
    "conf.d without config": {DROP_IN: text(2, (OLD, "runc kata"))},
    "byte order mark": {CONFIG: "\ufeff" + text(2, (OLD, RUNC_FOO))},
    "duplicate table": {CONFIG: text(2, (OLD, "runc foo foo"))},
    "not TOML": {CONFIG: "version = 2\n{{ .template }}\n"},
}
"""Sections 2a and 2b: which files are read."""
