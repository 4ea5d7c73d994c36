"""CRI-O's half of the differential test: random trees of /etc/crio, and a real daemon's answer beside the product's.

What this proves: for the tree of a pair, that the product's facts equal what sandboxes can really have by the daemon's own words (asked by a
client that shares no code with the product), also after a SIGHUP that makes its other answers wrong; that no handler which the generator
wrote is lost without a fault that names it; that a tree which is loaded as written raises no alarm; and that the product foretells what a
real restart then brings. The account of what was written is the generator's, never what some parser read back.
"""

from __future__ import annotations

import dataclasses
import random
import traceback
import typing as t
from dataclasses import dataclass, field

from tests.differential.judge import Result
from tests.differential.mend import mend
from tests.testbed.crio_host import CONFIG, CONFIG_DIR, CrioHost
from tests.testbed.host import HostError
from tests.testbed.product import collect, interpret

PROGRAMS = ("/usr/bin/runc", "/usr/bin/crun", "/usr/local/bin/youki", "/opt/bin/nvidia-container-runtime")
SHIM = "/opt/kata/bin/containerd-shim-kata-v2"
PLAIN = "/opt/bin/not-executable"
CONFIGURATION = "/opt/kata/configuration.toml"
ABSENT = "/opt/bin/not-there"
NAMES = ("nvidia", "kata", "runsc", "youki", "kata-qemu", "wasm", "high-performance", "mine", "sysbox", "gvisor")
ON_PATH = ("youki",)
"""Names that are also programs on the daemon's PATH."""


@dataclass(frozen=True)
class Handler:
    """One table as written. trouble: what is wrong with it, "" where CRI-O takes it."""

    name: str
    keys: tuple[tuple[str, str], ...]
    trouble: str = ""

    @property
    def path(self) -> str:
        """The program that it names, "" where it names none."""
        return dict(self.keys).get("runtime_path", "").strip('"')

    @property
    def kind(self) -> str:
        """Its runtime_type."""
        return dict(self.keys).get("runtime_type", "").strip('"') or "oci"


@dataclass
class File:
    """One file: its handlers, its default, further lines. read: CRI-O takes its handlers for handlers."""

    path: str
    handlers: list[Handler] = field(default_factory=list)
    default: str | None = None
    raw: list[str] = field(default_factory=list)
    table: str = "crio.runtime.runtimes"
    broken: bool = False
    prefix: str = ""

    def render(self) -> str:
        """The file's text."""
        lines = ["[crio.runtime]", f'default_runtime = "{self.default}"'] if self.default is not None else []
        for handler in self.handlers:
            lines += [f"[{self.table}.{handler.name}]", *(f"{key} = {value}" for key, value in handler.keys)]
        return self.prefix + "\n".join([*lines, *self.raw]) + "\n"


@dataclass
class Tree:
    """One random tree, the edit made after the start, and the account of both."""

    files: list[File]
    edit: list[File] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    hangup: bool = False
    links: dict[str, str] = field(default_factory=dict)
    ingredients: list[str] = field(default_factory=list)
    upgrade: str | None = None

    @property
    def stale(self) -> bool:
        """Whether files change after the daemon has started."""
        return bool(self.edit or self.removed)

    def before(self) -> dict[str, str]:
        """Path to text at the time the daemon starts."""
        return {path: f"-> {target}" for path, target in self.links.items()} | {file.path: file.render() for file in self.files}

    def final(self) -> list[File]:
        """The files as they lie on disk when the product looks."""
        replaced = {file.path: file for file in self.edit}
        kept = [replaced.pop(file.path, file) for file in self.files if file.path not in self.removed]
        return kept + list(replaced.values())

    def declared(self) -> list[tuple[str, Handler]]:
        """(path, handler) of each table written in a file that is TOML."""
        return [(file.path, handler) for file in self.final() if not file.broken for handler in file.handlers]


