# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node's evidence makes of a handler: DESIGN, "Layers of evidence" and "The words"."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crosscheck import crosscheck
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.judged_node import read_runtime
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.verdict import State, handler_state

DEFAULT = frozenset(["loaded", "api"])


def facts(
    handlers: t.Any = ("runc", "h"),
    cri_ready: bool | None = True,
    evidence: str = "loaded",
    gains: t.Sequence[str] = (),
    loses: t.Sequence[str] = (),
    available: bool = True,
    **more: t.Any,
) -> dict[str, t.Any]:
    """Runtime facts in the shape of the public contract."""
    if not isinstance(handlers, dict):
        handlers = {name: {"usable": True} for name in handlers}
    return {
        "schema": 1,
        "engine": "containerd",
        "version": "2.1.9",
        "evidence": evidence,
        "cri_ready": cri_ready,
        "explicit": False,
        "default_handler": "runc",
        "handlers": handlers,
        "restart_gains": list(gains),
        "restart_loses": list(loses),
        "layers": {"next": {"available": available}},
        "faults": [],
        **more,
    }


@pytest.mark.parametrize(
    ("runtime", "accepted", "expected"),
    [
        pytest.param(facts(), DEFAULT, State("ok", True, "loaded"), id="loaded, and again after a restart"),
        pytest.param(facts(loses=["h"]), DEFAULT, State("ok", True, "missing"), id="time bomb"),
        pytest.param(facts(available=False), DEFAULT, State("ok", True, "unknown"), id="loaded, next not known"),
        pytest.param(facts(["runc"]), DEFAULT, State("missing", False, "missing"), id="nowhere"),
        pytest.param(facts(["runc"], gains=["h"]), DEFAULT, State("restart_required", False, "loaded"), id="edited, not restarted"),
        pytest.param(facts(["runc"], available=False), DEFAULT, State("missing", False, "unknown"), id="not loaded, next not known"),
        pytest.param(facts({"h": {"usable": False}}), DEFAULT, State("unusable", True, "loaded"), id="binary gone"),
        pytest.param(facts({"h": {"usable": None}}), DEFAULT, State("ok", True, "loaded"), id="usable not known is no fault"),
        pytest.param(facts({}, False, "next", gains=["h"]), DEFAULT, State("missing", False, "loaded"), id="CRI dead, dump fine"),
        pytest.param(facts({}, False, "none", available=False), DEFAULT, State("missing", False, "unknown"), id="CRI dead, no dump"),
        pytest.param(facts({}, False, "next", gains=["h"]), frozenset(["next"]), State("missing", False, "loaded"), id="CRI dead, next accepted"),
        pytest.param(facts(cri_ready=None, evidence="next"), DEFAULT, State("unknown", None, "loaded"), id="could not be asked"),
        pytest.param(facts(["runc"], None, "next"), DEFAULT, State("unknown", None, "missing"), id="could not be asked, not in next"),
        pytest.param(facts(cri_ready=None, evidence="next"), frozenset(["next"]), State("ok", None, "loaded"), id="next accepted"),
        pytest.param(facts(["runc"], None, "next"), frozenset(["next"]), State("missing", None, "missing"), id="next accepted, not in it"),
        pytest.param(facts({"h": {"usable": False}}, None, "next"), frozenset(["next"]), State("unusable", None, "loaded"), id="next, binary gone"),
        pytest.param(facts({}, None, "none"), frozenset(["next"]), State("unknown", None, "unknown"), id="nothing known"),
        pytest.param(facts(cri_ready=None, evidence="next", explicit=True), DEFAULT, State("ok", True, "loaded"), id="a dump is judged as it is"),
        pytest.param(facts(["runc"], None, "next", explicit=True), DEFAULT, State("missing", False, "missing"), id="a dump without it"),
        pytest.param(facts(), frozenset(["api"]), State("unknown", True, "loaded"), id="a pass may not rest on it"),
        pytest.param(facts(["runc"]), frozenset(["api"]), State("missing", False, "missing"), id="what is missing stays missing"),
        pytest.param(facts(serves_kubelet=False), DEFAULT, State("unknown", None, "unknown"), id="another runtime than kubelet's"),
        pytest.param(facts(serves_kubelet=None), DEFAULT, State("ok", True, "loaded"), id="not known whose it is"),
        pytest.param({"handlers": ["h"]}, DEFAULT, State("ok", True, "unknown"), id="short, a list"),
        pytest.param(
            {"handlers": {"h": {}}, "evidence": "loaded", "cri_ready": True, "restart_gains": [], "restart_loses": ["h"]},
            DEFAULT,
            State("ok", True, "missing"),
            id="facts without layers",
        ),
        pytest.param(
            {"handlers": {"h": {}}, "evidence": "loaded", "cri_ready": True}, DEFAULT, State("ok", True, "unknown"), id="facts with next to nothing"
        ),
        pytest.param({"handlers": {"h": None}}, DEFAULT, State("ok", True, "unknown"), id="short, a mapping"),
        pytest.param({"handlers": {"h": {"usable": False}}}, DEFAULT, State("unusable", True, "unknown"), id="short, unusable"),
        pytest.param({"handlers": []}, DEFAULT, State("missing", False, "unknown"), id="short, none"),
        pytest.param({"handlers": [""]}, DEFAULT, State("missing", False, "unknown"), id="the nameless entry is no handler"),
        pytest.param(None, DEFAULT, State("unknown", None, "unknown"), id="not read"),
        pytest.param({}, DEFAULT, State("unknown", None, "unknown"), id="not read, an empty mapping"),
    ],
)
def test_handler_state(runtime: t.Any, accepted: frozenset[str], expected: State) -> None:
    assert handler_state(read_runtime(runtime, "n"), "h", accepted) == expected


