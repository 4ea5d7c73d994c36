# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The facts about a CRI-O node: what is loaded, what a restart would change, and which faults say why.

What daemons do with these files was measured on 1.34 and 1.36 (tests/integration/crio_scenarios.py); what older lines do is
read from the sources that core/crio/release_lines.py names.
"""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.interpret import interpret, interpret_dump
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError

Table = t.Dict[str, t.Any]

D = "/etc/crio/crio.conf.d/"
START, EARLIER, LATER = "2026-06-01T08:05:00Z", "2026-06-01T08:00:00Z", "2026-06-01T09:00:00Z"
THERE = dict.fromkeys(("/usr/bin/runc", "/usr/bin/crun", "/usr/bin/conmon"), True)
BASE = '[crio.runtime]\ndefault_runtime = "runc"\n[crio.runtime.runtimes.runc]\nruntime_path = "/usr/bin/runc"\nruntime_root = "/run/runc"\n'
KATA = '[crio.runtime.runtimes.kata]\nruntime_path = "/usr/bin/runc"\n'
PROBE = "failed to find runtime handler runtime-gate-no-such-handler- from runtime list map[%s]"
CASES = pathlib.Path(__file__).resolve().parents[5] / "cases"


def status(default: t.Optional[str], **handlers: Table) -> Table:
    """CRI Status of 1.36 with these handlers: name -> Go's fields; features as of a program that ran."""
    built_in = {"crun": {"RuntimePath": "/usr/bin/crun", "RuntimeRoot": "/run/crun"}}
    plain = {"RuntimePath": "/usr/bin/runc", "RuntimeType": "", "RuntimeRoot": ""}
    runtimes = {name: {**plain, **built_in.get(name, {}), **body} for name, body in handlers.items()}
    entries: t.List[Table] = []
    for name in handlers:
        entries.append({"name": name, "features": {"recursive_read_only_mounts": True}})
        if name == default:
            entries.append({"features": {"recursive_read_only_mounts": True}})
    return {"status": {"conditions": []}, "config": {"crio": {"DefaultRuntime": default, "Runtimes": runtimes}}, "runtimeHandlers": entries}


#: The Status of a daemon that was started on BASE.
AS_BASE = status("runc", crun={}, runc={"RuntimeRoot": "/run/runc"})


def capture(files: t.Mapping[str, str], info: t.Optional[Table] = None, later: t.Container[str] = (), **node: t.Any) -> Table:
    """A capture of CRI-O 1.36 whose daemon started at START.

    :param files: name below crio.conf.d (or a whole path) -> text. :param later: those that were changed after the start.
    """
    texts = {name if name.startswith("/") else D + name: text for name, text in files.items()}
    times = {path: LATER if path in later or path[len(D) :] in later else EARLIER for path in texts}
    facts: Table = {"engine": "crio", "version": "1.36.3", "config_path": "/etc/crio/crio.conf", "config_dir": D.rstrip("/")}
    facts.update({"daemon_started": START, "binaries": dict(THERE), "files": times, "cmdline": "/usr/bin/crio"}, **node)
    rest = {key: facts.pop(key, None) for key in ("probe", "dump", "status_config")}
    return {"node": facts, "files": texts, "info": info, **rest}


def judged(*arguments: t.Any, **keywords: t.Any) -> Table:
    facts = interpret(capture(*arguments, **keywords))
    json.dumps(facts)
    return facts


def fault(facts: Table, number: int) -> Table:
    (found,) = [item for item in facts["faults"] if item["id"] == number]
    return t.cast(Table, found)


def ids(facts: Table) -> t.List[int]:
    return sorted(item["id"] for item in facts["faults"])


# --- what is loaded --------------------------------------------------------------------------------------------------


def test_a_healthy_node() -> None:
    facts = judged({"10-crio.conf": BASE}, AS_BASE)
    assert (facts["healthy"], facts["evidence"], facts["cri_ready"], facts["restart_pending"]) == (True, "loaded", True, False)
    assert (facts["default_handler"], sorted(facts["handlers"]), facts["lost"], facts["faults"]) == ("runc", ["crun", "runc"], [], [])
    runc = facts["handlers"]["runc"]
    assert (runc["runtime_type"], runc["binary"], runc["shim"], runc["usable"]) == ("oci", "/usr/bin/runc", None, True)
    assert runc["options"] == {"runtime_root": "/run/runc"} and runc["features"] == {"recursive_read_only_mounts": True}
    assert facts["engine"] == "crio" and facts["release_line"] == "1.36" and facts["imports"][0]["loaded"] == [D + "10-crio.conf"]
    assert facts["layers"]["declared"]["handlers"] == ["runc"] and facts["layers"]["declared"]["default_handler"] == "runc"


