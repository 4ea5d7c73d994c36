# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that is known about one node's containerd, gathered once for the explanations."""

from __future__ import annotations

import copy
import posixpath
import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core import cri_section
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import Declaration, Document
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.load import (
    Files,
    Load,
    Refusal,
    simulate,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.loaded import Loaded, read_status
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import LineRules, rules_for

DEFAULT_CONFIG = "/etc/containerd/config.toml"

#: Names that editors and package managers leave behind: never meant to be loaded.
_BACKUP = re.compile(
    r"[.\-_](?:bak|backup|orig|original|old|prev|previous|save|saved|dist|default|sample|example|swp|swo|tmpl|tmp|j2"
    r"|disabled|off|working|pacnew|pacsave|rpm\w+|dpkg-\w+|ucf-\w+)(?:[.\-_]?\d+)?(?:\.toml|\.conf)?$"
    r"|~$|^\.#|^#.*#$|\.(?:bak|backup|orig)[.\-_]"
    r"|\.toml[.\-_]\d[\d.\-_T:]*$",
    re.IGNORECASE,
)
_BACKUP_DIRECTORY = re.compile(r"/(?:backups?|old|bak|orig|archive)(?:[.\-_]\d+)?/", re.IGNORECASE)
_TEMPLATE = re.compile(r"\.tmpl$|template\.toml$")

#: Where the runtimes of distributions keep their configuration.
_RUNTIME_DIRECTORIES = (
    "/etc/containerd/",
    "/var/lib/rancher/k3s/agent/etc/containerd/",
    "/var/lib/rancher/rke2/agent/etc/containerd/",
    "/etc/k0s/",
    "/run/k0s/",
    "/var/snap/microk8s/",
    "/usr/share/containerd/",
    "/etc/docker/",
)


def is_backup(path: str) -> bool:
    """A backup-like name (DESIGN: info at most)."""
    return bool(_BACKUP.search(posixpath.basename(path)) or _BACKUP_DIRECTORY.search(path))


def is_template(path: str) -> bool:
    """A template from which a distribution renders its configuration at each start."""
    return bool(_TEMPLATE.search(posixpath.basename(path)))


class Situation:
    """The evidence of one capture, each piece computed once.

    :ivar running: rules of the running release, None when its version is unknown.
    :ivar rules: rules of the release that a restart would run.
    :ivar loaded: the daemon's own answer, or None.
    :ivar cri_ready: true, false, or None (could not be asked).
    :ivar load: the simulated next start, or None where no rules are known.
    :ivar section: its CRI part, or None.
    """

    def __init__(self, capture: t.Mapping[str, t.Any]) -> None:
        self.node: t.Dict[str, t.Any] = dict(capture.get("node") or {})
        self.dump: t.Optional[t.Dict[str, t.Any]] = capture.get("dump")
        self.running = rules_for(self.node.get("version"))
        self.rules: t.Optional[LineRules] = rules_for(self.node.get("next_version")) or self.running
        self.files = Files(capture)
        self.loaded: t.Optional[Loaded] = read_status(capture.get("info"))
        self.cri_ready = cri_ready(self.node, self.loaded is not None)
        self.root = self.node.get("next_config_path") or self.node.get("config_path") or DEFAULT_CONFIG
        self.absent = frozenset(self.node.get("absent") or [])
        self.load: t.Optional[Load] = None
        self.section: t.Optional[cri_section.Section] = None
        if self.rules is not None:
            self._simulate(self.rules)

    def _simulate(self, rules: LineRules) -> None:
        self.load = self.start(rules)
        self.load.refusal = self.load.refusal or self._refused_by_binary(rules)
        self._doubt_required(self.load)
        self.section = self.section_of(self.load)

    def _doubt_required(self, load: Load) -> None:
        """A required plugin that does not load stops the daemon, and which ones load is known of few.

        A daemon that runs with these very files has proved that they do.
        """
        strange = [item for item in load.required if item not in load.rules.needed_plugins]
        proved = self.loaded is not None and not self.later_than_daemon() and self.node.get("daemon_started")
        if strange and not proved and load.refusal is None and load.undetermined is None:
            load.undetermined = "required_plugins names %s, and whether it loads is not known" % ", ".join(strange)

    def _refused_by_binary(self, rules: LineRules) -> t.Optional[Refusal]:
        """The binary on disk cannot read the files although the model can: its own word counts.

        1.5 to 1.7 cannot dump a root file that does not exist, and start without it all the same.
        """
        dump, load = self.dump or {}, self.load
        if load is None or self.upgraded or load.root_missing or load.undetermined or dump.get("rc") in (None, 0):
            return None
        lines = [line.strip() for line in str(dump.get("stderr") or "").splitlines() if line.strip()]
        if not lines or "permission denied" in lines[-1]:
            return None
        return Refusal("dump", self.root, 0, lines[-1])

    def at(self, rules: LineRules) -> Situation:
        """The same node as if its next start ran another release."""
        other = copy.copy(self)
        other.rules, other.dump = rules, None
        other._simulate(rules)
        return other

    def start(self, rules: LineRules) -> Load:
        """A simulated start of any release with this node's files."""
        explicit = self.root != DEFAULT_CONFIG or _names_config(self.node.get("cmdline") or "")
        cwd = self.node.get("daemon_cwd") or "/"
        return simulate(self.files, self.root, rules, explicit, cwd)

    def section_of(self, load: Load) -> t.Optional[cri_section.Section]:
        """The CRI part of a start; None where there is none to speak of."""
        if load.refusal is not None or load.undetermined is not None:
            return None
        section = cri_section.resolve(load, self.absent, self.node.get("cgroup_version"))
        if section.refusal is not None:
            load.refusal = section.refusal
            return None
        return section

    @property
    def next_known(self) -> bool:
        """The next start can be told from the files."""
        return self.load is not None and self.load.undetermined is None

    @property
    def own_directory(self) -> str:
        return posixpath.dirname(self.root).rstrip("/") + "/"

    def documents(self) -> t.List[Document]:
        """Every captured text that could be containerd configuration, in load order first, then by path."""
        order = self.load.order if self.load is not None else []
        named = {document.path for document in order} | {self.files.target(document.path) for document in order}
        rest = [document for path, document in self.files.documents.items() if path not in named]
        return list(order) + rest

    def declarations(self) -> t.List[Declaration]:
        """Every handler that a file of this node declares for its runtime; backups that are not loaded are not asked."""
        return [item for document in self.documents() if not self._idle_backup(document) for item in document.declarations]

    def backup_declarations(self) -> t.List[Declaration]:
        """… and those of backup-like files and templates."""
        return [item for document in self.documents() if self._idle_backup(document) for item in document.declarations]

    def _idle_backup(self, document: Document) -> bool:
        """A backup by its name that no import takes (one that is taken is configuration like any other)."""
        return is_backup(document.path) and document.path not in (self.load.paths if self.load else ())

    def belongs_elsewhere(self, path: str) -> bool:
        """The file lies where another runtime of this node looks, not this one."""
        if path in (self.load.paths if self.load else ()) or path.startswith(self.own_directory):
            return False
        return any(path.startswith(prefix) for prefix in _RUNTIME_DIRECTORIES)

    @property
    def upgraded(self) -> bool:
        """Another release is installed than the one that runs."""
        return self.node.get("next_version") not in (None, self.node.get("version"))

    @property
    def down_with_these_files(self) -> bool:
        """CRI is not served by a daemon (or a unit that fails) which has read these very files: a restart brings the same.

        The model of a start is then wrong about something that it does not know; the daemon's word counts.
        """
        if self.cri_ready is not False or self.later_than_daemon() or self.upgraded:
            return False
        failing = (self.node.get("unit") or {}).get("state") in ("failed", "activating")
        return failing or (self.node.get("cri_state") == "unimplemented" and self.node.get("daemon_started") is not None)

    def later_than_daemon(self) -> t.List[str]:
        """Loaded files that were modified after the daemon started."""
        started = self.node.get("daemon_started")
        paths = self.load.paths if self.load else []
        return [path for path in paths if started and str(self.files.times.get(path) or "") > str(started)]


def _names_config(cmdline: str) -> bool:
    return bool(re.search(r"(?:^|\s)--?c(?:onfig)?(?:[=\s]|$)", cmdline))


def cri_ready(node: t.Mapping[str, t.Any], answered: bool) -> t.Optional[bool]:
    """DESIGN, "Layers of evidence". A recording without cri_state is read by its error text.

    :param answered: the daemon told its handlers.
    """
    if answered:
        return True
    state = node.get("cri_state")
    if state:
        return {"unimplemented": False, "not_running": False}.get(str(state))
    error = str(node.get("cri_error") or "")
    if re.search(r"unknown service|connection refused|no such file or directory", error):
        return False
    if error and "daemon_started" in node and node["daemon_started"] is None:
        return False
    return None


__all__ = ("DEFAULT_CONFIG", "Situation", "cri_ready", "is_backup", "is_template")
