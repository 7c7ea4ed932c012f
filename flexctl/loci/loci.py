"""Branches of a closed loop's eigenvalues with what they are, over time or over a number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from flexctl.checks import Array, ComplexArray
from flexctl.loci.branches import follow
from flexctl.loci.events import LocusEvent
from flexctl.loci.labels import Labels, label_branches, titles
from flexctl.loci.sources import Source
from flexctl.loop import damping_ratios
from flexctl.records import Summary

_EDGE = 1e-5  # |Im| beside |lambda|: equal real eigenvalues are split by the root of round-off


@dataclass(frozen=True, kw_only=True)
class Branch:
    """One eigenvalue over the parameter.

    Attributes
    ----------
    label
        Motion with the largest part in it, numbered where several have the same.
    values
        (k,) [1/s], at the parameters asked for.
    participation
        Shares [-] of the motions over the whole range, largest first.
    leads
        Where (s) which motion takes the lead.
    """

    label: str
    values: ComplexArray
    participation: Mapping[str, float]
    leads: tuple[tuple[float, str], ...]

    @property
    def frequency(self) -> Array:
        """|lambda| (k,) [rad/s]."""
        return np.abs(self.values)

    @property
    def damping(self) -> Array:
        """-Re lambda / |lambda| (k,) [-]."""
        return damping_ratios(self.values)


@dataclass(frozen=True, kw_only=True, repr=False)
class EigenvalueLoci(Summary):
    """All branches of one family of loops, slow ones first.

    Attributes
    ----------
    parameter, s
        Name of the parameter, ``t`` [s] or the key of a setting, and its values (k,).
    branches
        One per eigenvalue.
    events
        Where branches meet or could not be joined safely; they name indices of `branches`.
    n_matrices
        How many loops were linearised.
    fields
        What every branch moves (k, G, n), as `motion_fields` has it; None where it was not asked
        for.
    """

    parameter: str
    s: Array
    branches: tuple[Branch, ...]
    events: tuple[LocusEvent, ...]
    n_matrices: int
    fields: ComplexArray | None = field(default=None, repr=False)

    @property
    def upper(self) -> tuple[Branch, ...]:
        """One of every pair: branches that nowhere leave the upper half plane and its edge.

        Real eigenvalues that are one up to round-off belong to it, on whichever side that is.
        """
        return tuple(
            one for one in self.branches if (one.values.imag >= -_EDGE * one.frequency).all()
        )

    @property
    def unsafe(self) -> tuple[LocusEvent, ...]:
        """Places across which branches could not be joined safely."""
        return tuple(place for place in self.events if place.kind == "unsafe")


def eigenvalue_loci(source: Source, grid: Array, *, fields: bool = False) -> EigenvalueLoci:
    """Follow the eigenvalues of a family of loops over a grid of its parameter (k,), ascending.

    `fields` keeps what every branch moves, by which `match_branches` compares discretisations.

    Raises
    ------
    InputError
        As `follow`.
    """
    joined = follow(source.matrix, grid)
    labels = label_branches(joined, source.names)
    at = np.searchsorted(joined.s, grid)
    values = source.in_time(joined.values[at], grid)
    names, order = titles(joined, labels), _slow_first(values[0])
    return EigenvalueLoci(
        parameter=source.parameter,
        s=grid,
        branches=tuple(_branch(k, names[k], values[:, k], labels) for k in order),
        events=tuple(_in_time(source, place, order) for place in joined.events),
        n_matrices=joined.n_matrices,
        fields=_fields(source, grid, joined.right[at][:, :, order]) if fields else None,
    )


def _fields(source: Source, grid: Array, vectors: ComplexArray) -> ComplexArray:
    return np.array([source.fields(float(s)) @ V for s, V in zip(grid, vectors, strict=True)])


def _slow_first(first: ComplexArray) -> list[int]:
    """Order of the branches: by the modulus at the beginning, the upper half of a pair first."""
    return np.lexsort((-first.imag, np.round(np.abs(first), 9))).tolist()


def _branch(k: int, label: str, values: ComplexArray, labels: Labels) -> Branch:
    return Branch(
        label=label,
        values=values,
        participation=labels.participation(k),
        leads=labels.changes(k),
    )


def _in_time(source: Source, place: LocusEvent, order: list[int]) -> LocusEvent:
    """Return a place with its value as a rate and the branches in their new order."""
    value = complex(source.in_time(np.array([[place.value]]), np.array([place.start]))[0, 0])
    branches = tuple(sorted(order.index(k) for k in place.branches))
    return replace(place, value=value, branches=branches)
