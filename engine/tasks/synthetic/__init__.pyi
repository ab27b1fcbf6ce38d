from .state_tracking import group_elements as group_elements
from .state_tracking import multiplication_table as multiplication_table
