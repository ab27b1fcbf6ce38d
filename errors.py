"""The exceptions of this package, checks of arguments, and the faults of a text: spans, carets, near names.

The exceptions are grouped by what a user can do about them.

ActivememError              a ValueError
    correct the input
        RecipeError         a recipe, with all of its faults          activemem.grammar.errors
        ModelConfigError    invalid settings of a model               activemem.grammar.model_config
        BuildError          a recipe that cannot become a module      activemem.blocks.core.block
        StudyError          a study file, with all of its faults      activemem.studies.text.errors
        InvalidTableError   an invalid table of a file, without lines activemem.studies.text.strict_model
            InvalidSettingsError invalid settings of a trial          activemem.studies.resolve.template
        ClaimFaultError     a claim's fault, inside a StudyError      activemem.studies.claims.parser
        FaultyValueError    a value of one's own data that is unfit   activemem.studies.own_data.formats
        SettingsError       the settings of a machine                 activemem.cli.machine_settings
        ResourceError       invalid resources of trials               activemem.engine.core.resources
        AcceleratorError    a GPU with unknown peak performance       activemem.studies.planning.accelerators
    change the request
        SpaceError          a request that a space cannot fulfil      activemem.grammar.space
        TaskError           an unknown task, or an invalid length     activemem.studies.catalog.tasks.spec
        CorpusError         an unknown corpus, or unsupported tokens  activemem.studies.catalog.datasets
        TableError          a table that does not fit its study       activemem.reporting.tables.table
        CurveError          a figure that does not fit its study      activemem.reporting.curves.curve
        ClaimError          a claim that does not fit its study       activemem.reporting.claims.verdicts
        RunsError           runs of others that allow no verdict      activemem.studies.judged.files
        StatisticsError     values without the requested statistic    activemem.reporting.statistics.estimates
        PluginError         a plug-in or a part that cannot be used   activemem.plugins
            ReusedModuleError a part that returns one module twice    activemem.blocks.core.plugin_parts
        ConformanceError    norms or positions that fail a check  activemem.blocks.testing.frame_conformance
        QueryError          SQL that cannot be answered               activemem.reporting.sql
        PromotionError      a search without winners to confirm       activemem.reporting.search.promotion
        MissingError        ablations that no study can express       activemem.reporting.missing_ablations
        ProbeError          a model that cannot be probed             activemem.engine.probes.trained_models
        EvaluationError     tasks that lm_eval cannot evaluate        activemem.engine.probes.lm_evaluation
        KeptModelError      a model that was not saved                activemem.reporting.kept_models
        UseError            a use that a model does not support       activemem.engine.inference.trained_model
        InputError          an input that a model cannot read         activemem.blocks.core.block
        GenerationError     invalid settings of generation  activemem.engine.inference.text_generation
        ServeError          pages that cannot be served this way      activemem.reporting.serve.http_server
    change the model or how it is trained
        LeakError           a causal model that sees later inputs     activemem.engine.trial.evaluation
        NotANumberError     a loss that is not finite                 activemem.engine.trial.evaluation
        ParameterGroupError patterns without matching weights         activemem.engine.optimisers.build
        LossTermError       an invalid value of a loss term           activemem.engine.trial.training_parts
        CallbackError       a callback with unregistered metrics      activemem.engine.trial.training_parts
        OptimizerError      an optimiser that omits a weight          activemem.engine.optimisers.build
        PrecisionError      a precision that a device cannot use      activemem.engine.core.models
        StartError          a trained model that cannot be a start    activemem.engine.core.start
    repair the machine
        TrackingError       a tracker that cannot be used             activemem.tracking.contract
        MachineError        a full disk, no GPU, a module missing     activemem.engine.trial.failures
            HeadLostError   a Ray cluster without its head            activemem.engine.trial.failures
        BucketError         a bucket that cannot be reached           activemem.storage.bucket
    get or restore the files
        DataError           data that are missing or altered          activemem.engine.corpora.files
        ModelFileError      a model file that cannot be used          activemem.engine.core.models
        WeightRoleError     invalid roles of weights                  activemem.blocks.core.initialisation
        NodeError           unfit nodes of a cluster                  activemem.engine.run.cluster_nodes
        StoreError          an invalid store or row                   activemem.storage.errors
            DamagedError    a file that changed after it was written  activemem.storage.errors
            ForeignError    a file that activemem did not write       activemem.storage.errors
            UnreadableError a path that cannot be read as a file      activemem.storage.errors
"""