_CONFIG = '[crio.runtime]\ndefault_runtime = "runc"\n[crio.runtime.runtimes.runc]\nruntime_path = "/usr/bin/runc"\nruntime_root = "/run/runc"\n'
_NAMES = {"status": {}, "runtimeHandlers": [{"name": "crun"}, {"name": "runc", "features": {}}, {}, "strange", {"name": ""}]}


@pytest.mark.parametrize(
    ("answers", "source", "handlers", "default"),
    [
        ({"info": AS_BASE, "status_config": "[crio.runtime.runtimes.x]\n"}, "cri status", ["crun", "runc"], "runc"),
        ({"info": {"status": {}}, "status_config": _CONFIG}, "status config", ["runc"], "runc"),
        ({"info": _NAMES}, "cri status (names only)", ["crun", "runc"], "runc"),
        ({"info": {"status": {}}, "probe": PROBE % "crun:0xc1 runc:0xc2"}, "sandbox probe", ["crun", "runc"], "runc"),
    ],
)
def test_every_source_of_what_is_loaded(answers: Table, source: str, handlers: t.List[str], default: str) -> None:
    facts = judged({"10": BASE}, version="1.30.1", **answers)
    assert (facts["layers"]["loaded"]["source"], sorted(facts["handlers"]), facts["default_handler"]) == (source, handlers, default)
    assert facts["cri_ready"] is True


@pytest.mark.parametrize(
    "info", [{"status": {}}, {"status": {}, "config": {"crio": {"Runtimes": None}}}, {"status": {}, "config": "text", "runtimeHandlers": 3}]
)
def test_an_answer_without_handlers_is_no_evidence(info: Table) -> None:
    facts = judged({"10": BASE}, info, version="1.24.6", status_config="a = [")
    assert (facts["cri_ready"], facts["evidence"], facts["restart_pending"]) == (None, "next", False)
    assert "no answer of it names its handlers" in facts["reason"] and facts["healthy"] is False
    assert interpret({"node": {"engine": "crio"}, "info": info})["evidence"] == "none"


def test_a_daemon_that_does_not_run() -> None:
    dead: Table = {"daemon_started": None, "cri_state": "not_running", "cri_error": "nobody listens"}
    facts = judged({"10": BASE, "20": KATA}, **dead, dump={"rc": 0, "stdout": "[crio]\n", "stderr": ""})
    assert (facts["cri_ready"], facts["handlers"], facts["evidence"], facts["restart_pending"]) == (False, {}, "next", True)
    assert fault(facts, 26)["handlers"] == ["kata", "runc"] and "nobody listens" in fault(facts, 26)["message"]
    assert facts["layers"]["next"]["serves_cri"] is True
    failed = judged({"10": BASE}, **dead, unit={"state": "failed"})
    assert failed["layers"]["next"]["serves_cri"] is False and failed["restart_pending"] is False
    refused = judged({"10": '[crio.runtime]\ndefault_runtime = "x"\n'}, **dead)
    assert ids(refused) == [60] and refused["evidence"] == "none" and fault(refused, 60)["message"].startswith("CRI-O does not start")
    assert "although CRI-O runs" in fault(judged({"10": BASE}, cri_state="unimplemented"), 26)["message"]


def test_the_version_is_not_known() -> None:
    facts = judged({"10": BASE, "20": KATA}, AS_BASE, version="0.9")
    assert facts["lost"] == ["kata"] and "unknown or older" in fault(facts, 55)["message"] and facts["restart_pending"] is None
    dump = {"rc": 0, "stdout": '[crio.runtime]\n# default_runtime = "crun"\n[crio.runtime.runtimes.kata]\n', "stderr": ""}
    coming = judged({"10": BASE, "20": KATA}, AS_BASE, version="0.9", dump=dump)["layers"]["next"]
    assert (coming["source"], coming["handlers"], coming["default_handler"]) == ("crio config", ["crun", "kata"], "crun")


# --- usable ----------------------------------------------------------------------------------------------------------


def test_a_program_that_nobody_may_execute_is_loaded_and_cannot_run() -> None:
    files = {"10": BASE, "20": '[crio.runtime.runtimes.n]\nruntime_path = "/opt/plain"\n'}
    info = status("runc", runc={"RuntimeRoot": "/run/runc"}, crun={}, n={"RuntimePath": "/opt/plain"})
    info["runtimeHandlers"][-1]["features"] = {}
    for node in ({"not_executable": ["/opt/plain"]}, {"binaries": {**THERE, "/opt/plain": False}}):
        facts = judged(files, info, **node)
        assert facts["handlers"]["n"]["usable"] is False and fault(facts, 34)["handlers"] == ["n"]
        assert facts["restart_pending"] is False and facts["lost"] == []
    gone = status("runc", runc={"RuntimeRoot": "/run/runc"}, crun={}, n={"RuntimePath": "/opt/plain"})
    facts = judged(files, gone, binaries={**THERE, "/opt/plain": False})
    assert facts["restart_loses"] == ["n"] and "the next start of CRI-O will ignore it" in fault(facts, 41)["message"]