class Generator:
    """Makes one tree out of a random.Random."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.tree = Tree([])

    def chance(self, share: float) -> bool:
        """True in this share of cases."""
        return self.rng.random() < share

    def good(self, name: str) -> Handler:
        """A handler that CRI-O takes."""
        keys = {"runtime_path": f'"{self.rng.choice(PROGRAMS)}"'}
        if name.startswith("kata") or self.chance(0.15):
            keys = {"runtime_path": f'"{SHIM}"', "runtime_type": '"vm"'}
            if self.chance(0.3):
                keys["runtime_config_path"] = f'"{CONFIGURATION}"'
            if self.chance(0.4):
                keys["privileged_without_host_devices"] = "true"
        else:
            if self.chance(0.5):
                keys["runtime_type"] = self.rng.choice(['"oci"', '""'])
            if self.chance(0.2):
                keys["allowed_annotations"] = '["io.kubernetes.cri-o.ShmSize"]'
            if self.chance(0.2):
                keys["monitor_env"] = '["A=b"]'
            if self.chance(0.1):
                keys["no_sync_log"] = "true"
        if self.chance(0.4):
            keys["runtime_root"] = f'"/run/{name}"'
        return Handler(name, tuple(keys.items()))

    def bad(self, name: str) -> Handler:
        """A handler that CRI-O drops, or keeps although it cannot run."""
        trouble = self.rng.choice(list(_BAD))
        return Handler(name, _BAD[trouble], trouble)

    def make(self, line: str) -> Tree:
        """The tree."""
        names = self.rng.sample(NAMES, self.rng.randint(1, 5))
        wild = self.chance(0.6)
        self.tree.ingredients.append("wild" if wild else "tidy")
        count = self.rng.randint(1, 3)
        paths = [f"{CONFIG_DIR}/{prefix}-{self.rng.choice(['crio', 'runtimes', 'ours'])}.conf" for prefix in ("10", "50", "99")][:count]
        if self.chance(0.4):
            paths[0] = CONFIG
        files = [File(path) for path in paths]
        for name in names:
            bad = wild and self.chance(0.3)
            handler = self.bad(name) if bad else self.good(name)
            if bad:
                self.tree.ingredients.append(handler.trouble)
            self.rng.choice(files).handlers.append(handler)
        self.tree.files = files
        good = [handler.name for file in files for handler in file.handlers if not handler.trouble]
        if good and self.chance(0.4):
            self.rng.choice(files).default = self.rng.choice(good)
        if wild:
            for oddity, share in _ODDITIES.items():
                if self.chance(share):
                    self.tree.ingredients.append(oddity.__name__.strip("_"))
                    oddity(self, self.rng.choice(self.tree.files))
        if self.chance(0.4):
            self.change()
        return self.tree

    def change(self) -> None:
        """An edit after the start, and often a SIGHUP behind it."""
        tree = self.tree
        kind = self.rng.choice(["added", "new file", "taken", "removed", "broken"] if self.chance(0.7) else ["added", "new file"])
        tree.ingredients.append("edit: " + kind)
        target = self.rng.choice(tree.files)
        changed = dataclasses.replace(target, handlers=list(target.handlers), raw=list(target.raw))
        if kind == "added":
            changed.handlers.append(self.good("late"))
            tree.edit.append(changed)
        elif kind == "new file":
            tree.edit.append(File(CONFIG_DIR + "/95-late.conf", [self.good("late")]))
        elif kind == "taken":
            changed.handlers = changed.handlers[1:]
            tree.edit.append(changed)
        elif kind == "broken":
            tree.edit.append(File(CONFIG_DIR + "/96-broken.conf", raw=["[half written"], broken=True))
        elif len(tree.files) > 1 and target.path not in tree.links.values():
            tree.removed.append(target.path)
        tree.hangup = self.chance(0.5)


_BAD: dict[str, tuple[tuple[str, str], ...]] = {
    "path missing": (("runtime_path", f'"{ABSENT}"'),),
    "not on PATH": (("runtime_root", '"/run/x"'),),
    "unknown type": (("runtime_path", f'"{PROGRAMS[0]}"'), ("runtime_type", '"weird"')),
    "vm with another name": (("runtime_path", f'"{PROGRAMS[0]}"'), ("runtime_type", '"vm"')),
    "configuration missing": (("runtime_path", f'"{SHIM}"'), ("runtime_type", '"vm"'), ("runtime_config_path", f'"{ABSENT}"')),
    "configuration of oci": (("runtime_path", f'"{PROGRAMS[0]}"'), ("runtime_config_path", f'"{CONFIGURATION}"')),
    "unknown annotation": (("runtime_path", f'"{PROGRAMS[0]}"'), ("allowed_annotations", '["no.such"]')),
    "not executable": (("runtime_path", f'"{PLAIN}"'),),
}


def _replaced(generator: Generator, file: File) -> None:
    """A later table with annotations alone takes the path of an earlier one away."""
    handlers = [handler for other in generator.tree.files for handler in other.handlers]
    if handlers:
        keys = (("allowed_annotations", '["io.kubernetes.cri-o.ShmSize"]'),)
        name = generator.rng.choice(handlers).name
        trouble = "" if name in ON_PATH else "replaced"
        generator.tree.files.append(File(CONFIG_DIR + "/70-annotations.conf", [Handler(name, keys, trouble)]))


def _stray(generator: Generator, file: File) -> None:
    name = generator.rng.choice(["50-old.conf.bak", ".50-x.conf.swp", "old/10-crio.conf", "60-x.conf~", "20-x.conf.rpmsave"])
    generator.tree.files.append(File(f"{CONFIG_DIR}/{name}", [generator.good("stray")]))


def _unknown_table(generator: Generator, file: File) -> None:
    table = generator.rng.choice(["crio.runtimes", "crio.runtime.runtime", "crio.runtime.runtims", "runtime.runtimes", "crio.image.runtimes"])
    generator.tree.files.append(File(CONFIG_DIR + "/40-table.conf", [dataclasses.replace(generator.good("tabled"), trouble="unknown table")], table=table))


def _unknown_key(generator: Generator, file: File) -> None:
    key = generator.rng.choice(["runtime_paht", "binary_name", "runtimepath"])
    body = (("runtime_path", f'"{PROGRAMS[0]}"'), (key, '"/usr/bin/runc"'))
    file.handlers.append(Handler("keyed", body))


def _letter_case(generator: Generator, file: File) -> None:
    file.handlers.append(Handler("cased", (("Runtime_Path", f'"{PROGRAMS[0]}"'),)))


def _broken(generator: Generator, file: File) -> None:
    generator.tree.files.append(File(CONFIG_DIR + "/30-broken.conf", raw=["[half written"], broken=True))


def _wrong_type(generator: Generator, file: File) -> None:
    generator.tree.files.append(File(CONFIG_DIR + "/31-type.conf", raw=["[crio.runtime]", 'pids_limit = "many"'], broken=True))


def _default_missing(generator: Generator, file: File) -> None:
    file.default = "nowhere"


def _default_dropped(generator: Generator, file: File) -> None:
    file.handlers.append(generator.bad("dropped"))
    file.default = "dropped"


def _dangling(generator: Generator, file: File) -> None:
    generator.tree.links[CONFIG_DIR + "/45-link.conf"] = "nowhere.conf"


def _link(generator: Generator, file: File) -> None:
    generator.tree.files.append(File("/etc/crio/linked.conf", [generator.good("linked")]))
    generator.tree.links[CONFIG_DIR + "/45-link.conf"] = "../linked.conf"


def _comment(generator: Generator, file: File) -> None:
    file.raw += ["# [crio.runtime.runtimes.commented]", '# runtime_path = "/usr/bin/runc"']


def _upper_case(generator: Generator, file: File) -> None:
    file.handlers.append(dataclasses.replace(generator.good("kata"), name="Kata_X"))


def _two_defaults(generator: Generator, file: File) -> None:
    generator.tree.files.append(File(CONFIG_DIR + "/80-default.conf", default="crun"))


def _byte_order_mark(generator: Generator, file: File) -> None:
    file.prefix = "\ufeff"


_ODDITIES: dict[t.Callable[[Generator, File], None], float] = {
    _replaced: 0.12,
    _stray: 0.15,
    _unknown_table: 0.15,
    _unknown_key: 0.08,
    _letter_case: 0.06,
    _broken: 0.06,
    _wrong_type: 0.04,
    _default_missing: 0.05,
    _default_dropped: 0.04,
    _dangling: 0.04,
    _link: 0.05,
    _comment: 0.08,
    _upper_case: 0.04,
    _two_defaults: 0.08,
    _byte_order_mark: 0.03,
}
"""What may go wrong in a wild tree, and how often."""

_ALARMING = ("stray", "unknown_key", "upper_case", "two_defaults", "replaced", "link", "dangling")
"""Ingredients that are worth a word whatever is loaded."""


def make(seed: int, number: int, line: str) -> Tree:
    """The tree that this seed and number name."""
    return Generator(random.Random(f"crio/{seed}/{number}/{line}")).make(line)


@dataclass
class Answer:
    """What a daemon has loaded, by its own word: what sandboxes can have, and its description of each."""

    state: str
    handlers: dict[str, dict[str, t.Any]] = field(default_factory=dict)
    default: str | None = None

    @classmethod
    def of(cls, host: CrioHost) -> Answer:
        """Asks a daemon that was not reloaded."""
        state = host.cri()["state"]
        if state != "served":
            return cls(state)
        said = host.handlers()
        return cls("served", {name: said.get(name) or {} for name in host.usable_handlers()}, host.default_handler())

    def meaning(self) -> tuple[str, str | None, dict[str, tuple[str, str]]]:
        """All that counts as the same or another answer."""
        return self.state, self.default, {name: (body.get("runtime_type") or "oci", body.get("runtime_path") or "") for name, body in self.handlers.items()}


def judge(host: CrioHost, tree: Tree, line: str) -> Result:
    """Runs the pair on the host, which is left as it was."""
    result = Result()
    host.reset(line)
    _furnish(host, tree)
    host.start()
    truth, log = Answer.of(host), host.log()
    for path in tree.removed:
        host.path(path).unlink()
    for file in tree.edit:
        host.write(file.path, file.render())
    if tree.hangup and host.running():
        host.hangup()
    facts = _product(host, result)
    usable = host.usable_handlers() if host.running() else []
    host.stop()
    restarted = Answer.of(host) if host.start() else Answer("down")
    result.evidence.update(truth=truth.__dict__, restarted=restarted.__dict__, facts=facts, log=log, log_after_restart=host.log())
    if facts is None:
        return result
    result.numbers = {fault["id"] for fault in facts["faults"]}
    if usable != sorted(truth.handlers):
        result.mismatches.append(f"the test bed: sandboxes could have {sorted(truth.handlers)} before the edit and {usable} after it")
    _compare(result, truth, restarted, facts)
    _explained(result, tree, truth, facts)
    _alarms(result, tree, truth, restarted, facts)
    _mend(result, host, tree, facts)
    return result


def _mend(result: Result, host: CrioHost, tree: Tree, facts: dict[str, t.Any]) -> None:
    """Does the faults' edits on the node and asks the daemon after a restart."""

    def restart() -> tuple[set[str] | None, str | None, dict[str, t.Any]]:
        host.stop()
        answer = Answer.of(host) if host.start() else Answer("down")
        return (set(answer.handlers) if answer.state == "served" else None), answer.default, interpret(collect(host))

    try:
        result.mended = mend(host, facts, tree.links, {handler.name for _path, handler in tree.declared()}, not tree.stale, restart)
    except HostError as error:
        result.mismatches.append(f"traceback on the mended node: {error}")
    except Exception:
        result.mismatches.append(f"traceback after the edits: {traceback.format_exc()[-1500:]}")


