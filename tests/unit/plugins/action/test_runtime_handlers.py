# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""runtime_handlers: its documentation says what its argument spec takes, the role hands every option on, the examples are good."""

from __future__ import annotations

import pathlib
import typing as t

import yaml

from ansible_collections.kubenode.runtime_gate.plugins.doc_fragments.collect import ModuleDocFragment
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.handlers_options import HANDLERS_OPTIONS, REQUEST_KEY
from ansible_collections.kubenode.runtime_gate.plugins.modules import runtime_handlers as module
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import desired

ROOT = pathlib.Path(__file__).resolve().parents[4]
NAME = "kubenode.runtime_gate.runtime_handlers"
#: Options of the module that the role leaves at what they find out by themselves.
_LEFT = {"crictl", "containerd", "crio", "config_dir"}


def _options() -> t.Dict[str, t.Any]:
    own = yaml.safe_load(module.DOCUMENTATION)["options"]
    fragments = (ModuleDocFragment.DOCUMENTATION, ModuleDocFragment.CONTAINERD, ModuleDocFragment.CRIO)
    return {**{name: text for fragment in fragments for name, text in yaml.safe_load(fragment)["options"].items()}, **own}


def test_every_option_is_documented_as_it_is() -> None:
    documented = _options()
    assert set(documented) == {*HANDLERS_OPTIONS, REQUEST_KEY}
    for name, spec in HANDLERS_OPTIONS.items():
        for key in ("type", "default", "choices", "elements"):
            assert documented[name].get(key) == spec.get(key), (name, key)


def test_every_preset_is_documented() -> None:
    text = " ".join(_options()["handlers"]["description"])
    assert all("V(%s)" % preset in text for preset in desired.PRESETS)


def test_the_examples_are_good_declarations() -> None:
    for task in yaml.safe_load(module.EXAMPLES):
        desired.parse(task[NAME])
        assert set(task[NAME]) <= set(HANDLERS_OPTIONS) and task["become"] is True


def test_the_role_hands_every_option_on() -> None:
    tasks = yaml.safe_load((ROOT / "roles/containerd/tasks/change.yml").read_text(encoding="utf-8"))
    (call,) = [task[NAME] for task in tasks if NAME in task]
    assert set(call) == set(HANDLERS_OPTIONS) - _LEFT


def test_defaults_and_argument_spec_of_the_role_agree() -> None:
    defaults = yaml.safe_load((ROOT / "roles/containerd/defaults/main.yml").read_text(encoding="utf-8"))
    specs = yaml.safe_load((ROOT / "roles/containerd/meta/argument_specs.yml").read_text(encoding="utf-8"))["argument_specs"]
    for entry in ("main", "remove"):
        assert {name: spec["default"] for name, spec in specs[entry]["options"].items()} == defaults
