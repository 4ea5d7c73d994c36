# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two sentences of a record: an operator must be able to act on them without looking anything up."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crosscheck import crosscheck
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.explain import typing_error

FAULT = {
    "id": 7,
    "name": "version_mix",
    "severity": "error",
    "handlers": ["h"],
    "file": "/etc/containerd/conf.d/99.toml",
    "table": "plugins.x",
    "line": 3,
    "message": "The drop-in has version 3 under a root of version 2.",
    "fix": "Write version = 2.",
}


def record(runtime: t.Any, policy: t.Any = None, labels: t.Any = None, taints: t.Any = (), **scheduling: t.Any) -> dict[str, t.Any]:
    node = {"name": "w1", "labels": {} if labels is None else labels, "taints": list(taints), "runtime": runtime}
    result = crosscheck([{"name": "c", "handler": "h", "scheduling": scheduling}], [node], policy=policy, verdicts="all")
    (found,) = result["verdicts"]
    return found


def facts(handlers: t.Any, cri_ready: bool | None = True, evidence: str = "loaded", **more: t.Any) -> dict[str, t.Any]:
    return {"schema": 1, "engine": "containerd", "cri_ready": cri_ready, "evidence": evidence, "handlers": handlers, **more}


NEXT = {"layers": {"next": {"available": True}}}


@pytest.mark.parametrize(
    ("found", "reason", "fix"),
    [
        pytest.param(record(facts({"h": {}})), ["containerd has handler h loaded"], None, id="ok"),
        pytest.param(record(facts({"h": {}}, None, "next", explicit=True)), ["configuration given loads handler h"], None, id="ok by a dump"),
        pytest.param(record(facts({"runc": {}, "a": {}})), ["not loaded on w1", "has a, runc"], ["Configure handler h for containerd on w1"], id="missing"),
        pytest.param(record(facts({})), ["has none"], ["Configure"], id="missing, nothing there"),
        pytest.param(
            record(facts({"runc": {}}, None, "next", explicit=True)), ["the configuration given loads runc"], ["Configure"], id="missing in a dump"
        ),
        pytest.param(
            record(facts({}, faults=[FAULT])),
            ["version 3 under a root of version 2"],
            ["Write version = 2. (/etc/containerd/conf.d/99.toml, table plugins.x, line 3)"],
            id="missing, explained by a fault",
        ),
        pytest.param(
            record(facts({}, faults=[{**FAULT, "fix": "In /etc/containerd/conf.d/99.toml write version = 2."}])),
            ["version 3"],
            ["In /etc/containerd/conf.d/99.toml write version = 2. RuntimeClass c has no scheduling"],
            id="a fix that names its file",
        ),
        pytest.param(
            record(facts({}, faults=[{**FAULT, "file": None}])), ["version 3"], ["Write version = 2. RuntimeClass"], id="a fault without a place"
        ),
        pytest.param(
            record(facts({}, faults=[{**FAULT, "table": None, "line": None}])), ["version 3"], ["2. (/etc/containerd/conf.d/99.toml)"], id="only a file"
        ),
        pytest.param(record(facts({}, faults=[{**FAULT, "fix": ""}])), ["version 3"], ["Configure handler h"], id="a fault without a fix"),
        pytest.param(record(facts({}, faults=[{**FAULT, "handlers": ["other"]}])), ["not loaded"], ["Configure handler h"], id="a fault of another"),
        pytest.param(
            record(facts({}, False, "next", faults=[{**FAULT, "id": 26, "handlers": [], "message": "CRI is disabled."}])),
            ["containerd on w1 does not serve CRI", "CRI is disabled"],
            ["Write version = 2."],
            id="CRI dead, by a fault of the daemon",
        ),
        pytest.param(record(facts({}, False, "none")), ["does not serve CRI"], ["journal of containerd"], id="CRI dead, no fault"),
        pytest.param(
            record(facts({}, False, "none", reason="the daemon is not running")), ["CRI", "not running"], ["journal"], id="CRI dead, with a reason"
        ),
        pytest.param(record(facts({}, faults=[{**FAULT, "file": "", "fix": "Do this"}])), ["version 3"], ["Do this. RuntimeClass"], id="a full stop"),
        pytest.param(record(facts({}, None, "none", reason="needs become")), ["could not be asked: needs become"], ["become"], id="reason of the facts"),
        pytest.param(
            record(facts({"h": {"usable": False, "reason": "/opt/h is not there"}})), ["/opt/h is not there"], ["Install what handler h needs"], id="unusable"
        ),
        pytest.param(record(facts({"h": {"usable": False}})), ["its shim or binary cannot run"], ["Install"], id="unusable, no reason"),
        pytest.param(record(facts({}, restart_gains=["h"], **NEXT)), ["a restart would load it"], ["Restart containerd on w1"], id="restart required"),
        pytest.param(
            record(facts({"h": {}}, restart_loses=["h"], **NEXT)), ["loaded now", "would lose it"], ["Bring handler h back"], id="time bomb"
        ),
        pytest.param(
            record(facts({"h": {}}, restart_loses=["h"], faults=[FAULT], **NEXT)), ["version 3"], ["Write version = 2."], id="time bomb, explained"
        ),
        pytest.param(record(None), ["its runtime was not read"], ["become"], id="not read"),
        pytest.param(
            record(facts({}, None, "none", faults=[{**FAULT, "handlers": [], "message": "The host was unreachable"}])),
            ["could not be asked: The host was unreachable"],
            ["become"],
            id="could not be asked, and why",
        ),
        pytest.param(record(facts({}, None, "none")), ["its runtime could not be asked"], ["become"], id="could not be asked"),
        pytest.param(record(facts({"h": {}}, None, "next")), ["a restart would load it"], ["add `next` to accept_evidence"], id="only next, there"),
        pytest.param(record(facts({}, None, "next")), ["a restart would not load it"], ["accept_evidence"], id="only next, not there"),
        pytest.param(
            record(facts({"h": {}}), {"accept_evidence": ["api"]}),
            ["evidence for w1 is loaded"],
            ["Add `loaded` to accept_evidence"],
            id="not accepted",
        ),
        pytest.param(record(facts({}, serves_kubelet=False)), ["its kubelet does not use"], ["become"], id="another runtime"),
        pytest.param(
            record(facts({}), labels={"a": "x"}, nodeSelector={"a": "y", "b": "z"}), ["a is 'x', not 'y'", "label b=z is absent"], None, id="not targeted"
        ),
        pytest.param(
            record(facts({"h": {}}), taints=["nvidia.com/gpu=present:NoSchedule"]),
            ["taint nvidia.com/gpu=present:NoSchedule", "is loaded there"],
            ["tolerations: [{key: nvidia.com/gpu, operator: Exists}]", "ExtendedResourceToleration"],
            id="excluded by the taint of a GPU",
        ),
        pytest.param(record(facts({}), taints=["dedicated=x:NoExecute"]), ["is not loaded there"], ["key: dedicated"], id="excluded, not loaded"),
        pytest.param(record(None, taints=["dedicated=x:NoExecute"]), ["may or may not be loaded"], ["key: dedicated"], id="excluded, not known"),
    ],
)
def test_reason_and_fix(found: dict[str, t.Any], reason: list[str], fix: list[str] | None) -> None:
    for words in reason:
        assert words in found["reason"]
    if fix is None:
        assert found["fix"] is None
    else:
        for words in fix:
            assert words in found["fix"]


