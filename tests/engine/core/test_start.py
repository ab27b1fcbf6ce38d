"""Trainings that start from a trained model: what they take, what is new, and what is refused."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from activemem import load_model, load_study, run_study
from activemem.engine.core.models import build_model, read_model_file, write_model_file
from activemem.engine.core.resources import Machine
from activemem.engine.core.start import StartError, split_weights, take_weights
from activemem.engine.run.planning import plan_study
from activemem.storage import Store
from activemem.studies.schema.settings import StartSettings
from activemem.studies.study import load_recorded_study
from activemem.studies.text.errors import StudyError

SHA = "0" * 64


@pytest.fixture
def pre(tiny, tmp_path, notes, monkeypatch):
    """Return the text of a small study, and the id of its one trained model, in a store `results`."""
    monkeypatch.chdir(tmp_path)
    text = tiny.replace('["not", "reverse"]', '["not"]').replace("[0, 1]", "[0]")
    text = text.replace('["sa(heads=2, head_width=8)", "conv(k=3)"]', '["conv(k=3)"]')
    study = load_study(text, overrides=["study.keep_weights=true", "train.epochs=1"])
    run_study(study, Store("results"), Machine(), notes, local=True)
    return SimpleNamespace(text=text, trial=study.trials[0].id, study=study)


def loaded(pre, start, *overrides):
    return load_study(
        pre.text.replace("tiny", "fine", 1),
        overrides=["study.keep_weights=true", f"train.start={start}", "train.epochs=1", *overrides],
    )


def start_of(pre, take='"all"'):
    return f'{{model="tiny:{pre.trial[:6]}", take={take}}}'


def shapes(**names):
    return {name.replace("__", "."): torch.zeros(shape) for name, shape in names.items()}


@pytest.mark.parametrize(
    ("take", "expected"),
    [
        ("all", "weights of other shapes: output.weight is 3 × 4, here 5 × 4; leave them out, as in take ="),
        (["body"], ("body.a.w", "body.b.w")),
        (["body.a", "norm*"], ("body.a.w",)),
        (["bodi"], "no weight of both models is in 'bodi'; nearest: body"),
        (["body", "output", "heads"], "no weight of both models is in 'heads'; nearest: head"),
    ],
)
def test_parts_are_taken_by_name_and_faults_come_together(take, expected):
    own = shapes(body__a__w=(4, 4), body__b__w=4, output__weight=(5, 4), head__bias=2)
    trained = shapes(body__a__w=(4, 4), body__b__w=4, output__weight=(3, 4), norm__old=7, head__bias=2)
    start = StartSettings(model="pre:1", take=take if isinstance(take, str) else tuple(take), sha256=SHA)
    if isinstance(expected, str):
        with pytest.raises(StartError) as error:
            split_weights(start, own, trained)
        assert expected in str(error.value)
        assert ("other shapes" in str(error.value)) == ("output" in take or take == "all")
    elif take == ["body.a", "norm*"]:  # the new model has no such norm
        with pytest.raises(StartError, match="no weight of both models is in 'norm"):
            split_weights(start, own, trained)
    else:
        found = split_weights(start, own, trained)
        assert found.taken == expected
        assert found.new == tuple(name for name in own if name not in expected)
        assert found.unused == ("head.bias", "norm.old", "output.weight")


def test_a_training_starts_from_the_taken_weights_alone(pre, tmp_path, notes):
    frozen = 'train.groups=[{match="body.*", freeze=true}, {match="norm.*", freeze=true}]'
    study = loaded(pre, start_of(pre, '["body", "norm"]'), frozen)
    run_study(study, store := Store("results"), Machine(), notes, local=True)
    taken = load_file(store.files.weights_file(pre.trial))
    fine = load_file(store.files.weights_file(study.trials[0].id))
    same = {name for name in fine if torch.equal(fine[name], taken[name])}
    assert {name.partition(".")[0] for name in same} == {"body", "norm"}
    assert {name.partition(".")[0] for name in fine.keys() - same} == {"embedding", "output"}
    # the stored row names the weights, and the model loads without them
    settings = json.loads(store.trials().filter(trial=study.trials[0].id)["settings"].item())
    assert settings["train"]["start"] == {
        "take": ["body", "norm"],
        "sha256": study.trials[0].settings.train.start.sha256,
    }
    assert load_model(store.files.weights_file(study.trials[0].id)).module is not None


def test_an_id_has_the_weights_and_the_parts_but_not_the_path(pre, tmp_path):
    ids = {take: loaded(pre, start_of(pre, take)).trials[0].id for take in ('"all"', '["body"]')}
    load_model(Store("results").files.weights_file(pre.trial)).export(tmp_path / "folder")
    assert loaded(pre, '{model="folder"}').trials[0].id == ids['"all"']
    assert loaded(pre, '{model="folder", take=["body", "body"]}').trials[0].id == ids['["body"]']
    scratch = loaded(pre, '"scratch"').trials[0].id
    assert scratch == load_study(pre.text, overrides=["train.epochs=1"]).trials[0].id == pre.trial
    assert len({*ids.values(), scratch}) == 3


def test_levels_with_and_without_a_trained_model_stand_in_one_study(pre, notes):
    text = pre.text.replace(
        "[factors]\n", f'[factors]\nstart = ["scratch", {{ label = "pre", {start_of(pre)[1:]}]\n'
    )
    text = text.replace('rows = "mixer"', 'rows = "start"')
    study = load_study(text, overrides=['train.start="{start}"', "train.epochs=1"])
    starts = {trial.levels["start"]: trial.settings.train.start for trial in study.trials}
    assert starts["scratch"] is None
    assert starts["pre"].take == "all"
    run_study(study, store := Store("results"), Machine(), notes, local=True)
    shutil.rmtree("results/weights")  # from now on, the record says which weights they were
    again = load_recorded_study(store.records.load(study.name))
    assert [trial.id for trial in again.trials] == [trial.id for trial in study.trials]


def test_a_plan_says_what_is_taken_and_what_is_new(pre):
    plan = plan_study(loaded(pre, start_of(pre, '["body"]')), Store("results"))
    (note,) = (each.text for each in plan.notes if each.label == "start")
    assert "weights of tiny:" in note
    assert note.endswith("body; new: embedding, norm and output; not taken: embedding, norm and output")


def test_weights_of_other_shapes_are_refused_before_anything_trains(pre, notes):
    wider = loaded(pre, start_of(pre), "model.d_model=32")
    for act in (
        lambda: plan_study(wider, Store("results")),
        lambda: run_study(wider, Store("results"), Machine(), notes, local=True),
    ):
        with pytest.raises(StartError, match=r"weights of other shapes: .* is 16, here 32"):
            act()


@pytest.mark.parametrize(
    ("start", "told"),
    [
        ('{model="tinny:1"}', "has no finished trial of study 'tinny'; nearest: tiny"),
        ('{model="tiny:0000"}', "expected one trial, got 0 trials of tiny with ids that begin with '0000'"),
        ('{model="folder"}', "expected STUDY:TRIAL, a model's file, or a folder with model.safetensors"),
        ('{modell="tiny:1"}', "unknown key 'modell'; nearest: model"),
        ('{take=["body"]}', "no model was read: name it in [train] start"),
        ("{model=TRIAL, sha256='12'}", "expected the SHA-256 of the model's file"),
        ('"{none}"', "no value for the hole {none}"),
    ],
)
def test_a_model_that_is_not_found_is_one_clear_fault(pre, start, told):
    with pytest.raises(StudyError) as error:
        loaded(pre, start.replace("TRIAL", f"'tiny:{pre.trial}'"))
    assert told in str(error.value)
    assert str(error.value).startswith("study: 1 fault")


def test_weights_that_were_not_kept_are_named_with_the_next_step(pre):
    shutil.rmtree("results/weights")
    with pytest.raises(StudyError, match="were not kept: set keep_weights = true in its"):
        loaded(pre, start_of(pre))


def test_an_embedding_of_other_symbols_is_not_taken(pre, tmp_path):
    file = replace(read_model_file(Store("results").files.weights_file(pre.trial)), symbols={"content": "ab"})
    write_model_file(tmp_path / "own" / SHA, file)
    settings = pre.study.trials[0].settings
    for take, symbols, is_refused in (
        ("all", {"content": "ab"}, False),
        ("all", {"content": "ac"}, True),
        (("body",), {"content": "ac"}, False),
    ):
        model = build_model(settings, torch.Generator().manual_seed(5))
        start = StartSettings(model="tiny:1", take=take, sha256=SHA)
        if is_refused:
            with pytest.raises(StartError, match="it has other symbols, and embedding"):
                take_weights(model, start, tmp_path, symbols)
            continue
        take_weights(model, start, tmp_path, symbols)
        taken = {
            name for name, weight in model.state_dict().items() if torch.equal(weight, file.weights[name])
        }
        assert {name for name in file.weights if take == "all" or name.startswith("body.")} <= taken
