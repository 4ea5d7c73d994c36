# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The change of the loaded configuration in words, handler by handler and key by key."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import comparison

Table = t.Mapping[str, t.Any]


class LoadedState(t.NamedTuple):
    """What is loaded, or would be: handlers by name, and the default."""

    handlers: t.Mapping[str, Table]
    default: t.Optional[str]


def loaded_diff(before: LoadedState, after: LoadedState, with_options: bool = True) -> t.List[str]:
    """Sentences, sorted by handler; the default handler last. Empty: nothing changes.

    :param with_options: both sides know the handlers' options (containerd 1.4 does not tell them).
    """
    sentences = []
    for name in sorted(set(before.handlers) | set(after.handlers)):
        if name not in after.handlers:
            sentences.append("handler %s: removed" % name)
        elif name not in before.handlers:
            sentences.append("handler %s: added (%s)" % (name, _described(after.handlers[name])))
        else:
            sentences += _key_changes(name, before.handlers[name], after.handlers[name], with_options)
    if before.default != after.default:
        sentences.append("default handler: %s -> %s" % (before.default or "none", after.default or "none"))
    return sentences


def summary(before: LoadedState, after: LoadedState, with_options: bool = True) -> str:
    """The same in one line: which handlers come, go and change, and the default. "": nothing changes."""
    names = {
        "handlers added": sorted(set(after.handlers) - set(before.handlers)),
        "removed": sorted(set(before.handlers) - set(after.handlers)),
        "changed": sorted(
            name
            for name in set(before.handlers) & set(after.handlers)
            if comparison.differing(before.handlers[name], after.handlers[name], with_options)
        ),
    }
    parts = ["%s: %s" % (word, ", ".join(found)) for word, found in names.items() if found]
    if before.default != after.default:
        parts.append("default handler: %s -> %s" % (before.default or "none", after.default or "none"))
    text = "; ".join(parts)
    return text if not text or text.startswith(("handlers", "default")) else "handlers %s" % text


def _described(handler: Table) -> str:
    pairs = []
    for key, value in comparison.normal(handler).items():
        if key == "options":
            pairs += ["options.%s %s" % (name, _shown(item)) for name, item in sorted(value.items())]
        else:
            pairs.append("%s %s" % (key, _shown(value)))
    return ", ".join(pairs) or "no keys"


def _key_changes(name: str, before: Table, after: Table, with_options: bool) -> t.List[str]:
    return [
        "handler %s: %s %s -> %s" % (name, key, _shown(_value(before, key)), _shown(_value(after, key)))
        for key in comparison.differing(before, after, with_options)
    ]


def _value(handler: Table, key: str) -> t.Any:
    found = comparison.normal(handler)
    if key.startswith("options."):
        return (found.get("options") or {}).get(key[len("options.") :])
    return found.get(key)


def _shown(value: t.Any) -> str:
    if value is None:
        return "unset"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def state_text(state: LoadedState) -> str:
    """The loaded configuration as a text of one line a key, for a diff to be made from two."""
    lines = ["default handler: %s" % (state.default or "none")]
    for name in sorted(state.handlers):
        lines.append("handler %s" % name)
        for key, value in sorted(comparison.normal(state.handlers[name]).items()):
            if key == "options":
                lines += ["  options.%s: %s" % (option, _shown(item)) for option, item in sorted(value.items())]
            else:
                lines.append("  %s: %s" % (key, _shown(value)))
    return "\n".join(lines) + "\n"


__all__ = ("LoadedState", "loaded_diff", "state_text", "summary")
