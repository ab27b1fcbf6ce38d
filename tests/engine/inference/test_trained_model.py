"""A model file works as in its trial, without the study."""

import base64
import copy
import json
import math
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save

from activemem import ActivememError, analyse, load_model, open_study, run_study
from activemem.engine import DataError, Machine
from activemem.engine.core.models import ModelFile, ModelFileError, read_model_file, write_model_file
from activemem.engine.data.text.corpus import open_corpus
from activemem.engine.data.vocabularies.build import text_vocabulary_from_dict
from activemem.engine.inference.predictions import InputError, answer_lines
from activemem.engine.inference.text_generation import GenerationError, Sampling
from activemem.engine.inference.trained_model import UseError
from activemem.engine.objectives.generation import PairData
from activemem.engine.trial.training import Training
from activemem.reporting.kept_models import KeptModelError
from activemem.storage import Store
from activemem.studies import Trial, load_study
from activemem.studies.schema.settings import TrialSettings

from ...study_texts import study_text
from ..text_factories import tiny_corpus
from ..translation_factories import MARKOV, SEQ2SEQ, register_numbers, translation_study

CPU = torch.device("cpu")


def train(settings, folder, data):
    """Train, save and load a model: return the loaded model, its file, and the last metrics."""
    training = Training.begin(settings, CPU, data)
    while not training.finished:
        metrics = training.advance()
    path = folder / "model.safetensors"
    kept = ModelFile(
        trial=Trial(study="s", levels={}, settings=settings),
        weights=training.weights(),
        symbols=training.objective.symbols(),
        metrics=metrics,
        version="",
        commit=None,
    )
    write_model_file(path, kept)
    return load_model(path), path, metrics


def text_settings(recipe, position="none", **task):
    return TrialSettings.model_validate(
        {
            "model": {"recipe": recipe, "d_model": 16, "position": position},
            "task": {"name": "language_model", "corpus": "tiny", "context": 32} | task,
            "train": {
                "optimizer": {"name": "adam", "lr": 1e-2},
                "batch_size": 8,
                "epochs": 1,
                "steps_per_epoch": 30,
            },
        }
    )


