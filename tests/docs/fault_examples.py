# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An example of each fault, and what the product says of it on each release line.

The files are those of the catalogue, which brings faults 1 to 46 about on real daemons; what the catalogue has no number for
stands below. The words are the core's own, so that a page quotes what a user really reads.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.interpret import interpret as interpret_crio
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import interpret as interpret_containerd
from tests.catalogue import crio_scenarios, scenarios
from tests.catalogue.crio_scenarios import HANDLERS, LATER
from tests.catalogue.crio_scenarios import table as crio_table
from tests.catalogue.scenarios import ALL, CONFIG, ELSEWHERE, NEW, OLD, V1, V2, binary, root, runc, table

#: The release of each line whose rules are shown: the one that the test bed runs.
RELEASES = {
    "1.4": "1.4.13", "1.6": "1.6.20", "1.7": "1.7.24", "2.0": "2.0.14", "2.1": "2.1.9", "2.2": "2.2.9",
    "2.3.4": "2.3.4", "2.3": "2.3.7", "2.4": "2.4.2",
}  # fmt: skip
CRIO_LINES = ("1.34", "1.36")
#: Faults that no files bring about, with the place where they are told instead.
WITHOUT_EXAMPLE = {
    **dict.fromkeys(ELSEWHERE, "It is told by the cross-check, as a verdict of the node."),
    55: "There is no example: it is what is left when no rule explains a loss.",
}

Facts = t.Dict[str, t.Any]
_BEFORE, _START, _AFTER = "2026-06-01T08:00:00Z", "2026-06-01T08:05:00Z", "2026-06-01T09:00:00Z"
_SHIM = {"/usr/bin/containerd-shim-runc-v2": True, "containerd-shim-runc-v2": True, "/usr/bin/runc": True}
_CRIO_PROGRAMS = dict.fromkeys(("/usr/bin/runc", "/usr/bin/crun", "/usr/bin/conmon", crio_scenarios.FOO, crio_scenarios.SHIM), True)
_REFUSED = "failed to find runtime handler runtime-gate-no-such-handler from runtime list map[%s]"


class Example(t.NamedTuple):
    """One way to bring a fault about.

    :ivar files: path → text. :ivar edited: those that were written after the daemon's start.
    :ivar node: what else the capture knows of the node (a capture's node.yml); ``dump`` and ``info`` become parts of the capture.
    """

    id: int
    engine: str
    lines: t.Tuple[str, ...]
    files: t.Dict[str, str]
    edited: t.Dict[str, str] = {}
    node: Facts = {}


class Told(t.NamedTuple):
    """What the product says of an example, and the lines on which it says so."""

    lines: t.Tuple[str, ...]
    severity: str
    message: str
    fix: str


_FOO = table(OLD, "foo")
_FOO_PATH, _RUNC_PATH = f'runtime_path = "{crio_scenarios.FOO}"', 'runtime_path = "/usr/bin/runc"'
#: What the catalogue of real daemons has no number for.
_MORE = (
    Example(47, "containerd", ALL, {CONFIG: root(2, runc(OLD), _FOO) + "sandbox_image = \n"}),
    Example(48, "containerd", ("1.4", "1.6", "1.7") + V2, {CONFIG: "\ufeff" + root(2, runc(OLD), _FOO)}),
    Example(49, "containerd", ("1.7", "2.0", "2.1", "2.2", "2.3", "2.4"), {CONFIG: root(5, runc(NEW), table(NEW, "foo"))}),
    Example(50, "containerd", V1, {CONFIG: root(2, table(NEW, "foo"))}),
    Example(51, "containerd", ALL, {CONFIG: 'imports = "/etc/containerd/conf.d/*.toml"\n' + root(2, runc(OLD), _FOO)}),
    Example(52, "containerd", ("1.6",), {CONFIG: root(3, runc(OLD), _FOO)}),
    Example(53, "containerd", ("1.6", "1.7") + V2, {CONFIG: root(2, runc(OLD), _FOO, top='imports = ["/etc/containerd/[*.toml"]\n')}),
    Example(54, "containerd", V1 + V2, {CONFIG: root(2, runc(OLD), _FOO, top='disabled_plugins = ["cri"]\n')}),
    Example(
        56,
        "containerd",
        ("2.1",),
        {CONFIG: root(2, runc(OLD), _FOO)},
        node={"dump": {"rc": 1, "stdout": "", "stderr": "containerd: a word that the rules here do not know\n"}},
    ),
    Example(57, "containerd", ALL, {CONFIG: root(2, f'[{OLD}.containerd]\ndefault_runtime = "foo"\n', runc(OLD), _FOO)}),
    Example(58, "containerd", ("1.7",), {CONFIG: root(2, runc(OLD).replace(".containerd.runtimes", ".runtimes"), table(OLD, "foo", below=""))}),
    Example(
        59,
        "crio",
        ("1.24",),
        {HANDLERS: crio_table("runc", _RUNC_PATH), LATER: '[crio.runtime]\ndefault_runtime = "crun"\n' + crio_table("crun", 'runtime_path = "/usr/bin/crun"')},
    ),
    Example(60, "crio", CRIO_LINES, {HANDLERS: '[crio.runtime]\ndefault_runtime = "nvidia"\n'}),
    Example(61, "crio", CRIO_LINES, {HANDLERS: crio_table("foo", _FOO_PATH, 'monitor_path = "/opt/none/conmon"')}, node={"absent": ["/opt/none/conmon"]}),
    Example(
        62,
        "crio",
        CRIO_LINES,
        {HANDLERS: '[crio.runtime]\ndefault_runtime = "runc"\n' + crio_table("runc", _RUNC_PATH)},
        node={"cmdline": "/usr/bin/crio --default-runtime crun"},
    ),
    Example(63, "crio", CRIO_LINES, {HANDLERS: crio_table("foo", _FOO_PATH)}, node={"links": {LATER: "/srv/gone.conf"}}),
)


