"""What may go wrong in a tree: each function changes a file or the tree around it.

What this proves: nothing by itself. The functions keep the account: what they write is declared.
"""

from __future__ import annotations

import typing as t

from tests.differential.parts import CONFIG, NEW, OLD, File, Handler, quoted

if t.TYPE_CHECKING:
    from tests.differential.generator import Generator


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
        file.raw += [f"[plugins.{file.key}.containerd.{keys[0]}.{first.name}]", f"{keys[1]} = {quoted(first.runtime_type or '')}"]


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


def _utf_16(generator: Generator, file: File) -> None:
    file.encoding, file.broken = "utf-16", True


def _control_character(generator: Generator, file: File) -> None:
    """The readers of 1.x let it pass, those of 2.x stop at it."""
    file.top.append("# bell \x07")


ODDITIES: dict[t.Callable[[Generator, File], None], float] = {
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
    _utf_16: 0.01,
    _control_character: 0.02,
}
"""What may go wrong in a wild tree, and how often."""
