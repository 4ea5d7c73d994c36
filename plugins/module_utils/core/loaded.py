# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the running daemon answers over CRI: handlers and default out of Status (verbose).

The answer has the shape of ``crictl info``; LOADING by release line is in ``pkg/cri/server/status.go`` (1.x) and
``internal/cri/server/status.go`` (2.x): ``config.containerd.runtimes`` and ``defaultRuntimeName`` on every line,
``runtimeHandlers`` with features since 2.0.
"""

from __future__ import annotations

import typing as t

Table = t.Dict[str, t.Any]

#: Names in Status → names in the configuration. Key case differs between lines, so names are folded before the look-up.
_STATUS_KEYS = {
    "runtimetype": "runtime_type",
    "runtimepath": "runtime_path",
    "runtimeengine": "runtime_engine",
    "runtimeroot": "runtime_root",
    "options": "options",
    "snapshotter": "snapshotter",
    "sandboxer": "sandboxer",
    "sandboxmode": "sandbox_mode",
    "podannotations": "pod_annotations",
    "containerannotations": "container_annotations",
    "baseruntimespec": "base_runtime_spec",
    "cniconfdir": "cni_conf_dir",
    "cnimaxconfnum": "cni_max_conf_num",
    "iotype": "io_type",
    "cgroupwritable": "cgroup_writable",
    "privilegedwithouthostdevices": "privileged_without_host_devices",
    "privilegedwithouthostdevicesalldevicesallowed": "privileged_without_host_devices_all_devices_allowed",
    "disablepauseimagepull": "disable_pause_image_pull",
}


class Loaded(t.NamedTuple):
    """The daemon's own answer.

    :ivar handlers: name → the handler's values under configuration key names.
    :ivar default: the default handler's name, or None where the answer has none.
    :ivar features: name → features; a handler without an entry was not introspected.
    :ivar introspects: the answer carries ``runtimeHandlers`` (containerd 2.0 and later).
    """

    handlers: t.Dict[str, Table]
    default: t.Optional[str]
    features: t.Dict[str, Table]
    introspects: bool


def read_status(info: t.Optional[t.Mapping[str, t.Any]]) -> t.Optional[Loaded]:
    """The loaded handlers of a containerd Status answer; None where it does not carry them."""
    config = (info or {}).get("config")
    containerd = config.get("containerd") if isinstance(config, dict) else None
    runtimes = containerd.get("runtimes") if isinstance(containerd, dict) else None
    if not isinstance(runtimes, dict):
        return None
    handlers = {name: _table(body) for name, body in runtimes.items() if isinstance(body, dict)}
    default = containerd.get("defaultRuntimeName")
    features, introspects = _features((info or {}).get("runtimeHandlers"))
    return Loaded(handlers, default if isinstance(default, str) and default else None, features, introspects)


def _table(body: Table) -> Table:
    table: Table = {}
    for key, value in body.items():
        name = _STATUS_KEYS.get(key.replace("_", "").lower())
        if name is not None:
            table[name] = value
    if not isinstance(table.get("options"), dict):
        table["options"] = {}
    return table


def _features(answer: t.Any) -> t.Tuple[t.Dict[str, Table], bool]:
    """Features by handler; the nameless entry (a copy of the default) is left out."""
    if not isinstance(answer, list):
        return {}, False
    entries = [entry for entry in answer if isinstance(entry, dict) and isinstance(entry.get("name"), str) and entry["name"]]
    found = {entry["name"]: entry["features"] for entry in entries if isinstance(entry.get("features"), dict)}
    return found, bool(answer)


__all__ = ("Loaded", "read_status")
