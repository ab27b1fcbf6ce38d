"""Fuzzing of the recipe parser: time, memory, and errors other than RecipeError.

Run: python bench/fuzz.py [COUNT] [SEED]. Exits with 1 if any text causes another error.
"""

from __future__ import annotations

import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from activemem.grammar import RecipeError, parse, registered_names

MAX_SECONDS = 0.1
"""The limit of CPU seconds per text; parsing is stopped after ten times this limit."""

MAX_MIB = 100
"""The limit of the growth of the process's memory; three times this number is a hard limit."""

_WORDS = [
    *registered_names(),
    *("choice", "integer", "real", "tied", "each", "true", "false", "relu", "gelu", "head", "__class__"),
    *("{m}", "{_x}", "{"),
    *("k=", "filter=", "heads=", "act=", "log=", "step=", "0", "1", "3", "20", "-1", "1.5", "1e9", "1e400"),
    *("0x10", "007", "1_000", "999999999999999999", "9999999999999999999"),
]
_SIGNS = [*"()(){},=+*>-._[]:;'\"$%&|~^#@!?\\/", ">>", ">>", "**", "+ ", "* "]
_UNUSUAL_CHARACTERS = [
    "\u202e",
    "\u2066",
    "\x00",
    "\x1b[31m",
    "\n",
    "\t",
    "\ufeff",
    "é",
    "日",
    "a\u0301",
    "\ud800",
    "١",
]
_VALID_RECIPES = (
    "4 * (sa + highway_conv(k=20) >> ff(512))",
    "2 * (conv(k=20) >> ff(1024)) >> 6 * (sa >> ff(1024))",
    "tied(4 * (cgru(k=3) + persistent_conv(k=6, act=gelu))) >> ff(8, act=tanh)",
    "{n} * (choice(sa, conv(k=integer(3, 40, log=true))) + {mixer} >> ff(integer(8, 64, step=8)))",
    "choice(2, 3) * (sa(heads=choice(1, 2), head_width=16) >> ff(512))",
)


def random_pieces(draw: random.Random) -> str:
    """Return words and symbols in random order."""
    pieces = draw.choices((_WORDS, _SIGNS, _UNUSUAL_CHARACTERS), weights=(10, 10, 1), k=draw.randint(1, 30))
    return "".join(draw.choice(piece) for piece in pieces)


def mutated_recipe(draw: random.Random) -> str:
    """Return a valid recipe with a few pieces removed, inserted or moved."""
    text = draw.choice(_VALID_RECIPES)
    for _ in range(draw.randint(1, 4)):
        start = draw.randint(0, len(text))
        end = min(len(text), start + draw.choice((0, 0, 1, 3, 10)))
        text = (
            text[:start] + draw.choice(draw.choice((_WORDS, _SIGNS, _UNUSUAL_CHARACTERS, [""]))) + text[end:]
        )
    return text


def unicode_text(draw: random.Random) -> str:
    """Return characters from all of Unicode, including lone surrogates."""
    ends = draw.choices((0x80, 0x3000, 0x110000), k=draw.randint(0, 40))
    return "".join(chr(draw.randrange(end)) for end in ends)


def nested(draw: random.Random) -> str:
    """Return one bracket repeated many times, closed or not, around a text."""
    opening = draw.choice(("(", "tied(9 * ", "9 * (", "choice(", "sa(", "ff(filter=", "{", "choice(sa, "))
    depth = draw.randint(1, 60)
    return opening * depth + draw.choice(_WORDS) + ")" * draw.choice((depth, 0, depth - 1, depth + 1))


def repeated_text(draw: random.Random) -> str:
    """Return one piece repeated up to the limit of the parser and beyond."""
    piece = draw.choice((*_WORDS, *_SIGNS, *_UNUSUAL_CHARACTERS, *_VALID_RECIPES)) + draw.choice(
        (*_SIGNS, " ", " + ", " >> ")
    )
    return (piece * 12_000)[: draw.randint(100, 11_000)]


KINDS: dict[Callable[[random.Random], str], int] = {
    random_pieces: 400,
    mutated_recipe: 400,
    unicode_text: 100,
    nested: 98,
    repeated_text: 2,
}
"""The number of texts of each kind per thousand."""


@dataclass(slots=True)
class FuzzReport:
    """The results for all texts: counts by outcome, the slowest text, and forbidden outcomes."""

    outcomes: Counter[str] = field(default_factory=Counter)
    worst_s: float = 0.0
    worst: str = ""
    wrong: list[str] = field(default_factory=list)

    def try_text(self, text: str) -> None:
        """Parse one text, and record the outcome and the time."""
        begin = time.thread_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, 10 * MAX_SECONDS)
        try:
            outcome = check_text(text)
        except Exception as error:  # noqa: BLE001 -- any other exception is what the fuzz run looks for
            outcome = f"{type(error).__name__}: {error}"
            self.wrong.append(f"{outcome} from {text!r:.300}")
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        took_s = time.thread_time() - begin
        self.outcomes[outcome] += 1
        if took_s > self.worst_s:
            self.worst_s, self.worst = took_s, text


def check_text(text: str) -> str:
    """Return the outcome for a text: a recipe that survives rendering, or an error that can be shown."""
    try:
        recipe = parse(text)
    except RecipeError as error:
        assert error.faults, "an error has a fault"
        assert all(line.isprintable() for line in str(error).splitlines()), "a message is printable"
        return "errors"
    again = parse(recipe.text)
    assert (again.root, again.text) == (recipe.root, recipe.text), "the canonical text is read back"
    return "recipes"


def memory_mib() -> float:
    """Return the peak memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def limit_resources() -> None:
    """Raise an exception for a text that takes too long or too much memory."""

    def give_up(*_: object) -> None:
        raise TimeoutError(f"more than {10 * MAX_SECONDS:.0f} s")

    signal.signal(signal.SIGVTALRM, give_up)
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 3 * MAX_MIB * 2**20,) * 2)


def main() -> None:
    """Parse many texts and print the results."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    check_text("sa")
    limit_resources()
    before_mib, tally = memory_mib(), FuzzReport()
    kinds, weights = tuple(KINDS), tuple(KINDS.values())
    for kind in (draw.choices(kinds, weights)[0] for _ in range(count)):
        tally.try_text(kind(draw))
    grown_mib = memory_mib() - before_mib
    print(f"{count:,} texts: " + ", ".join(f"{number:,} {name}" for name, number in tally.outcomes.items()))
    print(f"slowest {1e3 * tally.worst_s:.1f} ms, {len(tally.worst)} characters: {tally.worst[:60]!r}")
    print(f"memory grew by {grown_mib:.0f} MiB")
    for line in tally.wrong[:20]:
        print(line)
    if tally.wrong or tally.worst_s > MAX_SECONDS or grown_mib > MAX_MIB:
        sys.exit(1)


if __name__ == "__main__":
    main()
