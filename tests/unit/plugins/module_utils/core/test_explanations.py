# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults beside the catalogue's own scenarios: the same kinds in other clothes, and what must stay silent."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import interpret

CONFIG = "/etc/containerd/config.toml"
CONFD = "/etc/containerd/conf.d"
OLD = 'plugins."io.containerd.grpc.v1.cri"'
NEW = 'plugins."io.containerd.cri.v1.runtime"'
IMPORTS = 'imports = ["%s/*.toml"]\n' % CONFD
RUNC = '[%s.containerd.runtimes.runc]\nruntime_type = "io.containerd.runc.v2"\n'
SHIMS = {"containerd-shim-runc-v2": True, "containerd-shim-kata-v2": True}


def handler(name: str, plugin: str = OLD, more: str = "", options: str = "", kind: str = "io.containerd.runc.v2") -> str:
    text = '[%s.containerd.runtimes.%s]\nruntime_type = "%s"\n%s' % (plugin, name, kind, more)
    return text + ("[%s.containerd.runtimes.%s.options]\n%s" % (plugin, name, options) if options else "")


def facts(version: str, texts: t.Any, **node: t.Any) -> dict:
    texts = {CONFIG: texts} if isinstance(texts, str) else texts
    about = {"engine": "containerd", "version": version, "config_path": CONFIG, "binaries": SHIMS}
    return interpret({"node": dict(about, **node), "files": texts})


def faults(answer: dict, number: int) -> t.List[dict]:
    return [fault for fault in answer["faults"] if fault["id"] == number]


V2 = "version = 2\n"
V3 = "version = 3\n"
ROOT = V2 + RUNC % OLD
FOO_A, FOO_B = (handler("foo", options="Root = '/%s'\n" % letter) for letter in "ab")

