"""`[[gate]]`: larger sizes train only where claims on smaller ones are confirmed."""

import re

import pytest

from activemem import StudyError, StudyResults, load_study, run_study
from activemem.storage import Store

from ..study_texts import GATED as STUDY

UNTRUE = "parameters[width=8, mixer=sa] < 0"


def where(study, ids):
    return {
        (trial.levels["width"], trial.levels["mixer"].split("(")[0])
        for trial in study.trials
        if trial.id in ids
    }


def test_a_run_trains_the_first_stage_and_then_what_confirmed_claims_open(tmp_path):
    study = load_study(STUDY)
    results = StudyResults(study, Store(tmp_path))
    assert run_study(study, tmp_path, local=True).ran == 6
    assert results.status.left == 4
    assert "8 held back" in results.status.summary()
    opened = results.open_trials()
    assert where(study, opened) == {(4, "sa"), (4, "lstm"), (4, "conv"), (8, "sa"), (8, "lstm")}
    assert run_study(study, tmp_path, local=True, trial_ids=opened).ran == 4
    assert where(study, results.open_trials()) == {
        *((4, "sa"), (4, "lstm"), (4, "conv"), (8, "sa"), (8, "lstm")),
        (12, "lstm"),  # the second gate opens only what its own claim compares
    }


def test_the_plan_has_the_cost_of_each_stage_before_anything_trains(tmp_path):
    study = load_study(STUDY)
    shown = " ".join(str(StudyResults(study, Store(tmp_path)).plan()).split())
    assert "18 to run" in shown
    assert "stage 1 6 trials" in shown
    assert "at most 6 trials" in shown
    assert "at 98.33 %: surely; never" in shown


def test_the_plan_names_the_claims_that_opened_what_is_trained(tmp_path):
    study = load_study(STUDY)
    results = StudyResults(study, Store(tmp_path))

    def shown():
        return " ".join(str(results.plan()).split())

    run_study(study, tmp_path, local=True)
    run_study(study, tmp_path, local=True, trial_ids=results.open_trials())
    assert re.search("held back: 2 trials, .*never; .* trained: 4 trials for surely", shown())
    assert "at most 2 trials" in shown()
    assert "98.33 %: later; held back: 4 trials" in shown()
    run_study(study, tmp_path, local=True, trial_ids={trial.id for trial in study.trials})
    assert "98.33 %" not in shown()
    assert "trained: 6 trials for surely; never" in shown()


def test_the_plan_says_that_a_gate_has_opened_nothing(tmp_path):
    never = STUDY.replace('claims = ["surely", "never"]', 'claims = "never"')
    study = load_study(never.replace("test_loss[width=8, mixer=lstm] < 100", UNTRUE))
    results = StudyResults(study, Store(tmp_path))
    assert "confirmed, at" in str(results.plan())
    run_study(study, tmp_path, local=True)
    shown = " ".join(str(results.plan()).split())
    assert "0 to run · 12 held back" in shown
    assert "stage 2 held back: 6 trials, not confirmed: never" in shown
    assert "stage 3 held back: 6 trials" in shown
    assert "confirmed, at" not in shown


@pytest.mark.heavy
def test_a_trial_that_two_claims_open_is_counted_once(tmp_path):
    both = "parameters[width=4, mixer=lstm] > parameters[width=4, mixer=conv]"
    study = load_study(STUDY.replace("parameters[width=4, mixer=conv] < 0", both))
    results = StudyResults(study, Store(tmp_path))
    run_study(study, tmp_path, local=True, trial_ids={trial.id for trial in study.trials})
    shown = " ".join(str(results.plan()).split())
    assert "trained: 6 trials for surely; never" in shown


def test_the_claims_of_all_gates_share_their_level():
    levels = {claim.spec.name: claim.spec.level for claim in load_study(STUDY).claims}
    assert levels == pytest.approx(dict.fromkeys(("surely", "never", "later"), 1 - 0.05 / 3))
    apart = STUDY.replace('claims = ["surely", "never"]', 'claims = "surely"')
    assert {claim.spec.name: claim.spec.level for claim in load_study(apart).claims}["never"] == 0.95


def test_gates_are_checked_beside_other_faults():
    wrong = STUDY.replace('claims = "later"', 'claims = "latr"').replace("{ width = 12 }", "{ widht = 12 }")
    for overrides in (["model.dropout=2"], []):
        with pytest.raises(StudyError) as caught:
            load_study(wrong, overrides)
        assert len(caught.value.faults) == 2 + len(overrides)
        assert "unknown claim 'latr'; nearest: later" in str(caught.value)
        assert "unknown factor 'widht'; nearest: width" in str(caught.value)


def test_a_faulty_ladder_is_not_a_fault_of_its_claims_and_gates(golden):
    with pytest.raises(StudyError) as caught:
        load_study(STUDY.replace("width = [4, 8, 12]", "width = []"))
    golden([fault.message for fault in caught.value.faults])
    with pytest.raises(StudyError) as caught:
        load_study(
            STUDY.replace("heads = [1, 2, 3]", "heads = [1, 2]").replace("{ width = 12 }", "{ w = 1 }")
        )
    golden([fault.message for fault in caught.value.faults])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('claims = "later"', 'claims = "latr"'),
        ("holds = { width = 12 }", "holds = { widht = 12 }"),
        ("holds = { width = 12 }", "holds = { width = 13 }"),
        ("holds = { width = 12 }", "holds = { width = [4, 8, 12] }"),
        ("holds = { width = 12 }", "holds = { width = [8, 12] }"),
    ],
)
def test_a_gate_that_cannot_open_is_a_fault(old, new, golden):
    with golden.raises(StudyError):
        load_study(STUDY.replace(old, new))


def test_trials_that_a_gate_holds_back_do_not_change_the_verdicts_that_open_it(tmp_path):
    compared = "test_loss[width=4, mixer=lstm] < test_loss[width=4, mixer=conv]"
    study = load_study(STUDY.replace("parameters[width=4, mixer=conv] < 0", compared))
    results = StudyResults(study, Store(tmp_path))
    run_study(study, tmp_path, local=True)
    before = results.check_claims()[:2]
    run_study(study, tmp_path, local=True, trial_ids={trial.id for trial in study.trials})
    assert results.check_claims()[:2] == before
