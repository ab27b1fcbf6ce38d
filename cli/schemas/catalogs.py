"""JSON output of catalogues: blocks, tasks, metrics, corpora, settings."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict


class BlockEntry(TypedDict):
    """A block of the vocabulary."""

    name: str
    role: str
    signature: str
    summary: str
    owner: str


class BlockListPage(TypedDict):
    """All blocks; `problems` are of plug-ins that cannot be used."""

    schema: int
    blocks: list[BlockEntry]
    problems: list[Any]


class BlockShowPage(BlockEntry):
    """A block with its parameters, and what an example of it costs."""

    schema: int
    kind: str
    equation: str
    source: str
    parameters: list[dict[str, Any]]
    example: dict[str, Any]


class TaskEntry(TypedDict):
    """A task; only some tasks have symbols and lengths."""

    name: str
    summary: str
    needs: str
    keys: list[str]
    source: str
    owner: str
    symbols: NotRequired[int | None]
    first_length: NotRequired[int | None]
    growth: NotRequired[int | None]
    example: NotRequired[dict[str, str] | None]


class TaskListPage(TypedDict):
    """All tasks."""

    schema: int
    tasks: list[TaskEntry]


class TaskShowPage(TaskEntry):
    """A task."""

    schema: int
    kind: str


class MetricEntry(TypedDict):
    """A metric; `higher_is_better` is null where neither direction is."""

    name: str
    title: str
    higher_is_better: bool | None
    decimals: int
    indices: list[str]
    owner: str


class MetricListPage(TypedDict):
    """All metrics."""

    schema: int
    metrics: list[MetricEntry]


class MetricShowPage(MetricEntry):
    """A metric."""

    schema: int
    kind: str


class NameEntry(TypedDict):
    """A name of another kind, with the `key` of a study that takes it."""

    key: str
    name: str
    title: NotRequired[str]
    source: str
    owner: str


class NameListPage(TypedDict):
    """All norms, or all names of another kind, under that kind."""

    schema: int
    norms: NotRequired[list[NameEntry]]
    positions: NotRequired[list[NameEntry]]
    optimizers: NotRequired[list[NameEntry]]
    schedules: NotRequired[list[NameEntry]]
    loss_terms: NotRequired[list[NameEntry]]
    callbacks: NotRequired[list[NameEntry]]
    samplers: NotRequired[list[NameEntry]]
    schedulers: NotRequired[list[NameEntry]]


class NameShowPage(NameEntry):
    """A norm, or a name of another kind."""

    schema: int
    kind: str


class DatasetEntry(TypedDict):
    """A corpus with the sizes of its kind, and which files are here; `faults` need a check."""

    kind: str
    name: str
    title: str
    size_mb: NotRequired[float | None]
    characters: NotRequired[int]
    words: NotRequired[int | None]
    languages: NotRequired[list[str]]
    pairs: NotRequired[int]
    sentences: NotRequired[dict[str, int]]
    here: bool
    installed: bool
    files: list[str]
    missing: list[str]
    downloads: list[dict[str, Any]]
    by_hand: str | None
    licence: str
    source: str
    owner: str
    faults: NotRequired[list[str]]


class DataPage(TypedDict):
    """Corpora."""

    schema: int
    datasets: list[DatasetEntry]


class FetchedEntry(TypedDict):
    """The files of a corpus that were fetched; none of one that is part of activemem."""

    name: str
    files: list[str]


class DataFetchPage(TypedDict):
    """The fetched files."""

    schema: int
    datasets: list[FetchedEntry]


class SettingValueEntry(TypedDict):
    """A setting of this machine, and where it comes from."""

    value: Any
    source: str


class ConfigShowPage(TypedDict):
    """All settings of this machine by name."""

    schema: int
    settings: dict[str, SettingValueEntry]
