# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes the pods of a RuntimeClass can reach: nodeSelector, taints and tolerations.

Pure restatement of what kube-scheduler and the API server's validation do. Sources, named at each rule:

[rc]      https://kubernetes.io/docs/concepts/containers/runtime-class/#scheduling
[assign]  https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodeselector
[taint]   https://kubernetes.io/docs/concepts/scheduling-eviction/taint-and-toleration/
[api]     the field comments of Toleration and Taint in k8s.io/api/core/v1 (shown by kubectl explain)
[label]   https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
[ert]     https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#extendedresourcetoleration
"""

from __future__ import annotations

import functools
import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import MAPPING, shown, yaml_kind
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.suggest import did_you_mean
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

# [taint] PreferNoSchedule is a preference: "the control plane will try to avoid placing a Pod that does not
# tolerate the taint on the node, but it is not guaranteed". Only the other two keep a pod away.
EXCLUDING_EFFECTS = ("NoSchedule", "NoExecute")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# [api] "Valid operators are Exists, Equal, Lt, and Gt. Defaults to Equal."; the last two need the feature gate
# TaintTolerationComparisonOperators, without which the API server refuses to store them.
OPERATORS = ("Exists", "Equal", "Lt", "Gt")

# [label] name part: 63 characters or less, beginning and ending with an alphanumeric character, with dashes,
# underscores, dots and alphanumerics between. A value may also be empty.
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
# [label] prefix: a DNS subdomain, not longer than 253 characters in total.
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
# RuntimeClass.handler: "must be lowercase and conform to the DNS Label (RFC 1123) requirements" (k8s.io/api/node/v1).
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_INT64 = re.compile(r"-?[0-9]+\Z")


class Taint(t.NamedTuple):
    """One entry of Node.spec.taints."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(t.NamedTuple):
    """One toleration. Empty key: every key (operator Exists only). Empty effect: every effect."""

    key: str
    operator: str
    value: str
    effect: str


def selector_matches(selector: t.Mapping[str, str], labels: t.Mapping[str, str]) -> bool:
    """[assign] Kubernetes only schedules the pod onto nodes that have each of the labels you specify."""
    return all(labels.get(key) == value for key, value in selector.items())


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration matches one taint.

    [taint] "A toleration matches a taint if the keys are the same and the effects are the same", and
    operator Exists (no value), or Equal and the values are equal. [api] An empty key with Exists matches all
    keys and values, an empty effect matches all effects. tolerationSeconds bounds how long a running pod
    stays under NoExecute; for the scheduler the taint is tolerated, so it plays no part here.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    if toleration.operator == "Equal":
        return toleration.value == taint.value
    return _compares(toleration, taint)


def untolerated(taints: t.Iterable[Taint], tolerations: t.Sequence[Toleration]) -> list[Taint]:
    """The taints that keep a pod with these tolerations off the node, in the node's order."""
    return [
        taint
        for taint in taints
        if taint.effect in EXCLUDING_EFFECTS and not any(tolerates(entry, taint) for entry in tolerations)
    ]


def extended_resource(taint: Taint) -> bool:
    """Whether pods that request the resource of this name may get the toleration by themselves.

    [ert] The admission plugin ExtendedResourceToleration (off by default) adds {key: RESOURCE, operator: Exists,
    effect: NoSchedule} to pods that request extended resources. Such a name has a domain that is not
    kubernetes.io. The RuntimeClass does not show it, so it can only be pointed out.
    """
    domain = taint.key.partition("/")[0]
    outside = domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")
    return taint.effect == "NoSchedule" and "/" in taint.key and outside


def parse_selector(raw: t.Any, where: str) -> dict[str, str]:
    """A nodeSelector or the labels of a node: a map of label keys to strings. Raises RuntimeGateError."""
    if raw is None:
        return {}
    if not isinstance(raw, MAPPING):
        raise RuntimeGateError(f"{where} is {yaml_kind(raw)}, not a mapping of label keys to values; write it as KEY: \"VALUE\"")
    for odd in ("matchLabels", "matchExpressions", "nodeSelectorTerms"):
        if odd in raw:
            raise RuntimeGateError(
                f"{where} has {odd}, which belongs to a label selector or an affinity;"
                " a nodeSelector is a plain mapping of label keys to values"
            )
    return {_label_key(key, where): _label_value(value, key, where) for key, value in raw.items()}


def parse_tolerations(raw: t.Any, where: str) -> tuple[Toleration, ...]:
    """A list of tolerations as Kubernetes writes them. Raises RuntimeGateError."""
    return tuple(_toleration(entry, f"{where}[{index}]") for index, entry in enumerate(_list(raw, where)))


def parse_taints(raw: t.Any, where: str) -> tuple[Taint, ...]:
    """A list of taints, each a mapping, or a string KEY[=VALUE]:EFFECT as kubelet's --register-with-taints and
    kubespray's node_taints have it. Raises RuntimeGateError."""
    return tuple(_taint(entry, f"{where}[{index}]") for index, entry in enumerate(_list(raw, where)))


def check_handler(handler: t.Any, where: str) -> str:
    """The handler of a RuntimeClass, if the API server would take it. Raises RuntimeGateError."""
    if handler is None or handler == "":
        raise RuntimeGateError(f"{where} has no handler; a RuntimeClass must name the handler of the node's runtime")
    if not isinstance(handler, str) or not _DNS_LABEL.match(handler):
        raise RuntimeGateError(
            f"{where} has the handler {shown(handler)}, which the API server refuses: it must be a string of at most 63"
            " lower-case letters, digits and dashes (a DNS label)"
        )
    return handler


