# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a plan says and refuses, one circumstance at a time."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.interpret import interpret
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.situation import Situation
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.module_utils.node.secrets import Masker
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.rendering.plan import make_plan
from tests.unit import rendering_nodes as nodes

RUNC = {"runtimeType": "io.containerd.runc.v2", "options": {"SystemdCgroup": True, "BinaryName": ""}, "sandboxer": "podsandbox"}
FOO = {"runtimeType": "io.containerd.runc.v2", "options": {}}
NVIDIA = {"nvidia": {"preset": "nvidia"}}
NVIDIA_LOADED = {
    "runtimeType": "io.containerd.runc.v2",
    "options": {"BinaryName": "/usr/bin/nvidia-container-runtime", "SystemdCgroup": True},
}
V3 = {nodes.CONFIG: nodes.VERSION_3}
V2 = {nodes.CONFIG: nodes.VERSION_2}
DROP_IN = "/etc/containerd/conf.d/zz-runtime-gate.toml"
FOREIGN = "/etc/containerd/conf.d/50-other.toml"


def plan_of(
    files: t.Mapping[str, str],
    release: t.Optional[str] = "2.1.4",
    info: t.Optional[t.Dict[str, t.Any]] = None,
    node: t.Optional[t.Dict[str, t.Any]] = None,
    **options: t.Any,
) -> t.Dict[str, t.Any]:
    capture = nodes.capture(files, release, **(node or {}))
    if info is not None:
        capture["info"] = info
        capture["node"]["cri_state"] = "served"
    return make_plan(capture, interpret(capture), dict({"allow_absent_binary": True}, **options))


def section_of(files: t.Mapping[str, str], release: str = "2.1.4") -> t.Any:
    return Situation(nodes.capture(files, release)).section


def refusal(*args: t.Any, **options: t.Any) -> str:
    with pytest.raises(RuntimeGateError) as caught:
        plan_of(*args, **options)
    return str(caught.value)


# ---- what a plan tells


def test_the_change_is_told_key_by_key() -> None:
    plan = plan_of(V3, info=nodes.status({"runc": RUNC}), handlers=NVIDIA, default_handler="nvidia", accept_blast_radius=True)
    assert plan["changes"]["loaded"] == [
        "handler nvidia: added (runtime_type io.containerd.runc.v2, options.BinaryName /usr/bin/nvidia-container-runtime, "
        "options.SystemdCgroup true)",
        "default handler: runc -> nvidia",
    ]
    loaded, text = plan["changes"]["diff"]
    assert loaded["before"] == "default handler: runc\nhandler runc\n  options.SystemdCgroup: true\n  runtime_type: io.containerd.runc.v2\n"
    assert "default handler: nvidia\n" in loaded["after"]
    assert (text["before_header"], text["before"]) == (DROP_IN, "")
    assert text["after"] == plan["writes"][0]["text"]
    assert plan["restart_needed"]
    assert plan["keep"] == ["runc"]
    assert (plan["expect"]["handlers"], plan["expect"]["default"]) == (["nvidia"], "nvidia")
    assert plan["expect"]["tables"]["nvidia"]["options"] == NVIDIA_LOADED["options"]


def test_nothing_to_do_is_an_empty_plan() -> None:
    files = nodes.after(V3, plan_of(V3, handlers=NVIDIA))
    plan = plan_of(files, info=nodes.status({"runc": RUNC, "nvidia": NVIDIA_LOADED}), handlers=NVIDIA)
    assert (plan["writes"], plan["commit"], plan["restart_needed"], plan["changes"]["loaded"]) == ([], None, False, [])


def test_a_lost_restart_is_made_up_for() -> None:
    files = nodes.after(V3, plan_of(V3, handlers=NVIDIA))
    plan = plan_of(files, info=nodes.status({"runc": RUNC}), handlers=NVIDIA)
    assert plan["writes"] == []
    assert plan["restart_needed"]


def test_a_restart_that_others_are_waiting_for_is_not_ours() -> None:
    text = nodes.VERSION_3 + nodes.handler(nodes.NEW, "fresh")
    files = nodes.after({nodes.CONFIG: text}, plan_of({nodes.CONFIG: text}, handlers=NVIDIA))
    plan = plan_of(files, info=nodes.status({"runc": RUNC, "nvidia": NVIDIA_LOADED}), handlers=NVIDIA)
    assert (plan["writes"], plan["restart_needed"]) == ([], False)


