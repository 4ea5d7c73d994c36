"""Trees that are made to have one numbered fault, each with everything else left to chance.

What this proves: nothing by itself. Faults that need several things at once (two files of certain versions, a daemon that was started
with -c) hardly come up where everything is thrown together; here they are made on purpose. `WHOLE` lay out the files, `FATAL` and `MILD`
change a tidy tree. Which fault an aim stands for is its number; whether the product names it is what the run counts.
"""

from __future__ import annotations

import dataclasses
import typing as t

from tests.differential import oddities
from tests.differential.generator import NATIVE, Generator
from tests.differential.parts import BINARIES, CONFIG, NEW, OLD, SHORT, File, Handler
from tests.differential.possible import ALL, LEGACY, MIDDLE, NEWEST, ONE, TWO

K3S = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"
OTHER = "/etc/containerd/other.toml"
_MERGING = "/etc/containerd/conf.d/"


@dataclasses.dataclass(frozen=True)
class Aim:
    """How a fault comes about on some lines. weight: how often, beside the others of the line (weighed with rehearsal.py)."""

    number: int
    lines: tuple[str, ...]
    make: t.Callable[[Generator], None]
    weight: float


# parts ---------------------------------------------------------------------------------------------------------------------------


def _file(generator: Generator, path: str, version: int | None, plugin: str, names: t.Sequence[str], runc: bool = True) -> File:
    """A complete file: every handler has its type."""
    file = File(path, version, generator.key(plugin), spelling=generator.spelling())
    file.handlers = [generator.handler(name) for name in (["runc"] if runc else []) + list(names)]
    if names and generator.chance(0.2):
        file.default = generator.rng.choice(names)
    return file


def _root(generator: Generator, version: int | None, plugin: str, runc: bool = True) -> File:
    """The root file, with one to three handlers beside runc."""
    generator.tree.systemd_cgroup = generator.chance(0.3)
    root = _file(generator, generator.tree.root, version, plugin, generator.names(generator.rng.randint(1, 3)), runc)
    generator.tree.files.append(root)
    return root


def _drop_in(generator: Generator, version: int | None, plugin: str, runc: bool = False, handlers: bool = True) -> File:
    """A drop-in with handlers that the root does not have, imported in one of the ways that work on the line."""
    root = generator.tree.files[0]
    spare = [name for name in generator.names(6) if all(handler.name != name for handler in root.handlers)]
    taken = {file.path for file in generator.tree.files}
    paths = [f"{_MERGING}{name}.toml" for name in ("10-gpu", "50-vm", "99-z", "a", "15-more", "55-more", "b", "c")]
    path = generator.rng.choice([path for path in paths if path not in taken])
    drop = _file(generator, path, version, plugin, spare[: generator.rng.randint(1, 2)] if handlers else [], runc)
    name = path.rsplit("/", 1)[1]
    forms = [path, f"{_MERGING}*.toml", f"conf.d/{name}", f"/etc/containerd/./x/../conf.d/{name}", f"{_MERGING}[!q]*.toml"]
    if generator.line not in ("1.4", "1.6"):
        forms.append("conf.d/*.toml")
    root.imports.append(generator.rng.choice(forms))
    generator.tree.files.append(drop)
    return drop


def _more(generator: Generator, handlers: bool = False) -> tuple[File, File]:
    """The root and one more drop-in of the root's own version and plugin name."""
    root = generator.tree.files[0]
    return root, _drop_in(generator, root.version, root.key.strip("\"'"), handlers=handlers)


def _native(generator: Generator) -> tuple[int | None, str]:
    return generator.rng.choice(NATIVE[generator.line])


def _lines_of(file: File) -> list[str]:
    """A file's tables, to stand in another one."""
    return dataclasses.replace(file, version=None, imports=[], default=None, spelling="tables").render().splitlines()


def _beside(generator: Generator, file: File, key: str, level: str = ".containerd") -> None:
    """One more handler in the file, under another key or at another level."""
    name = generator.rng.choice(("aside", "apart", "astray"))
    extra = File(file.path, None, key, [generator.handler(name)], level=level)
    file.raw += _lines_of(extra)
    file.also += extra.handlers


def _handler_table(generator: Generator, name: str, lines: t.Sequence[str], kind: str = "io.containerd.runc.v2") -> None:
    """A handler with these lines in its table, in any file that has a CRI table."""
    file = generator.rng.choice([file for file in generator.tree.files if file.handlers] or generator.tree.files)
    file.spelling = "tables" if file.spelling == "entries" else file.spelling
    file.raw += [f"[plugins.{file.key}.containerd.runtimes.{name}]", f'runtime_type = "{kind}"', *lines]
    file.also.append(Handler(name, kind))


