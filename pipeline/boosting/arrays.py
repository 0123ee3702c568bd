"""The array types of all signatures."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Float32s = NDArray[np.float32]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Weights = Floats | None  # of rows; None means all 1