KINDS = {
    "stream": ("conv(k=3) >> ff(16)", {}),
    "state": ("lstm", {}),
    "lines": ("sa(heads=2, head_width=8) >> ff(16)", {"batching": "lines"}),
    "pieces": ("conv(k=2)", {"tokens": "bpe", "pieces": 300, "batching": "lines"}),
    "packed": ("conv(k=2)", {"batching": "packed", "context": 32}),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    with tiny_corpus(folder):
        yield folder


@pytest.fixture(scope="module", params=KINDS)
def language_model(request, data, tmp_path_factory):
    recipe, task = KINDS[request.param]
    settings = text_settings(recipe, **task)
    return *train(settings, tmp_path_factory.mktemp("model"), data), open_corpus(settings.task, data)


def next_symbols(trained, beginning, count):
    """Return the likeliest symbols, each computed from the whole prefix."""
    symbols = list(beginning)
    for _ in range(count):
        with torch.no_grad():
            symbols.append(int(trained.module(torch.tensor([symbols]))[0, -1].argmax()))
    return symbols[len(beginning) :]


def test_the_score_of_a_split_is_that_of_the_training(language_model):
    trained, _, metrics, corpus = language_model
    text = corpus.vocabulary.decode(corpus.dev.tokens.tolist())
    found = trained.score(text)
    assert found.loss == pytest.approx(metrics["dev_loss"], rel=1e-6)
    assert found.bits_per_token == pytest.approx(metrics["dev_loss"] / math.log(2), rel=1e-6)


def test_lines_that_are_too_long_to_be_scored_are_counted(data, tmp_path, caplog):
    trained, *_ = train(text_settings("conv(k=3)", batching="lines", longest=20), tmp_path, data)
    corpus = open_corpus(trained.file.trial.settings.task, data)
    lines = corpus.vocabulary.decode(corpus.dev.tokens.tolist()).splitlines()
    short, long = min(filter(None, lines), key=len), max(lines, key=len)
    assert len(short) <= 20 < len(long)
    alone = trained.score(f"{short}\n")
    assert not caplog.messages
    assert trained.score(f"{short}\n{long}\n{long}\n") == alone
    assert caplog.messages == ["not scored: 2 lines of more than 20 tokens"]


@pytest.mark.parametrize("position", ["timing", "none"])
@pytest.mark.parametrize("mixer", ["conv(k=3)", "sa(heads=2, head_width=8, pos=rope, span=16)"])
def test_a_text_of_a_stream_is_scored_as_in_one_pass(data, tmp_path, mixer, position):
    settings = text_settings(f"{mixer} >> ff(16)", position)
    trained, *_ = train(settings, tmp_path, data)
    corpus = open_corpus(settings.task, data)
    for length in (20, 100, 1000):  # the context is 32
        tokens = corpus.test.tokens[: length + 1].long()
        tokens[-1] = corpus.vocabulary.end
        with torch.no_grad():
            logits = trained.module(tokens[None, :-1])[0]
        expected = torch.nn.functional.cross_entropy(logits, tokens[1:]).item()
        assert trained.score(corpus.vocabulary.decode(tokens.tolist())).loss == pytest.approx(
            expected, rel=1e-5
        )


def test_stepwise_generation_equals_whole_passes(language_model):
    trained, _, _, corpus = language_model
    symbols, lines = corpus.vocabulary, trained.file.trial.settings.task.batching == "lines"
    beginning = symbols.encode("the ")
    marked = lines or symbols.begins_with_mark
    expected = next_symbols(trained, [0, *beginning] if marked else beginning, 20)
    if lines and symbols.end in expected:
        expected = expected[: expected.index(symbols.end) + 1]
    text = "".join(trained.generate("the ", temperature=0.0, max_symbols=20))
    assert symbols.decode(beginning) + text == symbols.decode([*beginning, *expected])


@pytest.mark.parametrize("mixer", ["conv(k=3)", "sa(heads=2, head_width=8)"])
def test_a_packed_model_never_reads_more_than_its_context(data, tmp_path, mixer):
    settings = text_settings(mixer, "timing", batching="packed", context=8)
    trained, *_ = train(settings, tmp_path, data)
    symbols, text = text_vocabulary_from_dict(trained.file.symbols), "the sea "  # the window is full
    window = symbols.encode(text)
    assert len(window) == 8
    expected = []
    for _ in range(20):
        expected += next_symbols(trained, window, 1)
        window = [*window, expected[-1]]
        window = window if len(window) <= 8 else window[-4:]
    assert "".join(trained.generate(text, temperature=0.0, max_symbols=20)) == symbols.decode(expected)


def test_damaged_weights_are_reported_with_the_commands_that_mend_them(language_model, tmp_path, golden):
    data = language_model[1].read_bytes()
    (tmp_path / "model.safetensors").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with golden.raises(ActivememError):
        load_model(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("table.csv", b"text,label\na,b\n"),
        ("empty.pt", b""),
        ("other.safetensors", save({"weight": torch.zeros(3)})),
        ("other.bin", save({"weight": torch.zeros(3)}, {"format": "pt"})),
    ],
)
def test_a_file_of_another_program_is_not_called_damaged(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ActivememError) as error:
        load_model(tmp_path / name)
    assert str(error.value) == (
        f"{tmp_path / name}: expected a trained model of activemem, got another file; "
        "activemem model list STUDY shows a study's models"
    )


def test_a_trained_model_and_an_analysis_show_what_they_are(language_model):
    trained, *_ = language_model
    assert re.fullmatch(r"<TrainedModel .* on language_model, seed 0: [\d,]+ parameters>", repr(trained))
    shown = repr(analyse("2 * (sa(heads=2) >> ff(8))", length=5, d_model=4, vocab=9))
    assert re.fullmatch(r"<Analysis of 2 \* \(sa.*: [\d,]+ parameters, [\d,]+ FLOPs, 5 tokens>", shown)


def test_an_unknown_keyword_of_generation_is_answered_with_those_that_exist(language_model):
    trained, *_ = language_model
    with pytest.raises(GenerationError, match=r"max_symbols, temperature, top_k, top_p, seed, got length"):
        trained.generate("the ", length=20)


