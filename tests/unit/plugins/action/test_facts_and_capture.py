# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two action plugins through the real ansible on this machine: what they return, and what they refuse.

Every host of a run is this machine with other arguments, since a run of ansible costs more than all that is tested.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import typing as t

_ANSIBLE = pathlib.Path(sys.executable).parent / "ansible"
_CASES = pathlib.Path(__file__).resolve().parents[3] / "cases"
_RECORDED = _CASES / "005-dropin-replaces-cri-section/captures/1.7"
_RESULT = re.compile(r"^(\S+) \| (SUCCESS|CHANGED|FAILED!) => ", re.MULTILINE)

Result = t.Dict[str, t.Any]


def _ansible(tmp_path: pathlib.Path, module: str, hosts: t.Mapping[str, Result], *flags: str) -> t.Dict[str, Result]:
    """Run a module once with the arguments of each host; host -> result."""
    inventory: Result = {"all": {"hosts": {}, "vars": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}}}
    options = sorted({name for arguments in hosts.values() for name in arguments} - {"ansible_python_interpreter"})
    inventory["all"]["hosts"] = {host: {"the_" + name if name in options else name: value for name, value in arguments.items()}
                                 for host, arguments in hosts.items()}  # fmt: skip
    (tmp_path / "hosts.json").write_text(json.dumps(inventory))
    environment = {
        **os.environ,
        "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.minimal",
        "ANSIBLE_LOCAL_TEMP": str(tmp_path / "local"),
        "ANSIBLE_REMOTE_TEMP": str(tmp_path / "remote"),
        "ANSIBLE_NOCOLOR": "1",
    }
    template = json.dumps({name: "{{ the_%s | default(omit) }}" % name for name in options})
    command = [str(_ANSIBLE), "-i", "hosts.json", "all", "-m", "kubenode.runtime_gate." + module, "-a", template, *flags]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    results = {}
    for match in _RESULT.finditer(done.stdout):
        result = json.JSONDecoder().raw_decode(done.stdout, match.end())[0]
        results[match.group(1)] = dict(result, failed=True) if match.group(2) == "FAILED!" else result
    assert set(results) == set(hosts), done.stdout + done.stderr
    return results


# host -> arguments, words of the failure
_REFUSED: t.Dict[str, t.Tuple[Result, str]] = {
    "empty_dump": ({"dump": ""}, "empty"),
    "no_toml": ({"dump": "a = ["}, "TOML"),
    "both": ({"dump": "a = 1", "capture": "x"}, "mutually exclusive"),
    "no_directory": ({"capture": "recordings/none"}, "kubenode.runtime_gate.capture --limit none -e runtime_gate_capture_dest="),
    "no_number": ({"timeout": "soon"}, "timeout"),
    "unknown_option": ({"unknown": 1}, "unknown"),
    "no_python": ({"ansible_python_interpreter": "/nowhere/python3"}, "runtimeclass_crosscheck"),
}


def test_facts(tmp_path: pathlib.Path) -> None:
    hosts = {host: arguments for host, (arguments, _words) in _REFUSED.items()}
    hosts["recording"] = {"capture": str(_RECORDED)}
    hosts["dump"] = {"dump": (_RECORDED / "config-dump.toml").read_text()}
    hosts["machine"] = {"timeout": 2}
    results = _ansible(tmp_path, "containerd_runtime_facts", hosts, "--check")
    for host, (_arguments, words) in _REFUSED.items():
        assert results[host]["failed"] is True and words in results[host]["msg"], results[host]
        assert "ansible_facts" not in results[host]
    facts = {host: results[host]["ansible_facts"]["containerd_runtime"] for host in ("recording", "dump", "machine")}
    assert sorted(results["recording"]) == ["ansible_facts", "changed"] and results["recording"]["changed"] is False
    assert list(results["machine"]["ansible_facts"]) == ["containerd_runtime"]
    assert facts["recording"]["version"].startswith("1.7")
    assert facts["dump"]["explicit"] is True and facts["dump"]["cri_ready"] is None
    assert facts["machine"]["engine"] == "containerd"


def test_facts_of_either_engine(tmp_path: pathlib.Path) -> None:
    recorded = _CASES / "060-crio-packaged-default/captures/1.36"
    hosts: t.Dict[str, Result] = {
        "crio": {"capture": str(recorded)},
        "containerd": {"capture": str(_RECORDED)},
        "dump": {"dump": (recorded / "config-dump.toml").read_text()},
    }
    results = _ansible(tmp_path, "crio_runtime_facts", hosts, "--check")
    assert list(results["crio"]["ansible_facts"]) == ["crio_runtime"] and results["crio"]["changed"] is False
    assert results["dump"]["ansible_facts"]["crio_runtime"]["default_handler"] == "crun"
    assert "judges CRI-O captures only" in results["containerd"]["msg"]
    del hosts["dump"]
    read = _ansible(tmp_path, "gate_facts", {**hosts, "machine": {"timeout": 2}})
    assert [list(read[host]["ansible_facts"]) for host in ("crio", "containerd")] == [["crio_runtime"], ["containerd_runtime"]]
    assert len(read["machine"]["ansible_facts"]) == 1


def test_captures(tmp_path: pathlib.Path) -> None:
    dest = tmp_path / "captures"
    one = {"n1": {"dest": str(dest), "timeout": 2}}
    assert _ansible(tmp_path, "runtime_capture", one, "--check")["n1"]["changed"] is True
    assert not dest.exists()
    (dest / "taken").mkdir(parents=True)
    (dest / "taken/mine").write_text("x")
    hosts = {"n1": one["n1"], "../escaped": one["n1"], "taken": one["n1"]}
    results = _ansible(tmp_path, "runtime_capture", hosts)
    assert (results["n1"]["changed"], results["n1"]["path"]) == (True, str(dest / "n1"))
    assert (dest / "n1/node.yml").exists()
    assert "cannot be the name of a directory" in results["../escaped"]["msg"] and not (tmp_path / "escaped").exists()
    assert "no capture is there" in results["taken"]["msg"] and os.listdir(dest / "taken") == ["mine"]
    assert _ansible(tmp_path, "runtime_capture", one)["n1"]["changed"] is False
