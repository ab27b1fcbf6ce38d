"""The constants that papers and their programs print: each holds at its value, and not beside it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from activemem import build, load_study
from activemem.blocks.core.dropout import Dropout
from activemem.blocks.core.initialisation import Embedding, Initialisable, Weight, WeightRole
from activemem.blocks.core.operations import saturating_sigmoid
from activemem.blocks.core.positions import LinearBias, sinusoids
from activemem.blocks.layers.all_attention import Persistent
from activemem.blocks.layers.long_convolutions import Frequencies
from activemem.blocks.layers.matrix_states.delta_rule import RwkvGates
from activemem.blocks.layers.matrix_states.inner_model import InnerModel
from activemem.blocks.layers.matrix_states.linear_recurrences import ExponentialGates
from activemem.blocks.layers.matrix_states.recurrent_heads import HeadRates
from activemem.blocks.layers.vector_states.recurrent_channels import DecayRates, HeadTransitions
from activemem.blocks.transducers.neural_gpu import CGRUStack, ImageCGRU
from activemem.engine.data.vocabularies.sentences import SymbolVocabulary
from activemem.engine.data.vocabularies.vocabulary import END
from activemem.engine.objectives.build import build_objective
from activemem.engine.objectives.generation import TreeCosts
from activemem.engine.objectives.seq2seq import sampling_share
from activemem.engine.optimisers.build import Muon, orthogonalise
from activemem.engine.tasks.long_term import LONG_TERM_PROBLEMS
from activemem.engine.tasks.memory_degradation import fixed_bigrams, generate_splits, tabu_symbols
from activemem.engine.trial.evaluation import Stopping
from activemem.engine.trial.training import Schedule
from activemem.reporting.claims.check import check_claims
from activemem.studies.catalog.optimisers import OwnScheduleSettings
from activemem.studies.catalog.tasks import DegradationProblem, require_algorithmic, require_task
from activemem.studies.schema.settings import TrialSettings

from ..studies.claims.factories import make_outcomes, study_with_claims

CPU = torch.device("cpu")
FIRST = 4  # the number of the first symbol of a degradation problem


class Printed(NamedTuple):
    """A printed constant: a condition that holds for the values `within`, and for none of `beyond`."""

    name: str
    holds: Callable[[float], bool]
    within: Sequence[float]
    beyond: Sequence[float]


def equals(name: str, measure: Callable[[], float], value: float, *, rel: float = 1e-4) -> Printed:
    """Return a constant that is measured, and differs from the values 1 % or 1 beside it."""
    aside = max(0.01, 10 * rel) * abs(value) if value != round(value) or abs(value) > 200 else 1
    return Printed(
        name,
        lambda x: math.isclose(measure(), x, rel_tol=rel, abs_tol=1e-12),
        (value,),
        (value - aside, value + aside),
    )


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@cache
def first_settings(study: str) -> TrialSettings:
    return next(iter(load_study(study).trials)).settings


def setting(study: str, key: str, value: float) -> Printed:
    """Return a constant that is a setting of a shipped study's first trial."""

    def measure() -> float:
        found = first_settings(study)
        for part in key.split("."):
            found = getattr(found, part)
        return found

    return equals(f"{study}: {key}", measure, value)


# Active memory in a Transformer


def grows_with(wrong: float) -> bool:
    """Return whether a curriculum grows after an epoch with this number of wrong outputs in 6,400."""

    class Reversing(torch.nn.Module):
        def forward(self, inputs):
            outputs = inputs.flip(-1)
            outputs.view(-1)[: int(wrong)] += 1
            return torch.nn.functional.one_hot(outputs % 100, 100)

    train = first_settings("algorithmic").train.model_dump(exclude_unset=True)
    made = TrialSettings.model_validate(
        {
            "model": {"recipe": "ff(4)", "d_model": 4},
            "task": {"name": "reverse"},
            "train": train | {"curriculum": {"start": 200}},
        }
    )
    objective = build_objective(made, CPU, Path())
    objective.evaluate(Reversing(), last=False)
    return objective.evaluate(Reversing(), last=False)["length"] > 200


