"""A matrix between two parameters, in a frame that moves from eigenvectors to eigenvectors.

With V(t) = (1 - t) V_0 + t V_1 the matrix T(t) = V(t)^-1 A(t) V(t) is diagonal at both ends where
the columns of V_1 stand in the right order, and nearly so between: its eigenvalues lie in discs
(Gershgorin). While the disc of an eigenvalue touches no other it holds one throughout, so that the
one in it at t = 0 is the same branch as the one in it at t = 1, whatever lies between. For every
eigenvalue the discs are scaled by themselves, to be small where they are near it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from flexctl.checks import Array, ComplexArray

SAMPLES = np.linspace(0, 1, 5)
SAFETY = 2.0  # couplings are taken so much larger than they were found
UNSEEN = 0.25  # share of what the second difference of A adds that its higher ones may add
NEGLIGIBLE = 1e-12  # couplings both ways below this share of an eigenvalue are none
HIDDEN = 0.2  # share of the distance of two beyond which round-off hides how they are coupled
NARROW = 1e-9  # eigenvalues that pass at less than this share of their size might as well cross
BENT = 0.02  # share of an eigenvalue by which its way may be off a straight line in a step
SMALL = 1e-6  # of the largest eigenvalue: below, one is as good as none in this
_FAR = 1e100
_ITERATIONS = 8
_REFINEMENTS = 8
_LEAST = 1e-9
ROUND_OFF = 100 * float(np.finfo(float).eps)


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A in a moving frame over steps (K of them, n columns).

    Attributes
    ----------
    centres
        Diagonal of T (K, 5, n) at t = 0, 1/4, 1/2, 3/4, 1.
    coupling
        Greatest |T_ij| (K, n, n) over t, i not j, and what A may do between its values.
    noise
        Size (K, n, n) of round-off in the coupling.
    """

    centres: ComplexArray
    coupling: Array
    noise: Array


@dataclass(frozen=True, kw_only=True)
class Frames:
    """Frames at the ends of K steps, (K, n, n), their columns in the same order.

    Attributes
    ----------
    V0, V1
        Frames at t = 0 and 1.
    W0
        V0^-1.
    mates
        Which column is the conjugate of each (K, n); of a real one it is itself.
    """

    V0: ComplexArray
    V1: ComplexArray
    W0: ComplexArray
    mates: Array

    def of(self, some: Sequence[int]) -> Frames:
        """Frames of some of the steps."""
        some = list(some)
        return Frames(V0=self.V0[some], V1=self.V1[some], W0=self.W0[some], mates=self.mates[some])


def move_frame(
    A: tuple[Array, Array, Array], frames: Frames, samples: Array
) -> tuple[ComplexArray, Array, Array]:
    """See matrices in a frame that goes from V0 to V1, all (K, n, n).

    It is computed in real numbers: of a pair the real and the imaginary part of its vector.

    Parameters
    ----------
    A
        At t = 0, 1/2 and 1; between them A is taken for quadratic.
    frames
        Frames at t = 0 and 1.
    samples
        Values of t (p,), 1/2 among them.

    Returns
    -------
    tuple
        T (p, K, n, n) at the samples; how much of |T_ij| (K, n, n) may be hidden between the three
        values of A; and the size (K, n, n) of round-off in T.
    """
    bend = A[1] - (A[0] + A[2]) / 2
    U0, U1 = (_real_parts(V, frames.mates) for V in (frames.V0, frames.V1))
    t = samples[:, None, None, None]
    U = (1 - t) * U0 + t * U1
    T = _of_pairs(
        np.linalg.solve(U, ((1 - t) * A[0] + t * A[2] + 4 * t * (1 - t) * bend) @ U), frames.mates
    )
    half = U[int(np.flatnonzero(samples == SAMPLES[2])[0])]
    unseen = UNSEEN * np.abs(_of_pairs(np.linalg.solve(half, bend @ half), frames.mates))
    norm = np.maximum(np.linalg.norm(A[0], axis=(1, 2)), np.linalg.norm(A[2], axis=(1, 2)))
    left, right = np.linalg.norm(frames.W0, axis=2), np.linalg.norm(frames.V0, axis=1)
    noise = ROUND_OFF * norm[:, None, None] * left[:, :, None] * right[:, None, :]
    return T, unseen, noise


