# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The product on a test node: collect inside its namespaces, interpret outside, as the module and its action do."""

from __future__ import annotations

import json
import os
import sys
import time
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import interpret
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.fix_edits import apply_edits
from tests.testbed.host import ContainerdHost

_COLLECT = (
    "import json, sys\n"
    "from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.collect import collect\n"
    "print(json.dumps(collect(json.loads(sys.argv[1]))))\n"
)


def capture(host: ContainerdHost, config_path: t.Optional[str] = None, crictl: t.Optional[str] = None) -> t.Dict[str, t.Any]:
    """What the node half returns on this node."""
    options = {"engine": "containerd", "timeout": 5}
    if config_path:
        options["config_path"] = config_path
    if crictl:
        options["crictl"] = crictl
    done = host.run([sys.executable, "-c", _COLLECT, json.dumps(options)])
    if done.returncode:
        raise AssertionError("the collector failed: %s" % done.stderr)
    return json.loads(done.stdout)


def facts(host: ContainerdHost, config_path: t.Optional[str] = None) -> t.Dict[str, t.Any]:
    """The product's answer about this node."""
    return interpret(capture(host, config_path))


def write_later(host: ContainerdHost, path: str, text: str) -> None:
    """An edit after the daemon's start, with a modification time that says so to the second."""
    host.write(path, text)
    later = time.time() + 5
    os.utime(host.path(path), (later, later))


def apply(host: ContainerdHost, edits: t.List[t.Dict[str, t.Any]]) -> None:
    """Does a fault's edits in the node's files."""
    paths = {edit["file"] for edit in edits}
    texts = {path: host.path(path).read_text(encoding="utf-8") for path in paths if host.path(path).is_file()}
    for path, text in apply_edits(texts, edits).items():
        host.write(path, text)
