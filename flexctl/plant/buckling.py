"""Weight of an arm relative to its buckling load, in a pose with joints and motors held."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
import scipy.linalg

from flexctl.beam import (
    Beam,
    Shapes,
    assemble_matrices,
    density_rule,
    hermite_elements,
    twist_elements,
)
from flexctl.body import elementary_rotation, link_section
from flexctl.checks import Array
from flexctl.model import TWIST, Arm, BasisChoice, Link
from flexctl.plant.assembly import first_moment, inertia_beyond
from flexctl.plant.payload import base_pose
from flexctl.plant.plant import assemble_plant

WORTH_SAYING = 0.01  # share of the critical load below which missing terms are negligible
_ROUND_OFF = 1e-9  # shares below this are zero
_BASIS = BasisChoice(kind="modes", order=2)  # critical loads of columns within 1 %, from above
_ELEMENTS = 8  # of a line that buckles sideways: within 1e-3, from above


@dataclass(frozen=True, kw_only=True)
class LoadShares:
    """Weights over the critical ones of the straight arm in a pose [-]; 0: no buckling.

    Attributes
    ----------
    arm
        Of the whole arm, its motors held: largest s with K + K_g/s singular, K of links and
        springs, K_g of the weights: geometric stiffness of links under axial load, and tilting.
    left_out
        Part of K_g that the model neglects (links without foreshortening), as a share of K:
        positive for compression, negative for tension.
    straight_lines
        Names of these links.
    lateral
        By link that bends and twists: its load over that of lateral buckling of the link alone,
        clamped at its root, under its own weight and that of all bodies beyond it.
    """

    arm: float
    left_out: float
    straight_lines: tuple[str, ...]
    lateral: dict[str, float]

    @property
    def largest(self) -> float | None:
        """The largest of all shares; None without buckling."""
        shares = (self.arm, *self.lateral.values())
        return max((s for s in shares if s > _ROUND_OFF), default=None)

    @property
    def missing(self) -> tuple[str, ...]:
        """Second-order terms that the model lacks although they matter, each in a sentence."""
        return (*self._missing_column(), *self._missing_lateral())

    def _missing_column(self) -> list[str]:
        if abs(self.left_out) < WORTH_SAYING:
            return []
        does, load = "softens", "of the load that buckles the arm"
        if self.left_out < 0:
            does, load = "stiffens", "of the load that would buckle the arm if it were compressive"
        return [
            f"foreshortening is left out of {', '.join(self.straight_lines)}, and with it how the "
            f"weight along the links {does} them: here it is {percent(self.left_out)} {load}"
        ]

    def _missing_lateral(self) -> list[str]:
        return [
            f"lateral buckling of {name} is not modelled (how a load in one plane softens bending "
            f"in the other through twist): here the load is {percent(share)} of the critical one "
            "of the link alone, clamped at its root"
            for name, share in self.lateral.items()
            if share >= WORTH_SAYING
        ]


def percent(share: float) -> str:
    """Write a share in percent to two digits."""
    size = 100 * abs(share)
    return f"{size:.0f} %" if size >= 10 else f"{size:.1f} %"


def load_shares(arm: Arm, joints: Array) -> LoadShares:
    """Compare the weight of an arm at joint variables (m,) with its buckling load.

    The arm is straight: sag is neglected.
    """
    straight = _straight_lines(arm)
    if not any(arm.gravity) or not any(k.flexible or k.flexible_joint for k in arm.links):
        return LoadShares(arm=0.0, left_out=0.0, straight_lines=straight, lateral={})
    K, whole = _stiffness(_shortened(arm), joints)
    own = _stiffness(arm, joints)[1] if straight else whole
    least = _eigenvalues(whole, K)
    gone = _eigenvalues(whole - own, K)
    return LoadShares(
        arm=float(max(0.0, -least[0])),
        left_out=float(-gone[np.abs(gone).argmax()]),
        straight_lines=straight,
        lateral=lateral_shares(arm, joints),
    )


def missing_terms(arm: Arm, joints: Array) -> tuple[str, ...]:
    """Sentences on second-order terms that the model lacks and that matter at joints (m,)."""
    if not any(arm.gravity):
        return ()
    if _straight_lines(arm):
        return load_shares(arm, joints).missing
    lateral = lateral_shares(arm, joints)
    return LoadShares(arm=0.0, left_out=0.0, straight_lines=(), lateral=lateral).missing


def _straight_lines(arm: Arm) -> tuple[str, ...]:
    return tuple(k.name for k in arm.links if k.EI and not k.foreshortening)


def _shortened(arm: Arm) -> Arm:
    links = [k.model_copy(update={"foreshortening": True}) for k in arm.links]
    return arm.model_copy(update={"links": tuple(links)})


def _stiffness(arm: Arm, joints: Array) -> tuple[Array, Array]:
    """K and K_g (k, k) of the k coordinates that move with all motors held; straight arm."""
    plant = assemble_plant(arm, _BASIS, interpreted=True)
    q = plant.straight(joints)
    held = np.ix_(*2 * [np.setdiff1d(np.arange(plant.n), plant.drives)])
    K = plant.elastic_stiffness(q)[held]
    return K, plant.tangent_stiffness(q)[held] - K


def _eigenvalues(K_g: Array, K: Array) -> Array:
    """Return mu (k,), ascending, of K_g x = mu K x."""
    return scipy.linalg.eigh((K_g + K_g.T) / 2, (K + K.T) / 2, eigvals_only=True)


def lateral_shares(arm: Arm, joints: Array) -> dict[str, float]:
    """Find loads over those of lateral buckling, by link that bends and twists.

    Bending by M in the plane of the load, EI_s, couples twist phi and bending u across it, EI_w:

        1/2 int EI_w u''^2 + GJ phi'^2 dx + f int M phi u'' dx - 1/2 P e phi(l)^2,

    f^2 = (1 - EI_w/EI_s)(1 - GJ/EI_s) to account for the deflection in the plane of the load before
    buckling, and P at the height e above the tip. Source: [TimoshenkoGere61], [Reissner79].
    """
    shares, R = {}, np.array(ca.DM(base_pose(arm)[0]))
    gravity = np.array(arm.gravity)
    for j, link in enumerate(arm.links):
        turned = link.dh.theta + (joints[j] if link.joint == "revolute" else 0.0)
        R = R @ _turn(2, float(turned)) @ _turn(0, link.dh.alpha)
        if TWIST in link.rigidities and link.EI:
            shares[link.name] = _lateral(arm, j, joints, R.T @ gravity)
    return shares


def _turn(axis: int, angle: float) -> Array:
    return np.array(ca.DM(elementary_rotation(axis, angle)))


def _lateral(arm: Arm, j: int, joints: Array, g: Array) -> float:
    """Share of link j (a line along x) under gravity g (3,) in its axes."""
    link = arm.links[j]
    inertia = inertia_beyond(arm, j, joints)
    mass = inertia[0, 0]
    moment = np.array(first_moment(inertia))
    planes = [("yz"[1 - k], "yz"[k]) for k in (0, 1)]  # across the load, of the load
    return max(
        (
            _sideways(link, weak, strong, float(g[1 + k]), mass, moment[[0, 1 + k]])
            for k, (weak, strong) in enumerate(planes)
            if weak in link.EI
        ),
        default=0.0,
    )


def _sideways(link: Link, weak: str, strong: str, g: float, mass: float, moment: Array) -> float:
    """Share of a link loaded in the plane `strong`, by `mass` with its first moment (along, up)."""
    EI = link.EI.get(strong, np.inf)
    factor = (1 - link.EI[weak] / EI) * (1 - link.rigidities[TWIST] / EI)
    if link.EI[weak] >= EI or factor <= 0 or not g:
        return 0.0
    beam = Beam(
        length=link.length,
        mass_per_length=link.mass_per_length,
        EI=link.rigidities,
        sections={d: link_section(link, d) for d in (weak, TWIST)},
    )
    bent = hermite_elements(_ELEMENTS, section=beam.section(weak))
    twisted = twist_elements(_ELEMENTS, section=beam.section(TWIST))
    K_w = assemble_matrices(beam, weak, bent).stiffness
    K_t = assemble_matrices(beam, TWIST, twisted).stiffness
    C = np.sqrt(factor) * abs(g) * _coupling(link, bent, twisted, mass, moment[0])
    tip = _angles(twisted, np.array([1.0]), link.length)
    height = g * moment[1] * (tip @ tip.T)  # above the tip is against gravity
    n = len(K_w)
    coupled = np.block([[np.zeros((n, n)), C.T], [C, height]])
    return float(-_eigenvalues(coupled, np.asarray(scipy.linalg.block_diag(K_w, K_t)))[0])


def _coupling(link: Link, bent: Shapes, twisted: Shapes, mass: float, ahead: float) -> Array:
    """Int M phi u'' dx (twists, bendings) under a gravity of 1, M the moment about the section."""
    own = link.profile("mass_per_length")
    point_masses = np.array([point_mass.x for point_mass in link.masses])
    breaks = np.unique([*bent.breaks, *twisted.breaks, *own.breaks, *point_masses])
    xi, weights = density_rule(breaks, 5)
    beyond = np.maximum(point_masses[None, :] - xi[:, None], 0.0) @ [
        point_mass.mass for point_mass in link.masses
    ]
    M = link.length * (_own_moment(link, xi, breaks) + beyond + mass * (1 - xi)) + ahead
    curvature = (link.length ** (bent.power - 2.0))[:, None] * bent.bending(xi)
    return (_angles(twisted, xi, link.length) * (link.length * weights * M)) @ curvature.T


def _own_moment(link: Link, xi: Array, breaks: Array) -> Array:
    """Moment (k,) of the line beyond xi about xi over its length, [kg]."""
    at, weights = density_rule(breaks, 5)
    mass = weights * link.mass_per_length * link.length * link.profile("mass_per_length").at(at)
    return np.maximum(at[None, :] - xi[:, None], 0.0) @ mass


def _angles(twisted: Shapes, xi: Array, length: float) -> Array:
    """Angles of twist (n, k) [-] of the coordinates of a line."""
    return (length ** (twisted.power - 1.0))[:, None] * twisted.rotation(xi)
