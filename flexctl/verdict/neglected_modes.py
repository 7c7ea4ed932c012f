"""Modes that a design plant neglects, as an error of the arm of which only the size is used.

With all m torques broken, the loop gain of the law on the truth is L_t = L (I + E), where L is that
on its own design plant and E the error of the arm as the law sees it, at its input. With
T = L (I + L)^-1 of the design's loop, I + L_t = (I + L)(I + T E): where L_t and L have equally many
unstable poles and the design's loop is stable, that on the truth is stable if at every frequency

    sigma_max(d T d^-1) sigma_max(d E d^-1) < 1

for some scaling d of the torques. A lightly damped mode that the design neglects breaks this at its
resonance, although its phase may be harmless: then stability is not proven, no more. So do zeros of
L with several torques, which L_t does not share: the arm's resonances with its drives held. The
product is looked at on a grid that is dense beside every lightly damped pole and zero and begins a
hundredth of the slowest below it; its largest values are refined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from flexctl.checks import Array, ComplexArray
from flexctl.errors import ComputationError
from flexctl.loop import (
    ClosedLoop,
    LinearLoop,
    close_around,
    linearise_loop,
    motion_poses,
    spectral_abscissa,
)
from flexctl.verdict.broken_loop import BrokenLoop, break_loop
from flexctl.verdict.disk_margin import best_scaling
from flexctl.verdict.frequency_choice import resolving_frequencies
from flexctl.verdict.transfer import axis_points, transfer

_UNSTABLE = 1e-6  # real part of a pole that counts as unstable, relative to the design's fastest
_SLOW = 1e-3  # of the slowest rate of the closed loops: slower open ones may be round-off of zero
_START = np.geomspace(0.01, 0.1, 10, endpoint=False)  # of the slowest rate, below the other grid
_LIMIT = 1 - 1e-3  # of the product, which is not known beyond the ends of the grid, nor within it
_SAMPLED = 1 - 1e-4  # of the Nyquist frequency, beside which zeros at z = -1 are round-off
_UNDAMPED = 1e-9  # real part of a pole of L, relative to it, that is none; and distance of others
_BESIDE, _GROWS = (1e-5, 1e-7), 10.0  # distances to a pole; growth towards it: 100 but for others
_PEAKS, _FINE, _ROUNDS = 6, 21, 5  # largest values, frequencies and rounds of their refinement


@dataclass(frozen=True, kw_only=True)
class NeglectedModes:
    """The small-gain test of one pose.

    Attributes
    ----------
    t
        Time [s] of the pose of the motion, without the second loop; None of the final or chosen
        pose.
    peak, frequency
        Largest sigma_max(T) sigma_max(E) [-] over all frequencies and where it is [rad/s]; of
        torques in N m and N, on which it depends where there are several.
    scaled_peak
        Largest value [-] with the better of no scaling of the torques and that which is best for
        each E: 1 is its limit. Of one torque it is `peak`.
    unstable_design, unstable_truth
        Numbers of unstable poles of the loop gains; None where there is no loop gain.
    abscissa_design, abscissa_truth
        Largest real parts of the closed loops' eigenvalues [1/s]; NaN where there are none.
    why
        Why there is no result; empty where there is one.
    """

    t: float | None
    peak: float = np.nan
    frequency: float = np.nan
    scaled_peak: float = np.nan
    unstable_design: int | None = None
    unstable_truth: int | None = None
    abscissa_design: float = np.nan
    abscissa_truth: float = np.nan
    why: str = ""

    @property
    def proven(self) -> bool:
        """Whether the test shows that the loop on the truth is stable."""
        alike = self.unstable_design == self.unstable_truth
        return not self.why and alike and self.abscissa_design < 0 and self.small_enough

    @property
    def small_enough(self) -> bool:
        """Whether the product stays below 1, as far as its grid shows."""
        return self.scaled_peak < _LIMIT

    @property
    def stable(self) -> bool | None:
        """Whether the loop on the truth is stable, by its eigenvalues; None where it has none."""
        return None if np.isnan(self.abscissa_truth) else bool(self.abscissa_truth < 0)


def neglected_modes(
    loop: ClosedLoop, joints: Array | None = None, *, n_path: int = 0
) -> tuple[NeglectedModes, ...]:
    """Test a loop at its final pose or at chosen `joints` (m,), and at poses of its motion.

    Results that could not be found say why.
    """
    controller = loop.controller
    reference, weight = controller.reference, controller.final_second_loop_weight
    first = (reference.final, weight) if joints is None else (joints, 0.0)
    found = [_at_pose(loop, None, *first)]
    if n_path:
        times, poses = motion_poses(reference, n_path)
        found += [_at_pose(loop, t, q, 0.0) for t, q in zip(times.tolist(), poses, strict=True)]
    return tuple(found)


def neglected_at_rest(loop: ClosedLoop, truth: LinearLoop) -> NeglectedModes:
    """Test a loop about its final equilibrium, where `truth` is its linear model."""
    controller = loop.controller
    final, weight = controller.reference.final, controller.final_second_loop_weight
    return _at_pose(loop, None, final, weight, truth)


def _at_pose(
    loop: ClosedLoop, t: float | None, joints: Array, weight: float, truth: LinearLoop | None = None
) -> NeglectedModes:
    """Test a loop at joint variables (m,), where `truth` is its linear model, if that is known."""
    own = close_around(loop.controller, replace(loop.controller.plant, interpreted=True))
    try:
        design = linearise_loop(own, joints, weight)
        truth = truth or linearise_loop(loop, joints, weight)
    except ComputationError as error:  # no equilibrium, links that buckle or sag too far
        return NeglectedModes(t=t, why=str(error))
    return small_gain_test(design, truth, t)


def small_gain_test(design: LinearLoop, truth: LinearLoop, t: float | None) -> NeglectedModes:
    """Compare a law's linear loop on its design plant and on the truth; see the module."""
    cuts = break_loop(design), break_loop(truth)
    opened = [cut.opened(range(cut.m)) for cut in cuts]
    rates = [cut.rates(A) for cut, A in zip(cuts, opened, strict=True)]
    closed = [cut.rates(cut.A) for cut in cuts]
    least = _UNSTABLE * np.abs(np.concatenate([rates[0], closed[0]])).max()
    counts = [int((rate.real > least).sum()) for rate in rates]
    found = NeglectedModes(
        t=t,
        unstable_design=counts[0],
        unstable_truth=counts[1],
        abscissa_design=spectral_abscissa(design.poles),
        abscissa_truth=spectral_abscissa(truth.poles),
    )
    # of one torque T E = (I + L)^-1 (L_t - L), in which they cancel
    zeros = _zeros(cuts[0], opened[0]) if cuts[0].m > 1 else np.zeros(0, dtype=complex)
    w = _frequencies(np.concatenate(closed), np.concatenate([*rates, zeros]), cuts[0].fastest)
    try:
        undamped, first = _undamped(rates, zeros, w), _errors(cuts, opened, w)
        peak, at = _largest_product(cuts, opened, w, undamped, first)
        smaller = peak
        if cuts[0].m > 1:
            smaller, _ = _largest_product(cuts, opened, w, undamped, first, scale=True)
    except np.linalg.LinAlgError:
        return replace(found, why="a torque has no feedback, so that the error has no size")
    return replace(found, peak=peak, frequency=at, scaled_peak=smaller)