def test_a_vm_has_a_shim_and_an_oci_handler_a_monitor() -> None:
    info = status("runc", runc={}, v={"RuntimeType": "vm", "RuntimePath": "/opt/containerd-shim-kata-v2"}, m={"MonitorPath": "/opt/none"})
    info["runtimeHandlers"] = []
    facts = judged({"10": BASE}, info, binaries={**THERE, "/opt/none": False})
    assert (facts["handlers"]["v"]["shim"], facts["handlers"]["v"]["binary"], facts["handlers"]["v"]["usable"]) == (
        "/opt/containerd-shim-kata-v2",
        None,
        None,
    )
    assert "/opt/none is not there" in facts["handlers"]["m"]["reason"]


# --- files and daemon differ -----------------------------------------------------------------------------------------


def test_edited_and_not_restarted() -> None:
    facts = judged({"10": BASE, "20": KATA}, AS_BASE, later=["20"])
    assert (facts["restart_gains"], facts["lost"], facts["restart_pending"]) == (["kata"], ["kata"], True)
    stale = fault(facts, 1)
    assert (stale["file"], stale["severity"]) == (D + "20", "error") and "adds kata" in stale["message"] and "Restart CRI-O" in stale["fix"]
    gone = judged({"10": BASE}, status("runc", runc={"RuntimeRoot": "/run/runc"}, crun={}, kata={}), later=["10"])
    assert gone["restart_loses"] == ["kata"] and "Do not restart before" in fault(gone, 1)["fix"]
    changed = judged({"10": BASE.replace("/run/runc", "/run/other")}, AS_BASE, later=["10"])
    assert changed["restart_changes"] == {"runc": ["runtime_root"]} and fault(changed, 1)["severity"] == "warning"
    default = judged({"10": BASE, "20": '[crio.runtime]\ndefault_runtime = "crun"\n'}, AS_BASE, later=["20"], reload_evidence="excluded")
    assert "makes crun the default (now runc)" in fault(default, 1)["message"]


def test_upgraded_and_not_restarted() -> None:
    facts = judged({"10": "[crio.runtime.runtimes.kata]\nruntime_path='/usr/bin/runc'\n"}, status("runc", runc={}), version="1.30.1", next_version="1.36.3")
    assert facts["restart_loses"] == ["runc"] and "the installed CRI-O is 1.36.3, 1.30.1 is running" in fault(facts, 1)["message"]
    assert (facts["release_line"], facts["next_version"]) == ("1.30", "1.36.3")


def test_what_the_daemon_fills_in_is_no_change() -> None:
    text = BASE + 'container_min_memory = "0.5g"\ncontainer_create_timeout = 5\nallowed_annotations = ["devices.crio.io"]\n'
    body = {"RuntimeRoot": "/run/runc", "ContainerMinMemory": "512MiB", "ContainerCreateTimeout": 30, "AllowedAnnotations": ["devices.crio.io"]}
    facts = judged({"10": text}, status("runc", runc={**body, "MonitorPath": "/usr/bin/conmon"}, crun={}))
    assert facts["restart_changes"] == {} and facts["healthy"] is True
    other = judged({"10": text.replace("0.5g", "nonsense")}, status("runc", runc=body, crun={}), later=["10"])
    assert other["restart_changes"] == {"runc": ["container_min_memory"]}


def test_a_daemon_that_has_read_these_files_is_right() -> None:
    pod = '[crio.runtime.runtimes.p]\nruntime_path = "/usr/bin/runc"\nruntime_type = "pod"\n'
    times = {"/usr/bin/runc": EARLIER}
    facts = judged({"10": BASE, "20": pod}, AS_BASE, binary_times=times)
    assert facts["restart_pending"] is False and "its log says why" in fault(facts, 41)["message"]
    came_later = judged({"10": BASE, "20": pod}, AS_BASE, binary_times={"/usr/bin/runc": LATER})
    assert came_later["restart_gains"] == ["p"] and "the programs on the node say" in fault(came_later, 1)["message"]
    odd = '[crio.runtime.runtimes.p]\nruntime_path = "/usr/bin/runc"\nexec_cpu_affinity = "last"\n'
    taken = judged({"10": BASE, "20": odd}, status("runc", runc={"RuntimeRoot": "/run/runc"}, crun={}, p={}))
    assert taken["restart_pending"] is False and "p" in taken["handlers"]


# --- after a reload --------------------------------------------------------------------------------------------------

_TOLD = status("runc", runc={"RuntimeRoot": "/run/runc"}, crun={}, kata={})


