# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan hands to the node and shows to a person, whatever the engine: writes, their diff, and what a new default reaches."""

from __future__ import annotations

import hashlib
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import blast_radius, comparison
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.secrets import PLACEHOLDER, Masker
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.changes import LoadedState, state_text
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.stage import real_path

Table = t.Dict[str, t.Any]


def write(node: t.Mapping[str, t.Any], path: str, now: t.Optional[str], text: t.Optional[str]) -> Table:
    """One file of a plan.

    :param node: of the capture. ``now``: the file's present text, masked; None: it is not there. ``text``: the new one; None: remove it.
    :raises RuntimeGateError: secrets of it could not be put back.
    """
    digest = (node.get("sha256") or {}).get(path)
    if digest is None and now is not None:
        if PLACEHOLDER.search(now):
            raise RuntimeGateError("%s holds masked values, and its checksum was not collected: collect the node again" % path)
        digest = hashlib.sha256(now.encode("utf-8", "surrogateescape")).hexdigest()
    mode = "0644" if now is None else None
    return {"path": real_path(path, node.get("links") or {}), "text": text, "sha256": digest, "mode": mode}


def diffs(
    writes: t.Iterable[Table], texts: t.Mapping[str, str], links: t.Mapping[str, str], before: LoadedState, after: LoadedState
) -> t.List[Table]:
    """The change of what is loaded, then of each file, with masked values, as Ansible shows diffs.

    :param texts: path → present text.
    """
    found = []
    if before != after:
        loaded = {"before": state_text(before), "after": state_text(after)}
        found.append(dict(loaded, before_header="loaded now", after_header="loaded after the restart"))
    present = {real_path(path, links): text for path, text in texts.items()}
    for one in writes:
        path = one["path"]
        text = {"before": present.get(path) or "", "after": Masker().toml(one["text"] or "")}
        found.append(dict(text, before_header=path, after_header=path))
    return found


def reach_of_default(before: LoadedState, after: LoadedState, with_options: bool = True) -> t.Tuple[bool, str]:
    """(the default handler changes, what that reaches, as a sentence)."""
    old, new = before.default, after.default
    if old is None or new is None:
        return False, ""
    keys = comparison.differing(before.handlers.get(old) or {}, after.handlers.get(new) or {}, with_options)
    if old == new and not keys:
        return False, ""
    what = "the default handler changes from %s to %s" % (old, new)
    if old == new:
        what = "the default handler %s itself changes (%s)" % (new, ", ".join(keys))
    plain = blast_radius.is_plain(new, after.handlers.get(new) or {})
    kind = "" if plain else " %s is no ordinary OCI runtime: system pods (CNI, proxy, CSI) run in it too." % new
    return True, (
        "%s. It reaches every pod on this node that names no RuntimeClass, from its next start on.%s "
        "Set runtime_gate_accept_blast_radius: true to go on." % (what, kind)
    )


__all__ = ("diffs", "reach_of_default", "write")
