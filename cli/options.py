"""Options shared by several commands, with the same name and meaning everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated

import typer

from ..studies.text.errors import command_line
from ..studies.text.units import parse_duration

number_option = partial(typer.Option, min=1, metavar="N")

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]

ResultsOption = Annotated[
    str | None,
    typer.Option(
        "--results", metavar="PATH", help="The store: a folder or s3://BUCKET/NAME (default: as configured)."
    ),
]

DataOption = Annotated[
    str | None,
    typer.Option("--data", metavar="PATH", help="The folder of the corpora (default: as configured)."),
]

LastRunStudy = Annotated[
    str | None, typer.Argument(metavar="[STUDY]", help="The name or file of a study (default: the last run).")
]

StudyFile = Annotated[
    str, typer.Argument(metavar="STUDY", help="A study file, or the name of an included study.")
]

OnlyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--only",
        metavar="FACTOR=LEVEL",
        help="Select only the trials with this factor level. Repeat it for more levels or more factors.",
    ),
]

OverridesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key of the file, for example train.epochs=2. Repeatable.",
    ),
]

RecipeText = Annotated[
    str, typer.Argument(metavar="RECIPE", help='A recipe, for example "4 * (sa >> ff(512))".')
]

WidthOption = Annotated[int, number_option("--d-model", help="Width of the model.")]

LengthOption = Annotated[int, number_option("--length", help="Sequence length in tokens.")]

VocabOption = Annotated[int, number_option("--vocab", help="Vocabulary size.")]

CausalOption = Annotated[bool, typer.Option("--causal", help="Make every layer causal.")]

BatchOption = Annotated[int, number_option("--batch", help="Batch size in sequences.")]


_failure_option = partial(typer.Option, rich_help_panel="Failures")
_claim_option = partial(typer.Option, rich_help_panel="Until claims are decided")
_training_option = partial(typer.Option, rich_help_panel="How trials train")
_machine_option = partial(typer.Option, rich_help_panel="Many machines")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of `study run` as the user gave them, and the plug-ins."""

    study: StudyFile
    overrides: OverridesOption = None
    local: Annotated[
        bool | None,
        typer.Option(
            "--local/--ray",
            help="--local: train one model after the other. --ray: train several at once (default: local for "
            "a grid that takes a few minutes, else Ray).",
        ),
    ] = None
    only: OnlyOption = None
    shard: Annotated[
        str | None,
        _machine_option(
            "--shard", metavar="I/N", help="Run only the I-th of N parts of the trials, for example 3/16."
        ),
    ] = None
    max_trials: Annotated[
        int | None,
        number_option(
            "--max-trials",
            help="The largest number of trials to run. A search also finishes its last point.",
        ),
    ] = None
    max_failures: Annotated[
        int | None,
        _failure_option("--max-failures", min=1, metavar="N", help="Stop once N trials have failed."),
    ] = None
    retry_failed: Annotated[bool, _failure_option("--retry-failed", help="Train failed trials again.")] = (
        False
    )
    keep_stale: Annotated[
        bool,
        _training_option(
            "--keep-stale",
            help="Reuse finished results of earlier versions of plug-ins (default: train again).",
        ),
    ] = False
    until_decided: Annotated[
        bool,
        _claim_option(
            "--until-decided",
            help="After the run, add seeds until all claims are decided. Needs `max_seeds` in `[study]`.",
        ),
    ] = False
    budget: Annotated[
        str | None,
        _claim_option(
            "--budget",
            metavar="TIME",
            help="With --until-decided: a limit on the total training time of the seeds that this run adds, "
            "such as 90m or 20h.",
        ),
    ] = None
    address: Annotated[
        str | None,
        _machine_option(
            "--address", metavar="ADDR", help="The address of the Ray cluster (default: as configured)."
        ),
    ] = None
    results: ResultsOption = None
    as_json: JsonOption = False
    plugin: Sequence[str] = ()

    def command(self, overrides: Sequence[str]) -> str:
        """Return the command that continues this run, with these overrides."""
        given = asdict(self)
        for name in ("study", "overrides", "as_json"):
            del given[name]
        return command_line("study", "run", self.study, set=overrides, ray=self.local is False, **given)

    def budget_s(self) -> float | None:
        """Return the time limit for added seeds in seconds, or None.

        Raise BadParameter for options that contradict each other. Seeds can only be added to whole studies.
        """
        if not self.until_decided:
            if self.budget is not None:
                raise typer.BadParameter("--budget needs --until-decided")
            return None
        parts = {"--only": self.only, "--shard": self.shard, "--max-trials": self.max_trials}
        if given := [name for name, value in parts.items() if value]:
            raise typer.BadParameter(f"--until-decided: expected the whole study, got {', '.join(given)}")
        try:
            return None if self.budget is None else parse_duration(self.budget)
        except ValueError as error:
            raise typer.BadParameter(f"--budget: {error}") from error
