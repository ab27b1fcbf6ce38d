"""Faults of a store's files: a line for each, the most serious first."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import polars as pl

from ...storage import Store
from ...storage.store_upkeep import Finding, FindingKind, Forgotten, StoreCheck
from ...studies.schema.factors import level_text
from ...studies.text.units import format_bytes, plural
from ..missing_results import store_command


def format_check(store: Store, found: StoreCheck, *, repaired: bool) -> list[str]:
    """Return the totals and findings of a store check as lines, with commands that mend the store.

    After a repair, the files that it has quarantined come first.
    """
    lines = [_totals(store, found), *_lines(found.findings)]
    if repaired:
        count = f"{plural(len(found.moved), 'damaged file')} moved to {store.place}/quarantine"
        lines = [count if found.moved else "nothing is damaged", *_lines(found.moved), *lines]
    kinds = {finding.kind for finding in found.findings}
    if FindingKind.DAMAGED in kinds:
        lines.append(f"Repair: {store_command(store, 'store', 'repair')}")
    if FindingKind.CONFLICTING in kinds:
        forget = store_command(store, "study", "forget", "STUDY", "--only", "FACTOR=LEVEL")
        lines.append(
            f"The next study run may keep only rows that count. To train such trials again: {forget}"
        )
    if FindingKind.LEFTOVER in kinds:
        lines.append(f"Remove leftovers: {store_command(store, 'store', 'clean')}")
    return lines


def format_clean(found: Sequence[Finding], *, dry: bool) -> list[str]:
    """List the removed files with their size. In a dry run, they are the files to remove."""
    if not found:
        return ["no leftovers"]
    size = format_bytes(sum(finding.bytes for finding in found))
    verb = "would be removed" if dry else "removed"
    return [*_lines(found), f"{verb}: {plural(len(found), 'leftover')}, {size}"]


_MAX_TRIALS = 30
"""The number of trials that a dry run lists."""


def format_forgotten(gone: Forgotten, rows: pl.DataFrame) -> list[str]:
    """List the removed parts of a study. In a dry run, list the parts to remove, and the trials in `rows`."""
    kept = [
        f"  {plural(count, 'trial')} kept as those of {study} (--shared removes them)"
        for study, count in gone.passed_on.items()
    ]
    if not gone.trials and not kept:
        return [f"{gone.study}: the store has none of these trials"]
    verb = "removed" if gone.removed else "would be removed"
    parts = [f"{plural(count, 'row')} of {dataset}" for dataset, count in gone.rows.items()]
    if gone.files:
        parts += [f"{plural(len(gone.files), 'file')} of models and checkpoints, {format_bytes(gone.bytes)}"]
    head = f"{gone.study}: {plural(len(gone.trials), 'trial')} {verb}"
    listed: list[str] = []
    for row in [] if gone.removed else rows.iter_rows(named=True):
        levels = ", ".join(
            f"{name}={level_text(level)}" for name, level in json.loads(row["factors"]).items()
        )
        ended = f"{plural(row['epochs'], 'epoch')} · {row['finished']:%Y-%m-%d %H:%M:%S}"
        listed.append(f"  {row['status']:<7} {levels} · {ended}")
    more = [f"  and {len(listed) - _MAX_TRIALS} more (--json lists all)"] if len(listed) > _MAX_TRIALS else []
    if not gone.removed and (begun := len(gone.trials) - len(listed)):
        more += [f"  and {plural(begun, 'half-trained trial')}"]
    return [head, *(f"  {part}" for part in parts), *kept, *listed[:_MAX_TRIALS], *more]


def _totals(store: Store, found: StoreCheck) -> str:
    """Describe a store in one line, such as `results · 288 files, 1.2 MB · 1 damaged · 2 leftover`."""
    counts = Counter(finding.kind for finding in found.findings)
    parts = [store.place, f"{plural(found.files, 'file')}, {format_bytes(found.bytes)}"]
    parts += [f"{counts[kind]} {kind}" for kind in FindingKind if counts[kind]]
    if not counts:
        parts.append("there is no store yet" if found.is_empty else "all files intact")
    states, away = found.last_states, found.quarantine
    if states["files"]:
        parts.insert(
            2, f"{plural(states['files'], 'last state')} of trainings, {format_bytes(states['bytes'])}"
        )
    parts += [f"{away['files']} in quarantine, {format_bytes(away['bytes'])}"] if away["files"] else []
    return " · ".join(parts)


def _lines(findings: Sequence[Finding]) -> list[str]:
    width = max((len(finding.kind.value) for finding in findings), default=0)
    lines: list[str] = []
    for finding in findings:
        size = f"   {format_bytes(finding.bytes)}" if finding.bytes else ""
        lines.append(f"  {finding.kind.value:<{width}}   {finding.path}{size}")
        lines.append(f"  {'':<{width}}   {finding.reason}")
    return lines
