"""Program that creates a table for `search.py`: every point of `SPACE.toml`, trained once.

Run: activemem study run bench/SPACE.toml --local --results RESULTS python bench/search_table.py RESULTS SPACE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl

from activemem.storage import Store
from activemem.storage.rows import row_values
from activemem.studies.schema.search import enumerate_points
from activemem.studies.study import load_study

STUDY = Path(__file__).with_name(f"{sys.argv[2]}.toml")
TABLE = STUDY.with_suffix(".parquet")
NOTES = STUDY.with_suffix(".json")
METRICS = ("dev_loss", "dev_accuracy", "dev_exact", "loss")


def read_row(row: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """Return a trial's row of the table: its point and recipe, its metrics and its costs."""
    measured = row_values(row)
    costs = {name: row[name] for name in ("parameters", "flops", "seconds")}
    return {
        "recipe": row["recipe"],
        "values": json.dumps(values),
        **{name: measured[name] for name in METRICS},
        **costs,
    }


def main() -> None:
    """Write the table and a description of its origin."""
    study, rows = load_study(STUDY), Store(sys.argv[1]).trials()
    done = {row["trial"]: row for row in rows.filter(status="done").iter_rows(named=True)}
    points = [(study.search.trial_of(values).id, values) for values in enumerate_points(study.search.choose)]
    missing = [trial for trial, _ in points if trial not in done]
    if missing:
        sys.exit(f"expected all {len(points):,} points, {len(missing):,} are not trained")
    table = pl.DataFrame([read_row(done[trial], values) for trial, values in points])
    table.with_columns(pl.col("seconds").round(2)).write_parquet(TABLE, compression="zstd")
    used = rows.filter(pl.col("trial").is_in([trial for trial, _ in points]))
    notes = {
        "commands": [
            f"activemem study run bench/{STUDY.name} --local --results RESULTS",
            f"python bench/search_table.py RESULTS {STUDY.stem}",
        ],
        "architectures": len(table),
        "activemem": sorted(set(used["commit"])),
        "torch": sorted(set(used["torch_version"])),
        "device": sorted(set(used["device"])),
        "trained": [str(used["started"].min())[:19], str(used["finished"].max())[:19]],
        "seconds": round(used["seconds"].sum()),
    }
    NOTES.write_text(json.dumps(notes, indent=1) + "\n", encoding="utf-8")
    print(f"{TABLE.name}: {len(table):,} architectures, {TABLE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
