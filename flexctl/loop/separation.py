"""Where the time scales no longer separate: how soft an arm may be under composite control.

Let all stiffness of links and joints be s times that of the arm, its damping ratios and the fast
gains in scaled variables kept: K_z -> s K_z, D_z -> sqrt(s) D_z, Kp -> s Kp, Kv -> sqrt(s) Kv. With
sigma = 1/sqrt(s), in proportion to mu, and scaled fast positions z = sigma^2 zeta and rates
z' = sigma eta the linear loop at rest is

    diag(I, sigma I) d/dt [y; y'; zeta; eta] = A [y; y'; zeta; eta],

A free of sigma: singular perturbation. As sigma -> 0 its eigenvalues are those
of the slow subsystem and, by sigma, of the fast one. From which sigma on the loop is unstable
although both are stable, the guardian map says without a scan. Dampers that do not grow with the springs add sigma A_1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.linalg

from flexctl.catalogue import Arm, BasisChoice, Design
from flexctl.checks import Array, ComplexArray
from flexctl.design import TwoTimeScales, design_controller, separate_time_scales
from flexctl.errors import DesignError, InputError
from flexctl.loop.closed_loop import ClosedLoop, close_around
from flexctl.loop.comparison import LADDER, default_truth
from flexctl.loop.crossings import Crossing
from flexctl.loop.guardian import (
    LARGEST,
    bisect_bound,
    obstacle,
    smallest_bound,
    stable_ranges,
)
from flexctl.loop.guardian_map import problem_size
from flexctl.loop.linear import judge_poles, linearise_loop
from flexctl.loop.pencil import Pencil, fast_poles, poles, slow_poles
from flexctl.plant import Plant, assemble_plant

N_PATH = 21
FixedDamping = Literal["none", "joints", "all"]
_RANGE = (1e-4, 1e4)  # of sigma, where the exact problem is too large


@dataclass(frozen=True, kw_only=True)
class Bound:
    """Where stability is lost at one pose, on one truth plant, as the arm grows softer.

    Attributes
    ----------
    t
        Time of the pose along the reference [s].
    order
        Order of the truth plant.
    sigma
        Smallest sigma at which the loop becomes unstable; infinite where it never does, 0 where a
        subsystem is unstable by itself, so that no stiffness helps.
    frequency
        Of the eigenvalue that crosses, at that stiffness [rad/s].
    exact
        Whether the guardian map gave it; else a bracket, which may miss a narrow band.
    what
        Slow or fast state with the largest part in what crosses, such as ``slow joint1``; empty
        where nothing does.
    why
        Which subsystem is not stable; empty where both are.
    """

    t: float
    order: int
    sigma: float
    frequency: float
    exact: bool
    what: str = ""
    why: str = ""

    @property
    def s_star(self) -> float:
        """Stiffness factor 1/sigma^2 at which stability is lost; 0: never, infinite: always."""
        return 1 / self.sigma**2 if self.sigma else np.inf


@dataclass(frozen=True, kw_only=True)
class Separation:
    """The separation bound of a composite design on an arm.

    Attributes
    ----------
    model, design
        Their names.
    truth, basis
        Truth plant and design plant.
    path
        Bounds along the reference, on the truth plant.
    orders
        Bounds over truth orders, each the worse of the final pose and the truth's worst pose.
    pencil
        Loop at the worst pose on the truth plant.
    ranges
        Intervals (low, high) of s in which that loop is stable, ascending; None where the exact
        problem is too large.
    epsilon
        1/k_c of the truth plant at that pose, k_c its least stiffness; depends on its basis.
    assumptions
        What the bound rests on, in sentences.
    """

    model: str
    design: str
    truth: BasisChoice
    basis: BasisChoice
    path: tuple[Bound, ...]
    orders: tuple[Bound, ...]
    pencil: Pencil
    ranges: tuple[tuple[float, float], ...] | None
    epsilon: float
    assumptions: tuple[str, ...]

    @property
    def worst(self) -> Bound:
        """Largest s_star along the path and over the truth orders."""
        return max((*self.path, *self.orders), key=lambda bound: bound.s_star)

    @property
    def full_poles(self) -> ComplexArray:
        """Eigenvalues of the loop with the arm as it is, at the worst pose [rad/s]."""
        return poles(self.pencil, 1.0)

    @property
    def stable(self) -> bool | str:
        """Whether the loop is stable with the arm as it is, at that pose."""
        return judge_poles(self.full_poles)

    @property
    def mu(self) -> float:
        """sqrt(epsilon)."""
        return float(np.sqrt(self.epsilon))

    def to_json(self) -> dict[str, Any]:
        """Return the bound under the keys of the command line's contract."""
        worst = self.worst
        return {
            "model": self.model,
            "design": self.design,
            "basis": self.basis.table() or {"kind": self.basis.kind, "order": self.basis.order},
            "truth": {"kind": self.truth.kind, "order": self.truth.order},
            "s_star": _finite(worst.s_star),
            "mu_star": _finite(worst.sigma * self.mu),
            "mu": self.mu,
            "epsilon": self.epsilon,
            "crossing_frequency": _finite(worst.frequency),
            "exact": worst.exact,
            "stable": self.stable,
            "stable_ranges": self.ranges and [[_finite(s) for s in pair] for pair in self.ranges],
            "what_crosses": worst.what or None,
            "worst": {"t": worst.t, "modes": worst.order, "why": worst.why or None},
            "path": {
                "t": [bound.t for bound in self.path],
                "s_star": [_finite(bound.s_star) for bound in self.path],
            },
            "orders": {
                "order": [bound.order for bound in self.orders],
                "s_star": [_finite(bound.s_star) for bound in self.orders],
            },
            "slow_poles": _listed(slow_poles(self.pencil)),
            "fast_poles": _listed(fast_poles(self.pencil)),
            "full_poles": _listed(self.full_poles),
            "assumptions": list(self.assumptions),
        }


