# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real control plane for tests: etcd and kube-apiserver, on loopback, in a directory that goes away with them.

    with ControlPlane() as plane:
        plane.create([{"apiVersion": "v1", "kind": "Node", ...}])
        print(plane.kubectl("get", "nodes"))

RBAC is on, every answered request stands in the audit log. Both programs end with this process, even when it is killed.
"""

from __future__ import annotations

import base64
import concurrent.futures
import contextlib
import json
import pathlib
import secrets
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import typing as t
import urllib.error
import urllib.request

from tests.testbed.tools import tool

ADMIN = "admin"
_START_SECONDS = 90.0

_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata"}],
}
# Where an object of a kind is created. More kinds when a test needs them.
_PATHS = {
    "Node": "/api/v1/nodes",
    "RuntimeClass": "/apis/node.k8s.io/v1/runtimeclasses",
    "FlowSchema": "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
    "ValidatingWebhookConfiguration": "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "PriorityLevelConfiguration": "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
}


class ControlPlaneError(Exception):
    """The control plane did not start, or refused what a test set up."""


class ControlPlane:
    """etcd and kube-apiserver. tokens: user name -> bearer token of users without any right (the admin has all)."""

    def __init__(self, users: t.Sequence[str] = (), arguments: t.Sequence[str] = ()) -> None:
        """users: further users, known by a token of their own. arguments: further ones of kube-apiserver."""
        self._arguments = list(arguments)
        self._processes: list[subprocess.Popen[bytes]] = []
        self.tokens = {name: secrets.token_hex(16) for name in (ADMIN, *users)}
        self.home = pathlib.Path()
        self.url = self.etcd_url = ""

    def __enter__(self) -> ControlPlane:
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="control-plane-"))
        try:
            self._start_etcd()
            self._start_api_server()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        for process in reversed(self._processes):
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
        self._processes.clear()
        shutil.rmtree(self.home, ignore_errors=True)

    @property
    def ca_file(self) -> str:
        """The certificate by which the server is known."""
        return str(self.home / "certificates" / "apiserver.crt")

    def kubeconfig(self, user: str = ADMIN, token: str | None = None) -> str:
        """Path of a kubeconfig for a user (or, with a token, whoever that is)."""
        path = self.home / f"{user}.kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": self.url, "certificate-authority": self.ca_file}}],
            "users": [{"name": user, "user": {"token": token or self.tokens[user]}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": user}}],
            "current-context": "c",
        }
        path.write_text(json.dumps(config), encoding="utf-8")
        path.chmod(0o600)
        return str(path)

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        """What kubectl prints as the admin. Raises ControlPlaneError where it fails."""
        command = [str(tool("kubectl")), "--kubeconfig", self.kubeconfig(), *arguments]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            raise ControlPlaneError(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def request(self, method: str, path: str, body: t.Any = None, user: str = ADMIN) -> t.Any:
        """The parsed answer of the API server. Raises urllib.error.HTTPError for a refusal."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.tokens[user]}", "Content-Type": "application/json"},
        )
        context = ssl.create_default_context(cafile=self.ca_file)
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            return json.loads(answer.read() or "null")

    def create(self, objects: t.Sequence[dict[str, t.Any]]) -> None:
        """Create objects of the kinds in _PATHS, several at once. A Node gets its status as well. Raises ControlPlaneError with
        the server's own words where one is refused."""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(self._create, objects))

    def _create(self, thing: dict[str, t.Any]) -> None:
        path = _PATHS[thing["kind"]]
        try:
            made = self.request("POST", path, thing)
            if "status" in thing:
                made["status"] = thing["status"]
                self.request("PUT", f"{path}/{made['metadata']['name']}/status", made)
        except urllib.error.HTTPError as error:
            raise ControlPlaneError(f"{thing['kind']} {thing['metadata']['name']}: {error.read().decode()}") from error

    def service_account_token(self, namespace: str, name: str) -> str:
        """A token of a ServiceAccount, made by the API server."""
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        answer = self.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", request)
        return t.cast(str, answer["status"]["token"])

    def audit(self) -> list[dict[str, t.Any]]:
        """Every request that was answered, oldest first."""
        log = self.home / "audit.log"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [json.loads(line) for line in lines]

    def compact(self) -> None:
        """Forget all old revisions of etcd: a list that was begun before cannot go on."""
        current = self._etcd("/v3/kv/range", {"key": base64.b64encode(b"x").decode()})["header"]["revision"]
        self._etcd("/v3/kv/compaction", {"revision": current, "physical": True})

    def _etcd(self, path: str, body: dict[str, t.Any]) -> t.Any:
        request = urllib.request.Request(self.etcd_url + path, method="POST", data=json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def _start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{port}" for port in _free_ports(2))
        self.etcd_url = client
        self._run(
            "etcd",
            f"--data-dir={self.home / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=error",
        )
        self._wait("etcd", lambda: urllib.request.urlopen(f"{client}/health", timeout=2).close())

    def _start_api_server(self) -> None:
        (port,) = _free_ports(1)
        self.url = f"https://127.0.0.1:{port}"
        policy, tokens, key = self.home / "audit.json", self.home / "tokens.csv", self.home / "accounts.key"
        policy.write_text(json.dumps(_AUDIT_POLICY), encoding="utf-8")
        rows = [f'{token},{name},{name},"{"system:masters" if name == ADMIN else ""}"' for name, token in self.tokens.items()]
        tokens.write_text("\n".join(rows) + "\n", encoding="utf-8")
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True, timeout=60)
        self._run(
            "kube-apiserver",
            f"--etcd-servers={self.etcd_url}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--cert-dir={self.home / 'certificates'}",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            f"--token-auth-file={tokens}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self.home / 'audit.log'}",
            "--audit-log-mode=blocking",
            *self._arguments,
        )
        self._wait("kube-apiserver", lambda: self.request("GET", "/api/v1/namespaces/default"))

    def _run(self, name: str, *arguments: str) -> None:
        """Start a program that dies with this process."""
        with open(self.home / f"{name}.log", "wb") as log:
            command = ["setpriv", "--pdeathsig", "KILL", str(tool(name)), *arguments]
            self._processes.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=self.home, env={"HOME": str(self.home)}))

    def _wait(self, name: str, asks: t.Callable[[], object]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._processes[-1].poll() is None:
            with contextlib.suppress(OSError, ValueError):
                asks()
                return
            time.sleep(0.2)
        log = (self.home / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        raise ControlPlaneError(f"{name} is not ready after {_START_SECONDS:g} s, or ended:\n{log[-3000:]}")


def _free_ports(count: int) -> list[int]:
    """Ports of loopback that are free now, all different."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _index in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


__all__ = ("ADMIN", "ControlPlane", "ControlPlaneError")