def timescale() -> float:
    """Return the longest timescale of the timing signal, from the slowest sine."""
    return 1 / math.asin(float(sinusoids(torch.tensor([1]), 8, torch.float64)[0, 3]))


ACTIVE_MEMORY = [
    Printed("outputs of a batch that may be wrong where the length grows", grows_with, (0,), (1, 6)),
    Printed(
        "sigmoid at which a gate is open, (1 + 0.1) / 1.2",
        lambda x: float(saturating_sigmoid(torch.tensor(x, dtype=torch.float64).logit())) >= 1,
        (1.1 / 1.2 + 1e-6,),
        (1.1 / 1.2 - 1e-6,),
    ),
    Printed(
        "sigmoid at which a gate is closed, 0.1 / 1.2",
        lambda x: float(saturating_sigmoid(torch.tensor(x, dtype=torch.float64).logit())) <= 0,
        (0.1 / 1.2 - 1e-6,),
        (0.1 / 1.2 + 1e-6,),
    ),
    equals("longest timescale of the timing signal", timescale, 1e4),
    *(
        equals(f"symbols of {task}", lambda task=task: require_algorithmic(task).vocab, count)
        for task, count in {
            "reverse": 100,
            "sort": 20,
            "remember": 20,
            "not": 3,
            "addition": 3,
            "multiply": 3,
        }.items()
    ),
    *(
        equals(f"growth of {task}", lambda task=task: require_algorithmic(task).length_step, step)
        for task, step in {
            "reverse": 1,
            "sort": 1,
            "remember": 1,
            "not": 1,
            "addition": 2,
            "multiply": 2,
        }.items()
    ),
    equals("first length", lambda: require_algorithmic("reverse").start, 5),
    setting("algorithmic", "model.d_model", 128),
    setting("algorithmic", "train.batch_size", 32),
    setting("algorithmic", "train.epochs", 100),
    setting("algorithmic", "train.steps_per_epoch", 100),
    setting("algorithmic", "train.curriculum.start", 5),
    setting("language-modelling", "model.d_model", 256),
    setting("language-modelling", "task.pieces", 32_000),
    setting("language-modelling", "task.longest", 300),
    setting("language-modelling", "train.schedule.warmup", 10_000),
    setting("language-modelling", "train.batch_size", 64),
]


# The Neural GPU and its program


def dropped(length: int) -> float:
    """Return the rate at which a Neural GPU of dropout 0.1 drops an image of this length."""
    rates: list[float] = []
    stack = CGRUStack(layers=0, maps=1, kernel=3, dropout=0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dropout, "forward", lambda self, x: rates.append(self.rate) or x)
        stack.train()(torch.ones(1, 1, length, 1), None)
    return rates[0]


def image_unit() -> ImageCGRU:
    unit = ImageCGRU(maps=4, kernel=3, taped=False)
    with torch.no_grad():
        unit.initialise(seeded())
    return unit


def largest(rule: str) -> float:
    embedding = Embedding(1000, 100, rule=rule)
    embedding.initialise(seeded())
    return float(embedding.weight.detach().abs().max())


def output_cost(line: str) -> float:
    """Return the cost of an output for a sentence of one word."""
    vocabulary = SymbolVocabulary(["(S", ")S", "NN"], 8)
    output = torch.tensor([[*vocabulary.encode(line), END]])
    return float(TreeCosts.of(["word"], vocabulary).total(torch.tensor([0]), output))


