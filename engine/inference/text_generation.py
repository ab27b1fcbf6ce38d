"""Continuation of a text by a language model, by sampling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypedDict

import torch
from torch import Tensor

from ...blocks import Model
from ...blocks.core.block import Block, StreamState
from ...errors import ActivememError, check_arguments, number_fault
from ..data.vocabularies.texts import TextVocabulary


class GenerationError(ActivememError):
    """Error for settings that do not allow generation; the message lists all faults."""


class SamplingKeywords(TypedDict, total=False):
    """The keyword arguments of `Sampling`, for type checkers."""

    max_symbols: int
    temperature: float
    top_k: int | None
    top_p: float | None
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Settings for choosing the next symbol of a text, such as the temperature.

    Probabilities are raised to the power 1 / `temperature`; 0 always takes the most likely symbol. Then only
    the `top_k` most likely symbols are kept, and of these the smallest set with total probability `top_p`
    (Holtzman et al. 2020). A text has at most `max_symbols` new symbols; a model of lines stops at the end of
    the line.
    """

    max_symbols: int = 200
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_arguments(
            number_fault("max_symbols", self.max_symbols, least=1),
            number_fault("temperature", self.temperature, least=0, whole=False),
            number_fault("top_k", self.top_k, least=1, optional=True),
            number_fault("top_p", self.top_p, above=0, most=1, whole=False, optional=True),
            number_fault("seed", self.seed, least=0, most=2**64 - 1),
            error=GenerationError,
        )


def generate_symbols(
    model: Model, beginning: list[int], sampling: Sampling, *, end: int | None, context: int | None
) -> Iterator[int]:
    """Yield the symbols that a causal model writes after a beginning.

    There is at least one. Generation stops after the symbol `end`, or after the largest number of symbols. A
    model whose blocks see a bounded past, or keep a state of fixed size, reads each symbol once. Any other
    model reads the whole text again at each step.

    The model reads at most `context` symbols at once, or any number if it is None. A longer text restarts
    from its last `context // 2` symbols, so that no position exceeds those of the training.
    """
    generator = torch.Generator().manual_seed(sampling.seed)
    blocks = [module for module in model.body.modules() if isinstance(module, Block)]
    reads_once = all(block.context_length is not None or block.state_is_bounded for block in blocks)
    text = unread = torch.tensor([beginning])
    state = StreamState()
    for _ in range(sampling.max_symbols):
        if context is not None and text.shape[1] > context:
            text = unread = text[:, -max(1, context // 2) :]
            state = StreamState()
        with torch.no_grad():
            if reads_once:
                outputs, state = model.forward_stream(unread, state)
            else:
                outputs = model(text)
        symbol = _choose(outputs[:, -1].double().log_softmax(-1)[0].cpu(), sampling, generator)
        yield symbol
        if symbol == end:
            return
        unread = torch.tensor([[symbol]])
        text = torch.cat([text, unread], 1)


def decode_pieces(tokens: Iterator[int], vocabulary: TextVocabulary, beginning: list[int]) -> Iterator[str]:
    """Yield the text of symbols piece by piece.

    A piece is held back while it ends in an incomplete UTF-8 character.
    """
    read, shown = list(beginning), vocabulary.decode(beginning)
    for token in tokens:
        read.append(token)
        text = vocabulary.decode(read)
        if not text.endswith("\ufffd"):  # otherwise the last character is incomplete
            yield text[len(shown) :]
            shown = text


def _choose(log_probabilities: Tensor, sampling: Sampling, generator: torch.Generator) -> int:
    if bool(log_probabilities.isnan().any()):
        raise GenerationError(
            "expected outputs that are numbers: this model diverged, or its file was changed"
        )
    if sampling.temperature == 0.0:
        return int(log_probabilities.argmax())
    # the largest becomes 0, which stays finite at any temperature
    relative = log_probabilities - log_probabilities.max()
    scores, order = (relative / sampling.temperature).sort(descending=True, stable=True)
    left = len(scores) if sampling.top_k is None else min(sampling.top_k, len(scores))
    shares = scores[:left].softmax(-1)
    if sampling.top_p is not None:
        # the symbol that reaches `top_p` stays, so at least one symbol is left
        before = shares.cumsum(-1) - shares
        shares = shares[before < sampling.top_p]
    return int(order[torch.multinomial(shares, 1, generator=generator)])
