"""Plan of a study on this machine, with measured costs.

Python and the command line both plan by `plan_study`, and print the plan that it returns.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ...errors import argument_fault, check_arguments
from ...grammar.analysis.measured_costs import remember
from ...storage import Store
from ...studies.catalog.own_corpora import FOLDER
from ...studies.catalog.tasks import (
    LabelledSettings,
    LanguageModelSettings,
    SentencePairSettings,
    require_task,
)
from ...studies.plan import Plan, make_plan
from ...studies.planning.memory_estimates import (
    StepMemory,
    fits,
    trials_that_fit,
)
from ...studies.planning.time_estimates import (
    max_seconds_in_process,
    positions_of_first_step,
    steps_to_compare,
    steps_to_measure,
    trial_seconds,
)
from ...studies.resolve.costs import gains_from_bf16, sequence_tokens
from ...studies.resolve.trial import first_of_each_kind, settings_to_json
from ...studies.study import Study
from ...studies.text.units import (
    abbreviate_all,
    format_bytes,
    format_core_hours,
    format_duration,
    listed,
    plural,
    si_prefix,
)
from ..core.resources import (
    ONE_CPU,
    Gpu,
    Machine,
    count_gpus_of_processes,
    cpu_has_bf16,
    cpus_here,
    gpu_fault,
    gpu_here,
    has_gpu,
    memory_here,
)
from ..corpora.availability import check_availability
from ..corpora.files import keep_files

if TYPE_CHECKING:
    from ...studies.planning.time_estimates import MeasureSteps
    from ...studies.schema.settings import TrialSettings

_CORE_FLOPS = 5e10
"""The peak FLOP/s of a CPU core; few trainings reach it."""

_MAX_CPU_DAYS = 21

_MAX_READ_BYTES = 4_000_000
"""The largest files of the user that a plan reads to measure training steps: a few seconds."""

_MOSTLY_FLOAT32 = "most of its steps are so small that they are computed in float32"

_NOT_MEASURED = "its steps are too large for a plan to compare them with float32"

_EMULATED = "this CPU only emulates it, so steps take longer than in float32"

_TOLD_SHARE = 0.9
"""The maximum time in bf16, as a share of that in float32, that a plan mentions unasked."""

_MAX_NAMED, _MAX_LABEL = 3, 60  # models that a plan names as too large, and columns of each

_NEARLY_ONE = 1.05
"""The share above which a plan advises float32; below it, a short measurement sees no difference."""


def plan_study(
    study: Study,
    store: Store,
    machine: Machine | None = None,
    only: Collection[str] | None = None,
) -> Plan:
    """Return the plan of a study on this machine, given the results in the store.

    `only` restricts the plan to these trials of a grid. Raise PluginError if a plug-in's block sees padding
    that the task has.
    """
    machine = Machine() if machine is None else machine
    check_arguments(argument_fault("machine", machine, Machine))
    _check_padding(study)
    plan = make_plan(
        study,
        store,
        only,
        measure=measure_steps(machine, study.own_corpus.files if study.own_corpus else {}),
        locate=lambda dataset: check_availability(dataset, machine.data).location,
    )
    return on_machine(plan, machine)


def on_machine(plan: Plan, machine: Machine) -> Plan:
    """Add notes on this machine to a plan, such as its total time."""
    settings = [trial.common for trial in plan.study.examples]
    if any(each.train.groups for each in settings):
        from ..optimisers.build import check_groups  # noqa: PLC0415 -- loads torch

        check_groups(settings)
    return plan.with_notes(
        [
            ("start", "\n".join(notes_on_starts(plan.study, machine))),
            ("in all", _total_time(plan, machine)),
            ("where", describe_device(plan, machine)),
            ("bf16", _describe_bf16(plan, machine)),
        ]
    )


def notes_on_starts(study: Study, machine: Machine) -> tuple[str, ...]:
    """Return a note for each model that starts from a trained one; raise StartError if it does not fit."""
    settings = [each.settings for each in first_of_each_kind(study.examples)]
    if all(each.train.start is None for each in settings):
        return ()
    from ..core.start import describe_starts  # noqa: PLC0415 -- loads torch

    files = study.own_corpus.files if study.own_corpus else {}
    kept = machine.data / FOLDER

    def find(sha256: str) -> Path | None:
        path = files.get(sha256, kept / sha256)
        return path if path.is_file() else None

    return describe_starts(settings, find)


def _check_padding(study: Study) -> None:
    """Check plug-ins in models of tasks with padding. The result is cached, since a check loads torch."""
    kinds = [each.settings for each in first_of_each_kind(study.examples)]
    padded = [each for each in kinds if each.code and each.task.longest_row is not None]

    def check() -> dict[str, int]:
        from .preflight import check_plugin_modules  # noqa: PLC0415 -- loads torch

        check_plugin_modules(padded)
        return {"checked": len(padded)}

    if padded:
        key = {
            (each.model.recipe, each.task.spec.kind.causal, each.model.d_model, *each.code.items())
            for each in padded
        }
        remember("padding", sorted(key), check)


def measure_steps(machine: Machine, own_files: Mapping[str, Path]) -> MeasureSteps:
    """Return a function that measures training steps on this machine's CPU.

    It returns None if the steps cannot be measured, for example if the trials train on a GPU. Steps on
    labelled sequences are measured if the user's files, by SHA-256, are small. Measurements are cached, so
    that only the first plan of a study loads torch.
    """
    own_bytes = sum(path.stat().st_size for path in own_files.values())

    def measure(trials: Sequence[TrialSettings]) -> Callable[[TrialSettings], float] | None:
        is_short = 0 < own_bytes <= _MAX_READ_BYTES and all(
            isinstance(each.task, LabelledSettings) for each in trials
        )
        if not _can_measure(trials, machine, reads_files=is_short):
            return None
        if not (steps := steps_to_measure(trials)):
            return None
        # a home folder may be shared by machines of different speeds
        key = (platform.node(), [settings_to_json(each) for each in steps.values()])

        def nanoseconds() -> dict[str, int]:
            from .step_times import measure_speed  # noqa: PLC0415 -- loads torch

            with TemporaryDirectory() as folder:  # a plan leaves the data folder as it is
                data = Path(folder) if is_short else machine.data
                keep_files(own_files if is_short else {}, data / FOLDER)
                found = measure_speed(steps, replace(ONE_CPU, data=data))
            return {str(flops): round(1e9 * seconds) for flops, seconds in found or ()}

        found = remember("speed", key, nanoseconds)
        speed = [(float(flops), each / 1e9) for flops, each in found.items()]
        return (lambda one: trial_seconds(one, sorted(speed), grows_every=1)) if speed else None

    return measure


def _can_measure(trials: Sequence[TrialSettings], machine: Machine, *, reads_files: bool = False) -> bool:
    """Return whether the trials train on this machine's CPU and, unless `reads_files`, read no files."""
    trains_on_gpu = machine.gpus and (machine.gpus != "auto" or has_gpu())
    read = (LanguageModelSettings, SentencePairSettings, LabelledSettings)
    drawn = reads_files or not any(isinstance(each.task, read) for each in trials)
    return drawn and machine.address is None and not trains_on_gpu


