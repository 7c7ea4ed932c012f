"""The separation bound of loops that are redesigned at every stiffness factor s.

With gravity, a sampled law or one with states a loop is no pencil over 1/sqrt(s): gravity and the
sample time do not scale with the stiffness, and observers and filters have rates of their own. Such
loops are
designed and closed on a grid of factors s, and the first loss of stability is refined by root
finding. Where gravity is the only obstacle, the time is scaled instead: in the time t sqrt(s) an
arm with s times the stiffness is the original arm under gravity c/s (see `slowed_design`), so that
its functions are assembled once, with gravity as a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.control import Controller, design_controller
from flexctl.errors import ComputationError, DesignError, NoEquilibriumError
from flexctl.loop import (
    ClosedLoop,
    Setup,
    close_around,
    judge_poles,
    linearise_loop,
    spectral_abscissa,
)
from flexctl.model import FixedDamping, slowed_design, soften_arm, soften_design
from flexctl.plant import Plant, assemble_plant
from flexctl.robustness.time_scales.record import Bound, Spectra, all_stable
from flexctl.robustness.time_scales.separated_loop import rightmost_motion

_S = np.geomspace(1e3, 1e-3, 31)  # five factors per decade
_BOUND_TOLERANCE = 1e-6  # of the logarithm of s at the bound
_END_TOLERANCE = 1e-3  # relative: of the factor at which loops end to exist


@dataclass(frozen=True, kw_only=True)
class RedesignedLoop:
    """The closed loop over the stiffness factor s, its controller redesigned at every s.

    Attributes
    ----------
    setup, controller
        Arms with their discretisations, and the controller at s = 1.
    fixed
        Dampers that do not change with s.
    times
        Times of the poses along the reference [s].
    say
        Called with a sentence before every loop.
    why
        Why the loop is redesigned, such as "gravity".
    """

    setup: Setup
    controller: Controller
    fixed: FixedDamping
    times: tuple[float, ...]
    say: Callable[[str], None]
    why: str

    def loop(self, s: float) -> ClosedLoop:
        """Loop of the arm with s times the stiffness; its eigenvalues have the unit `unit(s)`."""
        own, basis = self.controller, self.controller.plant.basis
        first = own.design.model_copy(update={"second_loop": None})  # that of the gross motion
        if self.scales_time:
            known = self.setup.design_arm
            arm = known.model_copy(update={"gravity": _over(known.gravity, s)})
            design, truth = slowed_design(first, s), self._truth
            controller = design_controller(arm, design, basis, interpreted=True)
            return close_around(
                controller, truth.at({"gravity": _over(self.setup.true_arm.gravity, s)})
            )
        setup = self.setup.changed(lambda arm: soften_arm(arm, s, self.fixed))
        design = soften_design(first, s)
        controller = design_controller(setup.design_arm, design, basis, interpreted=True)
        return close_around(controller, setup.truth(interpreted=True))

    @property
    def scales_time(self) -> bool:
        """Whether scaled time and gravity replace scaled stiffness: see `slowed_design`.

        Not of a law with states: rates of its own, as those of filters, stay.
        """
        own = self.controller
        driven = self._truth.joint_damping.any() or own.plant.joint_damping.any()  # which stays
        return not (self.fixed != "none" or own.sample_time or own.n_state or driven)

    @cached_property
    def _truth(self) -> Plant:
        """The truth plant with gravity as a parameter."""
        return assemble_plant(
            self.setup.true_arm, self.setup.truth_basis, interpreted=True, parameters=("gravity",)
        )

    def unit(self, s: float) -> float:
        """Return the unit of the eigenvalues of `loop(s)` [1/s]."""
        return float(np.sqrt(s)) if self.scales_time else 1.0

    def spectra(self, s: float) -> list[ComplexArray]:
        """Eigenvalues [rad/s] at every pose with s times the stiffness."""
        self.say(f"the loop redesigned for {s:.6g} times the stiffness, because of {self.why}")
        loop, unit = self.loop(s), self.unit(s)
        return [unit * linearise_loop(loop, self._joints(t), 0.0).poles for t in self.times]

    def _joints(self, t: float) -> Array:
        """Desired joint variables (m,) at time t [s]."""
        return self.controller.reference.sample(np.array([t]))[0][:, 0]

    def bounded(self) -> tuple[Bound, Spectra]:
        """Find the bound of the worst pose, and the spectra there.

        Raises
        ------
        ComputationError, DesignError
            When there is no loop for the true stiffness, or for the largest factor.
        """
        by_factor, refused = [], None
        for s in _S.tolist():
            try:
                by_factor.append(self.spectra(s))
            except (
                ComputationError,
                DesignError,
            ) as error:  # such as an arm too soft for its weight
                refused = error
                break
        own = self.spectra(1.0)
        worst = self._bound(by_factor, refused, all_stable([judge_poles(p) for p in own]))
        k, empty = self.times.index(worst.t), np.zeros(0, dtype=complex)
        return worst, Spectra(
            slow=empty,
            fast=empty,
            full=own[k],
            s=_S[: len(by_factor)][::-1],
            poles=tuple(spectra[k] for spectra in reversed(by_factor)),
            ranges=None,
        )

    def _bound(
        self,
        by_factor: Sequence[Sequence[ComplexArray]],
        refused: ComputationError | DesignError | None,
        own: bool | str,
    ) -> Bound:
        """Bound between the first s of `_S` at which a pose is unstable, and the one before.

        `refused` says why there is no loop at the next s, which ends the search.
        """
        here = partial(Bound, order=self.setup.truth_basis.order, exact=False, stable=own)
        lost = [_largest(spectra) > 0 for spectra in by_factor]
        if not by_factor:
            raise ComputationError(f"separation, {_S[0]:g} times the stiffness: {refused}")
        if lost[0]:
            why = f"the loop is unstable even at {_S[0]:g} times the stiffness"
            return here(t=self.times[-1], s_star=np.inf, why=why)
        if True in lost:
            k = lost.index(True)
            return self._refined(here, float(_S[k]), float(_S[k - 1]))
        if refused is None:
            return here(t=self.times[-1], s_star=0.0)
        return self._refused(
            here, float(_S[len(by_factor)]), float(_S[len(by_factor) - 1]), refused
        )

    def _refused(
        self,
        here: Callable[..., Bound],
        low: float,
        high: float,
        refused: ComputationError | DesignError,
    ) -> Bound:
        """Bound between a factor `low` without a loop and a factor `high` with a stable loop."""
        while high > low * (1 + _END_TOLERANCE):
            middle = float(np.sqrt(low * high))
            try:
                lost = _largest(self.spectra(middle)) > 0
            except (ComputationError, DesignError) as error:
                low, refused = middle, error
                continue
            if lost:
                return self._refined(here, middle, high)
            high = middle
        return here(
            t=self.times[-1],
            s_star=high,
            refused=str(refused),
            no_equilibrium=isinstance(refused, NoEquilibriumError),
        )

    def _refined(self, here: Callable[..., Bound], low: float, high: float) -> Bound:
        """Bound between a factor `low` with an unstable loop and `high` with a stable one."""

        def abscissa(log_s: float) -> float:
            return _largest(self.spectra(float(np.exp(log_s))))

        root = scipy.optimize.brentq(abscissa, np.log(low), np.log(high), xtol=_BOUND_TOLERANCE)
        s_star = float(np.exp(float(root)))  # pyright: ignore[reportArgumentType]
        spectra = self.spectra(s_star)
        pose = int(np.argmax([values.real.max() for values in spectra]))
        crossing, t = spectra[pose][spectra[pose].real.argmax()], self.times[pose]
        motion = rightmost_motion(self.loop(s_star), self._joints(t))
        return here(t=t, s_star=s_star, frequency=float(abs(crossing.imag)), motion=motion)


def _largest(spectra: Sequence[ComplexArray]) -> float:
    """Largest real part [1/s] at any pose."""
    return max(spectral_abscissa(values) for values in spectra)


def _over(gravity: Sequence[float], s: float) -> tuple[float, ...]:
    """Gravity (3,) [m/s^2] divided by s."""
    return tuple(g / s for g in gravity)
