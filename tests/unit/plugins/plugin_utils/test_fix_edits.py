# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Edits inside inline tables, and edits of files that were read as version 1: found by the differential test."""

from __future__ import annotations

import typing as t

import pytest
import tomllib

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import interpret
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.fix_edits import apply_edits
from tests.differential import rehearsal
from tests.differential.parts import Tree, Written
from tests.unit.rendering_nodes import CONFIG, capture

SHORT = """\
disabled_plugins = ["restart"]
[plugins.cri.containerd]
default_runtime_name = "kata"
[plugins.cri.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins.cri.containerd.runtimes.kata]
runtime_type = "io.containerd.kata.v2"
"""


def _edited(text: str, **edit: t.Any) -> str:
    return apply_edits({"f": text}, [{"op": "unset", "file": "f", "table": "t.options", "value": None, **edit}])["f"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{ a = 1, b = 2, c = 3 }", "{ b = 2, c = 3 }"),
        ("{a=1,b=[2,3]}", "{b=[2,3]}"),
        ("{ b = 2, a = 1 }", "{ b = 2 }"),
        ('{ b = "x,y", a = { c = 1, d = 2 }, e = 5 }', '{ b = "x,y", e = 5 }'),
        ("{ a = 1 }", "{ }"),
    ],
)
def test_a_key_of_an_inline_table_is_taken_out_with_its_comma(before: str, after: str) -> None:
    text = "[t]\noptions = %s  # c\nx = 1\n"
    made = _edited(text % before, key="a")
    assert made == text % after
    assert "a" not in tomllib.loads(made)["t"]["options"]


def test_a_key_that_is_no_inline_tables_goes_with_its_line() -> None:
    assert _edited("[t.options]\na = 1  # c\nb = 2\n", key="a") == "[t.options]\nb = 2\n"


def test_an_unknown_operation_is_an_error() -> None:
    with pytest.raises(RuntimeGateError, match="unknown"):
        _edited("", op="rub out", key="a")


def _facts(text: str, line: str) -> dict[str, t.Any]:
    """Of a daemon that runs with this file."""
    return rehearsal.facts(Tree([Written(CONFIG, None, "", text=text)]), line)


def _mended(text: str, line: str) -> tuple[dict[str, t.Any], str]:
    edits = [edit for fault in _facts(text, line)["faults"] for edit in fault["fix_edits"]]
    made = apply_edits({CONFIG: text}, edits)[CONFIG]
    return _facts(made, line), made


@pytest.mark.parametrize("line", ["2.1", "1.7"])
def test_a_version_1_file_gets_its_new_names_whole(line: str) -> None:
    """On 2.1 they are needed now (4), on 1.7 they are foreseen (58): what is beside the handlers goes along, and both releases load it."""
    facts, text = _mended(SHORT, line)
    assert [fault["id"] for fault in facts["faults"] if fault["severity"] != "info" or fault["id"] == 58] == []
    assert facts["layers"]["next"]["handlers"] == ["kata", "runc"]
    assert facts["layers"]["next"]["default_handler"] == "kata"
    tree = tomllib.loads(text)
    assert tree["version"] == 2 and list(tree["plugins"]) == ["io.containerd.grpc.v1.cri"]
    assert all("." in name for name in tree["disabled_plugins"])


def test_a_key_that_is_nearly_one_that_stands_there_too_is_only_taken_out() -> None:
    text = 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.kata]\nruntime_type = "io.containerd.kata.v2"\nruntimetype = "x"\n'
    _after, made = _mended(text, "2.1")
    table = tomllib.loads(made)["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]["runtimes"]["kata"]
    assert table == {"runtime_type": "io.containerd.kata.v2"}


def test_a_pattern_is_not_taken_out_for_one_dangling_link() -> None:
    """The other files that it finds would be lost; removing the link is for a person."""
    text = 'version = 3\nimports = ["/etc/containerd/conf.d/*.toml"]\n'
    more = {"links": {"/etc/containerd/conf.d/gone.toml": "nowhere.toml"}}
    fault = interpret(capture({CONFIG: text}, "2.1.9", **more))["faults"][0]
    assert (fault["id"], fault["fix_edits"]) == (22, [])
    assert "Remove the link /etc/containerd/conf.d/gone.toml" in fault["fix"]
    plain = interpret(capture({CONFIG: text.replace("*", "gone")}, "2.1.9", **more))["faults"][0]
    assert [edit["op"] for edit in plain["fix_edits"]] == ["discard"]


def test_a_drop_in_that_is_dead_is_not_brought_to_life_by_its_version() -> None:
    """1.6 ignores the newer drop-in, 1.7 will stop at it; under the old plugin name it would replace the root's whole section."""
    tables = table("io.containerd.grpc.v1.cri", "runc") + table("io.containerd.grpc.v1.cri", "kata")
    root = 'version = 2\nimports = ["/etc/containerd/conf.d/x.toml"]\n' + tables
    drop = "version = 3\n" + table("io.containerd.cri.v1.runtime", "runc")
    tree = Tree([Written(CONFIG, None, "", text=root), Written("/etc/containerd/conf.d/x.toml", None, "", text=drop)])
    facts = rehearsal.facts(tree, "1.6")
    fault = next(fault for fault in facts["faults"] if fault["id"] == 52)
    made = apply_edits({file.path: file.render() for file in tree.files}, fault["fix_edits"])
    after = rehearsal.facts(Tree([Written(path, None, "", text=text) for path, text in made.items()]), "1.6")
    assert sorted(after["handlers"]) == sorted(facts["handlers"]) == ["kata", "runc"]
    assert 52 not in {fault["id"] for fault in after["faults"]}


def table(plugin: str, name: str) -> str:
    """A runc-type handler's table."""
    return f'[plugins."{plugin}".containerd.runtimes.{name}]\nruntime_type = "io.containerd.runc.v2"\n'