def test_a_model_whose_outputs_are_no_numbers_draws_no_text(language_model):
    trained = copy.deepcopy(language_model[0])
    with torch.no_grad():
        for weight in trained.module.parameters():
            weight.fill_(float("nan"))
    with pytest.raises(GenerationError, match="expected outputs that are numbers"):
        "".join(trained.generate("and ", max_symbols=3))


def test_a_seed_gives_one_text_and_the_likeliest_symbol_alone_is_greedy(language_model):
    trained, *_ = language_model

    def drawn(**sampling):
        return "".join(trained.generate("and ", max_symbols=12, **sampling))

    assert drawn(seed=3) == drawn(seed=3)
    assert len({drawn(seed=seed) for seed in range(5)}) > 1
    assert drawn(top_k=1, seed=9) == drawn(temperature=0.0) == drawn(top_p=1e-9, seed=4)


@pytest.fixture(scope="module")
def byte_pieces(tmp_path_factory):
    """Return a model of byte-level pieces of a text in a file."""
    folder = tmp_path_factory.mktemp("byte_pieces")
    words = ("a small cat", "some tall trees", "many quiet words", "every old letter", "few green fields")
    lines = [f"{words[at % 5]} and {words[at * 7 % 3]} number {at}" for at in range(400)]
    (folder / "own.txt").write_text("\n".join(lines), encoding="utf-8")
    task = {"name": "language_model", "corpus": {"path": "own.txt", "dev": 0.1, "test": 0.1}, "context": 16}
    path = folder / "own.toml"
    text = study_text(
        study={"keep_weights": True},
        model={"recipe": "lstm"},
        task={**task, "tokens": "byte_bpe", "pieces": 300},
        train={"curriculum": None},
        factors={"seed": [0]},
    )
    path.write_text(text, encoding="utf-8")
    study = load_study(path)
    run_study(study, folder / "results", local=True)
    return load_model(folder / "results" / "weights" / f"{study.trials[0].id}.safetensors"), folder


def test_the_whole_text_of_byte_level_pieces_is_scored_after_a_mark(byte_pieces):
    trained, _ = byte_pieces
    symbols, text = text_vocabulary_from_dict(trained.file.symbols), "a small cat\n"
    tokens = [0, *symbols.encode(text)]
    with torch.no_grad():
        logits = trained.module(torch.tensor([tokens]))[0, :-1]
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor(tokens[1:])).item()
    assert trained.score(text).loss == pytest.approx(expected, rel=1e-5)
    following = symbols.decode(next_symbols(trained, tokens[:-1], 8))
    assert "".join(trained.generate(text.rstrip(), temperature=0.0, max_symbols=8)) == following


def test_requests_that_a_language_model_cannot_answer_are_reported(language_model, golden):
    trained, *_ = language_model
    with golden.raises(GenerationError):
        trained.generate(max_symbols=0, temperature=-1.0)
    with pytest.raises(UseError, match="continues a text"):
        trained.predict(["1"])
    with pytest.raises(DataError):
        trained.score("")
    if trained.file.trial.settings.task.tokens == "characters":
        with pytest.raises(DataError, match="expected one of"):
            trained.score("\N{SNOWMAN}\n")


@pytest.mark.heavy
def test_a_translator_gives_the_outputs_that_its_trial_stored(tmp_path, monkeypatch, golden):
    register_numbers(tmp_path, monkeypatch)
    study, store = translation_study(SEQ2SEQ, MARKOV, epochs=2), Store(tmp_path / "results")
    run_study(study, store, Machine(data=tmp_path), local=True)
    for kept in open_study(study, store).models:
        sources, outputs = store.outputs([kept.trial]).select("source", "output")
        assert list(load_model(kept.path).predict(sources)) == outputs.to_list()
    with golden.raises(KeptModelError):
        open_study(study, store).best("blue")
    best = open_study(study, store).best("bleu")
    assert best.metrics["bleu"] == max(each.metrics["bleu"] for each in open_study(study, store).models)


