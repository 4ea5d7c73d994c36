# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The few requests by which a Node is changed, and its pods are moved away.

The connection is that of cluster_reader (kubernetes.core's options, a time-out for each request, patience with 429). Every write
names our field manager. With dry_run the server does everything but store it: check mode meets the same refusals.
"""

from __future__ import annotations

import json
import time
import typing as t
import urllib.parse

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.declared_classes import FIELD_MANAGER
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import entries, part
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_reader import (
    NODES,
    Answer,
    Ask,
    connect_for_all,
    list_all,
    message_of,
    patient,
)
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import auth_of

# https://kubernetes.io/docs/reference/using-api/api-concepts/#patch-and-apply
APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"

_PODS = "/api/v1/pods"
_RIGHTS = "examples/rbac-publish.yml, examples/rbac-drain.yml"
# How often a change is begun again because somebody else changed the Node in between.
_ATTEMPTS = 5
#: The API server's answers to a write that builds on what is no longer so: 409, or 422 for a failed test of a JSON patch.
_OVERTAKEN = (409, 422)

Object = t.Dict[str, t.Any]
Query = t.Sequence[t.Tuple[str, str]]


class ApiRefused(RuntimeGateError):
    """The API server answered, and not with success. status: HTTP's. causes: those of the Status object."""

    def __init__(self, message: str, status: int, causes: t.Sequence[t.Mapping[str, t.Any]]) -> None:
        super().__init__(message)
        self.status = status
        self.causes = causes


def open_api(cluster: t.Mapping[str, t.Any], dry_run: bool) -> NodeApi:
    """The API by the variable runtime_gate_cluster. Raises RuntimeGateError where the options lead nowhere."""
    timeout = cluster.get("api_timeout") or 30.0
    return NodeApi(connect_for_all(auth_of(cluster), timeout), dry_run)


class NodeApi:
    """Every method raises RuntimeGateError where the server gives no answer, ApiRefused where it refuses."""

    def __init__(self, ask: Ask, dry_run: bool = False, pause: t.Callable[[float], None] = time.sleep) -> None:
        self._ask = ask
        self._dry: Query = [("dryRun", "All")] if dry_run else []
        self.dry_run = dry_run
        self.pause = pause

    def node(self, name: str) -> Object:
        """The Node. Raises RuntimeGateError where it has not registered."""
        try:
            return self._send("GET", _path_of(name), "read Node %s" % name, "get on nodes")
        except ApiRefused as error:
            if error.status != 404:
                raise
            raise RuntimeGateError(
                f"there is no Node {name} in this cluster, so nothing can be written on it; set runtime_gate_node_name, or run again"
                " when it has registered"
            ) from error

    def patch(self, name: str, content: str, body: t.Any, what: str, subresource: str = "") -> Object:
        """The Node after the patch. what: the deed, for messages. subresource: status, or nothing."""
        path = _path_of(name) + ("/" + subresource if subresource else "")
        right = "patch on nodes" + ("/" + subresource if subresource else "")
        return self._send("PATCH", path, what, right, body, content, [("fieldManager", FIELD_MANAGER), *self._dry])

    def update(self, name: str, content: str, make: t.Callable[[Object], t.Any], what: str) -> t.Optional[Object]:
        """The Node after a patch that builds on what the Node is; None where make finds nothing to do.

        make: Node -> body of the patch, which must fail when the Node is no longer so (a resourceVersion, a test), or None.
        """
        for attempt in range(_ATTEMPTS):
            body = make(self.node(name))
            if body is None:
                return None
            try:
                return self.patch(name, content, body, what)
            except ApiRefused as error:
                if error.status not in _OVERTAKEN or attempt == _ATTEMPTS - 1:
                    raise
                self.pause(0.1 * (attempt + 1))
        raise AssertionError("not reached")

    def pods_on(self, name: str, selectors: t.Sequence[str] = ()) -> t.List[Object]:
        """Every pod that is bound to the Node. selectors: label selectors, all of which must hold."""
        query = [("fieldSelector", "spec.nodeName=" + name)] + ([("labelSelector", ",".join(selectors))] if selectors else [])

        def get(path: str, page: Query) -> Answer:
            answer = self._ask("GET", path, [*page, *query], None, None)
            if answer.status not in (200, 410, 429):
                raise _refused(answer, "list the pods of Node %s" % name, "list on pods")
            return answer

        return list(list_all(get, _PODS, 500, self.pause))

    def evict(self, namespace: str, pod: str, grace: t.Optional[int]) -> None:
        """Ask for the pod's end, by the eviction that respects PodDisruptionBudgets: 429 says that one forbids it now."""
        body: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
        if grace is not None:
            body["deleteOptions"] = {"gracePeriodSeconds": grace}
        what = "evict pod %s/%s" % (namespace, pod)
        path = _pod_path(namespace, pod) + "/eviction"
        # No patience here: who drains decides how long to try.
        answer = self._answer("POST", path, what, body, "application/json", (), again=False)
        if answer.status >= 300:
            raise _refused(answer, what, "create on pods/eviction")

    def delete_pod(self, namespace: str, pod: str, grace: t.Optional[int]) -> None:
        """End the pod without asking any budget."""
        body = None if grace is None else {"gracePeriodSeconds": grace}
        self._send("DELETE", _pod_path(namespace, pod), "delete pod %s/%s" % (namespace, pod), "delete on pods", body, "application/json")

    def _send(
        self, method: str, path: str, what: str, right: str, body: t.Any = None, content: t.Optional[str] = None, query: Query = ()
    ) -> Object:
        answer = self._answer(method, path, what, body, content, query)
        if answer.status >= 300:
            raise _refused(answer, what, right)
        try:
            found = json.loads(answer.body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise RuntimeGateError(f"cannot {what}: what answers at {path} is no API server; check host or kubeconfig")
        return found

    def _answer(
        self, method: str, path: str, what: str, body: t.Any, content: t.Optional[str], query: Query, again: bool = True
    ) -> Answer:
        data = None if body is None else json.dumps(body).encode()

        def ask() -> Answer:
            return self._ask(method, path, query, data, None if data is None else content)

        try:
            return patient(ask, self.pause) if again else ask()
        except RuntimeGateError as error:
            doubt = "" if method == "GET" else "; whether it took effect is not known, run again: what is already so is not written twice"
            raise RuntimeGateError(f"cannot {what}: {error}{doubt}") from error


def _refused(answer: Answer, what: str, right: str) -> ApiRefused:
    """One sentence for each kind of refusal: what, and what to do."""
    said = message_of(answer.body)
    advice = {
        401: "; renew the token or kubeconfig",
        403: f"; the user needs the verb {right} ({_RIGHTS})",
        409: "; somebody else writes the same, see who, and run again",
        422: "; somebody else writes the same, see who, and run again",
        429: "; the API server is too busy, try again later",
    }.get(answer.status, "; look at the API server's health (/readyz) and try again" if answer.status >= 500 else "")
    return ApiRefused(f"cannot {what}: the API server answered {answer.status}: {said}{advice}", answer.status, _causes(answer.body))


def _causes(body: bytes) -> t.Sequence[t.Mapping[str, t.Any]]:
    try:
        status = json.loads(body)
        return entries(part(status, "details", where="the answer"), "causes", "the answer") if isinstance(status, dict) else ()
    except (ValueError, RecursionError, RuntimeGateError):
        return ()


def _path_of(name: str) -> str:
    return NODES + "/" + urllib.parse.quote(name, safe="")


def _pod_path(namespace: str, pod: str) -> str:
    return "/api/v1/namespaces/%s/pods/%s" % (urllib.parse.quote(namespace, safe=""), urllib.parse.quote(pod, safe=""))


__all__ = ("APPLY", "ApiRefused", "JSON_PATCH", "MERGE", "NodeApi", "STRATEGIC", "open_api")
