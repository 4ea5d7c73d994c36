# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rollout section of README.md, followed by a reader: the declaration and the commands as they stand there.

What this proves: from the file of a distribution's package to a gated node and back, with nothing but what the page says. The daemon is
real; a command stands in for the service manager.
"""

from __future__ import annotations

import re
import textwrap
import typing as t

import pytest
import yaml

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import desired
from tests.integration.ansible_runs import ROOT, _recap
from tests.integration.real_rollout import RealNode
from tests.matrix.product import RESTART
from tests.matrix.trees import ROOTS

SECTION = (ROOT / "README.md").read_text().partition("## Rollout")[2].partition("\n## ")[0]
PAGE = (ROOT / "docs/rollout.md").read_text()
READER = "/run/reader"
#: The types of the static release's handlers, whose shim is named by its path.
SHIMS_OF_KATA = {f"containerd-shim-{name}-v2" for name in desired.PRESETS if name.startswith("kata-")}
INVENTORY = f"""
all:
  vars:
    ansible_connection: local
    ansible_python_interpreter: /usr/bin/python3
    runtime_gate_manifests: [{READER}/cluster.yml]
    runtime_gate_restart_command: [{RESTART}]
  children:
    gpu:
      hosts:
        n1:
"""
CLUSTER = """
{apiVersion: v1, kind: Node, metadata: {name: n1}}
---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: nvidia}, handler: nvidia}
---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: gvisor}, handler: runsc}
---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: mine}, handler: mine}
"""
#: "It installs no runtime": what the reader has installed.
RUNTIMES = ("/usr/bin/nvidia-container-runtime", "/usr/bin/containerd-shim-runsc-v1", "/usr/bin/runc")


def commands(text: str) -> t.List[str]:
    """The first block of commands."""
    return re.search(r"```sh\n(.*?)```", text, re.DOTALL).group(1).splitlines()  # type: ignore[union-attr]


def declaration() -> str:
    """The file of group variables that the section shows."""
    lines = SECTION.partition("    # group_vars/gpu.yml\n")[2].partition("\n\n")[0]
    return textwrap.dedent(lines) + "\n"


@pytest.fixture
def node() -> t.Iterator[RealNode]:
    """A node with the file of Debian's package, and a reader's directory beside the checkout's .venv."""
    root = next(root for root in ROOTS if root.name == "distribution")
    made = RealNode("2.1", "", start=False)
    for path, text in root.make(made.host, "2.1", False).files.items():
        made.host.write(path, text)
    for program in RUNTIMES:
        made.host.install_script(program, "#!/bin/sh\nexit 0\n")
    made.host.write_tree(
        {
            f"{READER}/hosts.yml": INVENTORY,
            f"{READER}/cluster.yml": CLUSTER,
            f"{READER}/group_vars/gpu.yml": declaration(),
            f"{READER}/.venv": f"-> {ROOT}/.venv",
        }
    )
    made.product.start()
    yield made
    made.close()


def follow(node: RealNode, command: str) -> t.Tuple[int, str, t.Dict[str, int]]:
    environment = {"ANSIBLE_LOCAL_TEMP": f"{READER}/local", "ANSIBLE_REMOTE_TEMP": f"{READER}/remote", "ANSIBLE_NOCOLOR": "1", "COLUMNS": "160"}
    done = node.host.run(["/bin/bash", "-c", command], env=environment, timeout=600, directory=READER)
    return done.returncode, done.stdout + done.stderr, _recap(done.stdout).get("n1", {})


def test_from_the_package_to_a_gated_node_and_back(node: RealNode) -> None:
    check, site, remove = commands(SECTION)
    first = node.checksums()
    status, text, recap = follow(node, check)
    assert status == 0 and recap["changed"] == 1, text
    assert "+handler runsc\n+  runtime_type: io.containerd.runsc.v1" in text and "3 pending; none fails" in text, text
    assert node.checksums() == first and node.product.restarts() == 1

    status, text, recap = follow(node, site)
    assert status == 0 and recap["changed"] == 1 and "3 ok; none fails" in text, text
    handlers, default = node.product.loaded()
    assert sorted(handlers) == ["mine", "nvidia", "runc", "runsc"] and default == "runc"
    assert handlers["nvidia"]["options"]["BinaryName"] == "/usr/bin/nvidia-container-runtime"

    status, text, recap = follow(node, remove)
    assert status == 0 and recap["changed"] == 1, text
    assert sorted(node.product.loaded()[0]) == ["runc"]
    assert {path: facts for path, facts in node.checksums().items() if not path.startswith("/var/lib/runtime-gate")} == first


def test_the_page_has_the_same_commands() -> None:
    assert commands(PAGE) == commands(SECTION) and len(commands(SECTION)) == 3
    shown = re.search(r"```yaml\n# group_vars/gpu.yml\n(.*?)```", PAGE, re.DOTALL)
    assert shown and shown.group(1).startswith(declaration())


def test_the_page_has_every_preset_and_good_examples() -> None:
    table = PAGE.partition("| preset |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([a-z-]+)`", "".join(row.split("|")[1] for row in table.splitlines()[2:]))) == set(desired.PRESETS)
    needed = {word for row in table.splitlines()[2:] for word in re.findall(r"`([^`]+)`", row.split("|")[3])}
    presets = {name: {"preset": name} for name in desired.PRESETS}
    assert needed == set(desired.executables({"handlers": presets})) - {"containerd-shim-runc-v2"} - SHIMS_OF_KATA
    for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL):
        desired.parse({"handlers": yaml.safe_load(block).get("runtime_gate_handlers", {})})