def _furnish(host: CrioHost, tree: Tree) -> None:
    host.path(CONFIG_DIR).mkdir(parents=True, exist_ok=True)
    for path in PROGRAMS[2:]:
        host.install_script(path, '#!/bin/sh\nexec /usr/bin/runc "$@"\n')
    host.install_script(SHIM, "#!/bin/sh\nexit 1\n")
    host.write(PLAIN, "nothing\n")
    host.write(CONFIGURATION, "[hypervisor]\n")
    host.write_tree(tree.before())
    host.write("/var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\ncgroupDriver: cgroupfs\n")
    host.kubelet()


def _product(host: CrioHost, result: Result) -> dict[str, t.Any] | None:
    """The product's facts; a traceback on either side counts as a mismatch."""
    try:
        capture = collect(host)
        result.evidence["capture"] = capture
        return interpret(capture)
    except HostError as error:
        result.mismatches.append(f"traceback on the node: {error}")
    except Exception:
        result.mismatches.append(f"traceback in the core: {traceback.format_exc()[-1500:]}")
    return None


def _compare(result: Result, truth: Answer, restarted: Answer, facts: dict[str, t.Any]) -> None:
    """Loaded layer against the daemon, next layer against the restarted daemon."""

    def equal(what: str, product: t.Any, daemon: t.Any) -> None:
        if product != daemon:
            result.mismatches.append(f"{what}: product {product!r}, daemon {daemon!r}")

    equal("cri_ready", facts["cri_ready"], truth.state == "served")
    equal("handlers", sorted(facts["handlers"]), sorted(truth.handlers))
    equal("default_handler", facts["default_handler"], truth.default)
    for name in set(facts["handlers"]) & set(truth.handlers):
        fact, (_state, _default, said) = facts["handlers"][name], truth.meaning()
        if fact["runtime_type"]:  # "" where a SIGHUP has hidden what the daemon would say of it
            equal(f"runtime_type of {name}", fact["runtime_type"], said[name][0])
            equal(f"program of {name}", fact["shim"] or fact["binary"], said[name][1])
    following = facts["layers"]["next"]
    if restarted.state == "served":
        equal("layers.next.handlers", sorted(following["handlers"]), sorted(restarted.handlers))
        equal("layers.next.default_handler", following["default_handler"], restarted.default)
    equal("restart_gains", sorted(facts["restart_gains"]), sorted(set(restarted.handlers) - set(truth.handlers)))
    equal("restart_loses", sorted(facts["restart_loses"]), sorted(set(truth.handlers) - set(restarted.handlers)))
    if truth.meaning() != restarted.meaning() and not facts["restart_pending"]:
        result.mismatches.append("restart_pending is false, and a restart changed what is loaded")
    if truth.meaning() == restarted.meaning() and facts["restart_pending"]:
        result.mismatches.append("restart_pending is true, and a restart changed nothing")


