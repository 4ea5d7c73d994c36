# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that is known about one node's CRI-O, gathered once for the explanations."""

from __future__ import annotations

import copy
import posixpath
import re
import typing as t

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio import command_line, load, loaded, reload
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.documents import CrioDocument
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.executables import Executables
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.load import ABSENCES, Drop
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.release_lines import CrioRules, rules_for
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.documents import Declaration, Document
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.load import Files, Refusal
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.situation import cri_ready

#: Names that editors and package managers leave behind. OpenShift's own files have no extension (00-default), so fewer words
#: count here than for containerd, whose patterns ask for .toml.
_STRAY = re.compile(
    r"[.\-_](?:bak|backup|orig|original|old|prev|previous|save|saved|sw[a-p]|tmp|temp|disabled|off|rej|pacnew|pacsave|rpm\w+"
    r"|dpkg-\w+|ucf-\w+)(?:[.\-_]?\d+)?(?:\.conf|\.toml)?$"
    r"|~$|^\.|^#.*#$|\.(?:bak|backup|orig)[.\-_]|\.(?:conf|toml)[.\-_]\d[\d.\-_T:]*$",
    re.IGNORECASE,
)
_STRAY_DIRECTORY = re.compile(r"/(?:backups?|old|bak|orig|archive|disabled)(?:[.\-_]\d+)?/", re.IGNORECASE)
#: Which file a failing `crio config` stumbled over.
_DECODING = re.compile(r"unable to decode configuration (\S+?):")
#: Where configuration of CRI-O lies.
_CRIO_DIRECTORIES = ("/etc/crio/", "/usr/etc/crio/", "/usr/share/crio/", "/usr/lib/crio/", "/usr/local/etc/crio/", "/run/crio/")


def is_stray(path: str) -> bool:
    """A name that nobody gives to configuration which is meant to be read."""
    return bool(_STRAY.search(posixpath.basename(path)) or _STRAY_DIRECTORY.search(path))


