from .conformance import STUDY as STUDY
from .optuna_study import OptunaStudy as OptunaStudy
from .optuna_study import make_pruner as make_pruner
from .optuna_study import optuna_sampler_maker as optuna_sampler_maker
from .search import Search as Search
from .stored_points import BegunPoints as BegunPoints
from .stored_points import PointEnd as PointEnd
from .stored_points import StoredPoints as StoredPoints
