"""Faults of task keys are reported with their lines."""

import pytest

from .fault_messages import TEXT, message


def translation(models, key):
    """Return the fault of a translation study with these models and this task key."""
    text = TEXT.replace("2 * ({mixer} >> ff(8))", "{mixer}").replace("curriculum = { start = 5 }\n", "")
    text = text.replace('"sa", "conv(k=3)"', models)
    name = text[text.index("[task]") :].splitlines()[1]
    return message(
        text.replace(name, f'name = "translation"\ncorpus = "multi30k-en-fr"\ntokens = "words"\n{key}')
    )


def test_a_penalty_on_coverage_needs_attention(golden):
    told = translation('"seq2seq(lstm, lstm)"', "coverage_penalty = 0.2")
    golden(told.splitlines()[-1])


def test_sizes_are_estimated_only_for_models_that_use_them():
    told = translation('"seq2seq(lstm, lstm)", "neural_gpu"', 'sizes = "estimated"')
    assert told.count("remove sizes") == 1
    assert "[task] sizes: seq2seq(lstm, lstm) " in told


LANGUAGE = TEXT.replace("curriculum = { start = 5 }\n", "").replace(
    TEXT[TEXT.index("[task]") :].splitlines()[1], 'name = "language_model"\ncorpus = "paradise-lost"'
)


@pytest.mark.parametrize(
    "override",
    [
        "train.sampling=0.1",
        'task.tokens="spelled"',
        "task.beam=1",
        "task.contxt=64",
    ],
)
def test_keys_that_a_task_would_ignore_are_reported(override, golden):
    text = LANGUAGE.replace('"sa", "conv(k=3)"', '"conv(k=3)", "conv(k=2)"')
    golden(message(text, override).splitlines()[-1].strip())


def test_a_vocabulary_that_its_clusters_do_not_fit_is_reported(golden):
    text = LANGUAGE.replace('"sa", "conv(k=3)"', '"conv(k=3)", "conv(k=2)"')
    golden(message(text, "model.cutoffs=[900]"))


def test_a_plateau_needs_a_dev_split(golden):
    golden(message(TEXT, 'train.schedule={name="plateau"}'))


def test_a_key_that_a_task_does_not_take_is_a_fault_even_with_its_default():
    text = TEXT.replace("[task]\n", "[task]\nbeam = 1\n")
    assert message(text).splitlines()[-1].strip() == (
        "[task] unknown key 'beam' of reverse; known: dev_examples, name, test_examples, test_lengths, vocab"
    )
    found = message(LANGUAGE.replace('corpus = "paradise-lost"', ""))
    assert found.splitlines()[-1].strip() == (
        "[task] missing key 'corpus'; known: enwik8, paradise-lost, text8, text8-6m, wikitext-103, wikitext-2"
    )


def test_keys_that_do_not_fit_one_of_several_tasks_are_reported_at_their_own_lines(golden):
    name = TEXT[TEXT.index("[task]") :].splitlines()[1]
    keys = 'name = "{task}"\nvocab = 64\npairs = 400'
    text = TEXT.replace(name, keys).replace("[factors]", '[factors]\ntask = ["mqar", "copy"]')
    golden(message(text.replace("curriculum = { start = 5 }\n", "")))