# aims that lay out the files -----------------------------------------------------------------------------------------------------


def _section_replaced(generator: Generator) -> None:
    _root(generator, 2, OLD)
    _drop_in(generator, 2, OLD, runc=True)


def _no_runc(generator: Generator) -> None:
    _root(generator, *generator.rng.choice(((2, OLD), (None, SHORT), (1, SHORT))), runc=False).default = None


def _old_root(generator: Generator) -> None:
    _root(generator, generator.rng.choice((None, 1)), SHORT)
    if generator.chance(0.3):
        _drop_in(generator, 3, NEW)


def _long_names_without_version(generator: Generator) -> None:
    _root(generator, None, OLD)


def _old_names_in_newer_file(generator: Generator) -> None:
    _root(generator, 3 if generator.line in MIDDLE else 4, OLD)
    if generator.chance(0.3):
        _drop_in(generator, None, NEW)


def _newer_drop_in(generator: Generator) -> None:
    _root(generator, 2, OLD)
    _drop_in(generator, 3, NEW)


def _older_drop_in(generator: Generator) -> None:
    _root(generator, 3, NEW)
    _drop_in(generator, 2, OLD)


def _lowering_drop_in(generator: Generator) -> None:
    """A drop-in that states version 1 and has nothing of CRI, or the short name."""
    _root(generator, 2, OLD)
    drop = _drop_in(generator, 1, SHORT, runc=True, handlers=generator.chance(0.5))
    if not any(handler.name != "runc" for handler in drop.handlers):
        drop.handlers, drop.raw = [], ["[debug]", 'level = "info"']


def _new_names_hide(generator: Generator) -> None:
    _root(generator, 2, OLD)
    _drop_in(generator, generator.rng.choice((None, 2)), NEW)


def _two_names(generator: Generator) -> None:
    root = _root(generator, generator.rng.choice((2, 3)) if generator.line in NEWEST else 2, OLD)
    other = File(root.path, None, f'"{NEW}"', [generator.handler("runc"), generator.handler("renamed")])
    root.handlers = [handler for handler in root.handlers if handler.name != "runc"]
    root.default = None
    root.raw += _lines_of(other)
    root.also += other.handlers


def _short_name(generator: Generator) -> None:
    _root(generator, 2, SHORT)


def _relative_glob(generator: Generator) -> None:
    root = _root(generator, 2, OLD)
    drop = _drop_in(generator, 2, OLD, runc=True)
    root.imports = [generator.rng.choice(("conf.d/*.toml", "./conf.d/*.toml", "conf.d/" + drop.path.rsplit("/", 1)[1][:1] + "*"))]


def _config_missing(generator: Generator) -> None:
    """-c names a file that is not there; what people wrote stands in the usual one."""
    generator.tree.root = CONFIG
    root = _root(generator, *_native(generator))
    generator.tree.root = generator.rng.choice((OTHER, K3S))
    if generator.chance(0.5):
        generator.tree.files.remove(root)


def _other_runtimes_file(generator: Generator) -> None:
    """The daemon was started with -c on k3s' file, and somebody wrote into /etc/containerd."""
    version, plugin = _native(generator)
    generator.tree.root = K3S
    _root(generator, version, plugin)
    usual = _file(generator, CONFIG, version, plugin, ["apart", *generator.names(1)])
    usual.default = None
    generator.tree.files.append(usual)


def _rendered_file(generator: Generator) -> None:
    """k3s' file is edited after the start."""
    generator.tree.root = K3S
    root = _root(generator, *_native(generator))
    changed = dataclasses.replace(root, handlers=[*root.handlers, generator.handler("late")])
    generator.tree.edit.append(changed)


def _too_new(generator: Generator) -> None:
    version, plugin = {"1.7": (3, NEW)}.get(generator.line, (4, NEW) if generator.line in MIDDLE else (5, NEW))
    _root(generator, version, generator.rng.choice((plugin, OLD)))


def _new_names_on_1x(generator: Generator) -> None:
    _root(generator, 2 if generator.line == "1.7" else generator.rng.choice((2, 3)), NEW)


def _version_3_on_1x(generator: Generator) -> None:
    """1.4 and 1.6 read old names in it; later releases do not start, or do not read them."""
    if generator.line == "1.7":
        _root(generator, 2, OLD).top.append(generator.rng.choice(("# bell \x07", "# caf\udce9")))
    else:
        _root(generator, 3, OLD)