@pytest.mark.heavy
def test_a_translator_of_estimated_sizes_answers_as_in_its_trial(tmp_path, monkeypatch):
    register_numbers(tmp_path, monkeypatch, doubled=True)
    study, store = translation_study(MARKOV, task={"sizes": "estimated"}), Store(tmp_path / "results")
    run_study(study, store, Machine(data=tmp_path), local=True)
    (kept,) = open_study(study, store).models
    file, pairs = read_model_file(kept.path), PairData(study.trials[0].settings, tmp_path)
    lengths = [split.line_lengths.numpy() for split in (pairs.train.source, pairs.train.target)]
    line = [float(Fraction(file.symbols["length_line"][name])) for name in ("slope", "constant")]
    np.testing.assert_allclose(line, np.polyfit(*lengths, 1), rtol=1e-9)
    sources, outputs = store.outputs([kept.trial]).select("source", "output")
    assert list(load_model(kept.path).predict(sources)) == outputs.to_list()
    assert store.outputs([kept.trial])["sizes"].unique().to_list() == ["estimated"]


def test_the_stored_symbols_and_classes_number_the_inputs_and_outputs_of_the_module(tmp_path):
    rows = [{"text": " ".join("uvw"[: 1 + n % 3] * (1 + n)), "label": "cab"[n % 3]} for n in range(60)]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    task = {"name": "sequence_classification", "corpus": {"path": "rows.jsonl"}, "tokens": "symbols"}
    model = {"recipe": "conv(k=3) >> mean_pool"}
    text = study_text(study={"keep_weights": True}, task=task, model=model, train={"curriculum": None})
    (tmp_path / "study.toml").write_text(text, encoding="utf-8")
    study, store = load_study(tmp_path / "study.toml"), Store(tmp_path / "results")
    run_study(study, store, Machine(data=tmp_path), local=True)
    trained = load_model(open_study(study, store).best("dev_accuracy").path)
    symbols = trained.file.symbols
    size, *listed = base64.b64decode(symbols["source"]["content"]).decode().split("\n")
    assert (int(size), sorted(listed)) == (4 + len(listed), ["u", "v", "w"])
    assert symbols["classes"] == ["a", "b", "c"]
    for line, answer in zip(lines := ["u", "w v x", "v v"], trained.predict(lines), strict=True):
        numbers = [4 + listed.index(each) if each in listed else 3 for each in line.split()]
        assert answer == symbols["classes"][trained.module(torch.tensor([numbers])).argmax()]
    for wrong in (
        {},
        {**symbols, "classes": 3},
        {**symbols, "classes": [1.5, None]},
        {**symbols, "source": []},
    ):
        changed = replace(trained.file, symbols=wrong)
        with pytest.raises(ModelFileError, match="symbols and classes of a model of sequence_classification"):
            list(answer_lines(changed, trained.module, ["u"]))


def test_symbols_are_answered_by_the_likeliest_and_bad_lines_are_named(settings, tmp_path, golden):
    trained, *_ = train(settings("sa(heads=2, head_width=8)", "reverse"), tmp_path, tmp_path)
    lines = ["1 0 2", "3", "0 0 1 2 3"]
    for line, answer in zip(lines, trained.predict(lines), strict=True):
        inputs = torch.tensor([[int(word) for word in line.split()]])
        assert answer == " ".join(map(str, trained.module(inputs).argmax(-1)[0].tolist()))
    with golden.raises(InputError):
        list(trained.predict(["1", "1 -1"]))
    with golden.raises(UseError):
        trained.generate("x")


@pytest.mark.parametrize("lines", ["3 1 4", b"3 1 4", None, [[3, 1, 4]], ["3 1 4", None]], ids=repr)
def test_lines_are_a_list_of_texts(settings, tmp_path, lines, golden):
    trained, *_ = train(settings("conv(k=1)", "reverse", epochs=1), tmp_path, tmp_path)
    with golden.raises(InputError):
        list(trained.predict(lines))


