# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials planted everywhere on a node with a real daemon, and searched for in everything that leaves it.

What this proves: with the real module run by the real ansible at -vvvvv, in check mode and without, no planted
credential is printed, returned, logged by the controller or written into a capture, while the handlers are still read.
Breaking a rule of secrets.py (say, the word "token") makes it fail.
"""

from __future__ import annotations

import pathlib
import sys
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.tests.unit.node_tables import PLANTED_TOML, SECRET, WITHHELD_TOML
from tests.testbed.host import ContainerdHost
from tests.testbed.product import collections_root

_ANSIBLE = pathlib.Path(sys.executable).parent / "ansible"
_CRI = {"1.7": 'plugins."io.containerd.grpc.v1.cri"', "2.1": 'plugins."io.containerd.grpc.v1.cri"'}


def _root_file(line: str) -> str:
    cri = _CRI[line]
    return "\n".join(
        (
            "version = 2",
            'imports = ["/etc/containerd/conf.d/*.toml"]',
            "# password = '%s'" % SECRET,
            '[%s.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"' % cri,
            '[%s.containerd.runtimes.token]\nruntime_type = "io.containerd.kata.v2"' % cri,
            '[%s.registry.mirrors."docker.io"]\nendpoint = ["https://joe:%s@m.example"]' % (cri, SECRET),
            '[%s.registry.configs."a.example".auth]\nusername = "joe"\n"pass\\u0077ord" = "%s"' % (cri, SECRET),
            "[%s.registry.configs.\"b.example\"]\nauth = {identitytoken = '''%s'''}" % (cri, SECRET),
            '[%s.registry.configs."c.example".auth]\nauth = """\n%s"""\n' % (cri, SECRET),
        )
    )


def _plant(host: ContainerdHost, line: str) -> None:
    host.write("/etc/containerd/config.toml", _root_file(line))
    host.write("/etc/containerd/conf.d/empty.toml", "version = 2 # token %s\n" % SECRET)
    for number, (template, _survivors) in enumerate(PLANTED_TOML):
        host.write("/etc/containerd/old/%d.toml" % number, template.replace("%s", SECRET))
    for number, text in enumerate(WITHHELD_TOML):
        host.write("/etc/containerd/old/withheld-%d.toml" % number, text)
    host.write("/var/lib/kubelet/config.yaml", "cgroupDriver: systemd\nstaticPodURLHeader: {Authorization: [%s]}\n" % SECRET)
    host.write("/etc/kubernetes/kubelet.conf", "users:\n- name: system:node:n1\n  user: {token: %s}\n" % SECRET)
    host.write("/etc/default/kubelet", "KUBELET_EXTRA_ARGS=--bootstrap-token=%s\n" % SECRET)


def _start_kubelet(host: ContainerdHost) -> None:
    command = "exec -a kubelet sh -c 'sleep 600; :' x --config /var/lib/kubelet/config.yaml --token %s --proxy=http://joe:%s@p"
    flags = " --kubeconfig /etc/kubernetes/kubelet.conf --container-runtime-endpoint=unix:///run/containerd/containerd.sock"
    started = host.run(["bash", "-c", "(%s) >/dev/null 2>&1 &" % (command % (SECRET, SECRET) + flags)])
    assert started.returncode == 0, started.stderr


def _ansible(host: ContainerdHost, module: str, arguments: t.List[str]) -> str:
    environment = {
        "ANSIBLE_COLLECTIONS_PATH": collections_root(),
        "ANSIBLE_LOG_PATH": "/run/ansible.log",
        "ANSIBLE_LOCAL_TEMP": "/run/ansible-local",
        "ANSIBLE_REMOTE_TEMP": "/run/ansible-remote",
        "ANSIBLE_DISPLAY_ARGS_TO_STDOUT": "true",
    }
    inventory = "n1, -e ansible_connection=local -e ansible_python_interpreter=/usr/bin/python3".split()
    done = host.run([str(_ANSIBLE), "-i", *inventory, "n1", "-m", module, "-vvvvv", *arguments], env=environment, timeout=120)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr + host.path("/run/ansible.log").read_text(errors="replace")


@pytest.mark.parametrize("line", sorted(_CRI))
def test_no_planted_credential_leaves_the_node(line: str) -> None:
    with ContainerdHost(line, name="n1") as host:
        _plant(host, line)
        assert host.start(env={"HTTPS_PROXY": "http://joe:%s@proxy.example:3128" % SECRET}), host.log()
        _start_kubelet(host)
        facts = _ansible(host, "kubenode.runtime_gate.containerd_runtime_facts", [])
        facts += _ansible(host, "kubenode.runtime_gate.containerd_runtime_facts", ["--check"])
        written = _ansible(host, "kubenode.runtime_gate.runtime_capture", ["-a", "dest=/run/captures"])
        files = [file for file in host.path("/run/captures").rglob("*") if file.is_file()]
        contents = "".join(file.read_text(errors="replace") for file in files)
        handlers = sorted(host.handlers())
    assert handlers == ["runc", "token"]
    for what in (facts, written, contents):
        assert SECRET not in what
        assert "hunter2" not in what and "Zx9q" not in what
    assert '"default_handler": "runc"' in facts and '"token": {' in facts
    assert '"evidence": "loaded"' in facts
    assert "__RUNTIME_GATE_MASKED_1__" in contents and "runtimes.token" in contents
    assert len(files) > len(PLANTED_TOML)
