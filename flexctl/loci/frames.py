"""A matrix between two parameters, in a frame that moves from eigenvectors to eigenvectors.

With V(t) = (1 - t) V_0 + t V_1 the matrix T(t) = V(t)^-1 A(t) V(t) is diagonal at both ends where
the columns of V_1 stand in the right order, and nearly so between: its eigenvalues lie in discs
(Gershgorin). While no two discs touch each holds one eigenvalue, so that the one in a disc at t = 0
is the same branch as the one in it at t = 1, whatever lies between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from flexctl.checks import Array, ComplexArray

Reach = Callable[[Array], Array]
SAMPLES = np.linspace(0, 1, 5)
SAFETY = 2.0  # discs are taken so much larger than they were found
UNSEEN = 0.25  # share of what the second difference of A adds that its higher ones may add
NEGLIGIBLE = 1e-12  # couplings both ways below this share of an eigenvalue are none
NARROW = 1e-9  # eigenvalues that pass at less than this share of their size might as well cross
_APPROACH = 0.1  # share of their greatest distance in a step at which two might meet in it
BENT = 0.02  # share of an eigenvalue by which its way may be off a straight line in a step
_SMALL = 1e-6  # of the largest eigenvalue: below, one is as good as none in this
_FAR = 1e100
_POWERS = 8
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


def move_frame(
    A: tuple[Array, Array, Array], V0: ComplexArray, V1: ComplexArray
) -> tuple[ComplexArray, Array, Array]:
    """See matrices in a frame that goes from V0 to V1, all (K, n, n).

    Parameters
    ----------
    A
        At t = 0, 1/2 and 1; between them A is taken for quadratic.
    V0, V1
        Frames at t = 0 and 1.

    Returns
    -------
    tuple
        T (5, K, n, n) at `SAMPLES`; how much of |T_ij| (K, n, n) may be hidden between the three
        values of A; and the size (K, n, n) of round-off in T.
    """
    bend = A[1] - (A[0] + A[2]) / 2
    t = SAMPLES[:, None, None, None]
    V = (1 - t) * V0 + t * V1
    T = np.linalg.solve(V, ((1 - t) * A[0] + t * A[2] + 4 * t * (1 - t) * bend) @ V)
    unseen = UNSEEN * np.abs(np.linalg.solve(V[2], bend @ V[2]))
    norm = np.maximum(np.linalg.norm(A[0], axis=(1, 2)), np.linalg.norm(A[2], axis=(1, 2)))
    left, right = np.linalg.norm(np.linalg.inv(V0), axis=2), np.linalg.norm(V0, axis=1)
    return (
        T.astype(complex),
        unseen,
        ROUND_OFF * norm[:, None, None] * left[:, :, None] * right[:, None, :],
    )


def pass_through(
    A: tuple[Array, Array, Array], V0: ComplexArray, V1: ComplexArray
) -> Passage:  # fmt: skip
    """See K steps in frames whose columns are eigenvectors at their ends; as `move_frame`."""
    T, unseen, noise = move_frame(A, V0, V1)
    n = T.shape[-1]
    centres = np.moveaxis(np.diagonal(T, axis1=-2, axis2=-1), 0, 1)
    coupling = np.abs(T[1:-1]).max(axis=0)
    coupling[:, range(n), range(n)] = 0.0
    return Passage(centres=centres, coupling=coupling + unseen, noise=noise)


def acting_on_each_other(coupling: Array, noise: Array, centres: ComplexArray) -> Array:
    """Tell of the pairs (n, n) whether they act on each other both ways, by whatever way.

    Coupling of the size of round-off is none, and so is what is a negligible share of centres
    (5, n) in units that balance both ways: eigenvalues are moved by sqrt(c_ij c_ji), which does not
    depend on units, however small one of the two.
    """
    acts = coupling > noise
    both = np.where(acts & strongly_connected(acts), coupling, 0.0)
    balanced = scipy.linalg.matrix_balance(both, permute=False)[0]
    size = np.abs(centres).max(axis=0)
    return strongly_connected(balanced > NEGLIGIBLE * np.minimum(size[:, None], size))


def nearest_distance(centres: ComplexArray) -> tuple[Array, Array]:
    """Least and greatest distance (K, n, n) of centres (K, 5, n), straight between samples."""
    D = centres[:, :, :, None] - centres[:, :, None, :]
    start, way = D[:, :-1], np.diff(D, axis=1)
    along = -(start * way.conj()).real
    square = np.maximum(np.abs(way) ** 2, np.finfo(float).tiny)
    least = np.abs(start + np.clip(along / square, 0, 1) * way).min(axis=1)
    return least, np.abs(D).max(axis=1)


def touching(passage: Passage) -> Array:
    """Tell of all pairs (K, n, n) whether their discs may touch, or come together at all."""
    least, greatest = nearest_distance(passage.centres)
    close = least <= np.maximum(_APPROACH * greatest, _narrow(passage.centres))
    return _meet(least, disc_radii(passage.coupling, least)) | _off_diagonal(close)


def bent(centres: ComplexArray) -> Array:
    """Tell of centres (K, 5, n) whether their way is far from straight, (K, n): a jump may hide."""
    off = np.abs(centres[:, 2] - (centres[:, 0] + centres[:, 4]) / 2)
    size = np.abs(centres).max(axis=1)
    return off > BENT * np.maximum(size, _SMALL * size.max(axis=1, keepdims=True))


def disc_radii(coupling: Array, room: Array) -> Array:
    """Radii (K, n) of discs that hold the eigenvalues, as small as their room (K, n, n) wants it.

    Discs of D^-1 T D, of radii r_i = sum_j c_ij d_j/d_i, hold them too, for any diagonal D > 0.
    With the Perron vector d of N = diag(1 / g_i) C, g_i being the distance to the nearest centre,
    the greatest r_i / g_i is the least that a D can make it, the spectral radius of N. A few steps
    of the power method come near it.  Source: [Varga04], chapter 1.
    """
    n = coupling.shape[-1]
    alone = np.where(np.eye(n, dtype=bool), np.inf, room).min(axis=-1, initial=_FAR)
    N = coupling / np.maximum(alone, 1 / _FAR)[..., None]
    d = np.ones(coupling.shape[:-1])
    for _ in range(_POWERS):
        d = (N @ d[..., None])[..., 0]
        d = np.maximum(d / np.maximum(d.max(axis=-1, keepdims=True), 1 / _FAR), _LEAST)
    return SAFETY * (coupling @ d[..., None])[..., 0] / d


def _narrow(centres: ComplexArray) -> Array:
    size = np.abs(centres).max(axis=-2)
    return NARROW * np.minimum(size[..., :, None], size[..., None, :])


def _meet(distance: Array, radius: Array) -> Array:
    near = distance <= radius[..., :, None] + radius[..., None, :]
    return _off_diagonal(near)


def _off_diagonal(pairs: Array) -> Array:
    n = pairs.shape[-1]
    return pairs & ~np.eye(n, dtype=bool)


def strongly_connected(acts: Array) -> Array:
    """Tell of the pairs (n, n) whether each acts on the other, by whatever way, given who acts."""
    reach = acts | np.eye(len(acts), dtype=bool)
    for _ in range(len(acts).bit_length()):
        reach = (reach.astype(float) @ reach) > 0
    return reach & reach.T


@dataclass(frozen=True, kw_only=True)
class Contacts:
    """Pairs (n, n) of one coupled part whose discs may touch, and of two parts that may meet.

    `narrow`: of one part, and nearer than a crossing can be told from.
    """

    touching: Array
    crossing: Array
    narrow: Array

    def of(self, some: slice) -> Contacts:
        """Contacts among some only."""
        parts = (one[some, some] for one in (self.touching, self.crossing, self.narrow))
        touching, crossing, narrow = parts
        return Contacts(touching=touching, crossing=crossing, narrow=narrow)


def find_contacts(
    coupling: Array, noise: Array, centres: ComplexArray, spread: Array, reach: Reach
) -> Contacts:
    """Find what touches in a step.

    Parts that do not act upon each other both ways (the strongly connected ones of T) have
    eigenvalues of their own, whose discs may cross.

    Parameters
    ----------
    coupling, noise
        Of a `Passage` (b, b), between eigenvalues or blocks of them.
    centres
        Of discs (5, b).
    spread
        How far a block's eigenvalues are from its centre (b,).
    reach
        How far outside of these a disc reaches (b,), by the coupling of each to the rest (b,).
    """
    same = acting_on_each_other(coupling, noise, centres)
    least, greatest = (distance[0] for distance in nearest_distance(centres[None]))
    room = np.where(same, np.maximum(least - spread[:, None] - spread, 0.0), _FAR)
    radius = reach(disc_radii(np.where(same, coupling, 0.0), room))
    meet = _meet(least - spread[:, None] - spread, radius)
    return Contacts(
        touching=meet & same,
        crossing=(meet | (least <= _APPROACH * greatest)) & ~same,
        narrow=_off_diagonal(least <= _narrow(centres)) & same,
    )
