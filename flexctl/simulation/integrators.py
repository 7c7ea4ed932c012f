"""The integrators of a run, by name, with their options; their tolerances, input and output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.loop import ClosedLoop, Event

Start = tuple[Array, Array, Array, Array]  # q0, v0, tau0, z0
BALANCE = 1e-3  # share of the largest energy; a run with a larger imbalance is not trusted


@dataclass(frozen=True, kw_only=True)
class Integrator:
    """A method of integration.

    `implicit`: whether rates that decay much faster than the motion, such as those of smoothed
    friction, leave its step alone. `observes`: whether it integrates an observer's or an external
    law's states too. The midpoint rule solves for the arm's rates and treats the law's states by
    fixed-point iteration, so these must not be fast. Own states, such as those of filters, are slow
    enough for the steps of an accurate run: else these become shorter.
    """

    words: str
    number: int | None = None  # of the method in driver.c; None if SUNDIALS runs it
    fixed: bool = False  # takes a step from the user and has no error control
    functions: tuple[str, ...] = ()  # that it needs in addition to those of every run
    worst_imbalance: float = BALANCE  # admissible, relative to the largest energy
    observes: bool = True
    implicit: bool = False


AUTO = "auto"
_NEWTON = ("terms", "law_jacobian")
INTEGRATORS: Mapping[str, Integrator] = {
    "esdirk": Integrator(
        words="ARK4(3)6L[2]SA (ESDIRK) with error control",
        number=0,
        functions=("balance", *_NEWTON),
        implicit=True,
    ),
    "explicit": Integrator(
        words="Dormand-Prince 8(5,3) with error control",
        number=1,
        functions=("forward_dynamics",),
    ),
    "midpoint": Integrator(
        words="implicit midpoint rule (symplectic), fixed step",
        number=2,
        fixed=True,
        functions=("forward_dynamics", "momentum", *_NEWTON),
        # its energy swings within O(h^2) of the true one and does not drift: at the large steps of
        # long runs by several per cent, while momentum is exact
        worst_imbalance=0.1,
        observes=False,
        implicit=True,
    ),
    "rk4": Integrator(
        words="classical Runge-Kutta method of order 4, fixed step",
        number=3,
        fixed=True,
        functions=("forward_dynamics",),
    ),
    "adams": Integrator(words="Adams methods of variable order (SUNDIALS) with error control"),
    "bdf": Integrator(
        words="BDF methods of variable order (SUNDIALS) with error control", implicit=True
    ),
}


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """Error per step: relative [-], and absolute of positions [m, rad] and rates [m/s, rad/s]."""

    relative: float = 1e-10
    position: float = 1e-12
    rate: float = 1e-9
    first_step: float = 1e-5
    max_steps: int = 500_000

    def __post_init__(self) -> None:
        for name in ("relative", "position", "rate", "first_step"):
            checks.positive(name, getattr(self, name))
        checks.whole("max_steps", self.max_steps, least=1)

    @staticmethod
    def of(relative: float) -> Tolerance:
        """Absolute tolerances in proportion to the relative one."""
        return Tolerance(relative=relative, position=1e-2 * relative, rate=10 * relative)

    def times(self, factor: float) -> Tolerance:
        """Errors per step multiplied by a factor."""
        parts = {name: factor * getattr(self, name) for name in ("relative", "position", "rate")}
        return replace(self, **parts)


@dataclass(frozen=True, kw_only=True)
class InitialValueProblem:
    """A run to be integrated: a closed loop between its events, sampled at `times` (N,) [s].

    `start` are coordinates, rates (n,), torques (m,) and states of the law (n_z,); `noise` that of
    its readings at every sample of the law, (., w).
    """

    loop: ClosedLoop
    events: Sequence[Event]
    times: Array
    start: Start
    tolerance: Tolerance
    noise: Array


@dataclass(frozen=True, kw_only=True)
class Run:
    """Signals of a finished run at N times: q, v, a (n, N), tau (m, N), energies [J] (N,).

    `stored` is the energy in bristles of friction. `z` are the states of the law (n_z, N);
    `saturated` is the time [s] that each joint (m,) spent at its torque limit.
    """

    q: Array
    v: Array
    a: Array
    tau: Array
    z: Array
    supplied: Array
    dissipated: Array
    stored: Array
    saturated: Array
    steps: int
    rejected: int
    evaluations: int
    integrator: str


@dataclass(frozen=True, kw_only=True)
class RunFailure:
    """A run that could not be finished: its time [s] and the reason.

    `numerical`: the integrator ended it, not the model, so that another one may succeed;
    `exhausted`: only the limit of steps was reached. `damped`: the run reached its end, but its
    steps hide that a mode grows. `remedy` says what to try if the integrator, not the loop, is the
    cause.
    """

    time: float
    why: str
    numerical: bool = False
    exhausted: bool = False
    damped: bool = False
    remedy: str = ""


def out_of_steps(max_steps: int) -> str:
    """Text for a run that reached its limit of steps, which is no statement about the loop."""
    return f"the limit of {max_steps} steps was reached"


def check_integration(
    name: str, step: float | None, *, tolerance: bool, prefix: str = ""
) -> tuple[str, float | None]:
    """Return an integrator's name, ``auto`` or one of `INTEGRATORS`, and its step [s], checked.

    An integrator with a fixed step needs one, and cannot control a tolerance; others take no step.
    Raises InputError, in which `prefix`, such as ``--``, is that of the option.
    """
    names = (AUTO, *INTEGRATORS)
    if name not in names:
        raise InputError(f"{prefix}integrator: expected one of {', '.join(names)}, got {name!r}")
    step = None if step is None else checks.positive(f"{prefix}step", step)
    fixed = name != AUTO and INTEGRATORS[name].fixed
    if step is not None and not fixed:
        takers = " or ".join(key for key, method in INTEGRATORS.items() if method.fixed)
        raise InputError(
            f"{prefix}step: expected none, as {name} finds its own steps (a fixed one goes with "
            f"{prefix}integrator {takers}), got {step:g}"
        )
    if fixed and step is None:
        raise InputError(f"{prefix}step: expected the step [s] of {name}, got none")
    if fixed and tolerance:
        raise InputError(
            f"{prefix}tolerance: expected none, as {name} has a fixed step and no error control"
        )
    return name, step