@pytest.mark.parametrize(
    ("runtime", "policy", "verdict", "fails"),
    [
        (facts(), {}, "ok", False),
        (facts(loses=["h"]), {}, "ok", True),
        (facts(loses=["h"]), {"restart_loss": "warn"}, "ok", False),
        (facts(["runc"]), {}, "missing", True),
        (facts(["runc"]), {"unknown": "warn", "restart_loss": "warn"}, "missing", True),
        (facts(["runc"], gains=["h"]), {}, "restart_required", True),
        (facts({"h": {"usable": False}}), {}, "unusable", True),
        (None, {}, "unknown", True),
        (None, {"unknown": "warn"}, "unknown", False),
        (facts(cri_ready=None, evidence="next"), {"accept_evidence": ["loaded", "next"]}, "ok", False),
    ],
)
def test_what_fails(runtime: t.Any, policy: dict[str, t.Any], verdict: str, fails: bool) -> None:
    result = crosscheck([{"name": "c", "handler": "h"}], [{"name": "n", "runtime": runtime}], policy=policy, verdicts="all")
    (record,) = result["verdicts"]
    assert (record["verdict"], record["fails"]) == (verdict, fails)
    assert result["ok"] is not fails
    assert result["lines"] == (["MISSING=h"] if fails else ["OK"])


def node(labels: dict[str, str] | None, taints: t.Sequence[str] = (), **more: t.Any) -> dict[str, t.Any]:
    return {"name": "n", "labels": labels, "taints": list(taints), "runtime": {"handlers": ["h"]}, **more}


CLASS = {"name": "c", "handler": "h", "scheduling": {"nodeSelector": {"pool": "x"}, "tolerations": [{"key": "k", "operator": "Exists"}]}}


@pytest.mark.parametrize(
    ("where", "policy", "verdict"),
    [
        (node({"pool": "x"}), {}, "ok"),
        (node({"pool": "y"}), {}, "not_targeted"),
        (node({}), {}, "not_targeted"),
        (node(None), {}, "unknown"),
        (node({"pool": "x"}, labels_complete=False), {}, "ok"),
        (node({"pool": "y"}, labels_complete=False), {}, "not_targeted"),
        (node({}, labels_complete=False), {}, "unknown"),
        (node({"pool": "x"}, ["k:NoSchedule"]), {}, "ok"),
        (node({"pool": "x"}, ["j:NoSchedule"]), {}, "excluded_by_taint"),
        (node({"pool": "x"}, ["j:NoExecute"]), {}, "excluded_by_taint"),
        (node({"pool": "x"}, ["j:PreferNoSchedule"]), {}, "ok"),
        (node({"pool": "y"}, ["j:NoSchedule"]), {}, "not_targeted"),
        (node({"pool": "x"}, ["j:NoSchedule"]), {"tolerations": [{"key": "j", "operator": "Exists"}]}, "ok"),
        (node({"pool": "x"}, ["j:NoSchedule"]), {"ignore_taints": ["j"]}, "ok"),
        (node({"pool": "x"}, ["node.kubernetes.io/unschedulable:NoSchedule"]), {}, "ok"),
        (node({"pool": "x"}, ["node.kubernetes.io/unschedulable:NoSchedule"]), {"ignore_taints": []}, "excluded_by_taint"),
        (node({"pool": "y"}), {"node_selector": {"c": {"pool": "y"}}}, "ok"),
        (node({"pool": "y"}), {"node_selector": {"c": {}}}, "ok"),
        (node({"pool": "x"}), {"node_selector": {"c": {"pool": "y"}}}, "not_targeted"),
        (node(None), {"node_selector": {"c": {}}}, "ok"),
        (node({"pool": "x"}, ["j:NoSchedule"]), {"required_handlers": ["h"]}, "excluded_by_taint"),
    ],
)
def test_reach(where: dict[str, t.Any], policy: dict[str, t.Any], verdict: str) -> None:
    result = crosscheck([CLASS], [where], policy=policy, verdicts="all")
    records = {record["runtime_class"]: record for record in result["verdicts"]}
    assert records["c"]["verdict"] == verdict
    assert records["c"]["fails"] is (verdict == "unknown")
    if "required_handlers" in policy:
        assert records[None]["verdict"] == "ok"
    if verdict == "excluded_by_taint":
        assert records["c"]["handler_loaded"] is True
