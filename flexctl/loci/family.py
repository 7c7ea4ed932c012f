"""Branches of one family of closed loops: their eigenvalues, labels, events and crossings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.loci.branches import Branches, Range, follow
from flexctl.loci.crossings import AxisCrossing, find_crossings
from flexctl.loci.events import LocusEvent
from flexctl.loci.labels import Labels, label_branches, numbers
from flexctl.loci.sources import Source
from flexctl.loop import ON_AXIS, damping_ratios
from flexctl.records import Summary

_EDGE = 1e-5  # |Im| beside |lambda|: equal real eigenvalues are split by the root of round-off
_MOST = 9  # pairs and real eigenvalues among the dominant ones
_FIRST = 6  # eigenvalues that are dominant however small their index
_LEAST = 0.01  # of the largest index: below, no further one is dominant
_SEEN = 0.03  # weight below which a branch is not seen at the tip: a second mode alone has 0.025
_LIGHT = 0.01  # damping ratio: what is damped less counts as damped so much
_MODE = re.compile(r"\S+\.(?P<plane>[xyz]|twist)\.(?P<number>[0-9]+)$")
_CLAMPED = (1.875104, 4.694091, 7.854757)  # roots of cos(b) cosh(b) = -1


@dataclass(frozen=True, kw_only=True)
class Branch:
    """One eigenvalue over the parameter.

    Attributes
    ----------
    motions
        Names of the motions with the largest part in it: one, or several that are about equal.
    number
        Tells branches of the same motions apart, slow ones first; 0 where there is one. Both halves
        of a pair have the same.
    values
        (k,) [1/s], at the parameters asked for.
    participation
        Shares [-] of the motions over the whole range, largest first.
    leads
        Where (s) which motion takes the lead.
    """

    motions: tuple[str, ...]
    number: int = 0
    values: ComplexArray
    participation: Mapping[str, float]
    leads: tuple[tuple[float, str], ...]

    @property
    def label(self) -> str:
        """Its motions and its number: ``joint1 (2)``; of a pair and of it alone."""
        name = " + ".join(self.motions)
        return f"{name} ({self.number})" if self.number else name

    @property
    def frequency(self) -> Array:
        """|lambda| (k,) [rad/s]."""
        return np.abs(self.values)

    @property
    def damping(self) -> Array:
        """-Re lambda / |lambda| (k,) [-]."""
        return damping_ratios(self.values)


def dominant(branches: Sequence[Branch]) -> tuple[int, ...]:
    """Choose the branches of which the response is made, by their index of dominance.

    Branches that are unstable somewhere come first. The others follow by `dominance`, until there
    are nine pairs and real eigenvalues. Beyond the first six branches those with an index below
    1 % of the largest are left out, and always those with none. What a state is called makes no
    difference: a copy of a law with other names has the same dominant branches.

    Returns
    -------
    tuple
        Indices into `branches`, the most dominant first.
    """
    index = np.array([dominance(branch) for branch in branches])
    least = _LEAST * index[np.isfinite(index)].max(initial=0.0)
    order = [int(k) for k in np.argsort(-index, kind="stable") if index[k] > 0]
    order = [k for i, k in enumerate(order) if i < _FIRST or index[k] >= least]
    labels = list(dict.fromkeys(branches[k].label for k in order))[:_MOST]
    return tuple(k for k in order if branches[k].label in labels)


def dominance(branch: Branch) -> float:
    """Area under the envelope of a branch's decay [s], relative to that of other branches.

    weight / (-Re lambda) where its decay is slowest; infinite where the branch is unstable, zero
    where the weight is below 3 %. The weight is the sum of the shares of motions, each as far as
    it is seen at the tip: joints, rotors and first modes count 1, higher modes by their part in
    the static compliance of a clamped line, (beta_1/beta_k)^4 in bending and 1/(2k - 1)^2 in
    torsion; torques that wait for their time count 0. Damping ratios below 1 % count as 1 %: a
    model without damping of its structure does not say which mode decays last.
    """
    values = branch.values[np.isfinite(branch.values)]
    if not len(values):
        return 0.0
    if (values.real > ON_AXIS * np.abs(values)).any():
        return float("inf")
    weight = sum(share * _seen(name) for name, share in branch.participation.items())
    if weight < _SEEN:
        return 0.0
    decay = np.maximum(-values.real, _LIGHT * np.abs(values))
    slowest = max(float(decay.min()), np.finfo(float).tiny)
    return weight / slowest


def _seen(name: str) -> float:
    """Part of a motion that is seen at the tip, beside the first mode's of a line."""
    if name == "delayed torque":
        return 0.0
    mode = _MODE.fullmatch(name)
    if mode is None:
        return 1.0
    k = int(mode["number"])
    if mode["plane"] == "twist":
        return 1.0 / (2 * k - 1) ** 2
    root = _CLAMPED[k - 1] if k <= len(_CLAMPED) else (k - 0.5) * np.pi
    return float((_CLAMPED[0] / root) ** 4)


