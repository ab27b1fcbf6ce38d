from .spec import REQUIRED as REQUIRED
from .spec import SPECS as SPECS
from .spec import VECTOR as VECTOR
from .spec import builtin_names as builtin_names
from .spec import nearest_block as nearest_block
from .spec import output_kind as output_kind
from .spec import spec_of as spec_of