class CrioSituation:
    """The evidence of one capture, each piece computed once.

    :ivar running: rules of the running release. :ivar rules: rules of the release that a restart would run.
    :ivar given: command line and environment of the running daemon. :ivar given_next: those of the next start.
    :ivar load: the simulated next start, or None where no rules are known.
    :ivar answer: what the daemon says. :ivar loaded: what sandboxes can use. :ivar reload: how these two differ.
    :ivar cri_ready: true, false, or None (could not be asked).
    """

    def __init__(self, capture: t.Mapping[str, t.Any]) -> None:
        self.node: t.Dict[str, t.Any] = dict(capture.get("node") or {})
        self.dump: t.Optional[t.Dict[str, t.Any]] = capture.get("dump")
        self.probe: t.Optional[str] = capture.get("probe")
        self.running = rules_for(self.node.get("version"))
        self.rules: t.Optional[CrioRules] = rules_for(self.node.get("next_version")) or self.running
        self.files = Files(capture, CrioDocument)
        self.executables = Executables(self.node)
        self.given = command_line.overrides(self.node.get("cmdline"), self.node.get("environment"))
        self.given_next = self._given_next()
        self.root = self._root()
        self.directory = self.given_next.config_dir or self.node.get("config_dir") or command_line.CONFIG_DIR
        self.answer = loaded.read_answer(capture.get("info"), capture.get("status_config"))
        self._believe_answer()
        self.load: t.Optional[load.CrioLoad] = self.start(self.rules) if self.rules is not None else None
        if self.load is not None:
            self._heed_binary(self.load)
        self.loaded, self.reload = reload.settle(self.answer, self)
        if self.load is not None:
            self._heed_daemon(self.load)
        self.cri_ready = cri_ready(self.node, self.loaded is not None)
        if self.loaded is None and capture.get("info") is not None:
            self.cri_ready = None
            self.node.setdefault("cri_error", "CRI-O answered, but no answer of it names its handlers")

    def _given_next(self) -> command_line.Overrides:
        if "next_cmdline" in self.node or "next_environment" in self.node:
            return command_line.overrides(self.node.get("next_cmdline"), self.node.get("next_environment"))
        return self.given

    def _root(self) -> str:
        if self.given_next.config is not None:
            return self.given_next.config
        return str(self.node.get("next_config_path") or self.node.get("config_path") or command_line.CONFIG)

    def _believe_answer(self) -> None:
        """A recording that only says "not executable or not there" of a program whose handler the daemon has, without the
        features that it would have told at the start: it is there, and nobody may execute it (it would have been dropped)."""
        if self.answer is None or "not_executable" in self.node:
            return
        for name, handler in self.answer.handlers.items():
            path = str(handler.get("runtime_path") or "")
            silent = self.answer.introspects and not self.answer.features.get(name)
            if path and silent and self.executables.exists(path) is False and path not in (self.node.get("absent") or ()):
                self.executables = self.executables.assumed(path)

    def start(self, rules: CrioRules) -> load.CrioLoad:
        """A simulated start of any release with this node's files."""
        given = self.given_next
        if given.config is None and self.root not in ("", command_line.CONFIG):
            given = given._replace(config=self.root)
        return load.simulate(self.files, self.root, self.directory, rules, given, self.executables)

    def at(self, rules: CrioRules) -> CrioSituation:
        """The same node as if its next start ran another release."""
        other = copy.copy(self)
        other.rules, other.dump = rules, None
        other.load = other.start(rules)
        return other

    def _heed_binary(self, load: load.CrioLoad) -> None:
        """``crio config`` of the binary on disk fails although the model does not say so, or does not fail although it does:
        its own word counts."""
        dump = self.dump or {}
        if self.upgraded or dump.get("rc") is None:
            return
        if load.refusal is not None and load.refusal.kind in ("toml", "wrong_type", "bom") and dump["rc"] == 0 and dump.get("stdout"):
            # Its reader takes more than the model's (TOML 1.1).
            load.undetermined = "%s: only the installed binary can read it (%s)" % (load.refusal.file, load.refusal.message)
            load.refusal = None
        if load.refusal is not None or dump["rc"] == 0:
            return
        lines = [line.strip() for line in str(dump.get("stderr") or "").splitlines() if line.strip()]
        if not lines or "permission denied" in lines[-1]:
            return
        named = _DECODING.search(lines[-1])
        # What could not be read here is most probably what the binary cannot read either.
        file = named.group(1) if named else (load.undetermined or self.root or self.directory).split(": ")[0]
        load.undetermined = None
        load.refusal = Refusal("dump", file, 0, lines[-1])

    def _heed_daemon(self, load: load.CrioLoad) -> None:
        """The daemon that has read these very files is right about what the model does not know.

        A handler that it has it takes (another build may check less). One that it does not have, although its program was
        there, is dropped for a reason of its own (conmon-rs that fails, a profile): a restart does not bring it either.
        """
        if self.loaded is None or not load.known or not self.as_started:
            return
        for drop in [drop for drop in load.drops if drop.handler in self.loaded.handlers and drop.kind not in ABSENCES]:
            load.drops.remove(drop)
            load.handlers[drop.handler] = load.raw[drop.handler]
        times = self.node.get("binary_times")
        started = str(self.node.get("daemon_started") or "")
        # Times have whole seconds: a file of the very second of the start may have come after it.
        if times is None or any(str(time or "") >= started for path, time in self.files.times.items() if self.is_read(path)):
            return
        for name in sorted(set(load.handlers) - set(self.loaded.handlers)):
            handler = load.handlers[name]
            programs = [str(handler.get(key) or "") for key in ("runtime_path", "monitor_path", "runtime_config_path")]
            if name != load.default and all(str(times.get(path) or "") < started for path in programs if path):
                reason = "it has read this table and does not take it, and its log says why"
                load.drops.append(Drop(name, "daemon", "", None, reason))
                del load.handlers[name]

    # ---- files

    def is_own(self, path: str) -> bool:
        """The file lies where CRI-O's configuration does."""
        own = (self.directory.rstrip("/") + "/", posixpath.dirname(self.root).rstrip("/") + "/") + _CRIO_DIRECTORIES
        return path == self.root or path.startswith(tuple(prefix for prefix in own if prefix not in ("/", "/etc/")))

    def documents(self) -> t.List[Document]:
        """Every captured text that is CRI-O configuration, in load order first, then by path."""
        order = self.load.order if self.load is not None else []
        named = {document.path for document in order} | {self.files.target(document.path) for document in order}
        rest = [document for path, document in self.files.documents.items() if path not in named and self.is_own(path)]
        return list(order) + rest

    def declarations(self) -> t.List[Declaration]:
        """Every handler that a file of this node declares; strays that are not read are not asked."""
        return [item for document in self.documents() if not self._idle_stray(document) for item in document.declarations]

    def stray_declarations(self) -> t.List[Declaration]:
        """… and those of strays that are not read."""
        return [item for document in self.documents() if self._idle_stray(document) for item in document.declarations]

    def _idle_stray(self, document: Document) -> bool:
        return is_stray(document.path) and not self.is_read(document.path)

    def is_read(self, path: str) -> bool:
        """The next start reads the file."""
        return path == self.root or path.startswith(self.directory.rstrip("/") + "/")

    # ---- time

    @property
    def upgraded(self) -> bool:
        """Another release is installed than the one that runs."""
        return self.node.get("next_version") not in (None, self.node.get("version"))

    def later_than_daemon(self) -> t.List[str]:
        """Files that a start reads and that were modified after the daemon started."""
        started = self.node.get("daemon_started")
        paths = [path for path in self.files.documents if self.is_read(path)]
        return [path for path in paths if started and str(self.files.times.get(path) or "") > str(started)]

    @property
    def as_started(self) -> bool:
        """What runs has read these very files, by the same command line."""
        untouched = self.node.get("daemon_started") and not self.later_than_daemon() and not self.upgraded
        return bool(untouched) and self.given == self.given_next

    @property
    def down_with_these_files(self) -> bool:
        """CRI-O is down, and has tried these very files: a restart brings the same."""
        if self.cri_ready is not False or self.later_than_daemon() or self.upgraded:
            return False
        return (self.node.get("unit") or {}).get("state") in ("failed", "activating")

    # ---- what the reload is judged by

    def is_unchecked(self, name: str) -> bool:
        """A handler that CRI-O would have dropped, had it checked it."""
        rules = self.running or self.rules
        body = self.load.raw.get(name) if self.load is not None else None
        return body is not None and rules is not None and load.validate(name, body, rules, self.executables) is not None

    def declared_since_start(self, name: str) -> bool:
        """Only files newer than the daemon's start declare the handler."""
        declarations = [item for item in self.declarations() if item.handler == name]
        return reload.written_since(declarations, set(self.later_than_daemon()))

    def default_at_start(self) -> t.Tuple[t.Optional[str], bool]:
        """(default handler by what was there when the running daemon started, whether that is all there was).

        A file that is newer than the start may have said the same, something else or nothing before.
        """
        if self.given.default_runtime:
            return self.given.default_runtime, True
        rules = self.running or self.rules
        newer = set(self.later_than_daemon())
        documents = [document for document in self.documents() if self.is_read(document.path)]
        older = [name for document in documents if document.path not in newer for name, _path in document.default_names()]
        if any(document.default_names() or document.tree is None for document in documents if document.path in newer):
            return (older[-1] if older else None), False
        return (older[-1] if older else rules.default_runtime if rules is not None else None), True

    def described(self, name: str) -> t.Dict[str, t.Any]:
        """What the files say about a handler whose name alone is known, where they are as the daemon read them."""
        if self.load is None:
            return {}
        document = self.load.owners.get(name)
        if document is not None and document.path in self.later_than_daemon():
            return {}
        return dict(self.load.handlers.get(name) or self.load.raw.get(name) or {})


__all__ = ("CrioSituation", "is_stray")
