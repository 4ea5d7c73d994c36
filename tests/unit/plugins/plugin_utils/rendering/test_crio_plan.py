# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CRI-O's plan, without a node: presets and spellings as its tables, which file is ours, what is refused, OpenShift.

The real daemons judge the same in tests/integration/test_crio_writer.py; here are the branches that need another node each.
"""

from __future__ import annotations

import typing as t

import pytest
import yaml

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.crio.interpret import interpret
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.crio_plan import make_plan
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.desired import for_containerd, parse

Table = t.Dict[str, t.Any]
D = "/etc/crio/crio.conf.d/"
OURS = D + "zz-runtime-gate.conf"
KATA = "/opt/kata/bin/containerd-shim-kata-v2"
CONFIGURATION = "/opt/kata/share/defaults/kata-containers/configuration-qemu.toml"
PROGRAMS = (
    "/usr/bin/crun /usr/bin/runc /usr/bin/conmon /usr/bin/nvidia-container-runtime /usr/bin/nvidia-container-runtime.cdi /usr/local/bin/runsc " + KATA
).split()


def node(files: t.Optional[Table] = None, version: str = "1.36.3", **more: t.Any) -> Table:
    """A capture of a node where nothing runs."""
    found: Table = dict.fromkeys(PROGRAMS, True)
    found.update({"conmon": True, "crun": True, "runc": True})
    about = {"engine": "crio", "next_version": version, "binaries": found, "not_executable": [CONFIGURATION], "cri_state": "not_running"}
    return {"node": dict(about, **more), "files": files or {}}


def plan(capture: Table, **options: t.Any) -> Table:
    return make_plan(capture, interpret(capture), options)


def text(made: Table) -> str:
    (write,) = made["writes"]
    return str(write["text"])


@pytest.mark.parametrize(
    ("handler", "lines"),
    [
        ({"preset": "nvidia"}, ['runtime_path = "/usr/bin/nvidia-container-runtime"', 'runtime_type = "oci"']),
        ({"preset": "nvidia-cdi"}, ['runtime_path = "/usr/bin/nvidia-container-runtime.cdi"']),
        ({"preset": "crun"}, ['runtime_path = "/usr/bin/crun"', 'runtime_root = "/run/crun"']),
        ({"preset": "gvisor"}, ['runtime_path = "/usr/local/bin/runsc"', 'runtime_type = "oci"', 'runtime_root = "/run/runsc"']),
        ({"preset": "kata"}, ['runtime_path = "%s"' % KATA, 'runtime_type = "vm"', 'runtime_root = "/run/vc"']),
        ({"preset": "kata-qemu"}, ['runtime_config_path = "%s"' % CONFIGURATION, "privileged_without_host_devices = true"]),
        ({"runtime_type": "pod", "runtime_path": "/usr/bin/runc"}, ['runtime_type = "pod"']),
        ({"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/bin/runc", "Root": "/r"}}, ['runtime_root = "/r"']),
        ({"runtime_type": KATA}, ['runtime_path = "%s"' % KATA, 'runtime_type = "vm"']),
    ],
)
def test_what_a_declaration_is_on_crio(handler: Table, lines: t.List[str]) -> None:
    written = text(plan(node(), handlers={"x": handler}))
    assert written.startswith("# Written by kubenode.runtime_gate") and "[crio.runtime.runtimes.x]" in written
    assert [line for line in lines if line not in written] == [], written


def test_the_monitor_is_that_of_the_default_handler() -> None:
    packaged = '[crio.runtime.runtimes.crun]\nruntime_path = "/usr/bin/crun"\nmonitor_path = "/usr/bin/conmon"\nmonitor_cgroup = "pod"\n'
    written = text(plan(node({D + "10-crio.conf": packaged}), handlers={"x": {"runtime_type": "oci", "runtime_path": "/usr/bin/runc"}}))
    assert 'monitor_path = "/usr/bin/conmon"' in written and 'monitor_cgroup = "pod"' in written
    assert "monitor" not in text(plan(node({D + "10-crio.conf": packaged}), handlers={"x": {"preset": "kata"}}))


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        ({"preset": "spin"}, "CRI-O cannot run the shim of io.containerd.spin.v2"),
        ({"runtime_type": "/opt/shim"}, "CRI-O cannot run the shim of /opt/shim"),
        ({"runtime_type": "oci", "runtime_path": "/opt/none"}, "install it, or set runtime_gate_allow_absent_binary: true"),
        ({"runtime_type": "oci", "runtime_path": CONFIGURATION}, "cannot be executed"),
        ({"runtime_type": "vm"}, "vm needs a runtime_path"),
        ({"runtime_type": "oci", "runtime_path": "/usr/bin/runc", "exec_cpu_affinity": "last"}, "invalid exec_cpu_affinity"),
    ],
)
def test_what_is_refused(handler: Table, words: str) -> None:
    capture = node()
    capture["node"]["absent"] = ["/opt/none"]
    with pytest.raises(RuntimeGateError, match=words):
        plan(capture, handlers={"x": handler})


def test_a_key_that_the_line_does_not_have() -> None:
    handler = {"runtime_type": "oci", "runtime_path": "/usr/bin/runc", "seccomp_profile": "/x.json"}
    with pytest.raises(RuntimeGateError, match="handlers.x.seccomp_profile: CRI-O 1.30 has no such option"):
        plan(node(version="1.30.2"), handlers={"x": handler})


@pytest.mark.parametrize(
    ("capture", "words"),
    [
        (node(version=""), "no CRI-O was found on this node"),
        (node(version="1.12.0"), "is not a release that this collection knows"),
        (node({D + "10.conf": "[half\n"}), "does not start with"),
    ],
)
def test_nodes_on_which_nothing_is_written(capture: Table, words: str) -> None:
    with pytest.raises(RuntimeGateError, match=words):
        plan(capture, handlers={"x": {"preset": "crun"}})


def test_a_release_that_will_be_installed() -> None:
    capture = node(version="")
    del capture["node"]["next_version"]
    assert plan(capture, handlers={"x": {"preset": "kata"}}, target_version="1.34.0")["restart_needed"] is False


def test_our_file_is_the_one_that_is_read_last() -> None:
    later = {D + "zzz.conf": '[crio.runtime.runtimes.x]\nruntime_path = "/usr/bin/runc"\n'}
    (write,) = plan(node(later), handlers={"x": {"preset": "kata"}})["writes"]
    assert write["path"] == D + "zzzz-runtime-gate.conf"
    too_late = {D + "zzzzz.conf": '[crio.runtime.runtimes.x]\nruntime_path = "/usr/bin/runc"\n'}
    with pytest.raises(RuntimeGateError, match="zzzzz.conf, line 1, sets it otherwise and is loaded later"):
        plan(node(too_late), handlers={"x": {"preset": "kata"}})
    with pytest.raises(RuntimeGateError, match="is not ours; move it away"):
        plan(node({OURS: "# theirs\n", D + "zzzz-runtime-gate.conf": "# theirs\n"}), handlers={"x": {"preset": "kata"}})


def test_what_is_there_already_is_not_written() -> None:
    files = {D + "10.conf": '[crio.runtime.runtimes.x]\nruntime_path = "%s"\nruntime_type = "vm"\nruntime_root = "/run/vc"\n' % KATA}
    made = plan(node({D + "10.conf": files[D + "10.conf"] + "privileged_without_host_devices = true\n"}), handlers={"x": {"preset": "kata"}})
    assert made["writes"] == [] and "it is used as it stands" in made["conflicts"][0]


def test_a_table_in_our_file_that_no_run_wrote_is_not_adopted() -> None:
    first = node()
    made = plan(first, handlers={"x": {"preset": "kata"}})
    assert made["written"] == ["x"]
    text = made["writes"][0]["text"] + '[crio.runtime.runtimes.hand]\nruntime_path = "%s"\nruntime_type = "vm"\n' % KATA
    capture = node({OURS: text})
    capture["node"]["written_handlers"] = ["x"]
    for options in ({"handlers": {"x": {"preset": "kata"}}}, {"remove": True}):
        with pytest.raises(RuntimeGateError, match=r"in our file: hand \(%s, line \d+\)" % OURS):
            plan(capture, **options)
    assert plan(capture, handlers={"hand": {"state": "absent"}})["written"] == ["x"]


def test_a_default_that_a_later_file_or_the_command_line_sets() -> None:
    later = {D + "zzzzz.conf": '[crio.runtime]\ndefault_runtime = "crun"\n'}
    with pytest.raises(RuntimeGateError, match="zzzzz.conf, line 2, names another one and is loaded later"):
        plan(node(later), handlers={"x": {"preset": "nvidia"}}, default_handler="x")
    given = node(next_cmdline="/usr/bin/crio --default-runtime crun")
    with pytest.raises(RuntimeGateError, match="the command line of CRI-O names another one"):
        plan(given, handlers={"x": {"preset": "nvidia"}}, default_handler="x")


def test_openshift_prints_and_writes_nothing() -> None:
    made = plan(node(machine_config=True), handlers={"x": {"preset": "kata"}})
    assert made["writes"] == [] and made["restart_needed"] is False and any("Machine Config Operator" in note for note in made["notes"])
    (file,) = yaml.safe_load(made["machine_config"])["spec"]["config"]["storage"]["files"]
    assert file["path"] == OURS and file["mode"] == 0o644


@pytest.mark.parametrize(
    ("handler", "table"),
    [
        (
            {"runtime_type": "oci", "runtime_path": "/b", "runtime_root": "/r", "monitor_env": ["A=b"]},
            {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/b", "Root": "/r"}},
        ),
        (
            {"runtime_type": "vm", "runtime_path": KATA, "runtime_config_path": "/c"},
            {"runtime_type": "io.containerd.kata.v2", "runtime_path": KATA, "options": {"ConfigPath": "/c"}},
        ),
        ({"runtime_type": "vm", "runtime_path": "/opt/shim"}, {"runtime_type": "/opt/shim"}),
        ({"runtime_type": "oci"}, {"runtime_type": "io.containerd.runc.v2"}),
    ],
)
def test_words_of_crio_on_containerd(handler: Table, table: Table) -> None:
    (declared,) = parse({"handlers": {"x": handler}}).present
    assert for_containerd("x", declared.table) == table


def test_pods_have_no_counterpart_on_containerd() -> None:
    with pytest.raises(RuntimeGateError, match="pod is a type of CRI-O alone"):
        for_containerd("x", {"runtime_type": "pod", "runtime_path": "/b"})
