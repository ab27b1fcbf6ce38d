"""A search: Optuna proposes points, each point is a cohort of trials, and the store is its only memory.

A point is chosen dimension by dimension, each suggested only if the point takes it (Akiba et al. 2019,
section 2.1, "define-by-run"). It is known by the id of its trial, so that whatever leads to one model is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import optuna
from optuna.trial import TrialState

from ....storage import Store
from ....studies.planning.shorter_trials import ShorterTrials
from ....studies.planning.trials_to_run import is_spent
from ....studies.resolve.trial import Trial
from ....studies.schema.settings import Level
from ....studies.study import Study
from ...core.events import Event, Listener, Taken
from ...trial.claims import store_pruned
from ...trial.outcome import Job
from .begun_points import BegunPoints
from .samplers.factory import make_sampler, restored_attributes
from .samplers.optuna_space import suggest
from .schedulers.factory import make_pruner
from .schedulers.race import make_race
from .schedulers.rungs import RungBoard
from .stored_points import SearchPoint, StoredPoints, mean_course
from .told_studies import ToldStudies, enough_points
from .unseen_points import UnseenPoints

MAX_REJECTED_PROPOSALS = 10
"""After so many proposals in a row that are known or over the budget, one is drawn of what is left."""

REJECTED_PROPOSALS = {"grid": 0, "evolution": 50}
"""The same of one that is not asked, and of one that changes more with every rejected proposal."""

BEGUN, BASELINE = "begun", "baseline"
"""What proposes a point that somebody has begun, or handed in, and that with which a study begins."""

CHECKED = (BEGUN, BASELINE, "random", "grid")
"""What proposes points of which it is known already that they are new, or begun."""


class OptunaSearch:
    """The points of a study's search; a source of cohorts.

    What the store holds of it is told to Optuna first, unfinished points are taken up before new ones are
    asked for, and a point that is already known is never trained again. Points over the study's budget are
    passed over. When Optuna comes up with nothing new, one is drawn of those that are left.
    In a race over seeds a cohort is one training, and a point that is behind gets no further ones. With rungs
    it is a point on one of them, known by itself in `_open`, `_elsewhere` and `_begun`.

    Other drivers may search the same study: their points count, and are told to Optuna when they are whole.
    Of trials that were theirs, `gone` has the attempts up to which these drivers are no more.
    """

    def __init__(
        self,
        study: Study,
        store: Store,
        run: str,
        listener: Listener,
        *,
        max_trials: int | None = None,
        retry_failed: bool = False,
        gone: Mapping[str, int] | None = None,
    ) -> None:
        assert study.search is not None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study, self._store, self._run, self._settings = study, store, run, study.search
        self._listener, self._left, self._retry = listener, max_trials, retry_failed
        self._gone = gone or {}
        make = partial(
            optuna.create_study,
            study_name=study.name,  # by which Hyperband deals points to brackets: the same after a restart
            directions=["maximize" if each.maximise else "minimize" for each in self._settings.objectives],
            sampler=make_sampler(self._settings, study),
            pruner=make_pruner(self._settings),
        )
        self._told = ToldStudies(make, len(study.points_by_rung), enough=enough_points(study))
        self._rungs = None if study.fidelity is None else RungBoard(study.fidelity)
        self._values: dict[str, dict[str, Level]] = {}  # of points on rungs
        self._unseen = UnseenPoints(study, self._settings.seed)
        self._known: set[str] = set()
        self._begun: set[str] = set()  # the same, on each rung
        self._elsewhere: dict[str, tuple[optuna.trial.Trial | None, SearchPoint]] = {}
        self._open: dict[str, tuple[optuna.trial.Trial | None, SearchPoint, list[Job]]] = {}
        self._restored = 0  # points that the store has brought back whole
        self._judged: dict[str, int] = {}  # the last epoch that Optuna has heard of
        self._race = make_race(study)
        self._racing: list[tuple[SearchPoint, optuna.trial.Trial | None]] = []  # that may get another seed
        self._points, self._shorter = StoredPoints(study, store), ShorterTrials(store)
        self._stored = self._points.attempts
        self._baseline = self._points.of_values(dict(study.baseline)) if study.baseline else None
        self._others = BegunPoints(study, store, self._points, self._missing)
        self._waiting = self._replay_stored()

    def next_cohort(self, workers: int = 1) -> tuple[str, list[Job]] | None:
        """The missing trials of the next point, unfinished points first; None when there are no more."""
        while (self._left is None or self._left > 0) and (proposed := self._next_point()) is not None:
            point, trial = proposed
            name, tasks = point.name, self._wanted(point)
            self._note_begun(point)
            self._others.begin(point, [task.trial for task in tasks])
            if not tasks:  # another study has trained it, or it is out of the race
                self._note_end(point, trial)
                continue
            self._open[name] = trial, point, tasks
            self._left = None if self._left is None else self._left - len(tasks)
            self._listener.on_planned([task.trial for task in tasks])
            return name, tasks
        return None

    def may_have_more(self) -> bool:
        """Whether a point in training may get another seed, or get on to another rung."""
        return (self._race is not None or self._rungs is not None) and bool(self._open)

    def propose(self) -> tuple[SearchPoint, str] | None:
        """The next point that nobody has begun, and what proposes it; None when there are no more.

        It counts as one in training from now on.
        """
        while (proposed := self._ask()) is not None:
            point, trial, source = proposed
            self._note_begun(point)
            if not self._missing(point):  # another study has trained it
                self._tell(point, trial)
            elif source != BEGUN:
                return point, source
        return None

    def count_known(self) -> int:
        """How many points have been tried or begun, by whomever, as the store has them now."""
        self._learn_from_others()
        return len(self._known.union(point.known_by for point in self._waiting))

    def missing_trials(self, point: SearchPoint) -> list[Trial]:
        """The trials of a point that a run would train."""
        return [job.trial for job in self._missing(point)]

    def outcomes(self, point: SearchPoint) -> tuple[Mapping[str, Any], ...]:
        """The stored rows of a point's trials, as they were last read."""
        return tuple(self._stored[trial.id] for trial in point.trials if trial.id in self._stored)

    def should_prune(self, name: str, epoch: int, value: float) -> bool:
        """Whether Optuna's pruner gives a point up."""
        if not self._settings.compares_epochs:
            return False
        trial, *_ = self._open[name]
        assert trial is not None, "a point that was asked for"
        if not math.isnan(value) and epoch:
            trial.report(value, epoch)
            self._judged[name] = epoch
        return trial.should_prune()

    def cohort_ended(self, name: str, *, completed: bool) -> list[Event]:
        """Tell Optuna the point's value; trials that were given up are stored as pruned."""
        trial, point, tasks = self._open.pop(name)
        events: list[Event] = []
        if not completed:
            self._points.read_ends(tasks)
            events = [
                store_pruned(task, self._store, self._reason)
                for task in tasks
                if self._stored.last_number(task.trial.id) < task.attempt
            ]
        self._points.read_ends(tasks)
        if self._race is not None and all(job.trial.id in self._stored for job in tasks):
            self._racing.append((point, trial))
        else:
            self._note_end(point, trial)
        return events

    def _next_point(self) -> tuple[SearchPoint, optuna.trial.Trial | None] | None:
        """A point in the race, one that goes on to another rung, or one that is not known yet."""
        if self._racing:
            return self._racing.pop(0)
        if (promoted := self._next_promoted()) is not None:
            return promoted, None
        proposed = self._ask()
        return None if proposed is None else proposed[:2]

    def _next_promoted(self) -> SearchPoint | None:
        """A point on the rung that it goes on to, those first that are begun; None without one, or budget."""
        if self._rungs is None:
            return None
        self._learn_from_others()
        if self._waiting:
            return self._waiting.pop(0)
        if self._is_spent or (found := self._rungs.next_promoted()) is None:
            return None
        return self._points.of_values(self._values[found[0]], found[1])

    def _note_begun(self, point: SearchPoint) -> None:
        """A point is known from now on, and begun on its rung."""
        self._known.add(point.known_by)
        self._begun.add(point.name)
        if self._rungs is not None and point.values != self._study.baseline:
            self._values[point.known_by] = point.values
            self._rungs.begin(point.known_by, point.rung)

    def _wanted(self, point: SearchPoint) -> list[Job]:
        """What is to be trained of a point now: what is missing, in a race its next seed, or nothing."""
        missing = self._missing(point)
        if self._race is None or not missing or point.values == self._study.baseline:
            return missing
        if not self._points.is_given_up(point) and self._race.is_promising(self._points.losses(point)):
            return [job for job in missing if job.trial.settings.seed == missing[0].trial.settings.seed]
        self._give_up(missing)
        return []

    def _note_end(self, point: SearchPoint, trial: optuna.trial.Trial | None) -> None:
        """Tell Optuna a point that has ended, or wait for whoever has it."""
        if self._missing(point):  # another driver has it, or its workers died too often
            self._elsewhere[point.name] = trial, point
        elif trial is None:
            self._remember(point, self._courses([point]))
        else:
            self._tell(point, trial)

    def _give_up(self, jobs: Sequence[Job]) -> None:
        """Store trials as pruned, and say so."""
        for job in jobs:
            self._listener.on_planned([job.trial])
            self._listener.on_event(store_pruned(job, self._store, self._reason))
        self._stored.refresh()

    @property
    def _reason(self) -> str:
        """Why a trial is pruned."""
        return f"given up by {self._settings.scheduler}"

    def _ask(self) -> tuple[SearchPoint, optuna.trial.Trial, str] | None:
        """A point that is not known yet, with Optuna's trial for it, and what proposes it."""
        self._learn_from_others()
        if len(self._known) >= self._settings.trials or (self._is_spent and not self._waiting):
            return None
        for trial, source in self._proposals():
            values = self._study.choose(partial(suggest, trial))
            may_be_new = source in CHECKED or values in self._unseen  # asked first: trials take long to make
            if may_be_new and self._is_new(point := self._points.of_values(values)):
                return self._on_first_rung(point), trial, source
            trial.study.tell(trial, state=TrialState.FAIL)
        return None

    def _on_first_rung(self, point: SearchPoint) -> SearchPoint:
        """A new point where it begins; the baseline on the last rung."""
        if self._rungs is None or point.values == self._study.baseline:
            return point
        return self._points.of_values(point.values, self._rungs.next_first())

    @property
    def _optuna(self) -> optuna.Study:
        """Where the sampler is asked."""
        return self._told.asked

    @property
    def _is_spent(self) -> bool:
        """Whether this search's trainings, those that run among them, have come to an end of its budget."""
        running = sum(len(jobs) for _, _, jobs in self._open.values())
        return is_spent(self._settings.budget, self._others.spent, running)

    def _learn_from_others(self) -> None:
        """Take note of points that other drivers have begun, and tell Optuna those that they have ended."""
        self._stored.refresh()
        for point in self._others.new():
            if point.name not in self._begun and point not in self._waiting:
                self._note_begun(point)
                self._elsewhere[point.name] = None, point
                for job in self._missing(point):
                    self._listener.on_event(Taken(trial=job.trial.id, attempt=job.attempt, ended=False))
        for name, (trial, point) in tuple(self._elsewhere.items()):
            if not self._missing(point):
                del self._elsewhere[name]
                self._note_end(point, trial)

    def _proposals(self) -> Iterator[tuple[optuna.trial.Trial, str]]:
        """Optuna's trials for unfinished points, for what its sampler thinks of, and for points in order."""
        while self._waiting:
            self._optuna.enqueue_trial(self._waiting.pop(0).values)
            yield self._optuna.ask(), BEGUN
        if self._baseline is not None and self._is_new(self._baseline):
            self._optuna.enqueue_trial(self._baseline.values)
            yield self._optuna.ask(), BASELINE
        sampler = self._settings.sampler
        for _ in range(0 if self._draws_all else REJECTED_PROPOSALS.get(sampler, MAX_REJECTED_PROPOSALS)):
            yield self._optuna.ask(), sampler
        for values, source in self._points_left():
            if self._is_new(self._points.of_values(values)):
                self._optuna.enqueue_trial(values)
                yield self._optuna.ask(), source

    @property
    def _draws_all(self) -> bool:
        """Whether the sampler would draw what can be drawn of the points that are left at once."""
        return self._settings.sampler == "random" and not self._settings.prior

    def _points_left(self) -> Iterator[tuple[dict[str, Level], str]]:
        """Points that are drawn, unless they are wanted in order, and points in order."""
        if self._settings.sampler != "grid":
            yield from ((values, "random") for values in self._unseen.draw(len(self._known)))
        yield from ((values, "grid") for values in self._unseen.in_order())

    def _is_new(self, point: SearchPoint) -> bool:
        """Whether a point is new and within the study's budget; it is not drawn again."""
        self._unseen.note(point.values)
        return point.known_by not in self._known and self._study.budget.allows(point.trials[0].settings)

    def _replay_stored(self) -> list[SearchPoint]:
        """Tell Optuna every point that the store holds whole; the points that were begun and not finished."""
        waiting: list[SearchPoint] = []
        ended: list[SearchPoint] = []
        for point in self._others.new():
            self._give_up_with_others(point)
            (waiting if self._missing(point) else ended).append(point)
        courses = self._courses(ended)
        for point in ended:
            self._note_begun(point)
            self._unseen.note(point.values)
            self._remember(point, courses)
        return waiting

    def _remember(self, point: SearchPoint, courses: Mapping[str, Mapping[int, float]]) -> None:
        """Tell Optuna a point that the store holds whole.

        A pruner hears of each epoch in turn, as when the point was trained: it compares others with them.
        """
        if not self._settings.compares_epochs:
            attributes = restored_attributes(self._optuna.sampler, self._restored)
            found = self._points.frozen(point, {}, {}, attributes)
            self._restored += found.state == TrialState.COMPLETE
            self._told.add(found, point.rung)
            self._note_loss(point)
            return
        self._optuna.enqueue_trial(point.values)
        trial = self._optuna.ask()
        self._study.choose(partial(suggest, trial))
        for epoch, value in mean_course(point, courses).items():
            trial.report(value, epoch)
            trial.should_prune()
            self._judged[point.name] = epoch
        self._tell(point, trial)

    def _courses(self, points: Sequence[SearchPoint]) -> dict[str, dict[int, float]]:
        """The metric of the points' trials after each epoch, for a pruner; nothing where there is none."""
        return self._points.courses(points) if self._settings.compares_epochs else {}

    def _note_loss(self, point: SearchPoint) -> None:
        """Others are compared with a point that has ended, in a race or on its rung."""
        if self._rungs is not None and point.values != self._study.baseline:
            self._rungs.end(point.known_by, point.rung, self._points.rung_loss(point))
            for trial in point.trials if self._study.keep_checkpoints else ():
                self._shorter.add(trial)  # a rung of epochs goes on from the one before
        if self._race is not None:
            self._race.add(self._points.losses(point), eligible=self._points.keeps_limits(point))

    def _give_up_with_others(self, point: SearchPoint) -> None:
        """Store the begun trials of a point as pruned if others of it are, as its driver would have.

        It was killed in between; trained on, they would be compared with trials of fewer epochs.
        """
        stored = [self._stored[trial.id] for trial in point.trials if trial.id in self._stored]
        if any(row["status"] == "pruned" for row in stored):
            missing = self._missing(point)
            begun = self._store.files.trials_with_checkpoint(job.trial.id for job in missing)
            self._give_up([job for job in missing if job.trial.id in begun])

    def _missing(self, point: SearchPoint) -> list[Job]:
        """The trials of a point that have no outcome, or one that is to be tried again."""
        again = {"incomplete", *(["failed"] if self._retry else [])}
        return [
            Job(
                trial=trial,
                attempt=self._stored.last_number(trial.id) + 1,
                run=self._run,
                gone=self._gone.get(trial.id, -1),
                keep_weights=self._study.keep_weights,
                keep_checkpoint=self._study.keep_checkpoints,
                shorter=self._shorter.find(trial),
            )
            for trial in point.trials
            if trial.id not in self._stored or self._stored[trial.id]["status"] in again
        ]

    def _tell(self, point: SearchPoint, trial: optuna.trial.Trial) -> None:
        """Tell Optuna how a point ended; of one that was given up also the last value, if that is news."""
        end = self._points.end(point)
        self._note_loss(point)
        if end.state == TrialState.PRUNED and self._judged.pop(point.name, 0) < end.epoch:
            trial.report(end.values[0], end.epoch)
        if not self._told.tell(trial, end, point.rung):
            self._told.add(self._points.frozen(point, {}, {}), point.rung)
