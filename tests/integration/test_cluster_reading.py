# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a real kube-apiserver: what is read, with how many requests, with which rights, and what a refusal says."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
import typing as t
import urllib.parse

import pytest
import yaml

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.modules import runtimeclass_crosscheck as module
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_reader import (
    CLASSES,
    NODES,
    WORKLOAD_LISTS,
    Answer,
    connect,
    read_cluster,
    read_with,
)
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.manifests import read_kubectl
from tests.cluster.control_plane import ControlPlane, ControlPlaneError

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = "kubenode.runtime_gate.runtimeclass_crosscheck"
COUNT = 53  # a prime: no page size of the tests divides it
NODE_NAMES = sorted(f"w{index:02}" for index in range(COUNT))


def node(index: int) -> dict[str, t.Any]:
    handlers = [{"name": ""}, {"name": "runc"}] + ([{"name": "runsc"}] if index % 10 else [])
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"w{index:02}", "labels": {"sandbox": "true" if index < 20 else "false"}},
        "status": {
            "nodeInfo": {
                "machineID": f"machine-{index}",
                "bootID": f"boot-{index}",
                "systemUUID": "",
                "kernelVersion": "",
                "osImage": "",
                "containerRuntimeVersion": "containerd://2.1.9",
                "kubeletVersion": "v1.36.3",
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
            "runtimeHandlers": handlers,
        },
    }


CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "gvisor"},
    "handler": "runsc",
    "scheduling": {"nodeSelector": {"sandbox": "true"}},
}
# While a request of the user "busy" is being served, each further one is rejected with 429: a priority level without
# a seat of its own lets one request through at a time.
NO_SEATS = {
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
    "kind": "PriorityLevelConfiguration",
    "metadata": {"name": "no-seats"},
    "spec": {
        "type": "Limited",
        "limited": {"nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0, "limitResponse": {"type": "Reject"}},
    },
}
BUSY = {
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
    "kind": "FlowSchema",
    "metadata": {"name": "busy"},
    "spec": {
        "priorityLevelConfiguration": {"name": "no-seats"},
        "matchingPrecedence": 2,
        "rules": [
            {
                "subjects": [{"kind": "User", "user": {"name": "busy"}}],
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            }
        ],
    },
}


@pytest.fixture(scope="module", name="plane")
def _plane() -> t.Iterator[ControlPlane]:
    with ControlPlane(users=("nobody", "busy", "counted")) as plane:
        plane.create([CLASS, NO_SEATS, BUSY, *(node(index) for index in range(COUNT))])
        plane.kubectl("create", "-f", "-", input=(ROOT / "examples/rbac.yml").read_text(encoding="utf-8"))
        plane.kubectl("create", "clusterrolebinding", "busy", "--clusterrole=cluster-admin", "--user=busy")
        plane.kubectl("create", "clusterrolebinding", "counted", "--clusterrole=runtime-gate-reader", "--user=counted")
        wait_for_right(plane, "nodes", "--as=counted")
        wait_for_right(plane, "nodes", "--as=busy")
        yield plane


def wait_for_right(plane: ControlPlane, resource: str, who: str) -> None:
    """Bindings reach the authorizer a moment after they are made."""
    deadline = time.monotonic() + 30
    while not may(plane, "list", resource, who):
        assert time.monotonic() < deadline, f"{who} never got the right to list {resource}"
        time.sleep(0.1)


def may(plane: ControlPlane, verb: str, resource: str, who: str) -> bool:
    try:
        return plane.kubectl("auth", "can-i", verb, resource, who).stdout.strip() == "yes"
    except ControlPlaneError:
        return False  # kubectl says no with exit code 1


@contextlib.contextmanager
def one_request_being_served(plane: ControlPlane, user: str) -> t.Iterator[None]:
    """A request of the user that is not answered: it waits for an admission webhook that never says a word."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        hook = {
            "name": "silent.example.com",
            "clientConfig": {"url": f"https://127.0.0.1:{silent.getsockname()[1]}/"},
            "rules": [{"operations": ["CREATE"], "apiGroups": ["node.k8s.io"], "apiVersions": ["v1"], "resources": ["runtimeclasses"]}],
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 20,
        }
        kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
        plane.create([{**kind, "metadata": {"name": "silent"}, "webhooks": [hook]}])
        try:
            waiting = threading.Thread(target=_create_until_it_hangs, args=(plane, user), daemon=True)
            waiting.start()
            silent.settimeout(30)
            held, _address = silent.accept()
            with held:
                yield
        finally:
            plane.request("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/silent")


def _create_until_it_hangs(plane: ControlPlane, user: str) -> None:
    """The webhook is known to the server a moment after it was made; until then the object is simply created."""
    for index in range(100):
        thing = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": f"held-{index}"}, "handler": "h"}
        try:
            plane.request("POST", "/apis/node.k8s.io/v1/runtimeclasses?dryRun=All", thing, user=user)
        except OSError:
            return  # it was held, and the time of the webhook or of the test is over
        time.sleep(0.1)


def auth(plane: ControlPlane, user: str = "admin", **more: t.Any) -> dict[str, t.Any]:
    return {"kubeconfig": str(plane.token_kubeconfig(user)), **more}


def requests_of(plane: ControlPlane, user: str, since: int = 0) -> list[tuple[str, str, int]]:
    """(verb, path with its query, status) of every request of a user, from that place of the audit log on."""
    return [
        (event["verb"], event["requestURI"], event["responseStatus"]["code"])
        for event in plane.audit()[since:]
        if event["user"]["username"] == user
    ]


def test_what_is_read(plane: ControlPlane) -> None:
    found = read_cluster(auth(plane), workloads=True)
    assert found["classes"] == [{key: CLASS[key] for key in CLASS if key != "kind"}]
    assert [entry["metadata"]["name"] for entry in found["nodes"]] == NODE_NAMES
    assert found["nodes"][1]["status"]["runtimeHandlers"][2] == {"name": "runsc"}
    assert found["nodes"][1]["status"]["nodeInfo"]["bootID"] == "boot-1"
    assert found["workloads"] == []


def test_the_same_by_kubectl(plane: ControlPlane) -> None:
    by_api = read_cluster(auth(plane))
    nodes = read_kubectl(plane.kubectl("get", "nodes", "-o", "json").stdout, "nodes").nodes
    classes = read_kubectl(plane.kubectl("get", "runtimeclasses.node.k8s.io", "-o", "json").stdout, "runtime_classes").runtime_classes
    assert nodes == by_api["nodes"]
    assert [(entry["metadata"], entry["handler"]) for entry in classes] == [(entry["metadata"], entry["handler"]) for entry in by_api["classes"]]


@pytest.mark.parametrize("size", [1, 10, 52, 53, 500])
def test_pages(plane: ControlPlane, size: int) -> None:
    before = len(plane.audit())
    found = read_cluster(auth(plane), classes=False, page_size=size)
    assert [entry["metadata"]["name"] for entry in found["nodes"]] == NODE_NAMES
    asked = requests_of(plane, "admin", before)
    assert len(asked) == -(-COUNT // size)
    for _verb, path, _status in asked:
        assert urllib.parse.parse_qs(urllib.parse.urlsplit(path).query)["limit"] == [str(size)]


def test_a_list_that_expires_while_it_is_read_is_read_again() -> None:
    """etcd forgets the revision of the first page before the second is asked for. With its watch cache the server would
    still know it for a while."""
    with ControlPlane(arguments=["--watch-cache=false"]) as plane:
        plane.create([CLASS, *(node(index) for index in range(COUNT))])
        get = connect(auth(plane), 10.0)
        asked: list[int] = []

        def compacting(path: str, query: t.Sequence[tuple[str, str]]) -> Answer:
            if len(asked) == 1:
                plane.kubectl("annotate", "runtimeclass", "gvisor", "a=b")
                plane.compact()
            answer = get(path, query)
            asked.append(answer.status)
            return answer

        found = read_with(compacting, classes=False, page_size=20)
    assert [entry["metadata"]["name"] for entry in found["nodes"]] == NODE_NAMES
    assert asked == [200, 410, 200, 200, 200]


def test_the_service_account_of_the_example_suffices_and_may_not_more(plane: ControlPlane) -> None:
    token = plane.service_account_token("kube-system", "runtime-gate-reader")
    reader = {"host": plane.url, "api_key": token, "ca_cert": plane.ca_file}
    found = read_cluster(reader)
    assert len(found["nodes"]) == COUNT
    with pytest.raises(RuntimeGateError, match=r"403.*pods"):
        read_cluster(reader, classes=False, nodes=False, workloads=True)
    name = "system:serviceaccount:kube-system:runtime-gate-reader"
    assert {verb for verb, _path, _status in requests_of(plane, name)} == {"list"}
    who = f"--as={name}"
    assert may(plane, "list", "nodes", who)
    for verb, resource in (("create", "runtimeclasses.node.k8s.io"), ("patch", "nodes"), ("list", "secrets"), ("list", "pods"), ("delete", "nodes")):
        assert not may(plane, verb, resource, who)
    plane.kubectl(
        "create",
        "clusterrolebinding",
        "runtime-gate-workload-reader",
        "--clusterrole=runtime-gate-workload-reader",
        "--serviceaccount=kube-system:runtime-gate-reader",
    )
    wait_for_right(plane, "cronjobs.batch", who)
    assert read_cluster(reader, workloads=True)["workloads"] == []


def test_no_right(plane: ControlPlane) -> None:
    with pytest.raises(RuntimeGateError) as caught:
        read_cluster(auth(plane, "nobody"))
    for word in ("403", "runtimeclasses", "list", "examples/rbac.yml", 'User "nobody" cannot list resource'):
        assert word in str(caught.value)
    assert plane.tokens["nobody"] not in str(caught.value)


def test_a_server_that_is_too_busy(plane: ControlPlane) -> None:
    pauses: list[float] = []
    with one_request_being_served(plane, "busy"), pytest.raises(RuntimeGateError) as caught:
        read_with(connect(auth(plane, "busy"), 10.0), pause=pauses.append)
    for word in ("429", "too busy", "4 times"):
        assert word in str(caught.value)
    assert len(pauses) == 3
    assert all(0 < pause <= 5 for pause in pauses)
    assert [entry["metadata"]["name"] for entry in read_cluster(auth(plane, "busy"))["classes"]] == ["gvisor"]


def test_credentials_that_nobody_knows(plane: ControlPlane) -> None:
    with pytest.raises(RuntimeGateError, match="credentials.*401") as caught:
        read_cluster({"host": plane.url, "api_key": "stale-token", "ca_cert": plane.ca_file})
    assert "stale-token" not in str(caught.value)


def test_a_server_that_is_not_trusted(plane: ControlPlane) -> None:
    with pytest.raises(RuntimeGateError, match=r"cannot be reached: .*certificate"):
        read_cluster({"host": plane.url, "api_key": plane.tokens["admin"]}, timeout=5.0)
    assert read_cluster({"host": plane.url, "api_key": plane.tokens["admin"], "validate_certs": False})["nodes"]


def test_impersonation(plane: ControlPlane) -> None:
    with pytest.raises(RuntimeGateError, match='403.*User "somebody"'):
        read_cluster(auth(plane, impersonate_user="somebody"))
    assert read_cluster(auth(plane, impersonate_user="somebody", impersonate_groups=["a", "system:masters"]))["nodes"]


def test_a_server_that_never_answers() -> None:
    """It accepts the connection and keeps silent; the answer comes in about the time-out, not in minutes."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        host = f"http://127.0.0.1:{silent.getsockname()[1]}"
        failed: list[str] = []

        def ask() -> None:
            try:
                read_cluster({"host": host, "api_key": "t"}, timeout=1.0)
            except RuntimeGateError as error:
                failed.append(str(error))

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        thread.join(15)
        assert not thread.is_alive()
    assert "did not answer within 1 s" in failed[0]


def test_a_port_on_which_nobody_listens() -> None:
    with pytest.raises(RuntimeGateError, match="cannot be reached"):
        read_cluster({"host": "http://127.0.0.1:9", "api_key": "t"}, timeout=2.0)


def play(folder: pathlib.Path, hosts: int, task: dict[str, t.Any], *arguments: str, **keywords: t.Any) -> str:
    """Run one task on that many local hosts; what is printed."""
    (folder / "hosts.json").write_text(
        json.dumps({"all": {"hosts": {f"h{index}": {"ansible_connection": "local"} for index in range(hosts)}}}), encoding="utf-8"
    )
    book = [{"hosts": "all", "gather_facts": False, "tasks": [task], **keywords}]
    (folder / "book.json").write_text(json.dumps(book), encoding="utf-8")
    (folder / "ansible.cfg").write_text("[defaults]\nforks = 5\nstdout_callback = minimal\n", encoding="utf-8")
    command = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-i", "hosts.json", "book.json", *arguments]
    command += ["-e", f"ansible_python_interpreter={sys.executable}"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("K8S_AUTH_", "ANSIBLE_"))}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("hosts", "keywords", "arguments"),
    [
        pytest.param(2, {}, (), id="2 hosts"),
        pytest.param(50, {}, (), id="50 hosts"),
        pytest.param(50, {"serial": 20}, (), id="50 hosts, serial"),
        pytest.param(50, {"strategy": "free"}, (), id="50 hosts, free"),
        pytest.param(50, {}, ("--limit", "h7,h21"), id="50 hosts, limit"),
    ],
)
def test_a_run_asks_for_each_list_once_whatever_the_number_of_hosts(
    plane: ControlPlane, tmp_path: pathlib.Path, hosts: int, keywords: dict[str, t.Any], arguments: tuple[str, ...]
) -> None:
    before = len(plane.audit())
    facts = {"schema": 1, "evidence": "loaded", "cri_ready": True, "handlers": {"runsc": {}}, "identity": {"hostname": "{{ inventory_hostname }}"}}
    options = {"kubeconfig": str(plane.token_kubeconfig("counted")), "node_runtime": facts, "cache_for_run": True}
    play(tmp_path, hosts, {NAME: options}, *arguments, **keywords)
    asked = requests_of(plane, "counted", before)
    assert collections.Counter(urllib.parse.urlsplit(path).path for _verb, path, _status in asked) == {CLASSES: 1, NODES: 1}


