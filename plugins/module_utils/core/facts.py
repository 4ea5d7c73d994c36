# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts about one node's runtime, of either engine: what a restart would change, and the one schema. Pure.

A *situation* here is the evidence of one capture as its engine reads it: ``node``, ``dump``, ``running``, ``rules``,
``loaded``, ``cri_ready``, ``load``, ``documents()`` and ``upgraded``.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.catalogue import INFO, Fault
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.usability import Verdict

SCHEMA = 1
#: How much of the dump's stderr the facts repeat (lines, characters of each).
_WARNINGS, _WARNING_LENGTH = 20, 400

Table = t.Dict[str, t.Any]


class Outcome(t.NamedTuple):
    """What the interpretation has found so far, as the explanations need it.

    :ivar handlers: the handlers that the facts will show.
    :ivar lost: names declared for this runtime and not among them.
    :ivar verdicts: usability of each of the handlers.
    :ivar gains: what a restart would add. :ivar loses: what it would take away.
    :ivar changes: name → keys of handlers that a restart would change.
    :ivar pending: a restart would change what is loaded (None: unknown).
    """

    handlers: t.Mapping[str, t.Mapping[str, t.Any]]
    default: t.Optional[str]
    lost: t.Sequence[str]
    verdicts: t.Mapping[str, Verdict]
    gains: t.Sequence[str]
    loses: t.Sequence[str]
    changes: t.Mapping[str, t.Sequence[str]]
    next_default: t.Optional[str]
    pending: t.Optional[bool]


class Next(t.NamedTuple):
    """What a restart would load.

    :ivar available: it can be told. :ivar handlers: what the configuration holds, served or not.
    :ivar served: what CRI would answer with; None when unknown.
    """

    available: bool
    source: str
    handlers: t.Mapping[str, Table]
    default: t.Optional[str]
    served: t.Optional[t.Mapping[str, Table]]


#: (handler, its loaded values, its next values) → keys
Differing = t.Callable[[str, Table, Table], t.List[str]]
Change = t.Tuple[t.List[str], t.List[str], t.Dict[str, t.List[str]], t.Optional[str], t.Optional[bool]]


def change(situation: t.Any, coming: Next, differing: Differing) -> Change:
    """(gains, loses, changes, next default, pending) of a restart; pending is None where the next start is unknown.

    :param differing: the keys in which two descriptions of one handler differ, as the engine compares them.
    """
    loaded = situation.loaded
    if loaded is None and situation.cri_ready is None or coming.served is None:
        return [], [], {}, coming.default, None
    if loaded is None:
        # CRI is not served: a restart that serves it brings everything.
        return sorted(coming.served), [], {}, coming.default if coming.served else None, bool(coming.served)
    gains = sorted(set(coming.served) - set(loaded.handlers))
    loses = sorted(set(loaded.handlers) - set(coming.served))
    changes = {}
    for name in sorted(set(coming.served) & set(loaded.handlers)):
        keys = differing(name, loaded.handlers[name], coming.served[name])
        if keys:
            changes[name] = keys
    other_default = bool(coming.served) and None not in (coming.default, loaded.default) and coming.default != loaded.default
    return gains, loses, changes, coming.default, bool(gains or loses or changes or other_default)


def assemble(
    engine: str,
    situation: t.Any,
    outcome: Outcome,
    coming: Next,
    evidence: str,
    faults: t.Sequence[Fault],
    handlers: Table,
    layers: Table,
    imports: t.List[Table],
) -> Table:
    """The facts (schema 1, DESIGN "Public contract").

    :param handlers: name → the public facts of a handler.
    :param layers, imports: as the contract has them.
    """
    node = situation.node
    return {
        "schema": SCHEMA,
        "collected_at": node.get("collected_at"),
        "engine": engine,
        "version": node.get("version"),
        "next_version": node.get("next_version") or node.get("version"),
        "release_line": _line_name(situation),
        "config_path": node.get("config_path"),
        "endpoint": node.get("endpoint"),
        "serves_kubelet": node.get("serves_kubelet"),
        "evidence": evidence,
        "cri_ready": situation.cri_ready,
        "explicit": False,
        "reason": _reason(situation),
        "default_handler": outcome.default,
        "handlers": handlers,
        "layers": layers,
        "imports": imports,
        "restart_pending": outcome.pending,
        "restart_gains": list(outcome.gains),
        "restart_loses": list(outcome.loses),
        "restart_changes": {name: list(keys) for name, keys in outcome.changes.items()},
        "lost": list(outcome.lost),
        "faults": [fault.as_dict() for fault in faults],
        "healthy": all(fault.severity == INFO for fault in faults)
        and situation.cri_ready is True
        and node.get("serves_kubelet") is not False,
        "identity": _identity(node),
    }


