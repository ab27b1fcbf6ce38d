"""Bracket scores by the rules of EVALB with COLLINS.prm: one hand-counted case per rule."""

import pytest

from activemem.engine.data.treebanks import parse_trees
from activemem.engine.decoding.measures import BracketScore, score_brackets

RIGHT = "(TOP (S (NP (DT the) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT a) (NN mat)))) (. .)))"


def tree(text):
    (only,) = parse_trees(text)
    return only


def score(right, guess):
    return score_brackets([tree(right)], [None if guess is None else tree(guess)])


def counts(found: BracketScore):
    return found.matched, found.right, found.guessed


def test_the_right_tree_is_complete_and_the_root_is_no_bracket():
    found = score(RIGHT, RIGHT)
    assert counts(found) == (5, 5, 5)  # S NP VP PP NP
    assert (found.precision, found.recall, found.f1) == (100, 100, 100)


def test_a_bracket_needs_its_label_and_both_its_ends():
    guess = "(TOP (S (NP (DT the) (NN cat)) (VP (VBD sat)) (SBAR (IN on) (NP (DT a) (NN mat))) (. .)))"
    found = score(RIGHT, guess)
    assert counts(found) == (3, 5, 5)  # S, NP, NP; not VP, which is shorter, nor PP, which is called SBAR
    assert found.f1 == pytest.approx(60)


def test_precision_and_recall_differ_where_the_numbers_of_brackets_do():
    flat = "(TOP (S (NP (DT the) (NN cat)) (VBD sat) (IN on) (DT a) (NN mat) (. .)))"
    found = score(RIGHT, flat)
    assert counts(found) == (2, 5, 2)
    assert (found.precision, found.recall) == (100, 40)
    assert found.f1 == pytest.approx(2 * 100 * 40 / 140)


@pytest.mark.parametrize("mark", [", ,", ": --", "`` ``", "'' ''", ". ?"])
def test_punctuation_is_deleted_wherever_it_is_attached(mark):
    inside = f"(TOP (S (NP (DT the) (NN cat) ({mark})) (VP (VBD sat))))"
    outside = f"(TOP (S (NP (DT the) (NN cat)) ({mark}) (VP (VBD sat))))"
    found = score(inside, outside)
    assert counts(found) == (3, 3, 3)


@pytest.mark.parametrize("tag", ["$", "#", "-LRB-", "SYM", "POS"])
def test_other_signs_are_words(tag):
    inside = f"(TOP (S (NP (DT the) (NN cat) ({tag} x)) (VP (VBD sat))))"
    outside = f"(TOP (S (NP (DT the) (NN cat)) ({tag} x) (VP (VBD sat))))"
    assert counts(score(inside, outside)) == (2, 3, 3)


def test_traces_are_deleted_and_what_is_made_of_them_alone():
    right = "(TOP (S (NP (-NONE- *)) (VP (VBD said) (SBAR (-NONE- 0) (S (-NONE- *T*-1))))))"
    assert counts(score(right, "(TOP (S (VP (VBD said))))")) == (2, 2, 2)


def test_constituents_of_punctuation_alone_do_not_count():
    assert counts(score("(TOP (S (NP (NN x)) (PRN (, ,) (: -))))", "(TOP (S (NP (NN x)) (, ,) (: -)))")) == (
        2,
        2,
        2,
    )


def test_adverbs_and_particles_are_equal():
    right = "(TOP (VP (VB give) (PRT (RP up))))"
    found = score(right, "(TOP (VP (VB give) (ADVP (RB up))))")
    assert counts(found) == (2, 2, 2)
    assert counts(score(right, "(TOP (VP (VB give) (NP (RP up))))")) == (1, 2, 2)


def test_functions_after_labels_do_not_count():
    right = "(TOP (S-TPC=2 (NP-SBJ-1 (NN x)) (VP (VBZ is))))"
    assert counts(score(right, "(TOP (S (NP (NN x)) (VP (VBZ is))))")) == (3, 3, 3)


def test_equal_brackets_on_top_of_each_other_match_once_each():
    once, twice = "(TOP (NP (NN x)))", "(TOP (NP (NP (NN x))))"
    assert counts(score(twice, once)) == (1, 2, 1)
    assert counts(score(once, twice)) == (1, 1, 2)
    assert counts(score(twice, twice)) == (2, 2, 2)


def test_a_root_that_is_no_top_is_a_bracket():
    assert counts(score("(S (NN x))", "(TOP (S (NN x)))")) == (1, 1, 1)
    assert counts(score("(TOP (S (NN x)))", "(S1 (S (NN x)))")) == (1, 1, 2)


def test_tags_are_right_or_wrong_without_changing_brackets():
    found = score(RIGHT, RIGHT.replace("(VBD sat)", "(VBN sat)"))
    assert counts(found) == (5, 5, 5)


@pytest.mark.parametrize(
    "guess",
    [
        RIGHT.replace("(DT the) ", ""),  # a word less
        RIGHT.replace("(DT the)", "(, the)"),  # a word less, since its tag says that it is punctuation
        RIGHT.replace("(. .)", "(NN .)"),  # a word more
        RIGHT.replace("(NN cat)", "(NN dog)"),  # another word
    ],
)
def test_other_words_are_an_error_that_does_not_count_in_any_score(guess):
    found = score(RIGHT, guess)
    assert counts(found) == (0, 0, 0)
    assert found.missed == 5


@pytest.mark.parametrize("guess", [None, "(TOP (S (. .)))"])
def test_no_guess_is_skipped_and_does_not_count_either(guess):
    found = score(RIGHT, guess)
    assert counts(found) == (0, 0, 0)
    assert found.missed == 5
    assert (found.f1, found.f1_of_all) == (0, 0)


def test_punctuation_with_another_tag_of_punctuation_is_no_error():
    assert counts(score(RIGHT, RIGHT.replace("(. .)", "(: .)"))) == (5, 5, 5)


def test_scores_are_of_all_sentences_together():
    flat = "(TOP (S (NP (DT the) (NN cat)) (VBD sat) (IN on) (DT a) (NN mat) (. .)))"
    guesses = [RIGHT, flat, None, RIGHT.replace("cat", "dog")]
    found = score_brackets([tree(RIGHT)] * 4, [each and tree(each) for each in guesses])
    assert counts(found) == (7, 10, 7)
    assert found.f1 == pytest.approx(100 * 14 / 17)
    assert found.f1_of_all == pytest.approx(100 * 14 / 27)
    assert found.missed == 10


def test_every_tree_needs_a_guess():
    with pytest.raises(ValueError):
        score_brackets([tree(RIGHT)], [])
