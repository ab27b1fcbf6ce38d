from .analyse import block_cost as block_cost
from .analyse import block_memory as block_memory
