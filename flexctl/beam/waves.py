"""The two waves on a clamped line, written so that nothing overflows and nothing cancels."""

import math

import numpy as np

from flexctl.checks import Array

_SHORT = 1.0  # below this wave number power series are used: the exponentials would cancel


def clamped_waves(beta: Array, xi: Array, derivative: int) -> Array:
    """Return the derivative of the two solutions of psi'''' = beta^4 psi that are clamped at 0.

    For beta >= 1 they are a wave that stands on the whole line and one that dies away from
    the tip,

        a = cos(beta xi) - sin(beta xi) - e^(-beta xi),
        b = e^(-beta (1 - xi)) - 2 e^(-beta) sin(beta xi) - e^(-beta (1 + xi)),

    both of size 1 for any beta; in (9) of [TG95] the growing part is what is left of
    cosh + nu sinh.  For beta < 1 they are (cosh - cos) / 2 and (sinh - sin) / 2 of beta xi.

    Parameters
    ----------
    beta
        Wave numbers (n,) [-], above 0.
    xi
        Points x / l (k,) [-] in [0, 1].
    derivative
        Order of the derivative with respect to xi, 0 .. 3.

    Returns
    -------
    Array
        The waves (2, n, k) [-].
    """
    waves = np.empty((2, beta.size, xi.size))
    short = beta < _SHORT
    waves[:, short] = _series(beta[short, None], xi, derivative)
    waves[:, ~short] = _exponentials(beta[~short, None], xi, derivative)
    return waves


def _exponentials(beta: Array, xi: Array, derivative: int) -> Array:
    x = beta * xi
    sine, cosine = np.sin(x), np.cos(x)
    s = (sine, cosine, -sine, -cosine)[derivative]
    c = (cosine, -sine, -cosine, sine)[derivative]
    decay = (-1.0) ** derivative * np.exp(-x)
    standing = c - s - decay
    at_tip = np.exp(-beta * (1 - xi)) - np.exp(-beta) * (2 * s + decay)
    return beta**derivative * np.array([standing, at_tip])


def _series(beta: Array, xi: Array, derivative: int) -> Array:
    waves = [_krylov(beta * xi, (part - derivative) % 4) for part in (2, 3)]
    return beta**derivative * np.array(waves)


def _krylov(x: Array, part: int) -> Array:
    """Return sum over k of x^(4 k + part) / (4 k + part)!, every term positive; x (n, k) <= 1."""
    return sum((x ** (p := 4 * k + part) / math.factorial(p) for k in range(6)), np.zeros_like(x))
