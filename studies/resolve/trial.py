"""One trial: its settings, and as its id their hash, which covers the source of its plug-ins."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Self

from ...grammar.nodes import BlockNode, walk
from ...grammar.norms import NORMS
from ...grammar.positions import POSITIONS
from ...grammar.vocabulary.spec import block_code
from ...plugins import Registry
from ...storage import StoreError
from ..catalog.datasets import dataset_code
from ..catalog.metrics import METRICS, metric_family
from ..catalog.optimisers import OPTIMIZERS, SCHEDULES
from ..catalog.tasks import TASKS, require_task
from ..catalog.train_parts import CALLBACKS, LOSS_TERMS
from ..schema.factors import SEED, level_key, level_name
from ..schema.settings import Level, ModelSettings, TrialSettings, read_recipe
from .result_changes import changes_of

CellKey = frozenset[tuple[str, object]]
"""The levels of a cell, regardless of the order of its factors."""


def cell_key(levels: Mapping[str, Level] | Iterable[tuple[str, Level]]) -> CellKey:
    """Return a key for a cell: all its levels except the seed."""
    return frozenset((name, level_key(level)) for name, level in dict(levels).items() if name != SEED)


SHOWN_DIGITS = 8
"""The number of digits of a digest in messages."""


def with_code(settings: TrialSettings) -> TrialSettings:
    """Return the settings with the digests of the loaded plug-ins that they use."""
    code = code_here(settings)
    return settings.model_copy(update={"code": code}) if code != settings.code else settings


def code_here(settings: TrialSettings) -> dict[str, str]:
    """Return the source digests of all plug-in parts that these settings use.

    The parts are blocks, corpora, tasks, optimizers, and other parts of a model or training. Of the metrics,
    only that of `early_stopping` affects training, so only it is included.
    """
    model, task, train = settings.model, settings.task, settings.train
    named = {
        "optimizer": {"name": train.optimizer.name},
        "schedule": {"name": train.schedule.name},
        "loss_terms": [{"name": each.name} for each in train.loss_terms],
        "callbacks": [{"name": each.name} for each in train.callbacks],
        "early_stopping": train.early_stopping and {"metric": train.early_stopping.metric},
    }
    parts = {"recipe": model.recipe, "norm_kind": model.norm_kind, "position": model.position}
    corpus = getattr(task, "corpus", None)
    return _code_of({"model": parts, "task": {"name": task.name, "corpus": corpus}, "train": named})


def changed_code(stored: str) -> dict[str, tuple[str, str]]:
    """Return the plug-ins that have changed since these settings were stored.

    Each name maps to a pair of digests: the stored one, then the current one. The stored one is "" if it was
    not recorded. Plug-ins that are not loaded are left out.
    """
    try:
        record = json.loads(stored)
        then: Mapping[str, str] = record.get("code", {})
        here = _code_of(record)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # RecipeError is a ValueError
        return {}
    changed = {what: (then.get(what, ""), now) for what, now in here.items()}
    return {what: both for what, both in changed.items() if digest(both[0]) != digest(both[1])}


def _code_of(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the source digests of the plug-ins that stored settings name. Keys may have their defaults."""
    model, task, train = record["model"], record["task"], record["train"]
    corpus, early = task.get("corpus"), train.get("early_stopping")
    steering = metric_family(early["metric"]) if early else ""
    blocks = [("block", name, block_code(name)) for name in _blocks(model["recipe"])]
    corpora = [("corpus", corpus, dataset_code(corpus) if isinstance(corpus, str) else None)]
    named: list[tuple[Registry[Any], str]] = [
        (TASKS, task["name"]),
        (NORMS, model.get("norm_kind", "layer_norm")),
        (POSITIONS, model.get("position", "timing")),
        (OPTIMIZERS, train["optimizer"]["name"]),
        (SCHEDULES, train.get("schedule", {}).get("name", "constant")),
        *([(METRICS, steering)] if steering in METRICS else ()),
        *((LOSS_TERMS, each["name"]) for each in train.get("loss_terms", ())),
        *((CALLBACKS, each["name"]) for each in train.get("callbacks", ())),
    ]
    others = [(registry.kind, name, registry.code(name)) for registry, name in named]
    found = ((kind, name, code) for kind, name, code in (*blocks, *corpora, *others) if code is not None)
    return {f"{kind} {name}": code for kind, name, code in found}


