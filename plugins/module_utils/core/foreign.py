# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that somebody else wrote: what they are, how to show them, how to go into them without falling."""

from __future__ import annotations

import collections.abc
import reprlib
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

#: For isinstance: any mapping. A dict, which nearly every one is, is recognised at once; typing's own Mapping takes twenty times as long,
#: and a cluster's pods are asked a million times.
MAPPING = (dict, collections.abc.Mapping)

_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxstring, _SHORT.maxother = 3, 120, 120


def shown(value: t.Any) -> str:
    """A foreign value in an error message: short, on one line, whatever it is."""
    return _SHORT.repr(value)


def yaml_kind(value: t.Any) -> str:
    """What a value of an input is, in words of YAML: "a list", "a boolean", …"""
    if value is None:
        return "empty"
    names = ((bool, "a boolean"), (int, "a number"), (float, "a number"), (str, "a string"), (list, "a list"))
    for kind, name in names:
        if isinstance(value, kind):
            return name
    return "a mapping" if isinstance(value, MAPPING) else "not a value that YAML has"


def part(thing: t.Mapping[str, t.Any], *path: str, where: str) -> t.Mapping[str, t.Any]:
    """The mapping at a path of keys; an empty one where it or something above it is absent or null.

    Raises RuntimeGateError where something else stands there. where: the thing, for the message."""
    for depth, key in enumerate(path, 1):
        value = thing.get(key)
        if value is None:
            return {}
        if not isinstance(value, MAPPING):
            raise RuntimeGateError(f"{where}: {'.'.join(path[:depth])} is {yaml_kind(value)}, not a mapping")
        thing = value
    return thing


def entries(thing: t.Mapping[str, t.Any], key: str, where: str) -> t.Sequence[t.Mapping[str, t.Any]]:
    """The list of mappings under a key; an empty one where it is absent or null. Raises RuntimeGateError for
    anything else."""
    value = thing.get(key)
    if value is None:
        return ()
    if isinstance(value, (list, tuple)):
        for entry in value:
            if not isinstance(entry, MAPPING):
                break
        else:
            return value
    raise RuntimeGateError(f"{where}: {key} is no list of mappings")
