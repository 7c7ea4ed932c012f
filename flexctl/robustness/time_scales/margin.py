"""Time-scale margin: how soft an arm may be before composite control makes it unstable.

With the stiffness factor s and sigma = 1/sqrt(s) -> 0 the eigenvalues of a loop (`separated_loop`)
tend to those of the slow subsystem and, divided by sigma, of the fast one. Even if both are stable
the loop may become unstable at some sigma, which `separation_bound` gives without a scan. Loops of
another form (gravity, a sampled law, an observer) are redesigned at every s, and the bound is
bracketed (`redesigned_loop`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.control import Controller, design_controller, separate_time_scales
from flexctl.errors import DesignError, InputError
from flexctl.loop import N_PATH, ClosedLoop, Setup, close_around
from flexctl.model import Arm, BasisChoice, Design, FixedDamping, load_design, load_model
from flexctl.parallel import on_one_thread
from flexctl.plant import assemble_plant
from flexctl.robustness.time_scales.record import Bound, Spectra, TimeScaleMargin, all_stable
from flexctl.robustness.time_scales.redesigned_loop import RedesignedLoop
from flexctl.robustness.time_scales.separated_loop import (
    crossing_motion,
    require_composite,
    separate_loop,
    why_not_exact,
)
from flexctl.robustness.time_scales.separation_bound import Pencil, first_loss, stable_ranges

_ORDERS = (1, 2, 4, 6, 8)  # of the truth, over which bounds are found
N_CURVE = 400  # stiffness factors at which eigenvalues are kept
BEYOND = 30.0  # factor by which their range exceeds the bound and 1


@on_one_thread
def time_scale_margin(
    arm: Arm | str | Path,
    design: Design | Controller | str | Path,
    *,
    true_arm: Arm | str | Path | None = None,
    truth_basis: BasisChoice | None = None,
    design_basis: BasisChoice | None = None,
    fixed_damping: FixedDamping = "none",
    progress: Callable[[str], None] | None = None,
) -> TimeScaleMargin:
    """Find how soft an arm may be before its composite control makes it unstable.

    Parameters
    ----------
    arm, design
        The arm as the designer knows it, and a composite design; or their names or paths. Of a
        controller its design counts, on the basis of its plant.
    true_arm, truth_basis, design_basis
        As in `compare`.
    fixed_damping
        Which dampers do not change with the stiffness: "none", those of the "joints", or "all".
    progress
        Called with a sentence before every longer piece of work.

    Raises
    ------
    InputError
        When the design is not composite, or an argument is not allowed.

    Examples
    --------
    >>> import flexctl
    >>> margin = flexctl.time_scale_margin("subudhi-morris-2r", "subudhi-morris-lqr")
    >>> margin.stable
    True
    """
    checks.functions(progress=progress)
    if fixed_damping not in list(_DAMPING):
        expected = " or ".join(_DAMPING)
        got = checks.shown(fixed_damping)
        raise InputError(f"fixed_damping: expected {expected}, got {got}")
    if isinstance(design, Controller):
        design_basis, design = design_basis or design.plant.basis, design.design
    arm, design = load_model(arm), load_design(design)
    require_composite(design)
    controller = design_controller(arm, design, design_basis)
    basis = controller.plant.basis
    study = _Study(
        setup=Setup.of(arm, basis, true_arm=true_arm, truth_basis=truth_basis),
        controller=controller,
        fixed=fixed_damping,
        say=progress or (lambda _words: None),
    )
    truth = study.close(study.truth_basis.order)
    why = why_not_exact(truth)
    path, orders, spectra = study.bracketed(why) if why else study.exact(truth)
    worst = max(path, key=lambda bound: bound.s_star)
    scales = separate_time_scales(truth.truth, study.joints(worst.t), design.slow_angle)
    bracketed = [_REDESIGNED.format(why=why)] if why else []
    if not why and not all(bound.exact for bound in (*path, *orders)):
        bracketed = [_LARGE]
    return TimeScaleMargin(
        model=arm.name,
        design=design.name,
        truth=study.truth_basis,
        basis=controller.plant.basis,
        path=tuple(path),
        orders=tuple(orders),
        spectra=spectra,
        epsilon=scales.epsilon,
        assumptions=(*_ASSUMED, _DAMPING[fixed_damping], *bracketed, *truth.assumptions),
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
_LARGE = (
    "problems too large for the guardian map are bracketed at fifty sigma per decade: a narrow "
    "band of instability may be missed"
)
_REDESIGNED = (
    "because of {why} the loop is rebuilt at five values of s per decade from 1000 down to 0.001 "
    "and the first bound between these refined to one part in a million, for the worst pose and on "
    "the truth plant only: a narrow band of instability may be missed"
)


@dataclass(frozen=True, kw_only=True)
class _Study:
    """Setup and controller whose separation bound is computed."""

    setup: Setup
    controller: Controller
    fixed: FixedDamping
    say: Callable[[str], None]

    @property
    def truth_basis(self) -> BasisChoice:
        """Discretisation of the truth plant."""
        return self.setup.truth_basis

    @property
    def times(self) -> list[float]:
        """Times of the poses along the reference [s]."""
        end = self.controller.reference.duration
        return np.linspace(0, end, N_PATH if end else 1).tolist()

    def joints(self, t: float) -> Array:
        """Desired joint variables (m,) at time t."""
        return self.controller.reference.sample(np.array([t]))[0][:, 0]

    def close(self, order: int) -> ClosedLoop:
        """Close the controller around the true arm, discretised at this order."""
        basis = self.truth_basis.model_copy(update={"order": order})
        truth = assemble_plant(self.setup.true_arm, basis, interpreted=True)
        return close_around(self.controller, truth)

    def exact(self, truth: ClosedLoop) -> tuple[list[Bound], list[Bound], Spectra]:
        """Bounds along the path, over the orders, and spectra, by the guardian map."""
        self.say(f"bounds along the motion, {self.truth_basis.order} {self.truth_basis.kind}")
        path = [self._bound(truth, t) for t in self.times]
        worst = max(path, key=lambda bound: bound.s_star)
        orders = []
        design = self.controller.plant.basis.order  # the truth is no coarser than the design plant
        ladder = {order for order in _ORDERS if order >= design}
        for order in sorted({*ladder, self.truth_basis.order}):
            self.say(f"bounds on {order} {self.truth_basis.kind}")
            loop = truth if order == self.truth_basis.order else self.close(order)
            bounds = [self._bound(loop, t) for t in (worst.t, self.times[-1])]
            worse, judged = max(bounds, key=lambda b: b.s_star), [b.stable for b in bounds]
            orders.append(replace(worse, stable=all_stable(judged)))
        pencil = separate_loop(truth, self.joints(worst.t), self.fixed)
        return path, orders, _spectra(pencil, worst.s_star)

    def _bound(self, loop: ClosedLoop, t: float) -> Bound:
        """Find the bound at the pose of time t [s]."""
        order = loop.truth.basis.order
        pencil = separate_loop(loop, self.joints(t), self.fixed)
        here = partial(Bound, t=t, order=order, exact=pencil.exact, stable=pencil.stable(1.0))
        try:
            loss = first_loss(pencil)
        except DesignError as error:
            return here(s_star=np.inf, why=str(error))
        if loss is None:
            return here(s_star=0.0)
        return here(
            s_star=1 / loss.sigma**2,
            frequency=loss.frequency,
            motion=crossing_motion(loop, pencil, loss),
        )

    def bracketed(self, why: str) -> tuple[list[Bound], list[Bound], Spectra]:
        """Bound of the worst pose, on the truth plant only, and spectra there, by redesign."""
        redesigned = RedesignedLoop(
            setup=self.setup,
            controller=self.controller,
            fixed=self.fixed,
            times=tuple(self.times),
            say=self.say,
            why=why,
        )
        worst, spectra = redesigned.bounded()
        return [worst], [worst], spectra


def _spectra(pencil: Pencil, s_star: float) -> Spectra:
    """Eigenvalues of a pencil over the stiffness factors about its bound and 1."""
    bound = s_star if 0 < s_star < np.inf else 1.0
    s = np.geomspace(min(1.0, bound) / BEYOND, max(1.0, bound) * BEYOND, N_CURVE)
    return Spectra(
        slow=pencil.slow_poles,
        fast=pencil.fast_poles,
        full=pencil.poles(1.0),
        s=s,
        poles=tuple(pencil.poles(1 / np.sqrt(at)) for at in s),
        ranges=_ranges(pencil),
    )


def _ranges(pencil: Pencil) -> tuple[tuple[float, float], ...] | None:
    """Intervals of s = 1/sigma^2 in which the loop is stable, ascending."""
    if not pencil.exact:
        return None
    try:
        ranges = stable_ranges(pencil)
    except DesignError:  # marginal at every stiffness
        return ()
    factors = [
        (0.0 if np.isinf(high) else 1 / high**2, 1 / low**2 if low else np.inf)
        for low, high in ranges
    ]
    return tuple(sorted(factors))
