"""Faults of a bucket: lost, busy or slow connections, and damaged objects."""

from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from random import Random

from .bucket import WELL, BucketWorld, blow, exchange, put
from .damage import BESIDE, PLACES
from .scenes import NAME
from .world import Damage, World

IN_THE_WAY = f"trials/{NAME}"
"""An object named like a folder, as web consoles create."""


def cut_short(data: bytes, draw: Random) -> bytes:
    """Return a prefix of an object, possibly empty."""
    return data[: draw.randrange(len(data))]


def flip_a_bit(data: bytes, draw: Random) -> bytes:
    """Return an object with one flipped bit."""
    at = draw.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]


def write_other_bytes(_data: bytes, draw: Random) -> bytes:
    """Return unrelated bytes."""
    return draw.randbytes(draw.randrange(4096))


DAMAGE = {
    "an object cut short": cut_short,
    "a bit of an object flipped": flip_a_bit,
    "other bytes in an object": write_other_bytes,
}


def bad_network(world: World, draw: Random, *, fault: str, least: float, most: float) -> str | None:
    """Make requests fail with a random probability, or take some seconds, for a while."""
    assert isinstance(world, BucketWorld)
    if not world.running():
        return None
    share = draw.uniform(least, most)
    world.server.ask(blow, {fault: share})
    world.wait_for_trials(1000, 0.5 + 1.5 * draw.random())
    world.server.ask(blow, WELL)
    return f"{share:.2f}"


def server_away(world: World, draw: Random) -> str | None:
    """Stop all answers, for shorter or longer than a driver waits."""
    assert isinstance(world, BucketWorld)
    if not world.running():
        return None
    seconds = draw.choice([0.5, 1.5, 6.0])
    world.server.ask(blow, {"dropped": 1.0})
    world.wait_for_trials(1000, seconds)
    world.server.ask(blow, WELL)
    return f"{seconds} s"


def damage_an_object(world: World, draw: Random, *, how: str) -> str | None:
    """Damage an object of a randomly drawn kind; return its key, or None if there is no such object."""
    assert isinstance(world, BucketWorld)
    names = world.names()
    found = {place: [name for name in names if fnmatchcase(name, glob)] for place, glob in PLACES.items()}
    places = [place for place, keys in found.items() if keys]
    if not places:
        return None
    place = draw.choice(places)
    name = draw.choice(found[place])
    data = world.read(name)
    if not data:
        return None
    now = DAMAGE[how](data, draw)
    if not world.server.ask(exchange, world.prefix + name, data, now):
        return None
    ids = frozenset(world.scene.ids.values())
    trials = frozenset(trial for trial in ids if trial in name) or ids
    world.damages.append(Damage(path=PurePosixPath(name), how=how, place=place, now=now, trials=trials))
    return f"{place} {name}"


def add_an_object(world: World, draw: Random) -> str | None:
    """Add a foreign object; return its key, or None if the object already exists."""
    assert isinstance(world, BucketWorld)
    name = draw.choice([*BESIDE.values(), IN_THE_WAY])
    if world.read(name) is not None:
        return None
    world.server.ask(put, world.prefix + name, draw.randbytes(draw.randrange(4096)))
    world.foreign.append(name)
    return name
