"""Where a narrower model lies within the flat parameter vector of the whole one."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reproduce.models.count import Shapes


def positions(whole: Shapes, part: Shapes, offset: int = 0) -> NDArray[np.int64]:
    """Positions [P_part] in the whole model's vector of the parameters of `part`, in the order of `part`.

    `part` has the same parameters, or some of them, with shorter axes. An axis of length c cut to k < c keeps the
    indices offset, offset + 1, ..., offset + k - 1 modulo c; an axis that is not cut (classes, image channels) stays in
    order. All axes of one length are cut alike, so that a layer's inputs are the outputs of the layer before.
    """
    start, found = 0, []
    for name, shape in whole.items():
        if name in part:
            axes = [(np.arange(k) + (offset if k < c else 0)) % c for c, k in zip(shape, part[name], strict=True)]
            found.append(start + np.ravel_multi_index(np.ix_(*axes), shape).ravel())
        start += math.prod(shape)
    return np.concatenate(found)