def _zeros(cut: BrokenLoop, opened: Array) -> ComplexArray:
    """Zeros of a loop gain [rad/s], for a sampled loop log(z)/T."""
    _, (scale, _) = scipy.linalg.matrix_balance(opened, permute=False, separate=True)
    A, B, C = opened * scale / scale[:, None], cut.B / scale[:, None], cut.C * scale
    # an input or output that is 0 stays so, and the errors of that loop have no size
    by_input, by_output, size = np.abs(B).max(axis=0), np.abs(C).max(axis=1), np.abs(A).max()
    B = size * B / (by_input + (by_input == 0))
    C = size * C / (by_output + (by_output == 0))[:, None]
    whole = np.block([[A, B], [C, np.zeros((cut.m, cut.m))]])
    mass = np.diag(np.append(np.ones(len(A)), np.zeros(cut.m)))
    at = np.asarray(scipy.linalg.eigvals(whole, mass), dtype=complex)
    at = at[np.isfinite(at)]
    if cut.sample_time is not None:
        at = np.log(at[np.abs(at) > np.finfo(float).eps]) / cut.sample_time
    return at.astype(complex)


def _frequencies(closed: ComplexArray, others: ComplexArray, fastest: float) -> Array:
    """Frequencies (K,) [rad/s] that resolve poles of closed loops and poles and zeros of others."""
    size = np.abs(closed)
    moving = size > _SLOW * size.min(initial=np.inf, where=size > 1e-9 * size.max(initial=0.0))
    least, most = size[moving].min(initial=np.inf), size.max(initial=0.0)
    size = np.abs(others)
    apart = others[(size > _SLOW * least) & (size < most)]
    rates, none = np.append(closed[moving], apart).astype(complex), np.zeros(0)
    w = resolving_frequencies(rates, none.astype(complex), fastest, none)
    return np.append(10 * w[0] * _START, w)


def _undamped(rates: Sequence[ComplexArray], zeros: ComplexArray, w: Array) -> list[float]:
    """Frequencies [rad/s] within w (K,) of undamped poles of the truth alone, and of zeros of L.

    `rates` are the poles of both loop gains.
    """
    design, truth = rates
    reach = _UNDAMPED * np.abs(truth)
    own = np.abs(design[:, None] - truth).min(axis=0, initial=np.inf) > reach
    found = np.append(truth[own], zeros)
    found = found[(np.abs(found.real) <= _UNDAMPED * np.abs(found)) & (found.imag > 0)]
    return [float(x) for x in found.imag if w[0] < x < _SAMPLED * w[-1]]


