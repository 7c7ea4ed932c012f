"""Arms as they are but for their damping or the inertia at their joints."""

from __future__ import annotations

from collections.abc import Mapping

from flexctl.model.arm import Arm


def without_damping(arm: Arm) -> Arm:
    """Return the arm with no damping in its links and springs."""
    links = []
    for link in arm.links:
        joint = link.flexible_joint
        undamped = joint.model_copy(update={"damping": 0.0}) if joint else None
        update = {"damping_ratio": (0.0,), "flexible_joint": undamped}
        links.append(link.model_copy(update=update))
    return arm.model_copy(update={"links": tuple(links)})


def with_damping(arm: Arm, ratio: float) -> Arm:
    """Return the arm with one damping ratio [-] of all modes of its links; springs keep theirs."""
    links = tuple(
        link.model_copy(update={"damping_ratio": (ratio,)}) if link.flexible else link
        for link in arm.links
    )
    return arm.model_copy(update={"links": links})


def written_ratios(arm: Arm) -> tuple[float, ...]:
    """Damping ratios [-] that a file gives, of all links that bend, ascending."""
    found = {ratio for link in arm.links if link.flexible for ratio in link.damping_ratio}
    return tuple(sorted(found))


def with_inertia(arm: Arm, added: Mapping[str, float]) -> Arm:
    """Return the arm with more `joint_inertia` [kg m^2 or kg] at the joints named."""
    links = tuple(
        link.model_copy(update={"joint_inertia": link.joint_inertia + added.get(joint, 0.0)})
        for joint, link in zip(arm.joints, arm.links, strict=True)
    )
    return arm.model_copy(update={"links": links})
