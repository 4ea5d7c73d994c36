# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The links of a built site: those within it must lead somewhere, the others are listed."""

from __future__ import annotations

import html.parser
import pathlib
import typing as t
import urllib.parse


class _Page(html.parser.HTMLParser):
    """What one page links to, and what can be linked to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(values[name] for name in ("id", "name") if name in values)
        for name in ("href", "src"):
            if values.get(name):
                self.links.append(values[name])


class Checked(t.NamedTuple):
    """:ivar broken: "page: link" of each that leads nowhere. :ivar external: addresses elsewhere, once each. :ivar internal: how many hold."""

    broken: list[str]
    external: list[str]
    internal: int


def check(site: pathlib.Path) -> Checked:
    """Every link of every page below the directory."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    broken, external, internal = [], set(), 0
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                if parts.scheme in ("http", "https"):
                    external.add(link)
                continue
            if _holds(path, parts, pages):
                internal += 1
            else:
                broken.append(f"{path.relative_to(site)}: {link}")
    return Checked(sorted(set(broken)), sorted(external), internal)


def _holds(path: pathlib.Path, parts: urllib.parse.SplitResult, pages: t.Mapping[pathlib.Path, _Page]) -> bool:
    target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return False
    anchor = urllib.parse.unquote(parts.fragment)
    return not anchor or target not in pages or anchor in pages[target].anchors
