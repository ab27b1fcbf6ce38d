from .packer import Packer as Packer
from .packer import alone_reason as alone_reason
from .packer import form_of as form_of
from .stacked_steps import PackError as PackError
from .stacked_steps import StackedSteps as StackedSteps
from .stacked_steps import stacking_fault as stacking_fault