def _line_name(situation: t.Any) -> t.Optional[str]:
    rules = situation.running or situation.rules
    return rules.name if rules is not None else None


def _reason(situation: t.Any) -> str:
    """Why CRI was not asked or does not answer; "" when it did."""
    if situation.loaded is not None:
        return ""
    node = situation.node
    if node.get("undecided"):
        return "it could not be decided which runtime serves the kubelet: %s" % ", ".join(map(str, node["undecided"]))
    if node.get("needs_become"):
        return "reading the runtime needs root: needs become"
    if node.get("cri_error"):
        return str(node["cri_error"])
    return "CRI was not asked"


def _identity(node: t.Mapping[str, t.Any]) -> Table:
    """What tells which Node object this host is (core/node_identity)."""
    kubelet = node.get("kubelet") or {}
    return {
        "name": node.get("name"),
        "hostname": node.get("hostname"),
        "boot_id": node.get("boot_id"),
        "machine_id": node.get("machine_id"),
        "kubelet_hostname_override": kubelet.get("hostname_override"),
        "kubelet_node_name": kubelet.get("node_name"),
        "os": node.get("os"),
        "arch": node.get("arch"),
    }


def layers(
    situation: t.Any, coming: Next, loaded_source: str, version: t.Any, files: t.List[Table], declared_default: t.Optional[str]
) -> Table:
    """The three layers of evidence on the node.

    :param loaded_source: what the running daemon's handlers were learned from.
    :param version: the version of the configuration that a restart would read, where the engine has such a thing.
    :param files: one entry a configuration file, each with its ``handlers``.
    """
    loaded, dump = situation.loaded, situation.dump or {}
    now = _layer(
        loaded is not None,
        loaded_source if loaded is not None else "none",
        loaded.handlers if loaded is not None else (),
        loaded.default if loaded is not None else None,
    )
    following = _layer(coming.available, coming.source, coming.handlers, coming.default)
    following["serves_cri"] = None if coming.served is None else bool(coming.served)
    following["version"] = version
    following["warnings"] = _warnings(str(dump.get("stderr") or ""))
    following["rc"] = dump.get("rc")
    names = {item["name"] for entry in files for item in entry["handlers"]}
    declared = _layer(bool(files), "files", names, declared_default)
    declared["files"] = files
    return {"loaded": now, "next": following, "declared": declared}


def _layer(available: bool, source: str, handlers: t.Iterable[str], default: t.Optional[str]) -> Table:
    return {"available": available, "source": source, "handlers": sorted(handlers), "default_handler": default}


def _warnings(stderr: str) -> t.List[str]:
    """The first warnings and errors that the dump printed: facts are kept small, a capture has all of them."""
    lines = [line for line in stderr.splitlines() if "level=warn" in line or "level=error" in line]
    return [line[:_WARNING_LENGTH] for line in lines[:_WARNINGS]]


def declared_default(situation: t.Any) -> t.Optional[str]:
    """The default that the files name last, whether it is read or not."""
    paths = situation.load.paths if situation.load else []
    named = [name for document in situation.documents() if document.path in paths for name, _path in document.default_names()]
    return named[-1] if named else None


def declared_file(document: t.Any, situation: t.Any, version: t.Optional[int], imports: t.Sequence[str]) -> Table:
    """One file of ``layers.declared``. version: the one that it states. imports: the patterns as written."""
    return {
        "path": document.path,
        "loaded": document.path in (situation.load.paths if situation.load else []),
        "version": version,
        "imports": list(imports),
        "handlers": [{"name": item.handler, "line": item.line, "table": item.table} for item in document.declarations],
        "error": document.error,
    }


__all__ = ("Next", "Outcome", "SCHEMA", "Table", "assemble", "change", "declared_default", "declared_file", "layers")