#: (version, files, id, severity, handlers, word of the message)
CASES = [
    (
        "2.1.9",
        {CONFIG: V2 + 'include = ["%s/*.toml"]\n' % CONFD + RUNC % OLD, CONFD + "/a.toml": V2 + handler("kata")},
        18,
        "error",
        ["kata"],
        "'include'",
    ),
    (
        "2.1.9",
        {CONFIG: V2 + 'imports = ["%s/{a,b}.toml"]\n' % CONFD, CONFD + "/a.toml": V2 + handler("kata")},
        22,
        "error",
        ["kata"],
        "does not exist",
    ),
    ("2.1.9", {CONFIG: V2 + 'imports = ["%s/{a,b}*.toml"]\n' % CONFD, CONFD + "/a.toml": V2 + handler("kata")}, 18, "error", ["kata"], "{a,b}*.toml"),
    ("2.1.9", {CONFD + "/a.toml": V2 + handler("kata")}, 18, "error", ["kata"], "does not exist, so nothing is imported"),
    ("2.1.9", {CONFIG: V2 + 'imports = ["%s"]\n' % CONFD, CONFD + "/a.toml": V2 + handler("kata")}, 22, "error", ["kata"], "is a directory"),
    ("2.1.9", {CONFIG: V2 + 'imports = ["/etc/containerd/*"]\n' + RUNC % OLD, CONFD + "/a.toml": V2}, 22, "error", ["runc"], "is a directory"),
    ("2.1.9", {CONFIG: V2 + RUNC % OLD, "/etc/k0s/containerd.toml": V2}, None, "", [], ""),
    ("2.1.9", V2 + "[%s.containerd.runtime.kata]\nruntime_type = 'io.containerd.kata.v2'\n" % OLD, 14, "error", ["kata"], "is not where"),
    (
        "2.1.9",
        V2 + "[plugin.'io.containerd.grpc.v1.cri'.containerd.runtimes.kata]\nruntime_type = 'io.containerd.kata.v2'\n",
        13,
        "error",
        ["kata"],
        "outside [plugins]",
    ),
    (
        "2.1.9",
        V3 + handler("kata", 'plugins."io.containerd.cri.v1.images"', kind="io.containerd.kata.v2"),
        13,
        "error",
        ["kata"],
        "no plugin with handlers",
    ),
    (
        "2.1.9",
        V2 + "[plugins.io.containerd.grpc.v2.cri.containerd.runtimes.kata]\nruntime_type = 'io.containerd.kata.v2'\n",
        13,
        "error",
        ["kata"],
        "without quotes",
    ),
    ("2.1.9", V3 + handler("kata", "plugins.cri", kind="io.containerd.kata.v2"), 12, "error", ["kata"], "nothing is printed"),
    ("2.3.7", V3 + handler("kata", "plugins.cri", kind="io.containerd.kata.v2"), 12, "error", ["kata"], "nothing is printed"),
    ("1.4.13", V3 + handler("kata", "plugins.cri"), 12, "error", ["kata"], "read as version 3"),
    ("2.3.7", V3 + handler("kata") + handler("foo", NEW), 11, "error", ["kata"], "both plugin names"),
    ("2.0.11", V2 + handler("kata") + handler("foo", NEW), 11, "error", ["kata"], "both plugin names"),
    ("1.6.20", {CONFIG: V3 + IMPORTS + handler("foo", NEW), CONFD + "/a.toml": V2 + RUNC % OLD}, 9, "error", ["foo"], "nothing says"),
    ("2.1.9", {CONFIG: IMPORTS + handler("foo"), CONFD + "/a.toml": V3 + handler("kata", NEW)}, 4, "error", ["foo"], "no version"),
    ("2.1.9", "version = 1\n" + handler("foo", "plugins.cri"), 4, "error", ["foo"], "version 1"),
    (
        "1.6.20",
        V2 + handler("runc") + "[%s.containerd]\nsnapshotter = 'native'\n[%s.runtimes.kata]\nruntime_type = 'x.y.z'\n" % (OLD, OLD),
        14,
        "error",
        ["kata"],
        "1.6",
    ),
    # single handlers
    ("2.1.9", ROOT + handler("foo", options="SystemdCgroup = 'true'\n"), 33, "error", ["foo"], "must be true or false"),
    ("2.1.9", ROOT + handler("foo", options="IoUid = true\n"), 33, "error", ["foo"], "must be a number"),
    ("2.1.9", ROOT + handler("foo", options="BinaryName = '/a'\nbinaryName = '/b'\n"), 33, "warning", ["foo"], "binaryName = '/b' holds"),
    ("2.1.9", ROOT + handler("foo", options="Nonsense = 1\n"), 33, "warning", ["foo"], "is not an option"),
    ("2.1.9", ROOT + handler("kata", kind="io.containerd.kata.v2", options="BinaryName = 'x'\n"), 33, "info", ["kata"], "handed to its shim"),
    ("2.1.9", ROOT + handler("foo", more="runtime_tipe = 'x'\n"), 57, "warning", ["foo"], 'did you mean "runtime_type"'),
    ("1.6.20", ROOT + handler("foo", more="snapshotter = 'native'\n"), 57, "warning", ["foo"], "containerd 1.6"),
    (
        "2.1.9",
        ROOT + "[%s.containerd.runtimes.kata.qemu]\nruntime_type = 'io.containerd.kata.v2'\n" % OLD,
        31,
        "error",
        ["kata", "kata.qemu"],
        "is read as a key of it",
    ),
    ("2.1.9", ROOT + handler("runhcs", kind="io.containerd.runhcs.v1"), None, "", [], ""),
    ("2.1.9", ROOT + handler("old", kind="io.containerd.runtime.v1.linux"), 34, "error", ["old"], "removed in containerd 2.0"),
    ("1.4.13", ROOT + handler("path", kind="/opt/shim"), 34, "error", ["path"], "does not take a path"),
    ("1.5.18", ROOT + handler("foo", more="runtime_path = '/opt/shim'\n"), 32, "warning", ["foo"], "ignored by containerd 1.5"),
    # settings around them
    (
        "2.1.9",
        V3 + "[%s.registry]\nconfig_path = '/x'\n[%s.containerd]\nsnapshotter = 'native'\n" % (NEW, NEW),
        15,
        "warning",
        [],
        "does not read it",
    ),
    ("2.1.9", V2 + "[%s]\nsystemd_cgroup = true\n" % OLD, 16, "warning", [], "systemd_cgroup was removed"),
    ("2.1.9", ROOT + handler("foo", more="runtime_engine = '/x'\n"), 16, "warning", ["foo"], "runtime_engine was removed"),
    (
        "2.1.9",
        V2 + "[%s.containerd.untrusted_workload_runtime]\nruntime_type = 'x.y.z'\n" % OLD,
        16,
        "warning",
        ["untrusted"],
        "untrusted_workload_runtime",
    ),
    ("2.1.9", ROOT + handler("nvidia") + "[%s.containerd]\ndefault_runtime = 'nvidia'\n" % OLD, 57, "warning", ["nvidia"], "default_runtime_name"),
    ("1.7.24", ROOT + "[%s.containerd]\ndefault_runtime_nam = 'runc'\n" % OLD, 57, "warning", ["runc"], "default_runtime_name"),
    ("2.1.9", V2 + "imports = ['%s/*']\n" % CONFD + FOO_A, None, "", [], ""),
    (
        "2.1.9",
        {CONFIG: V2 + "imports = ['%s/*']\n" % CONFD + FOO_A, CONFD + "/x.toml.bak": V2 + FOO_B},
        28,
        "warning",
        ["foo"],
        "a backup by its name",
    ),
    (
        "2.1.9",
        {CONFIG: V2 + IMPORTS + FOO_A, CONFD + "/.x.toml": V2 + FOO_B},
        28,
        "warning",
        ["foo"],
        "start with a dot",
    ),
    (
        "2.1.9",
        {CONFIG: V2 + IMPORTS + FOO_A, CONFD + "/x.toml": V2 + FOO_B},
        28,
        "info",
        ["foo"],
        "is read later",
    ),
    (
        "2.1.9",
        {CONFIG: V2 + IMPORTS, CONFD + "/a.toml": V2 + "imports = ['/opt/n.toml']\n", CONFD + "/b.toml": V2 + FOO_A, "/opt/n.toml": V2 + FOO_B},
        28,
        "warning",
        ["foo"],
        "imported by an imported file",
    ),
    (
        "2.1.9",
        {CONFIG: V2 + IMPORTS + handler("foo", more="pod_annotations = ['a']\n"), CONFD + "/x.toml": V2 + handler("foo", more="pod_annotations = ['b']\n")},
        29,
        "warning",
        ["foo"],
        "'a' gone",
    ),
    ("2.1.9", {CONFIG: V2 + "oom_score = 100\n" + IMPORTS, CONFD + "/x.toml": V2 + "oom_score = 0\n"}, 30, "warning", [], "never overrides"),
    ("2.1.9", V2 + "[debug]\nversion = 3\n", 20, "info", [], "stands below the header"),
    ("2.1.9", V2 + "imports = ['~/k*.toml']\n" + RUNC % OLD, 18, "warning", [], "expands no home directory"),
    ("2.1.9", "root = '/x'\nstate = '/x/'\n" + ROOT, 51, "error", ["runc"], "root and state must differ"),
    ("2.1.9", ROOT + "[timeouts]\nx = '5'\n", 51, "error", ["runc"], "'5' is no duration"),
    ("2.1.9", ROOT + "[%s]\nstream_idle_timeout = '4 hours'\n" % OLD, 27, "error", ["runc"], "is no duration"),
    ("2.1.9", ROOT + "[%s.containerd]\nsnapshotter = 'devmapper'\n" % OLD, 27, "error", ["runc"], "failed to find snapshotter"),
    ("2.1.9", "version = -1\n", 51, "error", [], "must not be negative"),
]


