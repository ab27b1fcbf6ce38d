"""A store in a bucket: the test server in its own process, with network faults."""

import os
import time
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from ..storage.objects.s3_server import S3Server
from .scenes import Scene
from .world import Damage, World, prepare

WELL = dict[str, float]()
"""A network without faults."""


class BadServer(S3Server):
    """A server with failing requests; `weather` has the probability of each fault, and pauses."""

    def __init__(self) -> None:
        super().__init__()
        self.weather, self._draw = WELL, Random(1)

    def fault(self, method: str, key: str) -> str | None:
        """Return the fault of a request, after its pause."""
        weather = self.weather
        time.sleep(weather.get("delay_s", 0.0))
        for name in ("dropped", "busy", "lost", "cut"):
            if self._draw.random() < weather.get(name, 0.0):
                return name
        return None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors, since clients are killed."""


class Server:
    """A server process, which ends with the last process forked after its start."""

    def __init__(self) -> None:
        self._pipe, theirs = Pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._pipe.close()
            _serve(theirs)
        theirs.close()
        os.environ.update(self._pipe.recv())

    def ask(self, action: Any, *arguments: Any) -> Any:
        """Run one of the functions below in the server."""
        self._pipe.send((action.__name__, arguments))
        return self._pipe.recv()

    def remove(self) -> None:
        """End the server."""
        self._pipe.close()
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


def _serve(pipe: Connection) -> None:
    """Serve and run requested functions until all clients are gone."""
    try:
        with BadServer() as server:
            pipe.send(server.environment)
            while True:
                name, arguments = pipe.recv()
                with server.lock:
                    answer = ACTIONS[name](server, *arguments)
                pipe.send(answer)
    finally:
        os._exit(0)


def blow(server: BadServer, weather: dict[str, float]) -> None:
    """Set the network faults."""
    server.weather = weather


def keys(server: BadServer, prefix: str) -> list[str]:
    """Return the keys below a prefix, without the prefix."""
    return sorted(key.removeprefix(prefix) for key in server.objects if key.startswith(prefix))


def get(server: BadServer, key: str) -> bytes | None:
    """Return the contents of an object, None if missing."""
    return server.objects[key][0] if key in server.objects else None


def put(server: BadServer, key: str, data: bytes) -> None:
    """Create an object or replace its contents, keeping an existing time."""
    changed = server.objects[key][1] if key in server.objects else server.now()
    server.objects[key] = data, changed


def exchange(server: BadServer, key: str, before: bytes, data: bytes) -> bool:
    """Replace the contents of an object if they are unchanged since they were read."""
    if get(server, key) != before:
        return False
    put(server, key, data)
    return True


def delete(server: BadServer, start: str, all_below: bool) -> None:
    """Remove an object, or all objects with this prefix."""
    for key in [key for key in server.objects if key == start or (all_below and key.startswith(start))]:
        del server.objects[key]


def age(server: BadServer, prefix: str, days: float) -> None:
    """Make objects older."""
    for key, (data, changed) in server.objects.items():
        if key.startswith(prefix):
            server.objects[key] = data, changed - timedelta(days=days)


ACTIONS = {action.__name__: action for action in (blow, keys, get, put, exchange, delete, age)}


@dataclass(slots=True, kw_only=True)
class BucketWorld(World):
    """A world with a store under a prefix in a bucket, without a local folder."""

    server: Server

    @property
    def place(self) -> str:
        """Return the address."""
        return f"s3://bucket/{self.prefix.rstrip('/')}"

    @property
    def prefix(self) -> str:
        """Return the prefix of all keys."""
        return f"{self.folder.name}/"

    def names(self) -> list[str]:
        """Return the keys of all objects."""
        return self.server.ask(keys, self.prefix)

    def read(self, name: str) -> bytes | None:
        """Return an object's contents, None if missing."""
        return self.server.ask(get, self.prefix + name)

    def is_there(self, damage: Damage) -> bool:
        """Return whether an object is unchanged since its damage."""
        return self.read(str(damage.path)) == damage.now

    def helpers(self) -> set[int]:
        """Return the server's process."""
        return {self.server.pid}

    def remove(self, name: str) -> None:
        """Remove an object."""
        self.server.ask(delete, self.prefix + name, False)

    def pass_days(self, days: float) -> None:
        """Make all objects older."""
        self.server.ask(age, self.prefix, days)

    def copy_store(self, folder: Path) -> None:
        """Write the objects to files."""
        for name in self.names():
            path = folder / name.replace("//", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.is_dir():
                path.write_bytes(self.read(name) or b"")

    def remove_store(self) -> None:
        """Remove the objects."""
        self.server.ask(delete, self.prefix, True)


def make_bucket_world(scene: Scene, folder: Path, server: Server, disk: Any) -> BucketWorld:
    """Return a new world with an empty store in the bucket."""
    prepare(scene, folder)
    server.ask(blow, WELL)
    return BucketWorld(scene, folder, folder / "no-store", disk, server=server)