def test_the_probe_counts_for_more_than_the_answer() -> None:
    facts = judged({"10": BASE, "20": KATA}, _TOLD, later=["20"], probe=PROBE % "crun:0x1 runc:0x2")
    assert sorted(facts["handlers"]) == ["crun", "runc"] and facts["lost"] == ["kata"] and facts["restart_gains"] == ["kata"]
    assert ids(facts) == [45] and fault(facts, 45)["handlers"] == ["kata"] and "no sandbox can have" in fault(facts, 45)["message"]
    layer = facts["layers"]["loaded"]
    assert (layer["reloaded"], layer["settled_by"], layer["claimed"]) == (True, "probe", ["kata"])


def test_a_handler_that_the_answer_hides() -> None:
    info = status("runc", runc={"RuntimeRoot": "/run/runc"}, crun={})
    facts = judged({"10": BASE}, info, later=["10"], probe=PROBE % "crun:0x1 kata:0x3 runc:0x2")
    assert "kata" in facts["handlers"] and facts["handlers"]["kata"]["usable"] is None and facts["restart_loses"] == ["kata"]
    assert "does not name kata" in fault(facts, 45)["message"]


def test_a_reload_without_a_probe_is_judged_by_the_times() -> None:
    facts = judged({"10": BASE, "20": KATA}, _TOLD, later=["20"], daemon_reloaded=LATER)
    assert sorted(facts["handlers"]) == ["crun", "runc"] and "newer than its start" in fault(facts, 45)["message"]
    before = judged({"10": BASE, "20": KATA}, _TOLD, daemon_reloaded=EARLIER)
    assert "kata" in before["handlers"] and before["healthy"] is True
    nothing = judged({"10": BASE}, AS_BASE, daemon_reloaded=LATER)
    assert (fault(nothing, 45)["severity"], nothing["healthy"]) == ("info", True)


def test_old_lines_reload_no_handlers() -> None:
    facts = judged({"10": BASE, "20": KATA}, _TOLD, later=["20"], daemon_reloaded=LATER, version="1.24.6")
    assert "kata" in facts["handlers"] and 45 not in ids(facts)


def test_the_default_after_a_reload() -> None:
    other = {"20": '[crio.runtime]\ndefault_runtime = "crun"\n'}
    info = status("crun", runc={"RuntimeRoot": "/run/runc"}, crun={})
    doubt = judged({"10": BASE, **other}, info, later=["20"], probe=PROBE % "crun:0x1 runc:0x2")
    assert doubt["default_handler"] == "crun" and "does not exclude a reload" in fault(doubt, 45)["message"] and not doubt["healthy"]
    sure = judged({"10": BASE, **other}, info, later=["20"], daemon_reloaded=LATER)
    assert sure["default_handler"] == "runc" and "calls crun the default, which is runc" in fault(sure, 45)["message"]
    flag = judged({"10": BASE}, AS_BASE, cmdline="/usr/bin/crio --default-runtime=crun", daemon_reloaded=LATER)
    assert flag["default_handler"] == "crun" and "calls runc the default" in fault(flag, 45)["message"]
    excluded = judged({"10": BASE, **other}, info, later=["20"], reload_evidence="excluded")
    assert excluded["default_handler"] == "crun" and 45 not in ids(excluded)


def test_a_reload_that_failed() -> None:
    broken = {"10": BASE, "20": KATA + '[crio.runtime]\ndefault_runtime = "nope"\n'}
    info = status("nope", runc={"RuntimeRoot": "/run/runc"}, crun={}, kata={})
    facts = judged(broken, info, later=["20"], probe=PROBE % "crun:0x1 runc:0x2")
    assert facts["default_handler"] == "runc" and ids(facts) == [45, 46, 60]
    assert fault(facts, 46)["handlers"] == ["kata"] and fault(facts, 60)["message"].startswith("CRI-O runs, and will not start again")
    unchecked = {"10": BASE, "20": '[crio.runtime.runtimes.kata]\nruntime_path = "/opt/none"\n'}
    info = status("runc", runc={"RuntimeRoot": "/run/runc"}, crun={}, kata={"RuntimePath": "/opt/none"})
    gone = {**THERE, "/opt/none": False}
    for node in ({"daemon_reloaded": LATER}, {"probe": PROBE % "crun:0x1 runc:0x2"}):
        facts = judged(unchecked, info, later=["20"], binaries=gone, **node)
        assert fault(facts, 46)["handlers"] == ["kata"] and {41, 45} <= set(ids(facts))
    told = judged({"10": BASE}, AS_BASE, daemon_reloaded=LATER, reload_failed=True)
    assert fault(told, 46)["severity"] == "warning"


# --- what a start makes of the files ---------------------------------------------------------------------------------


def handler(body: str, name: str = "x") -> str:
    return "[crio.runtime.runtimes.%s]\n%s\n" % (name, body)


_OCI = 'runtime_path = "/usr/bin/runc"\n'


