"""Trees that our own role has written (the renderer of runtime_handlers), whole or damaged afterwards.

What this proves: nothing by itself. The declaration is the generator's, so it knows which handlers stand in the files and of which type
they are; the texts are the product's own, as a node has them after a rollout. Undamaged, they must be loaded as declared and raise
no alarm. Damaged, every loss must be named like any other.
"""

from __future__ import annotations

import hashlib
import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import interpret
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.plan import make_plan
from tests.differential.generator import NATIVE, Generator
from tests.differential.parts import CONFIG, NEW, OLD, File, Handler, Written
from tests.differential.versions import VERSIONS

_RUNC = "io.containerd.runc.v2"
DECLARATIONS: dict[str, tuple[dict[str, t.Any], Handler]] = {
    "nvidia": ({"preset": "nvidia"}, Handler("nvidia", _RUNC, (("BinaryName", "/usr/bin/nvidia-container-runtime"),))),
    "kata": ({"preset": "kata"}, Handler("kata", "io.containerd.kata.v2")),
    "runsc": ({"preset": "gvisor"}, Handler("runsc", "io.containerd.runsc.v1")),
    "spin": ({"preset": "spin"}, Handler("spin", "io.containerd.spin.v2")),
    "youki": ({"runtime_type": _RUNC, "options": {"BinaryName": "/opt/bin/youki"}}, Handler("youki", _RUNC, (("BinaryName", "/opt/bin/youki"),))),
}
"""What is declared to the role, and what a daemon must then have."""


def _account(text: str, handlers: t.Iterable[Handler]) -> list[Handler]:
    """The handlers whose tables have a header in the text."""
    return [handler for handler in handlers if re.search(rf"(?m)^[ \t]*\[.*\.runtimes\.[\"']?{re.escape(handler.name)}[\"']?\][ \t]*$", text)]


def _rendered(texts: dict[str, str], line: str, declared: dict[str, t.Any], systemd: bool) -> dict[str, str]:
    """The files after the role's plan."""
    node = {
        "engine": "containerd",
        "version": VERSIONS[line],
        "config_path": CONFIG,
        "cri_state": "not_running",
        "sha256": {path: hashlib.sha256(text.encode()).hexdigest() for path, text in texts.items()},
        "kubelet": {"cgroup_driver": "systemd" if systemd else "cgroupfs"},
    }
    capture = {"format": 1, "node": node, "files": texts, "dump": None, "status_config": None, "info": None}
    plan = make_plan(capture, interpret(capture), {"handlers": declared, "repair": True, "allow_absent_binary": True})
    return texts | {write["path"]: write["text"] for write in plan["writes"]}


def ours(generator: Generator) -> None:
    """A root file of the line, our handlers in it or beside it, and in most trees a damage."""
    tree = generator.tree
    names = generator.rng.sample(list(DECLARATIONS), generator.rng.randint(1, 4))
    version, plugin = generator.rng.choice(NATIVE[generator.line])
    root = File(CONFIG, version, generator.key(plugin), [generator.handler("runc"), generator.handler("mine")], spelling=generator.spelling())
    texts = _rendered({CONFIG: root.render()}, generator.line, {name: DECLARATIONS[name][0] for name in names}, tree.systemd_cgroup)
    known = [*root.handlers, *(DECLARATIONS[name][1] for name in names)]
    tree.files = [Written(path, None, "", _account(text, known), text=text) for path, text in texts.items()]
    for file in tree.files:
        file.handlers += [handler for handler in root.handlers if file.path == CONFIG and handler not in file.handlers]
    if generator.chance(0.75):
        damage = generator.rng.choice(DAMAGES)
        generator.note(f"damage {damage.__name__.strip('_')}")
        file = generator.rng.choice(tree.files)
        damage(generator, t.cast("Written", file))


def _version_gone(generator: Generator, file: Written) -> None:
    file.text = re.sub(r"(?m)^version = \d+\n", "", file.text)


def _other_version(generator: Generator, file: Written) -> None:
    file.text = re.sub(r"(?m)^version = \d+$", f"version = {generator.rng.choice((1, 2, 3, 4))}", file.text)


def _imports_gone(generator: Generator, file: Written) -> None:
    for each in generator.tree.files:
        if isinstance(each, Written):
            each.text = re.sub(r"(?m)^imports = .*\n", "", each.text)


