"""The same arm with other numbers: another damping, more inertia, another stiffness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np

from flexctl.model.arm import Arm
from flexctl.model.design import Design
from flexctl.model.link import Link


def _with_links(arm: Arm, links: Iterable[Link]) -> Arm:
    return arm.model_copy(update={"links": tuple(links)})


def without_damping(arm: Arm) -> Arm:
    """Return the arm with no damping in its links and springs."""
    links = []
    for link in arm.links:
        joint = link.flexible_joint
        undamped = joint.model_copy(update={"damping": 0.0}) if joint else None
        update = {"damping_ratio": (0.0,), "flexible_joint": undamped}
        links.append(link.model_copy(update=update))
    return _with_links(arm, links)


def with_damping(arm: Arm, ratio: float) -> Arm:
    """Return the arm with one damping ratio [-] of all modes of its links; springs keep theirs."""
    update = {"damping_ratio": (ratio,)}
    links = (link.model_copy(update=update) if link.flexible else link for link in arm.links)
    return _with_links(arm, links)


def written_ratios(arm: Arm) -> tuple[float, ...]:
    """Damping ratios [-] that a file gives, of all links that bend, ascending."""
    ratios = {ratio for link in arm.links if link.flexible for ratio in link.damping_ratio}
    return tuple(sorted(ratios))


def with_inertia(arm: Arm, added: Mapping[str, float]) -> Arm:
    """Return the arm with more `joint_inertia` [kg m^2 or kg] at the joints named."""
    links = (
        link.model_copy(update={"joint_inertia": link.joint_inertia + added.get(joint, 0.0)})
        for joint, link in zip(arm.joints, arm.links, strict=True)
    )
    return _with_links(arm, links)


FixedDamping = Literal["none", "joints", "all"]


def soften_arm(arm: Arm, s: float, fixed_damping: FixedDamping = "none") -> Arm:
    """Multiply all EI, GJ, shear and spring stiffness by s > 0; masses stay.

    Damping ratios stay, so that dampers grow as sqrt(s), but for what `fixed_damping` names:
    dampers of the "joints", or "all".
    """
    return _with_links(arm, (_soften_link(link, s, fixed_damping) for link in arm.links))


def _soften_link(link: Link, s: float, fixed: FixedDamping) -> Link:
    root, joint = float(np.sqrt(s)), link.flexible_joint
    changed: dict[str, object] = {"EI": {plane: EI * s for plane, EI in link.EI.items()}}
    if link.shear_stiffness:
        shear = {plane: GA * s for plane, GA in link.shear_stiffness.items()}
        changed["shear_stiffness"] = shear
    if link.torsion and link.torsion.GJ:
        changed["torsion"] = link.torsion.model_copy(update={"GJ": link.torsion.GJ * s})
    if fixed == "all":
        changed["damping_ratio"] = tuple(ratio / root for ratio in link.damping_ratio)
    if joint:
        damping = joint.damping * (root if fixed == "none" else 1.0)
        update = {"stiffness": joint.stiffness * s, "damping": damping}
        changed["flexible_joint"] = joint.model_copy(update=update)
    return link.model_copy(update=changed)


def soften_design(design: Design, s: float) -> Design:
    """Keep the fast gains of a composite design in scaled variables: Kp ~ s, Kv ~ sqrt(s).

    Gains that the file scales by k_c follow by themselves, and so do those of weights whose effort
    is divided by s: then all terms of the cost shrink alike.
    """
    fast = design.fast_loop
    if fast is None or fast.scaled:
        return design
    if fast.weights:
        weights = fast.weights.model_copy(update={"effort": fast.weights.effort / s})
        changed = fast.model_copy(update={"weights": weights})
    else:
        Kp, Kv = (np.array(gains) for gains in (fast.Kp, fast.Kv))
        update = {"Kp": tuple(map(tuple, s * Kp)), "Kv": tuple(map(tuple, np.sqrt(s) * Kv))}
        changed = fast.model_copy(update=update)
    return design.model_copy(update={"fast_loop": changed})


def slowed_design(design: Design, s: float) -> Design:
    """Slow gains of a composite design in the time t sqrt(s): Gp/s, Gv/sqrt(s).

    In that time an arm with s times the stiffness and the same damping ratios is the arm with 1/s
    of the gravity, M a + c/s + K q + D v = B tau/s, and the fast gains that grow with the stiffness
    are those without a factor.
    """
    gains = design.joint_gains
    slowed = {"Gp": tuple(g / s for g in gains.Gp), "Gv": tuple(g / s**0.5 for g in gains.Gv)}
    return design.model_copy(update={"gains": gains.model_copy(update=slowed)})
