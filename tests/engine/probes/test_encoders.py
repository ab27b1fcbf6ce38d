"""Probes of encoders, against plain loops over explicit cells."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from activemem import load_study, probe_study
from activemem.engine import Machine, ProbeError
from activemem.engine.data.vocabularies.vocabulary import FIRST_SYMBOL
from activemem.engine.objectives.generation import PairData
from activemem.engine.probes.encoders import EncoderProbe, quantiles, theta
from activemem.engine.tasks.memory_degradation import fixed_bigrams
from activemem.storage import Store

from .probe_factories import (
    BAHDANAU,
    GRU,
    INPUTS,
    LUONG,
    NAIVE,
    STACK,
    make_model,
    make_study,
    store_outcomes,
)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def probe(study, store, sequences=40):
    return list(probe_study(study, store, Machine(), sequences=sequences))


def stored(store, trial):
    frame = store.metrics([trial.id])
    return dict(zip(frame["name"], frame["value"], strict=True))


def sources(study, count):
    """Return the first sources of the test split as lists."""
    side = PairData(study.trials[0].settings, None).test.source
    lines, tokens = side.lines.tolist(), side.tokens.tolist()
    return [tokens[lines[number] : lines[number + 1]] for number in range(count)]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_by_hand(model, source):
    """Return cell states, forget gates and updates of a source, step by step in double precision."""
    held = {name: weight.double().numpy() for name, weight in model.state_dict().items()}
    layer = {name: held[f"body.encoder.layers.0.{name}"] for name in ("weight_x", "weight_h", "bias")}
    width = len(layer["bias"]) // 4
    h, s, cells, gates, updates = np.zeros(width), np.zeros(width), [], [], []
    for symbol in source:
        x = held["source.weight"][symbol] * model.scale
        mixed = layer["weight_x"] @ x + layer["weight_h"] @ h + layer["bias"]
        i, f, c, o = (mixed[place * width : (place + 1) * width] for place in range(4))
        s = sigmoid(f) * s + sigmoid(i) * np.tanh(c)
        h = sigmoid(o) * np.tanh(s)
        cells.append(s)
        gates.append(sigmoid(f))
        updates.append(sigmoid(i) * np.tanh(c))
    return cells, gates, updates


def cosines(cells):
    return [a @ b / math.sqrt((a @ a) * (b @ b)) for a, b in pairwise(cells)]


def by_hand(study, number, count):
    """Return the cosines of all sources, and by step the gate products, gates and updates."""
    model, changes, kept, gates, added = make_model(study.trials[number], number), [], {}, {}, {}
    for source in sources(study, count):
        cells, forget, updates = lstm_by_hand(model, source)
        changes += cosines(cells)
        product = np.ones_like(forget[0])
        for step, gate in enumerate(forget, start=1):
            product = product * gate
            kept.setdefault(step, []).append(product.mean())
            gates.setdefault(step, []).extend(gate)
        for step, update in enumerate(updates, start=1):
            added.setdefault(step, []).append(np.abs(update).mean())
    means = ({step: np.mean(each) for step, each in found.items()} for found in (kept, added))
    return changes, *means, gates


def test_all_measures_are_those_of_plain_loops_in_double_precision(store):
    study = make_study(LUONG, NAIVE)
    store_outcomes(store, study)
    probe(study, store)
    luong, naive = (by_hand(study, number, 40) for number in range(2))
    found = stored(store, study.trials[1])
    changes, kept, added, gates = naive
    assert found["memory_change"] == pytest.approx(np.mean(changes), abs=1e-12)
    wanted = np.quantile(changes, (np.arange(200) + 0.5) / 200, method="hazen")
    assert [found[f"memory_change[{place}]"] for place in range(200)] == pytest.approx(wanted, abs=1e-12)
    assert {name for name in found if name.startswith("gamma")} == {f"gamma[{step}]" for step in kept}
    assert [found[f"gamma[{step}]"] for step in kept] == pytest.approx(list(kept.values()), abs=1e-12)
    for step, values in gates.items():
        wanted = np.quantile(values, (np.arange(20) + 0.5) / 20, method="hazen")
        got = [found[f"forget_gate[{step},{place}]"] for place in range(20)]
        assert got == pytest.approx(wanted, abs=1e-6)
        middle = np.subtract(*np.quantile(values, (0.75, 0.25), method="hazen"))
        assert found[f"forget_spread[{step}]"] == pytest.approx(middle, abs=1e-6)
        assert found[f"forget_mean[{step}]"] == pytest.approx(np.mean(values), abs=1e-6)
        assert found[f"memory_update[{step}]"] == pytest.approx(added[step], abs=1e-12)
    below = np.mean([ours < theirs for ours, theirs in zip(luong[0], changes, strict=True)])
    assert found["theta[luong]"] == pytest.approx(below, abs=1e-12)
    assert 0 < below < 1
    assert (found["probed[asked]"], found["probed[measured]"]) == (40, 40)


def test_the_memory_of_a_gru_is_its_state_and_the_last_layer_is_measured(store):
    study = make_study(GRU)
    store_outcomes(store, study)
    probe(study, store)
    model = make_model(study.trials[0], 0).double().eval()
    encoder, changes = model.body.encoder, []
    for source in sources(study, 40):
        x, state = model.source(torch.tensor([source])) * model.scale, None
        outputs = []
        for step in range(x.shape[1]):
            y, state = encoder.step_with_grad(x[:, step : step + 1], state)
            outputs.append(y[0, 0].detach().numpy())
        changes += cosines(outputs)
    assert stored(store, study.trials[0])["memory_change"] == pytest.approx(np.mean(changes), abs=1e-12)


def test_the_map_of_attention_is_that_of_the_first_of_the_longest_sources(store):
    study = make_study(LUONG)
    store_outcomes(store, study)
    probe(study, store)
    found, lengths = stored(store, study.trials[0]), [len(source) for source in sources(study, 40)]
    pair = lengths.index(max(lengths))
    assert found["probed[shown]"] == pair
    model = make_model(study.trials[0], 0).double().eval()
    split = PairData(study.trials[0].settings, None).test
    target = split.target.tokens[split.target.lines[pair] : split.target.lines[pair + 1]][None]
    source = torch.tensor([sources(study, 40)[pair]])
    state = model.begin(source, torch.tensor([target.shape[1]]))
    previous = torch.zeros(1, dtype=torch.int64)
    for step, symbol in enumerate(target[0], start=1):
        _, state = model.step(state, previous)
        weights_now = model.body.attention_weights(state)[0].tolist()
        got = [found[f"attention[{step},{place}]"] for place in range(1, len(weights_now) + 1)]
        assert got == pytest.approx(weights_now, abs=1e-12)
        previous = symbol[None]
    assert sum(name.startswith("attention[") for name in found) == target.shape[1] * source.shape[1]
    for name, symbols in (("source_symbol", source[0]), ("target_symbol", target[0])):
        got = [found[f"{name}[{place}]"] for place in range(1, len(symbols) + 1)]
        assert got == symbols.tolist()
    assert not any(name.startswith("bigram_change") for name in found), "the problem has no bigrams"


def test_the_frequent_bigrams_of_the_shown_pair_are_measured(store):
    study = make_study(LUONG, task="reverse_copy_frequent_bigrams")
    store_outcomes(store, study)
    probe(study, store)
    found = stored(store, study.trials[0])
    source = sources(study, 40)[int(found["probed[shown]"])]
    firsts, seconds, _ = fixed_bigrams(study.trials[0].settings.task.spec, study.trials[0].settings.seed)
    known = {
        (first + FIRST_SYMBOL, second + FIRST_SYMBOL)
        for first, second in zip(firsts.tolist(), seconds.tolist(), strict=True)
    }
    cells, _, _ = lstm_by_hand(make_model(study.trials[0], 0), source)
    wanted = {
        f"bigram_change[{place}]": change
        for place, (pair, change) in enumerate(zip(pairwise(source), cosines(cells), strict=True), start=1)
        if pair in known
    }
    assert wanted
    wanted["bigram_change"] = np.mean(list(wanted.values()))
    got = {name: value for name, value in found.items() if name.startswith("bigram_change")}
    assert got == pytest.approx(wanted, abs=1e-12)


def test_theta_of_a_model_with_itself_is_zero(store):
    study = make_study(LUONG)
    store_outcomes(store, study)
    (probed,) = probe(study, store)
    assert probed.metrics["theta[luong]"] == 0


def test_theta_is_the_share_of_steps_at_which_the_standard_changes_more():
    standard, compared = torch.tensor([0.1, 0.5, 0.9]), torch.tensor([0.2, 0.5, 0.8])
    assert theta(standard, compared) == pytest.approx(1 / 3)


def test_quantiles_of_as_many_values_are_the_values_themselves():
    values = torch.rand(20, dtype=torch.float64)
    assert quantiles(values, 20) == pytest.approx(sorted(values.tolist()), abs=1e-15)


def test_a_stored_probe_is_not_taken_twice(store):
    study = make_study(LUONG, NAIVE)
    store_outcomes(store, study)
    assert all(probed.metrics for probed in probe(study, store))
    before = store.metrics()
    for trial in study.trials:
        store.files.weights_file(trial.id).write_bytes(b"nobody reads this")
    assert [(probed.metrics, probed.reason) for probed in probe(study, store)] == [({}, None)] * 2
    assert store.metrics().equals(before)


def test_another_number_of_sequences_replaces_what_was_stored(store):
    study = make_study(NAIVE)
    store_outcomes(store, study)
    probe(study, store)
    probe(study, store, sequences=30)
    found = store.metrics([study.trials[0].id])
    assert found["name"].is_unique().all()
    assert found.filter(name="probed[measured]")["value"].to_list() == [30]


def test_a_model_that_came_later_is_compared_with(store):
    study = make_study(NAIVE, LUONG)
    naive, luong = study.trials
    store_outcomes(store, study, keeps_weights=lambda trial: trial.id == naive.id)
    without, probed = [probed.reason for probed in probe(study, store)]
    assert "not kept" in without
    assert probed is None
    assert "theta[luong]" not in stored(store, naive)
    store_outcomes(store, study, keeps_weights=lambda trial: trial.id == luong.id)
    assert all(probed.metrics for probed in probe(study, store))
    assert "theta[luong]" in stored(store, naive)


def test_models_that_cannot_be_measured_are_reported_and_the_others_are_measured(store, golden):
    study = make_study(STACK, LUONG, BAHDANAU, NAIVE)
    stack, luong, bahdanau, naive = study.trials
    store_outcomes(store, study, keeps_weights=lambda trial: trial.id != luong.id)
    store.files.weights_file(bahdanau.id).write_bytes(b"no weights")
    reasons = {probed.trial.id: probed.reason for probed in probe(study, store)}
    assert reasons.pop(naive.id) is None
    golden([reasons.pop(trial.id) for trial in (stack, luong, bahdanau)])
    assert not reasons
    assert {name for name in stored(store, naive) if name.startswith("theta")} == set()


def test_a_model_is_compared_with_others_whatever_they_were_trained_for(store):
    more = f'[[cells]]\nmodel = "{NAIVE}"\nepochs = 5\n'
    study = make_study(LUONG, BAHDANAU, INPUTS, more=more)
    store_outcomes(store, study)
    found = {probed.trial.levels["model"]: set(probed.metrics) for probed in probe(study, store)}
    thetas = {model: {name for name in names if "theta" in name} for model, names in found.items()}
    both = {"theta[luong]", "theta[bahdanau]"}
    assert thetas == dict.fromkeys((LUONG, BAHDANAU, INPUTS, NAIVE), both)


def test_the_standard_with_equal_training_time_is_chosen_among_several(store):
    study = load_study(make_study(LUONG, INPUTS).document.text.replace("epochs = [1]", "epochs = [1, 2]"))
    store_outcomes(store, study)
    probed = probe(study, store)
    assert all(each.ambiguous == () for each in probed)
    inputs = [each for each in probed if each.trial.levels["model"] == INPUTS]
    assert inputs[0].metrics["theta[luong]"] != inputs[1].metrics["theta[luong]"]


def test_where_no_standard_was_trained_as_long_none_is_compared_with(store):
    more = f'[[cells]]\nmodel = "{NAIVE}"\nepochs = 5\n'
    study = load_study(make_study(LUONG, more=more).document.text.replace("epochs = [1]", "epochs = [1, 2]"))
    store_outcomes(store, study)
    (naive,) = [each for each in probe(study, store) if each.trial.levels["model"] == NAIVE]
    assert naive.ambiguous == ("luong",)
    assert "theta[luong]" not in naive.metrics


def test_an_encoder_without_recurrence_is_refused(store, golden):
    (trial,) = make_study(STACK).trials
    with golden.raises(ProbeError):
        EncoderProbe(trial.settings, store.files.weights_file(trial.id))


def test_probes_survive_compaction_next_to_the_metrics_of_their_trials(store):
    study = make_study(NAIVE)
    store_outcomes(store, study)
    probe(study, store)
    before = store.metrics()
    store.upkeep.compact()
    assert store.metrics().equals(before)
