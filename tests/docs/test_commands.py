"""Each command that a page shows: known to work, and run on the example cluster where that changes nothing."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest
import yaml

from tests.docs.commands import BrokenCommandError, check, playbook_file
from tests.docs.pages import ROOT, Page, known_variables, pages
from tests.integration.ansible_runs import EXAMPLE, environment

PAGES = pages()
#: README's are run as they stand, on a node of the test bed: tests/integration/test_readme_commands.py.
COMMANDS = sorted({(page.name, line, command) for page in PAGES for command, line in page.commands()})
TEXTS = sorted({command for _page, _line, command in COMMANDS})
#: The playbooks that only read; with the example's recordings they touch no node.
READS = {"audit"}


def test_the_pages_have_commands() -> None:
    shown = {page for page, _line, _command in COMMANDS}
    assert {"README.md", "CONTRIBUTING.md", "docs/rollout.md", "docs/walkthrough.md", "docs/jobs/gpu.md", "roles/capture/README.md"} <= shown
    assert len(TEXTS) > 40


@pytest.mark.parametrize(("page", "line", "command"), COMMANDS, ids=[f"{page}:{line}" for page, line, _command in COMMANDS])
def test_the_command_can_work(page: str, line: int, command: str) -> None:
    check(command)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (".venv/bin/ansible-playbook kubenode.runtime_gate.audti", "no playbook"),
        (".venv/bin/ansible-playbook kubenode.runtime_gate.audit --no-such-option", "does not take these options"),
        (".venv/bin/ansible-playbook kubenode.runtime_gate.audit -e runtime_gate_reprot_path=x", "no role or playbook has a variable"),
        (".venv/bin/ansible-playbook kubenode.runtime_gate.audit -e @examples/none.yml", "there is no file"),
        (".venv/bin/ansible-playbook kubenode.runtime_gate.audit -e '{\"runtime_gate_source\": api}'", "no JSON"),
        (".venv/bin/ansible-playbook kubenode.runtime_gate.audit -e 'runtime_gate_kubectl=k3s kubectl'", "gives no variable a value"),
        (".venv/bin/ansible-doc -t role kubenode.runtime_gate.gaet", "there is no role"),
        (".venv/bin/ansible-playbok site.yml", "not in the environment"),
        ("make docks", "no target"),
        ("make gate INVENTROY=hosts.yml", "no variable"),
        (".venv/bin/python -m pytest tests/dosc", "there is no tests/dosc"),
        ("runtime-gate audit", "nothing is known"),
        ("cat hosts.yml && make docks", "no target"),
        ("make 'gate", "no shell reads it"),
    ],
)
def test_a_broken_command_is_told(command: str, why: str) -> None:
    with pytest.raises(BrokenCommandError, match=re.escape(why)):
        check(command)


def test_the_playbooks_are_ones() -> None:
    """ansible's own check of their syntax, against the example inventory."""
    names = sorted({name for text in TEXTS if "ansible-playbook" in text for name in re.findall(r" (kubenode\.runtime_gate\.\w+)", text)})
    assert len(names) > 5
    done = _ansible(["-i", str(EXAMPLE / "inventory.yml"), "--syntax-check", *(str(playbook_file(name)) for name in names)])
    assert done.returncode == 0 and done.stdout.count("playbook: ") == len(names), done.stdout


def _runs_here(command: str) -> bool:
    """It reads recordings or manifests that are in this repository, and asks nobody."""
    words = shlex.split(command)
    if not words[0].endswith("ansible-playbook") or not READS & {word.rpartition(".")[2] for word in words}:
        return False
    on_hosts = "-i" in words and "runtime_gate_kubectl" not in command and "failing_pods" not in command
    return on_hosts or "examples/" in command


@pytest.mark.parametrize("command", sorted({command for page, _line, command in COMMANDS if page != "README.md" and _runs_here(command)}))
def test_it_runs(tmp_path, command: str) -> None:
    """With two nodes of the example cluster in the place of the reader's hosts.yml."""
    recorded = {"runtime_gate_captures": str(EXAMPLE / "captures"), "runtime_gate_manifests": [str(EXAMPLE / "manifests")]}
    groups = {name: {"hosts": dict.fromkeys(("debian-1", "eks-1"))} for name in ("gpu", "k8s_cluster")}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"children": groups, "vars": recorded}}), encoding="utf-8")
    _first_run(tmp_path, command)
    told = command.replace("$PWD/captures", str(EXAMPLE / "captures")).replace("$PWD", str(tmp_path))
    told = told.replace("-i hosts.yml", f"-i {tmp_path}/hosts.yml")
    done = _ansible(shlex.split(told)[1:])
    # 2: one of the nodes is broken. Anything else is an error of the command.
    assert done.returncode in (0, 2) and "PLAY RECAP" in done.stdout and "NODE " in done.stdout, done.stdout[-3000:]
    for path in re.findall(r"runtime_gate_report_path=(\S+)", told):
        assert all((tmp_path / one.rpartition("/")[2]).is_file() for one in path.split(",")), done.stdout[-3000:]


def _first_run(tmp_path, command: str) -> None:
    """The earlier report that a command compares with."""
    earlier = re.search(r"runtime_gate_previous_report=\$PWD/(\S+)", command)
    if earlier:
        _ansible(["-i", f"{tmp_path}/hosts.yml", "kubenode.runtime_gate.audit", "-e", f"runtime_gate_report_path={tmp_path}/{earlier[1]}"])


def _ansible(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / ".venv/bin/ansible-playbook"), *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900, check=False)


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_variables_and_files_that_it_names_exist(page: Page) -> None:
    assert page.variables() <= known_variables(), page.variables() - known_variables()
    missing = [path for path in page.paths() if not any(ROOT.glob(path.rstrip("/")))]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_its_yaml_is_yaml(page: Page) -> None:
    for block in page.blocks:
        if block.language in ("yaml", "yml"):
            assert yaml.safe_load(block.text) is not None, f"{page.name}:{block.line}"
