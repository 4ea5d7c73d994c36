# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""make bench at a tiny size: every row stands in the table. How long anything took is no matter here."""

from __future__ import annotations

import pathlib
import subprocess
import sys

from tests.bench.__main__ import ROWS
from tests.integration.ansible_runs import ROOT, environment

# Of a machine that can have no whole hosts the row says so; make test elsewhere fails where it should have them.
_MAY_LACK = {"rollout"}


def test_every_row_stands_in_the_table(tmp_path: pathlib.Path) -> None:
    page = tmp_path / "bench.md"
    command = [sys.executable, "-m", "tests.bench", "--scale", "0.004", "--runs", "1", "--output", str(page)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    assert text in done.stdout
    for name in ROWS:
        lines = [line for line in text.splitlines() if line.startswith(f"| {name} |")]
        assert lines, f"no row {name} in\n{text}"
        if name not in _MAY_LACK:
            assert not any("| not measured |" in line for line in lines), text
    assert "| audit | 4 hosts" in text and "| capture | 4 captures" in text
