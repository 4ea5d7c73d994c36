# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of module runtime_handlers, for its documentation's half and its action plugin."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.collect_options import ANY_OPTIONS

#: The option in which the action plugin hands its request to the node half (JSON), and the key of the answer.
REQUEST_KEY = "_request"
ANSWER_KEY = "runtime_gate_answer"

HANDLERS_OPTIONS: t.Dict[str, t.Dict[str, t.Any]] = dict(
    ANY_OPTIONS,
    engine={"type": "str", "choices": ["auto", "containerd", "crio"], "default": "auto"},
    handlers={"type": "dict", "default": {}},
    default_handler={"type": "str"},
    remove={"type": "bool", "default": False},
    mode={"type": "str", "choices": ["auto", "dropin", "merge"], "default": "auto"},
    repair={"type": "bool", "default": False},
    migrate={"type": "int", "choices": [3]},
    allow_absent_binary={"type": "bool", "default": False},
    accept_blast_radius={"type": "bool", "default": False},
    restart={"type": "str", "choices": ["auto", "never", "reload"], "default": "auto"},
    restart_control_plane={"type": "bool", "default": False},
    unit={"type": "str"},
    restart_command={"type": "raw"},
    ready_timeout={"type": "float", "default": 120.0},
    probe={"type": "str", "choices": ["none", "sandbox"], "default": "none"},
    backups={"type": "int", "default": 5},
    target_version={"type": "str"},
    cordon={"type": "bool", "default": False},
    drain={"type": "bool", "default": False},
    drain_grace={"type": "int"},
    drain_timeout={"type": "float", "default": 300.0},
    drain_options={"type": "dict", "default": {}},
    cluster={"type": "dict", "default": {}},
    node_name={"type": "str"},
    prefix={"type": "str", "default": "runtime-gate.kubenode.io"},
)
