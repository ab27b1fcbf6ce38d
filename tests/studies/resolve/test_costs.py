"""Costs of trials, shared between vocabularies, against the analysis."""

import pytest

from activemem import load_study
from activemem.grammar import analyse, configure
from activemem.studies.catalog.tasks import UNBOUNDED_PAST
from activemem.studies.resolve.costs import (
    REFERENCE_TOKENS,
    analysis,
    max_learnable_length,
    max_training_flops,
    reach,
    sequence_tokens,
    step_flops,
)
from activemem.studies.schema.settings import TrialSettings

TRAIN = {"optimizer": {"name": "adam", "lr": 0.001}, "batch_size": 4, "epochs": 5, "steps_per_epoch": 10}
TASKS = {
    "reverse": {"name": "reverse"},
    "text": {"name": "language_model", "corpus": "text8", "context": 16},
    "words": {"name": "language_model", "corpus": "wikitext-2", "tokens": "words", "batching": "lines"},
    "numbers": {"name": "recall_addition", "length": 50},
}
MODELS = [
    {},
    {"norm": "none", "residual": False, "dropout": 0.0, "position": "none"},
    {"tied": True, "embedding": "unit", "norm": "post"},
    {"cutoffs": (5, 20)},
    {"tied": True, "tied_bias": True},
    {"output_bias": False},
    {"cutoffs": (5, 20), "tied": True, "tied_bias": True, "project_first_cluster": True},
    {"cutoffs": (5, 20), "tied": True, "attention_dropout": 0.3, "embedding_dropout": 0.1},
]


def _settings(task: str, model: dict) -> TrialSettings:
    recipe = "2 * (conv(k=3) >> ff(8))" if task != "numbers" else "ff(8) >> attention_pool >> ff(4)"
    train = TRAIN | ({"curriculum": {"start": 5}} if task == "reverse" else {})
    model = {"recipe": recipe, "d_model": 32, **model}
    return TrialSettings.model_validate({"model": model, "task": TASKS[task], "train": train})


@pytest.mark.parametrize("model", MODELS, ids=range(len(MODELS)))
@pytest.mark.parametrize("task", ["reverse", "text", "words"])
def test_costs_are_those_of_the_analysis_with_every_config(task, model):
    settings = _settings(task, model)
    asked = settings.task.interface
    for tokens in (1, 5, REFERENCE_TOKENS, 512):
        whole = analyse(
            settings.model.recipe,
            d_model=32,
            length=tokens,
            vocab=asked.model.vocab,
            causal=asked.model.causal,
            past=asked.past,
            **model,
        )
        found = analysis(settings, tokens)
        assert (found.parameters, found.training_flops) == (whole.parameters, whole.training_flops)
    assert reach(settings).right == (0 if asked.model.causal else 2)


def test_costs_of_numbers_in_and_out_are_those_of_the_analysis():
    settings = _settings("numbers", MODELS[1])
    whole = analyse(settings.model.recipe, d_model=32, length=52, columns=2, targets=1, **MODELS[1])
    found = analysis(settings, sequence_tokens(settings))
    assert sequence_tokens(settings) == 52
    assert (found.parameters, found.training_flops) == (whole.parameters, whole.training_flops)


def test_attention_in_a_stream_is_counted_with_the_past_that_it_sees():
    settings = _settings("text", {"recipe": "all_attn(N=4, span=32, heads=2, head_width=4)"})
    whole = analyse(settings.model.recipe, d_model=32, length=16, vocab=28, causal=True, past=UNBOUNDED_PAST)
    alone = analyse(settings.model.recipe, d_model=32, length=16, vocab=28, causal=True)
    assert step_flops(settings) == 4 * whole.training_flops > 4 * alone.training_flops


def test_a_trial_whose_length_does_not_grow_costs_its_steps():
    for task, tokens in (("text", 16), ("words", 40), ("numbers", 52)):
        settings = _settings(task, {})
        assert sequence_tokens(settings) == tokens
        assert max_training_flops(settings) == 5 * 10 * step_flops(settings)
        assert max_learnable_length(settings) is None
    assert sequence_tokens(_settings("reverse", {})) == REFERENCE_TOKENS
    assert max_learnable_length(_settings("reverse", {})) is not None


def test_the_frame_of_a_trial_is_its_settings_and_what_its_task_asks():
    settings = _settings("text", {"cutoffs": (5, 20), "init": "he"})
    expected = configure(d_model=32, vocab=28, causal=True, cutoffs=(5, 20), init="he")
    assert settings.config == expected


def test_the_word_model_of_all_attention_has_the_parameters_of_its_program():
    counted = {
        analysis(trial.settings, 1).parameters for trial in load_study("all-attention-words").trials[:3]
    }
    assert counted == {132_493_746}
