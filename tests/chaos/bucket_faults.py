"""Faults of a bucket: a network that loses, a server that is busy or slow, and objects that are damaged."""

from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from random import Random

from .bucket import WELL, BucketWorld, blow, exchange, put
from .damage import BESIDE, PLACES
from .scenes import NAME
from .world import Damage, World

IN_THE_WAY = f"trials/{NAME}"
"""An object under the name of a folder, as consoles make them."""


def cut_short(data: bytes, draw: Random) -> bytes:
    """The first bytes of an object, or none."""
    return data[: draw.randrange(len(data))]


def flip_a_bit(data: bytes, draw: Random) -> bytes:
    """The bytes of an object but for one bit."""
    at = draw.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << draw.randrange(8))]) + data[at + 1 :]


def write_other_bytes(_data: bytes, draw: Random) -> bytes:
    """Something else."""
    return draw.randbytes(draw.randrange(4096))


DAMAGE = {
    "an object cut short": cut_short,
    "a bit of an object flipped": flip_a_bit,
    "other bytes in an object": write_other_bytes,
}


def bad_network(world: World, draw: Random, *, fault: str, least: float, most: float) -> str | None:
    """For a while requests fail in a way, each with a likelihood that is drawn, or take so many seconds."""
    assert isinstance(world, BucketWorld)
    if not world.running():
        return None
    share = draw.uniform(least, most)
    world.server.ask(blow, {fault: share})
    world.wait_for_trials(1000, 0.5 + 1.5 * draw.random())
    world.server.ask(blow, WELL)
    return f"{share:.2f}"


def server_away(world: World, draw: Random) -> str | None:
    """Nothing is answered, for shorter than a driver waits or for longer."""
    assert isinstance(world, BucketWorld)
    if not world.running():
        return None
    seconds = draw.choice([0.5, 1.5, 6.0])
    world.server.ask(blow, {"dropped": 1.0})
    world.wait_for_trials(1000, seconds)
    world.server.ask(blow, WELL)
    return f"{seconds} s"


def damage_an_object(world: World, draw: Random, *, how: str) -> str | None:
    """Damage one object, of a place that is drawn first; where, or None where there is none."""
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
    """Add what no store has written; where, or None where it is already."""
    assert isinstance(world, BucketWorld)
    name = draw.choice([*BESIDE.values(), IN_THE_WAY])
    if world.read(name) is not None:
        return None
    world.server.ask(put, world.prefix + name, draw.randbytes(draw.randrange(4096)))
    world.foreign.append(name)
    return name
