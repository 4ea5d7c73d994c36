"""The pages of the faults: each number has one, whole, and a missing one ends the generation."""

from __future__ import annotations

import shutil

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.module_utils.core.faults.catalogue import NAMES
from tests.docs import fault_examples
from tests.docs.faults import DOCS, SECTIONS, FaultError, page_name, render, table, texts

PAGES = render()


@pytest.fixture
def copy(tmp_path):
    """A docs directory of one's own."""
    return shutil.copytree(DOCS, tmp_path / "docs")


def test_every_number_has_its_page() -> None:
    assert sorted(PAGES) == sorted(page_name(number, name) for number, name in NAMES.items()) and len(PAGES) >= 63


@pytest.mark.parametrize("number", sorted(NAMES))
def test_the_page_has_what_a_reader_needs(number: int) -> None:
    page = PAGES[page_name(number, NAMES[number])]
    for section in (*SECTIONS, "In the gate's words"):
        assert f"\n## {section}\n" in page
    row = table()[number]
    assert row.lines in page and row.what in page and page.startswith(f"# {number}. ")


def test_the_words_are_those_of_the_core_on_each_line() -> None:
    """Fault 7 is two things: a silent loss up to 2.2, a start that is refused up to 2.3.4."""
    page = PAGES["07-dropin-newer-than-root.md"]
    assert "**containerd 2.0, 2.1, 2.2** (error)" in page and "**containerd 2.3.0 to 2.3.4** (error)" in page
    assert "containerd does not start: /etc/containerd/conf.d/10-drop.toml" in page and "014-v3-dropin-under-v2-root" in page


def test_a_wrong_example_is_no_example() -> None:
    (example,) = [example for example in fault_examples.examples() if example.id == 5]
    with pytest.raises(LookupError, match="fault 5 is none on containerd 2.4"):
        fault_examples.told(example._replace(lines=("1.7", "2.4")))


def test_every_fault_has_an_example_or_a_reason() -> None:
    numbers = {example.id for example in fault_examples.examples()}
    assert numbers | set(fault_examples.WITHOUT_EXAMPLE) == set(NAMES) and not numbers & set(fault_examples.WITHOUT_EXAMPLE)


def _remove(docs) -> None:
    (docs / "faults/07-dropin-newer-than-root.md").unlink()


def _empty(docs) -> None:
    page = docs / "faults/07-dropin-newer-than-root.md"
    text = page.read_text()
    page.write_text(text[: text.index("## Fix")] + "## Fix\n")


def _rename(docs) -> None:
    page = docs / "faults/07-dropin-newer-than-root.md"
    page.write_text(page.read_text().replace("## Symptom", "## Symptoms"))


def _stray(docs) -> None:
    (docs / "faults/99-nothing.md").write_text("# Nothing\n")


def _untitled(docs) -> None:
    page = docs / "faults/07-dropin-newer-than-root.md"
    page.write_text(page.read_text().partition("\n")[2])


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_remove, "fault 7 has no page: write docs/faults/07-dropin-newer-than-root.md"),
        (_empty, "section Fix is empty"),
        (_rename, "has the sections Symptoms"),
        (_stray, "99-nothing.md is the page of no fault"),
        (_untitled, "does not begin with a title"),
    ],
)
def test_a_page_that_is_not_whole_ends_it(copy, change, why: str) -> None:
    change(copy)
    with pytest.raises(FaultError, match=why):
        texts(copy)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("| 7 | dropin-newer-than-root |", "| 7 | dropin-newer |", "has no row | 7 | dropin-newer-than-root"),
        ("(faults/07-dropin-newer-than-root.md)", "(faults/08-dropin-older-than-root.md)", "the link must be faults/07"),
        ("| 7 | dropin-newer-than-root |", "| 77 | dropin-newer-than-root |", "has no row"),
    ],
)
def test_a_row_that_is_not_the_cores_ends_it(copy, old: str, new: str, why: str) -> None:
    page = copy / "faults.md"
    page.write_text(page.read_text().replace(old, new))
    with pytest.raises(FaultError, match=why.replace("|", r"\|")):
        table(copy)


def test_a_number_that_the_core_gets_new_wants_its_row_and_page() -> None:
    more = {**NAMES, max(NAMES) + 1: "quite-new"}
    with pytest.raises(FaultError, match=f"no row .* {max(more)} . quite-new"):
        table(names=more)
    with pytest.raises(FaultError, match=f"fault {max(more)} has no page"):
        texts(names=more)