def test_the_examples_that_ask_a_cluster(plane: ControlPlane, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = json.loads(plane.token_kubeconfig("counted").read_text(encoding="utf-8"))
    config["contexts"].append({"name": "production", "context": config["contexts"][0]["context"]})
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(json.dumps(config), encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    runtime = {"handlers": {"runc": {}}, "evidence": "loaded", "cri_ready": True, "schema": 1, "identity": {"boot_id": "boot-3"}}
    examples = [task for task in yaml.safe_load(module.EXAMPLES) if "kubeconfig" in task.get(NAME, {})]
    assert len(examples) == 2
    for task, expected in zip(examples, ({"ok": 18, "missing": 2, "not_targeted": 33}, {"missing": 1})):
        answer = tmp_path / "answer.json"
        write = {"ansible.builtin.copy": {"content": "{{ " + task["register"] + " | to_json }}", "dest": str(answer), "mode": "0600"}}
        variables = {"read_runtime": {"ansible_facts": {"containerd_runtime": runtime}}}
        play(tmp_path, 1, {"block": [task, write], "vars": variables})
        counts = json.loads(answer.read_text(encoding="utf-8"))["counts"]
        assert {word: counts[word] for word in expected} == expected


def test_workload_lists_are_all_served(plane: ControlPlane) -> None:
    for _kind, path in WORKLOAD_LISTS:
        assert "items" in plane.request("GET", path)
