"""Building blocks of control laws: signals, gains, and the result of a method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import casadi as ca
import numpy as np

from flexctl.body import present
from flexctl.checks import Array
from flexctl.control.fast_loop import FastFeedback
from flexctl.control.lqr import GivenFeedback, StateFeedback
from flexctl.errors import DesignError
from flexctl.model import FrictionCompensation, Gains
from flexctl.plant import Plant, cached_function


@dataclass(frozen=True, kw_only=True)
class ExternalLaw:
    """Properties of an external law; all its states are its own.

    Attributes
    ----------
    measures
        Names of the p positions that it measures on the true arm; its inputs q and v are these and
        their rates (p,), not coordinates of the design plant.
    timed
        Whether it depends on time explicitly, which then replaces the second loop's weight s: there
        is no equilibrium about which to linearise it.
    nonlinear
        Whether its gains depend on the measurement: it may use a model of its own.
    """

    measures: tuple[str, ...]
    timed: bool = False
    nonlinear: bool = False


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a law is written down, once for all values of its numbers.

    Attributes
    ----------
    write
        Makes the law on a plant of signals, whose `numbers` are symbols or constants.
    numbers
        Values of the law's own numbers by name: gains, matrices, poses that they hold at.
    integral
        Whether there is one integral state per joint.
    n_own
        How many states follow these, that are the law's own: of its filters, for instance.
    structure
        What else the law depends on, besides the structure of its plant, as plain values.
    """

    write: Callable[[Plant, Signals], ca.Function]
    numbers: Mapping[str, Array]
    integral: bool = False
    n_own: int = 0
    structure: tuple[object, ...] = ()

    @property
    def n_numbers(self) -> int:
        """How many numbers of its own the law has."""
        return sum(np.size(values) for values in self.numbers.values())

    def key(self, plant: Plant) -> str:
        """Everything that determines the law as a function of its numbers, as text."""
        sizes = {name: np.shape(values) for name, values in self.numbers.items()}
        how = f"{self.write.__module__}.{self.write.__qualname__}"
        states = f"{self.integral} {self.n_own}"
        return f"law {how} {states} {self.structure!r} {sizes} {plant.content}"

    def column(self, plant: Plant) -> Array:
        """Values (k,) of all numbers: those free in the plant, then the law's own by columns."""
        own = [np.ravel(values, order="F") for values in self.numbers.values()]
        return np.concatenate([plant.numbers, *own])

    def function(self, plant: Plant) -> ca.Function:
        """Return the law as a function of its numbers, its last input; see `Controller.function`.

        It is written down once for all values.
        """

        def make() -> ca.Function:
            symbols = {name: ca.SX.sym(name, *np.shape(x)) for name, x in self.numbers.items()}
            return self.write(plant, self._signals(plant, symbols))

        key = self.key(plant)
        return share_law(key, lambda: cached_function(key, make))

    def folded(self, plant: Plant) -> ca.Function:
        """Return the law with all numbers as constants in it."""

        def make() -> ca.Function:
            values = {name: constant(x) for name, x in self.numbers.items()}
            own = plant.folded
            return self.write(own, self._signals(own, values))

        key = f"folded {self.column(plant).tobytes().hex()} {self.key(plant)}"
        return cached_function(key, make)

    def _signals(self, plant: Plant, numbers: Mapping[str, ca.SX]) -> Signals:
        return law_signals(plant, integral=self.integral, n_own=self.n_own, numbers=numbers)


_N_KEPT = 64  # functions of laws kept in memory
_KEPT: dict[str, Any] = {}
_T = TypeVar("_T")


def share_law(key: str, make: Callable[[], _T]) -> _T:
    """Return what belongs to the key of a law, such as its function: cached, or what `make` makes.

    The most recently used ones are kept.
    """
    shared = _KEPT.pop(key, None) or make()
    _KEPT[key] = shared
    while len(_KEPT) > _N_KEPT:
        _KEPT.pop(next(iter(_KEPT)))
    return shared


def law_key(law: ca.Function | Recipe, plant: Plant) -> str:
    """Everything that determines a law as a function of its numbers, as text."""
    return law.key(plant) if isinstance(law, Recipe) else law.serialize()


