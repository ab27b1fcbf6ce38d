"""ListOps expressions have the given length, and the value that Python computes."""

import statistics

import torch

from activemem.studies.catalog.tasks import IGNORED, read_task_settings

FUNCTIONS = {3: "min", 4: "max", 5: "med", 6: "total"}
NAMES = {
    "min": lambda *values: min(values),
    "max": lambda *values: max(values),
    "med": lambda *values: statistics.median_low(values),
    "total": lambda *values: sum(values) % 10,
}


def test_a_list_is_what_python_computes():
    task = read_task_settings({"name": "listops", "lengths": [4, 60]})
    inputs, targets, _ = task.draw(400, torch.Generator().manual_seed(0))
    lengths, deepest = set(), 0
    for row, answers in zip(inputs.tolist(), targets.tolist(), strict=True):
        end = row.index(1)
        words = [
            FUNCTIONS[each] + "(" if each in FUNCTIONS else ")," if each == 2 else f"{each - 7},"
            for each in row[:end]
        ]
        assert eval("".join(words).rstrip(","), NAMES.copy()) == answers[end] - 7
        assert [place for place, answer in enumerate(answers) if answer != IGNORED] == [end]
        assert not any(row[end + 1 :])
        depth, counts = 0, []
        for each in row[:end]:
            if each != 2 and counts:
                counts[-1] += 1
            if each in FUNCTIONS:
                counts.append(0)
            elif each == 2:
                assert 2 <= counts.pop() <= 10
            depth = max(depth, len(counts))
        deepest = max(deepest, depth)
        lengths.add(end)
    assert lengths == set(range(4, 61))
    assert deepest > 4
