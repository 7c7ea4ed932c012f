"""Steps followed by eigenvectors and slopes: quick, and without a proof.

Branches go on as their eigenvectors do. That is clear where hardly any eigenvector turns into
another one over the step, and where no two branches come so close to each other, for what couples
them, that they could turn away from each other within it. Two eigenvalues at a distance D(t) that
are coupled by k, the root of c_ij c_ji, are

    (lambda_i + lambda_j)/2 +- sqrt(D(t)^2/4 + k^2):

as long as |k| < |D|/2, the root winds about zero as D does, and they pass each other as if they
were not coupled. Over the step their vectors turn into each other by
k (1/D_0 - 1/D_1), of which the overlap of both is the square. All other steps are doubtful.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.loci.blocks import Pairing, Unit, column_order, hard_to_match
from flexctl.loci.frames import (
    BENT,
    NARROW,
    NEGLIGIBLE,
    ROUND_OFF,
    SAMPLES,
    SMALL,
    hidden_coupling,
    least_distance,
)
from flexctl.loci.spectrum import Spectrum, match_by_overlap
from flexctl.loci.steps import LEAST_OVERLAP, Family, Step, StepMatch, find_meeting

OWN = 0.75  # least overlap of an eigenvector with itself one step on
OTHER = 0.2  # greatest overlap with another one
_FAR = 2.0  # times what two branches move against each other: farther apart, they do not meet
_SAFETY = 4.0  # couplings may be so much less than the distance of branches that pass
_FINE = np.linspace(0, 1, 33)
_EDGE = 0.1  # least share of a step that is divided off it
_TINY = float(np.finfo(float).tiny)


class Chords:
    """Eigenvalues at the next parameters on both sides, in the order of the spectrum between.

    They are kept as steps are matched. `before` and `after` have for a parameter the next one and
    the eigenvalues (n,) there, as far as they could be matched.
    """

    def __init__(self) -> None:
        self.before: dict[float, tuple[float, ComplexArray]] = {}
        self.after: dict[float, tuple[float, ComplexArray]] = {}

    def keep(self, step: Step, order: Array, *, clear: bool) -> None:
        """Store the match of a step, `order` as in `StepMatch`; forget it where it is not clear."""
        first, second = step.before, step.after
        if not clear:
            self.after.pop(first.s, None)
            self.before.pop(second.s, None)
            return
        self.after[first.s] = second.s, second.values[order]
        self.before[second.s] = first.s, first.values[np.argsort(order)]

    def beside(self, step: Step, order: Array) -> tuple[Array, ComplexArray, int]:
        """Return a step with its neighbours, as far as known: parameters (p,) and values (p, n).

        The last is the index of the beginning of the step among them, 0 or 1.
        """
        before, after = self.before.get(step.before.s), self.after.get(step.after.s)
        nodes = [before] if before else []
        nodes += [(step.before.s, step.before.values), (step.after.s, step.after.values[order])]
        nodes += [(after[0], after[1][order])] if after else []
        return np.array([s for s, _ in nodes]), np.array([x for _, x in nodes]), int(bool(before))

    def slope(self, spectrum: Spectrum) -> ComplexArray | None:
        """Slopes (n,) of the eigenvalues by the chords on both sides, or on one; None without."""
        s, values = spectrum.s, spectrum.values
        ends = [side[s] for side in (self.before, self.after) if s in side]
        chords = [(values - other) / (s - at) for at, other in ends]
        if len(chords) < 2:
            return chords[0] if chords else None
        left, right = (abs(s - at) for at, _ in ends)
        return (chords[0] * right + chords[1] * left) / (left + right)


def follow_regular(steps: Sequence[Step], chords: Chords, family: Family) -> list[StepMatch]:
    """Follow steps at whose ends all eigenvalues are distinct, and as many real ones at both.

    Every one is either followed, without a proof, or doubtful. `chords` are completed by theirs.
    """
    matched = [_match(step) for step in steps]
    for step, (order, overlap) in zip(steps, matched, strict=True):
        chords.keep(step, order, clear=bool(np.diagonal(overlap).min() > LEAST_OVERLAP))
    return [
        _passing(step, order, overlap, chords, family)
        for step, (order, overlap) in zip(steps, matched, strict=True)
    ]


def _match(step: Step) -> tuple[Array, Array]:
    """Match a step: the order (n,), and in it the sizes (m, n) of overlaps, real of the own ones.

    Of the real eigenvalues and of upper halves of pairs, m in all.
    """
    first, second, m = step.before, step.after, step.before.n_real + step.before.n_pairs
    Q = (first.W[:m] @ second.V) * (second.W @ first.V[:, :m]).T
    order = match_by_overlap(first, Q)
    Q = Q[:, order]
    overlap = np.abs(Q)
    np.fill_diagonal(overlap, np.real(np.diagonal(Q)))
    return order, overlap


def follow_blocks(step: Step, pairing: Pairing | None, chords: Chords) -> StepMatch | None:
    """Follow a step with clusters, which go on as their subspaces do; `pairing` as of `pair_up`.

    None where a pair becomes real or the other way around, and nothing else is in doubt.
    """
    if pairing is None:
        return hard_to_match(step)
    units, overlap = pairing.before, np.abs(pairing.overlap)
    ends = (step.before, units), (step.after, pairing.after)
    (first, a), (second, b) = (_middles(*end) for end in ends)
    doubtful = _turning(overlap)
    i, j = np.nonzero(np.triu(np.ones_like(overlap), 1))
    D = np.stack([first[i] - first[j], second[i] - second[j]])
    least, motion = least_distance(D)[0], np.abs(D[1] - D[0])
    spread = np.maximum(a, b)
    room = least - spread[i] - spread[j] - motion / 4  # their paths may be bent
    coupling = _coupling(overlap[i, j], D)
    passing = (D[0] * D[1].conj()).real < np.abs(D[0] * D[1]) / 2
    close = (room <= 0) | (passing & (_SAFETY * coupling > room))
    doubtful[i[close]] = doubtful[j[close]] = True
    columns = {column for k in np.flatnonzero(doubtful) for column in units[k].columns}
    order = column_order(step, pairing)
    if columns:
        return StepMatch(order=order, doubtful=tuple(sorted(columns)))
    if pairing.events:
        return None
    clustered = [column for unit in units if len(unit.columns) > 1 for column in unit.columns]
    touching = _coalescing(step, order, chords, clustered)
    return StepMatch(order=order, doubtful=touching, proven=False)


def keep_blocks(step: Step, pairing: Pairing | None, chords: Chords) -> None:
    """Complete the chords by a step with clusters, where they go on as their subspaces do."""
    if pairing is None or pairing.events:
        chords.keep(step, np.arange(len(step.before.values)), clear=False)
        return
    clear = bool(np.diagonal(pairing.overlap).min() > LEAST_OVERLAP)
    chords.keep(step, column_order(step, pairing), clear=clear)


def look_half_way(step: Step, match: StepMatch, chords: Chords, family: Family) -> StepMatch:
    """Mark as doubtful a followed step whose eigenvalues half way differ from those expected.

    Something may happen between two points of the grid of which neither shows anything.
    """
    if not match.safe:
        return match
    first, second = step.before.values, step.after.values[match.order]
    start, end = chords.slope(step.before), chords.slope(step.after)
    expected = (first + second) / 2
    if start is not None and end is not None:
        expected = expected + step.width * (start - end[match.order]) / 8
    values = np.linalg.eigvals(family((step.before.s + step.after.s) / 2))
    distance = np.abs(expected[:, None] - values)
    off = distance[np.arange(len(expected)), scipy.optimize.linear_sum_assignment(distance)[1]]
    size = np.maximum(np.abs(first), np.abs(second))
    doubtful = np.flatnonzero(off > BENT * np.maximum(size, SMALL * size.max()))
    return replace(match, doubtful=tuple(doubtful.tolist()))


def _middles(spectrum: Spectrum, units: Sequence[Unit]) -> tuple[ComplexArray, Array]:
    """Means (b,) of the eigenvalues of units, and how far the farthest is from them (b,)."""
    values = [spectrum.values[list(unit.columns)] for unit in units]
    means = np.array([own.mean() for own in values])
    return means, np.array([np.abs(own - m).max() for own, m in zip(values, means, strict=True)])


def _turning(overlap: Array) -> Array:
    """Whether each vector (b,) overlaps too little with itself one step on, or with another one."""
    own = np.diagonal(overlap)
    return (own < OWN) | ((overlap > OTHER).sum(axis=1) > (own > OTHER))


def _passing(step: Step, order: Array, overlap: Array, chords: Chords, family: Family) -> StepMatch:
    """Judge whether vectors go on in a step, and branches pass each other clearly."""
    ends = first, second = np.stack([step.before.values, step.after.values[order]])
    turning = np.flatnonzero(_turning(overlap)).tolist()
    if turning:
        others = np.where(np.eye(*overlap.shape), 0.0, overlap)
        i, j = divmod(int(others.argmax()), others.shape[1])
        part = _half_turned(ends[:, i] - ends[:, j])
        return StepMatch(order=order, doubtful=tuple(turning), part=part)
    start, end = chords.slope(step.before), chords.slope(step.after)
    assert start is not None
    assert end is not None
    slopes = step.width * start, step.width * end[order]
    m = step.before.n_real + step.before.n_pairs
    paths = cubic(first, second, slopes)
    rough = _bent(paths)
    if rough.any():
        return StepMatch(order=order, doubtful=tuple(np.flatnonzero(rough).tolist()))
    touching = _coalescing(step, order, chords)
    if touching:
        return StepMatch(order=order, doubtful=touching)
    i, j = _near(first, second, slopes, m)
    if not len(i):
        return StepMatch(order=order, proven=False)
    D = paths[:, i] - paths[:, j]
    least, error = least_distance(D)
    size = np.minimum(np.abs(first[i]), np.abs(first[j]))
    coupling = _coupling(overlap[i, j], D)
    noise = _round_off(step, order, i, j)
    hidden = hidden_coupling(noise, D[0], D[-1])
    negligible = ~hidden & (coupling <= noise + NEGLIGIBLE * size)
    passing = ((D * D[0].conj()).real < np.abs(D * D[0]) / 2).any(axis=0)
    room = np.maximum(least - error, 0.0)
    narrow = least <= NARROW * size
    doubt = hidden | ((narrow | passing & (_SAFETY * coupling > room)) & ~negligible)
    if doubt.any():
        columns = {*i[doubt].tolist(), *j[doubt].tolist()}
        closest = np.where(doubt, least, np.inf).argmin()
        part = _half_turned(D[[0, -1], closest])
        return StepMatch(order=order, doubtful=tuple(sorted(columns)), part=part)
    met = negligible & (narrow | (least <= error))
    meetings = []
    for a, b in zip(i[met].tolist(), j[met].tolist(), strict=True):
        meeting, sure = find_meeting(step, (a, b), (paths[:, a], paths[:, b]), family)
        if not sure:  # their paths are not known well enough
            part = _half_turned(ends[:, a] - ends[:, b])
            return StepMatch(order=order, doubtful=(a, b), part=part)
        meetings += [meeting] if meeting else []
    return StepMatch(order=order, meetings=tuple(meetings), proven=False)


def _half_turned(D: ComplexArray) -> float:
    """Share of a step where eigenvectors have done half of their turn, for distances D (2,).

    Those of two eigenvalues that are coupled by k have turned into each other by a/2, in which
    |D| exp(i a) = d + 2 i k. With d linear in s, the bisector of the angle at the apex of this
    triangle divides the step as |D_0| to |D_1|.
    """
    first, second = np.abs(D)
    total = first + second
    return float(np.clip(first / total, _EDGE, 1 - _EDGE)) if total else 0.5


def _coalescing(
    step: Step, order: Array, chords: Chords, clustered: Sequence[int] = ()
) -> tuple[int, ...]:
    """Columns of eigenvalues that may coalesce and part again within a step.

    Two real ones become a pair and real again, a pair real and a pair again, and two pairs meet and
    leave on both sides of where they met: flutter. The square of their difference is a smooth
    function where they are not. It is taken for a cubic with the slopes that neighbours give, at
    the end of the grid for a parabola, and must stay in the half plane where it begins.
    """
    s, values, k = chords.beside(step, order)
    if len(s) < 3:
        return ()
    r, m = step.before.n_real, step.before.n_real + step.before.n_pairs
    i, j = np.triu_indices(m, 1)
    i = np.concatenate([i, np.arange(r, m)])
    j = np.concatenate([j, np.arange(r, m) + step.before.n_pairs])
    if len(clustered):
        apart = ~(np.isin(i, clustered) | np.isin(j, clustered))
        i, j = i[apart], j[apart]
    D = values[:, i] - values[:, j]
    square, h = D**2, np.diff(s)[:, None]
    chord = np.diff(square, axis=0) / h
    inner = (chord[1:] * h[:-1] + chord[:-1] * h[1:]) / (h[1:] + h[:-1])
    first = inner[0] if k else 2 * chord[0] - inner[0]
    last = inner[k] if k < len(inner) else 2 * chord[k] - inner[-1]
    ends = square[k], square[k + 1], first * h[k], last * h[k]
    a, b, *slopes = ((part * square[k].conj()).real for part in ends)
    lowest = np.minimum(np.minimum(a + slopes[0] / 3, b - slopes[1] / 3), b)  # of Bezier points
    stays = (D[k] * D[k + 1].conj()).real > 0  # those that pass each other are judged as such
    turns = np.flatnonzero(stays & (lowest < 0))
    path = cubic(a[turns], b[turns], (slopes[0][turns], slopes[1][turns]), _FINE)
    turns = turns[(path < 0).any(axis=0)]
    return tuple(sorted({*i[turns].tolist(), *j[turns].tolist()}))


def _coupling(overlap: Array, D: ComplexArray) -> Array:
    """Couplings (k,) by which vectors at distances D (p, k) turn into each other in a step."""
    motion = np.maximum(np.abs(D[-1] - D[0]), _TINY)
    with np.errstate(over="ignore"):  # of those that do not move it is not known
        return np.sqrt(overlap) * np.abs(D[0] * D[-1]) / motion


def _round_off(step: Step, order: Array, i: Array, j: Array) -> Array:
    """Size (k,) of the coupling of pairs that round-off makes, in units that balance it."""
    before, after = step.before.condition, step.after.condition[order]
    first = step.before.norm * np.sqrt(before[i] * before[j])
    return ROUND_OFF * np.maximum(first, step.after.norm * np.sqrt(after[i] * after[j]))


def _near(
    first: ComplexArray, second: ComplexArray, slopes: tuple[ComplexArray, ComplexArray], m: int
) -> tuple[Array, Array]:
    """Pairs i < j < m of columns that are no farther apart than they move several times.

    Of a pair one half is enough: to meet the other half of another, both must become real.
    """

    def apart(x: ComplexArray) -> Array:
        return np.abs(x[:m, None] - x[:m])

    distance = np.minimum(apart(first), apart(second))
    motion = np.maximum(np.maximum(apart(slopes[0]), apart(slopes[1])), apart(second - first))
    i, j = np.nonzero(distance <= _FAR * motion)
    above = i < j
    return i[above], j[above]


def _bent(paths: ComplexArray) -> Array:
    """Whether each path (5, n) is off its chord by more than `BENT`: A may be rough there."""
    straight = paths[0] + SAMPLES[:, None] * (paths[-1] - paths[0])
    size = np.abs(paths).max(axis=0)
    return np.abs(paths - straight).max(axis=0) > BENT * np.maximum(size, SMALL * size.max())


def cubic(
    first: ComplexArray,
    second: ComplexArray,
    slopes: tuple[ComplexArray, ComplexArray],
    samples: Array = SAMPLES,
) -> ComplexArray:
    """Values (p, ..) at samples (p,) of a step of cubics with these ends and slopes (..)."""
    t = samples.reshape(-1, *(1,) * first.ndim)
    chord = second - first
    bow = (1 - t) * (slopes[0] - chord) - t * (slopes[1] - chord)
    return first + t * chord + t * (1 - t) * bow
