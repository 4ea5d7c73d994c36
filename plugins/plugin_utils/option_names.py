# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a message names what its reader can set.

Every option of module runtime_handlers is a variable of the role containerd, with ``runtime_gate_`` before its name. Messages are written
for the role's user; for who calls the module in a task of their own, the prefix is taken away again.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.handlers_options import HANDLERS_OPTIONS

#: A keyword of the task, which the role sets by a variable too.
_KEYWORDS = ("become",)
_VARIABLE = re.compile(r"\bruntime_gate_(%s)\b" % "|".join(sorted([*HANDLERS_OPTIONS, *_KEYWORDS], key=len, reverse=True)))
#: Where a result has sentences.
_SENTENCES = ("msg", "notes", "reasons")


def of_the_module(result: t.Mapping[str, t.Any]) -> t.Dict[str, t.Any]:
    """The result with the module's own names in its sentences."""
    return {key: _renamed(value) if key in _SENTENCES else value for key, value in result.items()}


def _renamed(value: t.Any) -> t.Any:
    if isinstance(value, list):
        return [_renamed(item) for item in value]
    return _VARIABLE.sub(r"\1", value) if isinstance(value, str) else value


__all__ = ("of_the_module",)
