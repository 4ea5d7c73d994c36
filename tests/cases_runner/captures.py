# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs every recorded capture of tests/cases through the real module and compares the facts with expected.yml.

    python -m tests.cases_runner.captures [CASE…]

What is compared: handlers, default_handler, cri_ready, restart_pending, lost, healthy (where expected.yml says that it
counts), next_handlers and next_default; counted: losses that no fault names, false alarms, captures that say nothing
about a loss, secrets seen, fault numbers not returned. Then the flip test: with one handler taken out of each recorded
Status the answer must change. Ends with 1 on any difference.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import typing as t

import yaml

CASES = pathlib.Path(__file__).resolve().parents[1] / "cases"
#: Fault numbers of expected.yml that the product does not return, with the reason: {"case capture": {number: reason}}.
EXPLAINED: dict[str, dict[int, str]] = {}

#: engine -> (module, the key of its facts)
MODULES = {"containerd": ("containerd_runtime_facts", "containerd_runtime"), "crio": ("crio_runtime_facts", "crio_runtime")}


class Recording(t.NamedTuple):
    """One capture with its expected answer."""

    name: str
    path: pathlib.Path
    engine: str
    expected: dict[str, t.Any]


def recordings(names: t.Sequence[str]) -> list[Recording]:
    """All captures of the named cases (of every case)."""
    found = []
    for answers in sorted(CASES.glob("*/expected.yml")):
        case = answers.parent
        if names and case.name not in names:
            continue
        expected = (yaml.safe_load(answers.read_text(encoding="utf-8")) or {}).get("captures") or {}
        for capture, wanted in expected.items():
            path = case / "captures" / str(capture)
            found.append(Recording(f"{case.name} {capture}", path, _engine_of(path), wanted))
    return found


def facts_of(result: dict[str, t.Any]) -> dict[str, t.Any] | None:
    """The facts in a module's result, whichever engine they are of; None where it failed."""
    found = result.get("ansible_facts") or {}
    return next((found[key] for _module, key in MODULES.values() if key in found), None)


def judge(paths: t.Sequence[pathlib.Path]) -> tuple[list[dict[str, t.Any]], str]:
    """The result of its engine's module for each capture directory, in order, and all that ansible-playbook printed."""
    groups: dict[str, list[int]] = {}
    for index, path in enumerate(paths):
        groups.setdefault(_engine_of(path), []).append(index)
    results: dict[int, dict[str, t.Any]] = {}
    printed = ""
    for engine, indices in groups.items():
        answers, said = _judge([paths[index] for index in indices], MODULES[engine][0])
        results.update(zip(indices, answers))
        printed += said
    return [results[index] for index in range(len(paths))], printed


def _engine_of(path: pathlib.Path) -> str:
    return yaml.safe_load((path / "node.yml").read_text(encoding="utf-8"))["engine"]