@pytest.mark.parametrize(("version", "files", "number", "severity", "handlers", "word"), CASES)
def test_named(version: str, files: t.Any, number: t.Any, severity: str, handlers: list, word: str) -> None:
    answer = facts(version, files, cri_state="undetermined")
    if number is None:
        assert [fault for fault in answer["faults"] if fault["severity"] != "info"] == []
        return
    found = [fault for fault in faults(answer, number) if word in fault["message"]]
    assert found, answer["faults"]
    assert found[0]["severity"] == severity
    assert set(handlers) <= {name for fault in found for name in fault["handlers"]} | set(answer["lost"])


def test_a_stale_copy_of_the_root_is_told_from_an_override() -> None:
    root = V2 + IMPORTS + "[%s]\nsandbox_image = 'pause:2'\nenable_selinux = true\n" % OLD + RUNC % OLD + handler("foo", options="Root = '/new'\n")
    copy = V2 + "[%s]\nsandbox_image = 'pause:1'\nenable_selinux = true\n" % OLD + RUNC % OLD + handler("foo", options="Root = '/old'\n")
    files = {CONFIG: root, CONFD + "/copy.toml": copy}
    times = {CONFIG: "2026-06-02T00:00:00Z", CONFD + "/copy.toml": "2026-06-01T00:00:00Z"}
    stale = faults(facts("2.1.9", files, files=times), 28)
    assert {fault["severity"] for fault in stale} == {"warning"} and len(stale) == 2
    assert all("a copy of %s, which was changed after it" % CONFIG in fault["message"] for fault in stale)
    times = {CONFIG: "2026-06-01T00:00:00Z", CONFD + "/copy.toml": "2026-06-02T00:00:00Z"}
    assert {fault["severity"] for fault in faults(facts("2.1.9", files, files=times), 28)} == {"info"}


