import pytest

from activemem import StudyResults, load_study
from activemem.reporting import QueryError, query
from activemem.storage import Store

from ..storage.factories import make_outputs, make_trial_row
from ..study_texts import study_text
from .conftest import made_row
from .test_frames import store as store


class Counting(Store):
    """A store that counts the reads of its metrics."""

    reads = 0

    def scan_metrics(self, trials=None, names=None):
        self.reads += 1
        return super().scan_metrics(trials, names)


def test_sql_over_trials(store):
    answer = query(store, "SELECT mixer, count(*) AS n, max(k) AS widest FROM trials GROUP BY mixer")
    assert answer.to_dicts() == [{"mixer": "sa", "n": 2, "widest": 20}]


@pytest.mark.parametrize(
    ("selected", "columns"),
    [
        ("avg(loss), stddev(loss)", ["avg(loss)", "stddev(loss)"]),
        ("mixer, COUNT( * )", ["mixer", "COUNT( * )"]),
        ("count(*) AS len", ["len"]),
        ("count(*), sum(k) AS total, max(k) most", ["count(*)", "total", "most"]),
        ("t.mixer, min(t.loss), max(t.loss) - min(k)", ["mixer", "min(t.loss)", "max(t.loss) - min(k)"]),
        ("concat(mixer, ', from '), count(DISTINCT k) AS \"a, b\"", ["mixer", "a, b"]),
        ("DISTINCT mixer", ["mixer"]),
    ],
)
def test_computed_columns_without_a_name_are_called_as_they_are_written(store, selected, columns):
    assert query(store, f"SELECT {selected} FROM trials t GROUP BY mixer").columns == columns


def test_a_statement_with_all_columns_keeps_their_names(store):
    answer = query(store, "SELECT *, loss - 1 FROM trials")
    assert answer.columns[:3] == query(store, "SELECT * FROM trials").columns[:3]


def test_sql_over_metrics_and_both_together(store):
    alone = query(store, "SELECT study, k, max(value) AS worst FROM metrics GROUP BY study, k")
    assert alone.rows() == [("small", 3, 3.0)]
    both = query(
        store, "SELECT t.status, m.value FROM metrics m JOIN trials t USING (trial) WHERE m.epoch = 2"
    )
    assert both.rows() == [("done", 2.0)]


def test_sql_over_kept_outputs(store):
    assert query(store, "SELECT * FROM outputs").is_empty()
    store.write(make_trial_row(7), [], make_outputs("un chat", "deux chats"))
    answer = query(store, "SELECT o.line, o.output FROM outputs o JOIN trials t USING (trial) WHERE beam = 4")
    assert answer.rows() == [(1, "un chat"), (2, "deux chats")]


def test_metrics_are_read_only_for_queries_that_ask_for_them(store):
    counting = Counting(store.root)
    query(counting, "SELECT count(*) FROM trials")
    assert counting.reads == 0
    query(counting, "SELECT count(*) FROM metrics")
    assert counting.reads == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELEC 1",
        "",
        "SELECT * FROM trial",
        "SELECT mixr FROM trials",
        "SELECT middle(loss) FROM trials",
        "SELECT seed FROM trials WHERE statsu = 'done'",
        "SELECT m.valeu FROM metrics m JOIN trials t USING (trial)",
        "SELECT * FROM metric",
        "SELECT seed, seed FROM trials",
    ],
)
def test_queries_that_cannot_be_answered_are_reported_without_a_query_plan(store, sql, golden):
    with golden.raises(QueryError):
        query(store, sql)


def test_a_statement_may_join_a_file_of_the_user(store, tmp_path):
    (tmp_path / "names.csv").write_text("mixer,name\nsa,attention\n", encoding="utf-8")
    sql = f"SELECT DISTINCT n.name FROM trials t JOIN read_csv('{tmp_path}/names.csv') n USING (mixer)"
    assert query(store, sql).rows() == [("attention",)]


def test_added_seeds_belong_to_their_study(tmp_path):
    factors = {"mixer": ["sa"], "task": ["sort"], "seed": [0, 1]}
    study, store = load_study(study_text(study={"max_seeds": 4}, factors=factors)), Store(tmp_path)
    for number, trial in enumerate(study.with_later_seeds().trials[:3]):
        store.write(made_row(trial, {"loss": 1.0}, number), [])
    assert query(store, "SELECT seed FROM trials ORDER BY seed", study).rows() == [(0,), (1,), (2,)]
    assert StudyResults(study, store).trials["seed"].to_list() == [0, 1, 2]
