"""Code that is not here is told, and the digest alone decides which code it is."""

from activemem.studies.resolve.plugin_code import code_fault, code_here
from activemem.studies.resolve.trial import Trial

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
