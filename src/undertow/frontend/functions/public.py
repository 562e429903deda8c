"""The functions of Undertow, named as in the Python array API standard.

Each accepts traced values, NumPy arrays and scalars, Python numbers and lists. With nothing traced they compute at
once, with the reference kernels.
"""

from undertow.frontend.functions.array import *  # noqa: F403
from undertow.frontend.functions.creation import *  # noqa: F403
from undertow.frontend.functions.debug import *  # noqa: F403
from undertow.frontend.functions.elementwise import *  # noqa: F403
from undertow.frontend.functions.linalg import *  # noqa: F403
from undertow.frontend.functions.parts import *  # noqa: F403
from undertow.frontend.functions.plain import *  # noqa: F403
from undertow.frontend.functions.reduction import *  # noqa: F403
from undertow.frontend.functions.selecting import *  # noqa: F403
from undertow.frontend.functions.sowing import *  # noqa: F403
from undertow.frontend.functions.standard import *  # noqa: F403
from undertow.frontend.values.traced import FUNCTIONS as _FUNCTIONS

_FUNCTIONS.update({name: function for name, function in globals().items() if not name.startswith("_")})

from undertow.frontend.functions import as_numpy as _as_numpy  # noqa: E402, F401 - it needs all of these functions
from undertow.frontend.values import assignment as _assignment  # noqa: E402, F401 - so does `x[i]`
