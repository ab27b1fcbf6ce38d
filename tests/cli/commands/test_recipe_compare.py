import json

SIZES = ("--d-model", "128", "--length", "40", "--vocab", "20")

SIDE_BY_SIDE = """\
  a  4 * (sa >> ff(512))                                             id 565dbb5c
  b  4 * (sa + conv(k=20) >> ff(512))                                id e3b6a2bf
  c  tied(4 * (conv(k=20) >> ff(512)))                               id 2878798e
  d  ff(512)                                                         id 9f8d910e

                         a           b                     c
  parameters     1,582,868   2,894,100   +83 %       465,428   −71 %
  MFLOPs/token         3.5         6.1   +75 %           3.7  +5.7 %
  activations      90.8 MB     97.3 MB  +7.1 %       52.6 MB   −42 %
  peak memory     117.4 MB    144.8 MB   +23 %       61.3 MB   −48 %
  cache/token       8.2 kB      8.2 kB       =             0  −100 %
  fixed state            0     19.5 kB               19.5 kB
  reach                all         all           36 ← · → 40
  causal                no          no                    no

                       d
  parameters     137,364   −91 %
  MFLOPs/token       0.3   −92 %
  activations    11.3 MB   −88 %
  peak memory    15.1 MB   −87 %
  cache/token          0  −100 %
  fixed state          0       =
  reach                0
  causal             yes

  width 128, vocab 20, pre-norm, 40 tokens, batch 32, dropout 0.1
"""

FOUR = (
    "4 * (sa >> ff(512))",
    "4 * (sa + conv(k=20) >> ff(512))",
    "tied(4 * (conv(k=20) >> ff(512)))",
    "ff(512)",
)


def test_recipes_are_shown_side_by_side_with_differences_from_the_first(run):
    result = run("recipe", "compare", *FOUR, *SIZES)
    assert (result.exit_code, result.stdout, result.stderr) == (0, SIDE_BY_SIDE, "")


def test_many_recipes_fit_eighty_columns(run):
    lines = run("recipe", "compare", *(f"{n} * conv(k=20)" for n in range(1, 31)), *SIZES).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.split()[:1] == ["parameters"] for line in lines) > 5
    assert lines[27].startswith("  b1  28 * conv(k=20)")


def test_whole_models_are_shown_side_by_side(run):
    result = run("recipe", "compare", "seq2seq(lstm, lstm)", "neural_gpu(width=2)", *SIZES)
    assert result.stdout.splitlines()[3:8] == [
        "                       a          b",
        "  parameters     270,868    893,204     +230 %",
        "  MFLOPs/token       0.5      141.6  +26,640 %",
        "  activations    25.1 MB   996.9 MB   +3,869 %",
        "  peak memory    31.4 MB     1.0 GB   +3,153 %",
    ]


def test_recipes_without_state_have_no_line_for_it(run):
    result = run("recipe", "compare", "ff(8)", "ff(9)", *SIZES)
    assert "state" not in result.stdout
    assert "window" not in result.stdout


def test_a_comparison_is_data_too(run):
    first, second = json.loads(run("recipe", "compare", *FOUR[:2], *SIZES, "--json").stdout)["recipes"]
    assert first["recipe"] == FOUR[0]
    assert set(first["difference"]["memory"].values()) == {0}
    assert second["difference"]["parameters"] == second["parameters"] - first["parameters"] == 1_311_232
    activations = second["memory"]["activations"] - first["memory"]["activations"]
    assert second["difference"]["memory"]["activations"] == activations
    assert second["difference"]["window"] == second["window"] == 4 * 19 * 128


def test_the_faults_of_all_recipes_are_reported(run, golden):
    result = run("recipe", "compare", "sa(head=8)", "sa", "{mixer} >> ff(8)", *SIZES)
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr)


def test_a_comparison_of_one_recipe_is_rejected(run, golden):
    result = run("recipe", "compare", "sa", *SIZES)
    assert (result.exit_code, result.stdout) == (2, "")
    golden(result.stderr)
