import json
from pathlib import Path

from ..store_factories import make_partial_store

SQL = """
SELECT mixer, task, avg(max_length) AS length, count(*) AS n
FROM trials WHERE status = 'done' GROUP BY mixer, task ORDER BY length
"""

RICH = """\
mixer                      task     length  n
sa(heads=1, head_width=4)  not         5.5  2
sa(heads=1, head_width=4)  reverse     7.5  2
conv(k=3)                  not         9.5  2

(3 rows)
"""

MARKDOWN = """\
| reason | loss |
| :-- | --: |
| a \\| \\*b\\* |  |
"""


def test_an_answer_is_printed_in_columns(run, tiny):
    make_partial_store(tiny)
    result = run("study", "query", SQL)
    assert (result.exit_code, result.stdout, result.stderr) == (0, RICH, "")


def test_the_trials_of_a_study_are_found_whichever_study_trained_them(run, tiny):
    make_partial_store(tiny)
    text = Path("tiny.toml").read_text(encoding="utf-8").replace('name = "tiny"', 'name = "twin"')
    twin = text.replace("{mixer}", "{block}").replace("mixer =", "block =").replace('"mixer"', '"block"')
    Path("twin.toml").write_text(twin.replace(', "reverse"', ""), encoding="utf-8")
    sql = "SELECT study, block, seed, max_length FROM trials WHERE block LIKE 'sa%' ORDER BY seed"
    answer = json.loads(run("study", "query", sql, "--study", "twin.toml", "--json").stdout)["rows"]
    assert [(row["study"], row["seed"], row["max_length"]) for row in answer] == [
        ("twin", 0, 5.0),
        ("twin", 1, 6.0),
    ]
    count = "SELECT count(DISTINCT trial) AS trials FROM metrics"
    assert json.loads(run("study", "query", count, "--json").stdout)["rows"] == [{"trials": 7}]
    assert json.loads(run("study", "query", count, "--study", "twin.toml", "--json").stdout)["rows"] == [
        {"trials": 4}
    ]


def test_a_study_without_trials_in_the_store_is_told(run, tiny):
    make_partial_store(tiny)
    text = Path("tiny.toml").read_text(encoding="utf-8").replace('name = "tiny"', 'name = "wide"')
    Path("wide.toml").write_text(text.replace("d_model = 8", "d_model = 16"), encoding="utf-8")
    result = run("study", "query", "SELECT count(*) FROM trials", "--study", "wide.toml")
    assert result.stdout.splitlines()[1].strip() == "0"
    assert result.stderr.startswith("no trial of wide has ended in ")


def test_columns_without_room_follow_below(run, tiny):
    make_partial_store(tiny)
    result = run("study", "query", "SELECT * FROM trials ORDER BY mixer DESC, task, seed LIMIT 1")
    lines = result.stdout.splitlines()
    assert lines[0].split()[:4] == ["trial", "study", "mixer", "task"]
    assert lines[-1] == "(1 row)"
    assert max(map(len, lines)) <= 80


def test_an_answer_as_markdown_json_and_csv(run, tiny):
    make_partial_store(tiny, reason="a | *b*")
    sql = "SELECT reason, loss, attempt = 0 AS first FROM trials WHERE status = 'failed'"
    columns = sql.replace(", attempt = 0 AS first", "")
    assert run("study", "query", columns, "--format", "markdown").stdout == MARKDOWN
    assert run("study", "query", columns, "--format", "csv").stdout == "reason,loss\na | *b*,\n"
    assert json.loads(run("study", "query", sql, "--json").stdout)["rows"] == [
        {"reason": "a | *b*", "loss": None, "first": True}
    ]


def test_of_many_rows_people_see_the_first_and_programs_all(run, tiny):
    make_partial_store(tiny)
    sql = "SELECT a.seed FROM trials a CROSS JOIN trials b CROSS JOIN trials c CROSS JOIN trials d"
    lines = run("study", "query", sql).stdout.splitlines()
    rows = json.loads(run("study", "query", sql, "--json").stdout)["rows"]
    assert len(rows) > 1000
    assert lines[-1] == f"({len(rows):,} rows; the first 1,000 are shown, --format csv prints all)"
    assert len(lines) < 1010
    for form, head in (("csv", 1), ("markdown", 2)):
        assert len(run("study", "query", sql, "--format", form).stdout.splitlines()) == len(rows) + head


def test_json_has_times_as_text_and_no_number_that_json_lacks(run, tiny):
    make_partial_store(tiny)
    result = run(
        "study", "query", "SELECT finished, parameters / (seed - seed) AS much FROM trials LIMIT 1", "--json"
    )
    assert json.loads(result.stdout)["rows"] == [{"finished": "2026-11-28T12:00:00+00:00", "much": None}]


def test_a_query_that_cannot_be_answered_is_reported(run, tiny):
    make_partial_store(tiny)
    result = run("study", "query", "SELECT * FROM trial")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "query: unknown table 'trial'; nearest: trials\n"


def test_a_second_store_is_refused(run, tiny):
    make_partial_store(tiny)
    result = run("study", "query", SQL, "--results", "results", "--results=other")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "'--results' is given more" in result.stderr
