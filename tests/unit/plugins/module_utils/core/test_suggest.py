# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.suggest import did_you_mean, nearest


@pytest.mark.parametrize(
    ("word", "known", "expected"),
    [
        ("nvidai", ["runc", "nvidia", "nvidia-cdi"], "nvidia"),
        ("Nvidia", ["nvidia", "nvida"], "nvidia"),
        ("kata_qemu", ["kata-clh", "kata-qemu"], "kata-qemu"),
        ("nvidia", ["nvidia"], None),
        ("gvisor", ["kata", "runc"], None),
        ("crun", ["kata", "x"], None),
        ("x", [], None),
        ("", ["a"], None),
        ("kata-qem", ["kata-qemu", "kata-qema"], "kata-qema"),
    ],
)
def test_nearest(word: str, known: list[str], expected: str | None) -> None:
    assert nearest(word, known) == expected


def test_did_you_mean() -> None:
    assert did_you_mean("clases", ["classes"]) == '; did you mean "classes"?'
    assert did_you_mean("zzz", ["classes"]) == ""