def plateau_share() -> float:
    """Return what a rate is multiplied by when the dev loss has not improved for long enough."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = Schedule(OwnScheduleSettings(name="plateau", patience=1), optimizer, 10)
    for _ in range(2):
        schedule.after_epoch({"dev_loss": 1.0})
    return optimizer.param_groups[0]["lr"]


NEURAL_GPU = [
    equals(
        "gain of orthogonal kernels, 1.8 · 0.8",
        lambda: float(torch.linalg.svdvals(image_unit().candidate.detach().flatten(1)).max()),
        1.44,
    ),
    equals("first bias of gates", lambda: float(image_unit().gates_bias.detach().mean()), 1.0),
    equals("dropout, 0.1 · 3 / √L", lambda: dropped(36), 0.05),
    equals("bound of embeddings", lambda: largest("unit_uniform"), 1.7, rel=1e-3),
    equals("cost of a surplus tag", lambda: output_cost("(S NN NN )S"), 1000),
    equals("cost of a missing tag", lambda: output_cost("(S )S"), 1000),
    equals("cost of a bracket alone", lambda: output_cost("(S NN"), 100),
    equals(
        "growth of the share of guesses in 100,000 steps",
        lambda: sampling_share(first_settings("parsing").train, 100_000) / 0.005,
        2,
    ),
    setting("parsing", "train.clip_norm", 4.0),
    setting("parsing", "train.optimizer.lr", 5e-4),
    setting("parsing", "train.optimizer.eps", 1e-3),
    setting("parsing", "train.schedule.decay", 0.995),
    setting("parsing", "train.schedule.patience", 5),
    setting("parsing", "train.sampling", 0.1),
    setting("parsing", "train.scheduled_sampling.start", 0.005),
    setting("parsing", "train.scheduled_sampling.double_every", 100_000),
    setting("parsing", "train.label_smoothing", 0.1),
    setting("parsing", "task.beam", 2),
    setting("parsing", "task.size_ratio", 3.5),
    setting("parsing", "task.size_margin", 8),
]


# All-attention


def persistent_spread(place: int) -> float:
    """Return the first standard deviation of persistent keys or values, as attention uses them."""
    vectors = Persistent(heads=4, vectors=256, head_width=64)
    with torch.no_grad():
        vectors.initialise(seeded())
    return float(vectors.keys_values()[place].detach().std())


ALL_ATTENTION = [
    equals("spread of √d_h · k′", lambda: persistent_spread(0), 1.0, rel=0.02),
    equals("spread of √N · v′", lambda: persistent_spread(1), 1.0, rel=0.02),
    equals("factor of a rate on a plateau", plateau_share, 0.1),
    setting("all-attention-characters", "model.d_model", 512),
    setting("all-attention-characters", "task.context", 512),
    setting("all-attention-characters", "model.attention_dropout", 0.3),
    setting("all-attention-characters", "train.optimizer.lr", 0.07),
    setting("all-attention-characters", "train.clip_step_norm", 0.03),
    setting("all-attention-characters", "train.schedule.warmup", 32_000),
    setting("all-attention-characters", "train.span_loss", 1e-7),
    setting("all-attention-characters", "train.batch_size", 64),
    setting("all-attention-words", "task.context", 256),
    setting("all-attention-words", "model.embedding_dropout", 0.1),
    setting("all-attention-words", "train.optimizer.lr", 2.5e-4),
    setting("all-attention-words", "train.clip_norm", 1.0),
    setting("all-attention-words", "train.schedule.warmup", 8000),
    setting("all-attention-words", "train.span_loss", 5e-7),
]


# Feed-forward attention


def recall(**task: object) -> TrialSettings:
    plain = first_settings("feedforward-attention").model_dump(exclude_unset=True)
    return TrialSettings.model_validate(plain | {"task": {"name": "recall_addition"} | task})


class Answering(torch.nn.Module):
    """A model that answers from the marks with a given error, and keeps the shapes of its inputs."""

    def __init__(self, error: float = 0.0) -> None:
        super().__init__()
        self.error, self.shapes = error, list[tuple[int, ...]]()

    def forward(self, inputs, lengths):
        self.shapes.append(tuple(inputs.shape))
        return 0.5 + (inputs[..., 0] * (inputs[..., 1] == 1)).sum(1, keepdim=True) / 4 + self.error


def all_right(error: float) -> bool:
    return build_objective(recall(), CPU, Path()).evaluate(Answering(error), last=False)["accuracy"] == 1


@cache
def shapes_of_tests(*, variable: bool) -> list[tuple[int, ...]]:
    model = Answering()
    build_objective(recall(variable=variable), CPU, Path()).evaluate(model, last=False)
    return model.shapes


@cache
def marks(length: int) -> tuple[list[int], list[int]]:
    """Return the earlier and the later marked steps, counted from 0, of many sequences of a length."""
    batch = LONG_TERM_PROBLEMS["recall_addition"].batch(torch.full((20_000,), length), length, seeded())
    places = (batch.inputs[..., 1] == 1).nonzero()[:, 1].view(-1, 2)
    return places.amin(1).tolist(), places.amax(1).tolist()


FEEDFORWARD_ATTENTION = [
    Printed("largest error of a right answer", all_right, (0.0399, -0.0399), (0.0401, -0.0401)),
    equals("last step of the first mark, among the first ten", lambda: max(marks(100)[0]), 9),
    equals("last step of the second mark, before the middle", lambda: max(marks(40)[1]), 19),
    equals("longest length from 50, 1.1 · T0", lambda: recall(length=50).task.length_range[1], 55),
    equals("longest length from 5,000", lambda: recall(length=5000).task.length_range[1], 5500),
    equals("test batches", lambda: len(shapes_of_tests(variable=False)), 10),
    equals("sequences of a test batch", lambda: shapes_of_tests(variable=False)[0][0], 100),
    equals("test batches of all lengths", lambda: len(shapes_of_tests(variable=True)), 100),
    equals("sequences of one length", lambda: shapes_of_tests(variable=True)[0][0], 10),
    equals("shortest test length", lambda: shapes_of_tests(variable=True)[0][1], 50),
    equals("longest test length", lambda: shapes_of_tests(variable=True)[-1][1], 10_000),
    setting("feedforward-attention", "model.d_model", 100),
    setting("feedforward-attention", "train.batch_size", 100),
    setting("feedforward-attention", "train.steps_per_epoch", 1000),
    setting("feedforward-attention", "train.epochs", 100),
]


# Memory degradation


def problem(name: str, **changes: object) -> DegradationProblem:
    return replace(require_task(name), sequences=4000, test_sequences=1, **changes)


@cache
def sources(name: str, **changes: object) -> list[list[int]]:
    """Return the training sources of a problem as symbols counted from 0."""
    side = generate_splits(problem(name, **changes), seed=0).train.source
    lines = pairwise(side.lines.tolist())
    return [[each - FIRST for each in side.tokens[start + 1 : end - 1].tolist()] for start, end in lines]


@cache
def bigrams(name: str) -> tuple[list[float], ...]:
    """Return the first symbols, second symbols and probabilities of the bigrams of 300 seeds."""
    drawn = (fixed_bigrams(require_task(name), seed) for seed in range(300))
    return tuple(torch.cat(each).tolist() for each in zip(*drawn, strict=True))


def follows(probability: float, offset: int) -> float:
    """Return how often the symbol `offset` after the second of a bigram follows the first.

    All bigrams have this probability.
    """
    changes = {"bigram_probability": (probability, probability)}
    firsts, seconds, _ = fixed_bigrams(problem("reverse_copy_bigrams", **changes), 0)
    successor = dict(zip(firsts.tolist(), seconds.tolist(), strict=True))
    after = [
        right == (successor[left] + offset) % 128
        for source in sources("reverse_copy_bigrams", **changes)
        for left, right in pairwise(source)
        if left in successor
    ]
    return sum(after) / len(after)


def dropped_symbols() -> list[int]:
    tabu = set(tabu_symbols(problem("filter"), 0).tolist())
    return [sum(each in tabu for each in source) for source in sources("filter")]


def dev_share() -> float:
    splits = generate_splits(problem("reverse_copy"), seed=0)
    train, dev = (len(each.source.line_words) for each in (splits.train, splits.dev))
    return dev / (train + dev)


def stops(*losses: float) -> bool:
    """Return whether the study's rule ends a training after epochs of 100 steps with these losses."""
    state = Stopping.begin(first_settings("memory-degradation").train)
    for loss in losses:
        state = state.after_steps(loss)
    return state.is_last_epoch


