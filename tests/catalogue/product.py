# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The product's answer about a test node, and its repairs done there."""

from __future__ import annotations

import os
import time
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.fix_edits import apply_edits
from tests.testbed.host import RuntimeHost
from tests.testbed.product import collect, interpret


def facts(host: RuntimeHost, config_path: t.Optional[str] = None) -> t.Dict[str, t.Any]:
    """The facts, as the module gives them.

    :param config_path: the path to collect with where no running daemon shows it.
    """
    return interpret(collect(host, {"config_path": config_path} if config_path else None))


def write_later(host: RuntimeHost, path: str, text: str) -> None:
    """An edit after the daemon's start, with a modification time that says so to the second."""
    host.write(path, text)
    later = time.time() + 5
    os.utime(host.path(path), (later, later))


def apply(host: RuntimeHost, edits: t.List[t.Dict[str, t.Any]]) -> None:
    """Does a fault's edits in the node's files."""
    paths = {edit["file"] for edit in edits}
    texts = {path: host.path(path).read_text(encoding="utf-8") for path in paths if host.path(path).is_file()}
    for path, text in apply_edits(texts, edits).items():
        host.write(path, text)
