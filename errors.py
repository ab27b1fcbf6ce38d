"""What is raised when an input is wrong, all under one root.

ActivememError      a ValueError
├── RecipeError     a recipe, with all of its faults        activemem.grammar
├── ModelConfigError
│                   settings of a model that cannot be      activemem.grammar
├── SpaceError      what cannot be asked of a space         activemem.grammar
├── BuildError      a recipe that cannot become a module    activemem.blocks
├── StudyError      a study file, with all of its faults    activemem.studies.study
├── TableError      a table that does not fit its study     activemem.reporting.tables.table
├── CurveError      a figure that does not fit its study   activemem.reporting.curves.curve
├── ClaimError      claims that a study does not make       activemem.reporting.claims.verdicts
├── StatisticsError values of which nothing can be said    activemem.reporting.statistics.estimates
├── TaskError       a task, or a length that it cannot have activemem.studies.catalog.tasks
├── CorpusError     a text, or tokens that it cannot have   activemem.studies.catalog.corpora
├── DataError       a text that is not here, or another     activemem.engine.corpora
├── DecodingError   what cannot be decoded in this way      activemem.engine.decoding
├── QueryError      SQL that cannot be answered             activemem.reporting.sql
├── StoreError      a store, or a row that cannot be kept   activemem.storage
└── SettingsError   the settings of a machine               activemem.cli.machine_settings
"""


class ActivememError(ValueError):
    """Something that was given to activemem is wrong; the message says what was expected and what came."""
