"""A closed loop at one pose as a function of the error alpha of its stiffness."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from flexctl.checks import Array
from flexctl.loop import ClosedLoop, ModeNames, exceeding, name_modes, too_weak
from flexctl.robustness.lft import (
    RealCrossing,
    UncertainLoop,
    axis_tolerance,
    eigenvalue_sensitivities,
    stable_interval,
)
from flexctl.robustness.stiffness.followed import ErrorFamily, stiffness_family
from flexctl.robustness.stiffness.interval import Growing, Interval, NoMarginError, StabilityLimit
from flexctl.robustness.stiffness.model_errors import all_together, pull_out
from flexctl.robustness.stiffness.record import Locus, ModeRate

_N_LOCUS = 81
_WIDEST = 3.0  # largest error of a locus, whatever the interval
_LOWEST = -0.95  # lowest error of a locus
_SMALLEST = 1e-4  # smallest |error| of a locus beside 0


@dataclass(frozen=True, kw_only=True)
class PoseLoop:
    """A linear loop at one pose over the error alpha of its stiffness.

    Attributes
    ----------
    closed, joints, second_loop_weight
        The closed loop, joint variables (m,) [rad or m], and 1 under the second loop, else 0.
    loop
        The loop linearised where the arm rests without error, with alpha pulled out.
    names
        Names of its modes.
    family
        The loop linearised where the arm rests under the error; None where `loop` is to be used
        even if the equilibrium moves.
    """

    closed: ClosedLoop
    joints: Array
    second_loop_weight: float
    loop: UncertainLoop
    names: ModeNames
    family: ErrorFamily | None = None

    @cached_property
    def moves(self) -> bool:
        """Whether an error moves the equilibrium, so that `family` is used."""
        return self.family is not None and self.family.moves()

    @property
    def abscissa(self) -> float:
        """Largest real part of the eigenvalues without error [1/s]."""
        return float(self.loop.in_time(self.loop.poles(np.zeros(1))).real.max())

    @cached_property
    def interval(self) -> Interval:
        """Interval of errors about 0 in which the loop is stable.

        Raises
        ------
        NoMarginError
            When the loop is unstable without error, or its actuators cannot hold the arm.
        """
        self._require_stable()
        if self.family and self.moves:
            return self.family.interval()
        interval = stable_interval(self.loop)
        unmoved = [value for value in interval.fixed if value.imag >= 0]
        return Interval(
            lower=self._limit(interval.at_lower),
            upper=self._limit(interval.at_upper),
            unmoved=tuple(self.names.name(self.loop.A, value) for value in unmoved),
            unknowns=interval.unknowns,
            counted=interval.counted,
        )

    def _require_stable(self) -> None:
        """Refuse a loop whose actuators cannot hold the arm at this pose, or that is unstable."""
        if self.family is not None and any(self.closed.truth.arm.gravity):
            torque = self.family.start.rest.tau
            if exceeding(torque, self.closed.torque_limit).size:
                raise NoMarginError(self._subject, too_weak(self.closed, torque, "at this pose"))
        values = self.loop.poles(np.zeros(1))
        grows = values.real > axis_tolerance(values)
        if not grows.any():
            return
        worst = complex(values[grows][values[grows].real.argmax()])
        growing = Growing(
            mode=self.names.name(self.loop.A, worst),
            rate=None if self.loop.sample_time else worst.real,
            frequency=self.loop.frequency(worst) if worst.imag else 0.0,
        )
        raise NoMarginError(
            self._subject,
            "expected a loop that is stable without an error of the stiffness, got one in which "
            f"{growing}",
            growing,
        )

    @property
    def _subject(self) -> str:
        """Design and truth plant in words, for a refusal."""
        truth = self.closed.truth.basis
        return f"{self.closed.controller.design.label} on {truth.order} {truth.kind}"

    def _limit(self, crossing: RealCrossing | None) -> StabilityLimit | None:
        """Limit at a crossing, with the name of the mode; None without one."""
        if crossing is None:
            return None
        value = crossing.eigenvalue
        matrix = self.loop.matrix(np.array([crossing.delta]))
        mode = self.names.name(matrix, value) if np.isfinite(value) else "delayed torque"
        return StabilityLimit(alpha=crossing.delta, frequency=crossing.frequency, mode=mode)

    @property
    def rates(self) -> tuple[ModeRate, ...]:
        """Differentiate all oscillatory eigenvalues by alpha, the fastest growing mode first."""
        if self.family and self.moves:
            return self.family.rates()
        values, rates = eigenvalue_sensitivities(self.loop)
        own = self.loop.in_time(values)
        if self.loop.sample_time:
            rates = 2 * rates / (self.loop.sample_time * (1 - values**2))
        oscillatory = np.flatnonzero(values.imag > 0)
        return tuple(
            ModeRate(
                mode=self.names.name(self.loop.A, complex(values[k])),
                value=complex(own[k]),
                rate=complex(rates[k]),
            )
            for k in oscillatory[np.argsort(-rates.real[oscillatory])]
        )

    @property
    def locus(self) -> Locus:
        """Eigenvalues over errors inside and beyond the interval, dense near 0."""
        upper = self.interval.alpha_upper
        high = min(max(2 * upper, 1.0), _WIDEST) if np.isfinite(upper) else 1.0
        even = np.linspace(_LOWEST, high, _N_LOCUS)
        small = np.geomspace(_SMALLEST, -_LOWEST, _N_LOCUS // 2)
        alpha = np.unique([*even, *small, *-small, 0.0])
        if self.family and self.moves:
            points = sorted(self.family.over(alpha), key=lambda point: point.error)
            there = np.array([point.error for point in points])
            return Locus(alpha=there, poles=tuple(point.rates for point in points))
        poles = (self.loop.in_time(self.loop.poles(np.array([x]))) for x in alpha)
        return Locus(alpha=alpha, poles=tuple(poles))


def loop_at(closed: ClosedLoop, joints: Array, second_loop_weight: float) -> PoseLoop:
    """Linearise a loop at joint variables (m,) with its error alpha pulled out.

    The controller must have the errors of its stiffness as inputs: see `StiffnessError`.
    `second_loop_weight` is 0 or 1.
    """
    loop = pull_out(closed, joints, second_loop_weight, all_together(closed.controller.plant))
    names = name_modes(closed, joints, loop.size)
    parts = np.ones(len(closed.controller.plant.stiffness_parts))
    family = stiffness_family(closed, joints, second_loop_weight, parts) if len(parts) else None
    return PoseLoop(
        closed=closed,
        joints=joints,
        second_loop_weight=second_loop_weight,
        loop=loop,
        names=names,
        family=family,
    )
