"""Types of NumPy arrays, by what they hold. Shapes stand in the docstrings of those who use them."""

import numpy as np
from numpy.typing import NDArray

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