def test_a_handler_that_is_there_already_is_not_written() -> None:
    plan = plan_of({nodes.CONFIG: nodes.VERSION_2}, handlers={"foo": {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": False}}})
    assert plan["writes"] == []


def test_a_node_without_containerd_is_planned_for_its_target() -> None:
    assert "set runtime_gate_target_version" in refusal({}, None, handlers=NVIDIA)
    plan = plan_of({}, None, handlers=NVIDIA, target_version="2.2.0", allow_absent_binary=False)
    assert [write["path"] for write in plan["writes"]] == [DROP_IN, nodes.CONFIG]
    assert plan["changes"]["loaded"][0].startswith("handler nvidia: added")
    assert not plan["restart_needed"]
    assert plan_of({}, None, handlers=NVIDIA, target_version="1.7.28")["writes"][0]["text"].count("version = 2") == 1
    assert "target_version is 1.7.28, but containerd 2.1.4 is installed" in refusal(V3, handlers=NVIDIA, target_version="1.7.28")


def test_the_release_on_disk_counts_not_the_running_one() -> None:
    plan = plan_of({nodes.CONFIG: nodes.VERSION_2}, "1.7.28", node={"next_version": "2.1.4"}, handlers=NVIDIA)
    assert plan["writes"][0]["path"] == DROP_IN
    assert plan["version"] == "2.1.4"


def test_sha256_and_mode_guard_every_file() -> None:
    plan = plan_of(V2, handlers=NVIDIA)
    new, root = plan["writes"]
    assert (new["sha256"], new["mode"]) == (None, "0644")
    assert (root["sha256"], root["mode"]) == (nodes.capture(V2, "2.1.4")["node"]["sha256"][nodes.CONFIG], None)
    assert "its checksum was not collected" in refusal(V2, node={"sha256": {}}, handlers=NVIDIA)


# ---- cgroup driver, CDI, snapshotter


@pytest.mark.parametrize(
    ("kubelet", "root", "expected"),
    [
        ({"cgroup_driver": "systemd"}, nodes.EMPTY, True),
        ({"cgroup_driver": "cgroupfs"}, nodes.VERSION_3, False),
        ({"cgroup_driver": "cgroupfs", "cmdline": "kubelet --feature-gates=KubeletCgroupDriverFromCRI=true"}, nodes.VERSION_3, True),
        ({}, nodes.VERSION_3, True),
        ({}, nodes.EMPTY, None),
    ],
)
def test_the_cgroup_driver(kubelet: t.Dict[str, t.Any], root: str, expected: t.Optional[bool]) -> None:
    files = {nodes.CONFIG: root}
    done = nodes.after(files, plan_of(files, node={"kubelet": kubelet}, handlers=NVIDIA))
    assert section_of(done).handlers["nvidia"]["options"].get("SystemdCgroup") == expected


def test_what_was_loaded_because_of_us_does_not_decide_the_driver() -> None:
    files = {nodes.CONFIG: nodes.EMPTY}
    mine = {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": True}}
    options = {"handlers": dict(NVIDIA, mine=mine), "default_handler": "mine", "accept_blast_radius": True}
    done = nodes.after(files, plan_of(files, info=nodes.status({"runc": {"runtimeType": "io.containerd.runc.v2"}}), **options))
    handlers = {"mine": RUNC, "nvidia": dict(NVIDIA_LOADED, options={"BinaryName": "/usr/bin/nvidia-container-runtime"}), "runc": FOO}
    plan = plan_of(done, info=nodes.status(handlers, "mine"), **options)
    assert (plan["writes"], plan["restart_needed"]) == ([], False)


@pytest.mark.parametrize(("release", "written"), [("1.6.36", False), ("1.7.28", True), ("2.1.4", False)])
def test_cdi_is_switched_on_where_it_is_off(release: str, written: bool) -> None:
    files = {nodes.CONFIG: nodes.VERSION_2}
    done = nodes.after(files, plan_of(files, release, handlers={"nvidia-cdi": {"preset": "nvidia-cdi"}}))
    assert ("enable_cdi = true" in "".join(done.values())) is written
    assert plan_of(done, release, handlers={"nvidia-cdi": {"preset": "nvidia-cdi"}})["writes"] == []
    assert nodes.after(done, plan_of(done, release, remove=True)) == files


@pytest.mark.parametrize(("release", "root", "told"), [("2.1.4", "3", True), ("2.1.4", "2", False), ("2.3.7", "3", False), ("1.7.28", "2", False)])
@pytest.mark.parametrize("mode", ["auto", "merge"])
def test_pulls_are_told_the_snapshotter_where_they_need_it(release: str, root: str, told: bool, mode: str) -> None:
    files = {nodes.CONFIG: nodes.VERSION_3 if root == "3" else nodes.VERSION_2}
    options = {"handlers": {"nvidia": {"preset": "nvidia", "snapshotter": "native"}}, "mode": mode}
    plan = plan_of(files, release, **options)
    done = nodes.after(files, plan)
    assert ("runtime_platforms.nvidia]\n  snapshotter" in "".join(done.values())) is told
    assert bool(plan["notes"]) is (release == "2.1.4" and not told)
    assert plan_of(done, release, **options)["writes"] == []
    assert nodes.after(done, plan_of(done, release, remove=True)) == files


def test_a_snapshotter_that_is_not_there_is_refused() -> None:
    handlers = {"nvidia": {"preset": "nvidia", "snapshotter": "nydus"}}
    assert "handlers.nvidia.snapshotter: there is no snapshotter nydus" in refusal(V3, handlers=handlers)
    text = nodes.VERSION_3 + '[proxy_plugins.nydus]\n  type = "snapshot"\n  address = "/run/nydus.sock"\n'
    assert plan_of({nodes.CONFIG: text}, handlers=handlers)["writes"]


# ---- what stays


def test_what_is_loaded_and_in_no_file_is_not_lost_in_silence() -> None:
    said = refusal(V3, info=nodes.status({"runc": RUNC, "ghost": FOO}), handlers=NVIDIA)
    assert "handler ghost is loaded now and would be lost at the next restart" in said
    gone = plan_of(V3, info=nodes.status({"runc": RUNC, "ghost": FOO}), handlers=dict(NVIDIA, ghost={"state": "absent"}))
    assert gone["absent"] == ["ghost"]
    assert "handler ghost: removed" in gone["changes"]["loaded"]


def test_ours_that_is_declared_no_more_stays_until_it_is_absent() -> None:
    files = nodes.after(V3, plan_of(V3, handlers=dict(NVIDIA, runsc={"preset": "gvisor"}), default_handler="nvidia"))
    again = plan_of(files, handlers={"runsc": {"preset": "gvisor"}})
    assert again["writes"] == []
    gone = plan_of(files, handlers={"runsc": {"state": "absent"}})
    assert "runsc" not in gone["writes"][0]["text"]
    assert "handler runsc: removed" in gone["changes"]["loaded"]
    assert "handlers.nvidia.state: absent: it is the default handler" in refusal(files, handlers={"nvidia": {"state": "absent"}})
    both = plan_of(files, handlers={"nvidia": {"state": "absent"}, "runsc": {"state": "absent"}}, default_handler="runc")
    assert [(write["path"], write["text"]) for write in both["writes"]] == [(DROP_IN, None)]


def test_a_handler_of_the_root_file_that_must_be_absent_comes_back_with_the_removal() -> None:
    files = V2
    plan = plan_of(files, handlers={"foo": {"state": "absent"}})
    done = nodes.after(files, plan)
    assert set(section_of(done).handlers) == {"runc"}
    assert plan_of(done, handlers={"foo": {"state": "absent"}})["writes"] == []
    assert nodes.after(done, plan_of(done, remove=True)) == files


def test_the_built_in_handler_cannot_be_absent_on_2_x() -> None:
    said = refusal({nodes.CONFIG: nodes.EMPTY}, handlers=dict(NVIDIA, runc={"state": "absent"}), default_handler="nvidia")
    assert said == "runtime_gate_handlers.runc.state: absent: containerd brings it by itself"


def test_other_changes_to_foreign_handlers_are_refused_by_the_proof() -> None:
    # On 2.x a drop-in merges key by key, so a declared handler of the root file keeps what is not declared.
    text = nodes.VERSION_3 + nodes.handler(nodes.NEW, "mine", '  cni_conf_dir = "/etc/cni/mine"\n')
    files = {nodes.CONFIG: text}
    declared = {"mine": {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/local/bin/mine"}}}
    done = nodes.after(files, plan_of(files, handlers=declared))
    assert section_of(done).handlers["mine"]["cni_conf_dir"] == "/etc/cni/mine"
    assert done[nodes.CONFIG] == text


@pytest.mark.parametrize("release", ["1.4.13", "1.6.20", "1.7.28"])
def test_a_declared_handler_of_the_root_file_is_edited_where_it_stands(release: str) -> None:
    declared = {"foo": {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/local/bin/foo"}}}
    text = nodes.VERSION_2.replace("runtimes.foo]\n", 'runtimes.foo]\n      pod_annotations = ["a"]  # mine\n')
    files = {nodes.CONFIG: text}
    done = nodes.after(files, plan_of(files, release, handlers=declared))
    foo = section_of(done, release).handlers["foo"]
    assert (foo["pod_annotations"], foo["options"]["BinaryName"]) == (["a"], "/usr/local/bin/foo")
    assert nodes.after(done, plan_of(done, release, remove=True)) == files


def test_a_false_value_of_a_declaration_overrides_a_true_one() -> None:
    text = nodes.VERSION_3 + nodes.handler(nodes.NEW, "mine", "  privileged_without_host_devices = true\n")
    declared = {"mine": {"runtime_type": "io.containerd.runc.v2", "privileged_without_host_devices": False}}
    done = nodes.after({nodes.CONFIG: text}, plan_of({nodes.CONFIG: text}, handlers=declared))
    assert section_of(done).handlers["mine"]["privileged_without_host_devices"] is False


# ---- others' files


def test_another_tools_drop_in_is_reported_as_a_conflict_with_who_wins() -> None:
    files = dict(V3, **{FOREIGN: "version = 3\n" + nodes.handler(nodes.NEW, "nvidia", '  snapshotter = "native"\n')})
    plan = plan_of(files, handlers=NVIDIA)
    assert plan["conflicts"] == ["handler nvidia is also declared in %s, line 2, by another tool; ours wins" % FOREIGN]
    later = dict(V3, **{"/etc/containerd/conf.d/zzz.toml": "version = 3\n" + nodes.handler(nodes.NEW, "nvidia", '  options = { BinaryName = "/x" }\n')})
    assert refusal(later, handlers=NVIDIA) == (
        "handler nvidia: /etc/containerd/conf.d/zzz.toml, line 2, sets it otherwise and is loaded later; change it there"
    )


KATA_DEFAULT = 'version = 3\n[%s.containerd]\ndefault_runtime_name = "kata"\n' % nodes.NEW
KATA = nodes.handler(nodes.NEW, "kata").replace("runc.v2", "kata.v2")


def test_a_default_that_somebody_else_has_set_is_one_refusal_with_its_line() -> None:
    """Accepted or not: the file's author has not asked for it here."""
    files = dict(V3, **{FOREIGN: KATA_DEFAULT + KATA})
    loaded = nodes.status({"runc": RUNC})
    for accepted in (False, True):
        assert refusal(files, info=loaded, handlers=NVIDIA, accept_blast_radius=accepted) == (
            "the default handler is runc now, and the restart would make it kata (%s, line 3). Say which it shall be: "
            "runtime_gate_default_handler: kata, with runtime_gate_accept_blast_radius: true, or runtime_gate_default_handler: runc, or "
            "change that file" % FOREIGN
        )
    said = plan_of(files, info=loaded, handlers=NVIDIA, default_handler="kata", accept_blast_radius=True)
    assert section_of(nodes.after(files, said)).default == "kata"
    other = plan_of(files, info=loaded, handlers=NVIDIA, default_handler="runc")
    assert section_of(nodes.after(files, other)).default == "runc" and not other["default_changes"]


def test_a_default_of_a_later_file_is_named_with_its_line() -> None:
    later = "/etc/containerd/conf.d/zzz.toml"
    files = dict(V3, **{later: KATA_DEFAULT + KATA})
    assert refusal(files, handlers=NVIDIA, default_handler="nvidia", accept_blast_radius=True) == (
        "runtime_gate_default_handler nvidia: %s, line 3, sets kata and is loaded later; change it there" % later
    )
    assert refusal(files, handlers={"kata": {"state": "absent"}}) == (
        "runtime_gate_handlers.kata.state: absent: it is the default handler (%s, line 3); set runtime_gate_default_handler to another one, "
        "and take the handler out of %s, line 4, which belongs to another tool" % (later, later)
    )
    assert refusal(dict(V3, **{later: KATA_DEFAULT}), handlers=NVIDIA).endswith("default_runtime_name = 'kata' (%s, line 3)" % later)


def test_our_lines_in_somebody_elses_file_are_no_conflict() -> None:
    plan = plan_of(V2, "1.7.28", handlers=NVIDIA)
    assert plan["conflicts"] == [] and plan_of(nodes.after(V2, plan), "1.7.28", handlers=NVIDIA)["conflicts"] == []
    foreign = "version = 2\n" + nodes.handler(nodes.OLD, "runc")
    files = {nodes.CONFIG: 'imports = ["/etc/containerd/conf.d/*.toml"]\n' + nodes.VERSION_2, FOREIGN: foreign}
    assert plan_of(files, "1.7.28", handlers=NVIDIA)["conflicts"] == []


def test_a_foreign_drop_ins_handler_is_not_removed() -> None:
    files = dict(V3, **{FOREIGN: "version = 3\n" + nodes.handler(nodes.NEW, "other")})
    assert "belongs to another tool; remove it there" in refusal(files, handlers={"other": {"state": "absent"}})


def test_files_that_nothing_reads_do_not_start_to_be_read() -> None:
    files = dict(V2, **{FOREIGN: "version = 2\n" + nodes.handler(nodes.OLD, "sleeping")})
    plan = plan_of(files, handlers=NVIDIA)
    assert plan["writes"][0]["path"] == "/etc/containerd/runtime-gate.d/zz-runtime-gate.toml"
    assert "sleeping" not in section_of(nodes.after(files, plan)).handlers


@pytest.mark.parametrize("options", [{"handlers": NVIDIA}, {"remove": True}])
def test_an_import_of_ours_that_others_rely_on_stays(options: t.Dict[str, t.Any]) -> None:
    files = nodes.after(V2, plan_of(V2, handlers=NVIDIA))
    files[FOREIGN] = "version = 2\n" + nodes.handler(nodes.OLD, "other")
    plan = plan_of(files, **options)
    done = nodes.after(files, plan)
    assert "other" in section_of(done).handlers
    assert ("nvidia" in section_of(done).handlers) is ("handlers" in options)
    assert any("stays in %s" % nodes.CONFIG in note for note in plan["notes"])
    assert plan_of(done, **options)["writes"] == []


def test_on_1_x_handlers_go_where_the_effective_section_is() -> None:
    foreign = "version = 2\n" + nodes.handler(nodes.OLD, "runc") + nodes.handler(nodes.OLD, "other")
    files = {nodes.CONFIG: 'imports = ["/etc/containerd/conf.d/*.toml"]\n' + nodes.VERSION_2, FOREIGN: foreign}
    plan = plan_of(files, "1.7.28", handlers=NVIDIA)
    assert [write["path"] for write in plan["writes"]] == [FOREIGN]
    assert set(section_of(nodes.after(files, plan), "1.7.28").handlers) == {"runc", "other", "nvidia"}
    assert "replaces the CRI section" in plan["notes"][0]
    done = nodes.after(files, plan)
    assert nodes.after(done, plan_of(done, "1.7.28", remove=True)) == files


def test_comments_and_order_of_an_import_list_stay() -> None:
    text = 'version = 3\nimports = [\n  "/etc/x/one.toml", # theirs\n  # more to come\n]\n'
    files = {nodes.CONFIG: text, "/etc/x/one.toml": ""}
    done = nodes.after(files, plan_of(files, handlers=NVIDIA))
    assert '"/etc/x/one.toml", "/etc/containerd/conf.d/*.toml", # theirs\n' in done[nodes.CONFIG]
    assert "  # more to come\n" in done[nodes.CONFIG]


def test_a_copy_of_our_drop_in_and_files_of_other_runtimes_are_left_alone() -> None:
    files = nodes.after(V3, plan_of(V3, handlers=NVIDIA))
    files["/etc/containerd/conf.d/zz-runtime-gate.toml.bak"] = files[DROP_IN]
    files["/etc/k0s/containerd.d/zz-runtime-gate.toml"] = files[DROP_IN]
    plan = plan_of(files, remove=True)
    assert [write["path"] for write in plan["writes"]] == [DROP_IN]


def test_links_are_followed_as_containerd_does() -> None:
    files = {nodes.CONFIG: nodes.VERSION_2}
    plan = plan_of(files, node={"links": {nodes.CONFIG: "../real/config.toml", "/etc/real": "/srv/etc"}}, handlers=NVIDIA)
    assert plan["commit"] == plan["writes"][-1]["path"] == "/srv/etc/config.toml"
    assert plan["config_path"] == nodes.CONFIG


def test_masked_values_stay_where_they_are() -> None:
    for release, options in (("1.7.28", {}), ("2.1.4", {}), ("2.1.4", {"migrate": 3}), ("2.0.5", {"mode": "merge"})):
        plan = plan_of(V2, release, handlers=NVIDIA, **options)
        root = plan["writes"][-1]["text"]
        assert root.count("__RUNTIME_GATE_MASKED_1__") == 1
        assert all("MASKED" not in write["text"] for write in plan["writes"][:-1])


@pytest.mark.parametrize("release", ["2.0.5", "2.1.4", "2.3.7"])
@pytest.mark.parametrize("written", ['password = "s3cr3t-of-the-team"', "password = 's3cr3t-of-the-team'", 'password = """s3cr3t\nof-the-team"""'])
def test_a_secret_survives_the_migration_byte_for_byte(release: str, written: str) -> None:
    """The plan has never seen it: the node puts its own value into the migrated text."""
    original = nodes.VERSION_2.replace('password = "__RUNTIME_GATE_MASKED_1__"', written)
    masked = Masker().toml(original)
    assert "s3cr3t" not in masked
    files = {nodes.CONFIG: masked}
    plan = plan_of(files, release, handlers=NVIDIA, migrate=3)
    (root,) = [write for write in plan["writes"] if write["path"] == nodes.CONFIG]
    assert "s3cr3t" not in str(plan["changes"]) + str(plan["writes"])
    written_there = Masker().put_back(root["text"], original)
    assert written in written_there and "version = 3\n" in written_there
    before, after = section_of({nodes.CONFIG: original}, release), section_of(nodes.after({nodes.CONFIG: original}, plan), release)
    assert set(before.handlers) <= set(after.handlers)


def test_a_withheld_file_stops_everything() -> None:
    files = {nodes.CONFIG: 'imports = ["/etc/containerd/conf.d/*.toml"]\n' + nodes.VERSION_2}
    said = refusal(files, node={"withheld": {FOREIGN: "its secrets cannot be located"}}, handlers=NVIDIA)
    assert said == "what is loaded cannot be told, so nothing is written: %s: its secrets cannot be located" % FOREIGN


def test_a_drop_in_that_switches_cri_off_is_named() -> None:
    files = dict(V3, **{FOREIGN: 'version = 3\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n'})
    assert "stands in disabled_plugins of %s; take it out there" % FOREIGN in refusal(files, handlers=NVIDIA, repair=True)


def test_the_removal_does_not_ask_for_more_than_was_there() -> None:
    # CRI was switched off by somebody after we had written: ours goes all the same.
    files = nodes.after(V3, plan_of(V3, handlers=NVIDIA))
    files[FOREIGN] = 'version = 3\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n'
    assert [write["path"] for write in plan_of(files, remove=True)["writes"]] == [DROP_IN]


def test_a_root_file_that_does_not_load_is_named() -> None:
    assert "/etc/containerd/config.toml is not TOML" in refusal({nodes.CONFIG: "version = 2\n[a\n"}, handlers=NVIDIA)
    files = {nodes.CONFIG: 'version = 2\nimports = ["/etc/gone.toml"]\n'}
    assert "containerd 2.1 does not start with /etc/containerd/config.toml, line 2: /etc/gone.toml" in refusal(files, handlers=NVIDIA)


def test_an_explicit_path_without_a_file_gets_one() -> None:
    node = {"config_path": "/etc/other/config.toml", "cmdline": "containerd -c /etc/other/config.toml"}
    plan = plan_of({}, node=node, handlers=NVIDIA)
    assert [write["path"] for write in plan["writes"]] == ["/etc/other/conf.d/zz-runtime-gate.toml", "/etc/other/config.toml"]
    done = nodes.after({}, plan)
    assert plan_of(done, node=node, handlers=NVIDIA)["writes"] == []
    # Without the file that -c names the daemon would not start: it is left behind, empty.
    assert nodes.after(done, plan_of(done, node=node, remove=True)) == {"/etc/other/config.toml": ""}


def test_lines_added_to_a_root_file_of_ours_stay() -> None:
    done = nodes.after({}, plan_of({}, handlers=NVIDIA))
    done[nodes.CONFIG] += "[debug]\n  level = 'info'\n"
    left = nodes.after(done, plan_of(done, remove=True))
    assert left == {nodes.CONFIG: "[debug]\n  level = 'info'\n"}


# ---- the default handler


def test_a_new_default_says_what_it_reaches() -> None:
    plan = plan_of(V3, info=nodes.status({"runc": RUNC}), handlers=NVIDIA, default_handler="nvidia")
    assert plan["default_changes"]
    assert plan["needs_blast_radius"]
    assert "every pod on this node that names no RuntimeClass" in plan["blast_radius"]
    assert "system pods" in plan["blast_radius"]
    accepted = plan_of(V3, info=nodes.status({"runc": RUNC}), handlers=NVIDIA, default_handler="nvidia", accept_blast_radius=True)
    assert not accepted["needs_blast_radius"]


def test_a_changed_default_handler_reaches_as_far() -> None:
    plan = plan_of(V3, info=nodes.status({"runc": RUNC}), handlers={"runc": {"preset": "crun"}})
    assert plan["needs_blast_radius"]
    assert "the default handler runc itself changes (options.BinaryName)" in plan["blast_radius"]


def test_a_default_without_its_binary_is_refused_whatever_is_allowed() -> None:
    binaries = {"/usr/bin/nvidia-container-runtime": False, "containerd-shim-runc-v2": True}
    said = refusal(V3, node={"binaries": binaries}, handlers=NVIDIA, default_handler="nvidia", accept_blast_radius=True)
    assert said == "runtime_gate_default_handler nvidia: binary /usr/bin/nvidia-container-runtime is not there or cannot be executed"


def test_a_default_that_is_declared_anew_without_its_binary_is_refused_too() -> None:
    binaries = {"/usr/bin/crun": False, "containerd-shim-runc-v2": True}
    declared = {"runc": {"preset": "crun", "allow_absent_binary": True}}
    said = refusal(V3, node={"binaries": binaries}, handlers=declared, accept_blast_radius=True)
    assert said == "runtime_gate_default_handler runc: binary /usr/bin/crun is not there or cannot be executed"


def test_every_absent_program_and_every_wrong_key_is_told_in_one_refusal() -> None:
    binaries = {"/usr/bin/crun": False, "containerd-shim-runc-v2": True, "containerd-shim-runsc-v1": False}
    declared = {"crun": {"preset": "crun"}, "runsc": {"preset": "gvisor"}, "x": {"preset": "kata", "snapshotter": "a"}}
    said = refusal(V2, "1.6.36", node={"binaries": binaries}, handlers=declared, allow_absent_binary=False)
    assert said == (
        "runtime_gate_handlers.x.snapshotter: containerd 1.6 has no such option (1.7 and later have it); "
        "runtime_gate_handlers.crun: binary /usr/bin/crun is not there or cannot be executed; "
        "runtime_gate_handlers.runsc: shim containerd-shim-runsc-v1 is not there or cannot be executed; "
        "install them, or set runtime_gate_allow_absent_binary: true to write the handlers all the same"
    )
    alone = refusal(V2, "1.6.36", node={"binaries": binaries}, handlers={"crun": declared["crun"]}, allow_absent_binary=False)
    assert alone.endswith("install it, or set runtime_gate_allow_absent_binary: true to write the handler all the same")


def test_the_change_in_one_line() -> None:
    loaded = nodes.status({"runc": RUNC, "gone": FOO})
    plan = plan_of(V3, info=loaded, handlers={**NVIDIA, "gone": {"state": "absent"}}, default_handler="nvidia", accept_blast_radius=True)
    assert plan["changes"]["summary"] == "handlers added: nvidia; removed: gone; default handler: runc -> nvidia"
    other = nodes.status({"runc": RUNC, "nvidia": FOO})
    assert plan_of(V3, info=other, handlers=NVIDIA)["changes"]["summary"] == "handlers changed: nvidia"
    files = nodes.after(V3, plan_of(V3, handlers=NVIDIA))
    same = nodes.status({"runc": RUNC, "nvidia": NVIDIA_LOADED})
    assert plan_of(files, info=same, handlers=NVIDIA)["changes"]["summary"] == ""


def test_a_default_that_is_no_handler() -> None:
    assert refusal(V3, default_handler="kata") == "runtime_gate_default_handler: there is no handler kata, declared or otherwise"


def test_the_old_default_comes_back() -> None:
    for release, files in (("1.7.28", V2), ("2.1.4", V2), ("2.3.4", V3)):
        done = nodes.after(files, plan_of(files, release, handlers=NVIDIA, default_handler="nvidia"))
        assert section_of(done, release).default == "nvidia"
        assert nodes.after(done, plan_of(done, release, remove=True)) == files


# ---- modes and repairs


def test_a_drop_in_is_no_way_on_1_x() -> None:
    assert "mode: dropin cannot be used with containerd 1.7" in refusal(V2, "1.7.28", handlers=NVIDIA, mode="dropin")
    assert "mode must be auto, dropin or merge" in refusal(V3, handlers=NVIDIA, mode="edit")


def test_inline_tables_are_edited_or_refused_never_broken() -> None:
    text = 'version = 2\n[plugins."io.containerd.grpc.v1.cri".containerd]\nruntimes = { runc = { runtime_type = "io.containerd.runc.v2" } }\n'
    assert "cannot be edited in place" in refusal({nodes.CONFIG: text}, "1.7.28", handlers=NVIDIA)
    done = nodes.after({nodes.CONFIG: text}, plan_of({nodes.CONFIG: text}, "2.1.4", handlers=NVIDIA))
    assert set(section_of(done).handlers) == {"runc", "nvidia"}


def test_only_one_file_can_change_its_content_in_one_step() -> None:
    foreign = "version = 2\n" + nodes.handler(nodes.OLD, "runc")
    text = 'disabled_plugins = ["io.containerd.grpc.v1.cri"]\nimports = ["/etc/containerd/conf.d/*.toml"]\nversion = 2\n'
    files = {nodes.CONFIG: text, FOREIGN: foreign}
    assert "run this once with runtime_gate_repair: true and runtime_gate_handlers: {}" in refusal(files, "1.7.28", handlers=NVIDIA, repair=True)
    mended = nodes.after(files, plan_of(files, "1.7.28", repair=True))
    done = nodes.after(mended, plan_of(mended, "1.7.28", handlers=NVIDIA, repair=True))
    assert set(section_of(done, "1.7.28").handlers) == {"runc", "nvidia"}


@pytest.mark.parametrize("release", ["2.1.4", "2.3.7"])
@pytest.mark.parametrize("first", [nodes.EMPTY, nodes.VERSION_2, nodes.VERSION_3])
@pytest.mark.parametrize(
    "second",
    [
        nodes.DOCKER,
        'disabled_plugins = ["cri"]\nimports = ["/etc/containerd/conf.d/*.toml"]\n',
        'imports = ["/etc/containerd/conf.d/*.toml"]\n' + nodes.NO_VERSION,
    ],
)
@pytest.mark.parametrize("more", [{}, {"crun": {"preset": "crun"}}])
def test_a_repair_beside_a_drop_in_of_ours_needs_no_second_run(first: str, second: str, more: t.Dict[str, t.Any], release: str) -> None:
    """A package has put its own root file in the place of the one with our import: the drop-in is still there."""
    files = dict(nodes.after({nodes.CONFIG: first}, plan_of({nodes.CONFIG: first}, release, handlers=NVIDIA)), **{nodes.CONFIG: second})
    plan = plan_of(files, release, handlers=dict(NVIDIA, **more), repair=True)
    written = [write["path"] for write in plan["writes"] if write["text"] is not None and write["path"] in files]
    assert written in ([], [nodes.CONFIG], [DROP_IN])
    assert {"runc", "nvidia", *more} <= set(section_of(nodes.after(files, plan), release).handlers)


@pytest.mark.parametrize("root", [nodes.DOCKER, nodes.DOCKER.rstrip("\n"), nodes.DOCKER.replace("\n", "\r\n")])
@pytest.mark.parametrize("release", ["1.7.28", "2.1.4"])
def test_removal_says_that_a_repair_stays(root: str, release: str) -> None:
    files = {nodes.CONFIG: root}
    done = nodes.after(files, plan_of(files, release, handlers=NVIDIA, repair=True))
    assert plan_of(done, release, handlers=NVIDIA, repair=True)["writes"] == []
    removal = plan_of(done, release, remove=True)
    (note,) = removal["notes"]
    assert note.startswith("%s stays as an earlier run has repaired it (" % nodes.CONFIG)
    assert "CRI is switched off by disabled_plugins), since with its first text" in note
    left = nodes.after(done, removal)
    mended = root.replace('["cri"]', "[]").rstrip("\r\n")
    assert left[nodes.CONFIG].rstrip("\r\n").endswith(mended) and "kubenode" not in left[nodes.CONFIG] and set(left) == set(files)
    assert plan_of(left, release, remove=True)["notes"] == [] and plan_of(left, release, remove=True)["writes"] == []


# ---- what somebody has done with our marks


def test_a_table_between_our_marks_that_no_run_wrote_is_not_adopted() -> None:
    plan = plan_of(V2, "1.7.28", handlers=NVIDIA)
    assert plan["written"] == ["nvidia"]
    done = nodes.after(V2, plan)
    by_hand = dict(done, **{nodes.CONFIG: done[nodes.CONFIG].replace("# <<<", nodes.handler(nodes.OLD, "hand") + "# <<<")})
    line = by_hand[nodes.CONFIG].split("\n").index("[%s.containerd.runtimes.hand]" % nodes.OLD) + 1
    state = {"written_handlers": ["nvidia"]}
    for options in ({"handlers": NVIDIA}, {"remove": True}):
        said = refusal(by_hand, "1.7.28", node=state, **options)
        assert "between our marks or in our file: hand (%s, line %d)." % (nodes.CONFIG, line) in said and "Move their tables out" in said
    declared = plan_of(by_hand, "1.7.28", node=state, handlers=dict(NVIDIA, hand={"runtime_type": "io.containerd.runc.v2"}))
    assert declared["written"] == ["hand", "nvidia"]
    gone = nodes.after(by_hand, plan_of(by_hand, "1.7.28", node=state, handlers=dict(NVIDIA, hand={"state": "absent"})))
    assert "hand" not in section_of(gone, "1.7.28").handlers
    moved = dict(done, **{nodes.CONFIG: done[nodes.CONFIG] + nodes.handler(nodes.OLD, "hand")})
    assert "hand" in section_of(nodes.after(moved, plan_of(moved, "1.7.28", node=state, remove=True)), "1.7.28").handlers
    # Nobody knows what was written: an earlier release of ours, or the state is lost.
    assert plan_of(by_hand, "1.7.28", remove=True)["written"] == []


def test_a_drop_in_of_ours_with_a_table_of_somebody_elses() -> None:
    done = nodes.after(V3, plan_of(V3, handlers=NVIDIA))
    done[DROP_IN] += nodes.handler(nodes.NEW, "hand")
    assert "in our file: hand (%s, line " % DROP_IN in refusal(done, node={"written_handlers": ["nvidia"]}, remove=True)


def test_handlers_of_ours_that_have_lost_their_marks_are_told() -> None:
    done = nodes.after(V2, plan_of(V2, "1.7.28", handlers=NVIDIA))
    bare = "".join(line for line in done[nodes.CONFIG].splitlines(True) if "kubenode.runtime_gate" not in line)
    line = bare.split("\n").index("[%s.containerd.runtimes.nvidia]" % nodes.OLD) + 1
    files, state = {nodes.CONFIG: bare}, {"written_handlers": ["nvidia"]}
    plan = plan_of(files, "1.7.28", node=state, remove=True)
    assert plan["writes"] == [] and plan["written"] == ["nvidia"]
    assert plan["notes"] == [
        "handler nvidia stands in %s, line %d, without our marks, and an earlier run had written it: it counts as somebody else's now, and removal "
        "leaves it there. Delete its table by hand if it shall go" % (nodes.CONFIG, line)
    ]
    assert plan_of(V2, "1.7.28", node=state, remove=True)["notes"] == []
    # As declared, it is simply there.
    assert plan_of(files, "1.7.28", node=state, handlers=NVIDIA)["notes"] == []


def test_runc_that_was_written_out_for_1_x_is_known_as_ours() -> None:
    files = {nodes.CONFIG: "version = 2\n"}
    plan = plan_of(files, "1.7.28", handlers=NVIDIA)
    assert plan["written"] == ["nvidia", "runc"]
    assert plan_of(nodes.after(files, plan), "1.7.28", node={"written_handlers": plan["written"]}, handlers=NVIDIA)["writes"] == []


def test_migration_is_for_2_x_and_for_what_is_loaded_whole() -> None:
    assert "migrate: 3 needs containerd 2.0 or later, not 1.7" in refusal(V2, "1.7.28", handlers=NVIDIA, migrate=3)
    assert "migrate can only be 3" in refusal(V2, handlers=NVIDIA, migrate=4)
    mixed = {nodes.CONFIG: 'imports = ["/etc/containerd/conf.d/*.toml"]\n' + nodes.VERSION_2, FOREIGN: "version = 3\n"}
    assert "migrate: 3 would change what is loaded" in refusal(mixed, "2.1.4", handlers=NVIDIA, migrate=3)
    secret = '[plugins."io.containerd.grpc.v1.cri".registry.configs.a.auth]\n  password = "__RUNTIME_GATE_MASKED_1__"\n'
    files = {nodes.CONFIG: 'imports = ["/etc/containerd/conf.d/*.toml"]\nversion = 2\n', FOREIGN: "version = 2\n" + secret}
    assert "holds secrets, which do not leave their file" in refusal(files, handlers=NVIDIA, migrate=3)


def test_migration_puts_each_key_in_its_home_with_its_comments() -> None:
    text = """\
version = 2
[plugins."io.containerd.grpc.v1.cri"] # everything
  # the pause image
  sandbox_image = "registry.example/pause:3.9" # pinned
  stream_server_port = "10010"
  enable_selinux = true
  max_concurrent_downloads = 5
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    discard_unpacked_layers = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    sandbox_mode = "podsandbox"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
"""
    done = nodes.after({nodes.CONFIG: text}, plan_of({nodes.CONFIG: text}, migrate=3))[nodes.CONFIG]
    assert done == """\
version = 3
[plugins."io.containerd.cri.v1.runtime"] # everything
  enable_selinux = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dir = "/opt/cni/bin"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    sandboxer = "podsandbox"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "/etc/containerd/certs.d"

[plugins."io.containerd.cri.v1.images"]
  max_concurrent_downloads = 5
    snapshotter = "native"
    discard_unpacked_layers = true

[plugins."io.containerd.cri.v1.images".pinned_images]
  # the pause image
  sandbox = "registry.example/pause:3.9" # pinned

[plugins."io.containerd.grpc.v1.cri"]
  stream_server_port = "10010"
"""