def separate_loop(loop: ClosedLoop, joints: Array, fixed_damping: FixedDamping = "none") -> Pencil:
    """Write a loop at rest, linearised, in slow and fast states: eigenvalues in rad/s at sigma.

    Parameters
    ----------
    loop
        Composite controller on any truth plant, continuous, full state or strain gauges.
    joints
        Desired joint variables (m,) [rad or m].
    fixed_damping
        Which dampers stay as they are when the stiffness changes; the others keep their ratio.

    Raises
    ------
    InputError
        When the loop is not of this form: other methods, sampled laws, observers, gravity.
    """
    _require_exact(loop)
    angle = loop.controller.design.slow_angle
    scales = separate_time_scales(loop.truth, joints, angle)
    feedback = linearise_loop(loop, joints, 0.0).feedback
    n = loop.truth.n
    law = (feedback[:, :n] @ scales.T, feedback[:, n:] @ scales.T)
    return separation_pencil(scales, *law, _fixed(loop.truth, scales, fixed_damping))


def separation_pencil(scales: TwoTimeScales, F_q: Array, F_v: Array, D_fixed: Array) -> Pencil:
    """Pencil of an arm in two time scales under tau = F_q [y; z] + F_v [y'; z'].

    F_q, F_v (m, n) are the gains at s = 1; D_fixed (n_z, n_z) is the part of D_z that stays.
    """
    m, n = scales.m, len(scales.M_T)
    by_q, by_v = scales.B_T @ F_q, scales.B_T @ F_v
    by_q[m:, m:] -= scales.K_z
    by_v[m:, m:] -= scales.D_z - D_fixed
    damped = np.zeros((n, n))
    damped[m:, m:] = -D_fixed
    A = _states(m, *(np.linalg.solve(scales.M_T, forces) for forces in (by_q, by_v)))
    A[:m, m : 2 * m] = np.eye(m)
    A[2 * m : m + n, m + n :] = np.eye(n - m)
    softening = _states(m, np.zeros((n, n)), np.linalg.solve(scales.M_T, damped))
    kept = np.diag((np.arange(2 * n) < 2 * m).astype(float))
    parts = (A, softening) if D_fixed.any() else (A,)
    return Pencil(slow=2 * m, E=(kept, np.eye(2 * n) - kept), A=parts)


