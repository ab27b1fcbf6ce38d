"""A plug-in block that fails or violates its statements is reported with its file."""

import json
import re
from pathlib import Path

import pytest

from activemem.plugins import unload_plugin

from ...study_texts import study_text

BLOCK = """
import torch
from activemem import Block, Parameter, Reach, register_block

TAPS = Parameter(name="taps", kind="integer", default=3, low=1, high=64, meaning="inputs that are averaged")


@register_block("smoothing", parameters=[TAPS], reach=lambda settings, _: Reach(left=REACH, right=0))
class Smoothing(Block):
    def __init__(self, *, width, causal, taps):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((width, 1, taps), 1 / taps))

    def forward(self, x, mask=None):
        padded = torch.nn.functional.pad(x.mT, PADDING)
        return torch.nn.functional.conv1d(padded, self.weight, groups=x.shape[-1]).mT
"""
REACH_KEY = ", reach=lambda settings, _: Reach(left=None, right=0)"
REACH, PAST = 'settings["taps"] - 1', "(self.weight.shape[-1] - 1, 0)"


@pytest.fixture
def plugin():
    """Write the block into a file, with this reach and this padding."""
    yield lambda reach, padding: Path("mine.py").write_text(
        BLOCK.replace("REACH", reach).replace("PADDING", padding), encoding="utf-8"
    )
    unload_plugin("mine.py")


def write_study(task):
    length = {} if task == "parity" else {"curriculum": {"start": 3}}
    train = {"epochs": 1, "curriculum": None} | length
    text = study_text(
        model={"recipe": "{mixer}"}, task={"name": task}, train=train, factors={"mixer": ["smoothing"]}
    )
    Path("mine.toml").write_text(text, encoding="utf-8")


COMMANDS = (
    "recipe show smoothing --d-model 8 --length 9 --vocab 5",
    "study plan mine.toml",
    "study run mine.toml",
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("task", "reach", "padding", "told"),
    [
        (
            "reverse",
            "1",
            PAST,
            "2 to the left and 0 to the right, but .* 1 to the left",
        ),
        (
            "reverse",
            "0",
            "(0, self.weight.shape[-1] - 1)",
            "0 to the left and 2 to the right, but .* 0",
        ),
        ("parity", REACH, "(self.weight.shape[-1] - 2, 1)", "1 to the left and 1 to the right, but "),
    ],
)
def test_a_block_that_sees_further_than_it_states_is_refused_with_what_was_measured(
    run, plugin, command, task, reach, padding, told
):
    plugin(reach, padding)
    write_study(task)
    result = run(*command.split(), "--plugin", "mine.py")
    assert result.exit_code == 2
    assert re.search(told, result.stderr)
    assert not list(Path().glob("results/trials/*"))


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        ("y - y.mean(0)", "in a batch"),
        ("self.__dict__.setdefault('last', []).append(y) or y + len(self.last)", "no state"),
        (
            "y - y.mean(0) if self.training else y",
            "in training mode gives a sequence other",
        ),
        ("self.__dict__.setdefault('last', []).append(y) or y + self.training * len(self.last)", "no state"),
        ("y + self.training * y.mean(1, keepdim=True)", "in training mode sees 39 or more to the left"),
        (
            "y + torch.nn.functional.dropout(y, 0.1, self.training).flip(1) * self.training",
            "in training mode sees 39 or more to the left",
        ),
        ("y.detach()", "no gradient: weight"),
        ("y / 0", "NaN or infinite"),
    ],
)
def test_a_block_that_mixes_a_batch_or_keeps_a_state_or_leaks_in_training_is_refused(
    run, plugin, extra, told
):
    plugin(REACH, PAST)
    text = Path("mine.py").read_text(encoding="utf-8")
    text = text.replace("        return ", "        y = ") + f"        return {extra}\n"
    Path("mine.py").write_text(text, encoding="utf-8")
    write_study("parity")
    result = run("study", "run", "mine.toml", "--plugin", "mine.py")
    assert (result.exit_code, told in result.stderr) == (2, True), result.stderr


HIDDEN = "x.masked_fill(~mask.unsqueeze(-1), 0.0) if mask is not None else x"


