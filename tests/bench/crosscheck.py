# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cross-check of a large cluster: from JSON, and from a real API server."""

from __future__ import annotations

import base64
import itertools
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import typing as t

from tests.bench import fleet
from tests.bench.rows import NotMeasured, Row, Spent, alternately, named_parts, ratio_of, seconds

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODES, CLASSES, PODS_A_NODE = 5000, 100, 30
_SIZES = (500, 1000, 2000, 5000)
_SMALLEST = 0.02  # the scale below which a cluster does not get smaller
_GOAL_TIME, _GOAL_MEMORY, _GOAL_LINEAR, _GOAL_API = 2.0, 1.5, 1.2, 1.3
_AT_ONCE = 500  # Nodes that are made at once in the API server
_IN_A_TRANSACTION = 100  # objects that are put into etcd at once; it takes 128
_NETWORK = ("ssl", "socket", "client", "connection", "connectionpool", "response", "threading", "_base")


def from_json(scale: float, runs: int) -> list[Row]:
    """Time and memory of the whole size, then time for each node of the smaller ones."""
    sizes = [round(size * max(scale, _SMALLEST)) for size in _SIZES]
    rows, times = [], {}
    for size in sizes:
        with tempfile.TemporaryDirectory() as directory:
            work("make", directory, str(size), str(CLASSES), str(size * PODS_A_NODE))
            whole = size == sizes[-1]
            judged: list[dict[str, t.Any]] = []
            parsed: list[dict[str, t.Any]] = []
            sides = [_cpu("judge", directory, judged)] + ([_cpu("parse", directory, parsed)] if whole else [])
            times[size], *others = alternately(runs, *sides)
            if whole:
                rows += _against_json(size, times[size], others[0], judged, parsed, directory)
    small, large = sizes[0], sizes[-1]
    each = {size: statistics.median(times[size]) / size * 1000 for size in sizes}
    rows.append(
        Row(
            "crosscheck",
            f"processor time a node, {large:,} nodes and {small:,}",
            f"{each[large]:.3g} ms",
            f"{each[small]:.3g} ms",
            each[large] / each[small],
            _GOAL_LINEAR,
            ["processor time by nodes: " + ", ".join(f"{size:,} {statistics.median(times[size]):.3g} s" for size in sizes)],
        )
    )
    return rows


def _against_json(
    size: int, ours: list[float], other: list[float], judged: list[dict[str, t.Any]], parsed: list[dict[str, t.Any]], directory: str
) -> list[Row]:
    counts, records = judged[0]["counts"], judged[0]["records"]
    what = f"{size:,} nodes × {CLASSES} classes, {size * PODS_A_NODE:,} pods, from JSON"
    notes = [f"{records:,} of {counts['records']:,} pairs are notable ({records / counts['records']:.0%}) and have a record with reason and fix"]
    ratio, excess = ratio_of(ours, other), statistics.median(ours) - statistics.median(other)
    if ratio > _GOAL_TIME:
        notes.append("beyond parsing, by cProfile and module: " + ", ".join(_slowest(work("profile", directory), excess, besides=("decoder",))))
    peaks = [[each["peak_mib"] for each in side] for side in (judged, parsed)]
    return [
        Row("crosscheck", f"{what}; processor time", seconds(ours), f"{seconds(other)}, json.load", ratio, _GOAL_TIME, notes),
        Row(
            "crosscheck",
            "the same; most memory",
            f"{statistics.median(peaks[0]):,.0f} MiB",
            f"{statistics.median(peaks[1]):,.0f} MiB",
            ratio_of(*peaks),
            _GOAL_MEMORY,
        ),
    ]


def _slowest(profiled: dict[str, t.Any], excess: float, besides: t.Collection[str] = ()) -> list[str]:
    """Modules, but those that the other side has as well. cProfile slows calls down, so its seconds are brought to the scale of the excess."""
    parts = [Spent(name, own) for name, own in profiled["modules"].items() if name not in besides]
    stretch = excess / (sum(part.seconds for part in parts) or 1.0)
    return named_parts([part._replace(seconds=part.seconds * stretch) for part in parts], excess)


