"""Damping or inertia to add so that a loop tolerates a required overestimate of the stiffness.

To first order a mode becomes unstable at alpha = zeta w / Re(d lambda/d alpha), proportional to its
damping; with more inertia the same error of the torques accelerates the joints less. Both change
the true arm and the design arm. Gains that a design computes itself, of a second loop or an
observer, are redesigned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flexctl.control import make_reference
from flexctl.errors import InputError
from flexctl.model import with_inertia, written_ratios
from flexctl.robustness import Case
from flexctl.search.requirement import Requirement, first_to_tolerate, log_grid
from flexctl.search.variants import damped, rebuilt

RATIOS = (1e-3, 0.3)
INERTIAS = (0.01, 100.0)
_PER_DECADE = 6
_STEPS = 3  # per decade of inertia


@dataclass(frozen=True, kw_only=True)
class AddedDamping:
    """The least damping ratio of all links with which a loop tolerates a required overestimate.

    Attributes
    ----------
    requirement
        Requirement on the damping ratio [-] of all modes of all links, known to the controller.
    own
        Damping ratios of the flexible links in the arm's file [-].
    n_path
        Number of judged poses along the motion, under the law of the gross motion; the final pose
        is judged under the law that acts there.
    """

    requirement: Requirement
    own: tuple[float, ...]
    n_path: int


def least_damping(
    case: Case, expected: float, *, ratios: tuple[float, float] = RATIOS
) -> AddedDamping:
    """Find the least damping ratio of all links with alpha_upper >= `expected`.

    0 is tried first, then six ratios per decade in ascending order; a narrower band of suitable
    ratios is missed. Dampers of springs do not change.

    Parameters
    ----------
    case
        Arm, design and number of poses.
    expected
        Required alpha_upper [-] at the worst pose.
    ratios
        Least and largest ratio [-], above 0 and below 1.

    Raises
    ------
    InputError
        When no link bends, the range is empty, or `expected` is not above 0.
    """
    if not 0 < ratios[0] < ratios[1] < 1:
        raise InputError(f"ratios: expected a range in 0 to 1, got {ratios[0]:g} to {ratios[1]:g}")
    if not any(link.flexible for link in case.setup.design_arm.links):
        raise InputError(
            f"{case.setup.design_arm.label}: damping: expected a link that bends, got none"
        )
    grid = [0.0, *log_grid(*ratios, _PER_DECADE)]
    requirement = first_to_tolerate(damped(case), grid, expected)
    own = written_ratios(case.setup.true_arm)
    return AddedDamping(requirement=requirement, own=own, n_path=case.n_path)


@dataclass(frozen=True, kw_only=True)
class AddedInertia:
    """The least inertia to add at joints so that a loop tolerates a required overestimate.

    Attributes
    ----------
    joints
        Names of these joints.
    requirement
        Requirement on the inertia added at each joint, in units of `own`.
    own
        Inertia of the arm about each of these joints at the final pose, all other coordinates held
        [kg m^2, or kg for a sliding joint].
    n_path
        As in `AddedDamping`.
    """

    joints: tuple[str, ...]
    requirement: Requirement
    own: tuple[float, ...]
    n_path: int

    @property
    def added(self) -> tuple[float, ...] | None:
        """Inertia to add at each joint [kg m^2 or kg]; None where no inertia suffices."""
        answer = self.requirement.answer
        return tuple(answer.value * own for own in self.own) if answer else None


def least_inertia(
    case: Case,
    expected: float,
    joints: Sequence[str] | None = None,
    *,
    factors: tuple[float, float] = INERTIAS,
) -> AddedInertia:
    """Find the least inertia to add to `joint_inertia` of joints with alpha_upper >= `expected`.

    Each joint receives the same multiple of the inertia of the arm about it, as turning and sliding
    joints have different units. 0 is tried first, then three multiples per decade in ascending
    order; a narrower band is missed. Joint gains, which are accelerations per error, do not change,
    so torques grow with the inertia. Modes that act on other joints do not benefit.

    Parameters
    ----------
    case
        Arm, design and number of poses.
    expected
        Required alpha_upper [-] at the worst pose.
    joints
        Names of joints; all by default.
    factors
        Least and largest added inertia, in units of the arm's own [-].

    Raises
    ------
    InputError
        When there is no such joint, the range is empty, or `expected` is not above 0.
    """
    chosen = case.setup.design_arm.joints if joints is None else tuple(joints)
    if not chosen or not set(chosen) <= set(case.setup.design_arm.joints):
        got = ", ".join(chosen) or "none"
        raise InputError(
            f"joints: expected some of {', '.join(case.setup.design_arm.joints)}, got {got}"
        )
    if not 0 < factors[0] < factors[1] < np.inf:
        got = f"{factors[0]:g} to {factors[1]:g}"
        raise InputError(f"factors: expected a range above 0, got {got}")
    truth = case.truth
    M = truth.mass_matrix(truth.straight(make_reference(case.design).final))
    own = {
        joint: float(M[truth.joints.index(joint), truth.joints.index(joint)]) for joint in chosen
    }

    def heavier(factor: float) -> Case:
        return case.changed(lambda arm: with_inertia(arm, {j: factor * J for j, J in own.items()}))

    grid = [0.0, *log_grid(*factors, _STEPS)]
    return AddedInertia(
        joints=chosen,
        requirement=first_to_tolerate(rebuilt(heavier), grid, expected),
        own=tuple(own.values()),
        n_path=case.n_path,
    )
