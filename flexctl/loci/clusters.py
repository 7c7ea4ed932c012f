"""Eigenvalues that are followed together: single ones, clusters, and pairs that become real."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.loci.matching import overlaps
from flexctl.loci.spectrum import Spectrum, closed_under_conjugation


@dataclass(frozen=True, kw_only=True)
class Unit:
    """Columns of a spectrum that are followed as one invariant subspace.

    Attributes
    ----------
    real
        Whether it is its own conjugate; else `columns` are in the upper half plane, and as many
        conjugate ones belong to it.
    columns
        Of the spectrum (m,).
    basis
        Of the subspace (n, m), real where the unit is.
    """

    real: bool
    columns: tuple[int, ...]
    basis: ComplexArray

    @property
    def kind(self) -> tuple[bool, int]:
        """What a unit must share with the one that it becomes."""
        return self.real, len(self.columns)


def find_units(spectrum: Spectrum) -> list[Unit]:
    """Split a spectrum into single eigenvalues and clusters, upper halves of pairs only."""
    sets = [*spectrum.clusters]
    clustered = {column for members in sets for column in members}
    upper = spectrum.n_real + spectrum.n_pairs
    sets += [(column,) for column in range(upper) if column not in clustered]
    return [unit for members in sets for unit in _unit(spectrum, members)]


def _unit(spectrum: Spectrum, members: tuple[int, ...]) -> Iterator[Unit]:
    values = spectrum.values[list(members)]
    real = closed_under_conjugation(values)
    if real or values[0].imag > 0:
        basis = spectrum.basis(members) if len(members) > 1 else spectrum.V[:, list(members)]
        yield Unit(real=real, columns=members, basis=basis)


def merge(spectrum: Spectrum, units: Sequence[Unit]) -> Unit:
    """Take one pair unit, or two real ones, as one real unit of all their eigenvalues."""
    columns = tuple(column for unit in units for column in unit.columns)
    if not units[0].real:
        columns += tuple(column + spectrum.n_pairs for column in columns)
    return Unit(real=True, columns=columns, basis=spectrum.basis(columns))


def frame(units: Sequence[Unit]) -> tuple[ComplexArray, list[slice]]:
    """Return the bases of all units, then the conjugates of pairs, side by side, (n, n).

    With them the columns of each: of all units first, of the conjugates in the order of the pairs.
    """
    bases = [unit.basis for unit in units]
    bases += [unit.basis.conj() for unit in units if not unit.real]
    ends = np.cumsum([0, *(basis.shape[1] for basis in bases)])
    return np.hstack(bases), [slice(i, j) for i, j in pairwise(ends.tolist())]


def unit_overlaps(before: Sequence[Unit], after: Sequence[Unit]) -> Array:
    """Overlap of subspaces (len(before), len(after)): m of equal ones of dimension m."""
    V0, blocks0 = frame(before)
    V1, blocks1 = frame(after)
    Q = overlaps(V0, V1).real
    rows = np.array([Q[block].sum(axis=0) for block in blocks0[: len(before)]])
    return np.array([rows[:, block].sum(axis=1) for block in blocks1[: len(after)]]).T