def _describe_bf16(plan: Plan, machine: Machine) -> str:
    """Describe how much faster bf16 is: `would take 0.66 of the time here`.

    Return "" if bf16 is not much faster than float32. For a study that sets bf16, the time is described
    in any case, with a warning where float32 is faster. The measurement is cached.
    """
    left = [each.trial for each in plan.trials if each.status != "done"]
    left = plan.study.examples if plan.study.search else left
    trials = [each.settings for each in first_of_each_kind(left)]
    used = {each.train.precision for each in trials}
    if not trials or "tf32" in used or not _can_measure(trials, machine):
        return ""
    if not cpu_has_bf16():
        return _EMULATED if "bf16" in used else ""
    if not (steps := steps_to_compare(trials)):
        return _NOT_MEASURED if "bf16" in used else ""
    if not any(gains_from_bf16(each.model, positions_of_first_step(each)) for each in steps):
        return _MOSTLY_FLOAT32 if "bf16" in used else ""
    key = (platform.node(), [settings_to_json(each) for each in steps])

    def nanoseconds() -> dict[str, int]:
        from .step_times import measure_bf16  # noqa: PLC0415 -- loads torch

        found = measure_bf16(steps, replace(ONE_CPU, data=machine.data)) or ()
        return dict(zip(("float32", "bf16"), (round(1e9 * seconds) for seconds in found), strict=False))

    found = remember("bf16", key, nanoseconds)
    share = found["bf16"] / found["float32"] if found else 1.0
    if "bf16" in used and found:
        advice = ': `precision = "float32"` is faster on this CPU' if share > _NEARLY_ONE else ""
        return f"takes {share:.2f} of the time of float32 here{advice}"
    return f"would take {share:.2f} of the time here" if share <= _TOLD_SHARE else ""


