"""The exceptions of this package, grouped by what a user can do about them.

ActivememError              a ValueError
    correct the input
        RecipeError         a recipe, with all of its faults          activemem.grammar.errors
        ModelConfigError    invalid settings of a model               activemem.grammar.model_config
        OtherLayerError     a layer that cannot be compared with ours activemem.blocks.testing.other_layers
        BuildError          a recipe that cannot become a module      activemem.blocks.core.block
        StudyError          a study file, with all of its faults      activemem.studies.text.errors
        InvalidTableError   an invalid table of a file, without lines activemem.studies.text.strict_model
            InvalidSettingsError invalid settings of a trial          activemem.studies.resolve.template
        SettingsError       the settings of a machine                 activemem.cli.machine_settings
        PointError          a point outside the space of a search     activemem.engine.run.search.proposals
        ResourceError       invalid resources of trials               activemem.engine.core.resources
        AcceleratorError    a GPU with unknown peak performance       activemem.studies.planning.accelerators
    change the request
        SpaceError          a request that a space cannot fulfil      activemem.grammar.space
        TaskError           an unknown task, or an invalid length     activemem.studies.catalog.tasks.spec
        CorpusError         an unknown corpus, or unsupported tokens  activemem.studies.catalog.datasets
            RowsError       invalid rows of a data file               activemem.studies.own_data.cells
        NearestError        a query without stored results            activemem.reporting.recipes.nearest
        TableError          a table that does not fit its study       activemem.reporting.tables.table
        CurveError          a figure that does not fit its study      activemem.reporting.curves.curve
        ClaimError          a claim that does not fit its study       activemem.reporting.claims.verdicts
        StatisticsError     values without the requested statistic    activemem.reporting.statistics.estimates
        PluginError         a plug-in that cannot be loaded           activemem.plugins
        QueryError          SQL that cannot be answered               activemem.reporting.sql
        PromotionError      a search without winners to confirm       activemem.reporting.search.promotion
        MissingError        ablations that no study can express       activemem.reporting.missing_ablations
        ProbeError          a model that cannot be probed             activemem.engine.probes.trained_models
        EvaluationError     tasks that lm_eval cannot evaluate        activemem.engine.probes.lm_evaluation
        CoordinateError     models that are not comparable by width   activemem.engine.probes.coordinates
        KeptModelError      a model that was not saved                activemem.reporting.kept_models
        UseError            a use that a model does not support       activemem.engine.inference.trained_model
        InputError          an input line that a model cannot read    activemem.engine.inference.predictions
        GenerationError     invalid settings of generation  activemem.engine.inference.text_generation
        ServeError          pages that cannot be served this way      activemem.reporting.serve.http_server
        ExportError         a model that cannot be exported           activemem.engine.inference.export
    change the model or how it is trained
        LeakError           a causal model that sees later inputs     activemem.engine.trial.evaluation
        NotANumberError     a loss that is not finite                 activemem.engine.trial.training
        ParameterGroupError patterns without matching weights         activemem.engine.optimisers.build
        PackError           trainings that cannot share a batch       activemem.engine.packs.stacked_steps
        LossTermError       an invalid value of a loss term           activemem.engine.trial.training_parts
        CallbackError       a callback with unregistered metrics      activemem.engine.trial.training_parts
        OptimizerError      an optimiser that omits a weight          activemem.engine.optimisers.build
        PrecisionError      a precision that a device cannot use      activemem.engine.core.models
        CompileModeError    a compile mode that needs a GPU           activemem.engine.optimisers.weights
    repair the machine
        TrackingError       a tracker that cannot be used             activemem.tracking.contract
        MachineError        a full disk, no GPU, a module missing     activemem.engine.trial.failures
            HeadLostError   a Ray cluster without its head            activemem.engine.trial.failures
        BucketError         a bucket that cannot be reached           activemem.storage.bucket
    get or restore the files
        DataError           data that are missing or altered          activemem.engine.corpora.files
        ModelFileError      a model file that cannot be used          activemem.engine.core.models
        WeightsError        released weights that do not fit          activemem.blocks.models.released_weights
        WeightRoleError     invalid roles of weights                  activemem.blocks.core.initialisation
        NodeError           unfit nodes of a cluster                  activemem.engine.run.cluster_nodes
        StoreError          an invalid store or row                   activemem.storage.errors
            DamagedError    a file that changed after it was written  activemem.storage.errors
            ForeignError    a file that activemem did not write       activemem.storage.errors
            UnreadableError a path that cannot be read as a file      activemem.storage.errors
"""

import reprlib
from collections.abc import Collection, Mapping
from math import isfinite
from numbers import Integral, Real

from .diagnostics import printable, replace_unprintable


class ActivememError(ValueError):
    """The base class of this package's errors; messages name the expected value and the given value.

    The message quotes text of others and is safe to show: a stand-in replaces each control character except
    line ends and tabs.
    """

    def __str__(self) -> str:
        return replace_unprintable(super().__str__())


def check_arguments(*faults: str | None, error: type[ActivememError] = ActivememError) -> None:
    """Raise one error with all faults of a function's arguments if there are any."""
    if found := [fault for fault in faults if fault is not None]:
        raise error("\n".join(found))


def argument_fault(
    name: str, value: object, kinds: type | tuple[type, ...], expected: str | None = None
) -> str | None:
    """Return a message if an argument's type is none of `kinds`, else None."""
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool)):
        return None
    return f"{name}: expected {expected or with_article(kinds[0].__name__)}, got {describe_value(value)}"


def number_fault(
    name: str,
    value: object,
    *,
    least: int | None = None,
    above: int | None = None,
    whole: bool = True,
    optional: bool = False,
) -> str | None:
    """Return a message if an argument is not a finite number within its bound, else None."""
    if optional and value is None:
        return None
    bound = f"of at least {least}" if above is None else f"above {above}"
    expected = f"{'a whole' if whole else 'a'} number {bound}"
    fault = argument_fault(name, value, Integral if whole else Real, expected)
    if fault is not None or not isinstance(value, Real):
        return fault
    number = value if isinstance(value, int) else float(value)
    within = number > above if above is not None else least is None or number >= least
    if within and (isinstance(number, int) or isfinite(number)):
        return None
    return f"{name}: expected {expected}, got {describe_value(value)}"


def texts_fault(name: str, values: object, example: str) -> str | None:
    """Return a message if an argument is not a list of texts, else None."""
    is_one = isinstance(values, str | bytes | Mapping)
    if isinstance(values, Collection) and not is_one and all(isinstance(each, str) for each in values):
        return None
    return f"{name}: expected a list of texts, such as {example}, got {describe_value(values)}"


def describe_value(value: object) -> str:
    """Return the `repr` of plain data, shortened if it is long, and the type of any other value."""
    if value is None or isinstance(value, str | Real | list | tuple | dict | set):
        return printable(reprlib.repr(value))
    return with_article(type(value).__name__)


def with_article(noun: str) -> str:
    """Return a noun with its article, `a` or `an`."""
    return f"{'an' if noun[0] in 'AEIOUaeiou' else 'a'} {noun}"
