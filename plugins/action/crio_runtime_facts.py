# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collects on the node, judges on the controller; a dump and a capture are judged without touching the host."""

from __future__ import annotations

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.collect_options import CRIO_OPTIONS, RECORDED_OPTIONS
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.facts_action import FactsAction


class ActionModule(FactsAction):
    """The controller's half."""

    engine = "crio"
    module = "kubenode.runtime_gate.crio_runtime_facts"
    arguments = {**CRIO_OPTIONS, **RECORDED_OPTIONS}
