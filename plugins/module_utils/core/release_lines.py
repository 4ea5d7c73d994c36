# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one table of what differs between containerd release lines.

Every rule that depends on the line is a column here; nothing else in the collection compares version numbers.
Sources are named beside the rules: containerd/containerd, ``services/server/config/config.go`` (1.x),
``cmd/containerd/server/config/config.go`` (2.x), ``plugins/cri/*`` and ``pkg/cri/config/config.go``.
"""

from __future__ import annotations

import re
import typing as t

#: Names of the CRI plugin in ``[plugins]``: version 1 files, version 2 files, version 3 and later files.
SHORT_CRI = "cri"
OLD_CRI = "io.containerd.grpc.v1.cri"
NEW_RUNTIME = "io.containerd.cri.v1.runtime"
NEW_IMAGES = "io.containerd.cri.v1.images"

#: Newest version tuple, used for development builds ("main") that are newer than every release.
_DEVELOPMENT = (99, 0, 0)

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")


class LineRules(t.NamedTuple):
    """How one containerd release decides what of its files becomes effective."""

    name: str
    #: what an empty configuration counts as: 1.x ``defaultConfig`` 1, 2.0 to 2.2 3, 2.3 and later 4
    default_version: int
    #: the highest ``version`` a file may state; None: not checked (before 1.6.32 and 1.7.17, #10165)
    max_version: t.Optional[int]
    #: "replace": a later file's plugin table replaces the earlier one (1.x); "deep": merged key by key (2.0, #9982)
    plugin_merge: str
    #: "none" (1.x), "merged": old names migrated once on the merged map (2.0 to 2.2), "per_file" (2.3, #12608)
    migration: str
    #: what becomes of the built-in runc when a file defines ``runtimes``:
    #: "kept" entry by entry (1.4), "dropped" (1.5 to 1.7, #5278), "merged" field by field (2.x)
    builtin_runc: str
    #: a drop-in whose version is above the first version found is refused (2.3.0 to 2.3.4, #12891, reverted by #13939)
    refuses_newer_dropin: bool
    #: a relative import glob is resolved against the daemon's working directory (before 1.6.29 and 1.7.16, #9746)
    relative_glob_from_cwd: bool
    #: a missing literal import: "stop": this and all later files are skipped in silence (1.4); "fatal"
    missing_import: str
    #: ``config dump`` exits 0 although a file is missing (1.4 and 2.x)
    dump_hides_missing: bool
    #: ``-c`` naming a file that does not exist: the daemon starts on its defaults (1.4)
    missing_config_ignored: bool
    #: a UTF-8 byte order mark is accepted (go-toml v1: 1.5 to 1.7)
    accepts_bom: bool
    #: control characters and bytes that are no UTF-8 are let pass (1.x; 2.x stops at them)
    lenient_toml: bool
    #: how keys of the daemon's own structures are matched: "fold" (1.4 BurntSushi, 2.x go-toml v2: any case),
    #: "four" (go-toml v1: as written, lower, UPPER)
    key_case: str
    #: the registered plugin that resolves handlers, by the merged version: names that are read
    modern: bool
    #: ``runtimes`` directly below the plugin is read too (embedded struct promoted by go-toml v1, 1.5 to 1.7)
    promotes_runtimes: bool
    #: ``default_runtime`` and ``untrusted_workload_runtime`` are still known (1.x)
    legacy_runtimes: bool
    #: plugin ids must start with io.containerd. (1.7); before: four dotted parts
    plugin_prefix_checked: bool
    #: plugin ids are checked in version 2 files only (1.4), or in every version from 2 on (measured on 1.6.20)
    checks_ids_of_version_2_only: bool
    #: a malformed pattern goes unnoticed where the directory is missing or empty (Go before 1.16: 1.4)
    malformed_glob_needs_files: bool
    #: the default configuration prints a conf.d import that the daemon does not follow (2.2, #12323)
    prints_confd: bool
    #: Status and dump show a handler's options (not 1.4: they stay a toml.Primitive there)
    shows_options: bool
    #: ``runtime_path`` is honoured (1.7, #8208; a silent no-op in 1.6, unknown before)
    honours_runtime_path: bool
    #: an absolute path may stand in ``runtime_type`` (1.6)
    absolute_runtime_type: bool
    #: a handler's own snapshotter reaches image pulls (2.3, #12836)
    snapshotter_for_pulls: bool
    #: mirrors and config_path together stop the CRI plugin (1.5)
    mirrors_exclude_config_path: bool
    #: plugins without which CRI is not served (measured by disabling each plugin of each line), CRI's own first
    needed_plugins: t.Tuple[str, ...]
    #: the default of the CRI plugin's ``enable_cdi``: None where it has no such key (before 1.7, #6654), on since 2.0 (#9621)
    enable_cdi: t.Optional[bool]
    #: keys that a handler's table may have
    handler_keys: t.FrozenSet[str]


def _ids(prefix: str, names: str) -> t.Tuple[str, ...]:
    return tuple("io.containerd.%s.%s" % (prefix, name) for name in names.split())


_NEEDED = (
    _ids("service.v1", "containers-service content-service diff-service images-service introspection-service")
    + _ids("service.v1", "namespaces-service snapshots-service tasks-service")
    + ("io.containerd.content.v1.content", "io.containerd.differ.v1.walking", "io.containerd.gc.v1.scheduler")
    + ("io.containerd.metadata.v1.bolt", "io.containerd.runtime.v2.task")
)
_NEEDED_1_4 = (OLD_CRI,) + _NEEDED + ("io.containerd.service.v1.leases-service", "io.containerd.runtime.v1.linux")
_NEEDED_1_6 = _NEEDED_1_4 + ("io.containerd.event.v1.exchange",)
_NEEDED_1_7 = (
    (OLD_CRI,)
    + _NEEDED
    + ("io.containerd.event.v1.exchange", "io.containerd.lease.v1.manager", "io.containerd.runtime.v1.linux")
    + ("io.containerd.runtime.v2.shim", "io.containerd.sandbox.controller.v1.local")
    + ("io.containerd.sandbox.store.v1.local", "io.containerd.warning.v1.deprecations")
)
_NEEDED_2_0 = (
    (OLD_CRI, NEW_RUNTIME, NEW_IMAGES)
    + _NEEDED
    + ("io.containerd.event.v1.exchange", "io.containerd.lease.v1.manager", "io.containerd.shim.v1.manager")
    + ("io.containerd.podsandbox.controller.v1.podsandbox", "io.containerd.sandbox.controller.v1.shim")
    + ("io.containerd.sandbox.store.v1.local", "io.containerd.warning.v1.deprecations")
)
_NEEDED_2_1 = _NEEDED_2_0 + ("io.containerd.transfer.v1.local", "io.containerd.image-verifier.v1.bindir")
_NEEDED_2_2 = _NEEDED_2_1 + ("io.containerd.mount-manager.v1.bolt",)
_NEEDED_2_3 = _NEEDED_2_0 + (
    "io.containerd.transfer.v1.local",
    "io.containerd.mount-manager.v1.bolt",
    "io.containerd.server.v1.grpc",
)
_KEYS_1_4 = frozenset(
    "runtime_type runtime_engine runtime_root privileged_without_host_devices base_runtime_spec pod_annotations"
    " container_annotations options".split()
)
_KEYS_1_6 = _KEYS_1_4 | frozenset("runtime_path cni_conf_dir cni_max_conf_num".split())
_KEYS_1_7 = _KEYS_1_6 | frozenset(
    "snapshotter sandbox_mode privileged_without_host_devices_all_devices_allowed".split()
)
_KEYS_2_0 = (_KEYS_1_7 - frozenset("runtime_engine runtime_root sandbox_mode".split())) | frozenset(
    "sandboxer io_type".split()
)
_KEYS_2_1 = _KEYS_2_0 | frozenset(["cgroup_writable"])
_KEYS_2_4 = _KEYS_2_1 | frozenset(["disable_pause_image_pull"])

_LINE_1_4 = LineRules(
    name="1.4",
    default_version=1,
    max_version=None,
    plugin_merge="replace",
    migration="none",
    builtin_runc="kept",
    refuses_newer_dropin=False,
    relative_glob_from_cwd=True,
    missing_import="stop",
    dump_hides_missing=True,
    missing_config_ignored=True,
    accepts_bom=False,
    lenient_toml=True,
    key_case="fold",
    modern=False,
    promotes_runtimes=False,
    legacy_runtimes=True,
    plugin_prefix_checked=False,
    checks_ids_of_version_2_only=True,
    malformed_glob_needs_files=True,
    prints_confd=False,
    shows_options=False,
    honours_runtime_path=False,
    absolute_runtime_type=False,
    snapshotter_for_pulls=True,
    mirrors_exclude_config_path=False,
    needed_plugins=_NEEDED_1_4,
    enable_cdi=None,
    handler_keys=_KEYS_1_4,
)
_LINE_1_5 = _LINE_1_4._replace(
    name="1.5",
    checks_ids_of_version_2_only=False,
    malformed_glob_needs_files=False,
    builtin_runc="dropped",
    missing_import="fatal",
    dump_hides_missing=False,
    missing_config_ignored=False,
    accepts_bom=True,
    key_case="four",
    promotes_runtimes=True,
    shows_options=True,
    mirrors_exclude_config_path=True,
)
_LINE_1_6 = _LINE_1_5._replace(name="1.6", absolute_runtime_type=True, needed_plugins=_NEEDED_1_6, handler_keys=_KEYS_1_6)
_LINE_1_7 = _LINE_1_6._replace(
    name="1.7",
    honours_runtime_path=True,
    plugin_prefix_checked=True,
    enable_cdi=False,
    needed_plugins=_NEEDED_1_7,
    handler_keys=_KEYS_1_7,
)
_LINE_2_0 = LineRules(
    name="2.0",
    default_version=3,
    max_version=3,
    plugin_merge="deep",
    migration="merged",
    builtin_runc="merged",
    refuses_newer_dropin=False,
    relative_glob_from_cwd=False,
    missing_import="fatal",
    dump_hides_missing=True,
    missing_config_ignored=False,
    accepts_bom=False,
    lenient_toml=False,
    key_case="fold",
    modern=True,
    promotes_runtimes=False,
    legacy_runtimes=False,
    plugin_prefix_checked=False,
    checks_ids_of_version_2_only=False,
    malformed_glob_needs_files=False,
    prints_confd=False,
    shows_options=True,
    honours_runtime_path=True,
    absolute_runtime_type=True,
    snapshotter_for_pulls=False,
    mirrors_exclude_config_path=True,
    needed_plugins=_NEEDED_2_0,
    enable_cdi=True,
    handler_keys=_KEYS_2_0,
)
_LINE_2_1 = _LINE_2_0._replace(name="2.1", needed_plugins=_NEEDED_2_1, handler_keys=_KEYS_2_1)
_LINE_2_2 = _LINE_2_1._replace(name="2.2", prints_confd=True, needed_plugins=_NEEDED_2_2)
_LINE_2_3 = _LINE_2_2._replace(
    name="2.3",
    default_version=4,
    max_version=4,
    migration="per_file",
    snapshotter_for_pulls=True,
    needed_plugins=_NEEDED_2_3,
)
_LINE_2_4 = _LINE_2_3._replace(name="2.4", handler_keys=_KEYS_2_4)

#: (first version tuple of the rule, rules), oldest first: the last entry not above a version is the one that holds.
_TABLE: t.Tuple[t.Tuple[t.Tuple[int, int, int], LineRules], ...] = (
    ((1, 3, 0), _LINE_1_4._replace(name="1.3")),
    ((1, 4, 0), _LINE_1_4),
    ((1, 5, 0), _LINE_1_5),
    ((1, 6, 0), _LINE_1_6),
    ((1, 6, 29), _LINE_1_6._replace(relative_glob_from_cwd=False)),
    ((1, 6, 32), _LINE_1_6._replace(relative_glob_from_cwd=False, max_version=2)),
    ((1, 7, 0), _LINE_1_7),
    ((1, 7, 16), _LINE_1_7._replace(relative_glob_from_cwd=False)),
    ((1, 7, 17), _LINE_1_7._replace(relative_glob_from_cwd=False, max_version=2)),
    ((2, 0, 0), _LINE_2_0),
    ((2, 1, 0), _LINE_2_1),
    ((2, 2, 0), _LINE_2_2),
    ((2, 3, 0), _LINE_2_3._replace(refuses_newer_dropin=True)),
    ((2, 3, 5), _LINE_2_3),
    ((2, 4, 0), _LINE_2_4),
)


def parse_version(text: str) -> t.Optional[t.Tuple[int, int, int]]:
    """The (major, minor, patch) of a version such as ``v2.1.9+unknown``, ``1.7.24~ds1`` or ``2.0.5-k3s1``.

    ``main`` and ``devel`` builds count as newer than every release. None: no version can be read.
    """
    match = _VERSION.match(text.strip())
    if match:
        return (int(match.group(1)), int(match.group(2)), int(match.group(3) or 0))
    if text.strip().lower() in ("main", "devel", "dev"):
        return _DEVELOPMENT
    return None


#: Rows of a table of release lines: (first version tuple of the rule, rules with a ``name``), oldest first.
Rows = t.Sequence[t.Tuple[t.Tuple[int, int, int], t.Any]]


def row_for(table: Rows, version: t.Optional[str]) -> t.Any:
    """The rules of the last row that is not above this version; None where it is unknown or older than the first row."""
    parsed = parse_version(version or "")
    return None if parsed is None else next((rules for first, rules in reversed(table) if first <= parsed), None)


def rows_after(table: Rows, name: str) -> t.List[t.Any]:
    """The newest rules of every line after the line of this name, nearest first."""
    newest = {rules.name: rules for _first, rules in table}
    names = list(newest)
    return [newest[line] for line in names[names.index(name) + 1 :]]


def rules_for(version: t.Optional[str]) -> t.Optional[LineRules]:
    """The rules of the release with this version string; None where the version is unknown or older than 1.3."""
    return row_for(_TABLE, version)


def rules_for_dump(file_version: int) -> LineRules:
    """The newest line whose ``config dump`` prints this version number (1 and 2: 1.x, 3: 2.0 to 2.2, 4: 2.3 and later)."""
    if file_version <= 2:
        return rules_for("1.7.99") or _LINE_1_7
    return rules_for("2.2.0" if file_version == 3 else "2.4.0") or _LINE_2_4


def later_lines(rules: LineRules) -> t.List[LineRules]:
    """The newest rules of every line after this one, nearest first."""
    return rows_after(_TABLE, rules.name)


__all__ = (
    "LineRules",
    "NEW_IMAGES",
    "NEW_RUNTIME",
    "OLD_CRI",
    "SHORT_CRI",
    "later_lines",
    "parse_version",
    "row_for",
    "rows_after",
    "rules_for",
    "rules_for_dump",
)
