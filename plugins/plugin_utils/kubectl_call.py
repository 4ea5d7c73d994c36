# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""kubectl on the host that a task is delegated to."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError


class KubectlAction(ActionBase):
    """An action that may have to call kubectl on the host of its task's connection."""

    def _kubectl(self, command: str) -> str:
        """What the command prints there. Raises RuntimeGateError."""
        try:
            answer = self._low_level_execute_command(command)
        except AnsibleError as error:
            raise RuntimeGateError("runtime_gate_kubectl_host: the host could not be reached: %s" % error) from error
        if answer["rc"] != 0:
            said = (answer["stderr"] or answer["stdout"]).strip()
            raise RuntimeGateError("runtime_gate_kubectl_host: %s failed (rc %s): %s" % (command, answer["rc"], said[-500:]))
        return t.cast(str, answer["stdout"])


__all__ = ("KubectlAction",)