def nameable(handler: str) -> bool:
    """Whether any RuntimeClass can name this handler of a runtime."""
    return bool(_DNS_LABEL.match(handler))


def _compares(toleration: Toleration, taint: Taint) -> bool:
    """[taint] Gt matches if the taint value is greater than the toleration value, Lt if it is less; if either
    is no integer of 64 bits, the toleration does not match."""
    if not (int64(toleration.value) and int64(taint.value)):
        return False
    found, wanted = int(taint.value), int(toleration.value)
    return found > wanted if toleration.operator == "Gt" else found < wanted


def int64(text: str) -> bool:
    """Whether a text is an integer of 64 bits, which is what Gt and Lt compare."""
    return bool(_INT64.match(text)) and -(2**63) <= int(text) < 2**63


def _toleration(raw: t.Any, where: str) -> Toleration:
    if not isinstance(raw, MAPPING):
        raise RuntimeGateError(f"{where} is {yaml_kind(raw)}, not a toleration; write it as {{key: KEY, operator: Exists}}")
    known = ("key", "operator", "value", "effect", "tolerationSeconds")
    for name in raw:
        if name not in known:
            raise RuntimeGateError(f"{where} has the unknown key {shown(name)}{did_you_mean(str(name), known)}")
    key, value = raw.get("key") or "", raw.get("value")
    operator, effect = raw.get("operator") or "Equal", raw.get("effect") or ""
    if operator not in OPERATORS:
        raise RuntimeGateError(
            f"{where} has the operator {shown(operator)}; Kubernetes knows {', '.join(OPERATORS)}{did_you_mean(str(operator), OPERATORS)}"
        )
    if key:
        _label_key(key, where)
    elif operator != "Exists":
        # [api] "If the key is empty, operator must be Exists"
        raise RuntimeGateError(f"{where} has no key; without a key the operator must be Exists (it then tolerates everything)")
    if operator == "Exists" and value not in (None, ""):
        # [api] "If the operator is Exists, the value should be empty", enforced by the API server.
        raise RuntimeGateError(f"{where} has the operator Exists and the value {shown(value)}; the API server refuses the pair")
    text = "" if value is None else _label_value(value, key, where)
    if operator in ("Lt", "Gt") and not int64(text):
        raise RuntimeGateError(f"{where} has the operator {operator} and the value {shown(text)}, which is no integer")
    return Toleration(key, operator, text, _effect(effect, where, (*EFFECTS, "")))


def _taint(raw: t.Any, where: str) -> Taint:
    if isinstance(raw, str):
        head, colon, effect = raw.rpartition(":")
        if not colon:
            raise RuntimeGateError(f"{where} is {shown(raw)}, not a taint; write it as KEY=VALUE:EFFECT")
        key, _equals, value = head.partition("=")
        raw = {"key": key, "value": value, "effect": effect}
    if not isinstance(raw, MAPPING) or not raw.get("key"):
        raise RuntimeGateError(f"{where} is not a taint; write it as {{key: KEY, value: VALUE, effect: NoSchedule}}")
    key, value = _label_key(raw["key"], where), raw.get("value")
    return Taint(key, "" if value is None else _label_value(value, key, where), _effect(raw.get("effect"), where, EFFECTS))


def _effect(effect: t.Any, where: str, known: tuple[str, ...]) -> str:
    if effect not in known:
        raise RuntimeGateError(
            f"{where} has the effect {shown(effect)}; Kubernetes knows {', '.join(EFFECTS)}{did_you_mean(str(effect), EFFECTS)}"
        )
    return t.cast(str, effect)


def _label_key(key: t.Any, where: str) -> str:
    """[label] An optional prefix and a name, separated by a slash."""
    if isinstance(key, str) and _is_label_key(key):
        return key
    raise RuntimeGateError(f"{where} has {shown(key)}, which is no label key: [PREFIX/]NAME, with a DNS name before the slash")


def _label_value(value: t.Any, key: t.Any, where: str) -> str:
    if isinstance(value, (bool, int, float)):
        raise RuntimeGateError(
            f"{where} gives {shown(key)} the value {shown(value)}, which is {yaml_kind(value)} and no string; write it in quotes"
            f" ({key}: \"{str(value).lower()}\")"
        )
    if isinstance(value, str) and _is_label_value(value):
        return value
    raise RuntimeGateError(
        f"{where} gives {shown(key)} the value {shown(value)}, which is no label value: at most 63 letters, digits, '-', '_' and '.',"
        " beginning and ending with a letter or digit"
    )


# A fleet has the same few dozen labels on each of its thousands of nodes.
@functools.lru_cache(maxsize=65536)
def _is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return bool(_NAME.match(name)) and (not slash or (len(prefix) <= 253 and bool(_SUBDOMAIN.match(prefix))))


@functools.lru_cache(maxsize=65536)
def _is_label_value(value: str) -> bool:
    return value == "" or bool(_NAME.match(value))


def _list(raw: t.Any, where: str) -> t.Sequence[t.Any]:
    if raw is None:
        return ()
    if not isinstance(raw, (list, tuple)):
        raise RuntimeGateError(f"{where} is {yaml_kind(raw)}, not a list")
    return raw
