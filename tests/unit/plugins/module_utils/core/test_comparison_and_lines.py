# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Equality of handlers, and the table of release lines."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import comparison, release_lines

MASK = "__RUNTIME_GATE_MASKED_%d__"


@pytest.mark.parametrize(
    ("before", "after", "keys"),
    [
        ({"runtime_type": "a"}, {"runtime_type": "a", "snapshotter": "", "options": {"Root": ""}}, []),
        ({"runtime_type": "a"}, {"runtime_type": "b"}, ["runtime_type"]),
        ({"options": {"X": 1, "Y": 2}}, {"options": {"X": 1, "Y": 3, "Z": True}}, ["options.Y", "options.Z"]),
        ({"sandboxer": "podsandbox"}, {}, []),
        ({"sandbox_mode": "shim"}, {"sandboxer": "shim"}, []),
        ({"pod_annotations": ["a"]}, {"pod_annotations": ["b"]}, ["pod_annotations"]),
        ({"options": {"T": MASK % 1}}, {"options": {"T": MASK % 7}}, []),
        ({"options": {"X": 1}}, {}, ["options.X"]),
    ],
)
def test_differing(before: dict, after: dict, keys: list) -> None:
    assert comparison.differing(before, after) == keys


def test_holds_ignores_what_is_not_declared_and_letter_case_of_options() -> None:
    actual = {"runtime_type": "a", "options": {"SystemdCgroup": True, "BinaryName": "/x"}}
    assert comparison.holds({"options": {"systemdCgroup": True}}, actual)
    assert not comparison.holds({"options": {"systemdCgroup": True, "Root": "/r"}}, actual)
    assert not comparison.holds({"runtime_type": "b"}, actual)
    assert comparison.holds({"options": {"Root": "/r"}}, actual, with_options=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v2.3.4", (2, 3, 4)),
        ("1.7.24~ds1", (1, 7, 24)),
        ("2.1.9+unknown", (2, 1, 9)),
        ("2.0.5-k3s1", (2, 0, 5)),
        ("2.1", (2, 1, 0)),
        ("main", (99, 0, 0)),
        ("", None),
        ("unknown", None),
    ],
)
def test_parse_version(text: str, expected: object) -> None:
    assert release_lines.parse_version(text) == expected


@pytest.mark.parametrize(
    ("version", "line"),
    [("1.3.9", "1.3"), ("1.5.18", "1.5"), ("2.4.2", "2.4"), ("2.9.0", "2.4"), ("main", "2.4"), ("1.2.0", None), (None, None)],
)
def test_rules_for(version: object, line: object) -> None:
    rules = release_lines.rules_for(version)
    assert (rules.name if rules else None) == line


def test_patch_levels_at_which_a_rule_changed() -> None:
    # containerd #9746, #10165, #12891 and its revert #13939
    assert release_lines.rules_for("1.7.15").relative_glob_from_cwd and not release_lines.rules_for("1.7.16").relative_glob_from_cwd
    assert release_lines.rules_for("1.6.31").max_version is None and release_lines.rules_for("1.6.32").max_version == 2
    assert release_lines.rules_for("2.3.4").refuses_newer_dropin and not release_lines.rules_for("2.3.5").refuses_newer_dropin


def test_later_lines_are_the_newest_patch_levels() -> None:
    later = release_lines.later_lines(release_lines.rules_for("1.7.1"))
    assert [rules.name for rules in later] == ["2.0", "2.1", "2.2", "2.3", "2.4"]
    assert not later[3].refuses_newer_dropin
    assert release_lines.later_lines(release_lines.rules_for("2.4.0")) == []


@pytest.mark.parametrize(("version", "line"), [(1, "1.7"), (2, "1.7"), (3, "2.2"), (4, "2.4")])
def test_rules_for_dump(version: int, line: str) -> None:
    assert release_lines.rules_for_dump(version).name == line
