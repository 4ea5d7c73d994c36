# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Handler tables as TOML text."""

from __future__ import annotations

import types
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import toml_key
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

Table = t.Mapping[str, t.Any]


def toml_library() -> types.ModuleType:
    """tomlkit, which only writing needs, so that an audit runs without it.

    :raises RuntimeGateError: the controller does not have it.
    """
    try:
        import tomlkit
    except ImportError as error:
        raise RuntimeGateError(
            "writing the configuration needs the Python package tomlkit on the controller, beside ansible-core: pip install tomlkit"
        ) from error
    return tomlkit


def value_text(value: t.Any) -> str:
    """A value as TOML writes it; a table becomes an inline one."""
    if isinstance(value, dict):
        return "{ %s }" % ", ".join("%s = %s" % (toml_key([str(key)]), value_text(item)) for key, item in value.items())
    if isinstance(value, list):
        return "[%s]" % ", ".join(value_text(item) for item in value)
    return str(toml_library().item(value).as_string())


def table_text(path: t.Sequence[str], body: Table, indent: str = "") -> str:
    """A table with its header; the tables within follow it."""
    lines = ["%s[%s]" % (indent, toml_key(path))]
    inner = indent + "  "
    lines += ["%s%s = %s" % (inner, toml_key([key]), value_text(value)) for key, value in body.items() if key != "options"]
    text = "\n".join(lines) + "\n"
    if body.get("options"):
        text += table_text([*path, "options"], body["options"], inner)
    return text


def handler_path(plugin: str, name: str = "") -> t.Tuple[str, ...]:
    """The key path of a handler's table, or of the table of all handlers."""
    path = ("plugins", plugin, "containerd", "runtimes")
    return path + (name,) if name else path


def handlers_text(plugin: str, handlers: t.Mapping[str, Table]) -> str:
    """The tables of several handlers, sorted by name."""
    return "\n".join(table_text(handler_path(plugin, name), handlers[name]) for name in sorted(handlers))


__all__ = ("Table", "handler_path", "handlers_text", "table_text", "toml_library", "value_text")
