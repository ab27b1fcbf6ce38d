from .blocks import build as build
from .engine.probes import probe_study as probe_study
from .engine.probes import tune_study as tune_study
from .engine.run.driver import run_study as run_study
from .errors import ActivememError as ActivememError
from .grammar import Budget as Budget
from .grammar import Reach as Reach
from .grammar import Recipe as Recipe
from .grammar import RecipeError as RecipeError
from .grammar import Space as Space
from .grammar import analyse as analyse
from .grammar import parse as parse
from .grammar.block_names import *  # noqa: F403 -- every block under its name
from .grammar.expressions import block as block
from .grammar.expressions import choice as choice
from .grammar.expressions import hole as hole
from .grammar.expressions import integer as integer
from .grammar.expressions import real as real
from .grammar.expressions import tied as tied
from .plugins import PluginError as PluginError
from .plugins import load_plugin as load_plugin
from .reporting.recipes.display import compare_recipes as compare_recipes
from .reporting.recipes.display import show_recipe as show_recipe
from .reporting.results import StudyResults as StudyResults
from .reporting.results import open_study as open_study
from .storage import Store as Store
from .studies.catalog.metrics import register_metric as register_metric
from .studies.catalog.tasks import IGNORED as IGNORED
from .studies.catalog.tasks import Examples as Examples
from .studies.catalog.tasks import GeneratedTask as GeneratedTask
from .studies.catalog.tasks import TaskSizes as TaskSizes
from .studies.catalog.tasks import register_task as register_task
from .studies.study import Study as Study
from .studies.study import load_study as load_study
from .studies.text.errors import StudyError as StudyError

__version__: str
