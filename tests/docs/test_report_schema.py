"""The published schema of the report: real reports of every source are valid, damaged ones are not."""

from __future__ import annotations

import copy
import json
import typing as t

import jsonschema
import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.verdict import VERDICTS
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.gate_record import REPORT_SCHEMA
from tests.docs.pages import ROOT
from tests.integration.ansible_runs import EXAMPLE, playbook, write_yaml

SCHEMA = json.loads((ROOT / "docs/report.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
AUDIT = "kubenode.runtime_gate.audit"
MANIFESTS = EXAMPLE / "manifests"
#: A pod that cannot start for its handler, with its event; a class with an overhead; a workload whose class does not exist.
MORE = [
    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "heavy"}, "handler": "runc", "overhead": {"podFixed": {"cpu": "250m"}}},
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stuck", "namespace": "team-a", "uid": "1"},
        "spec": {"runtimeClassName": "gvisor", "nodeName": "eks-1", "containers": []},
        "status": {"phase": "Pending"},
    },
    {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "stuck.1", "namespace": "team-a"},
        "involvedObject": {"kind": "Pod", "name": "stuck", "namespace": "team-a", "uid": "1"},
        "reason": "FailedCreatePodSandBox",
        "message": 'Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "runsc" is configured',
        "type": "Warning",
        "count": 4,
        "lastTimestamp": "2026-01-01T00:00:00Z",
    },
]

Report = dict[str, t.Any]


def errors(report: Report) -> list[str]:
    """What is wrong with it: the place, and for a host that fits neither form why it is no judged one."""
    return [f"{list(error.absolute_path)}: {[inner.message for inner in error.context] or error.message}" for error in VALIDATOR.iter_errors(report)]


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> dict[str, Report]:
    """Reports that ansible-playbook wrote, by what they are of."""
    folder = tmp_path_factory.mktemp("reports")
    more = write_yaml(folder / "more.json", {"apiVersion": "v1", "kind": "List", "items": MORE})
    inventory = ["-i", EXAMPLE / "inventory.yml", "--limit", "docker-1,eks-1,kubespray-1"]
    pods = {"runtime_gate_manifests": [str(MANIFESTS), str(more)], "runtime_gate_failing_pods": True}
    wrong = {"runtime_gate_policy": {"unknwon": "warn"}}
    runs: dict[str, list[t.Any]] = {
        "hosts": inventory,
        "failing pods": [*inventory, "-e", json.dumps(pods)],
        "check mode": [*inventory, "--check", "-e", f"runtime_gate_previous_report={folder / 'hosts.json'}"],
        "bad input": [*inventory, "-e", json.dumps(wrong)],
        "api": ["-e", "runtime_gate_source=api", "-e", json.dumps({"runtime_gate_manifests": [str(MANIFESTS)]})],
        "pools": ["-e", f"@{ROOT / 'examples/pools.yml'}", "-e", json.dumps({"runtime_gate_manifests": [str(MANIFESTS), str(more)]})],
    }
    made = {}
    for name, arguments in runs.items():
        path = folder / f"{name.replace(' ', '-')}.json"
        run = playbook(AUDIT, *arguments, "-e", f"runtime_gate_report_path={path}")
        assert path.is_file(), run.text
        made[name] = json.loads(path.read_text(encoding="utf-8"))
    return made


def test_it_is_a_schema_of_this_format() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema"] == {"const": REPORT_SCHEMA, "description": SCHEMA["properties"]["schema"]["description"]}
    assert set(SCHEMA["$defs"]["verdict_word"]["enum"]) == set(VERDICTS)


@pytest.mark.parametrize("name", ["hosts", "failing pods", "check mode", "bad input", "api", "pools"])
def test_a_real_report_is_valid(reports, name: str) -> None:
    assert errors(reports[name]) == []


def test_the_reports_have_what_is_to_be_checked(reports) -> None:
    """No part of the schema is only held against empty lists."""
    hosts, pods = reports["hosts"], reports["failing pods"]
    assert hosts["classes"] and hosts["notices"] and hosts["blast_radius"] and hosts["failing_nodes"]
    assert any(host["faults"] and any(fault["fix_edits"] for fault in host["faults"]) for host in hosts["hosts"])
    assert pods["failing_pods"] and pods["overhead"] and reports["check mode"]["drift"]["since"] and reports["check mode"]["check_mode"]
    assert all(not host["judged"] and host["node"] is None for host in reports["bad input"]["hosts"])
    assert (reports["api"]["source"], reports["pools"]["source"]) == ("api", "pools")


def _change(report: Report, *path: t.Any, to: t.Any) -> Report:
    damaged = copy.deepcopy(report)
    place = damaged
    for step in path[:-1]:
        place = place[step]
    if to is None:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return damaged


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("schema",), 2),
        (("ok",), "yes"),
        (("counts", "hosts"), -1),
        (("counts", "verdicts", "fine"), 3),
        (("hosts", 0, "host"), None),
        (("hosts", 0, "cells", "runc"), "fine"),
        (("hosts", 0, "evidence"), "hearsay"),
        (("hosts", 0, "surprise"), 1),
        (("not_judged", "nodes"), "none"),
        (("missing", "eks-1"), "runsc"),
        (("generated_at",), "yesterday"),
        (("source",), None),
        (("surprise",), 1),
    ],
)
def test_a_damaged_report_is_not_valid(reports, path, to) -> None:
    assert errors(_change(reports["hosts"], *path, to=to))
