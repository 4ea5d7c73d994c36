# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The RuntimeClass objects that a fleet's declarations ask for, and who owns an object that is already there.

Pure. A declaration is what ``runtime_gate_handlers`` of one host says. Ownership is what the API server keeps in
metadata.managedFields (https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management).
"""

from __future__ import annotations

import json
import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import shown, yaml_kind
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.quantity import parse_quantity
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.scheduling import (
    check_handler,
    parse_selector,
    parse_tolerations,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.suggest import did_you_mean
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

Object = t.Dict[str, t.Any]

#: Under this name our fields stand in managedFields.
FIELD_MANAGER = "kubenode.runtime_gate"

_KEYS = ("name", "overhead", "node_selector", "tolerations", "labels")
# The name of a RuntimeClass is a DNS subdomain (https://kubernetes.io/docs/concepts/containers/runtime-class/).
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_SHOWN = 5  # names in a sentence
#: The parts of a RuntimeClass that say something; the rest is kept by the API server.
_PARTS = ("handler", "overhead", "scheduling")


class Declared(t.NamedTuple):
    """What all declarations say together.

    :ivar classes: name of a RuntimeClass -> the object to apply. :ivar hosts: the same name -> the hosts that declare it.
    :ivar absent: handlers that somebody declares absent and nobody present. :ivar kept: handler that is to go -> the hosts
        outside this run that still have it declared, so that its classes stay. :ivar known: every handler that anybody declares.
    """

    classes: t.Dict[str, Object]
    hosts: t.Dict[str, t.List[str]]
    absent: t.List[str]
    kept: t.Dict[str, t.List[str]]
    known: t.FrozenSet[str] = frozenset()


def read_declarations(
    declarations: t.Mapping[str, t.Any], enabled: t.Collection[str], acting: t.Collection[str], remove: bool = False
) -> Declared:
    """What the declarations of all hosts of a cluster ask for, and what of it this run is to do.

    :param declarations: host -> its ``runtime_gate_handlers``.
    :param enabled: the hosts whose declarations ask for RuntimeClasses at all. The others only keep a class alive whose handler
        they have.
    :param acting: the hosts of this run. Only what they declare is applied or taken away.
    :param remove: everything that an acting host declares is to go, as ``state: absent`` would say.
    :raises RuntimeGateError: a declaration is none, or two of them contradict each other.
    """
    wanted: t.Dict[str, t.Dict[str, Object]] = {}
    present: t.Dict[str, t.List[str]] = {}
    going: t.Set[str] = set()
    known: t.Set[str] = set()
    for host in sorted(declarations):
        for handler, entry in _entries(declarations[host], host).items():
            known.add(handler)
            absent, acts = entry.get("state") == "absent", host in acting
            if host in enabled and acts and (absent or remove):
                going.add(handler)
            if not absent and not (remove and acts):
                present.setdefault(handler, []).append(host)
            if host in enabled and not absent and not remove:
                found = _class_of(handler, entry, "host %s: runtime_gate_handlers.%s" % (host, handler))
                wanted.setdefault(handler, {})[host] = found or {}
    for handler, by_host in wanted.items():
        _require_agreement(handler, by_host)
    classes, hosts = _chosen(wanted, acting)
    kept = {handler: present[handler] for handler in sorted(going) if handler in present}
    return Declared(classes, hosts, sorted(going - set(kept)), kept, frozenset(known))


def _entries(declaration: t.Any, host: str) -> t.Dict[str, Object]:
    where = "host %s: runtime_gate_handlers" % host
    if not declaration:
        return {}
    if not isinstance(declaration, t.Mapping):
        raise RuntimeGateError("%s is %s, not a mapping of handlers" % (where, yaml_kind(declaration)))
    found = {}
    for name, entry in declaration.items():
        handler = check_handler(name, where)
        if entry is not None and not isinstance(entry, t.Mapping):
            raise RuntimeGateError("%s.%s is %s, not a mapping such as {preset: nvidia}" % (where, handler, yaml_kind(entry)))
        found[handler] = dict(entry or {})
    return found


def _class_of(handler: str, entry: t.Mapping[str, t.Any], where: str) -> t.Optional[Object]:
    """The RuntimeClass that a declared handler asks for, None where it asks for none."""
    settings = entry.get("runtime_class")
    if settings is False:
        return None
    settings = {} if settings is None or settings is True else settings
    where += ".runtime_class"
    if not isinstance(settings, t.Mapping):
        raise RuntimeGateError("%s is %s, not a mapping with %s, or false for none" % (where, yaml_kind(settings), ", ".join(_KEYS)))
    for key in settings:
        if key not in _KEYS:
            raise RuntimeGateError("%s has the unknown key %s%s" % (where, shown(key), did_you_mean(str(key), _KEYS)))
    name = settings.get("name") or handler
    if not isinstance(name, str) or not _SUBDOMAIN.match(name) or len(name) > 253:
        raise RuntimeGateError("%s.name is %s, which is no name of an object: lower-case letters, digits, '-' and '.'" % (where, shown(name)))
    labels = parse_selector(settings.get("labels"), where + ".labels")
    parts = {
        "metadata": {"name": name, "labels": labels} if labels else {"name": name},
        "handler": handler,
        "overhead": _overhead(settings.get("overhead"), where + ".overhead"),
        "scheduling": _scheduling(settings, where),
    }
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", **{key: part for key, part in parts.items() if part}}


def _scheduling(settings: t.Mapping[str, t.Any], where: str) -> Object:
    tolerations = settings.get("tolerations")
    parse_tolerations(tolerations, where + ".tolerations")
    parts = {
        "nodeSelector": parse_selector(settings.get("node_selector"), where + ".node_selector"),
        "tolerations": [dict(entry) for entry in tolerations or ()],
    }
    return {key: part for key, part in parts.items() if part}


def _overhead(raw: t.Any, where: str) -> Object:
    """Resource -> quantity, in the API server's own form: to what is none it answers as if it had broken down."""
    if not raw:
        return {}
    if not isinstance(raw, t.Mapping):
        raise RuntimeGateError("%s is %s, not a mapping of resources to quantities; write {cpu: 250m, memory: 128Mi}" % (where, yaml_kind(raw)))
    return {"podFixed": {str(resource): str(parse_quantity(amount, "%s.%s" % (where, resource))) for resource, amount in raw.items()}}


