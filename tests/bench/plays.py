# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one host costs, and what a fleet does: plays beside plays of ping, on hosts that share one real daemon."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import statistics
import time
import typing as t

from tests.bench import fleet
from tests.bench.ansible_runs import Play, beyond, inventory, play
from tests.bench.crosscheck import work
from tests.bench.rows import NotMeasured, Row, Spent, alternately, named_parts, ratio_of, seconds

HOSTS, FORKS = 1000, 50
_LINE = "2.1"
_GOAL_FACTS, _GOAL_AUDIT = 1.15, 1.3
_REPEATS = 20
_PYTHON = "/usr/bin/python3"
_CONFIG = """version = 3
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
"""
# Run on the node. argv: where the collections are, how often. Seconds of the two calls that nobody can do without, by the node half's own
# client, and of the steps of the node half.
_ON_THE_NODE = """
import cProfile, json, pstats, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node import collect, cri
took = {"config dump": [], "CRI Status": [], "node half": []}
options = {"engine": "containerd"}
for _ in range(int(sys.argv[2])):
    at = [time.perf_counter()]
    subprocess.run(["/usr/bin/containerd", "config", "dump"], check=True, capture_output=True)
    at.append(time.perf_counter())
    assert cri.ask("/run/containerd/containerd.sock", 5.0).info
    at.append(time.perf_counter())
    collect.collect(options)
    at.append(time.perf_counter())
    for name, start, end in zip(took, at, at[1:]):
        took[name].append(end - start)
profiler = cProfile.Profile()
capture = profiler.runcall(collect.collect, options)
steps = {name: cumulative for (path, _line, name), (_c, _p, _own, cumulative, callers) in pstats.Stats(profiler).stats.items()
         if path == collect.__file__ and any(caller[2] == "collect" for caller in callers)}
print(json.dumps({"took": {name: sorted(each)[len(each) // 2] for name, each in took.items()}, "steps": steps, "capture": capture}))
"""
# argv: archives of modules. Each archive's median seconds until its module could begin, Python's own start included.
_IMPORTED = """
import json, re, subprocess, sys, time, zipfile
took = {}
for path in sys.argv[1:]:
    (main,) = [name for name in zipfile.ZipFile(path).namelist() if "/modules/" in name and not name.endswith("__init__.py")]
    command = "import sys; sys.path.insert(0, %r); import %s" % (path, main[:-3].replace("/", "."))
    each = []
    for _ in range(10):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-B", "-c", command], check=True)
        each.append(time.perf_counter() - start)
    took[path] = sorted(each)[5]
print(json.dumps(took))
"""


class Daemon(t.NamedTuple):
    """A node with a running containerd, in which whole plays run. directory: theirs; files: the same by our own path."""

    host: t.Any
    directory: str
    files: pathlib.Path

    def write(self, name: str, text: str) -> str:
        """Returns the path as a play sees it."""
        (self.files / name).parent.mkdir(parents=True, exist_ok=True)
        (self.files / name).write_text(text, encoding="utf-8")
        return f"{self.directory}/{name}"

    def play(self, *arguments: str, forks: int = 5, **more: str) -> Play:
        def run(command: t.Sequence[str], environment: t.Mapping[str, str]) -> tuple[int, str]:
            done = self.host.run(command, env=environment, timeout=7200)
            return done.returncode, done.stdout + done.stderr

        temporary = {"ANSIBLE_LOCAL_TEMP": "/run/bench/local", "ANSIBLE_REMOTE_TEMP": "/run/bench/remote", "HOME": "/run/bench"}
        return play(run, arguments, self.files / "clock", f"{self.directory}/clock", ANSIBLE_FORKS=str(forks), **temporary, **more)


@contextlib.contextmanager
def daemon() -> t.Iterator[Daemon]:
    """Raises NotMeasured where this machine cannot have one."""
    from tests.testbed.host import CONFIG, ContainerdHost, HostError
    from tests.testbed.tools import ToolError

    if os.geteuid():
        raise NotMeasured("a containerd of its own takes root")
    try:
        with ContainerdHost(_LINE) as host:
            for program in ("containerd-shim-runc-v2", "runc"):
                host.install_script(f"/usr/bin/{program}", "#!/bin/sh\nexit 0\n")
            host.write(CONFIG, _CONFIG)
            if not host.start():
                raise NotMeasured(f"containerd does not start: {host.log()[-300:]}")
            host.path("/run/bench").mkdir()
            yield Daemon(host, "/run/bench", host.path("/run/bench"))
    except (HostError, ToolError, OSError) as error:
        raise NotMeasured(f"no containerd here: {error}") from error


