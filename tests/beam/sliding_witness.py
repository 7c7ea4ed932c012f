"""Clamped-mass modes at 50 digits, from the printed equations and nothing of flexctl."""

from mpmath import cos, cosh, diff, findroot, matrix, mp, mpf, quad, sin, sinh, sqrt

DIGITS = 50


def equation(beta, M, J, D):
    """Left side of (38) of [TG95] as printed."""
    ch, sh, c, s = cosh(beta), sinh(beta), cos(beta), sin(beta)
    return (
        (1 + ch * c)
        - M * beta * (ch * s - sh * c)
        - J * beta**3 * (ch * s + sh * c)
        + (M * J - D**2) * beta**4 * (1 - ch * c)
        - 2 * D * beta**2 * sh * s
    )


def load_at(line, s):
    """M, J and D at the length exp(s), in mpmath."""
    unit, length = mpf(line.mass_per_length), mp.exp(s)
    return (
        mpf(line.mass) / (unit * length),
        mpf(line.inertia) / (unit * length**3),
        mpf(line.first_moment) / (unit * length**2),
    )


def root(line, s, near):
    """Root beta at the length exp(s) next to a number."""
    load = load_at(line, s)
    return findroot(lambda b: equation(b, *load), mpf(near))


def mode(line, s, near):
    """psi and its derivatives by xi as a function of (xi, derivative), m(psi, psi) = 1.

    The condition on the moment gives nu in cosh - cos + nu (sinh - sin); psi(1) > 0.
    """
    b, (M, J, D) = root(line, s, near), load_at(line, s)

    def raw(xi, k):
        x = b * xi
        first = (cosh, sinh)[k % 2](x) - (cos(x), -sin(x), -cos(x), sin(x))[k % 4]
        second = (sinh, cosh)[k % 2](x) - (sin(x), cos(x), -sin(x), -cos(x))[k % 4]
        return b**k * matrix([first, second])

    rows = raw(1, 2) - b**4 * (J * raw(1, 1) + D * raw(1, 0))
    nu = -rows[0] / rows[1]

    def shape(xi, k=0):
        first, second = raw(xi, k)
        return first + nu * second

    p, s1 = shape(1), shape(1, 1)
    norm = quad(lambda xi: shape(xi) ** 2, [0, 0.5, 1]) + M * p * p + 2 * D * p * s1 + J * s1 * s1
    factor = (1 if p > 0 else -1) / sqrt(norm)
    return lambda xi, k=0: factor * shape(mpf(xi), k)


def rate(function, s, order=1):
    """Derivative by s of a function of s alone."""
    return diff(function, s, order)
