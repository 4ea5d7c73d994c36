# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection costs, as ratios to what it cannot do without, measured side by side in one run.

    python -m tests.bench [ROW …] [--scale 0.1] [--output docs/bench.md]

Rows (all of them by default): facts, audit, capture, rollout, crosscheck, api. --scale makes fleets and clusters smaller, for small
machines. The table is printed, and written to the file of --output; it ends with 0 also where a goal is missed or a row could not be
measured: what it says is for people.
"""
