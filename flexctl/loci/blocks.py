"""Steps in which some eigenvalues are not simple: clusters, and pairs that meet on the real axis.

Where a pair becomes two real eigenvalues, or two become a pair, their eigenvectors coalesce while
the subspace of both goes on smoothly, and with it half the square of their difference: its sign
changes where they meet. They are followed through as one block; so are eigenvalues that round-off
cannot tell apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.loci.frames import SAMPLES, Contacts, Frames, bent, find_contacts, move_frame
from flexctl.loci.spectrum import Spectrum, closed_under_conjugation, overlaps
from flexctl.loci.steps import (
    LEAST_OVERLAP,
    Family,
    Meeting,
    Step,
    StepMatch,
    find_meetings,
)


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


def _find_units(spectrum: Spectrum) -> list[Unit]:
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


def _merge(spectrum: Spectrum, units: Sequence[Unit]) -> Unit:
    """Take one pair unit, or two real ones, as one real unit of all their eigenvalues."""
    columns = tuple(column for unit in units for column in unit.columns)
    if not units[0].real:
        columns += tuple(column + spectrum.n_pairs for column in columns)
    return Unit(real=True, columns=columns, basis=spectrum.basis(columns))


def _frame(units: Sequence[Unit]) -> tuple[ComplexArray, list[slice]]:
    """Return the bases of all units, then the conjugates of pairs, side by side, (n, n).

    With them the columns of each: of all units first, of the conjugates in the order of the pairs.
    """
    bases = [unit.basis for unit in units]
    bases += [unit.basis.conj() for unit in units if not unit.real]
    ends = np.cumsum([0, *(basis.shape[1] for basis in bases)])
    return np.hstack(bases), [slice(i, j) for i, j in pairwise(ends.tolist())]


def _inverse(V: ComplexArray) -> ComplexArray:
    return np.linalg.inv(V).astype(complex, copy=False)


def unit_overlaps(before: Sequence[Unit], after: Sequence[Unit]) -> Array:
    """Overlap of subspaces (len(before), len(after)): m of equal ones of dimension m."""
    V0, blocks0 = _frame(before)
    V1, blocks1 = _frame(after)
    Q = overlaps(V0, _inverse(V0), V1, _inverse(V1)).real
    rows = np.add.reduceat(Q, [block.start for block in blocks0], axis=0)[: len(before)]
    return np.add.reduceat(rows, [block.start for block in blocks1], axis=1)[:, : len(after)]


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """Units before and after a step, in matching order; the first `events` change their kind.

    `overlap` (b, b) is that of their subspaces, over their dimensions.
    """

    before: list[Unit]
    after: list[Unit]
    events: int
    overlap: Array


def join_blocks(step: Step, pairing: Pairing | None, family: Family) -> StepMatch:
    """Join a step with clusters, or with another number of real eigenvalues after it.

    `pairing` is that of `pair_up`; `family` gives A at a parameter, in the units of the step, to
    find where eigenvalues meet.
    """
    if pairing is None:
        return hard_to_match(step)
    try:
        return _judge(step, pairing, family)
    except np.linalg.LinAlgError:
        return hard_to_match(step)


def hard_to_match(step: Step) -> StepMatch:
    """Doubt the clusters before a step, or where it has none what is nearest to another."""
    return StepMatch(order=np.arange(len(step.before.values)), doubtful=_doubtful(step))


def _doubtful(step: Step) -> tuple[int, ...]:
    clustered = tuple(column for members in step.before.clusters for column in members)
    if clustered:
        return clustered
    distance = np.abs(step.before.values[:, None] - step.before.values)
    np.fill_diagonal(distance, np.inf)
    return tuple(int(k) for k in np.unravel_index(distance.argmin(), distance.shape))


def pair_up(step: Step) -> Pairing | None:
    """Match units of a kind, after merging pairs and real ones that become each other."""
    try:
        return _pair_up(step.before, step.after)
    except np.linalg.LinAlgError:
        return None


def _pair_up(before: Spectrum, after: Spectrum) -> Pairing | None:
    first, second = _find_units(before), _find_units(after)
    events: list[tuple[Unit, Unit]] = []
    for m in {len(unit.columns) for unit in first}:
        surplus = (
            Counter(u.kind for u in first)[False, m] - Counter(u.kind for u in second)[False, m]
        )
        for _ in range(abs(surplus)):
            if surplus > 0:
                event = _take(before, first, after, second, m)
            else:
                event = _take(after, second, before, first, m)
                event = event and (event[1], event[0])
            if event is None:
                return None
            events.append(event)
    if Counter(unit.kind for unit in first) != Counter(unit.kind for unit in second):
        return None
    return _matched([e[0] for e in events], [e[1] for e in events], first, second)


def _take(
    paired: Spectrum, pairs: list[Unit], real: Spectrum, reals: list[Unit], m: int
) -> tuple[Unit, Unit] | None:
    """Remove from `pairs` the pair that is real on the other side, and there the two it is."""
    Q = unit_overlaps(pairs, reals)
    ours = [i for i, unit in enumerate(pairs) if unit.kind == (False, m)]
    theirs = [j for j, unit in enumerate(reals) if unit.kind == (True, m)]
    if not ours or len(theirs) < 2:
        return None
    i = max(ours, key=lambda i: np.sort(Q[i, theirs])[-2:].sum())
    j, k = sorted(theirs, key=lambda j: -Q[i, j])[:2]
    merged = _merge(paired, [pairs[i]]), _merge(real, [reals[j], reals[k]])
    del pairs[i]
    for at in sorted((j, k), reverse=True):
        del reals[at]
    return merged


def _matched(
    done: list[Unit], partners: list[Unit], first: list[Unit], second: list[Unit]
) -> Pairing:
    """Order `second` as `first` by overlap, kinds kept; `done` have their `partners`."""
    before, after, events = [*done, *first], [*partners, *second], len(done)
    Q = unit_overlaps(before, after)
    sizes = np.array([[len(unit.columns)] for unit in before])
    kinds = [np.array([unit.kind for unit in units]) for units in (before, after)]
    same_kind = (kinds[0][:, None] == kinds[1]).all(axis=2)
    gain = np.where(same_kind, np.clip(Q, 0, sizes), -1e3)[events:, events:]
    order = events + scipy.optimize.linear_sum_assignment(-gain)[1]
    order = np.concatenate([np.arange(events), order])
    return Pairing(
        before=before,
        after=[after[j] for j in order],
        events=events,
        overlap=Q[:, order] / sizes,
    )


def _judge(step: Step, pairing: Pairing, family: Family) -> StepMatch:
    before, after = pairing.before, pairing.after
    order = column_order(step, pairing)
    overlap = np.diagonal(pairing.overlap)
    T, blocks, margins = _in_moving_frame(step.matrices(family), before, after)
    centres, contacts = _touching(T, blocks, margins)
    doubt = contacts.doubtful | bent(centres[None])[0]
    doubtful = set(np.flatnonzero(doubt[: len(before)]))
    doubtful |= set(np.flatnonzero(overlap < LEAST_OVERLAP))
    squares = [_half_difference(T, blocks[k]) for k in range(pairing.events)]
    doubtful |= {k for k, square in enumerate(squares) if not _changes_sign_once(square)}
    if doubtful:
        columns = {column for i in doubtful for column in before[i].columns}
        return StepMatch(order=order, doubtful=tuple(sorted(columns)))
    meetings = tuple(
        _locate(step, before[k], T[:, blocks[k], blocks[k]], squares[k], family)
        for k in range(pairing.events)
    )
    rest = slice(pairing.events, None)
    columns = [unit.columns[0] for unit in before[rest]]
    others = find_meetings(step, centres[:, rest], contacts.of(rest), columns, family)
    return StepMatch(order=order, meetings=(*meetings, *others))


def column_order(step: Step, pairing: Pairing) -> Array:
    """Column after the step of every column before it.

    The upper half of a pair becomes the greater of two real eigenvalues and the other way around.
    """
    n, c0, c1 = len(step.before.values), step.before.n_pairs, step.after.n_pairs
    order = np.full(n, -1)
    for k, (a, b) in enumerate(zip(pairing.before, pairing.after, strict=True)):
        rank = _by_height if k < pairing.events else _by_value
        for i, j in rank(step, a, b):
            order[i] = j
            if not a.real:
                order[i + c0] = j + c1
    return order


def _by_height(step: Step, a: Unit, b: Unit) -> list[tuple[int, int]]:
    def sort(values: ComplexArray, columns: Sequence[int]) -> list[int]:
        return sorted(columns, key=lambda k: (-values[k].imag, -values[k].real))

    ends = sort(step.before.values, a.columns), sort(step.after.values, b.columns)
    return list(zip(*ends, strict=True))


def _by_value(step: Step, a: Unit, b: Unit) -> list[tuple[int, int]]:
    first, second = step.before.values[list(a.columns)], step.after.values[list(b.columns)]
    rows, columns = scipy.optimize.linear_sum_assignment(np.abs(first[:, None] - second))
    return [(a.columns[i], b.columns[j]) for i, j in zip(rows, columns, strict=True)]


def _in_moving_frame(
    matrices: tuple[Array, Array, Array], before: Sequence[Unit], after: Sequence[Unit]
) -> tuple[ComplexArray, list[slice], Array]:
    """T (5, n, n) over the step, its blocks, and between blocks the coupling that is none."""
    V0, blocks = _frame(before)
    V1, _ = _frame(after)
    W0 = _inverse(V0)
    for block in blocks:
        V1[:, block] = V1[:, block] @ np.linalg.inv(W0[block] @ V1[:, block])
    first, between, last = matrices
    A = first[None], between[None], last[None]
    frames = Frames(V0=V0[None], V1=V1[None], W0=W0[None], mates=_mates(before, blocks)[None])
    T, unseen, noise = move_frame(A, frames, SAMPLES)
    return T[:, 0], blocks, np.array([unseen[0], noise[0]])


def _mates(units: Sequence[Unit], blocks: Sequence[slice]) -> Array:
    """Which column of the frame of `units` is the conjugate of each (n,)."""
    mates = np.arange(blocks[-1].stop)
    pairs = [block for unit, block in zip(units, blocks, strict=False) if not unit.real]
    for upper, lower in zip(pairs, blocks[len(units) :], strict=True):
        mates[upper], mates[lower] = mates[lower].copy(), mates[upper].copy()
    return mates


def _touching(
    T: ComplexArray, blocks: Sequence[slice], margins: Array
) -> tuple[ComplexArray, Contacts]:
    """Centres (5, b) of the discs of all blocks, and which touch.

    A block's disc holds its eigenvalues, and is widened as far as its coupling to the rest can
    move one.
    """
    unseen, noise = (_block_norms(M[None], blocks)[0] for M in margins)
    coupling = _block_norms(T, blocks).max(axis=0)
    np.fill_diagonal(coupling, 0.0)
    extents = [_mean_and_extent(T[:, block, block]) for block in blocks]
    centres = np.array([mean for mean, _ in extents]).T
    spread = np.array([extent.max() for _, extent in extents])
    departure = np.array([_departure(T[:, block, block]) for block in blocks])
    size = np.array([block.stop - block.start for block in blocks])
    return centres, find_contacts(coupling + unseen, noise, centres, spread, departure, size)


def _mean_and_extent(T: ComplexArray) -> tuple[ComplexArray, Array]:
    """Mean (5,) of the eigenvalues of T (5, m, m), and how far the farthest is from it."""
    if T.shape[1] == 1:
        return T[:, 0, 0], np.zeros(len(T))
    values = np.linalg.eigvals(T)
    mean = values.mean(axis=1)
    return mean, np.abs(values - mean[:, None]).max(axis=1)


def _block_norms(M: Array, blocks: Sequence[slice]) -> Array:
    """Frobenius norms (p, b, b) of all blocks of M (p, n, n)."""
    starts = [block.start for block in blocks]
    square = np.add.reduceat(np.abs(M) ** 2, starts, axis=1)
    return np.sqrt(np.add.reduceat(square, starts, axis=2))


def _departure(T: ComplexArray) -> float:
    """Greatest departure from normality of matrices T (p, m, m): what their Schur forms add."""
    if T.shape[1] == 1:
        return 0.0
    forms = (scipy.linalg.schur(one, output="complex")[0] for one in T)
    return max(float(np.linalg.norm(np.triu(form, 1))) for form in forms)


def _half_difference(T: ComplexArray, block: slice) -> Array:
    """Mean square (5,) of the eigenvalues of a block about their mean: below 0 of a pair."""
    m = block.stop - block.start
    own = T[:, block, block]
    mean = np.trace(own, axis1=1, axis2=2) / m
    centred = own - mean[:, None, None] * np.eye(m)
    return (np.trace(centred @ centred, axis1=1, axis2=2) / m).real


def _changes_sign_once(square: Array) -> bool:
    """Whether samples (5,) go from one sign to the other and always the same way."""
    rises = np.diff(square)
    monotone = (rises > 0).all() or (rises < 0).all()
    slope = np.polyder(np.polyfit(SAMPLES, square, 3))
    flat = np.roots(slope)
    inside = np.isreal(flat) & (flat.real >= 0) & (flat.real <= 1)
    return bool(square[0] * square[-1] < 0 and monotone and not inside.any())


def _locate(step: Step, unit: Unit, T: ComplexArray, square: Array, family: Family) -> Meeting:
    """Find where a pair becomes real or the other way around, on the eigenvalues of A itself."""
    means = (np.trace(T, axis1=1, axis2=2) / T.shape[1]).real
    near = np.polynomial.Polynomial.fit(SAMPLES, means, 4)

    def own(s: float) -> ComplexArray:
        values = np.linalg.eigvals(family(s)).astype(complex)
        expected = near((s - step.before.s) / step.width)
        return values[np.argsort(np.abs(values - expected))[: T.shape[1]]]

    def difference(s: float) -> float:
        values = own(s)
        return float(np.mean((values - values.mean()) ** 2).real)

    a, b = step.before.s, step.after.s
    known = {a: float(square[0]), b: float(square[-1])}
    root: Any = scipy.optimize.brentq(
        lambda s: known.get(s) or difference(s), a, b, xtol=1e-13 * (abs(a) + abs(b))
    )
    return Meeting(
        kind="break-in" if square[0] < 0 else "break-away",
        columns=unit.columns,
        start=float(root),
        end=float(root),
        value=complex(own(float(root)).mean().real),
    )
