"""Reference decoders for one sentence, which compute each likelihood from the whole prefix."""

import itertools
import math

import torch

from activemem import build
from activemem.blocks.models.model import PAD
from activemem.blocks.testing.fixtures import make_generator

END = 2

KINDS = {
    "lstm": "seq2seq(lstm, lstm)",
    "gru, luong": "seq2seq(gru, gru, attention=luong)",
    "gru, bahdanau": "seq2seq(gru(layers=2), gru(layers=2), attention=bahdanau)",
    "lstm, luong, inputs": "seq2seq(lstm, lstm, attention=luong, attend=inputs, positions=3)",
    "gru, bahdanau, inputs": "seq2seq(gru, gru, attention=bahdanau, attend=inputs)",
    "Transformer": "seq2seq(sa(heads=2, head_width=4) >> ff(8), 2 * (sa(heads=2, head_width=4) >> ff(8)))",
    "convolutions": "seq2seq(conv(k=3) >> ff(8), tied(2 * (cgru(k=3) >> ff(8))))",
    "neural_gpu": "neural_gpu(layers=1, width=2)",
    "markov_neural_gpu": "markov_neural_gpu(layers=1, width=2)",
    "extended_neural_gpu": "extended_neural_gpu(layers=1, width=2)",
}
SIZED = [kind for kind in KINDS if "neural_gpu" in kind]


def make_model(kind, *, vocab=7, sharpness=6.0, end_bias=-2.0, seed=1):
    """Return a model in double precision with peaked distributions and a given bias of the end symbol."""
    sizes = {"d_model": 8, "source_vocab": 9, "vocab": vocab}
    model = build(KINDS.get(kind, kind), **sizes, generator=make_generator(seed)).double().eval()
    with torch.no_grad():
        model.output.weight.mul_(sharpness)
        model.output.bias.copy_(torch.randn(vocab, generator=make_generator(seed + 1)))
        model.output.bias[END] = end_bias
    return model


def make_sources(lengths, *, seed=3):
    """Return padded sources with an end symbol."""
    found = torch.randint(3, 9, (len(lengths), max(lengths)), generator=make_generator(seed))
    steps, lengths = torch.arange(max(lengths)), torch.tensor(lengths)[:, None]
    return torch.where(steps == lengths - 1, END, found * (steps < lengths))


def log_likelihood(model, source, tokens):
    """Return the log-probability of an output for one source (1, n), by teacher forcing."""
    return -float(model.nll(source, torch.tensor([tokens])).sum())


def next_log_probs(model, source, written, size):
    """Return log-probabilities of the next symbol for an output of a given size, and attention weights."""
    target = torch.tensor([[*written, *[END] * (size - len(written))]])
    logs = torch.log_softmax(model(source, target)[0, len(written)], -1)
    if not hasattr(model.body, "alignment"):
        return logs, None
    mask, shifted = source != PAD, torch.tensor([[PAD, *written]])
    return logs, model.body.alignment(model._embed_source(source), model._embed_target(shifted), mask)


def length_bounds(model, source, max_length):
    """Return the minimum and maximum number of symbols."""
    least = max_length if model.body.depends_on_target_length and max_length > source.shape[1] else 1
    return least, max_length


def greedy(model, source, max_length):
    """Return the likeliest symbol at each position."""
    (least, max_length), tokens = length_bounds(model, source, max_length), []
    while END not in tokens:
        logs, _ = next_log_probs(model, source, tokens, max_length)
        logs[PAD] = -math.inf
        if len(tokens) + 1 < least:
            logs[END] = -math.inf
        tokens.append(END if len(tokens) + 1 == max_length else int(logs.argmax()))
    return tokens


def rank_score(model, source, tokens, length_penalty, coverage_penalty):
    """Return the score that ranks outputs."""
    value = log_likelihood(model, source, tokens) / ((5 + len(tokens)) / 6) ** length_penalty
    if coverage_penalty:
        _, weights = next_log_probs(model, source, tokens[:-1], len(tokens))
        value += coverage_penalty * sum(math.log(min(float(x), 1.0)) for x in weights[0].sum(0))
    return value


def beam(model, source, max_length, width, length_penalty=0.0, coverage_penalty=0.0):
    """Return the result of the beam search that Search describes, for one sentence."""
    least, max_length = length_bounds(model, source, max_length)
    alive, found = [(0.0, [])], []
    while alive:
        ways = []
        for score, written in alive:
            place, (logs, _) = len(written) + 1, next_log_probs(model, source, written, max_length)
            for symbol, gain in enumerate(logs.tolist()):
                possible = place >= least if symbol == END else place < max_length
                if symbol != PAD and possible:
                    ways.append((score + gain, [*written, symbol]))
        ways.sort(key=lambda way: -way[0])
        found += [tokens for _, tokens in ways[:width] if tokens[-1] == END]
        alive = [way for way in ways if way[1][-1] != END][:width]
        best = max(
            (rank_score(model, source, one, length_penalty, coverage_penalty) for one in found),
            default=-math.inf,
        )
        alive = [way for way in alive if way[0] / ((5 + max_length) / 6) ** length_penalty > best]
    return max(found, key=lambda one: rank_score(model, source, one, length_penalty, coverage_penalty))


def iter_outputs(vocab, min_length, max_length):
    """Yield all outputs of these lengths."""
    others = [symbol for symbol in range(vocab) if symbol not in (PAD, END)]
    for length in range(min_length, max_length + 1):
        for written in itertools.product(others, repeat=length - 1):
            yield [*written, END]
