"""Settings of this machine, merged from the command line, the environment and activemem.toml.

The command line takes precedence over the environment, then come activemem.toml and the defaults.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, field_validator, model_validator

from .. import reporting, storage
from ..engine.core.resources import Gpus, Machine, gpus_fault
from ..errors import ActivememError, nearest_hint
from ..plugins import find_settings_file, locate_plugin
from ..reporting.tables.render import FORMATS
from ..storage.place import is_address, place_fault, place_within
from ..studies.last_run import load_last_run
from ..studies.own_data.files import MAX_DATA_VARIABLE
from ..studies.text.document import read_document
from ..studies.text.errors import StudyError, StudyFault, fault_at
from ..studies.text.strict_model import InvalidTableError, StrictModel, ValidationProblem, validate
from ..studies.text.units import parse_duration
from ..tracking.contract import TRACKERS
from .environment import ENV_PREFIX, TOKEN_VARIABLE

_RAY_ADDRESS = "RAY_ADDRESS"
_NO_SETTINGS = ("ACTIVEMEM_TEST_", TOKEN_VARIABLE, MAX_DATA_VARIABLE)

_ADDRESS = re.compile(r"auto|[^/:\s]+:[0-9]{1,5}")


class SettingsError(ActivememError):
    """Error for settings of this machine that cannot be used. The message lists all faults."""


class TrackSettings(StrictModel):
    """The folder or the server of each tracker (program that shows a running study), also of plug-ins."""

    model_config = ConfigDict(extra="allow")

    tensorboard: str | None = Field(default=None, min_length=1)
    """TensorBoard's folder, relative to this file"""
    mlflow: str | None = Field(default=None, min_length=1)
    """the address of MLflow's server, or a database such as sqlite:///mlflow.db"""
    wandb: str | None = Field(default=None, min_length=1)
    """the folder for offline runs of Weights & Biases"""
    trackio: str | None = Field(default=None, min_length=1)
    """the folder for Trackio's databases"""

    @model_validator(mode="after")
    def check_others(self) -> TrackSettings:
        """Raise ValueError for a name that no tracker has, and for a place of one that is no text."""
        for name, place in (self.model_extra or {}).items():
            if name not in TRACKERS:
                raise ValueError(f"unknown tracker '{name}'{nearest_hint(name, TRACKERS)}")
            if not (isinstance(place, str) and place):
                raise ValueError(f"expected the folder or server of {name}, got {place!r}")
        return self


