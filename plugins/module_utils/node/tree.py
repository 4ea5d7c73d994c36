# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of one change: what they are now, what they will be, and each step from one to the other and back.

One of them is the commit point. The others are either new under names that the present root file does not read, and are
written before it, or they are removed after it. So one rename (or unlink) switches, and a loss of power leaves the old
configuration or the new one. Modes, owners and extended attributes (SELinux labels, ACLs) are kept, and links are followed.
Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import os
import posixpath
import stat
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.go_glob import GlobSyntaxError, compile_pattern
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.files import (
    MAX_FILE_SIZE,
    decode,
    decode_configuration,
    import_patterns,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.secrets import Masker, Withheld
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.state import (
    read_backup,
    remove,
    sync_directory,
    write_synced,
)

_NEW_FILE_MODE = 0o644
_NEW_DIRECTORY_MODE = 0o755
_MAX_READ = 2000
#: Which step a change is part of.
BEFORE, COMMIT, AFTER = "before", "commit", "after"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Change:
    """One file of a transaction.

    :ivar path: as the configuration names it. ``real``: the file behind it, links followed.
    :ivar old: its bytes now, None where there is no such file. ``new``: its bytes to be, None: to be removed.
    :ivar facts: mode, uid, gid and xattrs that it has (or gets).
    :ivar role: :data:`BEFORE`, :data:`COMMIT` or :data:`AFTER`.
    :ivar draft: name under which the new bytes wait. ``aside``: name under which the old file stays until the end.
    :ivar made: directories that must be made for it, outermost first.
    """

    def __init__(self, path: str, real: str, old: t.Optional[bytes], new: t.Optional[bytes], facts: t.Dict[str, t.Any]) -> None:
        self.path = path
        self.real = real
        self.old = old
        self.new = new
        self.facts = facts
        self.role = COMMIT
        self.draft = self.aside = ""
        self.made = _missing_directories(os.path.dirname(real))

    def record(self) -> t.Dict[str, t.Any]:
        """What the journal keeps of it: no content."""
        return {
            "path": self.path,
            "real": self.real,
            "role": self.role,
            "old_sha256": None if self.old is None else sha256(self.old),
            "new_sha256": None if self.new is None else sha256(self.new),
            "draft": self.draft,
            "aside": self.aside,
            "made": self.made,
        }


# ---- planning


def read_changes(writes: t.Sequence[t.Mapping[str, t.Any]], commit: t.Optional[str], masker: Masker) -> t.List[Change]:
    """The changes that a plan means on this node, masked values put back; what is already as planned is left out.

    :raises RuntimeGateError: a file changed since it was read, cannot be read, or the plan cannot be done as one step.
    """
    changes = read_texts(writes, masker)
    _assign_roles(changes, commit)
    return changes


def read_texts(writes: t.Sequence[t.Mapping[str, t.Any]], masker: Masker) -> t.List[Change]:
    """As :func:`read_changes`, for texts that are only loaded in a private namespace: no step has to switch them.

    :raises RuntimeGateError: a file changed since it was read, or cannot be read.
    """
    changes: t.List[Change] = []
    for write in writes:
        change = _read_change(write, masker)
        if any(other.real == change.real for other in changes):
            raise RuntimeGateError("%s is named twice in the plan (through a link); nothing was changed." % change.real)
        changes.append(change)
    return [change for change in changes if change.old != change.new]


def _read_change(write: t.Mapping[str, t.Any], masker: Masker) -> Change:
    path = write["path"]
    if not path.startswith("/"):
        raise RuntimeGateError("the plan names %r, which is no absolute path." % path)
    real = os.path.realpath(path)
    text = write.get("text")
    if text is None and os.path.islink(path):
        raise RuntimeGateError("%s is a link to %s and is not removed; remove it by hand and run again." % (path, real))
    old, facts = _read_old(path, real)
    expected = write.get("sha256")
    found = None if old is None else sha256(old)
    if found != expected:
        what = "is gone" if found is None else "is there now" if expected is None else "was changed"
        raise RuntimeGateError("%s %s since it was read; nothing was changed. Run again." % (path, what))
    if write.get("mode"):
        facts["mode"] = int(write["mode"], 8)
    return Change(path, real, old, None if text is None else _new_bytes(path, text, old, masker), facts)


def _read_old(path: str, real: str) -> t.Tuple[t.Optional[bytes], t.Dict[str, t.Any]]:
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None, {"mode": _NEW_FILE_MODE, "uid": os.geteuid(), "gid": os.getegid(), "xattrs": {}}
    except OSError as error:
        raise RuntimeGateError("%s cannot be read: %s; nothing was changed." % (path, error.strerror)) from None
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise RuntimeGateError("%s is no regular file; nothing was changed." % path)
        data = file.read(MAX_FILE_SIZE + 1)
        if len(data) > MAX_FILE_SIZE:
            raise RuntimeGateError("%s is larger than %d bytes; nothing was changed." % (path, MAX_FILE_SIZE))
        return data, {
            "mode": stat.S_IMODE(facts.st_mode),
            "uid": facts.st_uid,
            "gid": facts.st_gid,
            "xattrs": _xattrs(descriptor),
        }


def _xattrs(descriptor: int) -> t.Dict[str, str]:
    try:
        names = os.listxattr(descriptor)
    except OSError:
        # The file system has none.
        return {}
    return {name: base64.b64encode(os.getxattr(descriptor, name)).decode() for name in names}


def _new_bytes(path: str, text: str, old: t.Optional[bytes], masker: Masker) -> bytes:
    original = ""
    if old is not None:
        reason = decode(old)[1]
        if reason:
            raise RuntimeGateError("%s cannot be edited: %s; nothing was changed." % (path, reason))
        original = decode_configuration(old)[0]
    try:
        return masker.put_back(text, original).encode("utf-8")
    except Withheld as error:
        raise RuntimeGateError(
            "%s cannot be written: %s. A secret never leaves its file; edit this file by hand." % (path, error)
        ) from None
    except UnicodeEncodeError:
        raise RuntimeGateError("the plan's text of %s is no UTF-8; nothing was changed." % path) from None


def _assign_roles(changes: t.List[Change], commit: t.Optional[str]) -> None:
    if not changes:
        return
    chosen = [change for change in changes if change.path == commit]
    if not chosen and len(changes) > 1:
        raise RuntimeGateError("the plan changes %d files and none of them is its commit point (%s)." % (len(changes), commit))
    for change in changes:
        if change in chosen or len(changes) == 1:
            change.role = COMMIT
        elif change.old is not None and change.new is not None:
            raise RuntimeGateError(
                "the plan changes the content of %s beside its commit point %s: that is no single step. Its new content must "
                "lie under a new name." % (change.path, commit)
            )
        else:
            change.role = AFTER if change.new is None else BEFORE


def check_single_step(changes: t.Sequence[Change], patterns: t.Union[ReadPatterns, ReadDirectory]) -> None:
    """Choose the names of drafts, and refuse what the present root file would read before the commit.

    :raises RuntimeGateError: the change is no single step.
    """
    for change in changes:
        if change.role == BEFORE and patterns.match(change.path, change.real):
            raise RuntimeGateError(
                "the plan writes %s beside its commit point, and the present root file reads it already: a loss of power "
                "would leave neither the old configuration nor the new one." % change.path
            )
        change.draft = _unread_name(change.real, "new", patterns)
        change.aside = _unread_name(change.real, "old", patterns)


def _unread_name(real: str, what: str, patterns: t.Union[ReadPatterns, ReadDirectory]) -> str:
    """A name on the same file system that no import pattern means."""
    directory, name = os.path.split(real)
    hidden = ".%s.runtime-gate-%s" % (name, what)
    device = _device(directory)
    while True:
        candidate = os.path.join(directory, hidden)
        if not patterns.match(candidate, candidate):
            return candidate
        if directory == "/" or _device(os.path.dirname(directory)) != device:
            raise RuntimeGateError(
                "%s every name beside %s, so that it cannot be replaced in one step; %s." % (patterns.reader, real, patterns.advice)
            )
        directory = os.path.dirname(directory)


def _device(directory: str) -> int:
    while not os.path.isdir(directory):
        directory = os.path.dirname(directory)
    return os.stat(directory).st_dev


def _missing_directories(directory: str) -> t.List[str]:
    missing: t.List[str] = []
    while directory != "/" and not os.path.isdir(directory):
        missing.insert(0, directory)
        directory = os.path.dirname(directory)
    return missing


class ReadPatterns:
    """Which names the configuration on disk reads: its root file and, from file to file, the import patterns.

    Relative patterns are taken relative to the file and to ``/``, the working directory under systemd: old release lines use
    the one, newer ones the other.
    """

    reader, advice = "the imports of the present configuration read", "make the import pattern end in .toml"

    def __init__(self, root: t.Optional[str]) -> None:
        self._literal: t.Set[str] = {root} if root else set()
        self._globs: t.List[t.Pattern[str]] = []
        queue = [root] if root else []
        seen: t.Set[str] = set()
        while queue and len(seen) < _MAX_READ:
            path = queue.pop(0)
            if path in seen:
                continue
            seen.add(path)
            for pattern in import_patterns(_text(path)):
                for base in (posixpath.dirname(path), "/"):
                    queue += self._add(posixpath.normpath(posixpath.join(base, pattern)))

    def _add(self, pattern: str) -> t.List[str]:
        if "*" not in pattern:
            self._literal.add(pattern)
            return [pattern]
        try:
            self._globs.append(compile_pattern(pattern))
            return _expand(pattern)
        except GlobSyntaxError:
            return []

    def match(self, *paths: str) -> bool:
        return any(path in self._literal or any(glob.match(path) for glob in self._globs) for path in paths)


class ReadDirectory:
    """Which names CRI-O reads: its root file, and every file below its directory, whatever its name."""

    reader, advice = "CRI-O reads", "lay the directory on the file system of the one above it"

    def __init__(self, root: t.Optional[str], directory: str) -> None:
        self._root = root
        self._below = os.path.realpath(directory).rstrip("/") + "/"

    def match(self, *paths: str) -> bool:
        return any(path == self._root or os.path.join(os.path.realpath(os.path.dirname(path)), "x").startswith(self._below) for path in paths)


def _expand(pattern: str) -> t.List[str]:
    found = ["/"]
    for part in pattern.strip("/").split("/"):
        matcher = compile_pattern(part)
        grown = []
        for directory in found:
            if "*" not in part:
                grown.append(posixpath.join(directory, part))
                continue
            try:
                names = sorted(os.listdir(directory))
            except OSError:
                continue
            grown += [posixpath.join(directory, name) for name in names if matcher.match(name)]
        found = grown[:_MAX_READ]
    return found


def _text(path: str) -> str:
    """The text of a file, empty where there is none. A wide pattern can mean devices, which are not opened."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return ""
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return decode_configuration(file.read(MAX_FILE_SIZE))[0]
    except OSError:
        return ""


# ---- doing


def write_draft(draft: str, data: bytes, facts: t.Mapping[str, t.Any]) -> None:
    """The new bytes under a name that nothing reads, on disk, with the owner, mode and attributes of the file."""
    remove(draft)
    write_synced(draft, data)
    os.chown(draft, facts["uid"], facts["gid"])
    os.chmod(draft, facts["mode"])
    for name, value in facts["xattrs"].items():
        os.setxattr(draft, name, base64.b64decode(value))
    descriptor = os.open(draft, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def prepare(changes: t.Sequence[Change]) -> None:
    """Everything that can fail for want of space or permission, and that the present root file does not see.

    :raises OSError: a step failed; :func:`undo` takes back what was done. RuntimeGateError: a file is there now.
    """
    for change in changes:
        for directory in change.made:
            if not os.path.isdir(directory):
                os.mkdir(directory, _NEW_DIRECTORY_MODE)
                sync_directory(os.path.dirname(directory))
        if change.new is not None:
            write_draft(change.draft, change.new, change.facts)
        if change.old is not None and change.role == COMMIT:
            remove(change.aside)
            _link(change.real, change.aside)
        sync_directory(os.path.dirname(change.draft))
    for change in changes:
        if change.role == BEFORE:
            if os.path.lexists(change.real):
                raise RuntimeGateError("%s was made by someone else meanwhile." % change.path)
            os.rename(change.draft, change.real)
            sync_directory(os.path.dirname(change.real))


def _link(path: str, name: str) -> None:
    try:
        os.link(path, name)
    except OSError as error:
        # A file system without hard links: the way back takes the backup.
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS):
            raise


def commit(changes: t.Sequence[Change]) -> None:
    """The one step that switches. Whoever wrote to the file since it was read is not overwritten.

    :raises RuntimeGateError: the file changed. OSError: the step failed, and has not happened.
    """
    for change in changes:
        if change.role != COMMIT:
            continue
        if current(change.real) != change.record()["old_sha256"]:
            raise RuntimeGateError("%s was changed by someone else meanwhile." % change.path)
        if change.new is None:
            os.unlink(change.real)
        else:
            os.rename(change.draft, change.real)
        sync_directory(os.path.dirname(change.real))


def current(real: str) -> t.Optional[str]:
    """The sha256 of a file's bytes; None where it is not there.

    :raises OSError: it cannot be read.
    """
    try:
        with open(real, "rb") as file:
            return sha256(file.read())
    except (FileNotFoundError, NotADirectoryError):
        return None


# ---- from the journal's records, also in another process later


def is_committed(records: t.Sequence[t.Mapping[str, t.Any]]) -> t.Optional[bool]:
    """Whether the one step has happened, by what lies on disk; None: somebody else changed the file since."""
    for record in records:
        if record["role"] == COMMIT:
            found = current(record["real"])
            return True if found == record["new_sha256"] else False if found == record["old_sha256"] else None
    return True


def remove_obsolete(records: t.Sequence[t.Mapping[str, t.Any]]) -> None:
    """After the commit: what the new root file no longer reads is put aside."""
    for record in records:
        if record["role"] == AFTER and current(record["real"]) == record["old_sha256"]:
            os.rename(record["real"], record["aside"])
            sync_directory(os.path.dirname(record["real"]))


def clean_up(records: t.Sequence[t.Mapping[str, t.Any]]) -> None:
    """Drop drafts and what was put aside."""
    for record in records:
        if [name for name in (record["draft"], record["aside"]) if remove(name)]:
            sync_directory(os.path.dirname(record["real"]))


def undo(records: t.Sequence[t.Mapping[str, t.Any]], backup: t.Optional[str]) -> t.List[str]:
    """Give back the tree of before the transaction, from any point of it; the reverse order, with the same one step.

    :returns: sentences about what was left alone, because somebody else had changed it.
    :raises OSError: a step failed; it may be called again.
    """
    left = []
    order = {AFTER: 0, COMMIT: 1, BEFORE: 2}
    for record in sorted(records, key=lambda record: order[record["role"]]):
        found = current(record["real"])
        if found == record["old_sha256"]:
            continue
        if found != record["new_sha256"]:
            left.append("%s was changed by someone else and was left alone" % record["path"])
            continue
        _restore(record, backup)
    clean_up(records)
    for record in records:
        remove_empty(record["made"])
    return left


def remove_empty(directories: t.Iterable[str]) -> None:
    """Remove these directories, the inner ones first; one that is not empty is somebody else's by now, and stays."""
    for directory in sorted(directories, key=len, reverse=True):
        try:
            os.rmdir(directory)
        except OSError:
            # Not empty, or never made.
            continue
        sync_directory(os.path.dirname(directory))


def emptied(records: t.Sequence[t.Mapping[str, t.Any]], made: t.Set[str]) -> t.Set[str]:
    """Of the directories that were made for our files, those that a removed file of these records lay in."""
    removed = [record["real"] for record in records if record["new_sha256"] is None]
    return {directory for directory in made for path in removed if path.startswith(directory.rstrip("/") + "/")}


def _restore(record: t.Mapping[str, t.Any], backup: t.Optional[str]) -> None:
    real = record["real"]
    if record["old_sha256"] is None:
        remove(real)
    else:
        if current(record["aside"]) != record["old_sha256"]:
            # The file put aside is the very one that was there. Without it: the same bytes, owner, mode and attributes.
            data, facts = read_backup(backup or "", record["path"])
            write_draft(record["aside"], data, facts)
        os.rename(record["aside"], real)
    if os.path.isdir(os.path.dirname(real)):
        sync_directory(os.path.dirname(real))
