# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Around one restart of a node's runtime: cordon and drain just before it, and afterwards give the Node back or say why not.

Nothing here happens on a node that is not going to be restarted. The API server is only asked when it is.
"""

from __future__ import annotations

import hashlib
import json
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.node_identity import identify
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.publication import checked_prefix
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_reader import read_cluster
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import auth_of
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_api import NodeApi, open_api
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.node_maintenance import Drain, NodeMaintenance
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.run_store import RunStore

Table = t.Dict[str, t.Any]


def node_of(store: RunStore, cluster: t.Mapping[str, t.Any], identity: t.Mapping[str, t.Any], node_name: str) -> t.Optional[str]:
    """The name of a host's Node by the gate's rule, None where it has not registered. The Nodes are listed once a run.

    :raises RuntimeGateError: the Nodes cannot be read, nothing gives a name, or two signs contradict each other: who writes on a
        Node must not guess.
    """
    auth = auth_of(cluster)
    timeout, page_size = cluster.get("api_timeout") or 30.0, cluster.get("api_page_size") or 500
    text = json.dumps(["nodes", auth, timeout, page_size], sort_keys=True, default=str)
    key = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    nodes = store.once(key, lambda: read_cluster(auth, classes=False, timeout=timeout, page_size=page_size)["nodes"])
    found = identify(identity, nodes, node_name or None)
    if found["conflict"]:
        raise RuntimeGateError("%s; set runtime_gate_node_name for this host" % found["conflict"])
    return found["name"] if found["registered"] else None


class NodeGuard:
    """One host's. ``taken``: its Node is cordoned, and what is to become of that is not settled yet."""

    def __init__(self, options: t.Mapping[str, t.Any], host: str, check: bool, store: RunStore) -> None:
        """:param options: those of runtime_handlers, every one with its value.

        :raises RuntimeGateError: the prefix is none.
        """
        checked_prefix(options["prefix"])
        self._options = options
        self._check = check
        self._store = store
        self._identity: t.Dict[str, t.Any] = {"hostname": host}
        self._maintenance: t.Optional[NodeMaintenance] = None
        self._name = ""
        self.taken = False

    def know(self, identity: t.Mapping[str, t.Any]) -> None:
        """What the host says of itself."""
        self._identity.update({key: value for key, value in identity.items() if value})

    def before_restart(self) -> Table:
        """Cordon, and drain where that is asked for; ``cordoned`` and ``evicted`` for the result.

        :raises RuntimeGateError: it failed, and the runtime must not be touched.
        """
        maintenance = self._open()
        if maintenance is None:
            raise RuntimeGateError(
                "Node %s is not registered in this cluster, so it cannot be cordoned; set runtime_gate_node_name, or runtime_gate_cordon and"
                " runtime_gate_drain to false for this host" % (self._options["node_name"] or self._identity["hostname"])
            )
        done = maintenance.take(self._drain())
        self.taken = bool(done["cordoned"])
        return {"cordoned": done["cordoned"], "evicted": done["evicted"]}

    def _open(self) -> t.Optional[NodeMaintenance]:
        """None where the Node has not registered."""
        if self._maintenance is None:
            name = node_of(self._store, self._options["cluster"], self._identity, self._options["node_name"] or "")
            if name is None:
                return None
            api: NodeApi = open_api(self._options["cluster"], self._check)
            self._name = name
            self._maintenance = NodeMaintenance(api, name, self._options["prefix"])
        return self._maintenance

    def _drain(self) -> t.Optional[Drain]:
        options = self._options
        return Drain(options["drain_grace"], options["drain_timeout"], options["drain_options"]) if options["drain"] else None

    def settle(self, result: Table) -> None:
        """After the change. A Node of a change that was proved waits for the gate, after a removal there is none to wait for; one
        whose old state was proved again takes pods; any other stays cordoned with the reason. ``msg`` says it where the host fails.
        """
        if self._check:
            return
        if result.get("failed"):
            sound = result["rolled_back"] and (result["proved"] or not result["restarted"])
            if self.taken and sound:
                result["cordoned"], told = self._given_back()
                result["msg"] += " " + told
            elif self.taken:
                result["msg"] += " " + self.keep(result["msg"])
        elif self._options["remove"] and not result["restart_pending"]:
            try:
                maintenance = self._open()
                result["changed"] = bool(maintenance and maintenance.give_back()) or result["changed"]
            except RuntimeGateError as error:
                result.update(failed=True, msg="The runtime is as it should be, but its Node could not be given back: %s" % error)
        self.taken = False

    def _cordoned(self) -> NodeMaintenance:
        """The Node that ``taken`` speaks of."""
        if self._maintenance is None:
            raise ValueError("no Node was cordoned")
        return self._maintenance

    def _given_back(self) -> t.Tuple[bool, str]:
        """Whether it is cordoned still, and a sentence that says so."""
        maintenance = self._cordoned()
        try:
            maintenance.give_back()
        except RuntimeGateError as error:
            return True, "Node %s is still cordoned: %s." % (self._name, error)
        return False, "Node %s takes pods again." % self._name

    def keep(self, reason: str) -> str:
        """Leave the Node cordoned with this reason; a sentence that says so."""
        maintenance = self._cordoned()
        self.taken = False
        try:
            maintenance.keep(reason)
        except RuntimeGateError as error:
            return "Node %s stays cordoned; the reason could not be written on it: %s." % (self._name, error)
        return "Node %s stays cordoned." % self._name


__all__ = ("NodeGuard", "node_of")
