from .encoders import EncoderProbe as EncoderProbe
from .encoders import quantiles as quantiles
from .encoders import theta as theta
from .lm_evaluation import EvaluationError as EvaluationError
from .lm_evaluation import evaluate_study as evaluate_study
from .trained_models import load_kept_model as load_kept_model
from .trained_models import trained_trials as trained_trials
