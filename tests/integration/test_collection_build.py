"""The collection is built from a checkout in which somebody has worked: nothing of that work gets into it, nor into git."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import tarfile

from tests.integration.ansible_runs import ROOT, environment

GALAXY = ROOT / ".venv/bin/ansible-galaxy"
#: What the commands of README.md and the tools leave behind.
DIRT = (
    ".ansible/tmp/x",
    ".cache/tool",
    ".coverage",
    ".coverage.host.1",
    ".hypothesis/examples/x",
    ".pytest_cache/x",
    ".venv/bin/python",
    "captures/worker-1/node.yml",
    "dist/kubenode-runtime_gate-0.1.0.tar.gz",
    "gate-report-41.json",
    "gate-report.json",
    "handlers.txt",
    "hosts.yml",
    "installed/ansible_collections/kubenode/runtime_gate/README.md",
    "kubenode-runtime_gate-0.1.0.tar.gz",
    "plugins/modules/__pycache__/x.pyc",
    "report.json",
    "tests/output/junit/x.xml",
)


def checkout(to: pathlib.Path) -> pathlib.Path:
    """A copy of what git knows here, but for the recordings of the tests."""
    asked = ["git", "-C", str(ROOT), "ls-files", "-z", "--", ".", ":!tests/cases"]
    for name in filter(None, subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)
    return to


def build(tree: pathlib.Path) -> set[str]:
    """The names in the collection that README.md's command builds."""
    command = [str(GALAXY), "collection", "build", "--force", "--output-path", "dist"]
    subprocess.run(command, cwd=tree, env=environment(), check=True, capture_output=True, timeout=120)
    with tarfile.open(tree / "dist/kubenode-runtime_gate-0.1.0.tar.gz") as built:
        return set(built.getnames())


def test_a_checkout_with_work_in_it_builds_what_a_clean_one_builds(tmp_path):
    tree = checkout(tmp_path)
    clean = build(tree)
    assert {"README.md", "plugins/modules/containerd_runtime_facts.py", "roles/gate/files/rc-crosscheck.sh"} <= clean
    for name in DIRT:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("x")
    assert build(tree) - clean == set()
    assert build(tree) == clean  # the first one's tarball lies in dist now
    subprocess.run(["git", "init", "--quiet"], cwd=tree, check=True)
    ignored = subprocess.run(["git", "check-ignore", *DIRT], cwd=tree, capture_output=True, text=True, check=False).stdout.split()
    assert sorted(ignored) == sorted(DIRT)
