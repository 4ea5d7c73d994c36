# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collects on the node whichever engine serves the kubelet, judges on the controller."""

from __future__ import annotations

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.collect_options import ANY_OPTIONS
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.facts_action import FactsAction


class ActionModule(FactsAction):
    """The controller's half."""

    module = "kubenode.runtime_gate.gate_facts"
    arguments = {**ANY_OPTIONS, "capture": {"type": "path"}}
