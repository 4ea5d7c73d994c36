# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the worker processes of one ansible run share, and nothing of any other run.

Ansible forks a worker for each task of each host. Cluster data must nevertheless be read once, and
the one host that completes a set must know that it does. ``run_once`` and a play on localhost do not
give that: the former is read anew in each batch of ``serial`` and ignored by the free strategy, the
latter is cut away by ``--limit``. A directory does: ansible's own ``DEFAULT_LOCAL_TMP`` is made by the
main process (mode 0700) before it forks, is inherited by each worker, and is removed when the run ends.

Everything is JSON, so that a broken entry is an error and never code.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

_FOLDER = "runtime_gate"


def _file_name(name: str) -> str:
    """A short, safe and unique file name for any text (host names and keys may hold slashes)."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:40]


class RunStore:
    """A directory with locks. Safe for many processes at once; every method may be called from any worker."""

    def __init__(self, directory: str) -> None:
        """:param directory: an existing directory that only this run uses; it is filled on first use."""
        self._root = os.path.join(directory, _FOLDER)
        os.makedirs(self._root, mode=0o700, exist_ok=True)

    @contextlib.contextmanager
    def _locked(self, name: str) -> t.Iterator[None]:
        """Hold the lock of this name. The kernel lets go of it when its holder dies."""
        descriptor = os.open(os.path.join(self._root, name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _write(self, path: str, value: t.Any) -> None:
        """Write value as JSON so that a reader sees all of it or nothing."""
        descriptor, unfinished = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as stream:
            json.dump(value, stream)
        os.replace(unfinished, path)

    @staticmethod
    def _read(path: str) -> t.Any:
        with open(path, encoding="utf-8", errors="surrogateescape") as stream:
            return json.load(stream)

    def once(self, key: str, produce: t.Callable[[], t.Any]) -> t.Any:
        """The value of key; the first caller of the run makes it with produce(), everyone else waits for that.

        A RuntimeGateError of produce() is remembered like a value, so that an API that refuses or hangs is
        asked once and not once a host. Any other exception is a defect, is not remembered, and is raised.

        :param key: says what the value is; put everything into it on which the value depends.
        :param produce: returns something that JSON can hold.
        :raises RuntimeGateError: what produce() raised, now or for an earlier caller.
        """
        name = "once-" + _file_name(key)
        path = os.path.join(self._root, name)
        if not os.path.exists(path):
            with self._locked(name):
                if not os.path.exists(path):
                    try:
                        outcome = {"value": produce()}
                    except RuntimeGateError as error:
                        outcome = {"error": str(error)}
                    self._write(path, outcome)
        outcome = self._read(path)
        if "error" in outcome:
            raise RuntimeGateError(outcome["error"])
        return outcome["value"]

    def _kind_folder(self, kind: str) -> str:
        folder = os.path.join(self._root, "records-" + _file_name(kind))
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return folder

    def put_record(self, kind: str, host: str, record: t.Any) -> None:
        """Keep the record of this host; a later one of the same kind and host takes its place."""
        self._write(os.path.join(self._kind_folder(kind), _file_name(host)), {"host": host, "record": record})

    def record(self, kind: str, host: str) -> t.Any:
        """The record of this host; None where it has none."""
        try:
            return self._read(os.path.join(self._kind_folder(kind), _file_name(host)))["record"]
        except FileNotFoundError:
            return None

    def has_record(self, kind: str, host: str) -> bool:
        """Whether this host has a record of this kind, without reading it."""
        return os.path.exists(os.path.join(self._kind_folder(kind), _file_name(host)))

    def records(self, kind: str) -> t.Dict[str, t.Any]:
        """host -> record, in the order of the host names."""
        folder = self._kind_folder(kind)
        kept = [self._read(os.path.join(folder, name)) for name in os.listdir(folder) if not name.startswith(".")]
        return {entry["host"]: entry["record"] for entry in sorted(kept, key=lambda entry: entry["host"])}

    def claim(self, name: str) -> bool:
        """True for exactly one caller of the run, False for every other."""
        try:
            os.close(os.open(os.path.join(self._root, "claim-" + _file_name(name)), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True


def run_store() -> RunStore:
    """The store of the ansible run that this process belongs to."""
    from ansible import constants as C  # only where ansible runs: its import makes the directory

    return RunStore(C.DEFAULT_LOCAL_TMP)


def once(key: str, produce: t.Callable[[], t.Any]) -> t.Any:
    """RunStore.once in the store of this run."""
    return run_store().once(key, produce)
