# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the running CRI-O says it has loaded, from whatever its release line offers.

CRI Status has the handlers' names since 1.30 (``runtimeHandlers``) and the whole ``crio.runtime`` configuration since 1.33
(``info.config.crio``, ``server/runtime_status.go``). ``crio status config`` (1.28; ``crio-status config`` before), which is
``/config`` on the same socket, has it on every line. The answer to a sandbox with a handler that cannot exist names the
handlers that sandboxes are really made with (``internal/oci/oci.go``, ValidateRuntimeHandler).
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.documents import CrioDocument
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.keys import field

Table = t.Dict[str, t.Any]

STATUS, STATUS_CONFIG, STATUS_NAMES, PROBE = "cri status", "status config", "cri status (names only)", "sandbox probe"

_PROBE = re.compile(r"from runtime list map\[([^\]]*)\]")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: Go's names that do not simply come apart at their capitals.
_ODD_NAMES = {"ExecCPUAffinity": "exec_cpu_affinity", "RuntimePullImage": "runtime_pull_image"}


class Loaded(t.NamedTuple):
    """The daemon's own answer.

    :ivar handlers: name → the handler's values under configuration key names; {} where only its name is known.
    :ivar default: the default handler's name, or None where the answer has none.
    :ivar features: name → features, as its program told them.
    :ivar introspects: the answer carries ``runtimeHandlers``.
    :ivar source: where the handlers come from.
    """

    handlers: t.Dict[str, Table]
    default: t.Optional[str]
    features: t.Dict[str, Table]
    introspects: bool
    source: str


def read_answer(info: t.Optional[t.Mapping[str, t.Any]], status_config: t.Optional[str]) -> t.Optional[Loaded]:
    """The handlers that the daemon claims; None where no answer has them."""
    features, names, first = _runtime_handlers((info or {}).get("runtimeHandlers"))
    described = _from_status(info) or _from_config(status_config)
    if described is not None:
        return described._replace(features=features, introspects=bool(names))
    if names:
        return Loaded({name: {} for name in names}, first, features, True, STATUS_NAMES)
    return None


def _from_status(info: t.Optional[t.Mapping[str, t.Any]]) -> t.Optional[Loaded]:
    config = (info or {}).get("config")
    crio = config.get("crio") if isinstance(config, dict) else None
    runtimes = crio.get("Runtimes") if isinstance(crio, dict) else None
    if not isinstance(runtimes, dict):
        return None
    handlers = {name: _table(body) for name, body in runtimes.items() if isinstance(body, dict)}
    default = crio.get("DefaultRuntime")
    return Loaded(handlers, default if isinstance(default, str) and default else None, {}, False, STATUS)


def _table(body: Table) -> Table:
    """Go's field names as configuration keys."""
    return {_ODD_NAMES.get(name) or _WORDS.sub("_", name).lower(): value for name, value in body.items()}


def _from_config(text: t.Optional[str]) -> t.Optional[Loaded]:
    tree = CrioDocument("status config", text).tree if text and text.strip() else None
    runtime = field(field(tree or {}, "crio") or {}, "runtime")
    runtimes = runtime.get("runtimes") if isinstance(runtime, dict) else None
    if not isinstance(runtimes, dict):
        return None
    handlers = {name: dict(body) for name, body in runtimes.items() if isinstance(body, dict)}
    default = runtime.get("default_runtime")
    return Loaded(handlers, default if isinstance(default, str) and default else None, {}, False, STATUS_CONFIG)


def _runtime_handlers(answer: t.Any) -> t.Tuple[t.Dict[str, Table], t.List[str], t.Optional[str]]:
    """(features by handler, names, default). The nameless entry follows the default's own (``Server.Status``)."""
    features: t.Dict[str, Table] = {}
    names: t.List[str] = []
    default: t.Optional[str] = None
    for entry in answer if isinstance(answer, list) else ():
        if not isinstance(entry, dict):
            continue
        name = entry.get("name")
        if name:
            names.append(name)
            features[name] = entry["features"] if isinstance(entry.get("features"), dict) else {}
        elif names:
            default = names[-1]
    return features, names, default


def read_probe(text: t.Optional[str]) -> t.Optional[t.List[str]]:
    """The handlers that sandboxes are made with, from the refusal of one that cannot exist; None where it does not say."""
    found = _PROBE.search(text or "")
    if not found:
        return None
    return sorted(part.rpartition(":")[0] for part in found.group(1).split() if ":" in part)


__all__ = ("Loaded", "PROBE", "STATUS", "STATUS_CONFIG", "STATUS_NAMES", "read_answer", "read_probe")