class MachineSettings(StrictModel):
    """The settings of a machine, such as its folders, its cluster, and the resources of each trial."""

    results: str = Field(default="results", min_length=1)
    """the store: a folder relative to this file, or s3://BUCKET/PREFIX"""
    data: str = Field(default="data", min_length=1)
    """the folder of the corpora, relative to this file"""
    address: str | None = Field(default=None, min_length=1)
    """the Ray cluster: auto or HOST:PORT (default: each run starts one)"""
    cpus: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """CPU cores of each trial: a whole number, or a share such as 0.5"""
    gpus: Gpus = "auto"
    """GPUs of each trial: 0, 1, a share such as 0.25, or auto (a whole GPU if there is one)"""
    time_limit_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the maximum training time of a trial; a longer one fails (default: no limit)"""
    checkpoint_every: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """the interval of checkpoints within an epoch, such as 5m (default: only after each epoch)"""
    format: str = "rich"
    """the format of tables: rich, markdown, latex, siunitx, html, csv, or a plug-in's"""
    plugins: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """plug-ins: names, or files relative to this file"""
    track: TrackSettings = TrackSettings()
    """programs that follow a running study, and their places"""

    @field_validator("results")
    @classmethod
    def validate_results(cls, text: str) -> str:
        """Return the setting `results`, a folder or an address; raise ValueError for an invalid address."""
        if fault := place_fault(text):
            raise ValueError(fault)
        return text

    @field_validator("data")
    @classmethod
    def validate_folder(cls, text: str) -> str:
        """Raise ValueError unless a setting is a folder. The address of an object store is not a folder."""
        if is_address(text):
            raise ValueError(f"expected a folder that this machine has mounted, got {text!r}")
        return text

    @field_validator("address")
    @classmethod
    def validate_address(cls, text: str | None) -> str | None:
        """Check that a text looks like the address of a Ray cluster, and not like that of a Ray client."""
        if text and not _ADDRESS.fullmatch(text):
            client = "; run the command on a machine of the cluster" if text.startswith("ray://") else ""
            raise ValueError(f"expected auto or HOST:PORT, got {text!r}{client}")
        return text

    @field_validator("checkpoint_every", mode="before")
    @classmethod
    def read_duration(cls, given: object) -> object:
        """Convert a text such as 5m into a number of seconds."""
        return parse_duration(given) if isinstance(given, str) else given

    @field_validator("gpus", mode="before")
    @classmethod
    def validate_gpus(cls, given: object) -> object:
        """Check that one trial can have this share or number of GPUs."""
        if given == "auto":
            return given
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise ValueError(f"expected auto or a number, got {given!r}")
        if fault := gpus_fault(float(given)):
            raise ValueError(fault)
        return float(given)

    @field_validator("cpus")
    @classmethod
    def validate_count(cls, count: float) -> float:
        """Check that Ray can schedule this number of cores: a fraction below one, or a whole number."""
        if count > 1 and not count.is_integer():
            raise ValueError(f"expected a whole number or a fraction below 1, got {count:g}")
        return count

    @field_validator("format")
    @classmethod
    def validate_format(cls, name: str) -> str:
        """Raise ValueError if no table format has this name."""
        if name not in FORMATS:
            raise ValueError(f"expected one of {', '.join(sorted(FORMATS))}, got {name!r}")
        return name


SETTING_NAMES = tuple(MachineSettings.model_fields)
"""Every setting, in display order."""

_ONLY_IN_FILE = "track"
"""The table that has no environment variable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSettings:
    """The settings of this machine, with the source of each value.

    Paths are relative to the working directory. `results` is a folder or an address. `track` has the places
    of the programs that follow studies.
    """

    values: MachineSettings
    results: str
    data: Path
    plugins: tuple[str | Path, ...]
    track: Mapping[str, str]
    sources: Mapping[str, str]

    @property
    def store(self) -> storage.Store:
        """Return the store at the folder or address in the setting `results`."""
        return storage.Store(self.results)

    @property
    def machine(self) -> Machine:
        """Return the settings that trainings need, such as resources and the data folder."""
        values = self.values
        return Machine(
            cpus=values.cpus,
            gpus=values.gpus,
            time_limit_s=values.time_limit_s,
            checkpoint_every_s=values.checkpoint_every,
            address=values.address,
            data=self.data,
        )


@dataclass(frozen=True, slots=True)
class _Layer:
    """Settings from one place: the command line, the environment or activemem.toml.

    `sources` says where each is set, such as the name of a variable. `faults` were found there.
    """

    name: str
    values: Mapping[str, Any]
    sources: Mapping[str, str]
    faults: tuple[StudyFault, ...]


def load_settings(
    command_line: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> ResolvedSettings:
    """Return the settings for a command that runs in `folder`, by default the working directory.

    None on the command line means that the option is missing. Raises SettingsError.
    """
    path = find_settings_file(folder or Path.cwd())
    layers = list(_layers(path, os.environ if environment is None else environment))
    given = {name: each for name, each in (command_line or {}).items() if each is not None}
    layers += [_layer("command line", given, {name: f"--{name.replace('_', '-')}" for name in given})]
    wrong = [str(StudyError(layer.name, layer.faults)) for layer in layers if layer.faults]
    if wrong:
        raise SettingsError("\n\n".join(wrong))
    found: dict[str, Any] = {}
    sources = dict.fromkeys(SETTING_NAMES, "default")
    # later layers replace the settings of earlier ones
    for layer in layers:
        found |= layer.values
        sources |= layer.sources
    values = MachineSettings(**found)

    def locate(name: str, written: str) -> str:
        """Return a setting's place. A path in activemem.toml is relative to the folder of that file."""
        folder = path.parent if path and sources[name] == str(path) else Path()
        return place_within(folder, written)

    return ResolvedSettings(
        values=values,
        results=locate("results", values.results),
        data=Path(locate("data", values.data)),
        plugins=tuple(locate_plugin(each, Path(locate("plugins", ""))) for each in values.plugins),
        track={
            name: locate("track", place) for name, place in values.track.model_dump(exclude_none=True).items()
        },
        sources=sources,
    )


