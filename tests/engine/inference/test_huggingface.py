"""An exported language model gives the same numbers in transformers and lm_eval as here."""

import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from activemem import load_model, open_study, run_study
from activemem.storage import Store
from activemem.studies import load_study

from ...study_texts import study_text

transformers = pytest.importorskip("transformers", reason="not among what the tests install")

WORDS = ("a small cat", "some tall trees", "many quiet words", "every old letter", "few green fields")
LINES = [f"{WORDS[at % 5]} and {WORDS[at * 7 % 3]} by {WORDS[at * 11 % 4]}" for at in range(400)]
OWN = {"path": "own.txt", "dev": 0.1, "test": 0.1}
BYTE_BPE = {"tokens": "byte_bpe", "pieces": 300}
KINDS = {
    "characters": {"corpus": OWN},
    "characters in lines": {"corpus": OWN, "batching": "lines"},
    "words": {"corpus": OWN, "tokens": "words", "pieces": 300},
    "pieces in lines": {"corpus": OWN, "tokens": "bpe", "pieces": 300, "batching": "lines"},
    "byte_bpe": {"corpus": OWN, **BYTE_BPE},
    "documents": {"corpus": {"documents": "own.parquet"}, **BYTE_BPE, "batching": "packed"},
    "a window": {"corpus": OWN},
    "neighbours": {"corpus": OWN},
}
RECIPES = {"a window": "sa(heads=2, head_width=4, span=16)", "neighbours": "conv(k=3)"}
TEXT = "a small cat and many quiet words"


class Exported:
    """A trained model, its study, and its folder opened in transformers."""

    def __init__(self, folder, task, recipe):
        self.folder = folder / "hub"
        (folder / "own.txt").write_text("\n".join(LINES), encoding="utf-8")
        pq.write_table(pa.table({"text": LINES}), folder / "own.parquet")
        scores = ["lm_eval[whole,bits_per_byte]", "lm_eval[word,perplexity]"]
        text = study_text(
            study={"keep_weights": True},
            model={"recipe": recipe},
            task={"name": "language_model", "context": 64, **task},
            train={"curriculum": None},
            factors={"seed": [0]},
            table=[{"name": "scores", "rows": "seed", "value": scores}],
        )
        (folder / "own.toml").write_text(text, encoding="utf-8")
        self.study, self.store = load_study(folder / "own.toml"), Store(folder / "results")
        run_study(self.study, self.store, local=True)
        weights = self.store.files.weights_file(self.study.trials[0].id)
        self.trained = load_model(weights)
        self.trained.export(self.folder)
        self.model, self.tokenizer = (
            kind.from_pretrained(self.folder, trust_remote_code=True)
            for kind in (transformers.AutoModelForCausalLM, transformers.AutoTokenizer)
        )

    def loss(self, symbols):
        return self.model(symbols, labels=symbols).loss.item()


@pytest.fixture(scope="module", params=KINDS)
def exported(request, tmp_path_factory):
    return Exported(
        tmp_path_factory.mktemp("exported"), KINDS[request.param], RECIPES.get(request.param, "lstm")
    )


def test_the_loss_of_a_text_is_its_score(exported):
    symbols = exported.tokenizer(TEXT, return_tensors="pt")["input_ids"]
    ended = torch.cat([symbols, torch.tensor([[exported.tokenizer.eos_token_id]])], 1)
    assert exported.loss(ended) == pytest.approx(exported.trained.score(TEXT).loss, rel=1e-5)
    assert exported.tokenizer.decode(symbols[0], skip_special_tokens=True) == TEXT
    if not exported.trained.file.symbols.get("documents"):
        line = exported.tokenizer(f"{TEXT}\n", return_tensors="pt")["input_ids"]
        assert line.tolist() == ended.tolist()


def test_a_folder_says_how_long_a_text_the_model_reads(exported):
    task = exported.trained.file.trial.settings.task
    bound = exported.model.config.max_position_embeddings
    assert exported.tokenizer.model_max_length == bound
    if task.batching == "stream":
        assert bound >= 1_000_000
        many = exported.tokenizer("\n".join([TEXT] * 9) + "\n", return_tensors="pt")["input_ids"]
        score = exported.trained.score("\n".join([TEXT] * 9))
        assert many.shape[1] > task.context
        assert exported.loss(many) == pytest.approx(score.loss, rel=1e-5)
    else:
        assert bound == (task.longest if task.by_line else task.context)


