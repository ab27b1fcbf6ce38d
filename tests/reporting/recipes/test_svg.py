"""A recipe as an SVG: well formed and complete, with consistent numbers."""

from xml.etree import ElementTree

import pytest

from activemem import show_recipe

NESTED = "2 * (3 * (conv(k=3) + 2 * (sa >> ff(8)) >> ff(9))) >> tied(2 * persistent_conv(k=4)) >> ff(7)"


def drawn(text, *, causal=False):
    """Draw a recipe as a notebook shows it, and return the root of the SVG."""
    shown = show_recipe(text, d_model=128, vocab=20, causal=causal, length=40)
    return ElementTree.fromstring(shown._repr_svg_())


def texts(root, mark=None):
    """Return the texts of the picture, optionally of one class."""
    found = root.iter("{http://www.w3.org/2000/svg}text")
    return [text.text for text in found if mark is None or mark in (text.get("class") or "").split()]


def test_every_part_is_named_and_the_recipe_is_the_title():
    root = drawn(NESTED)
    assert root[0].text == NESTED
    names = {
        "embedding",
        "2 ×",
        "3 ×",
        "tied 2 ×",
        "conv(k=3)",
        "sa",
        "ff(8)",
        "ff(9)",
        "final norm",
        "total",
    }
    assert names <= set(texts(root))
    assert "padding of persistent_conv(k=4)" in texts(root)


@pytest.mark.parametrize("text", [NESTED, "4 * (sa + conv(k=20) >> ff(512))", "ff(8)"])
def test_the_parameters_of_the_rows_add_up_to_the_total(text):
    rows = {}
    for each in drawn(text).iter("{http://www.w3.org/2000/svg}text"):
        rows.setdefault(float(each.get("y")), []).append(each.text)
    counts = {row[0]: 0 for row in rows.values()}
    for label, *numbers in rows.values():
        if numbers and numbers[0][0].isdigit() and not label.endswith("×"):
            counts[label] += int(numbers[0].replace(",", ""))
    assert counts.pop("total") == sum(counts.values()) > 0


WHOLE = "seq2seq(2 * (sa >> ff(8)), 2 * (sa >> ff(8)) >> conv(k=3))"


def test_a_whole_model_is_laid_out_in_the_order_of_its_streams():
    labels = [text for text in texts(drawn(WHOLE))[6:-2] if text[0].isalpha() or text.endswith("×")]
    assert [label for label in labels if not label.startswith("all")] == [
        "source embedding",
        "encoder",
        "2 ×",
        "sa",
        "ff(8)",
        "final norm",
        "target embedding",
        "decoder",
        "2 ×",
        "sa",
        "ff(8)",
        "conv(k=3)",
        "attention to the source",
        "final norm",
        "output",
        "total",
    ]


@pytest.mark.parametrize(
    "text",
    [
        *(WHOLE, "seq2seq(gru, gru, attention=luong)"),
        pytest.param("extended_neural_gpu(maps=9)", marks=pytest.mark.heavy),
    ],
)
def test_bars_of_a_whole_model_add_up_to_all_of_it(text):
    columns = {}
    for bar in drawn(text).iter("{http://www.w3.org/2000/svg}rect"):
        columns[bar.get("x")] = columns.get(bar.get("x"), 0) + float(bar.get("width"))
    assert list(columns.values()) == [pytest.approx(60, abs=3)] * 3


def test_an_embedding_that_nothing_reads_is_drawn_separately():
    root = drawn("neural_gpu")
    begun = [path.get("d").split("V")[0] for path in root.iter("{http://www.w3.org/2000/svg}path")]
    dots = [f"M{dot.get('cx')} {dot.get('cy')}" for dot in root.iter("{http://www.w3.org/2000/svg}circle")]
    assert [dot in begun for dot in dots[:2]] == [False, True]
    names = [text for text in texts(root) if text.endswith(" embedding")]
    assert names == ["target embedding", "source embedding"]


def test_bars_are_shares_of_the_model():
    widths = [
        float(bar.get("width")) for bar in drawn("4 * ff(512)").iter("{http://www.w3.org/2000/svg}rect")
    ]
    assert all(0 < width <= 60 for width in widths)
    assert max(widths) > 55


def test_everything_lies_within_the_picture():
    root = drawn(" >> ".join([NESTED] * 6))
    _, _, width, height = map(float, root.get("viewBox").split())
    for each in root.iter("{http://www.w3.org/2000/svg}text"):
        assert 0 < float(each.get("x")) < width
        assert 0 < float(each.get("y")) < height


def test_the_state_of_generation_is_shown_where_there_is_any():
    assert "generation in 16 bits keeps 2.0 kB for each token and a fixed state of 256 B" in texts(
        drawn("sa + conv(k=2)", causal=True)
    )
    assert not any("generation" in text for text in texts(drawn("ff(8)")))
