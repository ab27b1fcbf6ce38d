"""A run in a notebook shows its progress; a run elsewhere writes nothing."""

import sys
from types import ModuleType

import pytest

from activemem import load_study, run_study
from activemem.storage import Store

from ...study_texts import study_text

TINY = study_text(
    task={"name": "reverse"},
    train={"epochs": 1, "steps_per_epoch": 1},
    factors={"mixer": ["sa", "conv(k=3)"], "seed": [0]},
)


class Handle:
    """A display handle like IPython's."""

    def __init__(self, shown):
        self.shown = shown

    def update(self, thing):
        self.shown.append((repr(thing), thing._repr_html_()))


@pytest.fixture
def shown(monkeypatch):
    """Return the displayed outputs of a notebook, with stand-ins for IPython's two functions."""
    texts, package, display = [], ModuleType("IPython"), ModuleType("IPython.display")
    package.get_ipython = object

    def show(thing, *, display_id):
        assert display_id
        handle = Handle(texts)
        handle.update(thing)
        return handle

    display.display = show
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return texts


def test_a_run_in_a_notebook_shows_one_bar_from_the_first_trial_to_the_last(shown, tmp_path, capsys):
    run_study(load_study(TINY), Store(tmp_path), local=True)
    assert shown[0][0] == "tiny: 0 of 2 trials ended"
    assert shown[-1][0] == "tiny: 2 of 2 trials ended"
    assert shown[-1][1].startswith('<progress max="1" value="1.0000">')
    assert capsys.readouterr().out == ""
