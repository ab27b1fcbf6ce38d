"""Measured costs are cached in memory and in a file, which may be damaged."""

import json
import os
from pathlib import Path

import pytest

from activemem.grammar import configure, parse
from activemem.grammar.analysis import measured_costs
from activemem.grammar.analysis.analyse import block_cost
from activemem.lazy_exports import PROVIDED

BLOCK = parse("conv(k=7)").root
CONFIG = configure(d_model=24, dropout=0.0)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Use a separate cache file, and an empty memory cache."""

    def forget():
        measured_costs.measure.cache_clear()
        monkeypatch.setattr(measured_costs, "_FILE", measured_costs._CacheFile())

    monkeypatch.setattr(measured_costs, "_path", lambda: tmp_path / "costs-test.json")
    forget()
    yield tmp_path / "costs-test.json", forget
    measured_costs.measure.cache_clear()


def test_a_cost_is_read_from_the_file_of_another_process(cache, monkeypatch):
    path, forget = cache
    found = block_cost(BLOCK, CONFIG, length=11)
    assert (found.parameters, found.flops) == (7 * 24 * 24 + 24, 2 * 11 * 7 * 24 * 24)
    measured_costs._FILE.write()
    forget()
    monkeypatch.setitem(PROVIDED, "block_costs", lambda: pytest.fail("it is measured again"))
    assert block_cost(BLOCK, CONFIG, length=11) == found
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("damage", ["", "[1]", "{", '{"a": 1', "\x00\x01", "null"])
def test_a_damaged_file_counts_as_empty(cache, damage):
    path, forget = cache
    found = block_cost(BLOCK, CONFIG, length=11)
    forget()
    path.write_text(damage, encoding="utf-8")
    assert block_cost(BLOCK, CONFIG, length=11) == found
    measured_costs._FILE.write()
    assert len(json.loads(path.read_text(encoding="utf-8"))) == 1


@pytest.mark.parametrize("entry", [None, [], {"parameters": "many"}, {"parameters": -1, "flops": 0}])
def test_a_damaged_entry_is_measured_again(cache, entry):
    path, forget = cache
    found = block_cost(BLOCK, CONFIG, length=11)
    measured_costs._FILE.write()
    (key,) = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({key: entry}), encoding="utf-8")
    forget()
    assert block_cost(BLOCK, CONFIG, length=11) == found


def test_old_cache_files_are_removed_and_files_of_the_user_are_not(cache):
    path, _ = cache
    folder, target = path.parent, path.with_name("mine.json")
    old = {f"costs-{'0a' * 8}.json", f"costs-{'0b' * 8}.json.4711"}
    young, link = folder / f"costs-{'0c' * 8}.json", folder / f"costs-{'0d' * 8}.json"
    own = {
        "costs-2024.json",
        "costs-notes.json.bak",
        f"costs-{'0e' * 8}.json.txt",
        f"my-costs-{'0e' * 8}.json",
    }
    for each in (target, young, *(folder / name for name in old | own)):
        each.write_text("{}", encoding="utf-8")
        if each != young:
            os.utime(each, (0, 0))
    link.symlink_to(target)
    os.utime(link, (0, 0), follow_symlinks=False)
    (folder / f"costs-{'0f' * 8}.json").mkdir()
    os.utime(folder / f"costs-{'0f' * 8}.json", (0, 0))
    block_cost(BLOCK, CONFIG, length=11)
    measured_costs._FILE.write()
    kept = {path.name, target.name, young.name, link.name, f"costs-{'0f' * 8}.json"} | own
    assert {each.name for each in folder.iterdir()} == kept


def test_a_user_without_a_home_folder_has_no_cache(monkeypatch):
    def find_no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", find_no_home)
    assert not measured_costs.cache_folder().exists()
    with pytest.raises(OSError, match="Not a directory"):
        measured_costs.cache_folder().mkdir(parents=True)
