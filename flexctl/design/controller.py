"""Controllers: a law from reference and measurement to torques, as a CasADi function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from flexctl import checks
from flexctl.catalogue import Arm, BasisChoice, Design, check_design
from flexctl.checks import Array
from flexctl.design.composite import composite_law
from flexctl.design.decoupling import decoupling_law
from flexctl.design.fast_loop import FastFeedback
from flexctl.design.feedforward import feedforward_law
from flexctl.design.joint_pd import joint_pd_law
from flexctl.design.laws import LawParts
from flexctl.design.lqr import StateFeedback
from flexctl.design.reference import ReferenceMotion, make_reference
from flexctl.design.torque import torque_law
from flexctl.errors import DesignError, InputError
from flexctl.plant import Plant, assemble_plant


@dataclass(frozen=True, kw_only=True)
class Controller:
    """A controller made on a design plant with n coordinates, for m joints.

    Attributes
    ----------
    design
        The design file it comes from.
    plant
        Design plant; what it measures are that plant's q and v.
    reference
        Desired motion.
    law
        CasADi function (s, z, q_d, v_d, a_d, q, v) -> (tau, z_rate): share s [-] of the second
        loop (0 in the gross motion, 1 after the switch), integral state z (n_z,), desired motion
        and measured q, v (n,); torques tau (m,) and dz/dt (n_z,). Torques are not yet limited.
    n_state
        Number n_z of integral states: 0 or m.
    torque_limit
        Largest torque per joint (m,) [N m or N]; infinite where the arm has none.
    feedback
        The second loop with its evidence; None without one.
    fast
        The fast loop of composite control with its evidence, which always acts; None without one.
    assumptions
        What the design rests on, in sentences.
    """

    design: Design
    plant: Plant
    reference: ReferenceMotion
    law: ca.Function
    n_state: int
    torque_limit: Array
    feedback: StateFeedback | None
    fast: FastFeedback | None
    assumptions: tuple[str, ...]

    def __post_init__(self) -> None:
        m, n = self.plant.m, self.plant.n
        wanted = [1, self.n_state, m, m, m, n, n]
        found = [self.law.numel_in(i) for i in range(self.law.n_in())]
        if found != wanted:
            raise DesignError(f"law: wanted inputs of sizes {wanted}, came {found}")
        checks.shape("reference.final", self.reference.final, (m,))

    @property
    def sample_time(self) -> float | None:
        """Sampling period [s]; None for a continuous law."""
        return self.design.loop.sample_time or None

    @property
    def delay(self) -> float:
        """Time [s] from sampling to the torque's taking effect."""
        return self.design.loop.delay

    @property
    def blend(self) -> float:
        """Time [s] over which the second loop fades in; 0: at once."""
        second = self.design.second_loop
        return second.switch.blend if second and second.switch else 0.0

    @property
    def duration(self) -> float:
        """Length of a run [s]: the file's, else the reference's and 0.5 s."""
        return self.design.loop.duration or self.reference.duration + 0.5

    @cached_property
    def law_jacobian(self) -> ca.Function:
        """Inputs of `law` -> dtau/d[q; v] (m, 2n) and dtau/dz (m, n_z)."""
        inputs = [ca.SX.sym(f"i{k}", self.law.numel_in(k)) for k in range(self.law.n_in())]
        tau, _ = self.law(*inputs)
        J = ca.jacobian(tau, ca.vertcat(inputs[5], inputs[6], inputs[1]))
        n = 2 * self.plant.n
        outputs = [ca.densify(J[:, :n]), ca.densify(J[:, n:])]
        return ca.Function("law_jacobian", inputs, outputs, {"cse": True})

    def initial_state(self) -> Array:
        """Integral states at the start (n_z,): zero."""
        return np.zeros(self.n_state)


def torque_limits(arm: Arm) -> Array:
    """Largest torques of an arm's actuators (m,) [N m or N]; infinite where none is given."""
    return np.array([link.limits.torque or np.inf for link in arm.links])


def _require_possible_rates(arm: Arm, design: Design, reference: ReferenceMotion) -> None:
    """Refuse a reference that is faster than a joint can be."""
    fastest = np.abs(reference.sample(np.linspace(0, reference.duration, 501))[1]).max(axis=1)
    for j, (link, rate) in enumerate(zip(arm.links, fastest, strict=True)):
        limit = link.limits.rate
        if limit is not None and rate > limit * (1 + 1e-9):
            raise InputError(
                f"{design.label}: reference.duration: wanted a motion of at most {limit:g} per s "
                f"at joint{j + 1} (limits.rate of {link.name} of {arm.name}), came {rate:.4g}"
            )


def _for_another_arm(arm: Arm, design: Design) -> tuple[str, ...]:
    """Say it where a design was made for another arm than it is tried on."""
    if design.model in {arm.name, arm.path.stem if arm.path else None}:
        return ()
    return (f"{design.name} was made for {design.model}, not for {arm.name}",)


_LAWS: dict[str, Callable[[Plant, Design, ReferenceMotion], LawParts]] = {
    "decoupling": decoupling_law,
    "composite": composite_law,
    "joint-pd": joint_pd_law,
    "feedforward": feedforward_law,
    "torque": torque_law,
}


def design_controller(arm: Arm, design: Design, basis: BasisChoice | None = None) -> Controller:
    """Make the controller of a design file for an arm.

    Parameters
    ----------
    arm
        The arm as the designer knows it.
    design
        Method, gains, weights, reference.
    basis
        Discretisation of the design plant; the design file's by default.

    Raises
    ------
    InputError
        When the design does not fit the arm.
    DesignError
        When no such controller exists: a mode cannot be stabilised, or the gains do not hold.
    """
    check_design(arm, design)
    plant = assemble_plant(arm, basis or design.basis)
    reference = make_reference(design)
    _require_possible_rates(arm, design, reference)
    parts = _LAWS[design.method](plant, design, reference)
    return Controller(
        design=design,
        plant=plant,
        reference=reference,
        law=parts.law,
        n_state=parts.n_state,
        torque_limit=torque_limits(arm),
        feedback=parts.feedback,
        fast=parts.fast,
        assumptions=(*parts.assumptions, *_for_another_arm(arm, design)),
    )
