# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of loaded handlers in the cluster, by which the admission policies judge: made from the records of a gate, kept current.

Slices of one run, and several runs, may write at the same time: what is written rests on the version that was read, and where
somebody was faster it is read again.
"""

from __future__ import annotations

import typing as t

import yaml

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.handler_policy import (
    LIST_NAME,
    View,
    list_object,
    lists_path,
    merged,
    read_list,
    view_of,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.judged_node import read_node
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.policy import Policy
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.runtime_class import read_classes
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_writer import Refused, Writer

Data = t.Dict[str, t.Any]

_ATTEMPTS = 8


def view_from(records: t.Mapping[str, Data], cluster: t.Mapping[str, t.Any]) -> View:
    """What the hosts of a round have loaded. A Node that is none of them counts by its own status.

    :param records: host -> record, as gate_record makes it. :param cluster: ``classes`` and ``nodes`` (Node objects).
    """
    placed = {record["node"]: record for record in records.values() if record["node"]}
    registered = {node["metadata"]["name"] for node in cluster["nodes"]}
    nodes = [
        {**node, "runtime": placed[node["metadata"]["name"]]["fleet"]} if node["metadata"]["name"] in placed else node
        for node in cluster["nodes"]
    ]
    nodes += [
        {**record["place"], "name": name, "labels_complete": False, "runtime": record["fleet"]}
        for name, record in placed.items()
        if name not in registered
    ]
    classes = read_classes(cluster["classes"], Policy(), None)
    return view_of([read_node(node, index) for index, node in enumerate(nodes)], classes)


def update(writer: Writer, namespace: str, view: View, check_mode: bool) -> Data:
    """Bring the list to what this view shows: changed, handlers, unserved, diff.

    :raises RuntimeGateError: it cannot be read or written, or somebody else owns what is in it.
    """
    path = lists_path(namespace)
    made = False
    for _attempt in range(_ATTEMPTS):
        live = writer.get(path, LIST_NAME)
        if live is None:
            # Without content first, so that the content always rests on a version.
            make_list(writer, namespace, check_mode)
            made = True
            if not check_mode:
                continue
        old = read_list(live)
        new = merged(old, view)
        before, after = list_object(old, namespace), list_object(new, namespace)
        if new == old or live is None or _write(writer, path, after, live, check_mode):
            return {
                "changed": made or new != old,
                "handlers": sorted(new.handlers),
                "unserved": sorted(name for name, _handler in new.unserved),
                "diff": [_diff(namespace, before["data"], after["data"])] if new != old else [],
            }
    raise RuntimeGateError("ConfigMap %s/%s was changed %d times while it was written; try again" % (namespace, LIST_NAME, _ATTEMPTS))


def make_list(writer: Writer, namespace: str, check_mode: bool) -> None:
    """An empty list, which lets everything pass, where there is none."""
    metadata = {"name": LIST_NAME, "namespace": namespace}
    try:
        writer.create(lists_path(namespace), {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, check_mode)
    except Refused as refused:
        if refused.status == 404:
            raise RuntimeGateError("runtime_gate_admission_namespace: %s; make the namespace, or name another" % refused) from refused
        if refused.status != 409:
            raise


def _write(writer: Writer, path: str, thing: Data, live: Data, check_mode: bool) -> bool:
    """Whether it was written; not, where it has changed since it was read."""
    metadata = {**thing["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
    try:
        writer.apply(path, {**thing, "metadata": metadata}, check_mode)
    except Refused as refused:
        if refused.status != 409:
            raise
        if refused.owners:
            owners = ", ".join("%s is owned by %s" % pair for pair in sorted(refused.owners.items()))
            raise RuntimeGateError("ConfigMap %s: %s; delete it, and the next run makes it anew" % (LIST_NAME, owners)) from refused
        return False
    return True


def _diff(namespace: str, before: Data, after: Data) -> Data:
    header = "ConfigMap %s/%s" % (namespace, LIST_NAME)
    return {"before_header": header, "after_header": header, "before": yaml.safe_dump(before), "after": yaml.safe_dump(after)}


__all__ = ("make_list", "update", "view_from")
