"""Other programs' names for keys of study files, and hints for unknown names on where to set a value."""

from __future__ import annotations

from collections.abc import Mapping

SYNONYMS: Mapping[str, str] = {
    name: key
    for key, names in {
        "lr": ("learning_rate", "learningrate", "step_size", "rate"),
        "batch_size": ("batch", "bs", "batchsize", "minibatch"),
        "epochs": ("num_epochs", "n_epochs", "max_epochs"),
        "steps_per_epoch": ("steps", "max_steps", "num_steps", "iterations", "epoch_steps"),
        "optimizer": ("optim", "optimiser"),
        "clip_norm": ("grad_clip", "gradient_clipping", "clip_grad_norm", "max_grad_norm", "max_norm"),
        "warmup": ("warmup_steps", "num_warmup_steps"),
        "precision": ("dtype", "amp", "mixed_precision", "bf16", "fp16"),
        "d_model": ("dim", "width", "hidden", "hidden_size", "hidden_dim", "embed_dim", "n_embd"),
        "position": ("positions", "pos", "positional_encoding", "position_encoding", "pe"),
        "norm_kind": ("norm_type", "normalization", "layer_norm", "layernorm", "rmsnorm"),
        "vocab": ("vocab_size", "num_tokens", "n_tokens"),
        "length": ("seq_len", "sequence_length", "context_length"),
        "recipe": ("architecture", "arch"),
        "scheduler": ("pruner", "pruning"),
        "sampler": ("algorithm", "method", "strategy", "search_alg"),
        "trials": ("n_trials", "num_trials", "num_samples"),
        "direction": ("mode", "goal"),
        "metric": ("objective", "target_metric"),
        "title": ("question", "description"),
        "cpus": ("cpu", "num_cpus", "num_workers"),
        "gpus": ("gpu", "num_gpus", "devices"),
        # earlier names of keys and tables
        "curve": ("figure",),
        "min_fidelity": ("min_epochs",),
        "context": ("block",),
        "dev_examples": ("dev_sequences",),
        "test_examples": ("test_sequences",),
        "spread": ("band",),
        "within": ("change",),
        "panels": ("columns", "facet", "facets", "subplots"),
    }.items()
    for name in names
}
"""The key of study files for each name in other programs."""

_LAYERS = 'write the layers in the recipe, as in recipe = "2 * (sa >> ff(64))"'
_HEADS = "write the heads in the recipe, as in sa(heads=4)"
_SEEDS = "list the seeds in [factors], as in seed = [0, 1, 2]"
_VOCAB = "the task decides the number of symbols; some tasks have [task] vocab"
_LENGTHS = "lengths belong to the task, or to [train] as curriculum or lengths: see activemem show TASK"
_CLAIMS = 'differences are decided by claims: write [[claim]] with holds = "loss[mixer=sa] < loss[mixer=gru]"'
_MACHINE = "this is a setting of the machine, in activemem.toml, not of a study: see activemem config show"

ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("layers", "num_layers", "n_layers", "n_layer", "depth", "blocks"), _LAYERS),
    **dict.fromkeys(("heads", "num_heads", "n_heads", "n_head", "nhead"), _HEADS),
    **dict.fromkeys(("seed", "seeds", "num_seeds", "n_seeds"), _SEEDS),
    **dict.fromkeys(("vocab_size", "num_tokens", "n_tokens"), _VOCAB),
    **dict.fromkeys(("seq_len", "sequence_length", "context_length", "max_len", "max_length"), _LENGTHS),
    "batch_tokens": "a batch has batch_size sequences, or pairs of them",
    "changes": 'a rate that changes at given steps is schedule = "milestones"',
    "center": 'a cell shows the mean over its seeds; interquartile means are [[table]] kind = "aggregate"',
    "groups": "write a [[table]] for each group, with select; groups of weights are [[train.groups]]",
    "interactions": "effects always have the interactions of all pairs of factors",
    "confidence": "intervals of tables and figures are at 95 %; a claim has the key level",
    **dict.fromkeys(("bootstrap_seed", "resamples"), "bootstraps draw 9,999 resamples from seed 0"),
    "brackets": 'write name = "chomsky_hierarchy" and problem = "modular_arithmetic_brackets"',
    "digits": "decimals are a key of a [[table]] of cells",
    "interval": "tables and figures have spread; settings do not change between generations of a search",
    "logit_cap": "caps are of the scores of attention, as in sa(logit_cap=50)",
    "pick": 'write pick_by and the metric that picks, as in pick_by = "dev_loss"',
    "prior": "name likely values as [study] baseline, the first point of a search",
    "max_parameters": 'write limits = { parameters = "<= 1e6" }',
    **dict.fromkeys(("max_step_flops", "max_flops"), 'write limits = { step_flops = "<= 1e9" }'),
    **dict.fromkeys(("significance", "smallest_difference"), _CLAIMS),
    **dict.fromkeys(("device", "devices", "gpu", "gpus", "cpu", "cpus", "num_workers"), _MACHINE),
    **dict.fromkeys(("checkpoint_every", "time_limit_s", "activation_checkpointing"), _MACHINE),
}
"""For each name that has no key in any table, a sentence on where to set it."""

FORMER_TABLES: Mapping[str, str] = {
    "population": "settings do not change between generations: write them as dimensions of [search], "
    'whose scheduler = "asha" prunes weak points',
}
"""For each table that study files no longer have, a sentence on what to write instead."""

_EXPORT = "draw it by Optuna: activemem study export STUDY --to optuna --out FILE.db"
FORMER_NAMES: Mapping[str, str] = {
    "hyperband": "asha reached a lower regret at every budget measured: write asha, or make "
    "Optuna's HyperbandPruner in a plug-in",
    "front": 'write kind = "points" and the other metric as x, as in x = "parameters"',
    "importance": "activemem study importance STUDY prints it",
    "incumbent": 'write kind = "points"',
    "interaction": 'write kind = "effects"',
    "population": "settings do not change between generations: write asha, which prunes weak points",
    **dict.fromkeys(("hypervolume", "slices", "parallel", "contour", "rank"), _EXPORT),
}
"""For each kind of table or figure, or scheduler, that there no longer is, what to use instead."""
