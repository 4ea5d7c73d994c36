"""Links: those of the pages are made to hold in the site, and a built site is checked for those that do not."""

from __future__ import annotations

import pytest

from tests.docs import links
from tests.docs.pages import ROOT, Page, pages
from tests.docs.site import BrokenLinkError, repository, site_names, with_site_links

NAMES = site_names()


@pytest.mark.parametrize(
    ("source", "text", "wanted"),
    [
        ("docs/rollout.md", "[x](publish.md#when-it-fails)", "[x](publish.md#when-it-fails)"),
        ("docs/jobs/gpu.md", "[x](../faults/07-dropin-newer-than-root.md)", "[x](../faults/07-dropin-newer-than-root.md)"),
        ("docs/index.md", "[x](../README.md)", "[x](readme.md)"),
        ("README.md", "see `docs/faults.md`.", "see [`docs/faults.md`](faults.md)."),
        ("docs/jobs/gpu.md", "`docs/admission.md`", "[`docs/admission.md`](../admission.md)"),
        ("docs/index.md", "[x](../galaxy.yml)", f"[x]({repository()}/blob/main/galaxy.yml)"),
        ("docs/report.md", "[x](report.schema.json)", "[x](path:report.schema.json)"),
        ("docs/index.md", "[x](https://kubernetes.io/docs)", "[x](https://kubernetes.io/docs)"),
        ("docs/index.md", "```\n[x](none.md)\n```", "```\n[x](none.md)\n```"),
        ("docs/index.md", "    [x](none.md)", "    [x](none.md)"),
    ],
)
def test_a_link_holds_in_the_site(source: str, text: str, wanted: str) -> None:
    assert with_site_links(text, source, NAMES) == wanted


@pytest.mark.parametrize("text", ["[x](none.md)", "see `docs/none.md`", "[x](../../etc/passwd)"])
def test_a_link_to_no_file_is_an_error(text: str) -> None:
    with pytest.raises(BrokenLinkError, match="leads to no file"):
        with_site_links(text, "docs/index.md", NAMES)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_the_links_of_the_page_hold_in_the_repository_too(page: Page) -> None:
    for link in page.links:
        path = link.partition("#")[0]
        assert not path or ":" in path or (page.path.parent / path).exists(), link


def test_index_names_every_page() -> None:
    named = {link.removeprefix("../") for link in Page(ROOT / "docs/index.md").links}
    own = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "faults"}
    assert own - named == {"index.md"} and {"README.md", "CONTRIBUTING.md", "SECURITY.md"} <= named


def test_a_built_site_is_checked(tmp_path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "index.html").write_text('<a href="sub/a.html#here">1</a> <a href="sub/b.html">2</a> <img src="x.png"> <a href="#me" id="me">3</a>')
    (tmp_path / "sub/a.html").write_text('<p id="here"><a href="../index.html#nowhere">4</a> <a href="https://example.com/x">5</a> <a href="mailto:a@b">6</a>')
    checked = links.check(tmp_path)
    assert checked.broken == ["index.html: sub/b.html", "index.html: x.png", "sub/a.html: ../index.html#nowhere"]
    assert checked.external == ["https://example.com/x"] and checked.internal == 2