def facts(scale: float, runs: int) -> list[Row]:
    """One host: the same task so many times in a play, the play without any taken off."""
    repeats = max(2, round(_REPEATS * min(scale, 1.0)))
    with daemon() as node:
        hosts = node.write("one.yml", inventory({"one": {}}, **_variables()))
        books = {name: node.write(f"{name}.yml", _book([task] * (repeats if task else 0))) for name, task in _TASKS.items()}
        sides = [lambda name=name: node.play("-i", hosts, books[name]).seconds for name in _TASKS]
        none, ping, read = alternately(runs, *sides)
        inside = _run_on(node, "inside.py", _ON_THE_NODE, _collections(), str(max(10, repeats)))
        starts, payload = _payload(node, hosts)
    start, took = statistics.median(none), inside["took"]
    each = [[(total - start) / repeats for total in side] for side in (read, ping)]
    needs = [one + took["config dump"] + took["CRI Status"] for one in each[1]]
    ratio, notes = ratio_of(each[0], needs), [payload]
    if ratio > _GOAL_FACTS:
        excess = statistics.median(each[0]) - statistics.median(needs)
        notes.append(f"the excess is {excess:.3g} s: " + ", ".join(named_parts(_facts_parts(inside, starts), excess)))
    parts = f"ping {statistics.median(each[1]):.3g} s + config dump {took['config dump']:.3g} s + CRI Status {took['CRI Status']:.3g} s"
    return [Row("facts", "one host, local connection: containerd_runtime_facts", seconds(each[0]), parts, ratio, _GOAL_FACTS, notes)]


def _facts_parts(inside: dict[str, t.Any], starts: dict[str, float]) -> list[Spent]:
    """What the read has and ping has not, apart from the two calls."""
    from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import engines

    began = time.perf_counter()
    engines.interpret(inside["capture"], "containerd")
    judged = time.perf_counter() - began
    took, steps = inside["took"], dict(inside["steps"])
    steps["run_dump"] = max(0.0, steps["run_dump"] - took["config dump"])
    steps["ask_cri"] = max(0.0, steps["ask_cri"] - took["CRI Status"])
    return [
        Spent("import on the node", starts["read"] - starts["ping"]),
        Spent("judgement on the controller", judged),
        *(Spent(f"{name} on the node", cost) for name, cost in steps.items()),
    ]


_TASKS = {
    "nothing": {},
    "ping": {"ansible.builtin.ping": {}},
    "read": {"kubenode.runtime_gate.containerd_runtime_facts": {}},
}


def _book(tasks: t.Sequence[dict[str, t.Any]]) -> str:
    return json.dumps([{"hosts": "all", "gather_facts": False, "tasks": list(tasks)}])


def _variables() -> dict[str, t.Any]:
    return {"ansible_connection": "local", "ansible_python_interpreter": _PYTHON}


