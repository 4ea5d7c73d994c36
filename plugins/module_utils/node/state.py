# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the writer keeps on a node: one directory, a lock, a journal, backups, the result of the last run.

Everything lies in :data:`STATE_DIRECTORY`, readable by root only: backups hold secrets. Nothing is kept beside the files that
a runtime reads. Runs on nodes: the standard library of Python 3.8 only.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import stat
import time
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

STATE_DIRECTORY = "/var/lib/runtime-gate"
_JOURNAL = "transaction.json"
_RESULT = "last-run.json"
_DIRECTORIES = "directories.json"
_HANDLERS = "handlers.json"
_LOCK = "lock"
_BACKUPS = "backups"
_MANIFEST = "manifest.json"
_LOCK_PAUSE = 0.1


def sync_directory(path: str) -> None:
    """Make what was renamed, created or removed in a directory outlive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # File systems that cannot sync a directory say EINVAL; they have nothing to sync.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def write_synced(path: str, data: bytes, mode: int = 0o600) -> None:
    """Create a file (never follow a link, never reuse one) with its bytes on disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def remove(path: str) -> bool:
    """Unlink a file; whether it was there. (Asked first: a read-only file system refuses also what is not there.)"""
    if not os.path.lexists(path):
        return False
    os.unlink(path)
    return True