def _require_agreement(handler: str, by_host: t.Mapping[str, Object]) -> None:
    """A class is one object of the whole cluster, so that hosts cannot want it differently."""
    versions: t.Dict[str, t.List[str]] = {}
    for host, found in by_host.items():
        versions.setdefault(json.dumps(found, sort_keys=True), []).append(host)
    if len(versions) > 1:
        said = ["%s: %s" % (some(hosts), _told(json.loads(text))) for text, hosts in sorted(versions.items(), key=lambda pair: pair[1])]
        raise RuntimeGateError(
            "runtime_gate_handlers.%s.runtime_class differs between hosts of one cluster (%s); say it once, in a group that has all of them"
            % (handler, "; ".join(said))
        )


def _told(found: Object) -> str:
    """An object in a sentence: its name and what is set."""
    if not found:
        return "none"
    parts = {key: found[key] for key in _PARTS[1:] if key in found}
    labels = found["metadata"].get("labels")
    return "%s %s" % (found["metadata"]["name"], json.dumps(dict(parts, **({"labels": labels} if labels else {})), sort_keys=True))


def _chosen(
    wanted: t.Mapping[str, t.Mapping[str, Object]], acting: t.Collection[str]
) -> t.Tuple[t.Dict[str, Object], t.Dict[str, t.List[str]]]:
    """The classes of the acting hosts, by name. Two handlers cannot share one, whoever declares the second."""
    found: t.Dict[str, Object] = {}
    classes: t.Dict[str, Object] = {}
    hosts: t.Dict[str, t.List[str]] = {}
    for handler in sorted(wanted):
        by_host = wanted[handler]
        thing = next(iter(by_host.values()))
        if not thing:
            continue
        name = thing["metadata"]["name"]
        if name in found:
            raise RuntimeGateError(
                "runtime_gate_handlers: %s and %s both ask for RuntimeClass %s; give one of them another runtime_class.name, or"
                " runtime_class: false" % (found[name]["handler"], handler, name)
            )
        found[name] = thing
        if any(host in acting for host in by_host):
            classes[name], hosts[name] = thing, sorted(by_host)
    return classes, hosts


def some(names: t.Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    listed = sorted(names)
    more = " and %d more" % (len(listed) - _SHOWN) if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more


def said_by(live: t.Mapping[str, t.Any]) -> Object:
    """What a RuntimeClass says, without what the API server keeps beside it: two objects are compared, and shown, by this."""
    metadata = live.get("metadata") or {}
    found: Object = {"metadata": {"name": metadata.get("name")}}
    if metadata.get("labels"):
        found["metadata"]["labels"] = metadata["labels"]
    found.update({key: live[key] for key in _PARTS if live.get(key)})
    return found


def our_fields(live: t.Mapping[str, t.Any]) -> t.Any:
    """The fields that we own by server-side apply, None where there is no such entry."""
    for entry in _managed(live):
        if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply":
            return entry.get("fieldsV1") or {}
    return None


def is_ours(live: t.Mapping[str, t.Any], field: str = "handler") -> bool:
    """Whether we made this object: we own the one field that each of its kind must have."""
    return "f:%s" % field in (our_fields(live) or {})


def others(live: t.Mapping[str, t.Any], field: t.Optional[str] = None) -> t.List[str]:
    """Managers beside us that own this field; without a field, any."""
    found = set()
    for entry in _managed(live):
        if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply":
            continue
        if field is None or "f:%s" % field in (entry.get("fieldsV1") or {}):
            found.add(str(entry.get("manager") or "unknown"))
    return sorted(found)


def _managed(live: t.Mapping[str, t.Any]) -> t.Sequence[t.Mapping[str, t.Any]]:
    return (live.get("metadata") or {}).get("managedFields") or ()


__all__ = ("FIELD_MANAGER", "Declared", "is_ours", "others", "our_fields", "read_declarations", "said_by", "some")
