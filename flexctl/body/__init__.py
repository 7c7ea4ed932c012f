"""One moving link with its joint: local coordinates, tip map, kinetic and strain energy."""

from flexctl.body.body import Body, Local, free_length
from flexctl.body.line import scales
from flexctl.body.motion import BodyMotion, damping_matrix, move_body, solid_energy
from flexctl.body.rotation import body_rate, elementary_rotation, rotation_matrix

__all__ = [
    "Body",
    "BodyMotion",
    "Local",
    "body_rate",
    "damping_matrix",
    "elementary_rotation",
    "free_length",
    "move_body",
    "rotation_matrix",
    "scales",
    "solid_energy",
]
