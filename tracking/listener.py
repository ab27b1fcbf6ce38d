"""A listener that forwards the events of a running study to another listener and to trackers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from ..engine.core.events import ClaimedElsewhere, Ended, EpochFinished, Event, Listener, Relay, Started
from ..studies.resolve.trial import Trial
from ..studies.text.units import plural
from .contract import TrackedEnd, TrackedTable, TrackedTrial, Tracker
from .feed import CLOSE_S, END, Feed, News
from .trials import tracked_trial


class Tracking(Relay):
    """Listener in the driver's process that forwards events to trackers without waiting for them."""

    def __init__(self, listener: Listener, trackers: Mapping[str, Tracker]) -> None:
        super().__init__(listener)
        self._trials: dict[str, TrackedTrial] = {}
        self._feeds = [Feed(name, tracker) for name, tracker in trackers.items()]

    def on_planned(self, trials: Sequence[Trial]) -> None:
        """Store these trials by their ids."""
        self._trials |= {trial.id: tracked_trial(trial) for trial in trials}
        super().on_planned(trials)

    def on_event(self, event: Event) -> None:
        """Pass an event to the next listener, and queue it for the trackers."""
        super().on_event(event)
        if (news := self._news(event, time.time())) is not None:
            self._tell(news)

    def show_tables(self, study: str, tables: Sequence[TrackedTable]) -> None:
        """Send a study's tables to the trackers."""
        if tables:
            self._tell(News(what="tables", study=study, tables=tables))

    def close(self) -> list[str]:
        """Send the queues within a time limit; return a line for each tracker with missing data."""
        return [line for feed in self._feeds if (line := _close(feed))]

    def _tell(self, news: News) -> None:
        for feed in self._feeds:
            feed.put(news)

    def _news(self, event: Event, now: float) -> News | None:
        match event:
            case Started():
                return News(what="begun", trial=self._trials[event.trial], epoch=event.epoch, at=now)
            case EpochFinished():
                trial, epoch = self._trials[event.trial], event.epoch
                return News(what="measured", trial=trial, epoch=epoch, metrics=event.metrics, at=now)
            case Ended():
                end = TrackedEnd(status=event.status, reason=event.reason, metrics=event.metrics, at=now)
                return News(what="ended", trial=self._trials[event.trial], end=end, at=now)
            case ClaimedElsewhere() if event.trial in self._trials:
                return News(what="left", trial=self._trials[event.trial])
            case _:
                return None


@contextmanager
def tracking(
    listener: Listener, trackers: Mapping[str, Tracker], tell: Callable[[str], None]
) -> Iterator[Tracking]:
    """Track a study within a context; at its end report the missing data of trackers to `tell`."""
    tracked = Tracking(listener, trackers)
    try:
        yield tracked
    finally:
        for line in tracked.close():
            tell(line)


def _close(feed: Feed) -> str | None:
    """Close a feed; return a sentence on the data that its tracker did not receive."""
    over = feed.close()
    ends = sum(END in each for each in feed.missing.values())
    epochs = sum(len(each) for each in feed.missing.values()) - ends
    parts = [plural(epochs, "epoch")] if epochs else []
    parts += [plural(ends, "end")] if ends else []
    parts += ["the tables"] if feed.tables_missing else []
    told = [f"lacks {', '.join(parts)} of {plural(len(feed.missing), 'trial')}"] if parts else []
    told += [] if over else [f"had not received everything after {CLOSE_S:g} s"]
    if not told:
        return None
    why = f" ({feed.error})" if feed.error else ""
    return f"{feed.name} {' and '.join(told)}{why}; activemem study export adds what is missing"
