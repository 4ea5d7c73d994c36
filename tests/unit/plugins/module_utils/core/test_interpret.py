# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts out of captures: what is shown where CRI answers, does not answer, or could not be asked; and bad input."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import (
    MAX_DUMP_BYTES,
    interpret,
    interpret_dump,
)
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

CONFIG = "/etc/containerd/config.toml"
OLD = 'plugins."io.containerd.grpc.v1.cri"'
NEW = 'plugins."io.containerd.cri.v1.runtime"'
RUNC = "io.containerd.runc.v2"
SHIM = {"containerd-shim-runc-v2": True}


def table(name: str, plugin: str = OLD, more: str = "") -> str:
    return '[%s.containerd.runtimes.%s]\nruntime_type = "%s"\n%s' % (plugin, name, RUNC, more)


def status(*names: str, default: str = "runc", **bodies: dict) -> dict:
    """A Status answer with these handlers, in the shape of 1.7."""
    runtimes = {name: dict({"runtimeType": RUNC, "options": {}}, **bodies.get(name, {})) for name in names}
    return {"config": {"containerd": {"defaultRuntimeName": default, "runtimes": runtimes}}}


def capture(texts: t.Any = "", info: t.Any = None, version: str = "1.7.24", dump: t.Any = None, **node: t.Any) -> dict:
    texts = {CONFIG: texts} if isinstance(texts, str) else texts
    facts = {"engine": "containerd", "version": version, "config_path": CONFIG, "binaries": SHIM}
    return {"node": dict(facts, **node), "files": texts, "info": info, "dump": dump}


def ids(facts: dict) -> t.List[int]:
    return [fault["id"] for fault in facts["faults"]]


def named(facts: dict, number: int) -> t.List[str]:
    return [name for fault in facts["faults"] if fault["id"] == number for name in fault["handlers"]]


ROOT = "version = 2\n" + table("runc") + table("kata")


def test_loaded_as_declared_is_healthy() -> None:
    facts = interpret(capture(ROOT, status("runc", "kata")))
    assert facts["evidence"] == "loaded" and facts["cri_ready"] is True and facts["explicit"] is False
    assert sorted(facts["handlers"]) == ["kata", "runc"] and facts["default_handler"] == "runc"
    assert facts["faults"] == [] and facts["healthy"] and facts["lost"] == []
    assert facts["restart_pending"] is False and facts["release_line"] == "1.7" and facts["reason"] == ""


def test_a_stale_daemon_gains_and_loses() -> None:
    times = {CONFIG: "2026-06-01T09:00:00Z"}
    facts = interpret(capture(ROOT, status("runc", "crun"), daemon_started="2026-06-01T08:00:00Z", files=times))
    assert facts["restart_pending"] is True
    assert facts["restart_gains"] == ["kata"] and facts["restart_loses"] == ["crun"] and facts["lost"] == ["kata"]
    stale = facts["faults"][0]
    assert (stale["id"], stale["severity"], stale["file"]) == (1, "error", CONFIG)
    assert "changed after containerd started" in stale["message"] and "Do not restart before" in stale["fix"]


def test_changed_options_are_pending_too() -> None:
    text = "version = 2\n" + table("runc") + '[%s.containerd.runtimes.runc.options]\nSystemdCgroup = true\n' % OLD
    facts = interpret(capture(text, status("runc")))
    assert facts["restart_pending"] is True and facts["restart_changes"] == {"runc": ["options.SystemdCgroup"]}
    assert named(facts, 1) == ["runc"] and facts["faults"][0]["severity"] == "warning"


def test_an_upgrade_without_restart_is_said_to_be_one() -> None:
    text = "[plugins.cri.containerd.runtimes.runc]\nruntime_type = '%s'\n" % RUNC + table("kata").replace(OLD, "plugins.cri")
    facts = interpret(capture(text, status("runc", "kata"), next_version="2.1.9"))
    assert facts["release_line"] == "1.7" and facts["next_version"] == "2.1.9"
    assert facts["restart_loses"] == ["kata"] and facts["lost"] == []
    assert any("the installed containerd is 2.1.9, 1.7.24 is running" in fault["message"] for fault in facts["faults"])


def test_a_time_bomb_names_what_a_restart_would_cost() -> None:
    text = 'version = 2\nimports = ["/nope.toml"]\n' + table("runc")
    facts = interpret(capture(text, status("runc"), version="2.1.9"))
    assert facts["restart_loses"] == ["runc"] and facts["restart_pending"] is True
    bomb = next(fault for fault in facts["faults"] if fault["id"] == 22)
    assert bomb["handlers"] == ["runc"] and "will not start again" in bomb["message"] and bomb["line"] == 2


