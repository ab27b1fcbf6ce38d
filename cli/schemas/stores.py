"""JSON output about stores, and about the models in them."""

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
    """All facts in a model's file; `uses` are the commands that accept it."""

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
    """The score of a text under a model."""

    schema: int
    nats: float
    tokens: int
    words: int
    loss: float
    bits_per_token: float
    word_perplexity: float
    bits_per_byte: float


class ModelPredictLine(TypedDict):
    """The answer of a model to one line, as in `activemem.engine.inference.predictions.Prediction`."""

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
    """The place of an exported model, and the largest difference of its outputs if compared."""

    schema: int
    path: str
    difference: float | None


class StoreCheckPage(TypedDict):
    """Faults of a store's files."""

    schema: int
    files: int
    bytes: int
    findings: list[dict[str, Any]]
    quarantine: dict[str, int]


class StoreRepairPage(StoreCheckPage):
    """The files that were moved to quarantine, and the faults that are left."""

    moved: list[dict[str, Any]]


class StoreCleanPage(TypedDict):
    """Files that nothing reads any more, and whether they were removed."""

    schema: int
    removed: bool
    leftovers: list[dict[str, Any]]
