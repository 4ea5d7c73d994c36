# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.release_lines import rules_for
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering import desired

NOWHERE = desired.Circumstances(None, {}, False)
RUNC = {"runtime_type": "io.containerd.runc.v2"}


def rendered(entry: t.Dict[str, t.Any], release: str, circumstances: desired.Circumstances = NOWHERE) -> t.Dict[str, t.Any]:
    rules = rules_for(release)
    assert rules is not None
    return desired.rendered(desired.parse({"handlers": {"x": entry}}).present[0], rules, circumstances)


@pytest.mark.parametrize(
    ("handlers", "message"),
    [
        ({"Kata_QEMU": {"preset": "kata"}}, "handlers: 'Kata_QEMU' cannot be a handler: RuntimeClass.handler must be a DNS label"),
        ({"a.b": RUNC}, "DNS label"),
        ({"x" * 64: RUNC}, "DNS label"),
        ({"x\n": RUNC}, "DNS label"),
        ({"x": {}}, "handlers.x needs a preset or a runtime_type"),
        ({"x": None}, "handlers.x needs a preset or a runtime_type"),
        ({"x": "nvidia"}, "handlers.x must be a dictionary, such as {preset: nvidia}"),
        ({"x": {"preset": "nvidai"}}, "there is no preset 'nvidai' (did you mean nvidia?); there are crun, gvisor,"),
        ({"x": {"preset": "nvidia", "snapshoter": "a"}}, "handlers.x: there is no option 'snapshoter' (did you mean snapshotter?)"),
        ({"x": {"runtime_type": 3}}, "handlers.x.runtime_type must be a string, not 3"),
        ({"x": dict(RUNC, pod_annotations="a")}, "handlers.x.pod_annotations must be a list of strings"),
        ({"x": dict(RUNC, pod_annotations=[1])}, "handlers.x.pod_annotations must be a list of strings"),
        ({"x": dict(RUNC, privileged_without_host_devices="yes")}, "must be true or false"),
        ({"x": dict(RUNC, state="gone")}, "handlers.x.state must be present or absent, not 'gone'"),
        ({"x": {"runtime_type": "kata"}}, "'kata' is neither io.containerd.NAME.vN nor an absolute path"),
        ({"x": {"runtime_type": "bin/kata.v2"}}, "is neither"),
        ({"x": dict(RUNC, base_runtime_spec="spec.json")}, "handlers.x.base_runtime_spec must be an absolute path"),
        ({"x": {"preset": "kata", "runtime_path": "shim"}}, "handlers.x.runtime_path must be an absolute path"),
        ({"x": dict(RUNC, options={"SystemdCgroup": "true"})}, "handlers.x.options.SystemdCgroup must be true or false, not 'true'"),
        ({"x": dict(RUNC, options={"IoUid": True})}, "handlers.x.options.IoUid must be a number, not True"),
        ({"x": {"preset": "kata", "options": {"ConfigPath": 1}}}, "handlers.x.options.ConfigPath must be a string, not 1"),
        ({"x": dict(RUNC, options={"SystemdCgoup": True})}, "containerd has no option 'SystemdCgoup' (did you mean SystemdCgroup?)"),
        ({"x": dict(RUNC, options={"binaryName": "/x"})}, "handlers.x.options.binaryName must be spelled BinaryName"),
        ({"x": {"preset": "spin", "options": {"BinaryName": "/x"}}}, "BinaryName is not read with runtime_type io.containerd.spin.v2"),
        (["nvidia"], "handlers must be a dictionary"),
        ({"x": dict(RUNC, runtime_class="gpu")}, "handlers.x.runtime_class must be a dictionary or false, not 'gpu'"),
    ],
)
def test_a_wrong_declaration_is_one_clear_sentence(handlers: t.Any, message: str) -> None:
    with pytest.raises(RuntimeGateError) as caught:
        desired.parse({"handlers": handlers})
    assert message in str(caught.value)


@pytest.mark.parametrize("settings", [False, True, {}, {"name": "gpu", "overhead": {"cpu": "1"}}])
def test_what_the_class_is_like_does_not_reach_the_node(settings: t.Any) -> None:
    assert rendered(dict(RUNC, runtime_class=settings), "2.1.4") == rendered(RUNC, "2.1.4")


def test_the_default_must_not_be_declared_absent() -> None:
    with pytest.raises(RuntimeGateError, match="default_handler: x is declared with state: absent"):
        desired.parse({"handlers": {"x": {"state": "absent"}}, "default_handler": "x"})


def test_an_absent_handler_needs_no_type() -> None:
    assert desired.parse({"handlers": {"x": {"state": "absent"}}}).absent == ("x",)


@pytest.mark.parametrize("preset", sorted(desired.PRESETS))
@pytest.mark.parametrize("release", ["1.4.13", "1.6.20", "1.7.24", "2.0.5", "2.4.0"])
def test_every_preset_fits_every_release(preset: str, release: str) -> None:
    rules = rules_for(release)
    assert rules is not None
    table = rendered({"preset": preset}, release)
    assert set(table) <= rules.handler_keys
    assert table["runtime_type"].startswith("/") <= rules.absolute_runtime_type
    assert "runtime_path" not in table or rules.honours_runtime_path


