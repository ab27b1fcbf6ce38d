"""The blocks `base_conv` and `hyena`, whose filters may be as long as a sequence.

Each channel is convolved separately, and gates multiply the result. A convolution is computed by products
with strips of the Toeplitz matrix, not by Fourier transforms. So later positions have no effect at all. Up to
a few hundred positions, this is just as fast.
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from ...grammar.vocabulary.spec import Settings, as_int, as_word
from ..core.block import Block, Context, register_block
from ..core.initialisation import Initialisable, Linear, WeightRole, roles
from ..core.operations import without_autocast
from .convolutions import zero_masked
from .head_parts import ShortConvolution
from .matrix_states.chunked_recurrence import chunk_shape

LAG_FEATURES, FILTER_WIDTH, FILTER_LAYERS = 33, 64, 3
"""A filter's network: the number of features of a lag, its width, and its number of layers of sines."""

MAX_STRIP_LENGTH = 64
"""The maximum length of a piece; a longer sequence is convolved in pieces of nearly equal size."""

SINE_RATE = 10.0
"""The initial frequency of the sines of a filter's network."""

LEAST_LEFT, FASTEST, SLOWEST = 0.01, 0.3, 1.5
"""The window of a filter falls to LEAST_LEFT within a share of all taps.

The share is SLOWEST for the first channel and FASTEST for the last one. The rates of the channels are evenly
spaced.
"""


def convolve(x: Tensor, filters: Tensor) -> Tensor:
    """Convolve each channel causally: Σ_s h_s ⊙ x_{t−s} for each position t.

    x is (batch, length, channels), and the filters h are (channels, lags).
    """
    length, lags = x.shape[1], filters.shape[1]
    count, size = chunk_shape(length, MAX_STRIP_LENGTH)
    width = min(count * size, lags - 1 + size)  # inputs that the last piece reads
    columns, missing = x.permute(2, 1, 0), count * size - length  # (channels, length, batch)
    columns = (
        functional.pad(columns, (0, 0, 0, missing))
        if missing
        else columns.clone(memory_format=torch.contiguous_format)
    )
    padded = functional.pad(filters, (size - 1, width - lags))
    strip = padded.flip(1).unfold(1, width, 1).flip(1)  # (channels, size, width), lags from width - size on
    outputs: list[Tensor] = []
    for stop in range(size, count * size + 1, size):
        seen = min(stop, width)
        outputs.append(torch.bmm(strip[..., width - seen :], columns[:, stop - seen : stop]))
    return torch.cat(outputs, 1)[:, :length].permute(2, 1, 0)


class Frequencies(Initialisable):
    """Trainable frequencies ω of the sines sin(ω ⊙ x) in ImplicitFilters."""

    weight_roles = roles(weight=WeightRole.GAIN)

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(FILTER_WIDTH))

    def initialise(self, generator: torch.Generator | None) -> None:
        nn.init.constant_(self.weight, SINE_RATE)


