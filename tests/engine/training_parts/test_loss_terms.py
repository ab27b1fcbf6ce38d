"""Loss terms of plug-ins: inputs for each kind of task, effects, and rejection."""

import pytest
import torch

from activemem import PluginError, StudyError, load_study, run_study
from activemem.engine.trial.conformance import LOSS_TERM_CHECKS, trial
from activemem.engine.trial.evaluation import NotANumberError
from activemem.engine.trial.training import Training
from activemem.engine.trial.training_parts import LossTermError
from activemem.storage import Store
from activemem.studies.resolve.trial import settings_from_json, settings_to_json, trial_id
from activemem.studies.schema.settings import TrialSettings

from ...study_texts import study_text
from . import part_examples
from .test_early_stopping import KINDS, TRAIN

CPU = torch.device("cpu")


@pytest.mark.parametrize("check", LOSS_TERM_CHECKS)
@pytest.mark.parametrize("name", ["activity_of_layers", "surprise"])
def test_terms_conform_with_and_without_state_and_draws(check, name):
    check(trial(loss_terms=[{"name": name, "weight": 0.5}]))


def test_a_term_is_added_with_its_weight_to_the_gradients_of_each_part(tmp_path):
    settings = trial(loss_terms=[{"name": "activity_of_layers", "weight": 0.5}], clip_norm=1e9)
    plain = trial(clip_norm=1e9)
    ours, theirs = Training.begin(settings, CPU, tmp_path), Training.begin(plain, CPU, tmp_path)
    found = {}
    layers = [
        module for name, module in theirs.model.named_modules() if name.count(".") == 3 and ".part" in name
    ]
    outputs = []
    for layer in layers:
        layer.register_forward_hook(lambda _module, _inputs, output: outputs.append(output))
    original = theirs.objective.loss

    def with_term(model, part, parts):
        outputs.clear()
        loss = original(model, part, parts)
        found.setdefault("terms", []).append(
            torch.stack([output.square().mean() for output in outputs]).mean()
        )
        return loss + 0.5 * found["terms"][-1]

    theirs.objective.loss = with_term
    metrics = ours.advance()
    theirs.advance()
    for name, weight in theirs.weights().items():
        torch.testing.assert_close(ours.weights()[name], weight)
    mean = sum(float(each.detach()) for each in found["terms"]) / len(found["terms"])
    assert metrics["activity_of_layers"] == pytest.approx(mean, rel=1e-5)


@pytest.mark.usefixtures("short_pairs")
@pytest.mark.parametrize("kind", KINDS)
def test_a_term_sees_what_each_kind_of_task_is_scored_on(kind, tmp_path):
    task, recipe, train = KINDS[kind]
    part_examples.SEEN.clear()
    settings = TrialSettings.model_validate(
        {
            "model": {"recipe": recipe, "d_model": 8},
            "task": task,
            "train": {**TRAIN, **train, "loss_terms": [{"name": "shown"}]},
        }
    )
    assert Training.begin(settings, CPU, tmp_path).advance()["shown"] == 0.0
    assert len(part_examples.SEEN) == 2 * settings.train.accumulate
    for inputs, outputs, targets, step in part_examples.SEEN:
        assert inputs[0] == 4 // settings.train.accumulate
        assert len(outputs) in (1, 2)
        assert len(targets) == 1
        assert outputs[0] == targets[0]
        assert step in (1, 2)


@pytest.mark.parametrize(
    ("flaw", "error"),
    [
        ("shape", LossTermError),
        ("type", LossTermError),
        ("in place", LossTermError),
        ("nan", NotANumberError),
    ],
)
def test_a_term_with_a_fault_fails_its_trial(flaw, error, tmp_path, golden):
    with golden.raises(error):
        Training.begin(trial(loss_terms=[{"name": "shown", "flaw": flaw}]), CPU, tmp_path).advance()


def test_a_term_with_a_state_that_no_checkpoint_holds_is_named_before_training(tmp_path):
    fault = r"part_examples.py: loss term 'shown': TypeError: .*, got function in state\['rule'\]"
    with pytest.raises(PluginError, match=fault):
        run_study(load_study(text('name = "shown"\nflaw = "state"')), Store(tmp_path), local=True)
    assert Store(tmp_path).trials().is_empty()


def test_the_id_covers_terms_and_their_keys_and_nothing_where_there_are_none():
    plain, term = trial(), {"name": "activity_of_layers"}
    ids = [
        trial_id(trial(loss_terms=terms))
        for terms in ([], [term], [{**term, "weight": 0.5}], [{**term, "match": "norm"}])
    ]
    assert len(set(ids)) == 4
    assert ids[0] == trial_id(plain)
    settings = trial(loss_terms=[{**term, "match": "norm"}])
    assert settings_from_json(settings_to_json(settings)) == settings


def text(*terms, **train):
    tables = "".join(f"\n[[train.loss_terms]]\n{each}\n" for each in terms)
    return study_text(factors={"mixer": ["conv(k=3)"]}, task={"name": "reverse"}, train=train) + tables


@pytest.mark.parametrize(
    ("terms", "train"),
    [
        (['name = "activty_of_layers"'], {}),
        (["weight = 1.0"], {}),
        (['name = "surprise"\nnoise = -1.0'], {}),
        (['name = "surprise"\nnoises = 1.0'], {}),
        (['name = "surprise"', 'name = "surprise"'], {}),
        (['name = "activity_of_layers"'], {"compile": True}),
    ],
    ids=str,
)
def test_impossible_loss_terms_are_reported_with_the_file(terms, train, golden):
    with golden.raises(StudyError):
        load_study(text(*terms, **train))


def test_modules_that_a_model_lacks_are_reported_before_anything_is_trained(tmp_path, golden):
    study = load_study(text('name = "activity_of_layers"\nmatch = "body.parts.*"'))
    with golden.raises(LossTermError):
        run_study(study, Store(tmp_path), local=True)


def test_keys_of_a_term_may_be_lists_tuples_and_tables(tmp_path):
    keys = "weights = [1, 2.5]\ncouples = [[1, 2.0], [3.0, 4]]\nnames = { a = 1.0 }"
    study = load_study(text(f'name = "lists"\n{keys}', epochs=1, steps_per_epoch=2))
    run_study(study, Store(tmp_path), local=True)
    settings = study.trials[0].settings
    assert settings.train.loss_terms[0].couples == ((1, 2.0), (3, 4.0))
    assert settings_from_json(settings_to_json(settings)) == settings


def test_the_mean_of_a_term_with_a_better_direction_can_end_a_training(tmp_path):
    ending = {"metric": "activity_of_layers", "patience": 1, "min_change": 1e9}
    terms = [{"name": "activity_of_layers", "weight": 0.1}]
    training = Training.begin(trial(loss_terms=terms, early_stopping=ending, epochs=9), CPU, tmp_path)
    while not training.finished:
        training.advance()
    assert training.epoch == 2
    early = 'early_stopping = { metric = "surprise", patience = 1 }'
    with pytest.raises(StudyError, match=r"\(loss, activity_of_layers, accuracy, .*\), got 'surprise'"):
        load_study(
            text('name = "surprise"', 'name = "activity_of_layers"').replace("[train]", f"[train]\n{early}")
        )
