"""`activemem block verify`: a passport in lines and as JSON, and the exit status."""

import json
import re

import pytest


def test_a_built_in_block_has_a_recorded_passport(run):
    found = run("block", "verify", "delta")
    assert found.exit_code == 0
    assert re.search(r"^delta\(.*\), as checked by the tests of activemem$", found.stdout, re.M)
    page = json.loads(run("block", "verify", "activation", "--json").stdout)
    assert (page["block"], page["recorded"], page["passed"]) == ("activation", True, True)
    assert [check["name"] for check in page["checks"]] == [
        *("outputs", "gradients", "steps", "initial weights", "no leak", "reach", "cost", "in training"),
    ]
    other = run("block", "verify", "delta(heads=3, head_width=5)")
    assert (other.exit_code, "because the record of a built-in block is of delta(" in other.stderr) == (
        2,
        True,
    )


DOUBLED = """
import torch
from activemem import Block, Reach, register_block
from activemem.blocks.testing.references import register_reference

@register_block("doubled", parameters=[], reach=lambda _settings, _context: Reach(left=0, right=0))
class Doubled(Block):
    \"\"\"Double the inputs.\"\"\"

    def __init__(self, *, width, causal):
        super().__init__()

    def forward(self, x, mask=None):
        return 2 * x

@register_reference("doubled")
def doubled(block, x, *, causal):
    return 3 * x
"""


@pytest.mark.heavy
def test_a_block_that_differs_from_its_equation_fails(run, tmp_path):
    file = tmp_path / "doubled.py"
    file.write_text(DOUBLED, encoding="utf-8")
    found = run("block", "verify", "doubled", "--plugin", str(file))
    assert found.exit_code == 1
    words = " ".join(found.stdout.split())
    found_at = r"expected \S+ at \[0, 0\], got \S+; \d of 6 "
    assert re.search(rf'outputs FAIL "outputs equal the reference" .*{found_at}', words)
    assert "gradients FAIL" in words
    assert "length 1)" in words
    assert "  cost             pass" in found.stdout


LEAKY = """
import torch
from activemem import Block, Reach, register_block

@register_block("leaky", parameters=[], reach=lambda _settings, _context: Reach(left=0, right=0))
class Leaky(Block):
    \"\"\"Add the next input.\"\"\"

    def __init__(self, *, width, causal):
        super().__init__()

    def forward(self, x, mask=None):
        return x + torch.nn.functional.pad(x.mT, (0, 1)).mT[:, 1:]
"""


@pytest.mark.heavy
def test_a_block_that_leaks_is_told_which_input_changes_which_output(run, tmp_path):
    file = tmp_path / "leaky.py"
    file.write_text(LEAKY, encoding="utf-8")
    found = run("block", "verify", "leaky", "--plugin", str(file))
    words = " ".join(found.stdout.split())
    assert found.exit_code == 1
    assert re.search('no leak FAIL "future is hidden" .*position 1 .*position 0 ', words)
    assert "cost – not measured" in words


DELAYED = """
import torch
from activemem import Block, Parameter, Reach, register_block

AGO = Parameter(name="ago", kind="integer", default=4, low=1, high=300, meaning="distance")

@register_block("earlier", parameters=[AGO], reach=lambda given, _: Reach(left=given["ago"], right=0))
class Earlier(Block):
    \"\"\"The input some positions ago, which is never the present one.\"\"\"

    def __init__(self, *, width, causal, ago):
        super().__init__()
        self.ago = ago

    def forward(self, x, mask=None):
        return torch.nn.functional.pad(x.mT, (self.ago, 0)).mT[:, : x.shape[1]]
"""


@pytest.mark.heavy
@pytest.mark.parametrize("ago", [1, 4, 40, 200])
def test_a_block_that_sees_only_earlier_inputs_leaks_nothing_and_reaches_as_stated(run, tmp_path, ago):
    file = tmp_path / "earlier.py"
    file.write_text(DELAYED, encoding="utf-8")
    found = run("block", "verify", f"earlier(ago={ago})", "--plugin", str(file))
    words = " ".join(found.stdout.split())
    assert f"reach pass {ago} left, 0 right" in words
    assert "no leak pass" in words
    assert found.exit_code == 0