def from_api(scale: float, runs: int) -> list[Row]:
    """The same cluster in a real API server, its Nodes kept by kwok until they are read."""
    from tests.cluster.control_plane import ControlPlane, ControlPlaneError
    from tests.testbed.tools import ToolError

    size = round(NODES * max(scale, _SMALLEST))
    try:
        with ControlPlane(programs=("controller-manager",)) as cluster:
            _fill(cluster, size)
            ours, other = alternately(runs, _wall("judge-api", cluster.kubeconfig), _wall("list", cluster.kubeconfig))
            ratio, notes = ratio_of(ours, other), [f"the lists are {work('list', cluster.kubeconfig)['bytes'] / 2**20:,.0f} MiB"]
            if ratio > _GOAL_API:
                excess = statistics.median(ours) - statistics.median(other)
                notes.append("by cProfile and module: " + ", ".join(_slowest(work("profile-api", cluster.kubeconfig), excess, besides=_NETWORK)))
    except (ControlPlaneError, ToolError) as error:
        raise NotMeasured(f"no control plane here: {error}") from error
    what = f"{size:,} kwok nodes × {CLASSES} classes, {size * PODS_A_NODE:,} pods, from the API server"
    return [Row("api", what, seconds(ours), f"{seconds(other)}, the same lists, not parsed", ratio, _GOAL_API, notes)]


def _fill(cluster: t.Any, size: int) -> None:
    """Classes, the Nodes by kwok, and pods with their status. Nothing but the API server runs when they are there: a controller
    would take away the pods of Nodes that nobody keeps alive."""
    from tests.cluster.kwok import Kwok

    cluster.create(fleet.runtime_classes(CLASSES))
    made = fleet.nodes(size)
    with Kwok(cluster) as kwok:
        for start in range(0, size, _AT_ONCE):
            kwok.add_nodes([_kwok_node(node) for node in made[start : start + _AT_ONCE]], wait=300)
    cluster.end("kube-controller-manager")
    pods = fleet.pods(size * PODS_A_NODE, size)
    for chunk in iter(lambda: list(itertools.islice(pods, _IN_A_TRANSACTION)), []):
        _put(cluster, chunk)


def _put(cluster: t.Any, pods: t.Sequence[fleet.Object]) -> None:
    """Lay pods into etcd, where the API server finds them: through it, 150,000 of them with their status take hours on two cores."""
    wanted = []
    for pod in pods:
        del pod["metadata"]["resourceVersion"]
        key = f"/registry/pods/{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        texts = {"key": key, "value": json.dumps(pod)}
        wanted.append({"requestPut": {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}})
    cluster._etcd("/v3/kv/txn", {"success": wanted})  # pylint: disable=protected-access


def _kwok_node(node: fleet.Object) -> dict[str, t.Any]:
    return {
        "name": node["metadata"]["name"],
        "labels": node["metadata"]["labels"],
        "taints": node["spec"].get("taints", []),
        "allocatable": node["status"]["allocatable"],
        "runtimeHandlers": node["status"]["runtimeHandlers"],
    }


def work(name: str, *words: object) -> dict[str, t.Any]:
    """A piece of work.py, in a process of its own. Raises NotMeasured with its last words where it fails."""
    command = [sys.executable, "-m", "tests.bench.work", name, *(str(word) for word in words)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotMeasured(f"{name} failed: {(done.stderr.strip().splitlines() or ['without a word'])[-1]}")
    return t.cast("dict[str, t.Any]", json.loads(done.stdout))


def _cpu(name: str, directory: str, into: list[dict[str, t.Any]]) -> t.Callable[[], float]:
    def side() -> float:
        into.append(work(name, directory))
        return t.cast(float, into[-1]["cpu"])

    return side


def _wall(name: str, where: object) -> t.Callable[[], float]:
    return lambda: t.cast(float, work(name, where)["seconds"])