def _states(m: int, by_q: Array, by_v: Array) -> Array:
    """Rows of y'' and eta' (., n) by [y; z] and by [y'; z'], in the order y, y', zeta, eta."""
    n = len(by_q)
    A, order = (
        np.zeros((2 * n, 2 * n)),
        [*range(m), *range(n, n + m), *range(m, n), *range(n + m, 2 * n)],
    )
    both = np.hstack([by_q, by_v])[:, order]
    A[m : 2 * m], A[m + n :] = both[:m], both[m:]
    return A


def _fixed(truth: Plant, scales: TwoTimeScales, fixed: FixedDamping) -> Array:
    """Part of D_z (n_z, n_z) that does not change with the stiffness."""
    if fixed == "all":
        return scales.D_z
    springs = [truth.arm.links[j].flexible_joint for j in truth.arm.rotors]
    own = np.zeros(len(scales.D_z))
    own[: len(springs)] = [spring.damping for spring in springs if spring]
    return np.diag(own) if fixed == "joints" else np.zeros_like(scales.D_z)


def _require_exact(loop: ClosedLoop) -> None:
    """Refuse loops whose dependence on the stiffness is another one."""
    design, label = loop.controller.design, loop.controller.design.label
    if design.method != "composite":
        raise InputError(
            f"{label}: method: wanted composite, the one with two time scales, came {design.method}"
        )
    if design.loop.sample_time:
        raise InputError(
            f"{label}: loop.sample_time: wanted 0, as the separation bound is that of the "
            f"continuous law, came {design.loop.sample_time:g}"
        )
    if loop.controller.n_state:
        raise InputError(
            f'{label}: loop.measures: wanted "state", as an observer has time scales of its own, '
            f"came {design.loop.measures}"
        )
    if any(loop.truth.arm.gravity):
        raise InputError(
            f"{loop.truth.arm.label}: gravity: wanted [0, 0, 0], as the sag under gravity moves "
            f"with the stiffness, came {list(loop.truth.arm.gravity)} (--set gravity=[0,0,0])"
        )


def find_separation(
    arm: Arm,
    design: Design,
    *,
    truth_arm: Arm | None = None,
    truth_basis: BasisChoice | None = None,
    design_basis: BasisChoice | None = None,
    fixed_damping: FixedDamping = "none",
    progress: Callable[[str], None] | None = None,
) -> Separation:
    """Find how soft an arm may be before its composite controller loses it.

    Parameters
    ----------
    arm, design
        The arm as the designer knows it, and a composite design.
    truth_arm, truth_basis, design_basis
        As in `compare`.
    fixed_damping
        Which dampers do not change with the stiffness: "none", those of the "joints", or "all".
    progress
        Called with a sentence before every longer piece of work.

    Raises
    ------
    InputError
        As `separate_loop`.
    DesignError
        When a subsystem is not stable by itself on the truth plant, so that no stiffness makes the
        loop stable: says which and at which pose. Of other orders the bound says it.
    """
    say = progress or (lambda _words: None)
    controller = design_controller(arm, design, design_basis)
    basis = truth_basis or default_truth(arm, controller.plant.basis)
    reference, body = controller.reference, truth_arm or arm

    def close(order: int) -> ClosedLoop:
        plant = assemble_plant(body, basis.model_copy(update={"order": order}), interpreted=True)
        return close_around(controller, plant)

    def bounds(loop: ClosedLoop, times: Sequence[float]) -> list[Bound]:
        poses = reference.sample(np.array(times))[0].T
        return [
            _bound(loop, t, joints, fixed_damping) for t, joints in zip(times, poses, strict=True)
        ]

    truth = close(basis.order)
    times = np.linspace(0, reference.duration, N_PATH if reference.duration else 1).tolist()
    say(f"bounds along the motion, {basis.order} {basis.kind}")
    path = bounds(truth, times)
    _require_bound(truth, path)
    worst = max(path, key=lambda bound: bound.s_star)
    ladder = []
    for order in sorted({*LADDER, basis.order}):
        say(f"bounds on {order} {basis.kind}")
        loop = truth if order == basis.order else close(order)
        ladder.append(max(bounds(loop, [worst.t, times[-1]]), key=lambda bound: bound.s_star))
    joints = reference.sample(np.array([worst.t]))[0][:, 0]
    pencil = separate_loop(truth, joints, fixed_damping)
    scales = separate_time_scales(truth.truth, joints, design.slow_angle)
    return Separation(
        model=arm.name,
        design=design.name,
        truth=basis,
        basis=controller.plant.basis,
        path=tuple(path),
        orders=tuple(ladder),
        pencil=pencil,
        ranges=_ranges(pencil),
        epsilon=scales.epsilon,
        assumptions=(*_ASSUMED, _DAMPING[fixed_damping], *truth.assumptions),
    )


