# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The numbered faults of CRI-O (LOADING.md §12, 41 to 46): files that make each happen on a real daemon, and how to see that it did.

`reproduced` asks the daemon alone: what sandboxes can have, against what it names and what `crio config` shows.
"""

from __future__ import annotations

import dataclasses
import typing as t

from tests.testbed.crio_host import CONFIG_DIR, CrioHost

HANDLERS = CONFIG_DIR + "/50-handlers.conf"
LATER = CONFIG_DIR + "/90-later.conf"
FOO = "/opt/bin/foo"
SHIM = "/opt/kata/bin/containerd-shim-kata-v2"
Check = t.Callable[[CrioHost], bool]


def table(name: str, *keys: str) -> str:
    """A handler's table."""
    return "\n".join([f"[crio.runtime.runtimes.{name}]", *keys]) + "\n"


def _path(path: str) -> str:
    return f'runtime_path = "{path}"'


def shown_and_dropped(name: str) -> Check:
    """`crio config` shows it, and no sandbox can have it."""
    return lambda host: name not in host.usable_handlers() and f"runtimes.{name}]" in host.config()[1]


def named_and_unusable(name: str) -> Check:
    """The daemon names it over CRI and in its configuration, and no sandbox can have it."""
    return lambda host: name in host.cri_handlers() and name in host.handlers() and name not in host.usable_handlers()


def has(name: str) -> Check:
    return lambda host: name in host.usable_handlers()


def lacks(name: str) -> Check:
    return lambda host: host.cri()["state"] == "served" and name not in host.usable_handlers()


def lost_key(name: str, key: str) -> Check:
    """The handler is loaded without a key that an earlier table has."""
    return lambda host: name in host.usable_handlers() and not host.handlers()[name].get(key)


@dataclasses.dataclass
class Scenario:
    """How one fault comes about."""

    id: int
    name: str
    tree: t.Dict[str, str]
    reproduced: Check
    handlers: t.Tuple[str, ...] = ()
    #: files written after the start, and a SIGHUP behind them
    edited: t.Dict[str, str] = dataclasses.field(default_factory=dict)
    #: files to write (None: remove) where the fault has no edits
    mend: t.Dict[str, t.Optional[str]] = dataclasses.field(default_factory=dict)
    #: programs to install where that is the mending
    install: t.Tuple[str, ...] = ()


_GOOD = table("foo", _path(FOO))
SCENARIOS: t.Tuple[Scenario, ...] = (
    Scenario(41, "program missing", {HANDLERS: table("kata", _path("/opt/none"))}, shown_and_dropped("kata"), ("kata",), install=("/opt/none",)),
    Scenario(
        41,
        "type unknown",
        {HANDLERS: table("bar", _path(FOO), 'runtime_type = "weird"')},
        shown_and_dropped("bar"),
        ("bar",),
        mend={HANDLERS: table("bar", _path(FOO))},
    ),
    Scenario(
        41,
        "vm with a program of another name",
        {HANDLERS: table("bar", _path(FOO), 'runtime_type = "vm"')},
        shown_and_dropped("bar"),
        ("bar",),
        mend={HANDLERS: table("bar", _path(SHIM), 'runtime_type = "vm"')},
    ),
    Scenario(
        42,
        "a later table takes the program away",
        {HANDLERS: table("bar", _path(FOO)), LATER: table("bar", 'allowed_annotations = ["io.kubernetes.cri-o.ShmSize"]')},
        lacks("bar"),
        ("bar",),
        mend={LATER: table("bar", _path(FOO), 'allowed_annotations = ["io.kubernetes.cri-o.ShmSize"]')},
    ),
    Scenario(
        42,
        "a later table takes a setting away",
        {HANDLERS: table("foo", _path(FOO), 'allowed_annotations = ["io.kubernetes.cri-o.ShmSize"]'), LATER: _GOOD},
        lost_key("foo", "allowed_annotations"),
        ("foo",),
        mend={LATER: None},
    ),
    Scenario(
        43,
        "a backup is loaded",
        {HANDLERS: _GOOD, HANDLERS + ".bak": table("stale", _path(FOO))},
        has("stale"),
        mend={HANDLERS + ".bak": None},
    ),
    Scenario(
        43,
        "a file of an old directory is loaded",
        {HANDLERS: _GOOD, CONFIG_DIR + "/old/10-x.conf": table("stale", _path(FOO))},
        has("stale"),
        mend={CONFIG_DIR + "/old/10-x.conf": None},
    ),
    Scenario(
        44,
        "a table that nobody reads",
        {HANDLERS: f"[crio.runtimes.bar]\n{_path(FOO)}\n"},
        lacks("bar"),
        ("bar",),
        mend={HANDLERS: table("bar", _path(FOO))},
    ),
    Scenario(
        44,
        "a key that nobody reads",
        {HANDLERS: table("bar", 'runtime_paht = "/opt/bin/foo"', _path(FOO))},
        lambda host: has("bar")(host) and "runtime_paht" not in host.config()[1],
        mend={HANDLERS: table("bar", _path(FOO))},
    ),
    Scenario(45, "a reload", {HANDLERS: _GOOD}, named_and_unusable("new"), ("new",), edited={LATER: table("new", _path(FOO))}),
    Scenario(
        46,
        "a reload that failed",
        {HANDLERS: _GOOD},
        named_and_unusable("ghost"),
        ("ghost",),
        edited={LATER: '[crio.runtime]\ndefault_runtime = "nowhere"\n' + table("ghost", _path("/opt/none"))},
        mend={LATER: None},
    ),
)
