"""Input and output of an integrator, compiled or not."""

from __future__ import annotations

from dataclasses import dataclass

from flexctl.checks import Array


def out_of_steps(max_steps: int) -> str:
    """Text for a run that reached its limit of steps, which is no statement about the loop."""
    return f"the limit of {max_steps} steps was reached"


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """Error per step: relative [-], and absolute of positions [m, rad] and rates [m/s, rad/s]."""

    relative: float = 1e-10
    position: float = 1e-12
    rate: float = 1e-9
    first_step: float = 1e-5
    max_steps: int = 500_000

    @staticmethod
    def of(relative: float) -> Tolerance:
        """Absolute tolerances in proportion to the relative one."""
        return Tolerance(relative=relative, position=1e-2 * relative, rate=10 * relative)


@dataclass(frozen=True, kw_only=True)
class Run:
    """Signals of a finished run at N times: q, v, a (n, N), tau (m, N), energies [J] (N,).

    `z` are the states of the law (n_z, N).
    `saturated` is the time [s] that each joint (m,) spent at its torque limit.
    """

    q: Array
    v: Array
    a: Array
    tau: Array
    z: Array
    supplied: Array
    dissipated: Array
    saturated: Array
    steps: int
    rejected: int
    evaluations: int
    integrator: str


@dataclass(frozen=True, kw_only=True)
class RunFailure:
    """A run that could not be finished: its time [s] and the reason.

    `numerical`: the integrator ended it, not the model, so that another one may succeed;
    `exhausted`: only the limit of steps was reached. `remedy` says what to try if the integrator,
    not the loop, is the cause.
    """

    time: float
    why: str
    numerical: bool = False
    exhausted: bool = False
    remedy: str = ""