def test_cri_not_served_has_no_handlers_and_a_fault() -> None:
    text = 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n' + table("runc")
    down = {"cri_state": "unimplemented", "cri_error": "unknown service", "daemon_started": "2026-06-01T08:00:00Z"}
    facts = interpret(capture(text, dump={"rc": 0, "stdout": "version = 2\n[plugins]\n", "stderr": ""}, **down))
    assert facts["cri_ready"] is False and facts["evidence"] == "next" and facts["handlers"] == {}
    assert facts["default_handler"] is None and facts["lost"] == ["runc"] and named(facts, 26) == ["runc"]
    assert facts["layers"]["next"]["handlers"] == [] and facts["layers"]["next"]["serves_cri"] is False


def test_a_stopped_daemon_is_said_to_be_stopped_and_a_restart_gains() -> None:
    facts = interpret(capture(ROOT, cri_state="not_running", cri_error="connection refused", daemon_started=None))
    assert facts["cri_ready"] is False and facts["evidence"] == "none" and facts["restart_gains"] == ["kata", "runc"]
    assert "containerd is not running" in next(f["message"] for f in facts["faults"] if f["id"] == 26)
    assert not facts["healthy"]


def test_cri_down_without_a_reason_in_the_files_points_to_the_log() -> None:
    facts = interpret(capture(ROOT, cri_state="unimplemented", daemon_started="2026-06-01T08:00:00Z"))
    fault = next(fault for fault in facts["faults"] if fault["id"] == 26)
    assert "although containerd runs" in fault["message"] and "failed to load plugin" in fault["fix"]


@pytest.mark.parametrize(
    ("node", "word"),
    [
        ({"needs_become": True}, "needs become"),
        ({"undecided": ["/run/a.sock", "/run/b.sock"]}, "/run/a.sock, /run/b.sock"),
        ({"cri_state": "undetermined", "cri_error": "deadline exceeded"}, "deadline exceeded"),
        ({}, "CRI was not asked"),
    ],
)
def test_cri_that_could_not_be_asked_is_neither_up_nor_down(node: dict, word: str) -> None:
    facts = interpret(capture(ROOT, **node))
    assert facts["cri_ready"] is None and facts["evidence"] == "next" and word in facts["reason"]
    assert sorted(facts["handlers"]) == ["kata", "runc"] and facts["restart_pending"] is None


def test_next_evidence_of_a_cri_that_would_not_come_up_has_no_handlers() -> None:
    facts = interpret(capture("version = 2\n" + table("kata")))
    assert facts["cri_ready"] is None and facts["handlers"] == {} and facts["layers"]["next"]["handlers"] == ["kata"]
    assert {3, 26} <= set(ids(facts))


@pytest.mark.parametrize(("error", "started", "ready"), [
    ("rpc error: code = Unimplemented desc = unknown service runtime.v1.RuntimeService", "x", False),
    ("dial unix /run/x.sock: connect: no such file or directory", "x", False),
    ("dial unix: connect: connection refused", "x", False),
    ("context deadline exceeded", None, False),
    ("context deadline exceeded", "x", None),
    ("permission denied", "x", None),
])
def test_recordings_without_a_state_are_read_by_their_error(error: str, started: t.Any, ready: t.Any) -> None:
    assert interpret(capture(ROOT, cri_error=error, daemon_started=started))["cri_ready"] is ready


def test_a_withheld_root_leaves_the_next_start_to_the_dump() -> None:
    dump = {"rc": 0, "stdout": "version = 2\n" + table("runc") + table("kata"), "stderr": ""}
    facts = interpret(capture({}, status("runc"), withheld={CONFIG: "secrets could not be located"}, dump=dump))
    assert facts["layers"]["next"]["source"] == "config dump" and facts["restart_gains"] == ["kata"]


def test_without_root_text_and_dump_the_next_start_is_unknown() -> None:
    facts = interpret(capture({}, status("runc"), unreadable={CONFIG: "permission denied"}))
    assert facts["layers"]["next"]["available"] is False and facts["restart_pending"] is None


def test_a_loss_that_cannot_be_explained_is_called_so() -> None:
    sibling = {"/etc/containerd/conf.d/a.toml": "version = 2\n" + table("kata")}
    hidden = {CONFIG: "permission denied"}
    facts = interpret(capture(sibling, status("runc"), unreadable=hidden))
    fault = next(fault for fault in facts["faults"] if fault["id"] == 55)
    assert fault["handlers"] == ["kata"] and "permission denied" in fault["message"] and fault["line"] == 2