def describe_device(plan: Plan, machine: Machine) -> str:
    """Describe the device on which the trials of a plan train.

    For example `this machine's GPU, NVIDIA H100: 8 such trials at once; 12 fit into 80.0 GB`.
    """
    gpus, address = machine.gpus, machine.address
    if address is not None:
        asked = "CPUs" if not gpus else "its GPUs, if a node has one, else its CPUs"
        asked = asked if gpus in ("auto", 0) else f"its GPUs, {gpus} of one for each trial"
        return f"the cluster at {address}: {asked}"
    if not gpus:
        return f"this machine's CPU, because gpus = 0{_shortage(plan)}"
    if (found := gpu_here()) is None:
        if (fault := gpu_fault()) is not None:
            return f"nowhere: torch finds no GPU here, because CUDA fails: {fault}"
        if gpus == "auto":
            return f"this machine's CPU: torch finds no GPU here{_shortage(plan)}"
        return f"nowhere: gpus = {gpus:g}, and torch finds no GPU here"
    gpu, count = found
    # a GPU may be split into instances, each for another process
    count = max(count, count_gpus_of_processes())
    name = f"this machine's {f'{count} GPUs' if count > 1 else 'GPU'}, {gpu.name}"
    shared = plan.memory and _shared(plan, plan.memory[1], gpu, count, machine)
    return f"{name}: {shared}" if shared else name


def _shared(plan: Plan, held: StepMemory, gpu: Gpu, count: int, machine: Machine) -> str:
    if (cpus := cpus_here()) < machine.cpus:
        return f"no trial, because each needs cpus = {machine.cpus:g}; this machine has {plural(cpus, 'CPU')}"
    fitting, room = trials_that_fit(held, gpu.bytes), cpus / count / machine.cpus
    if not fitting:
        return _too_large(plan, gpu.bytes)
    trials = 1 if machine.gpus == "auto" else max(1, int(min(1 / machine.gpus, room)))
    place = "" if count == 1 else " on each"
    fit = f"{fitting:,} fit{'s' * (fitting == 1)} into {format_bytes(gpu.bytes)}"
    return f"{plural(trials, 'such trial')} at once{place}; {fit}"


def _shortage(plan: Plan) -> str:
    """Return that a step needs more than the memory of this machine, and what helps; or ""."""
    here = memory_here()
    if plan.memory is None or fits(plan.memory[1].total, here):
        return ""
    held = plan.memory[1]
    smaller = fits(held.in_parts(held.sequences), here)
    advice = "lower batch_size, or set accumulate in [train]" if smaller else "choose a smaller one"
    return f"; {_too_large(plan, here)}: {advice}"


def _too_large(plan: Plan, device_bytes: int) -> str:
    """Return which models of a plan need more than the memory of a device: `width=64 does not fit into …`."""
    large = [model.label for model in plan.models if model.memory and not fits(model.memory, device_bytes)]
    shown = abbreviate_all(large[:_MAX_NAMED], _MAX_LABEL)
    more = [f"{len(large) - _MAX_NAMED:,} more"] * (len(large) > _MAX_NAMED)
    parts = None if plan.memory is None else plan.memory[1].parts_that_fit(device_bytes)
    split = "" if parts is None else f", except with gradient accumulation over {parts} parts"
    verb = "do" if large[1:] else "does"
    return f"{listed([*shown, *more])} {verb} not fit into {format_bytes(device_bytes)}{split}"


