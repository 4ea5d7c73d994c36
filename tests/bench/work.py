# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One piece of work in a process of its own, whose time and memory are its own too; prints them as JSON.

    python -m tests.bench.work make DIRECTORY NODES CLASSES PODS    a made-up cluster, as kubectl prints it, one file a kind
    python -m tests.bench.work parse|judge|profile DIRECTORY        parse it; judge it from manifests; where the time goes
    python -m tests.bench.work list|judge-api|profile-api KUBECONFIG
    python -m tests.bench.work matched-hosts NUMBER                 the filter of the playbooks, on so many hosts
"""

from __future__ import annotations

import contextlib
import cProfile
import io
import json
import pathlib
import pstats
import sys
import time
import typing as t

from tests.bench import fleet

KINDS = ("classes", "nodes", "pods")


def make(directory: str, nodes: str, classes: str, pods: str) -> dict[str, t.Any]:
    made = {"classes": fleet.runtime_classes(int(classes)), "nodes": fleet.nodes(int(nodes)), "pods": fleet.pods(int(pods), int(nodes))}
    for kind, things in made.items():
        with open(pathlib.Path(directory) / f"{kind}.json", "w", encoding="utf-8") as stream:
            stream.write('{"apiVersion": "v1", "kind": "List", "items": [')
            for index, thing in enumerate(things):
                stream.write(("," if index else "") + json.dumps(thing))
            stream.write("]}")
    return {"bytes": sum(path.stat().st_size for path in pathlib.Path(directory).iterdir())}


def _files(directory: str) -> list[str]:
    return [str(pathlib.Path(directory) / f"{kind}.json") for kind in KINDS]


def parse(directory: str) -> dict[str, t.Any]:
    """All of it with the standard library's json, nothing more."""
    with _measured() as cost:
        documents = []
        for path in _files(directory):
            with open(path, encoding="utf-8") as stream:
                documents.append(json.load(stream))
    return cost


def judge(directory: str) -> dict[str, t.Any]:
    """All of it from manifests to the result of the cross-check."""
    from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import crosscheck_inputs

    with _measured() as cost:
        result = crosscheck_inputs.judge({"manifests": _files(directory)})
    return {**cost, "counts": result["counts"], "records": len(result["verdicts"])}


def profile(directory: str) -> dict[str, t.Any]:
    return _profiled(lambda: judge(directory))


def judge_api(kubeconfig: str) -> dict[str, t.Any]:
    """From the API server, pods too, to the result of the cross-check."""
    from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import crosscheck_inputs

    with _measured() as cost:
        result = crosscheck_inputs.judge({"kubeconfig": kubeconfig, "read_workloads": True, "api_timeout": 300.0})
    return {**cost, "counts": result["counts"], "records": len(result["verdicts"])}


def profile_api(kubeconfig: str) -> dict[str, t.Any]:
    return _profiled(lambda: judge_api(kubeconfig))


def list_api(kubeconfig: str) -> dict[str, t.Any]:
    """The same lists, page by page, and of each page nothing but the token that the next one takes."""
    from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils import cluster_reader

    paths = [cluster_reader.CLASSES, cluster_reader.NODES, *(path for _kind, path in cluster_reader.WORKLOAD_LISTS)]
    size = 0
    with _measured() as cost:
        get = cluster_reader.connect({"kubeconfig": kubeconfig}, 300.0)
        for path in paths:
            token: str | None = ""
            while token is not None:
                answer = get(path, [("limit", "500"), *([("continue", token)] if token else [])])
                assert answer.status == 200, answer.body[:200]
                size += len(answer.body)
                token = _token(answer.body)
    return {**cost, "bytes": size}


def _token(page: bytes) -> str | None:
    """metadata.continue of a list, which stands before its items."""
    head = page[: page.index(b'"items":')]
    mark = b'"continue":"'
    return head.partition(mark)[2].partition(b'"')[0].decode() if mark in head else None


def matched_hosts(number: str) -> dict[str, t.Any]:
    from ansible import context

    from ansible_collections.kubenode.runtime_gate.plugins.filter.matched_hosts import matched_hosts as filter_

    context.CLIARGS = {"syntax": False}
    groups = {"all": [f"host-{index}" for index in range(int(number))], "ungrouped": []}
    with _measured() as cost:
        assert filter_("all", groups) == "all"
    return cost


@contextlib.contextmanager
def _measured() -> t.Iterator[dict[str, t.Any]]:
    """seconds: wall clock. cpu: the processor's. peak_mib: the most memory that was resident, before: how much was already."""
    cost: dict[str, t.Any] = {"before_mib": _peak_mib()}
    start, processor = time.perf_counter(), time.process_time()
    yield cost
    cost.update(seconds=time.perf_counter() - start, cpu=time.process_time() - processor, peak_mib=_peak_mib())


def _peak_mib() -> float:
    """Of this program alone; getrusage would count that of the process which it was forked from."""
    status = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024


def _profiled(work: t.Callable[[], t.Any]) -> dict[str, t.Any]:
    """Where the time goes: module -> the seconds of its functions and of the built-in ones that they call."""
    profiler = cProfile.Profile()
    profiler.runcall(work)
    found: dict[str, float] = {}
    for (path, _line, _name), (_calls, _primitive, own, _cumulative, callers) in pstats.Stats(profiler, stream=io.StringIO()).stats.items():  # type: ignore[attr-defined]
        shares = {path: own} if path != "~" else {caller[0]: took[2] for caller, took in callers.items()}
        for place, took in shares.items():
            module = pathlib.Path(place).stem
            found[module] = found.get(module, 0.0) + took
    return {"modules": found}


_WORK: dict[str, t.Callable[..., dict[str, t.Any]]] = {
    "make": make,
    "parse": parse,
    "judge": judge,
    "profile": profile,
    "list": list_api,
    "judge-api": judge_api,
    "profile-api": profile_api,
    "matched-hosts": matched_hosts,
}

if __name__ == "__main__":
    print(json.dumps(_WORK[sys.argv[1]](*sys.argv[2:])))
