# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of node_tables.py under this interpreter."""

from __future__ import annotations

import pytest

from ansible_collections.kubenode.runtime_gate.tests.unit import node_tables

_CHECKS = node_tables.checks()


@pytest.mark.parametrize("check", [check for _name, check in _CHECKS], ids=[name for name, _check in _CHECKS])
def test_table(check: node_tables.Check) -> None:
    check()