def has_position_width(width: float) -> bool:
    """Return whether attended inputs have position vectors of this width by default."""
    plain, given = (
        build(
            f"seq2seq(lstm, lstm, attention=luong, attend=inputs{more})", d_model=8, vocab=9, source_vocab=9
        )
        for more in ("", f", positions={width}")
    )
    return sum(each.numel() for each in plain.parameters()) == sum(
        each.numel() for each in given.parameters()
    )


BIGRAMS = {"reverse_copy_bigrams": (0.5, 0.9), "reverse_copy_frequent_bigrams": (0.8, 0.9)}
MEMORY_DEGRADATION = [
    *(
        row
        for name, (low, high) in BIGRAMS.items()
        for row in (
            equals(f"least frequency of {name}", lambda n=name: min(bigrams(n)[2]), low, rel=1e-3),
            equals(f"greatest frequency of {name}", lambda n=name: max(bigrams(n)[2]), high, rel=1e-3),
            equals(f"first symbols of {name}", lambda n=name: 1 + max(bigrams(n)[0]), 128),
            equals(f"second symbols of {name}", lambda n=name: 1 + max(bigrams(n)[1]), 128),
            equals(f"number of {name}", lambda n=name: len(bigrams(n)[2]) / 300, 15),
        )
    ),
    Printed(
        "symbols that follow, beside the successor, if it never does",
        lambda offset: follows(0.0, int(offset)) > 0,
        (-1, 1, 64),
        (0,),
    ),
    Printed(
        "symbols that follow if the successor always does",
        lambda offset: follows(1.0, int(offset)) > 0,
        (0,),
        (-1, 1, 64),
    ),
    equals("symbols", lambda: 1 + max(map(max, sources("reverse_copy"))), 128),
    equals("shortest sequence", lambda: min(map(len, sources("reverse_copy"))), 3),
    equals("longest sequence", lambda: max(map(len, sources("reverse_copy"))), 18),
    equals("fewest symbols that are dropped", lambda: min(dropped_symbols()), 1),
    equals("most symbols that are dropped", lambda: max(dropped_symbols()), 7),
    equals("symbols of the tabu set", lambda: len(tabu_symbols(problem("filter"), 0)), 20),
    equals("share of the dev split", dev_share, 0.25),
    equals("sequences", lambda: require_task("filter").sequences, 30_000),
    equals("sequences whose memory is measured", lambda: require_task("filter").test_sequences, 10_000),
    equals("bound of embeddings", lambda: largest("uniform"), 0.05, rel=1e-3),
    Printed("width of position vectors", has_position_width, (10,), (9, 11)),
    Printed(
        "steps in which the loss must not move", lambda n: stops(*[1.0] * (int(n) // 100 + 1)), (300,), (200,)
    ),
    Printed("change of the loss in 300 steps", lambda x: stops(1.0, 1.0, 1.0, 1.0 + x), (0.0099,), (0.0101,)),
    Printed("steps with attention", lambda n: stops(*range(int(n) // 100)), (3500,), (3400,)),
    setting("memory-degradation", "model.d_model", 50),
    setting("memory-degradation", "train.batch_size", 32),
    setting("memory-degradation", "train.optimizer.lr", 1e-3),
]


# Blocks of language models, and Muon


def first_values(module: Initialisable, name: str) -> torch.Tensor:
    """Return the initial values of a weight, in double precision and sorted."""
    with torch.no_grad():
        module.initialise(seeded())
    return module.get_parameter(name).detach().double().flatten().sort().values


MANY = 200_000  # so many draws that the least and the greatest are near the ends of their range
HEAD_RATES, CHANNELS = HeadRates(1, MANY, None), DecayRates(MANY)
FORGET, TRANSITIONS = ExponentialGates(1, 4, None, bounded=True), HeadTransitions(4, 1, bounded=True)
RWKV, INNER = RwkvGates(1, 9), InnerModel(64, 64)


def ends(
    name: str, low: float, high: float, values: Callable[[], torch.Tensor], *, rel: float = 1e-3
) -> list[Printed]:
    """Return the least and the greatest of some values as constants."""
    return [
        equals(f"least {name}", lambda: float(values().min()), low, rel=rel),
        equals(f"greatest {name}", lambda: float(values().max()), high, rel=rel),
    ]


def orthogonal(value: float) -> float:
    """Return what Muon's iterations with the printed coefficients make of a singular value."""
    for _ in range(5):
        value = 3.4445 * value - 4.7750 * value**3 + 2.0315 * value**5
    return value


def step_of_muon() -> float:
    """Return the first step, at a rate of 1, of a weight of 4 × 9 whose gradient has one singular value."""
    map_ = torch.nn.Linear(9, 4, bias=False)
    maps = {map_.weight: Weight(module=map_, name="weight", role=WeightRole.MATRIX)}
    keys = {"lr": 1.0, "momentum": 0.0, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0.0}
    map_.weight.grad = torch.zeros(4, 9).index_fill(0, torch.tensor([0]), 1.0)
    before = map_.weight.detach().clone()
    Muon(maps, [], **keys).step()
    return float((map_.weight.detach() - before).norm())


LANGUAGE_MODELS = [
    equals(
        "slope of the last of eight heads of ALiBi",
        lambda: -float(LinearBias(8).by_distance(torch.tensor([1]))[-1]),
        2**-8,
    ),
    equals("rate of the sines of hyena", lambda: float(first_values(Frequencies(), "weight")[0]), 10),
    *ends("decay of rg_lru", 0.9, 0.999, lambda: first_values(CHANNELS, "weight").sigmoid() ** 8),
    *ends("rate of ssd", 1, 16, lambda: first_values(HEAD_RATES, "log_rate").exp()),
    *ends(
        "step of ssd",
        0.001,
        0.1,
        lambda: torch.nn.functional.softplus(first_values(HEAD_RATES, "step_offset")),
    ),
    *ends("forget offset of mlstm", 3, 6, lambda: first_values(FORGET, "forget_offset")),
    *ends("forget offset of slstm", 3, 6, lambda: first_values(TRANSITIONS, "offset")[-4:]),
    *ends("decay offset of rwkv7", -6.5, -1.5, lambda: first_values(RWKV, "decay_offset")),
    *ends("removal of rwkv7", 0.85, 0.85, lambda: first_values(RWKV, "removal")),
    equals(
        "spread of the first inner model of ttt",
        lambda: float(first_values(INNER, "begin").std()) * math.sqrt(65 / 64),
        0.02,
        rel=0.01,
    ),
    equals(
        "a singular value after five iterations of Muon",
        lambda: float(orthogonalise(torch.ones(1, 1, dtype=torch.float64))),
        orthogonal(1.0),
    ),
    equals(
        "a step of Muon, 0.2 · √max(outputs, inputs)",
        step_of_muon,
        0.2 * math.sqrt(9) * orthogonal(1.0),
        rel=1e-3,
    ),
]


# Statistics


def rounding_variance() -> float:
    """Return the variance that rounding to whole lengths adds to three equal values of a claim."""
    study = study_with_claims("max_length[task=not, mixer=sa] > 3")
    cells = {(mixer, task): (20, 20, 20) for mixer in study.factors["mixer"] for task in ("not", "reverse")}
    (one,) = check_claims(study, make_outcomes(study, cells))
    low, high = one.deciding.interval
    quantile = 4.302652729911275  # of a two-sided interval at 95 % with 2 degrees of freedom
    return 3 * ((high - low) / 2 / quantile) ** 2


STATISTICS = [equals("variance of rounding, step² / 12", rounding_variance, 1 / 12)]

PRINTED = [
    *ACTIVE_MEMORY,
    *NEURAL_GPU,
    *ALL_ATTENTION,
    *FEEDFORWARD_ATTENTION,
    *MEMORY_DEGRADATION,
    *LANGUAGE_MODELS,
    *STATISTICS,
]


@pytest.mark.parametrize("printed", PRINTED, ids=lambda printed: printed.name)
def test_a_printed_constant_holds_at_its_value_and_not_beside_it(printed):
    assert [value for value in printed.within if not printed.holds(value)] == []
    assert [value for value in printed.beyond if printed.holds(value)] == []
