"""Eigenvalues of the loop from the numbers of the file to those that tuning found."""

from __future__ import annotations

import numpy as np
import scipy  # its parts are imported where they are used

from flexctl.checks import Array, ComplexArray
from flexctl.errors import ComputationError, DesignError
from flexctl.search.tuning.loops_of_arms import LostError
from flexctl.search.tuning.problem import Problem
from flexctl.search.tuning.spectra import Case, Spectrum

_POINTS = 61
_LEAST = 1e-12  # of a sampled loop's |z|: what is smaller has no logarithm to speak of


def eigenvalue_path(problem: Problem, start: Array, end: Array) -> ComplexArray:
    """Return eigenvalues (k, n) [rad/s] at the final pose, on the straight way between two places.

    The way is straight on the scales of the free numbers; each column follows an eigenvalue to the
    nearest ones. Rows are NaN where there is no loop, and of one place there is one row. Of a
    sampled loop they are log(z)/T.
    """
    way = [end] if np.array_equal(start, end) else list(np.linspace(start, end, _POINTS))
    rows = list[ComplexArray]()
    for u in way:
        found = _eigenvalues(problem, u)
        known = [row for row in rows if np.isfinite(row).all() and len(row)]
        if found is None or (known and len(found) != len(known[-1])):
            found = np.full(len(known[-1]) if known else 0, np.nan, dtype=complex)
        elif known:
            found = _in_order(known[-1], found)
        rows.append(found)
    most = max(map(len, rows))
    lost = np.full(most, np.nan, dtype=complex)
    return np.array([row if len(row) == most else lost for row in rows])


def _eigenvalues(problem: Problem, u: Array) -> ComplexArray | None:
    try:
        closed = problem.point(u, slopes=False).matrix(Case())
    except (LostError, ComputationError, DesignError):
        return None
    if closed.sample_time is None:
        return Spectrum.of(closed, vectors=False).values
    z = np.linalg.eigvals(closed.A).astype(complex)
    logarithms: ComplexArray = np.log(np.where(np.abs(z) > _LEAST, z, _LEAST).astype(complex))
    return logarithms / closed.sample_time


def _in_order(before: ComplexArray, now: ComplexArray) -> ComplexArray:
    """Sort eigenvalues so that each stands where the nearest one stood before, all in all."""
    apart = np.abs(before[:, None] - now[None, :])
    rows, columns = scipy.optimize.linear_sum_assignment(apart)
    return now[columns[np.argsort(rows)]]