@dataclass(frozen=True, kw_only=True)
class LawParts:
    """A law (see `Controller.law`), its number of states, evidence and assumptions.

    `law` is a function, or a recipe of one. The states are integrals of joint errors (0 or m), or
    those of an external law; then the law's own ones, which `own_states` names. These come to rest
    where the reference is held, and their rates are affine in them: a run begins with them at rest.
    `compensation` is the friction that the torques overcome, of a law that is a recipe.
    """

    law: ca.Function | Recipe
    n_state: int
    feedback: StateFeedback | GivenFeedback | None = None
    fast: FastFeedback | None = None
    assumptions: tuple[str, ...] = ()
    external: ExternalLaw | None = None
    own_states: tuple[str, ...] = ()
    compensation: FrictionCompensation | None = None


def check_law(
    plant: Plant, law: ca.Function, *, n_state: int, measured: int, numbers: int = 0
) -> None:
    """Refuse a law of other sizes than those of (s, z, q_d, v_d, a_d, q, v) -> (tau, z_rate).

    z (n_z,) has `n_state` entries; q and v (p,) are `measured` positions and their rates. The free
    numbers of the plant and those of the law follow.
    """
    m, own = plant.m, len(plant.parameters) + numbers
    last = [own] if own and law.n_in() != 7 else []  # one that uses none need not take them
    expected = [[1, n_state, m, m, m, measured, measured, *last], [m, n_state]]
    sizes = [[law.numel_in(k) for k in range(law.n_in())]]
    sizes += [[_length(law.size_out(k)) for k in range(law.n_out())]]
    for name, want, got in zip(("inputs", "outputs"), expected, sizes, strict=True):
        if got != want:
            raise DesignError(f"law: expected {name} of sizes {want}, got {got}")


def _length(size: tuple[int, int]) -> int | tuple[int, int]:
    """Length of a column, or the size of what is none."""
    rows, columns = size
    return rows * columns if columns == 1 or not rows * columns else size


@dataclass(frozen=True, kw_only=True)
class Signals:
    """Symbols of a law: weight s, state z, desired q_d, v_d, a_d (m, 1), measured q, v (n, 1).

    z has the integrals and then the `n_own` states that are the law's own.
    `driven` has the desired position, rate and acceleration (m, 1) of the driven coordinates: the
    joints, or the rotors that drive them. `error` and `error_rate` are those of the same
    coordinates, as measured: collocated with the torques. `free` are the free numbers of the plant
    (k, 1). `numbers` are the law's own, by name: symbols, which join these as one input, or
    constants.
    """

    s: ca.SX
    z: ca.SX
    q_d: ca.SX
    v_d: ca.SX
    a_d: ca.SX
    q: ca.SX
    v: ca.SX
    driven: tuple[ca.SX, ca.SX, ca.SX]
    drives: tuple[int, ...]
    free: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    numbers: Mapping[str, ca.SX] = field(default_factory=dict)
    n_own: int = 0

    @property
    def integral(self) -> ca.SX:
        """Integral states (m, 1) or (0, 1)."""
        return self.z[: self.z.numel() - self.n_own, 0]

    @property
    def own(self) -> ca.SX:
        """Own states (n_own, 1) of the law."""
        return self.z[self.z.numel() - self.n_own :, 0]

    @property
    def error(self) -> ca.SX:
        """Position error (m, 1) [rad or m] of the driven coordinates."""
        return self.q[list(self.drives)] - self.driven[0]

    @property
    def error_rate(self) -> ca.SX:
        """Rate of `error` (m, 1)."""
        return self.v[list(self.drives)] - self.driven[1]

    @property
    def inputs(self) -> list[ca.SX]:
        """Inputs of a law in their order, see `law_inputs`."""
        own = [ca.vec(x) for x in self.numbers.values() if ca.symvar(x)]
        numbers = ca.vertcat(self.free, *own)
        known = [self.s, self.z, self.q_d, self.v_d, self.a_d, self.q, self.v]
        return [*known, *([numbers] if numbers.numel() else [])]

    def law(
        self, tau: ca.SX, summed: ca.SX | None = None, moved: ca.SX | None = None
    ) -> ca.Function:
        """Build the law of torques or commands `tau` (m, 1).

        It integrates `summed` (m, 1), or `error`; `moved` (n_own, 1) are the rates of its own
        states.
        """
        integrated = self.error if summed is None else summed
        z_rate = integrated if self.integral.numel() else ca.SX(0, 1)
        return law_function(
            self.inputs, tau, ca.vertcat(z_rate, *([] if moved is None else [moved]))
        )


