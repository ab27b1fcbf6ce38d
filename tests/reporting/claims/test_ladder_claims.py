"""Claims about the smaller sizes of a ladder."""

import pytest

from activemem import StudyError, StudyResults, load_study, run_study
from activemem.storage import Store

from ...study_texts import study_text

SIZES = "{ width = [4, 8, 12], heads = [1, 2, 3] }"


def ladder(holds, sizes=SIZES):
    return f"[ladder]\nsizes = {sizes}\ntokens_per_parameter = 1\n" + study_text(
        model={"recipe": "{mixer} >> ff(8)", "d_model": "{width}"},
        task={
            "name": "parity",
            "lengths": [2, 4],
            "test_lengths": [4],
            "dev_examples": 10,
            "test_examples": 10,
        },
        train={"steps_per_epoch": None, "curriculum": None, "epochs": 1},
        factors={"mixer": ["sa(heads={heads}, head_width=4)", "lstm", "conv(k=3)"], "seed": [0, 1]},
        claim=[{"name": "ahead", "holds": holds}],
    )


def test_trials_of_larger_sizes_do_not_change_a_verdict_on_smaller_ones(tmp_path):
    study = load_study(ladder("test_loss[width=4, mixer=lstm] < test_loss[width=4, mixer=conv]"))
    results = StudyResults(study, Store(tmp_path))
    run_study(
        study, tmp_path, local=True, trial_ids=[each.id for each in study.trials if each.levels["width"] == 4]
    )
    before = results.check_claims()
    assert before[0].deciding.n == 2
    run_study(study, tmp_path, local=True)
    assert results.check_claims() == before


def test_a_faulty_ladder_is_not_a_fault_of_its_claims():
    for sizes in (SIZES.replace("[4, 8, 12]", "[]"), SIZES.replace("[1, 2, 3]", "[1, 2]")):
        with pytest.raises(StudyError) as caught:
            load_study(ladder("test_loss[width=8, mixer=lstm] < 100", sizes))
        assert all("[ladder]" in fault.message for fault in caught.value.faults)
