# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""runtimeclass_crosscheck through ansible: its examples, its documentation against what it does, bad input."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import typing as t

import yaml
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC

from ansible_collections.kubenode.runtime_gate.plugins.action.runtimeclass_crosscheck import ARGUMENTS, LARGE
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crosscheck import crosscheck
from ansible_collections.kubenode.runtime_gate.plugins.modules import runtimeclass_crosscheck as module
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.crosscheck_inputs import AUTH_OPTIONS

NAME = "kubenode.runtime_gate.runtimeclass_crosscheck"
EXAMPLES = yaml.safe_load(module.EXAMPLES)
RENDERED = """apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: nvidia}
handler: nvidia
"""


def play(folder: pathlib.Path, tasks: list[dict[str, t.Any]], *arguments: str) -> tuple[int, str, dict[str, t.Any]]:
    """Exit code, everything printed, and every variable that the tasks registered."""
    answers = folder / "answers.json"
    names = [task["register"] for task in tasks if "register" in task]
    content = "{{ {" + ", ".join(f"'{name}': {name} | default(none)" for name in names) + "} | to_json }}"
    last = {"ansible.builtin.copy": {"content": content, "dest": str(answers), "mode": "0600"}, "check_mode": False}
    book = folder / "book.yml"
    body = {"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": [{"block": tasks, "always": [last]}]}
    book.write_text(json.dumps([body]), encoding="utf-8")
    (folder / "ansible.cfg").write_text("[defaults]\nlocalhost_warning = false\n[inventory]\ninventory_unparsed_warning = false\n", encoding="utf-8")
    command = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-e", f"ansible_python_interpreter={sys.executable}", str(book)]
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    text = done.stdout + done.stderr
    return done.returncode, text, json.loads(answers.read_text(encoding="utf-8")) if answers.exists() else {}


def test_the_examples_that_need_no_cluster(tmp_path: pathlib.Path) -> None:
    (tmp_path / "rendered").mkdir()
    (tmp_path / "rendered" / "classes.yml").write_text(RENDERED, encoding="utf-8")
    tasks = [task for task in EXAMPLES if "kubeconfig" not in task.get(NAME, {})]
    assert len(tasks) == 4
    for arguments in ((), ("--check",)):
        status, text, answers = play(tmp_path, tasks, *arguments)
        assert status == 0, text
        assert "WARNING" not in text
        assert answers["two_nodes"]["missing"] == {"w2": ["runsc"]}
        assert answers["two_nodes"]["lines"] == ["MISSING=runsc"]
        assert answers["two_nodes"]["changed"] is False
        assert answers["pools"]["ok"] is True


def test_the_example_that_fails_the_pipeline(tmp_path: pathlib.Path) -> None:
    (tmp_path / "rendered").mkdir()
    (tmp_path / "rendered" / "classes.yml").write_text(RENDERED.replace("handler: nvidia", "handler: nvidai"), encoding="utf-8")
    status, text, answers = play(tmp_path, [task for task in EXAMPLES if "kubeconfig" not in task.get(NAME, {})])
    assert status == 2
    assert answers["pools"]["missing_handlers"] == ["nvidai"]
    assert "handler nvidai is not loaded on pool-gpu" in text


BAD = (
    ({"runtime_classes": [], "nodes": [], "policies": {}}, ["no option policies", "policy"]),
    ({"runtime_classes": {"name": "x"}, "nodes": []}, ["runtime_classes is a mapping, not a list"]),
    ({"runtime_classes": [], "nodes": [], "verdicts": "some"}, ["verdicts", "notable, all"]),
    ({"runtime_classes": [], "nodes": [], "policy": {"unscope": "warn"}}, ["'unscope'", "unscoped"]),
    ({"runtime_classes": [], "nodes": [], "api_page_size": 0}, ["api_page_size is 0"]),
    ({"manifests": ["nowhere.yml"], "nodes": []}, ["nowhere.yml does not exist"]),
    ({"runtime_classes": [], "kubeconfig": "/nonexistent/config"}, ["no way to the API server"]),
)


def test_bad_input_fails_with_one_sentence(tmp_path: pathlib.Path) -> None:
    tasks = [{NAME: options, "register": f"bad_{index}", "ignore_errors": True} for index, (options, _words) in enumerate(BAD)]
    _status, text, answers = play(tmp_path, tasks)
    assert "Traceback" not in text
    for index, (_options, words) in enumerate(BAD):
        answer = answers[f"bad_{index}"]
        assert answer["failed"] is True
        assert "\n" not in answer["msg"]
        for word in words:
            assert word in answer["msg"]


def test_the_documentation_has_the_options_that_there_are() -> None:
    documented = yaml.safe_load(module.DOCUMENTATION)["options"]
    assert set(documented) == {*ARGUMENTS, *LARGE} - set(AUTH_OPTIONS)
    for name, kind in LARGE.items():
        assert documented[name]["type"] == kind.__name__
    for name, option in documented.items():
        if name in ARGUMENTS:
            for key in ("type", "default", "choices", "elements"):
                assert option.get(key) == ARGUMENTS[name].get(key), (name, key)


def test_the_connection_options_are_those_of_kubernetes_core() -> None:
    assert AUTH_OPTIONS == {name: dict(spec) for name, spec in AUTH_ARG_SPEC.items()}


def test_the_documentation_has_everything_that_is_returned() -> None:
    documented = yaml.safe_load(module.RETURN)
    seen = crosscheck([{"name": "c", "handler": "h"}], [{"name": "w1"}], verdicts="all")
    assert set(documented) == {*seen, "node_identity"}
    for key in ("verdicts", "classes", "nodes", "notices"):
        assert set(documented[key]["contains"]) == set(seen[key][0])
    assert set(documented["counts"]["contains"]) == set(seen["counts"])
    assert set(documented["blast_radius"]["contains"]) == set(seen["blast_radius"]["w1"])