@lru_cache(maxsize=4096)
def _blocks(recipe: str) -> tuple[str, ...]:
    names = {node.name for node in walk(read_recipe(recipe).root) if isinstance(node, BlockNode)}
    return tuple(sorted(names))


def code_fault(settings: TrialSettings, *, trains: bool = True) -> str | None:
    """Return an error message if loaded plug-ins differ from the plug-ins in the settings, else None.

    Metrics count only if the trial `trains`: a trained model does not use them.
    """
    other = [what for what in other_code(settings) if trains or not what.startswith(f"{METRICS.kind} ")]
    if not other:
        return None
    expected, got = (
        ", ".join(sorted({shown(code[what]) if what in code else f"no {what}" for what in other}))
        for code in (settings.code, code_here(settings))
    )
    return f"expected the code of {expected}, got {got}"


def other_code(settings: TrialSettings) -> list[str]:
    """Return the parts whose present code is not the one in the settings, such as `block conv`."""
    if not settings.code:  # settings that were made by hand do not record plug-ins
        return []
    here = code_here(settings)
    whats = sorted(here.keys() | settings.code.keys())
    return [what for what in whats if digest(here.get(what, "")) != digest(settings.code.get(what, ""))]


def digest(code: str) -> str:
    """Return the hash in a plug-in's digest, without the file name before it."""
    return code.rpartition(" ")[2]


def code_owner(code: str) -> str:
    """Return what is before the digest of a plug-in: its file, its package, or the script or cell."""
    return code.rpartition(" ")[0]


def shown(code: str) -> str:
    """Shorten a plug-in's digest for messages: `mqar.py 1a2b3c4d`."""
    owner, _, digest = code.rpartition(" ")
    return f"{owner} {digest[:SHOWN_DIGITS]}"


RESULTS_VERSION = 1
"""The version of results. Results of earlier versions are not reused.

Raise it when a code change alters the distribution of a number; if it alters few kinds of trials, add them to
`result_changes.py` instead. Other draws of the same distribution, such as dropout masks, and another order of
rounding raise `ARITHMETIC`. All of these are listed under "Results change" in the changelog.
"""

ARITHMETIC = 0
"""The number of the code's arithmetic, which every row keeps; rows without it have 0.

Raise it with each change that moves bits, but no distribution: dropout masks, convolutions by
frequencies, tiles.
It is in no id, so results before and after count together, and captions say so.
"""


