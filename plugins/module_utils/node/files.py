# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the configuration files of a node: a superset of what any release line could load, without judging.

Taken are: the root files, everything that their import patterns could mean (relative to the file and to the daemon's
working directory, in a wider dialect than Go's glob), what lies beside them (a loss may be a file with the wrong name or in
the wrong directory), and the well-known configuration files of other runtimes on the node. Bounded in count and size.
Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import errno
import fnmatch
import os
import re
import stat
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.toml_spans import TomlScanError, scan

MAX_FILES = 400
MAX_FILE_SIZE = 4 * 1024 * 1024
MAX_TOTAL_SIZE = 24 * 1024 * 1024
_MAX_ENTRIES = 2000
_MAX_WALK_DEPTH = 3
_MAX_ENTERED = 20

#: Configuration directories and files of runtimes on a node, by distribution. Directories are searched below, too.
WELL_KNOWN = (
    "/etc/containerd",
    "/etc/containerd.d",
    "/usr/share/containerd",  # Flatcar
    "/run/torcx/unpack/docker/usr/share/containerd",  # Flatcar, older
    "/etc/host-containerd",  # Bottlerocket
    "/var/lib/rancher/k3s/agent/etc/containerd",
    "/var/lib/rancher/rke2/agent/etc/containerd",
    "/etc/k0s",
    "/run/k0s/containerd-cri.toml",
    "/var/snap/microk8s/current/args",
    "/run/docker/containerd/containerd.toml",  # the containerd that dockerd starts
    "/etc/eks/containerd",
    "/opt/kata/containerd",  # kata-deploy
    "/etc/kata-containers/containerd",
    "/usr/local/etc/containerd",
)
#: Registry host files: many, full of credentials, and no handler stands in them.
_SKIPPED_DIRECTORIES = frozenset(("certs.d", "certs", "hosts.d"))
_CONFIGURATION_NAME = re.compile(r"toml|tmpl|\.conf|config|\.bak|~$", re.IGNORECASE)
_TOML_NAME = re.compile(r"toml", re.IGNORECASE)
_OTHER_NAME = re.compile(
    r"\.(?:pem|key|crt|cer|json|yaml|yml|sock|db|so|sh|txt|log|kubeconfig|env)$|passwd|secret|token|credential",
    re.IGNORECASE,
)
#: Beside a root file, everything in these is meant as configuration, whatever its name.
_DROP_IN_NAMES = frozenset(("conf.d", "config.d"))
_NO_CONFIGURATION = re.compile(
    r"\.(?:pem|key|crt|cer|sock|db|so|kubeconfig|env|log|lock)$|passwd|shadow|secret|token|credential", re.IGNORECASE
)
#: An import from such a directory, or from one of the root's own, names single files; the others are no configuration.
_COMMON_DIRECTORIES = re.compile(r"/(?:bin|sbin|lib|lib64|libexec|log|tmp|share|local|ssl|certs?|pki)\Z")
_MAX_ODD_NAMES = 64
_MAX_ODD_SIZE = 256 * 1024
_IMPORT_KEY = re.compile(r"imports?|includes?", re.IGNORECASE)
_IMPORT_TEXT = re.compile(r"""(?:imports?|includes?)["']?[ \t]*=[ \t]*(\[[^\]]*\]?|"[^"\n]*"|'[^'\n]*')""", re.IGNORECASE)
_STRING = re.compile(r"""\"([^"\n]*)\"|'([^'\n]*)'""")
_META = re.compile(r"[*?\[{\\]")


