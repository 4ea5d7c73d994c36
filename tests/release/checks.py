# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checks of `make release-check`, in their order. Each returns what it has seen, or raises Failed with the reason."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import typing as t

import yaml

from tests.integration.ansible_runs import EXAMPLE, ROOT, environment
from tests.release import collection
from tests.release.changelog import release as make_changelog
from tests.release.tools import programs

WORK = ROOT / ".cache/release"
TESTS_BIN = ROOT / ".venv/bin"
NAME = "kubenode.runtime_gate"
#: What galaxy-importer is asked to look at, as Galaxy and Automation Hub do. ansible-lint is a check of its own here, where it has
#: the time that it needs; ansible-test is `make sanity`.
_IMPORTER = """[galaxy-importer]
RUN_ANSIBLE_DOC = True
RUN_ANSIBLE_LINT = False
RUN_ANSIBLE_TEST = False
RUN_FLAKE8 = False
CHECK_REQUIRED_TAGS = True
CHECK_CHANGELOG = True
"""
#: Ends with 0 only where there is no network: no interface but loopback, and that one is down. It sends nothing anywhere.
NO_NETWORK = """
import errno, socket, sys
others = [name for _index, name in socket.if_nameindex() if name != "lo"]
try:
    socket.create_connection(("127.0.0.1", 9), timeout=2)
    said = "loopback answers"
except OSError as error:
    said = None if error.errno == errno.ENETUNREACH else f"loopback is up ({error})"
sys.exit(f"interfaces: {others}" if others else said)
"""


class Failed(Exception):
    """A check found something; the message says what."""


class Release:
    """What is made on the way. Each part is made when it is first asked for."""

    @functools.cached_property
    def tree(self) -> pathlib.Path:
        """A copy of the checkout, with the changelog that the release will have."""
        shutil.rmtree(WORK / "tree", ignore_errors=True)
        tree = collection.checkout(WORK / "tree/ansible_collections/kubenode/runtime_gate")
        # runtimeclass_crosscheck documents its connection options by a fragment of this collection's.
        neighbour = tree.parents[1] / "kubernetes/core"
        neighbour.parent.mkdir(exist_ok=True)
        neighbour.symlink_to(kubernetes_core())
        try:
            make_changelog(tree)
        except RuntimeError as error:
            raise Failed(str(error)) from error
        return tree

    @functools.cached_property
    def tarball(self) -> pathlib.Path:
        dist = WORK / "dist"
        shutil.rmtree(dist, ignore_errors=True)
        run([TESTS_BIN / "ansible-galaxy", "collection", "build", "--output-path", dist], cwd=self.tree)
        (built,) = dist.glob("*.tar.gz")
        return built

    @functools.cached_property
    def installed(self) -> pathlib.Path:
        """The directory of collections into which files alone were installed, with everything that could be asked out of reach."""
        files, to = WORK / "files", WORK / "installed"
        for folder in (files, to):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        ours = shutil.copy(self.tarball, files)
        theirs = collection.packed(kubernetes_core(), files)
        wanted = {"collections": [{"name": f"./{pathlib.Path(path).name}", "type": "file"} for path in (theirs, ours)]}
        (files / "requirements.yml").write_text(yaml.safe_dump(wanted), encoding="utf-8")
        run([programs() / "ansible-galaxy", "collection", "install", "--offline", "-r", "requirements.yml", "-p", to], cwd=files, network=False)
        return to


def kubernetes_core() -> pathlib.Path:
    """The collection that the package ansible has brought."""
    return next((ROOT / ".venv/lib").glob("python3*/site-packages/ansible_collections/kubernetes/core"))


