"""The pages in a browser: live updates, open details stay open, no overflow."""

import time

import pytest

from ..page.browser import find_executable, open_browser
from ..page.test_in_browser import FAINT, WIDER
from .conftest import write_end

pytestmark = pytest.mark.skipif(
    find_executable() is None, reason="needs a Chromium, as Debian's package chromium"
)

PATIENCE_S = 600


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def wait_for(window, script):
    """Wait until a script returns a true value."""
    end = time.monotonic() + PATIENCE_S
    while not (found := window.evaluate(script)):
        assert time.monotonic() < end, f"expected, within {PATIENCE_S} s: {script}"
        time.sleep(0.02)
    return found


def text_of(part):
    return f"document.querySelector('[aria-labelledby={part}]').innerText"


@pytest.mark.heavy
def test_a_row_appears_in_an_open_page_which_stays_as_it_is(window, server, store, drawn):
    window.open(f"http://127.0.0.1:{server.port}/study/everything", width=900, height=700)
    wait_for(window, "document.getElementById('live').textContent === 'live'")
    assert "19 of 36 trials done" in window.evaluate(text_of("progress"))
    window.evaluate(
        "document.querySelector('[aria-labelledby=failures] details').open = true; window.same = document"
    )
    window.evaluate("window.kept = document.querySelector('[aria-labelledby=question]'); scrollTo(0, 300)")
    missing = [trial for trial in drawn.trials if trial.id not in set(store.trials()["trial"])]
    write_end(store, missing[0], {"max_length": 77.25, "loss": 0.25})
    wait_for(window, f"{text_of('tables')}.includes('48.1')")
    write_end(store, missing[1], "failed: out of memory\nTraceback of it", 99)
    wait_for(window, f"{text_of('failures')}.includes('out of memory')")
    # each part is renewed at its own time
    wait_for(window, f"{text_of('progress')}.includes('20 of 36 trials done · 6 failed')")
    assert window.evaluate("window.same === document && window.kept.isConnected")
    assert window.evaluate("document.querySelector('[aria-labelledby=failures] details[open]') !== null")
    assert window.evaluate("scrollY") > 0
    assert window.console_messages() == []


@pytest.mark.parametrize("path", ["/", "/study/everything"])
@pytest.mark.parametrize(
    "how",
    [
        pytest.param({}, id="desktop"),
        pytest.param({"dark": True}, id="dark", marks=pytest.mark.heavy),  # the palette of a report as well
        pytest.param({"width": 360, "height": 740}, id="phone"),
    ],
)
def test_a_page_is_quiet_fits_and_stands_out_from_the_paper(window, still, path, how):
    window.open(f"http://127.0.0.1:{still.port}{path}", **how)
    window.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert window.console_messages() == []
    assert window.evaluate(WIDER) == 0
    assert window.evaluate(FAINT) == []
    assert all(f"127.0.0.1:{still.port}" in url for url in window.requests())


def test_a_page_is_whole_without_its_script(window, still):
    window.send_command("Emulation.setScriptExecutionDisabled", value=True)
    try:
        window.open(f"http://127.0.0.1:{still.port}/study/everything")
    finally:
        window.send_command("Emulation.setScriptExecutionDisabled", value=False)
    assert "sa reverses farther" in window.evaluate(text_of("claims"))
    assert window.evaluate("document.getElementById('live').textContent").startswith("as of 20")


def test_a_telephone_shows_the_numbers_of_a_claim_below_it(window, still):
    window.open(f"http://127.0.0.1:{still.port}/study/everything", width=390, height=800)
    assert window.evaluate("""
        (() => {
          const box = document.querySelector('[aria-labelledby=claims] .scroll');
          return [box.scrollWidth <= box.clientWidth, getComputedStyle(box.querySelector('thead')).display];
        })()
    """) == [True, "none"]


@pytest.mark.heavy
def test_a_caption_is_as_wide_as_the_page(window, still):
    window.open(f"http://127.0.0.1:{still.port}/study/everything", width=1280, height=800)
    table, caption, page = window.evaluate(
        "['table', 'caption', ''].map(each => "
        "document.querySelector(`.activemem-table ${each}`.trim()).getBoundingClientRect().width)"
    )
    assert table < caption == page