def _judge(paths: t.Sequence[pathlib.Path], module: str) -> tuple[list[dict[str, t.Any]], str]:
    hosts = {f"capture{index}": {"capture_path": str(path)} for index, path in enumerate(paths)}
    inventory = {"all": {"hosts": hosts}}
    facts = {f"kubenode.runtime_gate.{module}": {"capture": "{{ capture_path }}"}}
    play = {"hosts": "all", "connection": "local", "gather_facts": False, "tasks": [dict(facts, name="Facts")]}
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("hosts.json", inventory), ("play.yml", [play])):
            pathlib.Path(folder, name).write_text(json.dumps(content), encoding="utf-8")
        pathlib.Path(folder, "ansible.cfg").write_text("", encoding="utf-8")
        environment = {**os.environ, "ANSIBLE_CONFIG": f"{folder}/ansible.cfg", "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json", "ANSIBLE_FORKS": "4"}
        program = str(pathlib.Path(sys.executable).parent / "ansible-playbook")
        command = [program, "-i", f"{folder}/hosts.json", f"{folder}/play.yml"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    start = done.stdout.find("{")
    if start < 0:
        raise SystemExit(f"ansible-playbook ended with {done.returncode} and no answer:\n{done.stdout}\n{done.stderr}")
    results = json.loads(done.stdout[start:])["plays"][0]["tasks"][0]["hosts"]
    return [results[f"capture{index}"] for index in range(len(paths))], done.stdout + done.stderr


class Tally:
    """The figures of a run."""

    def __init__(self) -> None:
        self.differences: list[str] = []
        self.counts = dict.fromkeys(("unexplained losses", "false alarms", "silent captures", "secrets seen", "fault numbers not returned"), 0)

    def differ(self, name: str, sentence: str) -> None:
        self.differences.append(f"{name}: {sentence}")

    def count(self, what: str, name: str, sentence: str) -> None:
        self.counts[what] += 1
        self.differ(name, sentence)


def compare(recording: Recording, result: dict[str, t.Any], tally: Tally) -> None:
    """One capture against its expected answer."""
    name, wanted = recording.name, recording.expected
    if result.get("failed") or "ansible_facts" not in result:
        tally.differ(name, f"the module failed: {result.get('msg')}")
        return
    facts = result["ansible_facts"][MODULES[recording.engine][1]]
    handlers = sorted(facts["handlers"])
    if handlers not in [sorted(item) for item in [wanted["handlers"], *wanted.get("handlers_also", [])]]:
        tally.differ(name, f"handlers {handlers}, expected {sorted(wanted['handlers'])}")
    for key in ("default_handler", "cri_ready", "restart_pending"):
        if facts[key] != wanted[key]:
            tally.differ(name, f"{key} {facts[key]!r}, expected {wanted[key]!r}")
    if facts["lost"] != sorted(wanted["lost"]):
        tally.differ(name, f"lost {facts['lost']}, expected {sorted(wanted['lost'])}")
    if "next_handlers" in wanted:
        layer = facts["layers"]["next"]
        if layer["handlers"] != sorted(wanted["next_handlers"]) or layer["default_handler"] != wanted["next_default"]:
            tally.differ(name, f"next {layer['handlers']} {layer['default_handler']!r}")
    _compare_faults(recording, facts, tally)
    for secret in wanted.get("must_not_contain", []):
        if secret in json.dumps(result):
            tally.count("secrets seen", name, f"{secret!r} stands in the answer")


def _compare_faults(recording: Recording, facts: dict[str, t.Any], tally: Tally) -> None:
    name, wanted = recording.name, recording.expected
    serious = [fault for fault in facts["faults"] if fault["severity"] != "info"]
    optional = wanted.get("fault_optional", False)
    named = {handler for fault in (facts["faults"] if optional else serious) for handler in fault["handlers"]}
    losses = set(wanted["lost"]) | set(wanted.get("unusable", [])) | set(wanted.get("explain", []))
    for handler in sorted(losses - named):
        tally.count("unexplained losses", name, f"no fault names {handler}")
    counts_health = not (wanted.get("warning_allowed_for") or optional or wanted["cri_ready"] is None)
    if counts_health and facts["healthy"] != wanted["healthy"]:
        what = "false alarms" if wanted["healthy"] else "silent captures"
        tally.count(what, name, f"healthy {facts['healthy']}, faults {[(item['id'], item['message']) for item in serious]}")
    explained = EXPLAINED.get(name, {})
    returned = {fault["id"] for fault in facts["faults"]}
    for number in sorted(set(wanted["faults"]) - returned - set(explained)):
        tally.count("fault numbers not returned", name, f"fault {number} is missing, returned {sorted(returned)}")


def flips(items: t.Sequence[Recording], folder: pathlib.Path) -> list[tuple[Recording, str, pathlib.Path]]:
    """(recording, handler, copy of its capture with this handler taken out of Status) for each recording with one."""
    made = []
    for index, recording in enumerate(items):
        status = recording.path / "crictl-info.json"
        if not status.exists():
            continue
        info = json.loads(status.read_text(encoding="utf-8"))
        config = info["config"]
        runtimes = config["crio"]["Runtimes"] if recording.engine == "crio" else config["containerd"]["runtimes"]
        handler = sorted(runtimes)[0]
        copy = folder / str(index)
        shutil.copytree(recording.path, copy)
        del runtimes[handler]
        probe = copy / "probe.txt"
        if probe.exists():
            # What sandboxes are made with counts for more than Status: it has to lose the handler too.
            probe.write_text(re.sub(rf"\b{re.escape(handler)}:\S+? ?(?=[\]\w])", "", probe.read_text(encoding="utf-8")), encoding="utf-8")
        info["runtimeHandlers"] = [item for item in info.get("runtimeHandlers") or [] if item.get("name") != handler]
        (copy / "crictl-info.json").write_text(json.dumps(info), encoding="utf-8")
        made.append((recording, handler, copy))
    return made


def flip_test(items: t.Sequence[Recording], before: dict[str, dict[str, t.Any]], tally: Tally) -> int:
    """With a handler gone from Status, it must be gone from the facts, and the facts must no longer be healthy."""
    with tempfile.TemporaryDirectory() as folder:
        changed = flips(items, pathlib.Path(folder))
        results, _printed = judge([copy for _recording, _handler, copy in changed])
    for (recording, handler, _copy), result in zip(changed, results):
        facts = t.cast("dict[str, t.Any]", facts_of(result))
        old = before[recording.name]
        if handler in facts["handlers"] or facts["handlers"] == old["handlers"]:
            tally.differ(recording.name, f"flip: {handler} was taken out of Status and is still among the handlers")
        if facts["healthy"] or facts == old:
            tally.differ(recording.name, f"flip: {handler} was taken out of Status and the node is called healthy")
    return len(changed)


def main(names: t.Sequence[str]) -> int:
    items = recordings(names)
    results, _printed = judge([item.path for item in items])
    tally = Tally()
    facts = {}
    for recording, result in zip(items, results):
        compare(recording, result, tally)
        facts[recording.name] = facts_of(result)
    flipped = flip_test([item for item in items if facts[item.name]], t.cast("dict[str, dict[str, t.Any]]", facts), tally)
    for sentence in tally.differences:
        print(sentence)
    figures = ", ".join(f"{count} {what}" for what, count in tally.counts.items())
    engines = ", ".join(f"{sum(item.engine == engine for item in items)} of {engine}" for engine in MODULES)
    print(
        f"captures: {len(items)} judged ({engines}), {len(tally.differences)} differences ({figures}), {flipped} flipped, "
        f"{sum(map(len, EXPLAINED.values()))} explained fault numbers"
    )
    return 1 if tally.differences or not items else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
