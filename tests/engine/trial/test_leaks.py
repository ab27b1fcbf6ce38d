"""A model that is not causal fails, at any distance and from any epoch."""

from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.nn import functional

from activemem import Block, Reach, StudyResults, load_study, run_study
from activemem.blocks.core.block import BLOCKS
from activemem.engine import LeakError
from activemem.engine.core.events import NOBODY
from activemem.engine.core.resources import ONE_CPU
from activemem.engine.trial.evaluation import check_future_is_hidden
from activemem.engine.trial.training import Training
from activemem.grammar import lookup
from activemem.grammar.vocabulary.spec import SPECS
from activemem.reporting.tables.render import render
from activemem.storage import Store
from activemem.studies.catalog.tasks import TASKS, DegradationProblem
from activemem.studies.schema.settings import TrialSettings

from ...registry_entries import replace_entry
from ...study_texts import study_text
from ..text_factories import tiny_corpus

CPU = torch.device("cpu")
TEXT = {"name": "language_model", "corpus": "tiny", "context": 64, "dev_tokens": 200}
LINES = TEXT | {"batching": "lines"}
SHORT = {"dev_examples": 8, "test_examples": 4}
PARITY = {"name": "parity", "lengths": [3, 20], "test_lengths": [70]} | SHORT
MQAR = {"name": "mqar", "vocab": 16, "length": 64, "pairs": 2} | SHORT
COMPRESSION = {"name": "mad", "problem": "compression", "length": 64, "train_examples": 0} | SHORT


class LooksAhead(Block):
    """A model whose output at t adds a weighted x_(t + distance)."""

    distance = 50
    weight = 1.0

    def __init__(self, width):
        super().__init__()
        self.gate = nn.Parameter(torch.full((width,), self.weight))

    @classmethod
    def build(cls, settings, context):
        return cls(context.width)

    def forward(self, x, mask=None):
        return x + self.gate * functional.pad(x, (0, 0, 0, self.distance))[:, self.distance :]


class LooksTwelveAhead(LooksAhead):
    distance = 12


class GatedNeighbour(LooksAhead):
    """A model that outputs the next input through a gate, which is closed at first."""

    distance = 1
    weight = 0.0


