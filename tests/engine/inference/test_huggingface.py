"""An exported language model gives the same numbers in transformers and lm_eval as here."""

import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from activemem import load_model, open_study, run_study
from activemem.blocks.models.model import InputError
from activemem.engine.core.models import ModelFileError
from activemem.engine.inference.trained_model import UseError
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
    "learnt spans": {"corpus": OWN},
}
RECIPES = {
    "a window": "sa(heads=2, head_width=4, span=16)",
    "neighbours": "conv(k=3)",
    "learnt spans": "sa(heads=2, head_width=4, span=16, adaptive=true)",
}
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


def test_documents_with_unknown_symbols_are_left_out_and_reported(exported, tmp_path, caplog):
    pytest.importorskip("lm_eval", reason="not among what the tests install")
    from activemem.engine.probes.lm_evaluation import evaluate_study

    task = {"output_type": "loglikelihood", "doc_to_text": "{{text}}", "doc_to_target": "{{next}}"}
    whole = {"output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{text}}"}
    known = [{"text": "a small", "next": " cat and"}, {"text": "some", "next": " tall trees"}]
    strange = [{"text": "a Ω small", "next": " cat"}, {"text": "a small", "next": " Ωat"}]
    mixed = [strange[0], known[0], strange[1], known[1]]
    for name, examples in (("known", known), ("mixed", mixed), ("strange", strange)):
        write_task(tmp_path, name, examples, task, "perplexity")
    write_task(tmp_path, "whole_mixed", mixed, whole, "bits_per_byte")
    names = ["known", "mixed", "strange", "whole_mixed"]
    (probed,) = evaluate_study(exported.study, exported.store, names, tmp_path)
    assert probed.reason is None
    found, score = probed.metrics, "lm_eval[{},perplexity]".format
    assert found["lm_eval[whole_mixed,bits_per_byte]"] > 0
    if (
        exported.trained.file.trial.settings.task.tokens == "characters"
    ):  # others have a symbol for every text
        assert found[score("mixed")] == pytest.approx(found[score("known")])
        assert score("strange") not in found
        assert {name: value for name, value in found.items() if "left_out" in name} == {
            "lm_eval[mixed,left_out]": 2,
            "lm_eval[strange,left_out]": 2,
            "lm_eval[whole_mixed,left_out]": 1,
        }
        assert "task mixed: left out 2 documents, as the model has no symbol for a part" in caplog.text
        (probed,) = evaluate_study(exported.study, exported.store, ["strange"], tmp_path)
        assert "no document of task strange can be read: expected one of" in probed.reason
    else:
        assert found[score("mixed")] != pytest.approx(found[score("known")])
        assert found[score("strange")] > 0
        assert not any("left_out" in name for name in found)


def train(exported, folder, **options):
    """Return a Trainer of the exported model, after its training."""
    pytest.importorskip("accelerate", reason="not among what the tests install")
    model = transformers.AutoModelForCausalLM.from_pretrained(exported.folder, trust_remote_code=True)
    rows = [
        exported.tokenizer(f"{line} ")["input_ids"][: 12 + 3 * (at % 4)] for at, line in enumerate(LINES[:32])
    ]
    longest = max(map(len, rows))
    padded = [[*row, *[0] * (longest - len(row))] for row in rows]
    data = [
        {
            "input_ids": torch.tensor(each),
            "labels": torch.tensor([*row, *[-100] * (longest - len(row))]),
            "attention_mask": torch.tensor([*[1] * len(row), *[0] * (longest - len(row))]),
        }
        for row, each in zip(rows, padded, strict=True)
    ]
    arguments = {"report_to": [], "logging_steps": 1, "use_cpu": True, "disable_tqdm": True, **options}
    trainer = transformers.Trainer(
        model=model,
        args=transformers.TrainingArguments(output_dir=str(folder), **arguments),
        train_dataset=data,
        eval_dataset=data[:4],
        processing_class=exported.tokenizer,
    )
    trainer.train(resume_from_checkpoint=folder.exists() and "checkpoint-2" in str([*folder.iterdir()]))
    return trainer