@pytest.mark.parametrize(
    ("body", "line", "words", "edits"),
    [
        ('runtime_path = "/opt/none"', 2, "runtime_path /opt/none does not exist", []),
        ('runtime_root = "/run/x"', 1, "'x' is not found in $PATH", []),
        (_OCI + 'runtime_type = "oci2"', 3, "invalid `runtime_type` 'oci2'", ["set"]),
        (_OCI + 'runtime_type = "vm"', 2, "must be named containerd-shim-NAME-v2, not runc", []),
        ('runtime_path = "/opt/containerd-shim-kata-v2"\nruntime_type = "vm"\nruntime_config_path = "/opt/none"', 4, "runtime_config_path /opt/none", []),
        (_OCI + 'runtime_config_path = "/usr/bin/runc"', 3, "can only be used with runtime_type vm", ["unset"]),
        (_OCI + 'allowed_annotations = ["nonsense"]', 3, "invalid allowed_annotation: nonsense", ["discard"]),
        (_OCI + 'runtime_type = "pod"\nno_sync_log = true', 4, "no_sync_log is only allowed", ["unset"]),
        (_OCI + "stream_websockets = true", 3, "stream_websockets is only allowed", ["unset"]),
        (_OCI + 'exec_cpu_affinity = "last"', 3, "invalid exec_cpu_affinity 'last'", ["unset"]),
    ],
)
def test_a_handler_that_is_dropped_is_named(body: str, line: int, words: str, edits: t.List[str]) -> None:
    binaries = {**THERE, "/opt/none": False, "x": False, "/opt/containerd-shim-kata-v2": True}
    facts = judged({"10": BASE, "20": handler(body)}, AS_BASE, binaries=binaries)
    dropped = fault(facts, 41)
    assert (dropped["handlers"], dropped["file"], dropped["line"], facts["lost"]) == (["x"], D + "20", line, ["x"])
    assert words in dropped["message"] and dropped["fix"].endswith("then restart CRI-O.") and facts["restart_pending"] is False
    assert [edit["op"] for edit in dropped["fix_edits"]] == edits


def test_what_older_lines_do_with_a_bad_handler() -> None:
    files = {"10": BASE, "20": handler('runtime_path = "/opt/none"')}
    old = judged(files, AS_BASE, version="1.20.9", binaries={**THERE, "/opt/none": False})
    assert fault(old, 41)["message"].startswith("CRI-O runs, and will not start again: handler x:") and len(old["restart_loses"]) == 2
    annotated = {"10": BASE, "20": handler(_OCI + 'allowed_annotations = ["devices.crio.io"]')}
    assert 41 in ids(judged(annotated, AS_BASE, version="1.34.2")) and 41 not in ids(judged(annotated, AS_BASE, version="1.20.9"))


def test_another_default_removes_runc() -> None:
    files = {"10": BASE.replace('"runc"', '"crun"') + '[crio.runtime.runtimes.crun]\nruntime_path = "/usr/bin/crun"\n'}
    facts = judged(files, version="1.24.6")
    assert sorted(facts["handlers"]) == ["crun"] and fault(facts, 59)["handlers"] == ["runc"] and fault(facts, 59)["line"] == 2
    assert sorted(judged(files, version="1.25.1")["handlers"]) == ["crun", "runc"]
    built_in = judged({"10": '[crio.runtime]\ndefault_runtime = "a"\n' + handler(_OCI, "a")}, version="1.22.1")
    assert (fault(built_in, 59)["severity"], sorted(built_in["handlers"])) == ("info", ["a"])
    assert judged({"10": '[crio.runtime]\ndefault_runtime = ""\n'}, version="1.22.1")["default_handler"] == "runc"


