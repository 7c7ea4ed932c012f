"""Eigenvalues of a loop at poses, under errors and with other gains, with exact derivatives.

A margin says that the loop is stable with every error of a range. It is asked for as a limit of
eigenvalues of the loop with some errors at some poses; errors at which the exact margin finds that
the loop is lost come to these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.linalg

from flexctl.checks import Array, ComplexArray
from flexctl.loop import (
    VANISHED,
    ClosedLoop,
    Equilibrium,
    LinearLoop,
    eigenvectors,
    equilibrium_at_reference,
    linearise_at,
    one_sample,
    whole_turns,
)
from flexctl.plant import LinearPlant

_WINDOW = 0.2  # below the largest value: eigenvalues that may become the largest nearby
_MOST = 8  # eigenvalues of one matrix
_GROWING = 0.1  # of the measure of stability: weight of the rate of what grows
_FAINT = 1e-6  # damping ratio of modes that are hardly damped
_SAME = 1e-12  # of coordinates or torques: equilibria that differ by rounding
SLACK = 2e-9  # by which eigenvalues are kept from the limit of stability, relative to their size


@dataclass(frozen=True)
class Case:
    """A linear loop: of an arm at a pose, perhaps with an error or with other gains.

    Attributes
    ----------
    arm
        Index of the arm.
    time
        Of the pose in the motion [s]; None for the final pose, under the second loop if there is
        one.
    error
        Of the stiffness that the law computes with [-].
    gains
        Complex factors of the law's torques (m,); empty for ones.
    order
        Of another truth of the nominal arm; 0 for the truth that is run.
    period
        At which the law is sampled [s]; None for its own.
    """

    arm: int = 0
    time: float | None = None
    error: float = 0.0
    gains: tuple[complex, ...] = ()
    order: int = 0
    period: float | None = None


@dataclass(frozen=True, kw_only=True)
class SpectralLimit:
    """What the eigenvalues of some cases are to keep.

    Attributes
    ----------
    kind
        "abscissa": Re lambda <= limit; "damping": -Re lambda >= limit |lambda|; "stable", Re lambda
        <= limit, measured by asinh of (Re lambda - limit)/|lambda|, as undamped arms have ratios of
        1e-7 beside others of 0.1, and beyond the limit by asinh of the rate too, as all real rates
        have a ratio of 1;
        "excess": the sum of Re lambda - limit over all that are above it, which stays smooth where
        eigenvalues meet that are all above.
    limit
        [1/s] or [-].
    scale
        Of the measure: [1/s], for a damping ratio [-].
    cases
        Where.
    """

    kind: str
    limit: float
    scale: float
    cases: tuple[Case, ...] = field(repr=False)

    def measure(self, values: ComplexArray) -> Array:
        """Return for eigenvalues (N,) [rad/s] what is to be at most zero [-]."""
        if self.kind == "damping":
            return (self.limit + values.real / _size(values)) / self.scale
        if self.kind in ("abscissa", "excess"):
            return (values.real - self.limit) / self.scale
        ratios = (values.real - self.limit) / np.hypot(np.abs(values), self.scale) + SLACK
        return self._stretched(ratios) + _GROWING * np.arcsinh(self._growth(values))

    def _growth(self, values: ComplexArray) -> Array:
        """Rates by which eigenvalues (N,) exceed the limit, relative to the scale; else 0."""
        return np.maximum(values.real - self.limit, 0.0) / self.scale

    def slope(self, values: ComplexArray, slopes: ComplexArray) -> Array:
        """Return derivatives (k, n) of the measure from those of eigenvalues (k,), (k, n)."""
        if self.kind in ("abscissa", "excess"):
            return slopes.real / self.scale
        damping = self.kind == "damping"
        size = _size(values) if damping else np.hypot(np.abs(values), self.scale)
        growth = (np.conj(values)[:, None] * slopes).real / size[:, None]
        real = (values.real - (0.0 if damping else self.limit))[:, None]
        moved = (slopes.real - real * growth / size[:, None]) / size[:, None]
        if damping:
            return moved / self.scale
        ratios = (values.real - self.limit) / np.hypot(np.abs(values), self.scale) + SLACK
        stretched = moved / (np.hypot(ratios, _FAINT) * np.arcsinh(1 / _FAINT))[:, None]
        growth = self._growth(values)[:, None]
        return stretched + _GROWING * (growth > 0) * slopes.real / self.scale / np.hypot(growth, 1)

    @staticmethod
    def _stretched(ratios: Array) -> Array:
        """Map damping ratios to -1 .. 1 such that those of hardly damped modes differ too."""
        return np.arcsinh(ratios / _FAINT) / np.arcsinh(1 / _FAINT)


def _size(values: ComplexArray) -> Array:
    return np.maximum(np.abs(values), np.finfo(float).tiny)


@dataclass(frozen=True, kw_only=True)
class ClosedMatrix:
    """State matrix of a loop with a case's factors of the torques.

    Attributes
    ----------
    A
        State matrix (N, N); of a sampled loop from one sample to the next.
    sample_time
        Of a sampled loop [s].
    samples, arm
        Of a law that repeats after several samples the map of each, S (2n, 2n) of `whole_turns`.
    modes, basis
        Of a continuous loop A in the modes of its arm (N, N), A basis = basis modes: there slow
        eigenvalues keep the digits that stiff entries of A take from them.
    """

    A: Array | ComplexArray
    sample_time: float | None = None
    modes: Array | ComplexArray | None = None
    basis: Array | None = None
    samples: tuple[Array | ComplexArray, ...] = ()
    arm: Array | None = None


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """Eigenvalues (N,) [rad/s] of a case, with the vectors that give their derivatives.

    For a matrix A + dA, an eigenvalue moves by y' dA x/(y' x), y and x being its left and right
    eigenvectors. Of a sampled loop A maps a sample to the next, the rate of z is log(z)/T.
    """

    values: ComplexArray
    left: ComplexArray
    right: ComplexArray
    multipliers: ComplexArray
    sample_time: float | None

    @classmethod
    def of(cls, closed: ClosedMatrix, *, vectors: bool = True) -> Spectrum:
        """Solve the eigenvalue problem of a loop; without vectors in a fourth of the time.

        They are then (0, N).
        """
        A, sample_time = closed.A if closed.modes is None else closed.modes, closed.sample_time
        if vectors or closed.samples:
            z, left, right = eigenvectors(A)
            if closed.basis is not None:
                right = (closed.basis @ right).astype(complex)
                left = np.linalg.solve(closed.basis.T, left).astype(complex)
        else:
            z = np.linalg.eigvals(A).astype(complex)
            left = right = np.zeros((0, len(z)), dtype=complex)
        values = z
        if sample_time is not None:
            own = np.abs(z) > VANISHED
            z, left, right = z[own], left[:, own], right[:, own]
            values = np.log(z)
            if closed.arm is not None:
                values = values + 2j * np.pi * whole_turns(closed.samples, closed.arm, z, right)
            values = values / sample_time
        return cls(
            values=values.astype(complex),
            left=left,
            right=right,
            multipliers=z,
            sample_time=sample_time,
        )

    def slopes(self, which: Array, changes: Sequence[Array]) -> ComplexArray:
        """Differentiate eigenvalues, (k, n), by n numbers that change A by `changes` (N, N)."""
        y, x = np.conj(self.left[:, which]), self.right[:, which]
        moved = np.array([np.sum(y * (dA @ x), axis=0) for dA in changes]).T
        moved = moved / np.sum(y * x, axis=0)[:, None]
        if self.sample_time is None:
            return moved
        return moved / (self.multipliers[which, None] * self.sample_time)


def closed_matrix(
    linear: LinearLoop, gains: Sequence[complex], *, solved: bool = True
) -> ClosedMatrix:
    """Close a linear loop with factors (m,) of its torques; [] for ones.

    Its modes are left out where it is not `solved` for its eigenvalues.
    """
    if linear.samples:
        every = tuple(closed_matrix(one, gains).A for one in linear.samples)
        whole = every[0]
        for step in every[1:]:
            whole = step @ whole
        S = linear.plant.modal[2]
        return ClosedMatrix(A=whole, sample_time=linear.period, samples=every, arm=S)
    A, B, K = linear.A, linear.B, linear.K
    factors: Array = np.array(gains) if len(gains) else np.ones(B.shape[1])
    if linear.sample_time is not None:
        A, B = one_sample(linear, linear.sample_time, linear.delay)
        K = np.hstack([K, np.zeros((len(K), len(A) - K.shape[1]))])
        return ClosedMatrix(A=A + (B * factors) @ K, sample_time=linear.sample_time)
    if not solved:
        return ClosedMatrix(A=A + (B * factors) @ K)
    in_modes = linear.in_modes
    states = len(linear.F)
    basis = np.asarray(scipy.linalg.block_diag(in_modes.S, np.eye(states)))
    enters = in_modes.enters[:, : B.shape[1]]
    modes = in_modes.A + (enters * (factors - 1)) @ (K @ basis)
    return ClosedMatrix(A=A + (B * factors) @ K, modes=modes, basis=basis)


def linear_loop(
    loop: ClosedLoop, time: float | None, beside: LinearLoop | None = None
) -> LinearLoop:
    """Linearise a loop at the pose of a case: at a time [s] of the motion, or the final one.

    Where it rests as a loop `beside` of the same arm does, their plant is the same. Raises
    ComputationError where there is no equilibrium.
    """
    controller = loop.controller
    joints, weight = controller.reference.final, controller.final_second_loop_weight
    if time is not None:
        joints, weight = controller.reference.sample(np.array([time]))[0][:, 0], 0.0
    rest = equilibrium_at_reference(loop, joints, weight)
    return linearise_at(loop, rest, weight, plant=_same_plant(rest, beside))


def _same_plant(rest: Equilibrium, beside: LinearLoop | None) -> LinearPlant | None:
    """Return the plant of a loop that has, to rounding, an equilibrium of the same arm too."""
    if beside is None or beside.rest is None:
        return None
    pairs = (rest.q, beside.rest.q), (rest.tau, beside.rest.tau)
    if any(np.abs(a - b).max() > _SAME * np.abs(b).max() for a, b in pairs):
        return None
    return beside.plant


def spectral_pieces(
    limit: SpectralLimit,
    matrices: Sequence[ClosedMatrix],
    changes: Sequence[Sequence[Array]],
) -> tuple[Array, Array]:
    """Measures (k,) of the largest eigenvalues of all cases, and derivatives (k, n).

    `matrices` are those of the cases, `changes` by case their derivatives by n numbers.
    """
    values, slopes = [], []
    for closed, dA in zip(matrices, changes, strict=True):
        spectrum = Spectrum.of(closed, vectors=len(dA) > 0)
        measures = limit.measure(spectrum.values)
        upper = np.flatnonzero(spectrum.values.imag >= 0) if np.isrealobj(closed.A) else ...
        own = np.arange(len(measures))[upper]
        own = own[np.argsort(-measures[own])][:_MOST]
        own = own[measures[own] >= measures[own[0]] - _WINDOW]
        if limit.kind == "excess":
            own = np.flatnonzero(measures > 0)
        rates = spectrum.slopes(own, dA) if len(dA) else np.zeros((len(own), 0), dtype=complex)
        parts = measures[own], limit.slope(spectrum.values[own], rates)
        if limit.kind == "excess":
            parts = parts[0].sum(keepdims=True), parts[1].sum(axis=0, keepdims=True)
        values.append(parts[0])
        slopes.append(parts[1])
    return np.concatenate(values), np.concatenate(slopes)
