"""The report's page in a real Chromium.

What this proves: at 5,000 nodes x 100 classes the page is drawn and filtered within seconds, its counts equal those of the JSON report, a click and
the keyboard alone show a cell's reason and fix, each control has a name for a screen reader, nothing is fetched, dark and light differ and both keep a
contrast of 4.5, and print has every row that the filters leave. Chromium is Debian's; playwright drives it.
"""

from __future__ import annotations

import collections
import random
import re
import shutil

import pytest

from ansible_collections.kubenode.runtime_gate.plugins.plugin_utils.reports.page import page as page_of
from tests.unit.plugins.plugin_utils.reports.fleet_report import host, report

sync_api = pytest.importorskip("playwright.sync_api", reason="tests/requirements.txt has it")
NODES, CLASSES = 5000, 100
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
ARGUMENTS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="module")
def fleet():
    chance = random.Random(5000)
    classes = [f"class-{number:03}" for number in range(CLASSES)]
    words = ["ok"] * 40 + ["not_targeted"] * 57 + ["missing", "time bomb", "excluded_by_taint"]
    mixed = [{name: chance.choice(words) for name in classes} if number % 10 == 0 else dict.fromkeys(classes, "ok") for number in range(NODES)]
    return report(*(host(f"node-{number:04}", cells, pool=f"pool-{number % 7}") for number, cells in enumerate(mixed)))


@pytest.fixture(scope="module")
def browser():
    program = shutil.which("chromium")
    assert program, "chromium is not there: tests/system_packages.sh --install"
    with sync_api.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield made
        made.close()


@pytest.fixture
def opened(browser, fleet, tmp_path):
    """A page of the whole fleet, and what it asked the network for or complained of."""
    (tmp_path / "report.html").write_text(page_of(fleet))
    tab = browser.new_page()
    trouble = []
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    tab.on("console", lambda message: trouble.append(message.text) if message.type == "error" else None)
    tab.on("request", lambda request: trouble.append(request.url) if not request.url.startswith("file:") else None)
    tab.goto(f"file://{tmp_path}/report.html")
    yield tab
    tab.close()
    assert not trouble


def _shown(tab):
    return tuple(int(number) for number in re.match(r"(\d+) of (\d+) nodes shown, (\d+) of them fail", tab.locator("#shown").inner_text()).groups())


def test_the_counts_equal_the_report(opened, fleet):
    failing = sum(1 for each in fleet["hosts"] if each["fails"])
    assert 0 < failing < NODES
    assert _shown(opened) == (NODES, NODES, failing)
    counted = collections.Counter()
    for each in fleet["hosts"]:
        bombs = sum(1 for verdict in each["verdicts"] if verdict["verdict"] == "ok")
        counted.update(each["cells"].values())
        counted.subtract({"ok": bombs})
        counted.update({"lost at restart": bombs})
    names = {"not_targeted": "-", "excluded_by_taint": "taint"}
    said = {node.get_attribute("data-count"): int(node.inner_text()) for node in opened.locator("[data-count]").all()}
    assert said == {names.get(word, word): number for word, number in counted.items()}
    assert sum(said.values()) == NODES * CLASSES


def test_few_rows_are_drawn_and_the_last_one_can_be_reached(opened):
    assert opened.locator("#matrix tbody tr").count() < 200
    opened.evaluate("document.getElementById('frame').scrollTop = 1e9")
    opened.get_by_role("button", name="node-4999: passes").wait_for(timeout=10_000)


def test_filters_leave_what_they_say(opened, fleet):
    opened.locator("#pool").select_option("pool-3")
    opened.get_by_label("only nodes that fail").check()
    wanted = [each for each in fleet["hosts"] if each["pool"] == "pool-3" and each["fails"]]
    assert _shown(opened)[0] == len(wanted) > 0
    opened.locator("#class").select_option("class-007")
    opened.locator("#verdict").select_option("missing")
    assert _shown(opened)[0] == sum(1 for each in wanted if each["cells"]["class-007"] == "missing")
    opened.get_by_role("button", name="All").click()
    opened.wait_for_function(f"document.getElementById('shown').textContent.startsWith('{NODES} of')")
    opened.get_by_label("Node or host").fill("node-123")
    assert _shown(opened)[0] == 10


def test_a_click_tells_reason_and_fix(opened, fleet):
    opened.get_by_label("only nodes that fail").check()
    first = next(each for each in fleet["hosts"] if each["fails"])
    column = next(verdict["runtime_class"] for verdict in first["verdicts"] if verdict["verdict"] == "missing")
    opened.get_by_role("button", name=f"{first['node']}, {column}: missing, fails").click()
    told = opened.locator("#detail").inner_text()
    assert f"{column} is missing on {first['node']}" in told and "Fix: Mend it." in told and "18 not-imported" in told


def test_the_keyboard_is_enough(opened):
    opened.locator("#matrix button[tabindex='0']").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown"):
        opened.keyboard.press(key)
    assert opened.evaluate("document.activeElement.getAttribute('aria-label')").startswith("node-0002, class-000:")
    opened.keyboard.press("Enter")
    assert "node-0002 × class-000" in opened.locator("#detail").inner_text()
    opened.keyboard.press("PageDown")
    opened.keyboard.press("Home")
    assert opened.evaluate("document.activeElement.dataset.column") == "-1"


def test_what_a_screen_reader_needs(opened):
    assert opened.locator("#matrix").get_attribute("aria-rowcount") == str(NODES + 1)
    unnamed = opened.evaluate(
        "[...document.querySelectorAll('button, input, select')]"
        ".filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim() || (e.labels && e.labels.length))).length"
    )
    assert unnamed == 0
    assert opened.locator("html").get_attribute("lang") == "en"
    assert opened.locator("#matrix thead th:not([scope])").count() == 0


_CONTRAST = """() => {
  const light = (colour) => {
    const parts = colour.match(/[0-9.]+/g).slice(0, 3).map((v) => v / 255).map((v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * parts[0] + .7152 * parts[1] + .0722 * parts[2]; };
  const ground = (e) => {
    for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/, 0\\)$/.test(c)) return c; }
    return 'rgb(255, 255, 255)'; };
  const texts = [...document.querySelectorAll('p, th, .cell, label, select, li, .bar div, b')].filter((e) => e.textContent.trim());
  return Math.min(...texts.map((e) => {
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))]; return (Math.max(a, b) + .05) / (Math.min(a, b) + .05); })); }"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_schemes_can_be_read(opened, scheme):
    opened.emulate_media(color_scheme=scheme)
    ground = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    assert opened.evaluate(_CONTRAST) >= 4.5  # WCAG 2.1, 1.4.3


def test_paper_has_every_row_that_the_filters_leave(opened, fleet):
    opened.locator("#pool").select_option("pool-3")
    opened.get_by_label("only nodes that fail").check()
    opened.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.locator("#matrix tbody tr:not(.pad)").count() == sum(1 for each in fleet["hosts"] if each["pool"] == "pool-3" and each["fails"])
    opened.evaluate("dispatchEvent(new Event('afterprint'))")
