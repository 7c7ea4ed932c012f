"""One moving link with its joint: local coordinates, tip map, energies and equations of motion."""

from flexctl.body.body import Body, Local, free_length, link_course
from flexctl.body.dynamics import BodyDynamics, body_dynamics, evaluate_body, local_coordinates
from flexctl.body.line import scales, spread
from flexctl.body.motion import (
    BodyMotion,
    cross_joint,
    damping_matrix,
    joint_turn,
    move_body,
    slide_damping,
    tip_turns,
)
from flexctl.body.rotation import (
    Turn,
    VectorTurn,
    elementary_rotation,
    rotation_matrix,
    space_rate,
)

__all__ = [
    "Body",
    "BodyDynamics",
    "BodyMotion",
    "Local",
    "Turn",
    "VectorTurn",
    "body_dynamics",
    "cross_joint",
    "damping_matrix",
    "elementary_rotation",
    "evaluate_body",
    "free_length",
    "joint_turn",
    "link_course",
    "local_coordinates",
    "move_body",
    "rotation_matrix",
    "scales",
    "slide_damping",
    "space_rate",
    "spread",
    "tip_turns",
]
