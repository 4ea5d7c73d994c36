"""The role gate and its playbooks, run as a person runs them, on the recordings of the example cluster.

Each run has hosts that pass and hosts that fail, so that a gate which judges nobody or everybody alike is seen.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.integration.ansible_runs import EXAMPLE, PLAYBOOK, environment, playbook, table_rows, write_yaml

BROKEN = {"docker-1", "eks-1", "kubespray-1"}
HEALTHY = {"debian-1", "flatcar-1", "k3s-1", "microk8s-1"}
ALL = BROKEN | HEALTHY
INVENTORY = ("-i", EXAMPLE / "inventory.yml")
AUDIT = "kubenode.runtime_gate.audit"


def failed(run):
    return {host for host, counts in run.recap.items() if counts["failed"] or counts["unreachable"]}


def play(path: pathlib.Path, **keys):
    """A playbook with one play of the role gate."""
    return write_yaml(
        path / "play.yml", [{"name": "Gate", "hosts": "all", "gather_facts": False, "roles": [{"role": "kubenode.runtime_gate.gate"}], **keys}]
    )


def report_of(path: pathlib.Path):
    return json.loads(path.read_text())


@pytest.mark.parametrize("check", [[], ["--check"]])
def test_the_broken_hosts_fail_the_others_pass_and_each_says_why(tmp_path, check):
    report = tmp_path / "report.json"
    run = playbook(AUDIT, *INVENTORY, "-e", f"runtime_gate_report_path={report}", *check)
    assert run.status == 2 and set(run.recap) == ALL and failed(run) == BROKEN
    assert {host for host, counts in run.recap.items() if counts["changed"]} == set()
    for host, words in {
        "docker-1": ["RuntimeClass runc", "disabled_plugins"],
        "eks-1": ["RuntimeClass gvisor", "handler runsc", "line 34"],
        "kubespray-1": ["RuntimeClass nvidia", "lost at restart", "/etc/containerd/config.toml"],
    }.items():
        (line,) = (line for line in run.text.splitlines() if line.startswith(f"fatal: [{host}]"))
        assert all(word in line for word in words), line
    made = report_of(report)
    assert set(made["failing_nodes"]) == BROKEN and made["counts"]["judged"] == 7 and made["check_mode"] is bool(check)
    assert made["missing"] == {"docker-1": ["runc"], "eks-1": ["runsc"], "kubespray-1": ["nvidia"]}
    assert sorted(table_rows(run.text)) == sorted(ALL)
    assert "\x1b[" not in run.text  # no terminal, no colour


def test_the_free_strategy_gives_the_same_answer_and_one_table(tmp_path):
    run = playbook(play(tmp_path, strategy="free"), *INVENTORY)
    assert failed(run) == BROKEN and sorted(table_rows(run.text)) == sorted(ALL)


@pytest.mark.parametrize("serial, lines", [(3, 3 + 3 + 7), (4, 4 + 7), (7, 7)])
def test_each_batch_has_its_lines_and_the_last_one_the_whole_table(tmp_path, serial, lines):
    run = playbook(play(tmp_path, serial=serial), *INVENTORY)
    rows = table_rows(run.text)
    assert failed(run) == BROKEN and sorted(rows[-7:]) == sorted(ALL) and len(rows) == lines


def test_serial_1_goes_on_while_hosts_pass_and_stops_as_ansible_does_when_a_whole_batch_failed(tmp_path):
    report = tmp_path / "report.json"
    run = playbook(play(tmp_path, serial=1), *INVENTORY, "-e", f"runtime_gate_report_path={report}")
    assert set(run.recap) == {"debian-1", "docker-1"} and failed(run) == {"docker-1"}
    made = report_of(report)
    assert made["not_judged"]["hosts"] == sorted(ALL - {"debian-1", "docker-1"}) and made["ok"] is False
    healthy = playbook(play(tmp_path, serial=1), *INVENTORY, "--limit", ":".join(HEALTHY))
    assert healthy.status == 0 and set(healthy.recap) == HEALTHY


def test_a_limit_judges_its_hosts_and_says_that_it_saw_a_part(tmp_path):
    report = tmp_path / "report.json"
    run = playbook(AUDIT, *INVENTORY, "--limit", "debian-1,flatcar-1", "-e", f"runtime_gate_report_path={report}")
    assert run.status == 0 and set(run.recap) == {"debian-1", "flatcar-1"}
    made = report_of(report)
    assert made["ok"] is True and set(made["not_judged"]["nodes"]) == ALL - {"debian-1", "flatcar-1"}
    assert "2 of 2 hosts judged (2 of the cluster's 7 Nodes)" in run.text


def test_any_errors_fatal_still_judges_every_host_of_the_batch(tmp_path):
    run = playbook(play(tmp_path, any_errors_fatal=True), *INVENTORY)
    assert run.status == 2 and sorted(table_rows(run.text)) == sorted(ALL)
    assert {host for host in ALL if f"fatal: [{host}]" in run.text} == BROKEN


def test_max_fail_percentage_stops_the_next_batch(tmp_path):
    report = tmp_path / "report.json"
    run = playbook(play(tmp_path, serial=4, max_fail_percentage=30), *INVENTORY, "-e", f"runtime_gate_report_path={report}")
    assert run.status == 2 and set(run.recap) == {"debian-1", "docker-1", "eks-1", "flatcar-1"}
    assert report_of(report)["not_judged"]["hosts"] == ["k3s-1", "kubespray-1", "microk8s-1"]
    lenient = playbook(play(tmp_path, serial=4, max_fail_percentage=60), *INVENTORY)
    assert set(lenient.recap) == ALL and failed(lenient) == BROKEN


def test_all_hosts_failing_is_a_table_a_report_and_no_pass(tmp_path):
    report = tmp_path / "report.json"
    run = playbook(AUDIT, *INVENTORY, "--limit", ":".join(BROKEN), "-e", f"runtime_gate_report_path={report}")
    assert run.status == 2 and failed(run) == BROKEN and set(report_of(report)["failing_nodes"]) == BROKEN


UNREACHABLE = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1, "runtime_gate_captures": ""}


def with_unreachable(tmp_path, *names):
    """The example's inventory, these hosts not recorded but behind a port that nobody listens on."""
    return inventory_with(tmp_path, UNREACHABLE, *names)