def test_a_relative_import_of_a_linked_root() -> None:
    files = {"/opt/containerd/config.toml": V2 + "imports = ['conf.d/*.toml']\n" + RUNC % OLD, "/opt/containerd/conf.d/a.toml": V2 + handler("kata")}
    answer = facts("2.1.9", files, links={CONFIG: "/opt/containerd/config.toml"})
    fault = faults(answer, 24)[0]
    assert fault["handlers"] == ["kata"] and "beside the link" in fault["message"]
    assert [edit["op"] for edit in fault["fix_edits"]] == ["discard", "add"]


def test_what_k0s_merges_itself_is_not_called_unimported() -> None:
    root = "/etc/k0s/containerd.toml"
    files = {root: V2 + RUNC % OLD, "/etc/k0s/containerd.d/kata.toml": V2 + handler("kata")}
    answer = facts("1.7.24", files, config_path=root, cmdline="containerd --config=" + root)
    assert faults(answer, 25)[0]["handlers"] == ["kata"] and not faults(answer, 18)


def test_a_writable_cgroup_needs_version_2() -> None:
    text = V3 + handler("runc", NEW, more="cgroup_writable = true\n")
    assert "cgroup v2" in faults(facts("2.1.9", text, cgroup_version=1), 27)[0]["message"]
    for version in (2, None):
        assert not faults(facts("2.1.9", text, cgroup_version=version), 27)


def test_the_kubelets_driver_on_1x_is_its_own() -> None:
    text = ROOT + handler("foo", options="SystemdCgroup = true\n")
    systemd = faults(facts("1.7.24", text, kubelet={"cgroup_driver": "systemd"}), 35)
    cgroupfs = faults(facts("1.7.24", text, kubelet={"cgroup_driver": "cgroupfs"}), 35)
    assert [fault["handlers"] for fault in systemd] == [["runc"]] and [fault["handlers"] for fault in cgroupfs] == [["foo"]]
    assert systemd[0]["fix_edits"][0]["value"] is True and cgroupfs[0]["fix_edits"][0]["value"] is False


def test_on_2x_the_default_handler_decides_the_driver() -> None:
    text = ROOT + handler("foo", options="SystemdCgroup = true\n")
    for driver in ("systemd", "cgroupfs"):
        found = faults(facts("2.1.9", text, kubelet={"cgroup_driver": driver}), 35)
        assert [fault["handlers"] for fault in found] == [["foo"]] and "the default handler runc has false" in found[0]["message"]
    default = V2 + "[%s.containerd]\ndefault_runtime_name = 'foo'\n" % OLD + handler("foo", options="SystemdCgroup = true\n")
    builtin = faults(facts("2.1.9", default, kubelet={"cgroup_driver": "systemd"}), 35)
    assert [(fault["handlers"], fault["severity"]) for fault in builtin] == [(["runc"], "info")]


def test_options_in_one_lower_case_spelling_are_no_fault() -> None:
    # Status of 2.x lists the schema's own spelling beside the written one
    text = ROOT + handler("foo", options="systemdCgroup = true\nbinaryName = '/x'\n")
    assert not faults(facts("2.1.9", text), 33)


def test_a_handler_one_level_too_deep() -> None:
    text = ROOT + "[%s.containerd.runtimes.runc.kata]\nruntime_type = 'io.containerd.kata.v2'\n" % OLD
    deep = faults(facts("2.1.9", text), 14)
    assert deep[0]["handlers"] == ["kata"] and "one level too deep" in deep[0]["message"]


