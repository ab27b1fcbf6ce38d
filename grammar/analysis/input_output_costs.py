"""What the input and the output of a model cost, and what tells its positions apart."""

from __future__ import annotations

from ..model_config import ModelConfig
from ..norms import NORMS
from ..vocabulary.cost_tree import ModelPart
from ..vocabulary.spec import UNBOUNDED, CostContext, Reach


def input_part(context: CostContext, label: str = "embedding") -> ModelPart:
    """What makes vectors of the inputs.

    Saved are the tokens, of eight bytes each, or the numbers that come in, and the masks of dropout. Of a
    clustered vocabulary that are tokens for each cluster and a byte for which of them are its own, and all
    vectors that are projected.
    """
    config, length, width = context.config, context.length, context.width
    masks = sum(rate > 0 for rate in (config.embedding_dropout, config.input_dropout))
    dropped = masks * length * width
    if config.columns is not None:
        return ModelPart(
            label="input",
            parameters=(config.columns + 1) * width,
            flops=2 * length * config.columns * width,
            saved=length * config.columns + dropped,
        )
    count, projected = len(config.clusters), sum(each.width for each in config.clusters if each.projected)
    looked_up = 2 * length if count == 1 else count * 9 * length // 4 + projected * length
    return ModelPart(
        label=label,
        parameters=sum(cluster.size * cluster.width for cluster in config.clusters) + projected * width,
        flops=2 * length * projected * width,
        saved=looked_up + dropped,
    )


def position_parts(config: ModelConfig, length: int) -> tuple[ModelPart, ...]:
    """What tells positions apart, if it learns or saves anything."""
    kind, width = config.position_kind, config.d_model
    part = ModelPart(
        label="positions",
        parameters=kind.parameters(width),
        flops=0,
        saved_once=kind.saved(width, length),
    )
    return (part,) if part.parameters or part.saved_once else ()


def bottleneck_part(config: ModelConfig, length: int) -> ModelPart:
    """The decoder that makes something of each position of the last one, which all later ones can move.

    Of each of its two maps with a norm are saved the norm's input, what it saves itself, the map's input and
    that of the activation.
    """
    width, norm = config.d_model, NORMS[config.norm_kind]
    return ModelPart(
        label="decoder",
        parameters=2 * (width * (width + 1) + norm.parameters(width)),
        flops=2 * 2 * length * width**2,
        reach=Reach(left=0, right=UNBOUNDED),
        saved=2 * length * (3 * width + norm.saved(width)),
    )


def output_part(context: CostContext, positions: int, inputs: int | None = None) -> ModelPart:
    """What makes outputs at each of the positions, from vectors of the model's width or `inputs` wide.

    Saved are its inputs, the mask of dropout, the targets and their loss: the softmax of a distribution and
    tokens of eight bytes each, or else the outputs; and its inputs once more where they are projected for the
    first cluster. How much a clustered vocabulary costs depends on the
    data: all targets are taken to be in the first cluster, the one that most tokens are of.
    """
    config, inputs = context.config, inputs or context.width
    outputs, plane = config.outputs, positions * inputs
    projected = plane if config.project_first_cluster else 0
    if config.targets is not None:
        parameters, loss = (
            outputs * (inputs + config.output_bias),
            (2 + (config.output_act != "none")) * outputs,
        )
    elif config.classes is not None:
        parameters, loss = outputs * (inputs + config.output_bias), outputs + 2
    else:
        parameters, loss = _softmax_parameters(config, inputs), outputs + 2
    dropped = 2 * plane if config.embedding_dropout else 0
    if config.logit_cap is not None:  # the hyperbolic tangent of each logit
        loss += outputs
    return ModelPart(
        label="output",
        parameters=parameters,
        flops=2 * plane * outputs + 2 * projected * inputs,
        saved=dropped + projected + positions * loss,
        saved_once=outputs * inputs if config.cutoffs else 0,  # the head's weights side by side
        saves_input=not config.embedding_dropout,
    )


def _softmax_parameters(config: ModelConfig, inputs: int) -> int:
    """Those of the softmax beside what it has in common with the embedding.

    The head has a vector for each cluster but the first. What is not tied has its own tables and
    projections, and biases unless the output has none.
    """
    others, bias = len(config.cutoffs), int(config.output_bias)
    if config.tied:
        return others * inputs + (config.symbols + others if config.tied_bias else 0)
    tables = sum(cluster.size * (cluster.width + bias) for cluster in config.clusters[1:])
    projections = sum(inputs * cluster.width for cluster in config.clusters if cluster.projected)
    return (config.clusters[0].size + others) * (inputs + bias) + tables + projections
