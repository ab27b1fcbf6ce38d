"""Pathfinder labels equal a flood fill of the contours, and no simpler feature predicts them."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from activemem.engine.tasks.generated import draw_test_set, show_example
from activemem.engine.tasks.synthetic.contours import PADDING, draw_scenes, find_ends
from activemem.engine.tasks.synthetic.pathfinder import draw_pathfinder, find_paddles, place_marks, render
from activemem.studies.catalog.tasks import IGNORED, TaskKind, read_task_settings
from activemem.studies.text.strict_model import InvalidTableError

SIZES = [(12, 2), (16, 3), (32, 6), (32, 14), (64, 9), (128, 14)]


def settings(side=32, contour=14, **keys):
    return read_task_settings({"name": "pathfinder", "side": side, "contour": contour, **keys})


def scenes_and_marks(task, count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scenes = draw_scenes(task, count, task.contour, generator)
    return scenes, *place_marks(task, scenes, generator)


def solid_pixels(task, chain):
    """Return the pixels of a contour without gaps, testing each pixel against each line."""
    (first, last), corners = find_ends(task.geometry, chain), chain[1:-1]
    line = [first, *corners, last]
    places = np.stack(np.meshgrid(*[np.arange(task.side)] * 2, indexing="ij"), -1).reshape(-1, 2)
    near = np.min([distances(places, *ends) for ends in pairwise(line)], axis=0)
    return {tuple(place) for place in places[near < task.geometry.thickness / 2 + 0.5].tolist()}


def distances(points, start, end):
    """Return the distances of points (…, 2) from a line."""
    along = end - start
    share = np.clip((points - start) @ along / (along @ along), 0, 1)
    return np.linalg.norm(points - start - share[..., None] * along, axis=-1)


def flood(start, pixels):
    """Return the pixels reachable from one through common sides."""
    found, left = {start}, [start]
    while left:
        row, column = left.pop()
        for each in ((row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)):
            if each in pixels and each not in found:
                found.add(each)
                left.append(each)
    return found


def whole_chains(scenes, image):
    placed = scenes.distractors[image]
    return [*scenes.contours[image], *placed[~np.isnan(placed[:, 0, 0])]]


@pytest.mark.parametrize(
    ("side", "contour"),
    [pytest.param(*size, marks=[pytest.mark.heavy] if size[0] > 32 else []) for size in SIZES],
)
def test_a_flood_fill_joins_the_marks_exactly_where_the_label_says_so(side, contour):
    task = settings(side, contour)
    scenes, joined, marks = scenes_and_marks(task, 8 if side < 64 else 2)
    for image, label in enumerate(joined):
        tracks = [solid_pixels(task, chain) for chain in whole_chains(scenes, image)]
        everything = set().union(*tracks)
        first, last = (tuple(np.rint(mark).astype(int)) for mark in marks[image])
        reached = flood(first, everything)
        assert (last in reached) == label
        assert reached in tracks[:2]  # all of one contour and nothing of another
        assert len(everything) == sum(map(len, tracks))


@pytest.mark.parametrize(("side", "contour"), SIZES[:4])
def test_contours_keep_clear_of_each_other_of_themselves_and_of_marks(side, contour):
    task = settings(side, contour)
    scenes, _, _ = scenes_and_marks(task, 8)
    for image in range(8):
        chains = whole_chains(scenes, image)
        assert len(chains) >= 2
        ends = find_ends(task.geometry, scenes.contours[image])
        for index, chain in enumerate(chains):
            fine = finely(chain)
            np.testing.assert_allclose(np.linalg.norm(np.diff(chain, axis=0), axis=1), task.geometry.link)
            assert fine.min() >= PADDING - 1e-9
            assert fine.max() <= side - 1 - PADDING + 1e-9
            for other in chains[index + 1 :]:
                assert nearest(fine, other) >= task.geometry.clearance
            for link in range(len(chain) - 3):
                assert nearest(finely(chain[link : link + 2]), chain[link + 2 :]) >= task.geometry.clearance
            for path, pair in enumerate(ends):
                for end, links in zip(pair, (chain[2:], chain[:-2]), strict=True):
                    seen = links if path == index else chain
                    assert len(seen) < 2 or nearest(end, seen) >= task.geometry.mark_clearance
        for first in ends[:, 0]:
            assert (np.linalg.norm(ends[:, 1] - first, axis=1) >= task.geometry.mark_distance).all()


def finely(chain):
    """Return points along a chain, including its corners."""
    return np.concatenate([chain[:-1] + share * np.diff(chain, axis=0) for share in np.linspace(0, 1, 41)])


def nearest(points, chain):
    return min(distances(points, *ends).min() for ends in pairwise(chain))


def test_turns_have_the_density_of_the_papers_program():
    task = settings(256, 5, distractors=0)
    steps = np.diff(draw_scenes(task, 150, 5, torch.Generator().manual_seed(1)).contours, axis=2)
    angles = np.arctan2(steps[..., 0], steps[..., 1])
    turns = (np.diff(angles, axis=2) + np.pi) % (2 * np.pi) - np.pi
    assert np.abs(turns).max() <= np.pi / 2 / 1.8
    # that of cos² from -π / 2 to π / 2
    assert turns.std() == pytest.approx(np.sqrt(np.pi**2 / 12 - 0.5) / 1.8, rel=0.05)
    assert abs(turns.mean()) < 0.05


def test_marks_are_at_the_ends_of_contours_and_the_brightest():
    task = settings()
    scenes, joined, marks = scenes_and_marks(task, 40)
    images = render(task, scenes, marks)
    ends = find_ends(task.geometry, scenes.contours)
    for image in range(40):
        at = [np.argwhere((np.abs(ends[image] - mark) < 1e-9).all(-1)).tolist() for mark in marks[image]]
        assert [len(found) for found in at] == [1, 1]
        (path, first), (other, last) = at[0][0], at[1][0]
        assert (first, last, path == other) == (0, 1, joined[image])
        for row, column in np.rint(marks[image]).astype(int):
            assert images[image, row, column] == 255
    assert images[:, 0, 0].any() or images[:, 0].any()  # a mark may reach the border


def test_a_pixel_is_lit_by_how_near_a_stroke_is():
    task = settings(16, 3)
    scenes, _, marks = scenes_and_marks(task, 20)
    images = render(task, scenes, marks)
    places = np.stack(np.meshgrid(np.arange(16), np.arange(16), indexing="ij"), -1)
    for image in range(20):
        covered = [
            0.5 + task.geometry.radius - np.linalg.norm(places - mark, axis=-1) for mark in marks[image]
        ]
        for chain in whole_chains(scenes, image):
            for stroke in zip(*find_paddles(task.geometry, chain), strict=True):
                covered.append(0.5 + task.geometry.thickness / 2 - distances(places, *stroke))
        np.testing.assert_allclose(images[image], 255 * np.clip(np.max(covered, axis=0), 0, 1), atol=0.5001)


def test_half_of_any_number_is_joined():
    task = settings(16, 3)
    for count in (2, 7, 10, 11):
        _, targets, _ = task.draw(count, torch.Generator().manual_seed(count))
        assert int((targets[:, -1] == 1).sum()) in {count // 2, (count + 1) // 2}
        assert (targets[:, :-1] == IGNORED).all()
    odd = [int(task.draw(1, torch.Generator().manual_seed(seed)).targets[0, -1]) for seed in range(20)]
    assert set(odd) == {0, 1}


def test_neither_brightness_nor_the_distance_of_marks_gives_the_label_away():
    task = settings(32, 6)
    scenes, joined, marks = scenes_and_marks(task, 400)
    images = render(task, scenes, marks)
    brightness = images.sum((1, 2), dtype=np.int64)
    apart = np.linalg.norm(marks[:, 0] - marks[:, 1], axis=1)
    for found in (brightness, apart):
        best = max(np.mean((found > edge) == joined) for edge in np.quantile(found, np.linspace(0, 1, 41)))
        assert max(best, 1 - best) < 0.65


def test_the_same_seed_gives_the_same_images_and_test_sets_are_of_their_contours():
    task = settings(32, 6, test_contours=[6, 9], test_examples=20)
    one, two = (draw_pathfinder(task, 12, None, torch.Generator().manual_seed(3)) for _ in range(2))
    assert one.inputs.equal(two.inputs)
    assert one.targets.equal(two.targets)
    assert one.inputs.dtype == torch.int64
    assert task.test_names == ("6", "9")
    lit = [float((draw_test_set(task, name).inputs > 0).sum(1).float().mean()) for name in task.test_names]
    assert lit[1] > lit[0]
    assert settings(32, 9).test_names == ("9",)


def test_an_example_is_shown_as_a_picture_of_two_rows_a_line():
    task = settings(32, 6)
    image = task.draw(1, torch.Generator().manual_seed(0)).inputs.reshape(32, 32)
    picture, answer = show_example(task)
    lines = picture.split("\n")
    assert {len(line) for line in lines} == {32}
    rows = [[each in marks for each in line] for line in lines for marks in ("▀█", "▄█")]
    assert rows == (image >= 64).tolist()
    assert answer in {"0", "1"}
    odd = settings(13, 2)
    assert len(odd.picture(odd.draw(1, torch.Generator().manual_seed(0)).inputs[0]).split("\n")) == 7
    assert read_task_settings({"name": "listops"}).picture(torch.zeros(4)) is None


def test_a_task_of_an_image_is_known_before_it_is_drawn():
    task = settings(16, 4)
    interface = task.interface
    assert (interface.kind, interface.vocab, interface.tokens) == (TaskKind.TAGGING, 256, 256)
    assert (task.required_reach.left, task.required_reach.right, task.chance) == (255, 0, 0.5)
    assert settings().distractors_beside(14) == (5, 4)  # 20 // (14 // 3) in Long Range Arena
    assert settings(128).distractors_beside(14) == (8, 4)
    assert settings(32, 9, distractors=2).distractors_beside(9) == (2, 3)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"side": 11}, "side: expected at least 12, got 11"),
        ({"contour": 19}, "contour: expected at most 18 paddles in 32 pixels, got 19"),
        (
            {"test_contours": [6, 20]},
            "test_contours: expected at most 18 paddles in 32 pixels, got 20",
        ),
        ({"test_contours": [6, 6]}, "expected different test_contours, got one twice"),
    ],
)
def test_images_that_cannot_be_drawn_are_refused(keys, told):
    with pytest.raises(InvalidTableError) as caught:
        read_task_settings({"name": "pathfinder", **keys})
    assert str(caught.value).removeprefix(": ") == told
