"""The list of dependencies against the files that install them."""

from __future__ import annotations

import ast
import re
import sys

import pytest
import yaml

from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n?)*)", PAGE, re.MULTILINE))
_NAME = re.compile(r"^([A-Za-z0-9][\w.-]*)\s*(?:[<>=!~].*)?(?:#.*)?$")


def _plain(name: str) -> str:
    """PEP 503, but for dots, which are part of the name of a collection."""
    return name.lower().replace("_", "-")


def required(path: str) -> set[str]:
    """The packages that a file of requirements names."""
    found = {_NAME.match(line.strip()) for line in (ROOT / path).read_text(encoding="utf-8").splitlines() if line.strip() and not line.startswith("#")}
    assert found and None not in found, path
    return {_plain(match[1]) for match in found if match}


def listed(section: str) -> set[str]:
    return {_plain(name) for name in re.findall(r"^\| `([\w.-]+)`", SECTIONS[section], re.MULTILINE)}


@pytest.mark.parametrize(
    ("section", "path"), [("Development", "tests/requirements.txt"), ("Documentation and release", "tests/release/requirements.txt")]
)
def test_the_page_lists_what_is_installed(section: str, path: str) -> None:
    assert listed(section) == required(path)


def test_the_controllers_are_those_of_galaxy_and_of_the_execution_environment() -> None:
    collections = set(yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["dependencies"])
    assert listed("Controller") == collections | required("meta/ee-requirements.txt")


@pytest.mark.parametrize("folder", ["tests", "tests/release"])
def test_every_requirement_is_pinned(folder: str) -> None:
    pinned = {_plain(line.partition("==")[0]) for line in (ROOT / folder / "constraints.txt").read_text(encoding="utf-8").splitlines() if "==" in line}
    assert required(f"{folder}/requirements.txt") <= pinned


def test_what_the_plugins_import_is_listed() -> None:
    """Of other people's packages, those that no ansible-core brings."""
    brought = {"ansible", "ansible_collections", "yaml", "jinja2"}
    # kubernetes.core's client, and what that client brings.
    cluster = {"kubernetes", "urllib3"}
    imported: set[str] = set()
    for path in (ROOT / "plugins").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported.update(name.name.partition(".")[0] for name in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(str(node.module).partition(".")[0])
    assert imported - brought - cluster - set(sys.stdlib_module_names) == {"tomlkit"}
