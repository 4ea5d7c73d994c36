# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of ansible-playbook, and the clock that says which task took how long."""

from __future__ import annotations

import itertools
import json
import os
import pathlib
import time
import typing as t

from tests.bench.rows import NotMeasured, Spent

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLAYBOOK = ROOT / ".venv/bin/ansible-playbook"
_CLOCK = pathlib.Path(__file__).parent / "callback"


class Play(t.NamedTuple):
    """A run that ended well. tasks: each with its seconds, in order; the start before the first among them."""

    seconds: float
    tasks: list[Spent]
    text: str


def settings(clock: pathlib.Path | str, **more: str) -> dict[str, str]:
    """Ansible's own defaults, and the clock; nothing of the person's environment. PATH and HOME are who runs it to set."""
    return {
        "ANSIBLE_CALLBACK_PLUGINS": str(_CLOCK),
        "ANSIBLE_CALLBACKS_ENABLED": "task_clock",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "RUNTIME_GATE_TASK_CLOCK": str(clock),
        **more,
    }


def play(
    run: t.Callable[[t.Sequence[str], t.Mapping[str, str]], tuple[int, str]], arguments: t.Sequence[str], clock: pathlib.Path, shown: str, **more: str
) -> Play:
    """run: runs a command with an environment, gives its exit code and output. clock: where the clock writes, by our own path.
    shown: that path as the run sees it. Raises NotMeasured with the last lines where it ends with another code than 0."""
    clock.unlink(missing_ok=True)
    start = time.perf_counter()
    code, text = run([str(PLAYBOOK), *arguments], settings(shown, **more))
    end = time.perf_counter()
    if code:
        raise NotMeasured(f"ansible-playbook {arguments[0]} ended with {code}: {' | '.join(text.strip().splitlines()[-8:])}")
    marks = [json.loads(line) for line in clock.read_text(encoding="utf-8").splitlines()]
    tasks = [Spent(mark["task"], after["at"] - mark["at"]) for mark, after in itertools.pairwise(marks)]
    known = sum(task.seconds for task in tasks)
    return Play(end - start, [Spent("start and end of ansible-playbook", end - start - known), *tasks], text)


def beyond(ours: Play, other: Play) -> list[Spent]:
    """Our tasks, the common start taken off once, and of one of ours what the other play's only task takes as well."""
    rest = list(ours.tasks[1:])
    first = Spent(ours.tasks[0].part, ours.tasks[0].seconds - other.tasks[0].seconds)
    same = sum(task.seconds for task in other.tasks[1:])
    largest = max(range(len(rest)), key=lambda index: rest[index].seconds)
    rest[largest] = Spent(f"{rest[largest].part} (beyond what ping takes)", rest[largest].seconds - same)
    return [first, *rest]


def inventory(hosts: t.Mapping[str, t.Mapping[str, t.Any]], **variables: t.Any) -> str:
    """JSON is YAML."""
    return json.dumps({"all": {"hosts": {name: dict(own) for name, own in hosts.items()}, "vars": variables}})


def environment() -> dict[str, str]:
    """The person's environment without what configures ansible or python, and without version managers' shims."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTHON", "K8S_", "KUBE"))}
    return {**kept, "PATH": ":".join(part for part in kept["PATH"].split(":") if not part.endswith("/shims"))}