def _newer_than_root(generator: Generator) -> None:
    _root(generator, *generator.rng.choice(((3, NEW), (2, OLD))))
    _drop_in(generator, 4, NEW)


def _overridden(generator: Generator) -> None:
    """A handler in two files, and the one that holds is not the one that sorts last by number."""
    root = generator.tree.files[0]
    first, second = generator.rng.choice((("10-first", "9-second"), ("50-first", "6-second"), ("10-first", ".hidden")))
    paths = [f"{_MERGING}{name}.toml" for name in (first, second)]
    root.imports.append(f"{_MERGING}*.toml")
    for path, binary in zip(paths, generator.rng.sample(BINARIES, 2)):
        handler = Handler("shared", "io.containerd.runc.v2", (("BinaryName", binary),))
        generator.tree.files.append(File(path, root.version, root.key, [handler], spelling=generator.spelling()))


def _baked(generator: Generator) -> None:
    """What `containerd config migrate` leaves: the drop-in's handler stands in the root too."""
    root, drop = _more(generator, handlers=True)
    root.handlers.append(drop.handlers[-1])


def _zero_value(generator: Generator) -> None:
    root, drop = _more(generator)
    first, second = generator.rng.choice((("oom_score = 100", "oom_score = 0"), ('root = "/var/lib/containerd"', 'root = ""')))
    root.top.append(first)
    drop.top.append(second)


def _wrong_home(generator: Generator) -> None:
    for file in generator.tree.files:
        file.version, file.key = 3, f'"{NEW}"'
    root = generator.tree.files[0]
    table, line = generator.rng.choice(
        (
            ("", 'sandbox_image = "registry.example/pause:9"'),
            ("", "max_concurrent_downloads = 7"),
            (".registry", 'config_path = "/etc/containerd/certs.d"'),
            (".containerd", 'snapshotter = "native"'),
            (".containerd", "discard_unpacked_layers = true"),
        )
    )
    root.settings.append((table, line))


def _arrays(generator: Generator) -> None:
    """A list in two files: the later one replaces the earlier one."""
    root, drop = _more(generator)
    for file, value in ((root, "io.first"), (drop, "io.second")):
        file.raw += [f"[plugins.{file.key}.containerd.runtimes.listed]", 'runtime_type = "io.containerd.kata.v2"', f'pod_annotations = ["{value}.*"]']
        file.also.append(Handler("listed", "io.containerd.kata.v2"))


def _not_imported(generator: Generator) -> None:
    """Files that no import reaches, in all the ways in which people miss."""
    version, plugin = _native(generator)
    root = _root(generator, version, plugin)
    name, entry = generator.rng.choice(
        (
            ("config.d/10-lost.toml", None),
            ("config.d/10-lost.toml", "/etc/containerd/conf.d/*.toml"),
            ("conf.d/10-lost.conf", "/etc/containerd/conf.d/*.toml"),
            ("conf.d/10-lost.TOML", "/etc/containerd/conf.d/*.toml"),
            ("config.d/deep/10-lost.toml", "/etc/containerd/config.d/*.toml"),
            ("config.d/10-lost.toml", "/etc/containerd/config.d/{10,20}-*.toml"),
            ("config.d/10-lost.toml", "/etc/containerd/config.d/**/*.toml"),
            ("config.d/10-lost.toml", "~/config.d/*.toml"),
        )
    )
    generator.tree.files.append(_file(generator, f"/etc/containerd/{name}", version, plugin, ["missed"], runc=False))
    root.imports += [entry] if entry else []


def _misplaced_imports(generator: Generator) -> None:
    version, plugin = _native(generator)
    root = _root(generator, version, plugin)
    _drop_in(generator, version, plugin, runc=True)
    root.imports_last = True


def _confd_not_imported(generator: Generator) -> None:
    version, plugin = _native(generator)
    if generator.chance(0.8):
        _root(generator, version, plugin)
    drop = _file(generator, _MERGING + "20-printed.toml", version, plugin, ["printed"], runc=False)
    generator.tree.files.append(drop)


