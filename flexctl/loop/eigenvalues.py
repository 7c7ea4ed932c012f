"""Eigenvalues of a closed loop: what they say of stability, how exact they are, and their names.

An eigenvalue is named by the joint, spring or mode of a line with the largest participation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from flexctl.checks import Array, ComplexArray
from flexctl.loop.closed_loop import ClosedLoop
from flexctl.plant import line_modes

ON_AXIS = 1e-9  # |Re| below this fraction of |lambda| is neither stable nor unstable
_SHARP = 1e-3  # 1/s: bound of the error of X^-1 A X with which it is better than A
_BLUR = 1e-9  # 1/s: an error of eigenvalues that no verdict on an arm depends on
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def judge_poles(poles: ComplexArray) -> bool | str:
    """Judge poles: True for stable, False for unstable, "marginal" if |Re| <= 1e-9 |lambda|."""
    margin = ON_AXIS * np.abs(poles)
    if (poles.real > margin).any():
        return False
    return True if (poles.real < -margin).all() else "marginal"


def spectral_abscissa(poles: ComplexArray) -> float:
    """Largest real part [1/s]; one that is neither stable nor unstable counts as 0."""
    on_axis = np.abs(poles.real) <= ON_AXIS * np.abs(poles)
    return float(np.where(on_axis, 0.0, poles.real).max())


def damping_ratios(poles: ComplexArray) -> Array:
    """-Re/|lambda| of every pole (n,) [-]; 0 within round-off of the axis."""
    ratios = -poles.real / np.maximum(np.abs(poles), np.finfo(float).tiny)
    return np.where(np.abs(ratios) <= ON_AXIS, 0.0, ratios)


def needs_extended_precision(F: Array) -> bool:
    """Whether a law of state matrix F (n_z, n_z) [1/s] has poles too fast for plain eigenvalues.

    A solver in double precision gives those of a matrix that differs by about eps of its norm: with
    the pole of an H-infinity law at 1e9 rad/s, each moves by 1e-7 1/s times its condition number.
    """
    limit = _BLUR / np.finfo(float).eps
    if np.linalg.norm(F) <= limit:  # no eigenvalue is larger than the norm
        return False
    return bool(np.abs(np.linalg.eigvals(F)).max(initial=0.0) > limit)


def extended_precision_eigenvalues(A: Array) -> ComplexArray:
    """Eigenvalues (N,) [rad/s] of A (N, N), which is first brought close to its diagonal form.

    With the eigenvectors of double precision as X, for a pair their real and imaginary parts,
    X^-1 A X is almost block diagonal. Formed in extended precision it keeps what is lost in A;
    where the platform has none, nothing is gained.
    """
    values, V = (np.asarray(part, dtype=complex) for part in np.linalg.eig(A))
    X = np.where(np.imag(values) < 0, np.imag(V), np.real(V)).astype(np.longdouble)
    error = float(np.finfo(np.longdouble).eps) * np.linalg.cond(X.astype(float)) * np.linalg.norm(A)
    if not error < _SHARP:  # eigenvectors are all but equal: nothing to be gained
        return values
    Y = np.linalg.inv(X.astype(float)).astype(np.longdouble)
    inverse = (2 * np.eye(len(A)) - Y @ X) @ Y  # a Newton step, as Y X = 1 + O(eps cond X)
    return np.linalg.eigvals((inverse @ A @ X).astype(float)).astype(complex)


@dataclass(frozen=True, kw_only=True)
class ModeNames:
    """Names of the motions of a closed loop at a pose, and their participation in eigenvalues.

    Attributes
    ----------
    T
        (N, N): x = T y, where y has the amplitudes of each line's own modes, clamped and without
        load, in place of its coordinates.
    names
        Of the entries of y (N,); those of one motion have one name.
    """

    T: Array
    names: tuple[str, ...]

    @cached_property
    def _inverse(self) -> Array:
        return np.linalg.inv(self.T)

    def participation(self, A: Array, value: complex) -> dict[str, float]:
        """Participation [-] of all motions in the eigenvalue of A (N, N) next to `value`, sorted.

        Sums of |w_k v_k| over the entries of one name, w and v being left and right eigenvectors,
        divided by their total.
        """
        values, W, V = eigenvectors(self._inverse @ A @ self.T)
        k = int(np.abs(values - value).argmin())
        shares: dict[str, float] = {}
        for name, share in zip(self.names, np.abs(W[:, k] * V[:, k]), strict=True):
            shares[name] = shares.get(name, 0.0) + float(share)
        total = sum(shares.values()) or 1.0
        ordered = sorted(shares.items(), key=lambda item: -item[1])
        return {name: share / total for name, share in ordered}

    def name(self, A: Array, value: complex) -> str:
        """Motion with the largest participation in the eigenvalue of A (N, N) next to `value`."""
        return next(iter(self.participation(A, value)))


def eigenvectors(A: Array) -> tuple[ComplexArray, ComplexArray, ComplexArray]:
    """Eigenvalues (N,) of A with left and right eigenvectors (N, N), computed in balanced units."""
    balanced, (scale, _) = scipy.linalg.matrix_balance(A, permute=False, separate=True)
    solved = scipy.linalg.eig(balanced, left=True, right=True)
    values, W, V = (np.asarray(part) for part in solved)
    left, right = W / scale[:, None], V * scale[:, None]
    return values.astype(complex), left.astype(complex), right.astype(complex)


def name_modes(loop: ClosedLoop, joints: Array, size: int) -> ModeNames:
    """Name the motions of a closed loop with `size` states at joint variables (m,)."""
    truth = loop.truth
    T_q, own = line_modes(truth, joints)
    names = [*own, *own]
    names += [f"integral of {joint}" for joint in truth.joints[: loop.controller.n_integral]]
    own = loop.controller.own_states
    names += ["controller"] * (loop.controller.n_own - len(own)) + list(own)
    if loop.controller.observer:
        names += [f"observer of {name}" for name in [*loop.controller.plant.coordinates] * 2]
    names += ["delayed torque"] * (size - len(names))
    n, T = truth.n, np.eye(size)
    T[:n, :n] = T[n : 2 * n, n : 2 * n] = T_q
    return ModeNames(T=T, names=tuple(names))


def in_words(name: str) -> str:
    """Name a motion for a sentence: ``link2's first mode in y`` for ``link2.y.1``."""
    head, _, own = name.partition(" of ")
    if own:
        return f"{head} of {in_words(own)}" if head != "observer" else f"the observer ({own})"
    parts = name.split(".")
    if len(parts) != 3 or not parts[2].isdigit():
        return name
    k = int(parts[2]) - 1
    ordinal = _ORDINALS[k] if k < len(_ORDINALS) else f"{k + 1}th"
    return f"{parts[0]}'s {ordinal} mode in {parts[1]}"
