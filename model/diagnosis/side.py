"""Is a map self-attention or cross-attention, as far as the arrays give it away?"""

from __future__ import annotations

import numpy as np

from .inputs import Arrays


def side(arrays: Arrays) -> str:
    """``self`` or ``cross`` where the name of the map, the shape, or the two paddings give it away, else empty."""
    _, _, _, queries, keys = arrays.sizes
    if arrays.map:
        return "cross" if arrays.map == "cross" else "self"
    if queries > keys:
        return "cross"
    if arrays.query_keep is not None and arrays.key_keep is not None:
        same = np.array_equal(arrays.query_keep, arrays.key_keep[:, -queries:])
        if not same:
            return "cross"
        return "" if arrays.key_keep.all() or queries != keys else "self"
    return ""
