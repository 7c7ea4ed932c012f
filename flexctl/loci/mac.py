"""Branches of one discretisation beside those of another: the modal assurance criterion (MAC)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from flexctl.checks import Array, ComplexArray
from flexctl.errors import InputError
from flexctl.loci.family import Branch, Loci

LEAST_MAC = 0.5  # above it one motion is more of the other than of all the rest
_NOTHING = 1e-300
_SWINGS = 0.05  # |Im| over |lambda| of what swings


@dataclass(frozen=True, kw_only=True)
class MatchedBranch:
    """Which eigenvalue of another discretisation a branch is, along its way.

    Attributes
    ----------
    branch
        The branch of the first one.
    index
        Branch of the other one at every point (k,); -1 where none matches: where the MAC is 1/2 or
        less, or the branch does not swing.
    mac
        Modal assurance criterion of what both move (k,) [-].
    values
        Eigenvalues of the other one (k,) [1/s], NaN where there is none.
    """

    branch: Branch
    index: NDArray[np.int64]
    mac: Array
    values: ComplexArray

    @property
    def ratio(self) -> Array:
        """Im of the other over Im of the branch (k,) [-], NaN where there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.index < 0, np.nan, self.values.imag / self.branch.values.imag)


def match_branches(first: Loci, second: Loci) -> tuple[MatchedBranch, ...]:
    """Find for every pair of `first` that swings the one of `second` that moves the arm alike.

    At every point of the parameter by itself, as `match_fields` does: where a branch turns away
    from another in one discretisation and not in the other, what matches changes its branch.

    Raises
    ------
    InputError
        When the grids differ, or fields were not kept.
    """
    if not np.array_equal(first.s, second.s):
        raise InputError("match_branches: expected the same values of the parameter, got others")
    if first.fields is None or second.fields is None:
        raise InputError("match_branches: expected branches with their fields, got some without")
    index = np.full((len(first.s), len(first.branches)), -1)
    mac = np.zeros(index.shape)
    for k in range(len(first.s)):
        own, others = _swinging_at(first, k), _swinging_at(second, k)
        columns, size = match_fields(first.fields[k][:, own], second.fields[k][:, others])
        mac[k, own] = size
        index[k, own] = np.where(size > LEAST_MAC, np.append(others, -1)[columns], -1)
    return tuple(
        _matched(branch, second, index[:, i], mac[:, i])
        for i, branch in enumerate(first.branches)
        if (mac[:, i] > 0).any()
    )


def swinging(values: ComplexArray) -> NDArray[np.int64]:
    """Return which of the eigenvalues (p,) swing and lie in the upper half plane."""
    return np.flatnonzero(values.imag > _SWINGS * np.abs(values))


def _swinging_at(loci: Loci, k: int) -> NDArray[np.int64]:
    return swinging(np.array([branch.values[k] for branch in loci.branches], dtype=complex))


def _matched(branch: Branch, other: Loci, index: Array, mac: Array) -> MatchedBranch:
    values = np.array([one.values for one in other.branches])[index, np.arange(len(index))]
    values = np.where(index < 0, complex(np.nan, np.nan), values)
    return MatchedBranch(branch=branch, index=index, mac=mac, values=values)


def match_fields(first: ComplexArray, second: ComplexArray) -> tuple[Array, Array]:
    """Assign to every column of one table of fields a column of another by the MAC.

    The modal assurance criterion |a^H b|^2 / (|a|^2 |b|^2) is 1 for the same motion of the lines.
    No column is assigned twice; the sum of the criteria is the largest possible.

    Parameters
    ----------
    first, second
        Fields F v of eigenvectors v, (G, p) and (G, r).

    Returns
    -------
    tuple[Array, Array]
        Column of `second` (p,), -1 where none is left, and its MAC (p,) [-].
        Source: [Allemang03].
    """
    a, b = (F / np.maximum(np.linalg.norm(F, axis=0), _NOTHING) for F in (first, second))
    mac = np.abs(a.conj().T @ b) ** 2
    rows, columns = scipy.optimize.linear_sum_assignment(-mac)
    assigned, size = np.full(first.shape[1], -1), np.zeros(first.shape[1])
    assigned[rows], size[rows] = columns, mac[rows, columns]
    return assigned, size