from __future__ import annotations

import math
import re
import reprlib
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from operator import index
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MAX_FAULTS = 50
"""The maximum number of faults of a text; after it the text is not checked any further."""

MAX_SHOWN_FAULTS = 30
"""The maximum number of faults that a message shows; it has the number of the others."""

MAX_SHOWN_IN_LINE = 10
"""The maximum number of faults that a message shows of one line; more often have one cause."""

MAX_UNCUT_WIDTH = 100
"""The number of columns up to which a text is shown whole; a longer text is cut around each fault."""

CONTEXT_WIDTH = 30
"""The number of columns shown on each side of a fault in a longer text."""

MIN_SHARED_LETTERS = 3
"""The minimum number of letters that a name must share with a word of another spelling to be near it."""

MAX_KNOWN = 40
"""A message lists all known names if there are no more than this."""

MAX_ALIKE = 5
"""The number of names that a message lists if more than MAX_KNOWN are known."""

MAX_QUOTE_LENGTH = 40
"""The maximum number of characters that a message quotes from a text."""


class ActivememError(ValueError):
    """The base class of this package's errors; messages name the expected value and the given value.

    A message may quote foreign text, and is safe to print: each control character except line ends and tabs
    is replaced.
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
    most: int | None = None,
    above: int | None = None,
    whole: bool = True,
    optional: bool = False,
) -> str | None:
    """Return a message if an argument is not a finite number within its bounds, else None."""
    if optional and value is None:
        return None
    bound = f"of at least {least}" if above is None else f"above {above}"
    expected = f"{'a whole' if whole else 'a'} number {bound}"
    fault = argument_fault(name, value, Integral if whole else Real, expected)
    if fault is not None or not isinstance(value, Real):
        return fault
    number = value if isinstance(value, int) else float(value)
    within = number > above if above is not None else least is None or number >= least
    if within and most is not None and number > most:
        return f"{name}: expected at most {most:,}, got {describe_value(value)}"
    if within and (isinstance(number, int) or math.isfinite(number)):
        return None
    return f"{name}: expected {expected}, got {describe_value(value)}"


def texts_fault(name: str, values: object, example: str) -> str | None:
    """Return a message if an argument is not a list of texts, else None."""
    is_one = isinstance(values, str | bytes | Mapping)
    if isinstance(values, Collection) and not is_one and all(isinstance(each, str) for each in values):
        return None
    return f"{name}: expected a list of texts, such as {example}, got {describe_value(values)}"


_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "a number above {gt:.10g}",
    "greater_than_equal": "at least {ge:.10g}",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "less_than": "a number below {lt:.10g}",
    "less_than_equal": "at most {le:.10g}",
    "list_type": "a list",
    "model_type": "a table",
    "string_pattern_mismatch": "a letter, then up to 99 letters, digits, '-', '_' or '.'",
    "string_too_short": "a text that is not empty",
    "string_type": "a text",
    "string_unicode": "a text in UTF-8",
    "tuple_type": "a list",
}


def validation_fault(error: ErrorDetails, shown: str) -> str:
    """Return what one of Pydantic's errors says of a value, as `expected …, got …`; `shown` is the value."""
    given, context = error["input"], error.get("ctx", {})
    match error["type"]:
        case "value_error":
            return str(context["error"])
        case "literal_error":
            names = re.findall(r"'([^']*)'", context["expected"])
            near = hint(given, names) if isinstance(given, str) else ""
            return f"expected {context['expected']}, got {shown}{near}"
        case kind:
            return f"expected {_EXPECTED[kind].format_map(context)}, got {shown}"