@pytest.mark.heavy
def test_a_wrong_reach_to_the_left_is_no_leak(run, tmp_path):
    file = tmp_path / "farther.py"
    wrong = DELAYED.replace("earlier", "farther").replace('left=given["ago"]', 'left=given["ago"] + 1')
    file.write_text(wrong, encoding="utf-8")
    found = run("block", "verify", "farther(ago=40)", "--plugin", str(file))
    words = " ".join(found.stdout.split())
    assert found.exit_code == 1
    assert "no leak pass" in words
    assert "sees 40 to the left and 0 to the right, but its stated reach is 41 to the left" in words


TAPPED = """
import torch
from activemem import Block, Linear, Parameter, Reach, register_block

TAPS = Parameter(name="taps", kind="integer", default=4, low=1, meaning="inputs, as many after as before")

@register_block("tapped", parameters=[TAPS], reach=lambda given, _: Reach(left=given["taps"] - 1, right=0))
class Tapped(Block):
    \"\"\"Centred sum, which sees no later input with two taps.\"\"\"

    def __init__(self, *, width, causal, taps):
        super().__init__()
        self.taps, self.map = taps, Linear(width, width, bias=False)

    def forward(self, x, mask=None):
        padded = torch.nn.functional.pad(self.map(x).mT, (self.taps // 2, (self.taps - 1) // 2))
        return padded.unfold(-1, self.taps, 1).sum(-1).mT
"""


@pytest.mark.heavy
def test_a_block_that_leaks_at_its_default_arguments_fails(run, tmp_path):
    file = tmp_path / "tapped.py"
    file.write_text(TAPPED, encoding="utf-8")
    found = run("block", "verify", "tapped", "--plugin", str(file), "--json")
    page = json.loads(found.stdout)
    checks = {check["name"]: check for check in page["checks"]}
    assert (found.exit_code, page["block"], checks["no leak"]["passed"]) == (1, "tapped(taps=2)", True)
    assert "tapped sees 2 to the left and 1 to the right" in checks["defaults"]["finding"]


FOURIER = """
import torch
from activemem import Block, Linear, Reach, register_block

def reach(settings, context):
    return Reach(left=float("inf"), right=0)

@register_block("by_fourier", parameters=[], reach=reach)
class ByFourier(Block):
    \"\"\"Sum the inputs so far, by Fourier transforms, and add a share of the next input.\"\"\"

    def __init__(self, *, width, causal):
        super().__init__()
        self.map = Linear(width, width)

    def forward(self, x, mask=None):
        x = x if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0.0)
        n = x.shape[1]
        sums = torch.fft.rfft(x, 2 * n, 1) * torch.fft.rfft(x.new_ones(n, 1), 2 * n, 0)
        sums = torch.fft.irfft(sums, 2 * n, 1)[:, :n]
        return self.map(sums + SHARE * torch.nn.functional.pad(x.mT, (0, 1)).mT[:, 1:])
"""


@pytest.mark.heavy
@pytest.mark.parametrize(("share", "status"), [("0.0", "pass"), ("1e-9", "FAIL")])
def test_rounding_errors_of_a_plug_in_are_no_leak(run, tmp_path, share, status):
    file = tmp_path / "fourier.py"
    file.write_text(FOURIER.replace("SHARE", share), encoding="utf-8")
    words = " ".join(run("block", "verify", "by_fourier", "--plugin", str(file)).stdout.split())
    assert f"no leak {status} " in words
    assert f"reach {status} " in words


def test_names_that_are_not_blocks_of_one_sequence_are_rejected(run):
    for text, message in (
        ("neural_gpu", "got the transducer neural_gpu"),
        ("seq2seq", "got the transducer seq2seq"),
        ("sa >> ff(4)", "got sa >> ff(4)"),
        ("sas", "unknown block 'sas'"),
    ):
        refused = run("block", "verify", text)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert message in refused.stderr