@pytest.mark.parametrize(
    ("runtime", "advised"),
    [
        (facts({}), True),
        (facts({}, None, "next", explicit=True), True),
        (facts({}, False, "none"), False),
        (facts({"h": {"usable": False}}), False),
        (facts({}, restart_gains=["h"], **NEXT), False),
        (None, False),
    ],
)
def test_the_scoping_line_stands_where_it_helps(runtime: t.Any, advised: bool) -> None:
    assert ("to scope it: runtime_gate_policy" in record(runtime)["fix"]) is advised
    assert "to scope it" not in record(runtime, {"node_selector": {"c": {}}})["fix"]


def test_the_worst_fault_comes_first() -> None:
    faults = [
        {**FAULT, "id": 30, "severity": "info", "message": "Info.", "fix": "Info fix."},
        {**FAULT, "id": 9, "severity": "warning", "message": "Warning.", "fix": "Warning fix."},
        {**FAULT, "id": 7},
        {**FAULT, "id": 7, "line": 9},
    ]
    found = record(facts({}, faults=faults))
    assert found["faults"] == [7, 9, 30]
    assert "Write version = 2." in found["fix"]


CRI_DOWN = {"severity": "error", "handlers": ["h"], "file": "/etc/containerd/config.toml", "table": "", "line": 2}
NOT_IMPORTED = {**FAULT, "id": 18, "message": "file b is not imported", "fix": "Import b.", "file": None}


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (26, "CRI is not served although containerd itself runs: disabled"),
        (27, "the CRI configuration is rejected: mirrors"),
        (3, "the files define handlers without runc"),
        *((number, "containerd does not start: x") for number in (7, 12, 13, 22, 23, 29, 40, 47, 48, 49, 51, 53, 54)),
    ],
)
@pytest.mark.parametrize("handlers", [["h"], ["other"], []])
def test_what_brings_cri_down_comes_before_what_is_wrong_with_the_handler(number: int, message: str, handlers: list[str]) -> None:
    """Also for a handler that stands in no file."""
    why = {**CRI_DOWN, "id": number, "message": message, "fix": "Mend /etc/containerd/config.toml.", "handlers": handlers}
    runtime = facts({}, False, "next", faults=[NOT_IMPORTED, why], reason="rpc error: code = Unimplemented")
    found = record(runtime)
    assert found["faults"] == [number, 18]
    assert found["reason"] == f"containerd on w1 does not serve CRI, so no handler is loaded, h neither. {message}"
    assert found["fix"] == "Mend /etc/containerd/config.toml. Handler h also needs this: Import b."
    in_no_file = record({**runtime, "faults": [{**NOT_IMPORTED, "handlers": ["other"]}, why]})
    assert (in_no_file["faults"], in_no_file["reason"]) == ([number], found["reason"])
    assert in_no_file["fix"] == "Mend /etc/containerd/config.toml."


