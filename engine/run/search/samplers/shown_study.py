"""What a sampler is shown of a study of Optuna's: a part of it, or more than Hyperband shows."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any, cast

import optuna
from optuna.trial import FrozenTrial, TrialState


class ShownStudy:
    """A study that shows some of its trials."""

    def __init__(self, study: optuna.Study, trials: Sequence[FrozenTrial]) -> None:
        self._whole, self._shown = study, trials

    @classmethod
    def of(cls, study: optuna.Study, trials: Sequence[FrozenTrial]) -> optuna.Study:
        """The study, with these trials alone."""
        return cast("optuna.Study", cls(study, trials))

    def get_trials(
        self, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        """Those of these states."""
        return self._get_trials(deepcopy, states)

    def _get_trials(
        self,
        deepcopy: bool = True,
        states: Container[TrialState] | None = None,
        use_cache: bool = False,
    ) -> list[FrozenTrial]:
        del deepcopy, use_cache
        return [each for each in self._shown if states is None or each.state in states]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- all else is the study's
        return getattr(self._whole, name)


def whole_study(study: optuna.Study) -> optuna.Study:
    """The study of which Hyperband shows a bracket; all of Optuna's own samplers look at the whole."""
    return getattr(study, "_study", study)
