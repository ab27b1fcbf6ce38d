"""Options that several commands have, each with one name and one meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import typer

from ..studies.text.command_line import command_line
from ..studies.text.units import parse_duration

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for a program to read.")]

ResultsOption = Annotated[
    str | None,
    typer.Option(
        "--results", metavar="PATH", help="The store: a folder or s3://BUCKET/NAME; else as configured."
    ),
]

DataOption = Annotated[
    str | None, typer.Option("--data", metavar="PATH", help="The folder of the corpora; else as configured.")
]

LastRunStudy = Annotated[
    str | None, typer.Argument(metavar="[STUDY]", help="A study by its name or file; else the last one.")
]

OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="FACTOR=LEVEL",
        help="Take trials with this level alone. Repeatable; of one factor, any level will do.",
    ),
]

OverridesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a key of the file, as train.epochs=2. Repeatable."
    ),
]

RecipeText = Annotated[str, typer.Argument(metavar="RECIPE", help='A recipe, as "4 * (sa >> ff(512))".')]

WidthOption = Annotated[int, typer.Option("--d-model", min=1, metavar="N", help="Width of the model.")]

LengthOption = Annotated[int, typer.Option("--length", min=1, metavar="N", help="Tokens of a sequence.")]

VocabOption = Annotated[int, typer.Option("--vocab", min=1, metavar="N", help="Symbols of the vocabulary.")]

CausalOption = Annotated[bool, typer.Option("--causal", help="Hide the future from every position.")]

BatchOption = Annotated[
    int, typer.Option("--batch", min=1, metavar="N", help="Sequences of a training step.")
]

DropoutOption = Annotated[
    float, typer.Option("--dropout", min=0.0, max=0.99, metavar="P", help="Rate of dropout in training.")
]


Norm = Literal["pre", "post"]

NormOption = Annotated[Norm, typer.Option("--norm", help="Where a sub-layer is normalised.")]


_failure_option = partial(typer.Option, rich_help_panel="Failures")
_claim_option = partial(typer.Option, rich_help_panel="Until claims are decided")
_training_option = partial(typer.Option, rich_help_panel="How trials train")
_machine_option = partial(typer.Option, rich_help_panel="Many machines")

LocalOption = Annotated[
    bool | None,
    typer.Option(
        "--local/--ray",
        help="Train in this process, or with Ray; by default a grid of a few minutes trains here.",
    ),
]

ShardOption = Annotated[
    str | None,
    _machine_option(
        "--shard", metavar="I/N", help="Run the I-th of N shares, as 3/16: each trial is in one of them."
    ),
]

MaxTrialsOption = Annotated[
    int | None, typer.Option("--max-trials", min=1, metavar="N", help="Run at most so many trials.")
]

MaxFailuresOption = Annotated[
    int | None, _failure_option("--max-failures", min=1, metavar="N", help="Stop once N trials have failed.")
]

FailFastOption = Annotated[
    bool, _failure_option("--fail-fast", help="Stop at the first failure; --max-failures 1.")
]

RetryFailedOption = Annotated[bool, _failure_option("--retry-failed", help="Try failed trials again.")]

KeepStaleOption = Annotated[
    bool,
    _training_option(
        "--keep-stale", help="Keep the outcomes of plug-ins' earlier code; else they train anew."
    ),
]

PackOption = Annotated[
    str | None,
    _training_option(
        "--pack",
        metavar="N",
        help="Train N trials of one form together; auto where that is faster, off (the default) never.",
    ),
]

CheckpointEveryOption = Annotated[
    str | None,
    _training_option(
        "--checkpoint-every",
        metavar="TIME",
        help="Also save trials within an epoch, every 30s, 5m or 1h; else only after each epoch.",
    ),
]

AddressOption = Annotated[
    str | None, _machine_option("--address", metavar="ADDR", help="The Ray cluster; else as configured.")
]

SkipUnfitNodesOption = Annotated[
    bool,
    _machine_option("--skip-unfit-nodes", help="Leave out nodes of the cluster that cannot train trials."),
]

UntilDecidedOption = Annotated[
    bool,
    _claim_option(
        "--until-decided", help="Then add seeds where claims are undecided, up to `max_seeds` of the study."
    ),
]

BudgetOption = Annotated[
    str | None,
    _claim_option(
        "--budget",
        metavar="TIME",
        help="With --until-decided: how long added seeds may train, as 90m or 20h.",
    ),
]

DeviceMemoryOption = Annotated[
    str | None,
    typer.Option(
        "--device-memory",
        metavar="SIZE",
        help="Say how many trials at once fit on a device of this memory, as 24GB or 80GiB.",
    ),
]


def read_device_memory(size: str | None) -> int | None:
    """Return the bytes of a device, None if none was given; raise BadParameter for what is no size."""
    from .machine_settings import read_bytes

    try:
        return None if size is None else read_bytes(size)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--device-memory") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of `study run` as they were given, each under its name, and the plug-ins of the command."""

    study: str
    overrides: Sequence[str] | None
    local: bool | None
    only: Sequence[str] | None
    shard: str | None
    max_trials: int | None
    max_failures: int | None
    fail_fast: bool
    retry_failed: bool
    keep_stale: bool
    until_decided: bool
    budget: str | None
    checkpoint_every: str | None
    pack: str | None
    address: str | None
    skip_unfit_nodes: bool
    results: str | None
    as_json: bool
    plugin: Sequence[str]

    def settings(self) -> dict[str, object]:
        """Return the settings that the options replace."""
        names = ("results", "address", "checkpoint_every", "pack")
        return {name: getattr(self, name) for name in names}

    def command(self, overrides: Sequence[str]) -> str:
        """Return the command that continues the run of a study that has these overrides."""
        given = {"ray": self.local is False, **{name: getattr(self, name) for name in _REPEATED}}
        return command_line("study", "run", self.study, set=overrides, **given)

    def budget_s(self) -> float | None:
        """Return how many seconds added seeds may train, None for any.

        Raises BadParameter for contradictions. Seeds are added to whole studies only.
        """
        if not self.until_decided:
            if self.budget is not None:
                raise typer.BadParameter("--budget: expected --until-decided with it, got none")
            return None
        parts = {"--only": self.only, "--shard": self.shard, "--max-trials": self.max_trials}
        if given := [name for name, value in parts.items() if value]:
            raise typer.BadParameter(f"--until-decided: expected the whole study, got {', '.join(given)}")
        try:
            return None if self.budget is None else parse_duration(self.budget)
        except ValueError as error:
            raise typer.BadParameter(f"--budget: {error}") from error


_REPEATED = (
    *("local", "only", "shard", "max_trials", "max_failures", "fail_fast", "retry_failed"),
    *("keep_stale", "until_decided", "budget", "skip_unfit_nodes"),
    *("results", "address", "checkpoint_every", "pack", "plugin"),
)
"""The options that the command for continuing a run repeats, in its order."""
