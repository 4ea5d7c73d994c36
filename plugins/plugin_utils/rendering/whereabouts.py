# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which file and line of a node a refusal is about, whatever the engine."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import Document


def words(path: str, line: int) -> str:
    """``FILE, line N``, or the file alone where the line is not known."""
    return "%s, line %d" % (path, line) if line else path


def of_default(order: t.Iterable[Document], name: t.Optional[str] = None) -> str:
    """Where the default handler is set: the last of the files, in the order of their loading, that names one ("": none does).

    :param name: only where it is set to this.
    """
    found = ""
    for document in order:
        for value, path in document.default_names():
            if name is None or value == name:
                found = words(document.path, document.line_of(path))
    return found


def changed_default(order: t.Iterable[Document], old: str, new: str) -> str:
    """The refusal of a restart that would change the default handler, though nobody has declared one here."""
    place = of_default(order, new)
    return (
        "the default handler is %s now, and the restart would make it %s%s. Say which it shall be: runtime_gate_default_handler: %s, with "
        "runtime_gate_accept_blast_radius: true, or runtime_gate_default_handler: %s%s"
        % (old, new, " (%s)" % place if place else "", new, old, ", or change that file" if place else "")
    )


__all__ = ("changed_default", "of_default", "words")