def inventory_with(tmp_path, variables, *names):
    """The example's inventory, these hosts (or more) with variables of their own."""
    hosts = {name: (dict(variables) if name in names else None) for name in sorted(ALL | set(names))}
    shared = {"runtime_gate_captures": str(EXAMPLE / "captures"), "runtime_gate_manifests": [str(EXAMPLE / "manifests")]}
    return write_yaml(tmp_path / "hosts.yml", {"all": {"vars": shared, "hosts": hosts}})


@pytest.mark.parametrize("keys", [{}, {"strategy": "free"}, {"any_errors_fatal": True}, {"serial": 4}])
def test_the_first_host_unreachable_is_unknown_fails_and_keeps_nobody_from_being_judged(tmp_path, keys):
    report = tmp_path / "report.json"
    inventory = with_unreachable(tmp_path, "debian-1")
    run = playbook(play(tmp_path, **keys), "-i", inventory, "-e", f"runtime_gate_report_path={report}")
    made = {entry["host"]: entry for entry in report_of(report)["hosts"]}
    assert run.status == 2 and set(made) == ALL
    assert made["debian-1"]["unreachable"] and made["debian-1"]["cells"]["runc"] == "unknown"
    assert {host for host, entry in made.items() if entry["fails"]} == BROKEN | {"debian-1"}
    assert {host for host in ALL if f"fatal: [{host}]: FAILED!" in run.text} == BROKEN | {"debian-1"}


#: A user who may not become another one; root may, without asking, so it is another one than root.
NO_BECOME = {
    "ansible_connection": "local",
    "ansible_python_interpreter": sys.executable,
    "ansible_become_method": "sudo",
    "ansible_become_exe": "/bin/false",
    "ansible_become_user": "nobody",
    "runtime_gate_captures": "",
}


