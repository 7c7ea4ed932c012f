"""A planar arm of two flexible links, derived by hand: a witness that shares no code with flexctl.

Vectors stand in the axes of link 1 (x1 along its undeflected line) or of link 2. With w_i =
psi_i . d_i the deflections, e = w_1(l_1), beta = theta_2 + w_1'(l_1) the angle of link 2 against
link 1, and omega = theta_1' + beta' its rate:

    root of link 2, in link 1's axes     V = (-e theta_1', l_1 theta_1' + e')
    a point of link 2, in its own axes   R(beta)' V + omega (-w_2, x) + (0, w_2')

So M depends on q through beta, e, the first moment sigma = int w_2 dm across link 2, and the two
quadratic forms int w_i^2 dm alone; h follows from the derivatives by these five (Christoffel).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy import cos, cosh, sin, sinh
from scipy.linalg import eigh
from scipy.optimize import brentq


def frequency_equation(b, M, J, D):
    """Zero at the wave numbers of a clamped line with M, J, D at its tip; divided by cosh b.

    [TG95] (10), [SM02] (39) with its arguments beta l.
    """
    c, s, T, one = cos(b), sin(b), np.tanh(b), 1 / cosh(b)
    bare = one + c - M * b * (s - c * T) - J * b**3 * (s + c * T)
    return bare + (M * J - D**2) * b**4 * (one - c) - 2 * D * b**2 * s * T


def wave_numbers(order, M, J, D):
    """Return the lowest roots (order,), below order pi: a load lowers those of a free tip."""
    grid = np.linspace(0.02, (order + 1) * np.pi, 5000)
    values = [frequency_equation(b, M, J, D) for b in grid]
    pairs = [k for k in range(len(grid) - 1) if values[k] * values[k + 1] < 0][:order]
    roots = [brentq(frequency_equation, *grid[k : k + 2], (M, J, D), xtol=1e-15) for k in pairs]
    return np.array(roots)


class Shapes:
    """Modes of [TG95] (9)-(11) with int psi^2 dxi = 1 and psi(1) > 0, over xi = x/l."""

    def __init__(self, order, M, J, D):
        self.b = wave_numbers(order, M, J, D)[:, None]
        b = self.b
        # from the shear at the tip: psi''' + b^4 (M psi + D psi') = 0
        above = sin(b) - sinh(b) + M * b * (cos(b) - cosh(b)) - D * b**2 * (sin(b) + sinh(b))
        below = cos(b) + cosh(b) - M * b * (sin(b) - sinh(b)) - D * b**2 * (cos(b) - cosh(b))
        self.nu = above / below
        self.scale = np.ones((order, 1))
        x, w = points()
        norm = np.sqrt(self(x, 0) ** 2 @ w)[:, None]
        self.scale = np.sign(self(1.0, 0)) / norm

    def __call__(self, xi, derivative):
        """Derivative 0, 1 or 2 of all shapes at xi (k,), as (order, k)."""
        z = self.b * np.atleast_1d(xi)
        nu, b = self.nu, self.b**derivative
        value = {
            0: cos(z) - cosh(z) + nu * (sin(z) - sinh(z)),
            1: -sin(z) - sinh(z) + nu * (cos(z) - cosh(z)),
            2: -cos(z) - cosh(z) - nu * (sin(z) + sinh(z)),
        }[derivative]
        return self.scale * b * value


def points():
    """Gauss's rule on [0, 1]: 60 points integrate products of the lowest modes to round-off."""
    x, w = np.polynomial.legendre.leggauss(60)
    return (x + 1) / 2, w / 2


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link and its joint; `rotor` is None, or (inertia, gear, stiffness, damping, carried)."""

    length: float
    rho: float
    EI: float
    hub_mass: float = 0.0
    hub_inertia: float = 0.0
    joint_inertia: float = 0.0
    damping_ratio: float = 0.0
    rotor: tuple | None = None

    @property
    def mass(self):
        """Mass of the line [kg]."""
        return self.rho * self.length

    @property
    def reflected(self):
        """J = G^2 I_r of the rotor, or the inertia of the rigid joint, [kg m^2]."""
        return self.joint_inertia + (self.rotor[1] ** 2 * self.rotor[0] if self.rotor else 0.0)


@dataclass(frozen=True, kw_only=True)
class TwoLink:
    """The arm; q = [theta_1, theta_2, rotors of flexible joints, d_1, d_2], two modes per link.

    The shapes of link 1 assume all beyond its tip, link 2 standing at `theta_2`, those of link 2
    the payload; `include` says which of the terms M, J, D, and R for the rotor of joint 2.
    """

    first: Link
    second: Link
    payload_mass: float
    payload_inertia: float
    theta_2: float = 0.0
    include: str = ""
    order: int = 2

    @cached_property
    def tip_loads(self):
        """Loads (M, J, D) [kg, kg m^2, kg m] at both tips, [SM02] (47) with (48) put right."""
        b, m_p, length = self.second, self.payload_mass, self.second.length
        J = (b.mass / 3 + m_p) * length**2 + b.hub_inertia + self.payload_inertia
        D = (b.mass / 2 + m_p) * length * cos(self.theta_2)
        R = b.reflected * ("R" in self.include)
        one = b.mass + b.hub_mass + m_p, J, D
        two = m_p, self.payload_inertia, 0.0
        keep = [term in self.include for term in "MJD"]
        first, second = (tuple(x * k for x, k in zip(z, keep, strict=True)) for z in (one, two))
        return (first[0], first[1] + R, first[2]), second

    @cached_property
    def shapes(self):
        """Shapes of both links."""
        scaled = [
            (M / k.mass, J / (k.mass * k.length**2), D / (k.mass * k.length))
            for k, (M, J, D) in zip((self.first, self.second), self.tip_loads, strict=True)
        ]
        return [Shapes(self.order, *load) for load in scaled]

    def link_frequencies(self):
        """Clamped frequencies [rad/s] of both links with their loads, from the wave numbers."""
        return [
            psi.b[:, 0] ** 2 * np.sqrt(k.EI / (k.rho * k.length**4))
            for psi, k in zip(self.shapes, (self.first, self.second), strict=True)
        ]

    @cached_property
    def rotors(self):
        """(joint, its rotor's row, rotor) of the flexible joints."""
        flexible = [(j, k.rotor) for j, k in enumerate((self.first, self.second)) if k.rotor]
        return [(j, 2 + i, rotor) for i, (j, rotor) in enumerate(flexible)]

    @cached_property
    def slots(self):
        """Where d_1 and d_2 stand in q."""
        start = 2 + len(self.rotors)
        return slice(start, start + self.order), slice(start + self.order, self.n)

    @property
    def n(self):
        """Number of coordinates."""
        return 2 + len(self.rotors) + 2 * self.order

    def covector(self, slot, values=1.0):
        """Row (n,) that is `values` at `slot` and zero elsewhere."""
        row = np.zeros(self.n)
        row[slot] = values
        return row

    @cached_property
    def constants(self):
        """Integrals over both lines, and the rows that do not depend on q."""
        x, w = points()
        a, b, m_p = self.first, self.second, self.payload_mass
        psi, (s1, s2) = self.shapes, self.slots
        values = [p(x, 0) for p in psi]
        ends = [p(1.0, 0)[:, 0] for p in psi]
        slopes = [p(1.0, 1)[:, 0] / k.length for p, k in zip(psi, (a, b), strict=True)]
        return {
            "G1": a.mass * (values[0] * w) @ values[0].T,
            "J1": a.mass * a.length**2 / 3 + a.hub_inertia,
            "b1": self.covector(s1, a.mass * a.length * values[0] @ (w * x)),
            "G2": b.mass * (values[1] * w) @ values[1].T + m_p * np.outer(ends[1], ends[1]),
            "b2": self.covector(s2, b.length * (b.mass * values[1] @ (w * x) + m_p * ends[1])),
            "J2": b.mass * b.length**2 / 3 + m_p * b.length**2 + b.hub_inertia,
            "moment": (b.mass / 2 + m_p) * b.length,
            "mass": b.mass + b.hub_mass + m_p,
            "e": self.covector(s1, ends[0]),
            "phi": self.covector(s1, slopes[0]),
            "end": self.covector(s2, slopes[1]),
            "sigma": self.covector(s2, b.mass * values[1] @ w + m_p * ends[1]),
        }

    def mass_matrix(self, q):
        """M(q), (n, n)."""
        return self._assembled(q)[0]

    def bias(self, q, v):
        """h_i = sum over s of (s' (M_s v)_i - 1/2 v'M_s v ds/dq_i), M_s = dM/ds, (n,)."""
        h = np.zeros(self.n)
        for derivative, gradient in self._assembled(q)[1]:
            push = derivative @ v
            h += (gradient @ v) * push - (v @ push) / 2 * gradient
        return h

    def _assembled(self, q):
        """M, and (dM/ds, ds/dq) of everything that it depends on."""
        k, (s1, s2) = self.constants, self.slots
        d1, d2 = q[s1], q[s2]
        t1, omega = self.covector(0), self.covector(0) + self.covector(1) + k["phi"]
        beta, e, sigma = q[1] + k["phi"] @ q, k["e"] @ q, k["sigma"] @ q
        c, s = cos(beta), sin(beta)
        along, across = -e * t1, self.first.length * t1 + k["e"]
        X, Y = c * along + s * across, c * across - s * along  # of the root, in link 2's axes
        turning = k["moment"] * omega + k["sigma"]
        last = omega + k["end"]

        M = self._carriers(omega)
        M += (k["J1"] + d1 @ k["G1"] @ d1) * np.outer(t1, t1)
        M += twice(t1, k["b1"])
        M[s1, s1] += k["G1"]
        M += k["mass"] * (np.outer(along, along) + np.outer(across, across))
        M += twice(Y, turning) - sigma * twice(X, omega)
        M += (k["J2"] + d2 @ k["G2"] @ d2) * np.outer(omega, omega) + twice(omega, k["b2"])
        M[s2, s2] += k["G2"]
        M += self.payload_inertia * np.outer(last, last)

        by_beta = -twice(X, turning) - sigma * twice(Y, omega)
        by_e = -k["mass"] * twice(along, t1) + s * twice(t1, turning) + sigma * c * twice(t1, omega)
        parts = [
            (by_beta, omega - t1),
            (by_e, k["e"]),
            (-twice(X, omega), k["sigma"]),
            (np.outer(t1, t1), self.covector(s1, 2 * k["G1"] @ d1)),
            (np.outer(omega, omega), self.covector(s2, 2 * k["G2"] @ d2)),
        ]
        return M, parts

    def _carriers(self, omega):
        """Inertia of rigid joints and rotors, (n, n); a carried rotor feels the tip's rate too."""
        M = np.diag([self.first.joint_inertia, self.second.joint_inertia, *np.zeros(self.n - 2)])
        for joint, row, (inertia, gear, _stiffness, _damping, carried) in self.rotors:
            rate = gear * self.covector(row)
            if carried and joint == 1:
                rate = rate + omega - self.covector(1)
            M += inertia * np.outer(rate, rate)
        return M

    @cached_property
    def stiffness(self):
        """Constant K (n, n): bending, and the springs between rotors and links."""
        return self._springs(2) + self._lines(lambda _M, K, _zeta: K)

    @cached_property
    def damping(self):
        """D (n, n): modal damping of the clamped links without load, and of the joints."""
        return self._springs(3) + self._lines(modal_damping)

    def _springs(self, which):
        K = np.zeros((self.n, self.n))
        for joint, row, rotor in self.rotors:
            wound = self.covector(row) - self.covector(joint)
            K += rotor[which] * np.outer(wound, wound)
        return K

    def _lines(self, matrix):
        x, w = points()
        total = np.zeros((self.n, self.n))
        for psi, k, slot in zip(self.shapes, (self.first, self.second), self.slots, strict=True):
            M = k.mass * (psi(x, 0) * w) @ psi(x, 0).T
            K = k.EI / k.length**3 * (psi(x, 2) * w) @ psi(x, 2).T
            total[slot, slot] = matrix(M, K, k.damping_ratio)
        return total

    @cached_property
    def B(self):
        """Input matrix (n, 2): torques act on the rotors, or on rigid joints."""
        driven = dict.fromkeys((0, 1)) | {joint: row for joint, row, _ in self.rotors}
        rows = [j if row is None else row for j, row in driven.items()]
        return np.eye(self.n)[:, rows]

    def inverse_dynamics(self, q, v, a):
        """M a + h + K q + D v, (n,)."""
        return self.mass_matrix(q) @ a + self.bias(q, v) + self.stiffness @ q + self.damping @ v

    def forward_dynamics(self, q, v, tau):
        """Accelerations (n,) under torques tau (2,)."""
        force = self.B @ tau - self.inverse_dynamics(q, v, np.zeros(self.n))
        return np.linalg.solve(self.mass_matrix(q), force)


def twice(a, b):
    """a b' + b a', the matrix of the quadratic form 2 (a.v) (b.v)."""
    return np.outer(a, b) + np.outer(b, a)


def modal_damping(M, K, zeta):
    """M Phi diag(2 zeta w) Phi' M, Phi the mass-normalised modes of M and K."""
    squares, Phi = eigh(K, M)
    return M @ Phi @ np.diag(2 * zeta * np.sqrt(squares)) @ Phi.T @ M