def test_an_unknown_version_explains_no_loss_away() -> None:
    facts = interpret(capture(ROOT, status("runc"), version="devil"))
    assert facts["release_line"] is None and named(facts, 55) == ["kata"] and not facts["healthy"]


def test_features_show_that_the_binary_ran() -> None:
    info = dict(status("runc", "kata"), runtimeHandlers=[{"features": {}}, {"name": "runc", "features": {"a": True}}, {"name": "kata"}])
    facts = interpret(capture("version = 2\n" + table("kata"), info, version="2.1.9", binaries={}))
    assert facts["handlers"]["runc"]["usable"] is True and facts["handlers"]["runc"]["features"] == {"a": True}
    assert facts["handlers"]["kata"]["usable"] is None and "" not in facts["handlers"]


def test_what_widens_rights_is_shown() -> None:
    body = {"PodAnnotations": ["io.x.*"], "privileged_without_host_devices": True, "cgroupWritable": False}
    kata = interpret(capture(ROOT, status("runc", "kata", kata=body)))["handlers"]["kata"]
    assert kata["pod_annotations"] == ["io.x.*"] and kata["container_annotations"] == []
    assert kata["privileged_without_host_devices"] is True and kata["cgroup_writable"] is False


def test_a_handler_whose_binary_is_missing_is_named() -> None:
    options = {"options": {"BinaryName": "/opt/kata"}}
    text = "version = 2\n" + table("runc") + table("kata") + '[%s.containerd.runtimes.kata.options]\nBinaryName = "/opt/kata"\n' % OLD
    facts = interpret(capture(text, status("runc", "kata", kata=options), binaries=dict(SHIM, **{"/opt/kata": False})))
    assert facts["handlers"]["kata"]["usable"] is False and named(facts, 34) == ["kata"]
    assert next(fault for fault in facts["faults"] if fault["id"] == 34)["line"] == 4


def test_backups_are_worth_a_word_and_no_more() -> None:
    files = {CONFIG: "version = 2\n" + table("runc"), CONFIG + ".bak": "version = 2\n" + table("kata")}
    facts = interpret(capture(files, status("runc")))
    assert facts["lost"] == [] and facts["healthy"] and named(facts, 18) == ["kata"]


def test_a_template_is_not_the_rendered_file() -> None:
    root = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"
    files = {root: "version = 2\n" + table("runc"), root + ".tmpl": '{{ template "base" . }}\n' + table("kata")}
    facts = interpret(capture(files, status("runc"), config_path=root, cmdline="containerd -c " + root))
    assert named(facts, 25) == ["kata"] and facts["lost"] == []


def test_a_rendered_file_edited_by_hand() -> None:
    root = "/var/lib/rancher/k3s/agent/etc/containerd/config.toml"
    node = {"config_path": root, "daemon_started": "2026-06-01T08:00:00Z", "files": {root: "2026-06-01T09:00:00Z"}}
    facts = interpret(capture({root: ROOT}, status("runc"), **node))
    assert named(facts, 25) == ["kata"] and named(facts, 1) == ["kata"]


def test_a_lost_default_is_said_where_the_handler_is_loaded_all_the_same() -> None:
    text = "version = 2\n" + '[%s.containerd]\ndefault_runtime_name = "kata"\n' % NEW + table("runc") + table("kata")
    facts = interpret(capture(text, status("runc", "kata")))
    fault = next(fault for fault in facts["faults"] if fault["id"] == 50)
    assert "default_runtime_name = 'kata' is lost: the default is runc" in fault["message"] and not facts["healthy"]


def test_values_that_are_not_loaded_are_said_although_the_handler_is() -> None:
    text = '[plugins.cri.containerd.runtimes.runc.options]\nSystemdCgroup = true\n'
    facts = interpret(capture(text, status("runc"), version="2.1.9"))
    assert facts["lost"] == [] and not facts["healthy"]
    assert "not with these values" in next(fault["message"] for fault in facts["faults"] if fault["id"] == 4)


def test_links_are_followed_as_containerd_follows_them() -> None:
    drop = "/etc/containerd/conf.d/a.toml"
    files = {CONFIG: 'version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\n' + table("runc"), "/opt/a.toml": "version = 2\n" + table("kata")}
    facts = interpret(capture(files, status("runc", "kata"), version="2.1.9", links={drop: "/opt/a.toml"}))
    assert facts["faults"] == [] and facts["imports"][0]["loaded"] == [drop]
    loop = interpret(capture({CONFIG: files[CONFIG]}, status("runc"), version="2.1.9", links={drop: drop}))
    assert 22 in ids(loop)