def _run_on(node: Daemon, name: str, text: str, *arguments: str) -> t.Any:
    done = node.host.run([_PYTHON, "-B", node.write(name, text), *arguments], timeout=600)
    if done.returncode:
        raise NotMeasured(f"{name} failed on the node: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


def _collections() -> str:
    import ansible_collections.kubenode

    return str(pathlib.Path(next(iter(ansible_collections.kubenode.__path__))).parents[1])


def audit(scale: float, runs: int) -> list[Row]:
    """The whole audit of a fleet beside a play of ping alone on the same hosts."""
    size = max(3, round(HOSTS * scale))
    names = [f"worker-{index:05}" for index in range(size)]
    with daemon() as node:
        arguments = _fleet_arguments(node, names)
        ping = node.write("ping.yml", _book([{"ansible.builtin.ping": {}}]))
        plays: list[list[Play]] = [[], []]
        sides = [_side(node, plays[0], "kubenode.runtime_gate.audit", *arguments), _side(node, plays[1], ping, *arguments)]
        ours, other = alternately(runs, *sides)
    _judged(plays[0][0], size)
    each = [statistics.median(side) / size * 1000 for side in (ours, other)]
    ratio, notes = ratio_of(ours, other), [f"{each[0]:.3g} ms a host, of which ping has {each[1]:.3g}"]
    if ratio > _GOAL_AUDIT:
        notes.append(_audit_profile(plays[0][0], plays[1][0]))
    what = f"{size:,} hosts, local connections, one daemon, {FORKS} forks: audit"
    return [Row("audit", what, seconds(ours), f"{seconds(other)}, ping", ratio, _GOAL_AUDIT, notes)]


def capture(scale: float, runs: int) -> list[Row]:
    """The audit of as many recordings, no host touched."""
    size = max(3, round(HOSTS * scale))
    names = [f"worker-{index:05}" for index in range(size)]
    with daemon() as node:
        arguments = _fleet_arguments(node, names)
        record = ["kubenode.runtime_gate.capture", *arguments, "--limit", names[0], "-e", f"runtime_gate_capture_dest={node.directory}/captures"]
        node.play(*record)
        for name in names[1:]:
            (node.files / "captures" / name).symlink_to(names[0])
        plays: list[Play] = []
        (ours,) = alternately(runs, _side(node, plays, "kubenode.runtime_gate.audit", *arguments, "-e", f"runtime_gate_captures={node.directory}/captures"))
    _judged(plays[0], size)
    parts = ", ".join(f"{task.part} {task.seconds:.3g} s" for task in plays[0].tasks if task.seconds >= plays[0].seconds / 20)
    return [Row("capture", f"{size:,} captures, {FORKS} forks: audit", seconds(ours), notes=[parts])]


def _fleet_arguments(node: Daemon, names: t.Sequence[str]) -> list[str]:
    """-i, and the cluster's objects as manifests: a Node for each host, ten classes that the daemon serves."""
    nodes = fleet.nodes(len(names))
    for made, name in zip(nodes, names, strict=True):
        made["metadata"]["name"] = name
        made["spec"].pop("taints", None)
    classes = [
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": f"class-{index}"}, "handler": "runc"} for index in range(10)
    ]
    manifests = node.write("manifests.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": classes + nodes}))
    own = {name: {"runtime_gate_node_name": name} for name in names}
    variables = {**_variables(), "runtime_gate_become": False, "runtime_gate_manifests": [manifests]}
    return ["-i", node.write("fleet.yml", inventory(own, **variables))]


def _side(node: Daemon, into: list[Play], *arguments: str) -> t.Callable[[], float]:
    def side() -> float:
        into.append(node.play(*arguments, forks=FORKS))
        return into[-1].seconds

    return side


def _judged(audited: Play, size: int) -> None:
    wanted = f"{size} of {size} hosts judged"
    if wanted not in audited.text or "none fails" not in audited.text:
        raise NotMeasured(f"the audit did not say {wanted}: {' | '.join(audited.text.strip().splitlines()[-5:])}")


def _audit_profile(ours: Play, other: Play) -> str:
    excess = ours.seconds - other.seconds
    return f"the excess is {excess:.3g} s: " + ", ".join(named_parts(beyond(ours, other), excess))


def _payload(node: Daemon, hosts: str) -> tuple[dict[str, float], str]:
    """Name -> seconds until the module could begin on the node; and a sentence, with what goes over the wire."""
    sizes, archives = {}, {}
    for name in ("ping", "read"):
        shutil.rmtree(node.files / "remote", ignore_errors=True)
        node.play("-i", hosts, node.write("kept.yml", _book([_TASKS[name]])), ANSIBLE_KEEP_REMOTE_FILES="1")
        (sent,) = (node.files / "remote").rglob("AnsiballZ_*.py")
        text = sent.read_text(encoding="utf-8")
        sizes[name] = len(text)
        # The archive is the one long text of the wrapper.
        data = max(re.findall(r"['\"]([A-Za-z0-9+/=\n]+)['\"]", text), key=len)
        (node.files / f"{name}.zip").write_bytes(base64.b64decode(data))
        archives[name] = f"{node.directory}/{name}.zip"
    took = _run_on(node, "imported.py", _IMPORTED, *archives.values())
    starts = {name: took[path] for name, path in archives.items()}
    said = ", ".join(f"{name} {sizes[name] / 1000:.0f} kB and {starts[name] * 1000:.0f} ms" for name in sizes)
    return starts, f"what goes to the node, and how long Python takes there until it can begin: {said}"


def filters(scale: float, runs: int) -> list[Row]:
    """The filter through which each playbook chooses its hosts."""
    number = max(20, round(5000 * scale))
    (took,) = alternately(runs, lambda: t.cast(float, work("matched-hosts", number)["seconds"]))
    return [Row("filter", f"matched_hosts on {number:,} hosts, once a play", seconds(took))]


__all__ = ("audit", "capture", "facts", "filters")
