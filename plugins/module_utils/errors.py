# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one error of this collection: bad input, said in one sentence."""

from __future__ import annotations


class RuntimeGateError(Exception):
    """Bad input. The text says what is wrong, where (file, table, line), and what to do."""
