"""Stores in `kept` were written by older releases of what we build on; each must read for ever."""

from pathlib import Path

import pytest

from activemem.storage import Store

from .making import contents, copy, fill, metrics, name, trial

KEPT = sorted(Path(__file__).with_name("kept").iterdir())


@pytest.mark.parametrize("kept", KEPT, ids=[path.name for path in KEPT])
def test_a_store_of_an_older_release_reads_and_goes_on(kept, root, tmp_path):
    store = Store(copy(kept, root))
    other = fill(tmp_path / "other", [1, 2])
    other.write(trial(3, status="failed", reason="time limit", metrics=()), metrics(3))
    for merged in (4, 0):
        assert str(contents(root)) == str(contents(other.root))
        assert store.recall_study("alpha") == {"text": "name = 'é'"}
        assert store.compact() == merged
    fill(root, [4])
    assert list(store.outcomes()) == [name(number) for number in (1, 2, 3, 4)]
    assert store.damaged == ()
