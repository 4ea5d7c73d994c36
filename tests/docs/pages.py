# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hand-written pages: which there are, and what stands in them (blocks of commands, links, names of variables and files)."""

from __future__ import annotations

import pathlib
import re
import typing as t

from markdown_it import MarkdownIt

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Top-level directories whose paths a page may name in code.
_PATH = re.compile(r"^(?:docs|examples|roles|playbooks|plugins|tests|changelogs|meta|extensions)/[\w./*-]*$")
_VARIABLE = re.compile(r"\bruntime_gate_[a-z][a-z_]*(?!\*)\b")


class Block(t.NamedTuple):
    """A block of code: the language behind its fence ("" where none), its text, the line of the page."""

    language: str
    text: str
    line: int


class Page:
    """One Markdown page of this repository."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name
        self.text = path.read_text(encoding="utf-8")
        self.blocks: list[Block] = []
        self.links: list[str] = []
        self.code: list[str] = []
        for token in MarkdownIt("commonmark").enable("table").parse(self.text):
            if token.type in ("fence", "code_block"):
                self.blocks.append(Block(token.info.strip(), token.content, (token.map or [0])[0] + 1))
            for child in token.children or ():
                if child.type == "link_open":
                    self.links.append(str(child.attrGet("href")))
                elif child.type == "code_inline":
                    self.code.append(child.content)

    def commands(self) -> list[tuple[str, int]]:
        """(command, line): each line of a block of shell, and the lines of other blocks that start one of our programs."""
        found = []
        for block in self.blocks:
            if block.language not in ("", "sh"):
                continue
            lines = block.text.replace("\\\n", " ").splitlines()
            for offset, line in enumerate(lines):
                command = re.sub(r"^\$ ", "", line.strip())
                if block.language == "sh" and command and not command.startswith("#"):
                    found.append((command, block.line + offset))
                elif re.match(r"(?:\S*/)?(?:make|ansible[\w-]*) \S", command):
                    found.append((command, block.line + offset))
        return found

    def variables(self) -> set[str]:
        """Names of this collection's variables in code of any kind."""
        return {name for text in [*self.code, *(block.text for block in self.blocks)] for name in _VARIABLE.findall(text)}

    def paths(self) -> list[str]:
        """Files and directories of this repository that are named in inline code."""
        return [text for text in self.code if _PATH.match(text)]


def pages() -> list[Page]:
    """Every page that is written for users and contributors."""
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    rest = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "roles").glob("*/README.md"), *(ROOT / "examples").rglob("README.md")]
    return [Page(path) for path in [*top, *sorted(rest)] if path.is_file()]


def known_variables() -> set[str]:
    """Names that roles and playbooks of this collection have: options, results, and what the playbooks take with -e."""
    found: set[str] = set()
    for pattern in ("roles/*/meta/argument_specs.yml", "roles/*/defaults/*.yml", "roles/*/tasks/*.yml", "playbooks/**/*.yml"):
        for path in ROOT.glob(pattern):
            found.update(_VARIABLE.findall(path.read_text(encoding="utf-8")))
    return found
