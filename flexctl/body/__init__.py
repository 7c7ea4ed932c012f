"""How one link moves with its joint: local coordinates, tip map, energies, equations of motion."""

from flexctl.body.body import Body, Local, free_length, link_section
from flexctl.body.dynamics import BodyDynamics, evaluate_body, local_coordinates
from flexctl.body.foreshortening import shortening
from flexctl.body.line import scales, spread
from flexctl.body.motion import (
    cross_joint,
    damping_matrix,
    joint_turn,
    move_body,
    slide_damping,
    tip_turns,
)
from flexctl.body.rotation import Turn, VectorTurn, elementary_rotation
from flexctl.body.segment import present

__all__ = [
    "Body",
    "BodyDynamics",
    "Local",
    "Turn",
    "VectorTurn",
    "cross_joint",
    "damping_matrix",
    "elementary_rotation",
    "evaluate_body",
    "free_length",
    "joint_turn",
    "link_section",
    "local_coordinates",
    "move_body",
    "present",
    "scales",
    "shortening",
    "slide_damping",
    "spread",
    "tip_turns",
]