_Errors = tuple[Array, ComplexArray, ComplexArray]
"""Where both are finite, of bool (K,), and T and E (k, m, m) there."""


def _largest_product(
    cuts: tuple[BrokenLoop, BrokenLoop],
    opened: Sequence[Array],
    w: Array,
    undamped: Sequence[float],
    first: _Errors,
    *,
    scale: bool = False,
) -> tuple[float, float]:
    """Largest product of both norms, refined between the neighbours of its frequency.

    `first` are the errors at w. It is infinite at an `undamped` pole towards which it grows.
    """
    for pole in reversed(undamped):
        far, near = products(cuts, opened, pole * (1 + np.array(_BESIDE)), scale=scale)
        if near > _GROWS * far:
            return np.inf, pole
    found = _products(*first, scale=scale)
    padded = np.pad(found, 1, constant_values=-np.inf)
    tops = np.flatnonzero((found >= padded[:-2]) & (found >= padded[2:]))
    tops = tops[np.argsort(-found[tops], kind="stable")[:_PEAKS]]
    value, at = float(found[tops[0]]), float(w[tops[0]])
    low, high = w[np.maximum(tops - 1, 0)], w[np.minimum(tops + 1, len(w) - 1)]
    own = np.arange(len(tops))
    for _ in range(_ROUNDS):
        fine = np.linspace(low, high, _FINE, axis=1)
        sizes = products(cuts, opened, fine.ravel(), scale=scale).reshape(fine.shape)
        k = sizes.argmax(axis=1)
        best = int(sizes[own, k].argmax())
        if sizes[best, k[best]] > value:
            value, at = float(sizes[best, k[best]]), float(fine[best, k[best]])
        low, high = fine[own, np.maximum(k - 1, 0)], fine[own, np.minimum(k + 1, _FINE - 1)]
    return value, at


def products(
    cuts: tuple[BrokenLoop, BrokenLoop], opened: Sequence[Array], w: Array, *, scale: bool = False
) -> Array:
    """sigma_max(d T d^-1) sigma_max(d E d^-1) (K,) at frequencies w (K,); infinite at a pole of E.

    The scaling d is ones, or with `scale` the better of ones and of that which is best for E.
    """
    return _products(*_errors(cuts, opened, w), scale=scale)


def _errors(cuts: tuple[BrokenLoop, BrokenLoop], opened: Sequence[Array], w: Array) -> _Errors:
    gains = [
        -transfer(A, cut.B, cut.C, axis_points(w, cut.sample_time))
        for cut, A in zip(cuts, opened, strict=True)
    ]
    finite = np.isfinite(gains[0]).all(axis=(1, 2)) & np.isfinite(gains[1]).all(axis=(1, 2))
    L, truth = gains[0][finite], gains[1][finite]
    E = _relative(L, truth - L)
    T = np.linalg.solve(np.eye(L.shape[1]) + L, L).astype(complex)
    return np.asarray(finite), T, E


def _relative(L: ComplexArray, error: ComplexArray) -> ComplexArray:
    """L^-1 error (K, m, m); 0 at a zero of L that a frequency meets exactly: see `_undamped`."""
    try:
        return np.linalg.solve(L, error).astype(complex)
    except np.linalg.LinAlgError:
        regular = np.linalg.cond(L) < 1 / np.finfo(float).eps
        if not regular.any():
            raise
        E = np.zeros_like(L)
        E[regular] = np.linalg.solve(L[regular], error[regular])
        return E


def _products(finite: Array, T: ComplexArray, E: ComplexArray, *, scale: bool) -> Array:
    size = np.full(len(finite), np.inf)
    size[finite] = _norms(T) * _norms(E)
    if scale:
        size[finite] = np.minimum(size[finite], _scaled_norms(T, E))
    return np.where(np.isnan(size), np.inf, size)  # what is no number proves nothing


def _norms(matrices: ComplexArray) -> Array:
    return np.linalg.norm(matrices, 2, axis=(1, 2))


def _scaled_norms(T: ComplexArray, E: ComplexArray) -> Array:
    """Product (K,) of the norms under the scaling that is best for each E."""
    m = E.shape[1]
    d = np.ones((len(E), m))
    coupled = np.abs(E).all(axis=(1, 2))
    if m == 2:  # that of `best_scaling`, at once
        d[coupled, 1] = np.sqrt(np.abs(E[coupled, 0, 1]) / np.abs(E[coupled, 1, 0]))
    else:
        for k in np.flatnonzero(coupled).tolist():
            d[k] = best_scaling(E[k])
    factors = d[:, :, None] / d[:, None, :]
    return _norms(T * factors) * _norms(E * factors)