def _other_plugin_name(generator: Generator, file: Written) -> None:
    """Somebody brings the names "up to date" and forgets the version, or the other way round."""
    old, new = (OLD, NEW) if OLD in file.text else (NEW, OLD)
    file.text = file.text.replace(old, new)


def _without_quotes(generator: Generator, file: Written) -> None:
    file.text = re.sub(r"""["'](io\.containerd\.(?:grpc|cri)\.v1\.\w+)["']""", r"\1", file.text)


def _type_gone(generator: Generator, file: Written) -> None:
    """The first runtime_type of the file is deleted."""
    found = re.search(r"""(?m)^[ \t]*\[.*\.runtimes\.["']?([\w-]+)["']?\][ \t]*\n[ \t]*runtime_type = .*\n""", file.text)
    if found:
        lines = found[0].splitlines(keepends=True)
        file.text = file.text.replace(found[0], lines[0])
        file.handlers = [Handler(item.name, None, item.options) if item.name == found[1] else item for item in file.handlers]


def _renamed(generator: Generator, file: Written) -> None:
    """The drop-in becomes a file that no pattern takes, or a backup."""
    if file.path != CONFIG:
        file.path = file.path.replace(".toml", generator.rng.choice((".conf", ".toml.bak", ".TOML", ".toml.disabled")))


def _copied(generator: Generator, file: Written) -> None:
    """A copy of the drop-in beside it, with another binary in it."""
    if file.path != CONFIG:
        text = file.text.replace("/usr/bin/nvidia-container-runtime", "/usr/local/bin/crun").replace("io.containerd.kata.v2", "io.containerd.spin.v2")
        generator.tree.files.append(Written(file.path.replace(".toml", "-copy.toml"), None, "", list(file.handlers), text=text))


def _cut_off(generator: Generator, file: Written) -> None:
    """The disk was full: the last table's header ends in the middle."""
    place = file.text.rfind("[")
    if place > 0:
        file.text, file.broken = file.text[: place + 3], True


def _twice(generator: Generator, file: Written) -> None:
    """Appended by two runs of a script."""
    table = file.text.rfind("[")
    if file.text.find("[plugins") >= 0 and table >= 0:
        file.text, file.broken = file.text + "\n" + file.text[table:], True


def _mark(generator: Generator, file: Written) -> None:
    file.text = "\ufeff" + file.text


def _windows(generator: Generator, file: Written) -> None:
    file.text = file.text.replace("\n", "\r\n")


def _other_tool(generator: Generator, file: Written) -> None:
    """Another tool's drop-in, of any version, is imported as well."""
    drop = generator.wild_file("/etc/containerd/conf.d/99-other-tool.toml")
    generator.tree.files.append(drop)


def _handler_case(generator: Generator, file: Written) -> None:
    """A handler is renamed by hand, to a name that no RuntimeClass can have."""
    name = generator.rng.choice(file.handlers).name if file.handlers else ""
    renamed = name.upper().replace("-", "_")
    text = re.sub(rf"(\.runtimes\.[\"']?){re.escape(name)}\b", rf"\1{renamed}", file.text)
    if name not in ("", "runc") and text != file.text:  # an entry of an inline table has no header
        file.text = text
        file.handlers = [Handler(renamed, item.runtime_type, item.options) if item.name == name else item for item in file.handlers]


def _edited_later(generator: Generator, file: Written) -> None:
    """A handler is taken out after the daemon has started."""
    found = re.search(r"""(?ms)^[ \t]*\[[^\n]*\.runtimes\.["']?(\w+)["']?\][ \t]*\n(?:(?![ \t]*\[)[^\n]*\n)*""", file.text)
    if found:
        text = re.sub(rf"""(?ms)^[ \t]*\[[^\n]*\.runtimes\.["']?{found[1]}["']?(?:\.options)?\][ \t]*\n(?:(?![ \t]*\[)[^\n]*\n)*""", "", file.text)
        kept = [handler for handler in file.handlers if handler.name != found[1]]
        generator.tree.edit.append(Written(file.path, None, "", kept, text=text))


DAMAGES: tuple[t.Callable[[Generator, Written], None], ...] = (
    _version_gone,
    _other_version,
    _imports_gone,
    _other_plugin_name,
    _without_quotes,
    _type_gone,
    _renamed,
    _copied,
    _cut_off,
    _twice,
    _mark,
    _windows,
    _other_tool,
    _handler_case,
    _edited_later,
)
