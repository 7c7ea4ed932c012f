"""How far the stiffness may be overestimated: the lemma of [TG95], for any arm and any error.

Under a decoupling law with K + dK in place of K, and no other error, the arm obeys

    r'' = u + S_r^-1 [I, -M_rf M_ff^-1] dK q,   M_ff f'' + M_fr r'' + K_fr r + K_ff f = 0

with the coordinates r on which torques act and the others, f: the force dK q on the free arm gives
r this acceleration. If the error of r is neglected, r = 0 and u = 0, the block of f is

    M_ff f'' + (K_ff - G) f = 0,   G = -M_fr S_r^-1 [I, -M_rf M_ff^-1] dK_:f,

with G = H dK_ff for rigid joints. The lemma is about this block and no margin of the loop, which
without damping any overestimate makes unstable, however small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy.linalg

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import ComputationError, InputError
from flexctl.model import Arm, BasisChoice
from flexctl.plant import STIFFNESS_ERROR, LinearPlant, Plant, assemble_plant, linearise
from flexctl.robustness.stiffness.driven_mass import DrivenMass, split_mass
from flexctl.robustness.stiffness.flutter import first_flutter

LossKind = Literal["divergence", "flutter", "none"]

FARTHEST = 10.0  # largest error of a part at which flutter is searched
_FARTHEST = 100.0  # largest t at which flutter is searched for an error of the whole stiffness
_SAME = 1e-9  # relative to sqrt(a_ii a_jj): equal entries of two matrices differ by less
_REAL = 1e-9  # |Im| of an eigenvalue relative to the largest, below which it is real


@dataclass(frozen=True, kw_only=True)
class LemmaAssumption:
    """An assumption of the lemma, in words, and whether it holds here."""

    text: str
    holds: bool


@dataclass(frozen=True, kw_only=True)
class Lemma:
    """How large t may be before an error t dK of the stiffness makes the block of f unstable.

    Attributes
    ----------
    H
        P S^-1 (n_f, n_f), see `DrivenMass.H`.
    lambda_max
        Largest real eigenvalue of G K_ff^-1, at least 0: of H where dK = K.
    alpha_star
        Smallest t > 0 at which an eigenvalue of M_ff^-1 (K_ff - t G) passes zero (1/lambda_max) or
        two meet and become complex; infinite if neither happens.
    loss
        Kind of instability there: "divergence", "flutter" or "none".
    basis
        Discretisation; None for a linear plant without one.
    coordinates
        Names of f (n_f,).
    assumptions
        Assumptions of the lemma, and whether they hold.
    """

    H: Array
    lambda_max: float
    alpha_star: float
    loss: LossKind
    basis: BasisChoice | None
    coordinates: tuple[str, ...]
    assumptions: tuple[LemmaAssumption, ...]

    def __post_init__(self) -> None:
        """Check sizes and signs."""
        checks.square("H", self.H, len(self.coordinates))
        if not (self.lambda_max >= 0 and self.alpha_star >= 0):
            raise ComputationError(
                "lemma: expected lambda_max and alpha_star of at least 0, got "
                f"{self.lambda_max:g} and {self.alpha_star:g}"
            )


def stiffness_lemma(
    plant: Plant,
    pose: Mapping[str, float] | Array | None = None,
    dK: Array | None = None,
    *,
    farthest: float = _FARTHEST,
) -> Lemma:
    """Evaluate the lemma of [TG95], 4.3, in its general form, about the equilibrium at a pose.

    Parameters
    ----------
    plant
        A plant with a flexible link or joint.
    pose
        Named coordinates, or q (n,), as in `linearise`.
    dK
        Error K_hat - K (n, n) in the coordinates of q, symmetric; by default the stiffness of links
        and joints itself, so that t is alpha = K_hat/K - 1.
    farthest
        Largest t at which flutter is searched; divergence is found at any t.

    Raises
    ------
    InputError
        When the arm is rigid, or dK is no symmetric (n, n) matrix.
    ComputationError
        When the arm has no equilibrium at the pose, or its links buckle there.
    """
    linear = linearise(plant, pose)
    return lemma_of(linear, plant.drives, dK, farthest=farthest, basis=plant.basis)


def lemma_of(
    linear: LinearPlant,
    drives: tuple[int, ...],
    dK: Array | None = None,
    *,
    farthest: float = _FARTHEST,
    basis: BasisChoice | None = None,
) -> Lemma:
    """Evaluate `stiffness_lemma` for a linear plant with torques on the rows `drives` (m,).

    The error dK (n, n) is in the units of `LinearPlant.K`; `basis` is only copied to the record.
    """
    mass = split_mass(linear.M, drives)
    K_ff = _stable_block(linear, mass)
    error = linear.K_elastic if dK is None else checks.symmetric("dK", dK, len(linear.M))
    ratio = _proportion(mass, linear, error)
    if ratio is None:
        lambda_max, limit, loss = _lost(mass, K_ff, error, farthest)
    else:
        lambda_max = max(ratio * mass.lambda_max, 0.0)
        limit, loss = _diverges(lambda_max)
    return Lemma(
        H=mass.H,
        lambda_max=lambda_max,
        alpha_star=limit,
        loss=loss,
        basis=basis,
        coordinates=tuple(linear.coordinates[row] for row in mass.passive),
        assumptions=_assumptions(linear, mass, error, None if ratio is not None else farthest),
    )


def _diverges(lambda_max: float) -> tuple[float, LossKind]:
    """Limit of t and kind of instability for a block whose eigenvalues stay real."""
    return (1 / lambda_max, "divergence") if lambda_max else (np.inf, "none")


def _lost(
    mass: DrivenMass, K_ff: Array, dK: Array, farthest: float
) -> tuple[float, float, LossKind]:
    """lambda_max, limit of t and kind of instability for K_ff - t U V, of rank m at most."""
    U, V = mass.M_fr, -np.linalg.solve(mass.S_r, mass.error_torque(dK))
    compliance = np.linalg.solve(K_ff, U)
    noise = len(K_ff) * np.finfo(float).eps * np.abs(V) @ np.abs(compliance)
    lambda_max = _largest_real(V @ compliance, float(noise.max(initial=0.0)))
    limit, loss = _diverges(lambda_max)
    met = first_flutter(mass.M_ff, K_ff, U, V, min(limit, farthest))
    return (lambda_max, limit, loss) if met is None else (lambda_max, met, "flutter")


def _stable_block(linear: LinearPlant, mass: DrivenMass) -> Array:
    """Block K_ff (n_f, n_f), refused unless positive definite."""
    K_ff = mass.blocks(linear.K)[1]
    scale = np.sqrt(np.abs(np.diag(K_ff)))
    if not (scale > 0).all() or np.linalg.eigvalsh(K_ff / np.outer(scale, scale))[0] <= 0:
        raise ComputationError(
            "lemma: the arm buckles or falls at this pose with its drives held: there is no "
            "stable block that an error could destabilise; check EI and gravity"
        )
    return K_ff


def _proportion(mass: DrivenMass, linear: LinearPlant, dK: Array) -> float | None:
    """Factor a with G = a H K_ff, for which all eigenvalues stay real; None where there is none.

    This holds for dK = a K without geometric stiffness of gravity, if no drive is coupled to f by
    both mass and spring, as a carried rotor is: K_ff - G = (I - a H) K_ff is then similar to a
    symmetric matrix.
    """
    K_rf, _ = mass.blocks(linear.K)
    pulled = (K_rf != 0).any(axis=1) & (mass.M_fr != 0).any(axis=0)
    a = _factor(mass, dK, linear.K)
    return a if _same(dK, a * linear.K) and not pulled.any() else None


def _factor(mass: DrivenMass, dK: Array, K: Array) -> float:
    """Factor a for which a K_ff is next to dK_ff, by least squares."""
    dK_ff, K_ff = mass.blocks(dK)[1], mass.blocks(K)[1]
    return float((dK_ff * K_ff).sum() / (K_ff * K_ff).sum())


def _same(A: Array, B: Array) -> bool:
    """Whether two symmetric matrices (n, n) differ by round-off only."""
    d = np.sqrt(np.abs(np.diag(A)) + np.abs(np.diag(B)))
    return bool((np.abs(A - B) <= _SAME * np.outer(d, d)).all())


def _largest_real(A: Array, noise: float) -> float:
    """Largest real eigenvalue of A (m, m) that is above the noise of its entries, else 0."""
    values = np.linalg.eigvals(A)
    size = np.abs(values).max(initial=0.0)
    real = np.abs(values.imag) <= _REAL * size
    return float(values.real[real & (values.real > noise)].max(initial=0.0))


def _assumptions(
    linear: LinearPlant, mass: DrivenMass, dK: Array, searched: float | None
) -> tuple[LemmaAssumption, ...]:
    """Assumptions of a lemma; flutter was searched up to t = `searched`, or not at all for None."""
    K = linear.K_elastic
    proportional = _same(dK, _factor(mass, dK, K) * K)
    held = np.linalg.solve(mass.S_r, mass.error_torque(dK))
    assumptions = [
        ("the error is proportional to the stiffness, dK = alpha K", proportional),
        ("no stiffness is underestimated, dK >= 0", _semidefinite(dK)),
        ("joint errors stay zero: the flexible block is considered alone", not held.any()),
        ("gravity adds no stiffness", _same(linear.K, K)),
        ("the arm is undamped; damping is neglected", not np.any(linear.D)),
        ("the stiffness K of the coordinates that follow is positive definite", True),
    ]
    if searched is not None:
        assumptions.append((f"no flutter beyond t = {searched:g}, where the search ended", True))
    return tuple(LemmaAssumption(text=text, holds=bool(holds)) for text, holds in assumptions)


def _semidefinite(A: Array) -> bool:
    """Whether a symmetric matrix (n, n) is positive semidefinite within round-off."""
    d = np.sqrt(np.abs(np.diag(A)))
    d = np.where(d > 0, d, 1.0)
    values = scipy.linalg.eigvalsh(A / np.outer(d, d))
    return bool(values[0] >= -len(A) * 1e-12 * np.abs(values).max())


@dataclass(frozen=True, kw_only=True)
class LemmaPath:
    """The lemma at N poses: lambda_max (N,), and alpha_star (N,), infinite without instability."""

    lambda_max: Array
    alpha_star: Array


def lemma_along(plant: Plant, poses: Array) -> LemmaPath:
    """Evaluate the lemma for errors proportional to the stiffness, without gravity, at many poses.

    `poses` are q (n, N), bent or straight, or joint variables (m, N) of the straight arm.

    Raises
    ------
    InputError
        When poses have neither n nor m rows, or the arm is rigid.
    ComputationError
        When the mass matrix is not positive definite.
    """
    poses = checks.finite("poses", poses)
    if poses.ndim != 2 or len(poses) not in (plant.m, plant.n):
        raise InputError(
            f"poses: expected {plant.n} coordinates or {plant.m} joint variables by poses, "
            f"got shape {poses.shape}"
        )
    straight = plant.straight(poses) if len(poses) == plant.m else poses
    limits = np.array([_lost_at(plant, q) for q in straight.T]).reshape(-1, 2)
    return LemmaPath(lambda_max=limits[:, 0], alpha_star=limits[:, 1])


def _lost_at(plant: Plant, q: Array) -> tuple[float, float]:
    """lambda_max and limit at q (n,); carried rotors couple to the arm by mass and spring."""
    mass = split_mass(plant.mass_matrix(q), plant.drives)
    springs = [link.flexible_joint for link in plant.arm.links]
    if not any(spring is not None and spring.carried for spring in springs):
        return mass.lambda_max, _diverges(mass.lambda_max)[0]
    K = plant.elastic_stiffness(q)
    return _lost(mass, mass.blocks(K)[1], K, _FARTHEST)[:2]


def lemma_by_part(plant: Plant, q: Array, groups: Mapping[str, Sequence[int]]) -> dict[str, Lemma]:
    """Evaluate the lemma of the model `plant` at q (n,) for errors of single parts, by name.

    `groups` are indices of `Plant.stiffness_parts` that share one relative error.
    """
    parts, lemma = np.arange(len(plant.stiffness_parts)), _by_errors(plant, q)
    return {name: lemma(np.isin(parts, own).astype(float)) for name, own in groups.items()}


def lemma_of_errors(plant: Plant, q: Array, errors: Array) -> Lemma:
    """Evaluate the lemma of the model `plant` at q (n,) for errors K_hat/K - 1 (p,) of its parts.

    `alpha_star` is the factor t of the errors at which the flexible block becomes unstable; flutter
    is searched until the largest error is `FARTHEST`.
    """
    return _by_errors(plant, q, FARTHEST / np.abs(errors).max())(errors)


def _by_errors(plant: Plant, q: Array, farthest: float = FARTHEST) -> Callable[[Array], Lemma]:
    """Return the lemma at q (n,) as a function of errors (p,) of the stiffness."""
    linear = linearise(plant, q)
    model = plant.of_any_stiffness
    K = model.elastic_stiffness(linear.q0)

    def lemma(errors: Array) -> Lemma:
        dK = model.at({STIFFNESS_ERROR: errors}).elastic_stiffness(linear.q0) - K
        dK = (dK + dK.T) / 2
        return lemma_of(linear, plant.drives, dK, farthest=farthest, basis=plant.basis)

    return lemma


def lemma_of_true_arm(plant: Plant, arm: Arm, q: Array) -> Lemma | None:
    """Evaluate the lemma at q (n,) for the difference of a model's stiffness from the true arm's.

    dK = K_hat - K with K_hat of `plant`; K and the masses are those of `arm` in the same
    coordinates, for example measured where the model's are computed: modes are those of the model,
    elements have the nodes of both. An `alpha_star` above 1 means that the lemma allows this error.
    None where dK is zero within round-off.
    """
    truth = assemble_plant(arm, plant.basis, interpreted=True)
    if plant.basis.kind == "modes":  # which assume the load at the tips
        links = zip(plant.bodies, arm.links, strict=True)
        truth = replace(truth, bodies=tuple(replace(body, link=link) for body, link in links))
    K_hat, K = plant.elastic_stiffness(q), truth.elastic_stiffness(q)
    dK = (K_hat - K + (K_hat - K).T) / 2
    if (np.abs(dK) <= 1e-12 * np.abs(K).max()).all():
        return None
    linear = linearise(truth, q)
    return lemma_of(linear, truth.drives, dK, farthest=FARTHEST, basis=plant.basis)
