# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs every crosscheck entry of tests/cases/*/expected.yml through the real module and compares the verdicts.

    python -m tests.cases_runner.crosscheck [CASE…]

One playbook for all: the captures that are needed go through the facts module of their engine, the entries through
runtimeclass_crosscheck. Ends with 1 on any difference, on an entry that could not be judged, and where there was
nothing to compare.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import typing as t

import yaml

from tests.cases_runner.captures import MODULES

CASES = pathlib.Path(__file__).resolve().parents[1] / "cases"
_COLLECTION = "kubenode.runtime_gate"


class Entry(t.NamedTuple):
    """One policy of one case. captures: node name -> capture directory."""

    case: str
    number: int
    policy: dict[str, t.Any]
    expected: list[dict[str, t.Any]]
    nodes: list[dict[str, t.Any]] | None
    captures: dict[str, pathlib.Path]

    @property
    def name(self) -> str:
        return f"{self.case}#{self.number}"


def entries_of(case: pathlib.Path) -> list[Entry]:
    """The crosscheck entries of one case directory."""
    answers = yaml.safe_load((case / "expected.yml").read_text(encoding="utf-8")) or {}
    return [_entry(case, number, raw) for number, raw in enumerate(answers.get("crosscheck") or [], 1)]


def _entry(case: pathlib.Path, number: int, raw: dict[str, t.Any]) -> Entry:
    captures = {verdict["node"]: verdict["capture"] for verdict in raw["verdicts"] if "capture" in verdict}
    nodes = None
    if "nodes" in raw:
        nodes = [{key: value for key, value in node.items() if key != "capture"} for node in raw["nodes"]]
        captures.update({node["name"]: node["capture"] for node in raw["nodes"] if "capture" in node})
    elif (case / "loaded.yaml").exists() or captures:
        nodes = _with_runtimes(case)
    paths = {node: case / "captures" / str(capture) for node, capture in captures.items()}
    return Entry(case.name, number, raw["policy"], raw["verdicts"], nodes, paths)


def _with_runtimes(case: pathlib.Path) -> list[dict[str, t.Any]]:
    """The Node objects of a case, each with what loaded.yaml says that its runtime has."""
    nodes = [node for node in yaml.safe_load_all((case / "nodes.yaml").read_text(encoding="utf-8")) if node]
    loaded = {}
    if (case / "loaded.yaml").exists():
        loaded = yaml.safe_load((case / "loaded.yaml").read_text(encoding="utf-8"))
    for node in nodes:
        has = loaded.get(node["metadata"]["name"])
        if has:
            node["runtime"] = {"handlers": has["handlers"], "default_handler": has["default"]}
    return nodes


def _module_of(path: pathlib.Path) -> tuple[str, str]:
    """(facts module, key of its facts) for a capture."""
    return MODULES[yaml.safe_load((path / "node.yml").read_text(encoding="utf-8"))["engine"]]


def playbook(entries: list[Entry], answers: str) -> list[dict[str, t.Any]]:
    """One play: a task for each capture, one for each entry, one that writes all answers."""
    paths = sorted({path for entry in entries for path in entry.captures.values()})
    facts = {path: f"facts_{index}" for index, path in enumerate(paths)}
    tasks: list[dict[str, t.Any]] = [
        {
            "name": f"Facts of {path.relative_to(CASES)}",
            f"{_COLLECTION}.{_module_of(path)[0]}": {"capture": str(path)},
            "register": variable,
            "ignore_errors": True,
        }
        for path, variable in facts.items()
    ]
    for index, entry in enumerate(entries):
        tasks.append(
            {
                "name": entry.name,
                f"{_COLLECTION}.runtimeclass_crosscheck": _options(entry, facts),
                "register": f"entry_{index}",
                "ignore_errors": True,
            }
        )
    collected = ", ".join(f"'{entry.name}': entry_{index}" for index, entry in enumerate(entries))
    tasks.append(
        {
            "name": "Write the answers",
            "ansible.builtin.copy": {"content": "{{ {" + collected + "} | to_json }}", "dest": answers, "mode": "0600"},
        }
    )
    return [{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks}]


