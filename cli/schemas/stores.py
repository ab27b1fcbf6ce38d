"""What commands print for programs of stores, and of the models in them."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict


class ModelEntry(TypedDict):
    """A kept model."""

    trial: str
    levels: dict[str, Any]
    metrics: dict[str, float]
    path: str


class ModelListPage(TypedDict):
    """The kept models of a study."""

    schema: int
    models: list[ModelEntry]


class ModelShowPage(TypedDict):
    """All that a model's file says of itself; `uses` are the commands that it can be used with."""

    schema: int
    trial: str
    study: str
    levels: dict[str, Any]
    recipe: str
    parameters: int
    settings: dict[str, Any]
    metrics: dict[str, float]
    symbols: Any
    uses: list[str]
    version: str
    commit: str | None


class ModelScorePage(TypedDict):
    """How surely a model predicts a text."""

    schema: int
    nats: float
    tokens: int
    words: int
    loss: float
    bits_per_token: float
    word_perplexity: float
    bits_per_byte: float


class ModelPredictLine(TypedDict):
    """The answer of a model to one line, as `activemem.engine.inference.predictions.Prediction` has it."""

    schema: int
    output: str | list[str | None]
    probabilities: dict[str, float] | list[float] | list[dict[str, float]] | None
    unknown: list[str]
    unread: int


class ModelGeneratePage(TypedDict):
    """The text with which a model was asked to go on, and how it did."""

    schema: int
    beginning: str
    text: str


class ModelExportPage(TypedDict):
    """Where a model was written, and by how much outputs differ there at most, where that was tried."""

    schema: int
    path: str
    difference: float | None


class StoreCheckPage(TypedDict):
    """What is wrong with a store's files."""

    schema: int
    files: int
    bytes: int
    findings: list[dict[str, Any]]
    quarantine: dict[str, int]


class StoreRepairPage(StoreCheckPage):
    """What was moved to quarantine, and what is wrong still."""

    moved: list[dict[str, Any]]


class StoreCleanPage(TypedDict):
    """What nothing reads any more, and whether it was removed."""

    schema: int
    removed: bool
    leftovers: list[dict[str, Any]]