def plain_value(value: Any) -> Any:  # noqa: ANN401 -- any argument of a user
    """Return a number or truth value of another library, such as numpy's int64, as one of Python."""
    if isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return float(value)
    shape = getattr(value, "shape", ())
    with suppress(AttributeError, RuntimeError, TypeError):  # such as a tensor on the meta device
        if isinstance(shape, tuple) and not shape:
            return value.item() if hasattr(value, "item") else index(value)
    return float(value) if isinstance(value, Real) else value


def describe_value(value: object) -> str:
    """Return the `repr` of plain data, shortened if it is long, and the type of any other value."""
    value = plain_value(value)
    if value is None or isinstance(value, str | Real | list | tuple | dict | set):
        return printable(reprlib.repr(value))
    return with_article(type(value).__name__)


def with_article(noun: str) -> str:
    """Return a noun with its article, `a` or `an`."""
    return f"{'an' if noun[0] in 'AEIOUaeiou' else 'a'} {noun}"


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a text, from `start` up to `end`.

    `detected_at` is where the parser noticed the fault, if not at its start. Faults are reported in the order
    in which the parser notices them.
    """

    start: int
    end: int
    message: str
    detected_at: int | None = None

    @property
    def sort_key(self) -> tuple[int, int]:
        """Return the position where the parser noticed the fault, then the start of the fault."""
        return (self.start if self.detected_at is None else self.detected_at, self.start)


class FaultCollector:
    """A collection of the faults of one text, filled while the text is read and checked.

    It is true if it has a fault. The parser and the checks share a collection, so one error has all faults.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._faults: list[Fault] = []

    def __bool__(self) -> bool:
        return bool(self._faults)

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._faults)

    @property
    def is_full(self) -> bool:
        """Return whether the limit of faults is reached, so that checking can stop."""
        return len(self._faults) >= MAX_FAULTS

    def add(self, start: int, end: int, message: str, detected_at: int | None = None) -> None:
        """Add a fault unless the limit is reached."""
        if not self.is_full:
            self._faults.append(Fault(start, end, message, detected_at))

    def quote(self, start: int, end: int) -> str:
        """Return a piece of the text in the form that messages quote: printable and short."""
        return quoted(self.text[start:end].strip())


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to a word, or None if no name is similar.

    The first of these that exists is nearest:

    1. the shortest name that begins with the word, such as `test_accuracy` with `test_acc`;
    2. the shortest name with all parts of the word, such as `test_macro_f1` with `test_f1`;
    3. a name that differs by a typing slip;
    4. a name that is a whole part of the word, such as `bleu` of `test_bleu`;
    5. a name with a similar spelling;
    6. a name that shares a beginning, such as `conv` and `convolution`, or a part.

    Capitals, `-` and `_` do not matter.
    """
    names = {_spelling(name): name for name in sorted(known)}
    asked = _spelling(word)
    begun = [name for name in names if name.startswith(asked)] if len(asked) >= MIN_SHARED_LETTERS else []
    words = {*asked.split("_")}
    within = [name for name in names if len(words) > 1 and words <= {*name.split("_")}]
    if found := begun or within:
        return names[min(found, key=len)]
    parts = [part for part in asked.split("_") if part in names and len(part) >= MIN_SHARED_LETTERS]
    for cutoff in (0.8, 0.6):
        if close := get_close_matches(asked, names, n=1, cutoff=cutoff):
            return names[close[0]]
        if parts:
            return names[max(parts, key=len)]
    shared = [(_shared_letters(asked, name), name) for name in names]
    letters, name = max(shared, key=lambda each: (each[0], -len(each[1])), default=(0, ""))
    return names[name] if letters >= MIN_SHARED_LETTERS else None


def _spelling(name: str) -> str:
    return name.lower().replace("-", "_")


def _shared_letters(word: str, name: str) -> int:
    """Return the length of the shorter name if it begins the other, else of their longest common part."""
    if word.startswith(name) or name.startswith(word):
        return min(len(word), len(name))
    return max(map(len, {*word.split("_")} & {*name.split("_")}), default=0)


def hint(word: str, known: Iterable[str]) -> str:
    """Return `; nearest: NAME`, to append to a message about an unknown name, or "" if none is similar."""
    near = nearest(word, known)
    return f"; nearest: {near}" if near else ""


def nearest_hint(word: str, known: Iterable[str]) -> str:
    """Return a hint to the nearest known name, to append to a message about an unknown name.

    If no name is near, list all known names or, of very many, those with the most similar spelling.
    """
    names = sorted(known, key=_number_or_text)
    if near := hint(word, names):
        return near
    if len(names) > MAX_KNOWN:
        alike = get_close_matches(_spelling(word), names, n=MAX_ALIKE, cutoff=0.0)
        return f"; {len(names)} are known, the most similar: {', '.join(alike)}"
    return f"; known: {', '.join(names)}" if names else ""


def _number_or_text(name: str) -> tuple[float, str]:
    """Return a sort key that puts numbers first, by value."""
    try:
        return float(name), name
    except ValueError:
        return math.inf, name


def draw_carets(text: str, start: int, end: int) -> tuple[str, str]:
    """Return the line of a span, shortened if it is long, and a second line with carets below the span."""
    shown, offset = text, 0
    if len(text) > MAX_UNCUT_WIDTH:
        first, end = max(start - CONTEXT_WIDTH, 0), min(end, start + CONTEXT_WIDTH)
        before, after = "…" if first else "", "…" if end + CONTEXT_WIDTH < len(text) else ""
        shown, offset = before + text[first : end + CONTEXT_WIDTH] + after, first - len(before)
    return printable(shown), " " * (start - offset) + "^" * max(1, end - start)


def describe_character(character: str) -> str:
    """Return a character if it can be printed, with its code point and name if it is not plain ASCII."""
    if character.isascii() and character.isprintable():
        return f"'{character}'"
    code = f"U+{ord(character):04X}"
    name = unicodedata.name(character, "")
    shown = f"'{character}' " if printable(character) == character else ""
    return f"{shown}{code}{' ' + name if name else ''}"


def printable(text: str) -> str:
    """Return the text with a replacement for each character that does not fill one column."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        " " if c in "\t\r\n" else c if _is_one_column(c) else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def quoted(text: str) -> str:
    """Return the beginning of a text as one printable line, for a message."""
    shown = printable(text[: MAX_QUOTE_LENGTH + 1])
    return shown if len(text) <= MAX_QUOTE_LENGTH else f"{shown[: MAX_QUOTE_LENGTH - 1]}…"


def replace_unprintable(text: str) -> str:
    """Return the text with the character U+FFFD in place of every character that must not be shown.

    These are control characters, except line ends and tabs, and characters that change the direction of
    writing. Text from others must not bring them to a page, or to a terminal, which would obey them.
    """
    if text.isascii() and text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(c if c in "\n\t" or _is_shown(c) else "\N{REPLACEMENT CHARACTER}" for c in text)


def _is_shown(character: str) -> bool:
    """Return whether a character can be shown: it is printable, or a space of any width."""
    return character.isprintable() or unicodedata.category(character) == "Zs"


def _is_one_column(character: str) -> bool:
    """Return whether a character fills one column in a terminal: it is not wide, combining or a control."""
    if character.isascii():
        return character.isprintable()
    wide = unicodedata.east_asian_width(character) in "WF" or unicodedata.combining(character) > 0
    return character.isprintable() and not wide and unicodedata.category(character) not in ("Mn", "Me")
