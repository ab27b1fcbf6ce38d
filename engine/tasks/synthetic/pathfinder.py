"""Pathfinder: images of dashed contours and two marks, as grey levels, row by row."""

from __future__ import annotations

from math import ceil

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from ....studies.catalog.tasks import IGNORED, Examples
from ....studies.catalog.tasks.synthetic import RULES, PathfinderSettings, Rule
from ....studies.catalog.tasks.synthetic.pathfinder import LEVELS, Geometry
from .contours import Flags, Floats, Scenes, draw_scenes, find_ends

_HALVES = " ▀▄█"
"""Characters for two stacked pixels: neither, upper, lower, both."""


def draw_pathfinder(
    task: PathfinderSettings, count: int, test_set: str | None, generator: Generator
) -> Examples:
    """Draw images, half of them with both marks on one contour; an odd number has one more or one less."""
    paddles = task.contour if test_set is None else int(test_set)
    scenes = draw_scenes(task, count, paddles, generator)
    joined, marks = place_marks(task, scenes, generator)
    inputs = torch.from_numpy(render(task, scenes, marks)).flatten(1).long()
    targets = torch.full_like(inputs, IGNORED)
    targets[:, -1] = torch.from_numpy(joined)
    return Examples(inputs, targets)


def place_marks(task: PathfinderSettings, scenes: Scenes, generator: Generator) -> tuple[Flags, Floats]:
    """Choose whether both marks are on one contour, and return it with their positions (images, 2, 2).

    One mark is at the first end of either contour, the other at the last end of the same contour or the other
    one.
    """
    count = len(scenes.contours)
    odd = int(torch.randint(2, (), generator=generator))
    joined = (torch.randperm(count, generator=generator) < (count + odd) // 2).numpy()
    first = torch.randint(2, (count,), generator=generator).numpy()
    ends, rows = find_ends(task.geometry, scenes.contours), np.arange(count)
    last = np.where(joined, first, 1 - first)
    return joined, np.stack([ends[rows, first, 0], ends[rows, last, 1]], 1)


def render(task: PathfinderSettings, scenes: Scenes, marks: Floats) -> NDArray[np.uint8]:
    """Render the images as grey levels (images, side, side)."""
    images = np.zeros((len(marks), task.side, task.side), dtype=np.uint8)
    for chains in scenes:
        image, chain = (~np.isnan(chains[:, :, 0, 0])).nonzero()
        starts, ends = find_paddles(task.geometry, chains[image, chain])
        which = image.repeat(starts.shape[1])
        cover(images, which, starts.reshape(-1, 2), ends.reshape(-1, 2), task.geometry.thickness / 2)
    places = marks.reshape(-1, 2)
    cover(images, np.arange(len(marks)).repeat(2), places, places, task.geometry.radius)
    return images


def find_paddles(geometry: Geometry, chains: Floats) -> tuple[Floats, Floats]:
    """Return the first and last end of each paddle (..., links, 2) of chains."""
    starts, steps = chains[..., :-1, :], np.diff(chains, axis=-2) / geometry.link
    before = geometry.gap / 2
    return starts + before * steps, starts + (before + geometry.paddle) * steps


def cover(
    images: NDArray[np.uint8], which: NDArray[np.intp], starts: Floats, ends: Floats, radius: float
) -> None:
    """Draw all pixels within `radius` of lines (lines, 2); `which` has each line's image.

    A pixel whose centre is on the edge is half covered; the level falls to 0 within half a pixel.
    """
    side, middles = images.shape[1], np.rint((starts + ends) / 2)
    longest = float(np.linalg.norm(ends - starts, axis=-1).max(initial=0))
    reach = np.arange(-(half := ceil(longest / 2 + radius + 1)), half + 1)
    rows, columns = (middles[:, axis, None] + reach for axis in (0, 1))
    along = ends - starts
    total = np.maximum((along**2).sum(-1), 1e-12)[:, None, None]
    down, right = (rows - starts[:, :1])[:, :, None], (columns - starts[:, 1:])[:, None]
    share = np.clip((down * along[:, :1, None] + right * along[:, 1:, None]) / total, 0, 1)
    distance = np.hypot(down - share * along[:, :1, None], right - share * along[:, 1:, None])
    levels = np.rint((LEVELS - 1) * np.clip(radius + 0.5 - distance, 0, 1)).astype(np.uint8)
    inside = ((rows >= 0) & (rows < side))[:, :, None] & ((columns >= 0) & (columns < side))[:, None]
    line, row, column = (inside & (levels > 0)).nonzero()
    places = which[line], rows[line, row].astype(np.intp), columns[line, column].astype(np.intp)
    np.maximum.at(images, places, levels[line, row, column])


def picture(task: PathfinderSettings, inputs: Tensor) -> str:
    """Return an image (tokens,) as text, two rows a line.

    Pixels count from a quarter of the maximum level on.
    """
    bright = (inputs.reshape(task.side, task.side) >= LEVELS // 4).long()
    lower = torch.cat([bright[1::2], bright.new_zeros(task.side % 2, task.side)])
    return "\n".join("".join(_HALVES[each] for each in row) for row in (bright[::2] + 2 * lower).tolist())


RULES["pathfinder"] = Rule(draw_pathfinder, picture=picture)
