"""The arm of [TG95] as its claims need it: variants, poses of its motion, margins."""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy.linalg

from flexctl.beam.line import Beam
from flexctl.checks import Array
from flexctl.control.reference import make_reference
from flexctl.model.arm import Arm
from flexctl.model.design import Design
from flexctl.model.law import Gains
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings, with_options, with_value
from flexctl.plant.linearisation import LinearPlant, linearise
from flexctl.plant.plant import Plant, assemble_plant
from flexctl.robustness.stiffness.margin import stiffness_margin
from flexctl.robustness.stiffness.record import StiffnessMargin

TWO_MODES = BasisChoice(order=2)  # per line, as the paper
N_POSES = 11
STIFF, GENTLE = (400.0, 40.0), (100.0, 20.0)  # Gp [1/s^2], Gv [1/s]: the paper gives none


@cache
def arm(damping: float = 0.0, load: str = "MJD") -> Arm:
    """Load the paper's arm with this damping ratio: the paper has none, the catalogue's 1 %.

    `load` is what link 2's shapes know of what lies beyond: the paper's are ``M`` alone, the
    catalogue's ``MJD``.
    """
    found = with_options(load_model("theodore-ghosal-rrp"), foreshortening=None, damping=damping)
    if load == "MJD":
        return found
    known = f"link2.tip_load={{ reference_pose = {{ joint3 = 1.0 }}, include = {list(load)} }}"
    return apply_settings(found, [known])


def line() -> Beam:
    """Return link 2's line where it bends in one plane."""
    link = arm().links[1]
    return Beam(length=link.length, mass_per_length=link.mass_per_length, EI={"y": link.EI["y"]})


def choice(kind: str, order: int) -> BasisChoice:
    """Return so many modes or elements per line and plane."""
    return BasisChoice.model_validate({"kind": kind, "order": order})


@cache
def plant(kind: str = "modes", order: int = 2, damping: float = 0.0, load: str = "MJD") -> Plant:
    """Discretise the paper's arm."""
    return assemble_plant(arm(damping, load), choice(kind, order), interpreted=True)


def poses() -> Array:
    """Joint variables (m, N_POSES) along the paper's motion."""
    motion = make_reference(load_design("rrp-stiff-decoupling"))
    return motion.sample(np.linspace(0, motion.duration, N_POSES))[0]


def held_squares(own: Plant) -> Array:
    """Return frequencies squared [rad^2/s^2] of an arm whose joints are held, along the motion.

    Ascending, (N_POSES, n - m), links straight, damping left out.
    """
    found = []
    for pose in poses().T:
        q = own.straight(pose)
        M, K = own.mass_matrix(q)[own.m :, own.m :], own.elastic_stiffness(q)[own.m :, own.m :]
        found.append(scipy.linalg.eigh(K, M, eigvals_only=True))
    return np.array(found)


@cache
def linear(damping: float = 0.0) -> LinearPlant:
    """Linearise the arm at the end of the motion."""
    found = plant(damping=damping)
    return linearise(found, found.straight(poses()[:, -1]))


def design(gains: tuple[float, float] | None, effort: float | None = None) -> Design:
    """Make a decoupling design of these gains; None: that of rrp-gentle with its second loop.

    `effort` is another weight in the second loop's cost.
    """
    if gains:
        chosen = Gains(Gp=(gains[0],), Gv=(gains[1],))
        return load_design("rrp-stiff-decoupling").model_copy(update={"gains": chosen})
    found = load_design("rrp-gentle")
    return found if effort is None else with_value(found, "second_loop.weights.effort", effort)


@cache
def margin(
    damping: float,
    gains: tuple[float, float] | None,
    basis: tuple[str, int] = ("modes", 2),
    truth: tuple[str, int] = ("modes", 2),
    effort: float | None = None,
) -> StiffnessMargin:
    """Find how wrong the stiffness may be at the end of the motion.

    `basis` of the design's plant and `truth` are kind and order.

    Raises
    ------
    DesignError
        When the loop is unstable without an error.
    """
    return stiffness_margin(
        arm(damping),
        design(gains, effort),
        design_basis=plant(*basis).basis,
        truth_basis=plant(*truth).basis,
        n_path=0,
    )
