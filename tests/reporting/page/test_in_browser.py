"""The report in a browser: no requests, no errors, no overflow."""

import pytest

from activemem import load_study
from activemem.reporting.page import report

from .browser import find_executable, open_browser

pytestmark = pytest.mark.skipif(
    find_executable() is None, reason="needs a Chromium, as Debian's package chromium"
)

WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

FAINT = """
(() => {
  const colour = text => text.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255);
  const light = colour => colour
    .map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const paper = colour(getComputedStyle(document.body).backgroundColor);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const place = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim()) continue;
    let ink = colour(getComputedStyle(place).color);
    for (let each = place; each; each = each.parentElement) {
      const seen = Number(getComputedStyle(each).opacity);
      ink = ink.map((v, i) => paper[i] + (v - paper[i]) * seen);
    }
    const both = [light(ink), light(paper)];
    const contrast = (Math.max(...both) + .05) / (Math.min(...both) + .05);
    if (contrast < 4.5) found.push([walker.currentNode.data, contrast]);
  }
  return found;
})()
"""
"""A script that returns the texts with a contrast below 4.5 to 1, as defined by WCAG 2."""


@pytest.fixture(scope="module")
def pages(everything, kept, tmp_path_factory):
    """Return a page with many failures, and one with long recipes."""
    folder = tmp_path_factory.mktemp("pages")
    studies = {"everything": everything, "algorithmic-small": load_study("algorithmic-small")}
    for name, study in studies.items():
        page = report(study, kept)
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["everything", "algorithmic-small"])
@pytest.mark.parametrize(
    "how",
    [{}, {"dark": True}, {"width": 360, "height": 800}, {"width": 680, "medium": "print"}],
    ids=["desktop", "dark", "phone", "paper"],
)
def test_a_page_is_quiet_alone_and_fits(window, pages, name, how):
    window.open(pages / f"{name}.html", **how)
    window.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert window.console_messages() == []
    assert window.requests() == []
    assert window.evaluate(WIDER) == 0
    assert window.evaluate(
        "document.images.length > 0 && [...document.images].every(each => each.naturalWidth > 0)"
    )


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_stands_out_from_the_paper(window, pages, dark):
    window.open(pages / "everything.html", dark=dark)
    assert window.evaluate(FAINT) == []


def test_dark_is_dark_and_paper_is_white(window, pages):
    ground = "getComputedStyle(document.body).backgroundColor"
    window.open(pages / "everything.html", dark=True)
    assert window.evaluate(ground) == "rgb(18, 18, 18)"
    window.open(pages / "everything.html", dark=True, medium="print")
    assert window.evaluate(ground) == "rgb(255, 255, 255)"


@pytest.mark.heavy
def test_collapsed_sections_are_open_on_paper(window, pages):
    seen = "document.querySelector('details img').checkVisibility({contentVisibilityAuto: true})"
    window.open(pages / "everything.html")
    assert window.evaluate(seen) is False
    window.open(pages / "everything.html", medium="print")
    assert window.evaluate(seen) is True
