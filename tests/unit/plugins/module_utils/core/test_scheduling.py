# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of nodeSelector, taints and tolerations, each with the sentence of Kubernetes' documentation it is.

T: https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
A: https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/
L: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
API: the field comments of Toleration in k8s.io/api/core/v1
"""

from __future__ import annotations

import itertools

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.scheduling import (
    EFFECTS,
    Taint,
    Toleration,
    check_handler,
    extended_resource,
    nameable,
    parse_selector,
    parse_taints,
    parse_tolerations,
    selector_matches,
    tolerates,
    untolerated,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError


@pytest.mark.parametrize(
    ("selector", "labels", "matches", "source"),
    [
        ({}, {}, True, "A: a pod without nodeSelector is not bound to any label"),
        ({"a": "b"}, {"a": "b", "c": "d"}, True, "A: only onto nodes that have each of the labels you specify"),
        ({"a": "b", "c": "d"}, {"a": "b"}, False, "A: each of the labels"),
        ({"a": "b"}, {"a": "B"}, False, "L: values are compared exactly"),
        ({"a": ""}, {}, False, "L: a label with an empty value is not an absent label"),
        ({"a": ""}, {"a": ""}, True, "L: a value may be empty"),
    ],
)
def test_node_selector(selector: dict[str, str], labels: dict[str, str], matches: bool, source: str) -> None:
    assert selector_matches(selector, labels) is matches, source


@pytest.mark.parametrize(
    ("toleration", "taint", "expected", "source"),
    [
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, "k=v:NoSchedule", True, "T: the default value for operator is Equal"),
        ({"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}, "k=v:NoSchedule", True, "T: the values should be equal"),
        ({"key": "k", "operator": "Equal", "value": "w", "effect": "NoSchedule"}, "k=v:NoSchedule", False, "T: the values should be equal"),
        ({"key": "k", "operator": "Equal"}, "k:NoSchedule", True, "T: two empty values are equal"),
        ({"key": "k", "operator": "Equal"}, "k=v:NoSchedule", False, "T: an empty value is not any value"),
        ({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, "k=v:NoSchedule", True, "T: Exists, no value should be specified"),
        ({"key": "j", "operator": "Exists"}, "k=v:NoSchedule", False, "T: matches if the keys are the same"),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, "k=v:NoSchedule", False, "T: and the effects are the same"),
        ({"key": "k", "operator": "Exists"}, "k=v:NoSchedule", True, "T: an empty effect matches all effects with key"),
        ({"key": "k", "operator": "Exists"}, "k=v:NoExecute", True, "T: an empty effect matches all effects with key"),
        ({"operator": "Exists"}, "k=v:NoSchedule", True, "T: an empty key with Exists matches all keys, values and effects"),
        ({"operator": "Exists", "effect": "NoExecute"}, "k=v:NoSchedule", False, "API: an empty key does not make the effect empty"),
        (
            {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
            "k:NoExecute",
            True,
            "API: tolerationSeconds bounds how long a running pod stays, not whether the taint is tolerated",
        ),
        ({"key": "k", "operator": "Gt", "value": "750"}, "k=950:NoSchedule", True, "T: Gt, the taint value is greater"),
        ({"key": "k", "operator": "Gt", "value": "750"}, "k=750:NoSchedule", False, "T: greater, not equal"),
        ({"key": "k", "operator": "Gt", "value": "750"}, "k=10:NoSchedule", False, "T: compared as numbers, not as texts"),
        ({"key": "k", "operator": "Lt", "value": "950"}, "k=800:NoSchedule", True, "T: Lt, the taint value is less"),
        ({"key": "k", "operator": "Lt", "value": "800"}, "k=800:NoSchedule", False, "T: less, not equal"),
        ({"key": "k", "operator": "Lt", "value": "-3"}, "k=-5:NoSchedule", True, "T: any integer"),
        ({"key": "k", "operator": "Gt", "value": "5"}, "k=high:NoSchedule", False, "T: a value that is no integer does not match"),
        ({"key": "k", "operator": "Gt", "value": "5"}, "k:NoSchedule", False, "T: a value that is no integer does not match"),
        ({"key": "k", "operator": "Gt", "value": "5"}, "k=9223372036854775808:NoSchedule", False, "T: integers of 64 bits"),
    ],
)
def test_tolerates(toleration: dict[str, object], taint: str, expected: bool, source: str) -> None:
    # A taint value may not begin with a dash by the syntax of labels, so the pair -3 and -5 is made by hand.
    if "=-" in taint:
        made, stain = Toleration("k", str(toleration["operator"]), str(toleration["value"]), ""), Taint("k", "-5", "NoSchedule")
    else:
        (made,), (stain,) = parse_tolerations([toleration], "t"), parse_taints([taint], "n")
    assert tolerates(made, stain) is expected, source


def test_a_preference_never_excludes() -> None:
    """T: PreferNoSchedule is a preference or soft version of NoSchedule."""
    taints = parse_taints(["a:PreferNoSchedule", "b:NoSchedule", "c:NoExecute"], "n")
    assert [taint.key for taint in untolerated(taints, ())] == ["b", "c"]


def test_every_taint_needs_a_toleration() -> None:
    """T: ignore the ones for which the pod has a matching toleration; the remaining un-ignored taints have the
    indicated effects. The example of that page: three taints, two tolerations, the pod cannot be scheduled."""
    taints = parse_taints(["key1=value1:NoSchedule", "key1=value1:NoExecute", "key2=value2:NoSchedule"], "n")
    tolerations = parse_tolerations(
        [
            {"key": "key1", "operator": "Equal", "value": "value1", "effect": "NoSchedule"},
            {"key": "key1", "operator": "Equal", "value": "value1", "effect": "NoExecute"},
        ],
        "t",
    )
    assert [str(taint) for taint in untolerated(taints, tolerations)] == ["key2=value2:NoSchedule"]


_TOLERATIONS = [
    Toleration(key, operator, value, effect)
    for key, operator, value, effect in itertools.product(("", "a", "b"), ("Exists", "Equal", "Lt", "Gt"), ("", "1", "2"), ("", *EFFECTS))
    if (key or operator == "Exists") and (operator != "Exists" or not value) and (operator not in ("Lt", "Gt") or value)
]
_TAINTS = [Taint(key, value, effect) for key, value, effect in itertools.product(("a", "b"), ("", "1", "2"), EFFECTS)]


def test_properties_over_every_small_pair() -> None:
    """What must hold whatever the rules are made of: an empty part is at least as wide as any filled one, Exists as
    any other operator, and of Equal, Lt and Gt exactly one holds between two numbers."""
    tolerating = {entry: {taint for taint in _TAINTS if tolerates(entry, taint)} for entry in _TOLERATIONS}
    for entry, taints in tolerating.items():
        assert taints <= tolerating[entry._replace(effect="")]
        assert taints <= tolerating[entry._replace(operator="Exists", value="")]
        assert taints <= tolerating[Toleration("", "Exists", "", entry.effect)]
        assert {taint.effect for taint in taints} <= ({entry.effect} if entry.effect else set(EFFECTS))
    assert tolerating[Toleration("", "Exists", "", "")] == set(_TAINTS)
    for taint in (taint for taint in _TAINTS if taint.value):
        held = [op for op in ("Equal", "Lt", "Gt") if tolerates(Toleration(taint.key, op, "1", ""), taint)]
        assert len(held) == 1


def test_one_more_toleration_never_excludes_more() -> None:
    for taints in itertools.combinations(_TAINTS, 2):
        without = untolerated(taints, ())
        for entry in _TOLERATIONS:
            assert set(untolerated(taints, (entry,))) <= set(without)


@pytest.mark.parametrize(
    ("taint", "expected"),
    [
        ("nvidia.com/gpu=present:NoSchedule", True),
        ("amd.com/gpu:NoSchedule", True),
        ("nvidia.com/gpu:NoExecute", False),
        ("dedicated=gpu:NoSchedule", False),
        ("node.kubernetes.io/unschedulable:NoSchedule", False),
        ("kubernetes.io/batch-cpu:NoSchedule", False),
    ],
)
def test_extended_resource(taint: str, expected: bool) -> None:
    """https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#extended-resources: fully
    qualified names outside the kubernetes.io domain."""
    assert extended_resource(parse_taints([taint], "n")[0]) is expected


@pytest.mark.parametrize(
    "labels",
    [
        {"a": ""},
        {"example.com/a-b_c.d": "x-1_2.3"},
        {"A9": "Z"},
        {"a" * 63: "b" * 63},
        {".".join(["a" * 60] * 4) + "/n": "v"},
    ],
)
def test_labels_that_are(labels: dict[str, str]) -> None:
    assert parse_selector(labels, "x") == labels


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        ("gpu=true", "a string"),
        (["gpu"], "a list"),
        (5, "a number"),
        (True, "a boolean"),
        (object(), "not a value that YAML has"),
        ({"matchLabels": {"a": "b"}}, "matchLabels"),
        ({"matchExpressions": []}, "matchExpressions"),
        ({"nodeSelectorTerms": []}, "nodeSelectorTerms"),
        ({"gpu": True}, 'gpu: "true"'),
        ({"gpu": 1}, "in quotes"),
        ({"gpu": None}, "no label value"),
        ({}.keys(), "not a value that YAML has"),
        ({"gpu": "a b"}, "no label value"),
        ({"gpu": "-a"}, "no label value"),
        ({"gpu": "a" * 64}, "no label value"),
        ({"gpu": {"in": []}}, "no label value"),
        ({"-a": "b"}, "no label key"),
        ({"a" * 64: "b"}, "no label key"),
        ({"Example.com/a": "b"}, "no label key"),
        ({"/a": "b"}, "no label key"),
        ({"a/b/c": "d"}, "no label key"),
        ({".".join(["a" * 63] * 4) + "aaaa/n": "v"}, "no label key"),
        ({7: "b"}, "no label key"),
    ],
)
def test_labels_that_are_none(raw: object, word: str) -> None:
    with pytest.raises(RuntimeGateError, match="the place") as caught:
        parse_selector(raw, "the place")
    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        ({"key": "k"}, "not a list"),
        (["k"], "not a toleration"),
        ([{"key": "k", "operater": "Exists"}], 'did you mean "operator"'),
        ([{"key": "k", "operator": "Exist"}], 'did you mean "Exists"'),
        ([{"operator": "Equal", "value": "v"}], "without a key the operator must be Exists"),
        ([{}], "without a key"),
        ([{"key": "k", "operator": "Exists", "value": "v"}], "refuses the pair"),
        ([{"key": "k", "operator": "Gt", "value": "high"}], "no integer"),
        ([{"key": "k", "operator": "Lt"}], "no integer"),
        ([{"key": "k", "operator": "Exists", "effect": "NoSchedul"}], 'did you mean "NoSchedule"'),
        ([{"key": "k", "value": True}], "in quotes"),
        ([{"key": "a b", "operator": "Exists"}], "no label key"),
    ],
)
def test_tolerations_that_are_none(raw: object, word: str) -> None:
    with pytest.raises(RuntimeGateError, match="place") as caught:
        parse_tolerations(raw, "place")
    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        ("k:NoSchedule", "not a list"),
        (["k"], "KEY=VALUE:EFFECT"),
        (["k=v:Never"], "effect 'Never'"),
        ([{"effect": "NoSchedule"}], "not a taint"),
        ([5], "not a taint"),
        ([{"key": "k"}], "effect None"),
        ([{"key": "k", "value": "a b", "effect": "NoSchedule"}], "no label value"),
    ],
)
def test_taints_that_are_none(raw: object, word: str) -> None:
    with pytest.raises(RuntimeGateError, match="place") as caught:
        parse_taints(raw, "place")
    assert word in str(caught.value)


def test_taints_in_both_forms_are_the_same() -> None:
    assert parse_taints(["k=v:NoExecute", "l:NoSchedule"], "n") == parse_taints(
        [{"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}, {"key": "l", "effect": "NoSchedule"}], "n"
    )
    assert parse_taints(None, "n") == ()
    assert parse_selector(None, "n") == {}


@pytest.mark.parametrize("handler", ["nvidia", "kata-qemu", "a", "0", "a" * 63])
def test_handlers_that_the_api_server_takes(handler: str) -> None:
    assert check_handler(handler, "c") == handler
    assert nameable(handler)


@pytest.mark.parametrize("handler", [None, "", "Nvidia", "kata_qemu", "a.b", "-a", "a-", "a" * 64, 5, ["a"]])
def test_handlers_that_it_refuses(handler: object) -> None:
    """https://kubernetes.io/docs/concepts/containers/runtime-class/: the handler must be a valid DNS label name."""
    with pytest.raises(RuntimeGateError, match="RuntimeClass x"):
        check_handler(handler, "RuntimeClass x")