def examples() -> t.List[Example]:
    """Every example, by number and engine."""
    found = [_of_scenario(scenario) for scenario in scenarios.SCENARIOS]
    found += [_of_crio_scenario(scenario) for scenario in crio_scenarios.SCENARIOS]
    merged: t.List[Example] = []
    for example in [*found, *_MORE]:
        # The catalogue has the same files twice where their outcome differs by line.
        index = next((at for at, item in enumerate(merged) if item._replace(lines=()) == example._replace(lines=())), None)
        if index is None:
            merged.append(example)
        else:
            merged[index] = merged[index]._replace(lines=merged[index].lines + example.lines)
    return sorted(merged, key=lambda example: (example.id, example.engine))


def _of_scenario(scenario: scenarios.Scenario) -> Example:
    arguments = " ".join(scenario.arguments)
    node: Facts = {"cmdline": f"/usr/bin/containerd {arguments}".strip()}
    path = scenario.arguments[scenario.arguments.index("-c") + 1] if "-c" in scenario.arguments else scenario.config_path
    node.update({"config_path": path} if path else {})
    node.update({"kubelet": {"cgroup_driver": "systemd"}} if scenario.kubelet else {})
    node["binaries"] = {**_SHIM, **{binary(name): False for name in scenario.without}}
    return Example(scenario.id, "containerd", scenario.lines, dict(scenario.tree), dict(scenario.edited), node)


def _of_crio_scenario(scenario: crio_scenarios.Scenario) -> Example:
    missing = dict.fromkeys(scenario.install, False)
    # 46: what the collector finds in the log of CRI-O.
    failed = {"reload_failed": True} if scenario.id == 46 else {}
    return Example(scenario.id, "crio", CRIO_LINES, dict(scenario.tree), dict(scenario.edited), {"binaries": {**_CRIO_PROGRAMS, **missing}, **failed})


def told(example: Example) -> t.List[Told]:
    """What the product says of the example, lines with the same words together.

    :raises LookupError: on some line it does not name the fault: the example is none.
    """
    groups: t.List[Told] = []
    for line in example.lines:
        faults = [fault for fault in facts(example, line)["faults"] if fault["id"] == example.id]
        if not faults:
            raise LookupError(f"the example of fault {example.id} is none on {example.engine} {line}: it names {_ids(example, line)}")
        said = Told((line,), faults[0]["severity"], faults[0]["message"], faults[0]["fix"])
        known = next((index for index, group in enumerate(groups) if _alike(group, said)), None)
        if known is None:
            groups.append(said)
        else:
            groups[known] = groups[known]._replace(lines=(*groups[known].lines, line))
    return groups


def _alike(group: Told, said: Told) -> bool:
    """The same words, or words that differ in nothing but the number of the line."""
    mine, other = (".".join(item.lines[0].split(".")[:2]) for item in (group, said))
    return group[1:] == said[1:] or [word.replace(mine, "LINE") for word in group[1:]] == [word.replace(other, "LINE") for word in said[1:]]


def _ids(example: Example, line: str) -> t.List[int]:
    return [fault["id"] for fault in facts(example, line)["faults"]]


def facts(example: Example, line: str) -> Facts:
    """The product's facts of a node of this line with the example's files."""
    before = _interpret(example, line, {})
    return _interpret(example, line, before) if example.edited or _wants_answer(example) else before


def _wants_answer(example: Example) -> bool:
    """A fault of a handler that is loaded is one of the daemon's answer."""
    return example.id in (31, 33, 34, 35)


def _interpret(example: Example, line: str, before: Facts) -> Facts:
    node = {**example.node}
    capture: Facts = {part: node.pop(part) for part in ("dump", "info") if part in node}
    files = dict(example.files)
    times = dict.fromkeys(files, _BEFORE)
    if before:
        files.update(example.edited)
        times.update(dict.fromkeys(example.edited, _AFTER))
        node.update(daemon_started=_START)
        capture.update(_answer(example, before))
    capture["files"] = files
    if example.engine == "crio":
        # A daemon that has been reloaded says so.
        reloaded = {"daemon_reloaded": _AFTER} if before and example.edited else {}
        known = {"version": f"{line}.0", "config_path": "/etc/crio/crio.conf", "config_dir": crio_scenarios.CONFIG_DIR, "binaries": _CRIO_PROGRAMS}
        return interpret_crio({**capture, "node": {"engine": "crio", "cmdline": "/usr/bin/crio", **known, **reloaded, **node, "files": times}})
    known = {"version": RELEASES[line], "config_path": CONFIG, "binaries": _SHIM}
    return interpret_containerd({**capture, "node": {"engine": "containerd", **known, **node, "files": times}})


def _answer(example: Example, before: Facts) -> Facts:
    """What the daemon says that was started before the edits."""
    if example.engine == "crio":
        names = sorted(before["handlers"])
        edited = [line.split("runtimes.")[1].rstrip("]") for text in example.edited.values() for line in text.splitlines() if "runtimes." in line]
        entries = [{"name": name, "features": {}} for name in sorted({*names, *edited})]
        return {"info": {"status": {}, "runtimeHandlers": entries}, "probe": _REFUSED % " ".join(f"{name}:0x1" for name in names)}
    handlers = {
        name: {"runtimeType": body["runtime_type"], "options": body["options"], "snapshotter": body["snapshotter"] or ""}
        for name, body in before["handlers"].items()
    }
    return {"info": {"config": {"containerd": {"defaultRuntimeName": before["default_handler"], "runtimes": handlers}}}}
