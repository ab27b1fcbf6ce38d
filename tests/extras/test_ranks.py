"""Mean ranks of levels, in blocks of the other factors and the seeds."""

import pytest

from activemem import Store, load_study, open_study, run_study

from ..study_texts import study_text

TEXT = study_text(
    study={"plugins": ["ranks"]},
    model={"recipe": "{mixer} >> ff(8)", "norm": "{norm}"},
    task={"name": "not"},
    train={"optimizer": {"name": "adam", "lr": 0.01}, "epochs": 1, "steps_per_epoch": 1},
    factors={"mixer": ["conv(k=3)", "conv(k=5)", "conv(k=7)"], "norm": ["pre", "post"], "seed": [0, 1]},
    table=[{"name": "ranks", "kind": "ranks", "rows": "mixer", "value": "loss"}],
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    study, store = load_study(TEXT), Store(tmp_path_factory.mktemp("results"))
    run_study(study, store, local=True)
    return open_study(study, store)


def test_the_lowest_loss_of_each_norm_and_seed_has_rank_1(results):
    (table,) = results.tables()
    expected = {mixer: [] for mixer in results.study.factors["mixer"]}
    for _, block in results.trials.group_by("norm", "seed"):
        for rank, mixer in enumerate(block.sort("loss")["mixer"], 1):
            expected[mixer].append(rank)
    found = dict(table.frame().select("row", "value").iter_rows())
    assert found == {mixer: pytest.approx(sum(ranks) / 4) for mixer, ranks in expected.items()}
    assert "mean ranks over 4 cells and seeds" in table.caption


def test_a_cell_and_seed_without_a_value_of_each_level_counts_for_none(results):
    results.store.upkeep.forget("tiny", [results.study.trials[0].id])
    (table,) = open_study(results.study, results.store).tables()
    assert table.frame()["n"].to_list() == [3, 3, 3]
    assert "mean ranks over 3 cells and seeds" in table.caption
