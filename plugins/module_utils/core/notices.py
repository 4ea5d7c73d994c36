# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notices: what an operator should know and no single verdict shows. They fail nothing by themselves.

Each notice: name (slug), severity (error, warning, info), message, fix (or None), runtime_class, handler (each or
None), nodes (names). One function a notice; ALWAYS and WHOLE_FLEET list them all.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.explain import (
    Hints,
    cannot_run,
    outage_told,
    scoping_line,
    typing_error,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.fleet import Fleet, near_name, notice, some
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.judged_node import JudgedNode
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import Policy
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.runtime_class import (
    OLD_VERSIONS,
    JudgedClass,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.scheduling import nameable
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.suggest import nearest
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.verdict import reach
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.workload_notices import WORKLOADS

_SEVERITY = {"error": 0, "warning": 1, "info": 2}

# Labels with which an installer announces a handler. (key, value) -> handlers, any of which keeps the promise.
_PROMISES: dict[tuple[str, str], tuple[str, ...]] = {
    # kata-deploy: https://github.com/kata-containers/kata-containers/tree/main/tools/packaging/kata-deploy
    ("katacontainers.io/kata-runtime", "true"): ("kata",),
    # GKE Sandbox: https://cloud.google.com/kubernetes-engine/docs/how-to/sandbox-pods
    ("sandbox.gke.io/runtime", "gvisor"): ("gvisor", "runsc"),
    # KWasm operator
    ("kwasm.sh/kwasm-provisioned", "true"): ("crun", "spin", "wasmtime", "wasmedge", "lunatic", "slight"),
}
# Labels that every node of a kind has; selecting on one announces nothing.
_GENERAL = ("kubernetes.io", "node.kubernetes.io", "topology.kubernetes.io", "beta.kubernetes.io", "node-role.kubernetes.io")

# Keys of a handler that make its containers weaker than the same handler without them.
# Sources: containerd's docs/cri/config.md and cri-o's crio.conf(5).
_WEAKENING: tuple[tuple[str, t.Callable[[t.Any], bool], str], ...] = (
    (
        "privileged_without_host_devices_all_devices_allowed",
        bool,
        "lets privileged containers use every device although the devices are not passed in",
    ),
    ("cgroup_writable", bool, "mounts cgroups writable into unprivileged containers"),
    ("NoPivotRoot", bool, "runs containers without pivot_root, which weakens their isolation"),
    ("pod_annotations", lambda value: "*" in (value or ()), "hands every annotation of a pod to the OCI runtime"),
    ("container_annotations", lambda value: "*" in (value or ()), "hands every annotation of a container to the OCI runtime"),
)
# CRI-O by its facts and by the Node object.
_CRIO = ("crio", "cri-o")
# What makes one name mean two things, and what only says where something lies.
_MEANING = ("runtime_type", "privileged_without_host_devices")
_PLACES = ("binary", "shim", "runtime_path")


def notices_of(fleet: Fleet) -> list[dict[str, t.Any]]:
    """All notices, the worst first."""
    makers = ALWAYS + (WHOLE_FLEET if fleet.whole else ())
    found = [notice for maker in makers for notice in maker(fleet)]
    return sorted(found, key=lambda notice: _SEVERITY[notice["severity"]])


def _classes_not_read(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    if not fleet.classes_read:
        yield notice(
            "classes_not_read", "error", "the RuntimeClasses could not be read, so nothing passes", "Mend the query and run again."
        )
    elif not fleet.classes:
        yield notice("no_runtime_classes", "info", "there is no RuntimeClass, so no node is asked for a handler")


def _no_nodes(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    if fleet.judged and not fleet.nodes:
        fix = "Look at where the nodes come from: nodes, the manifests, or the cluster's Node objects."
        yield notice("no_nodes_judged", "error", "there is no node, so nothing is shown about any class, and nothing passes", fix)
    elif not fleet.groups:
        yield notice("no_nodes_judged", "warning", "no node was judged, so nothing is shown about any")


def _cri_not_served(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    """A node whose runtime is down and that no class targets: no verdict tells it, and nothing can run there."""
    found: dict[tuple[str, str, str, bool], list[str]] = {}
    for group in fleet.groups:
        # The nodes of a group agree on both.
        if group.nodes[0].runtime.cri_ready is not False or any(cell.where == "targeted" for cell in group.row):
            continue
        passes = not any(cell.fails for cell in group.row)
        for node in group.nodes:
            why, fix = outage_told(node.runtime)
            found.setdefault((node.runtime.engine or "the container runtime", why, fix, passes), []).append(node.name)
    for (engine, why, fix, passes), nodes in found.items():
        it, them, do = ("it", "it", "does") if len(nodes) == 1 else ("they", "them", "do")
        verdict = f", so {it} {do} not fail" if passes else ""
        cause = f". {why}" if why else ""
        yield notice(
            "cri_not_served",
            "warning",
            f"{engine} on {some(nodes)} does not serve CRI, so {it} can run no pod at all; no RuntimeClass targets"
            f" {them}{verdict}{cause}",
            fix,
            nodes=nodes,
        )


def _not_judged_kinds(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    kinds = (
        ("windows", "Windows nodes, whose handlers this check does not know"),
        ("virtual", "virtual nodes, behind which no container runtime of their own stands"),
    )
    for kind, why in kinds:
        names = [node.name for node in fleet.nodes if node.kind == kind]
        if names:
            yield notice(f"{kind}_nodes", "info", f"not judged, {why} ({len(names)}): {some(names)}", nodes=names)


def _policy_names_strangers(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    """A class in the policy that does not exist: most probably a typing error, and then the policy does nothing. In
    classes it is an error (policy.require_existing), unless there is no RuntimeClass at all."""
    known = [entry.name for entry in fleet.classes if entry.name]
    for key, names in (("classes", fleet.policy.classes or ()), ("node_selector", tuple(fleet.policy.node_selector))):
        for name in names:
            if fleet.classes_read and name not in known:
                yield notice(
                    "policy_class_unknown",
                    "warning",
                    f"policy: {key} names RuntimeClass {name}, which does not exist{near_name(name, known)}",
                    f"Correct the name in {key} of runtime_gate_policy.",
                )


def _old_versions(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    for entry in fleet.classes:
        if entry.api_version in OLD_VERSIONS:
            yield notice(
                "old_api_version",
                "warning",
                f"RuntimeClass {entry.name} is written for {entry.api_version}, which Kubernetes 1.25 and later do not serve",
                "Write it for node.k8s.io/v1 (handler stands beside metadata there).",
                entry,
            )


def _unscoped(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    names = [entry.name for entry in fleet.classes if entry.scope is None and entry.mode != "skip" and entry.name]
    skipped: dict[str, list[str]] = {}
    for entry in fleet.classes:
        if entry.scope is None and entry.mode == "skip" and entry.name:
            skipped.setdefault(_left_out(entry, fleet.policy), []).append(entry.name)
    if names:
        example = {entry.name: entry for entry in fleet.classes}[names[0]]
        yield notice(
            "unscoped_classes",
            "info",
            f"RuntimeClasses without scheduling ask every node ({len(names)}): {some(names)}",
            f"Give them scheduling.nodeSelector, or scope them here: {scoping_line(example, Hints())}",
        )
    for why, left in skipped.items():
        yield notice("classes_not_judged", "info", f"RuntimeClasses that are not judged ({len(left)} {why}): {some(left)}")


def _left_out(entry: JudgedClass, policy: Policy) -> str:
    """Behind a number of classes: which these are."""
    if policy.classes is not None and entry.name not in policy.classes:
        return "that classes of the policy does not name"
    unnamed = ", which no workload names" if policy.unscoped == "referenced" else ""
    return f"without scheduling{unnamed}; the policy says unscoped: {policy.unscoped}"


def _not_allowed(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    allowed = fleet.policy.allowed_handlers
    if allowed is None:
        return
    for handler, nodes in fleet.loaded.items():
        if handler not in allowed:
            yield notice(
                "handler_not_allowed",
                "warning",
                f"handler {handler} is loaded on {some(nodes)}, but allowed_handlers of the policy does not name it",
                f"Remove handler {handler} from these nodes, or add it to allowed_handlers.",
                handler=handler,
                nodes=nodes,
            )


def _weakening(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    found: dict[tuple[str, str, str], list[str]] = {}
    for node in fleet.judged_nodes():
        for handler, info in node.runtime.handlers.items():
            for key, weak, effect in _WEAKENING if info else ():
                if weak(_option(info, key)):
                    found.setdefault((handler, key, effect), []).append(node.name)
    for (handler, key, effect), nodes in sorted(found.items()):
        yield notice(
            "weakening_option",
            "warning",
            f"{key} of handler {handler} {effect} (on {some(nodes)})",
            f"Take {key} away from handler {handler}, unless it is wanted.",
            handler=handler,
            nodes=nodes,
        )


def _unnameable(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    for handler, nodes in fleet.loaded.items():
        if not nameable(handler):
            yield notice(
                "handler_unnameable",
                "warning",
                f"handler {handler} is loaded on {some(nodes)}, but no RuntimeClass can name it: the API server takes"
                " only lower-case letters, digits and dashes",
                f"Rename handler {handler} in the configuration of the runtime.",
                handler=handler,
                nodes=nodes,
            )


def _selector_matches_nobody(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    """Looks at the nodes that were not judged as well: a partial run may not call their class lost."""
    known: dict[str, set[str]] | None = None
    judged = {node.name for node in fleet.judged_nodes()}
    others = [node for node in fleet.nodes if node.name not in judged]
    for entry, cells in _columns(fleet):
        if not fleet.nodes or entry.name is None or not entry.selector:
            continue
        if any(cell.where != "not_targeted" for cell, _group in cells):
            continue
        if any(reach(node, entry, fleet.policy) != "not_targeted" for node in others):
            continue
        known = _label_values(fleet) if known is None else known
        wanted = ", ".join(f"{key}={value}" for key, value in entry.selector.items())
        yield notice(
            "selector_matches_no_node",
            "warning",
            f"the node selector of RuntimeClass {entry.name} ({wanted}) matches no node{_near_label(entry, known)}",
            "Label the nodes that are meant, or correct the selector; pods of the class stay Pending.",
            entry,
        )


def _near_label(entry: JudgedClass, known: t.Mapping[str, set[str]]) -> str:
    """What the fleet has instead of a label that nobody has."""
    for key, value in entry.selector.items():
        if key not in known:
            near = nearest(key, known)
            return f"; no node has the label {key}" + (f' (did you mean "{near}"?)' if near else "")
        if value not in known[key]:
            return f"; the label {key} has the values {some(known[key])}"
    return "; each label is there, but on no node together"


def _nobody_serves(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    for entry, cells in _columns(fleet):
        reached = [(cell, group) for cell, group in cells if cell.where != "not_targeted"]
        if entry.name is None or not reached or any(cell.verdict == "ok" for cell, _group in reached):
            continue
        found: dict[str, int] = {}
        for cell, group in reached:
            found[cell.verdict] = found.get(cell.verdict, 0) + len(group.nodes)
        why = ", ".join(f"{count} {verdict}" for verdict, count in sorted(found.items()))
        yield notice(
            "class_nobody_serves",
            "warning",
            f"no judged node can serve RuntimeClass {entry.name} (handler {entry.handler}): {why}{_meant(fleet, entry)}",
            None,
            entry,
        )


def _meant(fleet: Fleet, entry: JudgedClass) -> str:
    meant = typing_error(entry.handler, fleet.loaded)
    if not meant:
        return ""
    broken = [cannot_run(node.runtime.handlers[meant]) for node in fleet.judged_nodes() if meant in node.runtime.handlers]
    return f' (did you mean handler "{meant}"{", which is loaded, but unusable" if all(broken) else ""}?)'


def _orphans(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    if not fleet.classes_read:
        return
    named = {entry.handler for entry in fleet.classes} | set(fleet.policy.required_handlers)
    found: dict[str, list[str]] = {}
    for node in fleet.judged_nodes():
        for handler in node.runtime.handlers:
            # runc is always there, wanted or not; CRI-O's packages bring crun as well.
            brought = (node.runtime.default_handler, "runc", "crun" if node.runtime.engine in _CRIO else "")
            if handler not in named and handler not in brought:
                found.setdefault(handler, []).append(node.name)
    for handler, nodes in sorted(found.items()):
        yield notice(
            "orphan_handler",
            "info",
            f"handler {handler} is loaded on {some(nodes)}, but no RuntimeClass names it, so no pod can use it",
            f"Create a RuntimeClass with handler: {handler}, or take the handler away.",
            handler=handler,
            nodes=nodes,
        )


def _broken_promises(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    """A label that announces a handler, on a node which has it not."""
    found: dict[tuple[str, str], list[str]] = {}
    for node in fleet.judged_nodes():
        if node.runtime.why_unknown is not None or node.runtime.cri_ready is None:
            continue
        for label, handlers in _promised(node):
            if not _kept(handlers, node.runtime.handlers):
                found.setdefault((label, handlers[0]), []).append(node.name)
    for entry, cells in _columns(fleet):
        label = _announcing(entry)
        names = [n.name for cell, group in cells if label and _breaks(cell) for n in group.nodes]
        if names:
            told = found.setdefault((label, entry.handler), [])
            told.extend(sorted(set(names) - set(told)))
    for (label, handler), nodes in sorted(found.items()):
        yield notice(
            "label_promises_handler",
            "warning",
            f"label {label} promises handler {handler}, which is not loaded on {some(nodes)}",
            f"Take the label away until handler {handler} is loaded there.",
            handler=handler,
            nodes=nodes,
        )


def _promised(node: JudgedNode) -> t.Iterator[tuple[str, tuple[str, ...]]]:
    for key, value in node.labels.items():
        if (key, value) in _PROMISES:
            yield f"{key}={value}", _PROMISES[key, value]
        elif value == "loaded" and "/" in key:
            # <prefix>/<handler>=loaded: how this collection publishes a loaded handler.
            yield f"{key}={value}", (key.rpartition("/")[2],)


def _kept(promised: t.Iterable[str], loaded: t.Mapping[str, t.Any]) -> bool:
    return any(name == handler or name.startswith(f"{handler}-") for handler in promised for name in loaded)


def _announcing(entry: JudgedClass) -> str:
    """The selector of a class, where it has a label that not every node has."""
    telling = [f"{key}={value}" for key, value in entry.selector.items() if key.rpartition("/")[0] not in _GENERAL]
    return ",".join(telling)


def _breaks(cell: t.Any) -> bool:
    return cell.where in ("targeted", "excluded_by_taint") and cell.state.loaded is False


def _label_missing(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    """A special handler is loaded, and a class names it, but every class of that handler selects other nodes."""
    served = {id(group): _reached(fleet, group) for group in fleet.groups}
    for entry, cells in _columns(fleet):
        if entry.name is None or not entry.selector:
            continue
        nodes = [
            node.name
            for cell, group in cells
            if cell.where == "not_targeted" and cell.state.loaded and entry.handler not in served[id(group)]
            for node in group.nodes
            if entry.handler not in (node.runtime.default_handler, "runc")
        ]
        if nodes:
            wanted = ", ".join(f"{key}={value}" for key, value in entry.selector.items())
            yield notice(
                "handler_without_label",
                "info",
                f"handler {entry.handler} is loaded on {some(nodes)}, but RuntimeClass {entry.name} selects {wanted}, so no pod"
                " of it reaches the handler there",
                f"Label the nodes ({wanted}) if they are meant to serve the class.",
                entry,
                nodes=nodes,
            )


def _reached(fleet: Fleet, group: t.Any) -> set[str]:
    """The handlers that some class can use on these nodes."""
    return {entry.handler for entry, cell in zip(fleet.judged, group.row) if cell.where == "targeted"}


def _different_meanings(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    meanings: dict[tuple[str, str], dict[t.Any, list[str]]] = {}
    places: dict[tuple[str, str], dict[t.Any, list[str]]] = {}
    for node in fleet.judged_nodes():
        family = node.runtime.engine or "containerd"
        for handler, info in node.runtime.handlers.items():
            if info.get("runtime_type"):
                key = (family, handler)
                meanings.setdefault(key, {}).setdefault(_of(info, _MEANING), []).append(node.name)
                places.setdefault(key, {}).setdefault(_of(info, _PLACES), []).append(node.name)
    for key in sorted(meanings):
        if len(meanings[key]) > 1:
            yield _differs(key[1], meanings[key], _MEANING, "warning")
        elif len(places[key]) > 1:
            yield _differs(key[1], places[key], _PLACES, "info")


def _of(info: t.Mapping[str, t.Any], keys: tuple[str, ...]) -> tuple[t.Any, ...]:
    return tuple(_hashable(_option(info, key)) for key in keys)


def _hashable(value: t.Any) -> t.Any:
    """Absent and false mean the same; a list or mapping cannot be a key."""
    if isinstance(value, (list, dict)):
        return str(value)
    return value or None


def _option(info: t.Mapping[str, t.Any], key: str) -> t.Any:
    """A key of the handler, beside its other facts or among its options."""
    return info[key] if key in info else (info.get("options") or {}).get(key)


def _differs(handler: str, values: t.Mapping[t.Any, list[str]], keys: tuple[str, ...], severity: str) -> dict[str, t.Any]:
    unequal = [len({value[index] for value in values}) > 1 for index in range(len(keys))]
    said = []
    for value, nodes in sorted(values.items(), key=lambda pair: (-len(pair[1]), str(pair[0]))):
        shown = ", ".join(f"{key} {part if part is not None else 'unset'}" for key, part, tell in zip(keys, value, unequal) if tell)
        said.append(f"{shown} on {some(nodes)}")
    what = "means different things" if severity == "warning" else "lies in different places"
    return notice(
        "handler_differs" if severity == "warning" else "handler_paths_differ",
        severity,
        f"handler {handler} {what}: {'; '.join(said)}",
        f"Give handler {handler} one definition, or two names." if severity == "warning" else None,
        handler=handler,
        nodes=[name for nodes in values.values() for name in nodes],
    )


def _api_evidence(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    nodes = [node for node in fleet.judged_nodes() if node.runtime.evidence == "api"]
    names = [node.name for node in nodes]
    # Its answer, and so the copy of it, names what a reload has read; sandboxes are made with what the start has read (cri-o#10202).
    reloads = "; where CRI-O was reloaded it is wrong" if any(node.runtime.engine in _CRIO for node in nodes) else ""
    if names:
        yield notice(
            "evidence_api",
            "info",
            f"judged by the status of the Node object alone ({len(names)}): {some(names)}; it is a late copy of what CRI reports and"
            f" does not show whether a handler is usable or survives a restart{reloads}",
            nodes=names,
        )


def _declared_evidence(fleet: Fleet) -> t.Iterator[dict[str, t.Any]]:
    names = [node.name for node in fleet.judged_nodes() if node.runtime.evidence == "declared"]
    if names:
        yield notice(
            "evidence_declared",
            "info",
            f"judged by a list of handlers that was handed in ({len(names)}): {some(names)}; no daemon was asked",
            nodes=names,
        )


def _label_values(fleet: Fleet) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for node in fleet.nodes:
        for key, value in node.labels.items():
            found.setdefault(key, set()).add(value)
    return found


def _columns(fleet: Fleet) -> t.Iterator[tuple[JudgedClass, list[tuple[t.Any, t.Any]]]]:
    """Each judged class with its (cell, group) pairs."""
    for index, entry in enumerate(fleet.judged):
        yield entry, [(group.row[index], group) for group in fleet.groups]


Maker = t.Callable[[Fleet], t.Iterator[t.Dict[str, t.Any]]]
# What can be said about any selection of nodes, one host alone included.
ALWAYS: tuple[Maker, ...] = (
    _classes_not_read,
    _policy_names_strangers,
    _cri_not_served,
    _old_versions,
    _not_allowed,
    _weakening,
    _unnameable,
)
# What makes sense only when the nodes are (meant to be) the cluster.
WHOLE_FLEET: tuple[Maker, ...] = (
    _no_nodes,
    _not_judged_kinds,
    _unscoped,
    _selector_matches_nobody,
    _nobody_serves,
    _orphans,
    _broken_promises,
    _label_missing,
    _different_meanings,
    *WORKLOADS,
    _api_evidence,
    _declared_evidence,
)
