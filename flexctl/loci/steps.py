"""Steps between neighbouring parameters, judged many at a time: joined, or to be divided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.loci.frames import (
    SAMPLES,
    Contacts,
    Frames,
    Passage,
    bent,
    far_apart,
    find_contacts,
    pass_through,
)
from flexctl.loci.spectrum import Spectrum, match_by_overlap, overlaps

LEAST_OVERLAP = 0.5  # least overlap of an eigenvector with itself one step on
_MEET = 1e-7  # share of its size at which an eigenvalue has met another that it is not coupled to
_NEWTON = 12
_BY = 10.0  # ratio of lateral to longitudinal distance above which two eigenvalues miss each other
_EXACT = 1e-10  # share of a step
_FINE = np.linspace(0, 1, 129)
Family = Callable[[float], Array]


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step from one spectrum to the next."""

    before: Spectrum
    after: Spectrum

    @property
    def width(self) -> float:
        """Length in the parameter."""
        return self.after.s - self.before.s

    def matrices(self, family: Family) -> tuple[Array, Array, Array]:
        """Return A (n, n) at the beginning, half way and at the end."""
        return self.before.A, family((self.before.s + self.after.s) / 2), self.after.A


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """Eigenvalues of a step that come together: their columns before it, where, and as what.

    `kind` is "crossing", "break-in", "break-away", or "narrow": passing so near that it might be
    a crossing.
    """

    kind: str
    columns: tuple[int, ...]
    start: float
    end: float
    value: complex


@dataclass(frozen=True, kw_only=True)
class StepMatch:
    """How the spectra at the ends of a step are joined.

    Attributes
    ----------
    order
        Column after the step (n,) of every column before it.
    doubtful
        Columns before it whose discs may touch; none where the step is safe.
    meetings
        What comes together in it.
    proven
        Whether it is joined by a proof, or followed by its eigenvectors.
    part
        Share of the step at which it is best divided where it is doubtful.
    """

    order: Array
    doubtful: tuple[int, ...] = ()
    meetings: tuple[Meeting, ...] = ()
    proven: bool = True
    part: float = 0.5

    @property
    def safe(self) -> bool:
        """Whether the step is joined beyond doubt."""
        return not self.doubtful


def join_regular(steps: Sequence[Step], family: Family) -> list[StepMatch]:
    """Join steps at whose ends all eigenvalues are distinct, and as many real ones at both.

    `family` gives A at a parameter, in the units of the steps, to find where eigenvalues meet.
    """
    if not steps:
        return []
    V0, W0, V1, W1 = (
        np.stack(parts)
        for parts in zip(
            *((s.before.V, s.before.W, s.after.V, s.after.W) for s in steps), strict=True
        )
    )
    Q = overlaps(V0, W0, V1, W1)
    orders = np.stack([match_by_overlap(step.before, q) for step, q in zip(steps, Q, strict=True)])
    own = np.take_along_axis(Q, orders[:, :, None], axis=2)[:, :, 0].real
    V1 = np.take_along_axis(V1, orders[:, None, :], axis=2)
    frames = _aligned(V0, W0, V1, np.stack([step.before.mates for step in steps]))
    matches = [_doubtful(order, own[k] < LEAST_OVERLAP) for k, order in enumerate(orders)]
    clear = [k for k, match in enumerate(matches) if match.safe]
    judged = _pass([steps[k] for k in clear], orders[clear], frames.of(clear), family)
    for k, match in zip(clear, judged, strict=True):
        matches[k] = match
    return matches


def _doubtful(order: Array, doubt: Array) -> StepMatch:
    return StepMatch(order=order, doubtful=tuple(np.flatnonzero(doubt).tolist()))


def _pass(steps: Sequence[Step], orders: Array, frames: Frames, family: Family) -> list[StepMatch]:
    """Judge steps whose frames are known; all are unresolved where a frame is singular within."""
    if not steps:
        return []
    before, between, after = zip(*(step.matrices(family) for step in steps), strict=True)
    A = np.stack(before), np.stack(between), np.stack(after)
    ends = np.array(
        [(s.before.values, s.after.values[order]) for s, order in zip(steps, orders, strict=True)]
    )
    try:
        passage = pass_through(A, frames, ends)
    except np.linalg.LinAlgError:
        if len(steps) == 1:
            return [_doubtful(orders[0], np.ones(len(orders[0]), dtype=bool))]
        return [
            match
            for k, step in enumerate(steps)
            for match in _pass([step], orders[[k]], frames.of([k]), family)
        ]
    clear = far_apart(passage) & ~bent(passage.centres).any(axis=1)
    return [
        StepMatch(order=orders[k]) if clear[k] else _judged(step, passage, k, orders[k], family)
        for k, step in enumerate(steps)
    ]


def _aligned(V0: ComplexArray, W0: ComplexArray, V1: ComplexArray, mates: Array) -> Frames:
    """Scale columns so that |w_0| = |v_0| and w_0^H v_1 = 1, w_0 being the rows of V_0^-1."""
    size = np.sqrt(np.linalg.norm(W0, axis=2) / np.linalg.norm(V0, axis=1))
    along = np.einsum("kij,kji->ki", W0, V1)
    along = np.where(np.abs(along) < np.finfo(float).tiny, 1.0, along)
    return Frames(
        V0=V0 * size[:, None, :],
        V1=V1 * (size / along)[:, None, :],
        W0=W0 / size[:, :, None],
        mates=mates,
    )


