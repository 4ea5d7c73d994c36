# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of everything that reads a node. Documented in the fragment ``kubenode.runtime_gate.collect``."""

from __future__ import annotations

import typing as t

Options = t.Dict[str, t.Dict[str, t.Any]]

#: Of either engine.
COMMON_OPTIONS: Options = {
    "config_path": {"type": "path"},
    "endpoint": {"type": "str"},
    "crictl": {"type": "path"},
    "timeout": {"type": "float", "default": 5.0},
}
#: Of containerd.
COLLECT_OPTIONS: Options = dict(COMMON_OPTIONS, containerd={"type": "path"})
#: Of CRI-O.
CRIO_OPTIONS: Options = dict(COMMON_OPTIONS, crio={"type": "path"}, config_dir={"type": "path"})
#: Of whichever engine serves the kubelet.
ANY_OPTIONS: Options = {**COLLECT_OPTIONS, **CRIO_OPTIONS}
#: Of the facts modules beside: a dump or a recording to be judged in place of the host.
RECORDED_OPTIONS: Options = {"dump": {"type": "str", "no_log": True}, "capture": {"type": "path"}}
RECORDED_EXCLUSIVE = [("dump", "capture")]

#: Under this key the module hands its capture to the action plugin, which takes it out of the result.
CAPTURE_KEY = "runtime_gate_capture"
