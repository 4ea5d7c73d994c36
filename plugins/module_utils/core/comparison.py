# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do two descriptions of a handler mean the same to the daemon?"""

from __future__ import annotations

import re
import typing as t

Table = t.Mapping[str, t.Any]

_MASKED = re.compile(r"__RUNTIME_GATE_MASKED_\d+__")

#: What makes a handler what it is; the rest is bookkeeping of the daemon.
COMPARED_KEYS = (
    "runtime_type",
    "runtime_path",
    "runtime_engine",
    "runtime_root",
    "options",
    "snapshotter",
    "sandboxer",
    "pod_annotations",
    "container_annotations",
    "base_runtime_spec",
    "cni_conf_dir",
    "privileged_without_host_devices",
    "privileged_without_host_devices_all_devices_allowed",
    "cgroup_writable",
)


def plain(value: t.Any) -> t.Any:
    """A value without what cannot be compared: empty values count as absent, masked ones as equal."""
    if isinstance(value, dict):
        items = {key: plain(item) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not None} or None
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value] or None
    if isinstance(value, str):
        return _MASKED.sub("__MASKED__", value) or None
    return value or None


def normal(handler: Table, with_options: bool = True, keys: t.Sequence[str] = COMPARED_KEYS) -> t.Dict[str, t.Any]:
    """The compared keys of a handler that are set."""
    found = {}
    for key in keys:
        value = plain(handler.get(key))
        if key == "sandboxer":
            value = plain(handler.get("sandboxer") or handler.get("sandbox_mode"))
            value = None if value == "podsandbox" else value
        if value is not None and (with_options or key != "options"):
            found[key] = value
    return found


def differing(
    before: Table, after: Table, with_options: bool = True, compared: t.Sequence[str] = COMPARED_KEYS
) -> t.List[str]:
    """The keys in which two handlers differ, options as ``options.NAME``."""
    first, second = normal(before, with_options, compared), normal(after, with_options, compared)
    keys = []
    for key in sorted(set(first) | set(second)):
        one, two = first.get(key), second.get(key)
        if one == two:
            continue
        if key == "options":
            one, two = one or {}, two or {}
            keys.extend("options.%s" % name for name in sorted(set(one) | set(two)) if one.get(name) != two.get(name))
        else:
            keys.append(key)
    return keys


def holds(declared: Table, actual: Table, with_options: bool = True) -> bool:
    """Everything that a declaration sets is so in the actual handler (letter case of option names does not count)."""
    wanted, got = normal(declared, with_options), normal(actual, with_options)
    options = {key.lower(): value for key, value in (got.get("options") or {}).items()}
    for key, value in wanted.items():
        if key == "options":
            if any(options.get(name.lower()) != item for name, item in value.items()):
                return False
        elif got.get(key) != value:
            return False
    return True


__all__ = ("COMPARED_KEYS", "differing", "holds", "normal", "plain")
