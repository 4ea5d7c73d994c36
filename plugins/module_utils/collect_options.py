# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of everything that reads a node. Documented in the fragment ``kubenode.runtime_gate.collect``."""

from __future__ import annotations

import typing as t

COLLECT_OPTIONS: t.Dict[str, t.Dict[str, t.Any]] = {
    "config_path": {"type": "path"},
    "containerd": {"type": "path"},
    "endpoint": {"type": "str"},
    "crictl": {"type": "path"},
    "timeout": {"type": "float", "default": 5.0},
}

#: Under this key the module hands its capture to the action plugin, which takes it out of the result.
CAPTURE_KEY = "runtime_gate_capture"
