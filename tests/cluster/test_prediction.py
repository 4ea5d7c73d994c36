# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The prediction matrix: what the product says will become of a pod, against the real API server and scheduler.

Each combination is created for real. Compared are: a refusal and its words; nodeSelector, tolerations and overhead of the stored pod;
the node that the scheduler binds it to, or the scheduler's words for why that node will not do. The verdict of the cross-check
(targets) is compared with the same outcome.
"""

from __future__ import annotations

import collections
import json
import time
import typing as t
import urllib.error

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import admission, scheduling
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crosscheck import crosscheck
from tests.cluster.combinations import EFFECTS, OPERATORS, Combination, combinations
from tests.cluster.control_plane import ControlPlane, ControlPlaneError
from tests.cluster.kwok import node_object
from tests.cluster.waiting import wait_until

PODS = "/api/v1/namespaces/default/pods"
#: Admission adds these two to every pod that lacks them (DefaultTolerationSeconds); they have nothing to do with a class.
_ADDED = [
    {"key": f"node.kubernetes.io/{word}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for word in ("not-ready", "unreachable")
]
#: What the issue asks of a matrix of 500; a slice is held to its share.
_FULL = 500
_REFUSALS = {
    "conflict of nodeSelectors": "conflict: runtimeClass.scheduling.nodeSelector[",
    "no such class": "pod rejected: RuntimeClass ",
    "another overhead": "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
    "overhead without a class": "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
    "empty name": "resource name may not be empty",
}


class Outcome(t.NamedTuple):
    """What became of a pod. word: refused, bound, or pending. detail: the words of who refuses it, or the node. stored: the
    parts of the stored pod that a class can change."""

    word: str
    detail: tuple[str, ...]
    stored: dict[str, t.Any]


class Matrix(t.NamedTuple):
    """Every combination, and what the real programs did with it."""

    every: list[Combination]
    seen: dict[str, Outcome]


@pytest.fixture(scope="module")
def matrix(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Matrix]:
    every = combinations(pytestconfig.getoption("--combinations"))
    gates = ["TaintTolerationComparisonOperators=true"]  # without it the API server takes neither Lt nor Gt
    # Nodes made by hand, without a controller: it would take away the taint of a new Node, and make the default ServiceAccount.
    arguments = ["--disable-admission-plugins=TaintNodesByCondition,ServiceAccount"]
    home = tmp_path_factory.mktemp("prediction")
    with ControlPlane(home, programs=("scheduler",), arguments=arguments, feature_gates=gates) as cluster:
        cluster.create([node_object(entry.node) for entry in every])
        cluster.create([entry.runtime_class for entry in every if entry.runtime_class])
        time.sleep(2)  # admission and scheduler see nodes and classes a moment after the API server has them
        refused = {entry.name: refusal for entry in every if (refusal := _send(cluster, entry))}
        seen = {**refused, **_outcomes(cluster, [entry for entry in every if entry.name not in refused])}
    yield Matrix(every, seen)


def _send(cluster: ControlPlane, entry: Combination) -> Outcome | None:
    """The API server's refusal; None: it took the pod."""
    try:
        cluster.request("POST", PODS, entry.pod)
    except urllib.error.HTTPError as error:
        message = json.loads(error.read())["message"]
        return Outcome("refused", (message.removeprefix(f'pods "{entry.pod["metadata"]["name"]}" is forbidden: '),), {})
    return None


def _outcomes(cluster: ControlPlane, entries: list[Combination]) -> dict[str, Outcome]:
    """What the scheduler did with each. Raises ControlPlaneError where it has not said so in time."""
    named = {entry.pod["metadata"]["name"]: entry.name for entry in entries}
    found: dict[str, Outcome] = {}

    def all_decided() -> bool:
        for pod in cluster.request("GET", PODS)["items"]:
            if outcome := _scheduled(pod):
                found[named[pod["metadata"]["name"]]] = outcome
        return len(found) == len(entries)

    if not wait_until(all_decided, 180, 1):
        raise ControlPlaneError(f"the scheduler said nothing of {sorted(set(named.values()) - set(found))}")
    return found


def _scheduled(pod: dict[str, t.Any]) -> Outcome | None:
    if pod["spec"].get("nodeName"):
        return Outcome("bound", (pod["spec"]["nodeName"],), _stored(pod["spec"]))
    for condition in pod["status"].get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return Outcome("pending", _words(condition["message"]), _stored(pod["spec"]))
    return None


def _words(message: str) -> tuple[str, ...]:
    """Why the one candidate will not do, out of `0/9 nodes are available: 1 Insufficient cpu, 8 node(s) didn't satisfy plugin(s)
    [NodeAffinity]. …`."""
    told = message.partition(" nodes are available: ")[2].partition(". ")[0].split(", ")
    ours = [word for word in told if not word.endswith(" node(s) didn't satisfy plugin(s) [NodeAffinity]")]
    assert ours and all(word.startswith("1 ") for word in ours), message
    return tuple(sorted(word.removeprefix("1 ") for word in ours))


def _stored(spec: dict[str, t.Any]) -> dict[str, t.Any]:
    """An empty string is stored as a field that is left out."""
    tolerations = [{key: value for key, value in entry.items() if value != ""} for entry in spec.get("tolerations") or [] if entry not in _ADDED]
    return {"nodeSelector": spec.get("nodeSelector") or {}, "tolerations": tolerations, "overhead": spec.get("overhead") or {}}