REFUSALS: t.List[t.Tuple[Table, Table, int, str]] = [
    ({"20": "[crio.runtime\n"}, {}, 47, "is not valid TOML"),
    ({"20": "[crio.runtime]\nlog_level = 3\n"}, {}, 51, "log_level must be a string"),
    ({"20": "[crio.runtime]\nselinux = 1\n"}, {}, 51, "selinux must be true or false"),
    ({"20": "[crio.runtime]\npids_limit = true\n"}, {}, 51, "must be a whole number"),
    ({"20": "[crio.runtime]\ncdi_spec_dirs = [1]\n"}, {}, 51, "must be a list of strings"),
    ({"20": "[crio.image]\npull_progress_timeout = []\n"}, {}, 51, "must be a duration"),
    ({"20": handler("default_annotations = 1")}, {}, 51, "must be a table of strings"),
    ({"20": "[crio]\nruntime = 1\n"}, {}, 51, "runtime must be a table"),
    ({"20": "crio = 1\n"}, {}, 51, "crio must be a table"),
    ({"20": '[crio.runtime.runtimes]\nx = "y"\n'}, {}, 51, "handler x must be a table"),
    ({"20": "[crio.nri.default_validator]\nnri_enable_default_validator = 1\n"}, {}, 51, "must be true or false"),
    ({"20": "\ufeff[crio]\n"}, {"version": "1.27.1"}, 48, "byte order mark"),
    ({"20": '[crio.runtime]\nconmon = "/opt/none"\n'}, {}, 61, "the monitor /opt/none does not exist"),
    ({"20": handler(_OCI + 'monitor_path = "/opt/none"')}, {}, 61, "the monitor /opt/none does not exist"),
    ({"20": handler(_OCI + 'monitor_cgroup = "x"')}, {}, 61, "monitor_cgroup must be pod or a systemd slice"),
    ({"20": '[crio.runtime]\nconmon_cgroup = "x"\n'}, {"version": "1.23.1"}, 61, "conmon_cgroup must be pod"),
    ({}, {"binaries": {"conmon": False, "/usr/bin/runc": True}}, 61, "conmon is not found in $PATH"),
    ({}, {"cmdline": "crio -c /etc/crio/none.conf"}, 23, "which -c names, does not exist"),
    ({}, {"config_path": "/etc/crio/none.conf"}, 23, "which -c names, does not exist"),
    ({}, {"cmdline": "crio --runtimes x:/y"}, 51, "invalid format for --runtimes"),
    ({}, {"links": {D + "30": "/nowhere"}}, 63, "is a link to nothing"),
    ({}, {"links": {D + "30": "/etc/other"}, "directories": ["/etc/other"]}, 63, "is a link to a directory"),
    ({}, {"links": {D.rstrip("/"): "/etc/other"}, "directories": ["/etc/other"]}, 63, "is a link, and CRI-O reads it as a file"),
    ({}, {"dump": {"rc": 1, "stdout": "", "stderr": "level=fatal msg=invalid timezone"}}, 56, "invalid timezone"),
    (
        {},
        {"withheld": {D + "20.swp": "no TOML"}, "dump": {"rc": 1, "stdout": "", "stderr": "unable to decode configuration %s20.swp: toml" % D}},
        56,
        "20.swp",
    ),
]


@pytest.mark.parametrize(("files", "node", "number", "words"), REFUSALS)
def test_a_start_that_is_refused(files: t.Dict[str, str], node: Table, number: int, words: str) -> None:
    binaries = {**THERE, "/opt/none": False}
    facts = judged({"10": BASE, **files}, AS_BASE, **{"binaries": binaries, **node})
    refused = fault(facts, number)
    assert words in refused["message"] and refused["severity"] == "error"
    assert facts["restart_pending"] is True and facts["restart_loses"] == ["crun", "runc"] and not facts["healthy"]


@pytest.mark.parametrize("dump", [{"rc": 1, "stdout": "", "stderr": ""}, {"rc": 1, "stdout": "", "stderr": "permission denied"}, {"rc": 0}])
def test_a_dump_that_says_nothing(dump: Table) -> None:
    assert judged({"10": BASE}, AS_BASE, dump=dump)["healthy"] is True


def test_a_file_whose_text_is_not_there() -> None:
    facts = judged({"10": BASE, "20": KATA}, AS_BASE, unreadable={D + "30": "permission denied"})
    assert facts["restart_pending"] is None and "could not be read completely" in fault(facts, 55)["message"]
    refused = judged({"10": '[crio.runtime]\ndefault_runtime = "x"\n'}, AS_BASE, dump={"rc": 0, "stdout": handler(_OCI), "stderr": ""})
    assert refused["layers"]["next"]["source"] == "crio config" and refused["layers"]["next"]["serves_cri"] is False


def test_a_text_that_only_the_binary_can_read() -> None:
    dump = {"rc": 0, "stdout": BASE + handler(_OCI) + handler('runtime_path = "/opt/none"', "gone"), "stderr": ""}
    tree = {"10": BASE, "20": "crio.runtime.runtimes.x = {\n  runtime_path = '/usr/bin/runc',\n}\n"}
    facts = judged(tree, AS_BASE, dump=dump, binaries={**THERE, "/opt/none": False})
    assert facts["layers"]["next"]["source"] == "crio config" and facts["restart_gains"] == ["x"] and 47 not in ids(facts)
    assert fault(judged(tree, AS_BASE, dump={**dump, "rc": 1, "stderr": "toml: line 1"}), 47)["severity"] == "error"


def test_links_to_files_are_read_and_directories_behind_links_are_not() -> None:
    links = {D + "20": "/opt/x.conf", D + "30": "/opt/dir"}
    texts = {"10": BASE, "/opt/x.conf": handler(_OCI)}
    facts = judged(texts, status("runc", runc={"RuntimeRoot": "/run/runc"}, crun={}, x={}), links={D + "20": "/opt/x.conf"})
    assert facts["restart_pending"] is False and D + "20" in facts["imports"][0]["loaded"]
    behind = {"10": BASE, D + "30/y.conf": handler(_OCI, "y")}
    assert "y" not in interpret(capture(behind, AS_BASE, links={**links, D + "20": "/nowhere"}, directories=["/opt/dir"]))["layers"]["next"]["handlers"]


# --- merging, names, what is not read --------------------------------------------------------------------------------