def law_function(inputs: Sequence[Any], tau: Any, z_rate: Any) -> ca.Function:
    """Build a law, see `Controller.law`, from its torques (m, 1) and dz/dt (n_z, 1)."""
    names, outputs = [*law_inputs(), "numbers"], [ca.densify(tau), ca.densify(z_rate)]
    results = ["tau", "z_rate"]
    return ca.Function("law", inputs, outputs, names[: len(inputs)], results, {"cse": True})


def law_inputs() -> list[str]:
    """Names of the inputs of a law; numbers, if any, come last."""
    return ["s", "z", "q_d", "v_d", "a_d", "q", "v"]


def input_symbols(law: ca.Function) -> list[ca.SX]:
    """Fresh symbols for all inputs of a law, with which it is written out in scalars."""
    return [ca.SX.sym(f"i{k}", law.numel_in(k)) for k in range(law.n_in())]


def graph_symbols(law: ca.Function) -> list[Any]:
    """Fresh symbols for all inputs of a law, with which its parts are called, not written out.

    Scalars of a law that is written in scalars alone, else matrices: see `step_function`.
    """
    kind = ca.MX if law.is_a("MXFunction") else ca.SX
    return [kind.sym(f"i{k}", law.numel_in(k)) for k in range(law.n_in())]


def law_slopes(law: ca.Function, by: Sequence[int]) -> ca.Function:
    """Derive the function of a law's inputs -> derivatives (m + n_z, .) of [tau; dz/dt] by some.

    `by` holds the indices of these inputs, from 0; their columns follow in that order.
    """
    inputs = graph_symbols(law)
    chosen = ca.vertcat(*(inputs[k] for k in by))
    kept = [x for k, x in enumerate(inputs) if k not in by]
    state = type(chosen).sym("state", chosen.numel())
    arguments, ends = [*inputs], np.cumsum([0, *(law.numel_in(k) for k in by)]).tolist()
    for k, a, b in zip(by, ends[:-1], ends[1:], strict=True):
        arguments[k] = state[a:b, 0]
    J = ca.densify(ca.jacobian(ca.vertcat(*law.call(arguments)), state))
    own = ca.Function("slopes_by_state", [*kept, state], [J], {"cse": True})
    return ca.Function("slopes", inputs, own.call([*kept, chosen]))


def law_signals(
    plant: Plant,
    *,
    integral: bool,
    n_own: int = 0,
    numbers: Mapping[str, ca.SX] | None = None,
) -> Signals:
    """Fresh symbols for a law on a plant, with one integral state per joint or none.

    `n_own` states of its own follow. `numbers` are those of the law, by name: see `Signals`.
    """
    m = plant.m
    q_d, v_d, a_d = (ca.SX.sym(name, m) for name in ("q_d", "v_d", "a_d"))
    return Signals(
        s=ca.SX.sym("s"),
        z=ca.SX.sym("z", (m if integral else 0) + n_own),
        q_d=q_d,
        v_d=v_d,
        a_d=a_d,
        q=ca.SX.sym("q", plant.n),
        v=ca.SX.sym("v", plant.n),
        driven=driven_motion(plant, q_d, v_d, a_d),
        drives=plant.drives,
        free=plant.equations.free,
        numbers=numbers or {},
        n_own=n_own,
    )


def straight_arm(plant: Plant, joints: ca.SX) -> ca.SX:
    """Coordinates (n, 1) of the undeformed arm at joint variables (m, 1): `Plant.straight`."""
    return ca.densify(_strain_free(plant) @ joints)