class Trial:
    """One training: a cell of a study, or a point of a search, with one seed.

    `common` has the settings with any seed. The trials of a cell share it and their levels, which saves
    memory in large grids. No field is ever changed; a frozen class would take longer to make.
    """

    __slots__ = ("_shared_levels", "common", "id", "seed", "study")
    __hash__ = None  # pyright: ignore -- two trials may be equal

    study: str
    common: TrialSettings
    seed: int
    id: str  # 16 hex digits
    _shared_levels: Mapping[str, Level]

    def __init__(
        self,
        *,
        study: str,
        levels: Mapping[str, Level],
        settings: TrialSettings | Kind,
        seed: int | None = None,
    ) -> None:
        """Make a trial with these settings.

        `seed`, if given, replaces the settings' seed. A `Kind` saves time if many trials share their
        settings.
        """
        kind = settings if isinstance(settings, Kind) else Kind(settings)
        self.study = study
        self._shared_levels = levels
        self.common = common = kind.settings
        self.seed = seed = common.seed if seed is None else seed
        self.id = kind.id_with(seed)

    @classmethod
    def of_seeds(
        cls, study: str, levels: Mapping[str, Level], kind: Kind, seeds: Iterable[int]
    ) -> list[Self]:
        """Return the trials of a cell with each of these seeds. It is faster than making each by itself."""
        return cls.of_ids(study, levels, kind.settings, kind.ids(seeds))

    @classmethod
    def of_ids(
        cls, study: str, levels: Mapping[str, Level], settings: TrialSettings, ids: Iterable[tuple[int, str]]
    ) -> list[Self]:
        """Return the trials of a cell with these seeds and ids."""
        found: list[Self] = []
        for seed, trial_id in ids:
            trial = cls.__new__(cls)
            trial.study, trial._shared_levels, trial.common = study, levels, settings
            trial.seed, trial.id = seed, trial_id
            found.append(trial)
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trial):
            return NotImplemented
        return (self.id, self.study, self.levels) == (other.id, other.study, other.levels)

    @property
    def levels(self) -> dict[str, Level]:
        """The levels of the factors, or a search point's values, as in the study file; with the seed."""
        return {**self._shared_levels, SEED: self.seed}

    @property
    def settings(self) -> TrialSettings:
        """Return the trial's settings, which determine its result completely."""
        return self.common.with_seed(self.seed)

    def __repr__(self) -> str:
        levels = ", ".join(f"{name}={level_name(level)}" for name, level in self.levels.items())
        return f"<Trial {self.id} of {self.study}: {levels}>"

    @property
    def cell(self) -> CellKey:
        """Return a key for the trial's cell: all its levels except the seed."""
        return cell_key(self.levels)

    def to_json(self) -> str:
        """Return the trial as text for `from_json`."""
        record = {"study": self.study, "levels": self.levels}
        return json.dumps({**record, "settings": settings_to_json(self.settings)})

    @classmethod
    def from_json(cls, text: str) -> Trial:
        """Read a trial that `to_json` wrote, and compute its id again.

        Raise `StoreError` for values of other types.
        """
        record = json.loads(text)
        settings, study, levels = settings_from_json(record["settings"]), record["study"], record["levels"]
        has_levels = isinstance(levels, dict) and all(isinstance(each, Level) for each in levels.values())
        if not isinstance(study, str) or not has_levels:
            raise StoreError("expected the study and the levels of a trial, got values of other types")
        return cls(study=study, levels=levels, settings=settings)


def first_of_each_kind(trials: Iterable[Trial]) -> list[Trial]:
    """Return one trial of each group of trials that differ only in the seed: the first."""
    cells: dict[int, Trial] = {}
    for trial in trials:
        cells.setdefault(id(trial.common), trial)  # faster than a Kind for each of many seeds
    kinds: dict[Kind, Trial] = {}
    for trial in cells.values():
        kinds.setdefault(Kind(trial.common), trial)
    return list(kinds.values())


def settings_to_json(settings: TrialSettings) -> str:
    """Return settings as the JSON text that rows of a store and checkpoints contain.

    Keys have the names from which ids are computed.
    """
    return settings.model_dump_json(by_alias=True)


def settings_from_json(text: str) -> TrialSettings:
    """Read the settings that `settings_to_json` wrote.

    Raise `StoreError` for any other text. Rows of earlier versions have the keys of all tasks, and keys of
    [model] and [train] that there are no longer. Those that the task does not have, or that are not set, are
    dropped.
    """
    record = tables_from_json(text)
    try:
        record["task"] = _known_keys(record["task"])
        record |= {name: _set_keys(record[name]) for name in ("model", "train")}
        return TrialSettings.model_validate_json(json.dumps(record))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(f"expected the settings of a trial ({' '.join(str(error).split())})") from error


