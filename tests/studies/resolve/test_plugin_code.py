"""Changed plug-in code is reported; only its digest identifies it."""

import pytest

from activemem import load_plugin
from activemem.grammar import NORMS
from activemem.studies import Trial
from activemem.studies.resolve import code_fault, code_here

from .test_trial import settings


def coded(code):
    return settings().model_copy(update={"code": {"block conv": code}})


def test_settings_without_plug_ins_have_no_code_and_fit_everywhere():
    assert (code_here(settings()), code_fault(settings())) == ({}, None)


def test_a_machine_with_other_code_says_what_was_expected():
    assert code_fault(coded("mine.py 0123456789abcdef")) == (
        "expected the plug-in mine.py 01234567, got no block conv"
    )


def test_the_id_covers_the_digest_and_not_the_name_of_the_file():
    ids = [
        Trial(study="s", levels={}, settings=coded(code)).id
        for code in ("mine.py 0123456789abcdef", "other.py 0123456789abcdef", "mine.py 1123456789abcdef")
    ]
    assert ids[0] == ids[1] != ids[2]
    assert ids[0] != Trial(study="s", levels={}, settings=settings()).id


def test_a_trial_keeps_the_code_that_it_was_made_with():
    trial = Trial(study="s", levels={}, settings=coded("mine.py 0123456789abcdef"))
    assert Trial.from_json(trial.to_json()) == trial


def test_a_norm_and_positions_of_plug_ins_are_part_of_the_id(tmp_path):
    path = tmp_path / "own_parts.py"
    path.write_text(PARTS, encoding="utf-8")
    load_plugin(path)
    named = settings(model__norm_kind="own_norm", model__position="own_positions")
    assert code_here(named).keys() == {"norm own_norm", "position own_positions"}
    assert all(code.startswith("own_parts.py ") for code in code_here(named).values())


@pytest.fixture
def run_cell():
    """Return a function that runs a cell of a notebook which registers `own_norm`."""
    yield lambda text: exec(compile(text, "cell.py", "exec"), {"__name__": "__main__"})
    NORMS.unregister("own_norm")


def test_a_cell_of_a_notebook_is_part_of_the_id_and_can_be_run_again(run_cell):
    cell = PARTS.partition("@register_position")[0]
    codes = []
    for text in (cell, cell, cell.replace("return 0", "return 1")):
        run_cell(text)
        codes.append(code_here(settings(model__norm_kind="own_norm"))["norm own_norm"])
    assert codes[0] == codes[1] != codes[2]
    assert all(code.startswith("cell.py ") for code in codes)


PARTS = """
from activemem import PluginNorm, PluginPosition, register_norm, register_position

@register_norm("own_norm", source="here")
class Norm(PluginNorm):
    def parameters(self, width):
        return 0
    def saved(self, width):
        return 0
    def build(self, width, eps):
        raise NotImplementedError

@register_position("own_positions", source="here")
class Positions(PluginPosition):
    def build(self, width):
        raise NotImplementedError
"""