@pytest.mark.parametrize("command", ["plan", "run"])
@pytest.mark.parametrize(("seen", "exit_code"), [("x", 2), (HIDDEN, 0)])
def test_a_block_that_sees_padding_is_refused_where_there_is_padding(run, plugin, seen, exit_code, command):
    plugin("2", "(self.weight.shape[-1] - 2, 1)")
    text = Path("mine.py").read_text(encoding="utf-8").replace("right=0", "right=1")
    text = text.replace("        padded =", f"        x = {seen}\n        padded =")
    Path("mine.py").write_text(text, encoding="utf-8")
    files = {split: f"{split}.jsonl" for split in ("train", "dev", "test")}
    for split, file in files.items():
        rows = [{"text": f"{split} " * count, "label": "ab"[count % 2]} for count in range(1, 9)]
        Path(file).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    study = study_text(
        model={"recipe": "{mixer} >> mean_pool"},
        task={"name": "sequence_classification", "corpus": files, "tokens": "words"},
        train={"epochs": 1, "curriculum": None},
        factors={"mixer": ["smoothing"]},
    )
    Path("mine.toml").write_text(study, encoding="utf-8")
    local = ("--local",) if command == "run" else ()
    result = run("study", command, "mine.toml", "--plugin", "mine.py", *local)
    told = "the padding has another" in result.stderr
    assert (result.exit_code, told) == (exit_code, exit_code == 2), result.stderr


def test_an_unknown_kind_of_a_parameter_is_refused_with_the_nearest(run, plugin):
    plugin(REACH, PAST)
    text = Path("mine.py").read_text(encoding="utf-8").replace('kind="integer"', 'kind="int"')
    Path("mine.py").write_text(text, encoding="utf-8")
    result = run(*COMMANDS[0].split(), "--plugin", "mine.py")
    assert (result.exit_code, "got 'int'; nearest: integer" in result.stderr) == (2, True), result.stderr


def test_a_parameter_that_the_constructor_lacks_is_refused_with_the_nearest_argument(run, plugin):
    plugin(REACH, PAST)
    text = Path("mine.py").read_text(encoding="utf-8").replace("causal, taps", "causal, tap")
    Path("mine.py").write_text(text, encoding="utf-8")
    result = run(*COMMANDS[0].split(), "--plugin", "mine.py")
    told = "'taps' for block 'smoothing'; nearest: tap"
    assert (result.exit_code, told in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        (
            "None",
            "mine.py: block 'smoothing': TypeError: step_with_grad: expected (outputs, state), got None",
        ),
        (
            "x, (x, x)",
            "mine.py: block 'smoothing': TypeError: step_with_grad: expected a state that is one tensor",
        ),
        ("x.sum().item(), x", "mine.py:19: block 'smoothing': RuntimeError: Tensor.item() cannot be called"),
    ],
)
def test_a_step_that_fails_while_a_size_is_solved_is_reported_by_its_file(run, plugin, returned, told):
    plugin(REACH, PAST)
    steps = (
        f"    state_is_bounded = True\n    def step_with_grad(self, x, state):\n        return {returned}\n"
    )
    Path("mine.py").write_text(Path("mine.py").read_text(encoding="utf-8") + steps, encoding="utf-8")
    text = study_text(
        study={"match": "parameters", "baseline": {"mixer": "sa", "filter": 8}},
        model={"recipe": "{mixer} >> ff({filter})"},
        task={"name": "reverse"},
        factors={"mixer": ["sa", "smoothing"]},
    )
    Path("mine.toml").write_text(text, encoding="utf-8")
    result = run("study", "plan", "mine.toml", "--plugin", "mine.py")
    assert (result.exit_code, result.stderr.startswith(told)) == (2, True), result.stderr


@pytest.mark.parametrize("command", ["recipe show smoothing", "block verify smoothing", COMMANDS[1]])
@pytest.mark.parametrize(
    ("reach", "told"),
    [
        ("Reach(left=None, right=0)", "left: expected a number of tokens, or math.inf for all; got None"),
        ("3", "expected Reach(left=…, right=…), got 3"),
    ],
)
def test_a_reach_that_is_no_number_is_reported_by_its_file(run, plugin, reach, told, command):
    plugin("None", PAST)
    text = Path("mine.py").read_text(encoding="utf-8").replace("Reach(left=None, right=0)", reach)
    Path("mine.py").write_text(text, encoding="utf-8")
    write_study("parity")
    result = run(*command.split(), "--plugin", "mine.py")
    is_passport = command.startswith("block")
    shown = " ".join((result.stdout if is_passport else result.stderr).split())
    assert (result.exit_code, told in shown) == (1 if is_passport else 2, True), shown
    assert re.search(r"mine\.py(:\d+)?: reach of block 'smoothing': ", shown)


