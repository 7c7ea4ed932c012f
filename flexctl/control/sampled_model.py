"""A plant between two samples: exact discretisation of its linear model and of white noise.

The nonlinear plant is predicted over a sample by an exponential Runge-Kutta method of order 2 that
is exact for the linear model, so that its linearisation there is the exact discretisation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np
import scipy.linalg

from flexctl.checks import Array
from flexctl.errors import DesignError
from flexctl.plant import LinearPlant, Plant

# rad that the fastest mode may turn in a step: up to there no undamped mode grows whose square
# frequency differs by 30 % from that of the linear model, as at another pose
_TURN = 2.0
_MOST_STEPS = 64
CALLED = {"jac_penalty": 0.0, "cse": True}  # differentiated by its Jacobian, not in directions


def zero_order_hold_of(A: Array, B: Array, T: float) -> tuple[Array, Array]:
    """e^{AT} (n, n) and int_0^T e^{As} ds B (n, m)."""
    n, m = B.shape
    pair = np.zeros((n + m, n + m))
    pair[:n, :n], pair[:n, n:] = A * T, B * T
    whole = scipy.linalg.expm(pair)
    return whole[:n, :n], whole[:n, n:]


def sampled_noise(A: Array, Q: Array, T: float) -> Array:
    """Covariance int_0^T e^{As} Q e^{A's} ds (n, n) of white noise of intensity Q over T [s].

    By the exponential of [VanLoan78] over a time so short that nothing grows in it, which is then
    doubled: Q(2h) = Q(h) + e^{Ah} Q(h) e^{A'h}, a sum of positive semidefinite matrices.
    """
    n = len(A)
    doublings = max(0, int(np.ceil(np.log2(max(float(np.abs(A).sum(axis=1).max()) * T, 1e-300)))))
    h = T / 2**doublings
    block = np.zeros((2 * n, 2 * n))
    block[:n, :n], block[:n, n:], block[n:, n:] = -A * h, Q * h, A.T * h
    whole = scipy.linalg.expm(block)
    Phi = whole[n:, n:].T
    found = Phi @ whole[:n, n:]
    for _ in range(doublings):
        found, Phi = found + Phi @ found @ Phi.T, Phi @ Phi
    return (found + found.T) / 2


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """How a state x = [q; v] of a plant is predicted over a time in equal steps of h [s].

    With f(x, u) = [v; a(q, v, u)] and its linear model A, whose torques u are held:
        a = x + h phi_1(A h) f(x),  x+ = a + h phi_2(A h) (f(a) - f(x) - A (a - x)),
    phi_1(z) = (e^z - 1)/z, phi_2(z) = (e^z - 1 - z)/z^2. Exact where f is affine with the slope A;
    else of order 2 [HochbruckOstermann10]. An equilibrium stays where it is.

    Attributes
    ----------
    count
        Number of steps.
    A
        Slope of f by x (2n, 2n).
    first, second
        h phi_1 and h phi_2 of one step (2n, 2n) [s].
    """

    count: int
    A: Array
    first: Array
    second: Array

    @property
    def numbers(self) -> dict[str, Array]:
        """Its matrices by name: numbers of a law."""
        return {"A": self.A, "first": self.first, "second": self.second}


def make_prediction(A: Array, scaling: tuple[Array, Array], fastest: float, T: float) -> Prediction:
    """Predict over T [s] in so many steps that a mode of `fastest` [rad/s] turns a little in each.

    `scaling` is S (2n, 2n) of x = S y, with y of one size, and its inverse. The number of steps is
    a power of two, so that small changes of the plant do not change it. Raises DesignError when
    there would be too many.
    """
    count = 1
    while fastest * T > _TURN * count:
        count *= 2
    if count > _MOST_STEPS:
        raise DesignError(
            f"observer: expected a sample_time of at most {_MOST_STEPS * _TURN / fastest:.2g} s, "
            f"as its design plant has a mode at {fastest:.4g} rad/s that must be predicted over a "
            f"sample, got {T:g}; or design on fewer modes (basis)"
        )
    (n, h), (S, inverse) = (len(A), T / count), scaling
    block = np.zeros((3 * n, 3 * n))
    block[:n, :n] = inverse @ A @ S * h
    block[:n, n : 2 * n] = block[n : 2 * n, 2 * n :] = np.eye(n) * h
    whole = scipy.linalg.expm(block)
    first, second = whole[:n, n : 2 * n], whole[:n, 2 * n :] / h
    return Prediction(count=count, A=A, first=S @ first @ inverse, second=S @ second @ inverse)


def rate_function(plant: Plant) -> ca.Function:
    """Return the function (x, tau, free numbers of the plant) -> [v; a] (2n, 1), called whole.

    Written out, many calls and their derivatives have millions of operations. It is differentiated
    by x and tau alone.
    """
    n, free = plant.n, ca.vertcat(ca.SX(0, 1), *plant.free_input)
    x, tau = ca.SX.sym("x", 2 * n), ca.SX.sym("tau", plant.m)
    a = plant.casadi_functions["forward_dynamics"](x[:n], x[n:], tau, *plant.free_input)
    options = {"is_diff_in": [True, True, False], **CALLED}
    return ca.Function("rate", [x, tau, free], [ca.vertcat(x[n:], a)], options)


def step_function(plant: Plant) -> ca.Function:
    """Return the function (x, tau, free numbers, A, first, second) -> x (2n, 1) one step later.

    The last are the numbers of a `Prediction`; it is differentiated by x and tau alone.
    """
    rate = rate_function(plant)
    x, tau, free = (ca.MX.sym("i", rate.numel_in(k)) for k in range(3))
    matrices = [ca.MX.sym(name, x.numel(), x.numel()) for name in ("A", "first", "second")]
    later = step_of(lambda x: rate(x, tau, free), x, *matrices)
    options = {"is_diff_in": [True, True, *[False] * 4], **CALLED}
    return ca.Function("step", [x, tau, free, *matrices], [later], options)


def step_of(f: Callable[[ca.MX], ca.MX], x: ca.MX, A: ca.MX, first: ca.MX, second: ca.MX) -> ca.MX:
    """Return a state x (2n, 1) whose rate is f(x) one step of a `Prediction` later."""
    rate = f(x)
    ahead = x + first @ rate
    return ahead + second @ (f(ahead) - rate - A @ (ahead - x))


def fastest_mode(linear: LinearPlant) -> float:
    """Return the largest frequency [rad/s] of a linear plant."""
    w_squared = scipy.linalg.eigh(linear.K, linear.M, eigvals_only=True)
    return float(np.sqrt(np.abs(w_squared).max(initial=0.0)))
