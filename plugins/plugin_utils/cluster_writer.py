# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of our own in the API server: server-side apply under our field manager, never by force, and their deletion.

https://kubernetes.io/docs/reference/using-api/server-side-apply/: fields that somebody else owns with another value are a
conflict, and the answer names them and their owners. Every request can be a dry run, which is judged by the server as the real
one is, admission included, and stores nothing.
"""

from __future__ import annotations

import json
import typing as t

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.declared_classes import FIELD_MANAGER
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_reader import (
    Answer,
    Ask,
    Query,
    connect_for_all,
    list_all,
    message_of,
    patient,
)
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import CLUSTER_OPTION, auth_of

Object = t.Dict[str, t.Any]

#: JSON is YAML, and this is the type that every server with server-side apply knows.
_APPLY = "application/apply-patch+yaml"
_JSON = "application/json"
_PAGE = 500


class Refused(RuntimeGateError):
    """The API server refused one object.

    :ivar status: of HTTP. :ivar owners: field -> who owns it, where that is the reason.
    """

    def __init__(self, text: str, status: int, owners: t.Optional[t.Dict[str, str]] = None) -> None:
        super().__init__(text)
        self.status = status
        self.owners = owners or {}


class Writer:
    """What is done with single objects; each is named by the path of its kind and its name."""

    def __init__(self, ask: Ask, rights: str) -> None:
        """:param rights: the file that lists the rights which are needed, for the message of a refusal."""
        self._ask = ask
        self._rights = rights

    def list(self, path: str) -> t.List[Object]:
        """All objects of a kind. Raises RuntimeGateError, as every method does where the server cannot be reached or fails."""
        return list(list_all(lambda where, query: self._ask("GET", where, query, None, None), path, _PAGE))

    def get(self, path: str, name: str) -> t.Optional[Object]:
        """One object, None where it is not there."""
        answer = self._call("GET", "%s/%s" % (path, name), [], None, None)
        return None if answer.status == 404 else self._object(answer, "get", path, name)

    def apply(self, path: str, thing: Object, dry_run: bool) -> Object:
        """Make or change an object; what it is then. Raises Refused."""
        name = thing["metadata"]["name"]
        query = [("fieldManager", FIELD_MANAGER), ("fieldValidation", "Strict"), *_dry(dry_run)]
        return self._object(self._call("PATCH", "%s/%s" % (path, name), query, thing, _APPLY), "patch", path, name)

    def create(self, path: str, thing: Object, dry_run: bool) -> Object:
        """Make an object that is not there yet. Raises Refused, with status 409 where it is."""
        query = [("fieldManager", FIELD_MANAGER), ("fieldValidation", "Strict"), *_dry(dry_run)]
        return self._object(self._call("POST", path, query, thing, _JSON), "create", path, thing["metadata"].get("name", ""))

    def try_new(self, path: str, thing: Object) -> Object:
        """What the server would make of an object if its name were free. Raises Refused."""
        name = thing["metadata"]["name"]
        metadata = {**{key: value for key, value in thing["metadata"].items() if key != "name"}, "generateName": name[:50] + "-"}
        made = self.create(path, {**thing, "metadata": metadata}, dry_run=True)
        made["metadata"]["name"] = name
        return made

    def delete(self, path: str, live: Object, dry_run: bool) -> None:
        """Delete exactly this object: not one that has changed since it was read. Gone already is deleted. Raises Refused."""
        metadata = live["metadata"]
        only = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        # With a body, its dryRun counts and the query's does not.
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": only, **({"dryRun": ["All"]} if dry_run else {})}
        answer = self._call("DELETE", "%s/%s" % (path, metadata["name"]), _dry(dry_run), body, _JSON)
        if answer.status != 404:
            self._object(answer, "delete", path, metadata["name"])

    def _call(self, method: str, path: str, query: Query, body: t.Optional[Object], content_type: t.Optional[str]) -> Answer:
        sent = None if body is None else json.dumps(body).encode("utf-8")
        return patient(lambda: self._ask(method, path, query, sent, content_type))

    def _object(self, answer: Answer, verb: str, path: str, name: str) -> Object:
        if answer.status not in (200, 201, 202):
            raise self._refused(answer, verb, path, name)
        try:
            found = json.loads(answer.body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise RuntimeGateError("what answers at %s is no API server; check host or kubeconfig" % path)
        return found

    def _refused(self, answer: Answer, verb: str, path: str, name: str) -> RuntimeGateError:
        """One sentence for each kind of refusal: what, and what to do."""
        said, kind = message_of(answer.body), path.rpartition("/")[2]
        if answer.status == 401:
            return RuntimeGateError("the API server does not know these credentials (401): %s; renew the token or kubeconfig" % said)
        if answer.status == 403 and "forbidden: User" in said:
            return RuntimeGateError(
                "the API server does not let this user %s %s (403): %s; %s has the rights that are needed" % (verb, kind, said, self._rights)
            )
        if answer.status == 429 or answer.status >= 500:
            return RuntimeGateError("the API server failed at %s %s (%d): %s; try again later" % (kind, name, answer.status, said))
        return Refused(said, answer.status, _owners(answer.body) if answer.status == 409 else {})


def writer_for(cluster: t.Mapping[str, t.Any], rights: str) -> Writer:
    """A Writer by what ``runtime_gate_cluster`` of a host says.

    :raises RuntimeGateError: these are no connection options, a library is missing, or they lead nowhere.
    """
    validation = ArgumentSpecValidator({"runtime_gate_cluster": CLUSTER_OPTION}).validate({"runtime_gate_cluster": dict(cluster)})
    if validation.error_messages:
        raise RuntimeGateError("; ".join(validation.error_messages))
    options = validation.validated_parameters["runtime_gate_cluster"]
    return Writer(connect_for_all(auth_of(options), options.get("api_timeout") or 30.0), rights)


def _dry(dry_run: bool) -> t.List[t.Tuple[str, str]]:
    return [("dryRun", "All")] if dry_run else []


def _owners(body: bytes) -> t.Dict[str, str]:
    """Field -> manager, from the causes of a conflict: reason FieldManagerConflict, message 'conflict with "NAME" …'."""
    try:
        causes = json.loads(body)["details"]["causes"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return {}  # a conflict of another kind, which names no fields
    found = {}
    for cause in causes or ():
        if cause.get("reason") == "FieldManagerConflict":
            found[str(cause.get("field") or "").lstrip(".")] = str(cause.get("message") or "").partition('"')[2].partition('"')[0]
    return found


__all__ = ("Refused", "Writer", "writer_for")