def rigid_torque(plant: Plant, q: ca.SX, v: ca.SX, a: ca.SX) -> ca.SX:
    """Torques (m, 1) of the rigid arm for the joint motion q, v, a (m, 1).

    S' f(S q, S v, S a) with the inverse dynamics f and the strain-free motions S: the constraint
    forces that keep links and springs straight do no work in these.
    """
    return _strain_free(plant).T @ rigid_forces(plant, q, v, a)


def in_commands(plant: Plant, torque: ca.SX) -> ca.SX:
    """Commands (m, 1) of the actuators that give torques (m, 1) at rest: themselves, or those / K.

    Torques of inverse dynamics include the dampers of back-EMF, which are part of the arm, so that
    these commands also overcome it.
    """
    return torque / plant.equations.motors.torque_per_command


def rigid_forces(plant: Plant, q: ca.SX, v: ca.SX, a: ca.SX) -> ca.SX:
    """Return the forces (n, 1) that keep the arm straight for the joint motion q, v, a (m, 1)."""
    S = _strain_free(plant)
    return plant.casadi_functions["inverse_dynamics"](S @ q, S @ v, S @ a, *plant.free_input)


def _strain_free(plant: Plant) -> ca.SX:
    """Strain-free motions S (n, m) of the joints."""
    return constant(plant.straight(np.eye(plant.m)))


def constant(A: Array) -> ca.SX:
    """Numbers (k, l) as an expression in which zeros cost nothing."""
    return ca.SX(ca.sparsify(ca.DM(A)))


def rigid_gravity_torque(plant: Plant, joints: ca.SX) -> ca.SX:
    """Torques (m, 1) that hold the undeflected arm at joint variables (m, 1)."""
    e = plant.equations
    return ca.substitute(e.c, e.q, straight_arm(plant, joints))[: plant.m]


COLLOCATED = "collocated: "  # how an assumption begins that tells where a law measures


def driven_motion(plant: Plant, q_d: ca.SX, v_d: ca.SX, a_d: ca.SX) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Motion (m, 1) of the driven coordinates when the joints move as desired.

    A rotor leads its joint by the spring's deflection under gravity, c_r / k_s.
    """
    if not plant.arm.rotors or not present(*plant.equations.arm.gravity):
        return q_d, v_d, a_d
    position = q_d + _compliance(plant) * rigid_gravity_torque(plant, q_d)
    rate = ca.jtimes(position, q_d, v_d)
    return position, rate, ca.jtimes(rate, ca.vertcat(q_d, v_d), ca.vertcat(v_d, a_d))


def spring_lead(plant: Plant, q_d: Array) -> Array:
    """Deflections (m,) [rad or m] of the springs under the weight of the arm at q_d (m,)."""
    symbols = [ca.SX.sym(name, plant.m) for name in ("q_d", "v_d", "a_d")]
    free = plant.free_input
    lead = ca.Function(
        "lead", [symbols[0], *free], [driven_motion(plant, *symbols)[0] - symbols[0]]
    )
    return np.array(lead(q_d, *([plant.numbers] if free else []))).ravel()


def _compliance(plant: Plant) -> ca.SX:
    """Compliance of the springs at the joints (m, 1) [rad/(N m) or m/N] in the model."""
    compliance, errors = ca.SX.zeros(plant.m), plant.equations.errors
    for k, j in enumerate(plant.arm.rotors):  # the springs are the first of all parts
        spring = plant.equations.arm.links[j].flexible_joint
        assert spring is not None
        compliance[j] = 1 / (spring.stiffness * (1 + errors[k] if errors.numel() else 1))
    return compliance


def per_joint(values: Sequence[float], n_joints: int) -> Array:
    """Gains (m,) from one number for all joints or one per joint."""
    return np.broadcast_to(np.asarray(values, dtype=float), (n_joints,)).copy()


def joint_gains(gains: Gains, n_joints: int) -> dict[str, Array]:
    """Gains of errors, rates and integrals, (m,) each; no Gi without integral action."""
    given = {"Gp": gains.Gp, "Gv": gains.Gv}
    if gains.Gi is not None and any(gains.Gi):
        given["Gi"] = gains.Gi
    return {name: per_joint(values, n_joints) for name, values in given.items()}
