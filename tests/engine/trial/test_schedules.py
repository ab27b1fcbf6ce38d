"""Schedules: torch's schedulers give exactly the rates of the formulas, also after interruptions."""

import io
import math

import pytest
import torch
from pydantic import Field

from activemem import PluginError, PluginSchedule, register_schedule
from activemem.engine.trial.training import Schedule, factor
from activemem.studies.catalog.optimisers import SCHEDULES
from activemem.studies.catalog.optimisers import OwnScheduleSettings as ScheduleSettings
from activemem.studies.schema.settings import TrainSettings

TOTAL, EPOCH = 120, 10
LOSSES = (3.0, 2.0, 1.5, 1.5, 1.6, 1.5, 1.55, 1.5, 1.4, 1.4, 1.3, 1.3)  # one an epoch


STEP_LOSSES = [5.0 - 0.01 * step + 0.3 * math.sin(step) for step in range(60)] + [
    4.5 + 0.01 * step for step in range(60)
]


class Rates:
    """An optimiser with its schedule, and the rate of each step."""

    def __init__(self, settings, lr):
        self.optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
        self.schedule = Schedule(settings, self.optimizer, TOTAL)
        self.found = []

    def take(self, steps):
        for _ in range(steps):
            self.found.append(self.optimizer.param_groups[0]["lr"])
            self.optimizer.step()
            self.schedule.after_step(torch.tensor(STEP_LOSSES[len(self.found) - 1]))
            if len(self.found) % EPOCH == 0:
                self.schedule.after_epoch({"dev_loss": LOSSES[len(self.found) // EPOCH - 1]})
        return self.found


def rates_of_the_rule(settings, lr):
    """Return every rate by the formulas: warmup, decay, and a tenth after `patience` worse epochs."""
    tenths, best, worse = 1.0, math.inf, 0
    for step in range(1, TOTAL + 1):
        yield lr * factor(settings, step, TOTAL) * tenths
        if settings.name == "plateau" and step % EPOCH == 0:
            loss = LOSSES[step // EPOCH - 1]
            best, worse = (loss, 0) if loss < best else (best, worse + 1)
            if worse == settings.patience:
                tenths, worse = tenths / 10, 0


NAMES = ["constant", "linear", "inverse_sqrt", "cosine", "plateau"]


@pytest.mark.parametrize(
    ("name", "warmup"),
    [(name, warmup) for name in NAMES for warmup in (0, 1, 10, 25) if warmup or name != "inverse_sqrt"],
)
def test_rates_are_those_of_the_rule_to_the_last_bit(name, warmup):
    settings = ScheduleSettings(name=name, warmup=warmup, patience=2)
    assert Rates(settings, 0.07).take(TOTAL) == list(rates_of_the_rule(settings, 0.07))


@pytest.mark.parametrize("steps", [4, 10, 55, 60])
@pytest.mark.parametrize("name", NAMES)
def test_a_restored_schedule_continues_to_the_last_bit(name, steps):
    settings = ScheduleSettings(name=name, warmup=15, patience=2)
    begun = Rates(settings, 3e-4)
    begun.take(steps)
    file = io.BytesIO()
    torch.save([begun.optimizer.state_dict(), begun.schedule.state()], file)
    file.seek(0)
    optimizer, schedule = torch.load(file, weights_only=True)  # as a checkpoint is read
    rest = Rates(settings, 3e-4)
    rest.optimizer.load_state_dict(optimizer)
    rest.schedule.restore(schedule)
    rest.found = list(begun.found)
    assert rest.take(TOTAL - steps) == Rates(settings, 3e-4).take(TOTAL)


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("constant", {1: 0.1, 5: 0.5, 10: 1.0, 60: 1.0, 110: 1.0}),
        ("linear", {1: 0.1, 10: 1.0, 60: 0.5, 110: 0.0}),
        ("cosine", {1: 0.1, 10: 1.0, 60: 0.5, 110: 0.0}),
        ("inverse_sqrt", {1: 0.1, 10: 1.0, 40: 0.5, 90: 1 / 3}),
    ],
)
def test_schedules_rise_to_one_and_follow_their_rule(name, at):
    settings = ScheduleSettings(name=name, warmup=10)
    assert {step: factor(settings, step, 110) for step in at} == pytest.approx(at)


def test_a_plateau_falls_after_the_patience_and_again_after_as_many_epochs():
    rates = Rates(ScheduleSettings(name="plateau", patience=2), 1.0).take(TOTAL)
    expected = [1.0] * 5 + [0.1] * 2 + [0.01] * 5
    assert rates[::EPOCH] == pytest.approx(expected)


def test_a_plateau_is_looked_for_once_the_rise_is_over():
    rates = Rates(ScheduleSettings(name="plateau", warmup=90, patience=1), 1.0).take(TOTAL)
    assert rates[:90] == [step / 90 for step in range(1, 90)] + [1.0]
    assert rates[-1] == pytest.approx(0.1)


def test_milestones_are_the_last_steps_before_each_fall_to_a_tenth():
    settings = ScheduleSettings(name="milestones", warmup=10, milestones=[50, 80])
    rates = Rates(settings, 0.07).take(TOTAL)
    assert rates[8:11] == pytest.approx([0.063, 0.07, 0.07])
    assert rates[49:51] == pytest.approx([0.07, 0.007])
    assert rates[79:81] == pytest.approx([0.007, 0.0007])


def test_milestones_belong_to_their_schedule():
    for given in ({"name": "milestones"}, {"name": "linear", "milestones": [5]}):
        with pytest.raises(ValueError, match="the schedule milestones"):
            ScheduleSettings(**given)


def program_rates(lr, every):
    """Return rates by the program of Kaiser and Bengio 2016: perplexities, and a list of five initially."""
    previous, losses = [1000000.0] * 5, []
    for loss in STEP_LOSSES:
        yield lr
        losses.append(loss)
        if len(losses) == every:
            perplexity = math.exp(sum(losses) / every)
            if perplexity > max(previous[-5:]):
                lr *= 0.995
            previous.append(perplexity)
            losses = []


@pytest.mark.parametrize("every", [1, 7])
def test_recent_falls_as_in_the_program_of_the_neural_gpu(every):
    rates = Rates(ScheduleSettings(name="recent", every=every), 0.1)
    halfway = rates.take(TOTAL // 2 + 3)
    assert rates.take(TOTAL - len(halfway))[-1] < 0.1
    assert rates.found == pytest.approx(list(program_rates(0.1, every)), rel=1e-6)


def test_recent_resumes_from_a_state():
    settings = ScheduleSettings(name="recent", every=7)
    whole, first, rest = (Rates(settings, 0.1) for _ in range(3))
    first.take(95)
    rest.schedule.restore(first.schedule.state())
    rest.optimizer.load_state_dict(first.optimizer.state_dict())
    rest.found = list(first.found)
    assert rest.take(TOTAL - 95) == pytest.approx(whole.take(TOTAL), rel=1e-6)


def test_a_cosine_falls_to_its_floor_as_torchs_does():
    (weight,) = [torch.nn.Parameter(torch.zeros(1))]
    rule = torch.optim.SGD([weight], 1.0)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(rule, TOTAL, eta_min=0.1)
    settings = ScheduleSettings(name="cosine", floor=0.1)
    for step in range(1, TOTAL + 1):
        rule.step()
        theirs.step()
        assert factor(settings, step, TOTAL) == pytest.approx(rule.param_groups[0]["lr"], abs=1e-9)
    assert factor(ScheduleSettings(name="linear", floor=0.25), TOTAL, TOTAL) == 0.25


def test_a_rate_warms_up_stays_and_decays():
    settings = ScheduleSettings(name="warmup_stable_decay", warmup=20, cooldown=30, floor=0.1)
    rates = [factor(settings, step, TOTAL) for step in range(1, TOTAL + 1)]
    assert rates[:19] == [step / 20 for step in range(1, 20)]
    assert set(rates[19:90]) == {1.0}
    assert rates[90:] == pytest.approx([1.0 - 0.9 * step / 30 for step in range(1, 31)])


class Halves(PluginSchedule):
    every: int = Field(default=10, ge=1)
    """the number of steps between halvings of the rate"""

    def share(self, step, total_steps):
        return 0.5 ** ((step - self.warmup) // self.every)


def test_a_plug_ins_schedule_follows_the_warm_up():
    register_schedule("halves", source="here")(Halves)
    try:
        train = {"batch_size": 1, "epochs": 1, "steps_per_epoch": 1, "optimizer": {"name": "sgd", "lr": 1.0}}
        given = {"name": "halves", "warmup": 5, "every": 20}
        read = TrainSettings.model_validate({**train, "schedule": given})
        assert read.model_dump()["schedule"] == given
        rates = Rates(read.schedule, 1.0).take(46)
        with pytest.raises(ValueError, match="unknown schedule 'halfs'; nearest: halves"):
            TrainSettings.model_validate({**train, "schedule": {"name": "halfs"}})
    finally:
        SCHEDULES.unregister("halves")
    assert rates == pytest.approx([0.2, 0.4, 0.6, 0.8, *[1.0] * 20, *[0.5] * 20, 0.25, 0.25])


class Falls(PluginSchedule):
    last: float | None = None
    """the share at the last step"""

    def share(self, step, total_steps):
        left = math.sqrt(1 - step / total_steps)  # there is no root after the last step
        return self.last if step == total_steps else left


@pytest.fixture
def _falls():
    register_schedule("falls", source="here")(Falls)
    yield
    SCHEDULES.unregister("falls")


@pytest.mark.usefixtures("_falls")
def test_a_plug_ins_schedule_is_asked_for_the_steps_of_the_training_only():
    rates = Rates(Falls(name="falls", warmup=3, last=0.0), 1.0).take(TOTAL)
    assert rates == [1 / 3, 2 / 3, *(math.sqrt(1 - step / TOTAL) for step in range(3, TOTAL + 1))]


@pytest.mark.usefixtures("_falls")
@pytest.mark.parametrize("share", [None, math.nan, math.inf, -0.5])
def test_a_share_that_is_no_finite_number_of_at_least_0_is_refused(share):
    message = (
        f"schedule 'falls': ValueError: expected a finite share of at least 0 at step {TOTAL}, got {share}$"
    )
    with pytest.raises(PluginError, match=message):
        Rates(Falls(name="falls", last=share), 1.0).take(TOTAL)
