"""Saved outputs are compared with those of the baseline with the same seed."""

import numpy as np
import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest

from activemem import StudyError, load_study
from activemem.reporting import compare_outputs
from activemem.reporting.statistics import StatisticsError
from activemem.storage import Store

from ..storage.factories import make_outputs, make_trial_row
from ..study_texts import study_text

WORDS = ["the", "a", "cat", "dog", "sees", "hears", "red", "green", "old", "small", "house", "tree"]
DRAWN = np.random.default_rng(7)
REFERENCES = [" ".join(DRAWN.choice(WORDS, size=9)) + "." for _ in range(60)]

STUDY = load_study(
    study_text(
        factors={"mixer": ["sa", "conv(k=3)", "cgru(k=3)"], "task": ["sort", "copy"], "seed": [0, 1]},
    )
)


def worsened(lines, share):
    """Return the lines with some words replaced."""
    rng = np.random.default_rng(8)
    return [" ".join("x" if rng.random() < share else word for word in line.split()) for line in lines]


def outputs_of(trial):
    """Return outputs by task and seed, worse for attention."""
    share = 0.3 if trial.levels["mixer"] == "sa" else 0.1
    return worsened(REFERENCES, share + 0.02 * trial.settings.seed)


@pytest.fixture
def store(tmp_path):
    """Store the outputs of all trials but those of one mixer; each task has its own references."""
    store = Store(tmp_path)
    for trial in STUDY.trials:
        if trial.levels["mixer"] != "cgru(k=3)":
            references = REFERENCES if trial.levels["task"] == "sort" else REFERENCES[::-1]
            lines = outputs_of(trial)
            kept = make_outputs(*lines, references=references)
            store.write(make_trial_row(trial=trial.id, study=STUDY.name), [], kept)
            if trial.levels["task"] == "sort":
                store.write_tuning(make_trial_row(trial=trial.id, study=STUDY.name), [], kept)
    return store


def test_each_trial_is_compared_with_the_baseline_of_its_seed_and_test_set(store):
    found = compare_outputs(STUDY, store, ["mixer=sa"])
    named = {trial.id: trial for trial in STUDY.trials}
    assert found.select("mixer", "task", "seed").rows() == [
        (trial.levels["mixer"], trial.levels["task"], trial.levels["seed"])
        for trial in STUDY.trials
        if trial.levels["mixer"] != "cgru(k=3)"
    ]
    compared = found.filter(mixer="conv(k=3)", task="sort", seed=1).to_dicts()[0]
    baseline = named[compared["baseline_trial"]]
    assert dict(baseline.levels) == {"mixer": "sa", "task": "sort", "seed": 1}
    systems = [("sa", outputs_of(baseline)), ("conv", outputs_of(named[compared["trial"]]))]
    test = PairedTest(systems, {"BLEU": BLEU()}, [REFERENCES], test_type="bs", n_samples=1000)
    base, other = test()[1]["BLEU"]
    scores = [compared[name] for name in ("bleu", "bleu_mean", "bleu_ci95", "bleu_difference", "p_value")]
    assert scores == [other.score, other.mean, other.ci, other.score - base.score, other.p_value]
    assert 0 < other.p_value < 0.05
    assert other.score == sacrebleu.corpus_bleu(systems[1][1], [REFERENCES]).score
    alone = found.filter(mixer="sa").select("bleu_difference", "p_value", "baseline_trial")
    assert alone.rows() == [(None, None, None)] * 4


def test_tuned_outputs_are_compared_if_they_are_asked_for(store):
    found = compare_outputs(STUDY, store, ["mixer=sa"], tuned=True)
    assert set(found["task"]) == {"sort"}
    assert found.height == 4


def test_the_tokenisation_is_that_which_is_asked_for(store):
    found = compare_outputs(STUDY, store, ["mixer=sa"], tuned=True, tokenizer="char")
    trial = next(each for each in STUDY.trials if each.id == found["trial"][0])
    assert found["bleu"][0] == sacrebleu.corpus_bleu(outputs_of(trial), [REFERENCES], tokenize="char").score


def test_selections_without_a_baseline_are_reported(store, golden):
    with pytest.raises(StatisticsError) as none:
        compare_outputs(STUDY, store, ["mixer=cgru(k=3)"])
    expected = f"study tiny: expected kept outputs of mixer=cgru(k=3) in {store.root}, got none"
    assert str(none.value) == expected
    with golden.raises(StatisticsError):
        compare_outputs(STUDY, store, ["task=sort"])
    with pytest.raises(StudyError, match="unknown factor 'model'"):
        compare_outputs(STUDY, store, ["model=sa"])
