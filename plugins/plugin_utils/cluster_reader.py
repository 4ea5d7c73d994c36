# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""RuntimeClasses, Nodes and, where asked, workloads from the API server.

Connection options are those of kubernetes.core (its fragment k8s_auth_options and its environment variables). The
lists are read page by page with the plain client: no API discovery, no object model, so the number of requests is
one for RuntimeClasses and one for each page of Nodes, however many hosts are judged.

The right that is needed: list on runtimeclasses.node.k8s.io and nodes; for workloads also list on the kinds in
WORKLOAD_LISTS, for events on events (examples/rbac.yml).
"""

from __future__ import annotations

import concurrent.futures
import json
import time
import typing as t
import urllib.parse

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.failing_pods import CREATE, SANDBOX
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.foreign import part
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_objects import (
    slim_class,
    slim_event,
    slim_node,
    slim_workload,
)

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
NODES = "/api/v1/nodes"
WORKLOAD_LISTS = (
    ("Pod", "/api/v1/pods"),
    ("ReplicationController", "/api/v1/replicationcontrollers"),
    ("Deployment", "/apis/apps/v1/deployments"),
    ("DaemonSet", "/apis/apps/v1/daemonsets"),
    ("StatefulSet", "/apis/apps/v1/statefulsets"),
    ("Job", "/apis/batch/v1/jobs"),
    ("CronJob", "/apis/batch/v1/cronjobs"),
)
# Only the events that tell of a pod that cannot start or is not created: the server filters by the field reason.
EVENTS = "/api/v1/events"
EVENT_REASONS = (SANDBOX, CREATE)
# How often a page is asked again after 429 and after an expired token, and how long one pause may be (seconds).
_ATTEMPTS = 4
_LONGEST_PAUSE = 5.0


class Answer(t.NamedTuple):
    """One HTTP answer. retry_after: seconds, None where the server gave none."""

    status: int
    body: bytes
    retry_after: float | None = None


Query = t.Sequence[t.Tuple[str, str]]
#: path, query -> Answer. Raises RuntimeGateError where there is no answer.
Get = t.Callable[[str, Query], Answer]
#: method, path, query, body, its content type -> Answer. Raises RuntimeGateError where there is no answer.
Ask = t.Callable[[str, str, Query, t.Optional[bytes], t.Optional[str]], Answer]


def read_cluster(
    auth: t.Mapping[str, t.Any],
    classes: bool = True,
    nodes: bool = True,
    workloads: bool = False,
    events: bool = False,
    timeout: float = 30.0,
    page_size: int = 500,
) -> dict[str, t.Any]:
    """classes, nodes, workloads and events of the cluster, each None unless asked for.

    auth: options of kubernetes.core's k8s_auth_options. timeout: seconds for each request.
    Raises RuntimeGateError: no client library, no way to the API, a refused or failed request.
    """
    return read_with(connect(auth, timeout), classes, nodes, workloads, page_size, events=events)


def read_with(
    get: Get,
    classes: bool = True,
    nodes: bool = True,
    workloads: bool = False,
    page_size: int = 500,
    pause: t.Callable[[float], None] = time.sleep,
    events: bool = False,
) -> dict[str, t.Any]:
    """read_cluster by a function that asks."""
    found: dict[str, t.Any] = {"classes": None, "nodes": None, "workloads": None, "events": None}
    if classes:
        found["classes"] = list_all(get, CLASSES, page_size, pause, lambda item: slim_class({**item, "apiVersion": "node.k8s.io/v1"}, CLASSES))
    if nodes:
        found["nodes"] = list_all(get, NODES, page_size, pause, lambda item: slim_node(item, NODES))
    if workloads:
        found["workloads"] = [thing for kind, path in WORKLOAD_LISTS for thing in _workloads(get, kind, path, page_size, pause)]
    if events:
        found["events"] = [
            thing
            for reason in EVENT_REASONS
            for thing in list_all(get, EVENTS, page_size, pause, lambda item: slim_event(item, EVENTS), [("fieldSelector", f"reason={reason}")])
        ]
    return found


def _workloads(get: Get, kind: str, path: str, page_size: int, pause: t.Callable[[float], None]) -> list[dict[str, t.Any]]:
    return list_all(get, path, page_size, pause, lambda item: slim_workload({**item, "kind": kind}, path))


def list_all(
    get: Get,
    path: str,
    page_size: int,
    pause: t.Callable[[float], None] = time.sleep,
    slim: t.Callable[[dict[str, t.Any]], dict[str, t.Any]] = dict,
    selected: Query = (),
) -> list[dict[str, t.Any]]:
    """Every item of a list, page by page. slim: makes each item small, so that no more than two pages are there as they come; a
    cluster's pods as they come are a gigabyte. selected: further parts of the query.

    A continue token lives about five minutes (https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks).
    The answer 410 to an expired one may carry a token that goes on without consistency; a list of which half is of
    another time could miss a node, so the whole list is read again instead.
    """
    for _attempt in range(_ATTEMPTS):
        items = _one_list(get, path, page_size, pause, slim, selected)
        if items is not None:
            return items
    raise RuntimeGateError(
        f"the API server let the list {path} expire {_ATTEMPTS} times while it was read; raise api_page_size or try when it is less busy"
    )


def _one_list(
    get: Get,
    path: str,
    page_size: int,
    pause: t.Callable[[float], None],
    slim: t.Callable[[dict[str, t.Any]], dict[str, t.Any]],
    selected: Query,
) -> list[dict[str, t.Any]] | None:
    """All items, or None where the token expired on the way. The next page is fetched while this one is parsed."""

    def fetch(token: str) -> Answer:
        query = [("limit", str(page_size)), *selected] + ([("continue", token)] if token else [])
        return patient(lambda: get(path, query), pause)

    items: list[dict[str, t.Any]] = []
    token, answer = "", fetch("")
    with concurrent.futures.ThreadPoolExecutor(1) as ahead:
        while answer.status != 410 or not token:
            guess = _announced(answer)
            coming = ahead.submit(fetch, guess) if guess else None
            page = _page(answer, path)
            items += [slim(item) for item in page["items"] or ()]
            token = str(part(page, "metadata", where=path).get("continue") or "")
            if not token:
                return items
            answer = coming.result() if coming and guess == token else fetch(token)
    return None


def _announced(answer: Answer) -> str:
    """The token of the next page, if it stands before the items, where Kubernetes writes it; else the page has to be parsed first."""
    mark = b'"continue":"'
    start = answer.body.find(mark, 0, max(0, answer.body.find(b'"items":'))) + len(mark)
    if answer.status != 200 or start < len(mark):
        return ""
    return answer.body[start : answer.body.index(b'"', start)].decode("ascii", "replace")


def patient(ask: t.Callable[[], Answer], pause: t.Callable[[float], None] = time.sleep) -> Answer:
    """Ask again a few times while the server says that it is too busy, which it says before it does anything."""
    answer = ask()
    for attempt in range(1, _ATTEMPTS):
        if answer.status != 429:
            break
        pause(min(_LONGEST_PAUSE, answer.retry_after if answer.retry_after is not None else float(attempt)))
        answer = ask()
    return answer


def _page(answer: Answer, path: str) -> dict[str, t.Any]:
    if answer.status != 200:
        raise RuntimeGateError(_refusal(answer, path))
    try:
        page = json.loads(answer.body)
    except (ValueError, RecursionError) as error:
        raise RuntimeGateError(f"what answers at {path} is no API server: its answer is no JSON; check host or kubeconfig") from error
    if not _is_list(page):
        raise RuntimeGateError(f"what answers at {path} is no API server: its answer is no list of objects; check host or kubeconfig")
    return page


def _is_list(page: t.Any) -> bool:
    if not isinstance(page, dict) or not isinstance(page.get("items", 0), (list, type(None))):
        return False
    return all(isinstance(item, dict) for item in page["items"] or ())


def _refusal(answer: Answer, path: str) -> str:
    """One sentence for each kind of refusal: what, and what to do."""
    said = message_of(answer.body)
    thing = path.rpartition("/")[2]
    if answer.status == 401:
        return f"the API server does not know these credentials (401 at {path}): {said}; renew the token or kubeconfig"
    if answer.status == 403:
        return f"the API server refuses to list {thing} (403): {said}; the user needs the verb list on {thing} (examples/rbac.yml)"
    if answer.status == 404:
        return f"the API server does not serve {path} (404); RuntimeClasses need Kubernetes 1.20 or later"
    if answer.status == 429:
        return f"the API server is too busy (429 at {path}, asked {_ATTEMPTS} times): {said}; try again later"
    if answer.status >= 500:
        return f"the API server failed ({answer.status} at {path}): {said}; look at its health (/readyz) and try again"
    return f"the API server answered {answer.status} at {path}: {said}"


def message_of(body: bytes) -> str:
    """The message of a Status object, or the beginning of whatever came instead."""
    text = body[:2000].decode("utf-8", "replace")
    try:
        status = json.loads(body)
    except (ValueError, RecursionError):
        return " ".join(text.split())[:200] or "without a word"
    return str(status.get("message") or "without a word") if isinstance(status, dict) else text[:200]


def connect(auth: t.Mapping[str, t.Any], timeout: float) -> Get:
    """A function that reads the API server, from the options of kubernetes.core.

    Raises RuntimeGateError where a library is missing or the options lead nowhere.
    """
    try:
        ask = connect_for_all(auth, timeout)
    except RuntimeGateError as error:
        raise RuntimeGateError(f"{error}, or hand in runtime_classes and nodes, manifests or kubectl_output") from error
    return lambda path, query: ask("GET", path, query, None, None)


def connect_for_all(auth: t.Mapping[str, t.Any], timeout: float) -> Ask:
    """A function that asks the API server for anything, writing too, from the options of kubernetes.core.

    kubernetes.core's get_api_client is not used as a whole: it discovers the API first, without a time-out, so a
    server that accepts and never answers would hang the play. Its configuration and headers are.
    Raises RuntimeGateError where a library is missing or the options lead nowhere.
    """
    client_module, core = _libraries()
    # Loading a kubeconfig changes the client library's default configuration; what an earlier call left there (a token, a
    # certificate authority) must not serve this one.
    client_module.Configuration.set_default(None)
    try:
        configuration = core._create_configuration(core._create_auth_spec(**auth))
        headers = core._create_headers(**auth)
    except Exception as error:  # the client library raises its own, urllib3's, yaml's and plain ValueErrors here
        raise RuntimeGateError(
            f"no way to the API server: {_first_line(error)}; give kubeconfig, context, host or api_key (or their K8S_AUTH_ variables)"
        ) from error
    client = client_module.ApiClient(configuration)
    for name, value in headers.items():
        core._set_header(client, name, value)
    return _asker(client, timeout)


def _libraries() -> tuple[t.Any, t.Any]:
    try:
        import kubernetes.client
        from ansible_collections.kubernetes.core.plugins.module_utils.k8s import client as core
    except ImportError as error:
        raise RuntimeGateError(
            f"asking the API server needs the Python package kubernetes and the collection kubernetes.core on the controller ({error});"
            " install them"
        ) from error
    return kubernetes.client, core


def _asker(client: t.Any, timeout: float) -> Ask:
    """Ask through the client's connection pool, which has its certificates and proxy: the signature of call_api
    differs between the versions of the client, and it would parse what is only to be read."""
    import urllib3

    host = client.configuration.host
    # urllib3 would obey any Retry-After, an hour as well; pauses are bounded in patient.
    retries = urllib3.Retry(total=1, connect=1, read=0, redirect=0, status=0, respect_retry_after_header=False, raise_on_redirect=False)

    def ask(method: str, path: str, query: Query, body: bytes | None, content_type: str | None) -> Answer:
        headers = dict(client.default_headers)
        headers["Accept"] = "application/json"
        for entry in client.configuration.auth_settings().values():
            headers[entry["key"]] = entry["value"]
        if content_type:
            headers["Content-Type"] = content_type
        try:
            answer = client.rest_client.pool_manager.request(
                method,
                host + path + ("?" + urllib.parse.urlencode(list(query)) if query else ""),
                body=body,
                headers=headers,
                timeout=urllib3.Timeout(connect=timeout, read=timeout),
                retries=retries,
            )
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise RuntimeGateError(_unreached(error, host, timeout)) from error
        return Answer(answer.status, answer.data, _seconds(answer.headers.get("Retry-After")))

    return ask


def _unreached(error: Exception, host: str, timeout: float) -> str:
    text = _first_line(error)
    if "timed out" in text.lower():
        return f"the API server {host} did not answer within {timeout:g} s; check the way to it, or raise api_timeout"
    return f"the API server {host} cannot be reached: {text}; check host, proxy and certificates"


def _first_line(error: BaseException) -> str:
    """The innermost reason, on one line: urllib3 wraps it in the names of pools and retries."""
    reason = getattr(error, "reason", None)
    text = str(reason if isinstance(reason, BaseException) else error).strip() or type(error).__name__
    return " ".join(text.split())[:300]


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text is not None else None
    except ValueError:
        return None  # a date, which API servers do not send
