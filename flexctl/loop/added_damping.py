"""Damping or inertia that a loop lacks to bear a required overestimate of the stiffness.

To first order a mode is lost at alpha = 2 zeta w/(2 Re ds/dt) (`design.stiffness_growth`): damping
helps in proportion, and inertia at the joints lets torques of the same error move them less. Both
change the arm in fact and in what its controller knows, and every gain that a design finds itself,
of a second loop or an observer, is found anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flexctl.catalogue import Arm, Link
from flexctl.design.reference import make_reference
from flexctl.errors import InputError
from flexctl.loop.requirement import Requirement, first_to_bear, log_grid
from flexctl.loop.variants import Case, damped, rebuilt

RATIOS = (1e-3, 0.3)
INERTIAS = (0.01, 100.0)
_PER_DECADE = 6


@dataclass(frozen=True, kw_only=True)
class AddedDamping:
    """The least damping ratio of all links with which a loop bears a required overestimate.

    Attributes
    ----------
    requirement
        Of the damping ratio [-] of all modes of all links, known to the controller.
    own
        Ratios that the file gives, of all links that bend.
    n_path
        Poses along the motion it is judged at, under the law of the gross motion, beside the final
        one under the law that acts there.
    """

    requirement: Requirement
    own: tuple[float, ...]
    n_path: int


def least_damping(
    case: Case, wanted: float, *, ratios: tuple[float, float] = RATIOS
) -> AddedDamping:
    """Find the least damping ratio of all links with alpha_upper >= wanted.

    0 is tried, then six ratios per decade of a range from below: a narrower band is missed. Dampers
    of springs stay as they are.

    Parameters
    ----------
    case
        What it is sought for.
    wanted
        Required alpha_upper [-] at the worst pose.
    ratios
        Least and largest ratio [-], above 0 and below 1.

    Raises
    ------
    InputError
        When no link bends, or a range or the requirement is empty.
    """
    if not 0 < ratios[0] < ratios[1] < 1:
        raise InputError(f"ratios: wanted a range in 0 to 1, came {ratios[0]:g} to {ratios[1]:g}")
    if not any(link.flexible for link in case.arm.links):
        raise InputError(f"{case.arm.label}: damping: wanted a link that bends, came none")
    grid = [0.0, *log_grid(*ratios, _PER_DECADE)]
    found = first_to_bear(damped(case), grid, wanted)
    own = written_ratios(case.truth_arm or case.arm)
    return AddedDamping(requirement=found, own=own, n_path=case.n_path)


def written_ratios(arm: Arm) -> tuple[float, ...]:
    """Damping ratios that a file gives, of all links that bend, ascending."""
    found = {ratio for link in arm.links if link.flexible for ratio in link.damping_ratio}
    return tuple(sorted(found))


@dataclass(frozen=True, kw_only=True)
class AddedInertia:
    """The least inertia added at joints with which a loop bears a required overestimate.

    Attributes
    ----------
    joints
        Joints that it is added at, the same at each.
    requirement
        Of the inertia [kg m^2].
    reference
        Largest inertia of the arm about one of them at the final pose [kg m^2].
    n_path
        As in `AddedDamping`.
    """

    joints: tuple[str, ...]
    requirement: Requirement
    reference: float
    n_path: int


def least_inertia(
    case: Case,
    wanted: float,
    joints: Sequence[str] | None = None,
    *,
    inertias: tuple[float, float] = INERTIAS,
) -> AddedInertia:
    """Find the least inertia added to `joint_inertia` of joints with alpha_upper >= wanted.

    None is tried, then six values per decade of a range from below: a narrower band is missed. The
    joint gains stay, so that torques grow with the inertia.

    Parameters
    ----------
    case
        What it is sought for.
    wanted
        Required alpha_upper [-] at the worst pose.
    joints
        Names of revolute joints; all of them by default.
    inertias
        Least and largest inertia, in units of the arm's own about these joints.

    Raises
    ------
    InputError
        When a joint does not turn, or a range or the requirement is empty.
    """
    turning = turning_joints(case.arm)
    chosen = turning if joints is None else tuple(joints)
    if not chosen or not set(chosen) <= set(turning):
        came = ", ".join(chosen) or "none"
        raise InputError(f"joints: wanted revolute ones ({', '.join(turning)}), came {came}")
    if not 0 < inertias[0] < inertias[1] < np.inf:
        came = f"{inertias[0]:g} to {inertias[1]:g}"
        raise InputError(f"inertias: wanted a range above 0, came {came}")
    reference = _own_inertia(case, chosen)
    loops = rebuilt(lambda J: case.changed(lambda arm: with_inertia(arm, chosen, J)))
    grid = [0.0, *(reference * log_grid(*inertias, _PER_DECADE))]
    return AddedInertia(
        joints=chosen,
        requirement=first_to_bear(loops, grid, wanted),
        reference=reference,
        n_path=case.n_path,
    )


def least_inertias(
    case: Case, wanted: float, *, inertias: tuple[float, float] = INERTIAS
) -> tuple[AddedInertia, ...]:
    """Do so for all revolute joints together, then for each alone."""
    turning = turning_joints(case.arm)
    choices = [turning, *((joint,) for joint in turning)] if len(turning) > 1 else [turning]
    return tuple(least_inertia(case, wanted, chosen, inertias=inertias) for chosen in choices)


def turning_joints(arm: Arm) -> tuple[str, ...]:
    """Names of the revolute joints of an arm."""
    pairs = zip(arm.joints, arm.links, strict=True)
    return tuple(name for name, link in pairs if link.joint == "revolute")


def with_inertia(arm: Arm, joints: Sequence[str], inertia: float) -> Arm:
    """Return the arm with so much more `joint_inertia` [kg m^2] at each of the joints."""

    def heavier(name: str, link: Link) -> Link:
        if name not in joints:
            return link
        return link.model_copy(update={"joint_inertia": link.joint_inertia + inertia})

    pairs = zip(arm.joints, arm.links, strict=True)
    return arm.model_copy(update={"links": tuple(heavier(*pair) for pair in pairs)})


def _own_inertia(case: Case, joints: Sequence[str]) -> float:
    """Largest inertia [kg m^2] about one of the joints at the final pose, all else held."""
    truth = case.truth
    M = truth.mass_matrix(truth.straight(make_reference(case.design).final))
    return float(max(M[j, j] for j, name in enumerate(truth.joints) if name in joints))