def test_unknown_keys_are_repeated_from_the_dump() -> None:
    line = 'level=warning msg="Ignoring unknown key in TOML for plugin" key="a b" plugin=io.containerd.grpc.v1.cri'
    top = 'level=warning msg="Ignoring unknown key in TOML" key=subreaper'
    facts = interpret(capture(ROOT, status("runc", "kata"), version="2.1.9", dump={"rc": 0, "stdout": "", "stderr": line + "\n" + top}))
    said = [fault["message"] for fault in facts["faults"] if fault["id"] == 57]
    assert len(said) == 2 and "a b" in said[0] and "subreaper" in said[1] and facts["healthy"]
    assert facts["layers"]["next"]["warnings"] == [line, top]


@pytest.mark.parametrize(
    ("text", "number", "word"),
    [
        ('version = "2"\n', 51, "version must be a whole number"),
        ('version = 2\nimports = "x"\n', 51, "imports must be a list of strings"),
        ('version = 2\ndisabled_plugins = ["cri"]\n', 54, "invalid disabled plugin URI"),
        ('version = 2\nimports = ["[*"]\n', 53, "malformed"),
        ('version = 2\n[plugins]\n"io.containerd.grpc.v1.cri" = 1\n', 51, "must be a table"),
        ("version = 2\n[%s.containerd]\nruntimes = 1\n" % OLD, 51, "containerd.runtimes must be a table"),
        ("version = 2\n[%s.containerd]\ndefault_runtime_name = 1\n" % OLD, 51, "must be a string"),
        ("version = 2\n[%s.containerd.runtimes]\nx = 1\n" % OLD, 51, "runtimes.x must be a table"),
        ("version = 2\n[%s.containerd.runtimes.x]\nruntime_type = 1\n" % OLD, 51, "runtime_type of handler x"),
        ("version = 3\n" + table("runc", NEW), 49, "version 3 is above 2"),
        ("version = 2\n{{ template }}\n", 47, "not valid TOML"),
    ],
)
def test_what_stops_the_daemon_is_said_with_file_and_line(text: str, number: t.Any, word: str) -> None:
    facts = interpret(capture(text, cri_state="not_running", daemon_started=None))
    fault = next(fault for fault in facts["faults"] if fault["id"] == number)
    assert word in fault["message"] and fault["file"] == CONFIG and fault["line"] >= 1 and fault["severity"] == "error"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[%s.containerd]\ndefault_runtime_name = ''\n" % OLD, "is empty"),
        ("[%s]\nsystemd_cgroup = true\n" % OLD, "systemd_cgroup"),
        ("[%s.containerd]\nno_pivot = true\n" % OLD, "no_pivot"),
        (table("runc") + "runtime_engine = '/x'\n", "runtime_engine"),
        (table("runc") + table("untrusted") + "[%s.containerd.untrusted_workload_runtime]\nruntime_type = 'x.y'\n" % OLD, "untrusted"),
        (table("runc") + "privileged_without_host_devices_all_devices_allowed = true\n", "all_devices_allowed"),
        (table("runc") + "base_runtime_spec = '/nope.json'\n", "base OCI spec"),
        ("[%s.containerd]\nsnapshotter = 'nydus'\n" % OLD, "nydus"),
        ("[proxy_plugins.nydus]\ntype = 'content'\naddress = '/x'\n[%s.containerd]\nsnapshotter = 'nydus'\n" % OLD, "nydus"),
        ("[%s.registry]\nconfig_path = '/c'\n[%s.registry.mirrors.x]\nendpoint = ['y']\n" % (OLD, OLD), "mirrors"),
    ],
)
def test_what_keeps_cri_down_is_said(text: str, word: str) -> None:
    facts = interpret(capture("version = 2\n" + text, cri_state="unimplemented", absent=["/nope.json"]))
    assert {26} <= set(ids(facts)) and any(word in fault["message"] for fault in facts["faults"] if fault["id"] in (26, 27))


def test_io_type_of_2x() -> None:
    text = "version = 3\n" + table("runc", NEW) + "io_type = 'pipe'\n"
    facts = interpret(capture(text, version="2.1.9", cri_state="unimplemented"))
    assert any("io_type" in fault["message"] for fault in facts["faults"] if fault["id"] == 27)


def test_a_proxy_snapshotter_is_known() -> None:
    text = "version = 2\n[proxy_plugins.nydus]\ntype = 'snapshot'\naddress = '/x'\n[%s.containerd]\nsnapshotter = 'nydus'\n" % OLD
    assert interpret(capture(text, status("runc")))["healthy"]


