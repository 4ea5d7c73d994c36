# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one place that knows which engine's rules judge a capture, and what its facts are called."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import interpret as containerd
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio import interpret as crio
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

#: engine → the key of its facts in ansible_facts
FACTS = {"containerd": "containerd_runtime", "crio": "crio_runtime"}
_ROOMS = {"containerd": containerd, "crio": crio}


def interpret(capture: t.Mapping[str, t.Any], engine: t.Optional[str] = None) -> t.Tuple[str, t.Dict[str, t.Any]]:
    """(engine, facts) of a capture.

    :param engine: judge as this engine; None: as the engine that the capture is of.
    :raises RuntimeGateError: the capture is of another engine, or of one that is not known here.
    """
    engine = engine or str((capture.get("node") or {}).get("engine") or "containerd")
    if engine not in _ROOMS:
        raise RuntimeGateError("the capture is of engine %r; containerd and crio are judged" % engine)
    return engine, _ROOMS[engine].interpret(capture)


def interpret_dump(text: str, engine: str) -> t.Dict[str, t.Any]:
    """The facts of an explicit dump of this engine.

    :raises RuntimeGateError: the text is no dump of it.
    """
    return _ROOMS[engine].interpret_dump(text)


def facts_of(ansible_facts: t.Optional[t.Mapping[str, t.Any]]) -> t.Optional[t.Dict[str, t.Any]]:
    """The facts of whichever engine are there; of the one that serves the kubelet where both are."""
    found = [facts for facts in ((ansible_facts or {}).get(name) for name in FACTS.values()) if facts]
    serving = [facts for facts in found if facts.get("serves_kubelet")]
    return (serving or found or [None])[0]


__all__ = ("FACTS", "facts_of", "interpret", "interpret_dump")
