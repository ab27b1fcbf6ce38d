"""Files of trials beside their rows: checkpoints with their notes, trained weights, last states."""

from collections.abc import Iterable
from pathlib import Path

from .checkpoint_notes import NOTE_FILE, CheckpointNote, read_note
from .paths import Layout, entries
from .place import Place


class TrialFiles:
    """The files that trials keep in a store."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    @property
    def place(self) -> Place:
        """The place of the files; what is written there is put into it."""
        return self._layout.place

    def checkpoint_dir(self, trial: str) -> Path:
        """Return the folder for a trial's checkpoints, which need not exist."""
        return self._layout.checkpoints(trial)

    def checkpoints_folder(self, name: str) -> Path:
        """Return the folder of all folders of checkpoints, in which files of this name are up to date."""
        self.place.fetch(self._layout.checkpoints_folder, name)
        return self._layout.checkpoints_folder

    def trials_with_checkpoint(self, trials: Iterable[str]) -> set[str]:
        """Return the given trials that have a checkpoint to resume from."""
        self.place.list_names(self._layout.checkpoints_folder)
        folders = {trial: self.checkpoint_dir(trial) for trial in trials}
        return {trial for trial, folder in folders.items() if folder.is_dir() and any(folder.iterdir())}

    def checkpoint_note(self, trial: str) -> CheckpointNote | None:
        """Return the progress of an unfinished trial, if its first epoch is over."""
        folder = self.checkpoint_dir(trial)
        self.place.fetch_file(folder / NOTE_FILE)
        return read_note(folder)

    def weights_file(self, trial: str) -> Path:
        """Return the file for a trial's trained weights, which need not exist."""
        path = self._layout.weights(trial)
        self.place.fetch_file(path)
        return path

    def trials_with_weights(self, trials: Iterable[str]) -> set[str]:
        """Return the given trials whose trained weights are kept."""
        self.place.list_names(self._layout.weights_folder)
        return {trial for trial in trials if self._layout.weights(trial).is_file()}

    def final_checkpoint_file(self, trial: str) -> Path:
        """Return the file for the last state of a trial's training, which need not exist."""
        return self._layout.final_checkpoint(trial)

    def trials_with_final_checkpoint(self) -> frozenset[str]:
        """Return the trials whose last state is kept."""
        self.place.list_names(self._layout.final_checkpoints_folder)
        files = entries(self._layout.final_checkpoints_folder, ".pt")
        return frozenset(path.stem for path in files if not path.name.startswith("."))
