# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a node's files is ours, and what the node would be without it."""

from __future__ import annotations

import posixpath
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import (
    NEW_RUNTIME,
    OLD_CRI,
    SHORT_CRI,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import marks

Table = t.Dict[str, t.Any]


#: Sorted behind other tools' drop-ins: of two files of one directory, the later wins.
DROP_IN = "zz-runtime-gate.toml"


class Wanted(t.NamedTuple):
    """What a rendering has to bring about.

    :ivar handlers: name → complete table. :ivar default: default handler, or None: not ours to set.
    :ivar cdi: containerd's own CDI support must be on.
    :ivar pulls: name → snapshotter that image pulls need to be told of in a table of their own (2.0 to 2.2).
    """

    handlers: t.Dict[str, Table]
    default: t.Optional[str]
    cdi: bool
    pulls: t.Mapping[str, str] = {}


def is_own_drop_in(path: str, text: t.Optional[str]) -> bool:
    """Our drop-in. A copy under another name is somebody else's."""
    return posixpath.basename(path) == DROP_IN and marks.is_own_file(text)


def foreign_texts(texts: t.Mapping[str, str], looked_at: t.Callable[[str], bool]) -> t.Dict[str, t.Optional[str]]:
    """Path → text without ours, of every file that has something of ours; None: the file is ours as a whole.

    :param looked_at: whether lines of ours may stand in a file.
    """
    found: t.Dict[str, t.Optional[str]] = {}
    for path, text in texts.items():
        if not looked_at(path):
            continue
        if is_own_drop_in(path, text):
            found[path] = None
        elif marks.has_marks(text):
            found[path] = _rest(text, path)
    return found


def _rest(text: str, path: str) -> t.Optional[str]:
    """What is somebody else's in a marked text; None: nothing, in a file that we made."""
    if not marks.is_own_file(text):
        return marks.unmark(text, path)
    rest = marks.unmark(text.partition("\n")[2], path)
    return rest if rest.strip() else None


def own_wants(texts: t.Mapping[str, str], foreign: t.Mapping[str, t.Optional[str]]) -> Wanted:
    """What our lines say now: the difference between the files and the files without ours."""
    handlers: t.Dict[str, Table] = {}
    default: t.Optional[str] = None
    cdi = False
    for path in sorted(path for path in foreign if not path.endswith(".tmpl")):
        now = _plugin_tables(marks.tree_of(texts[path], path))
        rest = _plugin_tables(marks.tree_of(foreign[path] or "", path))
        for plugin, body in now.items():
            before = rest.get(plugin, {})
            for name, table in _runtimes(body).items():
                if isinstance(table, dict) and _runtimes(before).get(name) != table:
                    handlers[name] = _neutral(table)
            named = _containerd(body).get("default_runtime_name")
            if named != _containerd(before).get("default_runtime_name"):
                default = named
            cdi = cdi or (body.get("enable_cdi") is True and before.get("enable_cdi") is not True)
    return Wanted(handlers, default, cdi)


def refuse_strangers(
    carried: t.Iterable[str], written: t.Optional[t.Iterable[str]], declared: t.Iterable[str], places: t.Mapping[str, str]
) -> None:
    """What somebody has put between our marks, or into our file, would go with our next change. It is not taken for ours in silence.

    :param carried: handlers that stand there. :param written: those that runs have written; None: nobody knows. :param places: where each stands.
    :raises RuntimeGateError: there is one that no run has written, and that is not declared either.
    """
    strange = sorted(set(carried) - set(written) - set(declared)) if written is not None else []
    if strange:
        told = ", ".join("%s (%s)" % (name, places[name]) if name in places else name for name in strange)
        raise RuntimeGateError(
            "handlers that no run has written stand between our marks or in our file: %s. Lines there are overwritten, and go when ours go. Move "
            "their tables out of it, or declare them in runtime_gate_handlers" % told
        )


def unmarked(carried: t.Iterable[str], written: t.Optional[t.Iterable[str]], places: t.Mapping[str, str]) -> t.Dict[str, str]:
    """name → the sentence about each handler that a run has written, and that stands in a file without our mark now.

    :param places: where each handler stands that the files declare without ours.
    """
    left = sorted((set(written or ()) & set(places)) - set(carried))
    return {
        name: "handler %s stands in %s, without our marks, and an earlier run had written it: it counts as somebody else's now, and removal leaves it "
        "there. Delete its table by hand if it shall go" % (name, places[name])
        for name in left
    }


def _plugin_tables(tree: Table) -> t.Dict[str, Table]:
    plugins = tree.get("plugins")
    plugins = plugins if isinstance(plugins, dict) else {}
    return {name: plugins[name] for name in (SHORT_CRI, OLD_CRI, NEW_RUNTIME) if isinstance(plugins.get(name), dict)}


def _containerd(body: Table) -> Table:
    found = body.get("containerd")
    return found if isinstance(found, dict) else {}


def _runtimes(body: Table) -> Table:
    found = _containerd(body).get("runtimes")
    return found if isinstance(found, dict) else {}


def _neutral(table: Table) -> Table:
    """A table of ours under the names that :mod:`desired` uses (1.7 spells sandboxer another way)."""
    return {("sandboxer" if key == "sandbox_mode" else key): value for key, value in table.items()}


__all__ = ("DROP_IN", "Wanted", "foreign_texts", "is_own_drop_in", "own_wants", "refuse_strangers", "unmarked")
