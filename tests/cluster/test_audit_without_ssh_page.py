# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every command of docs/audit-without-ssh.md, run as it stands there against a real API server; and what the page claims about them."""

from __future__ import annotations

import pathlib
import re
import subprocess
import typing as t

import pytest
import yaml

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.cluster_reader import EVENT_REASONS, WORKLOAD_LISTS
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok import node_object
from tests.cluster.pods import runtime_class
from tests.integration.ansible_runs import ROOT, environment
from tests.testbed.tools import tool

PAGE = (ROOT / "docs/audit-without-ssh.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module", name="reader")
def _reader(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[tuple[pathlib.Path, dict[str, str]]]:
    """A reader's checkout and environment, with kubectl and a kubeconfig."""
    home = tmp_path_factory.mktemp("reader")
    for name in (".venv", "examples"):
        (home / name).symlink_to(ROOT / name)
    (home / "bin").mkdir()
    (home / "bin" / "kubectl").symlink_to(tool("kubectl"))
    (home / ".kube").mkdir()
    with ControlPlane() as cluster:
        cluster.create([runtime_class("plain", "runc"), node_object({"name": "a", "runtimeHandlers": ["", "runc"]})])
        (home / ".kube" / "config").write_text(cluster.kubeconfig.read_text(encoding="utf-8"), encoding="utf-8")
        known = environment(HOME=str(home))
        yield home, {**known, "PATH": f"{home / 'bin'}:{known['PATH']}"}


def run(reader: tuple[pathlib.Path, dict[str, str]], script: str) -> subprocess.CompletedProcess[str]:
    home, known = reader
    return subprocess.run(["/bin/bash", "-ec", script], cwd=home, env=known, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("script", BLOCKS)
def test_the_commands_end_with_0(reader: tuple[pathlib.Path, dict[str, str]], script: str) -> None:
    done = run(reader, script)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert re.search(r"\d of \d (Nodes|pools) judged; .*none fails", done.stdout)


def test_a_pool_without_its_handler_fails(reader: tuple[pathlib.Path, dict[str, str]]) -> None:
    pools = yaml.safe_load((ROOT / "examples/pools.yml").read_text(encoding="utf-8"))
    pools["runtime_gate_pools"][0]["handlers"].remove("nvidia")
    (reader[0] / "worse.yml").write_text(yaml.safe_dump(pools), encoding="utf-8")
    done = run(reader, BLOCKS[-1].replace("@examples/pools.yml", "@worse.yml"))
    assert done.returncode == 2 and "1 fail: gpu" in done.stdout


def test_what_the_page_says_of_itself() -> None:
    assert len(BLOCKS) >= 5
    assert len(WORKLOAD_LISTS) + len(EVENT_REASONS) == 9 and "nine more lists" in PAGE
