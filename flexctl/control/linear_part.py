"""Linear parts of a law, such as filters: continuous, or discretised for a sampled law.

A part x' = A x + B u, y = C x + D u with a regular A rests at x = x_0 u, x_0 = -A^-1 B. In terms of
its deviation from there it is

    x' = N (x - x_0 u),   y = g u + R (x - x_0 u),   g = D - C A^-1 B,

with N = A and R = C. Sampled with period T it is x+ = x + T N (x - x_0 u) with other N and R, so
that a law has the same form, and the gain g at rest, however it is timed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import tan

import casadi as ca
import numpy as np
import scipy.linalg

from flexctl import checks
from flexctl.checks import Array
from flexctl.model import Loop


@dataclass(frozen=True, kw_only=True)
class LinearPart:
    """x' = A x + B u, y = C x + D u with one input and one output, A (k, k) being stable."""

    A: Array  # (k, k) [1/s]
    B: Array  # (k,)
    C: Array  # (k,)
    D: float = 0.0

    def __post_init__(self) -> None:
        k = len(self.A)
        checks.shape("A", self.A, (k, k))
        checks.shape("B", self.B, (k,))
        checks.shape("C", self.C, (k,))

    @property
    def rest(self) -> Array:
        """State x_0 (k,) at rest for the input 1."""
        return -np.linalg.solve(self.A, self.B)

    @property
    def gain(self) -> float:
        """Gain g at rest."""
        return float(self.D + self.C @ self.rest)

    def faster(self, factor: float) -> LinearPart:
        """Return the part with all frequencies multiplied: H(s/factor)."""
        return LinearPart(A=factor * self.A, B=factor * self.B, C=self.C, D=self.D)


def in_series(first: LinearPart, second: LinearPart) -> LinearPart:
    """Make one part of two, the output of the first being the input of the second."""
    corner = np.zeros((len(first.A), len(second.A)))
    return LinearPart(
        A=np.block([[first.A, corner], [np.outer(second.B, first.C), second.A]]),
        B=np.concatenate([first.B, second.B * first.D]),
        C=np.concatenate([second.D * first.C, second.C]),
        D=first.D * second.D,
    )


def timed(part: LinearPart, loop: Loop) -> tuple[Array, Array]:
    """N (k, k) [1/s] and R (k,) of a part in a law that is continuous or sampled, see above.

    "exact": the input is held over a sample, T N = e^{AT} - I and R = C. "tustin": s = (z - 1)/(a
    (z + 1)), so that T N = 2a (I - aA)^-1 A and R = C (I - aA)^-1; a = T/2, or tan(wT/2)/w with the
    frequency w of `prewarp`, at which the sampled part then responds as the continuous one.
    """
    T, A = loop.sample_time, part.A
    if not T:
        return A, part.C
    if loop.discretisation == "exact":
        k = len(A)
        pair = np.block([[A * T, np.eye(k)], [np.zeros((k, 2 * k))]])
        return A @ scipy.linalg.expm(pair)[:k, k:], part.C  # the corner is (e^{AT} - I)/(AT)
    a = tustin_step(loop)
    inverse = np.linalg.inv(np.eye(len(A)) - a * A)
    return 2 * a / T * inverse @ A, part.C @ inverse


def tustin_step(loop: Loop) -> float:
    """Return a [s] of Tustin's rule, s = (z - 1)/(a (z + 1)), as above."""
    T, w = loop.sample_time, loop.prewarp
    return tan(w * T / 2) / w if w else T / 2


def tustin_words(loop: Loop) -> str:
    """Say at which frequency Tustin's rule is exact."""
    return f"exact at {loop.prewarp:g} rad/s" if loop.prewarp else "without prewarping"


def part_response(
    x: ca.SX, u: ca.SX, N: ca.SX, R: ca.SX, rest: Array, gain: ca.SX | float
) -> tuple[ca.SX, ca.SX]:
    """Output y = g u + R (x - x_0 u) and rate N (x - x_0 u), (k, 1), of a part in state x (k, 1).

    x_0 (k,) is a number: it depends on no frequency.
    """
    away = x - ca.SX(ca.sparsify(ca.DM(rest))) * u
    return gain * u + ca.dot(R, away), N @ away
