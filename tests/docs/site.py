# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Assembles the sources of the site: the pages of this repository with links that hold there, and the generated ones."""

from __future__ import annotations

import pathlib
import posixpath
import re
import shutil
import subprocess
import typing as t

import yaml

from tests.docs import faults
from tests.docs.pages import ROOT

#: Pages from outside of docs/, by their names in the repository, and what they are called in the site.
_OTHERS = {"README.md": "readme.md", "CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
#: Files of docs/ that are published as they are.
_AS_THEY_ARE = ("docs/report.schema.json",)
_LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^()\s]+)\)")
_CONTENTS = re.compile(r"^\.\. contents::\n(?:   :.*\n)+", re.MULTILINE)
_NAMED_PAGE = re.compile(r"(?<!\[)`(docs/[\w./-]+\.md)`")
COLLECTION = "kubenode.runtime_gate"
_ANSIBLE = "https://docs.ansible.com/ansible/latest"
#: Labels of Ansible's own documentation to which the generated reference refers: (title, address). Nothing is fetched for them.
_ELSEWHERE = {
    "action_plugins": ("Action plugins", f"{_ANSIBLE}/plugins/action.html"),
    "common_return_values": ("Return values that every module has", f"{_ANSIBLE}/reference_appendices/common_return_values.html"),
    "ansible_configuration_settings": ("Configuration settings of Ansible", f"{_ANSIBLE}/reference_appendices/config.html"),
    **{
        f"ansible_collections.{name}_module": (f"The module {name}", f"{_ANSIBLE}/collections/{name.replace('.', '/')}_module.html")
        for name in ("ansible.builtin.assert", "community.okd.k8s_auth", "kubernetes.core.k8s_drain")
    },
}


class BrokenLinkError(Exception):
    """A page links to a file that is not there; the message says which."""


def repository() -> str:
    """The address of the repository, as galaxy.yml has it."""
    return str(yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["repository"])


def version() -> str:
    return str(yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"])


def site_names() -> dict[str, str]:
    """Path in the repository → name in the site, of every page."""
    pages = {str(path.relative_to(ROOT)): str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    return {**pages, **_OTHERS}


def assemble(to: pathlib.Path) -> None:
    """Write the sources of the site. Raises BrokenLinkError, and what the pages of the faults raise."""
    shutil.rmtree(to, ignore_errors=True)
    names = site_names()
    written = {f"docs/faults/{name}": text for name, text in faults.render().items()}
    for source, name in names.items():
        text = written.get(source) or (ROOT / source).read_text(encoding="utf-8")
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(with_site_links(text, source, names), encoding="utf-8")
    for name in _AS_THEY_ARE:
        shutil.copy(ROOT / name, to / pathlib.PurePosixPath(name).name)
    _toctrees(to)
    shutil.copy(ROOT / "tests/docs/sphinx_conf.py", to / "conf.py")
    (to / "_static").mkdir()
    # What the gate says is prose, however long.
    (to / "_static/pages.css").write_text("div.highlight-text pre { white-space: pre-wrap; }\n", encoding="utf-8")


def with_site_links(text: str, source: str, names: t.Mapping[str, str]) -> str:
    """The page with links to other pages by their names in the site, and links to other files of the repository to their address.

    :param source: its path in the repository. :raises BrokenLinkError: a link leads to no file.
    """
    lines, fenced = [], False
    for line in text.split("\n"):
        fenced ^= line.startswith("```")
        if not fenced and not line.startswith(("    ", "```")):
            line = _LINK.sub(lambda found: f"{found[1]}({_target(found[2], source, names)})", line)
            line = _NAMED_PAGE.sub(lambda found: f"[`{found[1]}`]({_target('/' + found[1], source, names)})", line)
        lines.append(line)
    return "\n".join(lines)


def _target(link: str, source: str, names: t.Mapping[str, str]) -> str:
    if re.match(r"[a-z]+:", link) or link.startswith("#"):
        return link
    path, hash_, anchor = link.partition("#")
    wanted = posixpath.normpath(path[1:] if path.startswith("/") else posixpath.join(posixpath.dirname(source), path))
    if wanted in names:
        return posixpath.relpath(names[wanted], posixpath.dirname(names[source]) or ".") + hash_ + anchor
    if not (ROOT / wanted).exists():
        raise BrokenLinkError(f"{source}: the link {link} leads to no file")
    if wanted in _AS_THEY_ARE:
        return "path:" + posixpath.relpath(posixpath.basename(wanted), posixpath.dirname(names[source]) or ".")
    return f"{repository()}/blob/main/{wanted}{hash_}{anchor}"


def _toctrees(to: pathlib.Path) -> None:
    """The navigation: index.md's own headings and links, and the generated reference."""
    index = to / "index.md"
    text = index.read_text(encoding="utf-8")
    trees = []
    for heading, body in re.findall(r"^## (.+)\n((?:(?!^## ).*\n?)*)", text, re.MULTILINE):
        trees.append(_toctree(heading, [f"{label[1:-1]} <{target.removesuffix('.md')}>" for label, target in _LINK.findall(body)]))
    more = [("Modules, roles and filters", "collection/index.rst"), ("Release notes", "changelog.md")]
    trees.append(_toctree("", [f"{label} <{posixpath.splitext(target)[0]}>" for label, target in more]))
    index.write_text("\n".join([text.rstrip(), *(f"* [{label}]({target})" for label, target in more), "", *trees]), encoding="utf-8")
    for page in (to / "faults").glob("*.md"):
        # Reached from the table of faults: sixty-three more lines would bury everything else in the navigation.
        page.write_text("---\norphan: true\n---\n" + page.read_text(encoding="utf-8"), encoding="utf-8")


def _toctree(caption: str, entries: t.Sequence[str]) -> str:
    head = ["```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else [":maxdepth: 1"]), ""]
    return "\n".join([*head, *entries, "```", ""])


def reference(program: pathlib.Path, to: pathlib.Path, environment: t.Mapping[str, str]) -> None:
    """The pages of modules, roles and filters, by antsibull-docs. Raises RuntimeError with what it printed."""
    to.mkdir(parents=True, exist_ok=True)
    command = [str(program), "collection", "--use-current", "--squash-hierarchy", "--fail-on-error", "--dest-dir", str(to), COLLECTION]
    _run(command, environment)
    for page in to.glob("*.rst"):
        # The theme shows each page's contents at its side, and takes a second one for an error.
        page.write_text(_CONTENTS.sub("", page.read_text(encoding="utf-8")), encoding="utf-8")
    parts = [":orphan:\n\nOf Ansible itself\n=================\n"]
    for label, (title, address) in _ELSEWHERE.items():
        parts.append(f".. _{label}:\n\n{title}\n{'-' * len(title)}\n\n`{address} <{address}>`__\n")
    (to / "of-ansible-itself.rst").write_text("\n".join(parts), encoding="utf-8")


def build(program: pathlib.Path, source: pathlib.Path, to: pathlib.Path, environment: t.Mapping[str, str]) -> None:
    """The site, every warning an error. Raises RuntimeError with what Sphinx printed."""
    shutil.rmtree(to, ignore_errors=True)
    _run([str(program), "-b", "html", "-W", "--keep-going", "-n", "-q", str(source), str(to)], environment)


def _run(command: list[str], environment: t.Mapping[str, str]) -> None:
    done = subprocess.run(command, env=dict(environment), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name} ended with {done.returncode}:\n{done.stdout[-6000:]}")
