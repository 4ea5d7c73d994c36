# -*- coding: utf-8 -*-
# Copyright (c) 2026, the kubenode.runtime_gate contributors
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as JUnit XML, for the test tab of a pipeline: a suite a node, a case a class.

The format is the one that Jenkins, GitLab and GitHub's actions read (testsuites, testsuite, testcase with failure, error or skipped).
``not_targeted`` and ``excluded_by_taint`` are no cases: nothing was asked of the node. What could not be determined is an ``error``.
"""

from __future__ import annotations

import re
import typing as t
from xml.etree import ElementTree

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.reports.words import Data, asked_of, name_of, runtime_of

#: Characters that XML 1.0 cannot hold, not even escaped (https://www.w3.org/TR/xml/#charsets).
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(report: Data) -> str:
    """The text of the file. :param report: what gate_record.make_report returns."""
    root = ElementTree.Element("testsuites", name="kubenode.runtime_gate")
    for host in report["hosts"]:
        _suite(root, host, report["generated_at"])
    for name in report["not_judged"]["hosts"]:
        suite = ElementTree.SubElement(root, "testsuite", name=_text(name))
        _case(suite, name, "judged", "error", "the host was not judged", "")
    for suite in root:
        _count(suite)
    _count(root)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(root: ElementTree.Element, host: Data, generated_at: str) -> None:
    suite = ElementTree.SubElement(root, "testsuite", name=_text(name_of(host)), timestamp=generated_at.rstrip("Z"), hostname=_text(host["host"]))
    properties = ElementTree.SubElement(suite, "properties")
    ElementTree.SubElement(properties, "property", name="runtime", value=_text(runtime_of(host)))
    for column, word, why in asked_of(host):
        kind = None if not why else ("error" if word == "unknown" else "failure") if why.fails else None if word == "ok" else "skipped"
        _case(suite, name_of(host), column, kind, "%s: %s" % (word, why.reason) if why else "", why.fix if why else "")
    if host["error"]:
        _case(suite, name_of(host), "judged", "error", host["error"], "")


def _case(suite: ElementTree.Element, node: str, name: str, kind: t.Optional[str], message: str, fix: str) -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=_text(node), name=_text(name))
    if kind:
        told = ElementTree.SubElement(case, kind, message=_text(message))
        told.text = _text("%s\n%s" % (message, fix) if fix else message)


def _count(element: ElementTree.Element) -> None:
    """The counts that readers show without counting themselves."""
    for attribute, path in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(attribute, str(sum(1 for _found in element.iter(path))))


def _text(value: t.Any) -> str:
    return _NOT_XML.sub("\ufffd", str(value))


__all__ = ("junit",)
