# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of the faults: what a person wrote about each, and what the core's table, its rules and the recordings say.

The names are the core's (``faults/catalogue.py``), what happens and where is the table of docs/faults.md, the text is
docs/faults/NUMBER-NAME.md. A fault without its row, its page or a section of it ends the generation.
"""

from __future__ import annotations

import pathlib
import re
import typing as t

import yaml

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.catalogue import NAMES
from tests.docs import fault_examples
from tests.docs.fault_examples import Example, Told

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
CASES = DOCS.parent / "tests/cases"
SECTIONS = ("Symptom", "Cause", "How we know", "Fix")
_ROW = re.compile(r"^\| (\d+) \| (\S+) \| \[(.+?)\]\((\S+?)\) \| (.+?) \|$", re.MULTILINE)
#: What a line's name means to a reader.
_LINE_NAMES = {"2.3.4": "2.3.0 to 2.3.4", "2.3": "2.3.5 and later 2.3"}


class FaultError(Exception):
    """A fault has no row, no page, or no text in a section; the message says which and where."""


class Row(t.NamedTuple):
    """A line of the table in docs/faults.md."""

    name: str
    what: str
    page: str
    lines: str


def page_name(number: int, name: str) -> str:
    return f"{number:02d}-{name}.md"


def table(docs: pathlib.Path = DOCS, names: t.Mapping[int, str] = NAMES) -> dict[int, Row]:
    """The rows of docs/faults.md by number. Raises FaultError where they are not the core's."""
    rows = {int(found[0]): Row(*found[1:]) for found in _ROW.findall((docs / "faults.md").read_text(encoding="utf-8"))}
    for number, name in sorted(names.items()):
        row = rows.get(number)
        if row is None or row.name != name:
            raise FaultError(f"docs/faults.md has no row | {number} | {name} | [what happens](faults/{page_name(number, name)}) | lines |")
        if row.page != f"faults/{page_name(number, name)}":
            raise FaultError(f"docs/faults.md, fault {number}: the link must be faults/{page_name(number, name)}, not {row.page}")
    unknown = sorted(set(rows) - set(names))
    if unknown:
        raise FaultError(f"docs/faults.md has rows of faults that the core does not know: {unknown}")
    return rows


def texts(docs: pathlib.Path = DOCS, names: t.Mapping[int, str] = NAMES) -> dict[int, str]:
    """The hand-written pages by number. Raises FaultError where one is missing, empty in a section, or nobody's."""
    wanted = {page_name(number, name): number for number, name in names.items()}
    there = {path.name: path for path in (docs / "faults").glob("*.md")}
    for name in sorted(set(wanted) - set(there)):
        raise FaultError(f"fault {wanted[name]} has no page: write docs/faults/{name} with the sections {', '.join(SECTIONS)}")
    for name in sorted(set(there) - set(wanted)):
        raise FaultError(f"docs/faults/{name} is the page of no fault that the core knows")
    return {number: _checked(there[name]) for name, number in wanted.items()}


def _checked(path: pathlib.Path) -> str:
    text = path.read_text(encoding="utf-8")
    if not re.match(r"# \S", text):
        raise FaultError(f"docs/faults/{path.name} does not begin with a title")
    found = {title: body.strip() for title, body in re.findall(r"^## (.+)\n((?:(?!^## ).*\n?)*)", text, re.MULTILINE)}
    if tuple(found) != SECTIONS:
        raise FaultError(f"docs/faults/{path.name} has the sections {', '.join(found) or 'none'}; it must have {', '.join(SECTIONS)}")
    for title, body in found.items():
        if not body:
            raise FaultError(f"docs/faults/{path.name}: the section {title} is empty")
    return text


def render(docs: pathlib.Path = DOCS, names: t.Mapping[int, str] = NAMES) -> dict[str, str]:
    """Every page as the site shows it: file name → Markdown. Raises FaultError, and LookupError where an example is none."""
    rows, written = table(docs, names), texts(docs, names)
    by_number: dict[int, list[Example]] = {}
    for example in fault_examples.examples():
        by_number.setdefault(example.id, []).append(example)
    cases = _cases()
    pages = {}
    for number, name in sorted(names.items()):
        title, _newline, body = written[number].partition("\n")
        parts = [f"# {number}. {title[2:]}", "", *_head(number, rows[number], cases.get(number, [])), body.rstrip(), ""]
        parts += _example_section(number, by_number.get(number, []))
        pages[page_name(number, name)] = "\n".join(parts).rstrip() + "\n"
    return pages


def _head(number: int, row: Row, cases: t.Sequence[str]) -> list[str]:
    links = [f"[{case}](../../tests/cases/{case}/case.md)" for case in cases]
    return [
        "| fault | release lines | recorded in |",
        "|---|---|---|",
        f"| {number} `{row.name}` | {row.lines} | {', '.join(links) or '-'} |",
        "",
        f"In one line: {row.what}. [All faults](../faults.md)",
    ]


def _cases() -> dict[int, list[str]]:
    """Number → the recorded cases whose known answer has it."""
    found: dict[int, list[str]] = {}
    for answers in sorted(CASES.glob("*/expected.yml")):
        captures = (yaml.safe_load(answers.read_text(encoding="utf-8")) or {}).get("captures") or {}
        for number in sorted({number for wanted in captures.values() for number in wanted.get("faults") or ()}):
            found.setdefault(number, []).append(answers.parent.name)
    return found


def _example_section(number: int, found: t.Sequence[Example]) -> list[str]:
    if not found:
        if number not in fault_examples.WITHOUT_EXAMPLE:
            raise FaultError(f"fault {number} has no example: add one to the catalogue (tests/catalogue) or to tests/docs/fault_examples.py")
        return ["## In the gate's words", "", fault_examples.WITHOUT_EXAMPLE[number]]
    parts = ["## In the gate's words", ""]
    for index, example in enumerate(found):
        parts += [f"### Example {index + 1}" if len(found) > 1 else "### An example", "", *_files(example)]
        for told in fault_examples.told(example):
            parts += _words(example, told)
    return parts


def _files(example: Example) -> list[str]:
    parts: list[str] = []
    for heading, files in (("", example.files), ("written after the daemon's start", example.edited)):
        for path, text in files.items():
            shown = text.replace("\ufeff", "<byte order mark>").rstrip("\n")
            parts += [f"`{path}`{', ' + heading if heading else ''}:", "", "```toml" if "\ufeff" not in text else "```text", shown, "```", ""]
    command = str(example.node.get("cmdline", ""))
    if " " in command:
        parts += [f"The daemon is started as `{command}`.", ""]
    missing = [path for path, there in (example.node.get("binaries") or {}).items() if not there]
    if missing:
        parts += [f"Not on the node: {', '.join(f'`{path}`' for path in missing)}.", ""]
    links = example.node.get("links") or {}
    parts += [f"`{path}` is a link to `{target}`, which does not exist.\n" for path, target in links.items()]
    return parts


def _words(example: Example, told: Told) -> list[str]:
    engine = "containerd" if example.engine == "containerd" else "CRI-O"
    lines = ", ".join(_LINE_NAMES.get(line, line) for line in told.lines)
    return [
        f"**{engine} {lines}** ({told.severity})",
        "",
        "```text",
        told.message,
        f"Fix: {told.fix}",
        "```",
        "",
    ]