def _real_parts(V: ComplexArray, mates: Array) -> Array:
    """Real columns (K, n, n): of a pair sqrt(2) times the real, then the imaginary part."""
    own = np.arange(V.shape[-1])
    upper, lower = (own < mates)[:, None, :], (own > mates)[:, None, :]
    root = np.sqrt(2.0)
    return np.where(lower, -root * V.imag, np.where(upper, root * V.real, V.real))


def _of_pairs(T: Array, mates: Array) -> ComplexArray:
    """Return U^H T U (.., n, n) of T in the real columns of pairs, [v, v*] = [a, b] U."""
    own, root = np.arange(T.shape[-1]), np.sqrt(0.5)
    upper, lower = own < mates, own > mates
    here = np.where(upper, root, np.where(lower, -1j * root, 1.0))
    there = np.where(upper, 1j * root, np.where(lower, root, 0.0))
    T = T * here[:, None, :] + _taken(T, mates[:, None, :]) * there[:, None, :]
    here, there = here.conj()[:, :, None], there.conj()[:, :, None]
    return T * here + _taken(T, mates[:, :, None]) * there


def _taken(T: Array, index: Array) -> Array:
    """Columns or rows of T (.., K, n, n) in the order of an index (K, 1, n) or (K, n, 1)."""
    axis = -1 if index.shape[-2] == 1 else -2
    return np.take_along_axis(T, index.reshape(*(1,) * (T.ndim - 3), *index.shape), axis=axis)


def pass_through(A: tuple[Array, Array, Array], frames: Frames, ends: ComplexArray) -> Passage:
    """See K steps in frames of eigenvectors, their eigenvalues being `ends` (K, 2, n)."""
    T, unseen, noise = move_frame(A, frames, SAMPLES[1:-1])
    n = T.shape[-1]
    inside = np.moveaxis(np.diagonal(T, axis1=-2, axis2=-1), 0, 1)
    coupling = np.abs(T).max(axis=0)
    coupling[:, range(n), range(n)] = 0.0
    return Passage(
        centres=np.concatenate([ends[:, :1], inside, ends[:, 1:]], axis=1),
        coupling=coupling + unseen,
        noise=noise,
    )


def acting_on_each_other(coupling: Array, noise: Array, centres: ComplexArray) -> Array:
    """Tell of the pairs (n, n) whether they act on each other both ways, by whatever way.

    Coupling of the size of round-off is none, and so is what is a negligible share of centres
    (5, n) in units that balance both ways: eigenvalues are moved by sqrt(c_ij c_ji), which does not
    depend on units, however small one of the two. Two whose coupling round-off hides, by
    `hidden_coupling`, count as acting on each other.
    """
    acts = coupling > noise
    both = np.where(acts & strongly_connected(acts), coupling, 0.0)
    balanced = scipy.linalg.matrix_balance(both, permute=False)[0]
    size = np.abs(centres).max(axis=0)
    coupled = balanced > NEGLIGIBLE * np.minimum(size[:, None], size)
    D = centres[:, :, None] - centres[:, None, :]
    return strongly_connected(coupled | hidden_coupling(np.sqrt(noise * noise.T), D[0], D[-1]))


def hidden_coupling(noise: Array, first: ComplexArray, last: ComplexArray) -> Array:
    """Whether round-off hides the coupling of two eigenvalues in a step that goes through zero.

    Beside a defective pair round-off moves both nearly as far as they are apart, and hides a
    coupling of that size. Their distances `first` and `last` at the ends of the step then differ by
    a right angle, as the square of their distance goes through zero. Those of eigenvalues that are
    not coupled and cross are opposite, and of others about parallel.
    """
    size = np.abs(first * last)
    hidden = noise > HIDDEN * np.minimum(np.abs(first), np.abs(last))
    return hidden & (np.abs((first * last.conj()).real) < size / 2)


