# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rollout with cordon and drain: a real containerd that is restarted, and its Node on a real API server, by the playbooks site and remove.

What this proves: the Node is cordoned and empty while the runtime is restarted, and takes pods again after the gate alone; a node that is
as declared is neither cordoned nor asked about; a Node stays cordoned with the reason where the daemon cannot be brought back or the gate
fails, and the next run gives it back; one whose old state was proved takes pods; what somebody else cordoned stays cordoned; a drain
that is not possible leaves the runtime alone. What is loaded is asked through cri-ask, what the Node is through the API server.
"""

from __future__ import annotations

import typing as t
import urllib.parse

import pytest

from tests.cluster.control_plane import ControlPlane
from tests.cluster.pods import pod, runtime_class
from tests.cluster.waiting import wait_until
from tests.integration.ansible_runs import ROOT, Run
from tests.integration.real_rollout import RealNode, remote_calls
from tests.matrix.product import RESTART
from tests.testbed.tools import tool

CONFIG = 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
MARK = "runtime-gate.kubenode.io/cordoned"
TELLING = "/usr/local/sbin/telling-restart"
SCRIPT = """#!/bin/sh
# Says what the cluster knows of the node at this moment.
{kubectl} --kubeconfig {admin} get node n1 -o 'jsonpath={{.spec.unschedulable}}' >>/run/at-restart
echo " $({kubectl} --kubeconfig {admin} get pods -o name | wc -l)" >>/run/at-restart
{before}
exec {restart}
"""
ACCOUNT = "system:serviceaccount:kube-system:runtime-gate-rollout"


@pytest.fixture(scope="module", name="plane")
def _plane() -> t.Iterator[ControlPlane]:
    with ControlPlane() as plane:
        for name in ("rbac.yml", "rbac-drain.yml"):
            plane.kubectl("create", "-f", str(ROOT / "examples" / name))
        # Pods may be made without the controllers that make ServiceAccounts.
        plane.kubectl("create", "serviceaccount", "default")
        asked = ("auth", "can-i", "create", "pods", "--subresource=eviction", f"--as={ACCOUNT}")
        assert wait_until(lambda: plane.kubectl(*asked, check=False).returncode == 0, 30)
        yield plane


class Cluster:
    """One node of a cluster, and the rollout on it."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.real = RealNode("2.1", CONFIG)
        self.told("")

    def told(self, before: str) -> None:
        """The service manager: it says what the cluster knows, then does this, then restarts."""
        text = SCRIPT.format(kubectl=tool("kubectl"), admin=self.plane.kubeconfig, before=before, restart=RESTART)
        self.real.host.install_script(TELLING, text)

    @property
    def at_restart(self) -> t.List[str]:
        """What each restart found: whether the Node was cordoned, and the number of pods."""
        path = self.real.host.path("/run/at-restart")
        return path.read_text().splitlines() if path.exists() else []

    def roll_out(self, name: str = "site", *arguments: str, **variables: t.Any) -> Run:
        token = self.plane.service_account_token("kube-system", "runtime-gate-rollout")
        every = {
            "runtime_gate_handlers": {"crun": {"preset": "crun"}},
            "runtime_gate_cordon": True,
            "runtime_gate_cluster": {"host": self.plane.url, "api_key": token, "ca_cert": self.plane.ca_file},
            "runtime_gate_manifests": [],
            "runtime_gate_restart_command": [TELLING],
            **variables,
        }
        return self.real.playbook(name, every, *arguments)

    def node(self) -> t.Tuple[bool, t.Optional[str]]:
        """Whether it is cordoned, and our mark."""
        found = self.plane.request("GET", "/api/v1/nodes/n1")
        return bool(found["spec"].get("unschedulable")), (found["metadata"].get("annotations") or {}).get(MARK)

    def loaded(self) -> t.List[str]:
        return sorted(self.real.product.loaded()[0])

    def writes(self, since: int) -> t.List[str]:
        """Paths of what the rollout wrote."""
        return [
            urllib.parse.urlsplit(event["requestURI"]).path
            for event in self.plane.audit()[since:]
            if event["user"]["username"] == ACCOUNT and event["verb"] not in ("list", "get")
        ]


@pytest.fixture(name="cluster")
def _cluster(plane: ControlPlane) -> t.Iterator[Cluster]:
    plane.create([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}, runtime_class("crun", "crun")])
    made = Cluster(plane)
    yield made
    made.real.close()
    plane.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    plane.kubectl("delete", "nodes,runtimeclasses", "--all")