WHOLE = (
    Aim(2, ONE, _section_replaced, 0.5),
    Aim(3, LEGACY, _no_runc, 1.0),
    Aim(4, MIDDLE, _old_root, 1.2),
    Aim(5, ONE, _long_names_without_version, 1.9),
    Aim(6, TWO, _old_names_in_newer_file, 2.4),
    Aim(7, (*MIDDLE, "2.3.4"), _newer_drop_in, 2.9),
    Aim(8, MIDDLE, _older_drop_in, 3.2),
    Aim(9, ONE, _lowering_drop_in, 2.3),
    Aim(10, MIDDLE, _new_names_hide, 3.1),
    Aim(11, TWO, _two_names, 2.6),
    Aim(12, ALL, _short_name, 2.0),
    Aim(18, ALL, _not_imported, 0.3),
    Aim(19, ("1.4", "1.6"), _relative_glob, 2.0),
    Aim(20, ALL, _misplaced_imports, 2.6),
    Aim(21, ("2.2", *NEWEST), _confd_not_imported, 0.3),
    Aim(23, ALL, _config_missing, 2.7),
    Aim(24, ALL, _other_runtimes_file, 2.6),
    Aim(25, ALL, _rendered_file, 1.0),
    Aim(40, ("2.3.4",), _newer_than_root, 2.9),
    Aim(49, ("1.7", *TWO), _too_new, 1.9),
    Aim(50, ONE, _new_names_on_1x, 0.7),
    Aim(52, ONE, _version_3_on_1x, 2.9),
)


# aims that change a tidy tree ----------------------------------------------------------------------------------------------------


def _on_a_file(oddity: t.Callable[[Generator, File], None]) -> t.Callable[[Generator], None]:
    """An oddity, done to a file that has handlers."""

    def made(generator: Generator) -> None:
        file = generator.rng.choice([file for file in generator.tree.files if file.handlers] or generator.tree.files)
        file.spelling = "tables" if file.spelling == "entries" else file.spelling
        oddity(generator, file)

    made.__name__ = oddity.__name__
    return made


def _entry_of_proxy_plugin(generator: Generator) -> None:
    generator.tree.files[0].raw += ["[proxy_plugins.nydus]", 'address = "/run/nydus.sock"']


def _missing_import(generator: Generator) -> None:
    """A file or a link that is gone. 1.4 skips all that comes later; there must be something."""
    root, _drop = _more(generator, handlers=True)
    root.imports.insert(0, _MERGING + "gone.toml")


def _malformed_pattern(generator: Generator) -> None:
    generator.tree.files[0].imports.append(_MERGING + generator.rng.choice(("[*.toml", "[*", "*[a-")))
    generator.tree.others[_MERGING + "00-empty.toml"] = "# nothing here\n"


def _disabled_by_short_name(generator: Generator) -> None:
    """Docker's line in a file that states a version."""
    root = generator.tree.files[0]
    root.top.append('disabled_plugins = ["cri"]')
    if root.version in (None, 1) or (root.version, generator.line) == (3, "1.4"):
        root.version, root.key = 2, f'"{OLD}"'
    for file in generator.tree.files[1:]:
        file.version, file.key = root.version, root.key


def _disabled(generator: Generator) -> None:
    root = generator.tree.files[0]
    short = generator.line in ONE and root.version in (None, 1)
    root.top.append(f'disabled_plugins = ["{"cri" if short else OLD}"]')


def _wrong_type(generator: Generator) -> None:
    generator.tree.files[0].top.append(
        generator.rng.choice(('oom_score = "low"', 'imports = "/etc/containerd/conf.d/*.toml"', 'root = 5', 'disabled_plugins = "cri"'))
    )
    generator.tree.files[0].imports = []


FATAL = (
    Aim(22, ALL, _missing_import, 1.8),
    Aim(26, ALL, _disabled, 0.3),
    Aim(27, ALL, _on_a_file(oddities._default_missing), 0.8),
    Aim(27, ALL, _on_a_file(oddities._empty_default), 0.8),
    Aim(27, ALL, _on_a_file(oddities._base_spec_missing), 0.8),
    Aim(29, ALL, _entry_of_proxy_plugin, 2.1),
    Aim(47, ALL, _on_a_file(oddities._template), 0.2),
    Aim(47, ALL, _on_a_file(oddities._duplicate_table), 0.2),
    Aim(48, ALL, _on_a_file(oddities._byte_order_mark), 2.4),
    Aim(51, ALL, _wrong_type, 3.2),
    Aim(53, ALL, _malformed_pattern, 2.1),
    Aim(54, ALL, _disabled_by_short_name, 2.7),
)


def _misspelled_beside(generator: Generator) -> None:
    root = generator.tree.files[0]
    wrong = (f'"{OLD}i"', '"io.containerd.cri.v1.runtimes"', '"io.containerd.grpc.v2.cri"', '"io.containerd.grpc.v1.cri "', '"IO.containerd.grpc.v1.cri"')
    _beside(generator, root, generator.rng.choice(wrong))