def _explained(result: Result, tree: Tree, truth: Answer, facts: dict[str, t.Any]) -> None:
    """Every handler that was written and is not loaded is named by a fault."""
    named = {name for fault in facts["faults"] for name in fault["handlers"]}
    result.lost = sorted({handler.name for _path, handler in tree.declared()} - set(truth.handlers))
    for name in result.lost:
        if name not in named:
            paths = sorted({path for path, handler in tree.declared() if handler.name == name})
            result.unexplained.append(f"{name}, written in {', '.join(paths)}, is not loaded, and no fault names it")
    if set(result.lost) - set(facts["lost"]):
        result.unexplained.append(f"lost: product {facts['lost']}, written and not loaded {result.lost}")


def _alarms(result: Result, tree: Tree, truth: Answer, restarted: Answer, facts: dict[str, t.Any]) -> None:
    """A tree that is loaded as written raises no alarm."""
    written = [handler for _path, handler in tree.declared()]
    clean = truth.state == "served" and truth.meaning() == restarted.meaning() and not tree.stale
    clean = clean and not set(_ALARMING) & set(tree.ingredients) and not any(handler.trouble for handler in written)
    clean = clean and all(handler.name in truth.handlers for handler in written) and not any(file.broken for file in tree.final())
    if not clean:
        return
    result.clean = True
    for fault in facts["faults"]:
        if fault["severity"] in ("error", "warning"):
            result.false_alarms.append(f"{fault['severity']} {fault['id']} {fault['name']}: {fault['message']}")
    if not facts["healthy"]:
        result.false_alarms.append("healthy is false")