@pytest.mark.filterwarnings("ignore")  # of accelerate and of torch's loader of data
def test_accumulated_gradients_are_those_of_one_large_batch(exported, tmp_path):
    steps = {"max_steps": 2, "save_strategy": "no", "learning_rate": 0.01, "seed": 1}
    one, four = (
        train(
            exported,
            tmp_path / str(parts),
            **steps,
            **{
                "per_device_train_batch_size": 8 // parts,
                "gradient_accumulation_steps": parts,
            },
        )
        for parts in (1, 4)
    )
    for key in ("loss", "grad_norm"):
        first, second = ([each[key] for each in run.state.log_history if key in each] for run in (one, four))
        assert len(first) == 2
        assert second == pytest.approx(first, rel=1e-3)
    assert one.evaluate()["eval_loss"] == pytest.approx(four.evaluate()["eval_loss"], rel=1e-3)


@pytest.mark.filterwarnings("ignore")
def test_what_a_trainer_saves_loads_and_resumes(exported, tmp_path):
    steps = {"save_steps": 2, "learning_rate": 0.01, "per_device_train_batch_size": 4, "seed": 1}
    whole = train(exported, tmp_path / "whole", max_steps=4, lr_scheduler_type="constant", **steps)
    train(exported, tmp_path / "parts", max_steps=2, lr_scheduler_type="constant", **steps)
    resumed = train(exported, tmp_path / "parts", max_steps=4, lr_scheduler_type="constant", **steps)
    assert resumed.state.log_history[-2]["loss"] == pytest.approx(
        whole.state.log_history[-2]["loss"], rel=1e-5
    )
    whole.save_model(str(tmp_path / "saved"))
    symbols = exported.tokenizer(TEXT, return_tensors="pt")["input_ids"]
    expected = whole.model.eval()(symbols).logits
    assert not torch.allclose(expected, exported.model(symbols).logits)
    for folder in (tmp_path / "saved", tmp_path / "whole" / "checkpoint-4"):
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True)
        torch.testing.assert_close(model(symbols).logits, expected)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
        assert tokenizer(TEXT)["input_ids"] == symbols[0].tolist()
        assert load_model(folder).file.metrics == {}
    assert load_model(tmp_path / "saved").score(TEXT).loss != exported.trained.score(TEXT).loss


@pytest.mark.filterwarnings("ignore")
def test_a_loop_of_accelerate_trains_and_saves(exported, tmp_path):
    accelerate = pytest.importorskip("accelerate", reason="not among what the tests install")
    model = transformers.AutoModelForCausalLM.from_pretrained(exported.folder, trust_remote_code=True).train()
    symbols = exported.tokenizer(TEXT, return_tensors="pt")["input_ids"]
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=0.01))
    losses = []
    for _ in range(6):
        with accelerator.accumulate(model):
            loss = model(symbols, labels=symbols).loss
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    accelerator.save_state(tmp_path / "state")
    accelerator.unwrap_model(model).save_pretrained(
        tmp_path / "saved",
        is_main_process=accelerator.is_main_process,
        save_function=accelerator.save,
        state_dict=accelerator.get_state_dict(model),
    )
    expected = model.eval()(symbols).logits
    torch.testing.assert_close(load_model(tmp_path / "saved").module(symbols), expected)
    with torch.no_grad():
        next(model.parameters()).zero_()
    accelerator.load_state(tmp_path / "state")
    torch.testing.assert_close(model(symbols).logits, expected)