_ASSUMED = (
    "linear, at rest at frozen poses of the reference, no gravity",
    "all stiffness of links and joints is s times that of the arm; the fast gains are kept in "
    "scaled variables (Kp grows as s, Kv as sqrt(s)), the slow ones and all masses stay",
)
_DAMPING: dict[FixedDamping, str] = {
    "none": "damping ratios stay: all dampers grow as sqrt(s)",
    "joints": "damping ratios of the links stay; dampers of the joints do not change with s",
    "all": "dampers do not change with s",
}


def _bound(loop: ClosedLoop, t: float, joints: Array, fixed: FixedDamping) -> Bound:
    pencil, order = separate_loop(loop, joints, fixed), loop.truth.basis.order
    why = obstacle(pencil)
    if why is not None:
        return Bound(t=t, order=order, sigma=0.0, frequency=np.nan, exact=True, why=why)
    exact = problem_size(pencil) <= LARGEST
    found = smallest_bound(pencil) if exact else bisect_bound(pencil, *_RANGE)
    if found is None:
        return Bound(t=t, order=order, sigma=np.inf, frequency=np.nan, exact=exact)
    what = _states_of(loop)[_largest_part(pencil, found)]
    return Bound(
        t=t, order=order, sigma=found.sigma, frequency=found.frequency, exact=exact, what=what
    )


def _states_of(loop: ClosedLoop) -> list[str]:
    """Names of the states y, y', zeta, eta, as they are told a reader."""
    truth, design = loop.truth, loop.controller.design
    rows = range(truth.m) if design.slow_angle == "link" else truth.drives
    slow = [f"slow {truth.coordinates[row]}" for row in rows]
    fast = [
        f"fast {'wind-up at ' * (name in truth.rotors)}{name.replace('rotor', 'joint')}"
        for name in truth.coordinates[truth.m :]
    ]
    return [*slow, *slow, *fast, *fast]


def _largest_part(pencil: Pencil, crossing: Crossing) -> int:
    """State with the largest participation |w_k v_k| in the eigenvalue that crosses."""
    values, W, V = scipy.linalg.eig(pencil.matrix(crossing.sigma), left=True, right=True)
    k = int(np.abs(values - 1j * crossing.frequency).argmin())
    return int(np.abs(W[:, k] * V[:, k]).argmax())


def _require_bound(loop: ClosedLoop, path: Sequence[Bound]) -> None:
    for bound in path:
        if bound.why:
            raise DesignError(
                f"{loop.controller.design.name} on {loop.truth.arm.name} ({bound.order} "
                f"{loop.truth.basis.kind}): no stiffness makes this loop stable at t = "
                f"{bound.t:.4g} s: {bound.why}; see flexctl compare"
            )


def _ranges(pencil: Pencil) -> tuple[tuple[float, float], ...] | None:
    """Intervals of s = 1/sigma^2 in which the loop is stable, ascending."""
    if problem_size(pencil) > LARGEST:
        return None
    found = [
        (0.0 if np.isinf(high) else 1 / high**2, 1 / low**2 if low else np.inf)
        for low, high in stable_ranges(pencil)
    ]
    return tuple(sorted(found))


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _listed(values: ComplexArray) -> list[list[float]]:
    """Complex numbers as [real, imaginary], slowest first."""
    ordered = sorted(values, key=lambda value: (abs(value), value.imag))
    return [[float(value.real), float(value.imag)] for value in ordered]