@pytest.mark.parametrize("keys", [{}, {"strategy": "free"}, {"any_errors_fatal": True}, {"serial": 4}])
def test_a_host_on_which_become_fails_is_unknown_fails_and_keeps_nobody_from_being_judged(tmp_path, keys):
    report = tmp_path / "report.json"
    inventory = inventory_with(tmp_path, NO_BECOME, "debian-1")
    run = playbook(play(tmp_path, **keys), "-i", inventory, "-e", f"runtime_gate_report_path={report}")
    made = {entry["host"]: entry for entry in report_of(report)["hosts"]}
    assert run.status == 2 and set(made) == ALL and failed(run) == BROKEN | {"debian-1"}
    assert made["debian-1"]["cells"]["runc"] == "unknown" and "become" in made["debian-1"]["verdicts"][0]["reason"]
    assert {host for host, entry in made.items() if entry["fails"]} == BROKEN | {"debian-1"}
    assert sorted(table_rows(run.text)[-7:]) == sorted(ALL)


def test_become_failing_on_all_hosts_is_a_table_and_a_report_all_the_same(tmp_path):
    report = tmp_path / "report.json"
    run = playbook(play(tmp_path), "-i", inventory_with(tmp_path, NO_BECOME, *ALL), "-e", f"runtime_gate_report_path={report}")
    assert run.status == 2 and failed(run) == ALL and sorted(table_rows(run.text)) == sorted(ALL)
    assert set(report_of(report)["failing_nodes"]) == ALL and "0 of 7 hosts judged" in run.text


def test_a_string_that_says_false_keeps_the_gate_from_becoming_anybody(tmp_path):
    """``-e runtime_gate_become=false`` is a string. The host is read then: with become it could not be."""
    inventory = inventory_with(tmp_path, NO_BECOME, "debian-1")
    run = playbook(play(tmp_path), "-i", inventory, "--limit", "debian-1", "-e", "runtime_gate_become=false")
    assert "1 of 1 hosts judged" in run.text and "waiting for become" not in run.text


def test_a_capture_that_is_not_there_is_said_with_the_command_that_records_it(tmp_path):
    inventory = inventory_with(tmp_path, {}, "debian-9")
    run = playbook(play(tmp_path), "-i", inventory, "--limit", "debian-9")
    said = " ".join(run.text.split())
    assert run.status == 2 and "kubenode.runtime_gate.capture --limit debian-9" in said and "0 of 1 hosts judged" in said


