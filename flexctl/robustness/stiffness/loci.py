"""Eigenvalues over an error as curves: which of one spectrum is which of the next."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.robustness.stiffness.record import Locus


def follow(locus: Locus) -> ComplexArray:
    """Eigenvalues (k, N) of a locus, one column per branch, in the order they have at alpha = 0.

    Each goes to where its last step leads, all together by the least sum of relative distances.
    Branches that meet between two errors may be exchanged there: it is for drawing.
    """
    middle = int(np.abs(locus.alpha).argmin())
    poles = [np.asarray(values, dtype=complex) for values in locus.poles]
    above = _followed(locus.alpha[middle:], poles[middle:])
    below = _followed(locus.alpha[middle::-1], poles[middle::-1])
    return np.array([*below[:0:-1], *above])


def _followed(alpha: Array, poles: list[ComplexArray]) -> list[ComplexArray]:
    found = poles[:1]
    for k in range(1, len(poles)):
        expected = found[-1]
        if k > 1:
            step = (alpha[k] - alpha[k - 1]) / (alpha[k - 1] - alpha[k - 2])
            ahead = step * (found[-1] - found[-2])
            expected = expected + ahead * np.minimum(
                1, np.abs(expected) / (4 * np.abs(ahead) + 1e-300)
            )
        gap = np.abs(expected[:, None] - poles[k]) / (np.abs(expected)[:, None] + 1e-12)
        found.append(poles[k][scipy.optimize.linear_sum_assignment(gap)[1]])
    return found
