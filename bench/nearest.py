"""Time to find the nearest of 2,000 stored recipes; the target is below 2 s.

Run: python bench/nearest.py. It measures the time of one core without reading the store.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from random import Random

import polars as pl

from activemem import Space, Store, nearest_recipes
from activemem.storage.rows import TRIALS

COUNT, TARGET_S = 2_000, 2.0
MIXER = (
    "choice(sa(heads=choice(1, 2, 4, 8)), conv(k=integer(3, 40)), highway_conv(k=integer(3, 40)), gla, gru)"
)
SHAPES = {
    "three blocks": f"integer(1, 4) * ({MIXER} + {MIXER} >> ff(choice(128, 256, 512)))",
    "ten blocks": f"3 * ({MIXER} + {MIXER} + {MIXER} >> ff(64)) >> "
    f"2 * ({MIXER} >> {MIXER} + {MIXER} >> ff(64)) >> {MIXER} >> ff(512)",
}


class StoredRecipes(Store):
    """A store with one trial of each recipe, in memory."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__("nowhere")
        now, lists = datetime(2026, 1, 1, tzinfo=UTC), {"metrics": [{"name": "accuracy", "value": 0.5}]}
        texts_of = {"factors": "{}", "status": "done"}
        rows = [
            {**texts_of, **lists, "trial": f"{number:016x}", "study": "s", "task": "t", "recipe": text}
            | {"parameters": 1, "started": now, "finished": now}
            | {"settings": json.dumps({"model": {"recipe": text, "d_model": 8}})}
            for number, text in enumerate(texts)
        ]
        self._frame = pl.DataFrame(rows, schema=TRIALS)

    def trials(self, probes: object = ()) -> pl.DataFrame:
        """Return all rows."""
        return self._frame


def main() -> None:
    """Search the neighbours of near and far recipes of each shape."""
    slowest = 0.0
    for name, text in SHAPES.items():
        texts = [each.text for each in Space(text).sample_distinct(COUNT, Random(0))]
        store = StoredRecipes(texts)
        for what, asked in {"a stored one": texts[77], "another": "conv(k=3) >> ff(8)"}.items():
            begin = time.process_time()
            nearest = nearest_recipes(asked, store)[0].distance
            took_s = time.process_time() - begin
            slowest = max(slowest, took_s)
            print(f"{COUNT:,} recipes of {name}, {what}: {took_s:.2f} s, the nearest at {nearest:.2f}")
    met = slowest < TARGET_S
    print(f"target below {TARGET_S:.0f} s: {'met' if met else 'MISSED'}")
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
