"""Numbers that follow the path of a reference, interpolated over its path parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from flexctl.beam import chebyshev_sum
from flexctl.checks import Array
from flexctl.control.reference import ReferenceMotion
from flexctl.errors import DesignError

_BEYOND = 1e-6  # of the path: as far tables go on at its ends, which have their slopes there
_BETWEEN = 5  # poses in every gap at which frozen loops are judged: its middle too


@dataclass(frozen=True, kw_only=True)
class PathTable:
    """Arrays over the path parameter p in [0, 1], from the start of a reference to its end.

    `coefficients` are those of Chebyshev's polynomials T_0 .. T_(k-1) in 2 p - 1; k = 1 for one
    that is constant. `error` is the largest one found between the poses, relative, Frobenius norms.
    """

    coefficients: Array  # (k, ...)
    error: float = 0.0

    def at(self, share: float) -> Array:
        """Return the array at a path parameter."""
        return chebyshev_sum(self.coefficients, 2 * share - 1)


@dataclass(frozen=True, kw_only=True)
class GainSchedule:
    """Gains along a path, and the slowest pole of the frozen loops that they close."""

    gains: PathTable  # G (m, n) at a path parameter
    slowest: float  # largest real part [1/s] of the poses judged
    slowest_at: float  # path parameter there


def pose_at(reference: ReferenceMotion, share: float) -> Array:
    """Joint variables (m,) [rad or m] at a path parameter."""
    return reference.start + share * (reference.final - reference.start)


def poses_of(count: int) -> Array:
    """Path parameters (count,) of a table's poses: Chebyshev extreme points, the end first."""
    return (1 + np.cos(np.pi * np.arange(count) / (count - 1))) / 2


def poses_between(count: int, each: int) -> Array:
    """Path parameters ((count - 1) `each`,) between the poses of a table, `each` in every gap."""
    steps = np.arange((count - 1) * (each + 1))
    angles = np.pi * steps[steps % (each + 1) != 0] / len(steps)
    return (1 + np.cos(angles)) / 2


def table_of(value: Callable[[float], Array], count: int, *, checked: bool = True) -> PathTable:
    """Interpolate an array known at every path parameter from its values at `count` poses.

    These are Chebyshev extreme points, including both ends, at which the table is exact. Between
    them arrays may vary strongly, as gains do where two modes veer: where `checked` the error is
    measured at the middle of each gap.
    """
    angles = np.pi * np.arange(count) / (count - 1)
    values = np.array([value(share) for share in poses_of(count).tolist()])
    basis = np.cos(np.outer(angles, np.arange(count)))  # T_k(cos a) = cos(k a)
    coefficients = np.tensordot(np.linalg.inv(basis), values, axes=1)
    table, worst = PathTable(coefficients=coefficients), 0.0
    for share in poses_between(count, 1).tolist() if checked else ():
        exact = value(share)
        error = np.linalg.norm(table.at(share) - exact)
        worst = max(worst, float(error / max(np.linalg.norm(exact), np.finfo(float).tiny)))
    return PathTable(coefficients=coefficients, error=worst)


def require_frozen_stability(
    model: Callable[[float], tuple[Array, Array]], gains: PathTable, count: int, loop: str
) -> GainSchedule:
    """Find the slowest frozen pole of x' = (A - B G) x along a path.

    `model` gives A (n, n) and B (n, m) at a path parameter, `gains` G (m, n). Poles are those at
    the `count` poses and at some between them.

    Raises
    ------
    DesignError
        When a frozen loop is not stable: the first such pose is named.
    """
    shares = np.sort(np.concatenate([poses_of(count), poses_between(count, _BETWEEN)]))
    slowest = (-np.inf, 0.0)
    for share in shares.tolist():
        A, B = model(share)
        poles = np.linalg.eigvals(A - B @ gains.at(share))
        worst = poles[poles.real.argmax()]
        if worst.real >= 0:
            raise DesignError(
                f"{loop}.schedule: expected gains with which the frozen loop is stable all along "
                f"the path, got a pole at {worst:.4g} rad/s at {share:.3g} of the way, from "
                f"{count} poses; take another number of poses, or other weights"
            )
        slowest = max(slowest, (float(worst.real), share))
    return GainSchedule(gains=gains, slowest=slowest[0], slowest_at=slowest[1])


def path_numbers(reference: ReferenceMotion) -> dict[str, Array]:
    """Start (m,) of the reference and the gradient (m,) of the path parameter from it."""
    way = reference.final - reference.start
    return {"start": reference.start, "along": way / max(float(way @ way), np.finfo(float).tiny)}


def path_parameter(q_d: ca.SX, numbers: Mapping[str, ca.SX]) -> ca.SX:
    """Path parameter p of desired joint variables (m, 1), from 0 to 1; see `path_numbers`.

    It is held 1e-6 beyond the ends only: at rest there, where laws are linearised, it varies.
    """
    share = numbers["along"].T @ (q_d - numbers["start"])
    return ca.fmin(ca.fmax(share, -_BEYOND), 1 + _BEYOND)


def table_numbers(name: str, table: PathTable) -> dict[str, Array]:
    """Return the coefficients of a table by names of their own, as numbers of a law."""
    return {f"{name}{k}": value for k, value in enumerate(table.coefficients)}


def table_value(name: str, numbers: Mapping[str, ca.SX], p: ca.SX) -> ca.SX:
    """Write down a table at the path parameter p, its coefficients being `table_numbers`."""
    count = sum(key.removeprefix(name).isdigit() for key in numbers if key.startswith(name))
    coefficients = [numbers[f"{name}{k}"] for k in range(count)]
    return chebyshev_sum(coefficients, 2 * p - 1) if count > 1 else coefficients[0]
