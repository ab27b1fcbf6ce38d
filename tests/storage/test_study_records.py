import json

import pytest

from activemem.storage import Store, StoreError

RECORD = {
    "text": "[study]\nname = 'é'\n",
    "overrides": ["train.epochs=2"],
    "path": None,
    "deep": {"x": [1, 2.5]},
}


def test_a_study_is_recalled_as_it_was_remembered(store):
    store.records.save("alpha", RECORD)
    assert store.records.load("alpha") == RECORD
    assert store.records.load("beta") is None


def test_the_last_study_is_the_one_remembered_last(store):
    assert store.records.latest() is None
    for study in ("alpha", "beta", "alpha"):
        store.records.save(study, RECORD)
        assert store.records.latest() == study


def test_a_record_replaces_the_one_before_and_leaves_nothing_else(root, store):
    store.records.save("alpha", {"text": "x" * 10_000})
    store.records.save("alpha", RECORD)
    assert store.records.load("alpha") == RECORD
    assert [path.name for path in (root / "studies").iterdir()] == ["alpha.json"]
    assert not list((root / "unfinished").iterdir())


def test_a_record_that_cannot_be_written_leaves_the_one_before(root, store):
    store.records.save("alpha", RECORD)
    with pytest.raises(TypeError):
        store.records.save("alpha", {"x": object()})
    assert store.records.load("alpha") == RECORD


def page(record):
    return json.dumps({"schema": 1, "remembered": "2026", "record": record})


UNFIT = [
    *({}, {"text": None}, {"text": 7}, {"text": "a\n", "overrides": None}, {"text": "a\n", "overrides": [1]}),
    *({"text": "\ud800"}, {"text": "a\n", "own_corpus": []}, [], "a"),
]


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00", "7", "[" * 100_000, *map(page, UNFIT)])
def test_a_damaged_record_is_quarantined(root, store, text, caplog):
    store.records.save("beta", RECORD)
    store.records.save("alpha", RECORD)
    (root / "studies/alpha.json").write_text(text)
    assert store.records.latest() == "beta"
    assert store.records.load("alpha") is None
    assert store.damaged == (root / "quarantine/studies/alpha.json",)
    (message,) = caplog.messages
    assert message.startswith("studies/alpha.json is quarantined: ")
    assert message.partition("; ")[2].startswith("run the study ")


def test_every_truncation_of_a_record_is_found(root, store):
    store.records.save("alpha", RECORD)
    path = root / "studies/alpha.json"
    data = path.read_bytes()
    for length in range(len(data) - 2):
        path.write_bytes(data[:length])
        assert Store(root).records.load("alpha") is None


def test_a_record_of_another_version_is_refused(root, store, golden):
    store.records.save("alpha", RECORD)
    path = root / "studies/alpha.json"
    page = json.loads(path.read_text()) | {"schema": 2}
    del page["checksum"]
    path.write_text(json.dumps(page))
    for call in (store.records.latest, lambda: store.records.load("alpha")):
        with golden.raises(StoreError):
            call()


def test_a_flipped_bit_in_any_byte_of_a_record_is_found(root, store):
    store.records.save("alpha", RECORD)
    path = root / "studies/alpha.json"
    data = bytearray(path.read_bytes())
    for place in range(len(data)):
        bit = place % 8
        data[place] ^= 1 << bit
        path.write_bytes(data)
        assert store.records.load("alpha") is None, (place, bit)
        data[place] ^= 1 << bit
    path.write_bytes(data)
    assert store.records.load("alpha") == RECORD


def test_a_record_of_an_earlier_release_has_no_checksum_and_is_read(root, store):
    store.records.save("alpha", RECORD)
    path = root / "studies/alpha.json"
    page = json.loads(path.read_text())
    path.write_text(json.dumps({name: page[name] for name in ("schema", "remembered", "record")}))
    assert store.records.load("alpha") == RECORD
