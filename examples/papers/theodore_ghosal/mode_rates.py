"""How clamped-mass modes follow a load: their first and second derivatives along a path of loads.

On a line whose free length l changes a mode psi(xi; s), s = ln l, changes in two ways: a mass point
moves through it, as xi = x / l does, and the mode itself changes with the load. This file computes
the second change in closed form, [TG95] 4.2.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from flexctl.beam.load_path import LoadPath
from flexctl.beam.moving_modes import MovingModes
from flexctl.beam.waves import scaled_rows
from flexctl.checks import Array


@dataclass(frozen=True, kw_only=True, eq=False)
class VaryingLoad(LoadPath):
    """Loads at k points of a path with a parameter s: columns (k, 3) dM/ds and so on, d2M/ds2."""

    rate: Array
    second: Array


def varying(
    load: LoadPath, rate: ArrayLike = (0.0, 0.0, 0.0), second: ArrayLike = (0.0, 0.0, 0.0)
) -> VaryingLoad:
    """Return one point of any path: a load with the derivatives (3,) of M, J and D by s."""
    return VaryingLoad(
        value=load.value,
        determinant=load.determinant,
        rate=np.reshape(np.asarray(rate, dtype=float), (1, 3)),
        second=np.reshape(np.asarray(second, dtype=float), (1, 3)),
    )


def sliding(load: LoadPath) -> VaryingLoad:
    """Return the loads of a sliding line with their derivatives by s = ln l.

    They are pure exponentials: dM/ds = -M, dJ/ds = -3 J, dD/ds = -2 D.
    """
    powers, value = np.array([1.0, 3.0, 2.0]), load.value
    return VaryingLoad(
        value=value,
        determinant=load.determinant,
        rate=-powers * value,
        second=powers**2 * value,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ModeRates:
    """n modes at each of k loads and their derivatives by the path's parameter s.

    With the waves a, b of `clamped_waves` at the wave number of each mode, kappa = beta_s / beta
    and V_r = amplitudes_r0 a + amplitudes_r1 b,

        psi = V_0,   psi_s = kappa xi V_0' + V_1,
        psi_ss = (kappa_s + kappa^2) xi V_0' + kappa^2 xi^2 V_0'' + 2 kappa xi V_1' + V_2,

    because a function of beta xi changes by kappa xi times its derivative.

    Attributes
    ----------
    modes
        The modes themselves.
    load
        The k loads.
    beta_rate, beta_second
        First and second derivative (k, n) of the wave numbers by s.
    amplitudes
        (3, k, n, 2) [-]; parts not yet known are left out.
    """

    modes: MovingModes
    load: VaryingLoad
    beta_rate: Array
    beta_second: Array
    amplitudes: Array

    @property
    def beta(self) -> Array:
        """Wave numbers (k, n) [-]."""
        return self.modes.beta

    @property
    def kappa(self) -> Array:
        """Rate of ln(beta) by s (k, n)."""
        return self.beta_rate / self.beta

    @property
    def kappa_rate(self) -> Array:
        """Second derivative of ln(beta) by s (k, n)."""
        return self.beta_second / self.beta - self.kappa**2

    def quadrature(self) -> tuple[Array, Array]:
        """Return points and weights (g,) that integrate products of two of these functions."""
        return self.modes.quadrature()

    def evaluate(self, xi: Array, derivative: int = 0, order: int = 0) -> Array:
        """Return d^(derivative + order) psi / dxi^derivative ds^order at xi (g,), (k, n, g)."""
        d, kappa = derivative, self.kappa[..., None]
        if order == 0:
            return self._part(0, xi, d)
        if order == 1:
            return kappa * self._times_xi(0, xi, d) + self._part(1, xi, d)
        curved = xi**2 * self._part(0, xi, d + 2) + 2 * d * xi * self._part(0, xi, d + 1)
        if d > 1:
            curved += d * (d - 1) * self._part(0, xi, d)
        return (
            (self.kappa_rate[..., None] + kappa**2) * self._times_xi(0, xi, d)
            + kappa**2 * curved
            + 2 * kappa * self._times_xi(1, xi, d)
            + self._part(2, xi, d)
        )

    def tip(self, derivative: int, order: int) -> Array:
        """Return one of these functions at the tip, (k, n)."""
        return self.evaluate(np.ones(1), derivative, order)[..., 0]

    def _times_xi(self, part: int, xi: Array, d: int) -> Array:
        """Return derivative number d of xi V'."""
        whole = xi * self._part(part, xi, d + 1)
        return whole + d * self._part(part, xi, d) if d else whole

    def _part(self, part: int, xi: Array, d: int) -> Array:
        return replace(self.modes, amplitudes=self.amplitudes[part]).evaluate(xi, d)


def with_rates(modes: MovingModes) -> ModeRates:
    """Return modes with their derivatives by the s of a `VaryingLoad`, else of a sliding line.

    With lambda = beta^4,

        lambda_s = -lambda L_s(psi, psi),

    which is the differential form (40) of [TG95] in a mode's energy.  psi_s then meets the
    differentiated conditions at the tip, is clamped at the root, and keeps m(psi, psi) = 1; psi_ss
    follows in the same way, and the second derivative of lambda by differentiation of lambda_s.
    """
    load, none = modes.load, np.zeros_like(modes.beta)
    known = ModeRates(
        modes=modes,
        load=load if isinstance(load, VaryingLoad) else sliding(load),
        beta_rate=none,
        beta_second=none,
        amplitudes=modes.amplitudes[None],
    )
    return _with_second(_with_first(known))


