"""The attention blocks of the vocabulary, and what a window over the past costs.

The widths of their projections are parameters of the block, not shares of the model's width:
an `sa` of 8 heads of 64 projects to 512 whatever the width of the model is.
"""

from __future__ import annotations

from dataclasses import replace

from .attention_window import MAX_UNFUSED_LENGTH, Window, window_attention_cost
from .registry import register
from .spec import (
    UNBOUNDED,
    Cost,
    CostContext,
    Parameter,
    Reach,
    Role,
    Settings,
    Spec,
    Working,
    as_bool,
    as_float,
    as_int,
    as_word,
)

BUCKETS = 32
"""Distances have so many numbers of each head with `pos=t5`."""

HEADS = Parameter(name="heads", kind="integer", default=8, low=1, high=1024, meaning="number of heads")
HEAD_WIDTH = Parameter(
    name="head_width", kind="integer", default=64, low=1, high=4096, meaning="width of one head"
)
ADAPTIVE = Parameter(
    name="adaptive", kind="boolean", default=False, meaning="whether each head learns how far it sees"
)
RAMP = Parameter(
    name="ramp",
    kind="integer",
    default=32,
    low=2,
    high=65536,
    meaning="tokens over which an adaptive span fades out",
)
SELF = Parameter(
    name="self",
    kind="boolean",
    default=False,
    meaning="whether the span of a causal model begins with the position itself, not with the one before",
)
POS_VALUES = Parameter(
    name="pos_values",
    kind="boolean",
    default=False,
    meaning="whether position vectors are added to values too, not to keys alone",
)


def window_from_settings(settings: Settings, *, causal: bool) -> Window:
    """The window of a block with these settings; a span of 0 has none."""
    relative = "pos" not in settings or as_word(settings, "pos") == "relative"
    return Window(
        span=as_int(settings, "span"),
        head_width=as_int(settings, "head_width"),
        causal=causal,
        includes_self=as_bool(settings, "self") or not relative,
        relative=relative,
        ramp=as_int(settings, "ramp") if as_bool(settings, "adaptive") else None,
        pos_values=as_bool(settings, "pos_values"),
    )


def check_ramp(settings: Settings) -> str | None:
    """What is wrong with a ramp of spans that do not fade, or None."""
    if as_int(settings, "ramp") != RAMP.default and not as_bool(settings, "adaptive"):
        return "ramp is for adaptive=true"
    return None


def _check(settings: Settings) -> str | None:
    """What parameters that stand together do not allow, or None."""
    pos, span = as_word(settings, "pos"), as_int(settings, "span")
    relative = pos == "relative"
    rules = (
        (span or not relative, "pos=relative needs a span, as in sa(pos=relative, span=512)"),
        (
            span or not as_bool(settings, "adaptive"),
            "adaptive=true needs a span, as in sa(span=512, adaptive=true)",
        ),
        (
            relative or not as_bool(settings, "self"),
            "self=true is for pos=relative; without positions each position is in its own span",
        ),
        (not span or pos not in ("alibi", "t5"), f"pos={pos} is for span=0"),
        (
            not relative or not as_float(settings, "logit_cap"),
            "logit_cap is for other positions than pos=relative",
        ),
        (relative or not as_bool(settings, "pos_values"), "pos_values=true is for pos=relative"),
    )
    found = next((fault for holds, fault in rules if not holds), None)
    return found or check_ramp(settings) or _check_heads(settings)


def _check_heads(settings: Settings) -> str | None:
    """What is wrong with heads that share keys, are turned or normalised, or None."""
    heads, width = as_int(settings, "heads"), as_int(settings, "head_width")
    shared, turned = as_int(settings, "kv_heads"), as_word(settings, "pos") == "rope"
    if shared and heads % shared:
        return f"kv_heads must divide heads: expected a divisor of {heads}, got {shared}"
    if turned and width % 2:
        return f"pos=rope turns channels two by two: expected an even head_width, got {width}"
    return None


def _is_laid_out_by_length(settings: Settings) -> bool:
    """Whether windows or distances are laid out for a length."""
    return as_int(settings, "span") > 0 or as_word(settings, "pos") in ("alibi", "t5")


def _cost(settings: Settings, context: CostContext) -> Cost:
    """What the projections and products of all positions cost, or those of a window."""
    heads, head_width = as_int(settings, "heads"), as_int(settings, "head_width")
    if as_int(settings, "span") == 0:
        return _full_attention_cost(heads, head_width, settings, context)
    window = window_from_settings(settings, causal=context.causal)
    shared = as_int(settings, "kv_heads") or heads
    cap = as_float(settings, "logit_cap")
    found = window_attention_cost(window, context, heads=heads, kv_heads=shared, cap=cap)
    return _with_prepared_heads(found, window, settings, context)


def _with_prepared_heads(found: Cost, window: Window, settings: Settings, context: CostContext) -> Cost:
    """The cost of a window whose queries and keys are turned or normalised.

    Of a norm are saved its input, what is divided and by what; of a turn sines and cosines. Values keep keys
    as they are mapped beside them, but where they are copied for several queries.
    """
    heads, head_width, length = as_int(settings, "heads"), as_int(settings, "head_width"), context.length
    shared = as_int(settings, "kv_heads") or heads
    turned, normed = as_word(settings, "pos") == "rope", as_word(settings, "qk_norm") != "none"
    keys, copied = length + min(context.past, window.max_distance), shared < heads
    extra = 0
    if normed:
        extra += length * heads * (2 * head_width + 1) + keys * shared * (head_width + 1)
        extra += copied * 2 * keys * shared * head_width
    if (turned or normed) and not copied:
        extra += keys * heads * head_width
    return replace(
        found,
        parameters=found.parameters + normed * 2 * head_width,
        saved=found.saved + extra,
        saved_once=found.saved_once + turned * (length + keys) * head_width,
    )