def test_a_cached_fact_is_never_judged(tmp_path):
    """With a fact cache that says all is well, an unreachable host is unknown, and a healthy one is read anew."""
    cache = {"ANSIBLE_CACHE_PLUGIN": "jsonfile", "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(tmp_path / "cache")}
    report = tmp_path / "report.json"
    arguments = ("-e", f"runtime_gate_report_path={report}", "--limit", "debian-1,k3s-1")
    assert playbook(AUDIT, *INVENTORY, *arguments, **cache).status == 0
    assert "containerd_runtime" in next((tmp_path / "cache").glob("*debian-1")).read_text()
    run = playbook(play(tmp_path), "-i", with_unreachable(tmp_path, "debian-1"), *arguments, **cache)
    assert failed(run) == {"debian-1"}
    assert report_of(report)["hosts"][0]["cells"]["runc"] == "unknown"


def four_combinations(tmp_path, order, *arguments):
    hosts = {}
    for number, name in enumerate(order):
        handlers = ["runsc"] if name in ("pending", "both") else []
        loaded = name in ("loaded", "both")
        hosts[f"h{number}-{name}"] = {
            "runtime_gate_pending_handlers": handlers,
            "runtime_gate_captures": str(captures_of(tmp_path, f"h{number}-{name}", loaded)),
            "runtime_gate_node_labels": {"runtime.example.com/gvisor": "true"},
        }
    shared = {"runtime_gate_manifests": [str(EXAMPLE / "manifests")], "runtime_gate_policy": {"classes": ["gvisor"]}}
    inventory = write_yaml(tmp_path / "four.yml", {"all": {"vars": shared, "hosts": hosts}})
    return playbook(play(tmp_path, serial=1), "-i", inventory, "--check", *arguments)


def captures_of(tmp_path, host, loaded):
    """A directory with one capture: gVisor's handler declared in the files and loaded, or neither."""
    recorded = EXAMPLE / "captures" / ("eks-1" if not loaded else "flatcar-1")
    copy = pathlib.Path(shutil.copytree(recorded, tmp_path / host / host))
    if loaded:
        for file in copy.rglob("*"):
            if file.is_file():
                file.write_text(file.read_text().replace("crun", "runsc"))
    node = copy / "node.yml"
    node.write_text(node.read_text().replace(f"hostname: {recorded.name}", f"hostname: {host}"))
    return tmp_path / host


@pytest.mark.parametrize("mode, fail_by_pending", [("report", False), ("fail", True)])
def test_four_combinations_of_pending_and_loaded_in_check_mode_with_serial_1(tmp_path, mode, fail_by_pending):
    """The host that fails comes last: with serial 1 it ends the play."""
    last = ["neither"] if not fail_by_pending else ["pending"]
    order = [name for name in ("loaded", "both", "pending") if name not in last] + last
    run = four_combinations(tmp_path, order, "-e", f"runtime_gate_pending={mode}")
    names = {host.partition("-")[2]: counts["failed"] for host, counts in run.recap.items()}
    assert names == {name: int(name in last) for name in order}
    if fail_by_pending:
        (tmp_path / "again").mkdir()
        rest = four_combinations(tmp_path / "again", ["neither"], "-e", "runtime_gate_pending=fail")
        assert [counts["failed"] for counts in rest.recap.values()] == [1]


def test_gate_kept_from_some_hosts_by_a_condition_still_reports_the_others(tmp_path):
    report = tmp_path / "report.json"
    roles = [{"role": "kubenode.runtime_gate.gate", "when": "inventory_hostname != 'debian-1'"}]
    run = playbook(play(tmp_path, roles=roles), *INVENTORY, "-e", f"runtime_gate_report_path={report}")
    assert failed(run) == BROKEN and sorted(table_rows(run.text)) == sorted(ALL - {"debian-1"})
    assert report_of(report)["not_judged"]["hosts"] == ["debian-1"]


def test_a_play_may_pass_through_the_gate_twice(tmp_path):
    roles = [{"role": "kubenode.runtime_gate.gate"}] * 2
    run = playbook(play(tmp_path, roles=roles), *INVENTORY, "--limit", ":".join(HEALTHY))
    assert run.status == 0 and sorted(table_rows(run.text)) == sorted([*HEALTHY, *HEALTHY])


@pytest.mark.parametrize(
    "variables, words",
    [
        ({"runtime_gate_manifests": ["/nowhere"]}, "/nowhere does not exist"),
        ({"runtime_gate_policy": {"clases": []}}, "unknown key 'clases'; did you mean"),
        ({"runtime_gate_policy": {"node_selector": {"runc": "gpu"}}}, "not a mapping of labels"),
        ({"runtime_gate_report_path": "/nowhere/report.json"}, "cannot be written"),
        ({"runtime_gate_pending": "maybe"}, "must be one of"),
        ({"runtime_gate_captures": "/nowhere"}, "/nowhere"),
        ({"runtime_gate_manifests": [], "runtime_gate_cluster": {"kubeconfig": "/nowhere"}}, "no way to the API server"),
    ],
)
def test_bad_input_is_one_clear_error_and_nothing_passes(variables, words):
    run = playbook(AUDIT, *INVENTORY, "-e", json.dumps(variables))
    assert run.status == 2 and failed(run) and words in " ".join(run.text.split())
    assert not [host for host, counts in run.recap.items() if counts["failed"] == 0 and "report_path" not in str(variables)]


@pytest.mark.parametrize(
    "variables, words",
    [
        ({"runtime_gate_report_path": ["/nowhere/report.json"]}, "/nowhere/report.json cannot be written"),
        ({"runtime_gate_previous_report": "/nowhere/old.json"}, "/nowhere/old.json cannot be read as a report"),
    ],
)
def test_a_report_that_cannot_be_is_told_once_and_before_a_host_is_read(variables, words):
    run = playbook(AUDIT, *INVENTORY, "-e", json.dumps(variables))
    (line,) = (line for line in run.text.splitlines() if line.startswith("fatal: "))
    assert run.status == 2 and words in line and "verdicts" not in line
    assert "Read what the container runtime has loaded" not in run.text and not table_rows(run.text)


def test_a_report_that_cannot_be_written_any_more_is_no_fault_of_the_host_that_closed_the_run(tmp_path):
    """The directory goes while the hosts are judged."""
    folder = tmp_path / "reports"
    folder.mkdir()
    options = ("-e", f"runtime_gate_report_path={folder}/r.json", "--limit", "debian-1")
    assert playbook(play(tmp_path), *INVENTORY, *options).status == 0
    wrapped = tmp_path / "ansible_plugins"
    wrapped.mkdir()
    (wrapped / "lose.py").write_text(_LOSE % str(folder))
    lose = {"ANSIBLE_CALLBACK_PLUGINS": str(wrapped), "ANSIBLE_CALLBACKS_ENABLED": "lose"}
    run = playbook(play(tmp_path), *INVENTORY, *options, **lose)
    (line,) = (line for line in run.text.splitlines() if line.startswith("fatal: [debian-1]"))
    assert run.status == 2 and table_rows(run.text) == ["debian-1"]
    assert "This host passes, and is only the one that closed the run" in line and "cannot be written" in line and "cluster_key" not in line


#: A callback that takes a directory away when the host has been read.
_LOSE = """
import shutil
from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_NAME = "lose"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_task_start(self, task, is_conditional):
        if "Judge the node" in task.get_name():
            shutil.rmtree(%r)
"""


def test_a_mistyped_variable_is_named_once():
    run = playbook(AUDIT, *INVENTORY, "--limit", "debian-1,flatcar-1", "-e", "runtime_gate_polcy={}")
    text = " ".join(run.text.split())
    assert run.status == 0 and text.count("variable runtime_gate_polcy") == 1 and "did you mean runtime_gate_policy?" in text


def test_a_rollout_tests_what_the_gate_needs_before_a_node_is_touched():
    for variables, words in (
        ({"runtime_gate_policy": {"clases": []}}, "unknown key 'clases'; did you mean"),
        ({"runtime_gate_policy": {"classes": ["none"]}}, "RuntimeClass none, which does not exist"),
        ({"runtime_gate_report_path": "/nowhere/report.json"}, "cannot be written"),
        ({"runtime_gate_previous_report": "/nowhere/report.json"}, "cannot be read as a report"),
        ({"runtime_gate_manifests": [], "runtime_gate_cluster": {"kubeconfig": "/nowhere"}}, "no way to the API server"),
    ):
        given = {"runtime_gate_handlers": {"crun": {"preset": "crun"}}, **variables}
        run = playbook("kubenode.runtime_gate.site", *INVENTORY, "--limit", "debian-1", "-e", json.dumps(given))
        assert run.status == 2 and words in " ".join(run.text.split()), run.text
        assert "Render, prove, apply" not in run.text and "Refuse to write into recordings" not in run.text


def test_a_rollout_tests_it_before_a_class_is_touched():
    given = {"runtime_gate_runtimeclasses": True, "runtime_gate_handlers": {"crun": {"preset": "crun"}}, "runtime_gate_policy": {"clases": []}}
    run = playbook("kubenode.runtime_gate.site", *INVENTORY, "-e", json.dumps(given))
    fatal = [line for line in run.text.splitlines() if line.startswith("fatal: ")]
    assert run.status == 2 and len(fatal) == 1 and "unknown key 'clases'" in fatal[0]
    assert "Bring the RuntimeClass objects" not in run.text and "PLAY [Bring the declared handlers" not in run.text


def test_a_message_names_what_its_reader_can_set(tmp_path):
    """The role's variable, or the module's option in a task of one's own. Neither declaration gets as far as the host."""
    wrong = {"handlers": {"crun": {"preset": "crum"}}}
    call = {"name": "Call", "kubenode.runtime_gate.runtime_handlers": wrong}
    role = {"name": "Role", "ansible.builtin.include_role": {"name": "kubenode.runtime_gate.containerd"}}
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "runtime_gate_become": False}
    variables = {**local, "runtime_gate_handlers": wrong["handlers"]}
    for task, words in ((call, '"handlers.crun.preset: there is no preset'), (role, '"runtime_gate_handlers.crun.preset: there is no preset')):
        path = write_yaml(tmp_path / "play.yml", [{"name": "P", "hosts": "h1", "gather_facts": False, "vars": variables, "tasks": [task]}])
        run = playbook(path, "-i", "h1,")
        assert run.status == 2 and words in run.text, run.text