@pytest.mark.parametrize("command", ["plan", "run"])
def test_an_output_of_another_shape_is_refused_as_such(run, plugin, command):
    plugin("5", PAST)
    text = Path("mine.py").read_text(encoding="utf-8").replace("        return ", "        y = ")
    Path("mine.py").write_text(f"{text}        return y[:, 1:]\n", encoding="utf-8")
    write_study("parity")
    result = run("study", command, "mine.toml", "--plugin", "mine.py")
    assert (result.exit_code, "output of shape (" in result.stderr) == (2, True), result.stderr


def test_a_block_that_states_what_it_does_or_more_is_planned(run, plugin):
    plugin(f"{REACH} + 5", PAST)
    write_study("parity")
    result = run("study", "plan", "mine.toml", "--plugin", "mine.py")
    assert result.exit_code == 0, result.stderr


def test_a_block_that_fails_in_a_step_is_reported_by_its_line_and_its_results_can_still_be_read(run, plugin):
    plugin(REACH, PAST + " if x.shape[0] != 4 else 1 / 0")
    write_study("reverse")
    assert run("study", "run", "mine.toml", "--plugin", "mine.py", "--local").exit_code == 1
    planned = run("study", "plan", "mine.toml", "--plugin", "mine.py")
    assert (planned.exit_code, planned.stderr) == (
        2,
        "mine.py:15: block 'smoothing': ZeroDivisionError: division by zero\n",
    )
    built = run("report", "build", "mine.toml", "--plugin", "mine.py")
    assert (built.exit_code, built.stderr) == (0, "")
    assert "Traceback (most recent call last)" in Path("tiny.html").read_text(encoding="utf-8")


def test_a_block_without_a_stated_reach_and_a_reference_is_not_checked_against_them(run, plugin):
    plugin("None", PAST)
    Path("mine.py").write_text(
        Path("mine.py").read_text(encoding="utf-8").replace(REACH_KEY, ""), encoding="utf-8"
    )
    found = run("block", "verify", "smoothing", "--plugin", "mine.py", "--json")
    checks = {each["name"]: each["passed"] for each in json.loads(found.stdout)["checks"]}
    assert checks == {
        **dict.fromkeys(("outputs", "gradients", "reach")),
        **dict.fromkeys(("steps", "initial weights", "no leak", "cost", "in training", "defaults"), True),
    }
    assert found.exit_code == 0


@pytest.fixture
def failed_checks(run, plugin):
    """Return a function that changes the block's text, and gives the finding of each check that fails."""

    def verify(old, new):
        plugin(REACH, PAST)
        text = Path("mine.py").read_text(encoding="utf-8")
        Path("mine.py").write_text(text.replace(old, new), encoding="utf-8")
        found = run("block", "verify", "smoothing", "--plugin", "mine.py", "--json")
        checks = json.loads(found.stdout)["checks"]
        return {each["name"]: each["finding"] for each in checks if each["passed"] is False}

    return verify


def test_a_wrong_shape_is_the_one_finding_of_a_passport(failed_checks):
    ((name, finding),) = failed_checks(".mT\n", ".mT[:, :-1]\n").items()
    assert (name, "got (1, 0, 6)" in finding) == ("outputs", True)


def test_a_weight_used_without_its_gradient_is_named_before_gradients_are_compared(failed_checks):
    found = failed_checks("self.weight, groups", "self.weight.detach(), groups")
    assert "no gradient: weight" in found["in training"]


def test_a_block_that_cannot_read_an_empty_batch_fails_that_check_alone(failed_checks):
    old = "    def forward(self, x, mask=None):\n"
    new = old + '        if len(x) == 0:\n            raise RuntimeError("no plan for this size")\n'
    ((name, finding),) = failed_checks(old, new).items()
    assert (name, "a batch of 0 sequences: no plan for this size" in finding) == ("in training", True)
