# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a SIGHUP makes of the daemon's own answer.

Since 1.25.1 a reload reads the handlers again, into a copy of the configuration that answers CRI Status and ``crio status
config`` while sandboxes go on with the map of the start (``Server.config`` against ``oci.Runtime.config``; cri-o#10202, not
mended up to 1.36.3). A reload that fails leaves handlers in the answer that were not even checked. Only a restart helps. So
after a reload the answer counts for nothing that it did not say before.
"""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.documents import is_right
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.loaded import PROBE, Loaded, read_probe

#: How it was found out what sandboxes are made with.
BY_PROBE, BY_FILES, BY_ANSWER = "probe", "files", "answer"


class Reload(t.NamedTuple):
    """What is known about reloads since the start.

    :ivar happened: True, False, or None (it cannot be told).
    :ivar failed: the last one failed. :ivar evidence: how the loaded handlers were settled.
    :ivar claimed: handlers that the daemon names and no sandbox can have.
    :ivar hidden: handlers that sandboxes can have and the daemon does not name.
    :ivar claimed_default: the default handler by the daemon's word, where another one holds.
    :ivar doubtful_default: the default that the files had before, where the daemon's word may come from a reload.
    """

    happened: t.Optional[bool]
    failed: bool
    evidence: str
    claimed: t.Tuple[str, ...]
    hidden: t.Tuple[str, ...]
    claimed_default: t.Optional[str] = None
    doubtful_default: t.Optional[str] = None


def settle(
    answer: t.Optional[Loaded], situation: t.Any
) -> t.Tuple[t.Optional[Loaded], Reload]:
    """What sandboxes can really use, by the daemon's answer and what speaks against it.

    :param situation: the CrioSituation.
    """
    node, rules = situation.node, situation.running
    happened = _happened(node)
    # A reload that is refused for its default has put it there all the same.
    failed = bool(node.get("reload_failed")) or (answer is not None and answer.default not in (None, *answer.handlers))
    probed = read_probe(situation.probe)
    if rules is not None and not rules.reloads_runtimes:
        happened = False
    if probed is not None:
        return _by_probe(answer, probed, happened, failed, situation)
    if answer is None or not happened:
        told = Reload(happened, failed, BY_ANSWER, (), ())
        return _with_default(answer, told, situation) if answer is not None else (None, told)
    return _by_files(answer, failed, situation)


def _happened(node: t.Mapping[str, t.Any]) -> t.Optional[bool]:
    if node.get("daemon_reloaded"):
        return str(node["daemon_reloaded"]) >= str(node.get("daemon_started") or "")
    return {"excluded": False}.get(str(node.get("reload_evidence") or ""))


def _by_probe(
    answer: t.Optional[Loaded], probed: t.Sequence[str], happened: t.Optional[bool], failed: bool, situation: t.Any
) -> t.Tuple[Loaded, Reload]:
    claimed = set(answer.handlers) if answer is not None else set()
    extra = tuple(sorted(claimed - set(probed)))
    hidden = tuple(sorted(set(probed) - claimed)) if answer is not None else ()
    if extra or hidden:
        happened = True
    failed = failed or any(situation.is_unchecked(name) for name in extra)
    known = answer.handlers if answer is not None else {}
    handlers = {name: known.get(name) or situation.described(name) for name in probed}
    source = answer.source if answer is not None and not (extra or hidden) else PROBE
    features = {name: value for name, value in (answer.features if answer else {}).items() if name in handlers}
    said = answer.default if answer is not None else None
    loaded = Loaded(handlers, said, features, answer.introspects if answer else False, source)
    return _with_default(loaded, Reload(happened, failed, BY_PROBE, extra, hidden), situation)


def _by_files(answer: Loaded, failed: bool, situation: t.Any) -> t.Tuple[Loaded, Reload]:
    """Without a probe: a handler that only files newer than the daemon's start declare is in the answer alone."""
    claimed = tuple(sorted(name for name in answer.handlers if situation.declared_since_start(name)))
    failed = failed or any(situation.is_unchecked(name) for name in claimed)
    handlers = {name: body for name, body in answer.handlers.items() if name not in claimed}
    features = {name: value for name, value in answer.features.items() if name in handlers}
    loaded = answer._replace(handlers=handlers, features=features)
    return _with_default(loaded, Reload(True, failed, BY_FILES, claimed, ()), situation)


def _with_default(loaded: Loaded, told: Reload, situation: t.Any) -> t.Tuple[Loaded, Reload]:
    """The default that holds. A reload drops what the command line says (cri-o#7586) and takes the files' default into the
    answer alone."""
    said = loaded.default
    before, sure = situation.default_at_start()
    if told.happened is False or (said is not None and before in (None, said)):
        real = said or before
    elif sure or told.happened or said is None:
        real = before
    else:
        # No reload is known of: the word counts, with a doubt.
        return loaded, told._replace(doubtful_default=before)
    if real not in loaded.handlers:
        real = None
    if said is None or real == said:
        return loaded._replace(default=real), told
    return loaded._replace(default=real), told._replace(claimed_default=said)


def written_since(declarations: t.Iterable[t.Any], newer: t.Container[str]) -> bool:
    """Some table declares the handler, and all that do stand in files newer than the daemon's start."""
    files = [item.file for item in declarations if is_right(item.path)]
    return bool(files) and all(path in newer for path in files)


__all__ = ("BY_ANSWER", "BY_FILES", "BY_PROBE", "Reload", "settle", "written_since")
