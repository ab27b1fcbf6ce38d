import io
import re
import time

from rich.console import Console

from activemem import load_study
from activemem.cli.live.display import MAX_SILENCE_S, STOPPING_MESSAGE, Display, live_display
from activemem.cli.views.trial_lines import Headline, TrialNameColumns
from activemem.engine.core.events import Event, StudyProgress

from ...event_factories import make_event, planned
from ...study_texts import study_text
from ..trial_factories import make_trial

PLAIN = Headline(load_study(study_text(task={"name": "reverse"}, factors={"mixer": ["sa"]})))
PAIR = (make_trial("sa + persistent_conv(k=20)", "multiply"), make_trial("sa", "not"))


def display(width=80, name="small", **options):
    """Return a display for two trials, one half trained, and its console."""
    console = Console(file=io.StringIO(), width=width, force_terminal=True, **options)
    shown = Display(name, StudyProgress(total=2, stored={}), console, TrialNameColumns(), PLAIN)
    shown(planned(*PAIR))
    shown(make_event("started", trial=PAIR[0].id, epoch=0))
    shown(make_event("epoch", trial=PAIR[0].id, epoch=5, metrics={"length": 9.0, "accuracy": 0.5}))
    return shown, console


def drawn(shown, console):
    """Return the text on the terminal, without colours."""
    with console.capture() as capture:
        console.print(shown.render())
    return re.sub(r"\x1b\[[0-9;]*m", "", capture.get()).splitlines()


def test_the_display_has_a_bar_and_a_line_for_each_running_trial():
    first, *others = drawn(*display())
    assert first.startswith(f"small {10 * '━'}╺{29 * '━'} 0/2   1 running   ETA ")
    assert others == ["  sa + persistent_conv  multiply  ━━━━────  epoch 5/10  length 9  accuracy 0.500"]


def test_the_display_says_the_same_without_colours():
    assert drawn(*display(no_color=True))[1:] == drawn(*display())[1:]
    assert re.match("small ━{10} +0/2   1 running", drawn(*display(no_color=True))[0])


def test_no_line_of_the_display_is_wider_than_the_terminal():
    for width in (60, 80, 120):
        lines = drawn(*display(width, name="a-study-with-a-name-of-thirty-two"))
        assert max(map(len, lines)) <= width
        assert len(lines) == 2
        assert re.search("[━╸╺]{8} 0/2   1 running   ETA ", lines[0])


def test_the_display_says_that_it_stops_until_it_has():
    shown, console = display()
    shown(Event(kind="stopping"))
    shown(make_event("ended", trial=PAIR[0].id, status="failed", reason="not a number at epoch 6"))
    first, ended, last = drawn(shown, console)
    assert ended.endswith("not a number at epoch 6")
    assert "1/2   0 running · 1 failed   ETA " in first
    assert last == STOPPING_MESSAGE


def test_a_trial_of_an_earlier_run_is_reported_once_with_where_it_continues(capsys):
    progress, console = StudyProgress(total=2, stored={}), Console(stderr=True, highlight=False)
    shown = Display("small", progress, console, TrialNameColumns(), PLAIN)
    shown(planned(*PAIR))
    shown(make_event("started", trial=PAIR[0].id, epoch=0))  # begins
    for epoch in (4, 6):  # goes to another worker meanwhile
        shown(make_event("started", trial=PAIR[1].id, epoch=epoch))
    assert [line.split() for line in capsys.readouterr().err.splitlines()] == [
        ["continues", "sa", "not", "from", "epoch", "4"]
    ]


def test_a_run_without_a_terminal_says_what_it_trains_when_no_trial_ends(capsys, monkeypatch):
    progress, console = StudyProgress(total=2, stored={}), Console(stderr=True, highlight=False, width=80)
    shown = Display("small", progress, console, TrialNameColumns(), PLAIN)
    shown(planned(*PAIR))
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now)
    now += MAX_SILENCE_S
    shown.break_silence()  # nothing trains yet
    shown(make_event("started", trial=PAIR[0].id, epoch=0))
    now += 60.0
    shown(make_event("epoch", trial=PAIR[0].id, epoch=5, metrics={"length": 9.0, "accuracy": 0.5}))
    for _ in range(2):  # only the first is due
        shown.break_silence()
    assert capsys.readouterr().err.splitlines() == [
        "0/2   1 running   ETA 3.0 min",
        "  sa + persistent_conv  multiply  epoch 5/10  length 9  accuracy 0.500",
    ]


def test_a_terminal_that_cannot_move_its_cursor_gets_a_line_for_each_trial(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal for Rich
    monkeypatch.setenv("TERM", "dumb")
    with live_display("small", StudyProgress(total=2, stored={}), TrialNameColumns(), PLAIN) as shown:
        shown(planned(*PAIR))
        shown(make_event("started", trial=PAIR[1].id, epoch=0))
        shown(make_event("ended", trial=PAIR[1].id, status="failed", reason="not a number at epoch 6"))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.split() == ["1/2", "failed", "sa", "not", "not", "a", "number", "at", "epoch", "6"]