@pytest.mark.parametrize(
    "name",
    [
        "config.toml.20240101",
        "config.toml.2024-01-01",
        "config.toml.1",
        "config.toml.prev",
        "config.toml-backup",
        "config.toml_old",
        "config.old.toml",
        "config-default.toml",
        "config.toml.j2",
        "backup/config.toml",
        "old/config.toml",
    ],
)
def test_backups_by_any_name_are_hints_at_most(name: str) -> None:
    answer = facts("2.1.9", {CONFIG: ROOT, "/etc/containerd/" + name: V2 + handler("kata")})
    assert answer["lost"] == [] and {fault["severity"] for fault in answer["faults"]} == {"info"}
    loaded = facts("2.1.9", {CONFIG: "imports = ['/etc/containerd/%s']\n" % name + ROOT, "/etc/containerd/" + name: V3 + handler("kata")})
    assert loaded["lost"] == ["kata"], "a backup that is imported is configuration like any other"


def test_what_only_the_binary_knows_is_its_word() -> None:
    dump = {"rc": 1, "stdout": "", "stderr": "level=warning msg=x\ncontainerd: cannot decode TOML string into int"}
    about = {"engine": "containerd", "version": "2.1.9", "config_path": CONFIG, "binaries": SHIMS}
    status = {"config": {"containerd": {"defaultRuntimeName": "runc", "runtimes": {"runc": {"runtimeType": "io.containerd.runc.v2"}}}}}
    answer = interpret({"node": about, "files": {CONFIG: ROOT}, "info": status, "dump": dump})
    fault = faults(answer, 56)[0]
    assert answer["restart_loses"] == ["runc"] and "cannot decode TOML string into int" in fault["message"]
    upgraded = interpret({"node": dict(about, next_version="2.2.0"), "files": {CONFIG: ROOT}, "info": status, "dump": dump})
    assert not faults(upgraded, 56), "the dump was made by the running binary, not by the one that a restart would run"


def test_a_daemon_that_is_down_with_these_very_files_stays_down() -> None:
    times = {"daemon_started": "2026-06-01T09:00:00Z", "files": {CONFIG: "2026-06-01T08:00:00Z"}}
    answer = facts("2.1.9", ROOT, cri_state="unimplemented", **times)
    assert answer["restart_gains"] == [] and answer["restart_pending"] is False
    edited = dict(times, files={CONFIG: "2026-06-01T10:00:00Z"})
    assert facts("2.1.9", ROOT, cri_state="unimplemented", **edited)["restart_gains"] == ["runc"]


def test_a_negative_version_counts_where_it_is_the_last_word() -> None:
    files = {CONFIG: "version = -1\nimports = ['/d.toml']\n" + RUNC % OLD, "/d.toml": V2}
    assert not faults(facts("2.0.11", files), 51) and faults(facts("2.3.7", files), 51)


def test_a_required_plugin_that_may_not_load_is_a_doubt() -> None:
    text = "required_plugins = ['io.containerd.snapshotter.v1.zfs']\n" + ROOT
    assert facts("2.1.9", text)["layers"]["next"]["available"] is False
    needed = "required_plugins = ['io.containerd.grpc.v1.cri']\n" + ROOT
    assert facts("2.1.9", needed)["layers"]["next"]["available"] is True


@pytest.mark.parametrize("plugin", ["io.containerd.metadata.v1.bolt", "io.containerd.podsandbox.controller.v1.podsandbox"])
def test_plugins_that_cri_needs(plugin: str) -> None:
    answer = facts("2.1.9", "disabled_plugins = ['%s']\n" % plugin + ROOT)
    assert plugin in faults(answer, 26)[0]["message"]


def test_keys_that_differ_in_letter_case_alone_add_up_on_2x() -> None:
    text = V3 + RUNC % NEW + "[%s.containerd.RUNTIMES.kata]\nruntime_type = 'io.containerd.kata.v2'\n" % NEW
    assert facts("2.1.9", text)["layers"]["next"]["handlers"] == ["kata", "runc"]
    upper = V2 + RUNC % OLD + "[%s.containerd.RUNTIMES.kata]\nruntime_type = 'io.containerd.kata.v2'\n" % OLD
    assert facts("1.7.24", upper)["lost"] == ["kata"]


def test_half_a_file_still_names_its_handlers() -> None:
    text = V2 + handler("kata") + "[plugins.'x\nruntime_type = \"y"
    answer = facts("2.1.9", text)
    assert answer["lost"] == ["kata"] and faults(answer, 47)[0]["handlers"] == ["kata"]
