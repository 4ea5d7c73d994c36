# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The changelog that a release would have now, made in a copy: the fragments stay where they are until the release itself."""

from __future__ import annotations

import pathlib
import shutil
import subprocess

import yaml

from tests.integration.ansible_runs import ROOT, environment


def released(to: pathlib.Path) -> pathlib.Path:
    """CHANGELOG.md of all fragments for the version in galaxy.yml, below this directory, which is made anew.

    :raises RuntimeError: antsibull-changelog refuses the fragments; the message has its words.
    """
    shutil.rmtree(to, ignore_errors=True)
    tree = to / "ansible_collections/kubenode/runtime_gate"
    shutil.copytree(ROOT / "changelogs", tree / "changelogs")
    for name in ("plugins", "roles", "playbooks", "meta"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "galaxy.yml", tree)
    release(tree)
    return tree / "CHANGELOG.md"


def release(tree: pathlib.Path) -> None:
    """Turn the fragments of a copy of this collection into its changelog, as the maintainer does on the day of the release."""
    version = str(yaml.safe_load((tree / "galaxy.yml").read_text(encoding="utf-8"))["version"])
    command = [str(ROOT / ".venv/bin/antsibull-changelog"), "release", "--version", version, "--reload-plugins"]
    known = environment(ANSIBLE_COLLECTIONS_PATH=str(tree.parents[2]))
    known["PATH"] = f"{ROOT}/.venv/bin:{known['PATH']}"
    done = subprocess.run(command, cwd=tree, env=known, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False)
    if done.returncode or not (tree / "CHANGELOG.md").is_file():
        raise RuntimeError(f"antsibull-changelog release ended with {done.returncode}: {done.stdout[-3000:]}")
