# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`make cases`: every recorded capture and every cross-check of tests/cases, through the real modules."""

from __future__ import annotations

import sys

from tests.cases_runner import captures, crosscheck


def main(names: list[str]) -> int:
    wrong = [part.main(names) for part in (captures, crosscheck)]
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