def predicted(entry: Combination) -> Outcome:
    """The same from the product, which sees the objects as they are written."""
    answer = admission.admit(entry.pod, entry.runtime_class)
    if isinstance(answer, admission.Refusal):
        return Outcome("refused", (answer.reason,), {})
    node = node_object(entry.node)
    unfit = admission.fits(answer.pod, node)
    stored = _stored(answer.pod["spec"])
    return Outcome("pending", tuple(sorted(unfit.reasons)), stored) if unfit else Outcome("bound", (entry.node["name"],), stored)


def differences(matrix: Matrix) -> dict[str, tuple[Outcome, Outcome]]:
    """Combination -> (predicted, seen), where they differ."""
    pairs = {entry.name: (predicted(entry), matrix.seen[entry.name]) for entry in matrix.every}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def test_every_prediction_is_what_happens(matrix: Matrix, tell: t.Callable[[str], None]) -> None:
    found = differences(matrix)
    words = collections.Counter(outcome.word for outcome in matrix.seen.values())
    told = ", ".join(f"{count} {word}" for word, count in sorted(words.items()))
    tell(f"prediction: {len(matrix.every)} combinations ({told}), {len(found)} differences")
    assert not found, dict(list(found.items())[:5])


def test_the_matrix_has_enough_of_everything(matrix: Matrix, tell: t.Callable[[str], None]) -> None:
    """Counted by what the real programs did, not by what was meant."""
    share = min(1.0, len(matrix.every) / _FULL)
    refusals = {
        name: sum(outcome.word == "refused" and outcome.detail[0].startswith(words) for outcome in matrix.seen.values()) for name, words in _REFUSALS.items()
    }
    pending = collections.Counter(word for outcome in matrix.seen.values() if outcome.word == "pending" for word in outcome.detail)
    pairs = _operator_effect_pairs(matrix)
    tell(f"refusals: {refusals}; pending: {dict(pending)}; operator x effect: {min(pairs.values())} to {max(pairs.values())} each of {len(pairs)}")
    assert min(refusals.values()) >= int(20 * share), refusals
    assert sum(refusals.values()) == sum(outcome.word == "refused" for outcome in matrix.seen.values())
    assert sum(outcome.word == "pending" for outcome in matrix.seen.values()) >= int(100 * share)
    assert len(pending) >= 5, pending
    assert set(pairs) == {(operator, effect) for operator in OPERATORS for effect in EFFECTS}
    assert min(pairs.values()) >= int(10 * share), pairs


def _operator_effect_pairs(matrix: Matrix) -> collections.Counter[tuple[str | None, str | None]]:
    """How often a toleration of this operator and effect, on a pod that was admitted, stood before a taint."""
    counts: collections.Counter[tuple[str | None, str | None]] = collections.Counter()
    for entry in matrix.every:
        if entry.node["taints"] and matrix.seen[entry.name].word != "refused":
            places = (entry.pod["spec"], (entry.runtime_class or {}).get("scheduling", {}))
            counts.update({(each.get("operator"), each.get("effect")) for place in places for each in place.get("tolerations", [])})
    return counts


def test_the_verdict_on_a_class_is_what_happens_to_its_plain_pods(matrix: Matrix, tell: t.Callable[[str], None]) -> None:
    """A pod that adds nothing of its own goes where the cross-check says that its class goes."""
    plain = [entry for entry in matrix.every if entry.runtime_class and _is_plain(entry)]
    counts: collections.Counter[str] = collections.Counter()
    for entry in plain:
        node = node_object(entry.node)
        record = crosscheck([entry.runtime_class], [node], verdicts="all")["verdicts"]
        verdict, outcome = record[0]["verdict"], matrix.seen[entry.name]
        counts[verdict] += 1
        assert verdict in _VERDICTS_OF.get(outcome.detail, ("ok",)), (entry, record, outcome)
    tell(f"verdicts on classes: {len(plain)} of {len(plain)} are what happened to a plain pod: {dict(sorted(counts.items()))}")
    assert set(counts) == {"ok", "not_targeted", "excluded_by_taint"}


#: The scheduler looks at taints first, the cross-check at the selector: where both exclude the node, they name another reason.
_VERDICTS_OF = {
    (admission.UNTOLERATED,): ("excluded_by_taint", "not_targeted"),
    (admission.NOT_SELECTED,): ("not_targeted",),
}


def _is_plain(entry: Combination) -> bool:
    return not entry.node.get("unschedulable") and not {"nodeSelector", "tolerations", "overhead"} & set(entry.pod["spec"])


@pytest.mark.parametrize(
    ("module", "name", "wrong"),
    [
        (admission, "untolerated", lambda _taints, _tolerations: []),
        (admission, "selector_matches", lambda _selector, _labels: True),
        (admission, "merged_tolerations", lambda pods, _classes: list(pods)),
        (admission, "insufficient", lambda *_arguments: ()),
        (admission, "_with_overhead", lambda spec, *_arguments: dict(spec)),
        (admission, "_equal", lambda _one, _other: True),
        (admission, "_overhead_without_class", lambda *_arguments: None),
        (scheduling, "_compares", lambda _toleration, _taint: False),
        (scheduling, "EXCLUDING_EFFECTS", ("NoSchedule",)),
        (scheduling, "EXCLUDING_EFFECTS", scheduling.EFFECTS),
    ],
    ids=[
        "taints", "nodeSelector", "tolerations of the class", "resources", "overhead", "another overhead", "overhead without a class",
        "Lt and Gt", "NoExecute", "PreferNoSchedule",
    ],
)
def test_a_wrong_rule_shows(matrix: Matrix, monkeypatch: pytest.MonkeyPatch, module: t.Any, name: str, wrong: t.Any) -> None:
    """Each rule of the prediction, taken away, makes a difference to the real programs."""
    monkeypatch.setattr(module, name, wrong)
    assert differences(matrix)
