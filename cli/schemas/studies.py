"""JSON output about studies: plans, settings, status, tables, claims."""

from __future__ import annotations

from typing import Any, NotRequired

from typing_extensions import TypedDict


class StudyPlanPage(TypedDict):
    """The plan of a run: `models` with their costs, `trials` with their status and time in seconds.

    A model's `memory` are the bytes that a training step holds at most over its trials; `memory` next to it
    is the largest, in its parts. A `device` has room for `trials` at once: by `gpus` if that is set, else
    as many as its memory and its CPUs have room for and NVIDIA's service takes, at least one. `fit` is the
    number that its memory has room for; `parts` the number of parts of a batch in which one trial fits,
    null if none are small enough. `refused` are over the budget, `stale` were trained with other code,
    `ceilings` are lengths out of reach, `elsewhere` are the points of a search that other studies have
    trained, `ladder` are sizes of [ladder], `rungs` those of a search with another fidelity than epochs.
    """

    schema: int
    study: str
    title: str
    total: int
    part: int | None
    counts: dict[str, int]
    left: int
    elsewhere: int
    estimate: dict[str, Any]
    design: dict[str, Any]
    models: list[dict[str, Any]]
    ladder: list[dict[str, Any]]
    rungs: list[dict[str, Any]]
    refused: list[dict[str, Any]]
    stale: list[dict[str, Any]]
    ceilings: list[dict[str, Any]]
    short: list[dict[str, Any]]
    memory: dict[str, Any] | None
    device: dict[str, Any] | None
    data: dict[str, Any]
    flops: float
    test: dict[str, Any] | None
    groups: list[dict[str, Any]]
    trials: list[dict[str, Any]]
    search: NotRequired[Any]
    noise: NotRequired[list[str]]


class StudyCoordinatesPage(TypedDict):
    """The change of each layer of each model in a few steps, by width, and whether it is flat."""

    schema: int
    study: str
    steps: int
    models: list[dict[str, Any]]


class StudySettingEntry(TypedDict):
    """A setting, where the study says that it is from, and whether it is a default."""

    name: str
    value: Any
    origin: str | None
    detail: str | None
    default: bool


class StudyShowPage(TypedDict):
    """All settings of a study; with --best the cells of its table of points instead."""

    schema: int
    study: str
    title: NotRequired[str]
    paper: NotRequired[str | None]
    settings: NotRequired[list[StudySettingEntry]]
    points: NotRequired[list[dict[str, Any]]]


class StudyStatusEntry(TypedDict):
    """The status of a study: trials by status, those that have begun, and why others failed.

    `spent` names the budget or the space that a search has used up, as "space of 2 points", else it is
    null. `waiting` are those of a search that were handed in and that nobody has begun. `weightless` are
    done and lack the weights that the study keeps. `stale` ended with other code of plug-ins. A study that
    cannot be read has only an `error`.
    """

    study: str
    title: NotRequired[str]
    trials: NotRequired[int]
    done: NotRequired[int]
    failed: NotRequired[int]
    pruned: NotRequired[int]
    incomplete: NotRequired[int]
    left: NotRequired[int]
    spent: NotRequired[str | None]
    begun: NotRequired[int]
    reached: NotRequired[list[dict[str, Any]]]
    waiting: NotRequired[list[dict[str, Any]]]
    weightless: NotRequired[int]
    stale: NotRequired[int]
    reasons: NotRequired[dict[str, int]]
    error: NotRequired[str]


class StudyStatusPage(StudyStatusEntry):
    """The status of a study, the best points of a search, and why how many others are not ranked."""

    schema: int
    best: list[dict[str, Any]]
    left_out: list[dict[str, Any]]
    search: NotRequired[Any]


class RunEntry(TypedDict):
    """The end of a run: whether it was `stopped`, or the `reason` why it stopped itself.

    `given_up` names trials whose workers died too often; `resume` is the command that continues, if
    something is left.
    """

    stopped: bool
    reason: str | None
    given_up: list[str]
    resume: str | None


class StudyRunPage(StudyStatusPage):
    """The end of a run, and the status of its study."""

    run: RunEntry


class StudyListPage(TypedDict):
    """All studies."""

    schema: int
    studies: list[StudyStatusEntry]


class StudyForgetPage(TypedDict):
    """The removed parts of a study, or those that would be: trials, rows of each dataset, files and bytes."""

    schema: int
    removed: bool
    study: str
    trials: list[str]
    rows: dict[str, int]
    files: list[str]
    bytes: int


class StudyRenamePage(TypedDict):
    """A study's new name, the one that it had, and how many trials were moved."""

    schema: int
    study: str
    renamed: str
    trials: int


class StudyExportPage(TypedDict):
    """The parts of a study that another program received."""

    schema: int
    study: str
    to: str
    out: str
    trials: int
    epochs: int
    tables: int
    known: int


class NoiseFloorEntry(TypedDict):
    """The spread over seeds of a metric, and the smallest difference that a test finds with this power."""

    metric: str
    sd: float
    cells: int
    degrees: int
    seeds: int
    difference: float
    level: float
    power: float


class StudyNoisePage(TypedDict):
    """The differences that a study's seeds can show, by metric; null if no cell has two seeds."""

    schema: int
    study: str
    noise: dict[str, NoiseFloorEntry | None]


class StudyQueryPage(TypedDict):
    """The rows of an answer, each by column."""

    schema: int
    rows: list[dict[str, Any]]


class TableRenderPage(TypedDict):
    """The cells of tables in reading order, with estimate, spread and the published number."""

    schema: int
    cells: list[dict[str, Any]]


class CurveRenderPage(TypedDict):
    """Figures as data."""

    schema: int
    curves: list[dict[str, Any]]


class ClaimCheckPage(TypedDict):
    """The verdict on each claim of a study, with all of its comparisons.

    `ours` are the settings that its file gives which neither the paper nor its program has.
    """

    schema: int
    study: str
    overrides: list[str]
    ours: list[str]
    claims: list[dict[str, Any]]


class ProbeRunPage(TypedDict):
    """The numbers of trained models measured now or before (`stored`), and why others were `left`."""

    schema: int
    study: str
    probed: int
    tuned: int
    stored: int
    left: dict[str, str]


class ReportBuildPage(TypedDict):
    """The files that a report was written to, the page or the section last."""

    schema: int
    study: str
    files: list[str]


class ProbeComparePage(TypedDict):
    """How surely the outputs of trained models differ."""

    schema: int
    differences: list[dict[str, Any]]