def open_results(
    study: str | None,
    results: str | None,
    overrides: Sequence[str] | None = None,
    *,
    reads: Collection[str] = (),
) -> reporting.StudyResults:
    """Open a study and its store, by its name as it last ran, or by a path as the file is now.

    `reads` are the sections of the file that the command needs.
    """
    store = load_settings({"results": results}).store
    return reporting.StudyResults(load_last_run(study, store, overrides or (), reads=reads), store)


def configured_plugins() -> tuple[str | Path, ...]:
    """Return the plug-ins that the environment or activemem.toml names.

    Faults in other settings there are ignored. Other settings can only be read after these plug-ins are
    loaded. If the plug-ins are not texts, `load_settings` reports a fault.
    """
    path = find_settings_file(Path.cwd())
    naming = [layer for layer in _layers(path, os.environ) if "plugins" in layer.values]
    if not naming or list(_iter_problems({"plugins": naming[-1].values["plugins"]})):
        return ()
    folder = path.parent if path and naming[-1].name == str(path) else Path()
    return tuple(locate_plugin(each, folder) for each in naming[-1].values["plugins"])


def _layers(path: Path | None, environment: Mapping[str, str]) -> Iterator[_Layer]:
    """Yield the settings of RAY_ADDRESS, of the file at `path` and of variables, in rising priority."""
    address = environment.get(_RAY_ADDRESS, "")
    if address not in ("", "local"):
        yield _layer("environment", {"address": address}, {"address": _RAY_ADDRESS})
    if path:
        yield _file(path)
    texts = {
        name: text
        for name, text in environment.items()
        if name.startswith(ENV_PREFIX) and not name.startswith(_NO_SETTINGS) and text
    }
    variables = {name: ENV_PREFIX + name.upper() for name in SETTING_NAMES if name != _ONLY_IN_FILE}
    known = {variable: name for name, variable in variables.items()}
    unknown = [f"unknown variable {name}{nearest_hint(name, known)}" for name in texts if name not in known]
    values = {name: _value(name, texts[each]) for name, each in variables.items() if each in texts}
    yield _layer("environment", values, {name: variables[name] for name in values}, unknown)


def _file(path: Path) -> _Layer:
    try:
        document = read_document(path)
    except StudyError as error:
        return _Layer(str(path), {}, {}, error.faults)
    faults: list[StudyFault] = []
    for problem in _iter_problems(document.data):
        at = problem.path if problem.path in document.places else problem.path[:1]
        text, place = document.places[at]
        faults.append(fault_at(text, place.key if problem.key else place.value, problem.message))
    return _Layer(str(path), document.data, dict.fromkeys(document.data, str(path)), tuple(faults))


def _layer(
    name: str, values: Mapping[str, Any], sources: Mapping[str, str], unknown: Sequence[str] = ()
) -> _Layer:
    """Return settings from another place than a file. Each of their faults begins with its source."""
    wrong = [f"{sources[str(each.path[0])]}: {each.message}" for each in _iter_problems(values)]
    return _Layer(name, values, sources, tuple(StudyFault(message=each) for each in [*unknown, *wrong]))


def _value(name: str, text: str) -> float | str | list[str]:
    """Convert the text of an environment variable to the type of its setting.

    A text that does not fit is returned unchanged.
    """
    if name == "plugins":
        return [each for each in text.split(os.pathsep) if each]
    if name in ("cpus", "gpus", "time_limit_s"):
        with suppress(ValueError):
            return float(text)
    return text


def _iter_problems(values: Mapping[str, Any]) -> Iterator[ValidationProblem]:
    try:
        validate(MachineSettings, values)
    except InvalidTableError as error:
        yield from error.problems