def test_a_later_table_replaces_the_whole_entry() -> None:
    later = '[crio.runtime.runtimes.runc]\nallowed_annotations = ["devices.crio.io"]\n'
    facts = judged({"10": BASE, "20": later})
    replaced = fault(facts, 42)
    assert (replaced["severity"], replaced["file"], replaced["line"]) == ("warning", D + "20", 1)
    assert "runtime_path, runtime_root of it are lost" in replaced["message"]
    assert [(edit["key"], edit["value"]) for edit in replaced["fix_edits"]] == [("runtime_path", "/usr/bin/runc"), ("runtime_root", "/run/runc")]
    full = judged({"10": BASE, "20": BASE.partition("\n[")[0] + "\n[" + BASE.partition("\n[")[2].replace("/run/runc", "/run/r2")})
    assert ids(full) == [28] and fault(full, 28)["severity"] == "info"
    assert judged({"10": BASE, "20": BASE})["faults"] == []


def test_the_last_default_holds() -> None:
    facts = judged({"/etc/crio/crio.conf": '[crio.runtime]\ndefault_runtime = "crun"\n', "10": BASE}, AS_BASE)
    assert facts["default_handler"] == "runc" and "comes later and says 'runc'" in fault(facts, 28)["message"] and facts["healthy"]


@pytest.mark.parametrize("name", ["10-crio.conf.bak", ".20.conf.swp", "old/20.conf", "20.conf~", "20.conf.rpmsave", "#20#", "20.conf.2026-01-01"])
def test_a_stray_file_is_loaded(name: str) -> None:
    facts = judged({"10": BASE, name: KATA}, _TOLD)
    assert (fault(facts, 43)["handlers"], fault(facts, 43)["severity"], fault(facts, 43)["file"]) == (["kata"], "warning", D + name)


@pytest.mark.parametrize("name", ["00-default", "01-ctrcfg-defaultRuntime", "99-runtimes.conf", "sub/20.conf"])
def test_these_are_no_strays(name: str) -> None:
    assert judged({"10": BASE, name: KATA}, _TOLD)["faults"] == []


def test_strays_with_and_without_effect() -> None:
    default = judged({"10": BASE, "20.bak": '[crio.runtime]\ndefault_runtime = "crun"\n'})
    assert fault(default, 43)["handlers"] == ["crun"] and "default_runtime = 'crun' of it holds" in fault(default, 43)["message"]
    copy = judged({"10": BASE, "10.bak": BASE}, AS_BASE)
    assert (fault(copy, 43)["severity"], copy["healthy"]) == ("info", True)
    beside = judged({"10": BASE, "/etc/crio/crio.conf.bak": KATA}, AS_BASE)
    assert (ids(beside), fault(beside, 18)["severity"], beside["lost"], beside["healthy"]) == ([18], "info", [], True)


def test_files_and_tables_that_are_not_read() -> None:
    facts = judged({"10": BASE, "/etc/crio/conf.d/20.conf": KATA, "/etc/containerd/config.toml": handler(_OCI, "c")}, AS_BASE)
    assert (ids(facts), facts["lost"]) == ([18], ["kata"]) and "every file below /etc/crio/crio.conf.d" in fault(facts, 18)["message"]
    typo = judged({"10": BASE, "20": KATA.replace("runtimes", "runtime")}, AS_BASE)
    assert fault(typo, 44)["fix_edits"][0]["value"] == "crio.runtime.runtimes.kata" and typo["lost"] == ["kata"]
    also = judged({"10": BASE, "20": KATA.replace("runtime.runtimes", "runtimes").replace("kata", "runc")}, AS_BASE)
    assert fault(also, 44)["severity"] == "warning" and "not with these values" in fault(also, 44)["message"]
    dotted = judged({"10": BASE, "20": handler(_OCI, "kata.qemu")}, AS_BASE, binaries={**THERE, "kata": False})
    assert fault(dotted, 44)["fix_edits"][0]["value"] == "crio.runtime.runtimes.kata-qemu" and dotted["lost"] == ["kata", "qemu"]
    odd = judged({"10": BASE, "20": "[crio.runtime.runtimess.e]\n[crio.runtimes.kata]\n"}, AS_BASE)
    assert odd["lost"] == ["e", "kata"] and set(ids(odd)) == {44}


