"""Where a report goes: the ending of a file chooses the format, and any other name is JSON, as it was before there were formats."""

from __future__ import annotations

import json

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.errors import RuntimeGateError
from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.report_output import check_paths, keep
from tests.unit.plugins.plugin_utils.reports.fleet_report import host, report


def _keep(tmp_path, *names, previous="", **variables):
    paths = [str(tmp_path / name) for name in names]
    return keep(report(host("a", {"runc": "missing"})), {"report_path": paths, "previous_report": previous}, variables)["data"]["runtime_gate"]


def test_the_ending_chooses_the_format(tmp_path):
    said = _keep(tmp_path, "r.json", "r.html", "R.XML", "r.prom", "tmp.3ACG", "none")
    assert said["report_path"] == str(tmp_path / "r.json")
    starts = {path.name: path.read_text()[:6] for path in tmp_path.iterdir()}
    assert starts == {"r.json": '{\n "bl', "r.html": "<!DOCT", "R.XML": "<?xml ", "r.prom": "# HELP", "tmp.3ACG": '{\n "bl', "none": '{\n "bl'}


def test_the_number_of_a_job_goes_into_each_name(tmp_path):
    _keep(tmp_path, "r.json", "r.html", awx_job_id=7)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r-7.html", "r-7.json"]


def test_an_earlier_report_may_be_the_file_that_is_written(tmp_path):
    path = str(tmp_path / "r.json")
    _keep(tmp_path, "r.json")
    assert _keep(tmp_path, "r.json", previous=path)["changes"] == 0
    assert json.loads((tmp_path / "r.json").read_text())["drift"]["changes"] == []


def _check(*paths, previous="", **variables):
    check_paths({"report_path": [str(path) for path in paths], "previous_report": str(previous)}, variables)


def test_where_a_report_goes_is_tried_before_there_is_one(tmp_path):
    _check(tmp_path / "r.json", tmp_path / "r.html")
    assert not list(tmp_path.iterdir())
    (tmp_path / "r-7.json").mkdir()
    _check(tmp_path / "r.json")
    for paths, variables, words in (
        ([tmp_path / "none" / "r.json"], {}, "none/r.json cannot be written: No such file"),
        ([tmp_path], {}, "cannot be written: Is a directory"),
        ([tmp_path / "r.json"], {"awx_job_id": 7}, "r-7.json cannot be written: Is a directory"),
    ):
        with pytest.raises(RuntimeGateError, match="runtime_gate_report_path: .*" + words):
            _check(*paths, **variables)


def test_an_earlier_report_is_read_before_there_is_a_new_one(tmp_path):
    _keep(tmp_path, "r.json")
    _check(previous=tmp_path / "r.json")
    with pytest.raises(RuntimeGateError, match="runtime_gate_previous_report: .* cannot be read as a report"):
        _check(previous=tmp_path / "missing.json")


def test_nothing_is_written_where_the_earlier_report_cannot_be_read(tmp_path):
    with pytest.raises(RuntimeGateError, match="runtime_gate_previous_report"):
        _keep(tmp_path, "r.json", previous=str(tmp_path / "missing.json"))
    assert not list(tmp_path.iterdir())
