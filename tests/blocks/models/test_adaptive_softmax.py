"""Adaptive embeddings and softmax against explicit equations and plain versions."""

import pytest
import torch
from torch.func import functional_call
from torch.nn import functional

from activemem import Linear
from activemem.blocks import build
from activemem.blocks.core.initialisation import initialise
from activemem.blocks.models.adaptive_softmax import AdaptiveEmbedding, AdaptiveSoftmax
from activemem.blocks.testing.fixtures import make_generator
from activemem.grammar import configure

WIDTH, VOCAB, CUTS = 16, 40, (10, 20)


def every_symbol():
    return torch.arange(VOCAB).view(2, VOCAB // 2)


def parts(*, vocab=VOCAB, cutoffs=CUTS, tied, tied_bias=False, project_first_cluster=False, seed=0):
    clusters = configure(
        d_model=WIDTH, vocab=vocab, cutoffs=cutoffs, project_first_cluster=project_first_cluster
    ).clusters
    embedding = AdaptiveEmbedding(clusters, WIDTH)
    softmax = AdaptiveSoftmax(clusters, WIDTH, embedding if tied else None, bias=tied_bias or not tied)
    for module in (embedding, softmax):
        initialise(module, make_generator(seed))
        for name, parameter in module.named_parameters():
            if name.endswith("bias"):
                torch.nn.init.normal_(parameter, generator=make_generator(seed + 1))
    return embedding.double(), softmax.double()


KINDS = {
    "free": {"tied": False},
    "tied": {"tied": True},
    "tied with biases": {"tied": True, "tied_bias": True},
    "all projected": {"tied": False, "project_first_cluster": True},
    "tied with biases, all projected": {"tied": True, "tied_bias": True, "project_first_cluster": True},
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@pytest.mark.parametrize("tied", [False, True], ids=["free", "tied"])
def test_an_adaptive_softmax_of_one_cluster_is_the_plain_softmax(tied):
    _, softmax = parts(cutoffs=(), tied=tied)
    x, targets = (
        torch.randn(2, 5, WIDTH, dtype=torch.float64, generator=make_generator(2)),
        every_symbol()[:, :5],
    )
    plain = Linear(WIDTH, VOCAB, bias=not tied)
    plain.weight = softmax.words.weight
    plain.bias = softmax.words.bias
    assert softmax(x).equal(functional.log_softmax(plain(x), -1))
    lost = functional.cross_entropy(plain(x).flatten(0, 1), targets.flatten(), reduction="none")
    assert softmax.nll(x, targets).equal(lost.view(2, 5))


@every_kind
def test_the_probabilities_of_an_adaptive_softmax_are_those_written_out_and_sum_to_one(kind):
    _, softmax = parts(**kind)
    assert (softmax.words.bias is None) == (kind == {"tied": True})
    x = torch.randn(3, WIDTH, dtype=torch.float64, generator=make_generator(2))
    found = softmax(x).exp()
    torch.testing.assert_close(found.sum(-1), torch.ones(3, dtype=torch.float64), rtol=1e-12, atol=1e-12)

    def scores(rows, bias, vector):
        return torch.stack([row @ vector for row in rows]) + (0.0 if bias is None else bias)

    def projected(place, vector):
        if len(softmax.projections) == 2:  # of the clusters behind the first
            place -= 1
        if place < 0:
            return vector
        down = softmax.projections[place].weight
        return (down.T if kind["tied"] else down) @ vector

    with torch.no_grad():
        for vector, probabilities in zip(x, found, strict=True):
            first = projected(0, vector)
            words = scores(softmax.words.weight, softmax.words.bias, first)
            others = scores(softmax.choice.weight, softmax.choice.bias, first)
            head = torch.exp(torch.cat([words, others]))
            head = head / head.sum()
            expected = [head[:10]]
            for place in range(2):
                table = softmax.tables[place]
                within = torch.exp(scores(table.weight, table.bias, projected(place + 1, vector)))
                expected.append(head[10 + place] * within / within.sum())
            torch.testing.assert_close(probabilities, torch.cat(expected), rtol=1e-10, atol=1e-12)


@every_kind
def test_the_loss_of_an_adaptive_softmax_is_that_of_its_probabilities(kind):
    _, softmax = parts(**kind)
    x = torch.randn(2, VOCAB // 2, WIDTH, dtype=torch.float64, generator=make_generator(2))
    for targets in (every_symbol(), torch.zeros_like(every_symbol()), torch.full_like(every_symbol(), 39)):
        expected = -softmax(x).gather(-1, targets[..., None])[..., 0]
        torch.testing.assert_close(softmax.nll(x, targets), expected, rtol=1e-12, atol=1e-12)


@every_kind
def test_the_gradients_of_clusters_are_right(kind):
    embedding, softmax = parts(vocab=9, cutoffs=(3, 6), **kind)
    names, values = zip(*softmax.named_parameters(), strict=True)
    tokens = torch.tensor([[0, 2, 3, 5, 6, 8]])
    targets = torch.tensor([[8, 0, 3, 1, 6, 7]])
    x = embedding(tokens).detach().requires_grad_()

    def loss(x, *values):
        weights = dict(zip(names, values, strict=True))
        return functional_call(softmax, weights, (x,)).gather(-1, targets[..., None]).sum()

    assert torch.autograd.gradcheck(loss, (x, *values))
    expected = torch.autograd.grad(-loss(x, *values), (x, *values))
    found = torch.autograd.grad(softmax.nll(x, targets).sum(), (x, *values))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("project_first_cluster", [False, True], ids=["plain", "projected"])
def test_an_adaptive_embedding_is_each_clusters_table_and_projection(project_first_cluster):
    embedding, _ = parts(tied=False, project_first_cluster=project_first_cluster)
    assert len(embedding.maps) == 2 + project_first_cluster
    found = embedding(every_symbol()).flatten(0, 1)
    with torch.no_grad():
        for symbol in range(VOCAB):
            place = sum(symbol >= cut for cut in CUTS)
            row = embedding.embeddings[place].weight[symbol - (0, *CUTS)[place]]
            plain = place == 0 and not project_first_cluster
            expected = row if plain else embedding.maps[place - len(embedding.embeddings)].weight @ row
            torch.testing.assert_close(found[symbol], expected, rtol=1e-12, atol=1e-12)
    assert [table.weight.shape for table in embedding.embeddings] == [(10, 16), (10, 4), (20, 1)]


def test_tied_clusters_share_tables_and_projections_with_the_embedding():
    model = build("ff(5)", d_model=WIDTH, vocab=VOCAB, cutoffs=CUTS, tied=True)
    tables = [model.output.words, *model.output.tables]
    for table, embedding in zip(tables, model.embedding.embeddings, strict=True):
        assert table.weight.data_ptr() == embedding.weight.data_ptr()
    for projection, up in zip(model.output.projections, model.embedding.maps, strict=True):
        assert projection.weight.data_ptr() == up.weight.data_ptr()
    assert [name for name, _ in model.named_parameters() if name.startswith("output")] == [
        "output.choice.weight"
    ]
