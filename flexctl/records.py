"""What every record can do: its numbers as plain ones."""

import math
from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Numbers, lists and dictionaries that JSON knows; NaN and infinity become None."""
    if isinstance(value, dict):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
