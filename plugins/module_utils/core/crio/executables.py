# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which programs and files that CRI-O looks for are on the node, as a capture has recorded it.

CRI-O asks two different questions: a path that is given must exist (os.Stat, whatever its mode), a name that is looked up on
its PATH must be executable (exec.LookPath).
"""

from __future__ import annotations

import posixpath
import typing as t

#: The PATH of a systemd service where none is recorded (systemd.exec(5)).
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Executables:
    """Answers with None where the capture does not tell."""

    def __init__(self, node: t.Mapping[str, t.Any]) -> None:
        self._binaries: t.Dict[str, bool] = {str(path): bool(there) for path, there in (node.get("binaries") or {}).items()}
        self._plain: t.Set[str] = set(node.get("not_executable") or [])
        self._absent: t.Set[str] = set(node.get("absent") or [])
        self._path = str(node.get("daemon_path") or _PATH)

    def runs(self, path: str) -> t.Optional[bool]:
        """The file is there and executable."""
        if path in self._plain:
            return False
        return self._binaries.get(path, False if path in self._absent else None)

    def exists(self, path: str) -> t.Optional[bool]:
        """The file is there, executable or not. A relative path is looked up in the daemon's directory, which is not known."""
        if path in self._plain:
            return True
        if path in self._absent:
            return False
        return self._binaries.get(path)

    def assumed(self, path: str) -> Executables:
        """The same node with a file that is there after all, though nobody may execute it."""
        other = Executables({"binaries": self._binaries, "not_executable": self._plain | {path}, "absent": self._absent - {path}})
        other._path = self._path
        return other

    def on_path(self, name: str) -> t.Optional[str]:
        """The path under which a name is found on the daemon's PATH; "" where it is not, None where that is not known."""
        found = [path for path, there in self._binaries.items() if there and path.startswith("/") and posixpath.basename(path) == name]
        places = [posixpath.join(directory, name) for directory in self._path.split(":")]
        for place in places:
            if place in found:
                return place
        if self._binaries.get(name) is False:
            return ""
        return None


__all__ = ("Executables",)
