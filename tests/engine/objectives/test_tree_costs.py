"""The number of bracket faults in outputs, as in the released program, and its lower bound for prefixes."""

from itertools import product

import pytest
import torch

from activemem.engine.data.vocabularies.sentences import SymbolVocabulary
from activemem.engine.data.vocabularies.vocabulary import END, FIRST_SYMBOL, PADDING, START, UNKNOWN
from activemem.engine.decoding.searches import Bounds, Decoding, OutputCosts, SizeSearch, decode
from activemem.engine.objectives.generation import BRACKET_COST, TAG_COST, TreeCosts

from ..decoding.references import SIZED, greedy, log_likelihood, make_model, make_sources

SYMBOLS = ["(S", ")S", "(NP", ")NP", "NN", "VB", "-LRB-", "-RRB-", "("]
TAGS = {"NN", "VB", "-LRB-", "-RRB-", "("}
FEW = SymbolVocabulary(["(S", ")S", "NN"], 8)


def program_faults(words, symbols):
    """Return the faults by the program of Kaiser and Bengio 2016, with tags given as a list of symbols."""
    theirs = [each.replace(")", "/") if each.startswith(")") else each for each in symbols]
    closing = len([each for each in theirs if each[0] == "/"])
    tags = len([each for each in theirs if each in TAGS])
    return abs(tags - words), abs(closing - (len(theirs) - closing - tags))


@pytest.mark.parametrize(
    "line",
    [
        "(S NN VB )S",
        "(S (NP NN )NP",
        ")S )S NN",
        "NN NN NN",
        "(S (S (S",
        "(NP -LRB- NN -RRB- )NP",
        "( NN",
        "",
    ],
)
@pytest.mark.parametrize("words", [1, 2, 5])
def test_tags_and_brackets_are_counted_as_the_program_does(line, words):
    vocabulary = SymbolVocabulary(SYMBOLS, 20)
    costs = TreeCosts.of(["a", " ".join(["word"] * words)], vocabulary)
    outputs = torch.zeros(2, 9, dtype=torch.long)
    outputs[0, 0] = END
    written = [*vocabulary.encode(line), END]
    outputs[1, : len(written)] = torch.tensor(written)
    tags, brackets = program_faults(words, line.split())
    assert costs.total(torch.tensor([0, 1]), outputs).tolist() == [
        TAG_COST,
        TAG_COST * tags + BRACKET_COST * brackets,
    ]


def test_a_tree_of_its_sentence_costs_nothing():
    vocabulary = SymbolVocabulary(SYMBOLS, 20)
    output = torch.tensor([[*vocabulary.encode("(S (NP NN )NP VB )S"), END, PADDING]])
    costs = TreeCosts.of(["one", "two words"], vocabulary).select(torch.tensor([1, 1]))
    assert costs.total(torch.tensor([0]), output).tolist() == [0.0]


@pytest.mark.parametrize("words", [1, 3])
@pytest.mark.parametrize("beginning", ["", "(S", "(S (S NN", "NN NN NN", ")S", "<start> NN", "(S NN )S"])
@pytest.mark.parametrize(("fewest", "most"), [(1, 1), (3, 3), (4, 4), (1, 4), (2, 3)])
def test_the_least_that_a_beginning_costs_is_that_of_the_best_way_to_continue(words, beginning, fewest, most):
    costs, row = TreeCosts.of([" ".join(["word"] * words)], FEW), torch.tensor([0])
    begun = [START if each == "<start>" else FEW.encode(each)[0] for each in beginning.split()]
    possible = [START, UNKNOWN, *range(FIRST_SYMBOL, FEW.size)]
    ways = [
        [*begun, *more, END]
        for length in range(fewest, most + 1)
        for more in product(possible, repeat=length - 1)
    ]
    cheapest = min(float(costs.total(row, torch.tensor([way]))) for way in ways)
    left = Bounds(min_length=torch.tensor([fewest]), max_length=torch.tensor([most]))
    beginnings = torch.tensor([begun], dtype=torch.long)
    assert costs.least(row, beginnings, left).tolist() == [cheapest]


class Blind(OutputCosts):
    """Costs of trees that give no bounds for prefixes."""

    def __init__(self, costs):
        self.costs = costs

    def total(self, sentences, symbols):
        return self.costs.total(sentences, symbols)

    def least(self, sentences, symbols, left):
        return torch.zeros(len(symbols), dtype=torch.float64)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.heavy] * (kind != "neural_gpu")) for kind in SIZED]
)
@torch.no_grad()
def test_outputs_that_are_abandoned_early_would_not_have_been_the_best(kind):
    lengths = [4, 1, 6, 3, 5]
    model, sources = make_model(kind, sharpness=30.0, vocab=FEW.size), make_sources(lengths)
    costs = TreeCosts.of(["w " * (length - 1) + "w" for length in (2, 1, 3, 2, 1)], FEW)
    seen, found = {}, {}
    for name, each in {"foreseen": costs, "blind": Blind(costs)}.items():
        rows = []
        hook = model.output.register_forward_hook(lambda _, __, logits, rows=rows: rows.append(len(logits)))
        sizes = SizeSearch(ratio=2.5, margin=4, costs=each)
        found[name] = decode(model, sources, Decoding(), max_length=40, sizes=sizes)
        seen[name] = sum(rows)
        hook.remove()
    assert found["foreseen"] == found["blind"]
    assert seen["foreseen"] < 0.9 * seen["blind"]
    for row, (length, best) in enumerate(zip(lengths, found["foreseen"], strict=True)):
        source, outputs = sources[row : row + 1, :length], []
        for size in range(length, int(2.5 * length) + 4 + 1):
            tokens = greedy(model, source, size)
            cost = costs.total(torch.tensor([row]), torch.tensor([tokens]))
            outputs.append((float(cost) - log_likelihood(model, source, tokens), tokens))
        assert best.tokens == min(outputs)[1]
