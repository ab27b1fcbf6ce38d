"""Other programs' names for keys of study files, and hints for unknown names on where to set a value."""

from __future__ import annotations

from collections.abc import Mapping

SYNONYMS: Mapping[str, str] = {
    name: key
    for key, names in {
        "weight_decay": ("wd", "l2"),
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
        "curve": ("figure",),
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
_MACHINE = "this is a setting of the machine, in activemem.toml, not of a study: see activemem config show"

ELSEWHERE: Mapping[str, str] = {
    **dict.fromkeys(("layers", "num_layers", "n_layers", "n_layer", "depth", "blocks"), _LAYERS),
    **dict.fromkeys(("heads", "num_heads", "n_heads", "n_head", "nhead"), _HEADS),
    **dict.fromkeys(("seed", "seeds", "num_seeds", "n_seeds"), _SEEDS),
    **dict.fromkeys(("vocab_size", "num_tokens", "n_tokens"), _VOCAB),
    **dict.fromkeys(("seq_len", "sequence_length", "context_length", "max_len", "max_length"), _LENGTHS),
    **dict.fromkeys(("device", "devices", "gpu", "gpus", "cpu", "cpus", "num_workers"), _MACHINE),
    **dict.fromkeys(("checkpoint_every", "time_limit_s"), _MACHINE),
}
"""For each name that has no key in any table, a sentence on where to set it."""