def _options(entry: Entry, facts: dict[pathlib.Path, str]) -> dict[str, t.Any]:
    case = CASES / entry.case
    manifests = [str(case / "runtimeclasses.yaml")]
    options: dict[str, t.Any] = {"manifests": manifests, "policy": entry.policy, "verdicts": "all"}
    if entry.nodes is None:
        manifests.append(str(case / "nodes.yaml"))
        return options
    options["nodes"] = [_node(node, entry, facts) for node in entry.nodes]
    return options


def _node(node: dict[str, t.Any], entry: Entry, facts: dict[pathlib.Path, str]) -> dict[str, t.Any]:
    name = node.get("name") or node["metadata"]["name"]
    if name not in entry.captures:
        return node
    path = entry.captures[name]
    return {**node, "runtime": "{{ %s.ansible_facts.%s | default({}) }}" % (facts[path], _module_of(path)[1])}


def run(entries: list[Entry]) -> dict[str, dict[str, t.Any]]:
    """The module's answer to each entry, by its name."""
    with tempfile.TemporaryDirectory() as folder:
        answers = os.path.join(folder, "answers.json")
        book = os.path.join(folder, "cases.yml")
        pathlib.Path(book).write_text(json.dumps(playbook(entries, answers)), encoding="utf-8")
        settings = os.path.join(folder, "ansible.cfg")
        pathlib.Path(settings).write_text("", encoding="utf-8")
        environment = {
            **os.environ,
            "ANSIBLE_LOCALHOST_WARNING": "False",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "False",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_CONFIG": settings,
        }
        command = [
            str(pathlib.Path(sys.executable).parent / "ansible-playbook"),
            "-e",
            "ansible_python_interpreter={{ ansible_playbook_python }}",
            book,
        ]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
        if not os.path.exists(answers):
            raise SystemExit(f"ansible-playbook ended with {done.returncode} and no answers:\n{done.stdout}\n{done.stderr}")
        return t.cast("dict[str, dict[str, t.Any]]", json.loads(pathlib.Path(answers).read_text(encoding="utf-8")))


def differences(entry: Entry, answer: dict[str, t.Any]) -> tuple[int, list[str]]:
    """(verdicts compared, sentences about what differs)."""
    if answer.get("failed") or "verdicts" not in answer:
        return 0, [f"the module failed: {answer.get('msg')}"]
    records = {(record["node"], record["runtime_class"]): record for record in answer["verdicts"]}
    compared, found = 0, []
    for wanted in entry.expected:
        key = (wanted["node"], wanted["runtime_class"])
        record = records.pop(key, None)
        compared += 1
        if record is None:
            found.append(f"{key}: no record, expected {wanted['verdict']}")
            continue
        right = [wanted["verdict"], *_listed(wanted.get("accept"))]
        if record["verdict"] not in right:
            found.append(f"{key}: {record['verdict']} ({record['reason']}), expected {' or '.join(right)}")
        for part in ("handler", "handler_loaded"):
            if part in wanted and record[part] != wanted[part]:
                found.append(f"{key}: {part} {record[part]!r}, expected {wanted[part]!r}")
    found += [f"{key}: {record['verdict']}, but no record is expected" for key, record in records.items()]
    return compared, found


def _listed(value: t.Any) -> list[str]:
    return value if isinstance(value, list) else [] if value is None else [value]


def main(names: list[str]) -> int:
    cases = sorted(path.parent for path in CASES.glob("*/expected.yml") if not names or path.parent.name in names)
    entries = [entry for case in cases for entry in entries_of(case)]
    answers = run(entries) if entries else {}
    compared = different = 0
    for entry in entries:
        count, found = differences(entry, answers[entry.name])
        compared += count
        different += len(found)
        for sentence in found:
            print(f"{entry.name}: {sentence}")
    print(f"crosscheck: {len(entries)} entries, {compared} verdicts compared, {different} differences")
    return 1 if different or not compared else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