def place(plane: ControlPlane, name: str, **spec: t.Any) -> None:
    """A pod on n1 of a controller that is not there."""
    made = pod(name, node="n1", **spec)
    owner = {"apiVersion": "example.com/v1", "kind": "Job", "name": "j", "uid": "8b7d7a56-0000-4000-8000-000000000000", "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    plane.request("POST", "/api/v1/namespaces/default/pods", made)


def test_from_check_to_removal(cluster: Cluster) -> None:
    place(cluster.plane, "web")
    drain = {"runtime_gate_drain": True, "runtime_gate_drain_grace": 0}
    since = len(cluster.plane.audit())
    check = cluster.roll_out("site", "--check", "-v", **drain)
    assert check.status == 0 and '"cordoned": true' in check.text and "default/web" in check.text, check.text
    assert cluster.node() == (False, None) and cluster.at_restart == [] and cluster.loaded() == ["runc"]
    assert not any("eviction" in path for path in cluster.writes(since))
    assert "pod/web" in cluster.plane.kubectl("get", "pods", "-o", "name").stdout

    applied = cluster.roll_out(**drain)
    assert applied.status == 0, applied.text
    assert cluster.at_restart == ["true 0"] and cluster.loaded() == ["crun", "runc"] and cluster.node() == (False, None)

    since = len(cluster.plane.audit())
    second = cluster.roll_out("site", "-vvv", **drain)
    assert second.status == 0 and second.recap["n1"]["changed"] == 0, second.text
    assert remote_calls(second.text) == ["runtime_handlers", "gate_facts"]
    assert cluster.writes(since) == [] and len(cluster.at_restart) == 1

    removed = cluster.roll_out("remove", **drain)
    assert removed.status == 0 and cluster.loaded() == ["runc"], removed.text
    assert cluster.at_restart[1:] == ["true 0"] and cluster.node() == (False, None)


def test_a_node_that_cannot_be_brought_back_stays_cordoned_until_it_can(cluster: Cluster) -> None:
    cluster.told("pkill -KILL -x containerd; exit 9")
    failed = cluster.roll_out()
    assert failed.status == 2 and "the way back failed too" in failed.text and "Node n1 stays cordoned." in failed.text, failed.text
    is_cordoned, why = cluster.node()
    assert is_cordoned and why and "the way back failed too" in why
    cluster.told("")
    mended = cluster.roll_out()
    assert mended.status == 0, mended.text
    assert cluster.node() == (False, None) and cluster.loaded() == ["crun", "runc"] and all(line.startswith("true") for line in cluster.at_restart)


@pytest.mark.full
def test_a_node_whose_old_state_was_proved_takes_pods_again(cluster: Cluster) -> None:
    cluster.told("[ ! -e /etc/containerd/conf.d/zz-runtime-gate.toml ] || { echo picky >&2; exit 3; }")
    failed = cluster.roll_out()
    assert failed.status == 2 and "The old configuration is back" in failed.text and "Node n1 takes pods again." in failed.text, failed.text
    assert cluster.node() == (False, None) and cluster.loaded() == ["runc"] and cluster.at_restart[0] == "true 0"


@pytest.mark.full
def test_a_node_that_fails_the_gate_stays_cordoned_until_it_passes(cluster: Cluster) -> None:
    cluster.plane.create([runtime_class("gvisor", "runsc")])
    failed = cluster.roll_out()
    assert failed.status == 2 and "RuntimeClass gvisor asks for handler runsc" in failed.text and "Node n1 stays cordoned." in failed.text, failed.text
    is_cordoned, why = cluster.node()
    assert is_cordoned and why and "handler runsc" in why and cluster.loaded() == ["crun", "runc"]
    # Nothing is to be changed on the host by now; the mark alone tells whose cordon it is.
    cluster.plane.kubectl("delete", "runtimeclass", "gvisor")
    passed = cluster.roll_out()
    assert passed.status == 0 and cluster.node() == (False, None) and len(cluster.at_restart) == 1, passed.text


@pytest.mark.full
def test_what_somebody_else_cordoned_stays_cordoned(cluster: Cluster) -> None:
    cluster.plane.kubectl("cordon", "n1")
    run = cluster.roll_out()
    assert run.status == 0 and cluster.loaded() == ["crun", "runc"], run.text
    assert cluster.at_restart == ["true 0"] and cluster.node() == (True, None)


@pytest.mark.full
def test_without_consent_or_right_the_runtime_is_left_alone(cluster: Cluster) -> None:
    place(cluster.plane, "data", volumes=[{"name": "v", "emptyDir": {}}])
    refused = cluster.roll_out(runtime_gate_drain=True)
    assert refused.status == 2 and "default/data keep data in an emptyDir" in refused.text and "delete_emptydir_data" in refused.text, refused.text
    reader = {"host": cluster.plane.url, "api_key": cluster.plane.service_account_token("kube-system", "runtime-gate-reader")}
    reading = {**reader, "ca_cert": cluster.plane.ca_file}
    unable = cluster.roll_out(runtime_gate_cluster=reading)
    assert unable.status == 2 and "403" in unable.text and "examples/rbac-drain.yml" in unable.text, unable.text
    elsewhere = cluster.roll_out(runtime_gate_node_name="n7")
    assert elsewhere.status == 2 and "is not registered in this cluster, so it cannot be cordoned" in elsewhere.text, elsewhere.text
    assert cluster.at_restart == [] and cluster.loaded() == ["runc"] and cluster.node() == (False, None)
