# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pattern that matches no host is an error that names it."""

from __future__ import annotations

import typing as t

import pytest
from ansible import context
from ansible.errors import AnsibleFilterError

from ansible_collections.kubenode.runtime_gate.plugins.filter.matched_hosts import FilterModule

GROUPS = {"all": ["a", "b", "c"], "gpu": ["a", "b"], "ungrouped": ["c"], "empty": []}
matched_hosts = FilterModule().filters()["matched_hosts"]


@pytest.mark.parametrize("pattern", ["all", "gpu", "gpu:!a", "a,c", "~[bc]", ["typo", "c"], "localhost"])
def test_a_pattern_that_matches_is_handed_on(pattern: t.Any) -> None:
    assert matched_hosts(pattern, GROUPS) == pattern


@pytest.mark.parametrize("pattern", ["typo", "empty", "gpu:!gpu", ["d"]])
def test_one_that_matches_nothing_is_an_error(pattern: t.Any) -> None:
    with pytest.raises(AnsibleFilterError, match="no host matches .*which has 3 hosts"):
        matched_hosts(pattern, GROUPS)


def test_an_inventory_without_hosts() -> None:
    with pytest.raises(AnsibleFilterError, match="which has 0 hosts"):
        matched_hosts("all", {"all": [], "ungrouped": []})


def test_a_syntax_check_needs_no_inventory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "CLIARGS", {"syntax": True})
    assert matched_hosts("all", {"all": []}) == "all"
