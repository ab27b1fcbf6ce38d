"""Groups of trials that differ only in their attention, so that their memories can be compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from ...grammar.canonical import identity
from ...grammar.vocabulary.spec import as_word
from ...studies.planning.trial_values import encoder_arguments
from ...studies.resolve.trial import Trial
from ...studies.schema.settings import TrialSettings

_DURATION_KEYS = ("epochs", "steps_per_epoch", "stop")
"""Keys of [train] in which compared trials may differ: models without attention take longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardTrials:
    """The trials that a trial is compared with: those that attend to the encoder's outputs."""

    by_attention: dict[str, Trial]
    ambiguous: tuple[str, ...] = ()  # attentions that several trials have


def group_key(settings: TrialSettings) -> str | None:
    """Return what trials that read the same sequences with the same encoder have in common.

    They may differ in the decoder's attention and in the length of training. None without a recurrent
    encoder.
    """
    arguments = encoder_arguments(settings.model.recipe)
    if arguments is None:
        return None
    record = settings.model_dump(mode="json")
    record["model"]["recipe"] = [identity(arguments[name]) for name in ("encoder", "decoder")]
    record["train"] = {key: value for key, value in record["train"].items() if key not in _DURATION_KEYS}
    return json.dumps(record, sort_keys=True)


def standard_trials(trial: Trial, others: Sequence[Trial]) -> StandardTrials:
    """Return the trials of its group that attend to the encoder's outputs, possibly itself.

    Of several with the same attention, the one with the same [train] is taken.
    """
    candidates: dict[str, list[Trial]] = {}
    for other in others:
        attention = _standard_attention(other.settings)
        if attention is not None:
            candidates.setdefault(attention, []).append(other)
    for name, trials in candidates.items():
        trained_alike = [other for other in trials if other.settings.train == trial.settings.train]
        candidates[name] = trained_alike if len(trained_alike) == 1 else trials
    return StandardTrials(
        by_attention={name: trials[0] for name, trials in candidates.items() if len(trials) == 1},
        ambiguous=tuple(name for name, trials in candidates.items() if len(trials) > 1),
    )


def _standard_attention(settings: TrialSettings) -> str | None:
    """Return the name of the decoder's attention if it is to the encoder's outputs."""
    arguments = encoder_arguments(settings.model.recipe)
    assert arguments is not None, "only trials of a group are compared"
    attention = as_word(arguments, "attention")
    return attention if attention != "none" and as_word(arguments, "attend") == "outputs" else None
