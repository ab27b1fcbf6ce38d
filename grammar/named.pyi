"""What editors know of the blocks: written from the vocabulary by `python tests/grammar/test_named.py`."""
# fmt: off
# ruff: noqa: E501

from typing import Literal

from .expressions import Open
from .recipe import Recipe

__all__ = [
    "activation",
    "attention_pool",
    "cgru",
    "conv",
    "dense",
    "ff",
    "highway_conv",
    "last",
    "mean_pool",
    "persistent_conv",
    "sa",
]

class _Activation(Recipe):
    """The block `activation`: activation by itself."""

    def __call__(
        self,
        act: Literal["relu", "gelu", "tanh", "leaky_relu"] | Open = "relu",
    ) -> Recipe:
        """Activation by itself: y = act(x).

        act: activation; relu, gelu, tanh or leaky_relu.

        Raffel and Ellis 2016, section 2.
        """

activation: _Activation

class _AttentionPool(Recipe):
    """The block `attention_pool`: mean of all positions, weighted by how each scores."""

    def __call__(
        self,
    ) -> Recipe:
        """Mean of all positions, weighted by how each scores: e_t = tanh(w · x_t + b); α = softmax(e); y = Σ_t α_t x_t.

        Raffel and Ellis 2016, section 1.3.
        """

attention_pool: _AttentionPool

class _Cgru:
    """The block `cgru`: convolutional gated recurrent unit, one step of it."""

    def __call__(
        self,
        k: int | Open,
    ) -> Recipe:
        """Convolutional gated recurrent unit, one step of it: u = hardsig(Wᵤ ∗ x + bᵤ); r = hardsig(Wᵣ ∗ x + bᵣ); y = u ⊗ x + (1 − u) ⊗ tanh(W₀ ∗ (r ⊗ x) + b₀).

        k: kernel width in tokens; whole number, 1 to 1024.

        Dowdell and Zhang 2019, section 3.1; Kaiser and Sutskever 2016.
        """

cgru: _Cgru

class _Conv:
    """The block `conv`: convolution over the sequence."""

    def __call__(
        self,
        k: int | Open,
        act: Literal["relu", "gelu", "tanh", "leaky_relu"] | Open = "relu",
    ) -> Recipe:
        """Convolution over the sequence: y = act(W ∗ x + b).

        k: kernel width in tokens; whole number, 1 to 1024.
        act: activation; relu, gelu, tanh or leaky_relu.

        Dowdell and Zhang 2019, section 3.1.
        """

conv: _Conv

class _Dense(Recipe):
    """The block `dense`: one linear layer on each position."""

    def __call__(
        self,
        act: Literal["relu", "gelu", "tanh", "leaky_relu"] | Open = "relu",
    ) -> Recipe:
        """One linear layer on each position: y = act(W · x + b).

        act: activation; relu, gelu, tanh or leaky_relu.

        Raffel and Ellis 2016, section 2.
        """

dense: _Dense

class _Ff:
    """The block `ff`: feed-forward layer on each position."""

    def __call__(
        self,
        filter: int | Open,
        act: Literal["relu", "gelu", "tanh", "leaky_relu"] | Open = "relu",
    ) -> Recipe:
        """Feed-forward layer on each position: y = W₂ · act(W₁ · x + b₁) + b₂.

        filter: width of the inner layer; whole number, 1 to 1048576.
        act: activation; relu, gelu, tanh or leaky_relu.

        Vaswani et al. 2017, section 3.3.
        """

ff: _Ff

class _HighwayConv:
    """The block `highway_conv`: convolution with a gate between it and its input."""

    def __call__(
        self,
        k: int | Open,
    ) -> Recipe:
        """Convolution with a gate between it and its input: g = hardsig(W₁ ∗ x + b₁); y = (W₀ ∗ x + b₀) ⊗ g + x ⊗ (1 − g).

        k: kernel width in tokens; whole number, 1 to 1024.

        Dowdell and Zhang 2019, section 3.1.
        """

highway_conv: _HighwayConv

class _Last(Recipe):
    """The block `last`: the last position by itself."""

    def __call__(
        self,
    ) -> Recipe:
        """The last position by itself: y = x_T.

        Sutskever et al. 2014, section 2.
        """

last: _Last

class _MeanPool(Recipe):
    """The block `mean_pool`: plain mean of all positions."""

    def __call__(
        self,
    ) -> Recipe:
        """Plain mean of all positions: y = Σ_t x_t / T.

        Raffel and Ellis 2016, section 1.3.
        """

mean_pool: _MeanPool

class _PersistentConv:
    """The block `persistent_conv`: convolution padded with trained vectors, which all of the model's with one k share."""

    def __call__(
        self,
        k: int | Open,
        act: Literal["relu", "gelu", "tanh", "leaky_relu"] | Open = "relu",
    ) -> Recipe:
        """Convolution padded with trained vectors, which all of the model's with one k share: y = act(W ∗ [p ; x ; p′] + b).

        k: kernel width in tokens; whole number, 1 to 1024.
        act: activation; relu, gelu, tanh or leaky_relu.

        Dowdell and Zhang 2019, section 3.1.
        """

persistent_conv: _PersistentConv

class _Sa(Recipe):
    """The block `sa`: multi-head softmax self-attention."""

    def __call__(
        self,
        heads: int | Open = 8,
        head_width: int | Open = 64,
    ) -> Recipe:
        """Multi-head softmax self-attention: y = concat_h softmax(Q_h K_hᵀ / √head_width) V_h · W_o, without biases.

        heads: number of heads; whole number, 1 to 1024.
        head_width: width of one head; whole number, 1 to 4096.

        Vaswani et al. 2017; widths of the program of Dowdell and Zhang 2019.
        """

sa: _Sa