def _full_attention_cost(heads: int, head_width: int, settings: Settings, context: CostContext) -> Cost:
    """Four projections and two products of all positions with all, of which a causal mask saves nothing.

    The state is a key and a value of each head. Saved are queries, keys, values and what the heads give. To
    that come on a CPU a short sequence's weights and its causal mask, of one byte a pair, as of any where
    weights are dropped, or scores have a cap, whose tangents are kept, or biases, whose buckets are; or of a
    longer one a sum for each query, and what the heads give once more, as laid out for the last projection.
    Of a norm come its input, what is divided and by what; of a turn sines and cosines. Where weights are
    kept, their gradients and those of scores are held for a while.
    """
    length = context.length
    kv_heads = as_int(settings, "kv_heads") or heads
    turned, normed = as_word(settings, "pos") == "rope", as_word(settings, "qk_norm") != "none"
    inner, shared = heads * head_width, kv_heads * head_width
    projections = 2 * context.width * (inner + shared)
    products = 2 * 2 * length**2 * inner  # queries by keys, weights by values
    dropped, short = context.config.attention_dropout > 0, length <= MAX_UNFUSED_LENGTH
    biased, learnt = as_word(settings, "pos") in ("alibi", "t5"), as_word(settings, "pos") == "t5"
    capped = as_float(settings, "logit_cap") > 0.0
    plain, relaid = dropped or learnt or capped or (short and not context.on_gpu), heads > 1
    weights = context.saved_weights(heads * length**2) + capped * heads * length**2
    known = 0 if plain or not biased else heads * length**2
    extra = normed * (2 * (inner + shared) + heads + kv_heads)
    once = turned * 2 * length * head_width + learnt * 2 * (2 * length - 1)
    return Cost(
        parameters=projections + normed * 2 * head_width + learnt * heads * BUCKETS,
        flops=2 * length * projections + products,
        state=2 * shared,
        saved=(weights if plain else length * (relaid * inner + heads)) + length * (4 * inner + extra),
        working=Working(numbers=2 * heads * length**2 if plain else 0),
        saved_once=once + ((length**2 + 3) // 4 if plain and context.causal else 0) + known,
    )


def _reach(settings: Settings, context: CostContext) -> Reach:
    """All that a mask does not hide, or the span."""
    if as_int(settings, "span") == 0:
        return Reach(left=UNBOUNDED, right=0 if context.causal else UNBOUNDED)
    return window_from_settings(settings, causal=context.causal).reach


SA = register(
    Spec(
        name="sa",
        role=Role.MIXER,
        parameters=(
            HEADS,
            HEAD_WIDTH,
            Parameter(
                name="pos",
                kind="word",
                default="none",
                words=("none", "relative", "rope", "alibi", "t5"),
                meaning="relative: vectors for distances, added to keys; rope: queries and keys are turned; "
                "alibi, t5: scores less by distance, or by a number for each bucket of distances",
            ),
            Parameter(
                name="span",
                kind="integer",
                default=0,
                low=0,
                high=65536,
                meaning="tokens that a position sees to a side, 0 for all",
            ),
            ADAPTIVE,
            RAMP,
            SELF,
            POS_VALUES,
            Parameter(
                name="temperature",
                kind="real",
                default=1.0,
                low=1e-6,
                high=1e6,
                meaning="what scores are divided by beside √head_width",
            ),
            Parameter(
                name="kv_heads",
                kind="integer",
                default=0,
                low=0,
                high=1024,
                meaning="heads of keys and values, each for as many of queries, 0 for as many as heads",
            ),
            Parameter(
                name="qk_norm",
                kind="word",
                default="none",
                words=("none", "rms"),
                meaning="normalisation of the queries and keys of each head, with gains that heads share",
            ),
            Parameter(
                name="logit_cap",
                kind="real",
                default=0.0,
                low=0.0,
                high=1e6,
                meaning="scores s become c tanh(s / c) of this c, 0 for none",
            ),
        ),
        summary="multi-head softmax self-attention",
        equation="y = concat_h softmax(Q_h K_hᵀ / (√head_width · temperature)) V_h · W_o, without biases",
        source=(
            "Vaswani et al. 2017; widths of the program of Dowdell and Zhang 2019; "
            "positions and spans of Sukhbaatar et al. 2019; rope: Su et al. 2021; "
            "alibi: Press et al. 2022, with slopes 2^(−8 h / heads) for 3, 6 or 12 heads too, for which the "
            "program of its authors interpolates; t5: Raffel et al. 2020; kv_heads: Ainslie et al. 2023; "
            "qk_norm: Henry et al. 2020; logit_cap: Gemma Team 2024 (Gemma 2), section 2"
        ),
        cost=_cost,
        reach=_reach,
        check=_check,
        compares_positions=lambda settings: as_word(settings, "pos") in ("rope", "alibi", "t5"),
        compiled_for_each_length=_is_laid_out_by_length,
    )
)
