"""A tracker that records in memory, or fails if broken."""

from activemem.tracking.contract import Known, Tracker


class Recorder(Tracker):
    """A tracker that keeps trials by id; `fails` is called before every method and may raise or wait."""

    def __init__(self, fails=lambda what: None):
        self.fails, self.told, self.epochs, self.status, self.ended = fails, [], {}, {}, {}

    def known(self, trial):
        status, ended = self.status.get(trial.id), self.ended.get(trial.id)
        return Known(epochs=frozenset(self.epochs.get(trial.id, {})), status=status, ended=ended)

    def remove(self, trial):
        for kept in (self.epochs, self.status, self.ended):
            kept.pop(trial.id, None)

    def begin(self, trial, at):
        self._tell("begin", trial.id)

    def log(self, trial, epoch, metrics, at):
        self._tell("log", trial.id, epoch)
        assert epoch not in self.epochs.setdefault(trial.id, {}), "an epoch is told once"
        self.epochs[trial.id][epoch] = dict(metrics)

    def end(self, trial, end):
        self._tell("end", trial.id, end.status)
        self.status[trial.id], self.ended[trial.id] = end.status, end.at

    def pause(self, trial):
        self._tell("pause", trial.id)

    def show_tables(self, study, tables):
        self._tell("tables", study, *(table.name for table in tables))

    def close(self):
        self._tell("close")

    def _tell(self, *what):
        self.fails(what)
        self.told.append(what)