def nearest_distance(centres: ComplexArray) -> tuple[Array, Array]:
    """Least distance (K, n, n) of centres (K, 5, n), straight between samples, and its error.

    Between samples a difference of centres is off a straight line by an eighth of its second
    difference; of the greatest one a quarter is taken.
    """
    samples = np.moveaxis(centres, 1, 0)
    return least_distance(samples[:, :, :, None] - samples[:, :, None, :])


def least_distance(D: ComplexArray) -> tuple[Array, Array]:
    """Least of distances D (p, ..), straight between p samples, and its error, (..) each."""
    start, path = D[:-1], np.diff(D, axis=0)
    along = -(start * path.conj()).real
    square = np.maximum(np.abs(path) ** 2, np.finfo(float).tiny)
    least = np.abs(start + np.clip(along / square, 0, 1) * path).min(axis=0)
    return least, np.abs(np.diff(path, axis=0)).max(axis=0, initial=0.0) / 4


def bent(centres: ComplexArray) -> Array:
    """Tell of centres (K, 5, n) whether their way is far from straight, (K, n): a jump may hide."""
    off = np.abs(centres[:, 2] - (centres[:, 0] + centres[:, 4]) / 2)
    size = np.abs(centres).max(axis=1)
    return off > BENT * np.maximum(size, SMALL * size.max(axis=1, keepdims=True))


def isolating_discs(
    coupling: Array, room: Array, departure: Array, size: Array
) -> tuple[Array, Array]:
    """Find for every block a disc that its eigenvalues, and no others, are in throughout.

    Eigenvalues lie within the reach of the blocks' rows of D^-1 T D, sum_j c_ij d_j/d_i, for any
    diagonal D > 0 (Gershgorin). For block i the D is sought by which its own disc takes no more
    than half of the way to its nearest neighbour, and that of every other block j less than the
    rest of its way to j: others may touch each other as they like. It exists where the matrix of
    couplings over what the blocks withstand at these distances has a spectral radius below one;
    d is the geometric mean of itself and of a step of the power method, repeated. The other blocks'
    d_j are then made as small as their discs allow, and with them that of i: it is of second order
    in the couplings.
    Source: [Varga04], chapters 1 and 2.

    Parameters
    ----------
    coupling
        Greatest norms (K, b, b) of the couplings between blocks.
    room
        Distances (K, b, b) of the eigenvalues of the blocks.
    departure, size
        Of the blocks (b,), as in `withstood`.

    Returns
    -------
    tuple
        Whether there is such a disc (K, b), and its radius (K, b) about the block's eigenvalues.
    """
    own = np.eye(coupling.shape[-1], dtype=bool)
    room = np.where(own, _FAR, room)
    half = room.min(axis=-1, initial=_FAR) / 2
    distance = np.where(own, half[..., None], room - half[..., None])
    limit = withstood(distance, departure, size)
    rows = np.swapaxes(SAFETY * coupling, -1, -2)
    d = np.ones_like(limit)  # of every block that is to be isolated a row
    # infinite couplings and blocks without room give NaN here, which isolates nothing
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for _ in range(_ITERATIONS):
            d = np.sqrt(d * (d @ rows) / limit)
            d = np.maximum(d / np.maximum(d.max(axis=-1, keepdims=True), 1 / _FAR), _LEAST)
        isolated = np.asarray((d @ rows <= limit * d).all(axis=-1))
        d /= np.diagonal(d, axis1=-2, axis2=-1)[..., None]
        for _ in range(_REFINEMENTS):
            d = np.where(own, 1.0, d @ rows / limit)
        taken = np.diagonal(d @ rows / limit, axis1=-2, axis2=-1)
        return isolated, half * np.where(isolated, taken ** (1 / size), 1.0)


