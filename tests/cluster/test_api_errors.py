# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The audit where the API server cannot be asked: one clear error, no verdict, a whole report that passes nothing.

How the reader meets each of these, and a list whose page token has expired, is in tests/integration/test_cluster_reading.py; here a
person runs the playbook.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import pathlib
import socket
import threading
import typing as t

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.integration.ansible_runs import EXAMPLE, playbook, write_yaml

HOSTS = ("debian-1", "flatcar-1")


@pytest.fixture(scope="module")
def plane() -> t.Iterator[ControlPlane]:
    with ControlPlane(users=("stale",)) as made:
        yield made


@contextlib.contextmanager
def silence() -> t.Iterator[str]:
    """A server that accepts connections and says nothing."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        yield f"http://127.0.0.1:{silent.getsockname()[1]}"


class _Busy(http.server.BaseHTTPRequestHandler):
    """Answers as kube-apiserver does where a priority level has no seat left. A real one cannot be kept in that state for as long
    as a playbook may take to begin; the reader meets a real one in tests/integration/test_cluster_reading.py."""

    def do_GET(self) -> None:
        text = b"Too many requests, please try again later.\n"
        self.send_response(429)
        for name, value in (("Content-Type", "text/plain; charset=utf-8"), ("Retry-After", "1"), ("Content-Length", str(len(text)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_arguments: t.Any) -> None:
        """Keep quiet."""


@contextlib.contextmanager
def busy() -> t.Iterator[str]:
    """A server that has no time."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Busy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def audit(folder: pathlib.Path, cluster: dict[str, t.Any]) -> tuple[int, str, dict[str, t.Any]]:
    """(exit code, what was printed, report) of an audit of recordings, with the cluster's data from there."""
    report = folder / "report.json"
    shared = {"runtime_gate_captures": str(EXAMPLE / "captures"), "runtime_gate_cluster": cluster, "runtime_gate_report_path": str(report)}
    inventory = write_yaml(folder / "hosts.yml", {"all": {"vars": shared, "hosts": dict.fromkeys(HOSTS)}})
    run = playbook("kubenode.runtime_gate.audit", "-i", inventory)
    # Whatever went wrong, what is in the file is whole.
    return run.status, run.text, json.loads(report.read_text())


def check(status: int, text: str, report: dict[str, t.Any], words: t.Sequence[str]) -> None:
    assert status == 2
    fatal = [line for line in text.splitlines() if line.startswith("fatal: ")]
    assert sorted(line.partition("]")[0].removeprefix("fatal: [") for line in fatal) == sorted(HOSTS), text
    assert all(word in line for word in words for line in fatal), fatal
    # The table says it once, not once for each host.
    assert "0 of 2 hosts judged; no verdict; 2 fail" in text
    assert not report["ok"] and report["counts"]["verdicts"] == {} and report["counts"]["failing"] == 2


def test_no_cluster(tmp_path: pathlib.Path) -> None:
    cluster = {"host": "https://127.0.0.1:9", "api_key": "planted-secret"}
    status, text, report = audit(tmp_path, cluster)
    check(status, text, report, ["the API server https://127.0.0.1:9 cannot be reached", "Connection refused", "check host"])
    assert "planted-secret" not in text + json.dumps(report)


def test_no_right(plane: ControlPlane, tmp_path: pathlib.Path) -> None:
    cluster = {"kubeconfig": str(plane.user_kubeconfig("mallory"))}
    check(*audit(tmp_path, cluster), ["403", "examples/rbac.yml", "mallory", "cannot list resource"])


@pytest.mark.full
def test_credentials_that_nobody_knows(plane: ControlPlane, tmp_path: pathlib.Path) -> None:
    cluster = {"kubeconfig": str(plane.token_kubeconfig("stale", token="planted-secret"))}
    status, text, report = audit(tmp_path, cluster)
    check(status, text, report, ["401", "credentials"])
    assert "planted-secret" not in text + json.dumps(report)


@pytest.mark.full
def test_a_server_that_is_too_busy(tmp_path: pathlib.Path) -> None:
    with busy() as host:
        check(*audit(tmp_path, {"host": host, "api_key": "token"}), ["429", "too busy"])


@pytest.mark.full
def test_a_server_that_says_nothing(tmp_path: pathlib.Path) -> None:
    with silence() as host:
        check(*audit(tmp_path, {"host": host, "api_key": "token"}), ["did not answer within"])


def test_the_same_audit_passes_where_the_server_answers(plane: ControlPlane, tmp_path: pathlib.Path) -> None:
    """So that the failures above are those of the API and of nothing else."""
    status, text, report = audit(tmp_path, {"kubeconfig": str(plane.kubeconfig)})
    assert (status, report["ok"], report["counts"]["judged"]) == (0, True, 2), text