@pytest.fixture(autouse=True)
def _blocks(monkeypatch):
    """Register three blocks that claim to be causal but are not."""
    conv = lookup("conv")
    for name, module in (("far", LooksAhead), ("twelve", LooksTwelveAhead), ("gated", GatedNeighbour)):
        stated = replace(conv, name=name, reach=lambda settings, context: Reach(left=0, right=0))
        replace_entry(SPECS, name, stated)
        replace_entry(BLOCKS, name, module)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Return a data folder with the corpus `tiny`."""
    folder = tmp_path_factory.mktemp("data")
    with tiny_corpus(folder):
        yield folder


@pytest.fixture
def few(monkeypatch):
    """Use few sequences, for fast scoring."""
    problem = TASKS["reverse_copy"]
    assert isinstance(problem, DegradationProblem)
    replace_entry(TASKS, "reverse_copy", replace(problem, sequences=80, test_sequences=12))


def settings(recipe, task, **train):
    return TrialSettings.model_validate(
        {
            "model": {"recipe": recipe, "d_model": 8},
            "task": task,
            "train": {
                "optimizer": {"name": "adam", "lr": 0.01},
                "batch_size": 4,
                "epochs": 3,
                "steps_per_epoch": 2,
                **train,
            },
        }
    )


@pytest.mark.parametrize(
    ("recipe", "task"),
    [
        ("far(k=1)", TEXT),
        *((f"{block}(k=1)", task) for block in ("twelve", "gated") for task in (TEXT, LINES, PARITY, MQAR)),
        ("2 * (conv(k=3) >> gated(k=1))", LINES),
        ("far(k=1)", PARITY),  # which is longer when it is tested
        *((f"{block}(k=1)", COMPRESSION) for block in ("far", "twelve")),
        ("gated(k=1) >> conv(k=3)", COMPRESSION),  # the last token alone has nothing to look at
    ],
)
def test_a_model_that_looks_ahead_is_found_once_it_is_trained(recipe, task, data):
    with pytest.raises(LeakError, match=r"sees the future: .* \d+ "):
        Training.begin(settings(recipe, task), CPU, data).advance()


@pytest.mark.parametrize(("block", "steps"), [("twelve", 0), ("gated", 2)])
def test_a_block_of_others_that_looks_ahead_at_once_is_found_before_the_first_step(block, steps, data):
    trained = Training.begin(settings(f"conv(k=3) >> {block}(k=1)", TEXT), CPU, data)
    with pytest.raises(LeakError):
        trained.advance()
    assert trained.step == steps


@pytest.mark.parametrize("block", ["twelve", "gated"])
def test_a_decoder_that_looks_ahead_is_found(few, block, data):
    asked = settings(f"seq2seq(conv(k=3), conv(k=3) >> {block}(k=1))", {"name": "reverse_copy"})
    with pytest.raises(LeakError, match="sees the future"):
        Training.begin(asked, CPU, data).advance()


@pytest.mark.heavy
def test_only_the_tested_length_may_be_long_enough_to_show_a_distant_leak(tmp_path):
    def write(name, length, count):
        rows = [" ".join("abcd"[(row + place) % 4] for place in range(length)) for row in range(count)]
        (tmp_path / name).write_text("\n".join(rows) + "\n", encoding="utf-8")
        return {"source": name, "target": name}

    splits = {
        "train": write("train.txt", 19, 30),
        "dev": write("dev.txt", 4, 8),
        "test": write("test.txt", 20, 8),
    }
    text = study_text(
        model={"recipe": "{mixer}"},
        task={"name": "translation", "corpus": splits, "tokens": "words"},
        train={"curriculum": None, "epochs": 1},
        factors={"mixer": ["seq2seq(conv(k=3), conv(k=3) >> twelve(k=1))"]},
    )
    path = tmp_path / "tiny.toml"
    path.write_text(text, encoding="utf-8")
    store = Store(tmp_path / "results")
    run_study(load_study(path), store, ONE_CPU, NOBODY, local=True)
    (row,) = store.trials().to_dicts()
    assert row["status"] == "failed"
    assert row["reason"].startswith("sees the future")


@pytest.mark.parametrize(
    "recipe",
    [
        "seq2seq(lstm, lstm, attention=bahdanau, feed=true)",
        "seq2seq(sa(heads=2, head_width=4) >> ff(8), sa(heads=2, head_width=4) >> ff(8))",
        pytest.param("extended_neural_gpu(width=2)", marks=pytest.mark.heavy),
        "markov_neural_gpu(width=2)",
        pytest.param("neural_gpu(width=2)", marks=pytest.mark.heavy),
    ],
)
def test_decoders_that_do_not_are_trained(few, recipe, data):
    trained = Training.begin(settings(recipe, {"name": "reverse_copy"}), CPU, data)
    for _ in range(2):
        trained.advance()


@pytest.mark.parametrize(
    "recipe",
    [
        "2 * (sa(heads=2, head_width=4, span=16) + highway_conv(k=5) >> ff(8))",
        "lstm(layers=2) + cgru(k=3)",
        "all_attn(4, span=16, heads=2, head_width=4)",
    ],
)
@pytest.mark.parametrize("task", [TEXT, LINES], ids=["stream", "lines"])
def test_language_models_that_do_not_are_trained(recipe, task, data):
    trained = Training.begin(settings(recipe, task, precision="float32"), CPU, data)
    for _ in range(2):
        trained.advance()


@pytest.mark.parametrize("recipe", ["conv(k=3)", "twelve(k=1)"])
def test_where_a_gpu_has_no_memory_for_the_copy_the_cpu_looks(recipe, data, caplog):
    trained = Training.begin(settings(recipe, TEXT), CPU, data)
    view, asked = trained.objective.causal_view(), []

    def outputs(model, rows):
        if model not in asked:
            asked.append(model)
        if len(asked) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return view.outputs(model, rows)

    short = replace(view, outputs=outputs)
    if recipe == "conv(k=3)":
        check_future_is_hidden(trained.model, short)
    else:
        with pytest.raises(LeakError, match="sees the future"):
            check_future_is_hidden(trained.model, short)
    assert len(asked) == 2
    assert "on the CPU" in caplog.text


def test_other_exceptions_are_not_taken_for_a_lack_of_memory(data):
    trained = Training.begin(settings("conv(k=3)", TEXT), CPU, data)

    def outputs(model, rows):
        raise RuntimeError("expected another shape")

    with pytest.raises(RuntimeError, match="expected another shape"):
        check_future_is_hidden(trained.model, replace(trained.objective.causal_view(), outputs=outputs))


@pytest.mark.parametrize(
    ("recipe", "task"),
    [
        *(("lstm >> sa(heads=2, head_width=4, span=16)", task) for task in (TEXT, PARITY, MQAR)),
        ("seq2seq(sa(heads=2, head_width=4), lstm, attention=bahdanau)", {"name": "reverse_copy"}),
    ],
)
def test_a_view_looks_wherever_model_and_inputs_are(few, recipe, task, data):
    trained = Training.begin(settings(recipe, task), CPU, data)
    view = trained.objective.causal_view()
    found = view.outputs(trained.model.to("meta"), view.inputs[None].to("meta"))
    assert found.is_meta and len(found[0]) in (len(view.inputs), len(view.inputs) - 1)


def test_no_table_shows_a_number_of_a_model_that_sees_its_future(data, tmp_path):
    text = study_text(
        model={"recipe": "{mixer}"},
        task=TEXT,
        train={"curriculum": None},
        factors={"mixer": ["conv(k=3)", "far(k=1)"]},
        table=[{"name": "losses", "rows": "mixer", "columns": "seed", "value": "dev_loss"}],
    )
    path = tmp_path / "tiny.toml"
    path.write_text(text, encoding="utf-8")
    study, store = load_study(path), Store(tmp_path / "results")
    summary = run_study(study, store, replace(ONE_CPU, data=data), NOBODY, local=True)
    assert (summary.done, summary.failed) == (1, 1)
    (row,) = store.trials().filter(status="failed").to_dicts()
    assert row["reason"].startswith("sees the future")
    assert row["metrics"] == []
    (table,) = StudyResults(study, store).tables()
    (line,) = [line for line in render(table, "markdown").splitlines() if line.startswith("| far")]
    assert line.startswith("| far(k=1) | failed<sup>")