def test_a_byte_order_mark_loads_on_1_7_and_stops_later_releases() -> None:
    facts = interpret(capture("\ufeff" + ROOT, status("runc", "kata")))
    assert [(fault["id"], fault["severity"]) for fault in facts["faults"]] == [(48, "warning")]


def test_what_only_the_release_after_next_refuses_is_a_hint() -> None:
    bad = {"not_utf8": {CONFIG: "it is no UTF-8 (byte 9)"}}
    text = ROOT + "# caf\ufffd\n"
    old = interpret(capture(text, status("runc", "kata"), version="1.6.20", **bad))
    assert [(fault["id"], fault["severity"]) for fault in old["faults"]] == [(52, "info")] and old["healthy"]
    new = interpret(capture(text, status("runc", "kata"), **bad))
    assert [(fault["id"], fault["severity"]) for fault in new["faults"]] == [(52, "warning")]
    stopped = interpret(capture(text, version="2.1.9", cri_state="not_running", **bad))
    assert named(stopped, 47) == ["kata", "runc"] and stopped["faults"][0]["line"] == 6


def test_what_an_upgrade_would_lose_is_foreseen_as_a_hint() -> None:
    text = "[plugins.cri.containerd.runtimes.runc]\nruntime_type = '%s'\n" % RUNC + table("kata").replace(OLD, "plugins.cri")
    facts = interpret(capture(text, status("runc", "kata")))
    hint = next(fault for fault in facts["faults"] if fault["id"] == 58)
    assert facts["healthy"] and hint["handlers"] == ["kata"] and hint["severity"] == "info"
    assert "containerd 2.0 would not load handler kata" in hint["message"] and "no version" in hint["message"]


def test_utf_16_is_no_configuration_but_its_handlers_are_named() -> None:
    facts = interpret(capture(ROOT, version="1.7.24", cri_state="not_running", not_utf8={CONFIG: "it is UTF-16"}))
    assert named(facts, 47) == ["kata", "runc"]


def test_another_engine_is_refused() -> None:
    with pytest.raises(RuntimeGateError, match="crio"):
        interpret(capture(engine="crio"))


GOOD_DUMP = "version = 3\n[plugins]\n" + table("runc", NEW) + table("nvidia", NEW)


def test_an_explicit_dump_is_judged_as_what_it_is() -> None:
    facts = interpret_dump(GOOD_DUMP)
    assert facts["explicit"] is True and facts["cri_ready"] is None and facts["evidence"] == "next"
    assert sorted(facts["handlers"]) == ["nvidia", "runc"] and facts["default_handler"] == "runc" and facts["healthy"]


def test_only_the_registered_plugin_of_a_dump_counts() -> None:
    echoed = GOOD_DUMP + table("ghost", "plugins.cri") + table("spook", OLD)
    assert sorted(interpret_dump(echoed)["handlers"]) == ["nvidia", "runc"]


@pytest.mark.parametrize(
    "dump",
    [
        "version = 2\n[plugins]\n" + table("kata"),
        "version = 2\n[plugins]\n",
        'version = 3\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n[plugins]\n' + table("runc", NEW),
    ],
)
def test_a_dump_whose_cri_would_not_come_up_has_nothing_usable(dump: str) -> None:
    facts = interpret_dump(dump)
    assert not facts["healthy"] and 26 in ids(facts) and facts["layers"]["next"]["serves_cri"] is False
    assert all(handler["usable"] is False for handler in facts["handlers"].values())


def test_a_dump_with_an_empty_runtime_type() -> None:
    facts = interpret_dump("version = 3\n[plugins]\n[%s.containerd.runtimes.x]\nruntime_type = ''\n" % NEW)
    assert named(facts, 31) == ["x"] and facts["handlers"]["x"]["usable"] is False


@pytest.mark.parametrize(
    ("dump", "word"),
    [
        ("", "empty"),
        (" \n", "empty"),
        (None, "empty"),
        ("not = [toml", "not valid TOML"),
        ("a = 1\n", r"no \[plugins\] table"),
        ("#" * (MAX_DUMP_BYTES + 1), "larger than 10 MB"),
        ("version = 2\n[plugins]\n[%s.containerd]\nruntimes = 3\n" % OLD, "must be a table"),
    ],
)
def test_a_bad_dump_is_one_clear_error(dump: t.Any, word: str) -> None:
    with pytest.raises(RuntimeGateError, match=word):
        interpret_dump(dump)
