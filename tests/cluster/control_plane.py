# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real control plane for tests: etcd and kube-apiserver, and on request kube-scheduler and kube-controller-manager.

    with ControlPlane(tmp_path, programs=("scheduler", "controller-manager")) as cluster:
        cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-rt"}}])
        print(cluster.kubectl("get", "nodes").stdout)

RBAC and the node authorizer are on, every answered request stands in the audit log. Users are known by client certificates, or by
tokens. All programs listen on loopback, the API server on `bind_address`. All end with the thread that started them, even when it
is killed.
"""

from __future__ import annotations

import base64
import concurrent.futures
import contextlib
import http.client
import io
import json
import pathlib
import random
import secrets
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import typing as t
import urllib.error
import urllib.request

from tests.cluster.certificates import Authority
from tests.testbed.tools import tool

ADMIN = "admin"
LOOPBACK = "127.0.0.1"
MASTERS = "system:masters"  # the group that RBAC lets do everything
_START_SECONDS = 90.0
_PORTS = (20000, 32768)

_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata"}],
}
# The resource of a kind, for create() and delete(). More kinds when a test needs them.
_RESOURCES = {
    "FlowSchema": "flowschemas",
    "Namespace": "namespaces",
    "Node": "nodes",
    "Pod": "pods",
    "PriorityLevelConfiguration": "prioritylevelconfigurations",
    "RuntimeClass": "runtimeclasses",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}
_NAMESPACED = ("Pod",)


class ControlPlaneError(Exception):
    """The control plane did not start, or refused what a test set up."""


class ControlPlane:
    """One control plane. It ends, and its temporary directory goes, when the with-block is left.

    :ivar directory: certificates, kubeconfigs and logs (a temporary one unless given).
    :ivar programs: those of `programs` that run.
    :ivar url: of the API server; etcd_url: of etcd.
    :ivar tokens: user name -> bearer token, of the admin and of `users`.
    """

    def __init__(
        self,
        directory: pathlib.Path | None = None,
        programs: t.Sequence[str] = (),
        bind_address: str = LOOPBACK,
        users: t.Sequence[str] = (),
        arguments: t.Sequence[str] = (),
        feature_gates: t.Sequence[str] = (),
    ) -> None:
        """programs: of "scheduler" and "controller-manager". bind_address: where the API server listens; its certificate names this
        address and loopback. users: further users without any right, known by a token. arguments: further ones of kube-apiserver.
        feature_gates: NAME=true or NAME=false, for every program of Kubernetes."""
        unknown = set(programs) - set(_PROGRAMS)
        if unknown:
            raise ControlPlaneError(f"no such program of a control plane: {', '.join(sorted(unknown))} (known: {', '.join(_PROGRAMS)})")
        self._given = directory
        self.programs = list(programs)
        self._bind_address = bind_address
        self._arguments = list(arguments)
        self._gates = [f"--feature-gates={','.join(feature_gates)}"] if feature_gates else []
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.tokens = {name: secrets.token_hex(16) for name in (ADMIN, *users)}
        self._connections = threading.local()
        self.directory = pathlib.Path()
        self.url = self.etcd_url = ""

    def __enter__(self) -> ControlPlane:
        self.directory = (self._given or pathlib.Path(tempfile.mkdtemp(prefix="control-plane-"))).resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            self.authority = Authority(self.directory / "certificates")
            self._start_etcd()
            self._start_api_server()
            for name in self.programs:
                _PROGRAMS[name](self)
            if "controller-manager" in self.programs:
                # The admission of pods wants the ServiceAccount, which a controller makes.
                self._wait("kube-controller-manager", lambda: self.request("GET", "/api/v1/namespaces/default/serviceaccounts/default"))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        # All at once: nothing of it is kept, and an API server that is asked politely waits for its clients.
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()
        self._processes.clear()
        shutil.rmtree(self.directory / "etcd" if self._given else self.directory, ignore_errors=True)

    # who asks, and how -----------------------------------------------------------------------------------------------------------

    @property
    def ca_file(self) -> str:
        """The authority's certificate, by which the server is known."""
        return str(self.authority.certificate)

    @property
    def kubeconfig(self) -> pathlib.Path:
        """The admin's kubeconfig."""
        path = self.directory / f"{ADMIN}.kubeconfig"
        return path if path.exists() else self.user_kubeconfig(ADMIN, (MASTERS,))

    def user_kubeconfig(self, user: str, groups: t.Sequence[str] = ()) -> pathlib.Path:
        """A kubeconfig with a client certificate of this user in these groups. What they may do is said by RBAC."""
        certificate, key = self.authority.client(user, groups)
        return self._write_kubeconfig(user, {"client-certificate": str(certificate), "client-key": str(key)})

    def token_kubeconfig(self, user: str, token: str | None = None) -> pathlib.Path:
        """A kubeconfig with the token of one of `users` (or, with a token, of whoever that is)."""
        return self._write_kubeconfig(f"{user}-token", {"token": token or self.tokens[user]})

    def _write_kubeconfig(self, name: str, credentials: dict[str, str]) -> pathlib.Path:
        path = self.directory / f"{name.replace(':', '-').replace('/', '-')}.kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": self.url, "certificate-authority": self.ca_file}}],
            "users": [{"name": name, "user": credentials}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": name}}],
            "current-context": "c",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config), encoding="utf-8")
        return path

    def kubectl(self, *arguments: str, input: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        """kubectl as the admin. With check, raises ControlPlaneError with its words where it fails."""
        command = [str(tool("kubectl")), "--kubeconfig", str(self.kubeconfig), *arguments]
        environment = {"HOME": str(self.directory), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=120, check=False, env=environment)
        if check and done.returncode:
            raise ControlPlaneError(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done

    def apply(self, objects: t.Sequence[dict[str, t.Any]]) -> None:
        """Server-side apply of objects of any kind, under the field manager "testbed". Raises ControlPlaneError where one is refused."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        self.kubectl("apply", "--server-side", "--field-manager=testbed", "--force-conflicts", "-f", "-", input=text)

    def request(self, method: str, path: str, body: t.Any = None, user: str = ADMIN, content_type: str = "application/json") -> t.Any:
        """The parsed answer of the API server. Raises urllib.error.HTTPError for a refusal."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.tokens[user]}", "Content-Type": content_type}
        try:
            answer, text = self._exchange(method, path, data, headers)
        except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
            answer, text = self._exchange(method, path, data, headers)  # it had closed an idle connection
        if answer.status >= 400:
            raise urllib.error.HTTPError(self.url + path, answer.status, answer.reason, answer.headers, io.BytesIO(text))
        return json.loads(text or "null")

    def _exchange(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> tuple[http.client.HTTPResponse, bytes]:
        """One request on this thread's connection."""
        connection = getattr(self._connections, "one", None)
        if connection is None:
            context = ssl.create_default_context(cafile=self.ca_file)
            connection = self._connections.one = http.client.HTTPSConnection(self.url.partition("//")[2], timeout=30, context=context)
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            return answer, answer.read()
        except BaseException:
            connection.close()  # the next request opens it anew
            raise

    def create(self, objects: t.Sequence[dict[str, t.Any]]) -> None:
        """Create objects of the kinds in _RESOURCES, several at once. A Node gets its status as well. Raises ControlPlaneError with
        the server's own words where one is refused."""
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(self._create, objects))

    def _create(self, thing: dict[str, t.Any]) -> None:
        path = api_path(thing)
        try:
            made = self.request("POST", path, thing)
            if "status" in thing:
                self.request("PATCH", f"{path}/{made['metadata']['name']}/status", {"status": thing["status"]}, content_type="application/merge-patch+json")
        except urllib.error.HTTPError as error:
            raise ControlPlaneError(f"{thing['kind']} {thing['metadata']['name']}: {error.read().decode()}") from error

    def service_account_token(self, namespace: str, name: str) -> str:
        """A token of a ServiceAccount, made by the API server."""
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
        answer = self.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", request)
        return t.cast(str, answer["status"]["token"])

    def audit(self) -> list[dict[str, t.Any]]:
        """Every request that was answered, oldest first."""
        log = self.directory / "audit.log"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [json.loads(line) for line in lines]

    def compact(self) -> None:
        """Forget all old revisions of etcd: a list that was begun before cannot go on."""
        current = self._etcd("/v3/kv/range", {"key": base64.b64encode(b"x").decode()})["header"]["revision"]
        self._etcd("/v3/kv/compaction", {"revision": current, "physical": True})

    def _etcd(self, path: str, body: dict[str, t.Any]) -> t.Any:
        request = urllib.request.Request(self.etcd_url + path, method="POST", data=json.dumps(body).encode())
        with _direct(request) as answer:
            return json.loads(answer.read())

    # its programs ----------------------------------------------------------------------------------------------------------------

    def _start_etcd(self) -> None:
        client, peer = (f"http://{LOOPBACK}:{port}" for port in free_ports(2))
        self.etcd_url = client
        self.run(
            "etcd",
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=error",
        )
        self._wait("etcd", lambda: _direct(f"{client}/health").close())

    def _start_api_server(self) -> None:
        (port,) = free_ports(1, self._bind_address)
        self.url = f"https://{self._bind_address}:{port}"
        policy, tokens = self.directory / "audit.json", self.directory / "tokens.csv"
        policy.write_text(json.dumps(_AUDIT_POLICY), encoding="utf-8")
        rows = [f'{token},{name},{name},"{MASTERS if name == ADMIN else ""}"' for name, token in self.tokens.items()]
        tokens.write_text("\n".join(rows) + "\n", encoding="utf-8")
        names = dict.fromkeys(["localhost", "kubernetes.default.svc", LOOPBACK, self._bind_address])
        certificate, key = self.authority.server("kube-apiserver", list(names))
        to_kubelets = self.authority.client("kube-apiserver-kubelet-client", (MASTERS,))
        accounts = self.authority.key("service-accounts")
        self.run(
            "kube-apiserver",
            f"--etcd-servers={self.etcd_url}",
            f"--bind-address={self._bind_address}",
            f"--secure-port={port}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={self.ca_file}",
            f"--kubelet-client-certificate={to_kubelets[0]}",
            f"--kubelet-client-key={to_kubelets[1]}",
            f"--requestheader-client-ca-file={self.ca_file}",
            "--requestheader-allowed-names=front-proxy",  # nobody has a certificate of this name
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            f"--token-auth-file={tokens}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={accounts}",
            f"--service-account-signing-key-file={accounts}",
            f"--audit-policy-file={policy}",
            f"--audit-log-path={self.directory / 'audit.log'}",
            "--audit-log-mode=blocking",
            *self._gates,
            *self._arguments,
        )
        self._wait("kube-apiserver", lambda: self.request("GET", "/api/v1/namespaces/default"))

    def _start_scheduler(self) -> None:
        self._start_client_program("kube-scheduler", self.user_kubeconfig("system:kube-scheduler"))

    def _start_controller_manager(self) -> None:
        self._start_client_program(
            "kube-controller-manager",
            self.user_kubeconfig("system:kube-controller-manager", (MASTERS,)),  # each controller under this one identity
            f"--service-account-private-key-file={self.directory / 'certificates' / 'service-accounts.key'}",
            f"--root-ca-file={self.ca_file}",
        )

    def _start_client_program(self, name: str, kubeconfig: pathlib.Path, *arguments: str) -> None:
        (port,) = free_ports(1)
        self.run(
            name,
            f"--kubeconfig={kubeconfig}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            f"--requestheader-client-ca-file={self.ca_file}",
            "--requestheader-allowed-names=front-proxy",
            "--leader-elect=false",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            *self._gates,
            *arguments,
        )
        context = ssl._create_unverified_context()  # its certificate is its own
        self._wait(name, lambda: _direct(f"https://{LOOPBACK}:{port}/healthz", context).close())

    def run(self, name: str, *arguments: str) -> None:
        """Start a further program of the test bed, which ends with this control plane; it writes NAME.log.

        It also dies with the calling thread: call this from one that lives as long as the program shall.
        """
        with open(self.directory / f"{name}.log", "ab") as log:
            command = ["setpriv", "--pdeathsig", "KILL", str(tool(name)), *arguments]
            environment = {"HOME": str(self.directory)}
            self._processes[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory, env=environment)

    def end(self, name: str) -> None:
        """End one of the programs, for a test of what happens without it."""
        process = self._processes.pop(name)
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def log(self, name: str) -> str:
        """What a program has printed."""
        return (self.directory / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def _wait(self, name: str, asks: t.Callable[[], object]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._processes[name].poll() is None:
            with contextlib.suppress(OSError, ValueError):
                asks()
                return
            time.sleep(0.1)
        raise ControlPlaneError(f"{name} is not ready after {_START_SECONDS:g} s, or ended:\n{self.log(name)[-3000:]}")


_PROGRAMS: dict[str, t.Callable[[ControlPlane], None]] = {
    "scheduler": ControlPlane._start_scheduler,
    "controller-manager": ControlPlane._start_controller_manager,
}


def api_path(thing: dict[str, t.Any]) -> str:
    """The path at which an object of the kinds in _RESOURCES is created; its own path is that and its name."""
    version, kind = thing["apiVersion"], thing["kind"]
    top = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = f"/namespaces/{thing['metadata'].get('namespace', 'default')}" if kind in _NAMESPACED else ""
    return f"{top}{namespace}/{_RESOURCES[kind]}"


def _direct(request: urllib.request.Request | str, context: ssl.SSLContext | None = None) -> t.Any:
    """Open a URL of this machine, whatever proxy the environment names."""
    handlers = [urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)]
    return urllib.request.build_opener(*handlers).open(request, timeout=30)


def free_ports(count: int, address: str = LOOPBACK) -> list[int]:
    """Ports of an address that are free now, all different, and not among those that the kernel gives to outgoing connections: such a
    one may be taken before the program has begun to listen."""
    with contextlib.ExitStack() as stack:
        found: list[int] = []
        while len(found) < count:
            one = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                one.bind((address, random.randrange(*_PORTS)))
                found.append(one.getsockname()[1])
        return found


__all__ = ("ADMIN", "LOOPBACK", "MASTERS", "ControlPlane", "ControlPlaneError", "api_path", "free_ports")