class ImplicitFilters(Initialisable):
    """A network that computes the values of long filters.

    For each lag it gives one value per channel. Its activations are sines. The values are multiplied by a
    window that falls exponentially with the lag. The network's inputs are the lag as a share of all taps, and
    sines and cosines with up to (LAG_FEATURES - 1) / 2 periods in a sequence. Maps are initialised as in
    torch. In addition each channel has a weight for lag 0, N(0, 1) (Poli et al. 2023, section 3.3 and their
    program). The network computes in at least single precision: a bfloat16 cannot count beyond 256 lags.
    """

    weight_roles = roles(skip=WeightRole.GAIN)

    def __init__(self, channels: int, taps: int, *, filters: int = 1) -> None:
        super().__init__()
        self.taps, self.filters = taps, filters
        widths = (LAG_FEATURES, *(FILTER_WIDTH for _ in range(FILTER_LAYERS)))
        self.maps = nn.ModuleList(
            # (3 inputs)^-0.5 is the standard deviation of the uniform initial weights of torch's maps
            Linear(inputs, outputs, bias=True, std=(3 * inputs) ** -0.5, bias_init="uniform")
            for inputs, outputs in pairwise(widths)
        )
        self.frequencies = Frequencies()
        self.output = Linear(FILTER_WIDTH, channels, bias=False, maps=filters, std=(3 * FILTER_WIDTH) ** -0.5)
        self.skip = nn.Parameter(torch.empty(filters, channels))

    def initialise(self, generator: torch.Generator | None) -> None:
        """Draw `skip`, the filters' weight for lag 0. The linear maps draw their own weights."""
        nn.init.normal_(self.skip, generator=generator)

    def forward(self, lags: int) -> Tensor:
        """Return the values of the filters at lags 0 to `lags` - 1, (filters, channels, lags)."""
        exact = torch.promote_types(self.skip.dtype, torch.float32)
        share = torch.arange(lags, device=self.skip.device, dtype=exact) / max(1, self.taps - 1)
        slow, fast = (math.log(LEAST_LEFT) / end for end in (SLOWEST, FASTEST))
        rates = torch.linspace(slow, fast, self.skip.shape[1], device=share.device, dtype=exact)
        window = torch.exp(share[:, None, None] * rates)
        with without_autocast(share.device):
            # as in the authors' program: the lowest frequency is almost 0, the highest is bands - 1
            bands = (LAG_FEATURES - 1) // 2
            waves = torch.linspace(1e-4, bands - 1, bands, device=share.device, dtype=exact)
            angles = 2.0 * math.pi * (self.taps - 1) / self.taps * share.unsqueeze(1) * waves
            h = torch.cat([share.unsqueeze(1), angles.cos(), -angles.sin()], 1)  # (lags, LAG_FEATURES)
            for each in self.maps:
                assert isinstance(each, Linear)
                h = torch.sin(
                    self.frequencies.weight * functional.linear(h, each.weight.to(exact), each.bias.to(exact))
                )
            taps = functional.linear(h, self.output.weight.to(exact), None)
            taps = taps.unflatten(1, self.skip.shape) * window  # (lags, filters, channels)
        taps = taps.to(self.skip.dtype).permute(1, 2, 0)
        return taps + functional.pad(self.skip.unsqueeze(2), (0, lags - 1))


@register_block("base_conv")
class BaseConv(Block):
    """Block `base_conv`: y = (W x + b) ⊙ (h ∗ x + b′) (Arora et al. 2023, definition 4.1)."""

    weight_roles = roles(bias=WeightRole.BIAS)

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        width, taps = context.width, as_int(settings, "k")
        self.map = Linear(width, width, bias=True)
        self.implicit = ImplicitFilters(width, taps) if as_word(settings, "filter") == "implicit" else None
        self.explicit = None if self.implicit else ShortConvolution(width, taps, active=False)
        self.taps, self.bias = taps, nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = zero_masked(x, mask)
        return self.map(x) * (self._convolve(x) + self.bias)

    def _convolve(self, x: Tensor) -> Tensor:
        if self.explicit is not None:
            return self.explicit(x, None)[0]
        assert self.implicit is not None, "a filter is explicit or implicit"
        return convolve(x, self.implicit(min(self.taps, x.shape[1]))[0])


@register_block("hyena")
class Hyena(Block):
    """Block `hyena`: gates and long convolutions in turn (Poli et al. 2023, definition 3.1).

    z ← h_n ∗ (g_n ⊙ z), n = N−1 … 1, and y = W_o (g_0 ⊙ z).
    """

    def __init__(self, settings: Settings, context: Context) -> None:
        super().__init__()
        channels, self.order, taps = (as_int(settings, name) for name in ("channels", "order", "short_conv"))
        self.input = Linear(context.width, channels, bias=True, maps=self.order + 1)
        self.short_conv = ShortConvolution((self.order + 1) * channels, taps, active=False) if taps else None
        self.taps = as_int(settings, "k")
        self.filters = ImplicitFilters(channels, self.taps, filters=self.order - 1)
        self.output = Linear(channels, context.width, bias=False)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the outputs at all positions; the block is causal, so padding at the end has no effect."""
        mapped = self.input(zero_masked(x, mask))
        if self.short_conv is not None:
            mapped = self.short_conv(mapped, None)[0]
        *gates, z = mapped.chunk(self.order + 1, -1)
        for gate, h in zip(gates[:0:-1], self.filters(min(self.taps, x.shape[1])), strict=True):
            z = convolve(gate * z, h)
        return self.output(gates[0] * z)
