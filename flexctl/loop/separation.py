"""Where the time scales no longer separate: how soft an arm may be under composite control.

Let all stiffness of links and joints be s times that of the arm, its damping ratios and the fast
gains in scaled variables kept: K_z -> s K_z, D_z -> sqrt(s) D_z, Kp -> s Kp, Kv -> sqrt(s) Kv. With
sigma = 1/sqrt(s), in proportion to mu, and scaled fast positions z = sigma^2 zeta and rates
z' = sigma eta the linear loop at rest is

    diag(I, sigma I) d/dt [y; y'; zeta; eta] = A [y; y'; zeta; eta],

A free of sigma: singular perturbation. As sigma -> 0 the eigenvalues tend to those of the slow
subsystem and, times sigma, of the fast one. From which sigma on the loop is unstable although both
are stable, the guardian map says without a scan. Dampers that do not grow with the springs add
sigma A_1. Loops of another form (gravity, a sampled law, an observer) are made anew at every s, and
the bound is bracketed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize

from flexctl.catalogue import Arm, BasisChoice, Design
from flexctl.checks import Array, ComplexArray
from flexctl.design import Controller, TwoTimeScales, design_controller, separate_time_scales
from flexctl.errors import ComputationError, DesignError, InputError
from flexctl.loop.closed_loop import ClosedLoop, close_around
from flexctl.loop.comparison import LADDER, default_truth
from flexctl.loop.crossings import Crossing
from flexctl.loop.guardian import (
    LARGEST,
    bisect_bound,
    find_crossings,
    obstacle,
    smallest_bound,
    stable,
    stable_ranges,
)
from flexctl.loop.guardian_map import problem_size
from flexctl.loop.linear import judge_poles, linearise_loop, spectral_abscissa
from flexctl.loop.pencil import Pencil, fast_poles, poles, slow_poles
from flexctl.loop.softening import FixedDamping, soften_arm, soften_design
from flexctl.plant import Plant, assemble_plant

N_PATH = 21
N_CURVE = 400  # stiffness factors at which eigenvalues are kept
BEYOND = 30.0  # how far these go beyond the bound and the arm as it is
_STIFFEST = 1e4  # factor from which on loops with dampers that stay are followed
_SIGMA = (1e-4, 1e4)  # where a pencil too large for the guardian map is bracketed
_S = np.geomspace(1e3, 1e-3, 31)  # where loops that are made anew are, five per decade


@dataclass(frozen=True, kw_only=True)
class Bound:
    """Where stability is lost at one pose, on one truth plant, as the arm grows softer.

    Attributes
    ----------
    t
        Time of the pose along the reference [s].
    order
        Order of the truth plant.
    s_star
        Largest stiffness factor at which the loop becomes unstable; 0 where it never does,
        infinite where a subsystem is unstable by itself, so that no stiffness helps.
    frequency
        Of the eigenvalue that crosses, at that stiffness [rad/s].
    exact
        Whether the guardian map gave it; else a bracket, which may miss a narrow band.
    what
        Slow joint, spring or line with the largest part in what crosses; empty where nothing does,
        or where it is not known.
    why
        Which subsystem is not stable; empty where both are.
    """

    t: float
    order: int
    s_star: float
    frequency: float = np.nan
    exact: bool
    what: str = ""
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class Spectra:
    """Eigenvalues at one pose on the truth plant, over the stiffness.

    Attributes
    ----------
    slow, fast
        Of the subsystems [rad/s], the fast ones at s = 1, where they grow as sqrt(s); empty where
        the loop is not of that form.
    full
        Of the loop with the arm as it is [rad/s].
    s, poles
        Stiffness factors, ascending, and the eigenvalues of the loop at each [rad/s].
    ranges
        Intervals (low, high) of s in which it is stable, ascending; None where only the bound is
        known.
    """

    slow: ComplexArray
    fast: ComplexArray
    full: ComplexArray
    s: Array
    poles: tuple[ComplexArray, ...]
    ranges: tuple[tuple[float, float], ...] | None


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
    spectra
        Eigenvalues at the worst pose on the truth plant.
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
    spectra: Spectra
    epsilon: float
    assumptions: tuple[str, ...]

    @property
    def worst(self) -> Bound:
        """Largest s_star along the path and over the truth orders."""
        return max((*self.path, *self.orders), key=lambda bound: bound.s_star)

    @property
    def stable(self) -> bool | str:
        """Whether the loop is stable with the arm as it is, at the truth's worst pose."""
        return judge_poles(self.spectra.full)

    @property
    def mu(self) -> float:
        """sqrt(epsilon)."""
        return float(np.sqrt(self.epsilon))

    @property
    def mu_star(self) -> float:
        """Where stability is lost: mu / sqrt(s_star); infinite where it never is."""
        s_star = self.worst.s_star
        return self.mu / float(np.sqrt(s_star)) if s_star else np.inf

    def to_json(self) -> dict[str, Any]:
        """Return the bound under the keys of the command line's contract."""
        worst, spectra = self.worst, self.spectra
        return {
            "model": self.model,
            "design": self.design,
            "basis": {"kind": self.basis.kind, "order": self.basis.order},
            "truth": {"kind": self.truth.kind, "order": self.truth.order},
            "s_star": _finite(worst.s_star),
            "mu_star": _finite(self.mu_star),
            "mu": self.mu,
            "epsilon": self.epsilon,
            "crossing_frequency": _finite(worst.frequency),
            "what_crosses": worst.what or None,
            "worst": {"t": worst.t, "modes": worst.order, "why": worst.why or None},
            "exact": worst.exact,
            "stable": self.stable,
            "stable_ranges": spectra.ranges and [list(map(_finite, r)) for r in spectra.ranges],
            "path": {
                "t": [bound.t for bound in self.path],
                "s_star": [_finite(bound.s_star) for bound in self.path],
            },
            "orders": {
                "order": [bound.order for bound in self.orders],
                "s_star": [_finite(bound.s_star) for bound in self.orders],
            },
            "slow_poles": _listed(spectra.slow),
            "fast_poles": _listed(spectra.fast),
            "full_poles": _listed(spectra.full),
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
    require_composite(loop.controller.design)
    why = why_not_exact(loop)
    if why:
        raise InputError(f"{loop.controller.design.label}: wanted a loop without {why}, came one")
    scales = separate_time_scales(loop.truth, joints, loop.controller.design.slow_angle)
    feedback, n = linearise_loop(loop, joints, 0.0).feedback, loop.truth.n
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
    A_1 = _states(m, np.zeros((n, n)), np.linalg.solve(scales.M_T, damped))
    kept = np.diag((np.arange(2 * n) < 2 * m).astype(float))
    parts = (A, A_1) if D_fixed.any() else (A,)
    return Pencil(slow=2 * m, E=(kept, np.eye(2 * n) - kept), A=parts)


def _states(m: int, by_q: Array, by_v: Array) -> Array:
    """Place rows of [y''; z''] by [y; z] and by [y'; z'] (n, n) in the order y, y', zeta, eta."""
    n = len(by_q)
    order = [*range(m), *range(n, n + m), *range(m, n), *range(n + m, 2 * n)]
    A, both = np.zeros((2 * n, 2 * n)), np.hstack([by_q, by_v])[:, order]
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


def require_composite(design: Design) -> None:
    """Refuse a design that has no two time scales."""
    if design.method != "composite":
        raise InputError(
            f"{design.label}: method: wanted composite, the one with two time scales, came "
            f"{design.method}"
        )


def why_not_exact(loop: ClosedLoop) -> str | None:
    """Say what of a loop depends on the stiffness in another way; None: nothing."""
    if loop.controller.design.loop.sample_time:
        return "a sampled law"
    if loop.controller.n_state:
        return "an observer"
    return "gravity" if any(loop.truth.arm.gravity) else None


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
        When the design is not composite.
    DesignError
        When a subsystem is not stable by itself on the truth plant, so that no stiffness makes the
        loop stable: says which and at which pose. Of other orders the bound says it.
    """
    require_composite(design)
    controller = design_controller(arm, design, design_basis)
    study = _Study(
        arm=arm,
        body=truth_arm or arm,
        controller=controller,
        basis=truth_basis or default_truth(arm, controller.plant.basis),
        fixed=fixed_damping,
        say=progress or (lambda _words: None),
    )
    truth = study.close(study.basis.order)
    why = why_not_exact(truth)
    path, orders, spectra = study.bracketed(why) if why else study.exact(truth)
    worst = max(path, key=lambda bound: bound.s_star)
    scales = separate_time_scales(truth.truth, study.joints(worst.t), design.slow_angle)
    remade = [_REMADE.format(why=why)] if why else []
    return Separation(
        model=arm.name,
        design=design.name,
        truth=study.basis,
        basis=controller.plant.basis,
        path=tuple(path),
        orders=tuple(orders),
        spectra=spectra,
        epsilon=scales.epsilon,
        assumptions=(*_ASSUMED, _DAMPING[fixed_damping], *remade, *truth.assumptions),
    )


_ASSUMED = (
    "linear, at rest at frozen poses of the reference",
    "all stiffness of links and joints is s times that of the arm; the fast gains are kept in "
    "scaled variables (Kp grows as s, Kv as sqrt(s)), the slow ones and all masses stay",
)
_DAMPING: dict[FixedDamping, str] = {
    "none": "damping ratios stay: all dampers grow as sqrt(s)",
    "joints": "damping ratios of the links stay; dampers of the joints do not change with s",
    "all": "dampers do not change with s",
}
_REMADE = (
    "because of {why} the loop is made anew at five s per decade from 1000 down to 0.001 and the "
    "bound bracketed, on the truth plant only: a narrow band of instability may be missed"
)


@dataclass(frozen=True, kw_only=True)
class _Study:
    """What a separation bound is asked of: the arm as designed for, as it is, and the design."""

    arm: Arm
    body: Arm
    controller: Controller
    basis: BasisChoice
    fixed: FixedDamping
    say: Callable[[str], None]

    @property
    def times(self) -> list[float]:
        """Times of the poses along the reference [s]."""
        end = self.controller.reference.duration
        return np.linspace(0, end, N_PATH if end else 1).tolist()

    def joints(self, t: float) -> Array:
        """Desired joint variables (m,) at time t."""
        return self.controller.reference.sample(np.array([t]))[0][:, 0]

    def close(self, order: int) -> ClosedLoop:
        """Close the controller around the arm as it is, at this order."""
        basis = self.basis.model_copy(update={"order": order})
        return close_around(self.controller, assemble_plant(self.body, basis, interpreted=True))

    def remake(self, s: float) -> ClosedLoop:
        """Make controller and truth plant of the arm with s times the stiffness."""
        own = self.controller
        arm, body = (soften_arm(arm, s, self.fixed) for arm in (self.arm, self.body))
        softened, basis = soften_design(own.design, s), own.plant.basis
        controller = design_controller(arm, softened, basis, interpreted=True)
        return close_around(controller, assemble_plant(body, self.basis, interpreted=True))

    def exact(self, truth: ClosedLoop) -> tuple[list[Bound], list[Bound], Spectra]:
        """Bounds along the path, over the orders, and spectra, by the guardian map."""
        self.say(f"bounds along the motion, {self.basis.order} {self.basis.kind}")
        path = [self._bound(truth, t) for t in self.times]
        _require_stable_subsystems(truth, path)
        worst = max(path, key=lambda bound: bound.s_star)
        orders = []
        design = self.controller.plant.basis.order  # a coarser truth is none
        ladder = {order for order in LADDER if order >= design}
        for order in sorted({*ladder, self.basis.order}):
            self.say(f"bounds on {order} {self.basis.kind}")
            loop = truth if order == self.basis.order else self.close(order)
            bounds = [self._bound(loop, t) for t in (worst.t, self.times[-1])]
            orders.append(max(bounds, key=lambda bound: bound.s_star))
        pencil = separate_loop(truth, self.joints(worst.t), self.fixed)
        return path, orders, _spectra(pencil, worst.s_star)

    def _bound(self, loop: ClosedLoop, t: float) -> Bound:
        """Find the bound at one pose."""
        order = loop.truth.basis.order
        pencil = separate_loop(loop, self.joints(t), self.fixed)
        exact = is_exact(pencil)
        try:
            found = first_loss(pencil)
        except DesignError as error:
            return Bound(t=t, order=order, s_star=np.inf, exact=exact, why=str(error))
        if found is None:
            return Bound(t=t, order=order, s_star=0.0, exact=exact)
        return Bound(
            t=t,
            order=order,
            s_star=1 / found.sigma**2,
            frequency=found.frequency,
            exact=exact,
            what=_largest_part(loop, pencil, found),
        )

    def bracketed(self, why: str) -> tuple[list[Bound], list[Bound], Spectra]:
        """Bound of the worst pose, on the truth plant only, and spectra there, made anew."""
        found, refused = [], ""
        for s in _S:
            self.say(f"the loop at {s:.3g} of the stiffness, made anew because of {why}")
            try:
                found.append(self._spectra_along(float(s)))
            except (ComputationError, DesignError) as error:  # an arm too soft for its weight
                refused = str(error)
                break
        worst = self._bracket(found, refused)
        k = self.times.index(worst.t)
        empty = np.zeros(0, dtype=complex)
        spectra = Spectra(
            slow=empty,
            fast=empty,
            full=self._spectra_along(1.0)[k],
            s=_S[: len(found)][::-1],
            poles=tuple(spectra[k] for spectra in reversed(found)),
            ranges=None,
        )
        return [worst], [worst], spectra

    def _spectra_along(self, s: float) -> list[ComplexArray]:
        """Eigenvalues at every pose with s times the stiffness."""
        loop = self.remake(s)
        return [linearise_loop(loop, self.joints(t), 0.0).poles for t in self.times]

    def _bracket(self, found: Sequence[Sequence[ComplexArray]], refused: str) -> Bound:
        """Bound between the first s of `_S` at which a pose is unstable, and the one before.

        Where no loop could be made at the next s, as it `refused`, the last one is the bound.
        """
        order, last = self.basis.order, self.times[-1]
        worst = [max(spectral_abscissa(values) for values in spectra) for spectra in found]
        k = next((k for k, abscissa in enumerate(worst) if abscissa > 0), None)
        if not found:
            raise DesignError(f"at {_S[0]:g} times the stiffness: {refused}")
        if k is None and refused:
            s_star = float(_S[len(found) - 1])
            return Bound(t=last, order=order, s_star=s_star, exact=False, what=refused)
        if k is None:
            return Bound(t=last, order=order, s_star=0.0, exact=False)
        if k == 0:
            why = f"the loop is unstable even at {_S[0]:g} times the stiffness"
            return Bound(t=last, order=order, s_star=np.inf, exact=False, why=why)

        def abscissa(log_s: float) -> float:
            spectra = self._spectra_along(float(np.exp(log_s)))
            return max(values.real.max() for values in spectra)

        root = scipy.optimize.brentq(abscissa, np.log(_S[k]), np.log(_S[k - 1]), xtol=1e-7)
        s_star = float(np.exp(root))  # pyright: ignore[reportArgumentType]
        spectra = self._spectra_along(s_star)
        pose = int(np.argmax([values.real.max() for values in spectra]))
        crossing = spectra[pose][spectra[pose].real.argmax()]
        return Bound(
            t=self.times[pose],
            order=order,
            s_star=s_star,
            frequency=float(abs(crossing.imag)),
            exact=False,
        )


def first_loss(pencil: Pencil) -> Crossing | None:
    """Smallest sigma at which a loop that is stable for sigma -> 0 becomes unstable; None: never.

    Dampers that stay as they are while the stiffness grows are nothing beside it in the end, and
    the limit sigma -> 0 says nothing about the loop. It is then followed from 10^4 times the
    stiffness on. A problem too large for the guardian map is bracketed.

    Raises
    ------
    DesignError
        When the loop is not stable where it is followed from: says why.
    """
    exact, start = is_exact(pencil), _STIFFEST**-0.5
    if len(pencil.A) == 1:
        why = obstacle(pencil)
        if why is not None:
            raise DesignError(why)
        return smallest_bound(pencil) if exact else bisect_bound(pencil, *_SIGMA)
    if stable(pencil, start) is not True:
        raise DesignError(f"the loop is not stable even with {_STIFFEST:g} times the stiffness")
    if not exact:
        return bisect_bound(pencil, start, _SIGMA[1])
    found = (crossing for crossing in find_crossings(pencil) if crossing.sigma > start)
    return next((crossing for crossing in found if crossing.destabilising), None)


def is_exact(pencil: Pencil) -> bool:
    """Whether the guardian map can take a problem of this size."""
    return problem_size(pencil) <= LARGEST


def _largest_part(loop: ClosedLoop, pencil: Pencil, crossing: Crossing) -> str:
    """Name what has the largest participation, a sum of |w_k v_k|, in the crossing eigenvalue."""
    solved = scipy.linalg.eig(pencil.matrix(crossing.sigma), left=True, right=True)
    values, W, V = (np.asarray(part) for part in solved)
    k = int(np.abs(values - 1j * crossing.frequency).argmin())
    shares: dict[str, float] = {}
    for name, share in zip(_state_names(loop), np.abs(W[:, k] * V[:, k]), strict=True):
        shares[name] = shares.get(name, 0.0) + float(share)
    return max(shares, key=lambda name: shares[name])


def _state_names(loop: ClosedLoop) -> list[str]:
    """Name what the states y, y', zeta, eta belong to, as a reader is told it."""
    truth, design = loop.truth, loop.controller.design
    rows = range(truth.m) if design.slow_angle == "link" else truth.drives
    slow = [f"slow motion of {truth.coordinates[row]}" for row in rows]
    fast = [_fast_name(name) for name in truth.coordinates[truth.m :]]
    return [*slow, *slow, *fast, *fast]


def _fast_name(name: str) -> str:
    if name.startswith("rotor"):
        return name.replace("rotor", "wind-up of joint")
    return f"bending of {'.'.join(name.split('.')[:2])}"


def _require_stable_subsystems(loop: ClosedLoop, path: Sequence[Bound]) -> None:
    for bound in path:
        if bound.why:
            raise DesignError(
                f"{loop.controller.design.name} on {loop.truth.arm.name} ({bound.order} "
                f"{loop.truth.basis.kind}): no stiffness makes this loop stable at t = "
                f"{bound.t:.4g} s: {bound.why}; see flexctl compare"
            )


def _spectra(pencil: Pencil, s_star: float) -> Spectra:
    bound = s_star or 1.0
    s = np.geomspace(min(1.0, bound) / BEYOND, max(1.0, bound) * BEYOND, N_CURVE)
    return Spectra(
        slow=slow_poles(pencil),
        fast=fast_poles(pencil),
        full=poles(pencil, 1.0),
        s=s,
        poles=tuple(poles(pencil, 1 / np.sqrt(at)) for at in s),
        ranges=_ranges(pencil),
    )


def _ranges(pencil: Pencil) -> tuple[tuple[float, float], ...] | None:
    """Intervals of s = 1/sigma^2 in which the loop is stable, ascending."""
    if not is_exact(pencil):
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
