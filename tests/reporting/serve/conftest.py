"""A store with a study with all outcomes, served from a thread, and its clients."""

import http.client
import re
import threading
import time
from contextlib import closing, contextmanager

import pytest

from activemem import load_study
from activemem.reporting.serve.http_server import Access, PageServer
from activemem.storage import MetricRow, Store

from ..conftest import EVERYTHING, STUDY, made_row

LOOK_S = 0.05
CURVE_AND_CLAIM = """
[[curve]]
name = "by_epoch"
kind = "line"
x = "epoch"
value = "loss"
series = "mixer"
select = { task = "sort" }

[[claim]]
name = "sa reverses farther"
holds = "max_length[task=reverse, mixer=sa] > max_length[task=reverse, mixer=conv(k=20)]"
"""


def write_study(store, study):
    """Store the record of a study, as after a run."""
    store.records.save(study.name, {"text": study.document.text, "overrides": []})


def write_end(store, trial, end, number=0):
    """Store the row of an ended trial, and its learning curves."""
    metrics = [
        MetricRow(step=2 * epoch, epoch=epoch, name=name, value=value / epoch)
        for epoch in (1, 2)
        for name, value in (end.items() if isinstance(end, dict) else ())
    ]
    store.write(made_row(trial, end, number), metrics)


def fill(store, study):
    """Store outcomes for all trials but the last of each kind."""
    write_study(store, study)
    for number, trial in enumerate(study.trials):
        ends = EVERYTHING.get((str(trial.levels["mixer"]), str(trial.levels["task"])), (None,) * 3)
        end = ends[study.factors["seed"].index(trial.levels["seed"])]
        if end is not None:
            told = end if isinstance(end, str) else {"max_length": end, "loss": 1 / end}
            write_end(store, trial, told, number)


@contextmanager
def serving(store, access=None, report_fault=print):
    """Serve a store in a thread within a context."""
    access = access or Access(host="127.0.0.1")
    server = PageServer(store, access, 0, look_s=LOOK_S, report_fault=report_fault)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def drawn():
    """Return the study with all outcomes, a figure and a claim."""
    return load_study(STUDY + CURVE_AND_CLAIM)


@pytest.fixture
def store(tmp_path, drawn):
    """Return a separate store for a test."""
    found = Store(tmp_path / "results")
    fill(found, drawn)
    return found


@pytest.fixture
def server(store):
    with serving(store) as found:
        yield found


@pytest.fixture(scope="module")
def still(tmp_path_factory, drawn):
    """Return a server of a store that no test of the module changes."""
    store = Store(tmp_path_factory.mktemp("still"))
    fill(store, drawn)
    with serving(store) as found:
        yield found


def get(server, path, method="GET", **headers):
    """Return the response to a request, and its text."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)) as connection:
        connection.request(
            method, path, headers={each.replace("_", "-"): text for each, text in headers.items()}
        )
        answer = connection.getresponse()
        return answer, answer.read().decode()


def wait_for(server, path, name, text):
    """Ask for a page until a section has a text. Return the HTML of the section."""
    end = time.monotonic() + 600
    while text not in (found := section(get(server, path)[1], name)):
        assert time.monotonic() < end, f"expected {text!r} in {name}"
        time.sleep(LOOK_S)
    return found


def section(page, name):
    """Return the HTML of a section of a page."""
    return page.partition(f'<section aria-labelledby="{name}"')[2].partition("</section>")[0]


def names(page):
    """Return the names of the sections of a page."""
    return re.findall('<section aria-labelledby="(.*?)"', page)