@dataclass(frozen=True, kw_only=True, repr=False)
class Loci(Summary):
    """All branches of one family of loops, slow ones first.

    Attributes
    ----------
    parameter, s
        Name of the parameter, ``t`` [s] or the key of a setting, and its values (k,).
    branches
        One per eigenvalue, n of them.
    events
        Where branches meet or could not be joined safely; they name indices of `branches`.
    n_matrices
        How many loops were linearised.
    unproven
        Ranges of s in which branches were followed by their eigenvectors, without a proof.
    crossings
        Where branches cross the imaginary axis, in the order of s.
    stable
        Ranges of s over which no branch is unstable.
    at_design
        Eigenvalues (n,) [1/s] at the design value of the parameter, by branch; None where it is not
        among those followed.
    nodes, node_values
        All values of the parameter that were looked at (p,), with those put between where branches
        come close, and the eigenvalues there (p, n) [1/s], by branch; empty where they are not
        kept.
    fields
        What every branch moves (k, G, n), as `motion_fields` has it; None where it was not asked
        for.
    """

    parameter: str
    s: Array
    branches: tuple[Branch, ...]
    events: tuple[LocusEvent, ...]
    n_matrices: int
    unproven: tuple[Range, ...] = ()
    crossings: tuple[AxisCrossing, ...] = ()
    stable: tuple[Range, ...] = ()
    at_design: ComplexArray | None = None
    nodes: Array = field(default_factory=lambda: np.zeros(0), repr=False)
    node_values: ComplexArray = field(
        default_factory=lambda: np.zeros((0, 0), dtype=complex), repr=False
    )
    fields: ComplexArray | None = field(default=None, repr=False)

    @property
    def upper(self) -> tuple[Branch, ...]:
        """One of every pair: branches that nowhere leave the upper half plane and its edge.

        Real eigenvalues that are one up to round-off belong to it, on whichever side that is.
        """
        return tuple(
            one for one in self.branches if (one.values.imag >= -_EDGE * one.frequency).all()
        )

    @cached_property
    def dominant(self) -> tuple[int, ...]:
        """Indices of the branches that matter, the most dominant first; see `dominant`."""
        return dominant(self.branches)

    @property
    def unsafe(self) -> tuple[LocusEvent, ...]:
        """Events across which branches could not be joined safely."""
        return tuple(event for event in self.events if event.kind == "unsafe")


def trace_loci(
    source: Source,
    grid: Array,
    *,
    design_value: float | None = None,
    fields: bool = False,
    proven: bool = False,
) -> Loci:
    """Follow the eigenvalues of a family of loops over a grid of its parameter (k,), ascending.

    Parameters
    ----------
    source
        The family.
    grid
        Values of the parameter (k,), two at least.
    design_value
        Of the parameter; eigenvalues there are found besides.
    fields
        Whether to keep what every branch moves, by which `match_branches` compares discretisations.
    proven
        Whether to prove every step: see `follow`.

    Raises
    ------
    InputError
        As `follow`.
    """
    joined = follow(source.matrix, grid, proven=proven)
    labels = label_branches(joined, source.names)
    at = np.searchsorted(joined.s, grid)
    values = source.in_time(joined.values[at], grid)
    order = _slow_first(values[0])
    crossings, stable = find_crossings(source, joined, proven=proven)
    return Loci(
        parameter=source.parameter,
        s=grid,
        branches=_branches(order, numbers(joined, labels), values, labels),
        events=tuple(_in_time(source, event, order) for event in joined.events),
        n_matrices=joined.n_matrices,
        unproven=joined.unproven,
        nodes=joined.s,
        node_values=source.in_time(joined.values, joined.s)[:, order],
        crossings=tuple(replace(one, branch=order.index(one.branch)) for one in crossings),
        stable=stable,
        at_design=_at_design(source, joined, design_value, order, proven=proven),
        fields=_fields(source, joined, order) if fields else None,
    )


def _at_design(
    source: Source, joined: Branches, value: float | None, order: list[int], *, proven: bool
) -> ComplexArray | None:
    """Eigenvalues (n,) at the design value, followed from the nodes beside it."""
    if value is None or not joined.s[0] <= value <= joined.s[-1]:
        return None
    values = _followed_to(source, joined, value, proven=proven)
    rates: ComplexArray = source.in_time(values[None], np.array([value]))[0]
    return rates[order]


def _followed_to(source: Source, joined: Branches, value: float, *, proven: bool) -> ComplexArray:
    after = int(np.searchsorted(joined.s, value))
    if joined.s[after] == value:
        return joined.values[after]
    between = np.array([joined.s[after - 1], value, joined.s[after]])
    part = follow(source.matrix, between, proven=proven)
    distance = np.abs(joined.values[after - 1][:, None] - part.values[0])
    columns = scipy.optimize.linear_sum_assignment(distance)[1]
    return part.at(between[1:2])[0, columns]


def _fields(source: Source, joined: Branches, order: list[int]) -> ComplexArray:
    at = joined.on_grid.tolist()
    right = [joined.vectors(k)[0][:, order] for k in at]
    return np.array([source.fields(float(s)) @ V for s, V in zip(joined.grid, right, strict=True)])


def _slow_first(first: ComplexArray) -> list[int]:
    """Order of the branches: by the modulus at the beginning, the upper half of a pair first."""
    return np.lexsort((-first.imag, np.round(np.abs(first), 9))).tolist()


def _branches(
    order: Sequence[int], numbered: Sequence[int], values: ComplexArray, labels: Labels
) -> tuple[Branch, ...]:
    leaders = labels.leaders
    return tuple(
        Branch(
            motions=leaders[k],
            number=numbered[k],
            values=values[:, k],
            participation=labels.participation(k),
            leads=labels.changes(k),
        )
        for k in order
    )


def _in_time(source: Source, event: LocusEvent, order: list[int]) -> LocusEvent:
    """Return an event with its value as a rate and the branches in their new order."""
    value = complex(source.in_time(np.array([[event.value]]), np.array([event.start]))[0, 0])
    branches = tuple(sorted(order.index(k) for k in event.branches))
    return replace(event, value=value, branches=branches)
