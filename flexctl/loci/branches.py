"""Eigenvalues of a family of real matrices, joined into branches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import scipy.linalg
import scipy.optimize

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.errors import InputError
from flexctl.loci.blocks import join_blocks, pair_up
from flexctl.loci.events import LocusEvent, events_of, merge_events
from flexctl.loci.following import (
    Chords,
    follow_blocks,
    follow_regular,
    keep_blocks,
    look_half_way,
)
from flexctl.loci.spectrum import Spectrum, find_spectra, match_by_value
from flexctl.loci.steps import Step, StepMatch, join_regular

Range = tuple[float, float]

_LEAST = 1e-12  # share of the whole range that a step is not divided below
_MERGED = 4 * _LEAST  # so near, unsafe events of the same branches are one
_MOST = 20_000  # matrices; steps still in doubt are then unsafe
_ASIDE = (0.0, 0.618e-4, -0.618e-4)  # shares of a step, where eigenvalues happen to coincide
_BESIDE = 0.764  # share of either part at which a step is divided if eigenvalues coincide otherwise
_BATCH = 64
_FOLLOWED = 6  # divisions of a step in doubt before it is to be proven


@dataclass(frozen=True, kw_only=True)
class _Row:
    """Branches at one parameter, with the vectors of a node there or close beside it.

    Branch i has column `order[i]` of the node.
    """

    s: float
    values: ComplexArray
    node: Spectrum
    order: Array

    @property
    def together(self) -> tuple[tuple[int, ...], ...]:
        """Sets of branches that round-off cannot tell apart."""
        branch, clusters = np.argsort(self.order), self.node.clusters
        return tuple(tuple(sorted(branch[list(members)].tolist())) for members in clusters)

    @property
    def vectors(self) -> tuple[ComplexArray, ComplexArray]:
        """Right and left vectors (n, n) in balanced units, of clusters a basis of each."""
        node, V = self.node, self.node.V.copy()
        for members in node.clusters:
            V[:, list(members)] = node.basis(members)
        try:
            W = np.linalg.inv(V) if node.clusters else node.W
        except np.linalg.LinAlgError:
            W = np.linalg.pinv(V)
        return V[:, self.order], W.conj().T[:, self.order].astype(complex)


@dataclass(frozen=True, kw_only=True)
class Branches:
    """Eigenvalues over a parameter, one column per branch.

    Attributes
    ----------
    s
        The parameter (k,), ascending: the grid asked for and what was put in between.
    grid
        Parameters asked for (g,).
    values
        Eigenvalues (k, n).
    events
        Meetings and doubts, in the order of s.
    together
        At every s, the sets of branches that round-off cannot tell apart.
    n_matrices
        How many matrices were asked for.
    unproven
        Ranges of s in which branches were followed by their eigenvectors, without a proof.
    rows, scale
        Where vectors come from, and the units that they are balanced in: see `vectors`.
    """

    s: Array
    grid: Array
    values: ComplexArray
    events: tuple[LocusEvent, ...]
    together: tuple[tuple[tuple[int, ...], ...], ...]
    n_matrices: int
    unproven: tuple[Range, ...] = ()
    rows: tuple[_Row, ...] = field(repr=False)
    scale: Array = field(repr=False)

    def vectors(self, k: int) -> tuple[ComplexArray, ComplexArray]:
        """Right and left eigenvectors (n, n) at s[k], of branch i in column i.

        A v = lambda v, w^H A = lambda w^H, w^H v = 1, in the units of the state. Of eigenvalues
        that are followed together they are a basis of their subspace, and the dual one; where
        eigenvalues happen to meet on the grid, those right beside it.
        """
        V, W = self.rows[k].vectors
        return V * self.scale[:, None], W / self.scale[:, None]

    @property
    def on_grid(self) -> Array:
        """Indices (g,) of the parameters asked for among all."""
        return np.searchsorted(self.s, self.grid)

    def at(self, s: Array) -> ComplexArray:
        """Eigenvalues (p, n) at the points of `s` nearest to parameters (p,)."""
        return self.values[np.abs(np.asarray(s)[:, None] - self.s).argmin(axis=1)]


def follow(family: Callable[[float], Array], grid: Array, *, proven: bool = False) -> Branches:
    """Join the eigenvalues of A(s) into branches that are continuous in s.

    Parameters
    ----------
    family
        Real matrix A(s) (n, n), smooth over the range of the grid.
    grid
        Ascending parameters (k,), two at least; steps between them are divided where they must be.
    proven
        Whether every step is to be proven; else only those that following leaves in doubt.

    Returns
    -------
    Branches
        What is guaranteed of them, and what not, is in docs/theory/eigenvalue-loci.md. Simple
        eigenvalues are analytic where A is: [Kato66], chapter 2.

    Raises
    ------
    InputError
        Where the grid does not ascend or A(s) is not a square matrix of finite numbers.
    """
    grid = _checked(grid)
    cache = _Family.over(family, grid)
    nodes = _nodes(cache, grid)
    judge = _Judge(family=cache, divisions=0 if proven else _FOLLOWED)
    joined = _join(judge, nodes, _LEAST * (grid[-1] - grid[0]))
    return _compose(cache, grid, joined)


def _checked(grid: Array) -> Array:
    grid = checks.finite("grid", grid)
    if grid.ndim != 1 or len(grid) < 2 or not (np.diff(grid) > 0).all():
        raise InputError(f"grid: expected at least two ascending parameters, got {grid}")
    return grid


@dataclass(frozen=True, kw_only=True)
class _Family:
    """Matrices in units that balance them over the whole grid, asked for once each.

    `scale` (n,): x = scale * y.
    """

    function: Callable[[float], Array]
    scale: Array
    known: dict[float, Array]

    @classmethod
    def over(cls, function: Callable[[float], Array], grid: Array) -> _Family:
        raw = {float(s): checks.square(f"A({s:.6g})", function(float(s))) for s in grid}
        sizes = sorted({len(A) for A in raw.values()})
        if len(sizes) > 1:
            odd = next(s for s, A in raw.items() if len(A) == sizes[0])
            raise InputError(
                f"family: expected matrices of {sizes[-1]} rows everywhere, got {sizes[0]} "
                f"at {odd:g}; of a loop: integral action or a filter is off there, leave it out"
            )
        greatest = np.max(np.abs(list(raw.values())), axis=0)
        _, (scale, _) = scipy.linalg.matrix_balance(greatest, permute=False, separate=True)
        known = {s: A * scale / scale[:, None] for s, A in raw.items()}
        return cls(function=function, scale=np.asarray(scale), known=known)

    def __call__(self, s: float) -> Array:
        s = float(s)
        if s not in self.known:
            A = checks.shape(f"A({s:.6g})", self.function(s), (len(self.scale),) * 2)
            self.known[s] = A * self.scale / self.scale[:, None]
        return self.known[s]

    def spectra(self, s: Iterable[float]) -> list[Spectrum]:
        s = list(s)
        return find_spectra(s, np.array([self(x) for x in s]))

    def best(self, candidates: Iterable[float], always: tuple[int, int]) -> Spectrum:
        """Spectrum with the fewest eigenvalues that coincide, the first with only `always`."""
        spectra: list[Spectrum] = []
        for s in candidates:
            spectra += self.spectra([s])
            if _coincidences(spectra[-1]) <= always:
                break
        return min(spectra, key=_coincidences)


def _coincidences(spectrum: Spectrum) -> tuple[int, int]:
    return spectrum.clustered, spectrum.crowded


def _nodes(family: _Family, grid: Array) -> list[Spectrum]:
    """Spectra on the grid, or close beside it where eigenvalues happen to coincide on it."""
    nodes = family.spectra(grid)
    width = np.diff(grid).min()
    always = min(map(_coincidences, nodes))
    if always > (0, 0):  # all along, or on every point of the grid by chance
        between = family.spectra([nodes[0].s + _BESIDE * width / 2])
        always = min(always, *map(_coincidences, between))
    for k, node in enumerate(nodes):
        if _coincidences(node) > always or len(grid) == 2:
            aside = (s for share in _ASIDE if grid[0] <= (s := node.s + share * width) <= grid[-1])
            nodes[k] = family.best(aside, (0, 0))
    return nodes


def _join(judge: _Judge, nodes: Sequence[Spectrum], least: float) -> list[tuple[Step, StepMatch]]:
    """Join neighbours, putting nodes in between where a step is in doubt."""
    done: list[tuple[Step, StepMatch]] = []
    steps = [Step(before=one, after=other) for one, other in pairwise(nodes)]
    level = 0
    while steps:
        judged = list(zip(steps, judge(steps, level), strict=True))
        spent = len(judge.family.known) >= _MOST
        final = [spent or match.safe or step.width <= 2 * least for step, match in judged]
        done += [pair for pair, last in zip(judged, final, strict=True) if last]
        steps = [
            part
            for (step, match), last in zip(judged, final, strict=True)
            if not last
            for part in _divide(judge.family, step, match.part)
        ]
        level += 1
    return sorted(done, key=lambda pair: pair[0].before.s)


def _divide(family: _Family, step: Step, part: float) -> tuple[Step, Step]:
    always = min(_coincidences(step.before), _coincidences(step.after))
    shares = part, _BESIDE * part, 1 - _BESIDE * (1 - part)
    middle = family.best((step.before.s + share * step.width for share in shares), always)
    return Step(before=step.before, after=middle), Step(before=middle, after=step.after)


@dataclass(frozen=True, kw_only=True)
class _Judge:
    """Judges steps: follows eigenvectors first, and proves what remains in doubt.

    Steps in doubt are to be proven after so many `divisions`; with none every step is.
    """

    family: _Family
    divisions: int
    chords: Chords = field(default_factory=Chords)

    def __call__(self, steps: Sequence[Step], level: int) -> list[StepMatch]:
        matches: dict[int, StepMatch] = {}
        regular = [k for k, step in enumerate(steps) if _regular(step)]
        pairings = {k: pair_up(steps[k]) for k in set(range(len(steps))).difference(regular)}
        if self.divisions:
            for k, pairing in pairings.items():
                keep_blocks(steps[k], pairing, self.chords)
            followed = follow_regular([steps[k] for k in regular], self.chords, self.family)
            matches = dict(zip(regular, followed, strict=True))
            blocks = {k: follow_blocks(steps[k], own, self.chords) for k, own in pairings.items()}
            matches |= {k: match for k, match in blocks.items() if match is not None}
            if not level:
                matches = {
                    k: look_half_way(steps[k], match, self.chords, self.family)
                    for k, match in matches.items()
                }
            if level >= self.divisions:
                matches = {k: match for k, match in matches.items() if match.safe}
            regular = [k for k in regular if k not in matches]
        for first in range(0, len(regular), _BATCH):
            batch = regular[first : first + _BATCH]
            judged = join_regular([steps[k] for k in batch], self.family)
            matches |= dict(zip(batch, judged, strict=True))
        return [
            matches.get(k) or join_blocks(step, pairings[k], self.family)
            for k, step in enumerate(steps)
        ]


def _regular(step: Step) -> bool:
    clustered = step.before.clustered or step.after.clustered
    return not clustered and step.before.n_real == step.after.n_real


def _compose(family: _Family, grid: Array, joined: Sequence[tuple[Step, StepMatch]]) -> Branches:
    """Follow every column from the first spectrum on."""
    first = joined[0][0].before
    columns = [np.lexsort((-first.values.imag, np.abs(first.values).round(12)))]
    events: list[LocusEvent] = []
    for step, match in joined:
        events += events_of(step, match, columns[-1])
        order = match.order if match.safe else match_by_value(step.before, step.after)
        columns.append(order[columns[-1]])
    nodes = [first, *(step.after for step, _ in joined)]
    rows = [
        _Row(s=node.s, values=node.values[order], node=node, order=order)
        for node, order in zip(nodes, columns, strict=True)
    ]
    rows = sorted([*rows, *_on_grid(family, grid, rows)], key=lambda row: row.s)
    return Branches(
        s=np.array([row.s for row in rows]),
        grid=grid,
        values=np.stack([row.values for row in rows]),
        rows=tuple(rows),
        scale=family.scale,
        events=merge_events(events, _MERGED * (grid[-1] - grid[0])),
        together=tuple(row.together for row in rows),
        n_matrices=len(family.known),
        unproven=_unproven(joined),
    )


def _unproven(joined: Sequence[tuple[Step, StepMatch]]) -> tuple[Range, ...]:
    """Ranges that the steps without a proof make up; of unsafe steps events tell."""
    ranges: list[Range] = []
    for step, match in joined:
        if match.safe and not match.proven:
            touches = ranges and ranges[-1][1] == step.before.s
            start = ranges.pop()[0] if touches else step.before.s
            ranges.append((start, step.after.s))
    return tuple(ranges)


def _on_grid(family: _Family, grid: Array, rows: Sequence[_Row]) -> list[_Row]:
    """Points of the grid beside which nodes were taken, with the vectors of these.

    Eigenvalues that are distinct there go on from the nearest node, from which w^H A(s) v says to
    second order where each has moved; which of those that coincide is which has no meaning at the
    point itself.
    """
    at = np.array([row.s for row in rows])
    on_grid = []
    for s in (float(s) for s in grid if s not in set(at.tolist())):
        near = rows[int(np.abs(at - s).argmin())]
        values = family.spectra([s])[0].values
        V, W = near.vectors
        moved = near.values + np.einsum("ji,ji->i", W.conj(), (family(s) - family(near.node.s)) @ V)
        distance = np.abs(moved[:, None] - values) ** 2
        order = scipy.optimize.linear_sum_assignment(distance)[1]
        on_grid.append(replace(near, s=s, values=values[order]))
    return on_grid
