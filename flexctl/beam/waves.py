"""Waves of a uniform line that is clamped at its root, and the boundary conditions at its tip."""

import math

import numpy as np

from flexctl.beam.load_path import LoadPath
from flexctl.checks import Array

_SHORT = 1.0  # below this wave number power series are used: the exponentials would cancel


def clamped_waves(beta: Array, xi: Array, derivative: int) -> Array:
    """Return the derivative of the two solutions of psi'''' = beta^4 psi that are clamped at 0.

    For beta >= 1 they are a standing wave on the whole line and a wave that decays from the tip,

        a = cos(beta xi) - sin(beta xi) - e^(-beta xi),
        b = e^(-beta (1 - xi)) - 2 e^(-beta) sin(beta xi) - e^(-beta (1 + xi)),

    both of size 1 for any beta; in (9) of [TG95] the growing part is the remainder of cosh + nu
    sinh.  For beta < 1 they are (cosh - cos) / 2 and (sinh - sin) / 2 of beta xi.

    Of wave numbers (n,) [-] above 0 at points xi = x / l (k,), a derivative by xi of order 0 .. 3:
    the waves (2, n, k) [-].
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


def all_waves(beta: Array, xi: Array, derivative: int) -> Array:
    """Return `clamped_waves` for wave numbers (k, n), any order of derivative, (2, k, n, g)."""
    waves = clamped_waves(beta.ravel(), xi, derivative % 4)
    waves = waves * beta.ravel()[:, None] ** (derivative - derivative % 4)
    return waves.reshape(2, *beta.shape, xi.size)


def null_direction(beta: Array, load: LoadPath) -> Array:
    """Return unit amplitudes (k, n, 2) of the two waves that meet both conditions at a root beta.

    At a root both conditions are linearly dependent, so (10) of [TG95] uses the second alone, which
    is 0 / 0 if it holds for every wave. Here each row is weighted by the ratio of its value to the
    size of its terms, and the singular vector of both together is taken.
    """
    return np.linalg.svd(scaled_rows(beta, load)[0])[2][..., -1, :]


def scaled_rows(beta: Array, load: LoadPath) -> tuple[Array, Array]:
    """Return both conditions for the two waves (k, n, 2, 2), each over the size of its terms.

    The sizes (k, n, 2) come second.
    """
    one = np.ones(1)
    tips = (all_waves(beta, one, d)[..., 0] for d in range(4))
    w, slope, moment, shear = (np.moveaxis(x, 0, -1) for x in tips)
    M, J, D = (x[..., None] for x in (load.mass, load.inertia, load.offset))
    pull = (beta**4)[..., None]
    terms = (
        (moment, -pull * J * slope, -pull * D * w),
        (shear, pull * M * w, pull * D * slope),
    )
    sizes = [np.sum([np.abs(x).max(-1) for x in row], axis=0) for row in terms]
    rows = [np.sum(row, axis=0) / size[..., None] for row, size in zip(terms, sizes, strict=True)]
    return np.stack(rows, axis=-2), np.stack(sizes, axis=-1)