class Files:
    """What was read. All paths are the node's own, as the configuration names them.

    :ivar contents: path -> bytes.
    :ivar modified: path -> seconds since the epoch.
    :ivar unreadable: path -> why (permission, a directory, too large, ...).
    :ivar links: path -> target as it is written in the link.
    :ivar directories: those that were searched and are there.
    :ivar absent: what was looked for by name and is not there.
    :ivar truncated: sentences, where a bound cut something.
    """

    def __init__(self, root: str = "") -> None:
        self._root = root
        self._total = 0
        self._oddities_of: t.Set[str] = set()
        self._listed: t.Dict[str, t.List[str]] = {}
        self.contents: t.Dict[str, bytes] = {}
        self.modified: t.Dict[str, float] = {}
        self.unreadable: t.Dict[str, str] = {}
        self.links: t.Dict[str, str] = {}
        self.directories: t.Set[str] = set()
        self.absent: t.Set[str] = set()
        self.truncated: t.List[str] = []
        self.denied = False

    def read(self, path: str) -> t.Optional[bytes]:
        """Read one file, once; None when there is nothing to read (the reason is recorded)."""
        if path in self.contents:
            return self.contents[path]
        if path in self.unreadable or path in self.absent:
            return None
        self._note_links(path)
        try:
            facts = os.stat(self._root + path)
            reason = self._refusal(path, facts)
            if reason:
                self.unreadable[path] = reason
                return None
            data = self._bytes(path)
        except OSError as error:
            self._note_error(path, error)
            return None
        self.contents[path] = data
        self.modified[path] = facts.st_mtime
        self._total += len(data)
        return data

    def _refusal(self, path: str, facts: os.stat_result) -> t.Optional[str]:
        if stat.S_ISDIR(facts.st_mode):
            return "it is a directory"
        if not stat.S_ISREG(facts.st_mode):
            return "it is no regular file"
        if facts.st_size > MAX_FILE_SIZE:
            return "it is larger than %d bytes" % MAX_FILE_SIZE
        if len(self.contents) >= MAX_FILES or self._total + facts.st_size > MAX_TOTAL_SIZE:
            sentence = "not all files were read: more than %d files or %d bytes" % (MAX_FILES, MAX_TOTAL_SIZE)
            if sentence not in self.truncated:
                self.truncated.append(sentence)
            return "not read, there are too many files"
        return None

    def _bytes(self, path: str) -> bytes:
        # O_NONBLOCK: between stat and open the file may have become a pipe.
        descriptor = os.open(self._root + path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MAX_FILE_SIZE)

    def _note_error(self, path: str, error: OSError) -> None:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            self.absent.add(path)
            return
        self.denied = self.denied or error.errno in (errno.EACCES, errno.EPERM)
        self.unreadable[path] = (error.strerror or str(error)).lower()

    def _note_links(self, path: str) -> None:
        """Record each link on the way to a path, and on the way from there on."""
        parts = [part for part in path.split("/") if part]
        for length in range(1, len(parts) + 1):
            step = "/" + "/".join(parts[:length])
            if step in self.links:
                continue
            try:
                self.links[step] = os.readlink(self._root + step)
            except OSError:
                continue
            if length == len(parts):
                self._note_links(os.path.normpath(os.path.join(os.path.dirname(step), self.links[step])))

    def list(self, directory: str) -> t.List[str]:
        """Names in a directory, sorted; empty when it cannot be read (the reason is recorded)."""
        if directory in self._listed:
            return self._listed[directory]
        names: t.List[str] = []
        self._note_links(directory)
        try:
            names = sorted(os.listdir(self._root + directory))
            self.directories.add(directory)
        except OSError as error:
            if error.errno != errno.ENOTDIR:
                self._note_error(directory, error)
        strange = [name for name in names if not _is_unicode(name)]
        if strange:
            self.truncated.append("%s has %d names that are no UTF-8" % (directory, len(strange)))
            names = [name for name in names if name not in strange]
        if len(names) > _MAX_ENTRIES:
            self.truncated.append("%s has more than %d entries" % (directory, _MAX_ENTRIES))
            names = names[:_MAX_ENTRIES]
        self._listed[directory] = names
        return names

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(self._root + path)

    # ---- the superset

    def gather(self, roots: t.Iterable[str], working_directory: str = "/") -> None:
        """Read everything that could matter to a daemon with these root files.

        :param roots: absolute paths of the root files (running and after a restart).
        :param working_directory: the daemon's; old release lines resolve relative patterns against it.
        """
        queue = list(roots)
        for root in queue:
            self.read(root)
        for root in list(queue):
            self._beside(os.path.dirname(root), _is_configuration_directory(os.path.dirname(root)))
        for path in WELL_KNOWN:
            if self.is_directory(path):
                self._beside(path, True)
            elif os.path.lexists(self._root + path):
                self.read(path)
        followed: t.Set[str] = set()
        while True:
            fresh = [path for path in self.contents if path not in followed]
            if not fresh:
                return
            for path in fresh:
                followed.add(path)
                self._follow(path, working_directory)

    def read_all(self, directory: str, depth: int = 0) -> None:
        """Every file below a directory, whatever its name. Links to directories are not entered."""
        for name in self.list(directory):
            path = os.path.join(directory, name)
            if not self.is_directory(path):
                self.read(path)
            elif os.path.islink(self._root + path):
                self._note_links(path)
                self.directories.add(os.path.normpath(os.path.join(directory, os.readlink(self._root + path))))
            elif depth < _MAX_ENTERED:
                self.read_all(path, depth + 1)
            else:
                self.truncated.append("%s is nested too deeply" % path)

    def read_configuration(self, directory: str) -> None:
        """What looks like configuration by its name, in a directory and below."""
        if _is_configuration_directory(directory):
            self._beside(directory, True)

    def _beside(self, directory: str, deep: bool, depth: int = 0) -> None:
        """What lies in a directory and looks like configuration; with ``deep``, in its sub-directories too."""
        for name in self.list(directory):
            path = os.path.join(directory, name)
            if self.is_directory(path):
                if deep and depth < _MAX_WALK_DEPTH and name not in _SKIPPED_DIRECTORIES:
                    self._beside(path, True, depth + 1)
                    if name in _DROP_IN_NAMES:
                        self._oddly_named(path)
            elif _looks_right(name) if deep else _TOML_NAME.search(name):
                self.read(path)

    def _oddly_named(self, directory: str) -> None:
        """The files of a drop-in directory that its glob skips because of their names: a loss may be in one of them."""
        if directory in self._oddities_of or _COMMON_DIRECTORIES.search(directory) or directory.count("/") < 2:
            return
        self._oddities_of.add(directory)
        odd = [
            path
            for name, path in ((name, os.path.join(directory, name)) for name in self.list(directory))
            if path not in self.contents and not _NO_CONFIGURATION.search(name) and self._is_small_file(path)
        ]
        if len(odd) > _MAX_ODD_NAMES:
            self.truncated.append(
                "%s has more than %d files that are not named as configuration" % (directory, _MAX_ODD_NAMES)
            )
        for path in odd[:_MAX_ODD_NAMES]:
            self.read(path)

    def _is_small_file(self, path: str) -> bool:
        try:
            facts = os.stat(self._root + path)
        except OSError:
            return False
        return stat.S_ISREG(facts.st_mode) and facts.st_size <= _MAX_ODD_SIZE

    def _follow(self, path: str, working_directory: str) -> None:
        for pattern in import_patterns(decode(self.contents[path])[0] or ""):
            for base in sorted({os.path.dirname(path), working_directory}):
                self._expand(os.path.normpath(os.path.join(base, pattern)))

    def _expand(self, pattern: str) -> None:
        if not _META.search(pattern):
            data = self.read(pattern)
            if data is None and not self.is_directory(pattern):
                return
            if self.is_directory(pattern):
                self._beside(pattern, False)
                self._oddly_named(pattern)
            return
        for directory in self._directories(os.path.dirname(pattern)):
            wanted = _wider(os.path.basename(pattern))
            for name in self.list(directory):
                path = os.path.join(directory, name)
                if fnmatch.fnmatchcase(name, wanted) or (_TOML_NAME.search(name) and not self.is_directory(path)):
                    self.read(path)
            self._oddly_named(directory)

    def _directories(self, pattern: str) -> t.List[str]:
        """The directories that a pattern could mean; ``**`` stands for none, one or two levels."""
        found = ["/"]
        for part in pattern.split("/"):
            if not part:
                continue
            if not _META.search(part):
                found = [os.path.join(directory, part) for directory in found]
                continue
            levels = 2 if "**" in part else 1
            grown = list(found) if "**" in part else []
            for _level in range(levels):
                found = [
                    os.path.join(directory, name)
                    for directory in found
                    for name in self.list(directory)
                    if fnmatch.fnmatchcase(name, _wider(part)) and self.is_directory(os.path.join(directory, name))
                ][:_MAX_ENTRIES]
                grown += found
            found = grown
        return found