def _judged(step: Step, passage: Passage, k: int, order: Array, family: Family) -> StepMatch:
    centres = passage.centres[k]
    n = len(order)
    coupling, noise = passage.coupling[k], passage.noise[k]
    contacts = find_contacts(coupling, noise, centres, np.zeros(n), np.zeros(n), np.ones(n))
    doubt = contacts.doubtful | bent(centres[None])[0]
    if doubt.any():
        return _doubtful(order, doubt)
    columns = range(step.before.n_real + step.before.n_pairs)
    return StepMatch(order=order, meetings=find_meetings(step, centres, contacts, columns, family))


def find_meetings(
    step: Step, centres: ComplexArray, contacts: Contacts, columns: Sequence[int], family: Family
) -> tuple[Meeting, ...]:
    """Uncoupled eigenvalues that meet in a step, and coupled ones that nearly do.

    `columns` are those of the first centres; the others (of centres (5, b)) are lower halves.
    """
    narrow = [_narrow(step, columns[i], columns[j]) for i, j in _pairs(contacts.narrow, columns)]
    found = (
        find_meeting(step, (columns[i], columns[j]), (centres[:, i], centres[:, j]), family)
        for i, j in _pairs(contacts.crossing, columns)
    )
    return (*narrow, *(one for one, _ in found if one is not None))


def find_meeting(
    step: Step, columns: tuple[int, int], paths: tuple[ComplexArray, ComplexArray], family: Family
) -> tuple[Meeting | None, bool]:
    """Find where two eigenvalues cross whose paths (5,) come together.

    Returns the meeting, or None, and whether that is certain.
    """
    nearest = _meet(step, *paths, family)
    if nearest.apart:
        return None, nearest.by
    if nearest.outside:
        return None, True
    value = (nearest.a + nearest.b) / 2
    meeting = Meeting(kind="crossing", columns=columns, start=nearest.s, end=nearest.s, value=value)
    return meeting, True


@dataclass(frozen=True, kw_only=True)
class _Nearest:
    """Two eigenvalues a and b where they are nearest in a step.

    `by`: they miss each other there; `outside`: they are nearer outside of the step.
    """

    s: float
    a: complex
    b: complex
    by: bool
    outside: bool

    @property
    def apart(self) -> bool:
        """Whether they are too far apart to be one."""
        return abs(self.a - self.b) > _MEET * abs(self.a)


def _narrow(step: Step, i: int, j: int) -> Meeting:
    value = complex(step.before.values[i])
    ends = step.before.s, step.after.s
    return Meeting(kind="narrow", columns=(i, j), start=ends[0], end=ends[1], value=value)


def _pairs(contact: Array, columns: Sequence[int]) -> list[tuple[int, int]]:
    upper = np.triu(contact)[: len(columns), : len(columns)]
    return [(int(i), int(j)) for i, j in zip(*np.nonzero(upper), strict=True)]


def _meet(step: Step, first: ComplexArray, second: ComplexArray, family: Family) -> _Nearest:
    """Find where two centres (5,) are nearest.

    Begun at the least distance of the centres and found on the eigenvalues of A itself by Newton's
    method: their difference, of which only the square is smooth, has nearly the slope of the
    centres' difference. So near to each other nothing says which is which, and so on which side of
    the meeting they are: Newton's step is tried both ways.
    """
    expected = _through(first), _through(second)
    difference = expected[0] - expected[1]

    def nearest(t: float) -> tuple[float, complex, complex]:
        values = np.linalg.eigvals(family(step.before.s + t * step.width)).astype(complex)
        cost = np.abs(np.array([one(t) for one in expected])[:, None] - values)
        a, b = values[scipy.optimize.linear_sum_assignment(cost)[1]]
        return t, complex(a), complex(b)

    best, by, along = nearest(float(_FINE[np.abs(difference(_FINE)).argmin()])), False, 0.0
    for _ in range(_NEWTON):
        t, a, b = best
        slope = complex(difference.deriv()(t))
        apart = (a - b) / slope if slope else 0j
        along = abs(apart.real)
        by = abs(a - b) > _MEET * abs(a) and abs(apart.imag) > _BY * along
        if by or along <= _EXACT:
            break
        tried = [nearest(x) for x in (t - apart.real, t + apart.real) if 0 <= x <= 1]
        best = min([best, *tried], key=lambda one: abs(one[1] - one[2]))
        if best[0] == t:
            break
    t, a, b = best
    outside = t in (0, 1) and along > _EXACT
    return _Nearest(s=float(step.before.s + t * step.width), a=a, b=b, by=by, outside=outside)


def _through(samples: ComplexArray) -> np.polynomial.Polynomial:
    return np.polynomial.Polynomial.fit(SAMPLES, samples, 4, domain=[0, 1], window=[0, 1])