def test_what_is_saved_by_itself_loads(exported, tmp_path):
    exported.tokenizer.save_pretrained(tmp_path / "tokenizer")
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "tokenizer", trust_remote_code=True)
    assert again(TEXT)["input_ids"] == exported.tokenizer(TEXT)["input_ids"]
    exported.model.config.save_pretrained(tmp_path / "config")
    config = transformers.AutoConfig.from_pretrained(tmp_path / "config", trust_remote_code=True)
    assert config.activemem == exported.model.config.activemem
    for _ in range(2):  # the second time replaces the first
        exported.model.save_pretrained(tmp_path / "model", state_dict=exported.model.state_dict())
    assert load_model(tmp_path / "model").file.metrics == exported.trained.file.metrics
    with pytest.raises(ModelFileError, match="merge adapters before saving"):
        exported.model.save_pretrained(tmp_path / "other", state_dict={"module.extra": torch.zeros(1)})


def test_hidden_states_are_the_residual_stream_between_sublayers(exported):
    symbols = exported.tokenizer(
        ["a small cat", TEXT], return_tensors="pt", padding=True, padding_side="left"
    )
    found = exported.model(**symbols, output_hidden_states=True)
    assert len(found.hidden_states) == 1 + len(exported.model.module.body.order)
    alone = exported.tokenizer(TEXT, return_tensors="pt")["input_ids"]
    torch.testing.assert_close(found.hidden_states[-1][1:], exported.model.module.codes(alone))
    assert exported.model(alone).hidden_states is None
    logits, states = exported.model(alone, output_hidden_states=True, return_dict=False, logits_to_keep=2)
    torch.testing.assert_close(logits, exported.model(alone).logits[:, -2:])
    assert len(states) == len(found.hidden_states)
    written = exported.model.generate(
        alone, max_new_tokens=2, output_hidden_states=True, return_dict_in_generate=True
    )
    assert len(written.hidden_states[0]) == len(states)


SYMBOLS = torch.tensor([[1, 2, 3]])
REFUSED = {
    "position_ids": torch.arange(3)[None],
    "inputs_embeds": torch.zeros(1, 3, 8),
    "past_key_values": (1,),
    "output_attentions": True,
    "token_type_ids": torch.zeros(1, 3),
    "is_causal": True,
}


def test_arguments_that_would_have_no_effect_are_refused(exported):
    for name in (*REFUSED, "use_cache", "no_such_name"):
        value = REFUSED.get(name, True)
        with pytest.raises(InputError, match=f"forward of a model of activemem does not support {name}"):
            exported.model(SYMBOLS, **{name: value})
        exported.model(SYMBOLS, **{name: None})
        if name in REFUSED:
            with pytest.raises(InputError, match=f"generate of a model of activemem does not support {name}"):
                exported.model.generate(SYMBOLS, max_new_tokens=1, **{name: value})
    for name, value in {"state_dict": {}, "output_loading_info": True, "no_such_name": 1}.items():
        with pytest.raises(
            InputError, match=f"from_pretrained of a model of activemem does not support {name}"
        ):
            transformers.AutoModelForCausalLM.from_pretrained(
                exported.folder, trust_remote_code=True, **{name: value}
            )


def test_masks_and_tokens_that_the_model_cannot_read_are_refused(exported):
    with pytest.raises(InputError, match="got zeros within one"):
        exported.model(SYMBOLS, attention_mask=torch.tensor([[1, 0, 1]]))
    with pytest.raises(InputError, match="expected the shape"):
        exported.model(SYMBOLS, attention_mask=torch.ones(1, 1, 3, 3))
    with pytest.raises(InputError, match="got a pair"):
        exported.tokenizer("a", "a")
    with pytest.raises(InputError, match="no new tokens"):
        exported.tokenizer.add_tokens(["<new>"])
    with pytest.raises(UseError, match="use from_pretrained"):
        transformers.AutoModelForCausalLM.from_config(exported.model.config, trust_remote_code=True)


def test_options_of_loading_are_applied(exported):
    for options in ({"dtype": "bfloat16"}, {"dtype": torch.bfloat16, "device_map": "cpu"}):
        model = transformers.AutoModelForCausalLM.from_pretrained(
            exported.folder, trust_remote_code=True, output_hidden_states=True, **options
        )
        assert model.dtype == torch.bfloat16
        assert model(SYMBOLS).hidden_states is not None


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
