# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For which release of its engine a node is rendered."""

from __future__ import annotations

import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

Rules = t.TypeVar("Rules")


def next_release(
    node: t.Mapping[str, t.Any], target: t.Optional[str], rules_for: t.Callable[[str], t.Optional[Rules]], engine: str, known: str
) -> t.Tuple[str, Rules]:
    """The release that the next start runs, and its rules.

    :param target: the release that will be installed, where none is. ``rules_for``: rules by version, None for one that is not known.
    :param engine: its name, for messages. ``known``: the first line that is known.
    :raises RuntimeGateError: nothing tells, or it is not known.
    """
    version = node.get("next_version") or node.get("version")
    if version and target and rules_for(str(target)) != rules_for(str(version)):
        raise RuntimeGateError(
            "runtime_gate_target_version is %s, but %s %s is installed; leave that variable out, or upgrade first"
            % (target, engine, version)
        )
    version = version or target
    if not version:
        raise RuntimeGateError("no %s was found on this node: set runtime_gate_target_version to the release that will be installed" % engine)
    rules = rules_for(str(version))
    if rules is None:
        raise RuntimeGateError("%s %s is not a release that this collection knows (%s and later)" % (engine, version, known))
    return str(version), rules


__all__ = ("next_release",)