def test_a_text_is_continued_without_a_mask_as_here(exported):
    beginning = exported.tokenizer("a small ", return_tensors="pt")["input_ids"]
    written = exported.model.generate(beginning, max_new_tokens=12, do_sample=False)[0]
    asked = exported.model.generate(beginning, max_new_tokens=12, do_sample=False, use_cache=True)[0]
    assert asked.tolist() == written.tolist()
    continued = exported.tokenizer.decode(written[beginning.shape[1] :], skip_special_tokens=True)
    expected = "".join(exported.trained.generate("a small ", temperature=0.0, max_symbols=12))
    # the last character may be incomplete
    assert continued.rstrip("\n\ufffd") == expected.rstrip("\n\ufffd")


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_changes_no_output(exported, side):
    texts = ["a small cat", TEXT]
    batch = exported.tokenizer(texts, return_tensors="pt", padding=True, padding_side=side)
    found = exported.model(**batch).logits
    for text, mask, logits in zip(texts, batch["attention_mask"], found, strict=True):
        alone = exported.model(**exported.tokenizer(text, return_tensors="pt")).logits[0]
        torch.testing.assert_close(logits[mask.bool()], alone)
    pipe = transformers.pipeline("text-generation", model=exported.model, tokenizer=exported.tokenizer)
    one, two = (pipe(texts, max_new_tokens=6, do_sample=False, batch_size=size) for size in (1, 2))
    assert one == two


def test_lm_eval_gives_the_bits_per_byte_of_the_score_both_ways(exported, tmp_path):
    lm_eval = pytest.importorskip("lm_eval", reason="not among what the tests install")
    from activemem.engine.probes.lm_evaluation import EvaluationError, evaluate_study

    whole = {"output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{text}}"}
    word = {"output_type": "loglikelihood", "doc_to_text": "{{text}}", "doc_to_target": "{{next}}"}
    write_task(tmp_path, "whole", [{"text": TEXT}], whole, "bits_per_byte")
    write_task(tmp_path, "word", [{"text": "a small", "next": " cat and"}], word, "perplexity")
    study, store = exported.study, exported.store
    (probed,) = evaluate_study(study, store, ["whole", "word"], tmp_path)
    assert probed.reason is None
    # lm_eval scores a text after a mark, and without its end
    marked = "" if after_mark(exported) else "\n"
    nats = exported.trained.score(marked + TEXT).without_ends.nats
    bits = probed.metrics["lm_eval[whole,bits_per_byte]"]
    assert bits == pytest.approx(nats / math.log(2) / len(TEXT.encode()), rel=1e-5)
    assert f"{bits:.3f}" in str(open_study(study, store).table("scores"))
    for task, metric, more in (
        ("whole", "bits_per_byte", ",add_bos_token=False"),
        ("word", "perplexity", ""),
    ):
        found = lm_eval.simple_evaluate(
            model="hf",
            model_args=f"pretrained={exported.folder},trust_remote_code=True{more}",
            tasks=[task],
            task_manager=lm_eval.tasks.TaskManager(include_path=str(tmp_path), include_defaults=False),
            device="cpu",
            bootstrap_iters=0,
        )
        score = found["results"][task][f"{metric},none"]
        assert score == pytest.approx(probed.metrics[f"lm_eval[{task},{metric}]"], rel=1e-6)
    if exported.trained.file.trial.settings.task.batching == "stream":
        long = "\n".join([TEXT] * 9)  # longer than the context
        write_task(tmp_path, "long", [{"text": long}], whole, "bits_per_byte")
        (probed,) = evaluate_study(study, store, ["long"], tmp_path)
        nats = exported.trained.score(marked + long).without_ends.nats
        ends = exported.trained.score(marked + long).nats - nats
        bits = probed.metrics["lm_eval[long,bits_per_byte]"] * math.log(2) * len(long.encode())
        assert nats * 0.999 < bits < (nats + ends) * 1.001
    with pytest.raises(EvaluationError, match="lm_eval: nosuch; known: "):
        next(evaluate_study(study, store, ["nosuch"], tmp_path))


def after_mark(exported):
    """Return whether a text alone is scored from its first symbol."""
    task = exported.trained.file.trial.settings.task
    return task.by_line or task.tokens == "byte_bpe"


def write_task(folder, name, examples, task, metric):
    """Write a task of lm_eval and its examples."""
    data = folder / f"{name}.jsonl"
    data.write_text("\n".join(map(json.dumps, examples)), encoding="utf-8")
    source = {
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test",
    }
    content = {"task": name, **source, **task, "metric_list": [{"metric": metric}]}
    (folder / f"{name}.yaml").write_text(json.dumps(content), encoding="utf-8")  # JSON is YAML