def test_the_most_precise_fault_of_a_dead_cri_comes_first() -> None:
    faults = [{**CRI_DOWN, "id": number, "message": f"m{number}", "fix": f"Fix {number}."} for number in (26, 3)]
    found = record(facts({}, False, "next", faults=faults))
    assert (found["faults"], found["fix"]) == ([3, 26], "Fix 3. (/etc/containerd/config.toml, line 2)")


def test_a_fault_of_the_next_start_is_not_why_cri_is_down() -> None:
    """Where CRI answers, the order is that of severity, and a number alone does not mean that the daemon stops."""
    later = {**CRI_DOWN, "id": 12, "message": "the short name is not read", "fix": "Mend it."}
    assert record(facts({}, False, "next", faults=[NOT_IMPORTED, later]))["faults"] == [18, 12]
    runs = {**CRI_DOWN, "id": 47, "message": "containerd runs, and will not start again: x", "handlers": ["other"]}
    assert record(facts({}, faults=[NOT_IMPORTED, runs]))["faults"] == [18]


def test_why_a_handler_is_unusable_is_said_once() -> None:
    why = "binary /opt/h is not there or cannot be executed"
    fault = {**FAULT, "id": 34, "message": f"handler h is loaded, but cannot run: {why}", "fix": "Install it.", "file": None}
    found = record(facts({"h": {"usable": False, "reason": why}}, faults=[{**FAULT, "id": 1}, fault]))
    assert found["reason"] == f"handler h is loaded, but cannot run: {why}"
    assert found["fix"] == "Install it."
    other = record(facts({"h": {"usable": False, "reason": why}}, faults=[{**FAULT, "id": 1}]))
    assert other["reason"] == f"handler h is loaded, but unusable: {why}. {FAULT['message']}"


def test_evidence_of_the_api_that_is_not_accepted() -> None:
    node = {"kind": "Node", "metadata": {"name": "w1"}, "status": {"runtimeHandlers": [{"name": "h"}]}}
    (found,) = crosscheck([{"name": "c", "handler": "h"}], [node], policy={"accept_evidence": ["loaded"]})["verdicts"]
    assert found["fix"] == "Run the gate on the node, or add `api` to accept_evidence of the policy."


def test_the_handler_that_was_meant_cannot_run_either() -> None:
    def nodes(first: t.Any, second: t.Any) -> list[dict[str, t.Any]]:
        return [{"name": "w1", "labels": {}, "runtime": {"handlers": first}}, {"name": "w2", "labels": {}, "runtime": {"handlers": second}}]

    def fixes(*handlers: t.Any, **policy: t.Any) -> list[str]:
        classes = [] if policy else [{"name": "gpu", "handler": "nvidai"}]
        return [found["fix"] for found in crosscheck(classes, nodes(*handlers), policy=policy)["verdicts"]]

    broken, good = {"nvidia": {"usable": False, "reason": "no shim"}}, {"nvidia": {"usable": True}}
    here, there = fixes(broken, {})
    assert 'Did you mean handler "nvidia"? It is loaded where this class lands, but unusable on w1: no shim. The handler' in here
    assert "It is loaded where this class lands, but unusable there: no shim." in there
    here, there = fixes(broken, good)
    assert "but unusable on w1: no shim." in here
    assert "It is loaded where this class lands. The handler" in there
    assert "unusable" not in fixes(good, {})[1]
    assert fixes(broken, {}, required_handlers=["nvidai"])[0].startswith(
        'Did you mean handler "nvidia" (loaded, but unusable on w1: no shim)? Correct required_handlers'
    )


