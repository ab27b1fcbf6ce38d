"""The claims of five papers can be expressed, on made-up studies with the papers' factors."""

import pytest

from activemem.errors import FaultCollector
from activemem.studies import Metric
from activemem.studies.claims.comparisons import ClaimSpec, iter_comparisons
from activemem.studies.claims.reader import claim_scope, resolve_claim
from activemem.studies.designs.grid import Grid
from activemem.studies.text.strict_model import PartSettings

PURE = ("cgru(k=20)", "conv(k=20)", "persistent_conv(k=20)", "highway_conv(k=20)")
BOTH = ("sa + conv(k=20)", "sa + persistent_conv(k=20)", "sa + highway_conv(k=20)")

STUDIES = {
    "active-memory-transformer, language": (
        {"mixer": ("sa", *PURE, *BOTH), "dropout": (0.1, 0.3)},
        {"loss": False},
        {
            "attention with any active memory beats attention": (
                "all(loss[mixer=sa + m, dropout=0.1] < loss[mixer=sa, dropout=0.1]"
                " for m in [conv(k=20), persistent_conv(k=20), highway_conv(k=20)])",
                3,
            ),
            "attention beats every pure active memory": (
                "all(loss[mixer=sa, dropout=0.1] < loss[mixer=m, dropout=0.1] for m in"
                " [cgru(k=20), conv(k=20), persistent_conv(k=20), highway_conv(k=20)])",
                4,
            ),
            "cgru is worst": ("worst(loss[dropout=0.1]) is cgru(k=20)", 7),
            "highway_conv is the best pure operator": (
                "best(loss[mixer=m, dropout=0.1] for m in"
                " [cgru(k=20), conv(k=20), persistent_conv(k=20), highway_conv(k=20)]) is highway_conv(k=20)",
                3,
            ),
            "attention with highway_conv is best of all": (
                "best(loss[dropout=0.1]) is sa + highway_conv(k=20)",
                7,
            ),
            "at 0.3 every operator but cgru beats attention at the same rate": (
                "all(loss[mixer=m, dropout=0.3] < loss[mixer=sa, dropout=0.3]"
                " for m in mixer except [sa, cgru(k=20)])",
                6,
            ),
            "none of them beats attention at 0.1": (
                "all(loss[mixer=m, dropout=0.3] >= loss[mixer=sa, dropout=0.1]"
                " for m in mixer except [sa, cgru(k=20)])",
                6,
            ),
        },
    ),
    "extended-neural-gpu": (
        {"model": ("neural_gpu", "markov_neural_gpu", "extended_neural_gpu", "gru_attention")},
        {"perplexity": False, "bleu": True},
        {
            "perplexity falls from model to model": (
                "perplexity[model=neural_gpu] > perplexity[model=markov_neural_gpu]"
                " > perplexity[model=extended_neural_gpu]",
                2,
            ),
            "the extended one is no worse than the GRU in perplexity and above it in BLEU": (
                "perplexity[model=extended_neural_gpu] <= perplexity[model=gru_attention]"
                " and bleu[model=extended_neural_gpu] > bleu[model=gru_attention]",
                2,
            ),
            "its BLEU falls less with the length of the sentence": (
                "bleu[0-10, model=extended_neural_gpu] - bleu[50-60, model=extended_neural_gpu]"
                " < bleu[0-10, model=gru_attention] - bleu[50-60, model=gru_attention]",
                1,
            ),
        },
    ),
    "all-attention, vectors": (
        {"N": (0, 256, 512, 1024, 2048), "data": ("enwik8", "text8")},
        {"bpc": False},
        {
            "bits fall with N": (
                "all(bpc[N=0, data=d] > bpc[N=256, data=d] > bpc[N=512, data=d] >= bpc[N=1024, data=d]"
                " for d in data)",
                6,
            ),
            "without any it is clearly worse": (
                "all(bpc[N=0, data=text8] > bpc[N=n, data=text8] + 0.02 for n in N except [0])",
                4,
            ),
        },
    ),
    "all-attention, variants": (
        {"layer": ("all_attn", "attn_split", "head_split", "single_head", "ff_attn", "sa >> ff(2048)")},
        {"bpc": False, "parameters": None},
        {
            "one softmax is as good as two, and both beat a single head": (
                "bpc[layer=all_attn] <= bpc[layer=attn_split] < bpc[layer=single_head]",
                2,
            ),
            "heads apart and softmax in the feed-forward layer are worse": (
                "all(bpc[layer=v] > bpc[layer=all_attn] for v in [head_split, ff_attn])",
                2,
            ),
            "it equals or beats a Transformer of its size": (
                "bpc[layer=all_attn] <= bpc[layer=sa >> ff(2048)]"
                " and parameters[layer=all_attn] within 1000000 of parameters[layer=sa >> ff(2048)]",
                2,
            ),
        },
    ),
    "feedforward-attention": (
        {
            "pool": ("attention_pool", "mean_pool"),
            "task": ("add", "multiply"),
            "T": (50, 100, 500, 1000, 5000, 10000),
        },
        {"accuracy": True},
        {
            "attention solves both tasks at every length": (
                "all(accuracy[pool=attention_pool, task=t, T=l] == 1 for t in task for l in T)",
                12,
            ),
            "the mean solves addition, and multiplication but for the longest sequences": (
                "all(accuracy[pool=mean_pool, task=add, T=l] == 1 for l in T)"
                " and all(accuracy[pool=mean_pool, task=multiply, T=l] < 1 for l in [5000, 10000])",
                8,
            ),
            "and is never more accurate": (
                "not any(accuracy[pool=mean_pool, task=t, T=l] > accuracy[pool=attention_pool, task=t, T=l]"
                " for t in task for l in T)",
                12,
            ),
        },
    ),
    "memory-degradation": (
        {
            "model": ("naive", "luong_inputs", "bahdanau_inputs"),
            "against": ("luong", "bahdanau"),
            "problem": ("reverse_copy", "reverse_copy_repeats", "filter", "reverse_copy_bigrams", "en-fr"),
        },
        {"theta": True, "gamma": None},
        {
            "standard attention changes its state more, on every problem": (
                "all(theta[model=m, against=a, problem=p] > 0.5"
                " for m in model for a in against for p in problem)",
                30,
            ),
            "repetitions are the weakest": (
                "all(argmin(theta[model=m, against=luong]) is reverse_copy_repeats for m in model)",
                12,
            ),
            "only the naive model is below there, against bahdanau": (
                "theta[model=naive, against=bahdanau, problem=reverse_copy_repeats] < 0.5",
                1,
            ),
            "what the gates keep decays slower than in the model with attention": (
                "all(gamma[18, model=m, against=luong, problem=reverse_copy] >"
                " gamma[18, model=bahdanau_inputs, against=luong, problem=reverse_copy]"
                " for m in [naive, luong_inputs])",
                2,
            ),
        },
    ),
}
CLAIMS = [(name, title) for name, (_, _, claims) in STUDIES.items() for title in claims]


@pytest.mark.parametrize(("name", "title"), CLAIMS, ids=[title for _, title in CLAIMS])
def test_a_claim_of_a_paper_can_be_said(name, title):
    factors, metrics, claims = STUDIES[name]
    design = Grid(
        settings=PartSettings(name="grid"),
        combined_factors={**factors, "seed": (0, 1, 2)},
        listed_cells={},
        baseline={},
    )
    known = {
        key: Metric(name=key, title=key, higher_is_better=higher, decimals=3)
        for key, higher in metrics.items()
    }
    text, count = claims[title]
    faults = FaultCollector(text)
    statement = resolve_claim(claim_scope(design, known), faults, ClaimSpec(name=title, holds=text))
    assert [fault.message for fault in faults] == []
    assert len(list(iter_comparisons(statement))) == count
