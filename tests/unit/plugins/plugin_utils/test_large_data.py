# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The collector is off within, and afterwards as it was."""

from __future__ import annotations

import gc

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.large_data import collector_paused


@pytest.mark.parametrize("before", [True, False])
def test_it_comes_back_as_it_was(before: bool) -> None:
    was = gc.isenabled()
    try:
        (gc.enable if before else gc.disable)()
        with pytest.raises(ValueError), collector_paused():
            assert not gc.isenabled()
            raise ValueError
        assert gc.isenabled() is before
    finally:
        (gc.enable if was else gc.disable)()