def run(command: t.Sequence[t.Any], cwd: pathlib.Path = ROOT, network: bool = True, statuses: t.Collection[int] = (0,), **extra: str) -> str:
    """What a command prints. Raises Failed with the end of it where its exit code is none of these.

    :param network: False: in a namespace of its own, in which there is none.
    """
    words = [str(word) for word in command]
    if not network:
        # Root needs no user namespace for it, and in some containers gets none.
        words = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"]), "--", *words]
    known = environment(ANSIBLE_LOCAL_TEMP=str(WORK / "tmp"), ANSIBLE_NOCOLOR="1", NO_COLOR="1", **extra)
    known["PATH"] = os.pathsep.join([str(programs()), str(TESTS_BIN), known["PATH"]])
    done = subprocess.run(words, cwd=cwd, env=known, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1200, check=False)
    if done.returncode not in statuses:
        raise Failed(f"{pathlib.Path(str(command[0])).name} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def _changelog(release: Release) -> str:
    run([TESTS_BIN / "antsibull-changelog", "lint"])
    data = yaml.safe_load((release.tree / "changelogs/changelog.yaml").read_text(encoding="utf-8"))
    version = galaxy()["version"]
    fragments = data["releases"].get(version, {}).get("fragments", [])
    left = sorted((release.tree / "changelogs/fragments").glob("*.yml"))
    if not fragments or left:
        raise Failed(f"release {version} has {len(fragments)} fragments, and {len(left)} are left")
    return f"CHANGELOG.rst and .md of {version}, from {len(fragments)} fragments, which stay in the checkout"


def _tarball(release: Release) -> str:
    wrong = collection.wrong_in(release.tarball)
    if wrong:
        raise Failed("; ".join(wrong))
    with tarfile.open(release.tarball) as built:
        files = sum(member.isfile() for member in built.getmembers())
    return f"{release.tarball.relative_to(ROOT)}, {files} files, {release.tarball.stat().st_size // 1024} KiB, nothing in it but what is for a release"


def _air_gap(release: Release) -> str:
    run([sys.executable, "-c", NO_NETWORK], network=False)
    said = run([programs() / "ansible-galaxy", "collection", "verify", "--offline", "-p", release.installed, NAME], network=False)
    if "matches checksums" not in said and "Successfully verified" not in said:
        raise Failed(f"ansible-galaxy collection verify does not say that the files are right: {said[-500:]}")
    listed = json.loads(run([programs() / "ansible-galaxy", "collection", "list", "--format", "json", "-p", release.installed], network=False))
    names = sorted(listed[str(release.installed / "ansible_collections")])
    if names != [NAME, "kubernetes.core"]:
        raise Failed(f"installed are {names}")
    return "installed from files with kubernetes.core, without a network, and verified"


def _runs(release: Release) -> str:
    """The installed copy judges the example cluster, with ansible-core alone and without a network."""
    report = WORK / "report.json"
    report.unlink(missing_ok=True)
    collections = {"ANSIBLE_COLLECTIONS_PATH": str(release.installed)}
    audit = [programs() / "ansible-playbook", "-i", EXAMPLE / "inventory.yml", f"{NAME}.audit", "-e", f"runtime_gate_report_path={report}"]
    said = run(audit, cwd=WORK, network=False, statuses=(2,), **collections)
    broken = [line.split()[0] for line in (EXAMPLE / "broken-on-purpose.txt").read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    failing = json.loads(report.read_text(encoding="utf-8"))["failing_nodes"] if report.is_file() else None
    if failing != sorted(broken):
        raise Failed(f"failing are {failing}, broken on purpose are {sorted(broken)}: {said[-1000:]}")
    shown = run([programs() / "ansible-doc", "-t", "role", f"{NAME}.gate"], network=False, **collections)
    if str(release.installed) not in shown and "runtime_gate_policy" not in shown:
        raise Failed("ansible-doc does not show the role gate of the installed copy")
    return f"the installed copy finds {', '.join(failing)}, exactly those that are broken on purpose"


def _docs(release: Release) -> str:
    command = ["lint-collection-docs", "--plugin-docs", "--skip-rstcheck", "--validate-collection-refs", "self", "--disallow-unknown-collection-refs"]
    run([programs() / "antsibull-docs", *command, release.tree], network=False, ANSIBLE_COLLECTIONS_PATH=str(release.tree.parents[2]))
    return "antsibull-docs lint-collection-docs with the documentation of every plugin and role"


def _lint(release: Release) -> str:
    """What is released, as it is installed; tests and examples are linted by `make lint`."""
    tree = WORK / "unpacked/ansible_collections/kubenode/runtime_gate"
    shutil.rmtree(WORK / "unpacked", ignore_errors=True)
    tree.mkdir(parents=True)
    with tarfile.open(release.tarball) as built:
        built.extractall(tree, filter="data")
    for name in ("galaxy.yml", ".ansible-lint", ".yamllint"):
        shutil.copy(ROOT / name, tree)
    home = {"ANSIBLE_COLLECTIONS_PATH": str(release.installed)}
    said = run([TESTS_BIN / "ansible-lint", "--offline", "--profile", "production"], cwd=tree, network=False, **home)
    passed = re.search(r"Passed: .*", said)
    if not passed:
        raise Failed(f"ansible-lint does not say that it passed: {said[-1000:]}")
    return passed[0]


def _importer(release: Release) -> str:
    config = WORK / "importer.cfg"
    config.write_text(_IMPORTER, encoding="utf-8")
    # It sets the path of collections itself; what we extend the documentation of is looked for beside Python's own packages too.
    neighbour = WORK / "neighbour/ansible_collections/kubernetes/core"
    neighbour.parent.mkdir(parents=True, exist_ok=True)
    neighbour.unlink(missing_ok=True)
    neighbour.symlink_to(kubernetes_core())
    home = {"GALAXY_IMPORTER_CONFIG": str(config), "PYTHONPATH": str(WORK / "neighbour")}
    said = run([programs() / "python", "-m", "galaxy_importer.main", release.tarball], cwd=WORK, network=False, **home)
    told = [line for line in said.splitlines() if re.match(r"(?:WARNING|ERROR)", line)]
    if told or "Importer processing completed successfully" not in said:
        raise Failed("galaxy-importer: " + ("\n".join(told) or said[-2000:]))
    return "galaxy-importer takes it without a warning"


def _execution_environment(release: Release) -> str:
    context = WORK / "context"
    shutil.rmtree(context, ignore_errors=True)
    run([programs() / "ansible-builder", "create", "-f", release.tree / "execution-environment.yml", "-c", context], network=False)
    if not (context / "Containerfile").is_file():
        raise Failed("ansible-builder create made no Containerfile")
    asked = yaml.safe_load((context / "_build/requirements.yml").read_text(encoding="utf-8"))
    names = {entry["name"] for entry in asked["collections"]}
    needs = yaml.safe_load(run([programs() / "ansible-builder", "introspect", "--sanitize", release.installed], network=False))
    python = {re.split(r"[^A-Za-z0-9_.-]", str(line))[0] for line in needs["python"]}
    if not {NAME, "kubernetes.core"} <= names or not {"kubernetes", "tomlkit"} <= python:
        raise Failed(f"the environment would have the collections {sorted(names)} and the packages {sorted(python)}")
    return f"ansible-builder makes the build context; Python packages by the collections' metadata: {', '.join(sorted(python))}"


def galaxy() -> dict[str, t.Any]:
    return yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))


CHECKS: dict[str, t.Callable[[Release], str]] = {
    "changelog": _changelog,
    "tarball": _tarball,
    "air-gap": _air_gap,
    "installed-copy": _runs,
    "documentation": _docs,
    "ansible-lint": _lint,
    "galaxy-importer": _importer,
    "execution-environment": _execution_environment,
}
