"""The case of a stiffness margin, and its closed loop at one pose over the error alpha."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import scipy.optimize

from flexctl.checks import Array, ComplexArray
from flexctl.control import design_controller
from flexctl.errors import InputError
from flexctl.loop import (
    ClosedLoop,
    LinearLoop,
    ModeNames,
    Setup,
    close_around,
    exceeding,
    holding_torque,
    linearise_loop,
    name_modes,
    too_weak,
)
from flexctl.model import Arm, BasisChoice, Design, without_damping
from flexctl.plant import STIFFNESS_ERROR, Plant
from flexctl.robustness.lft import (
    RealCrossing,
    UncertainLoop,
    axis_tolerance,
    eigenvalue_sensitivities,
    is_small,
    search_ends,
    stable_interval,
)
from flexctl.robustness.stiffness.followed_equilibria import ErrorFamily, stiffness_family
from flexctl.robustness.stiffness.model_errors import (
    all_together,
    pull_out,
    require_known_use,
)
from flexctl.robustness.stiffness.record import (
    Growing,
    Interval,
    Locus,
    ModeRate,
    NoMarginError,
    StabilityLimit,
    mode_rates,
)

_N_LOCUS = 81
_WIDEST = 3.0  # largest error of a locus, whatever the interval
_LOWEST = -0.95  # lowest error of a locus
_VANISHED = 1e-12  # distance from -1 below which a state lasts no sample
_BESIDE = 1e-6  # relative, of an error of which the matrix is singular
_SMALLEST = 1e-4  # smallest |error| of a locus beside 0


@dataclass(frozen=True, kw_only=True)
class Case:
    """A design whose stiffness may be wrong, on the true arm.

    Attributes
    ----------
    setup, design
        Design arm and true arm with their discretisations, and the design. Errors are relative to
        the stiffness of the design arm.
    unknown_damping
        Whether the controller is designed for the arm without its damping.
    n_path
        Number of poses along the motion, at equal times up to the final pose, under the law of the
        gross motion; 1 for the final pose alone. A second loop is judged at the final pose as well;
        with 0 poses only there.
    """

    setup: Setup
    design: Design
    unknown_damping: bool = False
    n_path: int = 11

    def __post_init__(self) -> None:
        """Refuse an open-loop design, and a negative number of poses."""
        if self.design.open_loop:
            got = self.design.method
            raise InputError(f"{self.design.label}: expected a design with feedback, got {got}")
        if self.n_path < 0:
            raise InputError(f"n_path: expected no negative number of poses, got {self.n_path}")

    @staticmethod
    def of(
        arm: Arm,
        design: Design,
        *,
        true_arm: Arm | str | Path | None = None,
        truth_basis: BasisChoice | None = None,
        design_basis: BasisChoice | None = None,
        unknown_damping: bool = False,
        n_path: int = 11,
    ) -> Case:
        """Case of an arm and a design; arguments as in `compare`."""
        basis = design_basis or design.basis
        return Case(
            setup=Setup.of(arm, basis, true_arm=true_arm, truth_basis=truth_basis),
            design=design,
            unknown_damping=unknown_damping,
            n_path=n_path,
        )

    @property
    def designed_for(self) -> Arm:
        """The arm that the controller is designed for."""
        arm = self.setup.design_arm
        return without_damping(arm) if self.unknown_damping else arm

    @cached_property
    def truth(self) -> Plant:
        """The truth plant."""
        return self.setup.truth(interpreted=True)

    @cached_property
    def closed(self) -> ClosedLoop:
        """The closed loop of the design, the errors of its stiffness being free numbers."""
        return self.close()

    def close(self, design: Design | None = None, basis: BasisChoice | None = None) -> ClosedLoop:
        """Close the loop of this design, or another one, with free errors of its stiffness.

        `basis` replaces the discretisation of the design plant.
        """
        design, basis = design or self.design, basis or self.setup.design_basis
        return close_unknown(self.designed_for, design, basis, self.truth)

    def changed(self, change: Callable[[Arm], Arm]) -> Case:
        """Return the case with the same change of the true arm and of the design arm."""
        return replace(self, setup=self.setup.changed(change))


def close_unknown(arm: Arm, design: Design, basis: BasisChoice, truth: Plant) -> ClosedLoop:
    """Close the loop of a design for an arm, with free errors of its stiffness."""
    free = (STIFFNESS_ERROR,)
    controller = design_controller(arm, design, basis, interpreted=True, parameters=free)
    return close_around(controller, truth)


@dataclass(frozen=True, kw_only=True)
class PoseLoop:
    """A linear loop at one pose over the error alpha of its stiffness.

    Attributes
    ----------
    closed, joints, second_loop_weight
        The closed loop, joint variables (m,) [rad or m], and 1 under the second loop, else 0.
    pulled
        Computes `loop` when it is first used: a loop that is followed has an end without it.
    family
        The loop linearised where the arm rests under the error; None where `loop` is to be used
        even if the equilibrium moves.
    """

    closed: ClosedLoop
    joints: Array
    second_loop_weight: float
    pulled: Callable[[], UncertainLoop]
    family: ErrorFamily | None = None

    @cached_property
    def loop(self) -> UncertainLoop:
        """The loop linearised where the arm rests without error, with alpha pulled out.

        Raises ComputationError as `pull_out`.
        """
        return self.pulled()

    @cached_property
    def names(self) -> ModeNames:
        """Names of the loop's modes."""
        return name_modes(self.closed, self.joints, self.loop.size)

    @cached_property
    def moves(self) -> bool:
        """Whether `family` is used: where an error moves the equilibrium, or enters often.

        Over a cycle, or where an observer predicts a sample in many steps, the loop depends on the
        error by so high a power that it is rather followed.
        """
        if self.family is None:
            return False
        repeats = self.closed.controller.cycle > 1
        return repeats or self.family.moves() or not is_small(self.loop)

    @property
    def abscissa(self) -> float:
        """Largest real part of the eigenvalues without error [1/s]."""
        return float(self.loop.in_time(self.loop.nominal_poles).real.max())

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
            repeats = self.closed.controller.cycle > 1
            return replace(self.family.interval(), repeats=repeats)
        interval = stable_interval(self.loop)
        unmoved = [value for value in interval.fixed if value.imag >= 0]
        return Interval(
            lower=self._limit(interval.at_lower),
            upper=self._limit(interval.at_upper),
            unmoved=tuple(self.names.name(self.loop.A, value) for value in unmoved),
            unknowns=interval.unknowns,
            counted=interval.counted,
        )

    def end(self, sign: int, within: float = np.inf) -> tuple[float, bool]:
        """Upper (1) or lower (-1) end of `interval` [-] alone, and whether it is proven.

        Without a limit infinite above and -1 below. Where the equilibrium is followed an end that
        is no nearer to 0 than `within` is none.

        Raises
        ------
        NoMarginError
            As `interval`.
        """
        self._require_stable()
        none = np.inf if sign > 0 else -1.0
        if self.family and self.moves:
            end = self.family.end(sign, within)
            return (end.alpha if end else none), False
        return max(self._first_unstable(sign), -1.0), True

    @cached_property
    def _first_unstable(self) -> Callable[[float], float]:
        """Error nearest to 0 at which the loop is unstable, as a function of its sign."""
        return search_ends(self.loop)

    def _require_stable(self) -> None:
        """Refuse a loop whose actuators cannot hold the arm at this pose, or that is unstable."""
        if self.family is not None and any(self.closed.truth.arm.gravity):
            torque = holding_torque(self.closed, self.family.start.rest)
            if exceeding(torque, self.closed.holding_limit).size:
                raise NoMarginError(self._subject, too_weak(self.closed, torque, "at this pose"))
        growing = self._growing
        if growing is None:
            return
        raise NoMarginError(
            self._subject,
            "expected a loop that is stable without an error of the stiffness, got one in which "
            f"{growing}",
            growing,
        )

    @property
    def _growing(self) -> Growing | None:
        """The motion that grows fastest without error; None where all decay."""
        if self.family and self.moves:
            start = self.family.start
            if not start.grows:
                return None
            worst = start.worst
            return Growing(
                mode=start.name(self.family.names, worst),
                rate=None if start.period else worst.real,
                frequency=abs(worst.imag),
            )
        values = self.loop.balanced.nominal_poles
        grows = values.real > axis_tolerance(values)
        if not grows.any():
            return None
        worst = complex(values[grows][values[grows].real.argmax()])
        return Growing(
            mode=self.names.name(self.loop.A, worst),
            rate=None if self.loop.sample_time else worst.real,
            frequency=self.loop.frequency(worst) if worst.imag else 0.0,
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
        value, delta = crossing.eigenvalue, crossing.delta
        if np.isinf(value):  # a multiplier of -1; the matrix is singular there, not beside it
            delta *= 1 - _BESIDE
            values = self.loop.poles(np.array([delta]))
            value = complex(values[np.abs(values).argmax()])
        mode = self.names.name(self.loop.matrix(np.array([delta])), value)
        return StabilityLimit(alpha=crossing.delta, frequency=crossing.frequency, mode=mode)

    @property
    def rates(self) -> tuple[ModeRate, ...]:
        """Differentiate all oscillatory eigenvalues by alpha, the fastest growing mode first."""
        if self.family and self.moves:
            return self.family.rates()
        values, rates = eigenvalue_sensitivities(self.loop)
        if self.loop.sample_time:
            lasting = np.abs(1 - values**2) > _VANISHED  # a multiplier of 0 is at -1
            values, rates = values[lasting], rates[lasting]
            rates = 2 * rates / (self.loop.sample_time * (1 - values**2))
        own = self.loop.in_time(values)
        return mode_rates(own, rates, lambda k: self.names.name(self.loop.A, complex(values[k])))

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


def final_loop(closed: ClosedLoop, linear: LinearLoop | None = None) -> PoseLoop:
    """Linearise a loop at its final pose, under the second loop if there is one: see `loop_at`."""
    controller = closed.controller
    weight = controller.final_second_loop_weight
    return loop_at(closed, controller.reference.final, weight, linear)


def loop_at(
    closed: ClosedLoop, joints: Array, second_loop_weight: float, linear: LinearLoop | None = None
) -> PoseLoop:
    """Linearise a loop at joint variables (m,) with its error alpha pulled out.

    The errors of the controller's stiffness must be free: see `design_controller`. `linear` is the
    loop there without errors, if it is known.
    """
    require_known_use(closed)
    linear = linear or linearise_loop(closed, joints, second_loop_weight)
    together = all_together(closed.controller.plant)
    parts, family = np.ones(len(closed.controller.plant.stiffness_parts)), None
    if len(parts):
        family = stiffness_family(closed, joints, second_loop_weight, parts, linear)
    return PoseLoop(
        closed=closed,
        joints=joints,
        second_loop_weight=second_loop_weight,
        pulled=partial(pull_out, closed, joints, second_loop_weight, together, linear),
        family=family,
    )


def follow(locus: Locus) -> ComplexArray:
    """Eigenvalues (k, N) of a locus, one column per branch, in the order they have at alpha = 0.

    Eigenvalues are matched to linear predictions of the branches by the least sum of relative
    distances. Branches that meet between two errors may be exchanged there: only for figures.
    """
    middle = int(np.abs(locus.alpha).argmin())
    poles, gone = _equally_many(locus.poles)
    above = _followed(locus.alpha[middle:], poles[middle:])
    below = _followed(locus.alpha[middle::-1], poles[middle::-1])
    branches = np.array([*below[:0:-1], *above])
    branches[branches.real <= gone / 2] = -np.inf
    return branches


def _equally_many(poles: Sequence[ComplexArray]) -> tuple[list[ComplexArray], float]:
    """Eigenvalues (N,) at every error, and the rate [1/s] of what is gone after a sample.

    Such states of sampled loops have no rate, or are left out, at some errors and not at others.
    """
    N = max(map(len, poles))
    gone = -1e3 * max(
        (np.abs(own[np.isfinite(own)]).max(initial=1.0) for own in poles), default=1.0
    )
    full = [np.array([*own, *[gone] * (N - len(own))], dtype=complex) for own in poles]
    return [np.where(np.isfinite(own), own, gone) for own in full], float(gone)


def _followed(alpha: Array, poles: list[ComplexArray]) -> list[ComplexArray]:
    """Eigenvalues (N,) at each error, in the order of the first ones."""
    branches = poles[:1]
    for k in range(1, len(poles)):
        expected = branches[-1]
        if k > 1:
            step = (alpha[k] - alpha[k - 1]) / (alpha[k - 1] - alpha[k - 2])
            ahead = step * (branches[-1] - branches[-2])
            expected = expected + ahead * np.minimum(
                1, np.abs(expected) / (4 * np.abs(ahead) + 1e-300)
            )
        gap = np.abs(expected[:, None] - poles[k]) / (np.abs(expected)[:, None] + 1e-12)
        branches.append(poles[k][scipy.optimize.linear_sum_assignment(gap)[1]])
    return branches