def _is_configuration_directory(directory: str) -> bool:
    """Whether sub-directories are worth a look: those of /etc itself are not."""
    return directory.count("/") > 1 or directory in WELL_KNOWN


def _is_unicode(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _looks_right(name: str) -> bool:
    return bool(_CONFIGURATION_NAME.search(name)) and not _OTHER_NAME.search(name)


def _wider(pattern: str) -> str:
    """A pattern for fnmatch that matches at least what Go's glob, or a person's idea of it, would."""
    return re.sub(r"\{[^}]*\}?|\\.?|\[[^\]]*\]?", "*", pattern)


def import_patterns(text: str) -> t.List[str]:
    """Every string that could be meant as an import: of any key like ``imports``, at any level."""
    try:
        return [
            entry.string
            for entry in scan(text)
            if entry.string and any(isinstance(part, str) and _IMPORT_KEY.fullmatch(part) for part in entry.path[-2:])
        ]
    except TomlScanError:
        strings = [found for value in _IMPORT_TEXT.findall(text) for found in _STRING.findall(value)]
        return [double or single for double, single in strings if double or single]


def decode(data: bytes) -> t.Tuple[t.Optional[str], t.Optional[str]]:
    """(text, None), or (None, why it is no text). A byte order mark of UTF-8 stays in the text."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return None, "it is UTF-16, a configuration file is UTF-8"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return None, "it is no UTF-8 (byte %d)" % error.start
    if "\x00" in text:
        return None, "it has NUL bytes, it is no text"
    return text, None


def decode_configuration(data: bytes) -> t.Tuple[str, t.Optional[str]]:
    """The text of a configuration file and, where it is no clean UTF-8, why.

    Old release lines read such files, newer ones stop at them: either way its handlers can be named, so the text is
    wanted, with replacement characters where bytes mean nothing.
    """
    text, reason = decode(data)
    if text is None and data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = data.decode("utf-16", "replace")
    return (data.decode("utf-8", "replace") if text is None else text), reason
