"""A program: fla-core's kernels, computed by Triton's interpreter on a CPU, against the plain forms.

    TRITON_INTERPRET=1 python tests/blocks/layers/kernels/interpreted.py [FORM …]

It tells how far outputs, the last state and each gradient are off, as a share of their norm, in float32 if
the kernel takes it and in float16. The interpreter has no bfloat16, and nothing to tune kernels on.
"""

import builtins
import sys
from importlib import import_module

import torch
import triton.language as tl
from triton.runtime.autotuner import Autotuner

from activemem.blocks.layers.attention_variants import attend_fading
from activemem.blocks.layers.kernels import choice, recurrences
from activemem.blocks.layers.matrix_states.chunked_recurrence import run_in_chunks, run_vector_decays
from activemem.blocks.layers.matrix_states.delta_rule import (
    run_channel_delta,
    run_delta_rule,
    run_replaced_keys,
)

BATCH, LENGTH, HEADS, WIDTH = 2, 70, 2, 16
ROWS = (BATCH, LENGTH, HEADS)
VECTORS, STATE = (*ROWS, WIDTH), (BATCH, HEADS, WIDTH, WIDTH)
QKV = {"q": VECTORS, "k": VECTORS, "v": VECTORS}
FOLDERS = (
    *("simple_gla", "gla", "delta_rule", "gated_delta_rule", "gated_delta_product"),
    *("kda", "rwkv7", "forgetting_attn"),
)
MOST = {torch.float32: 1e-6, torch.float16: 2e-3}


def writes(count):
    """The sizes of inputs that write so often at each position."""
    return {
        "q": VECTORS,
        "k": (*ROWS, count, WIDTH),
        "v": (*ROWS, count, WIDTH),
        "beta": (*ROWS, count),
        "state": STATE,
    }


SIMPLE, DELTA = (recurrences.scalar_decays, run_in_chunks), (recurrences.delta_rule, run_delta_rule)
FORMS = {
    "kept": (*SIMPLE, QKV | {"v": (*ROWS, WIDTH + 1)}, {"log_decay": None, "state": None, "keep": False}),
    "decayed": (*SIMPLE, QKV | {"log_decay": ROWS, "state": STATE}, {"keep": True}),
    "shared": (
        *SIMPLE,
        {"q": (BATCH, LENGTH, 1, WIDTH), "k": (BATCH, LENGTH, 1, WIDTH), "v": VECTORS, "log_decay": ROWS},
        {"state": None, "keep": True},
    ),
    "channels": (
        recurrences.vector_decays,
        run_vector_decays,
        QKV | {"log_decay": VECTORS, "state": STATE},
        {"keep": True},
    ),
    "delta": (*DELTA, writes(1), {"log_decay": None, "keep": True}),
    "gated delta": (*DELTA, writes(1) | {"log_decay": ROWS}, {"keep": True}),
    "product": (*DELTA, writes(2), {"log_decay": None, "keep": True}),
    "gated product": (*DELTA, writes(2) | {"log_decay": ROWS}, {"keep": True}),
    "kda": (
        recurrences.channel_delta,
        run_channel_delta,
        QKV | {"beta": ROWS, "log_decay": VECTORS, "state": STATE},
        {"keep": True},
    ),
    "rwkv7": (
        recurrences.replaced_keys,
        run_replaced_keys,
        QKV | {"removed": VECTORS, "rate": VECTORS, "log_decay": VECTORS, "state": STATE},
        {"keep": True},
    ),
    "fading": (
        recurrences.fading_attention,
        attend_fading,
        dict.fromkeys("qkv", (BATCH, HEADS, LENGTH, WIDTH)) | {"log_gates": (BATCH, HEADS, LENGTH)},
        {"scale": 0.25},
    ),
}


class Place(int):
    """A number of a loop, which kernels turn to another type."""

    def to(self, _dtype):
        """The same."""
        return self


def places(*bounds):
    """What `range` gives within a kernel."""
    return map(Place, builtins.range(*map(int, bounds)))


def first_configuration(tuner, *args, **given):
    """A kernel as its first configuration has it."""
    tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
    return tuner.fn.run(*args, **given, **tuner.configs[0].all_kwargs())


def prepare():
    """Have the kernels computed where there is no GPU."""
    for folder in FOLDERS:
        import_module(f"fla.ops.{folder}")
    for tuner in (Autotuner, *Autotuner.__subclasses__()):
        tuner.run = first_configuration
    for name, module in list(sys.modules.items()):
        if name.startswith("fla.ops"):
            module.range = places
            if "gather" in vars(module) and not name.endswith(".op"):
                module.gather = lambda *args, **given: tl.gather(*args, **given)


def differences(form, products):
    """How far each of what a kernel gives is from that of the plain form."""
    kernel, plain, sizes, options = FORMS[form]
    cpu = torch.device("cpu")
    tried = choice.Tried(kernel, plain, cpu, products, tuple(sizes.items()), tuple(options.items()))
    given = choice._small_inputs(tried)
    rounded = choice.cast_inputs(given, products)
    found = choice._with_gradients(kernel, given, rounded)
    expected = choice._with_gradients(plain.__wrapped__, given, choice.cast_inputs(rounded, torch.float32))
    return [float((one - other).norm() / other.norm()) for one, other in zip(found, expected, strict=True)]


def main(forms):
    prepare()
    for form in forms:
        takes_float32 = form not in ("delta", "product", "gated product")
        for products in (torch.float32, torch.float16) if takes_float32 else (torch.float16,):
            found = differences(form, products)
            sys.stdout.write(f"{form}, {products}: {', '.join(f'{each:.1e}' for each in found)}\n")
            sys.stdout.flush()
            assert max(found) <= MOST[products], f"expected at most {MOST[products]:g}"


if __name__ == "__main__":
    main(sys.argv[1:] or FORMS)
