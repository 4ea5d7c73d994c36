"""The changes that the faults strike: a tree before, a tree after, and what a daemon has loaded with each.

What this proves: nothing by itself. Between them the changes have every kind of step: a new file, the one rename, a removal, a
single file that is its own commit, a secret that must stay.
"""
from __future__ import annotations

import typing as t

from tests.faults.node import Tree
from tests.testbed.host import CONFIG

OURS = "/etc/containerd/conf.d/99-runtime-gate.toml"
OURS_3 = "/etc/containerd/conf.d/99-runtime-gate-v3.toml"
_OLD = 'plugins."io.containerd.grpc.v1.cri"'
_NEW = 'plugins."io.containerd.cri.v1.runtime"'
SECRET = "correct-horse-battery"
_AUTH = f'\n[plugins."io.containerd.grpc.v1.cri".registry.configs."registry.example".auth]\npassword = "{SECRET}"\n'
MASKED = "__RUNTIME_GATE_MASKED_1__"


def _handler(name: str, section: str, options: str = "") -> str:
    return f'[{section}.containerd.runtimes.{name}]\nruntime_type = "io.containerd.runc.v2"\n{options}'


class Change(t.NamedTuple):
    """before and after: files; loaded_*: what a daemon answers with each (handlers, default)."""

    name: str
    line: str
    before: Tree
    after: Tree
    removed: t.Tuple[str, ...]
    loaded_before: t.Tuple[t.List[str], str]
    loaded_after: t.Tuple[t.List[str], str]
    engine: str = "containerd"

    @property
    def wanted(self) -> Tree:
        """The files after, as a controller writes them: it never saw the secret."""
        return {path: text.replace(SECRET, MASKED) for path, text in self.after.items()}

    def wanted_now(self, present: Tree) -> Tree:
        """The same for a tree as it is now: a file that is already right is sent as it is, so that it is left alone."""
        return {path: text if present.get(path) == text else self.wanted[path] for path, text in self.after.items()}

    @property
    def expect(self) -> list[str]:
        return [name for name in self.loaded_after[0] if name not in self.loaded_before[0]]

    @property
    def absent(self) -> list[str]:
        return [name for name in self.loaded_before[0] if name not in self.loaded_after[0]]


_ROOT = f'# written by a person\nversion = 2\n\n{_handler("other", _OLD)}{_AUTH}'
_IMPORTS = 'imports = ["/etc/containerd/conf.d/*.toml"]\n'
_DROPIN = "version = 2\n\n" + _handler("mine", _OLD) + _handler("second", _OLD)

ROLLOUT = Change(
    "a first rollout", "2.1", {CONFIG: _ROOT}, {CONFIG: _IMPORTS + _ROOT, OURS: _DROPIN}, (),
    (["other", "runc"], "runc"), (["mine", "other", "runc", "second"], "runc"),
)  # fmt: skip
MIGRATION = Change(
    "a migration with a removal", "2.1",
    {CONFIG: f'version = 2\nimports = ["{OURS}"]\n\n{_handler("other", _OLD)}', OURS: "version = 2\n\n" + _handler("mine", _OLD)},
    {
        CONFIG: f'version = 3\nimports = ["{OURS_3}"]\n\n{_handler("other", _NEW)}',
        OURS_3: "version = 3\n\n" + _handler("mine", _NEW) + _handler("second", _NEW),
    },
    (OURS,), (["mine", "other", "runc"], "runc"), (["mine", "other", "runc", "second"], "runc"),
)  # fmt: skip
MERGE = Change(
    "a merge into the root file", "1.7",
    {CONFIG: f'version = 2\n\n{_handler("runc", _OLD)}{_handler("other", _OLD)}{_AUTH}'},
    {CONFIG: f'version = 2\n\n{_handler("runc", _OLD)}{_handler("other", _OLD)}{_AUTH}\n{_handler("mine", _OLD)}'},
    (), (["other", "runc"], "runc"), (["mine", "other", "runc"], "runc"),
)  # fmt: skip
REMOVAL = Change(
    "a removal of a drop-in", "2.1",
    {CONFIG: _IMPORTS + _ROOT, OURS: _DROPIN}, {CONFIG: _IMPORTS + _ROOT}, (OURS,),
    (["mine", "other", "runc", "second"], "runc"), (["other", "runc"], "runc"),
)  # fmt: skip
CHANGES = (ROLLOUT, MIGRATION, MERGE, REMOVAL)
