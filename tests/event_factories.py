"""Events of runs, as an engine sends them."""

from activemem.engine import Event, Run


def make_event(kind, **run):
    """Return an event of a trial, whose run has these attributes."""
    return Event(kind=kind, run=Run(**run))


def planned(*trials):
    """Return the event that these trials will train."""
    return Event(kind="planned", trials=trials)
