# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""OpenShift: the files of a node belong to its Machine Config Operator, so the change is printed as the object that makes it."""

from __future__ import annotations

import base64
import typing as t

NOTE = (
    "the files of this node are rendered by OpenShift's Machine Config Operator, which would call a change of ours a drift: nothing is "
    "written here. `machine_config` is the MachineConfig that brings the declared handlers about; set the role of its pool"
)
_NAME = "99-%s-runtime-gate"


def is_managed(node: t.Mapping[str, t.Any]) -> bool:
    """The node's files are the operator's, as the node half (handlers_steps) has found."""
    return bool(node.get("machine_config"))


def text(path: str, content: t.Optional[str], changes: bool, role: str = "worker") -> t.Optional[str]:
    """The MachineConfig that lays our drop-in, as YAML; None: the node is as declared.

    :param path: of the drop-in. ``content``: its text; None: it is not needed. ``changes``: the node lacks something of it.
    """
    import yaml

    if content is None or not changes:
        return None
    data = base64.b64encode(content.encode("utf-8")).decode("ascii")
    body = {
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": _NAME % role, "labels": {"machineconfiguration.openshift.io/role": role}},
        "spec": {
            "config": {
                "ignition": {"version": "3.2.0"},
                "storage": {
                    "files": [
                        {
                            "path": path,
                            "mode": 0o644,
                            "overwrite": True,
                            "contents": {"source": "data:text/plain;charset=utf-8;base64," + data},
                        }
                    ]
                },
            }
        },
    }
    return str(yaml.safe_dump(body, sort_keys=False))


__all__ = ("NOTE", "is_managed", "text")
