"""Statics of one flexible link with joint PD under gravity, by hand: no code of the package.

The line has cubic elements, y = [theta; deflections and slopes of the nodes]. Potential energy is
that of bending, of the line's and the payload's height with foreshortening u = -1/2 int w'^2 dx,
and what the law adds: tau = -Gp (theta - theta_d) + g (rho l^2/2 + m l) cos theta_d.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

GRAVITY = 9.81
_X, _W = np.polynomial.legendre.leggauss(12)
_X, _W = (_X + 1) / 2, _W / 2


@dataclass(frozen=True, kw_only=True)
class OneLink:
    """Line l [m], rho [kg/m], EI [N m^2]; payload m [kg] as the law knows it; Gp, theta_d."""

    length: float
    rho: float
    EI: float
    payload: float
    Gp: float
    desired: float
    elements: int = 2

    @property
    def h(self):
        """Length of an element [m]."""
        return self.length / self.elements

    def cubics(self, s, derivative):
        """Shapes of an element over s in [0, 1], or their derivatives by x, (4,)."""
        h = self.h
        own = {
            0: [1 - 3 * s**2 + 2 * s**3, h * (s - 2 * s**2 + s**3), 3 * s**2 - 2 * s**3],
            1: [-6 * s + 6 * s**2, h * (1 - 4 * s + 3 * s**2), 6 * s - 6 * s**2],
            2: [-6 + 12 * s, h * (-4 + 6 * s), 6 - 12 * s],
        }
        last = {0: h * (s**3 - s**2), 1: h * (3 * s**2 - 2 * s), 2: h * (-2 + 6 * s)}
        return np.array([*own[derivative], last[derivative]]) / h**derivative

    def shortening(self, x):
        """G (N, N) of u(x) = -1/2 d'G d."""
        G = np.zeros((2 * self.elements + 2,) * 2)
        for e in range(self.elements):
            begin, end = e * self.h, min((e + 1) * self.h, x)
            for s, w in zip(_X, _W, strict=True):
                if end > begin:
                    slope = self.cubics((begin + (end - begin) * s) / self.h - e, 1)
                    G[2 * e :, 2 * e :][:4, :4] += (end - begin) * w * np.outer(slope, slope)
        return G[2:, 2:]

    @cached_property
    def integrals(self):
        """Stiffness K, int rho w dx, int rho u dx, u(l), and the row of w(l)."""
        N = 2 * self.elements + 2
        K, weight, sunk = np.zeros((N, N)), np.zeros(N), np.zeros((N - 2, N - 2))
        for e in range(self.elements):
            for s, w in zip(_X, _W, strict=True):
                bend, dm = self.cubics(s, 2), self.rho * self.h * w
                K[2 * e :, 2 * e :][:4, :4] += self.EI * self.h * w * np.outer(bend, bend)
                weight[2 * e : 2 * e + 4] += dm * self.cubics(s, 0)
                sunk += dm * self.shortening((e + s) * self.h)
        return K[2:, 2:], weight[2:], sunk, self.shortening(self.length), np.eye(N - 2)[-2]

    def balance(self, y, error):
        """Forces left over, their derivative by y, and by the error of the payload."""
        theta, d, (K, weight, sunk, G, end) = y[0], y[1:], self.integrals
        m, c, s = self.payload * (1 + error), np.cos(theta), np.sin(theta)
        along = self.rho * self.length**2 / 2 + m * self.length - d @ (sunk + m * G) @ d / 2
        by_d, across = -(sunk + m * G) @ d, weight + m * end
        known = (
            GRAVITY
            * np.cos(self.desired)
            * (self.rho * self.length**2 / 2 + self.payload * self.length)
        )
        turn = GRAVITY * (along * c - across @ d * s) + self.Gp * (theta - self.desired) - known
        bend = K @ d + GRAVITY * (by_d * s + across * c)
        J = np.zeros((len(y), len(y)))
        J[0, 0] = self.Gp - GRAVITY * (along * s + across @ d * c)
        J[0, 1:] = J[1:, 0] = GRAVITY * (by_d * c - across * s)
        J[1:, 1:] = K - GRAVITY * s * (sunk + m * G)
        load = [(self.length - d @ G @ d / 2) * c - end @ d * s, *(-(G @ d) * s + end * c)]
        return np.append(turn, bend), J, GRAVITY * self.payload * np.array(load)

    def rest(self, error=0.0, theta=None):
        """Equilibrium y (N,) next to `theta`, by Newton's method."""
        y = np.zeros(2 * self.elements + 1)
        y[0] = self.desired if theta is None else theta
        for _ in range(50):
            force, J, _ = self.balance(y, error)
            step = np.linalg.solve(J, -force)
            y = y + step
            if np.abs(step).max() < 1e-13:
                return y
        raise ArithmeticError(f"no equilibrium with a payload error of {error:g}")

    def fold(self, direction, most=20.0, step=0.01):
        """Error of the payload at which the path of equilibria turns back, y there; or None.

        By continuation along the path's own length, down to no payload or up to `most`.
        """
        point, ahead = np.append(self.rest(), 0.0), np.append(np.zeros(2 * self.elements + 1), 1.0)
        ahead *= direction
        while -1 < point[-1] < most:
            tangent = self._tangent(point, ahead)
            if tangent[-1] * direction < 0:
                return self._turning_point(point)
            point, ahead = self._corrected(point + step * tangent, tangent), tangent
        return None

    def _tangent(self, point, ahead):
        _, J, load = self.balance(point[:-1], point[-1])
        A = np.vstack([np.column_stack([J, load]), ahead])
        tangent = np.linalg.solve(A, np.eye(len(point))[-1])
        return tangent / np.linalg.norm(tangent)

    def _corrected(self, guess, tangent):
        point = guess
        for _ in range(30):
            force, J, load = self.balance(point[:-1], point[-1])
            A = np.vstack([np.column_stack([J, load]), tangent])
            point = point - np.linalg.solve(A, np.append(force, tangent @ (point - guess)))
        return point

    def _turning_point(self, near):
        """Solve balance = 0, J x = 0, x'x_0 = 1 for y, x and the error."""
        values, vectors = np.linalg.eigh(self.balance(near[:-1], near[-1])[1])
        first, n = vectors[:, np.abs(values).argmin()], len(near) - 1

        def left(u):
            force, J, _ = self.balance(u[:n], u[-1])
            return np.concatenate([force, J @ u[n:-1], [first @ u[n:-1] - 1]])

        u = np.concatenate([near[:-1], first, near[-1:]])
        for _ in range(20):
            slopes = [(left(u + e) - left(u - e)) / 2e-6 for e in 1e-6 * np.eye(len(u))]
            u = u - np.linalg.solve(np.array(slopes).T, left(u))
        return float(u[-1]), u[:n]
