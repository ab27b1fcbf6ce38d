"""The layout of a store whose truth is in a bucket: its root is a copy, and what is written goes there."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

from ..paths import Layout
from .bucket import Bucket
from .mirror import Mirror


@dataclass(frozen=True)
class ObjectLayout(Layout):
    """The paths of a store in the copy of a bucket."""

    mirror: Mirror

    @property
    def bucket(self) -> Bucket:
        """The objects."""
        return self.mirror.bucket

    def partitions(self, dataset: str, studies: Collection[str] | None = None) -> tuple[Path, ...]:
        """As any layout's, with what the bucket has now."""
        folder = self.root / dataset
        self.pull(*([folder] if studies is None else [folder / study for study in studies]))
        return super().partitions(dataset, studies)

    def partitions_with_strangers(self, dataset: str) -> tuple[Path, ...]:
        """None: a bucket has objects alone."""
        return ()

    def pull(self, *folders: Path) -> None:
        """Download what is new in folders."""
        for folder in folders:
            self.mirror.pull(folder)

    def pull_names(self, *folders: Path) -> None:
        """List folders."""
        for folder in folders:
            self.mirror.pull_names(folder)

    def pull_file(self, path: Path) -> None:
        """Download a file."""
        self.mirror.pull_files([path])

    def pull_named(self, folder: Path, name: str) -> None:
        """Download files of one name."""
        self.mirror.pull_names(folder)
        self.mirror.pull_files(folder.rglob(name))

    def __reduce__(self) -> tuple[Callable[[str], ObjectLayout], tuple[str]]:
        """Another process has a copy of its own."""
        return open_layout, (self.bucket.address,)

    def publish(self, path: Path) -> None:
        """Upload a file."""
        self.mirror.publish(path)

    def publish_new(self, path: Path, data: bytes) -> None:
        """Create an object."""
        self.mirror.publish_new(path, data)

    def remove(self, *paths: Path) -> None:
        """Remove objects, and the files here."""
        self.mirror.remove(paths)

    def move_aside(self, path: Path, target: Path) -> Path:
        """As any layout's; an object is copied first, and then removed."""
        if self.bucket.head(path.relative_to(self.root).as_posix()) is None:
            path.unlink(missing_ok=True)
            raise FileNotFoundError(path)
        self.pull_names(target.parent)
        moved = super().move_aside(path, target)
        self.publish(moved)
        self.remove(path)
        return moved

    def file_time(self) -> float:
        """The time of an object that is written now, by the server's clock."""
        before = super().file_time()
        key = f"unfinished/.now.{before}"
        self.bucket.put(key, b"")
        info = self.bucket.head(key)
        self.bucket.delete([key])
        return before if info is None else info.changed


def open_layout(address: str) -> ObjectLayout:
    """The layout of the store at an address; raises `StoreError` if there is no bucket that can be used."""
    mirror = Mirror(Bucket(address))
    return ObjectLayout(root=mirror.root, mirror=mirror)
