# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What CRI-O's command line and environment say about its configuration: both win over every file.

Source: ``internal/criocli/criocli.go`` (the flags, their aliases and environment variables; urfave/cli takes a variable for a
flag that was given).
"""

from __future__ import annotations

import shlex
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.release_lines import CrioRules

CONFIG, CONFIG_DIR = "/etc/crio/crio.conf", "/etc/crio/crio.conf.d"

#: flag → (its names on the command line, its environment variable)
_FLAGS: t.Dict[str, t.Tuple[t.Tuple[str, ...], str]] = {
    "config": (("config", "c"), "CONTAINER_CONFIG"),
    "config_dir": (("config-dir", "d"), "CONTAINER_CONFIG_DIR"),
    "default_runtime": (("default-runtime",), "CONTAINER_DEFAULT_RUNTIME"),
    "runtimes": (("runtimes",), "CONTAINER_RUNTIMES"),
    "conmon": (("conmon",), "CONTAINER_CONMON"),
    "conmon_cgroup": (("conmon-cgroup",), "CONTAINER_CONMON_CGROUP"),
    "cgroup_manager": (("cgroup-manager",), "CONTAINER_CGROUP_MANAGER"),
}
#: The environment variables that a capture has to have of CRI-O's process and of its unit.
VARIABLES = tuple(variable for _names, variable in _FLAGS.values()) + ("CONTAINER_LISTEN",)

_RUNTIME_FIELDS = (
    "runtime_path",
    "runtime_root",
    "runtime_type",
    "privileged_without_host_devices",
    "runtime_config_path",
    "container_min_memory",
)


class Overrides(t.NamedTuple):
    """What is given beside the files. None: not given.

    :ivar config: the root file; "" switches it off. :ivar config_dir: the directory of drop-ins.
    :ivar default_runtime: the default handler.
    :ivar runtimes: each ``--runtimes`` value, in order.
    :ivar settings: other keys of ``crio.runtime``.
    """

    config: t.Optional[str]
    config_dir: t.Optional[str]
    default_runtime: t.Optional[str]
    runtimes: t.Tuple[str, ...]
    settings: t.Mapping[str, str]


def overrides(command: t.Union[str, t.Sequence[str], None], environment: t.Optional[t.Mapping[str, t.Any]]) -> Overrides:
    """Read a command line (as text or words) and an environment."""
    words = _words(command)
    found: t.Dict[str, t.List[str]] = {flag: _given(words, names) for flag, (names, _variable) in _FLAGS.items()}
    for flag, (_names, variable) in _FLAGS.items():
        value = (environment or {}).get(variable)
        if not found[flag] and isinstance(value, str) and value:
            found[flag] = [value]
    last = {flag: values[-1] if values else None for flag, values in found.items()}
    settings = {flag: last[flag] for flag in ("conmon", "conmon_cgroup", "cgroup_manager") if last[flag]}
    return Overrides(last["config"], last["config_dir"], last["default_runtime"], _split(found["runtimes"]), settings)


def _words(command: t.Union[str, t.Sequence[str], None]) -> t.List[str]:
    if not isinstance(command, str):
        return list(command or [])
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _given(words: t.Sequence[str], names: t.Sequence[str]) -> t.List[str]:
    """Every value of an option, in order: ``--name value`` or ``--name=value``, one dash or two."""
    values = []
    for position, word in enumerate(words[1:], 1):
        bare = word.lstrip("-")
        if bare == word:
            continue
        name, equals, inline = bare.partition("=")
        if name in names and (equals or position + 1 < len(words)):
            values.append(inline if equals else words[position + 1])
    return values


def _split(values: t.Sequence[str]) -> t.Tuple[str, ...]:
    """StringSliceTrySplit: a single value may be several, with commas."""
    if len(values) == 1 and "," in values[0]:
        values = values[0].split(",")
    return tuple(value.strip() for value in values)


def runtime_entry(value: str, rules: CrioRules) -> t.Optional[t.Tuple[str, t.Dict[str, t.Any]]]:
    """(handler, its table) of one ``--runtimes`` value; None where its form stops the daemon."""
    parts = value.split(":")
    if not 3 <= len(parts) <= rules.runtimes_parts:
        return None
    table: t.Dict[str, t.Any] = dict(zip(_RUNTIME_FIELDS, parts[1:]))
    table.setdefault("runtime_type", "oci")
    if "privileged_without_host_devices" in table:
        table["privileged_without_host_devices"] = table["privileged_without_host_devices"] == "true"
    return parts[0], table


__all__ = ("CONFIG", "CONFIG_DIR", "Overrides", "VARIABLES", "overrides", "runtime_entry")