def test_selector_that_cannot_be_decided() -> None:
    result = crosscheck(
        [{"name": "c", "handler": "h", "scheduling": {"nodeSelector": {"gpu": "yes"}}}], [{"name": "w1", "runtime": {"handlers": ["h"]}}]
    )
    (found,) = result["verdicts"]
    assert found["verdict"] == "unknown"
    assert "gpu=yes" in found["reason"]
    assert "runtime_gate_node_labels" in found["fix"]


def fleet(handler: str, *others: str) -> list[dict[str, t.Any]]:
    return [
        {"name": "w1", "labels": {"pool": "x"}, "runtime": {"handlers": ["runc", *others]}},
        {"name": "w2", "labels": {"pool": "y"}, "runtime": {"handlers": ["runc", handler]}},
    ]


def test_did_you_mean_comes_from_what_the_targeted_nodes_have() -> None:
    (first, second) = crosscheck([{"name": "gpu", "handler": "nvidai"}], fleet("nvidia"))["verdicts"]
    for found in (first, second):
        assert 'Did you mean handler "nvidia"?' in found["fix"]
        assert "create it again with handler: nvidia" in found["fix"]
    elsewhere = {"name": "gpu", "handler": "nvidai", "scheduling": {"nodeSelector": {"pool": "x"}}}
    (found,) = crosscheck([elsewhere], fleet("nvidia"))["verdicts"]
    assert "Did you mean" not in found["fix"]
    required = crosscheck([], fleet("nvidia"), policy={"required_handlers": ["nvidai"]})["verdicts"]
    assert "Correct required_handlers" in required[0]["fix"]


def test_a_handler_that_some_node_has_is_no_typing_error() -> None:
    (found,) = crosscheck([{"name": "gpu", "handler": "nvidai"}], fleet("nvidai", "nvidia"))["verdicts"]
    assert "Did you mean" not in found["fix"]


@pytest.mark.parametrize(
    ("handler", "known", "expected"),
    [
        ("nvidai", ["nvidia", "nvidia-cdi"], "nvidia"),
        ("nvidai-cdi", ["nvidia", "nvidia-cdi"], "nvidia-cdi"),
        ("nvidiacdi", ["nvidia", "nvidia-cdi"], "nvidia-cdi"),
        ("kata-qemu", ["kata-clh", "kata"], None),
        ("kata-qmeu", ["kata-qemu", "kata-clh"], "kata-qemu"),
        ("runsc", ["runc"], None),
        ("nvidia-cdi", ["nvidia"], None),
        ("mine", [], None),
    ],
)
def test_typing_error(handler: str, known: list[str], expected: str | None) -> None:
    assert typing_error(handler, known) == expected


def test_the_line_that_would_scope_a_class() -> None:
    """From a label that the nodes with the handler share and the others lack, where there is one."""
    labelled = [
        {"name": "w1", "labels": {"kubernetes.io/hostname": "w1", "os": "l"}, "runtime": {"handlers": []}},
        {"name": "w2", "labels": {"kubernetes.io/hostname": "w2", "os": "l", "gpu": "yes"}, "runtime": {"handlers": ["h"]}},
        {"name": "w3", "labels": {"kubernetes.io/hostname": "w3", "os": "l", "gpu": "yes", "a": "b"}, "runtime": {"handlers": ["h"]}},
    ]
    (found,) = crosscheck([{"name": "c", "handler": "h"}], labelled)["verdicts"]
    assert found["fix"].endswith('to scope it: runtime_gate_policy: {node_selector: {c: {gpu: "yes"}}}')
    (found,) = crosscheck([{"name": "c", "handler": "h"}], labelled[:1])["verdicts"]
    assert found["fix"].endswith('runtime_gate_policy: {node_selector: {c: {LABEL: "VALUE"}}}')
    bare = [{"name": "w1", "runtime": {"handlers": []}}, {"name": "w2", "runtime": {"handlers": ["h"]}}]
    (found,) = crosscheck([{"name": "c", "handler": "h"}], bare)["verdicts"]
    assert found["fix"].endswith('{LABEL: "VALUE"}}}')
