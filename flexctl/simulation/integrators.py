"""The integrators of a run, by name, with their options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flexctl import checks
from flexctl.errors import InputError

BALANCE = 1e-3  # share of the largest energy; a run with a larger imbalance is not trusted


@dataclass(frozen=True, kw_only=True)
class Integrator:
    """A method of integration.

    Attributes
    ----------
    words
        Description.
    number
        Number of the method in driver.c; None if SUNDIALS runs it.
    fixed
        Whether it takes a step from the user and has no error control.
    functions
        Functions that it needs in addition to those of every run; see `loop_functions`.
    worst_imbalance
        Largest admissible imbalance of the energy account, relative to the largest energy.
    observes
        Whether it integrates an observer's or an external law's states too. The implicit methods in
        C solve for the arm's accelerations and treat the law's states by fixed-point iteration, so
        these must not be fast.
    """

    words: str
    number: int | None = None
    fixed: bool = False
    functions: tuple[str, ...] = ()
    worst_imbalance: float = BALANCE
    observes: bool = True


AUTO = "auto"
_NEWTON = ("terms", "law_jacobian")
INTEGRATORS: Mapping[str, Integrator] = {
    "esdirk": Integrator(
        words="ARK4(3)6L[2]SA (ESDIRK) with error control",
        number=0,
        functions=("inverse_dynamics", *_NEWTON),
        observes=False,
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
    ),
    "rk4": Integrator(
        words="classical Runge-Kutta method of order 4, fixed step",
        number=3,
        fixed=True,
        functions=("forward_dynamics",),
    ),
    "adams": Integrator(words="Adams methods of variable order (SUNDIALS) with error control"),
    "bdf": Integrator(words="BDF methods of variable order (SUNDIALS) with error control"),
}


def check_integration(
    name: str, step: float | None, *, tolerance: bool, prefix: str = ""
) -> tuple[str, float | None]:
    """Return an integrator's name and its step [s], checked.

    Parameters
    ----------
    name
        ``auto`` or one of `INTEGRATORS`.
    step
        Step of an integrator with a fixed step, which needs one; others take none.
    tolerance
        Whether a tolerance is given, which an integrator with a fixed step cannot control.
    prefix
        Prefix of the option in messages, such as ``--``.

    Raises
    ------
    InputError
        Naming the expected and the given value.
    """
    names = (AUTO, *INTEGRATORS)
    if name not in names:
        raise InputError(f"{prefix}integrator: expected one of {', '.join(names)}, got {name!r}")
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
    return name, None if step is None else checks.positive(f"{prefix}step", step)