def test_a_rollout_says_where_nothing_is_declared():
    run = playbook("kubenode.runtime_gate.site", *INVENTORY, "--limit", "debian-1", "-e", "runtime_gate_handler={}")
    text = " ".join(run.text.split())
    assert run.status == 0 and text.count("Nothing is declared for this host") == 1
    assert "did you mean runtime_gate_handlers?" in text and table_rows(run.text) == ["debian-1"]


def test_a_misspelled_connection_option_does_not_lead_to_another_cluster():
    options = {"runtime_gate_manifests": [], "runtime_gate_cluster": {"kubeconfg": "/nowhere"}}
    run = playbook(AUDIT, *INVENTORY, "-e", json.dumps(options))
    assert run.status == 2 and failed(run) == ALL and "kubeconfg" in run.text


def test_credentials_of_the_cluster_are_printed_nowhere(tmp_path):
    """At the highest verbosity, when it works and when it does not."""
    for manifests in ([], [str(EXAMPLE / "manifests")]):
        options = {"runtime_gate_manifests": manifests, "runtime_gate_report_path": str(tmp_path / "report.json")}
        options["runtime_gate_cluster"] = {"host": "https://127.0.0.1:1", "api_key": "planted-token", "password": "planted-password"}
        path = write_yaml(tmp_path / "options.yml", options)
        run = playbook(AUDIT, *INVENTORY, "--limit", "debian-1", "-e", f"@{path}", "-vvvvv")
        assert (run.status == 0) is bool(manifests)
        assert "planted-" not in run.text and "planted-" not in (tmp_path / "report.json").read_text()