def test_an_empty_line_has_an_empty_answer_and_a_bad_one_comes_after_those_before_it(settings, tmp_path):
    trained, *_ = train(settings("sa(heads=2, head_width=8)", "reverse"), tmp_path, tmp_path)
    assert list(trained.predict(["", "\n", "  \r\n"])) == ["", "", ""]
    whole, alone = list(trained.predict(["1 0", "", "2"])), [next(trained.predict([line])) for line in "12"]
    assert (whole[1], whole[2], len(alone)) == ("", alone[1], 2)
    assert list(trained.predict(["\ufeff1 0"])) == whole[:1]
    answers = trained.predict(["1 0", "1 \udce9"])
    assert next(answers) == whole[0]
    with pytest.raises(InputError, match=r"^line 2: .*surrogates not allowed$"):
        next(answers)


@pytest.mark.parametrize(
    "sampling",
    [
        {"seed": 10**19 * 9},
        {"seed": -1},
        {"temperature": math.inf},
        {"temperature": math.nan},
        {"top_p": math.nan},
    ],
    ids=str,
)
def test_numbers_that_no_text_can_be_drawn_with_are_reported(sampling, golden):
    with golden.raises(GenerationError):
        Sampling(**sampling)


def test_a_text_is_read_without_its_byte_order_mark_and_must_be_encodable(language_model, golden):
    trained, *_ = language_model
    assert trained.score("\ufeffthe cat sees\n") == trained.score("the cat sees\n")
    tiny = "".join(trained.generate("\ufeffthe ", temperature=1e-320, max_symbols=5))
    assert tiny == "".join(trained.generate("the ", temperature=0.0, max_symbols=5))
    for ask in (trained.score, trained.generate):
        with golden.raises(DataError):
            ask("the \ud800\n")


@pytest.mark.heavy  # torch exports for seconds
@pytest.mark.parametrize("recipe", ["sa(heads=2, head_width=8, pos=alibi) >> ff(16)", "conv(k=5) >> gru"])
def test_a_program_by_torch_export_gives_the_same_outputs_as_its_page_says(
    settings, recipe, tmp_path, monkeypatch
):
    page = (Path(__file__).parents[3] / "docs/how-to/trained-models.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n([^`]*torch\.export\.save[^`]*)^```$", page, re.MULTILINE)
    trained, *_ = train(settings(recipe, "reverse"), tmp_path, tmp_path)
    monkeypatch.chdir(tmp_path)
    exec(program, {"MODEL": trained.path})
    loaded = torch.export.load("model.pt2").module()
    inputs, lengths = torch.randint(3, (8, 64)), torch.tensor([64, 1, 33, 2, 7, 63, 8, 12])
    outputs = loaded(inputs, lengths)
    for row, length in enumerate(lengths.tolist()):
        alone = trained.module(inputs[row : row + 1, :length])[0]
        assert torch.allclose(outputs[row, :length], alone, atol=1e-5)


def test_a_folder_for_the_hub_is_loaded_as_the_file(settings, tmp_path):
    trained, *_ = train(settings(), tmp_path, tmp_path)
    folder = trained.export(tmp_path / "hub")
    assert sorted(each.name for each in folder.iterdir()) == ["config.json", "model.safetensors"]
    assert list(load_model(folder).predict(["1 0"])) == list(trained.predict(["1 0"]))
    with pytest.raises(FileExistsError):
        trained.export(folder)


def test_a_folder_has_the_present_weights_of_a_model_that_was_trained_further(settings, tmp_path):
    trained, *_ = train(settings("gru", "reverse", epochs=1), tmp_path, tmp_path)
    same = trained.export(tmp_path / "same")
    assert (same / "model.safetensors").read_bytes() == trained.path.read_bytes()
    with torch.no_grad():
        for weight in trained.module.parameters():
            weight.add_(1)
    loaded = load_model(trained.export(tmp_path / "tuned"))
    for name, weight in trained.module.state_dict().items():
        assert torch.equal(loaded.module.state_dict()[name], weight), name
    trained.module.half()
    halves = load_model(trained.export(tmp_path / "halves"))
    for name, weight in trained.module.state_dict().items():
        assert torch.equal(halves.module.state_dict()[name], weight.float()), name