@pytest.mark.parametrize(
    ("release", "runtime_type", "runtime_path"),
    [
        ("1.5.18", "io.containerd.kata.v2", None),
        ("1.6.20", "/opt/kata/bin/containerd-shim-kata-v2", None),
        ("1.7.24", "io.containerd.kata-clh.v2", "/opt/kata/bin/containerd-shim-kata-v2"),
        ("2.1.4", "io.containerd.kata-clh.v2", "/opt/kata/bin/containerd-shim-kata-v2"),
    ],
)
def test_a_hypervisor_of_kata_finds_its_shim(release: str, runtime_type: str, runtime_path: t.Optional[str]) -> None:
    table = rendered({"preset": "kata-clh"}, release)
    assert (table["runtime_type"], table.get("runtime_path")) == (runtime_type, runtime_path)
    assert table["options"]["ConfigPath"].endswith("configuration-clh.toml")


def test_a_preset_can_be_changed_in_part() -> None:
    table = rendered({"preset": "nvidia", "options": {"BinaryName": "/opt/x", "Root": "/run/x"}, "snapshotter": "native"}, "2.1.4")
    assert table["options"] == {"BinaryName": "/opt/x", "Root": "/run/x"}
    assert table["snapshotter"] == "native"
    assert desired.PRESETS["nvidia"]["options"] == {"BinaryName": "/usr/bin/nvidia-container-runtime"}


@pytest.mark.parametrize(
    ("entry", "release", "message"),
    [
        (dict(RUNC, snapshotter="native"), "1.6.20", "handlers.x.snapshotter: containerd 1.6 has no such option (1.7 and later have it)"),
        (dict(RUNC, cgroup_writable=True), "2.0.5", "handlers.x.cgroup_writable: containerd 2.0 has no such option (2.1 and later"),
        (dict(RUNC, sandboxer="shim"), "1.6.20", "containerd 1.6 has no such option"),
        ({"preset": "kata", "runtime_path": "/x/shim"}, "1.6.20", "handlers.x.runtime_path: containerd 1.6 does not use it"),
        ({"runtime_type": "/x/shim"}, "1.5.18", "handlers.x.runtime_type: containerd 1.5 does not take a path (1.6 and later do)"),
        ({"runtime_type": "io.containerd.runtime.v1.linux"}, "2.0.5", "was removed in containerd 2.0"),
    ],
)
def test_what_a_release_lacks_is_refused(entry: t.Dict[str, t.Any], release: str, message: str) -> None:
    with pytest.raises(RuntimeGateError) as caught:
        rendered(entry, release)
    assert message in str(caught.value)


def test_sandboxer_has_another_name_in_1_7() -> None:
    assert rendered(dict(RUNC, sandboxer="shim"), "1.7.24")["sandbox_mode"] == "shim"
    assert rendered(dict(RUNC, sandboxer="shim"), "2.0.5")["sandboxer"] == "shim"


@pytest.mark.parametrize(("found", "expected"), [(True, True), (False, False), (None, None)])
def test_the_cgroup_driver_goes_to_runc_types_only(found: t.Optional[bool], expected: t.Optional[bool]) -> None:
    circumstances = desired.Circumstances(found, {}, False)
    assert (rendered({"preset": "crun"}, "2.1.4", circumstances)["options"].get("SystemdCgroup")) == expected
    assert "options" not in rendered({"preset": "gvisor"}, "2.1.4", circumstances)
    written = dict(RUNC, options={"SystemdCgroup": False})
    assert rendered(written, "2.1.4", desired.Circumstances(True, {}, False))["options"] == {"SystemdCgroup": False}


def test_an_absent_binary_is_refused_with_the_reason() -> None:
    binaries = {"containerd-shim-runc-v2": True, "/usr/bin/nvidia-container-runtime": False}
    there = desired.Circumstances(None, binaries, True)
    with pytest.raises(RuntimeGateError, match="binary /usr/bin/nvidia-container-runtime is not there"):
        rendered({"preset": "nvidia"}, "2.1.4", there)
    rendered({"preset": "nvidia", "allow_absent_binary": True}, "2.1.4", there)
    rendered({"preset": "nvidia"}, "2.1.4", there._replace(installed=False))
    with pytest.raises(RuntimeGateError, match="shim containerd-shim-runsc-v1 is not there"):
        rendered({"preset": "gvisor"}, "2.1.4", there._replace(binaries={"containerd-shim-runsc-v1": False}))


def test_executables_are_all_that_a_release_could_need() -> None:
    names = desired.executables({"handlers": {"a": {"preset": "kata-qemu"}, "b": {"preset": "nvidia"}, "c": {"state": "absent"}}})
    assert names == [
        "/opt/kata/bin/containerd-shim-kata-v2",
        "/usr/bin/nvidia-container-runtime",
        "containerd-shim-kata-qemu-v2",
        "containerd-shim-runc-v2",
    ]