def _cpu_months(plan: Plan) -> str:
    """Return a note if a study would take weeks on CPUs; otherwise "". The note says that it needs a GPU."""
    seconds = plan.flops / (_CORE_FLOPS * cpus_here())
    if seconds < _MAX_CPU_DAYS * 86_400:
        return ""
    prefix, scale = si_prefix(plan.flops)
    return (
        f"needs a GPU: {plan.flops / scale:,.1f} {prefix}FLOPs take about {format_duration(seconds)} "
        f"on this machine's {plural(int(cpus_here()), 'CPU core')}, at {_CORE_FLOPS / 1e9:.0f} GFLOPs/s each"
    )


def _time_of_steps(plan: Plan, machine: Machine) -> str:
    """Return a text on how long steps of language models and of generated tasks take here, or "".

    A step of a language model is measured on copied sequences with as many symbols and tokens, so that no
    file is read. Tasks whose lengths depend on their data are named: the time is then a lower bound.
    """
    left = [each.trial.settings for each in plan.trials if each.status not in ("done", "failed")]
    drawn: list[TrialSettings] = []
    unread = dict[str, None]()
    for settings in left:
        if isinstance(settings.task, SentencePairSettings | LabelledSettings):
            unread[settings.task.name] = None
            continue
        if not isinstance(settings.task, LanguageModelSettings):
            drawn.append(settings)
            continue
        tokens, vocab = sequence_tokens(settings), settings.task.interface.model.vocab
        keys = {"name": "copy", "vocab": vocab, "dev_examples": 1}  # steps are timed, not scores
        train = settings.train.model_copy(update={"lengths": (tokens, tokens), "curriculum": None})
        task = require_task("copy").settings.model_validate(keys)
        drawn.append(settings.model_copy(update={"task": task, "train": train}))
    times = measure_steps(machine, {})(drawn) if drawn else None
    if times is None:
        return ""
    total = format_core_hours(sum(map(times, drawn)) * machine.cpus)
    text = f"{total} of training steps; scores on dev and test come on top, once the data are read"
    if not unread:
        return text if text.startswith("less") else f"about {text}"
    return f"at least {text}; {' and '.join(unread)}: no estimate, as lengths depend on the data"


def _total_time(plan: Plan, machine: Machine) -> str:
    seconds = plan.estimate.seconds
    trains_on_gpu = machine.gpus and (machine.gpus != "auto" or has_gpu())
    if seconds is None:
        return "" if trains_on_gpu else _cpu_months(plan) or _time_of_steps(plan, machine)
    bound, rate = ("at most ", " at the speed measured") if plan.estimate.basis == "at most" else ("", "")
    expected = plan.estimate.expected
    if trains_on_gpu:
        about = "" if expected is None else f"about {format_duration(expected)}, "
        return f"{about}{bound}{format_duration(seconds)} of training{rate}, one trial after the other"
    workers = max(1, int(cpus_here() / machine.cpus))
    is_alone = plan.study.search is None and machine.address is None
    if is_alone and seconds <= max_seconds_in_process(workers):
        workers = 1  # such a short grid trains in one process
    about = "" if expected is None else f"about {_on_cpus(plan, machine, expected, workers)}; "
    return f"{about}{bound}{_on_cpus(plan, machine, seconds, workers)}{rate} on this machine"


def _on_cpus(plan: Plan, machine: Machine, seconds: float, workers: int) -> str:
    """Describe a training time, such as `3.1 core-hours, 1.6 h`, the latter with several workers."""
    longest = plan.max_trial_s if seconds == plan.estimate.seconds else 0.0  # a trial cannot be split
    wall_s = max(seconds / workers, longest)
    core_hours = format_core_hours(seconds * machine.cpus)
    # so few core-hours say less than the time
    return f"{'' if core_hours.startswith('less') else f'{core_hours}, '}{format_duration(wall_s)}"