@pytest.mark.parametrize(
    ("text", "version", "severity", "words"),
    [
        ("[crio.runtime]\ndefault_runtim = 'x'\n", "1.36.3", "warning", 'did you mean "default_runtime"?'),
        ("[crio]\ndefault_runtime = 'x'\n", "1.36.3", "warning", "it belongs into [crio.runtime]"),
        ("default_runtime = 'x'\n", "1.36.3", "warning", "at the top of its files"),
        ("[cri0]\nx = 1\n", "1.36.3", "warning", 'did you mean "crio"?'),
        ("[metrics]\nx = 1\n", "1.36.3", "info", "knows no table metrics"),
        ("[crio.runtime]\nmanage_ns_lifecycle = true\n", "1.36.3", "info", "up to 1.20 only"),
        (BASE + "no_sync_log = true\n", "1.30.1", "warning", "from 1.31 on only"),
        (BASE + "zzz = 1\n", "1.36.3", "warning", "knows no key zzz"),
        ("[crio.runtime]\nzzz = 1\n", "1.36.3", "info", "knows no key zzz"),
    ],
)
def test_keys_that_are_not_known(text: str, version: str, severity: str, words: str) -> None:
    facts = judged({"10": BASE, "20": text}, AS_BASE, version=version)
    assert fault(facts, 44)["severity"] == severity and words in fault(facts, 44)["message"]


def test_a_name_that_no_class_can_have() -> None:
    facts = judged({"10": BASE, "20": handler(_OCI, "Kata_X")}, status("runc", runc={"RuntimeRoot": "/run/runc"}, crun={}, Kata_X={}))
    assert fault(facts, 37)["fix_edits"][0]["value"] == "crio.runtime.runtimes.kata-x" and "restart CRI-O" in fault(facts, 37)["fix"]


def test_the_command_line_wins() -> None:
    given = {"cmdline": "/usr/bin/crio --default-runtime a --runtimes a:/usr/bin/crun:/run/a --runtimes 'b:/usr/bin/runc:/run/b:oci:true'"}
    info = status("a", runc={"RuntimeRoot": "/run/runc"}, crun={}, a={"RuntimePath": "/usr/bin/crun", "RuntimeRoot": "/run/a"}, b={"RuntimeRoot": "/run/b"})
    facts = judged({"10": BASE + handler(_OCI, "a")}, info, **given)
    assert facts["restart_pending"] is False and facts["default_handler"] == "a"
    assert [item["handlers"] for item in facts["faults"] if item["id"] == 62] == [["runc"], ["a"]]
    by_environment = judged({"10": BASE}, environment={"CONTAINER_DEFAULT_RUNTIME": "crun", "CONTAINER_RUNTIMES": "c:/usr/bin/runc:/r, d:/usr/bin/runc:/r"})
    assert by_environment["default_handler"] == "crun" and sorted(by_environment["handlers"]) == ["c", "crun", "d", "runc"]
    unit = judged({"10": BASE}, AS_BASE, next_cmdline="crio --default-runtime crun", next_environment={})
    assert unit["restart_pending"] is True and "its unit" in fault(unit, 1)["message"]
    elsewhere = judged({"/etc/c.d/10": KATA}, cmdline="crio --config= -d /etc/c.d --config-dir")
    assert sorted(elsewhere["handlers"]) == ["crun", "kata"]


def test_before_an_upgrade() -> None:
    annotated = handler(_OCI + 'allowed_annotations = ["nonsense"]')
    facts = judged({"10": BASE, "20": annotated}, status("runc", runc={"RuntimeRoot": "/run/runc"}, x={}), version="1.20.9")
    assert "CRI-O 1.21 would not load handler x" in fault(facts, 58)["message"] and facts["healthy"]
    refused = judged({"10": BASE, "20": handler(_OCI + 'monitor_path = "/opt/none"')}, version="1.23.1", binaries={**THERE, "/opt/none": False})
    assert fault(refused, 52)["severity"] == "warning" and "CRI-O 1.24 will not start with them" in fault(refused, 52)["message"]
    later = judged({"10": '[crio.runtime]\ndefault_runtime = "runc"\n'}, version="1.29.1")
    assert fault(later, 52)["severity"] == "info"


# --- dumps and captures ----------------------------------------------------------------------------------------------


def test_an_explicit_dump() -> None:
    recorded = CASES / "060-crio-packaged-default/captures"
    facts = interpret_dump((recorded / "1.36/config-dump.toml").read_text(encoding="utf-8"))
    assert (facts["explicit"], facts["cri_ready"], facts["default_handler"], sorted(facts["handlers"])) == (True, None, "crun", ["crun", "runc"])
    assert sorted(interpret_dump((recorded / "1.36/status-config.toml").read_text(encoding="utf-8"))["handlers"]) == ["crun", "runc"]
    assert interpret_dump("[crio.runtime]\n")["default_handler"] is None


@pytest.mark.parametrize(
    ("text", "words"), [("", "is empty"), ("x" * (10 * 1024 * 1024 + 1), "larger than"), ("a = [", "not valid TOML"), ("a = 1\n", "no [crio] table")]
)
def test_a_dump_that_is_none(text: str, words: str) -> None:
    with pytest.raises(RuntimeGateError, match=words.replace("[", r"\[")):
        interpret_dump(text)


def test_another_engine() -> None:
    with pytest.raises(RuntimeGateError, match="crio_runtime_facts judges CRI-O captures only"):
        interpret({"node": {"engine": "containerd"}})