def withstood(distance: Array, departure: Array, size: Array) -> Array:
    """Coupling (.., b) by which no eigenvalue of blocks moves farther than a distance (.., b).

    By Henrici's bound d / (1 + x + .. + x^(m-1)), x = D/d, of blocks of `size` m (b,) that depart
    from normality by D (b,); of a single eigenvalue the distance itself.  Source: [Henrici62].
    """
    d = np.maximum(distance, 1 / _FAR)
    with np.errstate(over="ignore"):
        powers = ((departure / d) ** k * (size > k) for k in range(1, int(size.max(initial=1))))
        return d / (1.0 + sum(powers))


def _narrow(centres: ComplexArray) -> Array:
    size = np.abs(centres).max(axis=-2)
    return NARROW * np.minimum(size[..., :, None], size[..., None, :])


def _off_diagonal(pairs: Array) -> Array:
    n = pairs.shape[-1]
    return pairs & ~np.eye(n, dtype=bool)


def far_apart(passage: Passage) -> Array:
    """Tell of steps (K,) whether every eigenvalue stays in a disc of its own, near no other."""
    least, error = nearest_distance(passage.centres)
    n = least.shape[-1]
    isolated, radius = isolating_discs(passage.coupling, least, np.zeros(n), np.ones(n))
    near = _near(least, error, radius) | (least <= _narrow(passage.centres))
    return np.asarray(isolated.all(axis=-1) & ~_off_diagonal(near).any(axis=(-2, -1)))


def _near(distance: Array, error: Array, radius: Array) -> Array:
    """Tell of pairs (K, b, b) whether they may meet, for all that samples show and radii allow."""
    return distance <= radius[..., :, None] + radius[..., None, :] + error


def strongly_connected(acts: Array) -> Array:
    """Tell of the pairs (n, n) whether each acts on the other, by whatever way, given who acts."""
    reach = acts | np.eye(len(acts), dtype=bool)
    for _ in range(len(acts).bit_length()):
        reach = (reach.astype(float) @ reach) > 0
    return reach & reach.T


@dataclass(frozen=True, kw_only=True)
class Contacts:
    """What comes together in a step, of b blocks.

    Attributes
    ----------
    doubtful
        Blocks (b,) that no disc isolates from the others of their coupled part.
    crossing
        Pairs (b, b) of two parts that may meet.
    narrow
        Pairs (b, b) of one part that are nearer than a crossing can be told from.
    """

    doubtful: Array
    crossing: Array
    narrow: Array

    def of(self, some: slice) -> Contacts:
        """Contacts among some only."""
        return Contacts(
            doubtful=self.doubtful[some],
            crossing=self.crossing[some, some],
            narrow=self.narrow[some, some],
        )


def find_contacts(
    coupling: Array,
    noise: Array,
    centres: ComplexArray,
    spread: Array,
    departure: Array,
    size: Array,
) -> Contacts:
    """Find what may come together in a step.

    Parts that do not act upon each other both ways (the strongly connected ones of T) have
    eigenvalues of their own, whose discs may cross.

    Parameters
    ----------
    coupling, noise
        Of a `Passage` (b, b), between eigenvalues or blocks of them.
    centres
        Of blocks (5, b).
    spread
        How far a block's eigenvalues are from its centre (b,).
    departure, size
        Of the blocks (b,), as in `withstood`.
    """
    same = acting_on_each_other(coupling, noise, centres)
    least, error = (one[0] for one in nearest_distance(centres[None]))
    room = np.maximum(least - spread[:, None] - spread, 0.0)
    isolated, radius = isolating_discs(
        np.where(same, coupling, 0.0), np.where(same, room, _FAR), departure, size
    )
    narrow = least <= _narrow(centres)
    return Contacts(
        doubtful=~isolated,
        crossing=_off_diagonal(_near(room, error, radius) | narrow) & ~same,
        narrow=_off_diagonal(narrow) & same,
    )