def _wrong_level_beside(generator: Generator) -> None:
    root = generator.tree.files[0]
    if not root.handlers:
        root.handlers = [generator.handler("runc")]
    _beside(generator, root, root.key, level="")


def _legacy(generator: Generator) -> None:
    root = generator.tree.files[0]
    kind = generator.rng.choice((oddities._legacy_default_runtime, oddities._legacy_untrusted, oddities._plugin_level_systemd_cgroup))
    kind(generator, root)


def _legacy_default(generator: Generator) -> None:
    """1.x: a default_runtime table beside default_runtime_name."""
    root = generator.tree.files[-1] if len(generator.tree.files) > 1 and generator.tree.files[-1].handlers else generator.tree.files[0]
    root.default = generator.rng.choice(root.handlers).name if root.handlers else "runc"
    oddities._legacy_default_runtime(generator, root)



def _without_program(generator: Generator) -> None:
    if generator.chance(0.5):
        name = generator.rng.choice(("absent", "gone"))
        file = generator.tree.files[-1] if generator.tree.files[-1].handlers else generator.tree.files[0]
        extra = File(file.path, None, file.key, [Handler(name, "io.containerd.runc.v2", (("BinaryName", "/opt/bin/gone"),))])
        file.raw += _lines_of(extra)
        file.also += extra.handlers
    else:
        _handler_table(generator, "shimless", [], "io.containerd.absent.v1")


def _other_driver(generator: Generator) -> None:
    """The kubelet's driver is systemd, and one handler has the other."""
    generator.tree.systemd_cgroup = True
    _handler_table(generator, "plain", [])


def _own_snapshotter(generator: Generator) -> None:
    _handler_table(generator, "snapshotting", ['snapshotter = "native"'])


def _runtime_path(generator: Generator) -> None:
    _handler_table(generator, "pathed", ['runtime_path = "/usr/local/bin/containerd-shim-kata-v2"'])


def _unknown_key(generator: Generator) -> None:
    _handler_table(generator, "keyed", [generator.rng.choice(("unheard_of = true", 'runtimetype = "x"', 'pod_anotations = ["a.*"]'))])


def _template_beside(generator: Generator) -> None:
    """A template beside the root file: its handlers are nobody's."""
    root = generator.tree.files[0]
    generator.tree.files.append(File(root.path + ".tmpl", root.version, root.key, [generator.handler("templated")]))


MILD = (
    Aim(13, ALL, _misspelled_beside, 1.7),
    Aim(14, ALL, _wrong_level_beside, 2.8),
    Aim(15, TWO, _wrong_home, 2.0),
    Aim(16, TWO, _legacy, 1.2),
    Aim(17, ONE, _legacy_default, 2.1),
    Aim(25, ALL, _template_beside, 0.5),
    Aim(28, TWO, _overridden, 0.9),
    Aim(29, TWO, _arrays, 0.4),
    Aim(30, ALL, _zero_value, 2.7),
    Aim(31, ALL, _on_a_file(oddities._empty_runtime_type), 0.3),
    Aim(31, ALL, _on_a_file(oddities._dotted_handler), 0.3),
    Aim(32, ("1.6",), _runtime_path, 0.7),
    Aim(33, ALL, _on_a_file(oddities._option_typo), 1.2),
    Aim(34, ALL, _without_program, 2.0),
    Aim(35, (*LEGACY, *TWO), _other_driver, 0.3),
    Aim(36, MIDDLE, _own_snapshotter, 1.7),
    Aim(37, ALL, _on_a_file(oddities._upper_case_handler), 1.0),
    Aim(39, TWO, _baked, 1.2),
    Aim(57, ALL, _unknown_key, 1.1),
)

AIMS = (*WHOLE, *FATAL, *MILD)


def aimed(generator: Generator, aim: Aim) -> None:
    """Makes the generator's tree one with the aim's fault; the mild ones come together with others."""
    chosen = [aim]
    if aim not in WHOLE:
        generator.tidy()
        while not generator.tree.files:  # a tidy tree may be one without any file
            generator.tidy()
    if aim in MILD:
        others = [other for other in MILD if generator.line in other.lines and other.number != aim.number]
        chosen += generator.rng.sample(others, generator.rng.randint(0, 3))
    for each in chosen:
        generator.note(f"aim {each.number} {each.make.__name__.strip('_')}")
        each.make(generator)
