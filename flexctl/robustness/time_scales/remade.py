"""The separation bound of loops that depend on the stiffness in any way: made anew at every factor.

Gravity does not grow with the stiffness, samples do not come sooner, and an observer has states of
its own. Their loops are made at a grid of stiffness factors s, and the first loss of stability
among them is refined by root finding. Where gravity alone is in the way, the stiffness scales but
the time: in t sqrt(s) an arm with s times the stiffness is the arm with gravity c/s (see
`slowed_design`), so that its functions are made once, with gravity as a free number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.control import Controller, design_controller
from flexctl.errors import ComputationError, DesignError
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
from flexctl.robustness.time_scales.separated_loop import what_is_slowest

_S = np.geomspace(1e3, 1e-3, 31)  # five factors per decade
_REFINED = 1e-6  # relative: how close to the bound that was bracketed the search goes
_REFUSED = 1e-3  # likewise to where no loop can be made


@dataclass(frozen=True, kw_only=True)
class Remade:
    """Loops of an arm as designed for, and as it is, at any stiffness factor.

    `fixed` are the dampers that do not change with it, `times` [s] the poses along the reference,
    `why` what makes it necessary to make them anew.
    """

    setup: Setup
    controller: Controller
    fixed: FixedDamping
    times: tuple[float, ...]
    say: Callable[[str], None]
    why: str

    def loop(self, s: float) -> ClosedLoop:
        """Return the loop of the arm with s times the stiffness, its eigenvalues in `unit(s)`."""
        own, basis = self.controller, self.controller.plant.basis
        if self.scales_time:
            known = self.setup.design_arm
            arm = known.model_copy(update={"gravity": _over(known.gravity, s)})
            design, truth = slowed_design(own.design, s), self._weighing
            controller = design_controller(arm, design, basis, interpreted=True)
            return close_around(
                controller, truth.at({"gravity": _over(self.setup.true_arm.gravity, s)})
            )
        setup = self.setup.changed(lambda arm: soften_arm(arm, s, self.fixed))
        design = soften_design(own.design, s)
        controller = design_controller(setup.design_arm, design, basis, interpreted=True)
        return close_around(controller, setup.truth(interpreted=True))

    @property
    def scales_time(self) -> bool:
        """Whether the stiffness scales but the time, beside gravity: see `slowed_design`."""
        own = self.controller
        return self.fixed == "none" and own.sample_time is None and own.observer is None

    @cached_property
    def _weighing(self) -> Plant:
        """The truth plant with its gravity as a free number."""
        return assemble_plant(
            self.setup.true_arm, self.setup.truth_basis, interpreted=True, parameters=("gravity",)
        )

    def unit(self, s: float) -> float:
        """Return the unit of the eigenvalues of `loop(s)` [1/s]."""
        return float(np.sqrt(s)) if self.scales_time else 1.0

    def spectra(self, s: float) -> list[ComplexArray]:
        """Eigenvalues [rad/s] at every pose with s times the stiffness."""
        self.say(f"the loop at {s:.6g} of the stiffness, made anew because of {self.why}")
        loop, unit = self.loop(s), self.unit(s)
        return [unit * linearise_loop(loop, self._joints(t), 0.0).poles for t in self.times]

    def _joints(self, t: float) -> Array:
        return self.controller.reference.sample(np.array([t]))[0][:, 0]

    def bounded(self) -> tuple[Bound, Spectra]:
        """Bound of the worst pose, and spectra there.

        Raises
        ------
        ComputationError, DesignError
            When no loop can be made of the arm as it is, or of a very stiff one.
        """
        by_factor, refused = [], ""
        for s in _S.tolist():
            try:
                by_factor.append(self.spectra(s))
            except (ComputationError, DesignError) as error:  # an arm too soft for its weight
                refused = str(error)
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
        self, by_factor: Sequence[Sequence[ComplexArray]], refused: str, own: bool | str
    ) -> Bound:
        """Bound between the first s of `_S` at which a pose is unstable, and the one before.

        Where no loop could be made at the next s, as it `refused`, the search ends there.
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
        if not refused:
            return here(t=self.times[-1], s_star=0.0)
        return self._refused(
            here, float(_S[len(by_factor)]), float(_S[len(by_factor) - 1]), refused
        )

    def _refused(self, here: Callable[..., Bound], low: float, high: float, refused: str) -> Bound:
        """Bound between a factor at which no loop can be made, and one with a stable loop."""
        while high > low * (1 + _REFUSED):
            middle = float(np.sqrt(low * high))
            try:
                lost = _largest(self.spectra(middle)) > 0
            except (ComputationError, DesignError) as error:
                low, refused = middle, str(error)
                continue
            if lost:
                return self._refined(here, middle, high)
            high = middle
        return here(t=self.times[-1], s_star=high, refused=refused)

    def _refined(self, here: Callable[..., Bound], low: float, high: float) -> Bound:
        """Bound between a factor with an unstable loop and one with a stable loop."""

        def abscissa(log_s: float) -> float:
            return _largest(self.spectra(float(np.exp(log_s))))

        root = scipy.optimize.brentq(abscissa, np.log(low), np.log(high), xtol=_REFINED)
        s_star = float(np.exp(float(root)))  # pyright: ignore[reportArgumentType]
        spectra = self.spectra(s_star)
        pose = int(np.argmax([values.real.max() for values in spectra]))
        crossing, t = spectra[pose][spectra[pose].real.argmax()], self.times[pose]
        what = what_is_slowest(self.loop(s_star), self._joints(t))
        return here(t=t, s_star=s_star, frequency=float(abs(crossing.imag)), what=what)


def _largest(spectra: Sequence[ComplexArray]) -> float:
    """Largest real part [1/s] at any pose."""
    return max(spectral_abscissa(values) for values in spectra)


def _over(gravity: Sequence[float], s: float) -> tuple[float, ...]:
    return tuple(g / s for g in gravity)