def _mass(modes: ModeRates, first: int, second: int) -> Array:
    """Return m of two orders of derivatives of each mode by s, (k, n)."""
    xi, weights = modes.quadrature()
    line = (modes.evaluate(xi, 0, first) * modes.evaluate(xi, 0, second)) @ weights
    return line + _form(modes.load.value, _tips(modes, first), _tips(modes, second))


def _with_first(modes: ModeRates) -> ModeRates:
    load, tips, lam = modes.load, _tips(modes, 0), modes.beta**4
    pull = _form(load.rate, tips, tips)  # -lambda_s / lambda
    modes = replace(modes, beta_rate=-modes.beta * pull / 4)
    factors = _product_rate(lam, -lam * pull, load.value, load.rate)
    return _with_part(modes, order=1, forcing=_pulled(factors, tips), mass=-pull / 2)


def _with_second(modes: ModeRates) -> ModeRates:
    load, tips, tips_rate = modes.load, _tips(modes, 0), _tips(modes, 1)
    lam, kappa = modes.beta**4, modes.kappa
    crossed, curved = _form(load.rate, tips, tips_rate), _form(load.second, tips, tips)
    kappa_rate = -(curved + 2 * crossed) / 4
    modes = replace(modes, beta_second=modes.beta * (kappa_rate + kappa**2))
    lam_rate, lam_second = 4 * lam * kappa, lam * (4 * kappa_rate + 16 * kappa**2)
    first = _product_rate(lam, lam_rate, load.value, load.rate)
    second = (
        lam_second[:, None] * load.value[..., None]
        + 2 * lam_rate[:, None] * load.rate[..., None]
        + lam[:, None] * load.second[..., None]
    )
    forcing = _pulled(second, tips) + 2 * _pulled(first, tips_rate)
    mass = -_mass(modes, 1, 1) - 2 * crossed - curved / 2
    return _with_part(modes, order=2, forcing=forcing, mass=mass)


def _with_part(modes: ModeRates, *, order: int, forcing: Array, mass: Array) -> ModeRates:
    """Find V_order from the tip conditions R(psi_order) = forcing (k, n, 2) and the scale.

    At a root both conditions are one equation for a wave; they leave a multiple of psi open, which
    m(psi, psi_order) = mass (k, n) determines.
    """
    empty = np.zeros_like(modes.amplitudes[:1])
    known = replace(modes, amplitudes=np.concatenate([modes.amplitudes, empty]))
    rows, sizes = scaled_rows(modes.beta, modes.load)
    tips = [known.tip(d, order) for d in range(4)]
    left = np.stack(_conditions(tips, modes.beta**4, modes.load), axis=-1)
    U, sigma, Vt = np.linalg.svd(rows)
    along = np.einsum("kni,kni->kn", U[..., 0], (forcing - left) / sizes) / sigma[..., 0]
    free = (along[..., None] * Vt[..., 0, :])[None]
    extended = replace(known, amplitudes=np.concatenate([modes.amplitudes, free]))
    extended.amplitudes[order] -= (_mass(extended, 0, order) - mass)[
        ..., None
    ] * extended.amplitudes[0]
    return extended


def _conditions(tips: list[Array], pull: Array, load: LoadPath) -> tuple[Array, Array]:
    """Return psi'' - beta^4 (J psi' + D psi) and psi''' + beta^4 (M psi + D psi'), (k, n) each."""
    w, slope, moment, shear = tips
    return (
        moment - pull * (load.inertia * slope + load.offset * w),
        shear + pull * (load.mass * w + load.offset * slope),
    )


def _tips(modes: ModeRates, order: int) -> tuple[Array, Array]:
    return modes.tip(0, order), modes.tip(1, order)


def _form(load: Array, left: tuple[Array, Array], right: tuple[Array, Array]) -> Array:
    """Return M p p + J s s + D (p s + s p) for columns M, J, D (k, 3), (k, n)."""
    M, J, D = (load[:, i : i + 1] for i in range(3))
    (p, s), (P, S) = left, right
    return M * p * P + J * s * S + D * (p * S + s * P)


def _product_rate(a: Array, a_rate: Array, b: Array, b_rate: Array) -> Array:
    """Return (a b)_s (k, 3, n) of a (k, n) and columns b (k, 3)."""
    return a_rate[:, None] * b[..., None] + a[:, None] * b_rate[..., None]


def _pulled(factors: Array, tips: tuple[Array, Array]) -> Array:
    """Return the moment J s + D p and the shear -(M p + D s) of factors (k, 3, n), (k, n, 2)."""
    M, J, D = factors[:, 0], factors[:, 1], factors[:, 2]
    p, s = tips
    return np.stack([J * s + D * p, -(M * p + D * s)], axis=-1)
