# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes when each task began, a JSON object a line, and when the play ended. With the linear strategy that is how long each took."""

from __future__ import annotations

import json
import os
import time

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: task_clock
type: aggregate
short_description: When each task began
description: For the benchmark.
"""


class CallbackModule(CallbackBase):
    """Appends to the file that RUNTIME_GATE_TASK_CLOCK names."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "task_clock"
    CALLBACK_NEEDS_ENABLED = True

    def _mark(self, task: str) -> None:
        with open(os.environ["RUNTIME_GATE_TASK_CLOCK"], "a", encoding="utf-8") as stream:
            stream.write(json.dumps({"at": time.time(), "task": task}) + "\n")

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._mark(task.get_name())

    def v2_playbook_on_stats(self, stats):
        self._mark("")