class State:
    """The state directory of this node. Nothing is made on disk before :meth:`lock`."""

    def __init__(self, directory: str = STATE_DIRECTORY) -> None:
        self.directory = directory
        self._lock: t.Optional[int] = None

    # ---- the lock

    def lock(self, wait: float) -> None:
        """Keep every other writer out until this process ends or :meth:`unlock`.

        :param wait: seconds to wait for another writer to end.
        :raises RuntimeGateError: another one holds the lock, or the directory cannot be used.
        """
        self._make_directory()
        try:
            descriptor = os.open(self._path(_LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise RuntimeGateError("%s cannot be opened: %s." % (self._path(_LOCK), error.strerror)) from None
        deadline = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() >= deadline:
                    owner = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip()
                    os.close(descriptor)
                    raise RuntimeGateError(
                        "Another run is changing this node's container runtime%s; wait for its end and run again."
                        % (" (%s)" % owner if owner else "")
                    ) from None
                time.sleep(_LOCK_PAUSE)
        self._lock = descriptor
        self._sign(descriptor)

    @staticmethod
    def _sign(descriptor: int) -> None:
        text = "process %d, since %s" % (os.getpid(), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
        try:
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, text.encode(), 0)
        except OSError:
            # Only a help for the reader of a refusal; a full disk must not stop what the lock is for.
            pass

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _make_directory(self) -> None:
        try:
            os.makedirs(self.directory, 0o700, exist_ok=True)
            facts = os.lstat(self.directory)
            if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
                raise RuntimeGateError("%s must be a directory of root, it is something else." % self.directory)
            if stat.S_IMODE(facts.st_mode) != 0o700:
                os.chmod(self.directory, 0o700)
        except OSError as error:
            raise RuntimeGateError(
                "%s cannot be used: %s. The writer keeps its journal and backups there." % (self.directory, error.strerror)
            ) from None

    # ---- the journal

    def journal(self) -> t.Optional[t.Dict[str, t.Any]]:
        """The transaction that has not ended; None where there is none.

        :raises RuntimeGateError: there is one, and it cannot be read.
        """
        try:
            return _read_json(self._path(_JOURNAL))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise RuntimeGateError(
                "%s cannot be read (%s), so an interrupted change can neither be finished nor undone; compare the files with "
                "%s and remove the journal." % (self._path(_JOURNAL), error, self._path(_BACKUPS))
            ) from None

    def write_journal(self, journal: t.Mapping[str, t.Any]) -> None:
        """Replace the journal as one step; it is on disk when this returns."""
        self._write_json(_JOURNAL, journal)

    def end_journal(self) -> None:
        """The transaction has ended, either way."""
        remove(self._path(_JOURNAL) + ".new")
        if remove(self._path(_JOURNAL)):
            sync_directory(self.directory)

    # ---- the result of the last run

    def write_result(self, result: t.Mapping[str, t.Any]) -> None:
        self._write_json(_RESULT, result)

    def last_result(self) -> t.Optional[t.Dict[str, t.Any]]:
        """What the last run came to, also when nobody was there to hear it; None where it is not known."""
        try:
            return _read_json(self._path(_RESULT))
        except (OSError, ValueError):
            return None

    # ---- directories of ours

    def made_directories(self) -> t.Set[str]:
        """Directories that were made for a file of ours, and go when the last file goes; empty where that is not known."""
        try:
            return set(_read_json(self._path(_DIRECTORIES))["made"])
        except (OSError, ValueError, KeyError, TypeError):
            return set()

    def write_made_directories(self, directories: t.Set[str]) -> None:
        self._write_json(_DIRECTORIES, {"made": sorted(directories)})

    # ---- handlers of ours

    def written_handlers(self) -> t.Optional[t.List[str]]:
        """Names of the handlers that the runs have written; None where that is not known."""
        try:
            return sorted(str(name) for name in _read_json(self._path(_HANDLERS))["written"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write_handlers(self, names: t.Iterable[str]) -> None:
        self._write_json(_HANDLERS, {"written": sorted(names)})

    # ---- backups

    def write_backup(self, name: str, files: t.Mapping[str, t.Tuple[bytes, t.Mapping[str, t.Any]]]) -> str:
        """Keep the bytes of files before a change.

        :param files: path -> (bytes, facts such as mode, owner and extended attributes).
        :returns: the directory of the backup.
        """
        directory = os.path.join(self._path(_BACKUPS), name)
        os.makedirs(self._path(_BACKUPS), 0o700, exist_ok=True)
        os.mkdir(directory, 0o700)
        manifest = {}
        for number, (path, (data, facts)) in enumerate(sorted(files.items())):
            write_synced(os.path.join(directory, str(number)), data)
            manifest[path] = dict(facts, file=str(number))
        write_synced(os.path.join(directory, _MANIFEST), json.dumps(manifest, indent=1, sort_keys=True).encode())
        for parent in (directory, self._path(_BACKUPS), self.directory):
            sync_directory(parent)
        return directory

    def backups(self) -> t.List[str]:
        """Directories of the backups, the oldest first."""
        try:
            names = sorted(os.listdir(self._path(_BACKUPS)))
        except OSError:
            return []
        return [os.path.join(self._path(_BACKUPS), name) for name in names]

    def prune_backups(self, keep: int) -> None:
        """Only the newest backups stay. A failure is left for the next run."""
        every = self.backups()
        for directory in every[: max(len(every) - max(keep, 0), 0)]:
            shutil.rmtree(directory, ignore_errors=True)

    # ----

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)

    def _write_json(self, name: str, value: t.Mapping[str, t.Any]) -> None:
        path = self._path(name)
        remove(path + ".new")
        write_synced(path + ".new", json.dumps(value, indent=1, sort_keys=True).encode())
        os.rename(path + ".new", path)
        sync_directory(self.directory)


def read_backup(directory: str, path: str) -> t.Tuple[bytes, t.Dict[str, t.Any]]:
    """(bytes, facts) of one file of a backup.

    :raises OSError: it cannot be read. ValueError, KeyError: it is no backup, or not of this file.
    """
    facts = _read_json(os.path.join(directory, _MANIFEST))[path]
    with open(os.path.join(directory, facts["file"]), "rb") as file:
        return file.read(), facts


def _read_json(path: str) -> t.Dict[str, t.Any]:
    with open(path, "rb") as file:
        value = json.loads(file.read().decode("utf-8"))
    if not isinstance(value, dict):
        raise ValueError("it holds no object")
    return value
