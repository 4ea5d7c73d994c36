"""Every playbook on the oldest and the newest ansible-core, with nothing installed but ansible-core.

2.19 with Python 3.11 is what .venv has and every other test uses. 2.18 runs on the same Python, the newest on the Python
3.13 of the test bed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.integration.ansible_runs import EXAMPLE, ROOT, environment
from tests.integration.test_gate import ALL, BROKEN
from tests.testbed.tools import tool

CORES = {"2.18.19": (3, 11), "2.21.5": (3, 13)}
#: Pinned like the rest, but for what an older ansible-core wants older.
PINS = [line for line in (ROOT / "tests/constraints.txt").read_text().splitlines() if not line.startswith(("ansible", "resolvelib"))]


class Core:
    """One version of ansible-core in a directory of its own, beside a link to this checkout."""

    def __init__(self, version: str) -> None:
        self.version = version
        wanted = CORES[version]
        self.python = sys.executable if sys.version_info[:2] == wanted else str(tool("python-%d.%d" % wanted))
        self.packages = ROOT / f".cache/cores/{version}-py{wanted[0]}.{wanted[1]}"
        if not (self.packages / "ready").exists():
            self._install(wanted)

    def _install(self, wanted: tuple[int, int]) -> None:
        self.packages.mkdir(parents=True, exist_ok=True)
        pins = self.packages / "pins.txt"
        pins.write_text("\n".join(PINS))
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(self.packages), "--only-binary", ":all:"]
        # pip asks its own Python, not the one named, whether a package may be installed.
        command += ["--python-version", "%d.%d" % wanted, "--ignore-requires-python", "-c", str(pins), f"ansible-core=={self.version}"]
        subprocess.run(command, check=True, timeout=600)
        link = self.packages / "ansible_collections/kubenode/runtime_gate"
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(ROOT)
        (self.packages / "ready").touch()

    def run(self, program: str, *arguments: str | os.PathLike[str]) -> tuple[int, str]:
        """``ansible-<program>`` of this version: its exit code and what it printed."""
        known = environment(PYTHONPATH=str(self.packages), PYTHONDONTWRITEBYTECODE="1")
        command = [self.python, "-m", "ansible", program, *(str(argument) for argument in arguments)]
        done = subprocess.run(command, env=known, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False)
        assert "Traceback" not in done.stdout, done.stdout
        # 2.18 announces that ansible-doc will not show the attributes of a role; the later ones still do.
        assert "DEPRECATION WARNING" not in done.stdout or program == "doc", done.stdout
        return done.returncode, done.stdout


@pytest.fixture(scope="module", params=list(CORES))
def core(request) -> Core:
    return Core(request.param)


def test_it_is_this_version(core):
    status, text = core.run("playbook", "--version")
    assert status == 0 and f"core {core.version}]" in text


@pytest.mark.parametrize("arguments", [["audit"], ["site"], ["site", "--check"]])
def test_the_gate_gives_the_same_answer(core, tmp_path, arguments):
    report = tmp_path / "report.json"
    name, *rest = arguments
    pace = {"runtime_gate_serial": "100%", "runtime_gate_max_fail_percentage": 100}
    options = json.dumps({**pace, "runtime_gate_report_path": str(report)})
    status, text = core.run("playbook", "-i", EXAMPLE / "inventory.yml", f"kubenode.runtime_gate.{name}", "-e", options, *rest)
    made = json.loads(report.read_text())
    assert status == 2 and set(made["failing_nodes"]) == BROKEN and {entry["host"] for entry in made["hosts"]} == ALL, text


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "playbooks").glob("*.yml")))
def test_hosts_that_nobody_has_are_an_error(core, name):
    if "runtime_gate_hosts" not in (ROOT / f"playbooks/{name}.yml").read_text():
        return
    inventory = ("-i", EXAMPLE / "inventory.yml", f"kubenode.runtime_gate.{name}", "--list-hosts")
    status, text = core.run("playbook", *inventory, "-e", "runtime_gate_hosts=typo")
    assert status != 0 and "no host matches 'typo'" in text and f"which has {len(ALL)} hosts" in text, text
    status, text = core.run("playbook", *inventory, "-e", f"runtime_gate_hosts={sorted(ALL)[0]}")
    assert status == 0 and sorted(ALL)[0] in text, text


def test_the_module_reads_a_host_and_the_capture_is_judged_alike(core, tmp_path):
    python = tmp_path / "python3"  # the node's own: without what tells the controller's Python where its library is
    python.write_text('#!/bin/sh\nunset PYTHONHOME PYTHONPATH LD_LIBRARY_PATH\nexec /usr/bin/python3 "$@"\n')
    python.chmod(0o755)
    options = {
        "ansible_connection": "local",
        "ansible_python_interpreter": str(python),
        "runtime_gate_become": False,
        "runtime_gate_manifests": [str(EXAMPLE / "manifests")],
        "runtime_gate_capture_dest": str(tmp_path / "captures"),
        "runtime_gate_node_name": "debian-1",
    }
    host = ("-i", "h1,", "-e", json.dumps(options))
    status, text = core.run("playbook", *host, "kubenode.runtime_gate.capture")
    assert status == 0 and (tmp_path / "captures/h1/node.yml").exists(), text
    answers = []
    for more in ({}, {"runtime_gate_captures": str(tmp_path / "captures")}):
        report = tmp_path / "report.json"
        core.run("playbook", *host, "kubenode.runtime_gate.audit", "-e", json.dumps({**more, "runtime_gate_report_path": str(report)}))
        (entry,) = json.loads(report.read_text())["hosts"]
        answers.append((entry["cells"], entry["fails"], entry["engine"], entry["handlers"]))
    assert answers[0] == answers[1] and answers[0][0]["runc"] in ("missing", "unknown", "ok", "unusable")


@pytest.mark.parametrize("name", ["site", "remove"])
def test_what_another_host_declares_is_read_and_refused_before_a_node_is_touched(core, tmp_path, name):
    inventory = tmp_path / "hosts.yml"
    declared = {"runtime_gate_runtimeclasses": "yes", "runtime_gate_handlers": {"Wrong_Name": "{{ {'preset': the_preset} }}"}, "the_preset": "nvidia"}
    # The gate's inputs, which are tested first, are in order.
    shared = {"runtime_gate_manifests": [str(EXAMPLE / "manifests")]}
    inventory.write_text(json.dumps({"all": {"vars": shared, "hosts": {"w-1": None, "w-2": declared}}}))
    status, text = core.run("playbook", "-i", inventory, f"kubenode.runtime_gate.{name}")
    assert status == 2 and "host w-2: runtime_gate_handlers has the handler 'Wrong_Name'" in text and "containerd :" not in text, text


def test_publishing_and_giving_back_render_and_fail_in_one_sentence(core):
    """Nobody answers at that address, and where nothing but ansible-core is installed, nobody could ask."""
    shared = {"runtime_gate_cluster": {"host": "http://127.0.0.1:9", "api_key": "t"}, "runtime_gate_manifests": [str(EXAMPLE / "manifests")]}
    for cordon, said in ((True, ""), (False, "not published: ")):
        options = {**shared, "runtime_gate_captures": str(EXAMPLE / "captures"), "runtime_gate_cordon": cordon}
        status, text = core.run("playbook", "-i", "debian-1,", "kubenode.runtime_gate.publish", "-e", json.dumps(options))
        (line,) = (line for line in text.splitlines() if line.startswith("fatal: [debian-1]"))
        assert status == 2 and f'"msg": "{said}' in line and ("cannot be reached" in line or "install them" in line), text


def test_its_documentation_renders(core):
    for name in ("containerd_runtime_facts", "runtime_capture", "gate_judge", "gate_verdict"):
        status, text = core.run("doc", "-t", "module", f"kubenode.runtime_gate.{name}")
        assert status == 0 and name in text
    status, text = core.run("doc", "-t", "role", "kubenode.runtime_gate.gate")
    assert status == 0 and "runtime_gate_policy" in text


def test_every_module_renders_in_the_environment():
    """.venv has kubernetes.core, whose fragment runtimeclass_crosscheck takes over."""
    modules = sorted(path.stem for path in (ROOT / "plugins/modules").glob("*.py"))
    for name in modules:
        command = [ROOT / ".venv/bin/ansible-doc", f"kubenode.runtime_gate.{name}"]
        done = subprocess.run(command, cwd="/", env=environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0 and name in done.stdout, done.stderr
    assert len(modules) >= 5