def tables_from_json(text: str) -> dict[str, Any]:
    """Return stored settings as plain values, with the tables `model`, `task`, `train` and `code`.

    Raise `StoreError` for any other text. The values are not checked, except the name of the task and the
    plug-ins in `code`.
    """
    try:
        record = {"code": {}, **json.loads(text)}
        tables = [record[name] for name in ("model", "task", "train", "code")]
        names = [record["task"]["name"], *record["code"].values()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(f"expected the settings of a trial ({' '.join(str(error).split())})") from error
    if not all(isinstance(each, dict) for each in tables) or not all(isinstance(each, str) for each in names):
        raise StoreError("expected the settings of a trial (got values of other types)")
    return record


def model_from_json(text: str) -> ModelSettings:
    """Return the [model] settings from a text that `settings_to_json` wrote.

    Raise `StoreError` for other texts. This works without the plug-in of the trial's task.
    """
    try:
        return ModelSettings.model_validate_json(json.dumps(_set_keys(json.loads(text)["model"])))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StoreError(f"expected the model of a trial ({' '.join(str(error).split())})") from error


def _set_keys(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value not in (None, [])}


def _known_keys(task: Mapping[str, Any]) -> dict[str, Any]:
    fields = require_task(task["name"]).settings.model_fields
    stored = {name: task.get(field.serialization_alias or name) for name, field in fields.items()}
    return {name: value for name, value in stored.items() if value is not None}


class Kind(tuple[int, ...]):
    """A key for all trials whose settings differ only in the seed.

    It is hashable, for dictionaries and caches. Trials of a grid that differ only in their seed share the
    objects of all other settings. So these objects are compared by identity, which is fast. Equal settings in
    other objects count as another kind, which only costs time.
    """

    settings: TrialSettings  # of one of the trials; it keeps the objects alive, so that no id is reused

    def __new__(cls, settings: TrialSettings) -> Kind:
        """Return the key for trials with these settings and any seed."""
        parts = (settings.model, settings.task, settings.train, settings.code)
        kind = super().__new__(cls, map(id, parts))
        kind.settings = settings
        return kind

    def id_with(self, seed: int) -> str:
        """Return the id of the trial with this seed."""
        return next(self.ids([seed]))[1]

    def ids(self, seeds: Iterable[int]) -> Iterator[tuple[int, str]]:
        """Yield each seed with the id of its trial."""
        begun, after = _id_parts(self)
        for seed in seeds:
            whole = begun.copy()
            whole.update(b'"seed":%d,%b' % (seed, after) if seed else after)
            yield seed, whole.hexdigest()[:16]


def trial_id(settings: TrialSettings) -> str:
    """Return the id of the trial with these settings.

    It is the first 16 hex digits of a SHA-256. The hash covers the settings as canonical JSON without default
    values, with the recipe's identity text, the digests of plug-in source, and the version of results. So a
    new key with a default does not change older ids; a renamed key keeps its old name here, as its
    serialization alias.
    """
    return Kind(settings).id_with(settings.seed)


def training_kind(settings: TrialSettings) -> Kind:
    """Return the key for trials like this one, with one epoch and the default test sets.

    Trials whose ids are then the same take the same steps, up to the end of the shorter training.
    """
    task, train = settings.task, settings.train.model_copy(update={"epochs": 1})
    fields = type(task).model_fields
    defaults = {key: fields[key].default for key in task.test_keys & fields.keys()}
    return Kind(settings.model_copy(update={"train": train, "task": task.model_copy(update=defaults)}))


def training_id(settings: TrialSettings) -> str:
    """Return the id that a trial would have with one epoch and the default test sets."""
    return training_kind(settings).id_with(settings.seed)


_ALWAYS = {"batch_size", "steps_per_epoch"}
"""The keys of [train] that an id covers even if they have their defaults, since earlier they had none."""


@lru_cache(maxsize=4096)
def _id_parts(kind: Kind) -> tuple[Any, bytes]:  # the type of a hash has no public name
    """Return the hash of what an id covers before the seed, and what it covers after it."""
    settings = kind.settings
    record = settings.model_dump(mode="json", exclude_defaults=True, by_alias=True)
    record.pop("seed", None)
    record["model"]["recipe"] = read_recipe(settings.model.recipe).identity
    record["train"] |= settings.train.model_dump(include=_ALWAYS)
    if settings.code:
        record["code"] = {what: digest(code) for what, code in settings.code.items()}
    changes = changes_of(settings)
    record["edition"] = f"{RESULTS_VERSION}.{changes}" if changes else RESULTS_VERSION
    # keys are sorted, so the seed stands between two parts that all seeds of a cell share
    first, last = (
        json.dumps(part, sort_keys=True, separators=(",", ":"))
        for part in (
            {name: value for name, value in record.items() if name < "seed"},
            {name: value for name, value in record.items() if name > "seed"},
        )
    )
    return hashlib.sha256(f"{first.removesuffix('}')},".encode()), last.removeprefix("{").encode()
