# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which executables the handlers of a node could need, and whether they are there.

A superset: every runtime_type, runtime_path and BinaryName that stands anywhere in a file, a dump or a Status answer.
The lookup is containerd's: an absolute path as it is, a name in the daemon's working directory, on its PATH and beside its
executable (LOADING.md, section 5). Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import os
import re
import typing as t

_VALUE = r"""["']?\s*[=:]\s*(?:"((?:[^"\\\n]|\\.)*)"|'([^'\n]*)')"""
_RUNTIME_TYPE = re.compile(r"runtime_?type" + _VALUE, re.IGNORECASE)
_BASE_SPEC = re.compile(r"""base_runtime_spec["']?\s*=\s*(?:"([^"\n]+)"|'([^'\n]+)')""")
_BINARY = re.compile(r"(?:binary_?name|runtime_?path|runtime_engine)" + _VALUE, re.IGNORECASE)
_MAX_BINARIES = 500
#: What a runc-type handler runs when it names no binary.
_DEFAULT_BINARIES = ("runc",)


def shims(runtime_type: str) -> t.List[str]:
    """The executables that a runtime_type stands for.

    The last two parts of a name give ``containerd-shim-<name>-<version>``; the v1 shim of containerd 1.x has a name of
    its own.
    """
    if runtime_type.startswith("/"):
        return [runtime_type]
    parts = runtime_type.split(".")
    if len(parts) < 2 or "/" in runtime_type or not parts[-1] or not parts[-2]:
        return []
    names = ["containerd-shim-%s-%s" % (parts[-2], parts[-1])]
    return names + ["containerd-shim"] if runtime_type == "io.containerd.runtime.v1.linux" else names


def wanted(texts: t.Iterable[str]) -> t.List[str]:
    """Names and absolute paths of the executables that these texts could mean, sorted."""
    found = set(_DEFAULT_BINARIES)
    for text in texts:
        for double, single in _RUNTIME_TYPE.findall(text):
            found.update(shims(double or single))
        found.update(double or single for double, single in _BINARY.findall(text))
    names = sorted(name for name in found if name and (name.startswith("/") or "/" not in name))
    return names[:_MAX_BINARIES]


def base_specs(texts: t.Iterable[str]) -> t.List[str]:
    """Absolute paths of the OCI specs that handlers are based on (containerd reads each of them when it starts)."""
    found = {double or single for text in texts for double, single in _BASE_SPEC.findall(text)}
    return sorted(path for path in found if path.startswith("/"))[:_MAX_BINARIES]


def look_up(
    names: t.Iterable[str], path: t.Optional[str], exe: t.Optional[str], cwd: t.Optional[str], root: str
) -> t.Dict[str, bool]:
    """Name or path -> is it there and executable; beside a name, the path under which it was found.

    :param path: the daemon's PATH.
    :param exe: its executable. ``cwd``: its working directory. ``root``: prefix of its mount namespace.
    """
    directories = [directory for directory in [cwd] + (path or "").split(":") if directory]
    directories += [os.path.dirname(exe)] if exe else []
    answers: t.Dict[str, bool] = {}
    for name in names:
        if name.startswith("/"):
            answers[name] = _is_executable(root + name)
            continue
        places = [os.path.join(directory, name) for directory in directories]
        there = next((place for place in places if _is_executable(root + place)), None)
        answers[name] = there is not None
        if there:
            answers[there] = True
    return answers


def _is_executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