def test_two_hosts_that_claim_one_node_do_not_both_pass(tmp_path):
    shared = {"runtime_gate_captures": str(EXAMPLE / "captures"), "runtime_gate_manifests": [str(EXAMPLE / "manifests")]}
    hosts = {"flatcar-1": {"runtime_gate_node_name": "debian-1"}, "debian-1": None}
    inventory = write_yaml(tmp_path / "hosts.yml", {"all": {"vars": shared, "hosts": hosts}})
    run = playbook(AUDIT, "-i", inventory)
    assert len(failed(run)) == 1 and "both seem to be Node debian-1" in run.text


def test_slices_of_a_job_write_reports_of_their_own(tmp_path):
    for job in (41, 42):
        playbook(AUDIT, *INVENTORY, "--limit", "debian-1", "-e", json.dumps({"awx_job_id": job, "runtime_gate_report_path": str(tmp_path / "r.json")}))
    assert sorted(path.name for path in tmp_path.glob("*.json")) == ["r-41.json", "r-42.json"]


def test_set_stats_carry_the_answer_also_when_hosts_fail():
    run = playbook(AUDIT, *INVENTORY, ANSIBLE_SHOW_CUSTOM_STATS="1")
    stats = "".join(run.text.partition("CUSTOM STATS")[2].split())
    assert '"failing_nodes":["docker-1","eks-1","kubespray-1"]' in stats


def test_a_callback_that_prints_json_owns_stdout():
    done = subprocess.run(
        [PLAYBOOK, AUDIT, *INVENTORY],
        env=environment(ANSIBLE_STDOUT_CALLBACK="ansible.posix.json"),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert json.loads(done.stdout)["stats"]["eks-1"]["failures"] == 1 and "hosts judged" in done.stderr


def test_site_yml_gates_in_a_checkout_and_installed(tmp_path):
    for name in ("site.yml", "kubenode.runtime_gate.site"):
        # Nothing is declared, so it is the gate alone; by default it would end at the first host that fails.
        run = playbook(name, *INVENTORY, "-e", "runtime_gate_serial=100%", "-e", "runtime_gate_max_fail_percentage=100")
        assert run.status == 2 and failed(run) == BROKEN
