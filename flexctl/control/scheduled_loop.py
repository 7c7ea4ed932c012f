"""A second loop whose gains follow the path: state feedback all along the motion."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import casadi as ca
import numpy as np

from flexctl.body import present
from flexctl.checks import Array
from flexctl.control.laws import (
    LawParts,
    Recipe,
    Signals,
    constant,
    in_commands,
    rigid_forces,
    rigid_torque,
    straight_arm,
)
from flexctl.control.lqr import GivenFeedback, StateFeedback
from flexctl.control.path_schedule import (
    PathTable,
    path_numbers,
    path_parameter,
    pose_at,
    poses_between,
    poses_of,
    require_frozen_stability,
    table_numbers,
    table_of,
    table_value,
)
from flexctl.control.quasi_steady import compliance, constant_stiffness, quasi_steady_deflection
from flexctl.control.reference import ReferenceMotion
from flexctl.control.second_loop import (
    design_second_loop,
    passive_rows,
    second_loop_model,
    with_integrals,
)
from flexctl.control.singular_perturbation import slow_fast_map
from flexctl.errors import DesignError
from flexctl.model import SecondLoop
from flexctl.plant import LinearPlant, Plant, find_equilibrium, linearise

_REST = 17  # fewest poses of a table of equilibria: exact to round-off over half a turn of a joint
_MOST = 513  # most poses: fifty turns of one link
_EXACT = 1e-8  # of the largest value along the path: error of such a table between its poses
_SMALL = 1e-3  # sag [rad or m] below which its error counts as if it were this


class _Path:
    """Linear plants and equilibria along a path, the same for all designs that move along it."""

    def __init__(self, plant: Plant, reference: ReferenceMotion) -> None:
        self.plant, self.reference = plant, reference
        self._linear = dict[float, LinearPlant]()
        self._rest = dict[float, tuple[Array, Array]]()

    def straight(self, share: float) -> Array:
        """Coordinates (n,) of the undeformed arm at a path parameter."""
        return self.plant.straight(pose_at(self.reference, share))

    def linear(self, share: float) -> LinearPlant:
        """Linear plant there."""
        if share not in self._linear:
            self._linear[share] = linearise(self.plant, self.straight(share))
        return self._linear[share]

    def rest(self, share: float) -> tuple[Array, Array]:
        """Coordinates (n,) and commands (m,) at rest, with the joints held there."""
        if share not in self._rest:
            self._rest[share] = find_equilibrium(self.plant, self.straight(share))
        return self._rest[share]

    def sag(self, share: float) -> Array:
        """Deflections and wind-ups (n,) at rest."""
        return self.rest(share)[0] - self.straight(share)

    def holding(self, share: float) -> Array:
        """Commands (m,) that hold the sagging arm less those that hold the undeformed one."""
        undeformed = self.plant.gravity(self.straight(share))[: self.plant.m]
        return self.rest(share)[1] - undeformed / self.plant.torque_per_command

    @cached_property
    def equilibria(self) -> dict[str, Array]:
        """Numbers of the tables of `sag` and `holding`."""
        sag = _exact_table(self.sag, _SMALL)
        holding = _exact_table(self.holding, self._load)
        return table_numbers("sag", sag) | table_numbers("holding", holding)

    @property
    def _load(self) -> float:
        """Largest command at rest, far above what round-off leaves of none."""
        plant = self.plant
        inertia, g = np.abs(plant.mass_matrix(self.straight(0.0))).max(), np.abs(plant.arm.gravity)
        round_off = 1e-6 * inertia * g.max() / np.abs(plant.torque_per_command).min()
        commands = [np.abs(self.rest(share)[1]).max() for share in poses_of(_REST).tolist()]
        return float(max(round_off, *commands))


def _exact_table(at: Callable[[float], Array], least: float) -> PathTable:
    """Interpolate what is smooth along a path, from twice as many poses until it is exact.

    Its error at the middle of each gap is relative to its largest value there, or to `least` if
    that is larger. Raises DesignError where the most poses do not suffice.
    """
    count, error = _REST, np.inf
    while count <= _MOST:
        table = table_of(at, count, checked=False)
        between = [(at(share), table.at(share)) for share in poses_between(count, 1).tolist()]
        size = max(least, *(float(np.abs(exact).max()) for exact, _ in between)) or 1.0
        error = max(float(np.abs(found - exact).max()) for exact, found in between) / size
        if error <= _EXACT:
            return table
        count = 2 * count - 1  # all poses of before, and those between them
    raise DesignError(
        "reference: expected a path along which the equilibrium under gravity varies smoothly, "
        f"got an interpolation error of {error:.1e} from {_MOST} poses; take a shorter path"
    )


_kept: deque[_Path] = deque(maxlen=8)


def _path(plant: Plant, reference: ReferenceMotion) -> _Path:
    """Return the path of a reference on a plant, which is kept for other designs."""
    ends = reference.start, reference.final
    for one in _kept:
        own = one.reference.start, one.reference.final
        if one.plant is plant and all(map(np.array_equal, own, ends)):
            return one
    _kept.appendleft(_Path(plant, reference))
    return _kept[0]


def design_schedule(
    plant: Plant,
    reference: ReferenceMotion,
    second: SecondLoop,
    *,
    torques: bool,
    Gi: Array | None = None,
) -> StateFeedback:
    """Optimal feedback at `schedule` poses along the path, interpolated between them.

    The record is that of the end, with the schedule. `Gi` (m,) are gains of integrals of e beside
    it. Raises as `design_second_loop`, and DesignError where a frozen loop is not stable.
    """
    at = _path(plant, reference).linear

    def gain(share: float) -> Array:
        return design_second_loop(at(share), plant.drives, second, torques=torques).gain

    def frozen(share: float) -> tuple[Array, Array]:
        A, B = second_loop_model(at(share), plant.drives, torques=torques)
        integrates = second.integrates or Gi is not None
        return with_integrals(A, B) if integrates else (A, B)

    table = table_of(gain, second.schedule)
    gains = table if Gi is None else replace(table, coefficients=_widened(table, Gi))
    schedule = require_frozen_stability(frozen, gains, second.schedule, "second_loop")
    end = design_second_loop(at(1.0), plant.drives, second, torques=torques)
    return replace(end, schedule=replace(schedule, gains=table))


def _widened(table: PathTable, Gi: Array) -> Array:
    """Coefficients (k, m, 2n + m) of gains with constant ones Gi (m,) of the integrals beside."""
    coefficients = np.pad(table.coefficients, ((0, 0), (0, 0), (0, len(Gi))))
    coefficients[0, :, -len(Gi) :] = np.diag(Gi)
    return coefficients


def schedule_numbers(
    plant: Plant, reference: ReferenceMotion, feedback: StateFeedback | GivenFeedback
) -> dict[str, Array]:
    """Numbers of a law that acts all along a path: gains, equilibria under gravity.

    Gains are those of the schedule of the feedback, or its only ones. "sag" (n,) is the equilibrium
    less the undeformed arm, "holding" (m,) its commands less those that hold the latter.
    """
    schedule = feedback.schedule if isinstance(feedback, StateFeedback) else None
    gains = schedule.gains if schedule else PathTable(coefficients=feedback.gain[None])
    numbers = path_numbers(reference) | table_numbers("G", gains)
    if present(*plant.equations.arm.gravity):
        numbers |= _path(plant, reference).equilibria
    if plant.n > plant.m and constant_stiffness(plant):
        numbers["compliance"] = compliance(plant, reference, "rotor")
    return numbers


@dataclass(frozen=True, kw_only=True)
class ScheduledSignals:
    """What a scheduled second loop makes of the measurement: expressions of a law."""

    feedback: ca.SX  # -G(p) [e; q_f; e'; q_f'] (m, 1), or with int e after these
    acceleration: ca.SX  # desired one (m, 1) of the driven coordinates
    error: ca.SX  # e (m, 1)
    holding: ca.SX  # commands (m, 1) that hold the arm at rest beyond those of the undeformed one


def scheduled_signals(plant: Plant, signals: Signals) -> ScheduledSignals:
    """Feedback of the deviation from the motion that the arm is to follow, bent as it is then.

    That is the equilibrium at the desired pose, and the deflection that the slow motion of the
    rigid arm causes: z = K_z^-1 (B_z tau_s - T_z' f), f being its inertial forces.
    """
    x, q_d = signals.numbers, signals.q_d
    p, q_r, own = path_parameter(q_d, x), straight_arm(plant, q_d), "sag0" in x
    q_r += table_value("sag", x, p) if own else 0
    v_r = ca.jtimes(q_r, q_d, signals.v_d)
    slopes = ca.vertcat(signals.v_d, signals.a_d)
    a_r = ca.jtimes(v_r, ca.vertcat(q_d, signals.v_d), slopes)
    q_r += _moving_deflection(plant, signals) if plant.n > plant.m else 0
    drives, f = list(signals.drives), list(passive_rows(plant.n, signals.drives))
    G = table_value("G", x, p)
    state = ca.vertcat((signals.q - q_r)[[*drives, *f]], (signals.v - v_r)[[*drives, *f]])
    integrates = G.size2() > state.numel()
    return ScheduledSignals(
        feedback=-G @ (ca.vertcat(state, signals.integral) if integrates else state),
        acceleration=a_r[drives],
        error=state[: plant.m],
        holding=table_value("holding", x, p) if own else ca.SX.zeros(plant.m),
    )


def state_feedback_law(
    plant: Plant,
    reference: ReferenceMotion,
    feedback: StateFeedback | GivenFeedback,
    assumptions: Iterable[str],
) -> LawParts:
    """Build the law tau = S' f(S q_d, S v_d, S a_d) + holding(p) - G(p) [e; q_f; e'; q_f'].

    Torques of the rigid arm along the reference, of the sag, and state feedback that acts from the
    start; see `schedule_numbers` and `scheduled_signals`. A gain (m, 2n + m) feeds back the
    integrals of e too.
    """

    def write(plant: Plant, signals: Signals) -> ca.Function:
        own = scheduled_signals(plant, signals)
        torque = rigid_torque(plant, signals.q_d, signals.v_d, signals.a_d)
        return signals.law(in_commands(plant, torque) + own.holding + own.feedback, own.error)

    numbers = schedule_numbers(plant.nominal, reference, feedback)
    n_integral = feedback.gain.shape[1] - 2 * plant.n
    return LawParts(
        law=Recipe(write=write, numbers=numbers, integral=n_integral > 0),
        n_state=n_integral,
        feedback=feedback,
        assumptions=tuple(assumptions),
    )


def _moving_deflection(plant: Plant, signals: Signals) -> ca.SX:
    """Deflection (n, 1) due to the desired motion, without that of gravity; rotors stay."""
    e, y = plant.equations, signals.q_d
    T = constant(slow_fast_map(plant, "rotor"))
    forces = rigid_forces(plant, y, signals.v_d, signals.a_d)
    forces -= ca.substitute(e.c, e.q, straight_arm(plant, y))
    tau = T[:, : plant.m].T @ forces
    load = T[:, plant.m :].T @ (constant(plant.selection) @ tau - forces)
    return T[:, plant.m :] @ quasi_steady_deflection(plant, signals, T, y, load)
